"""Indexes of arrays beside each other, with numbers and slices around: what NumPy takes and puts, by random forms."""
from __future__ import annotations

import contextlib

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy
from lazyarray.storage import facts, handles

DEVICE = lazyarray.device()
WHOLE = slice(None)


def on_device(values):
    """With the strides of the values, which are in C order, in Fortran's, or in C order from the end."""
    for view in (lambda a: a, lambda a: a.T, lambda a: a[..., ::-1]):
        if view(values).flags.c_contiguous:
            return view(lazyarray.asarray(DEVICE.xp.asarray(view(values).copy())).copy())
    raise AssertionError("a form that the test does not make")


def index_of(rng, shape):
    """Arrays of positions along axes beside each other, and what is in front of them and behind them."""
    count = int(rng.integers(1, min(len(shape), 3) + 1))
    at = int(rng.integers(0, len(shape) - count + 1))
    form = [(3,), (2, 2), (1,), (4,)][rng.integers(4)]
    least = [-n if rng.random() < 0.3 else 0 for n in shape]
    arrays = [rng.integers(least[axis], shape[axis], form) for axis in range(at, at + count)]
    if len(form) == 1 and rng.random() < 0.2:
        arrays = [a[::-1].copy()[::-1] for a in arrays]

    def plain(axis):
        n = shape[axis]
        return [WHOLE, WHOLE, WHOLE, WHOLE, int(rng.integers(-n, n)), slice(int(rng.integers(0, n)), None),
                slice(None, None, -1), slice(None, int(rng.integers(0, n + 2)))][rng.integers(8)]

    front, back = ([plain(axis) for axis in axes] for axes in (range(at), range(at + count, len(shape))))
    ways = [(front, back), (front, []), (front, [Ellipsis]), ([Ellipsis], back)]
    front, back = ways[rng.integers(len(ways))]
    return front, arrays, back


def values_of(rng, shape, dtype):
    values = (rng.random(shape) * 9).astype(dtype)
    return [values, values.T.copy().T, values[..., ::-1].copy()[..., ::-1] if shape else values, values[:1],
            values.astype("c16"), np.dtype(dtype).type(1)][rng.integers(6)]


def strides(x):
    return [step for n, step in zip(x.shape, x.strides) if n > 1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_what_is_taken_and_put(seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        shape = tuple(rng.integers(1, 6, rng.integers(1, 5)).tolist())
        dtype = ["f8", "f4", "i8", "?", "c16", "u1"][rng.integers(6)]
        x = (rng.random(shape) * 9).astype(dtype)
        front, arrays, back = index_of(rng, shape)
        index, lazy = ((*front, *given, *back) for given in (arrays, [on_device(a) for a in arrays]))
        index, lazy = (i[0] if len(i) == 1 and rng.random() < 0.5 else i for i in (index, lazy))
        array, expected = on_device(x), x[index]
        for _ in range(2):
            found = array[lazy]
            assert (found.shape, found.dtype, strides(found)) == (expected.shape, expected.dtype, strides(expected))
            np.testing.assert_array_equal(np.asarray(found), expected)
        for _ in range(3):
            values = values_of(rng, expected.shape, dtype)
            given = on_device(values) if isinstance(values, np.ndarray) else values
            plain, array, errors = x.copy(), on_device(x), []
            for target, key, value in ((plain, index, values), (array, lazy, given)):
                try:
                    target[key] = value
                    if dtype != "?":
                        target[key] += 1
                except (TypeError, ValueError) as error:
                    errors.append(type(error))
            np.testing.assert_array_equal(np.asarray(array), plain)
            assert len(set(errors)) <= 1 and len(errors) in (0, 2)


class TestElements:
    """``x[i, j]`` is what was there, whoever writes afterwards; it waits until somebody asks."""

    def given(self):
        x = on_device(np.arange(12.0).reshape(3, 4))
        lazyarray.block_until_ready(x)
        return x

    def test_it_is_a_snapshot(self):
        x = self.given()
        before = [x[1, 2], x[1, 2] * 2, x[1][2], x[1, 2] + x[0, 1]]
        x[1, 2] = 100
        x *= 2
        assert [float(one) for one in before] == [6, 12, 6, 7] and float(x[1, 2]) == 200

    def test_aliases_and_holders_write_later(self):
        x = self.given()
        first = x[2, 3]
        alias = np.asarray(x)
        alias[2, 3] = -1
        second = x[2, 3]
        alias[2, 3] = -2
        assert (float(first), float(second), float(x[2, 3])) == (11, -1, -2)
        y = self.given()
        first = y[0, 1]
        held = lazyarray.asdevice(y)
        held[0, 1] = 7
        second = y[0, 1]
        held[0, 1] = 8
        assert (float(first), float(second), float(y[0, 1])) == (1, 7, 8)

    def test_exchanged_and_kept(self):
        x = self.given()
        kept = x[0, 0]
        x[0, 0] = x[0, 3]
        x[0, 3] = kept
        assert np.asarray(x)[0].tolist() == [3, 1, 2, 0]
        del x
        assert float(kept) == 0 and kept.dtype == np.float64 and kept.shape == ()

    def test_nothing_is_fetched(self):
        x = self.given()
        with lazyarray.no_transfers():
            y = x[1, 1] * 2 + x
        assert np.asarray(y)[0].tolist() == [10, 11, 12, 13]

    @pytest.mark.parametrize("least", [None, 1 << 20])
    def test_it_does_not_wait_where_nothing_is_to_wait(self, least):
        x = self.given()
        with lazyarray.options(defer_from=least):
            found = x[1, 2]
            assert found._self_storage.pending is None
        assert (x[1, 2]._self_storage.pending is not None or DEVICE.spread) and float(found) == 6

    @pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "c8", "c16"])
    def test_dtypes(self, dtype):
        values = np.arange(1, 7).astype(dtype).reshape(2, 3)
        x = on_device(values)
        lazyarray.block_until_ready(x)
        for index in ((1, 2), (0, -1), (-2, 0)):
            found = x[index]
            assert found.dtype == values.dtype and found == values[index] and x.T[index[::-1]] == values[index]


