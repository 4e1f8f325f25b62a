"""`scipy.ndimage`'s measurements of several regions at once, whose results are lists and arrays of objects."""

from __future__ import annotations

import numpy as np
import pytest

import lazyarray

ndimage = pytest.importorskip("scipy.ndimage")

RNG = np.random.default_rng(3)
IMAGE = RNG.random((30, 40))
LABELS = RNG.integers(0, 6, (30, 40))
INDEXES = {"one": 3, "list": [1, 3, 5], "array": np.array([5, 1]), "again": [2, 2, 1], "missing": [1, 77, 2],
           "range": range(1, 4), "scalar array": np.int64(4)}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("index", INDEXES.values(), ids=list(INDEXES))
def test_centres(index):
    x, labels = lazyarray.asarray(IMAGE), lazyarray.asarray(LABELS)
    expected = ndimage.center_of_mass(IMAGE, LABELS, index)
    with lazyarray.enabled("scipy.ndimage"), lazyarray.trace() as t:
        found = ndimage.center_of_mass(x, labels, index)
    assert type(found) is type(expected) and len(found) == len(expected) and not t.fallbacks
    assert len(t.materialisations) <= 1 and all(e.nbytes < 1000 for e in t)
    np.testing.assert_allclose(np.array(found, float), expected, rtol=1e-12)
    if isinstance(expected, list):
        assert all(type(one) is tuple and isinstance(one[0], np.float64) for one in found)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", ["sum", "sum_labels", "mean", "variance", "standard_deviation"])
@pytest.mark.parametrize("index", [*INDEXES.values(), [[1, 2], [2, 1]], 77, None],
                         ids=[*INDEXES, "two dimensions", "one missing", "none"])
@pytest.mark.parametrize("image", [IMAGE, IMAGE.astype("f4"), (IMAGE * 10).astype(int), IMAGE > 0.5, IMAGE[0]],
                         ids=["double", "single", "integers", "bool", "broadcast"])
def test_sums_and_means(name, index, image):
    function, labels = getattr(ndimage, name), LABELS - 1       # those of the background are negative
    expected = function(image, labels, index)
    x = lazyarray.asarray(image)
    with lazyarray.enabled("scipy.ndimage"), lazyarray.trace() as t:
        found = getattr(ndimage, name)(x, lazyarray.asarray(labels), index)     # not SciPy's own, got before
    assert not t.fallbacks and not t.materialisations and lazyarray.is_lazy(found)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5 if image.dtype == "f4" else 1e-12)


MANY = RNG.integers(0, 50, (30, 40))
NUMBERS = {"from zero": MANY, "negative": MANY - 7, "large": MANY * 1000, "floats": MANY / 2, "few": MANY % 4 + 1}


@pytest.mark.parametrize("name", ["extrema", "maximum", "maximum_position", "median", "minimum", "minimum_position"])
@pytest.mark.parametrize("labels", NUMBERS.values(), ids=list(NUMBERS))
def test_extremes_and_medians(name, labels):
    known = np.unique(labels)
    for index in (known, known[::-2], np.append(known[:40], 10_000_000)[::-1], known[2], None):
        expected = getattr(ndimage, name)(IMAGE, labels, index)
        with lazyarray.enabled("scipy.ndimage"), lazyarray.trace() as t:
            found = getattr(ndimage, name)(lazyarray.asarray(IMAGE), lazyarray.asarray(labels), index)
        assert not t.fallbacks
        for one, other in zip(expected, found, strict=True) if name == "extrema" else [(expected, found)]:
            there = index != 10_000_000 if isinstance(index, np.ndarray) else ...      # SciPy's median has any value
            np.testing.assert_array_equal(np.asarray(other)[there], np.asarray(one)[there])


@pytest.mark.parametrize("index", INDEXES.values(), ids=list(INDEXES))
@pytest.mark.parametrize("image", [IMAGE, (IMAGE * 10).round(), (IMAGE * 10).astype(np.int32), IMAGE[0]],
                         ids=["any", "at edges", "integers", "broadcast"])
def test_histograms(image, index):
    expected = ndimage.histogram(image, 0.2 * image.max(), 0.8 * image.max(), 6, LABELS, index)
    x, labels = lazyarray.asarray(image), lazyarray.asarray(LABELS)
    with lazyarray.enabled("scipy.ndimage"), lazyarray.trace() as t:
        found = ndimage.histogram(x, 0.2 * image.max(), 0.8 * image.max(), 6, labels, index)
    assert not t.fallbacks and all(e.nbytes < 1000 for e in t)
    if np.ndim(index) == 0:
        assert found.dtype == expected.dtype and np.array_equal(found, expected)
        return
    assert found.dtype == object and found.shape == expected.shape
    for one, other in zip(found, expected):
        assert (one is None) is (other is None)
        assert one is None or one.dtype == other.dtype and np.array_equal(one, other)


def test_labels_that_are_no_integers_run_on_the_host():
    x, labels = lazyarray.asarray(IMAGE), lazyarray.asarray(LABELS + 0.5)
    with lazyarray.enabled("scipy.ndimage"), pytest.warns(lazyarray.HostFallbackWarning):
        found = ndimage.histogram(x, 0, 1, 3, labels, [1.5])
    assert np.array_equal(found[0], ndimage.histogram(IMAGE, 0, 1, 3, LABELS + 0.5, [1.5])[0])


NUMBERS = np.array([0.0, -0.0, 1, -1, 2, -2, 1e300, -1e300, 5e-324, -5e-324, np.finfo(float).tiny, np.pi, -np.pi,
                    np.inf, -np.inf, np.nan, 1 - 2**-53])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int32])
def test_spacing(dtype):
    with np.errstate(all="ignore"):
        values = NUMBERS.astype(dtype)
        expected = np.spacing(values)
        found = np.spacing(lazyarray.asarray(values))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(found), expected)
    assert np.array_equal(np.signbit(np.asarray(found))[:13], np.signbit(expected)[:13])
