"""NaN with a sign, which x86 processors make of ``0 / 0``, is NaN as any other: it sorts last, and is found."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import lazyarray

CALLS = {
    "sort": np.sort, "argsort": lambda x: np.argsort(x, kind="stable"), "median": np.median,
    "nanmedian": np.nanmedian, "unique": np.unique,
    "percentile": lambda x: np.percentile(x, 30), "nanpercentile": lambda x: np.nanpercentile(x, [30, 60]),
    "partition": lambda x: np.sort(np.partition(x, len(x) // 2)[len(x) // 2:]), "lexsort": lambda x: np.lexsort((x, x)),
    "argpartition": lambda x: np.sort(x[np.argpartition(x, 3)][3:]), "trim": lambda x: np.sort(x)[: -len(x) // 2],
    "unique_inverse": lambda x: np.unique(x, return_inverse=True)[1], "argmax": np.argmax, "argmin": np.argmin,
    "max": np.max, "min": np.min, "fmax": lambda x: np.fmax.reduce(x), "nanmax": np.nanmax, "nanargmin": np.nanargmin,
    "histogram": lambda x: np.histogram(x, range=(-3, 3))[0], "isin": lambda x: np.isin(x, x[::2]),
    "union": lambda x: np.union1d(x, x[:3]), "setdiff": lambda x: np.setdiff1d(x, x[:3]),
    "intersect": lambda x: np.intersect1d(x, x[:-3]), "setxor": lambda x: np.setxor1d(x, x[:4]),
    "searchsorted": lambda x: np.searchsorted(np.sort(x), x), "cumulative": np.nancumsum, "sign": np.sign,
    "maximum": lambda x: np.maximum.accumulate(x), "clip": lambda x: np.clip(x, -1, 1), "nan_to_num": np.nan_to_num,
    "quantile": lambda x: np.quantile(x, 0.5, method="lower"), "trapezoid": np.trapezoid, "ptp": np.ptp,
}


def in_place(x, name):
    y = x.copy()
    getattr(y, name)(*([3] if name == "partition" else []))
    return np.sort(y[3:]) if name == "partition" else y


CALLS |= {f"x.{name}": lambda x, name=name: in_place(x, name) for name in ("sort", "partition")}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("n", [7, 5000])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("other", [np.nan, 2.0])
@pytest.mark.filterwarnings("ignore")
def test_one_row(name, n, dtype, other):
    rng = np.random.default_rng(n)
    x = rng.integers(-3, 4, n).astype(dtype)
    x[[1, 4]], x[5] = -np.nan, other
    assert np.signbit(x[1]) and not np.signbit(x[5])
    with lazyarray.options(small_on_host=False):
        for _ in range(2):      # by what the device has at once, and by what is compiled
            found = np.asarray(CALLS[name](lazyarray.asarray(x.copy())))
            lazyarray.device().wait_for_kernels()
            expected = CALLS[name](x)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype


@pytest.mark.parametrize("dtype", "efdFD")
@pytest.mark.parametrize("shape", [(7, 9), (150, 160)])     # the device library compares few elements in their order
@pytest.mark.parametrize("function", [np.argmax, np.argmin], ids=["argmax", "argmin"])
def test_the_first_of_several(function, shape, dtype):
    rng = np.random.default_rng(0)
    a = rng.normal(size=shape).astype(dtype)
    a[rng.random(shape) < 0.2] = np.nan
    if a.dtype.kind == "c":
        a.imag[rng.random(shape) < 0.2] = np.nan
    with lazyarray.options(small_on_host=False):
        for axis, keepdims in itertools.product((None, 0, 1, -1), (False, True)):
            expected = function(a, axis, keepdims=keepdims)
            for x in (lazyarray.asarray(a), lazyarray.asarray(a) * 1, lazyarray.asarray(a.T.copy()).T):
                for _ in range(2):      # by the library, and by the kernel
                    found = function(x, axis, keepdims=keepdims)
                    assert found.shape == expected.shape and np.array_equal(found, expected)
                    lazyarray.device().wait_for_kernels()
            if axis is not None:
                out = lazyarray.asarray(np.zeros_like(expected))
                function(lazyarray.asarray(a), axis, out, keepdims=keepdims)
                assert np.array_equal(out, expected)
