"""Every overridable function gives NumPy's answer on lazy arrays, with no more copies than the contract allows."""

from __future__ import annotations

import os

import parity
import pytest
import recipes

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
