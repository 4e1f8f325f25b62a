"""Sorting, partitions, medians and quantiles.

Everything is sorted, stably and with NaN last, as NumPy's stable sort does it. CuPy's selection kernels misplace NaN:
they are for what has none.
Only five of NumPy's thirteen quantile methods exist there, and its nanmedian mistakes infinities.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import devices
from ...errors import NotOnDevice, refuse, wrong
from ..index_bounds import FETCHED
from .common import answer_dtype, array, axes_of, axis_index, count_of, fetch, intp, intp_result, truth
from .reductions import warn

_none = np._NoValue


def _plain_order(kind: Any, order: Any, stable: Any, descending: Any) -> None:
    keywords = {} if descending is _none else {"descending": fetch(descending, "descending=")}      # new in NumPy 2.5
    if kind is not None or stable is not None or keywords:
        np.empty(0).sort(kind=kind, stable=fetch(stable, "stable="), **keywords)    # NumPy's error, if these are wrong
    refuse(order is not None or keywords and keywords["descending"],
           "order= and descending= are not supported on the device")


def sort(xp: Any, /, a: Any, axis: int | None = -1, kind: str | None = None, order: Any = None, *,
         stable: bool | None = None, descending: Any = _none) -> Any:
    a = array(xp, a)
    _plain_order(kind, order, stable, descending)
    return _sorted(xp, a, None if axis is None else axis_index(axis, a.ndim))


def _sorted(xp: Any, a: Any, axis: int | None, places: bool = False) -> Any:
    """`a`, all of it or along an axis, in order, or the places of its elements in that order."""
    sort_rows = devices.current().sort_rows
    if axis is None or a.ndim == 1:
        return sort_rows(xp.ascontiguousarray(a.ravel()), places)
    rows = sort_rows(xp.ascontiguousarray(xp.moveaxis(a, axis, -1)), places)
    return xp.ascontiguousarray(xp.moveaxis(rows, -1, axis))


def sort_in_place(xp: Any, array: Any, axis: int) -> None:
    """Sort a device array along an axis."""
    axis = axis_index(axis, array.ndim)
    if axis == array.ndim - 1 and array._c_contiguous:
        devices.current().sort_in_place(array)
    else:
        array[...] = _sorted(xp, array, axis)


def argsort(xp: Any, /, a: Any, axis: int | None = -1, kind: str | None = None, order: Any = None, *,
            stable: bool | None = None, descending: Any = _none) -> Any:
    a = array(xp, a)
    _plain_order(kind, order, stable, descending)
    refuse(a.ndim == 0, "sorting a 0-d array is not supported on the device")
    return intp_result(_sorted(xp, a, None if axis is None else axis_index(axis, a.ndim), True))


#: Elements, of each row and of all, from which on selection is quicker than sorting, for places before the last number:
#: 6.1 and 35 ms for place 1 of columns of 10,000 x 10,000 float32, positions 12 and 43. Of 1,000 x 1,000 sorting takes
#: 0.11 ms, selection 0.11, and that of positions 0.33 (`benchmarks/results/order-cuda-2026-11-30.json`).
_ROW, _MANY, _PLACES = 1 << 10, 1 << 22, 512


def _to_part(xp: Any, a: Any, kth: Any, axis: int | None, kind: str, order: Any) -> tuple[Any, Any]:
    """`a` as a device array, if it and the rest are what a partition takes; and `kth` if the device selects, else None.
    """
    a = array(xp, a)
    refuse(order is not None or kind != "introselect", "order= and kind= are not supported on the device")
    refuse(a.ndim == 0 and axis is not None, "sorting a 0-d array is not supported on the device")
    n = a.size if axis is None else a.shape[axis_index(axis, a.ndim)]
    kth = np.asarray(fetch(kth, "kth"))
    refuse(kth.dtype.kind not in "iu" or kth.ndim > 1, "kth is not an integer or a list of integers")
    refuse(kth.size and (kth.min() < -n or kth.max() >= n), "kth out of bounds")
    if n < _ROW or a.size < _MANY or not kth.size or (kth % n).max() >= _PLACES or a.dtype.char not in "fdbBhHiIlLqQ":
        return a, None
    if a.dtype.kind == "f" and truth(xp.isnan(a).any(), "NaN check"):
        return a, None
    return a, (kth % n).tolist()


def partition(xp: Any, /, a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    a, places = _to_part(xp, a, kth, axis, kind, order)
    return sort(xp, a, axis) if places is None else xp.ascontiguousarray(xp.partition(a, places, axis))


def argpartition(xp: Any, /, a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect",
                 order: Any = None) -> Any:
    a, places = _to_part(xp, a, kth, axis, kind, order)
    if places is None:
        return argsort(xp, a, axis)
    return intp_result(xp.ascontiguousarray(xp.argpartition(a, places, axis)))


def lexsort(xp: Any, /, keys: Any, axis: int = -1) -> Any:
    keys = [array(xp, k) for k in (keys if isinstance(keys, (list, tuple)) else array(xp, keys))]
    refuse(not keys or keys[0].ndim == 0, "0-d keys are not supported on the device")
    axis = axis_index(axis, keys[0].ndim)
    wrong(any(k.shape != keys[0].shape for k in keys), "all keys need to be the same shape")
    found = _sorted(xp, keys[0], axis, True)
    for key in keys[1:]:
        after = _sorted(xp, xp.take_along_axis(key, found, axis), axis, True)
        found = xp.take_along_axis(found, after, axis)
    return intp_result(found)


# -- medians and quantiles -----------------------------------------------------------------------

def _sorted_slices(xp: Any, a: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """`a` sorted along one last axis that joins the axes of `axis`, and the shape with 1 in their places."""
    refuse(a.ndim == 0, "quantiles of 0-d arrays are not supported on the device")
    if axis is None and a.size:
        return _sorted(xp, a, None), (1,) * a.ndim
    axes = axes_of(axis, a.ndim)
    kept = [i for i in range(a.ndim) if i not in axes]
    n = count_of(a.shape, axes)
    refuse(n == 0 or a.size == 0, "median of an empty array")
    slices = a.transpose(*kept, *axes).reshape([a.shape[i] for i in kept] + [n])
    return _sorted(xp, slices, slices.ndim - 1), tuple([1 if i in axes else m for i, m in enumerate(a.shape)])


def _real(xp: Any, a: Any) -> Any:
    a = array(xp, a)
    if a.dtype.kind not in "fiub":
        raise NotOnDevice(f"quantiles of {a.dtype} are not supported on the device")
    return a


def median(xp: Any, /, a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
           keepdims: bool = False) -> Any:
    a = _real(xp, a)
    ordered, ones = _sorted_slices(xp, a, axis)
    result = answer_dtype(np.median, (a.dtype,))
    middle = _middle(xp, ordered, ordered.shape[-1], result)
    if a.dtype.kind == "f":
        # NaN sorts to the end, and one of them is enough.
        middle = xp.where(xp.isnan(ordered[..., -1]), result.type("nan"), middle)
    return middle.reshape(ones) if keepdims else middle


def _middle(xp: Any, ordered: Any, n: int, result: np.dtype) -> Any:
    """The median of the first `n` elements of sorted slices."""
    low = ordered[..., (n - 1) // 2]
    if n % 2 == 0:
        work = np.dtype(np.float32) if result == np.float16 else result
        low = (array(xp, low, work) + array(xp, ordered[..., n // 2], work)) / work.type(2)
    return low.astype(result, copy=False)


def _count_valid(xp: Any, ordered: Any) -> tuple[Any, int]:
    """How many numbers each slice has, and how many slices have none."""
    count = xp.sum(~xp.isnan(ordered), axis=-1)
    empty = int(fetch((count == 0).sum(), "slices that are all NaN"))
    for _ in range(empty):
        warn("All-NaN slice encountered")       # once for each, as in NumPy
    return count, empty


def nanmedian(xp: Any, /, a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
              keepdims: Any = _none) -> Any:
    a = _real(xp, a)
    keepdims = keepdims is not _none and keepdims
    if a.dtype.kind != "f":
        return median(xp, a, axis, keepdims=keepdims)
    ordered, ones = _sorted_slices(xp, a, axis)
    if ordered.ndim == 1:       # the host knows how many there are
        count = int(fetch(xp.sum(~xp.isnan(ordered)), "number of elements that are not NaN"))
        if not count:
            warn("All-NaN slice encountered")
        middle = _middle(xp, ordered, count, a.dtype) if count else ordered[0]
        return middle.reshape(ones) if keepdims else middle
    count, _ = _count_valid(xp, ordered)
    low = xp.take_along_axis(ordered, xp.maximum((count - 1) // 2, 0)[..., None], -1)[..., 0]
    high = xp.take_along_axis(ordered, (count // 2)[..., None] % ordered.shape[-1], -1)[..., 0]
    work = np.dtype(np.float32) if a.dtype == np.float16 else a.dtype
    middle = xp.where(low == high, low.astype(work), (low.astype(work) + high.astype(work)) / work.type(2))
    middle = xp.where(count == 0, work.type("nan"), middle).astype(a.dtype, copy=False)
    return middle.reshape(ones) if keepdims else middle


#: Continuous methods of Hyndman and Fan: (alpha, beta).
_HYNDMAN_FAN = {
    "interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0), "linear": (1, 1),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}
_METHODS = {*_HYNDMAN_FAN, "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "lower", "higher",
            "midpoint", "nearest"}


def _places(ns: Any, n: Any, q: Any, method: str) -> tuple[Any, Any]:
    """Position below each quantile in `n` sorted values, and the weight of the next one (`ns`: NumPy or the device)."""
    if method in ("lower", "higher", "nearest", "midpoint"):
        v = (n - 1) * q
        if method == "midpoint":
            return ns.floor(v), ns.where(v % 1 == 0, 0.0, 0.5)
        return {"lower": ns.floor, "higher": ns.ceil, "nearest": ns.rint}[method](v), v * 0
    if method in ("inverted_cdf", "closest_observation"):
        v = n * q - (1 if method == "inverted_cdf" else 1.5)
        low = ns.floor(v)
        stay = v == low
        if method == "closest_observation":
            stay = stay & (low % 2 == 1)
        return ns.maximum(ns.where(stay, low, low + 1), 0), v * 0
    if method == "averaged_inverted_cdf":
        v = n * q - 1
        low = ns.floor(v)
        return low, ns.where(v == low, 0.5, 1.0)
    alpha, beta = _HYNDMAN_FAN[method]
    v = (n - 1) * q if method == "linear" else n * q + (alpha + q * (1 - alpha - beta)) - 1
    low = ns.floor(v)
    return low, v - low


def _quantile(xp: Any, a: Any, q: Any, axis: Any, method: str, keepdims: Any, weights: Any, scale: Any,
              func: Callable[..., Any]) -> Any:
    a = _real(xp, a)
    refuse(weights is not None or method not in _METHODS, "weighted quantiles")
    own = a.dtype.kind == "f" and _takes_the_arrays_dtype() and (
        type(q) in (int, float) or isinstance(q, float) and scale == 1)
    result = answer_dtype(func, (a.dtype, 0.5 if own else _hashable(q)), method=method)
    q = np.asarray(fetch(q, "the quantiles"), a.dtype if own else None)
    refuse(q.dtype.kind not in "fiub", "the quantiles are not real numbers")
    refuse(q.ndim == 2 and not q.size, "no quantiles, in rows")
    refuse(q.ndim == 2 and isinstance(axis, tuple) and func in (np.nanquantile, np.nanpercentile),
           "quantiles in rows, without NaN and along several axes: NumPy has an order of its own for them")
    q = np.asarray(np.true_divide(q, q.dtype.type(100) if own else 100)) if scale == 100 else q
    wrong(q.ndim > 2 or not (np.all(q >= 0) and np.all(q <= 1)), "Quantiles must be in the range [0, 1]")
    ordered, ones = _sorted_slices(xp, a, axis)
    n = ordered.shape[-1]
    if func in (np.nanquantile, np.nanpercentile) and a.dtype.kind == "f":
        values = _nan_quantiles(xp, ordered, q, method, result)
    else:
        low, weight = _places(np, n, q.ravel(), method)
        # Beyond an end both neighbours are the end itself.
        outside = (low < 0) | (low >= n - 1)
        low = np.clip(low, 0, n - 1).astype(intp)
        high = np.where(outside, low, np.minimum(low + 1, n - 1))
        last = ordered[..., -1] if a.dtype.kind == "f" else None
        if last is not None and result != a.dtype and not q.ndim and not last.ndim and (
                truth(xp.isnan(last), "NaN check")):
            result = a.dtype        # NumPy gives the NaN that it found
        values = xp.empty((q.size, *ordered.shape[:-1]), result)
        for value, i, k, t in zip(values, low, high, weight):
            below = ordered[..., int(i)]
            above = ordered[..., int(k)] if _is_between(method, q) else below
            devices.current().between(below, above, float(t), last, value)
    values = values.reshape(q.shape + (ones if keepdims else ordered.shape[:-1]))
    if q.ndim == 0 or not q.size or func in (np.quantile, np.percentile):
        return values
    # NumPy calls a function for each slice, so that the quantiles of one lie together.
    turned = *range(q.ndim, values.ndim), *range(q.ndim)
    return xp.ascontiguousarray(values.transpose(turned)).transpose(np.argsort(turned).tolist())


@functools.cache
def _takes_the_arrays_dtype() -> bool:
    """Whether this NumPy takes a Python number in the dtype of an array of floats, as it did at first."""
    with np.errstate(all="ignore"):
        return bool(np.isnan(np.quantile(np.array([0.0, np.inf]), 1)))


def _hashable(q: Any) -> Any:
    """What of the quantiles decides the result's dtype: their dtype, or that they are a Python number of a type."""
    if type(q) in (int, float):
        return 1 if type(q) is int else 0.5
    return q.dtype if hasattr(q, "dtype") else np.asarray(q).dtype


