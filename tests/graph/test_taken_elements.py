"""``x[i]`` and ``x[i, j]`` of elements are recorded: one kernel takes them and computes what comes of them."""
from __future__ import annotations

import itertools
import sys
import threading

import numpy as np
import pytest
from recorded import compiled, pending

import lazyarray
import lazyarray.numpy as lnp

DEVICE = lazyarray.device()
needs_c = pytest.mark.skipif(lazyarray._native.recording is None, reason="calls in C alone are recorded so")
pytestmark = [needs_c, pytest.mark.one_device("what is recorded is of one device")]
DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"]


def on_device(values):
    return lazyarray.asarray(DEVICE.xp.asarray(values)).copy()


def known(index, *lengths):
    """An index on the device, of which it is known how far it reaches."""
    i = on_device(index)
    for length in lengths:
        on_device(np.zeros(length))[i]
    return i


def taken(x, index):
    """``x[index]``, recorded: the step is made at the first call of its dtypes."""
    x[index]
    return x[index]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("positions", ["i1", "i2", "i4", "i8"])
def test_elements_are_numpys(dtype, positions):
    values = (np.arange(50) % 30).astype(dtype)
    index = np.array([[4, -1, 0], [49, -50, 4]], positions)
    x, i = on_device(values), known(index, 50)
    with lazyarray.trace() as t:
        found = taken(x, i)
        more = found + found
    assert not t.events and pending(found) and pending(more)
    assert found.dtype == values.dtype and found.shape == index.shape
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(x[i] * x[i[::-1]]), values[index] * values[index[::-1]])
        compiled()
    np.testing.assert_array_equal(np.asarray(more), values[index] + values[index])
    np.testing.assert_array_equal(np.asarray(found), values[index])


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("waits", [False, True])
def test_positions_along_all_axes(axes, waits):
    shape = (7, 5, 4)[:axes]
    rng = np.random.default_rng(axes)
    values = rng.random(shape)
    index = tuple([rng.integers(-n, n, 40) for n in shape])
    x, i = on_device(values), tuple([known(part, n) for part, n in zip(index, shape)])
    if waits:       # work on integers of which it is known how far it reaches
        i, index = tuple([np.abs(part) // 2 for part in i]), tuple([np.abs(part) // 2 for part in index])
    key, where = (i, index) if axes > 1 else (i[0], index[0])
    for _ in range(4):
        found = taken(x, key)
        assert pending(found)
        np.testing.assert_array_equal(np.asarray(found * 2 + 1), values[where] * 2 + 1)
        compiled()
        i = tuple([part + 0 for part in i])


@pytest.mark.parametrize("seen", [
    lambda i: i[::2], lambda i: i[::-1], lambda i: i.reshape(6, 8), lambda i: i.reshape(6, 8)[:, 1:7:2],
    lambda i: i.reshape(6, 8)[::-1, ::-1], lambda i: i.reshape(6, 8).T, lambda i: i[:1]])
def test_positions_as_they_are_seen(seen):
    values, index = np.arange(60.0), np.random.default_rng(0).integers(-60, 60, 48)
    x, i = on_device(values), known(index, 60)
    for _ in range(3):
        found = x[seen(i)]
        np.testing.assert_array_equal(np.asarray(found - 1), values[seen(index)] - 1)
        expected = values[seen(index)]
        assert np.asarray(found).strides == expected.strides and found.strides == expected.strides


@pytest.mark.parametrize("table", [
    lambda x: x[5:55], lambda x: x.reshape(10, 6).reshape(-1), lambda x: x[::2], lambda x: x[::-1], lambda x: x * 2,
    lambda x: (x * 2).reshape(10, 6)[3:].reshape(-1), lambda x: np.asfortranarray(x.reshape(10, 6)).T.reshape(-1)])
def test_tables_as_they_are_seen(table):
    values, index = np.arange(60.0), np.random.default_rng(0).integers(-20, 20, 48)
    x, i = on_device(values), known(index, 20)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(table(x)[i] + 1), table(values)[index] + 1)


def test_of_a_table_of_two_axes_in_fortrans_order():
    values = np.asfortranarray(np.arange(20.0).reshape(4, 5))
    x, i, j = on_device(values), known(np.array([0, 3, 1]), 4), known(np.array([4, 2, -1]), 5)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(x[i, j] * 2), values[[0, 3, 1], [4, 2, -1]] * 2)


