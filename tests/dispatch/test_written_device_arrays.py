"""Device arrays of the library that NumPy's functions write into: what runs on the host arrives there, too."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray

VALUES = np.random.default_rng(8).random((30, 20))

WRITES = {
    "copyto": lambda d, x: np.copyto(d, x * 2),
    "accumulate of another dtype": lambda d, x: np.add.accumulate(x > 0.5, out=d),
    "cumsum of another dtype": lambda d, x: np.cumsum(x > 0.5, axis=0, out=d),
    "put": lambda d, x: np.put(d, [3, 1], x[0, :2]),
    "place": lambda d, x: np.place(d, VALUES > 0.5, x[0, :3]),
    "put_along_axis": lambda d, x: np.put_along_axis(d, np.argmax(x, axis=1)[:, None], 5.0, 1),
    "fill_diagonal": lambda d, x: np.fill_diagonal(d, x[0, 0]),
}


@pytest.mark.parametrize("name", [*WRITES])
@pytest.mark.parametrize("lent", [False, True])
def test_the_array_is_written(name, lent):
    xp, x, plain = lazyarray.device().xp, lazyarray.asarray(VALUES) * 1.0, VALUES.copy()
    owner = lazyarray.asarray(VALUES).copy() * 1.0
    target = lazyarray.asdevice(owner) if lent else xp.asarray(VALUES)
    with np.errstate(all="raise"):
        WRITES[name](target, x)
        WRITES[name](plain, VALUES)
    assert np.array_equal(xp.asnumpy(target), plain)
    if lent:
        assert np.array_equal(np.asarray(owner), plain)
