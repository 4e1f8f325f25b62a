"""Small arrays' first way to the host, on a driver made of memory: a copy happens when somebody waits for it."""
from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from finalisers import USES, Use

import lazyarray
from lazyarray import _native
from lazyarray.devices.base import MOST_FETCHED
from lazyarray.devices.cuda.copies.small_download import Fetches
from lazyarray.devices.cuda.driver import Driver
from lazyarray.devices.simulated.array import MemoryPointer
from lazyarray.errors import DeviceUnavailableError, TransferError
from lazyarray.storage import first_download, handles
from lazyarray.storage.mirror import mirror

if _native.small_copies is None:
    pytest.skip("the part in C was not compiled", allow_module_level=True)

HANDLE = ctypes.c_void_p
needs_buffers = pytest.mark.skipif(sys.version_info < (3, 12), reason="the buffer protocol of classes")


#: What NumPy calls; NumPy itself passes over errors.
view_of = ctypes.pythonapi.PyMemoryView_FromObject
view_of.restype, view_of.argtypes = ctypes.py_object, (ctypes.py_object,)


class Refused(Exception):
    """In place of CuPy's errors."""


def pinned(nbytes):
    """Memory, at its `ptr`, of what NumPy takes for a buffer in every version of Python."""
    memory = (ctypes.c_uint8 * nbytes)(*[0xEE] * min(nbytes, 100))
    memory.ptr = ctypes.addressof(memory)
    return memory


class Late:
    """A driver, and what of `cupy.cuda` a fetch asks for. Memory that a copy under way uses is nobody else's."""

    def __init__(self):
        self.queue, self.issued, self.refuses, self.fails = [], 0, 0, 0
        self.lock = threading.Lock()
        self.rooms, self.in_python, self.during = [], 0, lambda: None
        self._kept = (ctypes.CFUNCTYPE(ctypes.c_int, HANDLE, ctypes.c_uint64, ctypes.c_size_t, HANDLE)(self.copy),
                      ctypes.CFUNCTYPE(ctypes.c_int, HANDLE)(self.wait))
        copy, wait = (ctypes.cast(f, HANDLE).value for f in self._kept)
        self.driver = Driver(1, 1, 1, 1, 1, 1, copy, wait, 1)
        self.stream = SimpleNamespace(ptr=77, synchronize=self.synchronize)
        self.get_current_stream = lambda: self.stream
        self.fetches = Fetches(self, self.driver, self.alloc, lambda code: Refused(code))

    def alloc(self, nbytes):
        self.rooms.append(pinned(nbytes))
        return self.rooms[-1]

    def copy(self, target, source, nbytes, stream):
        if self.refuses:
            return self.refuses
        if (stream or 0) != self.stream.ptr:
            return 400
        with self.lock:
            if any(target == other for other, *_ in self.queue):
                return 999      # this memory is in use
            self.issued += 1
            self.queue.append((target, source, nbytes))
        return 0

    def wait(self, stream):
        self.during()
        self.arrive()
        return self.fails

    def arrive(self):
        with self.lock:
            for target, source, nbytes in self.queue:
                ctypes.memmove(target, source, nbytes)
            self.queue.clear()

    def synchronize(self):
        """CuPy's."""
        self.arrive()

    def array(self, source):
        def copy_to_host_async(address, nbytes, stream):
            assert stream is self.stream
            self.in_python += 1
            self.queue.append((address, source.ctypes.data, nbytes))

        data = SimpleNamespace(ptr=source.ctypes.data, copy_to_host_async=copy_to_host_async)
        return SimpleNamespace(data=data, nbytes=source.nbytes, source=source)


@pytest.fixture
def late():
    late = Late()
    yield late
    assert not late.queue, "something is under way"


def values(nbytes, seed=0):
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)


def fetched(late, source):
    memory = np.zeros_like(source)
    late.fetches.end(late.fetches.begin(late.array(source)), memory.data)
    return memory


# -- copies --------------------------------------------------------------------------------------

