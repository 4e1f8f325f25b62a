"""Indexes that are sums and differences: their bounds are known, so that nobody waits; and what is not known is not."""
from __future__ import annotations

import os

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp
from lazyarray import _native
from lazyarray.graph import known_ranges
from lazyarray.storage import facts


@pytest.fixture(autouse=True)
def _on_the_device():
    with lazyarray.options(small_on_host=False):
        yield


TABLE = np.arange(300.0).reshape(15, 20)


@pytest.mark.parametrize("rows", [
    lambda i: i, lambda i: i - 1, lambda i: 3 + i, lambda i: 11 - i, lambda i: i - np.int64(2), lambda i: (i + 2) - 1,
    lambda i: i - i, lambda i: i[::2] + 1, lambda i: 2 * i - 12, lambda i: i - 13], ids=range(10))
def test_no_one_waits_for_sums_and_differences(rows):
    lazy, plain = lazyarray.asarray(TABLE), rows(np.arange(2, 12))
    i = rows(xnp.arange(2, 12))
    with lazyarray.trace() as t:
        found = lazy[i, i + 1 if plain.max() < 14 else i]
    assert not t.synchronisations, t
    assert np.array_equal(found, TABLE[plain, plain + 1 if plain.max() < 14 else plain])


@pytest.mark.parametrize("rows", [
    lambda i: i + 4, lambda i: i - 18, lambda i: 2 * i, lambda i: i + (1 << 62) + (1 << 62)])
def test_what_is_out_of_range_is_told(rows):
    lazy, plain = lazyarray.asarray(TABLE), rows(np.arange(2, 12))
    try:
        expected = TABLE[plain]
    except IndexError as error:
        with pytest.raises(IndexError, match=str(error)):
            lazy[rows(xnp.arange(2, 12))]
    else:
        assert np.array_equal(lazy[rows(xnp.arange(2, 12))], expected)


def test_small_integers_that_wrap_around():
    i = xnp.arange(100, 120, dtype="i1")
    with np.errstate(all="ignore"):
        assert np.array_equal(lazyarray.asarray(np.arange(256))[i + np.int8(20)],
                              np.arange(256)[np.arange(100, 120, dtype="i1") + np.int8(20)])


def test_of_values_at_one_place_the_last_one_stays():
    for rows in (lambda i: i - 1, lambda i: 12 - i, lambda i: i - i, lambda i: i + i[::-1] - 12):
        lazy, plain = lazyarray.asarray(TABLE.copy()), TABLE.copy()
        values = np.arange(10.0)
        i, k = rows(xnp.arange(2, 12)), rows(np.arange(2, 12))
        lazy[i, i] = lazyarray.asarray(values)
        plain[k, k] = values
        assert np.array_equal(lazy, plain)


def test_what_is_written_is_not_known_any_more():
    i = xnp.arange(2, 12)
    k = i + 1
    i[3] = 999
    assert np.array_equal(lazyarray.asarray(TABLE)[k], TABLE[np.arange(3, 13)]), "it was computed before the write"
    with pytest.raises(IndexError):
        lazyarray.asarray(TABLE)[i + 1]
    k = xnp.arange(2, 12) + 1
    np.asarray(k)[0] = 99       # an alias
    with pytest.raises(IndexError):
        lazyarray.asarray(TABLE)[k]


@pytest.mark.parametrize("index", [
    lambda np: (np.arange(10, dtype="i4") - np.int32(10)).view("u4"),
    lambda np: np.arange(10, dtype="i4").view("u4") - 1,
    lambda np: (np.arange(3, dtype="i2") + np.int16(200)).view("i1"), lambda np: (np.arange(10) + 1).view("i4")[::2],
    lambda np: np.lib.stride_tricks.as_strided(np.arange(10), (5,), (4,)),
    lambda np: np.lib.stride_tricks.as_strided(np.arange(10) + 1, (5,), (4,)),
    lambda np: (np.arange(10) + 1).view("i2")[1:-3].view("i8"), lambda np: np.arange(10).view("i1")[4:-4].view("i8"),
    lambda np: np.arange(10).view("i4")[1:-1].view("i8") + 0, lambda np: np.arange(10)[::-1][2:5] * 3])
