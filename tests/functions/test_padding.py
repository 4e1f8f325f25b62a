"""``numpy.pad`` by an array's own elements and by constants, and ``repeat`` and ``reduceat`` by many numbers."""
from __future__ import annotations

import math

import numpy as np
import pytest

import lazyarray

DEVICE = lazyarray.device()
MODES = ["edge", "wrap", "reflect", "symmetric"]


def on_device(values):
    return lazyarray.asarray(DEVICE.xp.asarray(values)).copy("K")


def same(found, expected):
    assert type(found) is lazyarray.LazyNdarray and found.dtype == expected.dtype and found.shape == expected.shape
    assert expected.ndim < 2 or found.strides == expected.strides
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ndim", range(1, 6))
def test_own_elements(ndim, mode):
    rng = np.random.default_rng(ndim)
    for _ in range(30):
        shape = tuple(rng.integers(1, 5, ndim).tolist())
        values = np.arange(math.prod(shape)).reshape(shape)
        most = [3 if mode == "edge" else n - (mode == "reflect") for n in shape]
        pairs = [tuple((rng.integers(0, n + 1, 2) * (rng.random() < 0.5)).tolist()) for n in most]
        same(np.pad(on_device(values), pairs, mode), np.pad(values, pairs, mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("view", [
    lambda x: x[::2, 1:], lambda x: x.T, lambda x: x[::-1], lambda x: x[:, None, 3], lambda x: x[0, :1]])
@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "f4", "D"])
def test_views_of_each_dtype(view, dtype, mode):
    values = np.random.default_rng(0).integers(0, 9, (6, 7)).astype(dtype)
    given, expected = view(on_device(values)), view(values)
    for width in (0, 1, 3, 20):     # wider than what there is, too
        if mode != "reflect" or min(expected.shape) > 1:
            same(np.pad(given, width, mode), np.pad(expected, width, mode))


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f4", "F"])
@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("constant", [0, 3, -1, 300, 2.5, True, 10**20, 1j])
def test_constants(constant, dtype):
    values = np.ones((3, 4), dtype)
    outcomes = []
    for given in (values, on_device(values)):
        with np.errstate(all="ignore"):
            try:
                outcomes.append(np.asarray(np.pad(given, ((1, 0), (2, 1)), constant_values=constant)))
            except Exception as error:  # noqa: BLE001  NumPy's own
                outcomes.append(type(error))
    expected, found = outcomes
    if isinstance(expected, type):
        assert found is expected
    else:
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def test_nothing_is_there_to_take():
    for mode in MODES:
        with pytest.raises(ValueError, match="empty axis"):
            np.pad(on_device(np.zeros((0, 3))), 1, mode)


@pytest.mark.parametrize("n", [5, 400])
@pytest.mark.parametrize("kind", ["list", "int64", "uint8", "uint64", "float64", "negative", "one", "zeros"])
@pytest.mark.parametrize("axis", [0, None])
def test_repeated_by_what_the_host_has(n, kind, axis):
    values = np.random.default_rng(0).random(n if axis is None else (n, 3))
    counts = np.random.default_rng(1).integers(0, 4, n)
    given = {"list": counts.tolist(), "negative": -counts, "one": [2], "zeros": [0] * n}.get(kind)
    given = counts.astype(kind) if given is None else given
    try:
        expected = np.repeat(values, given, axis)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            np.repeat(on_device(values), given, axis)
    else:
        same(np.repeat(on_device(values), given, axis), expected)


@pytest.mark.parametrize("indices", [[0, 30], [-1, 2], [3, 3, 1], [], [4, 29, 0]])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("where", ["host", "device"])
def test_reduceat(indices, axis, where):
    values, indices = np.random.default_rng(0).integers(0, 9, (30, 40)), np.array(indices, int)
    given = indices if where == "host" else on_device(indices)
    try:
        expected = np.add.reduceat(values, indices, axis)
    except IndexError:
        with pytest.raises(IndexError):
            np.add.reduceat(on_device(values), given, axis)
        return
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(np.add.reduceat(on_device(values), given, axis)), expected)


@pytest.mark.parametrize("view", [
    lambda x: x.T, lambda x: x.transpose(1, 0, 2), lambda x: x[:, ::-1, ::2], lambda x: x[::2]])
@pytest.mark.parametrize("dtype", ["f8", "i2"])
def test_sums_lie_in_memory_as_numpys(view, dtype):
    values = np.random.default_rng(0).integers(0, 9, (4, 5, 6)).astype(dtype)
    for axis in range(3):
        indices = np.array([0, 1, 1])
        same(np.add.reduceat(view(on_device(values)), indices, axis), np.add.reduceat(view(values), indices, axis))


def test_reduceat_looks_at_its_indices_once():
    x, indices = on_device(np.arange(5000.0)), on_device(np.arange(0, 5000, 7))
    np.add.reduceat(x, indices)
    with lazyarray.trace() as t:
        np.add.reduceat(x, indices)
    assert not t.events
    indices[3] = 5000
    with pytest.raises(IndexError):
        np.add.reduceat(x, indices)


def test_indices_of_unsigned_integers_are_refused_as_by_numpy():
    x, indices = on_device(np.arange(9.0)), np.array([0, 2], np.uint64)
    for given in (on_device(indices), lazyarray.asarray(indices)):
        with pytest.raises(TypeError, match="according to the rule 'safe'"):
            np.add.reduceat(x, given)


def test_no_quantiles_in_rows():
    with pytest.raises(ValueError, match="zero-size array"):
        np.quantile(on_device(np.arange(3.0)), np.zeros((0, 2)))
