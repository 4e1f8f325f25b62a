"""Places that ``numpy.unique`` gives index without a look at them, whose bounds follow from how they were made."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray


@pytest.fixture(autouse=True)
def all_on_device(small_on_host):
    small_on_host(0)


@pytest.mark.parametrize("dtype", ["f8", "i4", "u1", "?"])
@pytest.mark.parametrize("shape", [(4000,), (40, 100)])
def test_places_and_counts_are_indexes(shape, dtype):
    values = np.random.default_rng(0).integers(0, 50, shape).astype(dtype)
    x = lazyarray.asarray(values)
    found = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    wanted = np.unique(values, return_index=True, return_inverse=True, return_counts=True)
    for one, other in zip(found, wanted):
        np.testing.assert_array_equal(np.asarray(one), other)
        assert one.dtype == other.dtype and one.shape == other.shape
    distinct, index, inverse, count = np.unique(x * 1, return_index=True, return_inverse=True, return_counts=True)
    table = lazyarray.asarray(np.arange(values.size + 1.0)) * 2
    with lazyarray.trace() as record:
        taken = x.ravel()[index], distinct[inverse], table[count], (count * 2.0)[inverse]
    assert not record.synchronisations
    wanted = values.ravel()[wanted[1]], values, wanted[3] * 2.0, (wanted[3] * 2.0)[wanted[2]]
    for one, other in zip(taken, wanted):
        np.testing.assert_array_equal(np.asarray(one), other)


@pytest.mark.parametrize("axis", [0, 1])
def test_of_rows(axis):
    values = np.random.default_rng(1).integers(0, 3, (40, 40))[:, :3]
    values = values if axis == 0 else values.T.copy()
    x = lazyarray.asarray(values)
    for given in ({"return_inverse": True}, {"return_index": True}, {"return_counts": True, "return_index": True}):
        for one, other in zip(np.unique(x, axis=axis, **given), np.unique(values, axis=axis, **given)):
            np.testing.assert_array_equal(np.asarray(one), other)


def test_of_nothing():
    empty = np.zeros(0)
    for one, other in zip(np.unique(lazyarray.asarray(empty), True, True, True), np.unique(empty, True, True, True)):
        assert one.shape == other.shape and one.dtype == other.dtype
