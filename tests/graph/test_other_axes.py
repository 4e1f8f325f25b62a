"""Recorded work of which an element depends on its place, read along other axes: its elements are where they were."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as lnp

WORK = {
    "triu": lambda np, x, i: np.triu(x), "tril": lambda np, x, i: np.tril(x, -1),
    "triu, 1": lambda np, x, i: np.triu(x, 1) * 2,
    "take_along_axis, 0": lambda np, x, i: np.take_along_axis(x, i % x.shape[0], 0),
    "take_along_axis, 1": lambda np, x, i: np.take_along_axis(x, i % x.shape[1], 1),
    "of sorted ones": lambda np, x, i: np.take_along_axis(x, np.argsort(x, axis=1, kind="stable"), 1),
    "rows": lambda np, x, i: x[i[:, 0] % x.shape[0]],
    "rows, u8": lambda np, x, i: x[(i[:, 0] % x.shape[0]).astype("u8")],
    "rows, u1": lambda np, x, i: x[(i[:, :1] % x.shape[0]).astype("u1")][:, 0],
    "rows, i4": lambda np, x, i: x[(i[:, 0] % x.shape[0]).astype("i4") - x.shape[0]],
    "elements, u8": lambda np, x, i: x[(i % x.shape[0]).astype("u8"), (i % x.shape[1]).astype("u8")],
    "elements": lambda np, x, i: x[i % x.shape[0], i % x.shape[1]],
    "eye": lambda np, x, i: np.eye(*x.shape) + x,
    "arange": lambda np, x, i: np.arange(x.size).reshape(x.shape) * 1.5,
    "a column": lambda np, x, i: np.zeros_like(x) + x[:, :1], "a row": lambda np, x, i: x[:1] * np.full_like(x, 2),
    "one row": lambda np, x, i: x[(np.zeros_like(i[:, 0]) + i[0, 0]) % x.shape[0]],
    "one element": lambda np, x, i: np.take_along_axis(x, (np.zeros_like(i) + i[:, :1]) % x.shape[1], 1),
    "differences": lambda np, x, i: np.diff(x, axis=1), "searchsorted": lambda np, x, i: np.searchsorted(x[0] * 0, x),
}
READ = {
    "T + 1": lambda np, q: q.T + 1, "swapaxes": lambda np, q: np.swapaxes(q, 0, 1) * 2, "T > 0": lambda np, q: q.T > 0,
    "T of T": lambda np, q: (q.T + 1).T,
    "reshape": lambda np, q: q.reshape(q.shape[::-1]) + 1, "ravel": lambda np, q: q.ravel() + 1,
    "T, ravel": lambda np, q: q.T.ravel() + 1, "sum": lambda np, q: q.T.sum(axis=0),
    "both": lambda np, q: q + q.T[:1, :1],
    "roots": lambda np, q: np.sqrt(abs(q.T)),
    "where": lambda np, q: np.where(q.T > 0.5, q.T, -1),
    "triu": lambda np, q: np.triu(q.T), "unit axis": lambda np, q: np.triu(q[..., None]),
    "unit axis, T": lambda np, q: np.tril(q[:, None].T, -1) + 1,
    "column": lambda np, q: q.reshape(-1, 1) * 2, "turned": lambda np, q: np.moveaxis(q, -1, 0) - 3,
}


@pytest.mark.parametrize("library", [np, lnp], ids=["numpy", "lazyarray.numpy"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (90, 90)], ids=str)
@pytest.mark.parametrize("read", READ.values(), ids=list(READ))
@pytest.mark.parametrize("work", WORK.values(), ids=list(WORK))
def test_its_elements_are_where_they_were(work, read, shape, library):
    rng = np.random.default_rng(0)
    x, i = rng.normal(size=shape), rng.integers(0, 1000, shape)
    plain = work(np, x, i)
    expected = read(np, plain)
    for waiting in (False, True, True):     # by the device's own functions, and by a kernel once there is one
        given = lazyarray.asarray(x), lazyarray.asarray(i)
        found = work(library, *[one + 0 for one in given] if waiting else given)
        np.testing.assert_allclose(np.asarray(read(library, found)), expected, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(np.asarray(found), plain, rtol=1e-13)
        lazyarray.device().wait_for_kernels()


@pytest.mark.parametrize("positions", [
    lambda np, t: np.zeros_like(t, dtype=int), lambda np, t: np.full_like(t, t.shape[0] - 1, dtype=int),
    lambda np, t: np.full(t.shape, -1), lambda np, t: np.zeros(t.shape, dtype=int)[:1] + 1,
    lambda np, t: np.ones_like(t, dtype=int) % 2],
    ids=range(5))
@pytest.mark.parametrize("shape", [(30,), (20, 30), (4, 5, 6)], ids=str)
def test_one_position_is_taken_along_an_axis(positions, shape):
    plain = np.random.default_rng(1).normal(size=shape)
    table = lazyarray.asarray(plain) + 0
    for axis in range(len(shape)):
        where = positions(np, plain)
        if axis == 0 or where.shape[axis] == plain.shape[axis] == where.shape[0]:
            found = np.take_along_axis(table, positions(lnp, table), axis)
            np.testing.assert_array_equal(np.asarray(found + 1), np.take_along_axis(plain, where, axis) + 1)
