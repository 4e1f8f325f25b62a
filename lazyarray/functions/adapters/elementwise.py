"""Element-wise functions that are no ufuncs, and comparisons of whole arrays.

CuPy's angle, sinc and clip have their own minds about NaN, signed zeros and small integers, so these are composed
of ufuncs here, as NumPy does it.
"""
from __future__ import annotations

import contextlib
import math
import warnings
from typing import Any

import numpy as np

from ... import devices
from ...devices.base import is_negative_zero
from ...errors import NotOnDevice, refuse, wrong
from .. import memory_order
from ..kinds import WEAK
from .common import answer_dtype, array, array_or_number, dtype_or_number, is_device, truth
from .ufunc import BY_KIND, complex_divide

_none = np._NoValue


def clip(xp: Any, /, a: Any, a_min: Any = _none, a_max: Any = _none, out: Any = None, *, min: Any = _none,
         max: Any = _none, **kwargs: Any) -> Any:
    a = array(xp, a)
    if kwargs or (a_min is _none) != (a_max is _none) and (min is _none and max is _none):
        raise NotOnDevice("clip with other keywords")
    if (min is not _none or max is not _none) and (a_min is not _none or a_max is not _none):
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    low, high = (a_min, a_max) if min is _none and max is _none else (min, max)
    bounds = [None if b is _none or b is None else array_or_number(xp, b) for b in (low, high)]
    given = [b for b in bounds if b is not None]
    dtype = np.result_type(a.dtype, *map(dtype_or_number, given))
    # A Python integer beyond the dtype clips at its limits; NumPy knows by its value.
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        refuse(any(type(b) is int and not limits.min <= b <= limits.max for b in given), "a bound beyond the dtype")
    if dtype.kind in "bc":
        raise NotOnDevice(f"clip of {dtype}, whose NaNs NumPy orders in its own way")
    result = a.astype(dtype, copy=False)
    for bound, function in zip(bounds, (xp.maximum, xp.minimum)):
        if bound is not None:
            result = function(result, dtype.type(bound) if type(bound) in WEAK
                              else bound.astype(dtype, copy=False))
    return result if given else a.copy()


def round_(xp: Any, /, a: Any, decimals: int = 0, out: Any = None) -> Any:
    a = array(xp, a)
    refuse(a.dtype.kind == "b", "rounding of bool")
    return xp.around(a, decimals)


def fix(xp: Any, /, x: Any, out: Any = None) -> Any:
    x = array(xp, x)
    with warnings.catch_warnings():     # NumPy 2.5 deprecates np.fix; its warning is for the caller
        warnings.simplefilter("ignore", DeprecationWarning)
        dtype = answer_dtype(np.fix, (x.dtype,))
    if hasattr(np, "fix") and np.lib.NumpyVersion(np.__version__) >= "2.5.0":
        warnings.warn("numpy.fix is deprecated. Use numpy.trunc instead, which is faster and follows the Array API "
                      "standard.", DeprecationWarning, stacklevel=6)
    return xp.trunc(x.astype(dtype, copy=False)) if dtype.kind == "f" else x.copy()


def _in_float(x: Any, dtype: np.dtype) -> Any:
    return x.astype(dtype, copy=False)


def angle(xp: Any, /, z: Any, deg: bool = False) -> Any:
    z = array(xp, z)
    dtype = answer_dtype(np.angle, (z.dtype,))
    if z.dtype.kind == "c":
        result = xp.arctan2(z.imag, z.real)
    else:
        z = _in_float(z, dtype)
        result = xp.arctan2(xp.zeros((), dtype), z)
    return (result * dtype.type(180 / np.pi) if deg else result).astype(dtype, copy=False)


def sinc(xp: Any, /, x: Any) -> Any:
    x = array(xp, x)
    dtype = answer_dtype(np.sinc, (x.dtype,))
    y = _in_float(x, dtype) * dtype.type(np.pi)
    tiny = np.finfo(dtype).eps if dtype.kind == "f" else 1e-20
    y = xp.where(y == 0, dtype.type(tiny), y)
    return xp.sin(y) / y


