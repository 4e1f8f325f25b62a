"""Copies of every size arrive whole, whoever owns the host memory; CUDA's are also tried on a CUDA made of memory."""
from __future__ import annotations

import ctypes
import gc
import mmap
import queue
import sys
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.base import MOST_FETCHED
from lazyarray.devices.cuda.copies import crew as crews
from lazyarray.devices.cuda.copies import dirty_upload as pieces
from lazyarray.devices.cuda.copies import pinned as cuda_pinned
from lazyarray.devices.cuda.copies import staged_upload, strided_download
from lazyarray.devices.cuda.copies.copies import BOUNCED, CLEARED, Copies
from lazyarray.devices.cuda.copies.pinned import PIECE, STAGED_FROM
from lazyarray.devices.cuda.copies.pinned_download import download_begin
from lazyarray.devices.cuda.copies.strided_download import download_rows
from lazyarray.storage import handles
from lazyarray.storage.mirror.byte_ranges import runs_of
from lazyarray.storage.mirror.dirty_tracking import why_no_pages

KB, MB = 1 << 10, 1 << 20
SIZES = [1, 100, 4 * KB, BOUNCED, BOUNCED + 1, STAGED_FROM - 1, STAGED_FROM, STAGED_FROM + 12345, PIECE + 7]


#: The threads of an upload share a stream.
one_at_a_time = threading.RLock()
memmove = ctypes.memmove


class Refused(Exception):
    """In place of CUDARuntimeError."""


class Pointer:
    """In place of MemoryPointer: "device" memory at an address."""

    def __init__(self, address):
        self.ptr = address

    def __add__(self, offset):
        return Pointer(self.ptr + offset)

    def copy_to_host_async(self, address, nbytes, stream):
        stream.check(address, nbytes)
        stream.queue.append((address, self.ptr, nbytes))

    def memset_async(self, value, nbytes, stream):
        stream.staged.append(ctypes.create_string_buffer(bytes([value]) * nbytes, nbytes))
        stream.queue.append((self.ptr, ctypes.addressof(stream.staged[-1]), nbytes))
        stream.cleared += nbytes

    def copy_from_host_async(self, address, nbytes, stream):
        if stream.runtime is not None and not stream.check(address, nbytes):
            # From memory that is not locked the driver stages before it returns.
            staged = ctypes.create_string_buffer(ctypes.string_at(address, nbytes), nbytes)
            stream.staged.append(staged)
            address = ctypes.addressof(staged)
        stream.queue.append((self.ptr, address, nbytes))


class Stream:
    """Work is done when it is waited for, so that a missing wait shows."""

    at = weakref.WeakValueDictionary()      # pointer -> stream

    def __init__(self, runtime=None):
        self.queue, self.staged, self.cleared = [], [], 0
        self.runtime = runtime
        self.ptr = id(self)
        self.at[self.ptr] = self

    def check(self, address, nbytes):
        """Whether a copy lies in locked memory; it lies in one piece of it, or in none."""
        locked = False
        for start, size in (self.runtime.locked if self.runtime else {}).items():
            inside = max(0, min(address + nbytes, start + size) - max(address, start))
            assert inside in (0, nbytes), "it begins in locked memory and ends elsewhere"
            locked |= inside == nbytes
        return locked

    def synchronize(self, upto=None):
        with one_at_a_time:
            done, self.queue[:upto] = self.queue[:upto], []
            for target, source, nbytes in done:
                memmove(target, source, nbytes)


class Event:
    def __init__(self, disable_timing):
        assert disable_timing

    def record(self, stream):
        with one_at_a_time:
            self.stream, self.left = stream, stream.queue[:]

    def synchronize(self):
        with one_at_a_time:
            waiting = self.stream.queue
            last = max((i for i, job in enumerate(waiting) if job in self.left), default=-1)
            self.stream.synchronize(last + 1)


class Runtime:
    CUDARuntimeError = Refused
    streamPerThread = 2

    def __init__(self):
        self.locked, self.refuse = {}, False

    def getDevice(self):
        return 3

    def setDevice(self, number):
        assert number == 3

    def hostRegister(self, start, size, flags):
        if self.refuse:
            raise Refused("no more")
        assert start not in self.locked
        self.locked[start] = size

    def memcpyAsync(self, target, source, nbytes, kind, stream):
        stream = Stream.at[stream]
        assert stream.runtime is None or stream.check(target if kind == 2 else source, nbytes) or kind == 2
        stream.queue.append((target, source, nbytes))

    def memcpy2DAsync(self, target, pitch, source, source_pitch, width, height, kind, stream):
        stream = Stream.at[stream]
        assert kind == 2 and width <= pitch == source_pitch
        assert stream.check(target, pitch * height), "a driver may look at the gap after the last row too"
        for row in range(height):
            stream.queue.append((target + row * pitch, source + row * pitch, width))

    def hostUnregister(self, start):
        del self.locked[start]

    def pointerGetAttributes(self, address):
        return SimpleNamespace(type=int(any(s <= address < s + n for s, n in self.locked.items())))


class Pinned:
    def __init__(self, runtime, nbytes):
        self.memory = np.zeros(nbytes, np.uint8)
        self.ptr = self.memory.ctypes.data
        runtime.locked[self.ptr] = nbytes

    def __buffer__(self, flags):
        return memoryview(self.memory)


@pytest.fixture
def cuda():
    runtime = Runtime()
    fake = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, Event=Event, alloc_pinned_memory=None,
                                                get_current_stream=Stream))
    copies = Copies(fake)
    memories = []

    def alloc(nbytes):
        memories.append(Pinned(runtime, nbytes))
        return memories[-1].memory.view(_WithPointer)

    class _WithPointer(np.ndarray):
        @property
        def ptr(self):
            return self.ctypes.data

    fake.cuda.alloc_pinned_memory = alloc
    return SimpleNamespace(copies=copies, runtime=runtime, memories=memories)


def fresh(nbytes):
    memory = mmap.mmap(-1, -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE)
    return np.frombuffer(memory, np.uint8, nbytes)


def values(nbytes, seed=0):
    return np.random.default_rng(seed).integers(1, 255, nbytes, dtype=np.uint8)


