"""Streams, threads and several devices: an array waits for the work that made it, and is used where it lies.

On the simulated device the tests run with delayed work, where a wait that is missing shows as a wrong value.
"""
from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest

import lazyarray

N = 4096


@pytest.fixture(autouse=True)
def delayed():
    device = lazyarray.device()
    with device.delayed() if device.name == "simulated" else contextlib.nullcontext():
        yield


def slow_work(n=N):
    """An array whose last write is still under way on the current stream."""
    x = lazyarray.asarray(np.zeros(n))
    for _ in range(50):
        x = x + 1
    return x


READS = {
    "computation": lambda x: (x + 1) - 1,
    "in place": lambda x: x.__iadd__(0),
    "reduction": lambda x: lazyarray.asarray([float(x.sum())] * 2) / N,
    "asarray": lambda x: np.asarray(x),
    "element": lambda x: x[3],
    "view": lambda x: x[1:] * 1,
    "function": lambda x: np.concatenate([x, x]),
    "fancy": lambda x: x[[0, 5]],
    "tolist": lambda x: np.array(x.tolist()),
    "copy": lambda x: x.copy(),
    "mask": lambda x: x[x > 0],
    "device library": lambda x: lazyarray.device().xp.asarray(lazyarray.asdevice(x)),
}


def value(found):
    return found.get() if isinstance(found, lazyarray.device().array_type) else np.asarray(found)


@pytest.mark.parametrize("read", READS)
def test_an_array_made_on_one_stream_is_read_on_another(read):
    device = lazyarray.device()
    with device.new_stream():
        x = slow_work()
    with device.new_stream():
        assert (value(READS[read](x)) == 50).all()


@pytest.mark.together
@pytest.mark.parametrize("read", READS)
def test_an_array_made_in_one_thread_is_read_in_another(read):
    device, made, found = lazyarray.device(), [], []

    def make():
        with device.new_stream():
            made.append(slow_work())

    def look():
        with device.new_stream():
            found.append(value(READS[read](made[0])))

    for work in (make, look):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert (found[0] == 50).all()


def test_a_write_on_one_stream_waits_for_a_read_on_another():
    device = lazyarray.device()
    x = slow_work()
    with device.new_stream():
        y = x * 2
    with device.new_stream():
        x[...] = -1
    assert (np.asarray(y) == 100).all()
    assert (np.asarray(x) == -1).all()


def test_a_written_array_is_read_where_it_was_made():
    device = lazyarray.device()
    x = slow_work()
    with device.new_stream():
        x += 1
    assert (np.asarray(x * 1) == 51).all()


def test_a_scalar_crosses_streams():
    device = lazyarray.device()
    with device.new_stream():
        s = slow_work().sum()
    with device.new_stream():
        assert float(s + 1) == 50 * N + 1


def test_memory_that_another_stream_reads_is_not_given_away():
    device = lazyarray.device()
    first, second = device.new_stream(), device.new_stream()
    results = []
    for _ in range(20):
        with first:
            x = slow_work()
        with second:
            results.append(x * 2)
        del x
        with first:
            lazyarray.asarray(np.full(N, -1.0))
    for y in results:
        assert (np.asarray(y) == 100).all()


@pytest.fixture
def second_device():
    device = lazyarray.device()
    if device.name == "simulated":
        with device.with_count(2):
            yield device
    elif device.count < 2:
        pytest.skip("one GPU here")
    else:
        yield device


@pytest.mark.together
def test_an_array_on_another_device_is_used_where_it_lies(second_device):
    device = second_device
    with device.on(1):
        x = lazyarray.asarray(np.arange(6.0).reshape(2, 3))
    with lazyarray.no_transfers():
        y = x * 2 + x
        z = np.concatenate([y, x])
        s = x.sum()
        x += 1
        top = x[0]
    for made in (x, y, z, top):
        assert device.device_of(lazyarray.asdevice(made)) == 1
    assert float(s) == 15
    assert np.asarray(y).tolist() == (np.arange(6.0).reshape(2, 3) * 3).tolist()
    assert np.asarray(x)[0].tolist() == [1, 2, 3]
    x[0] = 7
    assert np.asarray(np.sort(x, axis=None))[-3:].tolist() == [7, 7, 7]


@pytest.mark.together
@pytest.mark.parametrize("read", READS)
def test_what_one_stream_uploads_is_read_on_another(read):
    device = lazyarray.device()
    x = slow_work()
    alias = np.asarray(x)
    alias[:] = 7
    with device.new_stream():
        x + 1       # uploads what the alias wrote
    with device.new_stream():
        found = value(READS[read](x))
    assert found.tolist() == value(READS[read](lazyarray.asarray(np.full(N, 7.0)))).tolist()


@pytest.mark.parametrize("read", [name for name in READS if name != "device library"])      # it wants its own device
def test_what_was_written_on_another_device_is_read_from_here(second_device, read):
    with second_device.on(1):
        x = lazyarray.asarray(np.zeros(N))
    x += 1
    x[1:] = 3
    alias = np.asarray(x)
    alias[:2] = 7
    assert value(READS[read](x)).tolist() == value(READS[read](lazyarray.asarray(alias.copy()))).tolist()
    x *= 2
    assert alias[:3].tolist() == [14, 14, 6]


def test_a_write_that_cannot_begin_lets_go_of_the_lock_and_of_the_device(second_device, monkeypatch):
    device, before = second_device, second_device.number()
    with device.on(1):
        x = lazyarray.asarray(np.zeros(N))
    alias = np.asarray(x)
    alias[0] = 1        # has to be uploaded before the device writes

    def fail(*args):
        raise MemoryError("no room on the device")

    monkeypatch.setattr("lazyarray.storage.transfer.upload", fail)
    with pytest.raises(MemoryError):
        x += 1
    monkeypatch.undo()
    assert device.number() == before
    seen = []
    other = threading.Thread(target=lambda: seen.append((x + 1).tolist()[:2]), daemon=True)
    other.start()
    other.join(20)
    assert seen == [[2, 1]], "another thread waits for ever"


@pytest.mark.skipif(lazyarray.device().name != "cuda", reason="a stream of CUDA's own")
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("n", [N, 1 << 20])
def test_the_default_stream_of_a_thread(read, n):
    """Its pointer names another stream in each thread, and it is no stream object of the device library's own kind."""
    with lazyarray.device().xp.cuda.Stream.ptds:
        expected = READS[read](np.full(n, 50.0))
        x = slow_work(n)
        found = READS[read](x)
        assert np.array_equal(value(found), value(expected))
        assert np.array_equal(np.asarray(x[x > 49]), np.full(n, 50.0))
        assert np.array_equal(np.asarray(x), np.full(n, 50.0))
    assert np.array_equal(np.asarray(x + 1), np.full(n, 51.0))
