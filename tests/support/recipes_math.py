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
    "[x, y], axis=0  # host: NumPy does not ask the items of a list",
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
    "{x}\n{x}, axis=0\n{x}, 1\n{x}, axis=-1, dtype='f8'\n{x}, 0, out=oacc\n{x}, axis=0, out=ofacc\n{x}, axis=7\n"
    "v\ns\nlx\n"
    "t, 2\n {x}, dtype='f4'\n {x}, 0, out=obad\n nans, axis=1\n {x}, 0, 'i8'\n hx, 0, out=oacc\n {x}, axis=1, out=hoacc"
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
    "x, {a}\nx, {a}, axis=0\nx, [{a}, {b}]\nx, {a}, axis=1, keepdims=True\nx, {a}, axis=(0, 1)\n"
    "x, a([{a}, {b}]), axis=-1\n"
    "x, {a}, method='lower'\nx, {b}, 0, method='nearest'\nx, {a}, method='midpoint'\n"
    "x, {a}, method='higher', axis=0\n"
    "x, {b}, method='median_unbiased'\nx, {a}, method='inverted_cdf', weights=weights\nnans, {a}, axis=0\n"
    "x, {bad}\nx, {a}, axis=5\n"
    "x, {a}, axis=0, out=orowf\nx, {a}, overwrite_input=False\nx, {a}, method='weird'\nv, {a}\ns, {a}\n"
    "lx, {b}\nx, [[{a}], [{b}]]\n"
    "x, {a}, axis=0, method='inverted_cdf', weights=a([1., 2, 3])\n x, a({a})\n t, {a}, axis=(0, 2)\n x, []"
)