@pytest.mark.parametrize("change", [
    lambda x, i: x.__setitem__(slice(None), 7), lambda x, i: x.__iadd__(1), lambda x, i: x.__setitem__(i, 5.0),
    lambda x, i: i.__setitem__(slice(None), 0), lambda x, i: i.__iadd__(1), lambda x, i: x.fill(2),
    lambda x, i: x.sort(),
    lambda x, i: np.asarray(x).fill(4), lambda x, i: np.asarray(i).fill(3),
    lambda x, i: np.add.at(x, i, 1.0), lambda x, i: np.copyto(x, 3), lambda x, i: x[::2].__imul__(3)])
def test_what_is_written_later_does_not_count(change):
    values, index = np.arange(50.0)[::-1].copy(), np.array([1, 4, -2, 7])
    x, i = on_device(values), known(index, 60, 50)
    found = taken(x, i)
    more = found * 2
    change(x, i)
    np.testing.assert_array_equal(np.asarray(found), values[index])
    np.testing.assert_array_equal(np.asarray(more), values[index] * 2)
    again = values.copy(), index.copy()
    change(*again)
    np.testing.assert_array_equal(np.asarray(x), again[0])
    np.testing.assert_array_equal(np.asarray(x[i]), again[0][again[1]])


@pytest.mark.parametrize("write", [
    lambda x, y: x.__isub__(y), lambda x, y: x.__setitem__(slice(None), y), lambda x, y: np.add(x, y, out=x),
    lambda x, y: np.multiply(y, 2, out=x), lambda x, y: x[1:].__iadd__(y[1:]),
    lambda x, y: x.__setitem__(slice(None), x + y * 2)])
def test_a_table_becomes_what_is_taken_of_it(write):
    """No thread of a kernel may read what another one has written."""
    index = np.random.default_rng(1).permutation(5000)
    values = np.random.default_rng(2).random(5000)
    i = known(index, 5000)
    for _ in range(4):
        x, expected = on_device(values), values.copy()
        x += 1
        expected += 1
        write(x, x[i])
        write(expected, expected[index])
        np.testing.assert_array_equal(np.asarray(x), expected)
        compiled()


def test_positions_become_what_they_take():
    index = np.random.default_rng(1).permutation(3000)
    i, expected = known(index, 3000), index.copy()
    for _ in range(4):
        i[:] = i[i]
        expected[:] = expected[expected]
        np.testing.assert_array_equal(np.asarray(i), expected)
        i = i[i]
        expected = expected[expected]


@pytest.mark.parametrize("reduce", [
    lambda x: x.sum(), lambda x: x.max(axis=0), lambda x: x.mean(axis=1), lambda x: np.argmin(x, axis=1),
    lambda x: (x > 20).any(axis=0), lambda x: x.std(), lambda x: np.cumsum(x, axis=1), lambda x: np.sort(x, axis=0)])
def test_reductions_of_what_is_taken(reduce):
    values, index = np.arange(40.0), np.random.default_rng(0).integers(-40, 40, (30, 16))
    x, i = on_device(values), known(index, 40)
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(reduce(x[i] * 0.5)), reduce(values[index] * 0.5), rtol=1e-14)
        np.testing.assert_allclose(np.asarray(reduce(x[i])), reduce(values[index]), rtol=1e-14)
        compiled()


def test_bounds_of_what_is_taken_are_known():
    """No wait for how far integers reach that were taken of those of which that is known."""
    table, index = np.arange(100)[::-1] % 30, np.random.default_rng(0).integers(0, 100, 500)
    x, i, values = known(table, 40), known(index, 100), on_device(np.arange(40.0))
    with lazyarray.trace() as t:
        for found, expected in ((values[x[i]], np.arange(40.0)[table[index]]),
                                (values[x[i] + 3], np.arange(40.0)[table[index] + 3])):
            assert not t.events
            np.testing.assert_array_equal(np.asarray(found), expected)
            t.events.clear()
    with pytest.raises(IndexError):
        values[x[i] + 11]


def test_out_of_range_is_an_error_at_the_call():
    x, i = on_device(np.arange(50.0)), on_device(np.array([3, 50]))
    for _ in range(3):
        with pytest.raises(IndexError):
            x[i]


