"""Recipes of numpy.linalg, numpy.fft and the polynomial fits, and how results that are not unique are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from parity_compare import close, host, leaves

#: Decompositions and solutions: other algorithms than LAPACK's are allowed to differ in the last digits.
LINALG: dict[Callable, str] = {
    np.linalg.cholesky: "spd\n stack\n m\n x\n spd, upper=True\n v\n lspd\n spd.T\n -spd if dt.kind in 'fc' else spd",
    np.linalg.qr: (
        "x\nm\nt\nx, 'complete'\nk, mode='r'\nk\nk, 'complete'\nx, 'raw'\nv\nlx\nx, 'weird'\nt, mode='r'"
    ),
    np.linalg.svd: (
        "x\nm\nt\nx, False\nk, full_matrices=False\nx, compute_uv=False\nspd, hermitian=True\nv\nlx\nnans\n"
        "stack, compute_uv=False, hermitian=True"
    ),
    np.linalg.svdvals: "x\n t\n v\n lx\n nans",
    np.linalg.eig: "m\n spd\n stack\n x\n v\n lm\n a([[0., 1], [-1, 0]])\n a([[np.nan, 1], [1, 2]])",
    np.linalg.eigvals: "m\n spd\n stack\n x\n v\n lm\n a([[0., 1], [-1, 0]])",
    np.linalg.eigh: "spd\n stack\n spd, 'U'\n spd, UPLO='l'\n x\n v\n lspd\n m\n spd, 'X'",
    np.linalg.eigvalsh: "spd\n stack\n spd, 'U'\n x\n v\n lspd\n m",
    np.linalg.inv: "m\n spd\n stack\n x\n v\n lm\n a(np.zeros((2, 2)))\n spd.T\n a([[1, 2], [3, 5]])",
    np.linalg.pinv: (
        "x\nm\nt\nx, 1e-2\nspd, hermitian=True\nx, rtol=1e-3\nv\nlx\nx, rcond=pv[0] / 64 if pv.ndim else pv"
    ),
    np.linalg.det: "m\n spd\n stack\n x\n v\n lm\n a(np.zeros((2, 2)))\n s",
    np.linalg.slogdet: "m\n spd\n stack\n x\n v\n lm\n a(np.zeros((2, 2)))",
    np.linalg.solve: (
        "spd, k\nspd, row\nstack, row\nm, hm\nspd, s\nx, row\na(np.zeros((2, 2))), a([1., 2])\n"
        "stack, u[:, :, 0] if u.ndim else u\nlspd, row\nspd, [1, 2, 3, 4]"
    ),
    np.linalg.lstsq: (
        "k, row\nk, m\nm, row\nx, a([1., 2, 3])\nk, row, 1e-3\nk, v\nv, v\nk, hrow\nlk, row\nt, row\n"
        "k, row, rcond=-1"
    ),
    np.linalg.cond: (
        "m\nx\nspd, 1\nx, 2\nspd, 'fro'\nspd, -2\nstack, np.inf\nv\nlm\na(np.zeros((2, 2))), 1\nnans"
    ),
    np.linalg.matrix_rank: (
        "x\nm\nt\nx, .5\nspd, hermitian=True\nx, rtol=1e-3\nv\ns\nlx\nx, tol=[1., 2.]\na(np.zeros((3, 3)))"
    ),
    np.linalg.matrix_power: "m, 2\n m, 0\n m, 3\n spd, -1\n stack, 5\n x, 2\n v, 2\n m, 1.5\n lm, 2\n m, 1",
    np.linalg.multi_dot: (
        "[x, k]\n[x, k, x]\n[row, m, n]\n[x, k, x, hm]\n[x]\n[x, x]\n[v, w]\n[x, k], out=out((3, 3))\n[lx, k]\n"
        "[row, m, n, row]"
    ),
    np.linalg.tensorinv: (
        "a(np.eye(24).reshape(4, 6, 8, 3)), ind=2\nspd, ind=1\nm, 1\nx, 1\nm, 0\n"
        "a(np.eye(4).reshape(2, 2, 2, 2))\nv"
    ),
    np.linalg.tensorsolve: (
        "spd, row\na(np.eye(24).reshape(6, 4, 2, 3, 4)), a(np.arange(24.).reshape(6, 4))\nx, row\nspd, hrow\n"
        "a(np.eye(24).reshape(6, 2, 4, 3, 4)), a(np.arange(24.).reshape(6, 4)), axes=(1, 2)"
    ),
    np.poly: "v\n m\n row\n x\n lv\n s\n spd\n []",
    np.roots: "row\n v\n pv\n [1, -3, 2]\n x\n a([0, 0, 1, 2, 0])\n a([0.])\n s\n lv\n []",
    np.polyfit: (
        "v, pv, 2\nv, w, 1\nv, w, deg=1, full=True\nv, w, 2, w=a([1., 2, 1, 1, 3, 1])\nv, pv, 2, cov=True\n"
        "v, a(np.arange(12.).reshape(6, 2)), 1\nv, row, 1\nx, v, 1\nv, hv, 1\nv, w, -1\nlv, w, 1\n"
        "v, w, 2, rcond=1e-3\n"
        "v, w, 1, cov='unscaled'\n v, pv, 1, w=[1, 1, 1, 2, 2, 2]"
    ),
}

_ONE = (
    "v\nx\nx, 3\nx, axis=0\nx, 6, -1, 'ortho'\nx, norm='forward'\nx, n=8, axis=0\ns\nlx\nx, axis=5\nx, 0\n"
    "v, -1\nnans\nx, norm='weird'\nx, 2.5\nhx, axis=0\n"
)
_MANY = (
    "x\nt\nx, (2, 3)\nt, axes=(0, 1)\nt, (4, 2), (-1, 0)\nx, norm='ortho'\nx, s=(5, -1), axes=(0, 1)\n"
    "x, s=(2,), axes=(0, 1)\nv\ns\nlx\nx, axes=(0, 5)\nhx\nx, (0, 2)\nt, axes=()\nx, axes=(0, 0)\n"
)
_OUT_C = "x, axis=0, out=oc\n x, out=oc\n x, out=of\n x, out=obad\n"

FFT: dict[Callable, str] = {
    **dict.fromkeys((np.fft.fft, np.fft.ifft), _ONE + _OUT_C),
    np.fft.rfft: _ONE + "x, out=out((3, 3), 'c16')\n x, out=oc\n x, axis=0, out=out((2, 4), 'c8')",
    np.fft.irfft: _ONE + "x, out=out((3, 6), 'f8')\n x, 7\n x, out=of",
    np.fft.hfft: _ONE + "x, 7\n x, out=out((3, 6), 'f8')",
    np.fft.ihfft: _ONE + "x, out=out((3, 3), 'c16')",
    **dict.fromkeys((np.fft.fft2, np.fft.ifft2, np.fft.fftn, np.fft.ifftn), _MANY + "x, out=oc\n x, out=of"),
    **dict.fromkeys((np.fft.rfft2, np.fft.rfftn), _MANY + "x, out=out((3, 3), 'c16')\n x, out=oc"),
    **dict.fromkeys((np.fft.irfft2, np.fft.irfftn), _MANY + "x, out=out((3, 6), 'f8')\n x, (3, 5)"),
}

SHIFTS: dict[Callable, str] = dict.fromkeys(
    (np.fft.fftshift, np.fft.ifftshift),
    "v\n x\n x, 1\n x, axes=(0, -1)\n x, 5\n s\n lx\n t, axes=[0, 2]\n hx, 0\n x, ()"
)

_RTOL = {"f": 1e-3, "F": 1e-3, "d": 1e-9, "D": 1e-9, "e": 5e-2}


def _near(want: np.ndarray, got: np.ndarray) -> bool:
    scale = np.abs(want).max(initial=0) + 1e-300
    return bool(np.allclose(want, got, rtol=0, atol=_RTOL.get(want.dtype.char, 1e-9) * scale, equal_nan=True))


def _h(array: np.ndarray) -> np.ndarray:
    return np.swapaxes(array.conj(), -1, -2)


def _svd(want: Any, got: Any, operands: tuple) -> str | None:
    if not isinstance(want, tuple):
        return None if close(want, host(got), "linalg") else "values: singular values"
    u, s, vh = map(host, got)
    if not close(want.S, s, "linalg"):
        return "values: singular values"
    k = s.shape[-1]
    wanted = (want.U[..., :k] * want.S[..., None, :]) @ want.Vh[..., :k, :]
    if not _near(wanted, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]):
        return "values: u @ s @ vh"
    return None if _near(_h(want.U) @ want.U, _h(u) @ u) else "values: u is not unitary"


def _qr(want: Any, got: Any, operands: tuple) -> str | None:
    if isinstance(want, np.ndarray):
        # Without q, r is known up to the phases of its rows.
        return None if _near(_h(want) @ want, _h(host(got)) @ host(got)) else "values: r"
    if type(want) is tuple:  # mode="raw": LAPACK's own packing
        pairs = zip(want, got, strict=True)
        return None if all(_near(np.abs(one), np.abs(host(two))) for one, two in pairs) else "values: raw"
    q, r = map(host, got)
    return None if _near(want.Q @ want.R, q @ r) and _near(_h(want.Q) @ want.Q, _h(q) @ q) else "values: q @ r"


def _eig(want: Any, got: Any, operands: tuple) -> str | None:
    values, vectors = map(host, got)
    wanted = want.eigenvectors * want.eigenvalues[..., None, :] @ np.linalg.pinv(want.eigenvectors)
    return None if _near(wanted, vectors * values[..., None, :] @ np.linalg.pinv(vectors)) else "values: v @ w @ v^-1"


def _unordered(want: Any, got: Any, operands: tuple) -> str | None:
    """Eigenvalues and roots come in any order."""
    one, two = (np.sort_complex(np.round(host(item).ravel(), 5)) for item in (want, got))
    return None if one.shape == two.shape and np.allclose(one, two, rtol=1e-4, atol=1e-4) else "values: as a set"


def _as_sets(want: Any, got: Any, operands: tuple) -> str | None:
    """``unique_values`` returns them in any order (NumPy's own is by hash)."""
    one, two = (np.sort(host(item)) for item in (want, got))
    return None if one.shape == two.shape and close(one, two, "exact") else "values: as a set"


def _partitioned(want: Any, got: Any, operands: tuple) -> str | None:
    """Which element stands where is only fixed for the kth."""
    one, two = host(want), host(got)
    if one.shape != two.shape or one.dtype != two.dtype:
        return None  # told by the caller
    return None if close(np.sort(one, axis=None), np.sort(two, axis=None), "exact") else "values: as a set"


def _ordered(want: Any, got: Any, operands: tuple) -> str | None:
    """Equal elements come in any order without ``kind="stable"``."""
    one, two = host(want).ravel(), host(got).ravel()
    values = host(operands[0]).ravel() if operands else one
    if one.shape != two.shape or np.array_equal(one, two):
        return None  # another shape is told by the caller
    tied = values.dtype.kind == "b" or len({str(value) for value in values}) < values.size
    return None if tied and np.array_equal(np.sort(one), np.sort(two)) else f"values: {two} where NumPy gives {one}"


def _conditions(want: Any, got: Any, operands: tuple) -> str | None:
    """The condition of a singular matrix is the quotient of a number and the rounding errors of another."""
    one, two = np.broadcast_arrays(host(want), host(got))
    singular = (one > 1e12) & (two > 1e12)
    same = close(np.where(singular, 1, one), np.where(singular, 1, two), "linalg")
    return None if same else f"values: {two} where NumPy gives {one}"


def _text(want: Any, got: Any, operands: tuple) -> str | None:
    """Object results without a useful ==."""
    return None if [str(item) for item in leaves(want)] == [str(item) for item in leaves(got)] else "values: as text"


COMPARE: dict[Callable, Callable] = {
    np.linalg.svd: _svd,
    np.linalg.qr: _qr,
    np.linalg.eig: _eig,
    np.linalg.eigh: _eig,
    np.linalg.eigvals: _unordered,
    np.roots: _unordered,
    np.linalg.cond: _conditions,
    np.unique_values: _as_sets,
    np.partition: _partitioned,
    np.argpartition: _partitioned,
    np.argsort: _ordered,
    np.loadtxt: _text,
    np.genfromtxt: _text,
}

#: Functions of COMPARE that are no linear algebra.
OTHERS: dict[Callable, str] = {
    np.unique_values: "few\n fv\n nv\n s\n lx\n t",
    np.partition: (
        "v, 2\nx, 1\nx, 1, axis=0\nx, (0, 2)\nx, 3, None\nv, 99\ns, 0\nlx, 1\nnv, 2\nv, -1\nx, 1, 5\n"
        "x, 1, kind='weird'\nx, a([0, 1])"
    ),
    np.argpartition: "v, 2\n x, 1\n x, 1, axis=0\n x, (0, 2)\n x, 3, None\n v, 99\n s, 0\n lx, 1\n nv, 2\n v, -1",
}