@pytest.mark.parametrize("written", ["first", "second", "both", "values", "none"])
def test_the_last_of_several_is_found_again_where_an_index_was_written(written):
    """Of positions by two arrays, which may be one array, and by rows."""
    rng = np.random.default_rng(2)
    host = {"x": rng.random((4, 5)), "j": rng.integers(0, 4, 9), "k": rng.integers(0, 4, 9), "v": rng.random(9),
            "rows": rng.random((9, 5))}
    lazy = {name: on_device(value) for name, value in host.items()}
    for turn in range(6):
        for arrays in (host, lazy):
            x, j, k, v, rows = arrays.values()
            x[j, k] = v
            x[k, j] += v
            x[j, j] = v * 2
            x[j] = rows
            x[:, k] = rows[:4, :1] * v
            if written in ("first", "both"):
                j[turn] = (j[turn] + 1) % 4
            if written in ("second", "both"):
                k[1:] = k[:-1].copy()
            if written == "values":
                v[::2] += turn
        np.testing.assert_array_equal(np.asarray(lazy["x"]), host["x"])


@pytest.mark.parametrize("layout", ["C", "F", "turned", "reversed"])
def test_take_gives_c_order(layout):
    """Where ``x[i]`` follows the array."""
    values = np.arange(96.0).reshape(6, 4, 4)
    views = {"C": lambda a: a, "F": lambda a: a.transpose(2, 1, 0), "turned": lambda a: a.transpose(1, 0, 2),
             "reversed": lambda a: a[::-1]}
    base = (values if layout == "reversed" else views[layout](values)).copy()
    plain, x = views[layout](base), views[layout](on_device(base))
    for places in (np.array([0, 2, -1]), np.array([[0, 3], [1, 1]]), np.array([3, 1, 0])[::-1]):
        i = on_device(places)
        for axis in (None, 0, 1, 2, -1):
            for mode in ("raise", "wrap", "clip"):
                expected, found = np.take(plain, places, axis, mode=mode), np.take(x, i, axis, mode=mode)
                assert strides(found) == strides(expected) and found.flags.c_contiguous
                np.testing.assert_array_equal(np.asarray(found), expected)
                np.testing.assert_array_equal(np.asarray(x.take(i, axis, mode=mode)), expected)
    with pytest.raises(IndexError, match="out of bounds"):
        np.take(x, on_device(np.array([0, 100])), 0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", ["device", "host"])
@pytest.mark.parametrize("seed", range(10))
def test_positions_that_lie_in_another_order(seed, place):
    """What is taken lies as the positions do, and so it is put: the last of several values is another one then."""
    rng = np.random.default_rng(seed)
    views = [lambda a: a.T, lambda a: a, lambda a: a[:, ::-1], lambda a: a[::2], lambda a: a.T[::-1]]
    for _ in range(12):
        shape = [(5,), (4, 3), (3, 4, 2)][rng.integers(3)]
        x = rng.random(shape)
        positions = [rng.integers(0, n, (3, 4)) for n in (shape[0], shape[-1])]
        first, second = (views[i] for i in rng.integers(0, 5, 2))
        second = second if second(positions[0]).shape == first(positions[0]).shape else first
        forms = [lambda j, k, first=first: (first(j),)]
        if len(shape) > 1:
            forms += [lambda j, k, first=first: (..., first(k)), lambda j, k, first=first: (first(j), 0),
                      lambda j, k, first=first, second=second: (first(j), ..., second(k))]
        form = forms[rng.integers(len(forms))]
        index = form(*positions)
        lazy = index if place == "host" else form(*map(on_device, positions))
        expected, found = x[index], on_device(x)[lazy]
        assert strides(found) == strides(expected)
        np.testing.assert_array_equal(np.asarray(found), expected)
        plain, array, more = x.copy(), on_device(x), rng.random(expected.shape)
        plain[index] += more
        array[lazy] += on_device(more)
        np.testing.assert_array_equal(np.asarray(array), plain)


class TestOneScalar:
    """A lazy scalar among the whole numbers of an index stays on the device where it is known to be within bounds."""

    POSITIONS = (2, -1, 0, 3)

    def given(self, dtype=int):
        values = np.arange(1, 61).reshape(3, 4, 5).astype(dtype)
        where = lazyarray.asarray(DEVICE.xp.asarray(np.array(self.POSITIONS))).copy()
        facts.note_bounds(where, -1, 3)
        return values, on_device(values), where

    INDEXES = [lambda s: (1, s, 2), lambda s: (-3, s, -1), lambda s: (1, s), lambda s: (WHOLE, s),
               lambda s: (2, s, WHOLE), lambda s: (Ellipsis, s), lambda s: (0, 1, s)]

    @pytest.mark.parametrize("dtype", [int, "f4", "?", "c16", "u1"])
    @pytest.mark.parametrize("index", INDEXES)
    def test_what_is_read_and_written(self, index, dtype):
        values, x, where = self.given(dtype)
        for n, position in enumerate(self.POSITIONS):
            expected, found = values[index(np.int64(position))], x[index(where[n])]
            assert np.array_equal(found, expected) and found.dtype == expected.dtype
            assert handles.is_scalar(found) == (expected.ndim == 0)
            values[index(position)] = n
            x[index(where[n])] = n
            assert np.array_equal(x, values)

    @pytest.mark.together
    def test_no_one_waits(self):
        values, x, where = self.given()
        path = lazyarray.asarray(DEVICE.xp.zeros(4, int)).copy()
        facts.note_bounds(path, 0, 0)
        with lazyarray.no_transfers() if not DEVICE.spread else contextlib.nullcontext(), lazyarray.trace() as t:
            found = x[1, where[0], 2]
            x[2, where[1]] = 7
            x[2, where[1], 3] = x[0, 1, where[3]]
            path[0] = np.argmax(x[1, 1])
            path[1] = path[0]
            path[path[1] - 4] = where[3]
            found = found + x[0, path[0] - 1, 1] + x.T[path[3] - 3, 0, 0]
        assert not t.synchronisations or DEVICE.spread
        values[2, -1] = 7
        values[2, -1, 3] = values[0, 1, 3]
        assert np.array_equal(x, values) and path.tolist() == [3, 4, 0, 0]
        assert (facts.bounds_of(path) is not None or DEVICE.spread) and float(found)

    def test_a_row_is_a_view(self):
        values, x, where = self.given()
        row = x[1, where[0]]
        row += 100
        values[1, 2] += 100
        assert np.array_equal(x, values)

    @pytest.mark.parametrize("position", [4, -5, 1 << 40])
    def test_out_of_range(self, position):
        values, x, where = self.given()
        where[1] = position
        for index in ((1, where[1], 2), (1, where[1])):
            with pytest.raises(IndexError):
                x[index]
            with pytest.raises(IndexError):
                x[index] = 1
        assert np.array_equal(x, values)


class TestWhatIsKnownOfIntegers:
    """A write to a part of integers leaves what is known of them, widened by what is known of the values."""

    def made(self, low, high, dtype=int):
        x = lazyarray.asarray(DEVICE.xp.asarray(np.full((4, 5), low, dtype))).copy()
        lazyarray.block_until_ready(x)
        facts.note_bounds(x, low, high)
        return x

    @pytest.mark.parametrize("write, bounds", [
        (lambda x, y: x.__setitem__(1, 9), (0, 9)), (lambda x, y: x.__setitem__((1, 2), -3), (-3, 4)),
        (lambda x, y: x.__setitem__((WHOLE, 1), y[:, 0]), None), (lambda x, y: x.__setitem__(0, y[0].copy()), None),
        (lambda x, y: x.__setitem__((1, 1), y[0, 0]), (-7, 20)), (lambda x, y: x.__setitem__(WHOLE, y * 2), (-14, 40)),
        (lambda x, y: x.__setitem__((1, WHOLE), np.argmax(y, axis=0)), (0, 4)),
        (lambda x, y: x.__setitem__(1, np.int64(1 << 62)), (0, 1 << 62)),
        (lambda x, y: x.__setitem__(y[0] * 0 + 1, 8), (0, 8)), (lambda x, y: x.__setitem__(1, x[0].copy()), None),
        (lambda x, y: x.__setitem__(1, y[0] > 3), None), (lambda x, y: x.__iadd__(y), None),
    ])
    def test_it_is_widened(self, write, bounds):
        x, y = self.made(0, 4), self.made(-7, 20)
        plain = np.zeros((4, 5), int)
        write(x, y)
        found = facts.bounds_of(x)
        write(plain, np.full((4, 5), -7))
        assert np.array_equal(x, plain)
        assert bounds is None or found == bounds or found is None and DEVICE.spread
        if found is not None:
            assert found[0] <= plain.min() and plain.max() <= found[1]

    def test_it_is_lost_where_nothing_is_known_of_the_value(self):
        x, y = self.made(0, 4), lazyarray.asarray(DEVICE.xp.asarray(np.arange(50, 55))).copy()
        lazyarray.block_until_ready(y)
        x[0] = y
        assert facts.bounds_of(x) is None and np.asarray(x).max() == 54

    def test_what_the_host_has(self):
        x, y = self.made(0, 4), self.made(-7, 20)
        assert np.asarray(x).max() == 0
        x[1, 1:3] = y[0, :2]
        assert facts.bounds_of(x) == (-7, 20)
        x[0, 0] = 25
        assert facts.bounds_of(x) == (-7, 25) and np.asarray(x).max() == 25

    @pytest.mark.parametrize("recorded", [
        lambda x: x[0], lambda x: x + 0, lambda x: (x + 1) - 1, lambda x: x[::-1] + 0])
    def test_of_what_was_recorded_before_the_host_wrote(self, recorded):
        x, y = on_device(np.array([9, 0, 1, 2, 3])), on_device(np.arange(5.0))
        index = recorded(x)
        alias = np.asarray(x)
        alias[...] = 1
        with pytest.raises(IndexError):
            y[index]
        with pytest.raises(IndexError):
            y[index] = 1
        assert y.tolist() == [0, 1, 2, 3, 4]

    def test_a_number_of_a_class_of_its_own(self):
        class Other(np.int64):
            def __index__(self):
                return 0
        x = self.made(0, 4)
        x[1] = Other(100)
        assert np.asarray(x).max() == 100 and facts.bounds_of(x) in (None, (0, 100))

    def test_what_was_not_computed_yet(self):
        x = lazyarray.numpy.zeros((4, 5), int)
        x[2, 2] = 3
        assert facts.bounds_of(x) == (0, 3) and np.asarray(x).sum() == 3
