"""Uploads of pageable memory in C, on a driver made of memory: a copy happens when somebody waits for it, no sooner."""
from __future__ import annotations

import itertools
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from late_driver import MB, Late

from lazyarray import _native
from lazyarray.devices.cuda.copies import crew as crews
from lazyarray.devices.cuda.copies import staged_upload
from lazyarray.devices.cuda.driver import found

if _native.staging is None:
    pytest.skip("the part in C was not compiled", allow_module_level=True)


class Event:
    numbers = itertools.count(1)

    def __init__(self, late):
        self.late, self.ptr = late, next(Event.numbers)
        late.record(self.ptr, None)

    def synchronize(self):
        self.late.wait(self.ptr)


@pytest.fixture
def late():
    return Late()


@pytest.fixture(params=[0, 16], ids=["aligned", "unaligned"])
def staging(request, late, monkeypatch):
    monkeypatch.setattr(staged_upload, "cores", lambda: 4)

    def alloc(nbytes):
        memory = np.empty(nbytes + 128, np.uint8)
        return SimpleNamespace(ptr=memory.ctypes.data + -memory.ctypes.data % 64 + request.param, memory=memory)

    runtime = SimpleNamespace(memcpyAsync=None, getDevice=lambda: 0, setDevice=lambda number: None, streamPerThread=2)
    copies = SimpleNamespace(driver=late.driver, crew=crews.CrewInC(), runtime=runtime, alloc=alloc,
                             event=lambda stream: Event(late), error=lambda code: RuntimeError(f"error {code}"))
    return staged_upload.Staging(copies)


def stream_of(late, pointer=7):
    return SimpleNamespace(ptr=pointer, synchronize=lambda: late.arrive(len(late.issued)))


@pytest.mark.parametrize("nbytes", [1, 255, 257, 4 * MB, 5 * MB + 13, 60 * MB + 4097])
def test_all_arrives_although_the_memory_changes(staging, late, nbytes):
    memory, target = np.empty(nbytes + 2, np.uint8), np.zeros(nbytes, np.uint8)
    for seed in range(3):
        source = memory[seed:seed + nbytes]
        source[:] = expected = np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)
        staging.upload(target.ctypes.data, source.ctypes.data, nbytes, stream_of(late))
        source[:] = 0
        late.arrive(len(late.issued))
        assert np.array_equal(target, expected)


def test_the_last_copies_are_under_way_on_return(staging, late):
    source, target = np.ones(40 * MB, np.uint8), np.zeros(40 * MB, np.uint8)
    staging.upload(target.ctypes.data, source.ctypes.data, source.nbytes, stream_of(late))
    assert 0 < late.done < len(late.issued)


def test_on_the_default_stream_of_a_thread_none_is(staging, late):
    source, target = np.ones(40 * MB, np.uint8), np.zeros(40 * MB, np.uint8)
    staging.upload(target.ctypes.data, source.ctypes.data, source.nbytes, stream_of(late, 2))
    assert late.done == len(late.issued) and target.all()


@pytest.mark.parametrize("number", [0, 5, 11])
def test_an_error_of_the_driver_s(staging, late, number):
    source, target = np.ones(40 * MB, np.uint8), np.zeros(40 * MB, np.uint8)
    late.refused = number
    with pytest.raises(RuntimeError, match="error 700"):
        staging.upload(target.ctypes.data, source.ctypes.data, source.nbytes, stream_of(late))
    assert late.done == len(late.issued) == number
    late.refused = None
    staging.upload(target.ctypes.data, source.ctypes.data, source.nbytes, stream_of(late))
    late.arrive(len(late.issued))
    assert target.all()


def test_the_other_threads_go_on_meanwhile(staging, late):
    """Nobody has the interpreter while bytes are moved: a thread that does nothing else gets on."""
    went_on, over = [0], threading.Event()

    def count():
        while not over.is_set():
            went_on[0] += 1

    thread = threading.Thread(target=count)
    source, target = np.ones(40 * MB, np.uint8), np.zeros(40 * MB, np.uint8)
    thread.start()
    before = went_on[0]
    for _ in range(5):
        staging.upload(target.ctypes.data, source.ctypes.data, source.nbytes, stream_of(late))
    over.set()
    thread.join()
    assert went_on[0] > before


def test_each_thread_has_the_context_of_who_uploads(staging, late):
    source, target = np.ones(40 * MB, np.uint8), np.zeros(40 * MB, np.uint8)
    for late.current in (0x77, 0x77, 0x88):
        staging.upload(target.ctypes.data, source.ctypes.data, source.nbytes, stream_of(late))
    late.arrive(len(late.issued))
    assert target.all() and set(late.used) <= {0x77, 0x88} and len(late.used) <= 6


def test_threads_without_a_context_leave_it_to_the_others(staging, late):
    source, target = np.ones(40 * MB, np.uint8), np.zeros(40 * MB, np.uint8)
    late.unusable = 201
    staging.upload(target.ctypes.data, source.ctypes.data, source.nbytes, stream_of(late))
    late.arrive(len(late.issued))
    assert target.all()
    late.lost = 3
    with pytest.raises(RuntimeError, match="error 3"):
        staging.upload(target.ctypes.data, source.ctypes.data, source.nbytes, stream_of(late))


def test_uploads_of_several_threads_follow_one_another(staging, late):
    sources = [np.full(20 * MB, i + 1, np.uint8) for i in range(4)]
    targets = [np.zeros(20 * MB, np.uint8) for _ in sources]
    threads = [threading.Thread(target=staging.upload, args=(t.ctypes.data, s.ctypes.data, s.nbytes, stream_of(late)))
               for s, t in zip(sources, targets)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    late.arrive(len(late.issued))
    assert all(np.array_equal(s, t) for s, t in zip(sources, targets))


def test_its_threads_end_with_it(late):
    crew = crews.CrewInC()
    threads = set(threading.enumerate())
    assert crew.send(3, late.driver, b"", np.zeros(6, np.uint64), 0, 0, 0) == 0
    made = set(threading.enumerate()) - threads
    assert len(made) == 2
    del crew
    for thread in made:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("functions, parts, buffers, threads", [
    ((0, 1, 1, 1, 1), b"\0" * 16, b"\0" * 16, 1), ((1, 1, 1, 1, 0), b"\0" * 16, b"\0" * 16, 1),
    ((1,) * 5, b"\0" * 15, b"\0" * 16, 1), ((1,) * 5, b"\0" * 16, b"", 1), ((1,) * 5, b"\0" * 16, b"\0" * 9, 1),
    ((1,) * 5, b"\0" * 16, b"\0" * 16, 0), ((1,) * 5, b"\0" * 16, b"\0" * 16, 65),
])
def test_arguments_that_do_not_fit(functions, parts, buffers, threads):
    with pytest.raises(ValueError, match="needed"):
        _native.staging.Crew().send(functions, parts, buffers, threads, 0, 0, 0)


def test_a_driver_that_is_not_there(monkeypatch):
    monkeypatch.setattr("lazyarray.devices.cuda.driver.LIBRARY", "libno-such-driver.so.9")
    assert found() is None
    monkeypatch.setattr("lazyarray.devices.cuda.driver.LIBRARY", "libc.so.6")      # which has other names
    assert found() is None
