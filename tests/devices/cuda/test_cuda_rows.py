"""Rows taken, put, joined, rolled and padded by kernels of our own: they compile, and give what NumPy gives."""
from __future__ import annotations

import ctypes
import importlib.util
import types

import numpy as np
import pytest
from emulated_kernels import Array, Emulator

import lazyarray
from lazyarray.devices.cuda.kernels.elementwise import Kernels
from lazyarray.devices.cuda.kernels.rows import MOST_AXES, MOST_PARTS, SOURCE, THREADS, Rows
from lazyarray.devices.operations import PADDINGS

DTYPES = "?bhilefdFD"


def numbers(shape, dtype="d"):
    """Arbitrary bytes, so that each element is another one."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=int))
    if dtype.kind == "b":
        return np.random.default_rng(1).random(shape) < 0.5
    return np.random.default_rng(count).integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype).reshape(shape)


def positions(shape, length, dtype="q"):
    return np.random.default_rng(length).integers(-length, length, shape).astype(dtype)


def different(count, length):
    """Positions without one twice, some counted from the end."""
    found = np.random.default_rng(count).permutation(length)[:count]
    return np.where(found % 2, found - length, found)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed: it brings the compiler")
def test_the_kernels_compile():
    from nvrtc import compiled

    assert compiled(SOURCE) == ""


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    cupy = Emulator(tmp_path_factory.mktemp("kernels"))
    kernels = Kernels(cupy, 1)
    found = Rows(kernels)
    assert found.take(Array.of(numbers(8)), [Array.of(positions(3, 8))]) is None, "it is being compiled"
    kernels.wait()

    def checked(work):
        def call(view, *args):
            count = len(cupy.launched)
            result = work(view, *args)
            for name, _ in cupy.launched[count:]:
                word = int(name.rpartition("_")[2])
                arrays = [*(view if type(view) is list else [view]), *[a for a in args if type(a) is Array]]
                assert not any(a.data.ptr % word for a in arrays), f"{name}: an address is not aligned"
            return result
        return call

    return types.SimpleNamespace(take=checked(found.take), put=checked(found.put), join=checked(found.join),
                                 roll=checked(found.roll), pad=checked(found.pad), number=found.number)


#: Positions at even steps, along axes of 12, 9 and 20 elements, and others beside them.
RANGES = [
    (range(7), None), (None, range(7)), (range(11, -1, -1), None), (range(2, 9, 3), range(8, -1, -4), None),
    (range(0, 12, 4), None, range(17, 20)), (None, range(3), range(0, 20, 9)), (range(2), None, None),
    (None, range(8, 6, -1), None)]


def with_ranges(given):
    """The same as positions: ndarrays, and those of a device."""
    [count] = {len(r) for r in given if r is not None}
    arrays = [positions(count, n, "iq"[k % 2]) if r is None else np.array(r)
              for k, (r, n) in enumerate(zip(given, (12, 9, 20)))]
    return arrays, [Array.of(a) if r is None else r for r, a in zip(given, arrays)]


def same(found, expected):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert found.get().tobytes() == expected.tobytes()


def check_put(rows, values, index, given, order=None, misplaced=0):
    expected, target = values.copy(), Array.of(values, misplaced)
    expected[tuple(index)] = given if order is None else given[order]
    device = given if isinstance(given, np.generic) else Array.of(given)
    assert rows.put(target, [Array.of(i) for i in index], device, None if order is None else Array.of(order))
    assert target.get().tobytes() == expected.tobytes()


def strided(values):
    """On the device with the strides that `values` have, which look at some elements of an array in C order."""
    base = values
    while base.base is not None:
        base = base.base
    found = Array.of(base)
    found.dtype, found.itemsize, found.ndim = values.dtype, values.itemsize, values.ndim
    ahead = values.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    found.data, found.shape, found.strides = found.data + ahead, values.shape, values.strides
    found.size, found.nbytes, found._c_contiguous = values.size, values.nbytes, values.flags.c_contiguous
    return found


class TestNumbers:
    @pytest.mark.parametrize("given", [
        lambda: [positions(40, 5), positions(40, 7)], lambda: [positions((6, 1), 5), positions((1, 9), 7, "i")],
        lambda: [positions((27, 1), 3), positions((27, 8), 18), positions((27, 8), 9, "i")],
        lambda: [positions((2, 3, 4), 5), positions((2, 1, 1), 6)],
        lambda: [positions((4, 6), 5).T, positions((6, 4), 5)],
        lambda: [positions((3, 8), 5)[:, ::2], positions(4, 8)[::-1]], lambda: [positions((1, 1), 5), positions(1, 5)],
        lambda: [positions((5, 1, 3), 4), positions((5, 6, 1), 4)], lambda: [positions((0, 3), 4), positions(3, 4)]])
    def test_of_all_positions(self, rows, given):
        arrays, lengths = given(), [18, 20, 19]
        taken = [strided(a) for a in arrays]
        expected = sum((a.astype("q") % n) * int(np.prod(lengths[k + 1:len(arrays)], dtype=int))
                       for k, (a, n) in enumerate(zip(arrays, lengths)))
        found = rows.number(taken, lengths[:len(arrays)])
        if found is None:       # neither rows nor columns of both lie at one distance
            assert expected.size == 0 or expected.ndim > 2
        else:
            same(found, expected)

    def test_rows_and_columns_are_seen(self, rows):
        for shapes in (((6, 1), (1, 9)), ((27, 1), (27, 8)), ((2, 3, 4), (2, 1, 1)), ((40,), (40,))):
            assert rows.number([Array.of(positions(shape, 5)) for shape in shapes], [5, 5]) is not None, shapes

    def test_what_is_left_to_the_library(self, rows):
        i = Array.of(positions(3, 4))
        assert rows.number([i] * (MOST_AXES + 1), [4] * (MOST_AXES + 1)) is None
        assert rows.number([i, Array.of(positions(3, 4, "h"))], [4, 4]) is None


#: Shapes of positions that go with each other.
BROADCAST = [((4, 1), (1, 3)), ((1, 3), (4, 1)), ((4, 1), (3,)), ((4, 3), (3,)), ((2, 1, 1), (2, 4, 3), (2, 4, 3)),
             ((2, 4, 3), (2, 1, 1)), ((1,), (5,)), ((), (5,)), ((2, 1), (3,), (1, 1)), ((2, 4, 1), (2, 4, 3))]


class TestTaken:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes(self, rows, dtype):
        x, i = numbers(70, dtype), positions(300, 70)
        same(rows.take(Array.of(x), [Array.of(i)]), x[i])

    @pytest.mark.parametrize("row", [1, 2, 3, 4, 7, 8, 16, 33, 300])
    @pytest.mark.parametrize("misplaced", [0, 1, 4, 8])
    def test_rows(self, rows, row, misplaced):
        x, i = numbers((20, row), "u1"), positions((5, 7), 20, "i")
        same(rows.take(Array.of(x, misplaced), [Array.of(i)]), x[i])

    @pytest.mark.parametrize("axes", range(1, MOST_AXES + 1))
    def test_several_axes(self, rows, axes):
        x = numbers((5, 6, 7, 2), "f")
        i = [positions((3, 4), x.shape[k], "iq"[k % 2]) for k in range(axes)]
        same(rows.take(Array.of(x), [Array.of(k) for k in i]), x[tuple(i)])

    @pytest.mark.parametrize("given", RANGES)
    @pytest.mark.parametrize("misplaced", [0, 4])
    def test_ranges(self, rows, given, misplaced):
        for dtype in "hfdD":
            x = numbers((12, 9, 20, 3), dtype)
            arrays, device = with_ranges(given)
            same(rows.take(Array.of(x, misplaced), device), x[tuple(arrays)])
            y = numbers((2, 5, 12, 9, 20), dtype)
            same(rows.take(Array.of(y), device, 2), y[(slice(None), slice(None), *arrays)])

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("axis", range(1, 4))
    def test_further_axes(self, rows, dtype, axis):
        x = numbers((3, 4, 5, 6), dtype)
        for count in range(1, 5 - axis):
            for shape in ((7,), (2, 3)):
                i = [positions(shape, x.shape[axis + k], "iq"[k % 2]) for k in range(count)]
                expected = x[(*(slice(None),) * axis, *i)]
                found = rows.take(Array.of(x), [Array.of(k) for k in i], axis)
                same(found, expected)
                assert found.strides == expected.strides

    def test_more_than_a_grid(self, rows, monkeypatch):
        monkeypatch.setattr("lazyarray.devices.cuda.kernels.rows.MOST_BLOCKS", 3)
        x, i = numbers((50, 3)), positions(10 * THREADS, 50)
        same(rows.take(Array.of(x), [Array.of(i)]), x[i])

    def test_positions_at_a_distance(self, rows):
        x = numbers((20, 30, 3))
        table = positions((9, 4), 20)
        for i in (table[:, 1], table[::-1, 3], table[::2, 0], table[3], np.broadcast_to(table[0, 0], 5)):
            same(rows.take(Array.of(x), [strided(i)]), x[i])
            same(rows.take(Array.of(x), [strided(i), Array.of(i.copy())]), x[i, i])
            target, expected = Array.of(x), x.copy()
            expected[i] = 1.5
            assert rows.put(target, [strided(i)], np.float64(1.5), None)
            assert target.get().tobytes() == expected.tobytes()
        for i in (table.T, table[:, :3], table[::-2]):      # in lines and columns
            same(rows.take(Array.of(x), [strided(i)]), x[i])
        assert rows.take(Array.of(x), [strided(positions((4, 3, 2), 20)[:, :2].T)]) is None

    @pytest.mark.parametrize("shapes", BROADCAST)
    def test_positions_that_are_broadcast(self, rows, shapes):
        for axis, shape in ((0, (5, 6, 4, 2)), (1, (3, 5, 6, 4))):
            x = numbers(shape, "f")
            given = [positions(s, shape[axis + k], "qi"[k % 2]) for k, s in enumerate(shapes)]
            index = (*(slice(None),) * axis, *given)
            same(rows.take(Array.of(x), [Array.of(i) for i in given], axis), x[index])
            beside = [*given[:1], range(1, 4)] if shapes[0][-1:] in ((3,), (1,)) else given[:1]
            index = (*(slice(None),) * axis, *[np.array(i) for i in beside])
            same(rows.take(Array.of(x), [i if type(i) is range else Array.of(i) for i in beside], axis), x[index])

    @pytest.mark.parametrize("of", [lambda a: a[:, 1], lambda a: a[::-1, 2], lambda a: a[3, ::-1], lambda a: a[::3, 0]])
    def test_vectors_that_do_not_lie_in_order(self, rows, of):
        x, i = numbers((20, 6), "f"), positions(40, 5)
        same(rows.take(strided(of(x)), [Array.of(i)]), of(x)[i])
        same(rows.take(strided(of(x)), [Array.of(i[0])]), np.array(of(x)[i[0]]))
        backwards = np.arange(5, dtype="i")[::-1]
        for values, order in ((numbers(5, "f"), None), (np.float32(1.5), None), (numbers(5, "f"), backwards)):
            expected, target, j = x.copy(), strided(of(x.copy())), different(5, of(x).size)
            of(expected)[j] = values if order is None else values[order]
            given = values if isinstance(values, np.generic) else Array.of(values)
            assert rows.put(target, [Array.of(j)], given, None if order is None else Array.of(order))
            elements = [ctypes.string_at(target.data.ptr + k * target.strides[0], 4) for k in range(target.size)]
            assert b"".join(elements) == of(expected).tobytes()

    def test_an_axis_of_length_one_has_any_stride(self, rows):
        x, i = numbers((3, 1, 2), "u1"), positions((2, 2), 2)
        given = Array.of(x)
        given.strides = (2, 0, 1)
        same(rows.take(given, [Array.of(i)], 2), x[:, :, i])
        expected = x.copy()
        expected[:, :, different(2, 2)] = 7
        assert rows.put(given, [Array.of(different(2, 2))], np.uint8(7), None, 2)
        given.strides = (2, 2, 1)
        same(given, expected)

    def test_positions_that_are_not_there_are_counted_around(self, rows):
        x, i = numbers(7), np.array([7, -8, 700, -(2**62), 2**62])
        same(rows.take(Array.of(x), [Array.of(i)]), x[i % 7])

    def test_what_is_left_to_the_library(self, rows):
        x, i = Array.of(numbers((4, 4, 4, 4))), Array.of(positions(3, 4))
        assert rows.take(x, [i] * (MOST_AXES + 1)) is None
        assert rows.take(x, [Array.of(positions(3, 4, "h"))]) is None
        assert rows.take(x, [Array.of(positions(3, 4, ">i8"))]) is None, "its bytes are the other way round"
        assert rows.take(x, [i, Array.of(positions(2, 4))]) is None
        assert rows.take(x, [Array.of(positions(0, 4))]) is None
        assert rows.take(Array.of(numbers((4, 0))), [i]) is None


class TestPut:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes(self, rows, dtype):
        x, i = numbers(90, dtype), different(60, 90)
        check_put(rows, x, [i], numbers(60, dtype))
        check_put(rows, x, [i], numbers(61, dtype)[60])

    @pytest.mark.parametrize("row", [1, 2, 3, 4, 8, 16, 33, 300])
    @pytest.mark.parametrize("misplaced", [0, 1, 8])
    def test_rows(self, rows, row, misplaced):
        x, i = numbers((20, row), "u1"), different(15, 20)
        check_put(rows, x, [i], numbers((15, row), "u1"), misplaced=misplaced)
        check_put(rows, x, [i], numbers((row,), "u1"), misplaced=misplaced)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("misplaced", [0, 1, 2, 4, 8])
    def test_one_value_at_any_address(self, rows, dtype, misplaced):
        value = (numbers(3, "u1").astype(dtype) + (0 if dtype == "?" else np.array(5).astype(dtype)))[1]
        value = value * (1 + 2j) if np.dtype(dtype).kind == "c" else value
        check_put(rows, numbers(20, dtype), [different(15, 20)], np.dtype(dtype).type(value), misplaced=misplaced)
        check_put(rows, numbers((6, 5), dtype), [different(4, 6)], np.dtype(dtype).type(value), misplaced=misplaced)

    def test_several_axes(self, rows):
        x, i = numbers((5, 6, 7, 2), "f"), [different(4, 5), different(4, 6).astype("i"), different(4, 7)]
        for axes in (1, 2, 3):
            check_put(rows, x, i[:axes], numbers((4, *x.shape[axes:]), "f"))
            check_put(rows, x, i[:axes], np.float32(3))

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("axis", range(1, 4))
    def test_further_axes(self, rows, dtype, axis):
        x = numbers((3, 4, 5, 6), dtype)
        for count in range(1, 5 - axis):
            i = [different(3, x.shape[axis + k]).astype("iq"[k % 2]) for k in range(count)]
            index = (*(slice(None),) * axis, *i)
            shape = x[index].shape
            whole = numbers([2 * n for n in shape], dtype)
            views = [whole[tuple([slice(n) for n in shape])].copy(), whole[tuple([slice(n) for n in shape])],
                     numbers(shape[::-1], dtype).T, whole[tuple([slice(2 * n - 1, n - 1, -1) for n in shape])]]
            for values in [*views, numbers(1, dtype)[0]]:
                expected, target = x.copy(), Array.of(x)
                expected[index] = values
                given = values if isinstance(values, np.generic) else strided(values)
                if rows.put(target, [Array.of(k) for k in i], given, None, axis):
                    assert target.get().tobytes() == expected.tobytes()
                else:
                    assert given is not values and not values.flags.c_contiguous
            order = np.array([2, 1, 2], np.int32)
            if count == 1:
                expected, target = x.copy(), Array.of(x)
                expected[index] = views[0].take(order, axis)
                assert rows.put(target, [Array.of(k) for k in i], Array.of(views[0]), Array.of(order), axis)
                assert target.get().tobytes() == expected.tobytes()

    @pytest.mark.parametrize("given", RANGES)
    def test_ranges(self, rows, given):
        for dtype in "hfdD":
            arrays, device = with_ranges(given)
            for axis, shape in ((0, (12, 9, 20, 3)), (2, (2, 5, 12, 9, 20))):
                x = numbers(shape, dtype)
                index = (*(slice(None),) * axis, *arrays)
                for value in (numbers(x[index].shape, dtype), numbers(1, dtype)[0]):
                    expected, target = x.copy(), Array.of(x)
                    expected[index] = value
                    assert rows.put(target, device, value if isinstance(value, np.generic) else Array.of(value), None,
                                    axis)
                    assert target.get().tobytes() == expected.tobytes()

    @pytest.mark.parametrize("shapes", BROADCAST)
    def test_positions_that_are_broadcast(self, rows, shapes):
        x = numbers((50, 60, 70), "f")
        given = [different(int(np.prod(s, dtype=int)), x.shape[k]).reshape(s) for k, s in enumerate(shapes)]
        count = np.broadcast_shapes(*shapes)
        for value in (numbers((*count, *x.shape[len(shapes):]), "f"), np.float32(3)):
            if type(value) is np.float32 or np.unique(np.ravel_multi_index(
                    [np.broadcast_to(i % n, count) for i, n in zip(given, x.shape)], x.shape[:len(given)])).size == (
                    np.prod(count)):
                check_put(rows, x, given, value)

    def test_an_order_of_values(self, rows):
        x, i = numbers((30, 3)), np.array([3, 4, 3, 5, 4])
        check_put(rows, x, [i], numbers((5, 3)), np.array([2, 4, 2, 3, 4], np.int32))

    def test_what_is_left_to_the_library(self, rows):
        x, i = Array.of(numbers((4, 2))), [Array.of(different(3, 4))]
        assert not rows.put(x, i, Array.of(numbers((3, 2), "f")), None), "another dtype"
        assert not rows.put(x, i, np.float32(1), None)
        assert not rows.put(x, i, Array.of(numbers((3, 1))), None), "values for several elements each"
        assert not rows.put(Array.of(numbers(4, "V3")), i, np.zeros((), "V3")[()], None)
        assert not rows.put(x, i, Array.of(numbers(2)), Array.of(np.zeros(3, np.int32)))


class TestJoined:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes(self, rows, dtype):
        parts = [numbers(n, dtype) for n in (5, 1, 300)]
        same(rows.join([Array.of(p) for p in parts], 0), np.concatenate(parts))

    @pytest.mark.parametrize("axis", range(3))
    @pytest.mark.parametrize("count", [2, 3, MOST_PARTS])
    def test_axes(self, rows, axis, count):
        parts = [numbers([n + k % 3 if a == axis else n for a, n in enumerate((4, 3, 5))], "u2") for k in range(count)]
        for misplaced in (0, 2, 8):
            same(rows.join([Array.of(p, misplaced) for p in parts], axis), np.concatenate(parts, axis))

    @pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "D"])
    @pytest.mark.parametrize("view", [
        lambda x: x[1:4, :, 1:], lambda x: x[::2, :5], lambda x: x[:, :, ::3], lambda x: x[::-1],
        lambda x: x[2:3, :, 4],
        lambda x: np.broadcast_to(x[:, :1, :1], (6, 5, 8)), lambda x: np.broadcast_to(x[0], (3, 8, 9)),
        lambda x: x[:, 3, 1:4], lambda x: x[:, :, 5], lambda x: x[1:2, 1:2, 1:2], lambda x: x[0, 0, 1:1]],
        ids=range(11))
    def test_strided_parts(self, rows, view, dtype):
        values = numbers((6, 8, 9), dtype)
        parts = [view(values), view(values[::-1]).copy(), view(numbers((6, 8, 9), dtype))]
        for axis in range(parts[0].ndim):
            found = rows.join([strided(parts[0]), Array.of(parts[1]), strided(parts[2])], axis)
            if parts[0].size:
                same(found, np.concatenate(parts, axis))

    def test_parts_of_numbers(self, rows):
        x = numbers((5, 6), "f8").view("D")
        given = np.ascontiguousarray(x)
        parts = given.real, given.imag, given.real[:, 1:]
        same(rows.join([strided(p) for p in parts], 1), np.concatenate(parts, 1))

    def test_empty_parts(self, rows):
        parts = [numbers((2, n)) for n in (0, 3, 0, 2, 0)]
        same(rows.join([Array.of(p) for p in parts], 1), np.concatenate(parts, 1))

    def test_what_is_left_to_the_library(self, rows):
        x = Array.of(numbers((2, 3)))
        assert rows.join([x], 0) is None and rows.join([x] * (MOST_PARTS + 1), 0) is None
        assert rows.join([x, Array.of(numbers((2, 3), "f"))], 0) is None
        for shape in ((3, 2), (6,), (2, 3, 1)):
            assert rows.join([x, Array.of(numbers(shape))], 0) is None, "an error of the library's"
        assert rows.join([Array.of(numbers((0, 3)))] * 2, 0) is None
        odd = strided(numbers((4, 5, 6))[:, ::2, ::4])
        assert rows.join([odd, odd], 0) is None, "three strides"


class TestRolled:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("axis", range(3))
    def test_along_each_axis(self, rows, dtype, axis):
        x = numbers((5, 4, 6), dtype)
        for shift in (0, 1, -1, 3, 17, -100):
            same(rows.roll(Array.of(x), shift, axis), np.roll(x, shift, axis))

    @pytest.mark.parametrize("row", [1, 2, 3, 4, 7, 8, 16, 33, 300])
    @pytest.mark.parametrize("misplaced", [0, 1, 4, 8])
    def test_rows(self, rows, row, misplaced):
        x = numbers((3, 20, row), "u1")
        same(rows.roll(Array.of(x, misplaced), 7, 1), np.roll(x, 7, 1))

    @pytest.mark.parametrize("part", [
        lambda x: x[:, :, 2], lambda x: x[:, 1], lambda x: x[2], lambda x: x[::-1, :, 3], lambda x: x[:, ::2, 1],
        lambda x: x[:, :, 1:3], lambda x: x[:1], lambda x: x[:, :1], lambda x: x[..., :1], lambda x: x[::2, 1:]])
    @pytest.mark.parametrize("dtype", "hdD")
    def test_views(self, rows, part, dtype):
        x = part(numbers((5, 6, 4), dtype))
        for axis in range(x.ndim):
            found = rows.roll(strided(x), 2, axis)
            if found is None:       # the axes on one side are not one
                assert x.ndim == 3
            else:
                same(found, np.roll(x, 2, axis))

    def test_more_than_a_grid(self, rows, monkeypatch):
        monkeypatch.setattr("lazyarray.devices.cuda.kernels.rows.MOST_BLOCKS", 2)
        x = numbers((7, 5 * THREADS), "h")
        for axis in (0, 1):
            same(rows.roll(Array.of(x), 3, axis), np.roll(x, 3, axis))

    def test_what_is_left_to_the_library(self, rows):
        assert rows.roll(Array.of(numbers((0, 3))), 1, 0) is None
        assert rows.roll(strided(numbers((3, 4, 5))[:, :2, ::2]), 1, 0) is None


class TestPadded:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("mode", PADDINGS)
    @pytest.mark.parametrize("shape, pairs", [
        ((7,), [(2, 3)]), ((5, 6), [(1, 1), (2, 0)]), ((5, 6), [(0, 0), (0, 3)]), ((5, 6), [(3, 1), (0, 0)]),
        ((3, 4, 5), [(1, 2), (2, 1), (0, 3)]), ((3, 4, 5), [(0, 0), (2, 1), (0, 0)]), ((3, 4, 5), [(0, 1)] * 3),
        ((2, 3, 4, 5), [(0, 0), (0, 0), (1, 2), (3, 1)]), ((2, 3, 4, 5), [(0, 0), (1, 0), (0, 0), (0, 0)]),
        ((2, 2, 3, 4, 3), [(0, 0)] * 3 + [(1, 1), (0, 2)]), ((1, 1), [(1, 1), (0, 0)])])
    def test_modes(self, rows, dtype, mode, shape, pairs):
        if mode == "reflect" and any(max(pair) >= n for pair, n in zip(pairs, shape)):
            pytest.skip("there are too few")
        x, value = numbers(shape, dtype), numbers(9, dtype)[4]
        wanted = np.pad(x, pairs, mode, **({"constant_values": value} if mode == "constant" else {}))
        same(rows.pad(Array.of(x), pairs, mode, value), wanted)

    def test_more_than_a_grid(self, rows, monkeypatch):
        monkeypatch.setattr("lazyarray.devices.cuda.kernels.rows.MOST_BLOCKS", 2)
        x = numbers((7, 5 * THREADS), "h")
        same(rows.pad(Array.of(x), [(1, 2), (3, 4)], "constant", np.int16(-3)),
             np.pad(x, [(1, 2), (3, 4)], constant_values=-3))

    def test_what_is_left_to_the_library(self, rows):
        assert rows.pad(Array.of(numbers((0, 3))), [(1, 1), (0, 0)], "constant", np.float64(1)) is None
        x = Array.of(numbers((2, 3, 4, 5)))
        assert rows.pad(x, [(1, 0), (0, 0), (0, 0), (0, 1)], "edge", np.float64(0)) is None


class TestOnTheDevice:
    """What the device does, by its kernels or its library; on a GPU both, the second once the kernels are compiled."""

    @pytest.fixture(params=["at first", "compiled"])
    def device(self, request):
        device = lazyarray.device()
        if request.param == "compiled":
            if device.name != "cuda":
                pytest.skip("its library alone is there")
            x = device.xp.arange(3)
            device.take_at(x, (x,))
            device.kernels.wait()
        return device

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_taken_and_put(self, device, dtype):
        put = device.xp.asarray
        x, i, k = numbers((40, 5), dtype), different(30, 40), positions(30, 5)
        assert device.take_at(put(x), (put(i),)).get().tobytes() == x[i].tobytes()
        assert device.take_at(put(x), (put(i), put(k))).get().tobytes() == x[i, k].tobytes()
        for r in (range(30), range(39, 9, -1)):
            assert device.take_at(put(x), (r, put(k))).get().tobytes() == x[np.array(r), k].tobytes()
            target, expected = put(x), x.copy()
            device.put_at(target, (r, put(k)), put(numbers(30, dtype)))
            expected[np.array(r), k] = numbers(30, dtype)
            assert target.get().tobytes() == expected.tobytes()
        for values in (numbers((30, 5), dtype), numbers(5, dtype), numbers(1, dtype)[0]):
            target, expected = put(x), x.copy()
            device.put_at(target, (put(i),), values if isinstance(values, np.generic) else put(values))
            expected[i] = values
            assert target.get().tobytes() == expected.tobytes()
        flat, expected = put(x[:, 0].copy()), x[:, 0].copy()
        given, order = numbers(4, dtype), np.array([1, 1, 3, 3], np.int32)
        device.put_at(flat, (put(np.array([2, 2, 7, 7])),), put(given), put(order))
        expected[[2, 7]] = given[[1, 3]]
        assert flat.get().tobytes() == expected.tobytes()

    def test_rolled(self, device):
        for dtype in DTYPES:
            x = numbers((4, 5, 6), dtype)
            for view in (lambda a: a, lambda a: a[..., 2], lambda a: a[1:, :, ::2]):
                for axis in range(view(x).ndim):
                    found = device.rolled(view(device.xp.asarray(x)), -2, axis)
                    assert found.get().tobytes() == np.roll(view(x), -2, axis).tobytes()

    def test_padded(self, device):
        for dtype in DTYPES:
            x, value = numbers((4, 5, 6), dtype), numbers(9, dtype)[4]
            for pairs in ([(1, 2), (0, 0), (3, 0)], [(0, 0), (2, 2), (0, 0)], [(1, 1)] * 3):
                for mode in PADDINGS:
                    wanted = np.pad(x, pairs, mode, **({"constant_values": value} if mode == "constant" else {}))
                    found = device.padded(device.xp.asarray(x), pairs, mode, value)
                    assert found.get().tobytes() == wanted.tobytes()

    @pytest.mark.parametrize("axis", range(2))
    def test_joined(self, device, axis):
        parts = [numbers((3, 4), "f"), numbers((3, 5), "f")[:, :4], numbers((4, 3), "f").T]
        put = device.xp.asarray
        dense = [put(np.ascontiguousarray(p)) for p in parts]
        for given in (dense, [dense[0], put(numbers((3, 5), "f"))[:, :4], put(numbers((4, 3), "f")).T]):
            assert device.joined(given, axis).get().tobytes() == np.concatenate(parts, axis).tobytes()
