"""Copies into regions that are locked as they are filled, in C, on a driver made of memory."""
from __future__ import annotations

import ctypes
import mmap
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from lazyarray import _native
from lazyarray.devices.cuda.copies import pinned_download
from lazyarray.devices.cuda.copies.crew import CrewInC
from lazyarray.devices.cuda.copies.pinned import CHUNK, PIECE, Region
from lazyarray.devices.cuda.copies.pinned_download import fill_begin
from lazyarray.devices.cuda.driver import Driver

if _native.staging is None:
    pytest.skip("the part in C was not compiled", allow_module_level=True)

MB = 1 << 20
HANDLE = ctypes.c_void_p


class Late:
    """Device and driver, for `Copies`: copies are under way until somebody waits, and go to locked memory alone."""

    def __init__(self):
        self.queue, self.log, self.pieces = [], [], {}
        self.refused, self.fails, self.interrupted = set(), None, False
        self.staged = []
        self._kept = (ctypes.CFUNCTYPE(ctypes.c_int, HANDLE, ctypes.c_uint64, ctypes.c_size_t, HANDLE)(self.copy),
                      ctypes.CFUNCTYPE(ctypes.c_int, HANDLE, ctypes.c_size_t, ctypes.c_uint)(self.lock))
        copy, lock = (ctypes.cast(f, HANDLE).value for f in self._kept)
        self.driver = Driver(1, 1, 1, 1, 1, 1, copy, 1, lock)
        self.crew = CrewInC()
        self.without_context = False
        self.runtime = SimpleNamespace(setDevice=self.use, getDevice=lambda: 0)
        self.error = lambda code: RuntimeError(f"error {code}")
        self.stream = SimpleNamespace(ptr=7, synchronize=self.arrive)

    def use(self, number):
        self.without_context = False

    def copy(self, target, source, nbytes, stream):
        assert stream == 7
        if self.without_context:
            return 201
        self.log.append("copy")
        if self.fails == self.log.count("copy") - 1:
            return 700
        inside = [start <= target and target + nbytes <= start + size for start, size in self.pieces.items()]
        if sum(inside) != 1:
            return 1        # "it begins in locked memory and ends elsewhere"
        self.queue.append((target, source, nbytes))
        return 0

    def lock(self, start, nbytes, flags):
        self.log.append("lock")
        if len(self.pieces) in self.refused:
            self.refused.discard(len(self.pieces))
            return 2
        assert flags == 1 and start not in self.pieces
        self.pieces[start] = nbytes
        return 0

    def arrive(self):
        for job in self.queue:
            ctypes.memmove(*job)
        self.queue.clear()

    def are_locked(self, region, pieces):
        region.locked.update(pieces)

    def stage_down(self, pointer, start, nbytes, stream):
        self.staged.append((start, nbytes))
        ctypes.memmove(start, pointer.ptr, nbytes)


class Pointer:
    def __init__(self, address):
        self.ptr = address

    def __add__(self, offset):
        return Pointer(self.ptr + offset)


@pytest.fixture
def late(monkeypatch):
    monkeypatch.setattr(pinned_download, "cores", lambda: 4)
    late = Late()
    yield late
    assert not late.queue, "something is under way"


def region_of(late, nbytes):
    memory = np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)
    return memory, Region(late, memory.ctypes.data, nbytes)


def values(nbytes, seed=0):
    return np.random.default_rng(seed).integers(1, 256, nbytes, np.uint8)


def fill(late, memory, region, source, low=0, corners=False):
    fill_begin(late, region, Pointer(source.ctypes.data), memory.ctypes.data + low, source.nbytes, late.stream, corners)


@pytest.mark.parametrize("nbytes", [CHUNK, PIECE, PIECE + 4096, 3 * PIECE + 5 * MB])
def test_all_arrives(late, nbytes):
    memory, region = region_of(late, nbytes)
    for seed in range(3):
        source = values(nbytes, seed)
        fill(late, memory, region, source)
        assert late.queue and region.complete and region.locked == set(late.pieces)
        late.arrive()
        assert np.array_equal(memory, source)
    assert late.log.count("lock") == len(late.pieces) and not late.staged


def test_a_copy_begins_before_the_next_piece_is_locked(late):
    memory, region = region_of(late, 3 * PIECE + 4096)
    source = values(memory.nbytes)
    fill(late, memory, region, source)
    assert late.log == ["lock", "copy"] * 4
    late.arrive()


