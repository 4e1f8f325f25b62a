"""Decompositions, solutions and norms: most of `numpy.linalg`.

NumPy decomposes and solves in double precision whatever the input, and rounds the result to the input's precision.
So does this; it also raises where CuPy would answer for float16.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ... import devices
from ...errors import NotOnDevice, refuse, wrong
from ...settings.options import current
from ...storage import facts, handles
from .common import FETCHED, are_finite, array, fetch, fetching, tuple_type

_none = np._NoValue


# -- decompositions and solutions ------------------------------------------------------------------

def _precision(*arrays: Any) -> tuple[np.dtype, np.dtype]:
    """dtypes to compute in (double) and to give the result in."""
    result = np.dtype(np.float32)
    is_complex = False
    for a in arrays:
        if a.dtype.kind in "biu":
            result = np.dtype(float)
        elif a.dtype.char not in "fdFD":
            raise TypeError(f"array type {a.dtype} is unsupported in linalg")
        elif a.dtype.char in "dD":
            result = np.dtype(float)
        is_complex = is_complex or a.dtype.kind == "c"
    if is_complex:
        return np.dtype(complex), np.dtype(np.complex64 if result == np.float32 else complex)
    return np.dtype(float), result


def _matrices(xp: Any, a: Any, square: bool = True) -> tuple[Any, np.dtype, np.dtype]:
    """A stack of matrices in double precision, the dtype of results, and its real kind."""
    a = array(xp, a)
    work, result = _precision(a)
    wrong(a.ndim < 2, f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    wrong(square and a.shape[-1] != a.shape[-2], "Last 2 dimensions of the array must be square")
    refuse(a.size == 0, "empty matrices are not supported on the device")
    return a.astype(work, copy=False), result, np.dtype(result.char.lower())


@contextlib.contextmanager
def _finite(a: Any, what: str) -> Iterator[None]:
    """Refuse infinities and NaN once what is issued within is under way: cuSOLVER answers them with NaN."""
    if not current().check_linalg:
        yield
        return
    xp, few = devices.current().xp, a.nbytes <= FETCHED
    with np.errstate(all="ignore"):     # one would be in the sum, which may also overflow
        looked = xp.ascontiguousarray(a) if few else a.sum().reshape(1)
    with fetching(looked, "finite-value check") as found:
        yield
    bad = not np.isfinite(found).all() and (few or not are_finite(a, "finite-value check"))
    refuse(bad, f"{what} of infinities or NaN")


def _has_nan(xp: Any, a: Any) -> Any:
    """Of which matrices of the device an element is NaN: cuSOLVER may pass it over, and give finite numbers (13.2)."""
    return xp.isnan(a).any(axis=(-2, -1))


def _few(statuses: Any) -> Any:
    """The statuses of matrices, or of many the largest: few are fetched as they are, which needs no kernel."""
    return statuses if statuses.nbytes <= FETCHED else statuses.max(keepdims=True)


def _adjoint(a: Any) -> Any:
    a = a.swapaxes(-1, -2)
    return a.conj() if a.dtype.kind == "c" else a


def cholesky(xp: Any, /, a: Any, *, upper: bool = False) -> Any:
    a, result, _ = _matrices(xp, a)
    device, lower, checked = devices.current(), _adjoint(a) if upper else a, current().check_linalg
    if lower.dtype.kind == "c":     # LAPACK reads the real parts of the diagonal alone
        n, lower = lower.shape[-1], lower.copy("C")
        lower.reshape(-1, n * n)[:, ::n + 1].imag[...] = 0
    found = device.cholesky(lower)
    if found is not None:
        factor, statuses = found
        bad = checked and np.any(fetch(_few(statuses), "singular-matrix check") > 0)
    else:
        with checked and device.raising() or contextlib.nullcontext():
            factor = xp.linalg.cholesky(lower)
        bad = checked and not are_finite(factor, "singular-matrix check")
    # What is not finite in the triangle that is read makes such elements in the factor. NumPy does not read the other.
    refuse(bad, "a Cholesky factor of infinities, NaN or a singular matrix")
    return (_adjoint(factor) if upper else factor).astype(result, copy=False)


def qr(xp: Any, /, a: Any, mode: str = "reduced") -> Any:
    a, result, _ = _matrices(xp, a, square=False)
    with _finite(a, "decompositions"):      # of infinities the library's triangle is finite
        found = xp.linalg.qr(a, mode)
        if not isinstance(found, tuple):
            return found.astype(result, copy=False)
        found = tuple([f.astype(result, copy=False) for f in found])
        return found if mode == "raw" else tuple_type("qr")(*found)


def svd(xp: Any, /, a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a, result, real = _matrices(xp, a, square=hermitian)
    with _finite(a, "decompositions"):
        if not compute_uv:
            s = xp.sort(xp.abs(xp.linalg.eigvalsh(a)), axis=-1)[..., ::-1] if hermitian else xp.linalg.svd(
                a, full_matrices, False)
            return s.astype(real, copy=False)
        u, s, v = _of_hermitian(xp, a) if hermitian else xp.linalg.svd(a, full_matrices, True)
        return tuple_type("svd")(u.astype(result, copy=False), s.astype(real, copy=False), v.astype(result, copy=False))


def _of_hermitian(xp: Any, a: Any) -> tuple[Any, Any, Any]:
    s, u = xp.linalg.eigh(a)
    sign, s = xp.copysign(1.0, s), xp.abs(s)
    order = xp.argsort(s, axis=-1)[..., ::-1]
    sign, s = xp.take_along_axis(sign, order, -1), xp.take_along_axis(s, order, -1)
    u = xp.take_along_axis(u, xp.broadcast_to(order[..., None, :], u.shape), -1)
    return u, s, _adjoint(u * sign[..., None, :])


def eigh(xp: Any, /, a: Any, UPLO: str = "L") -> tuple[Any, ...]:
    a, result, real = _matrices(xp, a)
    with _finite(a, "eigenvalues"):
        values, vectors = xp.linalg.eigh(a, UPLO.upper())
        return tuple_type("eigh")(values.astype(real, copy=False), vectors.astype(result, copy=False))


def eigvalsh(xp: Any, /, a: Any, UPLO: str = "L") -> Any:
    a, _, real = _matrices(xp, a)
    with _finite(a, "eigenvalues"):
        return xp.linalg.eigvalsh(a, UPLO.upper()).astype(real, copy=False)


class Kept(NamedTuple):
    """Where the factors of an array's matrices are kept for the next time that they are asked for."""

    known: dict[str, Any]       # what is known of the array, or of its transposed matrices if they are `turned`
    turned: bool


