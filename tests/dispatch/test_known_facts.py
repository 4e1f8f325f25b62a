"""What was found out about an array is not found out again while nobody has written to it."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as lnp
from lazyarray.storage import facts

RNG = np.random.default_rng(0)


def lazy(values):
    return lazyarray.asarray(np.array(values)).copy()


def waits(call):
    """How often the host waits in a call, and the call's result."""
    with lazyarray.trace() as t:
        result = call()
    return len(t.synchronisations) + len(t.materialisations), result


def looks(call):
    """How often the host waits to see what integers there are, and the call's result."""
    with lazyarray.trace() as t:
        result = call()
    return sum(event.reason == "bounds check" for event in t.events), result


# -- masks ---------------------------------------------------------------------------------------------

MASKS = {"1-D": (1000,), "2-D": (30, 40), "of rows": (30,), "large": (1 << 20) + 3}


@pytest.mark.together
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", MASKS.values(), ids=list(MASKS))
def test_a_mask_is_counted_once(shape, turned):
    whole = (*np.atleast_1d(shape), 3) if shape == (30,) else np.atleast_1d(shape)
    values, other = RNG.random((2, *whole))
    flags = RNG.random(shape) < 0.3
    if turned:
        values, other, flags = values.T.copy().T, other.T.copy().T, flags.T.copy().T
    y, z, mask = lazy(values), lazy(other), lazy(flags)
    y[mask] = y[mask] + z[mask]
    lazyarray.device().wait_for_kernels()       # what the device library does meanwhile waits more often
    y, z, mask, expected = lazy(values), lazy(other), lazy(flags), values.copy()

    def use():
        y[mask] = y[mask] + z[mask]

    few = mask.size <= 1 << 20
    for most in (1 if few else 2, 0):
        expected[flags] = expected[flags] + other[flags]
        found, _ = waits(use)
        assert found <= most
        np.testing.assert_array_equal(np.array(y), expected)


@pytest.mark.parametrize("write", [
    lambda m: operator.setitem(m, 3, not bool(m[3])),
    lambda m: operator.ior(m, lazy(np.arange(50) > 40)),
    lambda m: np.logical_not(m, out=m),
    lambda m: operator.setitem(np.asarray(m), 5, True),
    lambda m: m[10:20].fill(True),
    lambda m: np.copyto(m, True, where=lazy(np.arange(50) < 3)),
], ids=["element", "in place", "out=", "alias", "view", "copyto"])
def test_a_mask_that_was_written_is_counted_again(write):
    x, mask = np.arange(50.0), np.arange(50) % 7 == 1
    y, lazies = lazy(x), lazy(mask)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(y[lazies]), x[mask])
        y[lazies] = y[lazies]
        write(mask), write(lazies)


def test_whole_axes_after_a_mask_say_nothing_more():
    values, flags = RNG.random((30, 4, 5)), RNG.random(30) < 0.4
    y, mask = lazy(values), lazy(flags)
    for rows in (y[mask, :], y[mask], y[mask, :, :]):
        np.asarray(rows)
    lazyarray.device().wait_for_kernels()       # what the device library does meanwhile waits more often
    mask = lazy(flags)
    for most in (1, 0):
        found, rows = waits(lambda: (y[mask, :], y[mask], y[mask, :, :]))
        assert found <= most
        for part in rows:
            np.testing.assert_array_equal(np.asarray(part), values[flags])
    y[mask, :] = rows[0] * 2
    y[mask, :, :] = y[mask] + 1
    values[flags, :] = values[flags] * 2 + 1
    np.testing.assert_array_equal(np.asarray(y), values)
    for index in ((flags, slice(None), slice(None), slice(None)), (flags, slice(1)), (flags, slice(None), 2)):
        lazies = (mask, *index[1:])
        try:
            expected = values[index]
        except IndexError:
            with pytest.raises(IndexError):
                y[lazies]
        else:
            np.testing.assert_array_equal(np.asarray(y[lazies]), expected)


