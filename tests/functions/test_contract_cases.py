"""Cases that were found by who had read the contract alone: each is NumPy's in values, dtypes, memory and errors."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy


def setting(index):
    def work(make):
        x = make(np.arange(5.0))
        x[index(make)] = -0.0
        return x
    return work


SAME = {
    "reduceat, a short dtype": lambda make: np.add.reduceat(make([100, 100, 100]), [0], dtype="i1"),
    "reduceat, bool": lambda make: np.add.reduceat(make([2, 3, 4]), [0, 1], dtype=bool),
    "reduceat, rows": lambda make: np.add.reduceat(make([[1.5, 2, 3, 4]]), [0, 1, 0], axis=1, dtype=np.int16),
    "reduceat, unsigned": lambda make: np.add.reduceat(make([200, 100], "u1"), [0, 1], dtype="u1"),
    "deviations that wrap around": lambda make: np.std(make([200, 100], "u1"), mean=0),
    "variances that wrap around": lambda make: np.var(make([2**31 - 1, 2**31 - 1, 5], "i4"), mean=0),
    "variances without NaN": lambda make: np.nanvar(make([200, 100], "u1"), mean=0),
    "a negative zero behind": lambda make: np.diff(make([0.0, -0.0, 0.0]), append=-0.0),
    "a negative zero before": lambda make: np.diff(make([-0.0, 0.0]), prepend=-0.0),
    "a negative zero at places": setting(lambda make: make([1, 2])),
    "a negative zero at places of the host": setting(lambda make: np.array([1, 2])),
    "a negative zero by a mask": setting(lambda make: make([True, False, True, False, True])),
    "a negative zero in a part": setting(lambda make: slice(1, 3)),
}


@pytest.mark.parametrize("small", [0, 95_000])
@pytest.mark.parametrize("name", SAME)
def test_values_and_dtypes(name, small, small_on_host):
    small_on_host(small)
    plain = SAME[name](np.asarray)
    lazy = SAME[name](lambda *given: lazyarray.asarray(np.array(*given)))
    assert lazy.dtype == plain.dtype and lazy.shape == plain.shape
    assert np.asarray(lazy).tobytes() == np.asarray(plain).tobytes()


@pytest.mark.parametrize("small", [0, 95_000])
def test_views_of_an_ndarray_beside_a_lazy_array(small, small_on_host):
    small_on_host(small)
    host, x = np.arange(3.0), lazyarray.asarray(np.arange(4.0))
    open_mesh, meshes = np.ix_(host, x), np.meshgrid(x, host, copy=False, sparse=True)
    host[0] = 77
    assert open_mesh[0][0, 0] == 77 and np.shares_memory(open_mesh[0], host)
    meshes[1][...] = 5
    assert list(host) == [5, 5, 5]
    open_mesh[1][...] = 2
    assert np.array_equal(x, [2] * 4)
    copies = np.meshgrid(x, host)
    host[:] = 9
    assert np.array_equal(copies[1], np.full((3, 4), 5.0)) and type(copies[1]) is lazyarray.LazyNdarray


OUTPUTS = {"sum": np.sum, "max": np.max, "mean": np.mean, "nansum": np.nansum, "nanmean": np.nanmean,
           "cumsum": np.cumsum, "round": np.round, "argmax": np.argmax, "median": np.median,
           "trace": lambda x, out: np.trace(x[None], out=out)}


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_tuple_of_outputs_is_for_ufuncs(name):
    plain = np.arange(4.0)
    with pytest.raises((TypeError, AttributeError)) as wanted:
        OUTPUTS[name](plain, out=(np.zeros(()),))
    x = lazyarray.asarray(plain)
    with pytest.raises(wanted.type):
        OUTPUTS[name](x, out=(lazyarray.asarray(np.zeros(())),))


LIKE = {"zeros": lazyarray.numpy.zeros_like, "ones": lazyarray.numpy.ones_like, "empty": lazyarray.numpy.empty_like,
        "full": lambda a, **how: lazyarray.numpy.full_like(a, 3, **how)}


@pytest.mark.parametrize("name", LIKE)
@pytest.mark.parametrize("given", [np.ma.array([1, 2, 3], mask=[0, 1, 0]), np.array([[1, 2]]).view(np.matrix)],
                         ids=["masked", "a matrix"])
def test_a_subclass_is_kept(name, given):
    assert type(LIKE[name](given)) is type(given)
    assert type(LIKE[name](given, subok=False)) is lazyarray.LazyNdarray


def test_what_is_permuted_into_a_lazy_array():
    x, y = lazyarray.numpy.arange(12.0).reshape(4, 3), lazyarray.numpy.zeros((4, 3))
    wanted = np.random.default_rng(2).permuted(np.arange(12.0).reshape(4, 3), axis=0)
    assert lazyarray.numpy.random.default_rng(2).permuted(x, axis=0, out=y) is y
    assert np.array_equal(y, wanted)
