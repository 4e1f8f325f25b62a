"""Every ufunc and every ufunc method gives NumPy's answer on lazy arrays, with no more copies than needed."""

from __future__ import annotations

import os

import numpy as np
import parity
import pytest
import recipes_ufuncs

import lazyarray
from lazyarray.functions import tables

NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"
GROUPS = dict(recipes_ufuncs.groups())
#: Method -> the ufuncs that have it on the device.
ON_DEVICE = {
    "": set(tables.UFUNCS), "reduce": tables.PAIRWISE, "accumulate": tables.PAIRWISE, "reduceat": {np.add},
    "outer": {u for u in tables.UFUNCS if u.nin == 2 and u.signature is None},
    "at": {np.add, np.subtract, np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor},
}


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_ufunc_gives_numpys_answer(name):
    ufunc_name, _, method = name.partition(".")
    ufunc = recipes_ufuncs.UFUNCS[ufunc_name]
    found = parity.failures(
        GROUPS[name],
        parity.Library.lazyarray(),
        nightly=NIGHTLY,
        on_device=ufunc in ON_DEVICE[method],
    )
    assert not found, parity.report(found)


@pytest.mark.parametrize("dtype", ["i4", "u1", "f4", "c8", "?"])
@pytest.mark.parametrize("number", [2, -1, 300, 2.5, 2j, True])
@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.divide, np.maximum, np.less])
def test_into_an_array_that_is_there(ufunc, number, dtype):
    """Warm and cold, in place, from a number or an array, into any dtype: what NumPy writes, or its error."""
    def all_of_it(asarray):
        found = []
        for out in (dtype, "f4", "c8"):
            for other in (number, asarray(np.arange(3).astype(dtype)), asarray(np.ones(3, out))):
                for _ in range(3):
                    x, z = asarray(np.arange(1, 4).astype(dtype)), asarray(np.zeros(3, out))
                    for target in (z, x, z[::-1]):
                        try:
                            result = ufunc(x, other, out=target)
                            found.append((result is target, np.asarray(target).tolist(), np.asarray(x).tolist()))
                        except (TypeError, OverflowError) as error:
                            found.append(type(error))
        return found

    with np.errstate(all="ignore"):
        assert str(all_of_it(lazyarray.asarray)) == str(all_of_it(np.array))


@pytest.mark.parametrize("order", ["A", "a", "C", "f", "F", "K", None])
@pytest.mark.parametrize("turn", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_order_that_is_asked_for(order, turn):
    plain = np.arange(24.0).reshape(4, 3, 2).transpose(turn)
    x = lazyarray.asarray(np.arange(24.0).reshape(4, 3, 2)).transpose(turn)
    for work in (lambda a: np.negative(a, order=order), lambda a: np.add(a, a, order=order),
                 lambda a: np.add(a, plain, order=order), lambda a: np.multiply(a, 2, order=order)):
        found, expected = work(x), work(plain)
        assert found.strides == expected.strides and np.array_equal(found, expected)