class TestCopies:
    @pytest.mark.parametrize("nbytes", [1, 1000, MOST_FETCHED])
    def test_the_bytes_are_there_at_the_end(self, late, nbytes):
        for seed in range(3):
            source = values(nbytes, seed)
            assert np.array_equal(fetched(late, source), source)
        assert len(late.rooms) == 1 and (late.issued, late.in_python) == (3, 0)

    def test_they_are_not_waited_for_before(self, late):
        source, memory = values(100), np.zeros(100, np.uint8)
        copy = late.fetches.begin(late.array(source))
        assert len(late.queue) == 1 and not memory.any()
        late.fetches.end(copy, memory.data)
        assert np.array_equal(memory, source)

    def test_one_within_another(self, late):
        """As a finalizer may, that runs between the two."""
        sources = [values(500, seed) for seed in range(12)]
        memories = [np.zeros(500, np.uint8) for _ in sources]
        for _ in range(2):
            copies = [late.fetches.begin(late.array(source)) for source in sources]
            for copy, memory in zip(reversed(copies), reversed(memories)):
                late.fetches.end(copy, memory.data)
            assert all(map(np.array_equal, memories, sources))

    def test_one_that_nobody_wants_is_waited_for(self, late):
        copy = late.fetches.begin(late.array(values(100)))
        assert late.queue
        del copy
        assert not late.queue
        assert np.array_equal(fetched(late, values(9, 3)), values(9, 3)) and len(late.rooms) == 1

    def test_what_the_driver_refuses_is_done_in_python(self, late):
        late.refuses = 201
        for seed in range(3):
            source = values(300, seed)
            assert np.array_equal(fetched(late, source), source)
        late.refuses = 0
        assert np.array_equal(fetched(late, values(5)), values(5)) and (late.issued, late.in_python) == (1, 3)
        assert len(late.rooms) == 2

    def test_an_error_of_the_wait_is_cupys(self, late):
        def synchronize():
            raise Refused("CuPy's own")

        late.fails, late.stream.synchronize = 700, synchronize
        memory = np.zeros(100, np.uint8)
        copy = late.fetches.begin(late.array(values(100)))
        with pytest.raises(Refused, match="CuPy's own"):
            late.fetches.end(copy, memory.data)
        with pytest.raises(ValueError, match="over"):
            late.fetches.end(copy, memory.data)
        assert not memory.any()
        late.fails = 0      # nobody knows what still comes to that memory
        assert np.array_equal(fetched(late, values(5)), values(5)) and len(late.rooms) == 2

    def test_or_the_drivers(self, late):
        late.fails = 719
        with pytest.raises(Refused, match="719"):
            fetched(late, values(100))

    def test_an_error_is_never_passed_over(self, late):
        late.fetches._failed = None
        fetcher = _native.small_copies.Fetcher(late.driver.fetch, late.driver.finish, late.get_current_stream,
                                               late.alloc, lambda stream, code: None, 100)
        late.fails = 3
        with pytest.raises(RuntimeError, match="error 3 of the driver"):
            fetcher.begin(late.array(values(100))).end(np.zeros(100, np.uint8))

    def test_the_sizes_fit(self, late):
        source = values(100)
        copy = late.fetches.begin(late.array(source))
        for wrong in (np.zeros(99, np.uint8), np.zeros(101, np.uint8)):
            with pytest.raises(ValueError, match="another size"):
                copy.end(wrong.data)
        with pytest.raises(BufferError, match="not writable"):
            copy.end(bytes(100))
        memory = np.zeros(100, np.uint8)
        copy.end(memory.data)
        assert np.array_equal(memory, source)
        fetcher = late.fetches.fetcher
        assert fetcher.begin(late.array(np.zeros(MOST_FETCHED + 1, np.uint8))) is None
        assert fetcher.begin(late.array(np.zeros(0, np.uint8))) is None

    def test_memory_that_ran_out(self, late):
        def alloc(nbytes):
            raise MemoryError("no more")

        late.fetches = Fetches(late, late.driver, alloc, Refused)
        with pytest.raises(MemoryError, match="no more"):
            late.fetches.begin(late.array(values(10)))
        assert late.issued == 0

    def test_the_null_stream(self, late):
        late.stream.ptr = 0
        assert np.array_equal(fetched(late, values(77)), values(77)) and late.issued == 1

    def test_the_default_stream_of_a_thread_is_cupys(self, late):
        late.stream.ptr = 2
        assert np.array_equal(fetched(late, values(77)), values(77)) and (late.issued, late.in_python) == (0, 1)

    def test_in_a_forked_child_it_is_cupys(self, late):
        fetched(late, values(10))
        copy = late.fetches.begin(late.array(values(10)))
        late.queue.clear()
        fetcher = late.fetches.fetcher
        kept = late.fetches.forget()
        assert fetcher in kept and late.fetches.fetcher is None
        assert fetcher.begin(late.array(values(10))) is None
        issued, late.during = late.issued, lambda: pytest.fail("the driver is called")
        del copy
        assert np.array_equal(fetched(late, values(10)), values(10)) and late.issued == issued

    @pytest.mark.parametrize("change", [{"copy": 0}, {"wait": 0}, {"most": 0}])
    def test_what_it_is_made_of(self, late, change):
        given = {"copy": 1, "wait": 1, "stream": None, "alloc": None, "failed": None, "most": 1}
        with pytest.raises(ValueError, match="greater than 0"):
            _native.small_copies.Fetcher(**given | change)
        with pytest.raises(TypeError):
            type(late.fetches.begin(late.array(values(1))))()

    def test_nothing_is_kept(self):
        late = Late()
        fetched(late, values(10))
        copy = late.fetches.begin(late.array(values(10)))
        seen = weakref.ref(late), weakref.ref(late.rooms[0])
        del late, copy
        gc.collect()
        assert [ref() for ref in seen] == [None, None]

    def test_without_the_part_in_c(self, late, monkeypatch):
        monkeypatch.setattr(_native, "small_copies", None)
        late.fetches = Fetches(late, late.driver, late.alloc, Refused)
        for seed in range(2):
            assert np.array_equal(fetched(late, values(10, seed)), values(10, seed))
        assert (late.issued, late.in_python, len(late.rooms)) == (0, 2, 1)


