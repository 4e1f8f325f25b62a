"""Products by cuBLAS: what it is asked to walk, with NumPy in its place; and on a GPU, that it gives NumPy's values."""
from __future__ import annotations

import ctypes
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.cuda.products import Products, copies_for, plan_of

ON_CUDA = lazyarray.device().name == "cuda"
RANDOM = np.random.default_rng(0)
LENGTHS = [(2, 3, 4), (1, 3, 5), (4, 1, 2), (3, 5, 1), (1, 1, 1)]
STACKS = [((), ()), ((3,), ()), ((), (3,)), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((1,), (4,))]


def forms(shape, dtype=float):
    """Arrays of a shape that lie in memory in different ways."""
    values = RANDOM.normal(size=shape)
    values = (values + 1j * RANDOM.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)
    yield values
    yield np.ascontiguousarray(values.swapaxes(-1, -2)).swapaxes(-1, -2)
    larger = np.zeros([2 * n for n in shape], dtype)
    part = larger[tuple([slice(n) for n in shape])]
    part[...] = values
    yield part
    every = larger[tuple([slice(None, None, 2) for _ in shape])]
    every[...] = values
    yield every
    if len(shape) > 2:
        yield np.broadcast_to(values[:1], shape)
        yield np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 0, -1)), -1, 0)


def multiplied(plan, a, b):
    """What cuBLAS makes of a plan: for it, columns lie together."""
    def matrix(array, place, turned, lead, rows, columns):
        shape = (columns, rows) if turned else (rows, columns)
        first = array.__array_interface__["data"][0] + place * array.itemsize - memory[id(array)][1]
        return np.ndarray(shape, array.dtype, memory[id(array)][0], first, (array.itemsize, lead * array.itemsize))

    memory = {}
    for array in (a, b):
        owner = array
        while owner.base is not None:
            owner = owner.base
        flat = owner.reshape(-1, order="A")
        memory[id(array)] = flat.view(np.uint8), flat.__array_interface__["data"][0]
    out = np.empty((plan.count, plan.rows, plan.columns), a.dtype)
    for i in range(plan.count):
        second = matrix(b, i * plan.second.step, plan.second.turned, plan.second.lead, plan.columns, plan.depth)
        first = matrix(a, i * plan.first.step, plan.first.turned, plan.first.lead, plan.depth, plan.rows)
        out[i] = ((second.T if plan.second.turned else second) @ (first.T if plan.first.turned else first)).T
    return out.reshape(plan.shape)


@pytest.mark.parametrize(("rows", "depth", "columns"), LENGTHS)
@pytest.mark.parametrize(("first", "second"), STACKS)
def test_what_is_walked(rows, depth, columns, first, second):
    planned = 0
    for a, b in itertools.product(forms((*first, rows, depth)), forms((*second, depth, columns))):
        plan = plan_of(a.itemsize, a.shape, a.strides, b.shape, b.strides)
        if plan is not None:
            planned += 1
            assert plan.shape == (a @ b).shape
            np.testing.assert_allclose(multiplied(plan, a, b), a @ b, rtol=1e-12, atol=1e-12)
            continue
        copies = copies_for(a.itemsize, a.shape, a.strides, b.shape, b.strides)
        if copies is None:      # stacks that are broadcast along some of their axes
            assert max(len(first), len(second)) > 1
            continue
        a, b = (one.copy() if copy else one for one, copy in zip((a, b), copies))
        plan = plan_of(a.itemsize, a.shape, a.strides, b.shape, b.strides)
        np.testing.assert_allclose(multiplied(plan, a, b), a @ b, rtol=1e-12, atol=1e-12)
    assert planned or max(len(first), len(second)) > 1


def vectors(n):
    values = RANDOM.normal(size=n)
    larger = np.zeros(3 * n)
    larger[::3] = values
    return values, larger[::3]


@pytest.mark.parametrize("stack", [(), (3,), (2, 3)])
@pytest.mark.parametrize(("n", "m"), [(3, 4), (1, 4), (3, 1), (1, 1)])
def test_vectors(n, m, stack):
    for matrix, row, column in itertools.product(forms((*stack, n, m)), vectors(n), vectors(m)):
        for a, b in ((row, matrix), (matrix, column)):
            plan = plan_of(8, a.shape, a.strides, b.shape, b.strides)
            assert plan is not None or not matrix.flags.c_contiguous
            if plan is not None:
                assert plan.shape == (a @ b).shape
                np.testing.assert_allclose(multiplied(plan, a, b), a @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("a", "b"), [
    ((3,), (3,)), ((3,), (2, 2)), ((), (3,)), ((2, 3), ()), ((2, 3), (2,)), ((0,), (0, 2)), ((2, 3), (4, 2)),
    ((0, 3), (3, 2)), ((2, 2, 3), (3, 3, 2))])
