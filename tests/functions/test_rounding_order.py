"""``round`` with decimals has C or Fortran order; without them, or of complex numbers, that of its operand."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import lazyarray

CALLS = [lambda a, d: np.round(a, d), lambda a, d: a.round(d), lambda a, d: np.around(a, decimals=d),
         lambda a, d: np.round(a[::2], d), lambda a, d: np.round(a + 0, d)]


@pytest.mark.parametrize("shape", [(2, 3, 4), (60, 70, 80)], ids=["small", "large"])
@pytest.mark.parametrize("kind", ["f2", "f8", "i4", "u1", "c16"])
def test_the_order_is_that_of_numpy(shape, kind):
    whole = (np.random.default_rng(0).random(shape) * 100).astype(kind)
    for order, decimals in itertools.product(itertools.permutations(range(3)), (0, 1, -1)):
        plain, lazy = whole.transpose(order), lazyarray.asarray(whole).transpose(order)
        for call in CALLS:
            wanted, found = call(plain, decimals), call(lazy, decimals)
            assert found.strides == wanted.strides, (order, decimals)
            # NumPy multiplies in half precision, which may lead to the next decimal.
            one = 10.0 ** -decimals if kind == "f2" and decimals else 0
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-3 if one else 1e-12, atol=one)
