"""Appended numbers, and lists of scalars that are on the device: NumPy's values, dtypes and errors."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as lnp
from lazyarray.testing import assert_copies

DTYPES = ["f8", "f4", "i4", "i8", "u1", "u8", "c8", "?"]


@pytest.fixture(autouse=True)
def on_the_device():
    with lazyarray.options(small_on_host=False):
        yield


def told(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = np.asarray(call())
        except (TypeError, ValueError, OverflowError) as error:
            return type(error)
    return found.dtype, found.shape, found.tolist()


@pytest.mark.parametrize("value", [1, 1.5, -3, 2**40, 2**70, -0.0, float("inf"), True, 1j, np.float32(2), "x", None])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_is_appended(dtype, value):
    plain = np.arange(6).reshape(2, 3).astype(dtype)
    assert told(lambda: np.append(lazyarray.asarray(plain), value)) == told(lambda: np.append(plain, value))


@pytest.mark.parametrize("wanted", [None, "f4", "i4", "c16", "?"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_list_of_scalars(dtype, wanted):
    plain = np.arange(6).reshape(2, 3).astype(dtype)
    x = lazyarray.asarray(plain)
    places = [(0, 1), (1, 2), (0, 0)]
    assert told(lambda: lnp.array([x[i] for i in places], wanted)) == told(
        lambda: np.array([plain[i] for i in places], wanted))


def test_scalars_are_not_fetched_to_be_joined():
    x = lazyarray.asarray(np.arange(1e6))
    with assert_copies(0):
        found = lnp.array([x.max(), x.min(), x[5]])
    np.testing.assert_array_equal(found, [999999, 0, 5])


@pytest.mark.parametrize("deg", [False, True])
@pytest.mark.parametrize("dtype", ["c8", "c16", "f4", "f8", "i4"])
def test_the_angle(dtype, deg):
    parts = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        plain = (np.array([complex(a, b) for a in parts for b in parts]) if dtype[0] == "c" else np.arange(-3.0, 3)
                 ).astype(dtype)
    found, wanted = np.angle(lazyarray.asarray(plain), deg), np.angle(plain, deg)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_arrays_of_other_shapes_are_not_stacked():
    for shapes in (((2, 3), (3, 2)), ((2, 3), (6,)), ((4,), (2, 2))):
        with pytest.raises(ValueError, match="same shape"):
            np.stack([lazyarray.asarray(np.zeros(shape)) for shape in shapes])


NUMBERS = [0.5, 3, True, -2.5 + 1j, np.float32(1.5), np.int8(-3), np.uint64(2**63 + 5), np.True_, 2**62, np.float16(2),
           np.complex64(1j), -0.0, float("nan"), np.longdouble(1), 2**70, np.datetime64("2026-01-01"), None, "x"]


@pytest.mark.parametrize("axis", [0, -1, 1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("numbers", [
    *[[n] for n in NUMBERS], [1, 2.5], [np.int64(-1), np.uint64(3)], [True, np.int8(2)]], ids=str)
def test_numbers_are_stacked_with_scalars(numbers, dtype, axis):
    plain = np.arange(6).astype(dtype)
    x = lazyarray.asarray(plain)

    def call(a):
        return np.stack([numbers[0], a[1], *numbers[1:], a[5], a[4].sum()], axis)

    assert str(told(lambda: call(x))) == str(told(lambda: call(plain)))      # NaN is not equal to itself


def test_numbers_are_stacked_in_one_copy():
    x = lazyarray.asarray(np.arange(1e6)) + 1
    float(x[0])
    with lazyarray.trace() as t:
        found = np.stack([np.float64(3), x.max(), np.float64(2.5), x[5], 7.0])
    assert [event.kind for event in t.events] == ["upload"]
    np.testing.assert_array_equal(found, [3, 1e6, 2.5, 6, 7])


def test_arrays_are_not_stacked_with_numbers():
    with pytest.raises(ValueError, match="same shape"):
        np.stack([1.0, lazyarray.asarray(np.zeros(3))])
    with pytest.raises(ValueError, match="same shape"):
        np.stack([[1.0], lazyarray.asarray(np.zeros(3))[0]])
