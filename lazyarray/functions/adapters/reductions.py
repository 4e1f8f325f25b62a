"""Sums, products, extremes, means and their NaN-ignoring kin.

CuPy's reductions know neither ``where=`` nor ``initial=`` (nor ``correction=``, ``mean=``), name the third argument of
argmax otherwise, and round the mean of float16 before it goes into the variance.
"""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...errors import NotOnDevice, refuse, wrong
from ...storage.views import as_dtype
from ..kinds import WEAK
from .common import (
    array,
    axis_of,
    count_of,
    filled,
    integer,
    intp,
    intp_result,
    mask,
    reduced_shape,
    refuse_negative_zero,
    takes_arrays,
    truth,
)
from .ufunc import complex_divide

_none = np._NoValue


def _axis(a: Any, axis: Any) -> Any:
    """`axis` of a ufunc's reduction: a number may be reduced along its axis 0, although it has none."""
    axis = axis_of(axis)
    return None if a.ndim == 0 and axis in (0, -1) else axis


def _chosen(xp: Any, a: Any, where: Any, fill: Any) -> Any:
    """`a` with `fill` where the mask is false."""
    chosen = mask(xp, where, a.shape)
    return a if chosen is None else xp.where(chosen, a, a.dtype.type(fill))


def _keep(keepdims: Any) -> bool:
    refuse(not isinstance(keepdims, int) and keepdims is not _none, "a keepdims= that is no integer")
    return keepdims is not _none and bool(keepdims)


def _given(initial: Any) -> bool:
    return initial is not _none and initial is not None


def _start(initial: Any, dtype: np.dtype) -> Any:
    """`initial=` as a scalar of `dtype`; what NumPy would convert in an unusual way goes to the host."""
    refuse(not isinstance(initial, (bool, int, float, complex, np.number, np.bool_)), "initial= of other than a number")
    refuse(np.result_type(dtype, initial) != dtype, "an initial= of another dtype")
    return dtype.type(initial)


def _clean(xp: Any, a: Any, fill: Any) -> Any:
    """`a` with `fill` in place of NaN."""
    return xp.where(xp.isnan(a), a.dtype.type(fill), a) if a.dtype.kind in "fc" else a


def _accumulated(a: Any, dtype: Any) -> np.dtype | None:
    """`dtype=` of a sum, as far as the device follows NumPy."""
    if dtype is None:
        return None
    refuse(type(dtype) is type(a), "an array as dtype=")
    dtype = as_dtype(dtype)
    if dtype.kind not in "iufc" or (a.dtype.kind == "c" and dtype.kind != "c") or not dtype.isnative:
        raise NotOnDevice(f"a sum of {a.dtype} in {dtype}")
    return dtype


def _total(name: str, neutral: int, nan: bool = False) -> Any:
    def adapter(xp, /, a, axis=None, dtype=None, out=None, keepdims=_none, initial=_none, where=_none):
        a = array(xp, a)
        if nan:
            a = _clean(xp, a, neutral)
        chosen = _chosen(xp, a, where, neutral)
        result = getattr(xp, name)(chosen, axis=_axis(a, axis), dtype=_accumulated(a, dtype), keepdims=_keep(keepdims))
        if _given(initial):
            start = _start(initial, result.dtype)
            if name == "sum":
                refuse_negative_zero(start)
            result = result + start if name == "sum" else result * start
        if name == "prod" and (chosen is not a or _given(initial)):
            finite_product(xp, result)
        return result

    return adapter


def finite_product(xp: Any, product: Any) -> None:
    """Refuse a complex product that overflowed or met an infinity.

    One more factor of 1 for what is masked, or the initial value in another place, would make other NaNs of it.
    """
    if product.dtype.kind == "c" and not truth(xp.isfinite(product).all(), "finite-value check"):
        raise NotOnDevice("complex infinities are multiplied under a mask or from an initial value")


def _scan(name: str, neutral: int) -> Any:
    def adapter(xp, /, a, axis=None, dtype=None, out=None):
        a = array(xp, a)
        return getattr(xp, name)(_clean(xp, a, neutral), axis=axis, dtype=_accumulated(a, dtype))

    return adapter


