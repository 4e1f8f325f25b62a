"""Ufuncs that the device has not, or that mean something else there.

Operands come in the dtypes of NumPy's loop. CuPy's floor division and remainder of floats go by the rounded quotient
(``1 // 0.1`` is 10, ``1 % inf`` NaN), its shifts are C's, its integer power takes negative exponents, its fmod of
64-bit integers goes through doubles, and its complex quotients of zeros and infinities are NaN.
"""
from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ... import devices
from ...errors import refuse, wrong
from .common import filled, is_device, truth
from .products import contract

_umath = np._core.umath


def _array(xp: Any, x: Any) -> Any:
    return x if isinstance(x, xp.ndarray) else filled(xp, (), x, x.dtype)


def _divide(xp: Any, a: Any, b: Any, parts: str) -> tuple[Any, ...]:
    """Quotient ("q"), remainder ("m") or both ("qm") of floats."""
    dtype = a.dtype
    if dtype == np.float16:
        found = _divide(xp, a.astype(np.float32), b.astype(np.float32), parts)
        return tuple([part.astype(dtype) for part in found])
    return devices.current().divide_floats(a if is_device(xp, b) else _array(xp, a), b, parts)


def floor_divide(xp: Any, /, a: Any, b: Any) -> Any:
    return _divide(xp, a, b, "q")[0] if a.dtype.kind == "f" else xp.floor_divide(a, b)


def remainder(xp: Any, /, a: Any, b: Any) -> Any:
    return _divide(xp, a, b, "m")[0] if a.dtype.kind == "f" else xp.remainder(a, b)


def divmod_(xp: Any, /, a: Any, b: Any) -> tuple[Any, ...]:
    if a.dtype.kind == "f":
        return _divide(xp, a, b, "qm")
    return floor_divide(xp, a, b), remainder(xp, a, b)


def complex_divide(xp: Any, /, a: Any, b: Any) -> Any:
    return devices.current().divide_complex(_array(xp, a), _array(xp, b))


def complex_log2(xp: Any, /, z: Any) -> Any:
    result = xp.log(_array(xp, z))
    # Part by part: infinity times a complex number is NaN.
    for part in (result.real, result.imag):
        part *= part.dtype.type(1 / math.log(2))
    return result


@functools.cache
def _reciprocal_of_zero(dtype: np.dtype) -> Any:
    with np.errstate(all="ignore"):
        return np.reciprocal(np.zeros(64, dtype))[0]


def integer_reciprocal(xp: Any, /, x: Any) -> Any:
    x = _array(xp, x)
    return xp.where(x == 0, _reciprocal_of_zero(x.dtype), xp.reciprocal(x))


def fmod(xp: Any, /, a: Any, b: Any) -> Any:
    if a.dtype.kind == "f" or a.dtype.itemsize < 8:
        return xp.fmod(a, b)
    rest = xp.remainder(a, b)
    return rest if a.dtype.kind == "u" else xp.where((rest != 0) & ((a < 0) != (b < 0)), rest - b, rest)


def power(xp: Any, /, a: Any, b: Any) -> Any:
    if not isinstance(b, xp.ndarray) and b == 2 and a.dtype.kind != "c":
        return xp.square(a)     # as NumPy has it, and rounded once
    if b.dtype.kind == "i" and truth(_least(xp, b) < 0, "negative-exponent check"):
        raise ValueError("Integers to negative integer powers are not allowed.")
    return xp.power(a, b)


def _least(xp: Any, b: Any) -> Any:
    if not isinstance(b, xp.ndarray):
        return b
    return b.min() if b.size else np.int64(0)


def _shift(name: str) -> Any:
    def adapter(xp, /, a, b):
        bits = a.dtype.itemsize * 8
        if not isinstance(b, xp.ndarray) and 0 <= int(b) < bits:
            return getattr(xp, name)(a, b)
        a, b = _array(xp, a), _array(xp, b)
        beyond = (b >= bits) if b.dtype.kind == "u" else (b < 0) | (b >= bits)
        zero = a.dtype.type(0)
        shifted = getattr(xp, name)(a, xp.where(beyond, b.dtype.type(0), b))
        rest = xp.where(a < 0, a.dtype.type(-1), zero) if name == "right_shift" and a.dtype.kind == "i" else zero
        return xp.where(beyond, rest, shifted)

    return adapter