def test_a_mask_of_nothing_and_of_all():
    for flags in (np.zeros(9, bool), np.ones(9, bool)):
        y, mask = lazy(np.arange(9.0)), lazy(flags)
        for _ in range(3):
            assert y[mask].tolist() == np.arange(9.0)[flags].tolist()
        with pytest.raises(ValueError):
            y[mask] = lazy(np.zeros(5))


def test_other_views_of_one_mask_are_masks_of_their_own():
    base = RNG.random((2, 40)) < 0.5
    x, both = np.arange(40.0), lazy(base)
    for _ in range(3):
        for i in (0, 1):
            assert lazy(x)[both[i]].tolist() == x[base[i]].tolist()
            assert lazy(x)[both[i, ::-1]].tolist() == x[base[i, ::-1]].tolist()


@pytest.mark.skipif(lazyarray.device().name != "simulated", reason="streams of the simulated device")
def test_places_that_another_stream_found_are_not_used():
    device, x, mask = lazyarray.device(), lazy(np.arange(30.0)), lazy(np.arange(30) % 2 == 0)
    for _ in range(3):
        with device.new_stream():
            assert x[mask].tolist() == list(range(0, 30, 2))


# -- indexes -------------------------------------------------------------------------------------------

X = RNG.random((20, 30))
MADE = {
    "argsort": lambda x: (np.argsort(x[0]),), "method": lambda x: (x[0].argsort(),),
    "argpartition": lambda x: (np.argpartition(x[0], 3),), "nonzero": lambda x: np.nonzero(x > 0.5),
    "argsort of columns": lambda x: (np.argsort(x, axis=0)[3],), "lexsort": lambda x: (np.lexsort([x[0], x[1]]),),
    "flatnonzero": lambda x: (np.flatnonzero(x[0] > 0.5),),
    "part": lambda x: (np.argsort(x[0])[::2],),
    "counts of truth values": lambda x: (np.minimum((x < 0.5).sum(axis=1), 29),),
    "count_nonzero": lambda x: (np.minimum(np.count_nonzero(x < 0.5, axis=1), 29),),
    "counts of turned ones": lambda x: ((x.T.copy().T < 0.5).sum(axis=0),),
}


@pytest.mark.parametrize("make", MADE.values(), ids=list(MADE))
def test_an_index_that_a_function_made_is_not_checked(make):
    x = lazy(X)
    index = make(x)
    if len(index) == 1:
        index = (slice(None), *index)
    found, result = waits(lambda: x[index])
    assert found == 0
    wanted = make(X)
    np.testing.assert_array_equal(np.asarray(result), X[(slice(None), *wanted) if len(wanted) == 1 else wanted])


@pytest.mark.parametrize("made", [{"return_inverse": True}, {"return_index": True, "return_inverse": True}, {
    "return_counts": True, "return_inverse": True, "return_index": True}], ids=lambda made: " ".join(made))
def test_what_is_counted_by_their_place_among_the_distinct_ones_is_not_looked_at(made):
    at = 1 + ("return_index" in made)
    values = RNG.integers(0, 40, 20_000) * 7
    inverse, plain = (np.unique(x, **made)[at] for x in (lazy(values), values))
    found, counts = waits(lambda: (np.bincount(inverse), np.bincount(inverse, weights=lazy(values) * 0.5)))
    assert found == 0
    np.testing.assert_array_equal(np.asarray(counts[0]), np.bincount(plain))
    np.testing.assert_array_equal(np.asarray(counts[1]), np.bincount(plain, weights=values * 0.5))
    inverse[3] = 77
    assert len(np.bincount(inverse)) == 78


@pytest.mark.parametrize("function", [lnp.triu_indices, lnp.tril_indices])
@pytest.mark.parametrize("given", [(300,), (300, 1), (300, -2, 300), (70, 0, 400)], ids=str)
def test_positions_of_a_triangle_are_those_of_a_matrix(function, given):
    table = RNG.random((given[0], given[2] if len(given) > 2 else given[0]))
    index = function(*given)
    found, taken = waits(lambda: lazy(table)[index])
    assert found == 0
    np.testing.assert_array_equal(np.asarray(taken), table[getattr(np, function.__name__)(*given)])
    with pytest.raises(IndexError):
        lazy(table[:-2])[index]
    wide = function(given[0], -3, given[0] + 5) if function is lnp.tril_indices else function(given[0], m=given[0] + 5)
    assert np.array_equal(lazy(RNG.random((900, 900)))[wide].shape, wide[0].shape)
    if int(wide[1].max()) >= table.shape[1]:
        with pytest.raises(IndexError):
            lazy(table)[wide]