def test_displays_show_what_was_taken_without_computing_all():
    values, index = np.arange(50.0), np.random.default_rng(0).integers(0, 50, 20_000)
    x, i = on_device(values), known(index, 50)
    found = taken(x, i) * 2
    with lazyarray.trace():
        shown = repr(found)
    assert shown == repr(values[index] * 2) and pending(found)
    np.testing.assert_array_equal(np.asarray(found), values[index] * 2)


def test_nothing_is_recorded_where_that_is_off():
    x, i = on_device(np.arange(50.0)), known(np.array([1, 2]), 50)
    taken(x, i)
    with lazyarray.options(defer_from=None):
        assert not pending(x[i])
    with np.errstate(over="raise"):
        assert not pending(x[i])


def test_memory_that_somebody_else_holds():
    values = np.arange(50.0)
    memory = DEVICE.xp.asarray(values)
    x, i = lazyarray.asarray(memory), known(np.array([1, 2, -1]), 50)
    found = taken(x, i)
    memory[:] = 0
    np.testing.assert_array_equal(np.asarray(found), values[[1, 2, -1]])


@pytest.mark.parametrize("written", ["table", "positions"])
def test_another_thread_writes(written):
    """What is recorded was there at one time. (What is taken at once may have elements of two, as in NumPy.)"""
    x, i = on_device(np.zeros(4000)), known(np.arange(4000), 4000)
    two = known(np.arange(4000)[::-1].copy(), 4000), known(np.arange(4000), 4000)
    values = on_device(np.arange(4000.0))
    taken(x, i)
    stop, before = threading.Event(), sys.getswitchinterval()

    def write():
        for k in itertools.count():
            if stop.is_set():
                return
            if written == "table":
                x[:] = float(k)
            else:
                i[:] = two[k % 2]

    thread = threading.Thread(target=write)
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        for _ in range(150):
            found = x[i] if written == "table" else values[i]
            if pending(found):
                found = np.asarray(found + 1)
                assert (np.abs(np.diff(found)) == (written == "positions")).all()
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)


def test_a_program_of_takings():
    rng = np.random.default_rng(5)
    links, weights = rng.integers(0, 300, (2, 900)), rng.random(900)

    def program(np, asarray):
        source, target, w = asarray(links[0]), asarray(links[1]), asarray(weights)
        rank, parent = np.full(300, 1 / 300), np.arange(300)
        for _ in range(5):
            flow = w * rank[source] / (1 + w[source % 7])
            rank = 0.15 / 300 + 0.85 * np.bincount(target, weights=flow, minlength=300)
            parent = parent[parent[np.minimum(parent + 1, 299)]]
        return rank, parent, rank[parent] - rank[np.argsort(rank)]

    found, expected = program(lnp, on_device), program(np, np.array)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12, atol=1e-18)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("ndim", [1, 2])
def test_rows(dtype, axis, count, ndim):
    """As `test_elements_are_numpys`, of rows. What is behind other axes is not recorded: it comes first in memory."""
    shape = (6, 5, 4, 3)
    rng = np.random.default_rng(axis)
    values = (np.arange(360).reshape(shape) % 60).astype(dtype)
    index = [rng.integers(-n, n, (7, 2)[:ndim]) for n in shape[axis:axis + count]]
    x, i = on_device(values), [known(part, n) for part, n in zip(index, shape[axis:])]
    key, where = (slice(None),) * axis + (*i,), (slice(None),) * axis + (*index,)
    other = (np.arange(values[where].size) % 7).reshape(values[where].shape).astype(dtype)
    with lazyarray.trace() as t:
        found = taken(x, key)
        more = found + found
    assert not t.events and pending(found) is (axis == 0) and pending(more)
    assert found.dtype == values.dtype and found.shape == values[where].shape and found.strides == values[where].strides
    y = on_device(other)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(x[key] * y), values[where] * other)
        np.testing.assert_array_equal(np.asarray((x[key] * y)[1:]), (values[where] * other)[1:])
        np.testing.assert_array_equal(np.asarray(x[key].max(axis=0)), values[where].max(axis=0))
        compiled()
    np.testing.assert_array_equal(np.asarray(more), values[where] + values[where])
    np.testing.assert_array_equal(np.asarray(found), values[where])


