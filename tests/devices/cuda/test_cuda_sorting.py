"""Rows sorted by a kernel of our own: the order of NumPy's stable sort, bit for bit, here and on a GPU."""
from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from emulated_kernels import Array, Emulator

import lazyarray
from lazyarray.devices.cuda.kernels.elementwise import Kernels
from lazyarray.devices.cuda.kernels.sorted_rows import MOST, ROOMS, SortedRows, source

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
SHAPES = [(2,), (3,), (40,), (1000,), (1025,), (MOST,), (7, 5), (600, 3), (3, 700), (2, 3, 33), (1100, 2)]
kinds = sorted({(np.dtype(d).kind.replace("b", "u"), np.dtype(d).itemsize) for d in DTYPES})


def values(shape, dtype):
    """Numbers many of which are equal, zeros of both signs, infinities, and NaN of several bits."""
    rng, dtype = np.random.default_rng(3), np.dtype(dtype)
    bits = rng.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, np.uint8)
    if dtype.kind == "b":
        return (bits < 100).reshape(shape)
    found = bits.view(dtype).reshape(shape).copy()
    few = rng.random(shape) < 0.6
    found[few] = rng.integers(-2 * (dtype.kind != "u"), 3, few.sum())
    if dtype.kind == "f":
        found[rng.random(shape) < 0.1] = -0.0
        found[rng.random(shape) < 0.1] = np.inf
        found[rng.random(shape) < 0.05] = -np.nan
    return found


def same_bits(found, expected):
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes()


def expected_of(x):
    places = np.argsort(x, axis=-1, kind="stable")
    return np.take_along_axis(x, places, -1), places


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed: it brings the compiler")
@pytest.mark.parametrize(("kind", "itemsize"), kinds)
@pytest.mark.parametrize("room", ROOMS)
def test_the_kernels_compile(kind, itemsize, room):
    from nvrtc import compiled

    assert compiled(source(kind, itemsize, room)) == ""


@pytest.mark.parametrize("dtype", ["?", "i2", "f2", "f8"])
def test_rows(tmp_path, dtype):
    kernels = Kernels(Emulator(tmp_path), 1)
    sort = SortedRows(kernels)
    for shape in SHAPES if dtype in ("i2", "f8") else SHAPES[2:4] + SHAPES[6:9]:
        x = values(shape, dtype)
        sort(Array.of(x), False)
        kernels.wait()
        ordered, places = expected_of(x)
        same_bits(sort(Array.of(x), False).get(), ordered)
        same_bits(sort(Array.of(x), True).get(), places)
        given = Array.of(x)
        assert sort(given, False, given) is given
        same_bits(given.get(), ordered)


def test_what_the_library_sorts(tmp_path):
    sort = SortedRows(Kernels(Emulator(tmp_path), 1))
    for x in (np.zeros((3, MOST + 1)), np.zeros((3, 1)), np.zeros((0, 3)), np.zeros((3, 2), complex)):
        assert sort(Array.of(x), False) is None


@pytest.mark.skipif(lazyarray.device().name != "cuda", reason="needs a GPU")
@pytest.mark.parametrize("dtype", DTYPES)
def test_on_a_gpu(dtype):
    device = lazyarray.device()
    for shape in (*SHAPES, (20_000, 100), (1000, 1000), (300, MOST), (5, 10_000), (10_000,), (MOST + 1,)):
        x = values(shape, dtype)
        given = lazyarray.asdevice(lazyarray.asarray(x.copy()))
        ordered, places = expected_of(x)
        for _ in range(2):      # by the library, and by the kernel
            same_bits(device.sort_rows(given, True).get(), places)
            found = device.sort_rows(given).get()
            assert np.array_equal(found, ordered, equal_nan=x.dtype.kind == "f")
            device.sort_in_place(there := given.copy())
            assert np.array_equal(there.get(), ordered, equal_nan=x.dtype.kind == "f")
            device.kernels.wait()
        if shape[-1] <= MOST:
            same_bits(found, ordered)
        same_bits(given.get(), x)
