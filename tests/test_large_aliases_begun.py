"""The first alias of a large array whose copy is begun in C, before Python has a look at anything."""
from __future__ import annotations

import gc
import os
import sys
import threading
import weakref

import numpy as np
import pytest
from finalisers import USES, Use, in_a_cycle
from large_copies import MB, NBYTES, WAYS, Driver, Refused, begun_in, made, view_of
from recorded import growth

import lazyarray
from lazyarray import fetching, mirror, mirror_memory, mirror_pool, tracking, wrap
from lazyarray.tracking import why_no_pages

pytestmark = pytest.mark.skipif(why_no_pages() is not None, reason="needs the kernel's write tracking")
PIECE = 4 * MB


@pytest.fixture
def copies(monkeypatch):
    yield from begun_in(WAYS[0], monkeypatch)


@pytest.fixture
def pieces(copies, monkeypatch):
    """The driver, where memory is locked in four pieces."""
    if lazyarray.device().name == "cuda":
        pytest.skip("CUDA has pieces of its own")
    copies.driver = Driver(copies, lazyarray.device(), PIECE)
    monkeypatch.setattr(lazyarray.device(), "fetcher", copies.driver.fetcher)
    return copies.driver


def kept():
    """Mappings that nobody uses."""
    gc.collect()
    return len(mirror_pool.pool.returned) + len(mirror_pool.pool._kept)


def is_untouched(x):
    storage = x._self_storage
    return storage.mirror is None and storage.quiet and storage.state == "device"


def is_right(x, wanted):
    """Whether all ways to it show what it has to be; and so after a write on either side."""
    alias = np.asarray(x)
    assert np.array_equal(alias, wanted)
    alias[3] = wanted[3] = 8
    assert np.array_equal(lazyarray.asnumpy(x.copy()), wanted)
    x += x.dtype.type(1)
    wanted += wanted.dtype.type(1)
    wrap.device_of(x)
    return np.array_equal(alias, wanted) and np.array_equal(np.asarray(x), wanted)


def test_it_is_begun_there(copies, monkeypatch):
    x, wanted = made()
    seen = []
    monkeypatch.setattr(fetching, "memory_to_fill", lambda nbytes: pytest.fail("Python looks for memory"))
    copies.then = lambda: seen.append(x._self_storage.mirror)
    assert np.array_equal(np.asarray(x), wanted)
    assert copies.driver.pieces == [NBYTES] and copies.begun == copies.waited == 1
    assert seen[0] is not None, "from here on who writes on the device tells of it"


def test_each_gets_the_memory_of_the_one_before(copies):
    addresses = set()
    for i in range(5):
        x, wanted = made()
        alias = np.asarray(x)
        assert np.array_equal(alias, wanted)
        alias.fill(i)
        addresses.add(alias.__array_interface__["data"][0])
        del alias
    assert len(copies.driver.pieces) == 5 and len(addresses) == 1


