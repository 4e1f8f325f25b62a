"""What the library asks of a device, on whichever device is current, and CuPy's ways on the simulated one."""

from __future__ import annotations

import gc
import math
import os
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from lazyarray import devices
from lazyarray.devices.base import HOLDABLE
from lazyarray.devices.simulated import api

simulated_only = pytest.mark.skipif(
    devices.why().device == "cuda", reason="the simulated device's own behaviour"
)


@pytest.fixture
def device():
    return devices.current()


@pytest.fixture
def xp(device):
    return device.xp


def up(device, values):
    values = np.asarray(values)
    dense = np.ascontiguousarray(values).reshape(values.shape)
    target = device.empty(dense.shape, dense.dtype)
    device.upload(dense, target)
    return target


def down(device, d):
    target = np.empty(d.shape, d.dtype)
    device.download(device.contiguous(d), target)
    return target


LAYOUTS = {
    "C": lambda a: a,
    "transposed": lambda a: a.T,
    "strided": lambda a: a[1::2, ::3],
    "reversed": lambda a: a[::-1, ::-2],
    "middle": lambda a: a[1:3, 2:4],
    "0-d": lambda a: a[2, 3, ...],
    "empty": lambda a: a[:0],
    "one row": lambda a: a[1:2],
}


# The interface.


@pytest.mark.parametrize("dtype", sorted(HOLDABLE, key=str), ids=str)
def test_values_come_back_as_they_went(device, dtype):
    values = np.arange(24).reshape(4, 6).astype(dtype)
    found = down(device, up(device, values))
    assert found.dtype == dtype and np.array_equal(found, values)


def test_the_source_of_an_upload_may_be_reused(device):
    values = np.ones(100_000)
    d = up(device, values)
    values[:] = 2
    assert (down(device, d) == 1).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_extent_block_and_view_agree_with_numpy(device, layout):
    values = np.arange(24.0).reshape(4, 6)
    root = up(device, values)
    d, host = LAYOUTS[layout](root), LAYOUTS[layout](values)
    low, high = device.extent(d)
    assert (high - low == 0) if not host.size else np.lib.array_utils.byte_bounds(host)[1] - host.ctypes.data >= 0
    number, start, nbytes = device.allocation(d)
    assert number == device.device_of(d) and nbytes >= values.nbytes or not host.size
    block, offset = device.block(d)
    assert block.dtype == np.uint8 and block.ndim == 1 and block.shape[0] == high - low
    again = device.view(block, host.shape, host.dtype, d.strides, offset)
    assert np.array_equal(down(device, again), host)
    if host.size:
        bounds = np.lib.array_utils.byte_bounds(host)
        assert low - start == bounds[0] - values.ctypes.data and high - low == bounds[1] - bounds[0]
        assert device.first(d) - low == host.ctypes.data - bounds[0] == offset
        device.assign(again, 7)
        host[...] = 7
        assert np.array_equal(down(device, root), values)


def test_contiguous_copies_only_what_is_not(device, xp):
    d = up(device, np.arange(6.0).reshape(2, 3))
    assert device.contiguous(d) is d
    copy = device.contiguous(d.T)
    assert copy.flags.c_contiguous and device.extent(copy)[0] != device.extent(d)[0]
    assert np.array_equal(down(device, copy), np.arange(6.0).reshape(2, 3).T)


def test_assign_broadcasts_and_casts(device, xp):
    d = up(device, np.zeros((2, 3), np.float32))
    device.assign(d[1], up(device, np.arange(3)))
    device.assign(d[:, 0], 5)
    assert down(device, d).tolist() == [[5, 0, 0], [5, 1, 2]]


FORMS = {
    "whole": (lambda a: a, (4, 6)), "part": (lambda a: a[1:3, 2:4], (2, 2)), "column": (lambda a: a[:, 1], (4,)),
    "reversed": (lambda a: a[::-1, ::-2], (4, 3)), "transposed": (lambda a: a.T, (6, 4)),
    "one": (lambda a: a[1, 2, ...], ()), "none": (lambda a: a[:0], (0, 6))}


