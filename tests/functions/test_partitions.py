"""Partitions of large arrays: the device selects where there is no NaN, and sorts where there is."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray.functions.adapters import order

#: On the device of NumPy's, where it is the same code, small ones do.
LESS = 8 if lazyarray.device().name == "simulated" else 1
SHAPES = [((1 << 20) // LESS**2, ), (1024 // LESS, 1100 // LESS), (1100 // LESS, 1024 // LESS),
          (16, 4100 // LESS**2, 17), (1025, 1024 // LESS**2)]
CASES = list(zip(SHAPES, (-1, -1, 0, 1, None)))


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    monkeypatch.setattr(order, "_ROW", order._ROW // LESS**2)
    monkeypatch.setattr(order, "_MANY", (1 << 20) // LESS**2)


def values(shape, dtype):
    found = np.random.default_rng(3).integers(-500, 500, shape).astype(dtype)       # many are equal
    if found.dtype.kind == "f":
        found += np.random.default_rng(4).random(shape).astype(dtype) / 2
        found.flat[::1013], found.flat[5::2011] = np.inf, -np.inf
    return found


def check(plain, parted, places, axis):
    """Each place has what it has in the sorted array, and nothing before it is larger, nothing behind it less."""
    if axis is None:
        plain, axis = plain.reshape(-1), 0
    ordered, parted = np.moveaxis(np.sort(plain, axis), axis, -1), np.moveaxis(parted, axis, -1)
    assert np.array_equal(np.sort(parted, -1), ordered, equal_nan=plain.dtype.kind == "f")
    for place in places:
        assert np.array_equal(parted[..., place], ordered[..., place], equal_nan=plain.dtype.kind == "f")
        at = ordered[..., place, None]
        with np.errstate(invalid="ignore"):
            assert not (parted[..., :place % parted.shape[-1]] > at).any()
            assert not (parted[..., place % parted.shape[-1]:] < at).any()


@pytest.mark.parametrize("shape, axis", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u2"])
@pytest.mark.parametrize("kth", [0, 7, [1, 50], -1, 60], ids=str)
def test_every_place_is_numpys(shape, axis, dtype, kth):
    plain = values(shape, dtype)
    x = lazyarray.asarray(plain.copy())
    places = np.atleast_1d(kth).tolist()
    parted = np.partition(x, kth, axis)
    assert parted.shape == ((plain.size,) if axis is None else shape)
    assert lazyarray.is_lazy(parted) and parted.dtype == plain.dtype and parted.flags.c_contiguous
    check(plain, np.asarray(parted), places, axis)
    found = np.argpartition(x, kth, axis)
    assert found.dtype == np.intp and found.flags.c_contiguous
    order = np.asarray(found)
    flat = plain.reshape(-1) if axis is None else plain
    check(plain, np.take_along_axis(flat, order, -1 if axis is None else axis), places, axis)
    assert np.array_equal(x, plain)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", [np.partition, np.argpartition])
def test_nan_is_last(function, dtype):
    plain = values((1024 // LESS, 1024 // LESS), dtype)
    plain[3, 5] = plain[-9, 0] = np.nan
    result = np.asarray(function(lazyarray.asarray(plain), 4, 1))
    check(plain, result if function is np.partition else np.take_along_axis(plain, result, 1), [4], 1)
    assert np.isnan(np.partition(lazyarray.asarray(plain), 4, 1)[3, -1])