def test_parts_of_integers_are_other_integers(index):
    table = np.arange(300.0)
    try:
        expected = table[index(np)]
    except IndexError:
        with pytest.raises(IndexError):
            lazyarray.asarray(table)[index(xnp)]
        with pytest.raises(IndexError):
            lazyarray.asarray(table)[index(xnp)] = 0
    else:
        assert np.array_equal(lazyarray.asarray(table)[index(xnp)], expected)


def test_what_is_negative_in_another_dtype():
    i, v = (lambda np: (np.arange(3), (np.arange(3, dtype="i2") + np.int16(200)).view("i1")))(xnp)
    plain = np.arange(90000).reshape(300, 300)
    k, w = np.arange(3), (np.arange(3, dtype="i2") + np.int16(200)).view("i1")
    assert np.array_equal(lazyarray.asarray(plain)[i[:, None] + 1, v[None]], plain[k[:, None] + 1, w[None]])


def test_a_write_while_bounds_are_found_out(monkeypatch):
    """Of another thread, just before what was found would be kept."""
    from lazyarray.graph import known_ranges

    k, table, found = xnp.arange(10) + 1, lazyarray.asarray(np.arange(40.0)), known_ranges.note
    original = known_ranges.facts.of_storage

    def of_storage(storage):
        known = original(storage)
        monkeypatch.setattr(known_ranges.facts, "of_storage", original)
        k[3] = 50
        return known

    monkeypatch.setattr(known_ranges.facts, "of_storage", of_storage)
    found(k)
    with pytest.raises(IndexError):
        table[k]
    with pytest.raises(IndexError):
        table[k] = 0


@pytest.mark.together
@pytest.mark.parametrize("condition", [lambda i, limit: i < limit, lambda i, limit: (i >= 0) & (i < limit + 0),
                                       lambda i, limit: ~(i >= limit)], ids=["one", "two", "not"])
def test_a_write_to_what_a_condition_reads_while_bounds_are_found_out(condition, monkeypatch):
    """The condition is of what was there before; the bounds have to be, too."""
    from lazyarray.graph import known_ranges

    limit, i, table = xnp.full(10, 1000), xnp.arange(10) * 3 - 3, lazyarray.asarray(np.arange(20.0))
    asked = condition(i, limit)
    original = known_ranges.facts.of_storage

    def of_storage(storage):
        if storage is limit._self_storage:
            monkeypatch.setattr(known_ranges.facts, "of_storage", original)
            limit[...] = np.arange(10) % 5
            original(storage)["bounds"] = 0, 4, limit.dtype     # as if somebody had asked for them since
        return original(storage)

    chosen = np.where(asked, i, 0)
    monkeypatch.setattr(known_ranges.facts, "of_storage", of_storage)
    known_ranges.note(chosen)
    assert known_ranges.facts.of_storage is original, "nobody wrote"
    assert int(chosen.max()) == 24
    with pytest.raises(IndexError):
        table[chosen]


@pytest.mark.together
@pytest.mark.parametrize("index", [
    lambda np, i: (i + 1) % 15, lambda np, i: i * 37 % 15, lambda np, i: np.clip(i * i, 0, 14), lambda np, i: i & 7,
    lambda np, i: np.minimum(np.maximum(i, 3), 9), lambda np, i: i // 2, lambda np, i: np.abs(5 - i), lambda np, i: -i,
    lambda np, i: np.where(i > 5, i, 3), lambda np, i: i.astype(np.int16), lambda np, i: i % 8 ^ 1,
    lambda np, i: i >> 1, lambda np, i: (i % 4 << 1) | (i > 4), lambda np, i: np.sign(i - 4) + 1,
    lambda np, i: (i % 4).reshape(2, 5) * 3,
    lambda np, i: np.zeros(10, int) + (i > 4), lambda np, i: np.divmod(i * 5, 4)[0]], ids=range(17))