@pytest.mark.parametrize("pair", ["f8 f8", "f4 f8", "i4 f8", "? i2", "c8 c16", "f8 f4", "i8 u1", "f8 c8", "f2 f4"])
@pytest.mark.parametrize("form", FORMS)
def test_assign_sets_elements_as_numpy_does(device, pair, form):
    source, target = map(np.dtype, pair.split())
    part, shape = FORMS[form]
    values = (np.arange(200) % 50).astype(source)
    sources = [values[:math.prod(shape)].reshape(shape), values[3:3 + 2 * math.prod(shape):2].reshape(shape)]
    if shape:
        sources += [values[:shape[-1]], values[:1].reshape(()), values[:math.prod(shape)].reshape(shape[::-1]).T]
    for _ in range(3):      # by kernels that are compiled meanwhile, too
        for given in sources:
            host, d = np.ones((4, 6), target), up(device, np.ones((4, 6), target))
            flat = up(device, values)
            start = given.__array_interface__["data"][0] - values.ctypes.data
            seen = device.view(flat, given.shape, source, given.strides, start) if (
                np.may_share_memory(given, values)) else up(device, given)
            device.assign(part(d), seen)
            part(host)[...] = given
            np.testing.assert_array_equal(down(device, d), host)
        if hasattr(device, "kernels"):
            device.kernels.wait()


@pytest.mark.parametrize("shape", [(2,), (3,), (1, 4, 6), (5, 6), (4, 1, 6), (6, 4), (0, 6)])
def test_assign_refuses_what_does_not_broadcast(device, shape):
    """Each time, also once kernels are compiled for what does."""
    for turn in range(4):
        d = up(device, np.zeros((4, 6)))
        for good in ((4, 6), (6,), (1, 6), (4, 1)):
            device.assign(d[:, ::-1], up(device, np.ones(good)))
        if shape == (1, 4, 6):      # CuPy, like NumPy, takes leading axes of one
            device.assign(d[:, ::-1], up(device, np.full(shape, 7.0)))
            assert (down(device, d) == 7).all()
            continue
        with pytest.raises(ValueError):
            device.assign(d[:, ::-1], up(device, np.full(shape, 7.0)))
        assert (down(device, d) == 1).all(), turn
        if hasattr(device, "kernels"):
            device.kernels.wait()


def test_assign_reads_what_it_writes_before(device):
    for one, other in (((0, 3), (1, 4)), ((1, 4), (0, 3)), ((0, 4), (0, 4)), ((0, 2), (2, 4))):
        for turned in (False, True):
            values = np.arange(16.0).reshape(4, 4)
            for _ in range(3):
                d = up(device, values)
                given = d[slice(*other)].copy()
                target, source = d[slice(*one)], d[slice(*other)]
                if turned:
                    target = target[:, ::-1]
                device.assign(target, source)
                expected = values.copy()
                expected[slice(*one)][:, ::-1 if turned else 1] = down(device, given)
                np.testing.assert_array_equal(down(device, d), expected)
                if hasattr(device, "kernels"):
                    device.kernels.wait()


def test_a_loan_ends_with_the_last_array_made_from_it(device):
    d = up(device, np.arange(6.0))
    lent, token = device.lend(d)
    alive = weakref.ref(token)
    del token
    assert device.extent(lent) == device.extent(d) and device.allocation(lent) == device.allocation(d)
    part = lent[2:].reshape(2, 2).T
    del lent, d
    gc.collect()
    assert alive() is not None
    device.assign(part, 9)
    capsule = part.__dlpack__()
    del part
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None


class Exports:
    def __init__(self, array):
        self.array = array


class ByInterface(Exports):
    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


class ByMethod(Exports):
    def __cupy_get_ndarray__(self):
        return self.array


class ByCapsule(Exports):
    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class ByOldCapsule(ByCapsule):
    def __dlpack__(self, stream=None):
        return self.array.__dlpack__(stream=stream)


class InStream:
    """Whatever is asked of an exporter, it answers with another stream as the current one."""

    def __init__(self, exporter, stream):
        self.exporter, self.stream = exporter, stream

    def __getattr__(self, name):
        with self.stream:
            found = getattr(self.exporter, name)
        return self._in_stream(found) if callable(found) else found

    def _in_stream(self, function):
        def call(**options):
            with self.stream:
                return function(**options)

        return call


