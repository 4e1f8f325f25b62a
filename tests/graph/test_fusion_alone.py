"""Operations whose results are needed by themselves again and again, which then are computed at once."""
from __future__ import annotations

import numpy as np
import pytest
from recorded import compiled

import lazyarray

RANDOM = np.random.default_rng(0)
#: Below and above what counts as long.
SHAPES = [(3, 5, 4), (6, 40, 10), (8, 160, 120)]
ORDERS = [(0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1)]
CALLS = {
    "maximum": lambda x, y: np.maximum(x, 0.25), "negative": lambda x, y: -x, "twice": lambda x, y: x + x,
    "other": lambda x, y: x * y, "where": lambda x, y: np.where(x > 0.5, x, y), "cast": lambda x, y: x + np.int8(1),
    "triangle": lambda x, y: np.triu(x), "single": lambda x, y: x.astype("f4"), "clip": lambda x, y: np.clip(x, 0, 0.5),
    "close": lambda x, y: np.isclose(x, y, 0.5), "close or NaN": lambda x, y: np.isclose(x, y, 0.1, equal_nan=True),
}
TIMES = 40


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize("shape", SHAPES)
def test_it_has_the_shape_the_values_and_the_order_each_time(shape, call):
    for order in ORDERS:
        values = RANDOM.random(shape)
        plain = values.transpose(order), RANDOM.random(shape).transpose(order)
        lazy = tuple([lazyarray.asarray(array.transpose(np.argsort(order)).copy()).transpose(order) for array in plain])
        wanted = call(*plain)
        for turn in range(TIMES):
            found = call(*lazy)
            assert found.shape == wanted.shape and found.dtype == wanted.dtype, (order, turn)
            assert found.strides == wanted.strides, (order, turn)
            assert np.array_equal(np.asarray(found), wanted), (order, turn)
            if turn == 5:
                compiled()


def test_what_is_made_of_it_sees_it_as_it_is():
    plain = RANDOM.random((8, 160, 120)).transpose(1, 0, 2)
    x = lazyarray.asarray(plain.transpose(1, 0, 2).copy()).transpose(1, 0, 2)
    for _ in range(TIMES):
        first = np.maximum(x, 0.5)
        lazyarray.block_until_ready(first)
        compiled()
        assert np.array_equal(first.reshape(160, -1), np.maximum(plain, 0.5).reshape(160, -1))
        assert np.array_equal(first[3], np.maximum(plain, 0.5)[3])
        first[2] = 7
        assert first[2].min() == 7 and np.array_equal(x, plain)
        alias = np.asarray(first)
        alias[4] = -1
        assert (first[4] + 0).max() == -1


def test_a_number_of_numpys_after_arrays():
    """It has a dtype, as an array has, and the kernel that the call has is one of arrays."""
    plain = RANDOM.random(200_001)
    x = lazyarray.asarray(plain)
    y = lazyarray.block_until_ready(x * 1)
    for operand in (y[1:], y):
        for _ in range(TIMES):
            assert np.array_equal(np.asarray(x * y), plain * plain)
            compiled()
        for _ in range(TIMES):
            found = np.float64(2.5) * operand
            assert np.array_equal(np.asarray(found), 2.5 * plain[-operand.size:])
            assert np.array_equal(np.asarray(operand * np.float64(2.5)), 2.5 * plain[-operand.size:])
            compiled()