def test_no_one_waits_for_what_has_a_known_range(index):
    lazy, plain = lazyarray.asarray(TABLE), index(np, np.arange(2, 12))
    with lazyarray.trace() as t:
        found = lazy[index(xnp, xnp.arange(2, 12))]
        taken = np.take(lazy, index(xnp, xnp.arange(2, 12)), axis=1)
    assert not t.synchronisations, t
    assert np.array_equal(found, TABLE[plain]) and np.array_equal(taken, np.take(TABLE, plain, axis=1))


@pytest.mark.together
def test_no_one_waits_for_integers_taken_of_recorded_ones():
    tree, i = lazyarray.asarray(np.arange(300)) % 15, xnp.arange(2, 12)
    with lazyarray.trace() as t:
        found = lazyarray.asarray(TABLE)[tree[i * 7]]
        counts = np.bincount(tree[i * 7], minlength=15)
    assert not t.synchronisations, t
    plain = (np.arange(300) % 15)[np.arange(2, 12) * 7]
    assert np.array_equal(found, TABLE[plain]) and np.array_equal(counts, np.bincount(plain, minlength=15))


@pytest.mark.together
def test_no_one_waits_for_what_a_loop_makes_of_itself():
    with lazyarray.trace() as t:
        node, leaves = xnp.zeros(1000, int), lazyarray.asarray(np.arange(8.0))
        for depth in range(3):
            lazyarray.asarray(np.arange(float(2 << depth)))[node]
            node = (node << 1) | (lazyarray.asarray(np.arange(1000.0)) % (3 + depth) > 1)
        found = leaves[node]
    assert not t.synchronisations, t
    plain = np.zeros(1000, int)
    for depth in range(3):
        plain = (plain << 1) | (np.arange(1000.0) % (3 + depth) > 1)
    assert np.array_equal(found, plain)


INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
BINARY = [np.add, np.subtract, np.multiply, np.remainder, np.floor_divide, np.bitwise_and, np.bitwise_or,
          np.bitwise_xor, np.minimum, np.maximum]
COMPARED = [np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal]
UNARY = [np.negative, np.absolute, np.sign]


