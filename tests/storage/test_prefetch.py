"""`prefetch`: a copy to the host that begins before it is needed, beside other work."""
from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest

import lazyarray
from lazyarray.storage import handles
from lazyarray.storage.mirror.dirty_tracking import why_no_pages

MB = 1 << 20
#: Through the thread's buffer, through the driver, in one locked piece of memory, in several.
SIZES = [1, 1000, 2 * MB, 5 * MB, 40 * MB]


@pytest.fixture(autouse=True, params=[False, True], ids=["", "delayed"])
def delayed(request):
    """On the simulated device also with work that shows as wrong values until it is waited for."""
    device = lazyarray.device()
    if request.param and device.name != "simulated":
        pytest.skip("a real device is always late")
    with device.delayed() if request.param else contextlib.nullcontext():
        yield


def made(nbytes, value=7):
    x = lazyarray.asarray(np.full(nbytes, value - 1, np.uint8)) + np.uint8(1)
    lazyarray.device().synchronize()
    return x


def settle(x):
    """Compute what is recorded, so that only the copy is left."""
    handles.device_of(x)


@pytest.mark.parametrize("nbytes", SIZES)
class TestValues:
    def test_the_bytes_are_there_when_they_are_asked_for(self, nbytes):
        x = made(nbytes)
        lazyarray.prefetch(x)
        assert (np.asarray(x) == 7).all()

    def test_a_write_on_the_device_comes_after_the_copy_and_is_seen(self, nbytes):
        x = made(nbytes)
        lazyarray.prefetch(x)
        x += 1
        assert (np.asarray(x) == 8).all()

    def test_a_write_to_a_part(self, nbytes):
        x = made(nbytes)
        lazyarray.prefetch(x)
        x[nbytes // 2:] = 9
        expected = np.full(nbytes, 7, np.uint8)
        expected[nbytes // 2:] = 9
        assert np.array_equal(np.asarray(x), expected)

    def test_a_write_on_another_stream(self, nbytes):
        x = made(nbytes)
        lazyarray.prefetch(x)
        with lazyarray.device().new_stream():
            x += 1
        lazyarray.prefetch(x)
        x *= 2
        assert (np.asarray(x) == 16).all()

    def test_of_work_that_is_recorded_on_another_stream(self, nbytes):
        with lazyarray.device().new_stream():
            x = made(nbytes) * 2 + 1
        lazyarray.prefetch(x)
        assert (np.asarray(x) == 15).all()

    def test_alias_written_after(self, nbytes):
        x = made(nbytes)
        lazyarray.prefetch(x)
        np.asarray(x)[0] = 3
        assert x[0] == 3 and int(x.astype("i8").sum()) == 7 * nbytes - 4

    def test_what_is_deleted_meanwhile_harms_nobody(self, nbytes):
        for value in range(2, 6):
            x = made(nbytes, value)
            lazyarray.prefetch(x)
            del x
            y = made(nbytes, 99)        # may get the same memory, on both sides
            assert (np.asarray(y) == 99).all()
            del y


class TestEvents:
    def test_the_copy_is_told_when_it_begins_and_the_wait_when_it_ends(self):
        x = made(1000)
        settle(x)
        with lazyarray.trace() as t:
            lazyarray.prefetch(x)
            assert [(e.kind, e.nbytes, e.reason) for e in t] == [("materialise", 1000, "prefetch")]
            np.asarray(x)
        assert [e.kind for e in t] == ["materialise", "synchronise"]

    def test_what_is_on_the_host_already_is_not_copied_again(self):
        x = made(1000)
        np.asarray(x)
        with lazyarray.no_transfers():
            lazyarray.prefetch(x)
        y = made(1000)
        lazyarray.prefetch(y)
        with lazyarray.no_transfers():
            lazyarray.prefetch(y)
            assert (np.asarray(y) == 7).all()

    def test_it_is_a_transfer(self):
        x = made(1000)
        settle(x)
        with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError):
            lazyarray.prefetch(x)
        assert (np.asarray(x) == 7).all()

    def test_only_what_is_missing(self):
        x = made(8 * MB)
        np.asarray(x[:MB])
        settle(x)
        with lazyarray.trace() as t:
            lazyarray.prefetch(x)
        assert t.nbytes == 7 * MB
        with lazyarray.no_transfers():
            assert (np.asarray(x) == 7).all()

    def test_after_a_write_what_was_written_is_fetched_again(self):
        x = made(8 * MB)
        lazyarray.prefetch(x)
        x[:MB] = 1
        settle(x)
        with lazyarray.trace() as t:
            got = np.asarray(x)
        assert t.nbytes == MB and (got[:MB] == 1).all() and (got[MB:] == 7).all()


VIEWS = {
    "a slice": lambda a: a[100:900],
    "rows": lambda a: a[:, :500],
    "columns": lambda a: a[:, ::2],
    "transposed": lambda a: a.T,
    "a few columns": lambda a: a[:, 3:5],
    "backwards": lambda a: a[::-1, ::-7],
    "nothing": lambda a: a[5:5],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name):
    host = np.arange(1000 * 1200, dtype=np.float32).reshape(1000, 1200)
    x = lazyarray.asarray(host) * 2
    view = VIEWS[name](x)
    settle(x)
    with lazyarray.trace() as t:
        lazyarray.prefetch(view)
        assert t.nbytes < host.nbytes or name in ("transposed", "columns")
    with lazyarray.no_transfers():
        got = np.asarray(view)
    assert np.array_equal(got, VIEWS[name](host * 2)) and (not got.size or got.strides == VIEWS[name](host).strides)
    assert np.array_equal(np.asarray(x), host * 2)


def test_a_view_of_which_something_is_held():
    host = np.arange(1000 * 1200, dtype=np.float32).reshape(1000, 1200)
    x = lazyarray.asarray(host) * 2
    alias = np.asarray(x[500])
    alias[7] = -1
    lazyarray.prefetch(x[:, 2:9])
    host = host * 2
    host[500, 7] = -1
    assert np.array_equal(np.asarray(x[:, 2:9]), host[:, 2:9])
    assert np.array_equal(np.asarray(x), host)


def test_what_is_no_lazy_array_or_lives_on_the_host_is_left_alone():
    born = lazyarray.asarray(np.array(["a", "b"]))
    with lazyarray.no_transfers():
        lazyarray.prefetch(np.arange(3), 5, born, None)
        lazyarray.prefetch()
    assert born.tolist() == ["a", "b"]


def test_a_scalar():
    total = made(100).sum()
    lazyarray.prefetch(total)
    assert total == 700


def test_several_at_once():
    arrays = [made(3 * MB, value) for value in range(1, 5)]
    lazyarray.prefetch(*arrays)
    for value, x in enumerate(arrays, 1):
        assert (np.asarray(x) == value).all()


@pytest.mark.together
def test_what_gpu_code_held_is_fetched():
    x = made(1000)
    np.asarray(x)
    handle = lazyarray.asdevice(x)
    handle[...] = 5
    del handle
    lazyarray.prefetch(x)
    with lazyarray.no_transfers():
        assert (np.asarray(x) == 5).all()


@pytest.mark.together
def test_what_gpu_code_holds_is_not_trusted():
    device = lazyarray.device()
    x = made(1000)
    handle = lazyarray.asdevice(x)
    lazyarray.prefetch(x)
    handle[...] = 5
    assert (np.asarray(x) == 5).all()
    y = made(1000)
    lazyarray.prefetch(y)
    handle = lazyarray.asdevice(y)
    handle[...] = 6
    device.synchronize()
    assert (np.asarray(y) == 6).all()


@pytest.mark.parametrize("reader", [np.asarray, lambda x: x.tolist(), lambda x: x.ctypes.data, lambda x: x[3] == 7,
                                    lambda x: (x + 1).tolist(), lambda x: np.sort(x).tolist(), lambda x: x.data, repr])
def test_every_way_to_the_host_waits(reader):
    x = made(1000)
    lazyarray.prefetch(x)
    reader(x)
    assert x.tolist() == [7] * 1000


def test_beyond_the_limit_of_page_locked_memory():
    with lazyarray.options(pool_bytes=0):
        x = made(40 * MB)
        lazyarray.prefetch(x)
        assert (np.asarray(x) == 7).all()


def test_by_many_threads():
    arrays = [made(5 * MB, value) for value in range(1, 5)]
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(15):
            value = int(rng.integers(4))
            x = arrays[value]
            if rng.random() < 0.6:
                lazyarray.prefetch(x)
            elif not (np.asarray(x) == value + 1).all():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(lazyarray.device().name != "simulated", reason="asks for several devices")
def test_on_several_devices():
    device = lazyarray.device()
    with device.with_count(2):
        with device.on(1):
            x = made(5 * MB)
        lazyarray.prefetch(x)
        assert (np.asarray(x) == 7).all()
        with device.on(1):
            x += 1
        lazyarray.prefetch(x)
        assert (np.asarray(x) == 8).all()


@pytest.mark.skipif(why_no_pages() is not None, reason="needs the kernel's write tracking")
def test_memory_that_the_device_fills_unseen_is_armed_meanwhile(monkeypatch):
    """As on CUDA, in memory of which the kernel has marks from the array before."""
    device = lazyarray.device()
    monkeypatch.setattr(device, "writes_unseen", True, raising=False)
    if device.name == "simulated":
        def begin(source, target):
            target[...] = source.get()      # a copy that marks no pages would do this later
            return lambda: None

        monkeypatch.setattr(device, "download_begin", begin)
    for value in range(3, 7):
        x = made(40 * MB, value)
        lazyarray.prefetch(x)
        alias = np.asarray(x)
        with lazyarray.no_transfers():
            assert int(x[5]) == value
        assert not alias[1:].min() != value
        alias[::3 * MB] = 9
        assert int((x == 9).sum()) == 14
        alias[:] = 77
        del alias