#: Sums and what is made of them: compared with the tolerance of reductions.
REDUCTIONS: dict[Callable, str] = {
    np.sum: _reduction(*_SUM),
    np.prod: _reduction(*_SUM),
    np.mean: _reduction(
        *_WHERE, "x, dtype='f4'", "x, 0, 'c16'", "nans, axis=1", "x, axis=0, out=orowf", "x, 0, where=False"
    ),
    np.std: _reduction(*_STD, out="orowf"),
    np.var: _reduction(*_STD, out="orowf"),
    np.nansum: _reduction(*_SUM, x="nans"),
    np.nanprod: _reduction(*_SUM, x="nans"),
    np.nanmean: _reduction(*_WHERE[:2], "nans, dtype='f4'", "nans, 0, out=orowf", x="nans"),
    np.nanstd: _reduction(
        "nans, ddof=1", "nans, 0, where=mask", "nans, ddof=99", "nans, axis=0, mean=row", x="nans", out="orowf"
    ),
    np.nanvar: _reduction("nans, ddof=1", "nans, 0, where=mask", "nans, correction=1", x="nans", out="orowf"),
    np.cumsum: _CUMULATIVE.format(x="x"),
    np.cumprod: _CUMULATIVE.format(x="x"),
    # Infinity as an integer is anything.
    np.nancumsum: _CUMULATIVE.format(x="nans").replace("nans, 0, 'i8'", "nv[:4], 0, 'f8'"),
    np.nancumprod: _CUMULATIVE.format(x="nans").replace("nans, 0, 'i8'", "nv[:4], 0, 'f8'"),
    np.cumulative_sum: (
        "v\nv, include_initial=True\nx\nx, axis=1\nx, axis=0, dtype='f8'\nx, axis=0, out=oacc\ns\n"
        "x, axis=1, include_initial=True\nlv\nx, axis=6"
    ),
    np.cumulative_prod: (
        "v\nv, include_initial=True\nx\nx, axis=1\nx, axis=0, dtype='f8'\nx, axis=0, out=oacc\ns\nlv"
    ),
    np.average: (
        "x\nx, axis=0\nx, weights=weights\nx, axis=1, weights=wrow\nx, 0, a([1., 2, 3]), True\n"
        "x, axis=(0, 1)\nx, weights=weights, axis=1, keepdims=True\n"
        "x, axis=0, weights=wrow\nx, weights=wrow\nx, axis=1, weights=a([0., 0, 0, 0])\nlx\n"
        "x, 1, [1, 2, 3, 4]\ns\nhx, weights=weights\nx, weights=y\n"
        "t, axis=(0, 2), weights=a(np.ones((2, 4)))\nx, returned=True"
    ),
    np.median: AXES.format(x="x")
    + "t, axis=(0, 2)\n x, axis=0, out=orowf\n s\n v\n lx\n nans\n nans, axis=0\n x, overwrite_input=False\n"
    + "t, (0, 1), keepdims=True\n few, 1",
    np.nanmedian: AXES.format(x="nans")
    + "nans, axis=0, out=orowf\n s\n v\n lx\n t, axis=(0, 2)\n nans, axis=(0, 1), keepdims=True",
    np.percentile: _QUANTILE.format(a=30, b=62.5, bad=130),
    np.quantile: _QUANTILE.format(a=0.3, b=0.625, bad=1.3),
    np.nanpercentile: _QUANTILE.format(a=30, b=62.5, bad=-1),
    np.nanquantile: _QUANTILE.format(a=0.3, b=0.625, bad=-0.1),
    np.trapezoid: (
        "v\nv, w\nx\nx, dx=.5\nx, axis=0\nx, row\nx, x=weights, axis=1\ns\nlx\nx, axis=4\nv, hv\nv, row"
    ),
    np.corrcoef: "x\n x, y\n x, rowvar=False\n x, dtype='f4'\n v\n v, w\n lx\n s\n x, v\n x, hx, False",
    np.cov: (
        "x\nx, y\nx, rowvar=False\nx, bias=True\nx, ddof=0\nv\nv, w, ddof=1\nx, fweights=a([1, 2, 1, 3])\n"
        "x, aweights=wrow\nx, dtype='f4'\nlx\ns\nx, fweights=a([1, -2, 1, 3])\n"
        "x, ddof=.5\nx, fweights=a([1., 2, 1, 3])\nx, hx\nt\n"
        "x, fweights=[1, 2, 1, 1], aweights=[1., 2, 3, 4], ddof=2"
    ),
    np.convolve: (
        "v, w\nv, w, 'same'\nv, row, mode='valid'\nrow, v\nv, hw\nx, v\nlv, w\ns, v\n"
        "v, a([], dt if dt.kind in 'iufc' else None)\nv, w, 'nope'\nv, [1, 2]"
    ),
    np.correlate: (
        "v, w\nv, w, 'full'\nv, row, mode='same'\nrow, v\nv, hw\nx, v\nlv, w\ns, s\nv, [1, 2], 'valid'"
    ),
    np.histogram: (
        "v\nx, 3\nv, bins=[-2, 0, 1, 2]\nx, range=(-1, 1)\nv, weights=w\nv, density=True\n"
        "x, 4, (-1, 2), density=True, weights=weights\nnv\nv, 0\nv, [2, 1]\nlx\ns\n"
        "v, bins='auto'\nv, a([-1., 0, 1])\nv, 3, (1, 1)\nv, 5, (0, np.inf)\nhv, 4\nv, 'sturges'\nfew, 3\n"
        "v, bins=2.5"
    ),
    np.histogram_bin_edges: (
        "v\nx, 3\nv, 'fd'\nv, bins=[0, 1, 2]\nv, range=(0, 1)\nv, 'sqrt', weights=w\nv, 'nope'\nlx\n"
        "few, 'doane'\ns, 2\nv, 'scott'\nv, 'rice'\nv, 'stone'"
    ),
    np.histogram2d: (
        "v, w\nv, w, 3\nv, w, [2, 4]\nv, w, bins=[[-1, 0, 1], 3]\nv, w, 3, [[-1, 1], [-2, 2]], density=True\n"
        "v, w, 3, weights=w\nv, row\nv, hw, 2\nlv, w, 3"
    ),
    np.histogramdd: (
        "k, 3\nk, (2, 3, 4)\nk, bins=3, range=[(-1, 1), None, (0, 1)], density=True\n(v, w), 3\nv, 3\n"
        "k, 2, weights=wrow\nlk, 2\nk, 0\nk, [[0, 1], [0, 1]]\nt, 2"
    ),
    np.interp: (
        "v, sv, w\nv, [0, 1, 2], [1, 3, 5]\nx, sv, v\n1.5, sv, v\nv, sv, w, left=-9, right=9\n"
        "v, sv, w, period=2\nv, sv, row\ns, sv, w\nnv, sv, v\nv, sv, oc.ravel()[:6]\nv, np.sort(hv), w\n"
        "v, sv, w, period=0"
    ),
    np.ediff1d: "v\n x\n v, 1\n v, to_begin=[1, 2]\n v, to_end=w, to_begin=3\n s\n lv\n v, 1.5\n v, hw",
    np.diff: (
        "v\nx\nx, 2\nx, axis=0\nx, n=0\nx, -1\ns\nx, prepend=0\nx, axis=0, append=row\nx, 1, 5\nlx\nx, 9\n"
        "v, prepend=w, append=hv\nx, prepend=a([[1], [2], [3]])"
    ),
    np.gradient: (
        "v\nx\nx, 2\nx, axis=0\nx, .5, 2\nv, sv\nx, axis=(0, 1), edge_order=2\nx, 1, axis=5\ns\n"
        "v, edge_order=3\nlx\nx, a([0., 1, 3]), axis=0\nv, hv\nx, [1, 2, 4], [0, 1, 2, 3]\nx, 1, 2, 3"
    ),
    np.cross: (
        "k[:3], k[1:]\na([1, 2, 3]), a([4, 5, 6])\nx, y\nk, k, axis=0\nk, k[:1]\nk[0], [1, 2, 3]\n"
        "k, k[0], axisa=-1, axisb=0, axisc=0\nv, w\nk, hm[:, :3]\nk[:, :2], k"
    ),
    np.dot: (
        "x, k\nv, w\ns, x\nx, row\nt, k\nt, row\nx, y\nx, hm\nhx, k\nlx, k\nx, 3\nx, k, out=out((3, 3))\n"
        "x, k, out=out((3, 3), 'i2')\ns, s\nm, n, out=m\nv, [1, 2, 3, 4, 5, 6]\nm, n, out=out((4, 4), 'f8')"
    ),
    np.vdot: "v, w\n x, y\n s, s\n v, row\n x, hy\n lv, w\n x, m",
    np.inner: "v, w\n x, y\n x, row\n s, x\n t, row\n v, row\n x, hy\n lx, y\n t, x",
    np.outer: "v, w\n x, y\n s, v\n v, row, out=out((6, 4))\n v, hw\n lv, w\n v, 3\n v, w, out=obad",
    np.tensordot: (
        "x, k, 1\nt, u\nt, u, axes=3\nt, u, ([1, 2], [1, 2])\nx, y, 0\nx, y, axes=(1, 1)\nx, y, 1\n"
        "t, u, ((0,), (0,))\nx, hm, 1\nlx, k, 1\nt, u, ([0, 0], [0, 0])\nx, y, axes=([0], [5])"
    ),
    np.kron: "v, w\n x, m\n s, x\n v, x\n x, hm\n lx, v\n t, x\n v, 3",
    np.einsum: (
        "'ij,jk', x, k\n'ij->ji', x\n'ii', m\n'ii->i', m\n'ij,ij->', x, y\n'i,j->ij', v, w\n"
        "'...j->...', t\n'ijk,ikl', t, a(np.ones((2, 4, 2)))\n'ij->', x\n'ij->i', x\n"
        "'ij,jk,kl', x, k, x\n'ij,jk', x, k, optimize=True\n'ij,jk', x, k, dtype='f8', casting='unsafe'\n"
        "'ij,jk->ik', x, k, out=out((3, 3))\nx, [0, 1], k, [1, 2], [0, 2]\nx, [0, 1]\n"
        "'ij,kj', x, hy\n'ij', v\n'ij,jk', x, y\n'i,i', v, w\n'ij,jk', x, k, order='F'\n'ij,j', lx, row\n"
        "'i->', s\n'...ij,...j->...i', t, row\n'ii->i', m, out=orow\n"
        "'ij,jk->ik', x, k, optimize=['einsum_path', (0, 1)]\n'i$', v\n'ij,ij->i', x == x, x"
    ),
    np.einsum_path: (
        "'ij,jk', x, k\n'ij,jk,kl', x, k, x\n'ij,jk', x, k, optimize='optimal'\n"
        "'ij,jk,kl', x, k, hx, optimize='greedy'\n'ij', v\nx, [0, 1], k, [1, 2]"
    ),
    np.linalg.matmul: "x, k\n v, w\n t, k\n s, s\n x, y\n x, hm",
    np.linalg.outer: "v, w\n x, y\n v, hw\n s, s",
    np.linalg.tensordot: "x, k, axes=1\n t, u\n t, u, axes=([0], [0])",
    np.linalg.vecdot: "v, w\n x, y\n x, row\n t, u, axis=1\n v, row\n x, hy\n x, y, axis=4\n s, s",
    np.linalg.cross: "k, k\n k[0], k[1]\n k.T, k.T, axis=0\n v, w\n k, hm[:, :3]\n x, y",
    np.linalg.trace: "m\n t\n t, offset=1\n x, dtype='f8'\n v\n stack, offset=-1",
    np.trace: (
        "m\nx, 1\nt\nt, 0, 1, 2\nx, dtype='f8'\nt, axis1=0, axis2=2, out=out((3,))\nv\nm, 9\nt, 0, 0, 0\nlm\n"
        "m, offset=-1"
    ),
    np.polyval: "row, v\n row, 2\n [1, 2, 3], x\n row, hx\n row, s\n lrow, v\n v, x",
    np.polyadd: "v, row\n row, [1, 2]\n v, 3\n s, s\n x, row\n hv, w",
    np.polysub: "v, row\n row, [1, 2]\n v, 3\n s, s\n hv, w",
    np.polymul: "v, row\n row, [1, 2]\n v, 3\n s, s\n hv, w\n fv, fv",
    np.polydiv: "pv, row\n pv, [1, 2]\n pv, 3\n pv, pv\n hp.ravel(), row\n row, pv",
    np.polyder: "v\n v, 2\n v, m=0\n v, -1\n s\n lv\n v, 9",
    np.polyint: "v\n v, 2\n v, m=1, k=3\n v, 2, [1, 2]\n v, 2, a([5, 6])\n v, -1\n s\n lv\n v, k=row",
    np.linalg.norm: (
        "v\nx\nx, 1\nx, 'fro'\nx, np.inf, axis=1\nx, -np.inf\nv, 0\nv, 3\nv, 2.5\n"
        "x, axis=0, keepdims=True\nt, axis=(1, 2)\nt, 'fro', (0, 1), True\nx, 2\nx, -2\nx, 'nuc'\n"
        "t\nv, 'fro'\nx, 5\nx, axis=9\nt, 1, (0, 2)\ns\nlx\nnans\nx, -1, axis=-1\nv, -1\nx, ord=0, axis=1\n"
        "x, 'nuc', axis=(0, 0)\nt, 2, (1, 2)\nv, 'weird'"
    ),
    np.linalg.vector_norm: (
        "v\nx\nx, axis=0\nx, axis=(0, 1), keepdims=True\nx, ord=1\nx, ord=np.inf, axis=1\nv, ord=0\n"
        "t, axis=(0, 2), ord=3\ns\nlx"
    ),
    np.linalg.matrix_norm: "x\n t\n x, keepdims=True\n x, ord=1\n t, ord='nuc'\n x, ord=2\n v\n t, ord=np.inf",
}