class Programs:
    """A few random operators on integers, of NumPy's arrays and of lazy ones, of which the bounds are mostly known."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def number(self, dtype):
        limits = np.iinfo(dtype)
        edges = (0, 1, 2, 3, 7, 8, 10, -1, -3, 64, 100, limits.max, limits.min)
        return self.pick([int(n) for n in edges if limits.min <= n <= limits.max])

    def leaf(self, dtype):
        limits = np.iinfo(dtype)
        low, high = self.pick([(limits.min, limits.max), (0, 99), (-5 if dtype[0] == "i" else 0, 6)])
        plain = self.rng.integers(low, high, 40, dtype=dtype, endpoint=True)
        if self.rng.random() < .3:
            plain = np.arange(40).astype(dtype)
        lazy = lazyarray.asarray(plain)
        if self.rng.random() < .8:
            facts.note_bounds(lazy, int(plain.min()), int(plain.max()))
        return plain, lazy

    def step(self, plain, lazy):
        dtype = plain.dtype.str[1:]
        kind = self.rng.random()
        if kind < .15:
            function = self.pick(UNARY)
            return function(plain), function(lazy)
        if kind < .3:
            other = self.pick(INTEGERS)
            return plain.astype(other), lazy.astype(other)
        if kind < .4:
            low, high = self.number(dtype), self.number(dtype)
            return np.clip(plain, low, high), np.clip(lazy, low, high)
        if kind < .5:
            function, places = self.pick([np.left_shift, np.right_shift]), int(self.rng.integers(9))
            return function(plain, places), function(lazy, places)
        with_number, alike = self.number(dtype), self.leaf(dtype)
        if kind < .75:
            return self.neighbours(plain, lazy, *alike)
        if kind < .8:
            return np.where(plain > 3, plain, alike[0]), np.where(lazy > 3, lazy, alike[1])
        first, second = self.pick([(with_number,) * 2, self.leaf(self.pick(INTEGERS)), alike, (plain > 3, lazy > 3)])
        function = self.pick(BINARY)
        if self.rng.random() < .3:
            return function(first, plain), function(second, lazy)
        return function(plain, first), function(lazy, second)

    def neighbours(self, plain, lazy, other_plain, other_lazy):
        """Where a condition about integers holds, something that is made of them."""
        dtype, first, second = plain.dtype.str[1:], self.pick(BINARY), self.pick(BINARY)
        numbers = [self.number(dtype) for _ in range(4)]
        compare, also = self.pick(COMPARED), self.pick(COMPARED)
        join, turned = self.pick([None, None, np.logical_and, np.logical_or]), self.rng.random() < .3
        again, places = self.rng.random() < .4, self.rng.integers(0, 40, 40)
        take, both = self.rng.random() < .15, self.rng.random() < .3

        def made(i, other):
            value = first(i, numbers[0])
            about = first(i, numbers[0]) if again else i
            holds = compare(about, numbers[1])
            if join is not None:
                holds = join(holds, also(i, numbers[2]))
            value = second(value, numbers[3]) if both else i[places] if take else value
            return np.where(holds, other, value) if turned else np.where(holds, value, other)

        return made(plain, other_plain), made(lazy, other_lazy)

    def run(self):
        plain, lazy = self.leaf(self.pick(INTEGERS))
        for _ in range(int(self.rng.integers(1, 5))):
            try:
                found = self.step(plain, lazy)
            except (TypeError, OverflowError):
                break
            if found[0].dtype.kind not in "iu":
                break
            plain, lazy = found
        return plain, lazy


@pytest.mark.parametrize("seed", range(300 if os.environ.get("LAZYARRAY_NIGHTLY") else 6))
def test_no_bound_is_wrong(seed):
    programs, known = Programs(seed), 0
    with np.errstate(all="ignore"):
        for _ in range(300):
            plain, lazy = programs.run()
            known_ranges.note(lazy)
            bounds = facts.bounds_of(lazy)
            if bounds is not None:
                known += 1
                assert bounds[0] <= int(plain.min()) and int(plain.max()) <= bounds[1]
            assert not facts.is_distinct(lazy) or len(set(plain.tolist())) == plain.size
            assert np.array_equal(lazy, plain)
    assert known > 80


# -- what a condition says ---------------------------------------------------------------------------------------------

N = 15
OUTSIDE = np.array([-3, 2, 14, 15, 40, 0, 7, -1, 16, 9])


def _cut(np, i):
    i = i + 0
    i[i < 0] = 0
    i[i >= N] = N - 1
    return i


def _reset(np, i):
    i = i + 0
    inside = (i >= 0) & (N > i)
    i[~inside] = 3
    return i


@pytest.mark.together
@pytest.mark.parametrize("index", [
    lambda np, i: np.where((i >= 0) & (i < N), i, 0), lambda np, i: np.where((i < 0) | (i >= N), 0, i),
    lambda np, i: np.where(~((i < 0) | (i > N - 1)), i, 4), lambda np, i: np.where(np.logical_and(0 <= i, i < N), i, 1),
    lambda np, i: np.where((i >= 0) & (i < N - 1), i, 0) + 1, lambda np, i: np.where(i == 7, i, 2),
    *[pytest.param(one, marks=pytest.mark.one_device("what waits is written in place")) for one in (_cut, _reset)],
    lambda np, i: np.where((i >= 0) & (i < N - 1), i + 1, 0),
    lambda np, i: np.where((i > 3) & (i < N + 2), 2 + (i - 4), 1),
    lambda np, i: np.where((i >= 0) & (i < 9), ((i > 2) & (i < 4)) + i, 0),
    lambda np, i: np.where(i % N + 1 == N, 0, i % N + 1), lambda np, i: np.where(i % N != N - 1, i % N + 1, 0),
    lambda np, i: np.where(i % N == 0, 1, i % N - 1) + 1,
    lambda np, i: np.where((np.floor(i * 1.5).astype(np.int64) >= 0) & (i >= 0) & (i < N), i, 0)])
def test_no_one_waits_for_what_a_condition_bounds(index):
    lazy, plain = lazyarray.asarray(np.arange(30.0)[:N] + 0), index(np, OUTSIDE)
    made = index(xnp, lazyarray.asarray(OUTSIDE) + 0)
    with lazyarray.trace() as t:
        found = lazy[made]
    assert not t.synchronisations, t
    assert np.array_equal(found, np.arange(N)[plain])


@pytest.mark.together
@pytest.mark.parametrize("index", [
    lambda np, i: np.where((i >= 0) & (i <= N), i, 0), lambda np, i: np.where(i < N, i, 0), _cut,
    lambda np, i: np.where((i >= 0) & (i < N), i, 0) + 1, lambda np, i: np.where((i >= 0) | (i < N), i, 0),
    lambda np, i: np.where((i + 1 >= 0) & (i + 1 < N), i, 0), lambda np, i: np.where((i >= 0) & (i < N), 0, i),
    lambda np, i: np.where(~((i >= 0) & (i < N)), i, 0), lambda np, i: np.where((i[::-1] >= 0) & (i[::-1] < N), i, 0),
    lambda np, i: np.where((i >= 0) & (i < N), i.astype(np.int8) * np.int8(9), 0),
    lambda np, i: np.where((i >= 0) & (i < N), i + 1, 0), lambda np, i: np.where(i % N != 0, i % N + 1, 0),
    lambda np, i: np.where((i >= 0) & (i < N), i[i % 10] + 1, 0),
    lambda np, i: np.where((i >= 0) & (i < N), i[::-1] + 1, 0),
    lambda np, i: np.where((i >= 0) & (i < N), 0, i - 1), lambda np, i: np.where(i + 1 < N, i + 2, 0),
    lambda np, i: np.where((i != 3) & (i < N), i, 0), lambda np, i: np.where((i >= 0) & (i < N), i, N)])
def test_what_a_condition_does_not_bound_is_looked_at(index):
    table = np.arange(float(N - (index is _cut)))
    try:
        expected = table[index(np, OUTSIDE)]
    except IndexError as error:
        with pytest.raises(IndexError, match=str(error)):
            lazyarray.asarray(table)[index(xnp, lazyarray.asarray(OUTSIDE) + 0)]
    else:
        assert np.array_equal(lazyarray.asarray(table)[index(xnp, lazyarray.asarray(OUTSIDE) + 0)], expected)


@pytest.mark.together
def test_a_table_of_indexes_is_looked_through_once():
    places, table = lazyarray.asarray(np.arange(6000).reshape(60, 100) % 50) + 0, lazyarray.asarray(np.arange(50.0))
    for turn in range(4):
        rows = lazyarray.asarray(np.array([turn, 3, 7]))
        with lazyarray.trace() as t:
            found = table[places[rows].ravel()]
            counts = np.bincount(places[rows].ravel(), minlength=50)
        assert len(t.synchronisations) <= (1 if turn else 2), (turn, t)
        plain = (np.arange(6000).reshape(60, 100) % 50)[[turn, 3, 7]].ravel()
        assert np.array_equal(found, plain) and np.array_equal(counts, np.bincount(plain, minlength=50))
    assert not t.synchronisations
    places[3, 5] = 60
    for _ in range(3):
        with pytest.raises(IndexError):
            table[places[lazyarray.asarray(np.array([3]))]]
        assert np.bincount(places[lazyarray.asarray(np.array([3]))].ravel(), minlength=50).size == 61
        assert np.array_equal(table[places[lazyarray.asarray(np.array([4]))]], [np.arange(400, 500) % 50])


@pytest.mark.together
def test_so_is_an_array_of_which_parts_are_indexes():
    order, table = lazyarray.asarray(np.arange(60000)[::-1] % 50) + 0, lazyarray.asarray(np.arange(50.0))
    for turn in range(4):
        with lazyarray.trace() as t:
            found = table[order[turn * 100:turn * 100 + 100]]
        assert bool(t.synchronisations) is (turn < 2), (turn, t)
        assert np.array_equal(found, (np.arange(60000)[::-1] % 50)[turn * 100:turn * 100 + 100])
    order[7] = -51
    with pytest.raises(IndexError):
        table[order[:100]]
    for _ in range(3):
        assert np.array_equal(table[order[100:103]], [49, 48, 47])


@pytest.mark.together
def test_what_was_taken_before_a_write_is_what_it_was():
    """Several of one table: that it is looked through says nothing of them then."""
    plain = np.arange(6000).reshape(60, 100) % 50 + 100
    places, table = lazyarray.asarray(plain) + 0, lazyarray.asarray(np.arange(50.0))
    taken = [places[lazyarray.asarray(np.array([row]))] for row in range(4)]
    parts = [places[row] for row in range(3)]
    places[...] = 3
    for index in taken:
        with pytest.raises(IndexError):
            table[index]
        with pytest.raises(IndexError):
            table[index] = 0
    assert all((table[part] == 3).all() for part in parts), "views see the write"
    places[2, 2] = 70
    assert (table[places[5]] == 3).all() and (table[places[6]] == 3).all()
    with pytest.raises(IndexError):
        table[parts[2]]


@pytest.mark.together
@pytest.mark.parametrize("work", [lambda i: i + 1 - 1, lambda i: 2 * (i // 2), lambda i: np.where(i > 3, i - 1, i)])
def test_what_an_index_is_made_of_is_looked_at_once(work):
    """The second time, and again where it was written; the errors stay NumPy's."""
    values = np.arange(50.0)
    with lazyarray.options(small_on_host=False):
        x, i = (lazyarray.asarray(lazyarray.device().xp.asarray(a)).copy() for a in (values, np.array([4, 0, 7, 48])))
        host = np.array([4, 0, 7, 48])
        lazyarray.block_until_ready(i)
        for turn in range(6):
            if turn == 4:
                i[2] = host[2] = 9
            with lazyarray.trace() as t:
                found = x[work(i)]
            assert not t.events or turn in (0, 1, 4, 5) or lazyarray.device().spread    # then rows go the general way
            np.testing.assert_array_equal(np.asarray(found), values[work(host)])
        i[1] = 10**6
        for _ in range(3):
            with pytest.raises(IndexError, match="out of bounds"):
                x[work(i)]
            with pytest.raises(IndexError, match="out of bounds"):
                x[work(i)] = 0
        np.testing.assert_array_equal(np.asarray(x), values)