def _is_between(method: str, q: np.ndarray) -> bool:
    """Whether NumPy interpolates: not by methods that pick an element, nor where all positions are integers."""
    return method in ("midpoint", "averaged_inverted_cdf") or method in _HYNDMAN_FAN and (
        method != "linear" or q.dtype.kind == "f")


def _nan_quantiles(xp: Any, ordered: Any, q: Any, method: str, result: Any) -> Any:
    """Quantiles of what is not NaN in each slice."""
    count, empty = _count_valid(xp, ordered)
    refuse(empty and result != ordered.dtype, "the dtype of the result depends on which slice is all NaN")
    last = xp.maximum(count - 1, 0)
    between = _is_between(method, q)
    precise = q.dtype if q.dtype.kind == "f" else np.dtype(float)
    values = []
    for one in q.ravel():
        low, t = _places(xp, count.astype(precise), precise.type(one), method)
        outside = (low < 0) | (low >= last)
        low = xp.minimum(xp.maximum(low, 0), last).astype(intp)
        high = xp.where(outside, low, xp.minimum(low + 1, last))
        below, above = (xp.take_along_axis(ordered, i[..., None], -1)[..., 0] for i in (low, high))
        value = below.astype(result, copy=False)
        if between:
            step, near = (above - below).astype(result, copy=False), t.astype(result)
            far = (1 - t).astype(result)
            value = xp.where(t < 0.5, value + step * near, above.astype(result, copy=False) - step * far)
        values.append(xp.where(count == 0, result.type("nan"), value))
    return xp.stack(values) if values else xp.empty((0, *ordered.shape[:-1]), result)


