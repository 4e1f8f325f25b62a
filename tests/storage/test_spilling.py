"""Arrays that do not fit on the device move to the host and come back, and no value changes."""
from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from lazyarray import _native
from lazyarray.devices import base
from lazyarray.devices.simulated.hardware import OutOfMemoryError, hardware

device = lazyarray.device()
xp = device.xp

ROOM = 16 << 20
PART = ROOM // 8        # bytes of one array: eight fill the device


@pytest.fixture
def real_cupy():
    """Runs a program for which CuPy has to be installed, in a process of its own."""
    pytest.importorskip("cupy_backends")

    def run(program):
        root = str(Path(lazyarray.__file__).parents[1])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False,
                              env=os.environ | {"PYTHONPATH": path})
        assert (done.returncode, done.stderr) == (0, "")

    return run


@pytest.fixture(autouse=True)
def small_device(request):
    if "real_cupy" in request.fixturenames:
        yield
        return
    if device.name != "simulated":
        pytest.skip("these are the simulated device's limits")
    gc.collect()
    with device.limited(ROOM):
        yield


def made(number, nbytes=PART):
    """A lazy array of doubles, all different, and NumPy's twin."""
    values = np.arange(nbytes // 8, dtype=float) + number * 1e6
    return lazyarray.asarray(values), values


def on_device(x):
    return lazyarray.where(x).side != "host"


def test_four_times_the_memory():
    pairs = [made(i) for i in range(32)]
    for _ in range(3):
        for i, (x, values) in enumerate(pairs):
            x += 1
            values += 1
            x[::3] = x[1] * 2
            values[::3] = values[1] * 2
            pairs[i] = x + pairs[i - 1][0], values + pairs[i - 1][1]
    for x, values in pairs:
        assert np.array_equal(lazyarray.asnumpy(x), values)


def test_recorded_results_of_four_times_the_memory():
    nbytes = 2 * PART
    pairs = [made(i, nbytes) for i in range(16)]
    results = [np.sqrt(x * 2 + 1) for x, _ in pairs]
    for y, (_, values) in zip(results, pairs):
        assert np.array_equal(lazyarray.asnumpy(y), np.sqrt(values * 2 + 1))


@pytest.mark.together
def test_the_longest_unused_moves_first():
    arrays = [made(i)[0] for i in range(7)]
    for x in arrays[3:4] + arrays[:3] + arrays[4:]:
        lazyarray.block_until_ready(x + 1)
    del x
    more = made(8)[0], made(9)[0]
    assert [on_device(x) for x in arrays] == [True] * 3 + [False] + [True] * 3
    assert all(map(on_device, more))


@pytest.mark.together
def test_each_move_is_an_event_and_counts():
    before = lazyarray.memory_info()
    with lazyarray.trace() as t:
        arrays = [made(i)[0] for i in range(9)]
        away = [x for x in arrays if not on_device(x)]
        assert [(e.kind, e.nbytes) for e in t.spills] == [("spill", PART)] * len(away) and len(away) == 1
        device.wait_for_stream()
        lazyarray.asdevice(away[0])
    assert [(e.kind, e.nbytes) for e in t.spills] == [("spill", PART)] * 3    # away, another one away, and back
    after = lazyarray.memory_info()
    assert (after.spills - before.spills, after.spilled - before.spilled) == (2, 2 * PART)
    assert "moved to the host" in str(after) and "spills" in t.summary()
    assert len(t.materialisations) == 0


@pytest.mark.together
def test_a_move_is_free_where_the_mirror_is_current():
    x, values = made(0)
    host = lazyarray.asnumpy(x)
    with lazyarray.trace() as t:
        others = [made(i)[0] for i in range(1, 9)]
    assert [e.nbytes for e in t.spills] == [0]
    assert np.array_equal(host, values) and np.array_equal(lazyarray.asnumpy(x), values) and others


@pytest.mark.together
def test_an_alias_stays_live():
    x, values = made(0)
    alias = np.asarray(x)
    others = [made(i)[0] for i in range(1, 9)]
    assert not on_device(x)
    alias[3] = values[3] = -1
    assert np.array_equal(lazyarray.asnumpy(x * 2), values * 2)
    x[4] = values[4] = -2
    assert alias[4] == -2 and np.array_equal(alias, values) and others


@pytest.mark.together
def test_views_share_what_comes_back():
    x, values = made(0)
    view, every = x[5:], x[::2]
    lazyarray.asdevice(every)
    gc.collect()
    others = [made(i)[0] for i in range(1, 9)]
    assert not on_device(x)
    view += 1
    values[5:] += 1
    assert np.array_equal(lazyarray.asnumpy(every), values[::2]) and np.array_equal(lazyarray.asnumpy(x), values)
    assert others and x.shape == values.shape and every.strides == values[::2].strides


@pytest.mark.together
def test_what_others_hold_stays():
    x, _ = made(0)
    held = lazyarray.asdevice(x)
    y, _ = made(1)
    theirs = lazyarray.device().xp.asarray(y)[10:]
    others = [made(i)[0] for i in range(2, 12)]
    assert on_device(x) and on_device(y) and others
    held[0] = 7
    theirs[0] = 8
    assert (x[0], y[10]) == (7, 8)


@pytest.mark.parametrize("nbytes, many", [(880_000, 600), (160_000, 3300), (40_000, 13_000)])
def test_recorded_results_of_small_inputs(nbytes, many):
    """What each of them keeps alive is little, and four times the device's memory together."""
    with device.limited(8 * ROOM):
        results = [lazyarray.asarray(np.full(nbytes // 8, float(i))) + 1 for i in range(many)]
        assert [float(x[5]) for x in results[::7]] == [i + 1.0 for i in range(0, many, 7)]
        for i, x in enumerate(results[:50]):
            x *= 2
            assert x.sum() == (i + 1) * 2 * (nbytes // 8)
        del results, x


def test_rows_of_small_inputs():
    """A row is less than the array that it keeps alive."""
    with device.limited(8 * ROOM):
        results = [lazyarray.asarray(np.full((100, 1000), float(i)))[3] + 1 for i in range(600)]
        assert all((np.asarray(x) == i + 1).all() for i, x in enumerate(results))
        del results


def test_what_was_prefetched_moves():
    results = []
    for i in range(32):
        x = made(i)[0] * 2
        lazyarray.prefetch(x)
        results.append(x)
    assert all(np.array_equal(lazyarray.asnumpy(x), made(i)[1] * 2) for i, x in enumerate(results))


def test_a_scalar_does_not_keep_the_array_that_it_was_an_element_of():
    scalars = []
    for i in range(32):
        x, values = made(i)
        x += 1
        scalars.append((x[5], values[5] + 1))
        del x
    assert all(found == wanted for found, wanted in scalars)


@pytest.mark.together
def test_inputs_and_outputs_of_a_call_stay():
    x, values = made(0, 3 * PART)
    y, more = made(1, 3 * PART)
    for _ in range(3):      # two inputs and a result take more than the device has
        with pytest.raises(OutOfMemoryError) as caught:
            lazyarray.asdevice(x + y)
        del _
    note = "".join(caught.value.__notes__)
    assert "6.0 MiB were requested on a device of 16.0 MiB, of which 4.0 MiB are free." in note
    assert "hold 12.0 MiB" in note
    del caught
    gc.collect()
    assert np.array_equal(lazyarray.asnumpy(x), values) and np.array_equal(lazyarray.asnumpy(y), more)
    del y
    x += 1
    assert np.array_equal(lazyarray.asnumpy(x), values + 1)


def test_more_than_there_is_moves_nothing():
    x, values = made(0)
    with lazyarray.trace() as t, pytest.raises(MemoryError):
        xp.zeros(ROOM)
    assert not t.spills and on_device(x) and np.array_equal(lazyarray.asnumpy(x), values)


@pytest.mark.together
def test_no_transfers_forbids_a_move():
    arrays = [made(i) for i in range(8)]
    with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError):
        xp.zeros(PART // 8)
    assert all(np.array_equal(lazyarray.asnumpy(x), values) for x, values in arrays)


@pytest.mark.together
def test_an_address_that_is_used_again_is_not_taken_for_the_old_array():
    x, values = made(0)
    lazyarray.asdevice(x)       # it is known by its addresses now
    gc.collect()
    others = [made(i)[0] for i in range(1, 9)]
    assert not on_device(x)
    del others
    for number in range(20):
        y = lazyarray.asarray(xp.full(PART // 8, number, float))
        y += 1
        assert np.array_equal(lazyarray.asnumpy(x), values)


def test_pickles_and_copies():
    arrays = [made(i) for i in range(20)]
    for x, values in arrays:
        assert np.array_equal(pickle.loads(pickle.dumps(x)), values)
        assert np.array_equal(lazyarray.asnumpy(x.copy()), values)


def test_threads():
    errors = []

    def use(number):
        try:
            pairs = [made(number * 100 + i, PART // 2) for i in range(16)]
            for _ in range(5):
                for x, values in pairs:
                    x += 1
                    values += 1
            for x, values in pairs:
                np.testing.assert_array_equal(lazyarray.asnumpy(x * 2), values * 2)
        except (MemoryError, AssertionError, RuntimeError, AttributeError, TypeError) as error:
            errors.append(error)

    threads = [threading.Thread(target=use, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors and not any(thread.is_alive() for thread in threads)


@pytest.mark.together
def test_only_the_device_that_is_full():
    with device.with_count(2):
        with device.on(1):
            theirs = [made(i) for i in range(8)]
        with device.on(0):
            ours = [made(i) for i in range(12)]
        assert all(on_device(x) for x, _ in theirs)
        with device.on(1):
            more = [made(i) for i in range(12)]
        away = next(x for x, _ in theirs if not on_device(x))
        with device.on(0):
            assert device.device_of(lazyarray.asdevice(away)) == 1
        for x, values in theirs + ours + more:
            with device.on(1):
                assert np.array_equal(lazyarray.asnumpy(x), values)


def test_delayed_streams():
    with device.delayed():
        pairs = [made(i) for i in range(8)]
        with device.new_stream():
            results = [(x * 2, values * 2) for x, values in pairs]
            for x, _ in results:
                lazyarray.asdevice(x)
        for x, values in results + pairs:
            assert np.array_equal(lazyarray.asnumpy(x), values)


class TestHost:
    def test_current_mirrors_go_first(self, monkeypatch):
        x, values = made(0)
        lazyarray.asnumpy(x)
        assert x._self_storage.mirror is not None
        y, more = made(1)
        short = [True]
        plain = np.empty

        def empty(*args, **kwargs):
            if short.pop() if short else False:
                raise MemoryError("no more")
            return plain(*args, **kwargs)

        from lazyarray.storage.mirror import mirror

        monkeypatch.setattr(mirror, "memory_to_fill", lambda nbytes: None)
        monkeypatch.setattr(mirror.np, "empty", empty)
        found = lazyarray.asnumpy(y)
        monkeypatch.undo()
        assert np.array_equal(found, more)
        assert x._self_storage.mirror is None and np.array_equal(lazyarray.asnumpy(x), values)

    def test_when_nothing_helps_the_error_says_so(self, monkeypatch):
        y, more = made(1)
        from lazyarray.storage.mirror import mirror

        def empty(*args, **kwargs):
            raise MemoryError("no more")

        monkeypatch.setattr(mirror, "memory_to_fill", lambda nbytes: None)
        monkeypatch.setattr(mirror.np, "empty", empty)
        with pytest.raises(MemoryError, match="no more") as caught:
            y._self_storage.read_host(y._self_storage.root_meta(), "a test")
        monkeypatch.undo()
        assert "of host memory were requested" in "".join(caught.value.__notes__)
        assert np.array_equal(lazyarray.asnumpy(y), more)


class TestCuda:
    """The hook in CuPy's allocator, with a stand-in for CuPy."""

    class Full(MemoryError):
        pass

    def watched(self, failures):
        from lazyarray.devices.cuda.device import CudaDevice

        calls = []

        def allocate(nbytes):
            calls.append(nbytes)
            if len(calls) <= failures:
                raise self.Full("full")
            return "memory"

        current = [allocate]
        cuda = types.SimpleNamespace(get_allocator=lambda: current[0], set_allocator=lambda to: current.append(to),
                                     memory=types.SimpleNamespace(OutOfMemoryError=self.Full))
        stand_in = types.SimpleNamespace(xp=types.SimpleNamespace(cuda=cuda, get_default_memory_pool=object))
        stand_in.relieve = types.MethodType(CudaDevice.relieve, stand_in)
        stand_in.allocated = types.MethodType(CudaDevice.allocated, stand_in)
        CudaDevice.watch_allocator(stand_in)
        return current[-1], calls

    def test_it_is_asked_again_while_memory_is_freed(self, monkeypatch):
        answers = [None, None]
        monkeypatch.setattr(base, "relief", [lambda device, nbytes: answers.pop()])
        at_once = _native.launch is not None    # it asks twice before it frees anything
        malloc, calls = self.watched(2 + at_once)
        assert malloc(100) == "memory" and calls == [100] * (3 + at_once) and not answers

    def test_when_nothing_is_freed(self, monkeypatch):
        monkeypatch.setattr(base, "relief", [lambda device, nbytes: f"{nbytes} were requested"])
        malloc, calls = self.watched(3)
        with pytest.raises(self.Full) as caught:
            malloc(100)
        assert caught.value.__notes__ == ["100 were requested"] and calls == [100] * (1 + (_native.launch is not None))

    @pytest.mark.skipif(_native.launch is None, reason="needs the compiled part")
    def test_no_signal_handler_runs_within(self):
        """CuPy's sort, for one, tells what a handler raised there as a lack of memory."""
        malloc, _ = self.watched(0)
        assert isinstance(malloc, types.BuiltinFunctionType) and malloc(100) == malloc(1 << 30) == "memory"
        for bad in ("100", None, 1 << 80):
            with pytest.raises((TypeError, OverflowError)):
                malloc(bad)


class TestAllocatorsOfABlock:
    """``cupy.cuda.using_allocator``, which is for one thread."""

    def test_cupys_for_the_process_is_watched(self, real_cupy):
        real_cupy("""
import types, cupy
from lazyarray.devices.cuda.device import CudaDevice

def full(nbytes):
    raise cuda.memory.OutOfMemoryError(nbytes, nbytes)

cuda, theirs = cupy.cuda, lambda nbytes: None
cuda.set_allocator(full)
device = types.SimpleNamespace(xp=cupy, allocated=lambda allocate, nbytes, full: (allocate, nbytes, full))
with cuda.using_allocator(theirs):
    CudaDevice.watch_allocator(device)
    assert cuda.get_allocator() is theirs
assert cuda.get_allocator()(5) == (full, 5, MemoryError)
""")

    @pytest.mark.skipif(device.name != "cuda", reason="needs a GPU")
    @pytest.mark.parametrize("allocator", ["pool", "rmm"])
    def test_arrays_move_when_an_allocator_has_no_more(self, real_cupy, allocator):
        if allocator == "rmm":
            pytest.importorskip("rmm")
        real_cupy(f"""
import cupy, numpy as np

limit = 256 << 20
if {allocator == "rmm"}:
    import rmm
    rmm.set_logging_level(rmm.level_enum.off)       # it says on stderr that its memory is used up
    from rmm.allocators.cupy import rmm_cupy_allocator
    rmm.mr.set_current_device_resource(rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), limit, limit))
    cupy.cuda.set_allocator(rmm_cupy_allocator)
else:
    cupy.get_default_memory_pool().set_limit(size=limit)
import lazyarray

arrays = [lazyarray.asarray(np.full(4 << 20, float(i))) for i in range(32)]
for x in arrays:
    x += 1
assert [float(x.sum()) for x in arrays] == [(i + 1) * float(4 << 20) for i in range(32)]
assert lazyarray.memory_info().spills >= 24
del arrays, x
""")

    @pytest.mark.skipif(device.name != "cuda", reason="needs a GPU")
    def test_lazy_arrays_are_first_used_in_a_block(self, real_cupy):
        real_cupy("""
import cupy, numpy as np, lazyarray

pool, before = cupy.cuda.MemoryPool(), cupy.cuda.get_allocator()
values = np.arange(100_000.0)
with cupy.cuda.using_allocator(pool.malloc):
    x = lazyarray.asarray(values)
    y = x * 2 + 1
    assert np.array_equal(y, values * 2 + 1) and pool.used_bytes() >= 2 * values.nbytes
assert cupy.cuda.get_allocator() != before and cupy.cuda.get_allocator() != pool.malloc
used = pool.used_bytes()
z = lazyarray.asdevice(x + y)
assert float(z[3]) == 10 and pool.used_bytes() <= used
with cupy.cuda.using_allocator():
    assert float((x + 1).sum()) == (values + 1).sum()
del x, y
assert float(z[1]) == 4
""")


def test_nothing_is_left_of_what_moved():
    arrays = [made(i) for i in range(16)]
    assert hardware.used_bytes(0) <= ROOM
    del arrays
    gc.collect()
    assert hardware.used_bytes(0) < PART
