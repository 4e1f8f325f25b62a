"""Rules that other packages' own test-suites taught: a lazy array in place of an ndarray changes nothing."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray


@pytest.mark.parametrize("like", [np.empty_like, np.zeros_like, np.ones_like])
@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("shape", [(), (5,), (5, 6), (5, 6, 7)])
def test_new_arrays_in_another_shape_are_laid_out_as_numpy_does(like, order, shape):
    for a in (np.arange(24.0).reshape(4, 3, 2, order="F"), np.arange(6.0).reshape(2, 3)):
        expected = like(a, order=order, shape=shape)
        assert like(lazyarray.asarray(a), order=order, shape=shape).strides == expected.strides