def test_pages_are_there_before_they_are_locked(late, monkeypatch):
    """And keep what is in them."""
    memory, region = region_of(late, 2 * PIECE)
    memory[::PIECE] = 5
    source = values(PIECE)
    fill(late, memory, region, source, PIECE // 2, corners=True)
    late.arrive()
    half = PIECE // 2
    assert memory[0] == 5 and np.array_equal(memory[half:half + PIECE], source) and not memory[half + PIECE:].any()


@pytest.mark.parametrize("low, nbytes, corners, locked, staged", [
    (0, PIECE // 2, False, 1, 0), (4096, PIECE // 4, False, 0, 1), (4096, PIECE // 4, True, 1, 0),
    (PIECE - 4096, PIECE, False, 1, 1), (PIECE - 4096, PIECE, True, 2, 0)])
def test_a_corner_is_not_worth_the_memory(late, low, nbytes, corners, locked, staged):
    memory, region = region_of(late, 3 * PIECE)
    source = values(nbytes)
    fill(late, memory, region, source, low, corners)
    late.arrive()
    assert (len(region.locked), len(late.staged)) == (locked, staged)
    assert np.array_equal(memory[low:low + nbytes], source)
    assert not memory[:low].any() and not memory[low + nbytes:].any()


@pytest.mark.parametrize("refused", [{0}, {1}, {0, 1, 2}])
def test_what_the_driver_does_not_lock_is_staged(late, refused):
    late.refused = refused
    memory, region = region_of(late, 3 * PIECE)
    source = values(memory.nbytes)
    fill(late, memory, region, source)
    assert late.staged and region.locked == set(late.pieces) and not region.complete
    late.arrive()
    assert np.array_equal(memory, source)
    source[:], late.refused = 9, set()
    fill(late, memory, region, source)      # it may be locked later
    late.arrive()
    assert region.complete and (memory == 9).all()


@pytest.mark.parametrize("number", [0, 2])
def test_an_error_of_the_drivers(late, number):
    late.fails = number
    memory, region = region_of(late, 3 * PIECE)
    source = values(memory.nbytes)
    with pytest.raises(RuntimeError, match="error 700"):
        fill(late, memory, region, source)
    assert not late.queue and region.locked == set(late.pieces) and len(region.locked) == number + 1
    late.fails = None
    fill(late, memory, region, source)
    late.arrive()
    assert np.array_equal(memory, source)


@pytest.mark.parametrize("locked", [True, False])
def test_a_thread_without_a_context_gets_one(late, locked):
    memory, region = region_of(late, PIECE + 4096)
    source = values(memory.nbytes, 1)
    if locked:
        fill(late, memory, region, source)
        late.arrive()
        late.log.clear()
    source, late.without_context = values(memory.nbytes, 2), True
    fill(late, memory, region, source)
    assert not late.without_context and late.queue
    late.arrive()
    assert np.array_equal(memory, source)


def test_where_there_can_be_no_context_it_is_told(late):
    memory, region = region_of(late, PIECE)
    source = values(PIECE)
    fill(late, memory, region, source)
    late.arrive()
    late.without_context, late.runtime.setDevice = True, lambda number: None
    with pytest.raises(RuntimeError, match="201"):
        fill(late, memory, region, source)


def test_an_interrupt_forgets_no_locked_piece(late, monkeypatch):
    memory, region = region_of(late, 2 * PIECE)
    fills = late.crew.fill

    def interrupted(*args):
        fills(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(late.crew, "fill", interrupted)
    source = values(memory.nbytes)
    with pytest.raises(KeyboardInterrupt):
        fill(late, memory, region, source)
    assert not late.queue and region.locked == set(late.pieces) and region.complete


def test_several_threads_fill_at_once(late):
    """One of them with the help of the others, the rest alone."""
    made = [region_of(late, 2 * PIECE) for _ in range(4)]
    sources = [values(2 * PIECE, seed) for seed in range(4)]
    threads = [threading.Thread(target=fill, args=(late, memory, region, source))
               for (memory, region), source in zip(made, sources)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    late.arrive()
    assert all(np.array_equal(memory, source) for (memory, _), source in zip(made, sources))


@pytest.mark.parametrize("arguments", [
    ((0, 1), 1, (0, 4), 1, (0, 4, 4), 1, 1, bytearray(1)), ((1, 1), 1, (0, 4), 1, (0, 4, 4), 1, 1, bytearray(2)),
    ((1, 1), 1, (0, 8), 1, (0, 4, 4), 1, 1, bytearray(2)), ((1, 1), 1, (4, 4), 1, (0, 4, 4), 1, 1, bytearray(1)),
    ((1, 1), 1, (0, 4), 1, (0, 4, 0), 1, 1, bytearray(1)), ((1, 1), 1, (0, 4), 1, (0, 4, 4), 1, 0, bytearray(1))])
def test_numbers_that_make_no_sense(arguments):
    with pytest.raises(ValueError):
        _native.staging.Crew().fill(*arguments)