def test_what_is_left(a, b):
    x, y = np.ones(a), np.ones(b)
    assert plan_of(8, x.shape, x.strides, y.shape, y.strides) is None
    assert copies_for(8, x.shape, x.strides, y.shape, y.strides) is None


def test_matrices_below_each_other_are_one():
    a, b = np.ones((5, 2, 3)), np.ones((3, 4))
    plan = plan_of(8, a.shape, a.strides, b.shape, b.strides)
    assert (plan.rows, plan.count, plan.shape) == (10, 1, (5, 2, 4))


class Arrays(np.ndarray):
    """Arrays with the attribute of CuPy's that holds an address."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.__array_interface__["data"][0])


@pytest.mark.parametrize("dtype", "fdFD")
def test_what_cublas_is_called_with(dtype):
    calls, precise = [], {"usual": True}

    def noting(name):
        return lambda *args: calls.append((name, args))

    letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype]
    cublas = SimpleNamespace(**{f"{letter}gemm": noting("one"), f"{letter}gemmStridedBatched": noting("several")})
    cupy = SimpleNamespace(ndarray=lambda shape, dtype: np.zeros(shape, dtype).view(Arrays),
                           cuda=SimpleNamespace(device=SimpleNamespace(get_cublas_handle=lambda: "handle")))
    product = Products(cupy, lambda: (cublas, lambda char: char == dtype and precise["usual"]), Arrays.copy)
    a, b = np.ones((5, 2, 3), dtype).view(Arrays), np.ones((5, 4, 3), dtype).view(Arrays).swapaxes(1, 2)
    out = product(a, b)
    (name, args), = calls
    at = {key: array.data.ptr for key, array in (("a", a), ("b", b), ("out", out))}
    one, zero = args[6], args[13]
    assert np.frombuffer((ctypes.c_char * a.itemsize).from_address(one), dtype)[0] == 1
    assert np.frombuffer((ctypes.c_char * a.itemsize).from_address(zero), dtype)[0] == 0
    assert name == "several" and out.shape == (5, 2, 4)
    assert args == ("handle", True, False, 4, 2, 3, one, at["b"], 3, 12, at["a"], 3, 6, zero, at["out"], 4, 8, 5)
    out = product(a, b[0])
    name, args = calls[-1]
    assert name == "one"
    assert args == ("handle", True, False, 4, 10, 3, one, at["b"], 3, at["a"], 3, zero, out.data.ptr, 4)
    out = product(np.ones((5, 2, 6), dtype).view(Arrays)[:, :, ::2], b)
    name, args = calls.pop()
    assert out.shape == (5, 2, 4) and args[11:13] == (3, 6), "a copy was multiplied"
    # What a program has chosen for CuPy holds here, too: CUPY_TF32=1 and the like.
    precise["usual"] = False
    assert product(a, b) is None and len(calls) == 2
    assert product(a, b.real.astype("e")) is None


@pytest.mark.skipif(not ON_CUDA, reason="needs a GPU")
@pytest.mark.parametrize("dtype", "fdFD")
def test_values(dtype):
    tolerance = 1e-4 if dtype in "fF" else 1e-11
    for (rows, depth, columns), (first, second) in itertools.product(LENGTHS, STACKS):
        for a, b in itertools.product(forms((*first, rows, depth), dtype), forms((*second, depth, columns), dtype)):
            found = lazyarray.asarray(a) @ lazyarray.asarray(b)
            assert found.dtype == a.dtype and found.flags.c_contiguous
            np.testing.assert_allclose(np.asarray(found), a @ b, rtol=tolerance, atol=tolerance)
            if not first and not second:
                np.testing.assert_allclose(np.dot(lazyarray.asarray(a), lazyarray.asarray(b)), a @ b, rtol=tolerance,
                                           atol=tolerance)


@pytest.mark.skipif(not ON_CUDA, reason="needs a GPU")
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("n", [1, 7, 5000])
def test_values_of_vectors(dtype, n):
    tolerance = 1e-3 if dtype in "fF" else 1e-10
    row, column = (v.astype(dtype) * (1 + 1j if dtype in "FD" else 1) for v in (vectors(n)[1], vectors(13)[1]))
    for a in forms((n, 13), dtype):
        for one, other in ((row, a), (a, column), (row, row.conj()), (row[::-1], a), (a.T, row)):
            for multiply in (np.matmul, np.dot, np.inner) if other.ndim == 1 else (np.matmul, np.dot):
                found = multiply(lazyarray.asarray(one), lazyarray.asarray(other))
                expected = multiply(one, other)
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)
