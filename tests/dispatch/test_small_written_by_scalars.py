"""A small array of the host into which a scalar of the device is put is the device's from then on."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as lnp


@pytest.fixture(autouse=True)
def small(small_on_host):
    small_on_host(95_000)


@pytest.mark.parametrize("make", [np.empty, np.zeros, lambda n: np.arange(float(n)), lambda n: np.ones((n, 2))[:, 1]])
def test_values_and_copies(make):
    values = np.arange(40_000.0)
    x = lazyarray.asarray(values) * 1
    h = make(50)
    h[...] = 0.5
    found = lazyarray.asarray(h.copy()) if h.base is None else lnp.ones((50, 2))[:, 1]
    found[...] = 0.5
    with lazyarray.trace() as record:
        for k in range(4):
            found[k] = (x * k).sum()
            h[k] = (values * k).sum()
        found[10:20] += x.max()
        h[10:20] += values.max()
        scalar = x[7] * 2
        found[-1], h[-1] = scalar, values[7] * 2
    assert not record.materialisations
    np.testing.assert_array_equal(np.asarray(found), h)
    found[2], h[2] = 3, 3
    np.testing.assert_array_equal(np.asarray(found + 0), h)


def test_a_scalar_whose_value_is_known_leaves_it_on_the_host():
    x = lazyarray.asarray(np.arange(40_000.0)) * 1
    total = x.sum()
    assert float(total) == 799_980_000
    h = lnp.zeros(5)
    with lazyarray.trace() as record:
        h[1] = total
        h[2] = 4
    assert not record.uploads and not record.materialisations
    assert h.tolist() == [0, 799_980_000, 4, 0, 0]
