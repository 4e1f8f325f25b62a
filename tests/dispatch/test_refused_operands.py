"""What NumPy refuses is refused, and nothing is written."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray

LARGE = 30_000      # elements that no host computes with


@pytest.mark.parametrize("shape", [(3,), (3, 3)])
@pytest.mark.parametrize("other", [[1.0, 2.0, 3.0], (1.0, 2.0, 3.0), range(3), np.ones(3)])
def test_in_place_products_with_a_vector(shape, other):
    x = lazyarray.asarray(np.ones(shape))
    with pytest.raises(ValueError, match="inplace matrix multiplication"):
        x @= other
    assert (np.asarray(x) == 1).all()


@pytest.mark.filterwarnings("error::lazyarray.HostFallbackWarning")
@pytest.mark.parametrize("shape", [(3,), (3, 3)])
@pytest.mark.parametrize("of", [list, tuple, lambda rows: [lazyarray.asarray(row) for row in rows]])
def test_in_place_products_with_a_list_of_lists(shape, of):
    x, expected, rows = lazyarray.asarray(np.ones(shape)), np.ones(shape), [[1.0, 2.0, 3.0]] * 3
    x @= of(rows)
    expected @= rows
    assert (np.asarray(x) == expected).all()


@pytest.mark.filterwarnings("ignore:'where' used without 'out'")
@pytest.mark.parametrize("n", [4, LARGE])
def test_a_mask_is_of_booleans(n):
    plain = np.arange(float(n))
    x = lazyarray.asarray(plain)
    for call in (lambda a: np.add(a, a, where=a), lambda a: np.sin(a, where=a.astype(int)),
                 lambda a: np.add(a, 1, where=np.ones(n, int))):
        for array in (plain, x):
            with pytest.raises(TypeError, match="safe"):
                call(array)
    for where in (True, 1, np.True_, [True] * n, np.ones(n, bool), lazyarray.asarray(np.ones(n, bool))):
        assert (np.asarray(np.add(x, 1, where=where, out=np.empty(n))) == plain + 1).all()


@pytest.mark.parametrize("n", [4, LARGE])
def test_the_imaginary_part_of_real_numbers_is_read_only(n):
    for part in (np.imag(lazyarray.asarray(np.ones(n))), lazyarray.asarray(np.ones(n)).imag):
        assert not part.flags.writeable and not np.asarray(part).any()
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1