@pytest.mark.parametrize("write", [
    lambda x, i, j: x.__isub__(x[i]), lambda x, i, j: x.__setitem__(slice(None), x[:, j]),
    lambda x, i, j: x[:, j].__iadd__(1), lambda x, i, j: x.__setitem__((slice(None), j), x[:, j] * 2 + x[i][:, j]),
    lambda x, i, j: np.add(x[i], x[:, j].T if x.shape[0] == x.shape[1] else 1, out=x),
    lambda x, i, j: x.__setitem__(i, x[i] - x[i].mean(axis=1, keepdims=True))])
def test_rows_become_what_is_taken_of_them(write):
    rng = np.random.default_rng(3)
    rows, columns = rng.permutation(60), rng.permutation(40)
    i, j = known(rows, 60), known(columns, 40)
    values = rng.random((60, 40))
    for _ in range(4):
        x, expected = on_device(values), values.copy()
        x += 1
        expected += 1
        write(x, i, j)
        write(expected, rows, columns)
        np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-12, atol=1e-15)
        compiled()


def test_many_large_rows_are_taken_at_once():
    """A kernel of its own takes words of 16 bytes."""
    x, i = on_device(np.arange(9000.0).reshape(3, 3000)), known(np.arange(1500) % 3, 3)
    found = taken(x, i)
    assert not pending(found)
    np.testing.assert_array_equal(np.asarray(found), np.arange(9000.0).reshape(3, 3000)[np.arange(1500) % 3])


@pytest.mark.parametrize("number", [0, 1, 3])
def test_rows_of_no_elements_and_of_few(number):
    values = np.arange(12.0 * number).reshape(12, number)
    x, i = on_device(values), known(np.array([[1, -1], [5, 5]]), 12)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(x[i] + 1), values[[[1, -1], [5, 5]]] + 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_along_an_axis(dtype, axis):
    rng = np.random.default_rng(axis % 3)
    values = (rng.integers(0, 60, (4, 5, 6))).astype(dtype)
    index = np.moveaxis(rng.integers(-values.shape[axis], values.shape[axis], (3, *np.delete(values.shape, axis))), 0,
                        axis % 3).copy()
    x, i = on_device(values), known(index, values.shape[axis])
    with lazyarray.trace() as t:
        found = np.take_along_axis(x, i, axis)
        more = found + found
    expected = np.take_along_axis(values, index, axis)
    assert not t.events and pending(found) and found.dtype == expected.dtype and found.shape == expected.shape
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(np.take_along_axis(x, i, axis) == found), expected == expected)
        compiled()
    np.testing.assert_array_equal(np.asarray(more), expected + expected)
    np.testing.assert_array_equal(np.asarray(found), expected)
    x[:] = 0
    i[:] = 0
    np.testing.assert_array_equal(np.asarray(np.take_along_axis(x, i, axis)), np.zeros_like(expected))


def test_along_an_axis_at_positions_of_which_nothing_is_known():
    """They are looked at once after each write; or never, and wrap around then."""
    values = np.random.default_rng(7).random((5, 6))
    index = np.array([[0, -1, 5], [3, 3, 2], [1, 0, 0], [4, 4, 4], [5, 2, -6]])
    x, i = on_device(values), on_device(index)
    for looks in (1, 0):
        with lazyarray.trace() as t:
            found = np.take_along_axis(x, i, 1)
        assert pending(found) and len(t.events) == looks, t.events
        np.testing.assert_array_equal(np.asarray(found * 2), np.take_along_axis(values, index, 1) * 2)
    i[2, 1] = 6
    for _ in range(2):
        with pytest.raises(IndexError):
            np.take_along_axis(x, i, 1)
    far = on_device(index * 5 + 3)
    with lazyarray.options(check_indices=False), lazyarray.trace() as t:
        found = np.take_along_axis(x, far, 1)
        assert pending(found) and not t.events
        np.testing.assert_array_equal(np.asarray(found), np.take_along_axis(values, (index * 5 + 3) % 6, 1))
    with pytest.raises(IndexError):
        np.take_along_axis(x, far, 1)