@pytest.mark.parametrize("size", [NBYTES, NBYTES + 4096, NBYTES + 4, 5 * PIECE, 5 * PIECE - 4])
def test_no_part_goes_from_one_piece_to_the_next(pieces, size):
    np.asarray(made("f4", (size // 4,))[0])
    pieces.pieces.clear()
    x, wanted = made("f4", (size // 4,))
    assert is_right(x, wanted)
    assert sum(pieces.pieces) == size and pieces.pieces[:-1] == [PIECE] * (len(pieces.pieces) - 1)


def test_a_view_of_nearly_all(copies):
    x, wanted = made(shape=(4096, NBYTES // 4 // 4096))
    alias = np.asarray(x[:, ::2])
    assert np.array_equal(alias, wanted[:, ::2]) and len(copies.driver.pieces) == 1
    y, wanted = made(shape=(4096, NBYTES // 4 // 4096))
    assert np.array_equal(np.asarray(y[:, ::3]), wanted[:, ::3]) and len(copies.driver.pieces) == 1


# -- where it is not begun there -------------------------------------------------------------------

def _other_process(mapping):
    mapping.pid += 1


def _no_region(mapping):
    mapping.region.release()
    mirror_pool.pool.locked_bytes -= mapping.size
    mapping.region = None


class _Incomplete:
    complete = False

    def __init__(self, region):
        self.release = region.release


CHANGES = {
    "none is kept": lambda mapping: mirror_pool.pool.returned.clear(),
    "of another process": _other_process,
    "not all locked": lambda mapping: setattr(mapping, "region", _Incomplete(mapping.region)),
    "none locked": _no_region,
    "pages not tracked, as far as is known": lambda mapping: tracking._found.clear(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_memory_that_does_not_do(copies, change, monkeypatch):
    if lazyarray.device().name == "cuda" and "process" not in change and "none is" not in change:
        pytest.skip("its own copies look at regions, too")
    x, wanted = made()
    before, mapping = kept(), mirror_pool.pool.returned[-1]
    process, kernel = os.getpid(), tracking.kernel()        # found again: two would not share what memory they know
    monkeypatch.setattr(tracking, "_kernel_or_reason", lambda: tracking._found.setdefault(process, kernel))
    CHANGES[change](mapping)
    try:
        alias = np.asarray(x)
        assert np.array_equal(alias, wanted) and not copies.driver.pieces
        assert kept() >= before - 1
    finally:
        if change == "none is kept":
            mirror_pool.pool.returned.append(mapping)
        tracking.kernel()
        if change == "of another process":
            mapping.pid -= 1
    del mapping
    alias[0] = wanted[0] = 5
    assert np.array_equal(lazyarray.asnumpy(x.copy()), wanted)


def test_memory_of_another_size(copies):
    x, wanted = made("f4", (NBYTES // 4 + 1024,))
    before = list(mirror_pool.pool.returned)
    assert np.array_equal(np.asarray(x), wanted) and not copies.driver.pieces
    assert set(before) <= set(mirror_pool.pool._kept) | set(mirror_pool.pool.returned)


@pytest.mark.parametrize("process", [False, True])
def test_who_listens_is_told_before(copies, process):
    x, wanted = made()
    with lazyarray.trace(process=process) as told:
        assert np.array_equal(np.asarray(x), wanted)
    assert len(told.events) == 1 and not copies.driver.pieces and copies.begun == 1


def test_in_a_forked_child(copies):
    copies.driver.fetcher.close()
    x, wanted = made()
    assert is_right(x, wanted) and not copies.driver.pieces


def test_on_the_default_stream_of_a_thread(copies, monkeypatch):
    device = lazyarray.device()
    if device.name == "cuda":
        pytest.skip("the stream is only called so here")
    x, wanted = made()
    with monkeypatch.context() as during:
        during.setattr(device.stream(), "ptr", 2)
        alias = np.asarray(x)
    assert np.array_equal(alias, wanted) and not copies.driver.pieces


# -- what goes wrong -------------------------------------------------------------------------------

@pytest.mark.parametrize("refuses", [0, 1, 3])
def test_a_piece_that_the_driver_refuses(pieces, copies, refuses, monkeypatch):
    pieces.refuses = refuses
    x, wanted = made()
    usual, asked = fetching.memory_to_fill, []
    monkeypatch.setattr(fetching, "memory_to_fill", lambda nbytes: asked.append(nbytes) or usual(nbytes))
    alias = np.asarray(x)
    assert asked == [NBYTES], "it is the first alias still"
    assert len(pieces.pieces) == refuses and not pieces.under_way
    assert copies.waited == 1 + bool(refuses), "what was begun is over before Python begins"
    assert np.array_equal(alias, wanted)
    del alias, x
    for _ in range(2):
        pieces.refuses = len(pieces.pieces) + refuses
        assert np.array_equal(np.asarray(made()[0]), wanted)
    assert kept() == mirror_pool.pool.count, "no memory is lost"


def test_an_error_comes_where_it_is_told(copies):
    copies.error = MemoryError("no more")
    x, wanted = made()
    with pytest.raises(MemoryError, match="no more"):
        view_of(x)
    copies.error = None
    assert is_right(x, wanted)


def test_a_wait_that_fails(copies):
    x, wanted = made()
    copies.driver.fails = 700
    with pytest.raises(Refused, match="700"):
        view_of(x)
    copies.driver.fails = 0
    assert is_right(x, wanted)


@pytest.mark.parametrize("where", ["use", "Mirror", "who_asks", "lend"])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_what_comes_in_between_waits(copies, monkeypatch, where, error):
    x, wanted = made()

    def interrupted(*args):
        assert copies.begun == 1 and copies.waited == 0
        raise error("now")

    with monkeypatch.context() as during, pytest.raises(error, match="now"):
        during.setattr(mirror.Mirror if where == "lend" else fetching, where, interrupted)
        view_of(x)
    assert copies.waited == 1
    assert where != "Mirror" or is_untouched(x)
    x *= np.float32(2)
    wanted *= np.float32(2)
    assert is_right(x, wanted)
    del x
    assert kept() == mirror_pool.pool.count, "no memory is lost"


# -- who else is there -----------------------------------------------------------------------------

@pytest.mark.parametrize("what", USES)
@pytest.mark.parametrize("when", ["before", "begun", "made", "used", "lent"])
def test_a_finaliser_that_uses_the_same_array(copies, monkeypatch, what, when):
    """What it gets stays right, and so does what is asked for around it."""
    x, wanted = made()
    last = Use(x, wanted, what)

    def collected():
        if not last.ran:
            in_a_cycle(last)
            gc.collect()

    def after(function):
        def called(*args, **kwargs):
            result = function(*args, **kwargs)
            collected()
            return result
        return called

    if when == "begun":
        copies.then = collected
    elif when == "before":      # while the first mirror is made
        monkeypatch.setattr(mirror, "_new", after(mirror._new))
    elif when == "made":
        monkeypatch.setattr(fetching, "Mirror", after(mirror.Mirror))
    elif when == "used":
        monkeypatch.setattr(fetching, "use", after(mirror_memory.use))
    else:
        monkeypatch.setattr(mirror.Mirror, "lend", after(mirror.Mirror.lend))
    last.check(np.asarray(x))


def test_a_finaliser_that_asks_for_another(copies):
    x, wanted = made()
    y, others = made()
    y += np.float32(1)
    wrap.device_of(y)
    found = []

    def then():
        copies.then = lambda: None
        in_a_cycle(lambda: found.append(np.asarray(y)))
        gc.collect()

    copies.then = then
    assert np.array_equal(np.asarray(x), wanted) and np.array_equal(found[0], others + 1)
    assert not np.shares_memory(np.asarray(x), found[0])


def test_the_lock_is_held_until_it_is_there(copies):
    x, wanted = made()
    seen = []

    def other():
        seen.append(x._self_storage.lock.acquire(timeout=0.05))

    def then():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    copies.then = then
    assert np.array_equal(np.asarray(x), wanted) and seen == [False]


def test_many_at_once(copies):
    made_before = [made() for _ in range(4)]
    found = [None] * 8

    def ask_for(i):
        found[i] = np.asarray(made_before[i % 4][0])

    threads = [threading.Thread(target=ask_for, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, alias in enumerate(found):
        assert np.array_equal(alias, made_before[i % 4][1])
        assert np.shares_memory(alias, found[(i + 4) % 8])


def test_nothing_is_kept(copies):
    """Neither of the array, nor of what begins and waits."""
    x, _ = made()
    alias = np.asarray(x)
    seen = [weakref.ref(x._self_storage), weakref.ref(x._self_storage.mirror)]
    del x, alias
    gc.collect()
    assert [ref() for ref in seen] == [None, None]
    mapping = mirror_pool.pool.returned[-1]

    def work():
        for _ in range(20):
            np.asarray(made("u1", (NBYTES,))[0])

    work()
    before = sys.getrefcount(mapping)
    work()
    assert sys.getrefcount(mapping) <= before
    growth(lambda: np.asarray(made("u1", (NBYTES,))[0]), [mapping, lazyarray.device()], 1)
