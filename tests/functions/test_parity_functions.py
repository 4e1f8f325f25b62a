"""Every overridable function gives NumPy's answer on lazy arrays, with no more copies than the contract allows."""

from __future__ import annotations

import os

import numpy as np
import parity
import pytest
import recipes

import lazyarray
from lazyarray.functions import tables

NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"
NAMED = {recipes.name_of(func): func for func in recipes.RECIPES}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_function_gives_numpys_answer(name):
    func = NAMED[name]
    found = parity.failures(
        recipes.cases_of(func),
        parity.Library.lazyarray(),
        nightly=NIGHTLY,
        on_device=func not in tables.HOST_ONLY,
    )
    assert not found, parity.report(found)


@pytest.mark.parametrize("edges", [[5.5, np.nan], [0, 5.5, np.nan], [np.nan, 1]])
def test_edges_of_bins_that_are_nan(edges):
    plain, edges = np.array([5.5, 0, 0.5, np.nan, 2]), np.array(edges)
    x, lazy_edges = lazyarray.asarray(plain), lazyarray.asarray(edges)
    for bins in (edges, lazy_edges):
        assert np.array_equal(np.histogram(x, bins)[0], np.histogram(plain, edges)[0])
    with pytest.raises(ValueError):
        np.histogram(x, lazyarray.asarray(np.array([1.0, np.nan, 5, 2])))