def _quantiles(func: Callable[..., Any], scale: int) -> Any:
    def adapter(xp, /, a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=_none, *,
                weights=None):
        return _quantile(xp, a, q, axis, method, keepdims is not _none and keepdims, weights, scale, func)

    return adapter


# -- places in sorted arrays ---------------------------------------------------------------------

def searchsorted(xp: Any, /, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    a, v = array(xp, a), array(xp, v)
    wrong(side not in ("left", "right"), "search side must be one of 'left' or 'right'")
    refuse(a.ndim != 1, "a is not one-dimensional")
    if sorter is not None:
        sorter = array(xp, sorter)
        refuse(sorter.dtype.kind not in "iu" or not np.can_cast(sorter.dtype, intp) or sorter.shape != a.shape,
               "sorter has the wrong shape or dtype")
        refuse(truth(((sorter < 0) | (sorter >= a.size)).any(), "bounds check"), "sorter is out of range")
        a = xp.take(a, sorter)
    # CuPy compares as C++ does, which takes a negative number for a large one beside unsigned ones.
    if a.dtype != v.dtype:
        dtype = np.result_type(a.dtype, v.dtype)
        a, v = array(xp, a, dtype), array(xp, v, dtype)
    return xp.searchsorted(a, v, side=side)


def order_of_bins(xp: Any, bins: Any) -> bool:
    """Whether the edges of bins rise, not fall. One flag each for rising, falling and NaN, in one wait; CuPy itself
    does not look. The host looks at few bins.
    """
    ns, edges = (np, fetch(bins, "bin-order check")) if bins.nbytes <= FETCHED else (xp, bins)
    before, after = edges[:-1], edges[1:]
    rising, falling, odd = fetch(
        ns.stack([(before <= after).all(), (before >= after).all(), (edges != edges).any()]), "bin-order check")
    refuse(odd, "NaN among the bins")
    if not rising and not falling:
        raise ValueError("bins must be monotonically increasing or decreasing")
    return bool(rising)


def digitize(xp: Any, /, x: Any, bins: Any, right: bool = False, known: dict[str, Any] | None = None) -> Any:
    """`known`: what is known of the bins, to be read and added to."""
    x, bins = array(xp, x), array(xp, bins)
    wrong(x.dtype.kind == "c" or bins.dtype.kind == "c", "x may not be complex")
    wrong(bins.ndim != 1, "object too deep for desired array")
    known = {} if known is None else known
    if "rises" not in known:
        known["rises"] = order_of_bins(xp, bins)
    side = "left" if operator.truth(right) else "right"
    if known["rises"]:
        return searchsorted(xp, bins, x, side)
    return bins.size - searchsorted(xp, bins[::-1], x, side)


ADAPTED: dict[Any, Any] = {
    np.sort: sort, np.argsort: argsort, np.partition: partition, np.argpartition: argpartition, np.lexsort: lexsort,
    np.median: median, np.nanmedian: nanmedian,
    np.quantile: _quantiles(np.quantile, 1), np.percentile: _quantiles(np.percentile, 100),
    np.nanquantile: _quantiles(np.nanquantile, 1), np.nanpercentile: _quantiles(np.nanpercentile, 100),
    np.searchsorted: searchsorted,
}
