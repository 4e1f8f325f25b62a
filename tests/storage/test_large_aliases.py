"""The first alias of a large array, where the device fills memory unseen: as on CUDA, whose copies mark no pages."""
from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
from finalisers import USES, Use, in_a_cycle
from large_copies import MB, NBYTES, ask, made, view_of, watched
from recorded import growth

import lazyarray
from lazyarray.storage import first_download, handles
from lazyarray.storage.mirror import pinned_pool
from lazyarray.storage.mirror.dirty_tracking import why_no_pages
from lazyarray.storage.mirror.mirror import Mirror

pytestmark = pytest.mark.skipif(why_no_pages() is not None, reason="needs the kernel's write tracking")


@pytest.fixture
def copies(monkeypatch):
    yield from watched(monkeypatch)


def kept():
    """Mappings that nobody uses."""
    gc.collect()
    return len(pinned_pool.pool.returned) + len(pinned_pool.pool._kept)


def is_right(x, wanted):
    """Whether all ways to it show what it has to be; and so after a write on either side."""
    alias = np.asarray(x)
    assert np.array_equal(alias, wanted)
    alias[3] = wanted[3] = 8
    assert np.array_equal(lazyarray.asnumpy(x.copy()), wanted)
    x += x.dtype.type(1)
    wanted += wanted.dtype.type(1)
    handles.device_of(x)
    return np.array_equal(alias, wanted) and np.array_equal(np.asarray(x), wanted)