@pytest.mark.parametrize("export", [lambda a: a, ByInterface, ByMethod, ByCapsule, ByOldCapsule])
@pytest.mark.parametrize("layout", ["C", "transposed", "reversed", "0-d"])
def test_foreign_arrays_are_shared(device, export, layout):
    root = up(device, np.arange(24.0).reshape(4, 6))
    d = LAYOUTS[layout](root)
    found = device.from_foreign(export(d))
    assert type(found) is device.array_type
    assert device.first(found) == device.first(d) and device.extent(found) == device.extent(d)
    device.assign(found, -1)
    assert (down(device, d) == -1).all()


@pytest.mark.parametrize("obj", [np.ones(3), [1, 2], 3.0, None, "text", object()], ids=lambda obj: type(obj).__name__)
def test_what_is_not_on_the_device_is_not_foreign(device, obj):
    assert device.from_foreign(obj) is None


def test_dtypes_that_the_device_can_hold(device):
    for dtype in HOLDABLE:
        assert device.can_hold(dtype)
    for name in (">f8", "S3", "U2", "M8[s]", "m8[ns]", "O", "V4", "i4,f4", "g", "G"):
        if np.dtype(name) not in HOLDABLE:
            assert not device.can_hold(np.dtype(name)), name


def test_streams(device):
    here = device.stream()
    assert here == device.stream() and hash(here) == hash(device.stream()) and {here: 1}[device.stream()] == 1
    other = device.new_stream()
    with other:
        assert device.stream() != here
        d = up(device, np.arange(1000.0))
        d += 1
        there = device.stream()
    assert device.stream() == here
    device.wait(there)
    assert np.array_equal(down(device, d * 2), (np.arange(1000.0) + 1) * 2)
    device.order(here, there)
    device.order(here, here)
    device.synchronize()


def test_the_current_stream_is_each_threads_own(device):
    found = []
    with device.new_stream():
        mine = device.stream()
        thread = threading.Thread(target=lambda: found.append(device.stream()))
        thread.start()
        thread.join()
    assert found[0] != mine


def test_the_current_device_needs_no_switch(device):
    with device.on(0), device.on(0):
        assert device.device_of(device.empty((3,), np.dtype("f4"))) == 0


def test_its_text_names_it(device):
    assert repr(device) == f"<lazyarray device {device.name!r}, count {device.count}>"


def test_the_process_may_use_the_device(device):
    assert device.usable() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_told(device):
    up(device, np.ones(3))
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, (device.usable() or "usable").encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert b"forked" in os.read(read, 1000)
    os.close(read)
    assert device.usable() is None


# How CuPy differs from NumPy, which the simulated device must show too.


def test_device_arrays_refuse_to_become_host_arrays(device, xp):
    d = xp.ones(3)
    for convert in (np.asarray, np.array, memoryview, lambda a: np.ones(3) + a, lambda a: a + np.ones(3)):
        with pytest.raises(TypeError):
            convert(d)
    with pytest.raises((TypeError, ValueError)):
        d[:] = np.ones(3)
    assert d.get().tolist() == xp.asnumpy(d).tolist() == [1, 1, 1]


def test_host_arrays_are_uploaded_when_asked(device, xp):
    host = np.arange(3.0)
    for made in (xp.asarray(host), xp.array([host, host])[1], xp.asarray([0.0, 1.0, 2.0]), xp.array((host,))[0]):
        assert type(made) is device.array_type and down(device, made).tolist() == [0, 1, 2]
    shared = xp.asarray(made)
    assert device.first(shared) == device.first(made)
    host[:] = 5
    assert down(device, xp.stack([made, xp.asarray(host)])).tolist() == [[0, 1, 2], [5, 5, 5]]


@pytest.mark.parametrize("bad", [[1.0, 2.0, 3.0], np.ones(3), "a", object(), None], ids=lambda bad: type(bad).__name__)
def test_ufuncs_take_arrays_and_scalars_only(xp, bad):
    with pytest.raises(TypeError):
        xp.add(xp.ones(3), bad)


def test_reductions_and_integer_indexes_give_0d_arrays(device, xp):
    d = xp.arange(6.0).reshape(2, 3)
    reduced = [d.sum(), xp.mean(d), d.max(), xp.argmax(d), xp.allclose(d, d), xp.count_nonzero(d), d[0] @ d[1]]
    for value in (*reduced, d[0, 1]):
        assert type(value) is device.array_type and value.shape == ()
    d[0, 1][...] = 50  # A view, where NumPy's is a scalar.
    assert down(device, d)[0, 1] == 50


