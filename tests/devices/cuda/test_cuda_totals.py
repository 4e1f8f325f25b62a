"""Totals in half precision are as exact as those of NumPy, which adds up in single precision. (CUB does not.)"""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray

VALUES = (np.random.default_rng(2).normal(size=(200, 3001)) * 3).astype("f2")


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("how", ["sum", "np.sum", "where", "initial", "dtype", "nansum", "reduce"])
def test_totals_of_halves_are_as_exact_as_numpys(how, axis):
    x = lazyarray.asarray(lazyarray.device().xp.asarray(VALUES))
    found = {
        "sum": lambda: x.sum(axis=axis), "np.sum": lambda: np.sum(x + 0, axis=axis),
        "where": lambda: np.sum(x, axis=axis, where=x > -100), "initial": lambda: np.sum(x, axis=axis, initial=0.5),
        "dtype": lambda: np.sum(x.astype("f4"), axis=axis, dtype="f2"), "nansum": lambda: np.nansum(x, axis=axis),
        "reduce": lambda: np.add.reduce(x, axis=axis),
    }[how]()
    exact = VALUES.astype(float).sum(axis=axis) + 0.5 * (how == "initial")
    assert found.dtype == np.float16
    numpys = np.abs(VALUES.sum(axis=axis).astype(float) - VALUES.astype(float).sum(axis=axis)).max()
    rounded = np.abs(exact).max() * np.finfo(np.float16).eps / 2
    assert np.abs(np.asarray(found, dtype=float) - exact).max() <= numpys + rounded