def _extreme(name: str, combine: str, nan: bool = False) -> Any:
    worst = "-inf" if combine == "maximum" else "inf"

    def adapter(xp, /, a, axis=None, out=None, keepdims=_none, initial=_none, where=_none):
        a, keepdims = array(xp, a), _keep(keepdims)
        axis = _axis(a, axis)
        function = getattr(xp, name)
        refuse(nan and a.dtype.kind == "c", "complex numbers with NaN have no order that the device follows")
        if not _given(initial):
            refuse(mask(xp, where, a.shape) is not None, "where= without initial=")
            if not nan or a.dtype.kind != "f":
                return function(a, axis=axis, keepdims=keepdims)
            # CuPy's nanmax waits for its own check too; this one gives the warning at the user's line.
            missing = xp.isnan(a)
            result = function(xp.where(missing, a.dtype.type(worst), a), axis=axis, keepdims=keepdims)
            empty = missing.all(axis=axis, keepdims=keepdims)
            if truth(empty.any(), "all-NaN check"):
                warn("All-NaN slice encountered")
                result = xp.where(empty, a.dtype.type("nan"), result)
            return result
        start = _start(initial, a.dtype)
        if nan:
            a = _clean(xp, a, worst)
        a = _chosen(xp, a, where, start)
        if count_of(a.shape, axis) == 0:
            return filled(xp, reduced_shape(a.shape, axis, keepdims), start, a.dtype)
        return getattr(xp, combine)(function(a, axis=axis, keepdims=keepdims), start)

    return adapter


def _truth(name: str, neutral: bool) -> Any:
    def adapter(xp, /, a, axis=None, out=None, keepdims=_none, *, where=_none):
        a = array(xp, a)
        return getattr(xp, name)(_chosen(xp, a, where, neutral), axis=_axis(a, axis), keepdims=_keep(keepdims))

    return adapter


def _position(name: str, nan: bool = False) -> Any:
    fill = "-inf" if name == "argmax" else "inf"

    def adapter(xp, /, a, axis=None, out=None, *, keepdims=_none):
        a, keepdims = array(xp, a), _keep(keepdims)
        axis = None if axis is None else integer(axis)
        if nan and a.dtype.kind in "fc":
            refuse(a.dtype.kind == "c", "complex numbers with NaN have no order that the device follows")
            missing = xp.isnan(a)
            wrong(a.size == 0 or truth(missing.all(axis=axis).any(), "all-NaN check"), "All-NaN slice encountered")
            filled = xp.where(missing, a.dtype.type(fill), a)
            # A slice of NaN and infinities of the filling sign only: the first number, not the first NaN.
            found = getattr(xp, name)(filled, axis=axis, keepdims=True)
            worst = ~missing & (filled == a.dtype.type(fill))
            first = xp.argmax(worst, axis=axis, keepdims=True)
            extreme = (xp.max if name == "argmax" else xp.min)(filled, axis=axis, keepdims=True)
            found = xp.where(extreme == a.dtype.type(fill), first, found)
            if not keepdims:
                found = found.reshape(() if axis is None else reduced_shape(a.shape, axis, False))
            return intp_result(found)
        return intp_result(getattr(xp, name)(a, axis=axis, keepdims=keepdims))

    return adapter


