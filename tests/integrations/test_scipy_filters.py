"""Filters of `scipy.ndimage` on the device give SciPy's bits: what is equal on the host is equal there."""
from __future__ import annotations

import importlib.util
import itertools
import types
import warnings

import numpy as np
import pytest
from emulated_kernels import Array, Emulator

import lazyarray
from lazyarray.devices import lines
from lazyarray.devices.cuda.kernels import line_filters
from lazyarray.devices.cuda.kernels.elementwise import Kernels

ON_CUDA = lazyarray.device().name == "cuda"

ndimage = pytest.importorskip("scipy.ndimage")

REAL = "?bhilqBHILQfd"
MODES = ("reflect", "mirror", "nearest", "wrap", "constant", "grid-mirror", "grid-wrap", "grid-constant")
#: Symmetric, antisymmetric, neither and of even lengths.
WEIGHTS = ([1.5], [1, 2], [-1, 0, 1], [0.1, 0.7, 0.1], [3.0, 1, -2], [1, 4, 4, 1], [0.3, -1.7, 0, 1.7, -0.3],
           list(np.hanning(13) / 7))


def image(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)
    if dtype.kind == "f":
        return random.normal(size=shape).astype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    return random.integers(0, 100, shape).astype(dtype)


def same(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    plain = np.asarray(found)
    if expected.dtype.kind == "b":
        assert np.array_equal(plain, expected != 0)
    elif expected.dtype.kind in "fc":
        assert np.array_equal(plain, expected, equal_nan=True), abs(plain - expected).max()
    else:
        assert np.array_equal(plain, expected)


def check(name, x, *args, host=False, **kwargs):
    """What SciPy gives for a host array and for a lazy one: the same bits, and without the host."""
    with np.errstate(invalid="ignore"):     # roots of squares beyond the dtype
        expected = getattr(ndimage, name)(x, *args, **kwargs)
    lazy = lazyarray.asarray(x)
    with warnings.catch_warnings(), lazyarray.enabled("scipy.ndimage"):
        warnings.simplefilter("error" if not host else "ignore")
        found = getattr(ndimage, name)(lazy, *args, **kwargs)
    assert lazyarray.is_lazy(found)
    same(found, expected)


class TestBits:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("shape", [(1,), (2,), (31,), (4, 3, 5)])
    def test_edges(self, shape, mode):
        x = image(shape, float)
        for weights, axis in itertools.product(WEIGHTS[3:], range(len(shape))):
            check("correlate1d", x, weights, axis, mode=mode, cval=1.25)
        check("convolve1d", x, WEIGHTS[5], 0, mode=mode, cval=-3)

    @pytest.mark.parametrize("origin", [-1, 0, 1])
    def test_origins(self, origin):
        for weights in WEIGHTS[2:]:
            check("correlate1d", image((8, 5), float), weights, 0, origin=origin)
            check("convolve1d", image((8, 5), float), weights, 1, origin=origin, mode="wrap")

    @pytest.mark.parametrize("dtype", REAL + "FD")
    def test_dtypes(self, dtype):
        x = image((13, 11), dtype)
        for name, args in (("correlate1d", ([-1, 0.5, 2],)), ("gaussian_filter", (1.3,)), ("gaussian_filter1d", (2,)),
                           ("sobel", ()), ("prewitt", (0,)), ("convolve1d", ([1, -20, 1],))):
            check(name, x, *args)
        for name, args in (("laplace", ()), ("gaussian_laplace", (1.5,)), ("gaussian_gradient_magnitude", (1,))):
            if not (ON_CUDA and dtype in "FD" and name == "gaussian_gradient_magnitude"):   # CuPy's complex products
                check(name, x, *args, host=dtype == "?")

    @pytest.mark.parametrize("dtype", REAL)
    def test_dtypes_of_results(self, dtype):
        x = image((9, 6), dtype)
        for output in (np.float32, np.dtype(float), "int16", np.uint8, np.int32, np.uint32, np.int64, np.uint64, bool):
            check("gaussian_filter", x, 1, output=output)
            check("correlate1d", x, [-3.5, 0, 1], output=output)

    @pytest.mark.parametrize("sigma", [0.4, np.float32(1.7), (0, 2), 12])
    @pytest.mark.parametrize("order", [0, 1, (2, 3)])
    def test_gaussians(self, sigma, order):
        for dtype in (float, np.float32):
            check("gaussian_filter", image((20, 17), dtype), sigma, order)
            check("gaussian_filter", image((20, 17), dtype), sigma, order, mode=("nearest", "mirror"), truncate=2.5)

    def test_axes_and_radii(self):
        x = image((7, 8, 9), float)
        for axes in (0, (1,), (0, 2), (-1, 0), ()):
            check("gaussian_filter", x, 1.5, axes=axes)
            check("laplace", x, axes=axes)
            check("gaussian_laplace", x, 1.5, axes=axes)
            check("gaussian_gradient_magnitude", x, 1.5, axes=axes)
        check("gaussian_filter", x, 1.5, radius=(1, 0, 7))
        check("gaussian_filter1d", x, 1.5, 1, radius=3)
        check("gaussian_gradient_magnitude", x, (1, 2, 3), radius=2, truncate=3)
        check("gaussian_laplace", x, (1, 2, 3), mode=("wrap", "reflect", "constant"), cval=2)

    @pytest.mark.parametrize("layout", [lambda x: x.T, lambda x: x[::-1, ::2], lambda x: np.asfortranarray(x)])
    def test_layouts(self, layout):
        x = image((12, 10), float)
        expected = ndimage.gaussian_filter(layout(x), (1, 2))
        with lazyarray.enabled("scipy"):
            same(ndimage.gaussian_filter(layout(lazyarray.asarray(x)), (1, 2)), expected)

    def test_nothing(self):
        for shape in ((0,), (0, 3), (3, 0)):
            check("gaussian_filter", np.zeros(shape), 2)
            check("correlate1d", np.zeros(shape), [1, 2, 1])

    def test_complex_weights_and_constants(self):
        for x in (image((6, 7), complex), image((6, 7), np.complex64), image((6, 7), float), image((6, 7), "i2")):
            check("correlate1d", x, np.array([1 + 2j, 0.5, -1j]), 0)
            check("convolve1d", x, np.array([1 + 2j, 0.5, -1j, 3]), mode="wrap")
        check("gaussian_filter", image((6, 7), complex), 1, mode="constant", cval=2 - 3j)

    def test_weights_on_the_device(self):
        x = image((9, 8), float)
        for weights in (*WEIGHTS, [np.nan, 1, 2], [1, 2, np.inf], [1, 0, 1 + 1e-17]):
            weights = np.array(weights, float)
            expected = ndimage.correlate1d(x, weights)
            with lazyarray.enabled("scipy"):
                for given in (weights, lazyarray.asarray(weights)):
                    same(ndimage.correlate1d(lazyarray.asarray(x), given), expected)

    def test_no_numbers(self):
        x = image((9, 30), float)
        x[2, 3], x[4, 4], x[5, 20] = np.nan, np.inf, -np.inf
        for name, args in (("gaussian_filter", (1,)), ("sobel", ()), ("laplace", ()), ("correlate1d", ([1, 2, 4],))):
            check(name, x, *args)
            check(name, x.astype(np.float32), *args)


class TestOutputs:
    def test_arrays(self):
        x = image((9, 8), float)
        for dtype in ("f4", "f8", "i4", "?"):
            expected = np.zeros((9, 8), dtype)
            ndimage.gaussian_filter(x * 9, 1, output=expected)
            out = lazyarray.asarray(np.zeros((9, 8), dtype))
            with lazyarray.enabled("scipy"):
                assert ndimage.gaussian_filter(lazyarray.asarray(x * 9), 1, output=out) is out
            same(out, expected)

    @pytest.mark.parametrize("name, args", [("gaussian_filter", (1,)), ("sobel", ()), ("correlate1d", ([1, 2, 3],)),
                                            ("laplace", ()), ("gaussian_gradient_magnitude", (1,))])
    def test_the_input_itself(self, name, args):
        x = image((9, 8), float)
        lazy = lazyarray.asarray(x)
        getattr(ndimage, name)(x, *args, output=x)
        with warnings.catch_warnings(), lazyarray.enabled("scipy"):
            warnings.simplefilter("ignore")     # of what the host does
            getattr(ndimage, name)(lazy, *args, output=lazy)
        same(lazy, x)

    @pytest.mark.parametrize("call", [
        lambda x: ndimage.gaussian_filter(x, 1, mode="nowhere"), lambda x: ndimage.gaussian_filter(x, (1, 2, 3)),
        lambda x: ndimage.gaussian_filter(x, 1, order=-1), lambda x: ndimage.gaussian_filter(x, 1, radius=-1),
        lambda x: ndimage.correlate1d(x, []), lambda x: ndimage.correlate1d(x, [1, 2], 7),
        lambda x: ndimage.correlate1d(x, [1, 2, 3], origin=2), lambda x: ndimage.gaussian_filter(x, 1, axes=(0, 0)),
        lambda x: ndimage.gaussian_filter(x, 1, output="?"), lambda x: ndimage.gaussian_filter(x, 1, output=complex),
        lambda x: ndimage.correlate1d(x, [1, 2, 3], mode="constant", cval=1j), lambda x: ndimage.sobel(x, 5),
        lambda x: ndimage.gaussian_laplace(x, 1, nothing=3),
    ])
    def test_errors(self, call):
        x = image((6, 7), float)
        with pytest.raises(Exception) as expected:  # whatever SciPy raises
            call(x)
        with warnings.catch_warnings(), lazyarray.enabled("scipy"), pytest.raises(expected.type) as found:
            warnings.simplefilter("ignore")
            call(lazyarray.asarray(x))
        assert str(found.value) == str(expected.value)


def mirrored(n=48):
    """Blobs that mirror each other, so that each maximum has equals."""
    quarter = image((n, n), float, 3)
    half = np.concatenate([quarter, quarter[::-1]])
    return np.concatenate([half, half[:, ::-1]], axis=1)


class TestTies:
    @pytest.mark.parametrize("name, args", [("gaussian_filter", (1.5,)), ("gaussian_filter", (7,)), ("laplace", ()),
                                            ("gaussian_laplace", (2,)), ("gaussian_gradient_magnitude", (1,))])
    def test_mirrored_images_give_mirrored_results(self, name, args):
        with lazyarray.enabled("scipy"):
            found = np.asarray(getattr(ndimage, name)(lazyarray.asarray(mirrored()), *args))
        assert np.array_equal(found, found[::-1])
        if name in ("gaussian_filter", "laplace"):
            assert np.array_equal(found, found[:, ::-1])

    def test_peaks_between_equal_neighbours_are_scikit_image_s(self):
        feature = pytest.importorskip("skimage.feature")
        y, x = np.mgrid[:96, :96]
        blobs = np.zeros((96, 96), bool)
        for cy, cx, a, b in ((20, 20, 7, 7), (20, 60.5, 9, 6), (60.5, 30, 6, 10), (70.5, 70.5, 8, 8)):
            blobs |= ((y - cy) / a) ** 2 + ((x - cx) / b) ** 2 < 1

        def peaks(blobs):
            distance = ndimage.distance_transform_edt(blobs)
            return feature.peak_local_max(ndimage.gaussian_filter(distance, 1), min_distance=4, exclude_border=False)

        with lazyarray.enabled("scipy", "skimage"):
            found = peaks(lazyarray.asarray(blobs))
        assert np.array_equal(np.asarray(found), peaks(blobs))


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("name, args, options", [
    ("gaussian", (1.5,), {"preserve_range": True}), ("gaussian", ((1, 3),), {"mode": "mirror", "channel_axis": 2}),
    ("gaussian", (np.array([1, 2.5, 0]),), {}), ("difference_of_gaussians", (1,), {}),
    ("difference_of_gaussians", ((1, 2), 4), {"channel_axis": -1}), ("unsharp_mask", (2, 1.5), {}),
    ("unsharp_mask", (2, 0.7), {"channel_axis": 2, "preserve_range": True}),
])
def test_what_scikit_image_makes_of_them_has_the_same_bits(name, args, options, dtype):
    filters = pytest.importorskip("skimage.filters")
    x = image((20, 17, 3), dtype)
    if x.dtype.kind == "f":
        x /= abs(x).max()
    expected = getattr(filters, name)(x, *args, **options)
    with warnings.catch_warnings(), lazyarray.enabled("skimage"):
        warnings.simplefilter("error")
        found = getattr(filters, name)(lazyarray.asarray(x), *args, **options)
    assert lazyarray.is_lazy(found)
    same(found, expected)


# -- the kernel --------------------------------------------------------------------------------------------------------

def table(length, weights, mode="reflect"):
    from lazyarray.integrations.scipy.filters import _place

    before = len(weights) // 2
    return _place(np.arange(-before, length + len(weights) - 1 - before), length, mode), before


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed: it brings the compiler")
@pytest.mark.parametrize("given, made", ["?b", "hi", "HI", "ff", "dd", "lQ", "QL", "B?"])
def test_the_kernels_compile(given, made):
    from nvrtc import compiled

    assert compiled(line_filters.source(given, made, False)) == ""
    assert given not in "fd" or compiled(line_filters.source(given, made, True)) == ""


@pytest.fixture(scope="module")
def emulators(tmp_path_factory):
    made = {}

    def get(given, to):
        if (given, to) not in made:
            cupy = Emulator(tmp_path_factory.mktemp("kernels"))
            kernels = Kernels(cupy, 1)
            filters = line_filters.LineFilters(kernels)

            def correlate(x, weights, axis, cval, dtype, asked=False, mode="reflect"):
                places, before = table(x.shape[axis], weights, mode)
                given = lines.Weights(Array.of(weights), lines.UNKNOWN if asked else lines.form_of(weights),
                                      Array.of(places.astype(np.int64)), before)
                if filters.correlate(Array.of(x), given, axis, cval, dtype) is None:
                    kernels.wait()
                return filters.correlate(Array.of(x), given, axis, cval, dtype).get()

            made[given, to] = types.SimpleNamespace(correlate=correlate)
        return made[given, to]

    return get


class TestOnTheHost:
    """The text that CUDA runs, compiled for the host."""

    @pytest.mark.parametrize("given, made", ["dd", "fd", "HI", "dQ", "dl", "?B", "bh"])
    def test_dtypes(self, emulators, given, made):
        x, dtype = image((7, 40), given), np.dtype(made)
        if given == "d":
            x = x * 1e4
        run = emulators(given, made).correlate
        for weights, axis in itertools.product(map(np.array, WEIGHTS[1:7:2]), (0, 1)):
            weights = weights.astype(float)
            expected = ndimage.correlate1d(x, weights, axis, output=dtype)
            for asked in (False, True):
                assert run(x, weights, axis, 0.0, dtype, asked).tobytes() == expected.tobytes()

    @pytest.mark.parametrize("mode", MODES[:5])
    @pytest.mark.parametrize("shape", [(3,), (700,), (5, 60), (60, 5), (4, 9, 11)])
    def test_edges(self, emulators, shape, mode):
        x = image(shape, float)
        run = emulators("d", "d").correlate
        for weights, axis in itertools.product((WEIGHTS[-1], WEIGHTS[5]), range(len(shape))):
            weights = np.array(weights, float)
            expected = ndimage.correlate1d(x, weights, axis, mode=mode, cval=0.7)
            assert run(x, weights, axis, 0.7, x.dtype, mode=mode).tobytes() == expected.tobytes()

    def test_threads_that_take_several(self, emulators, monkeypatch):
        monkeypatch.setattr(line_filters, "_MOST", 2)
        x, weights = image((50, 41), float), np.hanning(9)
        assert np.array_equal(emulators("d", "d").correlate(x, weights, 0, 0.0, x.dtype),
                              ndimage.correlate1d(x, weights, 0))


@pytest.mark.skipif(lazyarray.device().name != "cuda", reason="there is no CUDA device")
@pytest.mark.parametrize("dtype", REAL)
def test_the_kernel_gives_what_the_steps_give(dtype):
    """What ran before the kernel was compiled, and what runs after."""
    device, x = lazyarray.device(), image((300, 211), dtype)
    expected = ndimage.gaussian_filter(x, (3, 1))
    for _ in range(2):
        with lazyarray.enabled("scipy"):
            same(ndimage.gaussian_filter(lazyarray.asarray(x), (3, 1)), expected)
        device.kernels.wait()