@pytest.mark.together
@pytest.mark.parametrize("small", [0, 1 << 16])
def test_no_one_waits_for_a_backtrack(small, small_on_host):
    small_on_host(small)
    values = np.random.default_rng(1).random((60, 300, 300))
    scores = lazyarray.asarray(values) + 0
    best, path = xnp.zeros((60, 300), np.int64), xnp.zeros(60, np.int64)
    plain, walked = np.argmax(values, axis=1), np.zeros(60, np.int64)
    with lazyarray.trace() as t:
        for step in range(60):
            best[step] = np.argmax(scores[step], axis=0)
        path[-1] = np.argmax(scores[59, 0])
        for step in range(58, -1, -1):
            path[step] = best[step + 1, path[step + 1]]
    if not lazyarray.device().spread:       # then a scalar in an index is fetched
        assert not t.synchronisations and not t.materialisations, t
    walked[-1] = np.argmax(values[59, 0])
    for step in range(58, -1, -1):
        walked[step] = plain[step + 1, walked[step + 1]]
    assert np.array_equal(path, walked)
    with pytest.raises(IndexError):
        path[0] = 300
        best[1, path[0]]


@pytest.mark.together
def test_what_a_key_is_made_of_is_looked_at_once():
    """Its bins are known once that is: and what somebody holds of it is known, too."""
    plain = np.random.default_rng(2).integers(0, 64, (40000, 3)).astype(np.uint8)
    codes, table = lazyarray.asarray(plain) + 0, lazyarray.asarray(np.arange(8.0))
    waits = []
    for _ in range(4):
        node, held = xnp.zeros(40000, np.int64), np.zeros(40000, np.int64)
        for depth in range(3):
            with lazyarray.trace() as t:
                key = (node[:, None] * 192 + np.arange(3) * 64 + codes).ravel()
                counts = np.bincount(key, minlength=192 << depth)
                table[node]
                node = 2 * node + (codes[:, depth] > 30)
            waits.append(len(t.synchronisations))
            expected = (held[:, None] * 192 + np.arange(3) * 64 + plain).ravel()
            assert np.array_equal(counts, np.bincount(expected, minlength=192 << depth))
            held = 2 * held + (plain[:, depth] > 30)
    assert waits[0] == 1 and sum(waits) <= 3, waits
    assert np.array_equal(node, held)