def count_nonzero(xp: Any, /, a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = array(xp, a)
    return intp_result(xp.sum(a != 0, axis=axis_of(axis), dtype=intp, keepdims=bool(keepdims)))


def ptp(xp: Any, /, a: Any, axis: Any = None, out: Any = None, keepdims: Any = _none) -> Any:
    a, axis, keepdims = array(xp, a), axis_of(axis), _keep(keepdims)
    wrong(a.dtype.kind == "b", "numpy boolean subtract is not supported")
    return xp.max(a, axis=axis, keepdims=keepdims) - xp.min(a, axis=axis, keepdims=keepdims)


# -- means ---------------------------------------------------------------------------------------

def _working(a: Any, dtype: Any) -> tuple[np.dtype, np.dtype]:
    """dtypes to compute a mean in, and to give it in."""
    if dtype is not None:
        refuse(type(dtype) is type(a), "an array as dtype=")
        dtype = np.dtype(dtype)
        if dtype.kind not in "fc" or (a.dtype.kind == "c" and dtype.kind != "c") or not dtype.isnative:
            raise NotOnDevice(f"a mean of {a.dtype} in {dtype}")
        return dtype, dtype
    if a.dtype.kind in "biu":
        return np.dtype(float), np.dtype(float)
    if a.dtype == np.float16:
        return np.dtype(np.float32), a.dtype
    return a.dtype, a.dtype


def mean(xp: Any, /, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _none, *,
         where: Any = _none) -> Any:
    a, axis, keepdims = array(xp, a), axis_of(axis), _keep(keepdims)
    work, result = _working(a, dtype)
    chosen = mask(xp, where, a.shape)
    refuse(count_of(a.shape, axis) == 0, "the mean of nothing")
    if chosen is None:
        return xp.mean(a, axis=axis, dtype=work, keepdims=keepdims).astype(result, copy=False)
    count = xp.sum(chosen, axis=axis, keepdims=keepdims)
    refuse(truth((count == 0).any(), "the mean of nothing"), "the mean of nothing")
    total = xp.sum(xp.where(chosen, a, a.dtype.type(0)), axis=axis, dtype=work, keepdims=keepdims)
    return (total / count.astype(work)).astype(result, copy=False)


def _squares(xp: Any, d: Any) -> Any:
    return d.real * d.real + d.imag * d.imag if d.dtype.kind == "c" else d * d


def _freedom(ddof: Any, correction: Any) -> Any:
    if correction is _none:
        return ddof
    wrong(ddof != 0, "ddof and correction can't be provided simultaneously.")
    return correction


def _given_mean(xp: Any, a: Any, mean: Any) -> Any:
    """What ``mean=`` says; NumPy judges what does not broadcast to the shape of the array."""
    mean = array(xp, mean)
    refuse(np.broadcast_shapes(a.shape, mean.shape) != a.shape, "a mean of another shape")
    return mean


def _variance(xp: Any, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any) -> Any:
    work, result = _working(a, dtype)
    if a.dtype.kind == "c":
        if dtype is None:
            result = np.dtype(result.char.lower())
    elif work.kind == "c":
        raise NotOnDevice("a variance of real numbers in complex ones")
    chosen = mask(xp, where, a.shape)
    refuse(chosen is None and count_of(a.shape, axis) - ddof <= 0, "a variance without degrees of freedom")
    x = a.astype(work, copy=False)
    if chosen is None and mean is _none:
        return xp.var(x, axis=axis, ddof=ddof, keepdims=keepdims), result
    if mean is not _none and a.dtype.char not in "fdFD":
        raise NotOnDevice(f"a variance of {a.dtype} around a given mean")
    zero = work.type(0)
    count = count_of(a.shape, axis) if chosen is None else xp.sum(chosen, axis=axis, keepdims=True)
    if mean is _none:
        mean = xp.sum(xp.where(chosen, x, zero), axis=axis, keepdims=True) / count.astype(result)
    else:
        given = mean if type(mean) in WEAK else array(xp, mean).dtype
        refuse(np.result_type(a.dtype, given) != a.dtype, "a mean of another dtype, which becomes that of the result")
        mean = _given_mean(xp, a, mean)
    squares = _squares(xp, (x - mean).astype(work, copy=False))
    if chosen is None:
        return xp.sum(squares, axis=axis, keepdims=keepdims) / squares.dtype.type(count - ddof), result
    refuse(truth((count - ddof <= 0).any(), "degrees of freedom"), "a variance without degrees of freedom")
    total = xp.sum(xp.where(chosen, squares, squares.dtype.type(0)), axis=axis, keepdims=True)
    spread = total / (count - ddof).astype(total.dtype)
    return spread if keepdims else spread.reshape(reduced_shape(a.shape, axis, False)), result


def _given_as(xp: Any, spread: Any, result: np.dtype) -> Any:
    """A variance in the dtype of the result. NumPy divides a complex one, whose parts both become NaN."""
    spread = spread.astype(result, copy=False)
    return complex_divide(xp, spread, result.type(1)) if result.kind == "c" else spread


def var(xp: Any, /, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
        keepdims: Any = _none, *, where: Any = _none, mean: Any = _none, correction: Any = _none) -> Any:
    spread, result = _variance(xp, array(xp, a), axis_of(axis), dtype, _freedom(ddof, correction), _keep(keepdims),
                               where, mean)
    return _given_as(xp, spread, result)


def std(xp: Any, /, a: Any, *args: Any, **kwargs: Any) -> Any:
    return xp.sqrt(var(xp, a, *args, **kwargs))     # in half precision the variance may overflow before


def average(xp: Any, /, a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *,
            keepdims: Any = _none) -> Any:
    a = array(xp, a)
    axis, keepdims = tuple(axis) if isinstance(axis, list) else axis, _keep(keepdims)
    if weights is None:
        refuse(a.size == 0, "the mean of nothing")
        result = mean(xp, a, axis, keepdims=keepdims)
        scale = xp.full(result.shape, count_of(a.shape, axis), result.dtype)
        return (result, scale) if returned else result
    weights = array(xp, weights)
    if a.shape != weights.shape:
        wrong(axis is None, "Axis must be specified when shapes of a and weights differ.")
        axes = [ax % a.ndim for ax in (axis if isinstance(axis, tuple) else (axis,))]
        refuse(weights.shape != tuple(a.shape[ax] for ax in axes) or axes != sorted(axes), "weights of another shape")
        weights = weights.reshape([n if i in axes else 1 for i, n in enumerate(a.shape)])
    dtype = np.result_type(a.dtype, weights.dtype)
    if a.dtype.kind in "biu":
        dtype = np.result_type(dtype, float)
    axis = axis_of(axis)
    scale = xp.sum(weights, axis=axis, dtype=dtype, keepdims=keepdims)
    if truth((scale == 0).any(), "weights that sum to zero"):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    product = a.astype(dtype, copy=False) * weights.astype(dtype, copy=False)
    result = xp.sum(product, axis=axis, keepdims=keepdims) / scale
    return (result, xp.broadcast_to(scale, result.shape).copy()) if returned else result


# -- means without NaN ---------------------------------------------------------------------------

def warn(message: str) -> None:
    # From here through the adapter, the dispatcher and NumPy's own to the caller of the NumPy function.
    warnings.warn(message, RuntimeWarning, stacklevel=7)


def nanmean(xp: Any, /, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _none, *,
            where: Any = _none) -> Any:
    a = array(xp, a)
    if a.dtype.kind not in "fc":
        return mean(xp, a, axis, dtype, None, keepdims, where=where)
    axis, keepdims = axis_of(axis), _keep(keepdims)
    _, result = _working(a, dtype)
    total, count = _present(xp, a, axis, result, where)     # unlike `mean`, which adds up half precision in single
    if truth((count == 0).any(), "a slice of NaN"):
        warn("Mean of empty slice")
    average = total / count.astype(total.dtype)
    return average if keepdims else average.reshape(reduced_shape(a.shape, axis, False))


def _present(xp: Any, a: Any, axis: Any, work: Any, where: Any) -> Any:
    """Sum and count of what is not NaN, with all axes kept."""
    kept = ~xp.isnan(a)
    chosen = mask(xp, where, a.shape)
    if chosen is not None:
        kept &= chosen
    total = xp.sum(xp.where(kept, a, a.dtype.type(0)), axis=axis, dtype=work, keepdims=True)
    return total, xp.sum(kept, axis=axis, keepdims=True)


def _nan_variance(xp: Any, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any) -> Any:
    _, result = _working(a, dtype)
    total, count = _present(xp, a, axis, result, where)
    if a.dtype.kind == "c" and dtype is None:
        result = np.dtype(result.char.lower())
    centre = total / count.astype(result) if mean is _none else _given_mean(xp, a, mean)
    kept = ~xp.isnan(a)
    chosen = mask(xp, where, a.shape)
    if chosen is not None:
        kept &= chosen
    squares = _squares(xp, xp.where(kept, a - centre, 0).astype(a.dtype, copy=False))    # NumPy's are in place
    freedom = count - ddof
    bad = freedom <= 0
    if truth(bad.any(), "degrees of freedom"):
        warn("Degrees of freedom <= 0 for slice.")
    total = xp.sum(squares, axis=axis, dtype=result, keepdims=True)
    spread = xp.where(bad, total.dtype.type("nan"), total / xp.where(bad, 1, freedom).astype(total.dtype))
    return spread if keepdims else spread.reshape(reduced_shape(a.shape, axis, False))


def _nan_spread(name: str, plain: Any) -> Any:
    def adapter(xp, /, a, axis=None, dtype=None, out=None, ddof=0, keepdims=_none, *, where=_none, mean=_none,
                correction=_none):
        a = array(xp, a)
        if a.dtype.kind not in "fc":
            return plain(xp, a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
        spread = _nan_variance(xp, a, axis_of(axis), dtype, _freedom(ddof, correction), _keep(keepdims), where, mean)
        return xp.sqrt(spread) if name == "std" else spread

    return adapter


ADAPTED: dict[Any, Any] = {
    np.all: _truth("all", True), np.any: _truth("any", False),
    np.sum: _total("sum", 0), np.prod: _total("prod", 1),
    np.nansum: _total("sum", 0, nan=True), np.nanprod: _total("prod", 1, nan=True),
    **{getattr(np, n): takes_arrays(n, x) for n, x in (
        ("cumsum", "a"), ("cumprod", "a"), ("cumulative_sum", "x"), ("cumulative_prod", "x")) if hasattr(np, n)},
    np.nancumsum: _scan("cumsum", 0), np.nancumprod: _scan("cumprod", 1),
    np.max: _extreme("max", "maximum"), np.min: _extreme("min", "minimum"),
    np.amax: _extreme("max", "maximum"), np.amin: _extreme("min", "minimum"),
    np.nanmax: _extreme("max", "maximum", nan=True), np.nanmin: _extreme("min", "minimum", nan=True),
    np.argmax: _position("argmax"), np.argmin: _position("argmin"),
    np.nanargmax: _position("argmax", nan=True), np.nanargmin: _position("argmin", nan=True),
    np.count_nonzero: count_nonzero, np.ptp: ptp,
    np.mean: mean, np.var: var, np.std: std, np.average: average,
    np.nanmean: nanmean, np.nanvar: _nan_spread("var", var), np.nanstd: _nan_spread("std", std),
}
