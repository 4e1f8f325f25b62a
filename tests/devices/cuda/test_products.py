"""Products by cuBLAS: what it is asked to walk, with NumPy in its place; and on a GPU, that it gives NumPy's values."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.cuda.products import plan_of

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
    assert planned or max(len(first), len(second)) > 1


@pytest.mark.parametrize(("a", "b"), [((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (4, 2)), ((0, 3), (3, 2)),
                                      ((2, 2, 3), (3, 3, 2))])
def test_what_is_left(a, b):
    x, y = np.ones(a), np.ones(b)
    assert plan_of(8, x.shape, x.strides, y.shape, y.strides) is None


def test_matrices_below_each_other_are_one():
    a, b = np.ones((5, 2, 3)), np.ones((3, 4))
    plan = plan_of(8, a.shape, a.strides, b.shape, b.strides)
    assert (plan.rows, plan.count, plan.shape) == (10, 1, (5, 2, 4))


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
