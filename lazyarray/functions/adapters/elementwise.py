"""Element-wise functions that are no ufuncs, and the comparison of arrays that are broadcast.

CuPy's clip has its own mind about NaN, so it is composed of ufuncs here, as NumPy does it.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ... import devices
from ...devices.base import is_negative_zero
from ...errors import NotOnDevice, refuse, wrong
from ..kinds import WEAK
from .common import array, array_or_number, dtype_or_number, is_device, passable, truth

_none = np._NoValue


def clip(xp: Any, /, a: Any, a_min: Any = _none, a_max: Any = _none, out: Any = None, *, min: Any = _none,
         max: Any = _none, **kwargs: Any) -> Any:
    a = array(xp, a)
    if kwargs or (a_min is _none) != (a_max is _none) and (min is _none and max is _none):
        raise NotOnDevice("these keywords of clip are not supported on the device")
    if (min is not _none or max is not _none) and (a_min is not _none or a_max is not _none):
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    low, high = passable(a.dtype, *((a_min, a_max) if min is _none and max is _none else (min, max)))
    bounds = [None if b is _none or b is None else array_or_number(xp, b) for b in (low, high)]
    given = [b for b in bounds if b is not None]
    dtype = np.result_type(a.dtype, *list(map(dtype_or_number, given)))
    # A Python integer beyond the dtype clips at its limits; NumPy knows by its value.
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        refuse(any(type(b) is int and not limits.min <= b <= limits.max for b in given),
               "a bound is out of range for the dtype")
    if dtype.kind in "bc":
        raise NotOnDevice(f"clip of {dtype} orders NaN differently on the device")
    result = a.astype(dtype, copy=False)
    for bound, function in zip(bounds, (xp.maximum, xp.minimum)):
        if bound is not None:
            result = function(result, dtype.type(bound) if type(bound) in WEAK
                              else bound.astype(dtype, copy=False))
    return result if given else a.copy()


def round_(xp: Any, /, a: Any, decimals: int = 0, out: Any = None) -> Any:
    a = array(xp, a)
    refuse(a.dtype.kind == "b", "rounding of booleans is not supported on the device")
    return xp.around(a, decimals)


def i0(xp: Any, /, x: Any) -> Any:
    x = array(xp, x)
    wrong(x.dtype.kind == "c", "i0 not supported for complex values")
    return xp.i0(x if x.dtype.kind == "f" else x.astype(float))


def array_equiv(xp: Any, /, a1: Any, a2: Any) -> bool:
    a1, a2 = array(xp, a1), array(xp, a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return False
    return truth((a1 == a2).all())


def interp(xp_: Any, /, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, xs, ys = array(xp_, x), array(xp_, xp), array(xp_, fp)
    if xs.ndim != 1 or ys.ndim != 1 or xs.size != ys.size or x.dtype.kind == "c" or xs.dtype.kind == "c":
        raise NotOnDevice("points that are complex or not one-dimensional are not supported on the device")
    x, xs, ys = (array(xp_, x, float), array(xp_, xs, float),
                 array(xp_, ys, complex if ys.dtype.kind == "c" else float))
    if xs.size and ys.dtype.kind == "f" and period is None and all(
            v is None or type(v) in (int, float) and not is_negative_zero(v) for v in (left, right)):
        return devices.current().interpolated(x, xs, ys, left, right)
    x, xs, ys = (a if a._c_contiguous else xp_.ascontiguousarray(a) for a in (x, xs, ys))
    if ys.dtype.kind != "c" and any(isinstance(v, complex) for v in (left, right)):
        raise TypeError("Cannot cast from complex to float64")
    left, right = (v if v is None or isinstance(v, (int, float, complex)) and not is_negative_zero(v) else array(xp_, v)
                   for v in (left, right))
    refuse(is_device(xp_, period), "an array as period= is not supported on the device")
    return xp_.interp(x, xs, ys, left, right, period)


ADAPTED: dict[Any, Any] = {
    np.clip: clip, np.round: round_, np.around: round_, np.i0: i0, np.array_equiv: array_equiv, np.interp: interp,
}
