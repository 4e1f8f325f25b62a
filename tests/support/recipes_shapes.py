"""Recipes of the functions that move, make, join and describe arrays (grammar: recipes.py)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Functions whose result is moved bytes: compared exactly.
SHAPES: dict[Callable, str] = {
    np.transpose: "x\n t, (2, 0, 1)\n t, axes=(-1, 0, 1)\n x, (0, 0)\n x, (0, 1, 2)\n v\n lx\n s\n x, axes=None",
    np.matrix_transpose: "x\n t\n v\n s",
    np.linalg.matrix_transpose: "x\n t\n v",
    np.swapaxes: "x, 0, 1\n t, -1, 0\n t, axis1=0, axis2=1\n x, 0, 5\n v, 0, 0\n hx, 0, 1\n lx, 0, 1",
    np.moveaxis: "t, 0, -1\n t, (0, 1), (-1, -2)\n x, 0, 3\n t, (0, 0), (1, 2)\n t, source=[2], destination=[0]",
    np.rollaxis: "t, 2\n t, 1, 3\n t, axis=0, start=2\n t, 5\n t, 0, 9",
    np.squeeze: (
        "col\ncol, axis=1\ncol, 0\nt, axis=(0,)\na([[[1]]], dt if dt.kind in 'iufc' else None)\nx, axis=-1\n"
        "col, axis=(1,)"
    ),
    np.expand_dims: "x, 0\n x, -1\n x, (0, 2)\n x, axis=(0, 0)\n x, 5\n s, 0\n s, (0, 1)\n lx, 1",
    np.atleast_1d: "s\n x\n s, x\n v\n 3.5, x\n lv, v",
    np.atleast_2d: "s\n v\n x\n t\n v, s",
    np.atleast_3d: "s\n v\n x\n t\n v, x",
    np.broadcast_to: (
        "row, (3, 4)\ns, (2, 2)\nx, (2, 3, 4)\nx, (3, 5)\nrow, shape=(2, 1, 4), subok=True\nv, 6\ncol, (3, 0)\n"
        "s, ()"
    ),
    np.broadcast_arrays: "x, row\n x, col, s\n v, x\n row\n x, hrow\n x, 3, subok=True\n x, lrow",
    np.reshape: (
        "x, (4, 3)\n x, -1\n x, (2, -1)\n x, (5, 5)\n x, (2, 6), order='F'\n t, (6, 4), order='A'\n x, shape=(12,)\n"
        "x, (12,), copy=False\nx, 12, copy=True\nx.T, (12,)\nx.T, (12,), copy=False\nv, (2, 3), order='C'\n"
        "s, (1, 1)\n"
        "x, ()\n x, (-1, -1)\n x, 2.0\n x, (3, 4), order='K'"
    ),
    np.ravel: "x\n x, order='F'\n x.T\n x, 'K'\n t.T, 'A'\n s\n v\n lx\n x, order='Q'",
    np.flip: "x\n x, 0\n x, axis=-1\n t, (0, 2)\n x, 7\n x, (0, 0)\n v\n s\n lx",
    np.fliplr: "x\n t\n v\n lx",
    np.flipud: "x\n v\n s\n t",
    np.rot90: "x\n x, 2\n x, k=-1\n t, 1, (1, 2)\n x, axes=(1, 0)\n x, 3\n x, axes=(0, 0)\n v\n x, 1, (0, 5)",
    np.diagonal: "x\n x, 1\n x, offset=-2\n t, 0, 1, 2\n t, axis1=0, axis2=-1\n v\n x, 9\n x, 0, 0, 0\n lm",
    np.linalg.diagonal: "x\n t\n t, offset=1\n v\n x, offset=-9",
    np.diag: "x\n v\n v, 1\n x, k=-1\n t\n s\n lv\n row, k=-2",
    np.diagflat: "v\n x\n v, 2\n s\n lx, k=-1",
    np.real: "x\n v\n s\n 3 + 4j\n lx\n t[0]",
    np.imag: "x\n v\n s\n 3 + 4j\n lx",
    np.split: (
        "v, 3\nv, [2, 4]\nx, 2, axis=1\nv, 4\nx, [1, 9], -1\nt, 2\ns, 1\nx, 2, 5\n"
        "v, a([1, 3])  # host: the positions are read"
    ),
    np.array_split: "v, 4\n x, 3, 1\n v, [0, 2]\n v, 0\n x, 5\n s, 2\n lv, 2",
    np.hsplit: "x, 2\n v, 2\n v, [1]\n s, 1\n x, 3",
    np.vsplit: "x, 3\n x, [1]\n v, 2\n t, 2",
    np.dsplit: "t, 2\n t, [1, 3]\n x, 2",
    np.unstack: "x\n x, axis=1\n t, axis=-1\n s\n x, axis=4\n v",
    np.lib.stride_tricks.sliding_window_view: (
        "v, 3\nx, (2, 2)\nx, 2, axis=1\nv, 9\nx, (2,), axis=(0, 1)\nx, 2, axis=0, writeable=True\nv, -1\n"
        "v, 2, subok=True"
    ),
    # Copies
    np.copy: "x\n x, order='F'\n x, 'C'\n x.T, order='A'\n lx\n s\n x, subok=True\n x, order='Q'",
    np.concatenate: (
        "(x, y)\n(x, dy)\n(x, y), axis=1\n(x, y), None\n[v, w, v]\n(x, hy)\n(hx, y), axis=-1\n(x, v)\n(s, s)\n"
        "(x, y), 5\n"
        "(x, y), out=out((6, 4))\n(x, y), out=out((5, 4))\n(x, y), dtype='c16'\n"
        "(v, of.ravel()), dtype='f4', casting='same_kind'\n"
        "(x, y), dtype='f2', casting='unsafe'\n(x, y), dtype='i1', casting='safe'\n()\n(x, lx), 0\n"
        "(x, row)\n[x]\nt\n(v, mask.ravel())\n(v, [1, 2])\n(x, y), out=hof"
    ),
    np.stack: (
        "(x, y)\n(x, y), axis=-1\n(x, y), 1\n(x, v)\n(x, y), axis=4\n(x, hy), out=out((2, 3, 4))\n"
        "(x, y), dtype='f8', casting='unsafe'\n"
        "(s, s)\n []\n (v, w), axis=1\n t\n (x, lx)"
    ),
    np.hstack: (
        "(x, y)\n(v, w)\n(s, s)\n(x, v)\n(x, hy)\n(x, y), dtype='f8', casting='unsafe'\n[x]\n(v, [1, 2])\nt"
    ),
    np.vstack: "(x, y)\n (v, w)\n (s, s)\n (x, row)\n (x, v)\n (x, y), dtype='c16', casting='unsafe'\n t",
    np.dstack: "(x, y)\n (v, w)\n (x, v)\n (t, t)\n (s, hx)",
    np.column_stack: "(v, w)\n (x, y)\n (v, x)\n (x, col)\n (v, hw)\n [v]\n (s, s)",
    np.block: "[x, y]\n [[x, y], [y, x]]\n x\n [v, s]\n [[x], [v]]\n [x, hy]\n [[x, 1], [y]]\n []\n [[m, 0], [0, n]]",
    np.append: "x, y\n x, y, axis=0\n v, 3\n x, row, 0\n v, [1, 2]\n x, hx, axis=1\n x, y, 9\n s, s",
    np.insert: (
        "v, 2, 7\nv, [1, 4], [7, 8]\nx, 1, 5, axis=0\nx, 1, row, axis=0\nx, -1, 9, axis=1\nv, 99, 1\n"
        "v, slice(1, 3), 2\nv, i, 3\n"
        "x, 1, 5\n v, vmask, 4\n x, [0, 2], col, axis=1\n v, [], []\n s, 0, 1\n v, 1, hv\n x, 1, 1, axis=4"
    ),
    np.delete: (
        "v, 2\nv, [0, -1]\nx, 1, axis=0\nx, slice(None, None, 2), 1\nv, 99\nv, vmask\nx, 3\nv, i\nv, []\n"
        "x, [1, 1], axis=1\nv, far\nv, 1.5\ns, 0\nx, 0, 3\n"
        "v, [True, False, True, False, False, False]"
    ),
    np.repeat: (
        "v, 2\nx, 2\nx, 3, axis=1\nx, [1, 0, 2], axis=0\nv, counts\nv, [1, 2]\nx, -1\ns, 3\nx, 2, axis=5\n"
        "lv, 2\nv, 1.5\nx, a([2]), 1"
    ),
    np.tile: (
        "v, 2\nx, (2, 1)\nx, (2, 1, 2)\ns, 3\nv, ()\nv, 0\nlx, 2\nx, a([2, 2])  # host: the numbers are read"
    ),
    np.resize: "x, (2, 3)\n x, (5, 5)\n v, 10\n v, 0\n s, (2, 2)\n x, -1\n lx, 3",
    np.roll: (
        "v, 2\nx, 1\nx, 1, axis=0\nx, (1, -2), axis=(0, 1)\nx, -7, 1\nv, 0\nx, 1, 4\nx, (1, 2), 0\ns, 1\n"
        "x, (1, 2), axis=(0, 0)\nv, shift=3\nv, a([2])"
    ),
    np.pad: (
        "v, 2\nx, 1\nx, ((1, 2), (0, 1))\nx, (1, 2), mode='edge'\nx, 2, 'reflect'\nx, 2, mode='symmetric'\n"
        "x, 3, mode='wrap'\n"
        "v, 2, constant_values=9\nx, 1, constant_values=((1, 2), (3, 4))\nx, 1, mode='maximum'\n"
        "x, 2, mode='mean'\nv, (2, 3), 'linear_ramp', end_values=(5, 4)\n"
        "x, 2, mode='minimum', stat_length=2\nx, 1, mode='median'\nx, 2, 'reflect', reflect_type='odd'\n"
        "x, -1\nx, 1, mode='nope'\n"
        "x, 0\ns, 1\nx, 1, mode='empty', extra=1\nv, {0: 2}\nv, 9, 'reflect'\n"
        "x, 1, mode=lambda r, w, i, k: None  # host: a Python callback"
    ),
    np.trim_zeros: (
        "v\nfv\nfv, 'f'\nfv, trim='b'\nx\nfew, axis=0\nfew, 'fb', axis=(0, 1)\nfv, 'q'\ns\na([0, 0, 1, 2, 0])"
    ),
    np.tril: "x\n x, 1\n x, k=-1\n t\n v\n s\n lx",
    np.triu: "x\n x, 1\n x, k=-2\n t\n v\n s\n lx",
    np.vander: "pv\n pv, 3\n pv, N=4, increasing=True\n x\n lpv, 2\n pv, 0\n pv, 1",
    np.astype: (
        "x, 'f4'\nx, np.int64\nx, dt\nx, 'c16'\nx, dt, copy=False\nx, '?'\nx, 'S5'  # host: strings\n"
        "x, 'O'  # host: objects\nlx, 'f4'\nx, 'nope'\nx, 'f8', device='cpu'\nx, 'f8', device='gpu'"
    ),
    np.asarray: (
        "x, like=y\nlx, like=x\n[1, 2], like=x\nx, 'f4', like=x\nx, dtype='c16', order='F', like=x\n"
        "x, like=x, copy=True\nhx, like=x\n3, like=x\nx, copy=False, dtype='f4', like=x"
    ),
    np.asanyarray: "x, like=y\n lx, like=x\n x, dtype='f4', like=x\n hx, 'f8', 'F', like=x",
    np.ascontiguousarray: "x, like=y\n lx, like=x\n x.T, like=x\n s, like=s\n hx, 'f4', like=x",
    np.asfortranarray: "x, like=y\n lx, like=x\n x.T, 'c16', like=x",
    np.array: (
        "x, like=y\nlx, like=x\n[x, y], like=x\n2.5, like=x\nx, ndmin=4, like=x\n"
        "x, dtype='f4', copy=False, like=x\nhx, like=x\n[1, 2], dtype='f4', order='F', like=x"
    ),
    np.require: "x, None, None, like=y\n x, 'f4', 'C', like=x\n lx, requirements=['F', 'O'], like=x",
    # Creation
    np.zeros_like: (
        "x\nx, dtype='f4'\nx, shape=(2, 2)\nx, order='F'\nlx\ns\nx.T, order='K'\n"
        "x, dtype='M8[s]'  # host: datetimes\nt, subok=False\nx, shape=()\nx, device='cpu'\nx, device='x'"
    ),
    np.ones_like: "x\n x, 'i8'\n x, shape=5\n x, order='F'\n lx\n s\n x, dtype='O'  # host: objects\n v, subok=False",
    np.full_like: (
        "x, 3\nx, row\nx, 2.5, dtype='f4'\nx, 1, shape=(2, 3)\nx, s\nx, [1, 2, 3, 4]\nx, 300\nlx, 7\ns, 2\n"
        "x, v\nx, y, order='F'\nx, 'ab', dtype='U2'  # host: strings"
    ),
    np.zeros: (
        "(2, 3), like=x\n4, 'f4', like=x\n(2,), dtype='i8', order='F', like=x\n-1, like=x\n"
        "(2,), 'S3', like=x  # host: strings"
    ),
    np.ones: "(2, 3), like=x\n 4, 'f4', like=x\n (), like=x",
    np.full: (
        "(2, 3), 7, like=x\n3, row[:3] if row.ndim else row, like=x\n(2, 4), [1, 2, 3, 4], like=x\n"
        "2, 1.5, 'f4', like=x\n3, s, like=x"
    ),
    np.eye: "3, like=x\n 3, 4, 1, like=x\n 3, k=-1, dtype='f4', like=x\n 2, order='F', like=x\n -1, like=x",
    np.identity: "3, like=x\n 3, 'i4', like=x\n 0, like=x",
    np.tri: "3, like=x\n 3, 4, 1, like=x\n 3, k=-1, dtype='f4', like=x",
    np.arange: "5, like=x\n 1, 9, 2, like=x\n 0, 1, .25, like=x\n 5, dtype='f4', like=x\n 'a', like=x",
    np.fromfunction: (
        "lambda i, j: i + j, (2, 3), like=x  # host: a Python callback\n"
        "lambda i: i, (3,), dtype='i8', like=x  # host: a Python callback"
    ),
    np.frombuffer: (
        "b'abcdefgh', 'u1', like=x\nb'abcdefgh', dtype='f4', count=1, offset=4, like=x\nb'abc', 'f4', like=x"
    ),
    np.fromiter: "iter([1, 2, 3]), 'f4', like=x\n range(4), dtype='i8', count=2, like=x",
    np.fromstring: "'1 2 3', sep=' ', like=x\n '1,2', 'i8', sep=',', like=x",
    np.linspace: (
        "s, 3\ns, s + s, 4\nrow, 10\n0, row, num=3, axis=-1\nrow, hrow, 3, endpoint=False\n"
        "row, 4, 3, retstep=True\nrow, 9, 5, dtype='i8'\nrow, 9, -1\nrow, 9, 0\nrow, 9, 1\ncol, row, 3\n"
        "1, 2, num=s"
    ),
    np.geomspace: "pv, 9, 4\n 1, pv, num=3, endpoint=False\n pv, 3, 3, axis=-1\n 0, pv, 3\n p, 9, 2, dtype='c16'",
    np.meshgrid: (
        "v, row\nv, w, indexing='ij'\nv, w, sparse=True\nv, w, copy=False\nv, hw\ns, v\nv, w, indexing='qq'\n"
        "v\nlv, v"
    ),
    np.ix_: "v\n v, w\n i, i\n vmask, i\n x\n i, [0, 1]",
    np.copyto: (
        "ox, x\nox, row\nox, 3\nox, x, where=mask\nox, v\nof, x, casting='unsafe'\nob, x\nob, x, 'unsafe'\n"
        "ox, hx\nox, x, where=False\nox, x, where=hmask\n"
        "x, y\nhox, x\nox, [1, 2, 3, 4], casting='unsafe'\nof, x\noc, x, where=[True, False, True, True]\n"
        "ox.T, x.T\nobad, 5\nox, s\nox[::-1], ox"
    ),
    np.fill_diagonal: (
        "m, 3\nx, 2\nm, row\nt, 1\nm, 5, wrap=True\nv, 1\nm, [1, 2]\nm.T, 7\nm[::-1], s\n"
        "a(np.zeros((7, 3))), 4, wrap=True"
    ),
    # Describing
    np.shape: "x\n s\n lx\n 3\n t",
    np.ndim: "x\n s\n lx\n 3",
    np.size: "x\n x, 0\n t, axis=-1\n s\n x, 5\n t, (0, 1)\n lx",
    np.shares_memory: (
        "x, x\nx, y\nx, x[1:] if x.ndim else x\nx[::2] if x.ndim else x, x[1::2] if x.ndim else y\nx, hx\n"
        "x, x.T, max_work=5"
    ),
    np.may_share_memory: (
        "x, x\nx, y\nx, x[1:] if x.ndim else x\nv[:2] if v.ndim else v, v[3:] if v.ndim else v\nhx, x"
    ),
    np.result_type: "x, 'f4'\n x, of\n x, 3\n x, 2.5\n s, oi\n x, np.float32(1)\n x, 1j\n x",
    np.can_cast: "x, 'f4'\n 'f4', x\n dt, 'f8'\n s, 'i1'\n dt, 'f4', 'unsafe'\n dt, 'i8', casting='same_kind'",
    np.min_scalar_type: "x\n s\n 7\n a(7)\n a(-300.5)",
    np.common_type: "x\n x, of\n x, oi\n x, oc\n x, 'a'",
    np.iscomplexobj: "x\n s\n 3j\n lx",
    np.isrealobj: "x\n s\n 3j\n lx",
    np.tril_indices_from: "m\n m, 1\n m, k=-1\n x\n v\n t",
    np.triu_indices_from: "m\n m, 1\n m, k=-1\n x\n v",
    np.diag_indices_from: "m\n x\n v\n t",
    np.array_repr: "x\n x, 40, 3\n t, suppress_small=True\n v, precision=2\n s\n nans\n lx",
    np.array_str: "x\n x, 40\n t, precision=2\n s\n nans, suppress_small=True",
    np.array2string: (
        "x\nx, separator=', '\nx, precision=2, prefix='ab'\nv, threshold=2, edgeitems=1\ns\n"
        "t, formatter={'all': str}  # host: a Python callback\nx, floatmode='fixed', sign='+', suffix='z'\n"
        "x, sign='q'"
    ),
}
