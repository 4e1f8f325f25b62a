"""Sums, products, extremes, means and their NaN-ignoring kin.

CuPy's reductions know neither ``where=`` nor ``initial=`` (nor ``correction=``, ``mean=``), name the third argument of
argmax otherwise, and round the mean of float16 before it goes into the variance.
"""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...devices.operations import position
from ...errors import NotOnDevice, refuse, wrong
from ...storage.views import as_dtype
from ..index_bounds import FETCHED
from ..kinds import WEAK
from .common import (
    array,
    axis_of,
    count_of,
    fetch,
    filled,
    integer,
    intp,
    intp_result,
    is_any,
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
    refuse(not isinstance(keepdims, int) and keepdims is not _none, "keepdims= is not an integer")
    return keepdims is not _none and bool(keepdims)


def _given(initial: Any) -> bool:
    return initial is not _none and initial is not None


def _start(initial: Any, dtype: np.dtype) -> Any:
    """`initial=` as a scalar of `dtype`; what NumPy would convert in an unusual way goes to the host."""
    refuse(not isinstance(initial, (bool, int, float, complex, np.number, np.bool_)), "initial= is not a number")
    refuse(np.result_type(dtype, initial) != dtype, "initial= has another dtype than the result")
    return dtype.type(initial)


def _clean(xp: Any, a: Any, fill: Any) -> Any:
    """`a` with `fill` in place of NaN."""
    return xp.where(xp.isnan(a), a.dtype.type(fill), a) if a.dtype.kind in "fc" else a


def _accumulated(a: Any, dtype: Any) -> np.dtype | None:
    """`dtype=` of a sum, as far as the device follows NumPy."""
    if dtype is None:
        return None
    refuse(type(dtype) is type(a), "dtype= is an array")
    dtype = as_dtype(dtype)
    if dtype.kind not in "iufc" or (a.dtype.kind == "c" and dtype.kind != "c") or not dtype.isnative:
        raise NotOnDevice(f"sums of {a.dtype} in {dtype} are not supported on the device")
    return dtype


#: Kind of small integers -> the dtype of their sums.
_LONGS = {"b": np.dtype(int), "i": np.dtype(int), "u": np.dtype(np.uint)}


def _of_one(name: str, a: Any, dtype: np.dtype | None) -> Any:
    """A "sum" or "prod" of a single number, in a fifth of the time of a reduction. (One is a factor of a product, which
    makes NaN of some complex numbers.)
    """
    found = a.astype(_LONGS.get(a.dtype.kind, a.dtype) if dtype is None else dtype, copy=name != "sum")
    return found + found.dtype.type(0) if name == "sum" else found      # which makes 0.0 of -0.0, as NumPy does


def _total(name: str, neutral: int) -> Any:
    def adapter(xp, /, a, axis=None, dtype=None, out=None, keepdims=_none, initial=_none, where=_none):
        refuse(initial is None, "initial=None, for a reduction without an identity, is not supported on the device")
        a = array(xp, a)
        chosen = _chosen(xp, a, where, neutral)
        axis, dtype, keepdims = _axis(a, axis), _accumulated(a, dtype), _keep(keepdims)
        is_complex = a.dtype.kind == "c" or dtype is not None and dtype.kind == "c"
        if a.ndim == 0 and axis in (None, ()) and (name == "sum" or not is_complex):
            result = _of_one(name, chosen, dtype)
        elif (a.dtype if dtype is None else dtype).char == "e":     # which CUB adds up in half precision, and NumPy not
            chosen = chosen.astype(np.float16, copy=False)
            result = getattr(xp, name)(chosen, axis=axis, dtype=np.dtype("f"), keepdims=keepdims).astype(np.float16)
        else:
            result = getattr(xp, name)(chosen, axis=axis, dtype=dtype, keepdims=keepdims)
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


def _extreme(name: str, combine: str, nan: bool = False) -> Any:
    worst = "-inf" if combine == "maximum" else "inf"

    def adapter(xp, /, a, axis=None, out=None, keepdims=_none, initial=_none, where=_none):
        a, keepdims = array(xp, a), _keep(keepdims)
        axis = _axis(a, axis)
        function = getattr(xp, name)
        refuse(nan and a.dtype.kind == "c", "NaN among complex numbers is ordered differently on the device")
        if not _given(initial):
            refuse(mask(xp, where, a.shape) is not None, "where= without initial= is not supported on the device")
            if a.ndim == 0 and axis in (None, ()) and a.dtype.kind != "c" and not nan:
                return a.copy()
            if not nan or a.dtype.kind != "f":
                return function(a, axis=axis, keepdims=keepdims)
            # CuPy's nanmax waits for its own check too; this one gives the warning at the user's line.
            missing = xp.isnan(a)
            result = function(xp.where(missing, a.dtype.type(worst), a), axis=axis, keepdims=keepdims)
            # Only such a result may be that of a slice that is all NaN.
            small = result.nbytes <= FETCHED
            lowest = a.dtype.type(worst) == (fetch(result, "all-NaN check") if small else result)
            if (np.any(lowest) if small else truth(lowest.any(), "all-NaN check")) and is_any(
                    empty := missing.all(axis=axis, keepdims=keepdims), "all-NaN check"):
                warn("All-NaN slice encountered")
                result = xp.where(empty, a.dtype.type("nan"), result)
            return result
        start = _start(initial, a.dtype)
        if nan:
            refuse(a.dtype.kind == "f" and bool(np.isnan(start)), "NaN as initial= is not supported on the device")
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


def _position(name: str) -> Any:
    def adapter(xp, /, a, axis=None, out=None, *, keepdims=_none):
        a = array(xp, a)
        axis = None if axis is None else integer(axis)
        return intp_result(position(xp, name, a, axis, keepdims=_keep(keepdims)))

    return adapter


def _running(name: str) -> Any:
    def adapter(xp, /, a, axis=None, dtype=None, out=None):
        a = array(xp, a)
        return getattr(xp, name)(a if a.ndim else a.reshape(1), axis, dtype)    # a number has an axis 0 for NumPy

    return adapter


def count_nonzero(xp: Any, /, a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = array(xp, a)
    return intp_result(xp.sum(a != 0, axis=axis_of(axis), dtype=intp, keepdims=bool(keepdims)))


# -- means ---------------------------------------------------------------------------------------

def _working(a: Any, dtype: Any) -> tuple[np.dtype, np.dtype]:
    """dtypes to compute a mean in, and to give it in."""
    if dtype is not None:
        refuse(type(dtype) is type(a), "dtype= is an array")
        dtype = np.dtype(dtype)
        if dtype.kind not in "fc" or (a.dtype.kind == "c" and dtype.kind != "c") or not dtype.isnative:
            raise NotOnDevice(f"means of {a.dtype} in {dtype} are not supported on the device")
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
    refuse(count_of(a.shape, axis) == 0, "mean of an empty slice")
    if chosen is None:
        if a.ndim == 0 and axis is None and work.kind != "c":
            return _of_one("sum", a, work).astype(result, copy=False)
        return xp.mean(a, axis=axis, dtype=work, keepdims=keepdims).astype(result, copy=False)
    count = xp.sum(chosen, axis=axis, keepdims=keepdims)
    refuse(truth((count == 0).any(), "mean of an empty slice"), "mean of an empty slice")
    total = xp.sum(xp.where(chosen, a, a.dtype.type(0)), axis=axis, dtype=work, keepdims=keepdims)
    return (total / count.astype(work)).astype(result, copy=False)


def _squares(d: Any) -> Any:
    return d.real * d.real + d.imag * d.imag if d.dtype.kind == "c" else d * d


def _freedom(ddof: Any, correction: Any) -> Any:
    if correction is _none:
        return ddof
    wrong(ddof != 0, "ddof and correction can't be provided simultaneously.")
    return correction


def _given_mean(xp: Any, a: Any, mean: Any) -> Any:
    """What ``mean=`` says; NumPy judges what does not broadcast to the shape of the array."""
    mean = array(xp, mean)
    refuse(np.broadcast_shapes(a.shape, mean.shape) != a.shape, "mean= has another shape than the reduced array")
    return mean


def _variance(xp: Any, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any) -> Any:
    work, result = _working(a, dtype)
    if a.dtype.kind == "c":
        if dtype is None:
            result = np.dtype(result.char.lower())
    elif work.kind == "c":
        raise NotOnDevice("complex variances of real numbers are not supported on the device")
    chosen = mask(xp, where, a.shape)
    refuse(chosen is None and count_of(a.shape, axis) - ddof <= 0, "no degrees of freedom are left")
    x = a.astype(work, copy=False)
    if chosen is None and mean is _none:
        return xp.var(x, axis=axis, ddof=ddof, keepdims=keepdims), result
    if mean is not _none and a.dtype.kind not in "iu" and a.dtype.char not in "fdFD":
        raise NotOnDevice(f"variances of {a.dtype} around a given mean are not supported on the device")
    zero = work.type(0)
    count = count_of(a.shape, axis) if chosen is None else xp.sum(chosen, axis=axis, keepdims=True)
    if mean is _none:
        mean = xp.sum(xp.where(chosen, x, zero), axis=axis, keepdims=True) / count.astype(result)
    else:
        given = mean if type(mean) in WEAK else array(xp, mean).dtype
        refuse(np.result_type(a.dtype, given) != a.dtype, "mean= has another dtype than the array")
        x, mean = a, _given_mean(xp, a, a.dtype.type(mean) if type(mean) in WEAK else mean)     # integers wrap around
    away = x - mean
    away = away if away.dtype.kind in "iu" else away.astype(work, copy=False)
    squares = _squares(away)
    squares = squares.astype(work) if squares.dtype.kind in "iu" else squares
    if chosen is None:
        return xp.sum(squares, axis=axis, keepdims=keepdims) / squares.dtype.type(count - ddof), result
    refuse(truth((count - ddof <= 0).any(), "degrees of freedom"), "no degrees of freedom are left")
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


# -- means without NaN ---------------------------------------------------------------------------

def warn(message: str) -> None:
    # From here through the adapter, the dispatcher and NumPy's own to the caller of the NumPy function.
    warnings.warn(message, RuntimeWarning, stacklevel=7)


ADAPTED: dict[Any, Any] = {
    np.all: _truth("all", True), np.any: _truth("any", False),
    np.sum: _total("sum", 0), np.prod: _total("prod", 1),
    np.cumsum: _running("cumsum"), np.cumprod: _running("cumprod"),
    **{getattr(np, n): takes_arrays(n, "x") for n in ("cumulative_sum", "cumulative_prod") if hasattr(np, n)},
    np.max: _extreme("max", "maximum"), np.min: _extreme("min", "minimum"),
    np.amax: _extreme("max", "maximum"), np.amin: _extreme("min", "minimum"),
    np.nanmax: _extreme("max", "maximum", nan=True), np.nanmin: _extreme("min", "minimum", nan=True),
    np.argmax: _position("argmax"), np.argmin: _position("argmin"),
    np.count_nonzero: count_nonzero, np.mean: mean, np.var: var, np.std: std,
}
