"""Numbers counted in bins by a kernel of our own, here and on a GPU: each count is NumPy's."""
from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from emulated_kernels import Array, Emulator

import lazyarray
from lazyarray.devices.cuda.kernels.elementwise import Kernels
from lazyarray.devices.cuda.kernels.histogram import BINS, Histograms, source, source_of_at, source_of_places

DTYPES = ["i1", "u1", "i2", "i4", "u4", "i8", "f4", "f8"]


#: Ufuncs whose `at` has a kernel.
COMBINED = np.add, np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor


def is_combined(ufunc, dtype):
    kind = np.dtype(dtype).kind
    return ufunc is np.add or kind in "iu" or kind == "f" and ufunc in (np.maximum, np.minimum)


class WithView(Array):
    def view(self, dtype):
        return type(self)(self.shape, np.dtype(dtype), self.data)


def values(dtype, n=3000):
    rng, dtype = np.random.default_rng(8), np.dtype(dtype)
    if dtype.kind == "f":
        x = rng.normal(size=n).astype(dtype)
        x[:6] = [np.nan, np.inf, -np.inf, -np.nan, 0.0, -0.0]
        return x
    return rng.integers(0, 100, n).astype(dtype)


def edges_of(x, bins):
    low, high = (-1.5, 2) if x.dtype.kind == "f" else (3, 90)
    found = np.linspace(low, high, bins + 1)
    found[bins // 2] = found[bins // 2 + 1]     # an empty bin
    return found


def counted(x, edges):
    """In each bin without its upper edge."""
    x = x.astype(edges.dtype)
    return np.array([np.count_nonzero((x >= low) & (x < high)) for low, high in zip(edges, edges[1:])])


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed: it brings the compiler")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("edge", ["f4", "f8"])
def test_the_kernels_compile(dtype, edge):
    from nvrtc import compiled

    assert compiled(source(np.dtype(dtype), np.dtype(edge))) == ""


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed: it brings the compiler")
@pytest.mark.parametrize("dtype", ["?", "i1", "u8"])
@pytest.mark.parametrize("weight", [None, "?", "i8", "f4", "f8"])
def test_the_kernels_of_places_compile(dtype, weight):
    from nvrtc import compiled

    assert compiled(source_of_places(np.dtype(dtype), None if weight is None else np.dtype(weight))) == ""


@pytest.mark.parametrize(("dtype", "weight"), [("i8", None), ("u1", "f8"), ("i4", "i2")])
def test_places(tmp_path, dtype, weight):
    cupy = Emulator(tmp_path)
    cupy.zeros = lambda n, dtype: Array.of(np.zeros(n, dtype))
    kernels, rng = Kernels(cupy, 1), np.random.default_rng(3)
    histograms = Histograms(kernels)
    for bins, size in ((1, 3000), (7, 3000), (200, 3000), (200, 300), (5000, 3000)):
        x = rng.integers(0, min(bins, 256), size).astype(dtype)
        weights = None if weight is None else (rng.random(size) * 9).astype(weight)
        given = Array.of(x), None if weights is None else Array.of(weights), bins
        histograms.places(*given)
        kernels.wait()
        found, expected = histograms.places(*given).get(), np.bincount(x, weights, bins)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        if bins > 1:        # written by somebody since it was looked at: what is beyond counts nowhere
            fewer = (Array.of(x), given[1], bins // 2)
            inside = x < bins // 2
            np.testing.assert_allclose(histograms.places(*fewer).get(), np.bincount(
                x[inside], None if weights is None else weights[inside], bins // 2), rtol=1e-12)
    assert histograms.places(Array.of(x[:0]), None, 3) is None
    assert histograms.places(Array.of(x), Array.of(np.ones(x.shape, "f2")), 300) is None


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed: it brings the compiler")
@pytest.mark.parametrize("dtype", "ilILfdFD")
@pytest.mark.parametrize("ufunc", COMBINED, ids=lambda ufunc: ufunc.__name__)
def test_the_kernels_that_combine_compile(ufunc, dtype):
    from nvrtc import compiled

    if is_combined(ufunc, dtype):
        assert compiled(source_of_at(ufunc, np.dtype(dtype), np.dtype("i4"))) == ""


@pytest.mark.parametrize("dtype", ["i4", "i8", "u8", "f4", "f8", "c8"])
@pytest.mark.parametrize("ufunc", COMBINED, ids=lambda ufunc: ufunc.__name__)
def test_what_is_combined(tmp_path, ufunc, dtype):
    if not is_combined(ufunc, dtype):
        return
    kernels, rng = Kernels(Emulator(tmp_path), 1), np.random.default_rng(3)
    histograms = Histograms(kernels)
    for outer, places, inner, count in ((1, 50, 1, 900), (3, 7, 5, 40), (2, 1, 1, 3), (1, 3, 4, 1), (1, 1, 1, 1)):
        array = rng.integers(0 if dtype == "u8" else -9, 9, (outer, places, inner)).astype(dtype)
        key = rng.integers(-places, places, count)
        values = (rng.integers(-9, 9, (outer, count, inner)) * (1 if dtype != "c8" else 1 + 2j)).astype(dtype)
        if dtype in ("f4", "f8"):
            values[values == 5] = np.nan
            array[array == 4] = np.nan
        given = ufunc, Array.of(array.copy()), outer, places, Array.of(key)
        if not histograms.ufunc_at(*given, Array.of(values)):
            kernels.wait()
            assert histograms.ufunc_at(*given, Array.of(values))
        expected = array.copy()
        ufunc.at(expected, (slice(None), key), values)
        np.testing.assert_allclose(given[1].get(), expected, rtol=1e-5)
        one = Array.of(values.ravel()[:1])
        assert histograms.ufunc_at(*given, one) == (dtype != "c8" or values.size == 1)
        if dtype != "c8":
            ufunc.at(expected, (slice(None), key), values.ravel()[0])
            np.testing.assert_allclose(given[1].get(), expected, rtol=1e-5)
    assert not histograms.ufunc_at(ufunc, Array.of(np.ones(3, "f2")), 1, 3, Array.of(key), Array.of(np.ones(1, "f2")))


def tolerances(function, dtype):
    """Relative and absolute: extremes and integers are exact, and the sums of these few numbers but for their order."""
    least = 64 * np.finfo(dtype).eps if dtype.kind in "fc" and function in (np.add, np.subtract) else 0
    return least, least


def _with_nan(values, rng):
    if values.dtype.kind == "f":
        values /= 7
        values[rng.random(values.shape) < 0.1] = np.nan
    return values


@pytest.mark.skipif(lazyarray.device().name != "cuda", reason="needs a GPU")
@pytest.mark.parametrize("dtype", "ilILfdFD")
def test_what_is_combined_on_a_gpu(dtype):
    rng = np.random.default_rng(4)
    array = rng.integers(0, 9, (6, 7, 8, 3)).astype(dtype)
    i, j = rng.integers(-7, 7, (9, 1)), rng.integers(-8, 8, (1, 5)).astype("i4")
    index = {"two axes": (slice(None), i, j), "the first": (i[:, 0] % 6,), "the last": (Ellipsis, j[0] % 3),
             "apart": (i[:, 0] % 6, slice(None), i[:, 0] % 8)}
    for places in index.values():
        for values in (np.array(3, dtype), _with_nan(rng.integers(0, 9, array[places].shape).astype(dtype), rng)):
            for function in (*[ufunc for ufunc in COMBINED if is_combined(ufunc, dtype)], np.subtract):
                for _ in range(2):      # by the library, and by the kernel
                    expected, found = array.copy(), lazyarray.asarray(array)
                    function.at(expected, places, values)
                    function.at(found, places, values)
                    np.testing.assert_allclose(
                        np.asarray(found), expected, *tolerances(function, array.dtype))
                    lazyarray.device().wait_for_kernels()


@pytest.mark.skipif(lazyarray.device().name != "cuda", reason="needs a GPU")
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u4", "i8"])
@pytest.mark.parametrize("bins", [1, 100, 4096, 70_000])
def test_places_on_a_gpu(dtype, bins):
    rng = np.random.default_rng(bins)
    most = 2 if dtype == "?" else min(bins, np.iinfo(dtype).max)
    for size in (1000, 300_000):
        x = rng.integers(0, most, size).astype(dtype)
        for weights in (None, rng.random(size), rng.random(size).astype("f4"), rng.random(size) > .5, x):
            for _ in range(2):      # by the library, and by the kernel
                given = lazyarray.asarray(x), None if weights is None else lazyarray.asarray(weights), bins
                found, expected = np.bincount(*given), np.bincount(x, weights, bins)
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9)
                lazyarray.device().wait_for_kernels()


@pytest.mark.parametrize(("dtype", "edge"), [("i2", "f8"), ("f4", "f4"), ("f8", "f8")])
def test_counts(tmp_path, dtype, edge):
    cupy = Emulator(tmp_path)
    cupy.zeros = lambda n, dtype: WithView.of(np.zeros(n, dtype))
    kernels = Kernels(cupy, 1)
    histograms, x = Histograms(kernels), values(dtype)
    for bins in (1, 2, 10, 700, BINS):
        edges = edges_of(x, bins).astype(edge)
        histograms(Array.of(x), Array.of(edges))
        kernels.wait()
        found = histograms(Array.of(x), Array.of(edges)).get()
        assert found.dtype == np.int64 and np.array_equal(found, counted(x, edges))
    assert histograms(Array.of(x), Array.of(np.zeros(BINS + 2))) is None
    assert histograms(Array.of(x[:0]), Array.of(np.zeros(3))) is None


@pytest.mark.skipif(lazyarray.device().name != "cuda", reason="needs a GPU")
@pytest.mark.parametrize("dtype", [*DTYPES, "f2"])
@pytest.mark.parametrize("bins", [1, 10, 256, BINS, BINS + 1])
def test_on_a_gpu(dtype, bins):
    x = values(dtype, 300_000)
    for given in ({"bins": bins, "range": (-1.5, 2) if x.dtype.kind == "f" else (3, 90)}, {"bins": edges_of(x, bins)}):
        for _ in range(2):      # by the library, and by the kernel
            found, edges = np.histogram(lazyarray.asarray(x), **given)
            expected = np.histogram(x, **given)
            assert np.array_equal(np.asarray(found), expected[0]) and np.array_equal(np.asarray(edges), expected[1])
            lazyarray.device().wait_for_kernels()