def test_index_arrays_wrap_around(device, xp):
    d = xp.arange(4.0)
    assert down(device, d[xp.asarray([1, 5, -1, -6])]).tolist() == [1, 1, 3, 2]
    assert down(device, d.take(xp.asarray([4, 7]))).tolist() == [0, 3]
    d[xp.asarray([4])] = 9
    d.put(xp.asarray([5]), xp.asarray([8.0]))
    xp.add.at(d, xp.asarray([6, 6]), 1)
    assert down(device, d).tolist() == [9, 8, 4, 3]
    grid = xp.arange(6).reshape(2, 3)
    assert down(device, grid[:, xp.asarray([[3], [-4]])]).tolist() == [[[0], [2]], [[3], [5]]]
    assert down(device, grid[xp.asarray([2]), 1]).tolist() == [1]
    along = xp.take_along_axis(grid, xp.asarray([[4], [-1]]), 1)
    assert down(device, along).tolist() == [[1], [5]]
    assert down(device, xp.ravel_multi_index((xp.asarray([2]), xp.asarray([1])), (2, 3))).tolist() == [1]
    with pytest.raises(IndexError):
        d[4]


def test_masks_index_as_in_numpy(device, xp):
    values = np.arange(12.0).reshape(3, 4)
    d = xp.asarray(values)
    mask = values % 3 == 0
    assert np.array_equal(down(device, d[xp.asarray(mask)]), values[mask])
    d[xp.asarray(mask)] = -1
    values[mask] = -1
    d[:, xp.asarray(mask[0])] = 5
    values[:, mask[0]] = 5
    assert np.array_equal(down(device, d), values)


@simulated_only
def test_of_duplicates_in_an_assignment_not_the_last_one_stays(device, xp):
    d = xp.zeros(3)
    d[xp.asarray([1, 1])] = xp.asarray([5.0, 6.0])
    assert down(device, d).tolist() == [0, 5, 0]


@pytest.mark.parametrize(
    ("name", "keywords"),
    [("sum", {"where": True}), ("mean", {"where": True}),
     ("sum", {"initial": 0}), ("sort", {"order": None}), ("take", {"mode": "clip"}), ("clip", {"a_min": 0}),
     ("linalg.svd", {"hermitian": True}), ("concatenate", {"order": "C"})],
)  # fmt: skip
def test_keywords_that_cupy_lacks_are_refused(xp, name, keywords):
    function = xp
    for part in name.split("."):
        function = getattr(function, part)
    with pytest.raises(TypeError):
        function(xp.ones((2, 2)), **keywords)


@pytest.mark.parametrize("dtype", "bBhHiIlLqQ")
@pytest.mark.parametrize("length", [1, 7, 40_000, 3_000_001])
def test_the_extremes_of_integers(device, dtype, length):
    limits, random = np.iinfo(dtype), np.random.default_rng(length)
    values = random.integers(limits.min, limits.max, length, dtype, endpoint=True)
    d = up(device, values)
    views = [(d, values), (d[::3], values[::3]), (d.reshape(-1, 1).T, values)]
    for _ in range(2):
        for view, plain in views:
            assert down(device, device.extremes(view)).tolist() == [plain.min(), plain.max()]
        getattr(device, "kernels", None) and device.kernels.wait()      # which were asked for


@simulated_only
@pytest.mark.parametrize("reduce", [
    lambda xp, a, out: a.min(out=out), lambda xp, a, out: xp.min(a, out=out), lambda xp, a, out: xp.amin(a, None, out),
    lambda xp, a, out: xp.ptp(a, out=out)])
def test_the_least_of_an_array_takes_no_output(xp, reduce):
    with pytest.raises(TypeError, match="NotImplemented"):
        reduce(xp, xp.arange(4), xp.empty((), int))


@pytest.mark.parametrize("name", ["spacing", "isnat", "vecdot", "vecmat", "matvec", "linalg.multi_dot", "nosuchname"])
def test_names_that_cupy_lacks_are_missing(xp, name):
    with pytest.raises(AttributeError):
        for part in name.split("."):
            xp = getattr(xp, part)


