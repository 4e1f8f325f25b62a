"""Host memory: aliases, how long they live, and which bytes they wrote."""
from __future__ import annotations

import ctypes
import gc
import mmap
import pickle
import sys

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lazyarray.storage.mirror import pages as mirror_memory
from lazyarray.storage.mirror import pinned_pool
from lazyarray.storage.mirror.byte_ranges import Ranges
from lazyarray.storage.mirror.dirty_tracking import why_no_pages
from lazyarray.storage.mirror.mirror import PAGES_FROM, Mirror

PAGE = mmap.PAGESIZE
U1 = np.dtype("u1")

TRACKING = ["auto", "none", *(["pages"] if why_no_pages() is None else [])]
EXACT_ENOUGH = [how for how in TRACKING if how != "none"]


def filled(nbytes, tracking="auto", value=1):
    mirror = Mirror.reserve(nbytes, tracking)
    with mirror.filling(Ranges.span(0, nbytes)) as memory:
        memory[:] = value
    return mirror


def lend_all(mirror, **kwargs):
    return mirror.lend((mirror.nbytes,), U1, (1,), 0, **kwargs)


# -- how long an alias lives -----------------------------------------------------------------

class Carrier:
    """An object that others reach through the array interface alone."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


class ByStruct:
    def __init__(self, array):
        self.__array_struct__ = array.__array_struct__


def out_of_band(array):
    buffers = []
    pickle.dumps(array, protocol=5, buffer_callback=buffers.append)
    return buffers[0]


#: What foreign code makes of an alias, and how it writes the fourth byte through it.
DERIVED = {
    "itself": (lambda a: a, None),
    "asarray": (np.asarray, None),
    "view": (lambda a: a.view(), None),
    "slices": (lambda a: a[1:][1:][1:], 0),
    "a view of another dtype": (lambda a: a.reshape(-1, 4).view("u4").view("u1")[0], None),
    "reversed twice": (lambda a: a[::-1][::-1].reshape(-1, 2).T[:, 1:], (1, 0)),
    "memoryview": (memoryview, None),
    "memoryview of a slice": (lambda a: memoryview(a[2:]).cast("B")[1:], 0),
    "array of a memoryview": (lambda a: np.asarray(memoryview(a)), None),
    "frombuffer": (lambda a: np.frombuffer(a, "u1"), None),
    "frombuffer of a memoryview of a slice": (lambda a: np.frombuffer(memoryview(a[1:]), "u1")[2:], 0),
    "ndarray over its buffer": (lambda a: np.ndarray((8,), "u1", a, 2), 1),
    "array interface": (lambda a: np.asarray(Carrier(a)), None),
    "array struct": (lambda a: np.asarray(ByStruct(a)), None),
    "strided by hand": (lambda a: np.lib.stride_tricks.as_strided(a, (5,), (3,)), 1),
    "DLPack": (np.from_dlpack, None),
    "ctypes": (lambda a: (ctypes.c_ubyte * 8).from_buffer(a), None),
    "ctypeslib": (np.ctypeslib.as_ctypes, None),
    "a subclass": (lambda a: a.view(np.recarray), None),
    "a masked array": (lambda a: np.ma.asarray(a).data, None),
    "an out-of-band pickle": (lambda a: np.frombuffer(out_of_band(a), "u1"), None),
    "an iterator": (lambda a: a.flat, None),
    "in a cycle": (lambda a: [a, [], a[3:]], (2, 0)),
}


@pytest.mark.parametrize("nbytes, tracking", [(64, how) for how in TRACKING] + [(PAGES_FROM, "auto")])
@pytest.mark.parametrize("derive, index", DERIVED.values(), ids=DERIVED)
def test_an_alias_lives_as_long_as_anything_made_of_it(derive, index, nbytes, tracking):
    mirror = filled(nbytes, tracking)
    derived = derive(lend_all(mirror))
    gc.collect()
    mirror.collect()
    assert mirror.lent and mirror.aliased() == Ranges.span(0, nbytes)
    target = derived
    if isinstance(index, tuple) and isinstance(derived, list):
        target, index = derived[index[0]], index[1]
        derived[1].append(derived)
    target[3 if index is None else index] = 200
    assert mirror.bytes[3] == 200
    assert mirror.collect().covers(Ranges.span(3, 4))
    assert mirror.lent
    del derived, target
    gc.collect()
    mirror.collect()
    assert not mirror.lent and not mirror.aliased() and not mirror.collect()


@pytest.mark.parametrize("nbytes", [64, PAGES_FROM, mirror_memory.HUGE_FROM + PAGE])
@pytest.mark.parametrize("derive, index", DERIVED.values(), ids=DERIVED)
def test_memory_outlives_the_mirror_while_it_is_held(derive, index, nbytes):
    if nbytes > PAGES_FROM and index is not None:
        pytest.skip("one of each kind is enough for the largest")
    mirror = filled(nbytes, value=5)
    derived = derive(lend_all(mirror))
    del mirror
    gc.collect()
    others = [filled(nbytes, value=9) for _ in range(3)]
    if isinstance(index, tuple) and isinstance(derived, list):
        derived, index = derived[index[0]], index[1]
    i = 3 if index is None else index
    assert derived[i] == 5
    derived[i] = 6
    assert all((other.bytes == 9).all() for other in others)


def test_an_owner_dies_at_once_or_with_its_cycle():
    mirror = filled(64)
    gc.disable()
    try:
        knot = [lend_all(mirror)]
        knot.append(knot)
        del knot
        mirror.collect()
        assert mirror.lent
        gc.collect()
        mirror.collect()
        assert not mirror.lent
    finally:
        gc.enable()


def test_finalisers_that_lend_again():
    """The garbage collector may call back into the mirror from inside its own verbs."""
    mirror = filled(64)
    made = []

    class Lender:
        def __init__(self):
            self.alias = lend_all(mirror)
            self.me = self

        def __del__(self):
            made.append(lend_all(mirror))
            mirror.aliased()

    threshold = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for i in range(300):
            Lender()
            lend_all(mirror)[i % 64] = i % 200
            mirror.collect()
            with mirror.filling(Ranges.span(0, 8)):
                pass
            mirror.aliased()
            made.clear()
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    made.clear()
    mirror.collect()
    assert not mirror.lent


def test_many_deaths_without_a_collect_are_not_hoarded():
    mirror = filled(4096)
    keep = mirror.lend((10,), U1, (1,), 0)
    for i in range(3000):
        mirror.lend((1,), U1, (1,), i)[0] = 2
    assert len(mirror._aliases) < 200
    assert mirror.collect() == Ranges.span(0, 3000)
    assert mirror.aliased() == Ranges.span(0, 10)
    assert keep[0] == 2


# -- what an alias is ------------------------------------------------------------------------

@pytest.mark.parametrize("tracking", TRACKING)
@pytest.mark.parametrize("shape, dtype, strides, offset", [
    ((4, 6), "f8", (48, 8), 16), ((6, 4), "f4", (4, 24), 0), ((5,), "i2", (-4,), 40), ((), "c16", (), 32),
    ((0, 3), "f8", (24, 8), 0), ((3, 2), "u1", (0, 1), 7), ((2,), "M8[s]", (8,), 8), ((3,), "S5", (5,), 1),
    ((2,), [("a", "i1"), ("b", "f8")], (9,), 3), ((2, 2), "g", (32, 16), 0), ((3,), "S0", (0,), 0),
])
def test_an_alias_is_an_ordinary_array(shape, dtype, strides, offset, tracking):
    mirror = filled(512, tracking)
    dtype = np.dtype(dtype)
    alias = mirror.lend(shape, dtype, strides, offset)
    assert type(alias) is np.ndarray
    assert (alias.shape, alias.dtype, alias.strides) == (shape, dtype, strides)
    assert alias.flags.writeable and not alias.flags.owndata
    private = mirror.view(shape, dtype, strides, offset)
    assert not private.flags.writeable
    assert mirror.view(shape, dtype, strides, offset, writeable=True).flags.writeable
    assert alias.ctypes.data == private.ctypes.data == mirror.bytes.ctypes.data + offset
    assert mirror.aliased() == Ranges.of_view(shape, strides, dtype.itemsize, offset)
    assert not alias.size or private.tobytes() == b"\1" * alias.nbytes


def test_flags_of_an_alias():
    mirror = filled(64)
    alias = lend_all(mirror)
    alias.flags.writeable = False
    alias.flags.writeable = True
    read_only = lend_all(mirror, writeable=False)
    with pytest.raises(ValueError, match="WRITEABLE"):
        read_only.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        read_only[0] = 1
    assert memoryview(read_only).readonly


def test_private_views_are_no_aliases():
    mirror = filled(64)
    view = mirror.view((64,), U1, (1,), 0)
    assert not mirror.lent and not mirror.aliased()
    del mirror
    assert view[0] == 1


@pytest.mark.parametrize("tracking", TRACKING)
def test_nothing_in_an_empty_mirror(tracking):
    mirror = filled(0, tracking)
    assert mirror.full
    alias = mirror.lend((0, 4), np.dtype("f8"), (32, 8), 0)
    assert alias.size == 0
    assert not mirror.collect() and not mirror.aliased()
    mirror.pin()
    assert not mirror.collect()


@pytest.mark.parametrize("tracking", TRACKING)
def test_empty_aliases_cost_nothing(tracking):
    mirror = filled(64, tracking)
    alias = mirror.lend((0,), U1, (1,), 10)
    assert not mirror.aliased() and not mirror.collect()
    del alias
    mirror.collect()
    assert not mirror.lent


# -- what is valid ---------------------------------------------------------------------------

def test_validity():
    mirror = Mirror.reserve(100)
    assert not mirror.valid and not mirror.full
    with mirror.filling(Ranges.span(0, 50)):
        assert not mirror.valid
    assert mirror.valid == Ranges.span(0, 50) and not mirror.full
    with mirror.filling(Ranges.span(50, 100)):
        pass
    assert mirror.full
    mirror.invalidate(Ranges.span(20, 30))
    assert list(mirror.valid) == [(0, 20), (30, 100)] and not mirror.full


def test_a_filling_that_fails_leaves_validity_as_it_was():
    mirror = filled(100)
    mirror.invalidate(Ranges.span(0, 40))
    with pytest.raises(ZeroDivisionError), mirror.filling(Ranges.span(20, 60)):
        1 / 0
    assert list(mirror.valid) == [(40, 100)]


@pytest.mark.parametrize("tracking", TRACKING)
def test_only_valid_bytes_are_named(tracking):
    mirror = Mirror.reserve(3 * PAGE, tracking)
    with mirror.filling(Ranges.span(0, 2 * PAGE)) as memory:
        memory[:2 * PAGE] = 0
    alias = lend_all(mirror)
    alias[:] = 7
    assert mirror.collect() == Ranges.span(0, 2 * PAGE)
    alias[10] = 8
    mirror.invalidate(Ranges.span(0, PAGE))
    assert not mirror.collect() & Ranges.span(0, PAGE)


# -- pins ------------------------------------------------------------------------------------

@pytest.mark.parametrize("tracking", TRACKING)
def test_a_pin_counts_as_an_alias_for_ever(tracking):
    mirror = filled(3 * PAGE, tracking)
    mirror.pin()
    address = mirror.bytes.ctypes.data
    for value in (2, 3):
        ctypes.memset(address + 500, value, 20)
        assert mirror.lent
        assert mirror.collect().covers(Ranges.span(500, 520))
    assert mirror.aliased() == Ranges.span(0, 3 * PAGE)


@pytest.mark.parametrize("tracking", EXACT_ENOUGH)
def test_a_pin_of_a_part(tracking):
    mirror = filled(3 * PAGE, tracking)
    mirror.pin(Ranges.span(100, 200))
    assert mirror.aliased() == Ranges.span(100, 200)
    assert not mirror.collect()
    mirror.bytes[150] = 9
    assert mirror.collect().covers(Ranges.span(150, 151))


# -- cost ------------------------------------------------------------------------------------

def mappings():
    with open("/proc/self/maps") as maps:
        return sum(1 for _ in maps)


@pytest.mark.skipif(sys.platform != "linux", reason="counted in /proc")
def test_small_mirrors_are_cheap():
    before = mappings()
    mirrors = [Mirror.reserve(1000) for _ in range(20_000)]
    for mirror in mirrors[:5000]:
        with mirror.filling(Ranges.span(0, 1000)):
            pass
        lend_all(mirror)
    assert mappings() < before + 50


@pytest.mark.skipif(sys.platform != "linux", reason="counted in /proc")
def test_memory_is_given_back():
    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * PAGE

    # What earlier tests left, to be used again, would hide what this one takes.
    gc.collect()
    pinned_pool.pool.look_after(idle=0)
    mirror_memory._kept.clear()
    before = resident()
    for nbytes, count in ((200 << 20, 1), (20 << 20, 10), (1 << 20, 200)):
        mirrors = [filled(nbytes) for _ in range(count)]
        held = [lend_all(mirror) for mirror in mirrors]
        assert resident() - before > 180 << 20
        del mirrors
        gc.collect()
        assert resident() - before > 180 << 20, "not while it is held"
        del held
        gc.collect()
        pinned_pool.pool.look_after(idle=0)
        assert resident() - before < mirror_memory.KEPT_BYTES + (20 << 20)


def test_kept_memory_serves_the_next_of_its_size():
    nbytes = 1 << 20
    first = filled(nbytes, "auto")
    if first.mapping is None:
        pytest.skip("plain memory here")
    mapping = first.mapping
    lend_all(first)
    del first
    assert filled(nbytes).mapping is mapping


# -- against a model -------------------------------------------------------------------------

class Model(RuleBasedStateMachine):
    """Aliases that come, write and go, while we fill, invalidate and collect."""

    @initialize(nbytes=st.sampled_from([40, 3 * PAGE + 100]), tracking=st.sampled_from(TRACKING))
    def start(self, nbytes, tracking):
        self.mirror = Mirror.reserve(nbytes, tracking)
        self.tracking = tracking
        self.exact = False
        self.guessed = np.zeros(nbytes, bool)       # lent before tracking became exact, where there was none
        self.content = np.zeros(nbytes, np.uint8)
        self.known = np.zeros(nbytes, bool)         # bytes whose content the model knows
        self.valid = np.zeros(nbytes, bool)
        self.lent = np.zeros(nbytes, bool)          # writable, alive or not, since the last collect
        self.reported = np.zeros(nbytes, np.uint8)  # what others have been told of: at the last fill or collect
        self.touched = np.zeros(nbytes, bool)       # written at all since the last collect
        self.coarse = np.zeros(nbytes, bool)        # touched before tracking became exact
        self.aliases = []

    def mask(self, ranges):
        mask = np.zeros(self.mirror.nbytes, bool)
        for low, high in ranges:
            mask[low:high] = True
        return mask

    def span(self, data):
        edges = st.integers(0, self.mirror.nbytes) | st.sampled_from([PAGE, 2 * PAGE]).filter(
            lambda edge: edge <= self.mirror.nbytes)
        low, high = sorted((data.draw(edges), data.draw(edges)))
        return low, high

    @rule(data=st.data(), value=st.integers(0, 255))
    def fill(self, data, value):
        low, high = self.span(data)
        with self.mirror.filling(Ranges.span(low, high)) as memory:
            memory[low:high] = value
        self.content[low:high] = value
        self.reported[low:high] = value
        self.known[low:high] = self.valid[low:high] = True

    @rule(data=st.data())
    def invalidate(self, data):
        low, high = self.span(data)
        self.mirror.invalidate(Ranges.span(low, high))
        self.valid[low:high] = False

    @rule(data=st.data(), step=st.sampled_from([1, 1, 1, 2, -1, -3, 7]), writeable=st.booleans())
    def lend(self, data, step, writeable):
        low, high = self.span(data)
        picked = np.arange(low, high)[::step]
        first = int(picked[0]) if len(picked) else low
        alias = self.mirror.lend((len(picked),), U1, (step,), first, writeable=writeable)
        self.aliases.append((alias, picked, writeable))
        if writeable or self.tracking != "none" or self.exact:
            self.lent[picked] = True

    @precondition(lambda self: any(writeable for _, _, writeable in self.aliases))
    @rule(data=st.data(), value=st.integers(0, 255))
    def write(self, data, value):
        # By number: what hypothesis draws it keeps alive.
        numbers = [i for i, (_, _, writeable) in enumerate(self.aliases) if writeable]
        alias, picked, _ = self.aliases[data.draw(st.sampled_from(numbers))]
        low, high = sorted(data.draw(st.tuples(*[st.integers(0, len(picked))] * 2)))
        where = picked[low:high]
        alias[low:high] = value
        self.touched[where] = True
        self.content[where] = value
        self.known[where] = True

    @precondition(lambda self: self.aliases)
    @rule(data=st.data())
    def drop(self, data):
        del self.aliases[data.draw(st.integers(0, len(self.aliases) - 1))]

    @rule()
    def track_exactly(self):
        self.mirror.track_exactly()
        # What was written before is known to the page alone; without tracking, all that was lent counts.
        self.coarse |= self.touched
        if self.tracking == "none" and not self.exact:
            self.guessed = self.lent.copy()
        self.exact = True

    @rule()
    def collect(self):
        found = self.mask(self.mirror.collect())
        needed = (self.content != self.reported) & self.valid
        assert (found >= needed).all(), "a write was lost"
        assert (found <= (self.lent & self.valid)).all(), "more than was lent and valid"
        if self.tracking == "none" and not self.exact:
            assert (found == (self.lent & self.valid)).all()
        elif self.tracking == "none":
            assert (found <= (self.guessed | self.touched)).all(), "a byte that nobody wrote"
            self.guessed[:] = False
        else:
            inexact = self.coarse if self.exact else self.touched
            pages = self.mask(Ranges.of_positions(np.flatnonzero(inexact)).rounded(PAGE))
            assert (found <= (pages | self.touched)).all(), "a page, or byte, that nobody wrote"
        self.reported[:] = self.content
        self.touched[:] = self.coarse[:] = self.lent[:] = False
        for _, picked, writeable in self.aliases:
            if writeable or self.tracking != "none" or self.exact:
                self.lent[picked] = True
        assert self.mirror.lent == bool(self.aliases)

    @invariant()
    def same_bytes(self):
        if not hasattr(self, "mirror"):
            return
        mirror = self.mirror
        np.testing.assert_array_equal(mirror.bytes[self.known], self.content[self.known])
        np.testing.assert_array_equal(self.mask(mirror.valid), self.valid)
        covered = np.zeros(mirror.nbytes, bool)
        for _, picked, _ in self.aliases:
            covered[picked] = True
        np.testing.assert_array_equal(self.mask(mirror.aliased()), covered)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
