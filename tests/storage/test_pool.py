"""Large host memory: what nobody holds serves again, up to a limit, and goes back when it lies idle."""
from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest

import lazyarray
from lazyarray import devices
from lazyarray.storage.mirror import pinned_pool
from lazyarray.storage.mirror.pages import HUGE_FROM, mapped

MB = 1 << 20
SIZE = 2 * HUGE_FROM


@pytest.fixture
def pool(monkeypatch):
    """A pool of its own, whose clock and whose look at the machine's memory the test holds."""
    fresh = pinned_pool.Pool()
    monkeypatch.setattr(pinned_pool, "pool", fresh)
    monkeypatch.setattr("lazyarray.storage.mirror.pages.pool", fresh)
    monkeypatch.setattr(fresh, "_watch", lambda: None)
    monkeypatch.setattr(pinned_pool, "_memory", lambda: (64 << 30, 32 << 30))
    monkeypatch.setattr(pinned_pool, "_total", lambda: 64 << 30)
    regions = []
    device = devices.current()
    make = device.region

    class Watched:
        def __init__(self, address, size):
            self.region, self.size, self.released = make(address, size), size, False
            regions.append(self)

        def release(self):
            assert not self.released
            self.released = True
            self.region.release()

    monkeypatch.setattr(device, "region", Watched)
    fresh.regions = regions
    yield fresh
    gc.collect()
    fresh.look_after(idle=-1)
    assert all(region.released for region in regions), "memory went away while the device thought it locked"


def test_what_nobody_holds_serves_the_next_of_its_size(pool):
    array, mapping = mapped(SIZE)
    assert mapping.region.size == SIZE
    del array
    again, same = mapped(SIZE - 100)
    assert same is mapping and len(pool.regions) == 1
    assert pool.kept_bytes == 0


def test_what_foreign_code_holds_is_never_used_again(pool):
    array, mapping = mapped(SIZE)
    held = memoryview(array.view(np.float32)[5:9])
    del array
    gc.collect()
    other, fresh = mapped(SIZE)
    assert fresh is not mapping
    del held
    gc.collect()
    third, found = mapped(SIZE)
    assert found is mapping


def test_a_much_larger_one_is_not_spent_on_a_small_one(pool):
    array, mapping = mapped(16 * SIZE)
    del array
    held, other = mapped(SIZE)
    assert other is not mapping
    assert pool.kept_bytes == 16 * SIZE


def test_the_limit_holds_over_used_and_kept_memory(pool):
    with lazyarray.options(pool_bytes=3 * SIZE):
        arrays = [mapped(SIZE) for _ in range(5)]
        assert [mapping.region is not None for _, mapping in arrays] == [True] * 3 + [False] * 2
        assert pool.locked_bytes == 3 * SIZE
        del arrays
        assert pool.kept_bytes == 3 * SIZE, "what is not locked goes back at once"
        held = mapped(2 * SIZE)     # fits none of those that are kept, which make room for it
        assert held[1].region is not None and pool.locked_bytes <= 3 * SIZE
        del held


def test_nothing_is_kept_with_a_limit_of_nothing(pool):
    with lazyarray.options(pool_bytes=0):
        array, mapping = mapped(SIZE)
        assert mapping.region is None
        del array
    assert pool.kept_bytes == 0 and pool.count == 0


def test_a_quarter_of_the_machine_is_the_default_limit(pool):
    assert pinned_pool.limit() == 16 << 30
    with pytest.raises(ValueError):
        lazyarray.options(pool_bytes=-1)
    with pytest.raises(TypeError):
        lazyarray.options(pool_bytes=1e9)


