"""``x[i, j]`` and ``x[:, i, j] = value``, of positions that the device has, or the host a few of, as NumPy has them."""
from __future__ import annotations

import itertools
import math
import os
import sys
import threading

import numpy as np
import pytest

import lazyarray
from lazyarray import _native
from lazyarray.dispatch import advanced_indexing, ufunc_methods

DEVICE = lazyarray.device()

pytestmark = pytest.mark.skipif(_native.recording is None, reason="small arrays stay on the host in C alone")


@pytest.fixture(autouse=True)
def small():
    before = _native.recording.small(4096)
    yield
    aliases.clear()
    _native.recording.small(before)


def on_device(values):
    """Of more than a few bytes, or known to reach as far as it does."""
    return lazyarray.asarray(DEVICE.xp.asarray(values)).copy()


def known(index, length):
    i = on_device(index)
    on_device(np.zeros(max(length, 600)))[i]
    return i


def light(index, length):
    """An array that is nothing but an ndarray."""
    i = lazyarray.asarray(np.array(index)) + 0
    assert _native.recording.is_light(i)
    return i


def stored(index, length):
    """An array on the host, of which a storage knows."""
    i = light(index, length)
    assert i._self_storage.state == "host" and not _native.recording.is_light(i)
    return i


def seen(index, length):
    """An array on the device that was looked at on the host, where it has an alias."""
    i = known(index, length)
    aliases.append(np.asarray(i))
    return i


def part(index, length):
    """A view whose elements do not lie side by side."""
    index = np.asarray(index)
    return known(np.stack([index, np.zeros_like(index)], -1)[..., ::-1], length)[..., 1]


def narrow(index, length):
    """Of integers that the kernels do not read."""
    return known(np.array(index, "i2"), length)


def plain(index, length):
    """NumPy's own."""
    return np.array(index)


aliases = []
HOMES = {"device": (known, known, known), "host": (light, light, light), "some": (light, known, light),
         "host with a storage": (stored, stored, stored), "both": (seen, light, known),
         "ndarrays": (plain, plain, plain), "an ndarray": (plain, known, light),
         "parts": (part, part, part), "narrow": (narrow, part, narrow)}
SHAPE = (30, 20, 40)
#: Each of whole numbers and slices ("3", ":"), and how many arrays of positions.
FORMS = ["i", "ij", "ijk", ":i", ":ij", "::i", "3i", "3ij", "33i", "ij:", "i:", ":i:", "3i:"]
NUMBERS = ["i3", "i3k", "i3:", ":i3", "ij3", "i33", "3i3"]      # among and behind the arrays
CASES = [*itertools.product(FORMS, HOMES), *itertools.product(NUMBERS, ("some", "ndarrays", "narrow"))]


#: Positions counted from the beginning, some of them from the end, and "i" or "k" of them at even steps.
WAYS = "begin", "end", "rises", "falls", "rises from the end"


DTYPES = ["f8", "u1", "c16"]
KINDS = ["number", "values", "one row", "recorded", "other dtype"]

#: How many positions, of some shapes, and the ways to choose them.
COUNTED = [*itertools.product((1, 2, 7, 90), WAYS), *itertools.product([(2, 3), (1, 7), (3, 2, 15)], WAYS[1:3])]


def counted(*case):
    """All of them at night, else every third: another third for the next case, so that each is met with each form."""
    if os.environ.get("LAZYARRAY_NIGHTLY") == "1":
        return COUNTED
    return COUNTED[sum(place.index(one) for place, one in case) % 3::3]


