"""``ufunc.at``: what is added, subtracted and compared at places that come again is what a loop gives, and NumPy."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
from outcomes import told

import lazyarray
import lazyarray.numpy

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True, params=[True, False], ids=["small on the host", "all on the device"])
def place(request):
    with lazyarray.options(small_on_host=request.param):
        yield


RNG = np.random.default_rng(5)
SHAPE = (5, 6, 4)
A, B, C = (RNG.integers(-n, n, 7) for n in SHAPE)
INDEXES = {
    "first": (A,), "middle": (slice(None), B), "last": (..., C), "two": (A, B), "two behind": (slice(None), B, C),
    "all": (A, B, C), "grid": (slice(None), B[:, None], C), "apart": (A, slice(None), C), "a number": (3, B),
    "reversed": (slice(None, None, -1), B), "small": (A.astype("i1"),), "unsigned": (np.abs(A % 5).astype("u4"),),
    "mask": (RNG.random(SHAPE) > 0.5,), "rows by mask": (RNG.random(5) > 0.5,), "none": (A[:0],),
    "beyond": (A + 5,), "two dimensions": (np.stack([A, A[::-1]]),),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=list(INDEXES))
@pytest.mark.parametrize("dtype", ["i4", "i8", "u8", "f4", "f8", "c16"])
@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.maximum, np.minimum], ids=lambda ufunc: ufunc.__name__)
def test_values(ufunc, dtype, index):
    plain = _numbers(50, SHAPE, dtype)
    shape = told(lambda: plain[index].shape)
    given = [3, np.array(4, dtype)]
    if type(shape) is tuple:
        given += [_numbers(40, shape, dtype), _numbers(40, shape[-1:], dtype)]
    for values, layout in itertools.product(given, (np.ascontiguousarray, np.asfortranarray)):
        expected, x = layout(plain.copy()), lazyarray.asarray(layout(plain.copy()))
        by, given = (tuple([lazyarray.asarray(i) if isinstance(i, np.ndarray) else i for i in given])
                     for given in (index, (values,)))
        error = told(lambda expected=expected, values=values: ufunc.at(expected, index, values))
        found = told(lambda x=x, by=by, given=given: ufunc.at(x, by, *given))
        assert found is error
        np.testing.assert_allclose(np.asarray(x), expected, *_tolerances(ufunc, plain.dtype))


def _tolerances(ufunc, dtype):
    """Relative and absolute: extremes and integers are exact, and the sums of these few numbers but for their order."""
    least = 64 * np.finfo(dtype).eps if dtype.kind in "fc" and ufunc in (np.add, np.subtract) else 0
    return least, least


def _numbers(most, shape, dtype):
    """Numbers, of floats such as have no fewer bits, and NaN."""
    found = RNG.integers(0, most, shape).astype(dtype)
    if found.dtype.kind == "f":
        found /= 7
        found[RNG.random(shape) < 0.1] = np.nan
    return found


def test_bounds_of_extremes_are_known():
    """Of what was compared with bounded numbers nobody waits to find out whether it is an index."""
    x, index = lazyarray.numpy.full(3000, -1), lazyarray.asarray(np.arange(3000))
    with lazyarray.options(small_on_host=False):
        np.maximum.at(x, index, np.argsort(lazyarray.asarray(RNG.random(3000))))
        np.minimum.at(x, index, 2990)
        y = lazyarray.asarray(np.arange(3000.0)) * 2
        with lazyarray.trace() as t:
            found = y[x]
    assert not t.fallbacks and not [event for event in t.events if event.kind == "synchronise"]
    assert np.array_equal(found, 2.0 * np.asarray(x))


def test_what_numpy_reads_beyond():
    """NumPy 2.5 reads beyond values that are broadcast to an index of several dimensions: here is what a loop gives."""
    index, values = np.array([[0, 1, 0], [2, 2, 1]]), np.array([1.0, 10.0, 100.0])
    x = lazyarray.asarray(np.zeros(3000))
    np.add.at(x, (lazyarray.asarray(index),), lazyarray.asarray(values))
    assert np.asarray(x)[:4].tolist() == [101.0, 110.0, 11.0, 0.0]


def test_extremes_of_long_integers_stay_on_the_device():
    x, index = lazyarray.asarray(np.zeros(3000, int)), lazyarray.asarray(np.arange(6000) % 3000)
    with lazyarray.trace() as t:
        np.maximum.at(x, index, lazyarray.asarray(np.arange(-3000, 3000)))
    assert not t.fallbacks
    assert np.array_equal(x, np.arange(3000))


def test_an_array_of_the_host_is_named():
    plain = np.zeros(3)
    with pytest.warns(lazyarray.HostFallbackWarning, match="the destination is a host array"):
        np.add.at(plain, lazyarray.asarray(np.arange(3)).copy(), 1.0)
    assert plain.tolist() == [1, 1, 1]