def kept(x: Any) -> Kept | None:
    """Where those of a lazy array are: the matrices and the transposed ones have the same factors."""
    if not handles.is_array(x) or x.ndim < 2:
        return None
    turned = x.strides[-2] < x.strides[-1]
    known = facts.known_of(x, turned)
    return None if known is None else Kept(known, turned)


def note_triangle(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], x: Any, before: Any) -> None:
    """A Cholesky factor is a triangle: of such a one there is nothing to be factorized."""
    if len(args) == 1 and not kwargs and handles.is_array(x) and x.ndim == 2 and x.dtype.char in "dD" and (
            current().check_linalg) and (known := facts.known_of(x)) is not None:
        known["triangle"] = True


#: Bytes of factors that are kept.
_MOST_KEPT = 16 << 20


class _Matrices:
    """The LU factors of matrices in double precision, made or found.

    Attributes
    ----------
    factors : devices.Factors or None
        Those of the matrices or, if they are `turned`, of the transposed ones; None where the library does all of it.
    regular : bool
        It is known that none is singular.
    """

    def __init__(self, device: Any, a: Any, where: Kept | None) -> None:
        self._where = where
        self.turned = where is not None and where.turned
        key = device.stream(), a.dtype
        found = None if where is None else where.known.get("factors")
        if found is None or found[0] != key:
            rows = a.swapaxes(-1, -2) if self.turned else a
            triangle = device.triangular(rows) if where is not None and "triangle" in where.known else None
            found = key, triangle or device.factors(rows), triangle is not None
            if where is not None and a.nbytes <= _MOST_KEPT:
                where.known["factors"] = found
        _, self.factors, self.regular = found

    def note_regular(self) -> None:
        if self._where is not None and (found := self._where.known.get("factors")) and found[1] is self.factors:
            self._where.known["factors"] = (*found[:2], True)