@pytest.mark.parametrize("seen", [lambda i: i, lambda i: i + 0, lambda i: on_device(np.asarray(i))])
def test_positions_along_an_axis_wrap_around_within_it(seen, small_on_host):
    small_on_host(95_000)
    values = np.arange(7 * 2000.0).reshape(7, 2000)
    for place in (2000, 2001, 5999, -2001, 2**40 + 3):
        index = np.zeros((7, 2), int)
        index[::3, 1] = place
        with lazyarray.options(check_indices=False):
            found = np.take_along_axis(lazyarray.asarray(values), seen(lazyarray.asarray(index)), 1)
            np.testing.assert_array_equal(np.asarray(found), np.take_along_axis(values, index % 2000, 1))
        with pytest.raises(IndexError):
            np.take_along_axis(lazyarray.asarray(values), seen(lazyarray.asarray(index)), 1)


@pytest.mark.parametrize("case", [
    lambda x, i, j: x[i], lambda x, i, j: x[i, j], lambda x, i, j: x[i, 2], lambda x, i, j: x[i + 1, j - 1],
    lambda x, i, j: x.ravel()[i]])
def test_positions_of_which_nothing_is_known(case):
    """All of them are looked at once, and then recorded as others are; or never, and wrap around then."""
    rng = np.random.default_rng(3)
    values, index = rng.random((30, 40)), [rng.integers(-9, 9, 50), rng.integers(-9, 9, 50)]
    x, expected = on_device(values), case(values, *index)
    for turn in range(3):
        i, j = map(on_device, index)
        with lazyarray.trace() as t:
            found = case(x, i, j)
        assert [e.kind for e in t.events] in (["synchronise"], ["synchronise"] * 2)
        with lazyarray.trace() as t:
            again = case(x, i, j)
        assert not t.events and pending(again) and (pending(found) or not turn)
        np.testing.assert_array_equal(np.asarray(again), expected)
        np.testing.assert_array_equal(np.asarray(found * 2), expected * 2)
    with pytest.raises(IndexError):
        case(x, i * 500, j * 500)


def test_positions_that_are_not_looked_at_wrap_around():
    values, index = np.random.default_rng(3).random((30, 40)), np.random.default_rng(4).integers(-500, 500, (2, 50))
    index[:, 7] = 2**62 + 11, -2**61
    x, i, j = on_device(values), on_device(index[0]), on_device(index[1])
    for _ in range(3):
        with lazyarray.options(check_indices=False), lazyarray.trace() as t:
            found, rows = x[i, j], x[i] + 1
        assert not t.events
        np.testing.assert_array_equal(np.asarray(found), values[index[0] % 30, index[1] % 40])
        np.testing.assert_array_equal(np.asarray(rows), values[index[0] % 30] + 1)
    with lazyarray.options(check_indices=False):
        assert pending(x[i, j]) and pending(x[i])
        with pytest.raises(IndexError):
            x[i, 40]
        with pytest.raises(IndexError):
            x[i, j[:7]]
    with pytest.raises(IndexError):
        x[i, j]


def test_what_an_order_takes_along_an_axis():
    """Positions of which it is known how far they reach, without a wait; seen otherwise, they are taken as before."""
    values = np.random.default_rng(0).random((40, 30))
    x = on_device(values)
    for axis in (0, 1):
        with lazyarray.trace() as t:
            order = np.argsort(x, axis=axis)
            found = np.take_along_axis(x * 2, order, axis=axis) - 1
            integers = np.take_along_axis(order, order, axis)
            best = np.take_along_axis(x, np.expand_dims(x.argmax(axis=axis), axis), axis)
        assert not t.events
        there = values.argsort(axis=axis)
        np.testing.assert_array_equal(np.asarray(found), np.sort(values * 2, axis=axis) - 1)
        np.testing.assert_array_equal(np.asarray(integers), np.take_along_axis(there, there, axis))
        np.testing.assert_array_equal(np.asarray(best), values.max(axis=axis, keepdims=True))
        again = x[integers[0], 0]
        np.testing.assert_array_equal(np.asarray(again), values[np.take_along_axis(there, there, axis)[0], 0])
        for seen in (lambda a: a[::-1], lambda a: a.T, lambda a: a[:, :1], lambda a: a[:, ::2]):
            if seen(there).shape[1 - axis] == values.shape[1 - axis]:
                np.testing.assert_array_equal(np.asarray(np.take_along_axis(x, seen(order), axis)),
                                              np.take_along_axis(values, seen(there), axis))
    np.testing.assert_array_equal(np.asarray(np.take_along_axis(x.ravel(), order.ravel(), None)),
                                  np.take_along_axis(values.ravel(), there.ravel(), None))
    for wrong in (lambda a, i: np.take_along_axis(a, i + 30, 1), lambda a, i: np.take_along_axis(a, i, 2),
                  lambda a, i: np.take_along_axis(a, i[0], 1), lambda a, i: np.take_along_axis(a, i * 1.0, 1)):
        with pytest.raises((IndexError, ValueError)):
            wrong(values, there)
        with pytest.raises((IndexError, ValueError)):
            wrong(x, order)