#: Extremes: exact, but of reductions' argument forms.
EXTREMES: dict[Callable, str] = {
    **dict.fromkeys((np.max, np.min, np.amax, np.amin), _reduction(*_EXTREME)),
    **dict.fromkeys((np.nanmax, np.nanmin), _reduction(*_EXTREME, "nans, axis=0, out=orow", x="nans")),
    np.ptp: AXES.format(x="x") + TUPLES + OUTS.format(x="x", out="orow") + "s\n v\n lx\n nans\n nans, axis=1",
    **dict.fromkeys(
        (np.any, np.all),
        _reduction(
            *_WHERE, "nans", "nans, axis=0", "few, axis=1", "x, 0, out=orowb", "x, axis=1, out=out((3,), 'i8')"
        ),
    ),
    **dict.fromkeys(
        (np.argmax, np.argmin),
        AXES.format(x="x")
        + "few\n few, axis=1\n nans\n nans, axis=0\n s\n lx\n v\n"
        + "x, axis=0, out=orowi\n x, 0, out=orowf\n x, axis=(0, 1)\n t, -2\n hx, 1\n x, 0, out=obad",
    ),
    **dict.fromkeys(
        (np.nanargmax, np.nanargmin),
        AXES.format(x="nans")
        + "x\n few, axis=1\n s\n lx\n nv\n x, axis=0, out=orowi\n t, -2\n a([[np.nan, np.nan], [1, 2]]), axis=1",
    ),
    np.count_nonzero: (
        "x\nx, axis=0\nfew, axis=(0, 1)\nfew, axis=-1, keepdims=True\nfew, 7\ns\nlx\nnans\nt, (0, 2)\nmask\n"
        "few, axis=None, keepdims=True"
    ),
    np.sort: (
        "x\nx, axis=0\nx, axis=None\nnans\nnv\nfew, kind='stable'\nx, kind='heapsort'\nv\ns\nx, 5\nlx\n"
        "t, 1, stable=True\nx, kind='weird'\nx, order='a'\nx, kind='stable', stable=False"
    ),
    np.sort_complex: "v\n x\n nv\n lv\n s",
    np.unique: (
        "few\nv\nfew, return_index=True\nfew, return_inverse=True\nfv, return_counts=True\n"
        "fv, True, True, True\nfew, axis=0\nfew, axis=1, return_inverse=True\nnans\nnans, equal_nan=False\n"
        "lx\ns\nfew, axis=5\nnv, return_counts=True, equal_nan=False\n"
        "few, axis=-1, return_counts=True, return_index=True\nhx\nnans, axis=0"
    ),
    np.unique_all: "few\n fv\n nv\n s\n lx",
    np.unique_counts: "few\n fv\n nv\n s\n lx",
    np.unique_inverse: "few\n fv\n nv\n s\n lx",
    np.union1d: "v, w\n x, few\n fv, 3\n v, hw\n lv, w\n nv, nv\n s, v",
    np.intersect1d: (
        "fv, pv\nfew, x\nfv, pv, return_indices=True\nsv, v, assume_unique=True\nv, hw\nlv, w\ns, v\n"
        "sv, v, True, True"
    ),
    np.setdiff1d: "fv, pv\n few, x\n v, w, assume_unique=True\n v, hw\n lv, w\n s, v\n v, []",
    np.setxor1d: "fv, pv\n few, x\n v, w, assume_unique=True\n v, hw\n lv, w\n s, v",
    np.isin: (
        "x, v\nx, [1, 2]\nx, few, invert=True\nfew, 1\nv, w, assume_unique=True\nx, hv\nlx, v\ns, v\n"
        "x, v, kind='sort'\nx, v, kind='table'\nnv, nv\nv, []"
    ),
    np.searchsorted: (
        "sv, v\nsv, x, 'right'\nsv, 1\nsv, v, side='left', sorter=a([0, 1, 2, 3, 4, 5])\n"
        "v, w, sorter=np.argsort(hv)\nsv, nv\nx, v\nsv, hv\nlsv, v\ns, v\nsv, v, 'mid'\n"
        "sv, v, sorter=a([0, 9, 1, 1, 1, 1])\nsv, s\nsv, [1, 2]\nsv, 1.5"
    ),
    np.digitize: (
        "v, sv\nx, [0, 1, 2]\nv, sv, right=True\nv, sv[::-1] if sv.ndim else sv\ns, sv\n1, sv\nv, w\nnv, sv\n"
        "v, hv\nx, x\nv, sv, True\nlx, sv"
    ),
    np.nonzero: "x\n few\n v\n s\n lx\n nans\n t\n mask",
    np.flatnonzero: "x\n few\n v\n s\n lx\n mask",
    np.argwhere: "x\n few\n v\n s\n lx\n t",
    np.where: (
        "mask, x, y\nmask, x, dy\n"
        "mask\nmask, x, 3\nmask, 1, 2.5\nfew\nmask, x, row\nhmask, x, y\nmask, hx, y\nmask, x\n"
        "x, x, y\nmask, x, of\nmask, x, oi\nTrue, x, y\ns, s, s\nlx, x, y\nmask, v, x\nmask, [1, 2, 3, 4], x"
    ),
    np.choose: (
        "i2 % 3, [row[:3], row[1:], 7]\ni, [row, row, row]\ni2 % 3, x\ni, [row, 1], mode='wrap'\n"
        "i, [row, 1], mode='clip'\nmask, [x, y]\nob, (x, y), out=ox\ni2, [1, 2]\n1, [x, y]\ns, [x, y]\n"
        "mask, [hx, y]\n[0, 1], [1, 2]\ni, [row, 1], mode='no'\ni % 3, (row, 1, 2), obad"
    ),
    np.select: (
        "[mask], [x]\n[mask, ~mask], [x, y]\n[mask], [x], 9\n[mask, mask], [x, 3], default=row\n"
        "[mask], [x, y]\n[], []\n[hmask], [x]\n[x], [x]\n[mask], [row]\n[True, False], [x, y]\n[mask], [lx]"
    ),
    np.compress: (
        "[True, False, True], x, 0\nvmask, v\nvmask, x\nmask, x\n[0, 1, 1, 0], x, axis=1\n"
        "vmask, v, out=out((4,))\n[1] * 9, v\n[True], x, 5\na([True, False, True]), x, axis=0\nvmask, lv\n"
        "s, v\na([1, 0, 2]), x, 0\nvmask, v, out=obad"
    ),
    np.extract: "mask, x\n vmask, v\n x, y\n mask, lx\n hmask, x\n [True, False], v\n s, x",
    np.take: (
        "v, 2\nv, i\nx, i2\nx, i2, axis=0\nx, i, axis=1\nv, far\nv, far, mode='wrap'\n"
        "v, near, mode='clip'\nx, [0, 1], 1\nx, 1, axis=0\nx, a(0), axis=1\nv, near\nx, i, axis=1, out=ox\n"
        "x, i, 1, obad\nx, 1, 9\n"
        "v, 1.5\nv, mask.ravel()\nlx, i  # host: NumPy does not ask the index\n"
        "hx, i2, 0  # host: NumPy does not ask the index\nv, []\ns, 0\nv, i, mode='weird'\nv, -1\nv, 99\n"
        "v, a([], 'i8')\nx, i, axis=1, out=ox, mode='clip'"
    ),
    np.take_along_axis: (
        "x, along0, 0\nx, along1, 1\nx, along1, axis=-1\nx, along0, None\nx, i, None\nx, along0, 5\n"
        "x, wrow, 1\nhx, along1, 1\nx, a([[9, 0]]), 1\nx, i, 1\nx, h([[0, 1, 2, 0]]), 0\n"
        "x, a([[-1, 0], [0, 1], [1, 3]])"
    ),
    np.put_along_axis: (
        "x, along0, 9, 0\nx, along1, col, 1\nx, along1, 5, axis=-1\nx, i, 3, None\nx, a([[9, 0]]), 1, 1\n"
        "x, wrow, 1, 1\nhx, along1, 1, 1\nx, along1, h([[1], [2], [3]]), 1\nx, along0, row, 0"
    ),
    np.put: (
        "v, i, 5\nv, i, w\nx, [0, 2], [1, 2]\nv, far, 1\nv, far, 1, mode='clip'\nv, near, 1, 'wrap'\n"
        "v, [0, 0, 0], [1, 2, 3]\nv, 3, 7\nv, [], 1\nv, i, []\ns, 0, 2\nx.T, [0, 1, 5], row\nv, i, hv\n"
        "v, 1.5, 1\nhv, i, w\n[1, 2], 0, 1\nv[::-1] if v.ndim else v, [0], [9]"
    ),
    np.place: (
        "x, mask, 5\nx, mask, v\nv, vmask, [1, 2]\nx, x, 3\nx, mask, []\nx, vmask, 1\nx.T, mask.T, row\n"
        "hx, mask, 5\nx, hmask, s\nlx, mask, 1"
    ),
    np.putmask: (
        "x, mask, 5\nx, mask, y\nv, vmask, [1, 2]\nx, mask, v\nx, vmask, 1\nx.T, mask.T, y.T\nx, hmask, hy\n"
        "hx, mask, y\nx, mask, 2.5\nx, mask, []\nx, [True] * 12, 1"
    ),
    np.piecewise: (
        "x, [mask, ~mask], [1, 2]\nx, [mask], [1, 2]\nx, mask, [5]\n"
        "x, [mask], [lambda z: z * 2, lambda z: z]  # host: a Python callback\n"
        "v, vmask, [lambda z, k: z + k, 0], 3  # host: a Python callback\n"
        "x, [mask], [1, 2, 3]\nv, [v < 1], [7]\ns, [True], [3]\nx, [hmask], [1]"
    ),
    np.lexsort: "(v, w)\n x\n x, axis=0\n (v,)\n (few.ravel(), fv)\n (v, row)\n s\n (v, hw)\n x, 5\n lx\n (nv, v)\n t",
    np.ravel_multi_index: (
        "(i2, i2), (5, 5)\n(a([0, 1]), a([2, 3])), (3, 4)\na([[0, 1], [2, 3]]), (3, 4), order='F'\n"
        "(a([0, 7]), a([2, 3])), (3, 4)\n(a([0, 7]), a([2, 3])), (3, 4), mode='wrap'\n"
        "(a([0, 7]), a([2, 9])), (3, 4), mode=('clip', 'wrap')\n(a(1), 2), (3, 4)\nx, (3, 4)\n(v, w), (2, 2)\n"
        "(a([0]), h([1])), (3, 4)"
    ),
    np.unravel_index: (
        "a([3, 7]), (3, 4)\na(5), (3, 4)\na([3, 7]), (3, 4), order='F'\na([99]), (3, 4)\na([-1]), (3, 4)\n"
        "v, (3, 4)\na([], 'i8'), (2, 2)\ni2 + 5, shape=(4, 4)\na([1.5]), (3, 4)\n7, (3, 4)\na([3], 'u1'), (12,)"
    ),
    np.bincount: (
        "counts\ncounts, a([1., 2, 3, 4, 5, 6])\ncounts, minlength=12\ncounts, [1, 2, 3, 4, 5, 6]\nv\npv\n"
        "a([-1, 2])\ncounts, minlength=-1\ncounts, row\nx\na([], 'i8')\na([], 'i8'), minlength=3\n[1, 1, 5]\n"
        "s\npv, weights=w\ncounts, h(np.arange(6.))\na([1.5])\ncounts.astype('u1')\nmask.ravel()"
    ),
    np.packbits: (
        "bits\nmask\nmask, axis=1\nbits, 0\nbits, bitorder='little'\nx\nmask, axis=5\ns\nvmask\n[1, 0, 1]\n"
        "bits, bitorder='x'"
    ),
    np.unpackbits: (
        "bits\nbits, axis=0\nbits, axis=1, count=5\nbits, 1, -3, 'little'\nx\nbits, count=100\ns\n"
        "bits, axis=4\nbits, bitorder='little'\nh([1, 2], 'u1')"
    ),
    np.array_equal: (
        "x, x\nx, y\nx, v\nnans, nans\nnans, nans, equal_nan=True\nx, hx\nlx, x\ns, s\nx, 3\nx, 'a'\nx, of"
    ),
    np.array_equiv: "x, x\n x, y\n row, x\n nans, nans\n x, hx\n lx, x\n x, v\n s, s",
    np.apply_along_axis: (
        "lambda r: r.sum(), 0, x\nlambda r: r[::-1], 1, x\nlambda r: r, 5, x\nnp.sort, -1, t\n"
        "lambda r, k=1: r * k, 0, x, k=2\nlambda r: np.diag(r), -1, x\nlen, 0, v\nlambda r: r[0], 0, s\n"
        "np.max, 0, hx"
    ),
    np.apply_over_axes: (
        "np.sum, t, [0, 2]\nnp.max, x, 0\nnp.sum, x, [5]\nnp.sum, s, [0]\nlambda r, k: r, x, 0\nnp.sum, hx, 1\n"
        "np.sum, t, a([0, 1])  # host: the axes are read"
    ),
    np.argsort: (
        "x\nx, axis=0\nx, axis=None\nv\nv, kind='stable'\nfv, kind='stable'\nfew, 1, stable=True\ns\nx, 5\nlx\n"
        "nv, kind='stable'\nx, order='a'\nsv\nt, -2, 'mergesort'"
    ),
}