@pytest.mark.parametrize("nbytes", [*SIZES, 3 * PIECE + 5])
@pytest.mark.parametrize("owner", ["anybody", "region", "locked"])
class TestOnAMadeUpCuda:
    def host(self, cuda, owner, nbytes):
        array = fresh(nbytes)
        if owner == "region":
            return array, cuda.copies.region(array.ctypes.data, nbytes)
        if owner == "locked":
            cuda.runtime.locked[array.ctypes.data] = nbytes
        return array, None

    def test_a_download_is_there_on_return(self, cuda, owner, nbytes):
        array, _ = self.host(cuda, owner, nbytes)
        source = values(nbytes)
        cuda.copies.download(Pointer(source.ctypes.data), array.ctypes.data, nbytes, Stream())
        assert np.array_equal(array, source)

    def test_an_uploads_source_may_change_on_return(self, cuda, owner, nbytes):
        array, _ = self.host(cuda, owner, nbytes)
        array[:] = expected = values(nbytes)
        target, stream = np.zeros(nbytes, np.uint8), Stream(cuda.runtime)
        cuda.copies.upload(Pointer(target.ctypes.data), array.ctypes.data, nbytes, stream)
        array[:] = 0
        stream.synchronize()
        assert np.array_equal(target, expected)


@pytest.mark.parametrize("other", [None, 0, 1, -1])
@pytest.mark.parametrize("nbytes", [CLEARED - 1, CLEARED, CLEARED + 3, MB + 1])
def test_zeros_are_not_copied(cuda, nbytes, other):
    array, target, stream = fresh(nbytes), values(nbytes), Stream(cuda.runtime)
    if other is not None:
        array[other] = 3
    cuda.copies.upload(Pointer(target.ctypes.data), array.ctypes.data, nbytes, stream)
    assert stream.cleared == (nbytes if other is None and nbytes >= CLEARED else 0)
    expected = array.copy()
    array[:] = 9
    stream.synchronize()
    assert np.array_equal(target, expected)