@pytest.mark.one_device("a function that goes the general way asks before its operands are computed")
def test_what_is_sorted_and_repeated_while_it_waits():
    i, table = lnp.arange(90_000) % 300, RNG.random(300)
    for function, given in ((np.sort, ()), (np.repeat, (2,)), (np.roll, (5,)), (np.unique, ())):
        found, taken = looks(lambda: lazy(table)[function(i + 0, *given)])
        assert found == 0
        np.testing.assert_array_equal(np.asarray(taken), table[function(np.arange(90_000) % 300, *given)])


@pytest.mark.parametrize("waiting", [False, True])
def test_kinds_that_are_assigned_where_a_mask_is_true(waiting):
    """A number more is there: nobody looks again; where it fits no table, it is told."""
    plain, table, luck = RNG.integers(0, 4, (300, 300)), RNG.random(6), RNG.random((40, 300, 300))
    kind, chance = lazy(plain), lazy(luck)
    counts = []
    for t in range(20):
        where, here = chance[t] < 0.1, luck[t] < 0.1
        if not waiting:
            where.tolist()
        found, taken = looks(lambda: lazy(table)[kind[where]])
        np.testing.assert_array_equal(np.asarray(taken), table[plain[here]])
        counts.append(found)
        kind[where], plain[here] = t % 6, t % 6
        assert kind[t, :9].tolist() == plain[t, :9].tolist()
    assert waiting or not any(counts[5:]), counts
    kind[chance[20] < 0.5] = 6
    with pytest.raises(IndexError):
        lazy(table)[kind[chance[20] < 0.5]]


@pytest.mark.parametrize("update", [lambda i: i.__iadd__(1), lambda i: i + 1], ids=["in place", "computed"])
def test_bounds_are_found_out_where_an_index_asked_for_them(update):
    """Of others that would be in vain."""
    table, known = lazy(np.arange(600.0)), []
    for asked in (False, True):
        i = lazyarray.asarray(lazyarray.device().xp.arange(500), donate=True)
        facts.note_bounds(i, 0, 499)
        if asked:
            np.asarray(table[i * 1])
        found = update(i)
        np.asarray(found + 0)
        storage = found._self_storage
        if storage.pending is not None:
            storage.pending.compute()
        known.append(facts.bounds_of(found))
        np.testing.assert_array_equal(np.asarray(table[found]), np.arange(1.0, 501))
    assert known == [None, (1, 500)] or lazyarray.device().spread


def test_distinct_values_lie_where_all_do():
    values, table = np.sort(RNG.integers(0, 2000, 20_000)), RNG.random(2000)
    index = lazy(table).argsort()[lazy(values)]
    distinct = np.unique(index)
    assert waits(lambda: lazy(table)[distinct])[0] == 0
    pair = np.unique(index, return_counts=True)
    assert waits(lambda: lazy(table)[pair[0]])[0] == 0
    np.testing.assert_array_equal(np.asarray(distinct), np.unique(table.argsort()[values]))
    distinct[0] = 2000
    with pytest.raises(IndexError):
        lazy(table)[distinct]


def test_an_index_is_checked_once():
    x, y, index = lazy(X[0]), lazy(X[1]), lazy(RNG.integers(-30, 30, 50).astype(float)).astype(int)
    assert waits(lambda: (x[index], y[index], x[index]))[0] == 1


def test_what_does_not_fit_is_found_each_time():
    index = np.argsort(lazy(np.arange(8.0)))
    for _ in range(2):
        with pytest.raises(IndexError):
            lazy(np.arange(7.0))[index]
    small = lazy(np.array([0, 1, -9]))
    assert lazy(np.arange(9.0))[small].tolist() == [0, 1, 0]
    with pytest.raises(IndexError):
        lazy(np.arange(8.0))[small]