def test_idle_memory_goes_back(pool, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(pinned_pool.time, "monotonic", lambda: now)
    first, second = mapped(SIZE)[1], None
    pool.look_after()
    assert pool.kept_bytes == SIZE
    now += pinned_pool.IDLE_SECONDS / 2
    array, second = mapped(2 * SIZE)
    del array
    pool.look_after()
    now += pinned_pool.IDLE_SECONDS / 2
    pool.look_after()
    assert pool.kept_bytes == 2 * SIZE and first.region is None and second.region is not None
    now += pinned_pool.IDLE_SECONDS
    pool.look_after()
    assert pool.kept_bytes == 0 and pool.locked_bytes == 0 and pool.count == 0


def test_a_machine_that_runs_short_gets_it_all_back(pool, monkeypatch):
    array, _ = mapped(SIZE)
    held, _ = mapped(SIZE)
    del array
    monkeypatch.setattr(pinned_pool, "_memory", lambda: (64 << 30, 1 << 30))
    pool.look_after()
    assert pool.kept_bytes == 0 and pool.locked_bytes == SIZE, "what is held stays"
    del held


def test_a_program_that_makes_and_drops_arrays_needs_one_mirror(pool):
    for i in range(5):
        x = lazyarray.asarray(np.full(SIZE // 8, float(i))) * 2
        assert np.asarray(x)[-1] == 2 * i
        del x
    assert len(pool.regions) == 1


def test_values_do_not_shine_through(pool):
    x = lazyarray.asarray(np.arange(SIZE // 8)) + 1
    first = np.asarray(x)
    del x
    y = lazyarray.asarray(np.zeros(SIZE // 8)) - 1
    second = np.asarray(y)
    assert first[5] == 6 and (second == -1).all()


def test_the_watcher_ends_with_the_last_mapping(monkeypatch):
    monkeypatch.setattr(pinned_pool, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(pinned_pool, "IDLE_SECONDS", 0.0)
    fresh = pinned_pool.Pool()
    monkeypatch.setattr("lazyarray.storage.mirror.pages.pool", fresh)
    monkeypatch.setattr(pinned_pool.Pool.look_after, "__defaults__", (0.0,))
    array, _ = mapped(SIZE)
    watcher = fresh._watcher
    assert watcher.daemon and watcher.is_alive()
    del array
    watcher.join(10)
    assert not watcher.is_alive() and fresh._watcher is None and fresh.count == 0


@pytest.mark.skipif(not hasattr(os, "fork") or lazyarray.device().name == "cuda", reason="forks a used device")
def test_a_forked_child_starts_with_nothing(pool):
    array, mapping = mapped(SIZE)
    array[:] = 7
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        verdict = b"n"
        try:
            pinned_pool.Pool.after_fork(pool)
            if pool.count == 0 and (array == 7).all() and mapped(SIZE)[1] is not mapping:
                verdict = b"y"
        finally:
            os.write(writing, verdict)
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 1) == b"y"


@pytest.mark.parametrize("kept", [False, True])
def test_an_interrupt_loses_no_memory_that_is_locked(pool, monkeypatch, kept):
    """What stays locked after it is unmapped is what copies to later memory at those addresses go to."""
    if kept:
        mapped(SIZE)

    class Interrupted:
        def __init__(self, *args):
            raise KeyboardInterrupt

    with monkeypatch.context() as during, pytest.raises(KeyboardInterrupt):
        during.setattr("lazyarray.storage.mirror.pages._Use", Interrupted)
        mapped(SIZE)
    gc.collect()
    [region] = pool.regions
    assert not region.released and pool.kept_bytes == SIZE
    array, mapping = mapped(SIZE)
    assert mapping.region is region and pool.kept_bytes == 0
    array[:] = 7


@pytest.mark.parametrize("within", ["take", "adopt", "look_after"])
def test_a_finaliser_within_gets_ordinary_memory(pool, monkeypatch, within):
    """The collector runs it in the thread that has the lock, which it must neither wait for nor undo."""
    drain, drains, found, done = pool._drain, [], [], []

    def drained():
        drain()
        drains.append(None)
        if len(drains) == (2 if within == "adopt" else 1):      # `mapped` looks for memory first
            pool.look_after(idle=-1)
            found.append(mapped(SIZE))
            assert pool.kept_bytes == 0

    def work():
        if within == "look_after":
            pool.look_after(idle=-1)
        done.append(mapped(SIZE))

    monkeypatch.setattr(pool, "_drain", drained)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive() and len(found) == len(done) == 1
    (array, mapping), (other, ordinary) = done.pop(), found.pop()
    assert mapping.region is not None and ordinary.region is None and ordinary is not mapping
    assert pool.count == 2 and pool.locked_bytes == SIZE
    array[:], other[:] = 1, 2
    assert (array == 1).all()
    del other, ordinary
    gc.collect()
    drains.clear()
    drains += [None] * 9
    assert pool.kept_bytes == 0 and pool.count == 1 and not pool._changing