def test_ufunc_methods_are_cupys(device, xp):
    d = xp.arange(6.0).reshape(2, 3)
    assert down(device, xp.add.reduce(d)).tolist() == [3, 5, 7]
    assert down(device, xp.multiply.accumulate(d, axis=1))[1].tolist() == [3, 12, 60]
    assert xp.subtract.outer(d[0], d[1]).shape == (3, 3)
    for method in (xp.maximum.reduce, xp.subtract.accumulate, xp.multiply.reduceat):
        with pytest.raises(NotImplementedError):
            method(d, *([xp.asarray([0])] if method == xp.multiply.reduceat else []))
    with pytest.raises(NotImplementedError):
        xp.multiply.at(d, xp.asarray([0]), 2)
    with pytest.raises(TypeError):
        xp.subtract.at(d, xp.asarray([0]), 2)  # Only for 32-bit integers.
    with pytest.raises(TypeError):
        xp.add(d, d, where=d > 0)


def test_ufuncs_write_into_out(device, xp):
    d, out = xp.arange(3.0), xp.zeros(3)
    assert xp.add(d, 1, out) is out and xp.multiply(out, 2, out=out) is out
    out += d
    assert down(device, out).tolist() == [2, 5, 8]
    with pytest.raises(TypeError):
        xp.add(d, 1, out=np.zeros(3))


def test_numpys_protocols_reach_the_device(device, xp):
    d = xp.arange(4.0)
    called = [np.add(d, 1), np.exp(d), np.sum(d), np.concatenate([d, d]), np.linalg.norm(d)]
    for value in (*called, 2 * d, np.float32(2) * d):
        assert type(value) is device.array_type
    assert np.add(d, np.float64(1), out=d) is d


@pytest.mark.parametrize("values", [np.array(["a"]), np.array([None]), np.array(["2020"], "M8[s]"), np.ones(2, ">f8")])
def test_dtypes_that_cupy_cant_hold_are_refused(xp, values):
    if values.dtype.str == ">f8":
        assert xp.asarray(values).dtype.isnative
    else:
        with pytest.raises((ValueError, TypeError)):
            xp.asarray(values)


def test_a_singular_matrix_is_not_noticed(device, xp):
    assert not np.isfinite(down(device, xp.linalg.inv(xp.zeros((2, 2))))).all()