def i0(xp: Any, /, x: Any) -> Any:
    x = array(xp, x)
    wrong(x.dtype.kind == "c", "i0 not supported for complex values")
    return xp.i0(x if x.dtype.kind == "f" else x.astype(float))


def _weakly(xp: Any, a: Any, other: Any) -> Any:
    """`a` as an array; a Python number in the precision of the floating-point array that it meets (NEP 50)."""
    dtype = getattr(other, "dtype", None)
    if type(a) in (int, float) and dtype is not None and dtype.kind in "fc":       # np.float64 is no weak number
        if not math.isinf(a) and abs(a) > float(np.finfo(dtype).max):
            raise NotOnDevice(f"a number that {dtype} can't hold")
        return array(xp, a, dtype)
    return array(xp, a)


def isclose(xp: Any, /, a: Any, b: Any, rtol: float = 1.0e-5, atol: float = 1.0e-8, equal_nan: bool = False) -> Any:
    if any(isinstance(t, (int, float)) and not np.isfinite(t) for t in (rtol, atol)):
        raise NotOnDevice("a tolerance that is not finite")
    a, b = _weakly(xp, a, b), _weakly(xp, b, a)
    rtol, atol = (t if type(t) in (int, float) else array(xp, t) for t in (rtol, atol))
    # CuPy compares small integers in half precision.
    a, b = (v.astype(float) if v.dtype.kind in "iub" else v for v in (a, b))
    if np.result_type(a.dtype, b.dtype) == np.float16:
        a, b = a.astype(np.float32), b.astype(np.float32)
    near = xp.abs(a - b) <= atol + rtol * xp.abs(b)
    result = (near & xp.isfinite(b)) | (a == b)
    return result | (xp.isnan(a) & xp.isnan(b)) if equal_nan else result


def allclose(xp: Any, /, a: Any, b: Any, rtol: float = 1.0e-5, atol: float = 1.0e-8, equal_nan: bool = False) -> bool:
    return truth(isclose(xp, a, b, rtol, atol, equal_nan).all())


