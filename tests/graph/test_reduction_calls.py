"""Calls of reductions that look alike mean what they mean to NumPy, however often and in which order they come."""
from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import lazyarray

PLAIN = np.arange(-12.0, 12.0).reshape(2, 3, 4) * 0.5

#: Keywords whose values are equal, or are spelt in another way.
ALIKE = {
    "axis": [{"axis": value} for value in (0, 0.0, np.int64(0), (0,), (0.0,), -3, None, 1, (1, 2), (2, 1), (), 3,
                                           (0, 0), (0, 1.0))],
    "keepdims": [{"axis": 1, "keepdims": value} for value in (True, False, 1, 0, True)],
    "ddof": [{"ddof": value} for value in (0, 1, True, 1.0, 1.5, -1, np.int64(1), 24)],
    "dtype": [{"dtype": value} for value in (None, float, "f4", np.float32, np.dtype("f4"), np.dtype(">f4"),
                                             "complex64", int, bool, "e", "nonsense")],
    "several": [{"axis": 0, "dtype": "f4"}, {"dtype": "f4", "axis": 0}, {"axis": 0, "dtype": "f8"}, {"axis": -1},
                {"axis": -1, "out": None}, {"axis": -1, "initial": 5.0}, {"axis": -1, "where": True},
                {"axis": -1, "where": False}, {"axis": -1, "initial": np._NoValue}, {"axes": 0}],
}
FUNCTIONS = {"axis": (np.sum, np.max, np.mean, np.all, np.std, np.count_nonzero, np.linalg.norm, np.argmax),
             "keepdims": (np.sum, np.min, np.var, np.argmin, np.linalg.norm), "ddof": (np.var, np.std),
             "dtype": (np.sum, np.mean, np.var), "several": (np.sum, np.mean)}


@pytest.fixture(autouse=True)
def deferred():
    with lazyarray.options(defer_from=0, warn_fallbacks=False):
        yield