def _compare(name: str) -> Any:
    """Signed with unsigned 64-bit integers are compared by value in NumPy, and as doubles in CuPy."""
    swapped = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal",
               "equal": "equal", "not_equal": "not_equal"}[name]
    # What a negative number gives beside any unsigned one.
    negative = name in ("less", "less_equal", "not_equal")

    def adapter(xp, /, a, b):
        if a.dtype == b.dtype:
            return getattr(xp, name)(a, b)
        if a.dtype.kind == "u":
            return UFUNCS[getattr(np, swapped)](xp, b, a)
        return xp.where(a < 0, np.bool_(negative), getattr(xp, name)(a.astype(np.uint64), b))

    return adapter


def clip(xp: Any, /, a: Any, low: Any, high: Any) -> Any:
    refuse(a.dtype.kind == "c", "clip of complex numbers looks for NaN in the real part alone")
    return xp.minimum(xp.maximum(a, low), high)


def _logical(name: str) -> Any:
    """CuPy's logical functions have no loops for complex numbers."""

    def adapter(xp, /, *operands):
        return getattr(xp, name)(*[x != 0 if x.dtype.kind == "c" else x for x in operands])

    return adapter


def vecdot(xp: Any, /, a: Any, b: Any) -> Any:
    return contract(xp, a.conj() if a.dtype.kind == "c" else a, b)


def matvec(xp: Any, /, a: Any, b: Any) -> Any:
    wrong(a.ndim < 2 or b.ndim < 1, "a matrix has two dimensions, a vector one")
    return xp.matmul(a, b[..., None])[..., 0]


def vecmat(xp: Any, /, a: Any, b: Any) -> Any:
    wrong(b.ndim < 2 or a.ndim < 1, "a matrix has two dimensions, a vector one")
    return xp.matmul((a.conj() if a.dtype.kind == "c" else a)[..., None, :], b)[..., 0, :]


def spacing(xp: Any, /, x: Any) -> Any:
    """The distance to the next number away from zero, with the sign of the number."""
    # CuPy's neighbours of floats are never subnormal.
    refuse(x.dtype != float, "spacing of dtypes other than float64 is not supported on the device")
    size = xp.abs(x)
    gap = xp.nextafter(size, x.dtype.type("inf")) - size
    return xp.where(x < 0, -gap, gap)


def matmul(xp: Any, /, a: Any, b: Any) -> Any:
    found = devices.current().product(a, b) if is_device(xp, a) and is_device(xp, b) else None
    return xp.matmul(a, b) if found is None else found


#: Ufunc -> adapter(xp, *operands).
UFUNCS: dict[np.ufunc, Any] = {
    np.floor_divide: floor_divide, np.remainder: remainder, np.divmod: divmod_, np.fmod: fmod, np.power: power,
    np.left_shift: _shift("left_shift"), np.right_shift: _shift("right_shift"), _umath.clip: clip,
    np.matmul: matmul, np.vecdot: vecdot, np.spacing: spacing,
    **{getattr(np, n): _logical(n) for n in ("logical_and", "logical_or", "logical_xor", "logical_not")},
    **{getattr(np, n): _compare(n) for n in
       ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    **{getattr(np, n): f for n, f in (("matvec", matvec), ("vecmat", vecmat)) if hasattr(np, n)},
}

#: (Ufunc, kind of its loop) -> adapter, where only these numbers mean something else to the device.
BY_KIND: dict[tuple[np.ufunc, str], Any] = {
    (np.divide, "c"): complex_divide, (np.log2, "c"): complex_log2,
    (np.reciprocal, "i"): integer_reciprocal, (np.reciprocal, "u"): integer_reciprocal,
}
