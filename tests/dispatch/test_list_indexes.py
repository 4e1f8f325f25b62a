"""Lists of whole numbers as indexes: what arrays of positions do, and what NumPy takes a list for otherwise."""
from __future__ import annotations

import enum

import numpy as np
import pytest

import lazyarray


class Place(enum.IntEnum):
    SECOND = 1


class Subclass(list):
    pass


VALUES = np.arange(60.0).reshape(5, 4, 3)
INDEXES = {
    "one": [2], "two": [3, 1], "the same twice": [1, 1, 0], "from the end": [-1, 0, -5], "even": [0, 2, 4],
    "turned": [4, 3, 2], "empty": [], "booleans": [True, False, True, True, False], "mixed": [True, 0, 1],
    "NumPy's": [np.int64(3), np.int8(1)], "an enumeration's": [Place.SECOND, 0], "a subclass": Subclass([1, 2]),
    "nested": [[1, 2], [0, 4]], "a tuple within": [(1, 2)], "beyond": [0, 5], "before": [-6], "too large": [1 << 70],
    "floats": [1.0, 2.0], "beside a slice": (slice(None), [1, 3]), "after a number": (2, [0, 3]),
    "two lists": ([1, 2, 2], [0, 3, 3]), "broadcast": ([1, 2], [[0], [3]]), "of other lengths": ([1, 2, 3], [0, 1]),
    "a list and a number": ([3, 0], 2), "with an ellipsis": (..., [0, 2]), "with a new axis": (None, [0, 2]),
    "a list and an array": ([0, 1], np.array([2, 3])),
}


def outcome(work, x):
    """What a call gives, and the array after it."""
    try:
        found = work(x)
    except (IndexError, ValueError, TypeError, DeprecationWarning) as error:
        found = type(error)
    return found, x


def put_rows(x, index):
    x[index] = -np.arange(1.0, x[index].size + 1).reshape(x[index].shape)


def swap(x, index):
    """As the pivot of an elimination is swapped."""
    x[index] = x[index][::-1]


WORK = {
    "taken": lambda x, index: x[index],
    "a number put": lambda x, index: x.__setitem__(index, 7.5),
    "an array put": put_rows,
    "swapped": swap,
    "added to": lambda x, index: np.add.at(x, index, 2.0),
    "updated": lambda x, index: x.__setitem__(index, x[index] * 2.0),
}


@pytest.mark.parametrize("pending", [False, True], ids=["there", "pending"])
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("index", INDEXES)
def test_what_numpy_does(index, work, pending):
    plain, x = VALUES.copy(), lazyarray.asarray(VALUES)
    if pending:
        plain, x = plain * 2.0 + 1.0, x * 2.0 + 1.0
    wanted, after = outcome(lambda a: WORK[work](a, INDEXES[index]), plain)
    found, changed = outcome(lambda a: WORK[work](a, INDEXES[index]), x)
    if isinstance(wanted, np.ndarray):
        found = np.asarray(found)
        assert found.dtype == wanted.dtype and np.array_equal(found, wanted)
    else:
        assert found is wanted
    assert np.array_equal(np.asarray(changed), after)


def test_a_list_that_is_changed_afterwards_names_what_it_named():
    x = lazyarray.asarray(VALUES)
    index = [1, 2]
    taken = x[index] + 1
    index[:] = [0, 0]
    assert np.array_equal(np.asarray(taken), VALUES[[1, 2]] + 1)


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8", "f4", "c16", "?"])
def test_rows_are_swapped(dtype):
    plain = (np.arange(2000) % 7).reshape(20, 100).astype(dtype)
    x = lazyarray.asarray(plain)
    for k in range(10):
        x[[k, 19 - k]] = x[[19 - k, k]]
        plain[[k, 19 - k]] = plain[[19 - k, k]]
    assert np.array_equal(np.asarray(x), plain)