UNKNOWN = RNG.integers(0, 20, 50)


def unknown(values=UNKNOWN):
    """An index of whose values nothing is known."""
    return lazy(np.array(values, float)).astype(np.asarray(values).dtype)


def test_views_of_a_checked_index_are_not_checked():
    x, index = lazy(X), unknown()
    assert waits(lambda: x[:, index])[0] == 1
    found, parts = waits(lambda: (x[:, index[:-1]], x[0, index[::2]], x[index.reshape(5, 10)]))
    assert found == 0
    for part, wanted in zip(parts, (X[:, UNKNOWN[:-1]], X[0, UNKNOWN[::2]], X[UNKNOWN.reshape(5, 10)])):
        np.testing.assert_array_equal(np.asarray(part), wanted)


@pytest.mark.parametrize("large", [False, True])
def test_the_indexes_of_one_statement_take_one_wait(large):
    values = np.resize(UNKNOWN, 20000) if large else UNKNOWN
    x, rows, columns = lazy(X), unknown(values), unknown(values[::-1])
    found, result = waits(lambda: x[rows, columns])
    assert found == 1
    np.testing.assert_array_equal(np.asarray(result), X[values, values[::-1]])

    def change():
        x[rows, columns] -= 1

    assert waits(change)[0] == 0
    expected = X.copy()
    expected[values, values[::-1]] -= 1
    np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("large", [False, True])
def test_what_one_way_to_index_has_found_holds_for_the_others(large):
    values = np.resize(UNKNOWN, 20000) if large else UNKNOWN
    ways = [lambda x, i: x[:, i], lambda x, i: np.take(x, i, 1), lambda x, i: np.put(x, i, 1),
            lambda x, i: np.take_along_axis(x[0], i, 0), lambda x, i: np.put_along_axis(x[0], i, 2, 0),
            lambda x, i: operator.setitem(x, (1, i), 3)]
    for first in ways:
        x, index, expected = lazy(X), unknown(values), X.copy()
        first(expected, values)
        assert waits(lambda: first(x, index))[0] == 1
        for way in ways:
            way(expected, values)
            assert waits(lambda: way(x, index))[0] == 0
        np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[::-1], lambda x: x > 3, lambda x: x[1:4]])
def test_an_array_is_assigned_to_by_itself(view):
    values = np.array([3, 1, 0, 5, 2, 4])
    for value in (7, values[view(values)] * 10):
        x, expected = lazy(values), values.copy()
        x[view(x)] = value
        expected[view(expected)] = value
        np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("make", [
    lambda x: np.argmax(x, axis=1), lambda x: x.argmin(axis=1), lambda x: np.where(x[0] > 0.5)[0],
    lambda x: np.unravel_index(np.argsort(x.ravel()), x.shape)[1]], ids=["argmax", "argmin", "where", "unravel_index"])
def test_places_that_a_function_found_are_not_checked(make):
    x = lazy(X)
    index = make(x)
    found, result = waits(lambda: x[0, index])
    assert found == 0
    np.testing.assert_array_equal(np.asarray(result), X[0, make(X)])


def test_a_mask_among_other_items_is_counted_once():
    flags = RNG.random(30) < 0.4
    x, mask = lazy(X), lazy(flags)
    expected = X.copy()
    for most in (1, 0):
        found, parts = waits(lambda: (x[3, mask], x[:, mask], x[2:9, mask]))
        assert found <= most
        for part, wanted in zip(parts, (X[3, flags], X[:, flags], X[2:9, flags])):
            np.testing.assert_array_equal(np.asarray(part), wanted)
            assert part.strides == wanted.strides
    x[4, mask] = x[3, mask]
    expected[4, flags] = expected[3, flags]
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_a_number_is_assigned_by_a_mask_without_a_wait():
    flags = RNG.random(20) < 0.4
    x, expected = lazy(X), X.copy()
    assert waits(lambda: (operator.setitem(x, (lazy(flags), 1), 5), operator.setitem(x, (2, lazy(X[0] < 0.5)), 7),
                          operator.setitem(x, (slice(None), lazy(X[1] < 0.5)), 9)))[0] == 0
    expected[flags, 1], expected[2, X[0] < 0.5], expected[:, X[1] < 0.5] = 5, 7, 9
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_an_index_that_was_written_is_checked_again():
    x = lazy(np.arange(8.0))
    for write in (lambda i: operator.setitem(i, 2, 8), lambda i: operator.iadd(i, 1),
                  lambda i: operator.setitem(np.asarray(i), 0, 9), lambda i: i.put([1], [-9])):
        order = np.argsort(x)
        x[order]
        write(order)
        with pytest.raises(IndexError):
            x[order]


