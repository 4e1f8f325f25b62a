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
@pytest.mark.parametrize("positions", ["i4", "i8"])
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
    """What is taken was there at one time."""
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
            if written == "table":
                assert len(set(np.asarray(x[i] + 1).tolist())) == 1
            else:
                found = np.asarray(values[i] + 1)
                assert abs(found[1] - found[0]) == 1 and (np.abs(np.diff(found)) == 1).all()
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