def _solved(what: str, a: Any, b: Any, where: Kept | None) -> Any:
    """The solution of a @ x = b, or without `b` the inverse of `a`, unless a matrix is singular."""
    device = devices.current()
    few = a.ndim > 2 or b is None or b.shape[-1] <= a.shape[-1]     # for many the library has more threads
    matrices = _Matrices(device, a, where) if few else None
    if matrices is None or matrices.factors is None:
        return _solved_by_library(what, device, *((a,) if b is None else (a, b)))
    factors, turned = matrices.factors, matrices.turned

    def result() -> Any:
        if b is not None:
            return factors.solution(b, turned)
        found = factors.inverse()
        return found.swapaxes(-1, -2) if turned else found

    if matrices.regular or not current().check_linalg:
        return result()
    with fetching(_few(factors.statuses), "singular-matrix check") as found:
        solved = result()
    refuse((found > 0).any(), f"{what} of a singular matrix, or of NaN")
    matrices.note_regular()
    return solved


def _solved_by_library(what: str, device: Any, *arrays: Any) -> Any:
    """The same by the device's library.

    What CuPy gives of a singular matrix is rubbish, mostly not finite: it was divided by a zero pivot. Of many
    matrices, one of which has such a result, the device is asked: it may be of infinities or NaN.
    """
    xp = device.xp
    solve = xp.linalg.inv if len(arrays) == 1 else xp.linalg.solve
    found = solve(*arrays)
    if not current().check_linalg:
        return found
    nan = _has_nan(xp, arrays[0]).any()
    if not fetch(xp.isfinite(found).all() & ~nan, "singular-matrix check"):
        refuse(fetch(nan, "singular-matrix check"), f"{what} of NaN")
        check = device.raising() if arrays[0].ndim > 2 else None
        refuse(check is None, f"{what} of a singular matrix")
        with check:
            return solve(*arrays)
    return found


def inv(xp: Any, /, a: Any, *, where: Kept | None = None) -> Any:
    a, result, _ = _matrices(xp, a)
    return _solved("an inverse", a, None, where).astype(result, copy=False)


def det(xp: Any, /, a: Any, *, where: Kept | None = None) -> Any:
    a, result, _ = _matrices(xp, a)
    sign, log = _determinants(xp, a, where)
    return (sign * xp.exp(log)).astype(result, copy=False)


def slogdet(xp: Any, /, a: Any, *, where: Kept | None = None) -> tuple[Any, ...]:
    a, result, real = _matrices(xp, a)
    sign, log = _determinants(xp, a, where)
    return tuple_type("slogdet")(sign.astype(result, copy=False), log.astype(real, copy=False))


def _determinants(xp: Any, a: Any, where: Kept | None) -> tuple[Any, Any]:
    factors = _Matrices(devices.current(), a, where).factors
    sign, log = xp.linalg.slogdet(a) if factors is None else factors.determinants()
    unknown = _has_nan(xp, a)
    other = complex(np.nan, np.nan) if sign.dtype.kind == "c" else 1    # as LAPACK's
    return xp.where(unknown, sign.dtype.type(other), sign), xp.where(unknown, log.dtype.type(np.nan), log)


def solve(xp: Any, /, a: Any, b: Any, *, where: Kept | None = None) -> Any:
    a, b = array(xp, a), array(xp, b)
    work, result = _precision(a, b)
    a = _matrices(xp, a)[0].astype(work, copy=False)
    b = b.astype(work, copy=False)
    refuse(b.ndim == 0 or b.size == 0, "empty right-hand sides are not supported on the device")
    vector = b.ndim == 1
    if vector:
        b = b[:, None]
    wrong(b.shape[-2] != a.shape[-1], "solve: mismatch in the core dimension")
    if a.shape[:-2] != b.shape[:-2]:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        where = where if batch == a.shape[:-2] else None
        a, b = (xp.broadcast_to(x, batch + x.shape[-2:]) for x in (a, b))
    found = _solved("a solution", a, b, where).astype(result, copy=False)
    return found[..., 0] if vector else found


#: Functions whose factors are kept: ``where=kept(args[0])``.
FACTORED = frozenset((np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.solve))