# -- aliases -------------------------------------------------------------------------------------

@pytest.fixture
def device(late, monkeypatch):
    """The simulated device, whose arrays the driver made of memory copies."""
    device = lazyarray.device()
    if device.name != "simulated":
        pytest.skip("the driver knows only memory")
    late.stream = device.stream()
    late.get_current_stream = device.stream
    late.fetches = Fetches(late, late.driver, late.alloc, Refused)
    monkeypatch.setattr(device, "fetch_begin", lambda array: late.fetches.begin(array))
    monkeypatch.setattr(device, "fetch_end", lambda copy, memory: late.fetches.end(copy, memory))
    monkeypatch.setattr(MemoryPointer, "copy_to_host_async", lambda self, address, nbytes, stream: ctypes.memmove(
        address, self.ptr, nbytes), raising=False)      # as CuPy's
    if device.count > 1:
        pytest.skip("one device")
    return device


@pytest.fixture
def refused(device, monkeypatch):
    """Such an error is one of the device's."""
    monkeypatch.setattr(device, "faults", (*device.faults, Refused), raising=False)


def on_device(host):
    x = lazyarray.asarray(host)
    assert x._self_storage.state == "device"
    return x


def untouched(x):
    storage = x._self_storage
    return storage.mirror is None and storage.clean and storage._resident is None and storage.state == "device"