class TestRegions:
    def test_pieces_are_locked_as_they_are_filled(self, cuda):
        nbytes = 3 * PIECE + 5
        array, source, stream = fresh(nbytes), values(nbytes), Stream()
        start = array.ctypes.data
        region = cuda.copies.region(start, nbytes)
        assert not cuda.runtime.locked
        half = PIECE // 2
        cuda.copies.download(Pointer(source.ctypes.data), start, PIECE + half, stream)
        assert sorted(region.locked) == [start, start + PIECE]
        cuda.copies.download(Pointer(source.ctypes.data + 2 * PIECE), start + 2 * PIECE, half - 1, stream)
        assert sorted(region.locked) == [start, start + PIECE], "not for less than half of a piece"
        cuda.copies.download(Pointer(source.ctypes.data), start, nbytes, stream)
        assert len(region.locked) == 4 and np.array_equal(array, source)
        region.release()
        assert not [s for s in cuda.runtime.locked if start <= s < start + nbytes]

    def test_a_copy_that_begins_inside_a_piece(self, cuda):
        nbytes = 2 * PIECE
        array, source, stream = fresh(nbytes), values(nbytes), Stream()
        start = array.ctypes.data
        cuda.copies.region(start, nbytes)
        for low, high in ((5, nbytes - 3), (PIECE - STAGED_FROM, PIECE + STAGED_FROM)):
            array[:] = 0
            cuda.copies.download(Pointer(source.ctypes.data + low), start + low, high - low, stream)
            assert np.array_equal(array[low:high], source[low:high])
            assert not array[:low].any() and not array[high:].any()

    @pytest.mark.parametrize("half", [5, 4 * KB, STAGED_FROM // 2, STAGED_FROM])
    def test_no_copy_straddles_pieces(self, cuda, half):
        """A few pages that were written, on both sides of where one locked piece ends."""
        nbytes = 3 * PIECE
        array, stream = fresh(nbytes), Stream(cuda.runtime)
        array[:] = values(nbytes)
        start = array.ctypes.data
        region = cuda.copies.region(start, nbytes)
        target = np.zeros(nbytes, np.uint8)
        device = Pointer(target.ctypes.data)
        for locked in (set(), {0}, {0, 1}):
            for piece in locked - {(s - start) // PIECE for s in region.locked}:
                assert cuda.copies.lock_piece(region, start + piece * PIECE, start + (piece + 1) * PIECE)
            low, high = PIECE - half, PIECE + half
            target[:] = 0
            expected = array[low:high].copy()
            cuda.copies.upload(device + low, start + low, high - low, stream)
            array[low:high] += 1        # as it may on return
            stream.synchronize()
            assert np.array_equal(target[low:high], expected)
            cuda.copies.download(device + low, start + low, high - low, stream)
            assert np.array_equal(array[low:high], target[low:high])

    def test_where_the_system_locks_no_more_copies_are_staged(self, cuda):
        nbytes = PIECE + STAGED_FROM
        array, source, stream = fresh(nbytes), values(nbytes), Stream()
        region = cuda.copies.region(array.ctypes.data, nbytes)
        cuda.runtime.refuse = True
        cuda.copies.download(Pointer(source.ctypes.data), array.ctypes.data, nbytes, stream)
        assert np.array_equal(array, source) and not region.locked
        target = np.zeros_like(source)
        cuda.copies.upload(Pointer(target.ctypes.data), array.ctypes.data, nbytes, stream)
        stream.synchronize()
        assert np.array_equal(target, source)
        region.release()

    def test_a_forked_child_unlocks_nothing(self, cuda):
        array, source = fresh(PIECE), values(PIECE)
        region = cuda.copies.region(array.ctypes.data, PIECE)
        cuda.copies.download(Pointer(source.ctypes.data), array.ctypes.data, PIECE, Stream())
        assert region.locked
        cuda.copies.forget()
        cuda.runtime.hostUnregister = None
        region.release()

    def test_memory_outside_of_all_regions_is_none_of_theirs(self, cuda):
        one, other = fresh(PIECE), fresh(PIECE)
        cuda.copies.region(one.ctypes.data, PIECE)
        region = cuda.copies.region(other.ctypes.data, PIECE)
        region.release()
        assert cuda.copies.find(other.ctypes.data, other.ctypes.data + PIECE) is None
        assert cuda.copies.find(one.ctypes.data, one.ctypes.data + PIECE + 1) is None
        assert cuda.copies.find(one.ctypes.data + 1, one.ctypes.data + PIECE) is not None


@pytest.mark.parametrize(("shape", "strides", "offset"), [
    ((3000, 20 * KB), (40 * KB, 1), 0),                     # half of each row; rows cross from piece to piece
    ((3000, 20 * KB), (40 * KB, 1), 13 * KB + 7),
    ((50, 100, 900), (MB, 4 * KB, 1), 100),                 # planes
    ((2, 3, 40, 2000), (60 * MB, 10 * MB, 3000, 1), 5),
    ((2000, 50000), (50001, 1), 0),                         # nearly all of it
    ((PIECE + 9999,), (1,), 77),                            # one run
])
def test_rows_go_straight_into_locked_memory(cuda, shape, strides, offset):
    nbytes = 128 * MB + 12345
    array, stream = fresh(nbytes), Stream(cuda.runtime)
    source = np.resize(values(MB + 13), nbytes)
    region = cuda.copies.region(array.ctypes.data, nbytes)
    first, run, levels = runs_of(shape, strides, 1, offset)
    assert download_rows(cuda.copies, source.ctypes.data, array.ctypes.data, first, run, levels, stream)
    assert not stream.queue and region.locked
    expected = np.zeros(nbytes, np.uint8)
    view = np.ndarray(shape, np.uint8, expected, offset, strides)
    view[...] = np.ndarray(shape, np.uint8, source, offset, strides)
    assert np.array_equal(array, expected), "no byte more or less"
    region.release()


@pytest.mark.parametrize("why", ["narrow", "few", "not a region", "refused", "a corner"])
def test_other_rows_are_gathered(cuda, why):
    nbytes = 2 * PIECE
    array, stream = fresh(nbytes), Stream(cuda.runtime)
    if why != "not a region":
        cuda.copies.region(array.ctypes.data, nbytes)
    cuda.runtime.refuse = why == "refused"
    run, count, pitch = 4 * KB, 4000, 8 * KB
    if why == "narrow":
        run = strided_download.WIDTH - 1
    elif why == "few":
        count = 3
    elif why == "a corner":
        count = 100
    assert not download_rows(cuda.copies, 0, array.ctypes.data, 0, run, [(pitch, count)], stream)
    assert not stream.queue and not cuda.runtime.locked


@pytest.mark.parametrize("nbytes", [STAGED_FROM, STAGED_FROM + 12345, 2 * STAGED_FROM + 1, 100 * MB + 77])
def test_many_threads_stage_an_upload(cuda, monkeypatch, nbytes):
    monkeypatch.setattr(staged_upload, "cores", lambda: 6)
    array, target, stream = fresh(nbytes), np.zeros(nbytes, np.uint8), Stream(cuda.runtime)
    for seed in range(2):
        array[:] = expected = values(nbytes, seed)
        cuda.copies.upload(Pointer(target.ctypes.data), array.ctypes.data, nbytes, stream)
        array[:] = 0
        stream.synchronize()
        assert np.array_equal(target, expected)


def test_an_upload_that_fails_in_one_thread_leaves_no_buffer_in_use(cuda, monkeypatch):
    monkeypatch.setattr(staged_upload, "cores", lambda: 6)
    nbytes = 100 * MB
    array, target, stream = fresh(nbytes), np.zeros(nbytes, np.uint8), Stream(cuda.runtime)
    array[:] = 1
    count = iter(range(10))
    move = ctypes.memmove

    def fails(*args):
        if next(count, 10) == 9:
            raise Refused("enough")
        return move(*args)

    monkeypatch.setattr(staged_upload.ctypes, "memmove", fails)
    with pytest.raises(Refused):
        cuda.copies.upload(Pointer(target.ctypes.data), array.ctypes.data, nbytes, stream)
    monkeypatch.undo()
    assert not stream.queue
    cuda.copies.upload(Pointer(target.ctypes.data), array.ctypes.data, nbytes, stream)
    stream.synchronize()
    assert target.all()


def once(call, work):
    """`call`, but the first time `work` is done after it, as a finaliser does that runs then."""
    left = [work]

    def both(*args, **kwargs):
        found = call(*args, **kwargs)
        if left:
            left.pop()()
        return found

    return both


class TestFinalisersWithin:
    """One that copies in the middle of a copy, on its thread or on one that helps, gets its bytes and spoils none."""

    @pytest.fixture
    def copy(self, cuda):
        """What copies other bytes, in a direction, and what says whether they arrived."""
        arrived = []

        def down(nbytes):
            source, target = values(nbytes, 7), np.zeros(nbytes, np.uint8)
            cuda.copies.download(Pointer(source.ctypes.data), target.ctypes.data, nbytes, Stream(cuda.runtime))
            arrived.append(np.array_equal(target, source))

        def up(nbytes):
            source, target, stream = values(nbytes, 8), np.zeros(nbytes, np.uint8), Stream(cuda.runtime)
            cuda.copies.upload(Pointer(target.ctypes.data), source.ctypes.data, nbytes, stream)
            source[:], expected = 0, source.copy()
            stream.synchronize()
            arrived.append(np.array_equal(target, expected))

        return SimpleNamespace(arrived=arrived, down=down, up=up)

    @pytest.mark.parametrize("nbytes", [1000, 4 * KB, BOUNCED])
    @pytest.mark.parametrize("within", [1000, BOUNCED])
    def test_of_a_small_download(self, cuda, copy, nbytes, within):
        for _ in range(2):      # the second time there is a buffer
            source, target, stream = values(nbytes), np.zeros(nbytes, np.uint8), Stream()
            stream.synchronize = once(stream.synchronize, lambda: copy.down(within))
            cuda.copies.download(Pointer(source.ctypes.data), target.ctypes.data, nbytes, stream)
            assert np.array_equal(target, source)
        assert copy.arrived == [True, True]

    @pytest.mark.parametrize("direction", ["down", "up"])
    @pytest.mark.parametrize("outer", ["down", "up"])
    @pytest.mark.parametrize("when", ["alloc", "event"])
    def test_of_a_large_copy(self, cuda, copy, outer, direction, when):
        within = getattr(copy, direction)
        setattr(cuda.copies, when, once(getattr(cuda.copies, when), lambda: within(9 * MB)))
        getattr(copy, outer)(50 * MB)
        getattr(copy, outer)(50 * MB)
        assert copy.arrived == [True] * 3

    @pytest.mark.parametrize("direction", ["down", "up"])
    @pytest.mark.parametrize("outer", ["down", "up"])
    def test_in_a_thread_that_helps(self, cuda, copy, monkeypatch, outer, direction):
        monkeypatch.setattr(staged_upload, "cores", lambda: 4)
        monkeypatch.setattr(cuda_pinned, "cores", lambda: 4)
        within, ran, here = getattr(copy, direction), [], threading.current_thread()
        move = ctypes.memmove

        def moved(*args):
            found = move(*args)
            if threading.current_thread() is not here and len(ran) < 3:
                ran.append(True)
                within(9 * MB)
            return found

        monkeypatch.setattr(ctypes, "memmove", moved)
        for _ in range(20):
            getattr(copy, outer)(50 * MB)
            if len(ran) == 3:
                break
        assert len(ran) == 3 and len(copy.arrived) > 3 and all(copy.arrived)

    def test_where_work_is_given_to_threads(self, cuda, copy, monkeypatch):
        """An executor's locks are held where objects are made, and the collector runs where objects are made."""
        monkeypatch.setattr(cuda_pinned, "cores", lambda: 4)
        monkeypatch.setattr(crews, "queue", SimpleNamespace(
            Empty=queue.Empty, SimpleQueue=once(queue.SimpleQueue, lambda: copy.down(50 * MB))))
        copy.down(50 * MB)
        assert copy.arrived == [True, True]


class TestStaging:
    @pytest.mark.parametrize("nbytes", [1, STAGED_FROM, 64 * MB, 64 * MB + 4097, 1 << 32])
    @pytest.mark.parametrize("sizes", [staged_upload.IN_C, staged_upload.IN_PYTHON])
    def test_the_parts_make_up_all_of_it(self, nbytes, sizes):
        found = staged_upload.parts(nbytes, sizes.slot)
        assert found.dtype == np.int64 and found.flags.c_contiguous
        starts, stops = found.T
        assert starts[0] == 0 and stops[-1] == nbytes and (stops[:-1] == starts[1:]).all()
        assert (starts < stops).all() and (stops - starts <= sizes.slot).all()

    def test_the_last_copies_are_under_way_on_return(self, cuda, monkeypatch):
        """And the next upload, on another stream, waits for those whose buffers it needs."""
        monkeypatch.setattr(staged_upload, "cores", lambda: 2)
        nbytes = 20 * MB
        array, streams = fresh(nbytes), [Stream(cuda.runtime), Stream(cuda.runtime)]
        targets = [np.zeros(nbytes, np.uint8) for _ in streams]
        for seed, (target, stream) in enumerate(zip(targets, streams)):
            array[:] = values(nbytes, seed)
            cuda.copies.upload(Pointer(target.ctypes.data), array.ctypes.data, nbytes, stream)
            assert 0 < len(stream.queue) <= 2 * staged_upload.IN_PYTHON.buffers
        for seed, (target, stream) in enumerate(zip(targets, streams)):
            stream.synchronize()
            assert np.array_equal(target, values(nbytes, seed))

    def test_on_the_default_stream_of_a_thread_none_is(self, cuda, monkeypatch):
        """What another thread issues there is in another stream."""
        stream, target, array = Stream(cuda.runtime), np.zeros(20 * MB, np.uint8), fresh(20 * MB)
        array[:] = 1
        monkeypatch.setattr(cuda.runtime, "streamPerThread", stream.ptr)
        cuda.copies.upload(Pointer(target.ctypes.data), array.ctypes.data, target.nbytes, stream)
        assert not stream.queue and target.all()

    def test_an_event_is_made_anew_for_another_device(self, cuda):
        made, device = [], [3]
        cuda.runtime.getDevice = lambda: device[0]
        cuda.runtime.setDevice = lambda number: None
        event = cuda.copies.event
        cuda.copies.event = lambda stream: (made.append(device[0]), event(stream))[1]
        stream, array = Stream(cuda.runtime), fresh(STAGED_FROM)
        for seed, device[0] in enumerate([3, 3, 5]):
            array[:] = values(STAGED_FROM, seed)
            target = np.zeros(STAGED_FROM, np.uint8)
            cuda.copies.upload(Pointer(target.ctypes.data), array.ctypes.data, STAGED_FROM, stream)
            stream.synchronize()
            assert np.array_equal(target, values(STAGED_FROM, seed))
        assert 3 in made and 5 in made

    def test_a_forked_child_begins_anew(self, cuda):
        before, gone = cuda.copies._staging_up, []
        weakref.finalize(before, gone.append, True)
        cuda.copies.forget()
        assert cuda.copies._staging_up is not before
        del before
        gc.collect()
        assert not gone     # for ever: a child can't give it back


class TestReaders:
    """Of small pieces: what is compiled when, and what is launched."""

    @pytest.fixture
    def cupy(self, monkeypatch):
        errors = {name: type(name, (Exception,), {}) for name in (
            "CompileException", "CUDARuntimeError", "CUDADriverError")}
        used = []
        cuda = SimpleNamespace(
            Device=lambda number: SimpleNamespace(use=lambda: used.append(number)),
            runtime=SimpleNamespace(deviceGetAttribute=lambda which, device: which == 91 and device < 2, **errors),
            compiler=SimpleNamespace(**errors), driver=SimpleNamespace(launchKernel=None, **errors),
            get_current_stream=None)
        monkeypatch.setattr(pieces, "functions", lambda cupy, source, names: cupy.compile(names))
        return SimpleNamespace(cuda=cuda, used=used, compile=lambda names: [SimpleNamespace(ptr=1)], ndarray=np.ndarray)

    def settled(self, readers, device):
        readers.get(device)
        for thread in threading.enumerate():
            if thread.name == "lazyarray-pieces":
                thread.join(20)
        return readers.get(device)

    def test_it_is_compiled_beside_the_work_once_for_each_device(self, cupy):
        go, plain = threading.Event(), cupy.compile
        cupy.compile = lambda names: go.wait(20) and plain(names)
        readers = pieces.Readers(cupy)
        assert readers.get(0) is None and readers.get(0) is None
        go.set()
        assert isinstance(self.settled(readers, 0), pieces.Reader)
        assert self.settled(readers, 0) is not self.settled(readers, 1) and cupy.used == [0, 1]

    def test_a_device_that_cannot_read_there_has_none(self, cupy):
        assert self.settled(pieces.Readers(cupy), 2) is None

    def test_nor_one_that_it_is_not_compiled_for(self, cupy, caplog):
        def fails(names):
            raise cupy.cuda.compiler.CompileException("line 1: no\nline 2")

        cupy.compile = fails
        assert self.settled(pieces.Readers(cupy), 0) is None
        assert "line 1: no" in caplog.text and "line 2" not in caplog.text

    def test_what_is_launched(self, cupy):
        reader = self.settled(pieces.Readers(cupy), 0)
        launched = []
        reader._launch = lambda *args: launched.append(args)
        bounds = [16 * i for i in range(2 * pieces.MOST + 4)]
        reader(1000, 2000, bounds)
        got = []
        for blocks, _, (source, target, table) in launched:
            assert (source, target) == (1000, 2000) and len(table) == 8 * blocks
            got += np.frombuffer(table, np.uint32).tolist()
        assert [16 * unit for unit in got] == bounds and [blocks for blocks, *_ in launched] == [pieces.MOST, 2]


def test_the_kernel_that_reads_pieces_compiles():
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    program = nvrtc.createProgram(pieces.SOURCE, "pieces.cu", [], [])
    try:
        nvrtc.compileProgram(program, ["--std=c++17", "-arch=sm_90"])
    finally:
        log = nvrtc.getProgramLog(program)
        nvrtc.destroyProgram(program)
    assert not log.strip("\0 \n")


def no(thread):
    raise RuntimeError("can't start new thread")


class TestCrew:
    def test_all_arguments_are_worked_at_together(self):
        together, seen = threading.Barrier(5), []

        def work(argument):
            together.wait(20)
            seen.append(argument)

        crew = crews.Crew()
        for _ in range(3):
            crew.run(work, list(range(5)))
        assert sorted(seen) == sorted([*range(5)] * 3)

    @pytest.mark.parametrize("where", [0, 3])
    def test_an_error_is_raised_when_all_are_over(self, where):
        crew, over = crews.Crew(), []

        def work(argument):
            if argument == where:
                raise Refused("enough")
            time.sleep(0.05)
            over.append(argument)

        with pytest.raises(Refused):
            crew.run(work, [0, 1, 2, 3])
        assert len(over) == 3

    def test_an_interrupt_waits_for_all(self, monkeypatch):
        crew, over = crews.Crew(), []

        def work(argument):
            if argument == 0:
                raise KeyboardInterrupt
            time.sleep(0.05)
            over.append(argument)

        with pytest.raises(KeyboardInterrupt):
            crew.run(work, [0, 1])
        assert over == [1]

    def test_where_no_thread_starts_the_caller_does_it_alone(self, monkeypatch):
        monkeypatch.setattr(threading.Thread, "start", no)
        seen = []
        crews.Crew().run(seen.append, [1, 2, 3])
        assert seen == [1]

    def test_work_that_is_submitted(self):
        crew, together = crews.Crew(), threading.Barrier(3)
        futures = [crew.submit(3, lambda i: (together.wait(20), threading.get_ident(), i)[1:], i) for i in range(9)]
        found = [future.result(20) for future in futures]
        assert [i for _, i in found] == [*range(9)]
        threads = {ident for ident, _ in found}
        assert len(threads) == 3 and threading.get_ident() not in threads

    def test_what_submitted_work_raises(self):
        crew = crews.Crew()
        with pytest.raises(Refused, match="enough"):
            crew.submit(1, self.refuses, "enough").result(20)
        assert crew.submit(1, divmod, 7, 2).result(20) == (3, 1)

    def refuses(self, why):
        raise Refused(why)

    @pytest.mark.parametrize("why", ["no thread starts", "it is ending"])
    def test_submitted_work_is_done_here_where_threads_do_nothing(self, monkeypatch, why):
        crew = crews.Crew()
        if why == "it is ending":
            crew.submit(2, int).result(20)      # its threads are there, and will not run again
            monkeypatch.setattr(crews.sys, "is_finalizing", lambda: True)
        else:
            monkeypatch.setattr(threading.Thread, "start", no)
        assert crew.submit(2, threading.get_ident).result(0) == threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            crew.submit(2, divmod, 1, 0).result(0)

    def test_its_threads_end_with_it(self):
        crew = crews.Crew()
        crew.run(lambda argument: None, [0, 1, 2])
        threads = [t for t in threading.enumerate() if t.name == "lazyarray-copies"]
        del crew
        deadline = time.monotonic() + 20
        while sum(t.is_alive() for t in threads) > len(threads) - 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert sum(t.is_alive() for t in threads) <= len(threads) - 2


class TestRangesOfAMirror:
    def test_all_are_there_and_may_change_after_one_wait(self, cuda):
        nbytes = 2 * PIECE
        array, stream = fresh(nbytes), Stream(cuda.runtime)
        array[:] = expected = values(nbytes)
        start = array.ctypes.data
        region = cuda.copies.region(start, nbytes)
        assert cuda.copies.lock_piece(region, start, start + PIECE)        # the other one is not
        target = np.zeros(nbytes, np.uint8)
        ranges = [(0, 5), (4 * KB, 8 * KB), (PIECE - 100, PIECE + 100), (PIECE + MB, PIECE + MB + 9)]
        waits = []
        stream.synchronize = lambda: (waits.append(1), Stream.synchronize(stream))
        cuda.copies.upload_ranges(Pointer(target.ctypes.data), start, iter(ranges), stream)
        assert len(waits) == 1
        array[:] = 0
        Stream.synchronize(stream)
        wanted = np.zeros(nbytes, np.uint8)
        for low, high in ranges:
            wanted[low:high] = expected[low:high]
        assert np.array_equal(target, wanted)

    def test_copies_run_while_the_next_range_is_looked_for(self, cuda):
        array, stream = fresh(PIECE), Stream(cuda.runtime)
        array[:] = 1
        start = array.ctypes.data
        assert cuda.copies.lock_piece(cuda.copies.region(start, PIECE), start, start + PIECE)
        target = np.zeros(PIECE, np.uint8)
        issued = []

        def ranges():
            for low in range(0, PIECE, PIECE // 4):
                issued.append(len(stream.queue))
                yield low, low + PIECE // 4

        cuda.copies.upload_ranges(Pointer(target.ctypes.data), start, ranges(), stream)
        assert issued == [0, 1, 2, 3] and target.all()

    def pages(self, cuda, nbytes, count):
        """Locked memory, a target, some pages of both, and what the target is to hold then."""
        array, target, wanted = fresh(nbytes), np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
        array[:] = values(nbytes)
        start = array.ctypes.data
        region = cuda.copies.region(start, nbytes)
        for low in range(start, start + nbytes, PIECE):
            assert cuda.copies.lock_piece(region, low, min(low + PIECE, start + nbytes))
        ranges = [(low, low + 4096) for low in range(PIECE - 2048, nbytes - 4096, 12288)][:count]
        for low, high in ranges:
            wanted[low:high] = array[low:high]
        return array, target, ranges, wanted

    @pytest.mark.parametrize("count", [1, pieces.FEW - 1, pieces.FEW, pieces.MOST * 2 + 1])
    def test_many_pages_are_read_by_a_kernel_once_there_is_one(self, cuda, count):
        read = []

        def reader(source, target, bounds):
            for low, high in zip(bounds[::2], bounds[1::2]):
                read.append(low)
                stream.queue.append((target + low, source + low, high - low))

        known = []
        cuda.copies._readers = SimpleNamespace(get=lambda device: known[0] if known else None)
        array, target, ranges, wanted = self.pages(cuda, 2 * PIECE, count)
        ranges += [(5, 7), (8 * KB, MB)]
        for low, high in ranges[-2:]:
            wanted[low:high] = array[low:high]
        for _ in range(2):
            stream = Stream(cuda.runtime)
            target[:] = 0
            cuda.copies.upload_ranges(Pointer(target.ctypes.data), array.ctypes.data, iter(ranges), stream)
            assert not stream.queue and np.array_equal(target, wanted)
            known.append(reader)
        many = len(ranges) - 2 >= pieces.FEW
        assert read == ([low for low, _ in ranges[:-2]] if many else [])

    @pytest.mark.parametrize("why", ["not all is locked", "not aligned", "the target is not aligned"])
    def test_otherwise_they_are_copied_one_by_one(self, cuda, why):
        cuda.copies._readers = None
        array, target, ranges, wanted = self.pages(cuda, 2 * PIECE, 40)
        shift = 3 if why == "the target is not aligned" else 0
        if why == "not all is locked":
            [region] = cuda.copies._regions
            region.locked.remove(region.start)
            del cuda.runtime.locked[region.start]
        elif why == "not aligned":
            ranges = [(low + 1, high) for low, high in ranges]
            wanted[[low - 1 for low, _ in ranges]] = 0
        if shift:
            target = np.zeros(target.nbytes + 16, np.uint8)
        stream = Stream(cuda.runtime)
        cuda.copies.upload_ranges(Pointer(target.ctypes.data + shift), array.ctypes.data, iter(ranges), stream)
        assert not stream.queue and np.array_equal(target[shift:shift + wanted.nbytes], wanted)

    def test_one_that_fails_leaves_nothing_being_read(self, cuda):
        array, stream = fresh(PIECE), Stream(cuda.runtime)
        start = array.ctypes.data
        assert cuda.copies.lock_piece(cuda.copies.region(start, PIECE), start, start + PIECE)

        def ranges():
            yield 0, MB
            raise Refused("no more")

        target = np.zeros(MB, np.uint8)
        with pytest.raises(Refused):
            cuda.copies.upload_ranges(Pointer(target.ctypes.data), start, ranges(), stream)
        assert not stream.queue


@pytest.mark.parametrize("nbytes", [*SIZES, 3 * PIECE + 5])
@pytest.mark.parametrize("refuse", [False, True])
class TestBesideOtherWork:
    def begun(self, cuda, nbytes, refuse):
        array, source, stream = fresh(nbytes), values(nbytes), Stream(cuda.runtime)
        region = cuda.copies.region(array.ctypes.data, nbytes) if nbytes >= STAGED_FROM else None
        cuda.runtime.refuse = refuse
        wait = download_begin(cuda.copies, SimpleNamespace(data=Pointer(source.ctypes.data)), array, stream)
        return array, source, stream, region, wait

    def test_the_bytes_are_there_after_the_wait(self, cuda, nbytes, refuse):
        array, source, stream, region, wait = self.begun(cuda, nbytes, refuse)
        wait()
        assert np.array_equal(array, source)
        if region is not None:
            assert bool(region.locked) is not refuse
            region.release()

    def test_nobody_waits_before(self, cuda, nbytes, refuse):
        array, source, stream, region, wait = self.begun(cuda, nbytes, refuse)
        at_once = refuse and region is not None
        assert not stream.queue if at_once else stream.queue and not array.any()
        wait()


class TestPieceByPiece:
    """What is not locked yet is copied piece by piece, the first while the next ones are made ready."""

    def begun(self, cuda, monkeypatch, nbytes, then):
        array, source, stream = fresh(nbytes), values(nbytes), Stream(cuda.runtime)
        region, lock = cuda.copies.region(array.ctypes.data, nbytes), cuda.copies.lock_piece

        def locks(region, start, stop):
            then((start - region.start) // PIECE, len(stream.queue))
            return lock(region, start, stop)

        monkeypatch.setattr(cuda.copies, "lock_piece", locks)
        return array, source, stream, region, lambda: download_begin(
            cuda.copies, SimpleNamespace(data=Pointer(source.ctypes.data)), array, stream)

    def test_a_copy_begins_when_its_piece_is_locked(self, cuda, monkeypatch):
        seen = []
        array, source, stream, region, begin = self.begun(
            cuda, monkeypatch, 3 * PIECE + 5 * KB, lambda piece, queued: seen.append((piece, queued)))
        wait = begin()
        assert seen == [(0, 0), (1, 1), (2, 2), (3, 3)] and region.complete and stream.queue
        wait()
        assert np.array_equal(array, source)

    def test_some_can_not_be_locked(self, cuda, monkeypatch):
        def refuse(piece, queued):
            cuda.runtime.refuse = piece == 1

        array, source, stream, region, begin = self.begun(cuda, monkeypatch, 3 * PIECE, refuse)
        wait = begin()
        assert len(region.locked) == 2 and not region.complete
        wait()
        assert np.array_equal(array, source)

    def test_an_interrupt_leaves_nothing_under_way(self, cuda, monkeypatch):
        def interrupt(piece, queued):
            if piece == 2:
                assert queued == 2
                raise KeyboardInterrupt

        array, source, stream, region, begin = self.begun(cuda, monkeypatch, 3 * PIECE, interrupt)
        with pytest.raises(KeyboardInterrupt):
            begin()
        assert not stream.queue and np.array_equal(array[:2 * PIECE], source[:2 * PIECE])


class TestFetching:
    def array(self, source):
        return SimpleNamespace(data=Pointer(source.ctypes.data), nbytes=source.nbytes)

    @pytest.mark.parametrize("nbytes", [1, 1000, MOST_FETCHED])
    def test_the_bytes_are_there_at_the_end(self, cuda, nbytes):
        for seed in range(3):
            source, memory = values(nbytes, seed), np.zeros(nbytes, np.uint8)
            copy = cuda.copies.fetch_begin(self.array(source))
            cuda.copies.fetch_end(copy, memory.data)
            assert np.array_equal(memory, source)
        assert len(cuda.memories) == 1

    def test_one_within_another(self, cuda):
        """As a finaliser may, that runs between the two."""
        first, second = values(500, 1), values(500, 2)
        memory, other = np.zeros(500, np.uint8), np.zeros(500, np.uint8)
        outer = cuda.copies.fetch_begin(self.array(first))
        inner = cuda.copies.fetch_begin(self.array(second))
        cuda.copies.fetch_end(inner, other.data)
        cuda.copies.fetch_end(outer, memory.data)
        assert np.array_equal(memory, first) and np.array_equal(other, second)


def test_threads_do_not_share_the_small_buffer(cuda):
    sources = [values(64 * KB, seed) for seed in range(8)]
    wrong = []

    def work(source):
        target = np.zeros_like(source)
        for _ in range(20):
            target[:] = 0
            cuda.copies.download(Pointer(source.ctypes.data), target.ctypes.data, target.nbytes, Stream())
            if not np.array_equal(target, source):
                wrong.append(source)

    threads = [threading.Thread(target=work, args=(source,)) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_populating_it_works_as_well(cuda, monkeypatch):
    monkeypatch.setattr(cuda.copies, "_madvise", None)
    array, source = fresh(PIECE), values(PIECE)
    cuda.copies.region(array.ctypes.data, PIECE)
    cuda.copies.download(Pointer(source.ctypes.data), array.ctypes.data, PIECE, Stream())
    assert np.array_equal(array, source)


def test_the_number_of_threads_is_that_of_the_cores_or_less():
    assert 1 <= cuda_pinned.cores() <= 1024


@pytest.mark.parametrize("nbytes", [*SIZES, 2 * PIECE + 99])
class TestOnThisDevice:
    def test_there_and_back(self, nbytes):
        source = values(nbytes)
        x = lazyarray.asarray(source)
        source_now = source.copy()
        source[:] = 0
        assert np.array_equal(np.asarray(x), source_now)
        y = x ^ 255
        for _ in range(3):      # the second time into memory that has been used
            assert np.array_equal(np.asarray(y), source_now ^ 255)
            y = x ^ 255

    def test_what_an_alias_writes_arrives(self, nbytes):
        x = lazyarray.asarray(values(nbytes)) | 1
        alias = np.asarray(x)
        alias[:] = 3
        alias[nbytes // 2] = 8
        expected = np.full(nbytes, 3, np.uint8)
        expected[nbytes // 2] = 8
        assert int((x != lazyarray.asarray(expected)).sum()) == 0

    def test_beyond_the_limit(self, nbytes):
        with lazyarray.options(pool_bytes=0):
            self.test_there_and_back(nbytes)
            self.test_what_an_alias_writes_arrives(nbytes)


@pytest.mark.skipif(why_no_pages() is not None, reason="needs the kernel's write tracking")
@pytest.mark.parametrize("nbytes", [256 * KB, 40 * MB])
class TestWhatAnAliasCosts:
    def made(self, nbytes):
        x = lazyarray.asarray(np.ones(nbytes, np.uint8)) + np.uint8(1)
        return x, np.asarray(x)

    def test_one_that_was_only_read_costs_nothing(self, nbytes):
        x, alias = self.made(nbytes)
        assert alias.sum(dtype=int) == 2 * nbytes
        with lazyarray.no_transfers():
            x.copy()
            del alias
            x.copy()
        assert x._self_storage.clean, "nor does one that is gone"

    @pytest.mark.parametrize("pages", [1, 2, 17])
    def test_one_written_in_some_pages_costs_the_upload_of_those(self, nbytes, pages):
        x, alias = self.made(nbytes)
        alias[::2 * mmap.PAGESIZE][:pages] = 9
        with lazyarray.trace() as t:
            y = x.copy()
        assert [event.nbytes for event in t.uploads] == [pages * mmap.PAGESIZE]
        with lazyarray.no_transfers(uploads="error"):
            x.copy()
        assert int((y == 9).sum()) == pages

    def test_as_many_pages_and_no_more_where_nobody_listens(self, nbytes, monkeypatch):
        """Then those of a large mirror are sent as they are found."""
        x, alias = self.made(nbytes)
        alias[::2 * mmap.PAGESIZE][:5] = 9
        sent = []
        device = lazyarray.device()
        upload = device.upload_ranges

        def watched(source, target, ranges):
            found = list(ranges)
            sent.extend(found)
            upload(source, target, found)

        monkeypatch.setattr(device, "upload_ranges", watched)
        y = x.copy()
        assert sent == [(low, low + mmap.PAGESIZE) for low in range(0, 10 * mmap.PAGESIZE, 2 * mmap.PAGESIZE)]
        monkeypatch.undo()
        assert int((y == 9).sum()) == 5


def test_a_small_array_is_fetched_and_written_by_many_threads_at_once():
    """The short way of a first alias, taken by several, while the device writes."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(150):
            x = lazyarray.asarray(np.zeros(100)) + 0
            handles.device_of(x)
            aliases = []
            ready = threading.Barrier(4)

            def read(x=x, ready=ready, aliases=aliases):
                ready.wait()
                aliases.append(np.asarray(x))

            def write(x=x, ready=ready):
                ready.wait()
                x += 1

            threads = [threading.Thread(target=work) for work in (read, write, read)]
            for thread in threads:
                thread.start()
            ready.wait()
            for thread in threads:
                thread.join()
            assert [alias.tolist() for alias in [*aliases, np.asarray(x)]] == [[1.0] * 100] * 3
            aliases[0][5] = 7
            assert aliases[1][5] == 7 and x[5] == 7
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.skipif(why_no_pages() is not None, reason="needs the kernel's write tracking")
@pytest.mark.parametrize("after", [0, 1, 3, 13])
def test_an_upload_that_fails_in_between_loses_nothing(monkeypatch, after):
    x = lazyarray.asarray(np.ones(40 * MB, np.uint8)) + np.uint8(1)
    alias = np.asarray(x)
    alias[::3 * MB] = 9         # fourteen pages, looked at in several turns
    device = lazyarray.device()
    upload = device.upload_ranges

    def fails(source, target, ranges):
        for i, pair in enumerate(ranges):
            if i == after:
                raise device.faults[0](1, 2, 3) if device.name == "simulated" else MemoryError
            upload(source, target, [pair])

    monkeypatch.setattr(device, "upload_ranges", fails)
    with pytest.raises(device.faults):
        handles.device_of(x)
    monkeypatch.undo()
    alias[5] = 8
    y = x.copy()
    assert int((y == 9).sum()) == 14 and int(y[5]) == 8 and int((y == 2).sum()) == 40 * MB - 15


VIEWS = {
    "half of each row": lambda a: a[:, :a.shape[1] // 2],
    "every other row": lambda a: a[1::2],
    "a box, upside down": lambda a: a[::-1, 100:1300],
    "narrow": lambda a: a[:, 5:9],
    "blocks": lambda a: a.reshape(40, 50, -1)[1:, 3:40, 7:1700],
    "every other column": lambda a: a[:, ::2],
    "every third, backwards": lambda a: a[:, ::-3],
    "every fifth": lambda a: a[:, ::5],
    "transposed": lambda a: a.T,
    "a part, transposed": lambda a: a[:, 1000:].T,
}


#: The views whose gaps are copied too, and how many bytes there are then to one of theirs.
WITH_GAPS = {"every other column": 2, "every third, backwards": 3}


@pytest.mark.parametrize("name", VIEWS)
class TestStridedViews:
    def made(self, name):
        host = np.arange(2000 * 1999, dtype=np.int64).reshape(2000, 1999)
        return VIEWS[name](host + 1), lazyarray.asarray(host) + 1, VIEWS[name]

    def test_a_view_materialises_its_own_bytes_and_at_most_the_gaps_between_fine_ones(self, name):
        expected, x, view = self.made(name)
        view(x)
        lazyarray.device().synchronize()
        with lazyarray.trace() as t:
            got = np.asarray(view(x))
        assert np.array_equal(got, expected) and got.strides == expected.strides
        [event] = t.events
        assert expected.nbytes <= event.nbytes <= expected.nbytes * WITH_GAPS.get(name, 1)
        with lazyarray.no_transfers():
            assert np.array_equal(np.asarray(view(x)), expected)

    def test_what_an_alias_wrote_in_the_gaps_stays(self, name):
        expected, x, view = self.made(name)
        alias = np.asarray(x[1000])
        alias[3:8] = -5
        got = np.asarray(view(x))
        host = np.arange(1, 2000 * 1999 + 1, dtype=np.int64).reshape(2000, 1999)
        host[1000, 3:8] = -5
        assert np.array_equal(got, view(host))
        assert (alias[3:8] == -5).all()
        assert np.array_equal(lazyarray.asdevice(x + 0).get(), host)


@pytest.mark.skipif(lazyarray.device().name != "cuda", reason="page-locked memory of CUDA's own")
def test_somebody_elses_page_locked_memory():
    import cupyx

    source = cupyx.empty_pinned((8 << 20,), np.uint8)
    source[:] = expected = values(8 << 20)
    x = lazyarray.asarray(source)
    source[:] = 0
    assert np.array_equal(np.asarray(x), expected)


class Interrupted(Pointer):
    """A handler raises as soon as a copy has been issued."""

    def __add__(self, offset):
        return Interrupted(self.ptr + offset)

    def copy_to_host_async(self, address, nbytes, stream):
        super().copy_to_host_async(address, nbytes, stream)
        raise KeyboardInterrupt

    def copy_from_host_async(self, address, nbytes, stream):
        super().copy_from_host_async(address, nbytes, stream)
        raise KeyboardInterrupt


@pytest.mark.parametrize("way, nbytes", [
    ("download", 5000), ("download", 2 << 20), ("download", 20 << 20), ("download_begin", 5000),
    ("download_begin", 2 << 20), ("download_begin", 20 << 20), ("upload", 5000), ("upload", 2 << 20)])
def test_an_interrupt_leaves_no_copy_under_way(cuda, way, nbytes):
    """Else it would come into memory, or be made of it, that somebody else has by then."""
    there, here, stream = values(nbytes), fresh(nbytes), Stream(cuda.runtime)
    pointer = Interrupted(there.ctypes.data)
    here[:] = 1
    with pytest.raises(KeyboardInterrupt):
        if way == "download_begin":
            download_begin(cuda.copies, SimpleNamespace(data=pointer), here, stream)
        else:
            getattr(cuda.copies, way)(pointer, here.ctypes.data, nbytes, stream)
    assert not stream.queue