@pytest.mark.parametrize("dtype", ["f4", "i2", "c16", "u1"])
@pytest.mark.parametrize("look", [np.asarray, lambda x: np.asarray(ask(x)), lambda x: x.__array__()])
def test_it_is_the_array(copies, dtype, look):
    x, wanted = made(dtype, (4, NBYTES // np.dtype(dtype).itemsize // 4))
    alias = look(x)
    assert alias.dtype == wanted.dtype and alias.shape == wanted.shape and alias.flags.carray
    assert np.array_equal(alias, wanted) and copies.begun == copies.waited == 1
    with lazyarray.no_transfers():
        assert np.shares_memory(np.asarray(x), alias)
    alias[1] = 7
    wanted[1] = 7
    assert np.array_equal(lazyarray.asnumpy(x.copy()), wanted)
    x += x.dtype.type(1)
    wanted += wanted.dtype.type(1)
    handles.device_of(x)
    assert np.array_equal(alias, wanted), "it is live"


def test_memory_that_was_written_before(copies):
    for value in range(4):
        x, wanted = made()
        x += np.float32(value)
        alias = np.asarray(x)
        with lazyarray.no_transfers():
            assert float(x[5]) == wanted[5] + value, "no page counts as written"
        alias[::MB] = 3
        assert int((x == 3).sum()) == int((wanted + value == 3).sum()) + 4 - int((wanted[::MB] + value == 3).sum())
        alias[:] = 50
        del alias


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_event(copies, order):
    x, wanted = made(shape=(4, MB), order=order)
    with lazyarray.trace() as told:
        alias = np.asarray(x)
    [event] = told.events
    assert (event.kind, event.nbytes, event.shape, event.dtype) == ("materialise", NBYTES, (4, MB), np.float32)
    assert event.filename == __file__ and event.seconds > 0
    assert np.array_equal(alias, wanted)


VIEWS = {
    "every other column": (True, lambda a: a[:, ::2]), "transposed": (True, lambda a: a.T),
    "backwards": (True, lambda a: a[::-1, ::-1]), "all but the first row": (True, lambda a: a[1:]),
    "broadcast": (True, lambda a: np.broadcast_to(a, (2, *a.shape))), "other dtype": (True, lambda a: a.view(np.int16)),
    "every third column": (False, lambda a: a[:, ::3]), "every other row": (False, lambda a: a[::2]),
    "all but the first column": (False, lambda a: a[:, 1:]), "the upper half": (False, lambda a: a[:2048]),
}


@pytest.mark.one_device("a first copy that is begun early")
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_nearly_all(copies, monkeypatch, name):
    quick, view = VIEWS[name]
    x, wanted = made(shape=(4096, NBYTES // 4 // 4096))
    large, shown = first_download._first_large, view(x)
    called = []
    monkeypatch.setattr(first_download, "_first_large", lambda *args: called.append(None) or large(*args))
    with lazyarray.trace() as told:
        alias = np.asarray(shown)
    assert len(called) == quick and (copies.begun == copies.waited == 1 or not quick)
    [event] = told.events
    assert event.kind == "materialise" and event.shape == alias.shape and event.dtype == alias.dtype
    assert event.nbytes == NBYTES or not quick
    assert np.array_equal(alias, view(wanted)) and alias.strides == view(wanted).strides
    assert alias.flags.writeable == (name != "broadcast")
    with lazyarray.no_transfers():
        again = np.asarray(shown)
        assert np.shares_memory(again, alias) and (not quick or np.array_equal(np.asarray(x), wanted))
    x += np.float32(1)
    wanted += np.float32(1)
    handles.device_of(x)
    assert np.array_equal(alias, view(wanted)), "it is live"
    if name != "broadcast":
        alias[::4] = view(wanted)[::4] = 7
        assert np.array_equal(lazyarray.asnumpy(x.copy()), wanted)


@pytest.mark.one_device("a first copy that is begun early")
def test_a_view_that_may_not_be_written(copies):
    x, wanted = made(shape=(4096, NBYTES // 4 // 4096))
    view = x[:, ::2]
    view.flags.writeable = False
    alias = np.asarray(view)
    assert np.array_equal(alias, wanted[:, ::2]) and not alias.flags.writeable and copies.begun == 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        alias.flags.writeable = True
    x[0, 0] = wanted[0, 0] = -5
    handles.device_of(x)
    assert np.array_equal(alias, wanted[:, ::2])


def test_an_interrupt_while_a_view_is_copied(copies, monkeypatch):
    x, wanted = made(shape=(4096, NBYTES // 4 // 4096))

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as during, pytest.raises(KeyboardInterrupt):
        during.setattr(Mirror, "lend", interrupted)
        ask(x.T)
    assert copies.begun == copies.waited == 1
    x *= np.float32(2)
    assert np.array_equal(np.asarray(x.T), wanted.T * 2)


def test_where_copies_are_forbidden_nothing_begins(copies):
    x, wanted = made()
    with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError):
        np.array(x)
    assert copies.begun == 0
    assert np.array_equal(np.asarray(x), wanted) and copies.begun == 1


def test_after_an_error_it_is_as_before(copies):
    x, wanted = made()
    copies.error = MemoryError("no more")
    with pytest.raises(MemoryError):
        ask(x)
    copies.error = None
    x += np.float32(1)
    assert np.array_equal(np.asarray(x), wanted + 1)


@pytest.mark.one_device("a first copy that is begun early")
@pytest.mark.parametrize("owner, name", [(Mirror, "lend")] + [(first_download, "who_asks")] * (ask is memoryview))
def test_an_interrupt_waits_for_what_has_begun(copies, monkeypatch, owner, name):
    x, wanted = made()

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as during, pytest.raises(KeyboardInterrupt):
        during.setattr(owner, name, interrupted)
        ask(x)
    assert copies.begun == copies.waited == 1
    assert np.array_equal(np.asarray(x), wanted)
    x *= np.float32(2)
    assert np.array_equal(np.asarray(x), wanted * 2)


@pytest.mark.parametrize("what", ["written", "asked for", "written and asked for"])
def test_a_finalizer_while_it_is_copied(copies, what):
    x, wanted = made()
    kept = []

    class Last:
        def __del__(self):
            if "written" in what:
                x.fill(5)
                handles.device_of(x)
            if "asked" in what:
                kept.append(np.asarray(x))

    def then():
        copies.then = lambda: None
        cycle = Last()
        cycle.me = cycle
        del cycle
        gc.collect()

    copies.then = then
    alias = np.asarray(x)
    if "written" in what:
        wanted[:] = 5
    assert np.array_equal(alias, wanted)
    assert all(np.array_equal(other, wanted) for other in kept)
    alias[3] = 8
    wanted[3] = 8
    assert np.array_equal(lazyarray.asnumpy(x.copy()), wanted)
    assert np.array_equal(np.asarray(x), wanted)


def test_beyond_the_limit_of_locked_memory(copies):
    if lazyarray.device().name == "simulated":
        lazyarray.device().region = lambda start, size: None
    with lazyarray.options(pool_bytes=0):
        x, wanted = made()
        alias = np.asarray(x)
    assert np.array_equal(alias, wanted)
    alias[0] = 77
    assert float(x.max()) == wanted[1:].max().clip(77)


def test_for_whom_an_alias_is_not_the_right_thing(copies):
    x, wanted = made()
    rows = np.lib.stride_tricks.as_strided(x, (3, 5), (8, 4))
    assert np.array_equal(rows, np.lib.stride_tricks.as_strided(wanted, (3, 5), (8, 4)))
    assert np.array_equal(np.asarray(x), wanted)


# -- what goes wrong, and who else is there -------------------------------------------------------

def test_each_gets_the_memory_of_the_one_before(copies):
    addresses = set()
    for i in range(5):
        x, wanted = made()
        alias = np.asarray(x)
        assert np.array_equal(alias, wanted)
        alias.fill(i)
        addresses.add(alias.__array_interface__["data"][0])
        del alias
    assert copies.begun == 5 and len(addresses) == 1


def test_an_error_comes_where_it_is_told(copies):
    copies.error = MemoryError("no more")
    x, wanted = made()
    with pytest.raises(MemoryError, match="no more"):
        view_of(x)
    copies.error = None
    assert is_right(x, wanted)


def test_a_wait_that_fails(copies):
    x, wanted = made()
    copies.fails = MemoryError("lost")
    with pytest.raises(MemoryError, match="lost"):
        view_of(x)
    copies.fails = None
    assert is_right(x, wanted)


@pytest.mark.one_device("a first copy that is begun early")
@pytest.mark.parametrize("where", ["who_asks"] * (ask is memoryview) + ["lend"])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_what_comes_in_between_waits(copies, monkeypatch, where, error):
    x, wanted = made()

    def interrupted(*args):
        assert copies.begun == 1 and copies.waited == 0
        raise error("now")

    with monkeypatch.context() as during, pytest.raises(error, match="now"):
        during.setattr(Mirror if where == "lend" else first_download, where, interrupted)
        view_of(x)
    assert copies.waited == 1
    x *= np.float32(2)
    wanted *= np.float32(2)
    assert is_right(x, wanted)
    del x
    assert kept() == pinned_pool.pool.count, "no memory is lost"


@pytest.mark.one_device("a first copy that is begun early")
@pytest.mark.parametrize("what", USES)
@pytest.mark.parametrize("when", ["begun", "made", "lent"])
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
    elif when == "made":
        monkeypatch.setattr(first_download, "Mirror", after(Mirror))
    else:
        monkeypatch.setattr(Mirror, "lend", after(Mirror.lend))
    last.check(np.asarray(x))


def test_a_finaliser_that_asks_for_another(copies):
    x, wanted = made()
    y, others = made()
    y += np.float32(1)
    handles.device_of(y)
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
    mapping = pinned_pool.pool.returned[-1]

    def work():
        for _ in range(20):
            np.asarray(made("u1", (NBYTES,))[0])

    work()
    before = sys.getrefcount(mapping)
    work()
    assert sys.getrefcount(mapping) <= before
    growth(lambda: np.asarray(made("u1", (NBYTES,))[0]), [mapping, lazyarray.device()], 1)
