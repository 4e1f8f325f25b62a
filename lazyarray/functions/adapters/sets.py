"""Unique elements and set operations.

CuPy's unique along an axis compares rows one pair at a time, its intersect1d expects a sorted second array, and its
membership tests compare numbers of different dtypes as C++ does.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ... import devices
from ...errors import NotOnDevice, refuse, wrong
from .common import array, axis_index, fetch, intp_result, newest, places_of, rows_of, truth

_MOST_COLUMNS = 64
"""Rows are sorted column by column; beyond this, NumPy's comparison of whole rows is quicker."""


def unique(xp: Any, /, ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: Any = None, *, equal_nan: bool = True, sorted: bool = True) -> Any:
    a = array(xp, ar)
    shape = a.shape
    if axis is not None:
        return _unique_rows(xp, a, axis_index(axis, a.ndim), return_index, return_inverse, return_counts)
    refuse(a.ndim == 0 and return_inverse, "return_inverse= for a 0-d array is not supported on the device")
    flat = a.ravel()
    sort_rows = devices.current().sort_rows
    order = sort_rows(flat, True) if return_index or return_inverse else None
    values = sort_rows(flat) if order is None else xp.take(flat, order)
    first = xp.ones(values.shape, bool)
    first[1:] = values[1:] != values[:-1]
    if equal_nan and a.dtype.kind in "fc":
        # All NaN lie together at the end: only the first of them counts.
        missing = xp.isnan(values)
        first[1:] &= ~(missing[1:] & missing[:-1])
    starts = places_of(xp, first)[0] if return_index or return_counts else None     # one wait for both
    distinct = rows_of(xp, values, first) if starts is None else xp.take(values, starts)
    return _answers(xp, distinct, first, starts, order, shape, return_index, return_inverse, return_counts)


def _answers(xp: Any, values: Any, first: Any, starts: Any, order: Any, inverse_shape: Any, return_index: Any,
             return_inverse: Any, return_counts: Any) -> Any:
    result = [values]
    if return_index:
        result.append(intp_result(xp.take(order, starts)))
    if return_inverse:
        inverse = xp.empty(first.shape, np.intp)
        devices.current().put_at(inverse, [order], xp.cumsum(first, dtype=np.dtype(np.intp)) - 1)
        result.append(inverse.reshape(inverse_shape))
    if return_counts:
        ends = xp.concatenate([starts[1:], xp.full((1,), first.size, starts.dtype)]) if starts.size else starts
        result.append(intp_result(ends - starts))
    return result[0] if len(result) == 1 else tuple(result)


def _unique_rows(xp: Any, a: Any, axis: Any, return_index: Any, return_inverse: Any, return_counts: Any) -> Any:
    moved = xp.moveaxis(a, axis, 0)
    n = moved.shape[0]
    refuse(a.size == 0 or a.size // n > _MOST_COLUMNS,
           "rows that are empty or too long are not supported on the device")
    refuse(return_inverse and newest < "2.1.0", "the inverse has another shape in NumPy 2.0")
    rows = xp.ascontiguousarray(moved).reshape(n, -1)
    refuse(a.dtype.kind in "fc" and truth(xp.isnan(rows).any(), "NaN check"), "NaN in rows")
    order = xp.arange(n)
    for column in range(rows.shape[1] - 1, -1, -1):
        order = xp.take(order, devices.current().sort_rows(xp.take(rows[:, column], order), True))
    ordered = xp.take(rows, order, axis=0)
    first = xp.ones(n, bool)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    values = xp.moveaxis(rows_of(xp, ordered, first).reshape(-1, *moved.shape[1:]), 0, axis)
    starts = places_of(xp, first)[0] if return_index or return_counts else None
    return _answers(xp, values, first, starts, order, (n,), return_index, return_inverse, return_counts)


def _alike(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Both, flat and in the dtype that NumPy compares them in."""
    a, b = array(xp, a).ravel(), array(xp, b).ravel()
    dtype = np.result_type(a.dtype, b.dtype)
    return a.astype(dtype, copy=False), b.astype(dtype, copy=False)


def setdiff1d(xp: Any, /, ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    original = array(xp, ar1)
    kept = original.ravel() if assume_unique else unique(xp, original)
    return kept[isin(xp, kept, ar2, invert=True)]


def isin(xp: Any, /, element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
         kind: str | None = None) -> Any:
    element = array(xp, element)
    wrong(kind not in (None, "sort", "table"), "Invalid kind")
    a, b = _alike(xp, element, test_elements)
    if kind == "table" and not (element.dtype.kind in "biu" and b.dtype.kind in "biu"):
        raise NotOnDevice("kind='table' requires integers")
    if kind == "table" and b.size:
        given = getattr(test_elements, "dtype", b.dtype)
        low, high = fetch(xp.stack([b.min(), b.max()]), "the extent of the table")
        if int(high) - int(low) > np.iinfo(np.uint8 if given.kind == "b" else given).max:
            raise NotOnDevice("a table too long for its dtype")
    if b.dtype.char in "fd":
        b = devices.current().unsigned_nan(b)       # CuPy sorts it
    return xp.isin(a, b, invert=bool(invert)).reshape(element.shape)


ADAPTED: dict[Any, Any] = {np.unique: unique, np.setdiff1d: setdiff1d, np.isin: isin}
