"""Where CuPy's functions answer otherwise than NumPy's: wrappers for the namespace of the simulated device."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np


def as_cufft(path: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Sizes may be floats, half precision is single, and real arrays in neither C nor F order are misread."""
    if path in ("fft.fftfreq", "fft.rfftfreq", "fft.fftshift", "fft.ifftshift"):
        return function
    misreads = path in ("fft.rfft2", "fft.rfftn")

    @functools.wraps(function)
    def call(a: np.ndarray, n: Any = None, *rest: Any, **options: Any) -> np.ndarray:
        key = "s" if path[-1] in "2n" else "n"
        given = options.pop(key, n)
        if given is not None:
            given = [int(one) for one in given] if key == "s" else int(given)
        if misreads and a.dtype.kind in "iu" and not (a.flags.c_contiguous or a.flags.f_contiguous):
            a = a.ravel("F").reshape(a.shape)
        return function(a.astype(np.float32) if a.dtype == np.float16 else a, given, *rest, **options)

    return call


def over_several_axes(path: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The position of an extreme is that in the axes of a tuple, taken as one."""

    @functools.wraps(function)
    def call(a: np.ndarray, axis: Any = None, *rest: Any, **options: Any) -> Any:
        if isinstance(axis, tuple):
            axes = [one % a.ndim for one in axis]
            kept = [one for one in range(a.ndim) if one not in axes]
            length = math.prod(a.shape[one] for one in axes)
            a = a.transpose(*kept, *axes).reshape([*(a.shape[one] for one in kept), length])
            axis = -1
        return function(a, axis, *rest, **options)

    return call


def along_own_axes(path: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """What has no dimensions has no axis 0, although NumPy reduces it along one."""

    @functools.wraps(function)
    def call(a: np.ndarray, axis: Any = None, *rest: Any, **options: Any) -> Any:
        if a.ndim == 0 and axis is not None and not isinstance(axis, tuple):
            raise np.exceptions.AxisError(operator.index(axis), 0)
        return function(a, axis, *rest, **options)

    return call


def _after(function: np.ufunc, mend: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose result `mend` looks at: None, or what CuPy gives in its place."""

    def call(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        if result.dtype == np.float64:  # the everyday case, in which all of them agree
            return result
        mended = mend(result, *args)
        if mended is None:
            return result
        out = args[function.nin :] or options.get("out")
        if not out:
            return mended
        target = out[0] if isinstance(out, tuple) else out
        np.copyto(target, mended, casting="unsafe", where=options.get("where", True))
        return target

    return call


def _quotient(result: Any, x: Any, y: Any, *out: Any) -> Any:
    """Complex numbers divided by zero are NaN."""
    return np.where(np.equal(y, 0), complex(np.nan, np.nan), result) if result.dtype.kind == "c" else None


def _binary_logarithm(result: Any, x: Any, *out: Any) -> Any:
    """The logarithm is divided by a complex number, which makes NaN of the imaginary part beside an infinity."""
    if result.dtype.kind != "c":
        return None
    mended = np.array(result)
    mended.imag = np.where(np.isinf(mended.real), np.nan, mended.imag)
    return mended


def _reciprocal(result: Any, x: Any, *out: Any) -> Any:
    """The reciprocal of the integer 0 is 0."""
    return np.where(np.equal(x, 0), 0, result).astype(result.dtype) if result.dtype.kind in "iu" else None


def _neighbour(result: Any, x: Any, y: Any, *out: Any) -> Any:
    """There are no subnormal numbers of single precision."""
    if result.dtype != np.float32:
        return None
    least = np.finfo(np.float32).smallest_normal
    return np.where((result != 0) & (np.abs(result) < least), np.copysign(least, result), result)


UFUNCS: dict[str, Callable[..., Any]] = {
    "divide": _after(np.divide, _quotient), "true_divide": _after(np.divide, _quotient),
    "log2": _after(np.log2, _binary_logarithm), "reciprocal": _after(np.reciprocal, _reciprocal),
    "nextafter": _after(np.nextafter, _neighbour),
}  # fmt: skip
"""Ufuncs with other values than NumPy's."""

FUNCTIONS: dict[str, Callable[[str, Callable[..., Any]], Callable[..., Any]]] = {
    "fft": as_cufft, **dict.fromkeys(("argmax", "argmin"), over_several_axes),
    **dict.fromkeys(("sum", "prod", "max", "min", "amax", "amin", "any", "all"), along_own_axes),
}  # fmt: skip
"""What is put around NumPy's functions, by module or name."""

_IN_C_ORDER = frozenset((
    "where clip round around isclose angle nan_to_num diff sum prod max min amax amin any all mean std var nansum "
    "nanprod nanmax nanmin nanmean nanstd nanvar concatenate").split())
_IN_SOME_ORDER = frozenset((
    "cumsum cumprod nancumsum nancumprod sort argsort partition argpartition").split())


def in_device_order(path: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results lie in memory as CuPy's do: not as NumPy's, which follow the arguments.

    Where CuPy's follow the axis that it works along, the first axis comes to lie innermost here.
    """
    if path in _IN_C_ORDER:
        place = 0
    elif path in _IN_SOME_ORDER or path.startswith("fft.") and path != "fft.fftshift":
        place = -1
    else:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if type(result) is not np.ndarray or result.ndim < 2 or kwargs.get("out") is not None:
            return result
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(result, 0, place)), place, 0)

    return call