@needs_buffers
class TestAliases:
    @pytest.mark.parametrize("host", [
        np.arange(256, dtype="f4"), np.arange(6).reshape(2, 3), np.array(2.5), np.array([True, False]),
        np.ones((3, 1, 2)),
        np.arange(4) * 1j, np.arange(5, dtype="f2"), np.arange(16383.0), np.arange(3, dtype="u1"),
    ], ids=lambda host: f"{host.dtype}{host.shape}")
    def test_they_are_what_python_makes(self, device, late, monkeypatch, host):
        x, y = on_device(host), on_device(host)
        got = np.asarray(x)
        assert late.issued == 1
        monkeypatch.setattr(first_download, "_first_small", lambda *args: None)
        wanted = np.asarray(y)
        assert late.issued == 1
        assert got.dtype == wanted.dtype and got.shape == wanted.shape and got.strides == wanted.strides
        assert got.flags.writeable and got.tobytes() == wanted.tobytes() == host.tobytes()
        for a in (x, y):
            assert a._self_storage.state == "both" and a._self_storage.nbytes == host.nbytes
            assert a._self_storage.mirror.full and a._self_storage.mirror.lent and not a._self_storage.clean

    def test_all_ask_for_the_same_memory(self, device, late):
        x = on_device(np.arange(9.0))
        found = [np.asarray(x), np.asarray(memoryview(x)), np.asarray(x), np.asarray(x[:])]
        assert late.issued == 1 and len({a.ctypes.data for a in found}) == 1

    def test_what_is_written_comes_to_the_device(self, device, late):
        x = on_device(np.arange(9.0))
        alias = np.asarray(x)
        assert (x + 1).tolist() == list(range(1, 10))
        alias[3] = 50
        assert (x + 1).tolist() == [1, 2, 3, 51, 5, 6, 7, 8, 9] and late.issued == 1
        x[4] = -1
        assert alias.tolist() == [0, 1, 2, 50, -1, 5, 6, 7, 8]
        alias[:] = 4
        del alias
        assert x.sum() == 36

    def test_the_storage_is_clean_again_when_it_is_gone(self, device, late):
        x = on_device(np.arange(9.0))
        alias = np.asarray(x)
        del alias
        handles.device_of(x)
        assert x._self_storage.clean and x._self_storage._resident is None

    def test_an_array_holds_the_memory(self, device, late):
        x = on_device(np.arange(9.0))
        alias = np.asarray(x)
        del x
        gc.collect()
        assert alias.tolist() == list(range(9))

    def test_other_arrays_go_another_way(self, device, late):
        x = on_device(np.arange(60.0).reshape(6, 10))
        for view in (x[1:], x.T, x[:, ::2]):
            assert np.array_equal(np.asarray(view), np.asarray(view.copy())) and view._self_storage is x._self_storage
        large = on_device(np.arange(mirror.PAGES_FROM // 8, dtype="f8"))
        assert np.asarray(large)[-1] == mirror.PAGES_FROM // 8 - 1
        assert np.asarray(on_device(np.zeros((0, 3)))).shape == (0, 3)
        held = on_device(np.arange(3.0))
        lent = held.__wrapped__
        assert np.asarray(held).tolist() == [0, 1, 2]
        fixed = on_device(np.arange(3.0))
        fixed.flags.writeable = False
        assert not np.asarray(fixed).flags.writeable
        assert late.issued == 3, "of the three copies of views"
        del lent

    def test_a_class_derived_from_it(self, device, late):
        class Mine(lazyarray.LazyNdarray):
            asked = 0

            def __buffer__(self, flags):
                Mine.asked += 1
                return super().__buffer__(flags)

        x = Mine(handles.device_of(on_device(np.arange(4.0))))
        assert np.asarray(x).tolist() == [0, 1, 2, 3] and Mine.asked == 1

    def test_who_wants_less_than_all(self, device, late):
        x = on_device(np.arange(4, dtype="f4"))
        assert bytes(x) == np.arange(4, dtype="f4").tobytes()
        with pytest.raises((BufferError, TypeError)):
            x.__buffer__("no flags")

    def test_the_interpreters_own_call(self, device, late):
        x = on_device(np.arange(4.0))
        with x.__buffer__(0x11c) as view:
            assert view.tolist() == [0, 1, 2, 3]
        assert np.asarray(x).tolist() == [0, 1, 2, 3]

    def test_work_that_waits_is_computed(self, device, late):
        x = on_device(np.arange(4.0)) + 1
        assert np.asarray(x).tolist() == [1, 2, 3, 4]

    def test_on_another_stream(self, device, late):
        x = on_device(np.arange(4.0))
        with device.new_stream():
            assert np.asarray(x).tolist() == [0, 1, 2, 3] and late.issued == 0


@needs_buffers
class TestAskers:
    def test_who_is_told_from_others_still_is(self, device, late):
        x = on_device(np.arange(5.0))
        for _ in range(3):
            row = np.lib.stride_tricks.as_strided(x, (3,), (8,))
            assert row.tolist() == [0, 1, 2] and late.issued == 0

    def test_a_callee_that_is_a_local_variable(self, device, late):
        def ask(callee, x):
            return callee(x)

        for turn in range(3):
            assert ask(np.asarray, on_device(np.arange(3.0))).tolist() == [0, 1, 2]
            assert late.issued == turn + 1
        assert ask(bytes, on_device(np.arange(3.0))) == np.arange(3.0).tobytes()

@needs_buffers
class TestSettings:
    def test_who_forbids_it_is_heard_before(self, device, late):
        x = on_device(np.arange(3.0))
        with lazyarray.no_transfers(), pytest.raises(TransferError, match="device-to-host copy"):
            np.asarray(x)
        assert late.issued == 0 and untouched(x)
        assert np.asarray(x).tolist() == [0, 1, 2] and late.issued == 1

    @pytest.mark.parametrize("process", [False, True])
    def test_who_listens_hears_it(self, device, late, process):
        x = on_device(np.arange(3.0))
        with lazyarray.trace(process=process) as heard:
            np.asarray(x)
        [event] = heard.materialisations
        assert (event.nbytes, event.shape, event.reason, event.code) == (24, (3,), "C buffer access", "np.asarray(x)")
        assert late.issued == 1

    def test_writes_that_are_not_tracked(self, device, late):
        x = on_device(np.arange(3.0))
        with lazyarray.options(write_tracking="none"):
            assert np.asarray(x).tolist() == [0, 1, 2]
        assert late.issued == 0
        with lazyarray.options(bulk_reads=3):
            np.asarray(on_device(np.arange(3.0)))
        assert late.issued == 1


@needs_buffers
class TestFailures:
    def test_a_copy_that_the_driver_refuses(self, device, late):
        late.refuses = 201
        x = on_device(np.arange(3.0))
        assert np.asarray(x).tolist() == [0, 1, 2]
        late.refuses = 0
        assert np.asarray(on_device(np.arange(4.0))).tolist() == [0, 1, 2, 3] and late.issued == 1

    def test_a_wait_that_fails(self, device, late, refused):
        x = on_device(np.arange(3.0))
        late.fails = 700
        with pytest.raises(Refused, match="700"):
            view_of(x)
        assert untouched(x)
        late.fails = 0
        alias = np.asarray(x)
        assert alias.tolist() == [0, 1, 2]
        alias[0] = 8
        assert (x + 0).tolist() == [8, 1, 2]

    @pytest.mark.parametrize("n", [300, 1 << 22])
    def test_a_process_that_can_not_reach_the_device(self, device, late, refused, monkeypatch, n):
        """As a forked child, to which CUDA does not even tell the current stream."""
        x = on_device(np.arange(float(n)))

        def stream():
            raise Refused("initialization error")

        monkeypatch.setattr(device, "writes_unseen", True, raising=False)
        with monkeypatch.context() as child, pytest.raises(DeviceUnavailableError, match="forked"):
            child.setattr(device, "stream", stream)
            child.setattr(device, "usable", lambda: "this process was forked")
            view_of(x)
        assert untouched(x)
        assert np.asarray(x)[-1] == n - 1

    @pytest.mark.parametrize("where", ["lend", "validate"])
    @pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
    def test_what_comes_in_between_is_undone(self, device, late, monkeypatch, error, where):
        x = on_device(np.arange(3.0))

        def interrupted(*args):
            assert late.queue or where == "validate"
            raise error("now")

        with monkeypatch.context() as patch, pytest.raises(error, match="now"):
            patch.setattr(mirror.Mirror, where, interrupted)
            view_of(x)
        assert not late.queue and untouched(x)
        assert x._self_storage.lock.acquire(timeout=1)
        x._self_storage.lock.release()
        assert np.asarray(x).tolist() == [0, 1, 2]

    @pytest.mark.parametrize("error", [MemoryError("now"), KeyboardInterrupt("now")])
    def test_memory_for_the_copy(self, device, late, monkeypatch, error):
        def alloc(nbytes):
            raise error

        usual, late.fetches = late.fetches, Fetches(late, late.driver, alloc, Refused)
        x = on_device(np.arange(3.0))
        with pytest.raises(type(error)):
            view_of(x)
        assert untouched(x)
        late.fetches = usual
        assert np.asarray(x).tolist() == [0, 1, 2]

    def test_a_finalizer_that_fetches_too(self, device, late, monkeypatch):
        x, y, found = on_device(np.arange(3.0)), on_device(np.arange(4.0)), []
        usual = mirror.Mirror.lend

        def lend(*args):
            if not found:
                found.append(None)
                found.append(np.asarray(y))
            return usual(*args)

        monkeypatch.setattr(mirror.Mirror, "lend", lend)
        assert np.asarray(x).tolist() == [0, 1, 2] and found[1].tolist() == [0, 1, 2, 3] and len(late.rooms) == 2

    @pytest.mark.parametrize("what", USES)
    @pytest.mark.parametrize("when", ["lent", "alloc", "waited for"])
    def test_a_finalizer_that_uses_the_same_array(self, device, late, monkeypatch, what, when):
        """What it gets stays right, and so does what is asked for around it."""
        x = on_device(np.arange(300.0))
        last = Use(x, np.arange(300.0), what)
        usual, waits = mirror.Mirror.lend, device.fetch_end

        def lend(*args):
            if when == "lent":
                last()
            return usual(*args)

        def fetch_end(copy, memory):
            waits(copy, memory)
            if when == "waited for":
                last()

        if when == "alloc":
            last_alloc = late.alloc
            late.fetches = Fetches(late, late.driver, lambda n: (last_alloc(n), last())[0], Refused)
        monkeypatch.setattr(device, "fetch_end", fetch_end)
        monkeypatch.setattr(mirror.Mirror, "lend", lend)
        last.check(np.asarray(x))

    def test_nothing_is_kept(self, device, late):
        """Neither by what succeeds nor by what fails."""
        def turn():
            x = on_device(np.arange(3.0))
            seen.append(weakref.ref(x._self_storage))
            late.fails = 700 * (len(seen) % 2)
            try:
                view_of(x)
            except Refused:
                late.rooms.clear()
            late.refuses = 5
            np.asarray(on_device(np.arange(3.0)))
            late.refuses = late.fails = 0

        seen = []
        counts = []
        for _ in range(3):
            for _ in range(40):
                turn()
            gc.collect()
            counts.append((sys.getrefcount(None) if sys.version_info < (3, 12) else 0, sys.getrefcount(late.stream),
                           sys.getrefcount(late.fetches.fetcher)))
        assert counts[1] == counts[2] and not any(ref() for ref in seen)


@needs_buffers
class TestThreads:
    def test_the_lock_is_held_until_the_bytes_are_there(self, device, late):
        x, entered, go, found = on_device(np.arange(3.0)), threading.Event(), threading.Event(), []

        def during():
            entered.set()
            assert go.wait(10)

        late.during = during
        one = threading.Thread(target=lambda: found.append(np.asarray(x)))
        one.start()
        assert entered.wait(10) and not x._self_storage.lock.acquire(blocking=False)
        late.during = lambda: None
        other = threading.Thread(target=lambda: found.append(np.asarray(x)))
        other.start()
        other.join(0.1)
        assert not found
        go.set()
        one.join(10)
        other.join(10)
        assert [a.tolist() for a in found] == [[0, 1, 2]] * 2 and late.issued == 1
        assert found[0].ctypes.data == found[1].ctypes.data

    def test_who_holds_it_is_waited_for(self, device, late):
        x, found = on_device(np.arange(3.0)), []
        with x._self_storage.lock:
            asks = threading.Thread(target=lambda: found.append(np.asarray(x)))
            asks.start()
            asks.join(0.1)
            assert asks.is_alive() and not late.issued
            mine = np.asarray(x)
        asks.join(10)
        mine[0] = 9
        assert found[0].tolist() == [9, 1, 2] and late.issued == 1

    def test_who_writes_on_another_stream_meanwhile(self, device, late, monkeypatch):
        x, found, begun = on_device(np.arange(3.0)), [], []
        monkeypatch.setattr(device, "fetch_begin", begun.append, raising=False)
        handles.device_of(x)
        with x._self_storage.lock:
            asks = threading.Thread(target=lambda: found.append(np.asarray(x)))
            asks.start()
            asks.join(0.1)
            with device.new_stream():
                x[1] = 7
        asks.join(10)
        assert found[0].tolist() == [0, 7, 2] and (late.issued, begun) == (0, [])

    def test_many_at_once(self, device, late):
        arrays = [on_device(np.full(50, i)) for i in range(60)]
        found = [[None] * len(arrays) for _ in range(4)]

        def ask(mine):
            for i, x in enumerate(arrays):
                mine[i] = np.asarray(x)

        threads = [threading.Thread(target=ask, args=(mine,)) for mine in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for i, aliases in enumerate(zip(*found)):
            assert len({a.ctypes.data for a in aliases}) == 1 and (aliases[0] == i).all()
        assert late.issued == len(arrays)