def positions(rng, form, shape, way):
    found, count = [], math.prod(np.atleast_1d(shape))
    for letter, length in zip(form, SHAPE):
        if letter in "ijk":
            i = rng.integers(0 if way == "begin" else -length, length, count)
            if letter != "j" and way not in ("begin", "end") and count < length:
                step = max((length - 1) // count, 1)
                i = np.arange(length - count * step, length)[::step][:count] - length * (way == "rises from the end")
                i = i[::-1] if way == "falls" else i
            found.append(i.reshape(shape).astype("i4" if letter == "j" else "i8"))
    return found


def index_of(form, arrays):
    arrays = iter(arrays)
    items = [next(arrays) if letter in "ijk" else 3 if letter == "3" else slice(None) for letter in form]
    return tuple(items) if len(items) > 1 else items[0]


def strides(array):
    """Those of axes of one element say nothing."""
    return [step for step, length in zip(array.strides, array.shape) if length > 1]


@pytest.mark.parametrize(("form", "home"), CASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_taken_is_numpys(dtype, form, home):
    homes = HOMES[home]
    rng = np.random.default_rng(len(form))
    values = rng.integers(0, 100, SHAPE).astype(dtype)
    x = on_device(values)
    for count, way in counted((DTYPES, dtype), (CASES, (form, home))):
        given = positions(rng, form, count, way)
        for _ in range(2):
            expected = values[index_of(form, given)]
            found = x[index_of(form, [home(i, max(SHAPE)) for home, i in zip(homes, given)])]
            assert found.dtype == expected.dtype and found.shape == expected.shape
            assert strides(found) == strides(expected)
            np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize(("form", "home"), CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_assigned_is_numpys(kind, form, home):
    homes = HOMES[home]
    rng = np.random.default_rng(len(form) + len(kind))
    values = rng.integers(0, 100, SHAPE).astype("f8")
    for count, way in counted((KINDS, kind), (CASES, (form, home))):
        x, expected = on_device(values), values.copy()
        given = positions(rng, form, count, way)
        if way == "begin":      # none twice
            given = [np.sort(rng.permutation(20)[:i.size]).reshape(i.shape) if i.size <= 20 else i for i in given]
        shape = expected[index_of(form, given)].shape
        rows = rng.integers(0, 100, shape).astype("f4" if kind == "other dtype" else "f8")
        of = {"number": lambda array: 2.5, "one row": lambda array: array(rows[..., -1:]),
              "recorded": lambda array: array(rows) * 2 + 1}.get(kind, lambda array: array(rows))
        lazy = [home(i, max(SHAPE)) for home, i in zip(homes, given)]
        for _ in range(2):
            expected[index_of(form, given)] = of(np.asarray)
            x[index_of(form, lazy)] = of(on_device)
            np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize(("form", "home"), [case for case in CASES if sum(map(case[0].count, "ijk")) > 1])
def test_positions_that_are_broadcast(form, home):
    homes = HOMES[home]
    rng = np.random.default_rng(len(form))
    values = rng.integers(0, 100, SHAPE).astype("f8")
    for shapes in (((3, 1), (1, 4), (1, 1)), ((4,), (3, 1), (4,)), ((2, 1, 1), (2, 4, 3), (2, 4, 3)),
                   ((1,), (5,), (1, 1))):
        for way in ("begin", "end", "distinct"):
            given = [positions(rng, form, s, way)[k] for k, s in zip(range(sum(map(form.count, "ijk"))), shapes)]
            if way == "distinct":
                given = [np.sort(rng.permutation(20)[:i.size]).reshape(i.shape) if i.size <= 20 else i for i in given]
            x, expected = on_device(values), values.copy()
            lazy = [home(i, max(SHAPE)) for home, i in zip(homes, given)]
            for _ in range(2):
                wanted, found = expected[index_of(form, given)], x[index_of(form, lazy)]
                assert found.shape == wanted.shape and strides(found) == strides(wanted)
                np.testing.assert_array_equal(np.asarray(found), wanted)
                rows = rng.random(wanted.shape)
                expected[index_of(form, given)] = rows
                x[index_of(form, lazy)] = on_device(rows)
                np.testing.assert_array_equal(np.asarray(x), expected)
                expected[index_of(form, given)] = 2.5
                x[index_of(form, lazy)] = 2.5
                np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("homes", HOMES.values(), ids=HOMES)
def test_what_is_out_of_range_is_an_index_error(homes):
    x = on_device(np.arange(600.0).reshape(20, 30))
    for first, second in (([3, 20], [4, 5]), ([3, -21], [4, 5]), ([3, 4], [4, 30]), ([3, 4], [-31, 5])):
        i, j = (home(np.array(p), 600) for home, p in zip(homes, (first, second)))
        with pytest.raises(IndexError):
            np.asarray(x[i, j])
        with pytest.raises(IndexError):
            x[i, j] = 2
    assert np.asarray(x).ravel().tolist() == list(range(600))


@pytest.mark.parametrize("homes", HOMES.values(), ids=HOMES)
def test_what_does_not_broadcast_is_numpys_error(homes):
    values = np.arange(600.0).reshape(20, 30)
    x = on_device(values)
    lengths = (3, 1), (3, 2), (1, 4)
    for one, other in lengths:
        given = np.array([1, 5, 9, 11][:one]), np.array([2, 7, 12, 3][:other])
        i, j = (home(p, 600) for home, p in zip(homes, given))
        if 1 in (one, other):
            np.testing.assert_array_equal(np.asarray(x[i, j]), values[given])
        else:
            with pytest.raises(IndexError):
                x[i, j]


def test_it_is_done_in_c(monkeypatch):
    """Whether the indexes are on the device or on the host. (What they are of is too large for the host.)"""
    x, i, j = on_device(np.arange(6e5).reshape(20, 30, 1000)), known([3, 7, 1], 10), light([2, 9, 4], 10)
    p, q = known([[3, 7], [1, 5]], 10), light([[2, 9], [4, 1]], 10)
    taken = ((i, j), (j, i), (slice(None), j), (3, j), (slice(None), i, j), (i, slice(None)), (p, q), (q, p),
             (slice(None), q), (q, q), (p, p, q), (p + 1, np.where(p > 2, p, 0)), (p[:, 1], p[0]), p[:, ::-1],
             narrow([[3, 7], [1, 5]], 10), (known([[3], [7]], 10), j), (light([[3], [7]], 10), i), (i[:, None], j),
             (p, light([2, 9], 10), known([[3], [7]], 10)))
    for _ in range(3):      # kernels are made, and what is on the host is sent
        for index in taken:
            np.asarray(x[index])
            x[index] = 4

    def fail(*args):
        raise AssertionError("this is done in C")

    monkeypatch.setattr(advanced_indexing, "rows_of", fail)
    for index in taken:
        before = np.asarray(x[index])
        x[index] = 5
        assert before.shape == x[index].shape and (np.asarray(x[index]) == 5).all()


@pytest.mark.parametrize("home", [known, light, stored, seen, plain])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u8", "c16", "i2", "?"])
@pytest.mark.parametrize("shape", [(600,), (600, 3)])
def test_what_is_added_is_numpys(shape, dtype, home):
    rng = np.random.default_rng(len(shape))
    values = rng.integers(0, 50, shape).astype(dtype)
    index = rng.integers(-600, 600, 80)
    rows = rng.integers(0, 50, (80, *shape[1:])).astype(dtype)
    for given in (rows, rows[0], rows.astype("f4"), 2, 2.5, True, np.float64(2), rows[:3], "2", 1 << 70):
        results = []
        for array, i in ((np.array, index), (on_device, home(index, 600))):
            x, outcome = array(values), None
            for _ in range(2):
                try:
                    np.add.at(x, i, array(given) if isinstance(given, np.ndarray) else given)
                except (TypeError, ValueError, OverflowError) as error:
                    outcome = type(error)
            results.append((outcome, np.asarray(x).tolist()))
        assert results[0] == results[1], given


@pytest.mark.parametrize("homes", HOMES.values(), ids=HOMES)
@pytest.mark.parametrize("form", ["ij", "ijk", "ij:", "i:j", ":ij"])
def test_what_is_added_along_several_axes_is_numpys(form, homes):
    rng = np.random.default_rng(len(form))
    values = rng.integers(0, 100, SHAPE).astype("f8")
    for count, way in ((7, "end"), (90, "end"), (7, "rises"), (1, "begin"), ((4, 5), "end"), ((3, 1), "rises")):
        given = positions(rng, form, count, way)
        rows = rng.integers(0, 100, values[index_of(form, given)].shape).astype("f8")
        for value in (rows, rows[0], 2):
            x, expected = on_device(values), values.copy()
            lazy = [home(i, max(SHAPE)) for home, i in zip(homes, given)]
            for _ in range(2):
                np.add.at(expected, index_of(form, given), value)
                np.add.at(x, index_of(form, lazy), on_device(value) if isinstance(value, np.ndarray) else value)
            np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.one_device("C does it on one device")
def test_numbers_are_added_in_c(monkeypatch):
    x, i, w = on_device(np.arange(600.0)), known([3, 5, 3], 600), on_device(np.ones(3))
    n, y, j = on_device(np.arange(600)), on_device(np.zeros((600, 4))), known([1, 0, 1], 4)
    for _ in range(2):      # kernels are made
        np.add.at(y, (i, j), w)
        np.add.at(x, i, w)
        np.add.at(n, i, 1)
    monkeypatch.setitem(ufunc_methods.METHODS, "at", None)
    np.add.at(x, i, w)
    np.add.at(x, i, 0.5)
    np.add.at(n, i, 2)
    np.add.at(y, (i, j), w)
    assert np.asarray(y)[[3, 5]].tolist() == [[0, 6, 0, 0], [3, 0, 0, 0]]
    assert np.asarray(x)[[3, 5, 4]].tolist() == [10, 8.5, 4] and np.asarray(n)[[3, 5, 4]].tolist() == [11, 9, 4]


def test_what_was_known_of_integers_holds_no_more_once_something_is_added():
    i, x, places = known([3, 5, 7], 10), on_device(np.arange(600.0)), known([0, 2], 3)
    np.asarray(x[i])
    np.add.at(i, places, on_device(np.array([590, 2])))
    assert np.asarray(x[i]).tolist() == [593, 5, 9]
    np.add.at(i, places, 100)
    with pytest.raises(IndexError):
        np.asarray(x[i])


def test_an_index_may_change():
    """An array that is an ndarray alone is read each time."""
    x, i = on_device(np.arange(100.0)), light([5, 3, 9], 100)
    for k in range(20):
        assert np.asarray(x[i]).tolist() == [5 + k, 3, 9]
        i[0] += 1
    i[0] = 100
    with pytest.raises(IndexError):
        np.asarray(x[i])


def test_an_alias_of_an_index_may_change():
    x, j = on_device(np.arange(600.0).reshape(20, 30)), light([1, 0, 9], 30)
    i = seen([5, 3, 9], 20)
    for k in range(10):
        assert np.asarray(x[i, j]).tolist() == [151 + 30 * k, 90, 279]
        aliases[-1][0] += 1
    aliases[-1][0] = 20
    with pytest.raises(IndexError):
        np.asarray(x[i, j])
    with pytest.raises(IndexError):
        x[i, j] = 1


def test_positions_in_the_array_that_is_written():
    values = np.array([3, 1, 0, 2, 4] * 40)
    x, expected = light(values, 5), values.copy()
    big = on_device(np.arange(5000.0))
    big[x] = 1      # and it has a storage, at the latest the next time
    big[x] = 2
    x[x[:5]] = 7
    expected[expected[:5]] = 7
    np.testing.assert_array_equal(np.asarray(x), expected)
    i = x[:3]
    x[i] = [1, 2, 3]
    expected[expected[:3]] = [1, 2, 3]
    np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("home", [known, light, seen])
def test_what_another_thread_writes_to_an_index_is_seen_as_a_whole(home):
    """Its bounds are of the positions that are taken, or there is an IndexError."""
    values, good, bad = np.arange(90.0), np.array([5, -3, 7]), np.array([5, 93, 7])
    x, i, others = on_device(values), home(good, 90), [on_device(good), on_device(bad)]
    stop, wrong = threading.Event(), []

    def write():
        while not stop.is_set():
            for other in others:
                i[...] = other

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(600):
            try:
                found = np.asarray(x[i]).tolist()
            except IndexError:
                continue
            if found != values[good].tolist():
                wrong.append(found)
    finally:
        stop.set()
        writer.join()
        sys.setswitchinterval(before)
    assert not wrong


@pytest.mark.parametrize("seen_as", [lambda i: i.T, lambda i: i.T[::-1], lambda i: i[:, ::-1], lambda i: i[::-1, ::2],
                                     lambda i: i.reshape(4, 3, 4).swapaxes(0, 2)])
def test_positions_in_any_order_in_memory(seen_as):
    """What is taken lies as they do; of several values for a place the last one counts that NumPy comes to."""
    rng = np.random.default_rng(3)
    values, index = rng.random((30, 20)), rng.integers(-20, 20, (4, 12))
    i, expected = seen_as(index), values.copy()
    x, j = on_device(values), seen_as(known(index, 30))
    for key, lazy in ((i, j), ((i, i), (j, j)), ((slice(None), i), (slice(None), j))):
        for _ in range(3):
            found = x[lazy]
            assert strides(found) == strides(values[key])
            np.testing.assert_array_equal(np.asarray(found), values[key])
        given = rng.random(values[key].shape)
        for _ in range(3):
            expected[key] = given
            x[lazy] = on_device(given)
            np.testing.assert_array_equal(np.asarray(x), expected)
        expected, x = values.copy(), on_device(values)


@pytest.mark.filterwarnings("error::lazyarray.HostFallbackWarning")
def test_ranges():
    values = np.arange(45.0).reshape(5, 3, 3)
    x = on_device(values)
    for index in ((..., range(3), range(3)), range(2), range(4, 0, -2), (range(2), slice(None), range(1, 3))):
        expected = values.copy()
        np.testing.assert_array_equal(np.asarray(x[index]), expected[index])
        expected[index] += 1
        y = x.copy()
        y[index] += 1
        np.testing.assert_array_equal(np.asarray(y), expected)