def array_equal(xp: Any, /, a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    a1, a2 = array(xp, a1), array(xp, a2)
    if a1.shape != a2.shape:
        return False
    same = a1 == a2
    if equal_nan and a1.dtype.kind in "fc" and a2.dtype.kind in "fc":
        same = same | (xp.isnan(a1) & xp.isnan(a2))
    return truth(same.all())


def array_equiv(xp: Any, /, a1: Any, a2: Any) -> bool:
    a1, a2 = array(xp, a1), array(xp, a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return False
    return truth((a1 == a2).all())


def _infinite(name: str) -> Any:
    def adapter(xp, /, x, out=None):
        x = array(xp, x)
        wrong(x.dtype.kind == "c", "This operation is not supported for complex values because it would be ambiguous.")
        if x.dtype.kind in "biu":
            return xp.zeros(x.shape, bool)
        return x == x.dtype.type("inf" if name == "isposinf" else "-inf")

    return adapter


def _complex_test(name: str) -> Any:
    def adapter(xp, /, x):
        x = array(xp, x)
        if x.dtype.kind != "c":
            return xp.full(x.shape, name == "isreal", bool)
        if name == "isreal":
            return x.imag == 0
        return memory_order.after(devices.current(), "all", x.imag != 0, (x,), {})

    return adapter


def unwrap(xp: Any, /, p: Any, discont: Any = None, axis: int = -1, *, period: Any = 6.283185307179586) -> Any:
    p = array(xp, p)
    if p.ndim == 0 or is_device(xp, discont) or is_device(xp, period):
        raise NotOnDevice("arrays in place of numbers, or a number in place of an array")
    dtype = np.result_type(p.dtype, period)
    refuse(p.dtype.kind in "b", "unwrapping of bool")
    refuse(dtype.kind in "iu" and dtype != p.dtype, "integers of another dtype than their period")
    return xp.unwrap(p, discont, axis, period=period)


def interp(xp_: Any, /, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, xs, ys = array(xp_, x), array(xp_, xp), array(xp_, fp)
    if xs.ndim != 1 or ys.ndim != 1 or xs.size != ys.size or x.dtype.kind == "c" or xs.dtype.kind == "c":
        raise NotOnDevice("points of other than one dimension, or complex ones")
    x, xs = x.astype(float, copy=False), xs.astype(float, copy=False)
    ys = ys.astype(complex if ys.dtype.kind == "c" else float, copy=False)
    if not x.flags.c_contiguous:
        x = xp_.ascontiguousarray(x)
    if ys.dtype.kind != "c" and any(isinstance(v, complex) for v in (left, right)):
        raise TypeError("Cannot cast from complex to float64")
    left, right = (v if v is None or isinstance(v, (int, float, complex)) and not is_negative_zero(v) else array(xp_, v)
                   for v in (left, right))
    refuse(is_device(xp_, period), "an array as the period")
    return xp_.interp(x, xp_.ascontiguousarray(xs), xp_.ascontiguousarray(ys), left, right, period)


# -- functions whose domain is left for the complex plane (numpy.emath) ---------------------------

def _to_complex(x: Any) -> Any:
    small = x.dtype.kind in "biu" and x.dtype.itemsize < 4 and x.dtype.kind != "b" or x.dtype in (
        np.dtype(np.float32), np.dtype(np.complex64))
    return x.astype(np.complex64 if small else np.complex128)


def _leaves(xp: Any, x: Any, beyond_one: bool) -> bool:
    if x.dtype.kind not in "if" and not (beyond_one and x.dtype.kind == "u"):
        return False
    return truth(((xp.abs(x) > 1) if beyond_one else (x < 0)).any(), "the domain of the function")


def _extended(name: str, beyond_one: bool = False) -> Any:
    def adapter(xp, /, x):
        x = array(xp, x)
        refuse(x.dtype.kind == "b", "bool")
        dtype = answer_dtype(getattr(np, name), (x.dtype,))
        if _leaves(xp, x, beyond_one):
            x = _to_complex(x)
            dtype = x.dtype
        function = BY_KIND.get((getattr(np, name), dtype.kind))
        x = x.astype(dtype, copy=False)
        return getattr(xp, name)(x) if function is None else function(xp, x)

    return adapter


def logn(xp: Any, /, n: Any, x: Any) -> Any:
    log = _extended("log")
    x, n = log(xp, x), log(xp, n)
    dtype = np.result_type(x.dtype, n.dtype)
    return complex_divide(xp, x.astype(dtype), n.astype(dtype)) if dtype.kind == "c" else x / n


def power(xp: Any, /, x: Any, p: Any) -> Any:
    x, p = array(xp, x), array(xp, p)
    refuse(x.dtype.kind == "b" or p.dtype.kind == "b", "bool")
    if _leaves(xp, x, False):
        x = _to_complex(x)
    if p.dtype.kind != "c" and _leaves(xp, p, False):
        p = p * 1.0
    dtype = np.result_type(x.dtype, p.dtype)
    return xp.power(x.astype(dtype, copy=False), p.astype(dtype, copy=False))


ADAPTED: dict[Any, Any] = {
    np.clip: clip, np.round: round_, np.around: round_, np.angle: angle, np.sinc: sinc, np.i0: i0,
    np.isclose: isclose, np.allclose: allclose, np.array_equal: array_equal, np.array_equiv: array_equiv,
    np.isposinf: _infinite("isposinf"), np.isneginf: _infinite("isneginf"),
    np.isreal: _complex_test("isreal"), np.iscomplex: _complex_test("iscomplex"),
    np.unwrap: unwrap, np.interp: interp,
    np.emath.sqrt: _extended("sqrt"), np.emath.log: _extended("log"), np.emath.log2: _extended("log2"),
    np.emath.log10: _extended("log10"), np.emath.arccos: _extended("arccos", True),
    np.emath.arcsin: _extended("arcsin", True), np.emath.arctanh: _extended("arctanh", True),
    np.emath.logn: logn, np.emath.power: power,
}
with contextlib.suppress(AttributeError):   # np.fix is deprecated and will go
    ADAPTED[np.fix] = fix
