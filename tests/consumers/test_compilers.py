"""What compiles Python functions for arrays."""
from __future__ import annotations

import functools

import numpy as np
import pytest

import lazyarray

from .records import Library

numba = Library("numba")
jax = Library("JAX", "jax")


@functools.cache
def compiled():
    """Functions of numba's, once for all tests: compiling takes longer than anything else here."""
    import numba

    @numba.njit
    def total(a, factor):
        result = 0.0
        for value in a.flat:
            result += value * factor
        return result

    @numba.njit(["float64(float64[:])", "float64(float64[:, ::1])"])
    def first(a):
        return a.flat[0]

    @numba.njit
    def clip(a, low):
        for i in range(a.size):
            if a[i] < low:
                a[i] = low
        return a[::2]

    @numba.vectorize
    def hypotenuse(a, b):
        return (a * a + b * b) ** 0.5

    @numba.vectorize(["float64(float64, float64)"])
    def difference(a, b):
        return abs(a - b)

    @numba.guvectorize("(n),()->(n)")
    def shift(a, by, out):
        for i in range(a.size):
            out[i] = a[i] + by

    @numba.stencil
    def neighbours(a):
        return a[-1] + a[1]

    return total, first, clip, hypotenuse, difference, shift, neighbours


@numba("``njit``: types found at the call, or given, of any layout", copies="each once")
def test_njit(x, matrix, f, i):
    total, first = compiled()[:2]
    return (total(x, 2.0), total(matrix, x.max()), total(matrix[::2].T, 1), total(f, 1), total(i, i[0]), first(x[3:]),
            first(matrix))


@numba("``njit`` that writes into its argument, and returns views of it", copies="each once")
def test_njit_writes(x, y):
    clip = compiled()[2]
    view = clip(x[10:], 0.0)
    y += 1
    return view, clip(y, 1.5), x.sum()


@numba("``vectorize``, ``guvectorize``, ``stencil``", copies="in between")
def test_vectorize(x, y):
    *_, hypotenuse, difference, shift, neighbours = compiled()
    out = np.zeros(100)
    shift(x, 2.0, out)
    return hypotenuse(x, y), hypotenuse(x, 2.0), difference(x, y), difference.reduce(y), out, neighbours(x)


def test_one_compiled_function_serves_both():
    pytest.importorskip("numba")
    total = compiled()[0]
    total(np.ones(3), 1.0)
    before = list(total.signatures)
    x = lazyarray.asarray(np.arange(4.0))
    assert total(x, 1.0) == 6
    assert total.signatures == before
    with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError, match="device-to-host copy"):
        total(x * 2, 1.0)


def test_the_alias_is_let_go():
    pytest.importorskip("numba")
    x = lazyarray.asarray(np.arange(4.0))
    compiled()[0](x, 1.0)
    x += 1
    with lazyarray.no_transfers():      # nothing is refreshed for somebody who holds no alias any more
        x += 1
    assert compiled()[0](x, 1.0) == 14


@jax("``jnp.asarray(x)``, ``jnp.sin(x)``, ``jnp.dot``, indexing, arithmetic with JAX arrays", copies="in between")
def test_jnp(f, i, matrix):
    import jax.numpy as jnp

    small = matrix.astype(np.float32)
    return (jnp.asarray(f), jnp.array(i), jnp.sin(f), jnp.dot(small, small.T), jnp.ones(100) + f, f * jnp.ones(100),
            jnp.arange(10)[i], jnp.zeros(10).at[i].add(i), jnp.where(f > 0, f, 0), jnp.stack([f, f]),
            jnp.ones(3) * f.max(),
            jnp.linalg.norm(small))


@jax("``jit(g)(x)``, ``grad``, ``vmap``, ``lax.scan``, ``device_put``, ``tree.map``", copies="in between")
def test_jit(f):
    import jax

    table = f.reshape(20, 5)
    return (jax.jit(lambda a: (a * 2).sum(0))(table), jax.grad(lambda a: (a**2).sum())(f),
            jax.vmap(lambda a: a.max())(table),
            jax.lax.scan(lambda c, a: (c + a.sum(), c), 0.0, table), jax.device_put(f), jax.jit(lambda a: a + 1)(f[0]),
            jax.tree.map(lambda a: a * 2, {"a": f}), jax.eval_shape(lambda a: a * 2, f).shape)


@jax("``jax.dlpack.from_dlpack(x)``, ``np.asarray`` of the result", copies="in between")
def test_dlpack(f):
    import jax

    return np.asarray(jax.dlpack.from_dlpack(f)) + f


def test_jax_learns_shape_and_dtype_without_a_copy():
    jax = pytest.importorskip("jax")
    x = lazyarray.asarray(np.ones((3, 2), np.float32))
    with lazyarray.no_transfers():
        shape = jax.eval_shape(lambda a: a.sum(0), x)
    assert (shape.shape, shape.dtype) == ((2,), np.float32)


@pytest.mark.parametrize("first", ["lazyarray", "nothing"])
def test_what_numba_cached_with_and_without_lazyarray_stands_side_by_side(first, tmp_path, monkeypatch):
    """A process without lazyarray neither spoils the cache of one with it, nor the reverse."""
    numba = pytest.importorskip("numba")
    from numba.core import boxing, types
    from numba.core.caching import FunctionCache
    from numba.core.pythonapi import _unboxers

    path = tmp_path / "cached_total.py"
    path.write_text("import numba\n\n@numba.njit(cache=True)\ndef total(a):\n    return a.sum()\n")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))

    def run(array, with_lazyarray):
        space = {"__name__": "cached_total", "__file__": str(path)}
        with monkeypatch.context() as patch:
            if not with_lazyarray:
                patch.setitem(_unboxers.functions, types.Array, boxing.unbox_array)
                patch.delattr(FunctionCache, "_index_key")
            exec(compile(path.read_text(), path, "exec"), space)
            total = space["total"]
            assert total(array) == 10
        return sum(total.stats.cache_hits.values())

    plain, lazy = np.arange(5.0), lazyarray.asarray(np.arange(5.0))
    turns = [(lazy, True), (plain, False)] if first == "lazyarray" else [(plain, False), (lazy, True)]
    assert [run(*turn) for turn in turns] == [0, 0]
    assert [run(*turn) for turn in turns] == [1, 1]