def test_axes_of_nonzero_have_bounds_of_their_own():
    x = lazy(np.ones((2, 50)))
    rows, columns = np.nonzero(x)
    assert waits(lambda: lazy(np.arange(2.0))[rows])[0] == 0
    with pytest.raises(IndexError):
        lazy(np.arange(2.0))[columns]


# -- scalars -------------------------------------------------------------------------------------------

def test_a_scalar_is_fetched_once_however_often_it_is_compared():
    total, other = lazy(X).sum(), lazy(X).max()
    plain, highest = X.sum(), X.max()

    def use():
        return [bool(total < 5), bool(5 < total), bool(total == plain), bool(total != other), bool(total >= other)]

    found, result = waits(use)
    assert found == 2 and result == [plain < 5, plain > 5, bool(total == plain), plain != highest, plain >= highest]
    assert waits(use)[0] == 0


def test_a_comparison_stays_on_the_device_until_somebody_asks():
    total = lazy(X).sum()
    x = lazy(X)
    with lazyarray.no_transfers():
        flag = total > 5
        chosen = np.where(flag, x, 0)
    assert isinstance(flag, np.bool_) and flag and np.array_equal(chosen, X)


def test_a_comparison_with_nan_and_of_other_kinds():
    nan = lazy(np.array([np.nan, 1])).sum()
    assert not nan < 1 and not nan == nan and nan != nan
    small = lazy(np.array([250], np.uint8)).max()
    assert small > 249 and small < 251 and not small > 1000 and small != -1 and small == np.float64(250)


@pytest.mark.together
def test_the_sum_of_weights_is_looked_at_once():
    plain, values = np.arange(1.0, 5001), np.random.default_rng(4).random((5000, 2))
    weights, x = lazy(plain), lazy(values)
    for turn in range(3):
        with lazyarray.trace() as t:
            found = np.average(x, axis=0, weights=weights), np.average(x[:, 0], weights=weights)
        assert len(t.synchronisations) == (2 if turn == 0 else 0)       # along an axis, and of all
        assert np.allclose(found[0], np.average(values, axis=0, weights=plain))
        assert np.allclose(found[1], np.average(values[:, 0], weights=plain))
    weights[...] = 0
    for work in (lambda: np.average(x, axis=0, weights=weights), lambda: np.average(x[:, 0], weights=weights)):
        with pytest.raises(ZeroDivisionError):
            work()


@pytest.mark.together
def test_the_order_of_bins_is_looked_at_once():
    plain, values = np.linspace(0, 1, 50), np.random.default_rng(3).random(4000)
    bins, x = lazy(plain), lazy(values)
    for turn in range(3):
        with lazyarray.trace() as t:
            found = np.digitize(x, bins)
        assert bool(t.synchronisations) is (turn == 0)
        assert np.array_equal(found, np.digitize(values, plain))
    bins[...] = lazy(plain[::-1].copy())
    assert np.array_equal(np.digitize(x, bins), np.digitize(values, plain[::-1]))
    bins[3] = 7
    with pytest.raises(ValueError):
        np.digitize(x, bins)
    table = lazy(np.arange(51.0))
    bins = lazy(plain)
    found = np.digitize(x, bins)
    with lazyarray.trace() as t:
        taken = table[found]
    assert not t.synchronisations
    assert np.array_equal(taken, np.arange(51.0)[np.digitize(values, plain)])