#: Element by element.
ELEMENTWISE: dict[Callable, str] = {
    np.logspace: (
        "s, 1, 4\nrow, 2, 3, base=2\nrow, 1, 3, endpoint=False, dtype='f4'\n0, 1, 3, base=pv\n"
        "row, 2, 3, axis=-1"
    ),
    **dict.fromkeys((np.around, np.round),
        "x\nx, 1\nx, decimals=-1\nx, 0, out=ox\ns\nlx\nnans, 1\nx, 2, of\nv, -2\nx, 1, out=obad\nx, 1.5\n"
        "hx, 1, out=ox",
    ),
    np.clip: (
        "x, 0, 1\nx, y, u[0]\nx, None, 1\nx, 0, None\nx, a_min=0, a_max=1\nx, min=0, max=1\n"
        "x, 0, 1, out=ox\nx, row, hy\nx\nx, None, None\nx, 1, 0\nnans, 0, 1\nx, np.nan, 1\ns, 0, 1\n"
        "lx, 0, s\nx, 0.5, 1.5\n"
        "x, 0, 1, dtype='f4', casting='unsafe'\nx, 0, 1, where=mask, out=ox\nx, 0, 1, out=of\n"
        "x, -300, 300\nx, 0, max=1\nx, 0, 1, max=2\nx, 0, 1, obad\nx, 0, 1, casting='unsafe', out=oi"
    ),
    **dict.fromkeys((np.isposinf, np.isneginf),
        "nans\nnans, ob\nnans, out=ob\nx\ns\nlx\nnans, out=of\nnans, obad",
    ),
    np.fix: "x\n nans\n x, ox\n x, out=of\n s\n lx\n x, obad",
    np.nan_to_num: (
        "nans\nnans, nan=7\nnans, copy=False\nnans, nan=1, posinf=2, neginf=-2\ns\nlx\nx\nnans, nan=row\n"
        "hx, nan=1\nnans, False, 3"
    ),
    np.angle: "x\n x, True\n x, deg=True\n s\n 3 + 4j\n lx\n nans",
    **dict.fromkeys((np.iscomplex, np.isreal), "x\n s\n nans\n 3j\n lx"),
    np.real_if_close: (
        "x\nx, tol=1000\nx + 0j if dt.kind in 'fc' else x\ns\nlx\n"
        "few * (1 + 1e-17j) if dt.kind in 'fc' else few\nx, .5"
    ),
    np.i0: "x\n s\n lx\n v\n p",
    np.sinc: "x\n s\n lx\n few\n 0\n p",
    np.unwrap: (
        "v\nx\nx, axis=0\nx, .5\nv, discont=3, period=2\ns\nlx\nx, 1.0, 5\nv * 3, period=6\npv, period=4"
    ),
    np.isclose: (
        "x, y\nx, x\nx, y, 1, 2\nnans, nans\nnans, nans, equal_nan=True\nx, 1\nx, row\ns, s\nx, hx\nlx, x\n"
        "x, v\nx, y, rtol=row\nx, 'a'\nx, y, atol=a(1.)"
    ),
    np.allclose: (
        "x, y\nx, x\nx, y, 1, 9\nnans, nans\nnans, nans, equal_nan=True\nx, 1\nx, row\ns, s\nx, hx\nlx, x\nx, v"
    ),
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
