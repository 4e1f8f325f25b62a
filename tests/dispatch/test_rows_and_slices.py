"""Indexes of arrays beside each other, with numbers and slices around: what NumPy takes and puts, by random forms."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray

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