def told(call):
    """What a call gives, or the class of its error."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(call())
    except Exception as error:  # noqa: BLE001  whatever it is, it is compared
        return type(error)


def same(found, expected):
    if isinstance(expected, type):
        return found is expected
    return (found.dtype, found.shape) == (expected.dtype, expected.shape) and np.allclose(
        found, expected, rtol=1e-3 if expected.dtype.char in "eF" else 1e-6, equal_nan=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("kind", list(ALIKE))
def test_keywords_that_look_alike(kind, backwards):
    x = lazyarray.asarray(PLAIN)
    calls = list(itertools.product(FUNCTIONS[kind], ALIKE[kind]))
    for function, given in (calls[::-1] if backwards else calls) * 2:
        expected = told(lambda: function(PLAIN * 2, **given))
        assert same(told(lambda: function(x * 2, **given)), expected), (function.__name__, given)
        member = getattr(PLAIN, function.__name__, None)
        if member is not None:
            expected = told(lambda: getattr(PLAIN * 2, function.__name__)(**given))
            assert same(told(lambda: getattr(x * 2, function.__name__)(**given)), expected), (function.__name__, given)


@pytest.mark.parametrize("function", [np.sum, np.max, np.mean, np.argmax, np.linalg.norm, np.count_nonzero])
@pytest.mark.parametrize("given", [(0,), (0, None), (None,), (1.0,), (1,), ((0, 1),), ((0, 1.0),)], ids=str)
@pytest.mark.parametrize("named", [{}, {"keepdims": True}, {"axis": 1}, {"axis": 0}], ids=str)
def test_what_is_given_by_position(function, given, named):
    x = lazyarray.asarray(PLAIN)
    for _ in range(2):
        assert same(told(lambda: function(x * 2, *given, **named)), told(lambda: function(PLAIN * 2, *given, **named)))


def test_forms_that_have_the_same_shape():
    """Where the elements lie tells the one from the other."""
    plain = np.arange(64.0).reshape(4, 4, 4)
    for _ in range(2):
        for order in itertools.permutations(range(3)):
            seen = plain.transpose(order)
            x = lazyarray.asarray(plain).transpose(order)
            for function, axis in itertools.product((np.sum, np.argmax, np.std), (None, 0, 1, 2)):
                expected = function(seen * 2, axis=axis)
                for found in (function(x * 2, axis=axis), function((lazyarray.asarray(plain) * 2).transpose(order),
                                                                   axis=axis)):
                    assert same(np.asarray(found), np.asarray(expected)), (order, function.__name__, axis)


def test_elements_of_another_dtype():
    for _ in range(2):
        for char in "?bBhHiIlLefdFD":
            plain = PLAIN.astype(char) if char not in "BHIL" else abs(PLAIN).astype(char)
            x = lazyarray.asarray(plain)
            for function in (np.sum, np.mean, np.max, np.any, np.linalg.norm):
                expected = told(lambda: function(np.positive(plain) if char != "?" else plain.copy(), axis=1))
                found = told(lambda: function(np.positive(x) if char != "?" else x.copy(), axis=1))
                assert same(found, expected), (char, function.__name__)


def test_classes_that_tell_of_a_dtype_are_asked_each_time():
    class Told:
        dtype = np.dtype("f4")

    x = lazyarray.asarray(PLAIN)
    assert (x * 2).sum(dtype=Told).dtype == (PLAIN * 2).sum(dtype=Told).dtype == np.float32
    Told.dtype = np.dtype("f8")
    assert (x * 2).sum(dtype=Told).dtype == (PLAIN * 2).sum(dtype=Told).dtype == np.float64


ALONG = {
    "reduce": lambda x, axis: np.add.reduce(x, axis=axis),
    "accumulate": lambda x, axis: np.add.accumulate(x, axis=axis),
    "argmin": lambda x, axis: x.argmin(axis=axis), "take": lambda x, axis: x.take([0], axis=axis),
    "stack": lambda x, axis: np.stack([x, x], axis=axis), "roll": lambda x, axis: np.roll(x, 1, axis=axis),
    "concatenate": lambda x, axis: np.concatenate([x, x], axis=axis), "sort": lambda x, axis: np.sort(x, axis=axis),
    "nansum": lambda x, axis: np.nansum(x, axis=axis), "pending": lambda x, axis: (x * 2).sum(axis=axis),
    "tuple": lambda x, axis: x.prod(axis=(axis,)), "median": lambda x, axis: np.median(x, axis=axis),
    "norm": lambda x, axis: np.linalg.norm(x, axis=axis), "flip": lambda x, axis: np.flip(x, axis=axis),
    "kept": lambda x, kept: x.sum(axis=0, keepdims=kept), "kept mean": lambda x, kept: x.mean(axis=0, keepdims=kept),
    "kept position": lambda x, kept: np.argmax(x, axis=0, keepdims=kept),
    "kept median": lambda x, kept: np.median(x, axis=0, keepdims=kept),
    "kept extreme": lambda x, kept: (x * 2).max(axis=0, keepdims=kept),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("odd", [True, False, np.True_, np.False_, 1.0, None, 1, np.int8(1), "x"], ids=repr)
@pytest.mark.parametrize("name", ALONG)
def test_axes_and_keepdims_that_are_no_plain_integers(name, odd):
    """NumPy takes True for an axis in some functions, and not in others."""
    call, x = ALONG[name], lazyarray.asarray(PLAIN)
    found, expected = told(lambda: call(x, odd)), told(lambda: call(PLAIN, odd))
    assert same(found, expected), (found, expected)


SWAPPED = """
import numpy as np
import lazyarray
from lazyarray import _native

device = lazyarray.device()
kind, looked = type(device), type(device).spread
_native.recording.small(0)
for kept in range(3):
    for computed in (False, True):
        x, y = (lazyarray.asarray(np.full(600, value)) + 0 for value in (1.0, 2.0))
        if computed:
            lazyarray.block_until_ready(x, y)
        left = [None] * kept

        def spread(self):       # another thread's turn: x has another storage then
            if left:
                left.pop()
            elif x._self_storage is not y._self_storage:
                x._self_meta, x._self_array, x._self_leaf = y._self_meta, y._self_array, None
                x._self_storage = y._self_storage
            return looked.__get__(self)

        kind.spread = property(spread)
        try:
            found = float(x.sum())
        finally:
            kind.spread = looked
        assert found in (600, 1200), found
"""


@pytest.mark.skipif(lazyarray.device().name != "simulated", reason="changes the simulated device")
def test_an_array_that_gets_another_storage_while_a_reduction_begins():
    """Memory that is freed is overwritten in this process, so that it would not go well by chance."""
    with lazyarray.options(defer_from=0):
        subprocess.run([sys.executable, "-c", SWAPPED], check=True, timeout=120,
                       env=os.environ | {"PYTHONMALLOC": "debug", "LAZYARRAY_DEVICE": "simulated"})