def lstsq(xp: Any, /, a: Any, b: Any, rcond: Any = None) -> tuple[Any, ...]:
    a, b = array(xp, a), array(xp, b)
    work, result = _precision(a, b)
    if a.ndim != 2 or not a.size or not b.size or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise NotOnDevice("least squares of empty arrays or of these dimensions are not supported on the device")
    if rcond is None:
        # In the result's precision, as NumPy has it, although the work is done in double.
        rcond = np.finfo(result).eps * max(a.shape)
    rcond = float(fetch(rcond, "rcond"))
    refuse(rcond >= 1, "rcond= of 1 or more is not supported on the device")
    a, b = a.astype(work, copy=False), b.astype(work, copy=False)
    u, s, v = xp.linalg.svd(a, full_matrices=False)
    # In one wait: whether there are infinities or NaN, one of which would be in the sum, and the rank. (CuPy's own
    # function waits for the rank, too.)
    with np.errstate(all="ignore"):
        total = a.sum().reshape(1)
    # LAPACK's dlalsd takes DLAMCH('Epsilon') where rcond is not positive: half of what NumPy calls eps.
    part = rcond if rcond > 0 else np.finfo(float).eps / 2
    with fetching(xp.concatenate([total, s.astype(work)]), "finite-value check") as found:
        large = s > s[0] * part
        x = xp.dot(v.T.conj(), (xp.dot(b.T, u.conj()) * (large / xp.where(large, s, 1.0))).T)
    refuse(not np.isfinite(found[0]) and not are_finite(a, "finite-value check"), "least squares of infinities or NaN")
    values = found[1:].real
    refuse(not np.isfinite(values[0]), "singular values beyond the largest number")
    rank = np.count_nonzero(values > float(values[0]) * part)
    real = np.dtype(result.char.lower())
    residuals = xp.empty(0, real)
    if rank == a.shape[1] < a.shape[0]:
        residuals = xp.atleast_1d(xp.sum(xp.abs(b - xp.dot(a, x)) ** 2, axis=0))
    return (x.astype(result, copy=False), residuals.astype(real, copy=False), np.int32(rank),
            s.astype(real, copy=False))


def pinv(xp: Any, /, a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _none) -> Any:
    a, result, _ = _matrices(xp, a, square=hermitian)
    wrong(rcond is not None and rtol is not _none, "`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is _none else max(a.shape[-2:]) * np.finfo(result).eps if rtol is None else rtol
    rcond = rcond if isinstance(rcond, (int, float)) else array(xp, rcond)[..., None]
    u, s, v = svd(xp, a.conj(), full_matrices=False, hermitian=hermitian)
    large = s > rcond * s.max(axis=-1, keepdims=True)
    inverse = xp.where(large, 1 / xp.where(large, s, 1.0), 0.0)
    return xp.matmul(v.swapaxes(-1, -2), inverse[..., None] * u.swapaxes(-1, -2)).astype(result, copy=False)


def cond(xp: Any, /, x: Any, p: Any = None) -> Any:
    x = array(xp, x)
    a, _, real = _matrices(xp, x, square=p not in (None, 2, -2))
    if p not in (None, 2, -2):
        # A singular matrix among others gives infinity in NumPy, and an exception in CuPy.
        try:
            inverse = inv(xp, a)
        except np.linalg.LinAlgError:
            raise NotOnDevice("the condition of a singular matrix") from None
        return (norm(xp, a, p, (-2, -1)) * norm(xp, inverse, p, (-2, -1))).astype(real, copy=False)
    s = svd(xp, x, compute_uv=False)
    top, bottom = (s[..., -1], s[..., 0]) if p == -2 else (s[..., 0], s[..., -1])
    return xp.where(bottom == 0, s.dtype.type("inf"), top / xp.where(bottom == 0, s.dtype.type(1), bottom))


def norm(xp: Any, /, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = array(xp, x)
    refuse(x.size == 0 or axis is None and x.ndim == 0 and ord is not None,
           "norms of empty arrays are not supported on the device")
    return xp.linalg.norm(x, ord, axis, bool(keepdims))


#: Functions that wait for the device before they give anything: whether a matrix is singular, or all of it is finite.
WAITING = frozenset((
    np.linalg.solve, np.linalg.inv, np.linalg.cholesky, np.linalg.eigh, np.linalg.eigvalsh, np.linalg.svd, np.linalg.qr,
    np.linalg.lstsq, np.linalg.pinv, np.linalg.cond))

ADAPTED: dict[Any, Any] = {
    np.linalg.cholesky: cholesky, np.linalg.qr: qr, np.linalg.svd: svd, np.linalg.eigh: eigh,
    np.linalg.eigvalsh: eigvalsh, np.linalg.inv: inv, np.linalg.det: det, np.linalg.slogdet: slogdet,
    np.linalg.solve: solve, np.linalg.lstsq: lstsq, np.linalg.pinv: pinv, np.linalg.cond: cond, np.linalg.norm: norm,
}
