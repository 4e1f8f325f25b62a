"""Every overridable function, ufunc, ndarray member and dtype is in exactly one table, and has recipes.

A new NumPy release with a new function fails here rather than slip by.
"""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import operands
import pytest
import recipes
import recipes_members
import recipes_ufuncs
from numpy.testing.overrides import get_overridable_numpy_array_functions, get_overridable_numpy_ufuncs

import lazyarray
from lazyarray.functions import tables

# NumPy lists only what has been imported.
for _module in ("char", "fft", "lib.recfunctions", "lib.scimath", "linalg", "ma", "polynomial", "rec", "strings"):
    importlib.import_module(f"numpy.{_module}")

TABLES = ("VIEWS", "ADAPTED", "COMPOSED", "LAZY", "HOST_ONLY")


def _public(func):
    """What ``__array_function__`` is given: for the inner halves of ``like=`` functions, their public namesake."""
    return getattr(np, func.__name__, func) if func.__module__ == "numpy" else func


OVERRIDABLE = {_public(func) for func in get_overridable_numpy_array_functions()}


def _names(funcs):
    return sorted(f"{func.__module__}.{func.__name__}" for func in funcs)


@pytest.mark.parametrize("pair", list(itertools.combinations(TABLES, 2)), ids="-".join)
def test_tables_are_disjoint(pair):
    first, second = (set(getattr(tables, name)) for name in pair)
    assert _names(first & second) == []


def test_tables_hold_every_overridable_function():
    held = set().union(*(getattr(tables, name) for name in TABLES))
    assert _names(OVERRIDABLE - held) == []
    assert _names({_public(func) for func in held} - OVERRIDABLE) == []


def test_every_overridable_function_has_recipes():
    assert _names(OVERRIDABLE - set(recipes.RECIPES)) == []
    assert _names(set(recipes.RECIPES) - OVERRIDABLE) == []


def test_host_only_functions_say_why():
    reasons = tables.HOST_ONLY.items()
    assert [func for func, reason in reasons if not (isinstance(reason, str) and len(reason) > 8)] == []


def test_every_ufunc_is_in_the_table():
    held = set(tables.UFUNCS) | set(tables.UFUNC_HOST_ONLY)
    assert {ufunc.__name__ for ufunc in get_overridable_numpy_ufuncs() ^ held} == set()
    assert {ufunc.__name__ for ufunc in set(tables.UFUNCS) & set(tables.UFUNC_HOST_ONLY)} == set()


def test_every_ufunc_has_recipes():
    assert [name for name, cases in recipes_ufuncs.groups() if not cases] == []
    assert set(recipes_ufuncs.UFUNCS) == {ufunc.__name__ for ufunc in get_overridable_numpy_ufuncs()}


def test_every_member_of_ndarray_exists():
    missing = set(dir(np.ndarray)) - set(dir(lazyarray.LazyNdarray))
    assert sorted(missing - {"_set_dtype", "_set_shape"}) == []  # NumPy 2.5's private setters


def test_every_member_of_ndarray_has_recipes():
    members = set(dir(np.ndarray))
    assert sorted(members - set(recipes_members.MEMBERS) - set(recipes_members.NOT_TESTED)) == []
    assert set(recipes_members.MEMBERS).isdisjoint(recipes_members.NOT_TESTED)


def test_every_dtype_is_tested():
    tested = {operands.dtype_of(code).type for code in operands.DEVICE_DTYPES + operands.HOST_DTYPES}
    kinds = {np.dtype(kind).type for kind in np.typecodes["All"]} | {np.dtypes.StringDType().type}
    # On each platform one of int, long, long long and one of their unsigned twins is another name for the same.
    same = {np.longlong, np.ulonglong, np.intc, np.uintc}
    assert {kind.__name__ for kind in kinds - tested - same} == set()


@pytest.mark.parametrize("code", operands.DEVICE_DTYPES)
def test_the_device_holds(code):
    assert lazyarray.device().can_hold(np.dtype(code))


@pytest.mark.parametrize("code", operands.HOST_DTYPES)
def test_the_device_does_not_hold(code):
    assert not lazyarray.device().can_hold(operands.dtype_of(code))