def test_a_factor_takes_one_wait():
    matrix = np.eye(5) * 4 + 1
    found, factor = waits(lambda: np.linalg.cholesky(lazy(matrix)))
    assert found == 1
    np.testing.assert_allclose(np.asarray(factor), np.linalg.cholesky(matrix))
    for matrix in (-np.eye(3), np.full((2, 2), np.nan), np.array([[1, np.nan], [0, 1]])):
        try:
            expected = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            with pytest.raises(np.linalg.LinAlgError):
                np.linalg.cholesky(lazy(matrix))
        else:
            np.testing.assert_array_equal(np.linalg.cholesky(lazy(matrix)), expected)


def test_positions_that_are_taken_again_and_again_wait_twice():
    """Of bounds that are wider than what is there all is looked at: each link would be looked at by itself."""
    rng = np.random.default_rng(0)
    steps = rng.integers(-1, 2, 5000)
    steps[:1], steps[-1:] = 1, -1
    plain = [np.arange(10, 500)]
    place, walk = lazyarray.numpy.arange(5000) + np.array([-1, 0, 1])[lazy(steps + 1)], [lazy(plain[0])]
    with lazyarray.trace() as events:
        for _ in range(20):
            plain.append((np.arange(5000) + steps)[plain[-1]])
            walk.append(place[walk[-1]])
    np.testing.assert_array_equal(np.asarray(walk[-1]), plain[-1])
    assert sum(e.reason == "bounds check" for e in events) <= 4


def steps_back(table, i, j, rounds, wait=bool):
    """The least of three neighbours again and again, from the ends."""
    rows, path = np.arange(len(i)), []
    for _ in range(rounds):
        alive = (i > 0) & (j > 0)
        path.append(np.stack([i, j, alive]))
        near = np.stack([table[rows, np.maximum(i - 1, 0), np.maximum(j - 1, 0)], table[rows, np.maximum(i - 1, 0), j],
                         table[rows, i, np.maximum(j - 1, 0)]])
        pick = near.argmin(axis=0)
        i, j = np.where(alive & (pick != 2), i - 1, i), np.where(alive & (pick != 1), j - 1, j)
        if not wait(alive.any()):
            break
    return np.stack(path)


@pytest.mark.parametrize("length", [12, 3000])
def test_the_next_indexes_of_a_loop_lie_near_those_before(length):
    """They are computed before they are indexes of anything."""
    table = RNG.random((length, 30, 30))
    end = RNG.integers(20, 30, length)
    first = lazy(np.arange(30))[lazy(end)] + 0
    found, path = waits(lambda: steps_back(lazy(table), first, first, 40))
    np.testing.assert_array_equal(np.asarray(path), steps_back(table, end, end, 40))
    assert found <= len(path) + 2       # one for each that is asked for


@pytest.mark.parametrize("step", [1, 3])
def test_bounds_that_grow_in_a_loop_are_looked_at_again(step):
    """Of `i` no more is known than that it may have grown; the greatest is where it was."""
    count, table = 400, RNG.random(420)
    plain, kept = np.arange(400), []
    i, x, one = lazy(plain) + 0, lazy(table), lazy(np.zeros(count)) + 0
    for _ in range(30):
        i, plain = i + step * (one > 0.5), plain + 0
        kept.append(np.asarray(i + 0))
        np.testing.assert_array_equal(np.asarray(x[i]), table[plain])
    assert all((one == plain).all() for one in kept)
    with pytest.raises(IndexError):
        x[i + 21]
    i[5] = 420
    j = i + step * (one > 0.5)
    (j + 0).tolist()
    with pytest.raises(IndexError):
        x[j]


@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum])
@pytest.mark.parametrize("value", [7, "places", np.arange(3) + 2**40])
def test_the_greatest_of_wider_integers_that_fit(ufunc, value):
    plain, index = np.arange(5, dtype="i4"), np.array([1, -1, 1])
    x, given = lazy(plain.copy()) + np.int32(0), value
    if isinstance(value, str):
        value, given = np.flatnonzero(np.ones(3)), np.flatnonzero(lazy(np.ones(3)) + 0)
    with lazyarray.trace() as events:
        ufunc.at(x, lazy(index), given)
    ufunc.at(plain, index, value)
    np.testing.assert_array_equal(np.asarray(x), plain)
    assert any(e.kind == "fallback" for e in events) == (np.max(value) > 99)
