"""Recipes of reductions, arithmetic, sorting, searching, sets and statistics (grammar: recipes.py)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

AXES = "{x}\n {x}, axis=0\n {x}, axis=-1, keepdims=True\n {x}, axis=5\n {x}, 1\n {x}, axis=None, keepdims=True\n"
TUPLES = "t, axis=(0, 2)\n t, (0, -1), keepdims=True\n x, axis=()\n x, axis=(0, 0)\n"
OUTS = "{x}, axis=0, out={out}\n {x}, 0, out=obad\n"
SHORT = "s\n v\n lx\n hx, axis=0, out=orow\n x, axis=0, out=h(np.zeros(4), dt)\n"


def _reduction(*extra: str, x: str = "x", out: str = "orow", short: str = SHORT) -> str:
    return AXES.format(x=x) + TUPLES + OUTS.format(x=x, out=out) + short + "\n".join(extra)


_WHERE = ("x, where=mask", "x, axis=1, where=mask", "x, 0, where=hmask", "x, where=True, axis=(0,)")
_SUM = (
    *_WHERE,
    "x, dtype='f4'",
    "x, axis=0, dtype='i8'",
    "x, axis=0, dtype='c16', keepdims=True",
    "x, initial=3",
    "x, axis=1, initial=2, where=mask",
    "x, axis=0, out=orowf",
    "nans, axis=0",
    "x, dtype='?'",
    "[x, y], axis=0",
)
_EXTREME = (
    *_WHERE,
    "x, initial=3",
    "x, axis=0, initial=1, where=mask",
    "nans",
    "nans, axis=0",
    "x, axis=0, out=orowf",
)
_CUMULATIVE = (
    "{x}\n {x}, axis=0\n {x}, 1\n {x}, axis=-1, dtype='f8'\n {x}, 0, out=ox\n {x}, axis=0, out=of\n {x}, axis=7\n v\n s\n lx\n"
    "t, 2\n {x}, dtype='f4'\n {x}, 0, out=obad\n nans, axis=1\n {x}, 0, 'i8'\n hx, 0, out=ox\n {x}, axis=1, out=hox"
)
_STD = (
    *_WHERE[:2],
    "x, ddof=1",
    "x, axis=1, ddof=2, keepdims=True",
    "x, correction=1",
    "x, 0, 'f4'",
    "x, ddof=12",
    "x, axis=0, mean=row",
    "x, ddof=1, correction=1",
    "nans, axis=0",
    "x, axis=0, out=orowf",
    "x, dtype='i8'",
)
_QUANTILE = (
    "x, {a}\n x, {a}, axis=0\n x, [{a}, {b}]\n x, {a}, axis=1, keepdims=True\n x, {a}, axis=(0, 1)\n x, a([{a}, {b}]), axis=-1\n"
    "x, {a}, method='lower'\n x, {b}, 0, method='nearest'\n x, {a}, method='midpoint'\n x, {a}, method='higher', axis=0\n"
    "x, {b}, method='median_unbiased'\n x, {a}, method='inverted_cdf', weights=weights\n nans, {a}, axis=0\n x, {bad}\n x, {a}, axis=5\n"
    "x, {a}, axis=0, out=orowf\n x, {a}, overwrite_input=False\n x, {a}, method='weird'\n v, {a}\n s, {a}\n lx, {b}\n x, [[{a}], [{b}]]\n"
    "x, {a}, axis=0, method='inverted_cdf', weights=a([1., 2, 3])\n x, a({a})\n t, {a}, axis=(0, 2)\n x, []"
)

#: Sums and what is made of them: compared with the tolerance of reductions.
REDUCTIONS: dict[Callable, str] = {
    np.sum: _reduction(*_SUM),
    np.prod: _reduction(*_SUM),
    np.mean: _reduction(*_WHERE, "x, dtype='f4'", "x, 0, 'c16'", "nans, axis=1", "x, axis=0, out=orowf", "x, 0, where=False"),
    np.std: _reduction(*_STD, out="orowf"),
    np.var: _reduction(*_STD, out="orowf"),
    np.nansum: _reduction(*_SUM, x="nans"),
    np.nanprod: _reduction(*_SUM, x="nans"),
    np.nanmean: _reduction(*_WHERE[:2], "nans, dtype='f4'", "nans, 0, out=orowf", x="nans"),
    np.nanstd: _reduction("nans, ddof=1", "nans, 0, where=mask", "nans, ddof=99", "nans, axis=0, mean=row", x="nans", out="orowf"),
    np.nanvar: _reduction("nans, ddof=1", "nans, 0, where=mask", "nans, correction=1", x="nans", out="orowf"),
    np.cumsum: _CUMULATIVE.format(x="x"),
    np.cumprod: _CUMULATIVE.format(x="x"),
    np.nancumsum: _CUMULATIVE.format(x="nans"),
    np.nancumprod: _CUMULATIVE.format(x="nans"),
    np.cumulative_sum: "v\n v, include_initial=True\n x\n x, axis=1\n x, axis=0, dtype='f8'\n x, axis=0, out=ox\n s\n x, axis=1, include_initial=True\n lv\n x, axis=6",
    np.cumulative_prod: "v\n v, include_initial=True\n x\n x, axis=1\n x, axis=0, dtype='f8'\n x, axis=0, out=ox\n s\n lv",
    np.average: (
        "x\n x, axis=0\n x, weights=weights\n x, axis=1, weights=wrow\n x, 0, a([1., 2, 3]), True\n x, axis=(0, 1)\n x, weights=weights, axis=1, keepdims=True\n"
        "x, axis=0, weights=wrow\n x, weights=wrow\n x, axis=1, weights=a([0., 0, 0, 0])\n lx\n x, 1, [1, 2, 3, 4]\n s\n hx, weights=weights\n x, weights=y\n t, axis=(0, 2), weights=a(np.ones((2, 4)))\n x, returned=True"
    ),
    np.median: AXES.format(x="x") + "t, axis=(0, 2)\n x, axis=0, out=orowf\n s\n v\n lx\n nans\n nans, axis=0\n x, overwrite_input=False\n t, (0, 1), keepdims=True\n few, 1",
    np.nanmedian: AXES.format(x="nans") + "nans, axis=0, out=orowf\n s\n v\n lx\n t, axis=(0, 2)\n nans, axis=(0, 1), keepdims=True",
    np.percentile: _QUANTILE.format(a=30, b=62.5, bad=130),
    np.quantile: _QUANTILE.format(a=0.3, b=0.625, bad=1.3),
    np.nanpercentile: _QUANTILE.format(a=30, b=62.5, bad=-1),
    np.nanquantile: _QUANTILE.format(a=0.3, b=0.625, bad=-0.1),
    np.trapezoid: "v\n v, w\n x\n x, dx=.5\n x, axis=0\n x, row\n x, x=weights, axis=1\n s\n lx\n x, axis=4\n v, hv\n v, row",
    np.corrcoef: "x\n x, y\n x, rowvar=False\n x, dtype='f4'\n v\n v, w\n lx\n s\n x, v\n x, hx, False",
    np.cov: (
        "x\n x, y\n x, rowvar=False\n x, bias=True\n x, ddof=0\n v\n v, w, ddof=1\n x, fweights=a([1, 2, 1, 3])\n x, aweights=wrow\n x, dtype='f4'\n lx\n s\n x, fweights=a([1, -2, 1, 3])\n"
        "x, ddof=.5\n x, fweights=a([1., 2, 1, 3])\n x, hx\n t\n x, fweights=[1, 2, 1, 1], aweights=[1., 2, 3, 4], ddof=2"
    ),
    np.convolve: "v, w\n v, w, 'same'\n v, row, mode='valid'\n row, v\n v, hw\n x, v\n lv, w\n s, v\n v, a([], dt if dt.kind in 'iufc' else None)\n v, w, 'nope'\n v, [1, 2]",
    np.correlate: "v, w\n v, w, 'full'\n v, row, mode='same'\n row, v\n v, hw\n x, v\n lv, w\n s, s\n v, [1, 2], 'valid'",
    np.histogram: (
        "v\n x, 3\n v, bins=[-2, 0, 1, 2]\n x, range=(-1, 1)\n v, weights=w\n v, density=True\n x, 4, (-1, 2), density=True, weights=weights\n nv\n v, 0\n v, [2, 1]\n lx\n s\n"
        "v, bins='auto'\n v, a([-1., 0, 1])\n v, 3, (1, 1)\n v, 5, (0, np.inf)\n hv, 4\n v, 'sturges'\n few, 3\n v, bins=2.5"
    ),
    np.histogram_bin_edges: "v\n x, 3\n v, 'fd'\n v, bins=[0, 1, 2]\n v, range=(0, 1)\n v, 'sqrt', weights=w\n v, 'nope'\n lx\n few, 'doane'\n s, 2\n v, 'scott'\n v, 'rice'\n v, 'stone'",
    np.histogram2d: "v, w\n v, w, 3\n v, w, [2, 4]\n v, w, bins=[[-1, 0, 1], 3]\n v, w, 3, [[-1, 1], [-2, 2]], density=True\n v, w, 3, weights=w\n v, row\n v, hw, 2\n lv, w, 3",
    np.histogramdd: "k, 3\n k, (2, 3, 4)\n k, bins=3, range=[(-1, 1), None, (0, 1)], density=True\n (v, w), 3\n v, 3\n k, 2, weights=wrow\n lk, 2\n k, 0\n k, [[0, 1], [0, 1]]",
    np.interp: "v, sv, w\n v, [0, 1, 2], [1, 3, 5]\n x, sv, v\n 1.5, sv, v\n v, sv, w, left=-9, right=9\n v, sv, w, period=2\n v, sv, row\n s, sv, w\n nv, sv, v\n v, sv, oc.ravel()[:6]\n v, hv, w\n v, sv, w, period=0",
    np.ediff1d: "v\n x\n v, 1\n v, to_begin=[1, 2]\n v, to_end=w, to_begin=3\n s\n lv\n v, 1.5\n v, hw",
    np.diff: "v\n x\n x, 2\n x, axis=0\n x, n=0\n x, -1\n s\n x, prepend=0\n x, axis=0, append=row\n x, 1, 5\n lx\n x, 9\n v, prepend=w, append=hv\n x, prepend=a([[1], [2], [3]])",
    np.gradient: "v\n x\n x, 2\n x, axis=0\n x, .5, 2\n v, sv\n x, axis=(0, 1), edge_order=2\n x, 1, axis=5\n s\n v, edge_order=3\n lx\n x, a([0., 1, 3]), axis=0\n v, hv\n x, [1, 2, 4], [0, 1, 2, 3]\n x, 1, 2, 3",
    np.cross: "k[:3], k[1:]\n a([1, 2, 3]), a([4, 5, 6])\n x, y\n k, k, axis=0\n k, k[:1]\n k[0], [1, 2, 3]\n k, k[0], axisa=-1, axisb=0, axisc=0\n v, w\n k, hm[:, :3]\n k[:, :2], k",
    np.dot: "x, k\n v, w\n s, x\n x, row\n t, k\n t, row\n x, y\n x, hm\n hx, k\n lx, k\n x, 3\n x, k, out=out((3, 3))\n x, k, out=out((3, 3), 'i2')\n s, s\n m, n, out=m\n v, [1, 2, 3, 4, 5, 6]\n m, n, out=out((4, 4), 'f8')",
    np.vdot: "v, w\n x, y\n s, s\n v, row\n x, hy\n lv, w\n x, m",
    np.inner: "v, w\n x, y\n x, row\n s, x\n t, row\n v, row\n x, hy\n lx, y\n t, x",
    np.outer: "v, w\n x, y\n s, v\n v, row, out=out((6, 4))\n v, hw\n lv, w\n v, 3\n v, w, out=obad",
    np.tensordot: "x, k, 1\n t, u\n t, u, axes=3\n t, u, ([1, 2], [1, 2])\n x, y, 0\n x, y, axes=(1, 1)\n x, y, 1\n t, u, ((0,), (0,))\n x, hm, 1\n lx, k, 1\n t, u, ([0, 0], [0, 0])\n x, y, axes=([0], [5])",
    np.kron: "v, w\n x, m\n s, x\n v, x\n x, hm\n lx, v\n t, x\n v, 3",
    np.einsum: (
        "'ij,jk', x, k\n 'ij->ji', x\n 'ii', m\n 'ii->i', m\n 'ij,ij->', x, y\n 'i,j->ij', v, w\n '...j->...', t\n 'ijk,ikl', t, a(np.ones((2, 4, 2)))\n 'ij->', x\n 'ij->i', x\n"
        "'ij,jk,kl', x, k, x\n 'ij,jk', x, k, optimize=True\n 'ij,jk', x, k, dtype='f8', casting='unsafe'\n 'ij,jk->ik', x, k, out=out((3, 3))\n x, [0, 1], k, [1, 2], [0, 2]\n x, [0, 1]\n"
        "'ij,kj', x, hy\n 'ij', v\n 'ij,jk', x, y\n 'i,i', v, w\n 'ij,jk', x, k, order='F'\n 'ij,j', lx, row\n 'i->', s\n '...ij,...j->...i', t, row\n 'ii->i', m, out=orow\n 'ij,jk->ik', x, k, optimize=['einsum_path', (0, 1)]\n 'i$', v"
    ),
    np.einsum_path: "'ij,jk', x, k\n 'ij,jk,kl', x, k, x\n 'ij,jk', x, k, optimize='optimal'\n 'ij,jk,kl', x, k, hx, optimize='greedy'\n 'ij', v\n x, [0, 1], k, [1, 2]",
    np.linalg.matmul: "x, k\n v, w\n t, k\n s, s\n x, y\n x, hm",
    np.linalg.outer: "v, w\n x, y\n v, hw\n s, s",
    np.linalg.tensordot: "x, k, axes=1\n t, u\n t, u, axes=([0], [0])",
    np.linalg.vecdot: "v, w\n x, y\n x, row\n t, u, axis=1\n v, row\n x, hy\n x, y, axis=4\n s, s",
    np.linalg.cross: "k, k\n k[0], k[1]\n k.T, k.T, axis=0\n v, w\n k, hm[:, :3]\n x, y",
    np.linalg.trace: "m\n t\n t, offset=1\n x, dtype='f8'\n v\n stack, offset=-1",
    np.trace: "m\n x, 1\n t\n t, 0, 1, 2\n x, dtype='f8'\n t, axis1=0, axis2=2, out=out((3,))\n v\n m, 9\n t, 0, 0, 0\n lm\n m, offset=-1",
    np.polyval: "row, v\n row, 2\n [1, 2, 3], x\n row, hx\n row, s\n lrow, v\n v, x",
    np.polyadd: "v, row\n row, [1, 2]\n v, 3\n s, s\n x, row\n hv, w",
    np.polysub: "v, row\n row, [1, 2]\n v, 3\n s, s\n hv, w",
    np.polymul: "v, row\n row, [1, 2]\n v, 3\n s, s\n hv, w\n fv, fv",
    np.polydiv: "pv, row\n pv, [1, 2]\n pv, 3\n pv, pv\n hp.ravel(), row\n row, pv",
    np.polyder: "v\n v, 2\n v, m=0\n v, -1\n s\n lv\n v, 9",
    np.polyint: "v\n v, 2\n v, m=1, k=3\n v, 2, [1, 2]\n v, 2, a([5, 6])\n v, -1\n s\n lv\n v, k=row",
    np.linalg.norm: (
        "v\n x\n x, 1\n x, 'fro'\n x, np.inf, axis=1\n x, -np.inf\n v, 0\n v, 3\n v, 2.5\n x, axis=0, keepdims=True\n t, axis=(1, 2)\n t, 'fro', (0, 1), True\n x, 2\n x, -2\n x, 'nuc'\n"
        "t\n v, 'fro'\n x, 5\n x, axis=9\n t, 1, (0, 2)\n s\n lx\n nans\n x, -1, axis=-1\n v, -1\n x, ord=0, axis=1\n x, 'nuc', axis=(0, 0)\n t, 2, (1, 2)\n v, 'weird'"
    ),
    np.linalg.vector_norm: "v\n x\n x, axis=0\n x, axis=(0, 1), keepdims=True\n x, ord=1\n x, ord=np.inf, axis=1\n v, ord=0\n t, axis=(0, 2), ord=3\n s\n lx",
    np.linalg.matrix_norm: "x\n t\n x, keepdims=True\n x, ord=1\n t, ord='nuc'\n x, ord=2\n v\n t, ord=np.inf",
}

#: Extremes: exact, but of reductions' argument forms.
EXTREMES: dict[Callable, str] = {
    **dict.fromkeys((np.max, np.min, np.amax, np.amin), _reduction(*_EXTREME)),
    **dict.fromkeys((np.nanmax, np.nanmin), _reduction(*_EXTREME, "nans, axis=0, out=orow", x="nans")),
    np.ptp: AXES.format(x="x") + TUPLES + OUTS.format(x="x", out="orow") + "s\n v\n lx\n nans\n nans, axis=1",
    **dict.fromkeys((np.any, np.all), _reduction(*_WHERE, "nans", "nans, axis=0", "few, axis=1", "x, 0, out=orowb", "x, axis=1, out=out((3,), 'i8')")),
    **dict.fromkeys(
        (np.argmax, np.argmin),
        AXES.format(x="x") + "few\n few, axis=1\n nans\n nans, axis=0\n s\n lx\n v\n x, axis=0, out=orowi\n x, 0, out=orowf\n x, axis=(0, 1)\n t, -2\n hx, 1\n x, 0, out=obad",
    ),
    **dict.fromkeys(
        (np.nanargmax, np.nanargmin),
        AXES.format(x="nans") + "x\n few, axis=1\n s\n lx\n nv\n x, axis=0, out=orowi\n t, -2\n a([[np.nan, np.nan], [1, 2]]), axis=1",
    ),
    np.count_nonzero: "x\n x, axis=0\n few, axis=(0, 1)\n few, axis=-1, keepdims=True\n few, 7\n s\n lx\n nans\n t, (0, 2)\n mask\n few, axis=None, keepdims=True",
    np.sort: "x\n x, axis=0\n x, axis=None\n nans\n nv\n few, kind='stable'\n x, kind='heapsort'\n v\n s\n x, 5\n lx\n t, 1, stable=True\n x, kind='weird'\n x, order='a'\n x, kind='stable', stable=False",
    np.sort_complex: "v\n x\n nv\n lv\n s",
    np.unique: (
        "few\n v\n few, return_index=True\n few, return_inverse=True\n fv, return_counts=True\n fv, True, True, True\n few, axis=0\n few, axis=1, return_inverse=True\n nans\n nans, equal_nan=False\n"
        "lx\n s\n few, axis=5\n nv, return_counts=True, equal_nan=False\n few, axis=-1, return_counts=True, return_index=True\n hx\n nans, axis=0"
    ),
    np.unique_all: "few\n fv\n nv\n s\n lx",
    np.unique_counts: "few\n fv\n nv\n s\n lx",
    np.unique_inverse: "few\n fv\n nv\n s\n lx",
    np.union1d: "v, w\n x, few\n fv, 3\n v, hw\n lv, w\n nv, nv\n s, v",
    np.intersect1d: "fv, pv\n few, x\n fv, pv, return_indices=True\n sv, v, assume_unique=True\n v, hw\n lv, w\n s, v\n sv, v, True, True",
    np.setdiff1d: "fv, pv\n few, x\n v, w, assume_unique=True\n v, hw\n lv, w\n s, v\n v, []",
    np.setxor1d: "fv, pv\n few, x\n v, w, assume_unique=True\n v, hw\n lv, w\n s, v",
    np.isin: "x, v\n x, [1, 2]\n x, few, invert=True\n few, 1\n v, w, assume_unique=True\n x, hv\n lx, v\n s, v\n x, v, kind='sort'\n x, v, kind='table'\n nv, nv\n v, []",
    np.searchsorted: "sv, v\n sv, x, 'right'\n sv, 1\n sv, v, side='left', sorter=a([0, 1, 2, 3, 4, 5])\n v, w, sorter=np.argsort(hv)\n sv, nv\n x, v\n sv, hv\n lv, v\n s, v\n sv, v, 'mid'\n sv, v, sorter=a([0, 9, 1, 1, 1, 1])\n sv, s\n sv, [1, 2]\n sv, 1.5",
    np.digitize: "v, sv\n x, [0, 1, 2]\n v, sv, right=True\n v, sv[::-1] if sv.ndim else sv\n s, sv\n 1, sv\n v, w\n nv, sv\n v, hv\n x, x\n v, sv, True\n lx, sv",
    np.nonzero: "x\n few\n v\n s\n lx\n nans\n t\n mask",
    np.flatnonzero: "x\n few\n v\n s\n lx\n mask",
    np.argwhere: "x\n few\n v\n s\n lx\n t",
    np.where: "mask, x, y\n mask\n mask, x, 3\n mask, 1, 2.5\n few\n mask, x, row\n hmask, x, y\n mask, hx, y\n mask, x\n x, x, y\n mask, x, of\n mask, x, oi\n True, x, y\n s, s, s\n lx, x, y\n mask, v, x\n mask, [1, 2, 3, 4], x",
    np.choose: "i2 % 3, [row[:3], row[1:], 7]\n i, [row, row, row]\n i2 % 3, x\n i, [row, 1], mode='wrap'\n i, [row, 1], mode='clip'\n mask, [x, y]\n ob, (x, y), out=ox\n i2, [1, 2]\n 1, [x, y]\n s, [x, y]\n mask, [hx, y]\n [0, 1], [1, 2]\n i, [row, 1], mode='no'\n i % 3, (row, 1, 2), obad",
    np.select: "[mask], [x]\n [mask, ~mask], [x, y]\n [mask], [x], 9\n [mask, mask], [x, 3], default=row\n [mask], [x, y]\n [], []\n [hmask], [x]\n [x], [x]\n [mask], [row]\n [True, False], [x, y]\n [mask], [lx]",
    np.compress: "[True, False, True], x, 0\n vmask, v\n vmask, x\n mask, x\n [0, 1, 1, 0], x, axis=1\n vmask, v, out=out((4,))\n [1] * 9, v\n [True], x, 5\n a([True, False, True]), x, axis=0\n vmask, lv\n s, v\n a([1, 0, 2]), x, 0\n vmask, v, out=obad",
    np.extract: "mask, x\n vmask, v\n x, y\n mask, lx\n hmask, x\n [True, False], v\n s, x",
    np.take: (
        "v, 2\n v, i\n x, i2\n x, i2, axis=0\n x, i, axis=1\n v, far\n v, far, mode='wrap'\n v, near, mode='clip'\n x, [0, 1], 1\n x, 1, axis=0\n x, a(0), axis=1\n v, near\n x, i, axis=1, out=ox\n x, i, 1, obad\n x, 1, 9\n"
        "v, 1.5\n v, mask.ravel()\n lx, i\n hx, i2, 0\n v, []\n s, 0\n v, i, mode='weird'\n v, -1\n v, 99\n v, a([], 'i8')\n x, i, axis=1, out=ox, mode='clip'"
    ),
    np.take_along_axis: "x, along0, 0\n x, along1, 1\n x, along1, axis=-1\n x, along0, None\n x, i, None\n x, along0, 5\n x, wrow, 1\n hx, along1, 1\n x, a([[9, 0]]), 1\n x, i, 1\n x, h([[0, 1, 2, 0]]), 0\n x, a([[-1, 0], [0, 1], [1, 3]])",
    np.put_along_axis: "x, along0, 9, 0\n x, along1, col, 1\n x, along1, 5, axis=-1\n x, i, 3, None\n x, a([[9, 0]]), 1, 1\n x, wrow, 1, 1\n hx, along1, 1, 1\n x, along1, h([[1], [2], [3]]), 1\n x, along0, row, 0",
    np.put: "v, i, 5\n v, i, w\n x, [0, 2], [1, 2]\n v, far, 1\n v, far, 1, mode='clip'\n v, near, 1, 'wrap'\n v, [0, 0, 0], [1, 2, 3]\n v, 3, 7\n v, [], 1\n v, i, []\n s, 0, 2\n x.T, [0, 1, 5], row\n v, i, hv\n v, 1.5, 1\n hv, i, w\n [1, 2], 0, 1\n v[::-1] if v.ndim else v, [0], [9]",
    np.place: "x, mask, 5\n x, mask, v\n v, vmask, [1, 2]\n x, x, 3\n x, mask, []\n x, vmask, 1\n x.T, mask.T, row\n hx, mask, 5\n x, hmask, s\n lx, mask, 1",
    np.putmask: "x, mask, 5\n x, mask, y\n v, vmask, [1, 2]\n x, mask, v\n x, vmask, 1\n x.T, mask.T, y.T\n x, hmask, hy\n hx, mask, y\n x, mask, 2.5\n x, mask, []\n x, [True] * 12, 1",
    np.piecewise: (
        "x, [mask, ~mask], [1, 2]\n x, [mask], [1, 2]\n x, mask, [5]\n x, [mask], [lambda z: z * 2, lambda z: z]\n v, vmask, [lambda z, k: z + k, 0], 3\n x, [mask], [1, 2, 3]\n v, [v < 1], [7]\n s, [True], [3]\n x, [hmask], [1]"
    ),
    np.lexsort: "(v, w)\n x\n x, axis=0\n (v,)\n (few.ravel(), fv)\n (v, row)\n s\n (v, hw)\n x, 5\n lx\n (nv, v)\n t",
    np.ravel_multi_index: "(i2, i2), (5, 5)\n (a([0, 1]), a([2, 3])), (3, 4)\n a([[0, 1], [2, 3]]), (3, 4), order='F'\n (a([0, 7]), a([2, 3])), (3, 4)\n (a([0, 7]), a([2, 3])), (3, 4), mode='wrap'\n (a([0, 7]), a([2, 9])), (3, 4), mode=('clip', 'wrap')\n (a(1), 2), (3, 4)\n x, (3, 4)\n (v, w), (2, 2)\n (a([0]), h([1])), (3, 4)",
    np.unravel_index: "a([3, 7]), (3, 4)\n a(5), (3, 4)\n a([3, 7]), (3, 4), order='F'\n a([99]), (3, 4)\n a([-1]), (3, 4)\n v, (3, 4)\n a([], 'i8'), (2, 2)\n i2 + 5, shape=(4, 4)\n a([1.5]), (3, 4)\n 7, (3, 4)\n a([3], 'u1'), (12,)",
    np.bincount: "counts\n counts, a([1., 2, 3, 4, 5, 6])\n counts, minlength=12\n counts, [1, 2, 3, 4, 5, 6]\n v\n pv\n a([-1, 2])\n counts, minlength=-1\n counts, row\n x\n a([], 'i8')\n a([], 'i8'), minlength=3\n [1, 1, 5]\n s\n pv, weights=w\n counts, h(np.arange(6.))\n a([1.5])\n counts.astype('u1')\n mask.ravel()",
    np.packbits: "bits\n mask\n mask, axis=1\n bits, 0\n bits, bitorder='little'\n x\n mask, axis=5\n s\n vmask\n [1, 0, 1]\n bits, bitorder='x'",
    np.unpackbits: "bits\n bits, axis=0\n bits, axis=1, count=5\n bits, 1, -3, 'little'\n x\n bits, count=100\n s\n bits, axis=4\n bits, bitorder='little'\n h([1, 2], 'u1')",
    np.array_equal: "x, x\n x, y\n x, v\n nans, nans\n nans, nans, equal_nan=True\n x, hx\n lx, x\n s, s\n x, 3\n x, 'a'\n x, of",
    np.array_equiv: "x, x\n x, y\n row, x\n nans, nans\n x, hx\n lx, x\n x, v\n s, s",
    np.apply_along_axis: "lambda r: r.sum(), 0, x\n lambda r: r[::-1], 1, x\n lambda r: r, 5, x\n np.sort, -1, t\n lambda r, k=1: r * k, 0, x, k=2\n lambda r: np.diag(r), -1, x\n len, 0, v\n lambda r: r[0], 0, s\n np.max, 0, hx",
    np.apply_over_axes: "np.sum, t, [0, 2]\n np.max, x, 0\n np.sum, x, [5]\n np.sum, s, [0]\n lambda r, k: r, x, 0\n np.sum, hx, 1\n np.sum, t, a([0, 1])",
    np.argsort: "x\n x, axis=0\n x, axis=None\n v\n v, kind='stable'\n fv, kind='stable'\n few, 1, stable=True\n s\n x, 5\n lx\n nv, kind='stable'\n x, order='a'\n sv\n t, -2, 'mergesort'",
}

#: Element by element.
ELEMENTWISE: dict[Callable, str] = {
    **dict.fromkeys((np.around, np.round), "x\n x, 1\n x, decimals=-1\n x, 0, out=ox\n s\n lx\n nans, 1\n x, 2, of\n v, -2\n x, 1, out=obad\n x, 1.5\n hx, 1, out=ox"),
    np.clip: (
        "x, 0, 1\n x, y, u[0]\n x, None, 1\n x, 0, None\n x, a_min=0, a_max=1\n x, min=0, max=1\n x, 0, 1, out=ox\n x, row, hy\n x\n x, None, None\n x, 1, 0\n nans, 0, 1\n x, np.nan, 1\n s, 0, 1\n lx, 0, s\n x, 0.5, 1.5\n"
        "x, 0, 1, dtype='f4', casting='unsafe'\n x, 0, 1, where=mask, out=ox\n x, 0, 1, out=of\n x, -300, 300\n x, 0, max=1\n x, 0, 1, max=2\n x, 0, 1, obad\n x, 0, 1, casting='unsafe', out=oi"
    ),
    **dict.fromkeys((np.isposinf, np.isneginf), "nans\n nans, ob\n nans, out=ob\n x\n s\n lx\n nans, out=of\n nans, obad"),
    np.fix: "x\n nans\n x, ox\n x, out=of\n s\n lx\n x, obad",
    np.nan_to_num: "nans\n nans, nan=7\n nans, copy=False\n nans, nan=1, posinf=2, neginf=-2\n s\n lx\n x\n nans, nan=row\n hx, nan=1\n nans, False, 3",
    np.angle: "x\n x, True\n x, deg=True\n s\n 3 + 4j\n lx\n nans",
    **dict.fromkeys((np.iscomplex, np.isreal), "x\n s\n nans\n 3j\n lx"),
    np.real_if_close: "x\n x, tol=1000\n x + 0j if dt.kind in 'fc' else x\n s\n lx\n few * (1 + 1e-17j) if dt.kind in 'fc' else few\n x, .5",
    np.i0: "x\n s\n lx\n v\n p",
    np.sinc: "x\n s\n lx\n few\n 0\n p",
    np.unwrap: "v\n x\n x, axis=0\n x, .5\n v, discont=3, period=2\n s\n lx\n x, 1.0, 5\n v * 3, period=6\n pv, period=4",
    np.isclose: "x, y\n x, x\n x, y, 1, 2\n nans, nans\n nans, nans, equal_nan=True\n x, 1\n x, row\n s, s\n x, hx\n lx, x\n x, v\n x, y, rtol=row\n x, 'a'\n x, y, atol=a(1.)",
    np.allclose: "x, y\n x, x\n x, y, 1, 9\n nans, nans\n nans, nans, equal_nan=True\n x, 1\n x, row\n s, s\n x, hx\n lx, x\n x, v",
    np.lib.scimath.sqrt: "x\n p\n s\n lx\n nans\n -4",
    np.lib.scimath.log: "x\n p\n s\n lx\n nans",
    np.lib.scimath.log2: "x\n p\n s\n lx",
    np.lib.scimath.log10: "x\n p\n s\n lx",
    np.lib.scimath.logn: "2, x\n p, q\n row, x\n s, s\n 2, hp",
    np.lib.scimath.power: "x, 2\n x, .5\n p, q\n x, y\n 2, x\n s, s\n p, -1\n x, hp",
    np.lib.scimath.arccos: "x\n unit\n s\n lx",
    np.lib.scimath.arcsin: "x\n unit\n s\n lx",
    np.lib.scimath.arctanh: "x\n unit\n s\n lx",
}
