"""``x[i]`` and ``x[i] = value`` where it is known how far `i` reaches: what NumPy gives, without a wait."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray

DEVICE = lazyarray.device()


def on_device(values):
    return lazyarray.asarray(DEVICE.xp.asarray(values)).copy()


def known(index, length):
    """An index on the device, of which it is known how far it reaches."""
    i = on_device(index)
    on_device(np.zeros(length))[i]
    return i


SHAPES = (50,), (50, 3), (50, 2, 4)
INDEXES = {
    "rising": np.arange(3, 40, 3), "from the end": np.array([-1, 0, -50, 49, 7]), "twice": np.array([4, 4, 9, 4]),
    "table": np.arange(24).reshape(4, 6) % 50, "one": np.array([7]), "small": np.array([1, 2, 3], np.int8)}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?", "c16", "f2"])
def test_rows_are_numpys(shape, dtype, index):
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    x, i = on_device(values), known(index, 50)
    for _ in range(3):
        with lazyarray.trace() as t:
            found = x[i]
        assert not t.events
        expected = values[index]
        assert found.dtype == expected.dtype and found.shape == expected.shape and found.flags.c_contiguous
        assert found.base is None and found.flags.writeable
        np.testing.assert_array_equal(np.asarray(found), expected)
        i[0] += 0
        np.testing.assert_array_equal(np.asarray(x[i]), expected)


def test_rows_are_of_new_memory():
    x, i = on_device(np.arange(50.0)), known(np.arange(5), 50)
    found = x[i]
    found += 100
    assert np.asarray(x)[:5].tolist() == [0, 1, 2, 3, 4] and np.asarray(found)[0] == 100


@pytest.mark.parametrize("value", [
    3, -1, 2.5, True, 300, np.float32(1.5), np.int8(7), 1j, "7", [1, 2, 3, 4, 5], "array", "rows", "other dtype",
    "too many", "scalar", "waiting", "itself"])
@pytest.mark.parametrize("shape", SHAPES[:2])
@pytest.mark.parametrize("dtype", ["f8", "i4", "u1", "?"])
def test_what_is_assigned_is_numpys(shape, dtype, value):
    values = (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype)
    for index in (np.array([40, 3, 0, 9, 22]), np.array([-1, 3, 3, 0, 3])):
        numbers = np.arange(5 * np.prod(shape[1:])).reshape(5, *shape[1:]).astype(dtype)

        def given(array, x, rows=numbers):
            return {"array": lambda: array(rows), "rows": lambda: array(rows[0]),
                    "other dtype": lambda: array(rows.astype("f4")),
                    "too many": lambda: array(np.ones((6, *shape[1:]), dtype)), "scalar": lambda: array(rows).max(),
                    "waiting": lambda: array(rows) + array(rows), "itself": lambda: x[:5]}.get(value, lambda: value)()

        results = []
        for array in (np.array, on_device):
            x = array(values)
            i = index if array is np.array else known(index, 50)
            outcome = None
            for _ in range(2):
                try:
                    with np.errstate(all="ignore"):
                        x[i] = given(array, x)
                except (ValueError, TypeError, OverflowError) as error:
                    outcome = type(error)
            results.append((np.asarray(x).tolist(), outcome))
        assert results[0] == results[1]


@pytest.mark.parametrize("wrong", [50, -51, 2**40])
def test_an_index_out_of_range_raises(wrong):
    x, i = on_device(np.arange(50.0)), known(np.arange(5), 50)
    x[i], x[on_device(np.arange(5))]
    i[2] = wrong
    for statement in ("x[i]", "x[i] = 0", "x[i] += 1"):
        with pytest.raises(IndexError, match="out of bounds"):
            exec(statement, {"x": x, "i": i})
    shorter = on_device(np.arange(3.0))
    i[2] = 0
    with pytest.raises(IndexError, match="out of bounds"):
        shorter[i]
    np.testing.assert_array_equal(np.asarray(x), np.arange(50.0))


def test_what_cannot_be_written():
    x, i = on_device(np.arange(50.0)), known(np.arange(5), 50)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        x[i] = 0
    once = np.broadcast_to(on_device(np.arange(3.0)), (50, 3))
    assert np.asarray(once[i]).tolist() == [[0, 1, 2]] * 5
    with pytest.raises(ValueError, match="read-only"):
        once[i] = 0


def test_views_and_recorded_arrays():
    values = np.arange(600.0).reshape(50, 12)
    x, i = on_device(values), known(np.array([3, 1, 49]), 50)
    for view in (
            lambda a: a[:, ::2], lambda a: a.T[:, :5], lambda a: a[10:], lambda a: a * 2 + 1, lambda a: a.astype(int)):
        seen, plain = view(x), view(values)
        if len(plain) < 50:
            with pytest.raises(IndexError):
                seen[i]
            continue
        np.testing.assert_array_equal(np.asarray(seen[i]), plain[[3, 1, 49]])
        seen[i] = 5
        plain[[3, 1, 49]] = 5
        np.testing.assert_array_equal(np.asarray(seen), plain)
    np.testing.assert_array_equal(np.asarray(x), values)
    assert np.asarray(np.zeros_like(x)[i] + x[i]).tolist() == values[[3, 1, 49]].tolist()


def test_tables_of_positions_hand_on_how_far_they_reach():
    table, i = known(np.arange(50)[::-1].copy(), 50), known(np.array([4, 0, 7]), 50)
    x = on_device(np.arange(50.0))
    x[table[i]]
    with lazyarray.trace() as t:
        assert x[table[i]].shape == (3,)
    assert not [event for event in t.events if event.reason == "bounds check"]
    np.testing.assert_array_equal(np.asarray(x[table[table[i]]]), [4, 0, 7])


def test_what_was_recorded_of_an_array_keeps_what_it_was():
    x, i = on_device(np.arange(50.0)), known(np.array([4, 0, 7]), 50)
    before, taken = x * 2, x[i] * 2
    x[i] = -1
    assert np.asarray(before)[4] == 8 and np.asarray(taken).tolist() == [8, 0, 14] and np.asarray(x)[4] == -1


@pytest.mark.parametrize("values", ["array", "number", "row"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
@pytest.mark.parametrize("shape", [(500,), (20, 30), (50, 4)])
def test_additions_at_positions(shape, dtype, values):
    generator = np.random.default_rng(0)
    axes = 2 if shape == (20, 30) else 1
    index = [generator.integers(-n, n, 900) for n in shape[:axes]]
    given = {"array": generator.integers(0, 9, (900, *shape[axes:])).astype(dtype), "number": 2,
             "row": generator.integers(0, 9, shape[axes:]).astype(dtype)}[values]
    plain = generator.integers(0, 9, shape).astype(dtype)
    x, places = on_device(plain), tuple([known(i, n) for i, n in zip(index, shape)])
    value = given if values == "number" else on_device(given)
    for function in (np.add, np.subtract, np.add):
        function.at(plain, tuple(index) if axes > 1 else index[0], given)
        function.at(x, places if axes > 1 else places[0], value)
        np.testing.assert_allclose(np.asarray(x), plain)
    with pytest.raises(IndexError, match="out of bounds"):
        np.add.at(x, places[0] + 1000, value)


def test_an_index_out_of_range_whose_result_would_be_large():
    x, places = on_device(np.zeros((2, 100_000), "f4")), on_device(np.arange(200_000))
    for statement in ("x[places]", "x[places] = 0", "np.add.at(x, places, 2)"):
        with pytest.raises(IndexError, match="out of bounds"):
            exec(statement, {"np": np, "x": x, "places": places})