@pytest.mark.skipif(_native.recording is None, reason="small arrays stay on the host in C alone")
def test_a_storage_that_has_bytes_alone_is_not_looked_through():
    """That of a small array, which the host has had until the device needed it."""
    before = _native.recording.small(1 << 16)
    try:
        with lazyarray.options(small_on_host=True):
            _of_what_was_on_the_host()
    finally:
        _native.recording.small(before)


def _of_what_was_on_the_host():
    i, table = lazyarray.asarray((np.arange(-1, 8) % 8).astype("u1")), np.arange(16).reshape(2, 8)
    x, y = lazyarray.asarray(lazyarray.device().xp.asarray(table)).copy(), lazyarray.asarray(np.arange(8))
    c = lazyarray.asdevice(i)
    del c
    for _ in range(3):
        assert np.asarray(y[i ^ 1]).tolist() == (np.asarray(i) ^ 1).tolist()
        np.testing.assert_array_equal(np.asarray(x[:, i.astype("i4")]), table[:, np.asarray(i)])
    i = lazyarray.asarray(np.full(5000, 2, "i1")) + np.int8(0)
    np.compress(np.ones(5000, bool), i.copy(), out=i)
    y = lazyarray.asarray(np.arange(3))
    assert np.asarray(y[2 - i]).tolist() == [0] * 5000 and np.asarray(y[i.astype("u1")]).tolist() == [2] * 5000


@pytest.mark.parametrize("beyond", [2**63, 2**64 - 20])
@pytest.mark.parametrize("part", [slice(None), slice(2, 5)], ids=str)
def test_integers_beyond_the_length_of_any_array(part, beyond):
    plain = np.arange(4000, dtype=np.uint64)
    i = lazyarray.asarray(lazyarray.device().xp.arange(4000, dtype=np.dtype(np.uint64)), donate=True)
    facts.note_bounds(i, 0, 3999)
    i[part] += np.uint64(beyond)
    with np.errstate(all="ignore"):
        plain[part] += np.uint64(beyond)
    assert np.array_equal(i, plain)
    if beyond == 2**63:     # what is close to 2**64 is a position from the end to NumPy
        with pytest.raises(IndexError):
            lazyarray.asarray(np.arange(4000.0))[i]
    else:
        assert np.array_equal(lazyarray.asarray(np.arange(4000.0))[i], np.arange(4000.0)[plain])