def test_running_out_of_memory_is_a_fault(device, xp):
    pool = xp.get_default_memory_pool()
    gc.collect()
    pool.free_all_blocks()
    most = pool.total_bytes() + (1 << 20)
    pool.set_limit(size=most)
    try:
        kept = xp.zeros(1000)
        assert pool.used_bytes() >= kept.nbytes
        with pytest.raises(MemoryError) as caught:
            xp.zeros(most // 8 + 1)     # of memory that is kept, a free part is no matter of the limit
        assert isinstance(caught.value, device.faults) and "llocating" in str(caught.value)
        del kept
        for _ in range(100):  # What is no longer held can be had again.
            xp.zeros(100_000)
    finally:
        pool.set_limit(size=0)


# Only the simulated device.


@simulated_only
class TestDelay:
    """Work that is not waited for shows as wrong values."""

    @pytest.fixture(autouse=True)
    def delayed(self, device):
        with device.delayed():
            self.device, self.other = device, device.new_stream()
            yield

    def test_one_stream_needs_no_wait(self, xp):
        d = xp.arange(5)
        d += 1
        assert down(self.device, d * 2).tolist() == [2, 4, 6, 8, 10]

    @pytest.mark.parametrize("values", [np.arange(1, 4), np.ones(3), np.ones(3, bool), np.ones(3, "c8"), np.ones(())])
    def test_a_read_on_another_stream(self, values):
        d = up(self.device, values)
        with self.other:
            assert not np.array_equal(down(self.device, d), values)
            assert not np.array_equal(down(self.device, d.copy()), values)

    def test_waiting_helps(self, xp):
        d = up(self.device, np.arange(3))
        here = self.device.stream()
        with self.other:
            self.device.wait(here)
            e = d + 1
            assert down(self.device, e).tolist() == [1, 2, 3]
        self.device.synchronize()  # The wrong stream; but the host has waited for e when it read it.
        assert down(self.device, e).tolist() == [1, 2, 3]

    def test_synchronizing_the_right_stream_helps(self, xp):
        with self.other:
            d = xp.ones(3)
        self.device.synchronize()
        assert down(self.device, d + 1).tolist() != [2, 2, 2]
        self.other.synchronize()
        assert down(self.device, d + 1).tolist() == [2, 2, 2]

    def test_views_are_not_reads(self, xp):
        with self.other:
            d = xp.arange(6)
        part = d.reshape(2, 3)[1].T
        self.device.wait(self.other)
        assert down(self.device, part).tolist() == [3, 4, 5]

    def test_a_write_that_overtakes_a_read(self, xp):
        d = xp.ones(3)
        e = d * 2
        self.other.wait_event(xp.cuda.get_current_stream().record())
        e = d * 3
        with self.other:
            d += 1
            assert down(self.device, d).tolist() != [2, 2, 2]
        assert down(self.device, e).tolist() == [3, 3, 3]

    def test_loans_and_exports_are_the_same_memory(self, xp):
        d = xp.ones(3)
        self.device.synchronize()
        lent, token = self.device.lend(d)
        exported = self.device.from_foreign(ByInterface(d))
        with self.other:
            lent += 1
        assert down(self.device, d).tolist() != [2, 2, 2] != down(self.device, exported).tolist()
        self.device.wait(self.other)
        assert down(self.device, d).tolist() == [2, 2, 2] == down(self.device, exported).tolist()

    @pytest.mark.parametrize("export", [ByInterface, ByCapsule])
    def test_protocols_wait_for_the_exporter(self, xp, export):
        with self.other:
            d = xp.ones(3)
            d += 1
        assert down(self.device, d).tolist() != [2, 2, 2]
        found = self.device.from_foreign(InStream(export(d), self.other))
        assert down(self.device, found).tolist() == [2, 2, 2]

    def test_waiting_passes_on(self, xp):
        third = self.device.new_stream()
        with self.other:
            d = xp.ones(3)
            d += 1
        with third:
            self.device.wait(self.other)
        self.device.wait(third)
        assert down(self.device, d).tolist() == [2, 2, 2]

    def test_events(self, xp):
        event = xp.cuda.Event(disable_timing=True)
        with self.other:
            d = xp.ones(3)
            event.record()
            late = xp.ones(3)
        xp.cuda.get_current_stream().wait_event(event)
        assert down(self.device, d).tolist() == [1, 1, 1]
        assert down(self.device, late).tolist() != [1, 1, 1]

    def test_every_kind_of_access_is_watched(self, xp):
        with self.other:
            d = up(self.device, np.array([[2.0, 1.0], [4.0, 3.0]]))
        right = {
            "sum": 10, "item": 3.0, "norm": float(np.sqrt(30)), "stack": 20.0, "index": 7.0, "method": 2.0,
        }  # fmt: skip
        reads = {
            "sum": lambda: xp.sum(d), "item": lambda: d[1, 1], "norm": lambda: xp.linalg.norm(d),
            "stack": lambda: xp.stack([d, d]).sum(), "index": lambda: d[xp.asarray([1])].sum(),
            "method": lambda: d.copy()[0, 0],
        }  # fmt: skip
        for name, read in reads.items():
            with np.errstate(all="ignore"):
                assert float(read()) != right[name], name
        self.device.wait(self.other)
        for name, read in reads.items():
            assert float(read()) == right[name], name


@simulated_only
class TestSeveralDevices:
    @pytest.fixture(autouse=True)
    def two(self, device):
        with device.with_count(2):
            yield

    def test_memory_lies_where_it_was_made(self, device, xp):
        with device.on(0):
            here = xp.ones(3)
        with device.on(1):
            there = xp.ones(3)
            assert device.device_of(there) == device.allocation(there)[0] == 1
            assert device.device_of(there + 1) == 1
            assert device.on_current(there) and not device.on_current(here, there)
            with pytest.raises(ValueError, match="different from the current device"):
                here + there
        assert device.device_of(here) == 0 and device.count == 2
        assert down(device, there).tolist() == [1, 1, 1]

    def test_each_device_has_its_own_streams(self, device, xp):
        here = device.stream()
        with device.on(1):
            assert device.stream() != here
            with device.new_stream():
                there = device.stream()
        with pytest.raises(RuntimeError, match="does not match"), there:
            pass
        device.wait(there)

    def test_the_current_device_is_each_threads_own(self, device):
        found = []
        with device.on(1):
            thread = threading.Thread(target=lambda: found.append(device.device_of(device.empty((1,), np.dtype("f4")))))
            thread.start()
            thread.join()
        assert found == [0]

    def test_limits_are_per_device(self, device, xp):
        with device.limited(4096):
            kept = [xp.zeros(500)]
            with device.on(1):
                kept.append(xp.zeros(500))
            with pytest.raises(MemoryError):
                xp.zeros(500)


def test_values_that_numpy_refuses(device, xp):
    """Where NumPy raises and CuPy computes on, the library must not leave it to the device to raise."""
    d = xp.asarray([-1, 1, 2, 3])
    assert down(device, d ** xp.asarray([-3, -2, -1, 2])).tolist() == [-1, 1, 0, 9]
    with pytest.raises(TypeError):
        xp.logical_and(xp.ones(2, complex), True)


def test_there_are_no_read_only_arrays(device, xp):
    d = xp.zeros((3, 3))
    xp.diagonal(d)[...] = 1
    xp.broadcast_to(d[0], (2, 3))[0, 1] = 5
    assert down(device, d).tolist() == [[1, 5, 0], [0, 1, 0], [0, 0, 1]]
    assert not hasattr(d.flags, "writeable") and d.flags.c_contiguous and d.flags["C_CONTIGUOUS"]
    assert d.T.flags.fnc and d.T.flags.forc


@simulated_only
def test_pointers_of_nobody_are_faults(device, xp):
    class Nobody:
        __cuda_array_interface__ = {"shape": (3,), "typestr": "<f8", "data": (4096, False), "version": 3}

    with pytest.raises(device.faults):
        device.from_foreign(Nobody())


@simulated_only
def test_all_names_resolve_or_are_missing_from_numpy(xp):
    modules = api.table("cupy_api")["FUNCTIONS"]
    for path in [f"{module}.{name}".lstrip(".") for module in modules for name in api.names_of("cupy_api", module)]:
        ours = theirs = None
        theirs, ours = np, xp
        for part in path.split("."):
            theirs, ours = getattr(theirs, part, None), getattr(ours, part, None)
        assert (ours is not None) or theirs is None, path
        assert ours is None or callable(ours)


@simulated_only
def test_the_array_has_cupys_members_and_no_others(device):
    ours = {name for name in dir(device.array_type) if not name.startswith("_")}
    facts = api.table("cupy_api")
    theirs = set(facts["ATTRIBUTES"].split()) | {n for v in facts["METHODS"].values() for n in v.split()}
    assert ours <= theirs
    assert theirs - ours <= {"cstruct", "mdspan"}       # for kernels of CUDA code
    special = set(facts["SPECIAL"].split())
    mine = {name for name, value in vars(device.array_type).items() if name.startswith("__") and callable(value)}
    assert mine - set(dir(object)) <= special


def test_the_table_of_facts_is_what_cupy_says():
    cupy = pytest.importorskip("cupy", minversion="14", exc_type=ImportError)
    facts = api.table("cupy_api")
    if cupy.__version__ != facts["VERSION"]:
        pytest.skip(f"the table is of CuPy {facts['VERSION']}")
    if np.lib.NumpyVersion(np.__version__) < "2.5.0":
        pytest.skip("CuPy passes on what NumPy has; the table was made beside NumPy 2.5")
    tools = str(Path(__file__).parents[1] / "tools")
    sys.path.insert(0, tools)
    try:
        import cupy_facts
    finally:
        sys.path.remove(tools)
    assert cupy_facts.collect() == facts


@simulated_only
@pytest.mark.parametrize("char", "?bBhHiIlLqQefdFD")
def test_dtypes_are_numpys_own(xp, char):
    """NumPy's ``add.at``, for one, goes a longer way for an equal one, in which other threads see half of it."""
    assert xp.asarray(np.ones(3, char)).dtype is xp.zeros(3, char).dtype is np.dtype(char)