@pytest.mark.parametrize("case", [
    lambda i, j, k: (i[:, None], j), lambda i, j, k: (i, j[:, None], k), lambda i, j, k: (3, j, k),
    lambda i, j, k: (i, -2, k), lambda i, j, k: (i[:, None, None], j[:, None], k),
    lambda i, j, k: (i, slice(None), slice(None)), lambda i, j, k: (i[:, None], j, slice(None)),
    lambda i, j, k: (slice(None), j[:, None], k), lambda i, j, k: (slice(None), slice(None), k.reshape(2, 2)),
    lambda i, j, k: (i[:1], j), lambda i, j, k: (i[::-1, None], j[::2]), lambda i, j, k: (slice(None), 1, k)])
@pytest.mark.parametrize("few", [False, True])
def test_positions_of_different_shapes(case, few):
    """Also whole numbers among them, and a few that the host has."""
    rng = np.random.default_rng(4)
    values = rng.random((6, 7, 8))
    index = [rng.integers(-n, n, 4) for n in values.shape]
    x, parts = on_device(values), [known(part, n) for part, n in zip(index, values.shape)]
    if few:
        parts[-1] = lazyarray.asarray(index[-1])
    for turn in range(4):
        key, where = case(*parts), case(*index)
        found = x[key]
        expected = values[where]
        assert found.shape == expected.shape and found.strides == expected.strides
        np.testing.assert_array_equal(np.asarray(found * 2 + turn), expected * 2 + turn)
        np.testing.assert_array_equal(np.asarray(x[key]), expected)
        index[-1][0] = turn         # which may be what the host's are
        parts[-1][0] = turn
        compiled()


def test_what_is_taken_is_shown_as_an_index():
    from lazyarray.graph.expression import expression

    x, i, j = on_device(np.arange(20.0).reshape(4, 5)), known(np.array([0, 3]), 4), known(np.array([1, 4]), 5)
    lazyarray.device().synchronize()    # a copy that waits is shown as one
    names = {id(x._self_storage): "x", id(i._self_storage): "i", id(j._self_storage): "j"}
    shown = [expression(one._self_storage, lambda storage, array: names.get(id(storage)))[0] for one in (
        taken(x, (i, j)) * 2, taken(x, i) + 1, taken(x, (i, 3)), taken(x.ravel(), i))]
    assert shown == ["x[i, j] * 2", "x[i] + 1", "x[i, 3]", "x[i]"]
    i = known(np.zeros((4, 1), int), 5)
    lazyarray.device().synchronize()
    along = np.take_along_axis(x, i, 1) - x
    assert expression(along._self_storage)[0].startswith("take_along_axis(float64[4,5], int64[4,1]) - ")


def test_a_handler_writes_positions_while_they_are_recorded():
    """They were looked at before: what they are then is looked at, too."""
    import handlers

    values, number = np.arange(12.0).reshape(3, 4), 0
    while True:
        x, i = on_device(values), known(np.array([[0], [1], [3]]), 4)
        np.take_along_axis(x, i, 1)
        at = handlers.At(number, lambda signum, frame, i=i: i.__setitem__((1, 0), 7))
        try:
            with at:
                found = np.take_along_axis(x, i, 1)
        except IndexError:
            assert at.ran
        else:
            np.testing.assert_array_equal(np.asarray(found), np.take_along_axis(values, np.array([[0], [1], [3]]), 1))
        if not at.ran:
            break
        number += 1


@pytest.mark.skipif(DEVICE.name != "simulated", reason="a simulated device may be one of two")
def test_elements_are_recorded_where_one_of_several_devices_is_used():
    with DEVICE.with_count(2):
        x = lazyarray.block_until_ready(lazyarray.asarray(np.arange(6000.0)))
        elements = x[3], x.reshape(60, 100)[2, 5]
        assert all(one._self_storage.pending is not None for one in elements)
        assert [float(one) for one in elements] == [3, 205]
