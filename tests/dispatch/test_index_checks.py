"""Indexes on the device: out of range raises as in NumPy, duplicates end as in NumPy, and both can be switched off."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray.dispatch import advanced_indexing


@pytest.fixture
def x():
    return lazyarray.asarray(np.arange(12.0).reshape(3, 4))


BEYOND = {
    "read": lambda x, i: x[i],
    "read with a slice": lambda x, i: x[:, i],
    "read a pair": lambda x, i: x[i, i],
    "write": lambda x, i: x.__setitem__(i, 1),
    "write values": lambda x, i: x.__setitem__(i, np.ones((2, 4))),
    "take": lambda x, i: np.take(x, i, axis=0),
    "x.take": lambda x, i: x.take(i, axis=1),
    "put": lambda x, i: np.put(x, i * 9, 1),
    "take_along_axis": lambda x, i: np.take_along_axis(x, i[:, None], axis=0),
    "put_along_axis": lambda x, i: np.put_along_axis(x, i[:, None], 1, axis=0),
    "delete": lambda x, i: np.delete(x, i, axis=0),
    "add.at": lambda x, i: np.add.at(x, i, 1),
    "unravel_index": lambda x, i: np.unravel_index(i * 9, (3, 4)),
}


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("index", [[0, 7], [-9, 0]], ids=str)
@pytest.mark.parametrize("use", BEYOND)
def test_out_of_range_is_an_error_and_changes_what_numpy_changes(x, use, index, where):
    index = np.array(index)
    plain = np.asarray(x).copy()
    error = ValueError if use == "unravel_index" else IndexError
    with pytest.raises(error):
        BEYOND[use](plain, index)
    with pytest.raises(error):
        BEYOND[use](x, lazyarray.asarray(index) if where == "device" else index)
    assert x.tolist() == plain.tolist()


def waits(call):
    with lazyarray.trace() as t:
        call()
    return [event.reason for event in t.events if event.kind == "synchronise"]


def unknown(values):
    """An index of whose values nothing is known."""
    return lazyarray.asarray(np.array(values, float)).astype(int)


def test_the_check_waits_for_a_flag_only_where_the_index_is_on_the_device(x):
    index = unknown([0, 2])
    assert waits(lambda: x[index]) == ["bounds check"]
    assert waits(lambda: x[lazyarray.asarray(np.array([0, 2]))]) == []
    assert waits(lambda: x[[0, 2]]) == []
    with lazyarray.options(check_indices=False):
        assert waits(lambda: x[index]) == []
        assert x[index].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("key", [
    lambda i: i, lambda i: (i, i % 4), lambda i: (slice(None), i), lambda i: (Ellipsis, i), lambda i: (i, slice(1, 3)),
    lambda i: (i[:, None], i[None] % 4), lambda i: (None, i), lambda i: (i, None, i % 4),
], ids=range(8))
def test_the_last_of_several_assignments_stays(x, key, where):
    index = np.random.default_rng(0).integers(0, 3, 40)
    plain = np.asarray(x).copy()
    values = np.random.default_rng(1).random(np.broadcast_to(np.False_, plain.shape)[key(index)].shape)
    plain[key(index)] = values
    x[key(lazyarray.asarray(index) if where == "device" else index)] = lazyarray.asarray(values)
    assert x.tolist() == plain.tolist()


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u8"])
@pytest.mark.parametrize("where", ["host", "device"])
def test_the_last_of_several_assignments_stays_for_each_dtype_of_an_index(dtype, where):
    rng = np.random.default_rng(3)
    index, values = rng.integers(0, 100, 5000).astype(dtype), rng.random(5000)
    plain, x = np.zeros((300, 300)), lazyarray.asarray(np.zeros((300, 300)))
    plain[index, index[::-1]] = values
    key = lazyarray.asarray(index) if where == "device" else index
    x[key, key[::-1]] = lazyarray.asarray(values)
    assert np.array_equal(np.asarray(x), plain)


def test_that_an_array_is_read_only_comes_before_what_is_wrong_with_the_index():
    with lazyarray.options(small_on_host=False):
        x = lazyarray.asarray(np.arange(3.0))
        x.setflags(write=False)
        for array in (x, np.broadcast_to(x, (2, 3))):
            with pytest.raises(ValueError, match="read-only"):
                array[slice(1.0)] = 1


class Odd:
    """An index whose `__index__` fails, and that makes an array if it has positions."""

    def __init__(self, error, *positions):
        self.error = error
        if positions:
            self.__class__ = type("OddArray", (Odd,), {"__array__": lambda *args, **kw: np.array(positions)})

    def __index__(self):
        raise self.error


@pytest.mark.parametrize("item", [
    np.timedelta64(1, "s"), np.timedelta64("NaT", "s"), np.datetime64(1, "s"), np.str_("a"),
    np.void(b"ab"), Odd(ValueError), Odd(TypeError), Odd(ValueError, 2, 1)], ids=range(8))
@pytest.mark.parametrize("key", [
    lambda i: i, lambda i: (0, i), lambda i: (i, 0), lambda i: (..., i), lambda i: (None, i), lambda i: [i, 0],
    lambda i: ([0], i), lambda i: (np.array([True, False, True]), i)], ids=range(8))
@pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
def test_what_is_no_whole_number_is_an_index_where_it_is_one_to_numpy(item, key):
    def outcome(array, use):
        try:
            return use(array)
        except Exception as error:  # noqa: BLE001  NumPy's is compared
            return type(error)
    for use in (lambda x: x[key(item)].tolist(), lambda x: x.__setitem__(key(item), 7)):
        x, plain = (make(np.arange(12.0).reshape(3, 4)) for make in (lazyarray.asarray, np.asarray))
        assert outcome(x, use) == outcome(plain, use)
        assert x.tolist() == plain.tolist()


def test_assignments_wait_for_the_check_alone_and_not_for_who_checks_himself(x):
    index, values = unknown([2, 0]), lazyarray.asarray(np.ones((2, 4)))
    with lazyarray.options(check_indices=False):
        assert waits(lambda: x.__setitem__(index, values)) == []
    assert x[:, 0].tolist() == [1, 4, 1]
    assert waits(lambda: x.__setitem__(index, values)) == ["bounds check"]


MASKS = {
    "all of it": lambda m: m,
    "rows": lambda m: m[:, 0],
    "columns": lambda m: (slice(None), m[0]),
    "rows and a column": lambda m: (m[:, 0], 1),
    "rows and columns": lambda m: (m[:, 0], [0, 1]),
}


@pytest.mark.parametrize("true", [0, 1, 2, 3])
@pytest.mark.parametrize("values", [(), (0,), (1,), (2,), (3,), (4,), (1, 2), (2, 4), (3, 2), (3, 1), (1, 1, 2)],
                         ids=str)
@pytest.mark.parametrize("mask", MASKS)
def test_a_mask_takes_as_many_values_as_it_is_true(x, mask, values, true):
    plain = np.asarray(x).copy()
    where = np.zeros((3, 4), bool)
    where[:true, 0] = where[0, :true] = True
    given = np.arange(100.0, 100 + np.prod(values)).reshape(values)
    error = None
    try:
        plain[MASKS[mask](where)] = given
    except (ValueError, IndexError, TypeError) as raised:
        error = type(raised)
    if error is None:
        x[MASKS[mask](where)] = lazyarray.asarray(given)
    else:
        with pytest.raises(error):
            x[MASKS[mask](where)] = lazyarray.asarray(given)
    assert x.tolist() == plain.tolist()


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
@pytest.mark.parametrize("width", [None, 3])
def test_the_last_of_several_stays_where_the_index_is_known(monkeypatch, dtype, width):
    """Then a vector's elements are assigned without a look at the index once more."""
    rng = np.random.default_rng(5)
    index, shape = rng.integers(0, 30, 500), (100,) if width is None else (100, width)
    values = (rng.random((500, *shape[1:])) * 100).astype(dtype)
    plain = np.zeros(shape)
    with lazyarray.options(small_on_host=False):
        x, key, lazy = lazyarray.asarray(plain.copy()), lazyarray.asarray(index), lazyarray.asarray(values)
        assert x[key].shape == values.shape     # which finds out what is in the index
        if width is None and not lazyarray.device().spread:
            monkeypatch.setattr(advanced_indexing, "Index", None)
        plain[index] = values
        x[key] = lazy
        np.testing.assert_array_equal(x, plain)
        plain[::-1][index] = values
        x[::-1][key] = lazy
        np.testing.assert_array_equal(x, plain)
