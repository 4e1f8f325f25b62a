"""Reductions of small arrays that are computed already, before there is a kernel for them: by the device library."""
from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import lazyarray
from lazyarray.graph.record import reductions

FUNCTIONS = [np.sum, np.prod, np.any, np.all, np.max, np.min, np.amax, np.amin, np.mean, np.var, np.std]


@pytest.fixture(autouse=True)
def nothing_is_deferred(monkeypatch):
    monkeypatch.setattr(reductions, "LOOKED_AT", sys.maxsize)
    with lazyarray.options(defer_from=None):
        yield


def numbers(dtype):
    values = np.arange(1, 13).reshape(3, 4) % 5
    return values.astype(dtype)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", "?bBhHiIlLefdFD")
@pytest.mark.parametrize("order", "CF")
def test_results(function, dtype, order):
    plain = np.asarray(numbers(dtype), order=order)
    x = lazyarray.asarray(plain)
    for call in (function, lambda a: function(a, 0), lambda a: function(a, axis=-1), lambda a: function(a, axis=None),
                 lambda a: getattr(a, function.__name__.removeprefix("a") if function.__name__ in ("amax", "amin")
                                   else function.__name__)(axis=1)):
        found, expected = call(x), call(plain)
        assert type(found) is (lazyarray.LazyNdarray if np.ndim(expected) else lazyarray.LazyScalar)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        assert np.asarray(found).strides == np.asarray(expected).strides
        assert np.allclose(found, expected, rtol=1e-2 if dtype == "e" else 1e-5)


@pytest.mark.parametrize("call", [
    lambda a: np.sum(a, 2), lambda a: np.max(a[:0]), lambda a: a.sum(1.5), lambda a: a.std(correction=1),
    lambda a: np.sum(a, 0, axis=0), lambda a: a.mean(ddof=1),
])
def test_mistakes_are_numpys(call):
    with pytest.raises(Exception) as expected:
        call(numbers("d"))
    with pytest.raises(type(expected.value)):
        call(lazyarray.asarray(numbers("d")))


@pytest.mark.together
def test_what_foreign_code_wrote_is_seen():
    x = lazyarray.asarray(numbers("d"))
    alias = np.asarray(x)
    assert np.sum(x) == alias.sum()
    alias[0, 0] = 100
    assert np.sum(x) == alias.sum() and x.max() == 100
    y = lazyarray.asarray(numbers("d"))
    lazyarray.asdevice(y).fill(3)
    assert np.mean(y) == 3


@pytest.mark.parametrize("value", [
    0.0, -0.0, 2.5, np.nan, np.inf, complex(np.inf, 1), complex(-0.0, -0.0), True, 200, -3])
@pytest.mark.parametrize("func", [np.sum, np.prod, np.mean, np.max, np.min, np.nansum, np.nanprod, np.std, np.any])
def test_reductions_of_one_number(func, value):
    with lazyarray.options(small_on_host=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in {"c": "FD", "f": "efd", "i": "hilHIL" if value == 200 else "bhil", "b": "?"}[
                np.asarray(value).dtype.kind]:
            plain = np.asarray(value).astype(dtype)
            lazy = lazyarray.asarray(plain.reshape(1))
            for kwargs in ({}, {"axis": None}, {"keepdims": True}, {"axis": ()}):
                if func in (np.std, np.mean) and "axis" in kwargs:
                    continue
                wanted, found = func(plain, **kwargs), func(lazy.reshape(()), **kwargs)
                assert found.dtype == wanted.dtype
                for part in (np.real, np.imag):
                    one, other = part(np.asarray(found)), part(np.asarray(wanted))
                    assert np.array_equal(one, other, equal_nan=True)
                    assert np.isnan(one) or np.signbit(one) == np.signbit(other)    # NaN has any sign
