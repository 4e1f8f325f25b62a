"""Taking, choosing and changing elements by position.

CuPy wraps positions that are out of range around; NumPy raises IndexError. The check costs one wait for the device
where the positions lie there (`options.check_indices`), and none for lists and numbers.
"""
from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ... import devices
from ...errors import NotOnDevice, refuse, wrong
from ...settings import options
from .. import index_bounds
from ..kinds import NUMBERS, WEAK
from .common import (
    array,
    array_or_number,
    axis_index,
    dtype_or_number,
    fetch,
    filled,
    gather,
    indices,
    intp,
    is_device,
    numbers,
    places_of,
    without_device,
)


def by_mode(xp: Any, obj: Any, n: int, mode: str, lazy: Any = None) -> Any:
    """Positions on the device in an axis of length `n`, in its range by `mode`; `lazy`: see `indices`."""
    if mode == "raise":
        return indices(xp, obj, n, lazy=lazy)
    found = indices(xp, obj)
    wrong(n == 0 and found.size, "cannot do a non-empty take from an empty axes.")
    if mode == "wrap":
        return found % n if n else found
    if mode == "clip":
        return xp.minimum(xp.maximum(found, 0), n - 1)
    raise ValueError("clipmode not understood")


def along(xp: Any, shape: tuple[int, ...], positions: Any, axis: int) -> tuple[Any, ...]:
    """The index tuple that takes `positions` along one axis and each place itself along the others."""
    ndim = len(shape)
    return tuple([positions if i == axis else xp.arange(n).reshape((-1,) + (1,) * (ndim - i - 1))
                 for i, n in enumerate(shape)])


def taken_along(xp: Any, a: Any, positions: Any, axis: int, beyond: bool) -> Any:
    """What `positions` name along an axis of `a`; `beyond`: some may be below zero, or wrap around at the end.

    Where the other axes are the same, each place of the whole is computed: CuPy's own way makes an array of them for
    each axis first.
    """
    before, n, after = a.shape[:axis], a.shape[axis], a.shape[axis + 1:]
    if positions.shape[:axis] != before or positions.shape[axis + 1:] != after:
        return a[along(xp, a.shape, positions, axis)]
    outer, inner = math.prod(before), math.prod(after)
    places = (positions % n if beyond else positions).reshape(outer, -1, inner)
    if inner > 1:
        places = places * inner + xp.arange(inner)
    if outer > 1:
        places = places + xp.arange(0, outer * n * inner, n * inner).reshape(outer, 1, 1)
    return xp.take(a.ravel(), places).reshape(positions.shape)


def choose(xp: Any, /, a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    a = array(xp, a)
    options_ = [array(xp, c) for c in choices]
    if a.dtype.kind not in "iub" or not np.can_cast(a.dtype, intp) or not options_ or len(options_) > 63:
        raise NotOnDevice("these choices are not supported on the device")
    n = len(options_)
    a = a.astype(intp, copy=False)
    if mode == "raise":
        wrong(a.size and options.current().check_indices and not index_bounds.are_within(None, a, 0, n),
              "invalid entry in choice array")
    else:
        a = by_mode(xp, a, n, mode)
    dtype = np.result_type(*list(map(dtype_or_number, choices if isinstance(choices, (list, tuple)) else options_)))
    shape = np.broadcast_shapes(a.shape, *[c.shape for c in options_])
    result = xp.broadcast_to(options_[0].astype(dtype, copy=False), shape)
    for k, choice in enumerate(options_[1:], 1):
        result = xp.where(a == k, choice.astype(dtype, copy=False), result)
    return xp.array(result, order="C")


def compress(xp: Any, /, condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    a, condition = array(xp, a), array(xp, condition)
    wrong(condition.ndim != 1, "condition must be a 1-d array")
    if axis is None:
        a, axis = a.ravel(), 0
    axis = axis_index(axis, a.ndim)
    found, = places_of(xp, condition)
    if condition.size > a.shape[axis] and found.size:
        found = indices(xp, found, a.shape[axis])
    return xp.take(a, found, axis=axis)


def insert(xp: Any, /, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    arr = array(xp, arr)
    values = _given(xp, values, arr.dtype)
    if axis is None:
        arr, axis = arr.ravel(), 0
    axis = axis_index(axis, arr.ndim)
    n = arr.shape[axis]
    where = fetch(obj, "positions to insert at")
    if isinstance(where, slice) or np.ndim(where) > 0 and np.size(where) != 1:
        count = len(range(*where.indices(n))) if isinstance(where, slice) else (
            int(np.sum(where)) if np.asarray(where).dtype == bool else np.size(where))
        values = values.astype(arr.dtype, copy=False)
    else:
        values = values.astype(arr.dtype, copy=False)
        values = values.reshape((1,) * (arr.ndim - values.ndim) + values.shape)
        if np.ndim(where) == 0:
            # A number takes the values along its own axis, as arr[:, i] = values does.
            values = xp.moveaxis(values, 0, axis)
        count = values.shape[axis]
    shape = (*arr.shape[:axis], count, *arr.shape[axis + 1:])
    values = xp.broadcast_to(values, shape)
    # NumPy itself says where old and new elements go, and what is wrong with obj.
    order = np.insert(np.arange(n), where, np.arange(n, n + count))
    refuse(order.size != n + count, "this kind of index is not supported on the device")
    return _as_new(xp, gather(xp, [arr, values], order, axis), arr)


def _as_new(xp: Any, result: Any, arr: Any) -> Any:
    """`result` in the memory order that NumPy's delete and insert choose after the array that they are given."""
    return (xp.asfortranarray if arr.flags.fnc else xp.ascontiguousarray)(result)


# -- changing what is there ----------------------------------------------------------------------

def _apart(xp: Any, source: Any, target: Any) -> Any:
    """`source`, copied if it may lie in the memory that is about to change: the device's threads know no order."""
    return source.copy() if xp.may_share_memory(source, target) else source


def _given(xp: Any, values: Any, dtype: np.dtype) -> Any:
    """Values to be put into an array: numbers and lists come in its own dtype, and NumPy refuses what does not fit."""
    if not hasattr(values, "dtype"):
        values = np.array(without_device(values), dtype)
    return array(xp, values)


def copyto(xp: Any, /, dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if isinstance(src, (bool, int, float, complex, np.generic)):
        blank = np.empty((), dst.dtype)
        np.copyto(blank, src, casting=casting)
        src = filled(xp, (), blank[()], dst.dtype)
    else:
        src = array(xp, src)
        if not np.can_cast(src.dtype, dst.dtype, casting):
            raise TypeError(f"Cannot cast array data from {src.dtype} to {dst.dtype} according to {casting!r}")
        refuse(src.dtype.kind == "c" and dst.dtype.kind != "c", "complex values are cast to real ones")
        src = _apart(xp, src, dst)
    while src.ndim > dst.ndim and src.shape[0] == 1:
        src = src[0]
    if where is True:
        dst[...] = src      # broadcast, and cast as it is copied
        return
    src = xp.broadcast_to(src, dst.shape).astype(dst.dtype, copy=False)
    chosen = array(xp, where)
    wrong(chosen.dtype != bool, "Cannot cast array data to bool according to the rule 'safe'")
    xp.copyto(dst, src, where=xp.broadcast_to(_apart(xp, chosen, dst), dst.shape))


def place(xp: Any, /, arr: Any, mask: Any, vals: Any) -> None:
    chosen, vals = array(xp, mask), _given(xp, vals, arr.dtype).ravel()
    wrong(chosen.size != arr.size, "place: mask and data must be the same size")
    _check_cast(vals, arr)
    _fill(xp, arr, chosen, vals, in_turn=True)


def putmask(xp: Any, /, a: Any, mask: Any, values: Any) -> None:
    chosen, values = array(xp, mask), _given(xp, values, a.dtype)
    wrong(chosen.size != a.size, "putmask: mask and data must be the same size")
    _check_cast(values, a)
    if values.size:
        _fill(xp, a, chosen, values.ravel(), in_turn=False)


def _check_cast(values: Any, target: Any) -> None:
    """Raise NumPy's error for an array that can't be cast safely. NumPy casts scalars, which look the same here."""
    if not np.can_cast(values.dtype, target.dtype):
        refuse(values.size == 1, "the value cannot be cast safely to the dtype of the array")
        raise TypeError(
            f"Cannot cast array data from {values.dtype} to {target.dtype} according to the rule 'safe'")


def _fill(xp: Any, target: Any, chosen: Any, values: Any, in_turn: bool) -> None:
    """Put `values`, over and over, where `chosen` is true: one after the other, or each at its own place."""
    if values.size == 1 or not in_turn and values.size == target.size:      # the number of places does not matter
        chosen = _apart(xp, chosen.reshape(target.shape).astype(bool, copy=False), target)
        values = _apart(xp, values.reshape(target.shape if values.size > 1 else ()), target)
        xp.copyto(target, values.astype(target.dtype, copy=False), where=chosen)
        return
    places, = places_of(xp, chosen.ravel())
    if places.size == 0:
        return
    wrong(values.size == 0, "Cannot insert from an empty array!")
    values = _apart(xp, values, target)
    turn = (xp.arange(places.size) if in_turn else places) % values.size
    flat, index = _flat(xp, target, places)
    flat[index] = xp.take(values, turn).astype(target.dtype, copy=False)


def _flat(xp: Any, target: Any, places: Any) -> tuple[Any, Any]:
    """What to index, and by what, for flat places in C order."""
    return (target.reshape(-1), places) if target._c_contiguous else (target, at(xp, places, target.shape))


def at(xp: Any, places: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The index tuple of flat places, in C order. (CuPy's own unravel_index waits for a check of its own.)"""
    found = []
    for n in reversed(shape):
        found.append(places % n)
        places = places // n
    return (*reversed(found),)


def fill_diagonal(xp: Any, /, a: Any, val: Any, wrap: bool = False) -> None:
    wrong(a.ndim < 2, "array must be at least 2-d")
    if a.ndim == 2:
        step = a.shape[1] + 1
        end = a.size if wrap else a.shape[1] * a.shape[1]
    else:
        wrong(len(set(a.shape)) != 1, "All dimensions of input must be of equal length")
        step, end = 1 + int(np.cumprod(a.shape[:-1]).sum()), a.size
    values = _apart(xp, _given(xp, val, a.dtype).ravel(), a)
    end = min(end, a.size)
    count = len(range(0, end, step))
    refuse(count == 0 or values.size == 0, "empty arrays are not supported on the device")
    if values.size not in (1, count):
        values = xp.take(values, xp.arange(count) % values.size)
    values = values.astype(a.dtype, copy=False)
    if a._c_contiguous:
        a.reshape(-1)[:end:step] = values
    else:
        a[at(xp, xp.arange(0, end, step), a.shape)] = values


# -- index arithmetic ----------------------------------------------------------------------------

def nonzero(xp: Any, /, a: Any) -> tuple[Any, ...]:
    a = array(xp, a)
    wrong(a.ndim == 0, "Calling nonzero on 0d arrays is not allowed.")
    return places_of(xp, a)


def flatnonzero(xp: Any, /, a: Any) -> Any:
    return places_of(xp, array(xp, a).ravel())[0]


def argwhere(xp: Any, /, a: Any) -> Any:
    a = array(xp, a)
    refuse(a.ndim == 0, "0-d arrays are not supported on the device")
    return xp.argwhere(a)


def where(xp: Any, /, condition: Any, x: Any = None, y: Any = None) -> Any:
    condition = array(xp, condition)
    if x is None and y is None:
        return nonzero(xp, condition)
    wrong(x is None or y is None, "either both or neither of x and y should be given")
    dtype = np.result_type(*list(map(dtype_or_number, (x, y))))
    choices = [dtype.type(v) if type(v) in NUMBERS else array(xp, v, dtype) for v in (x, y)]
    if not any(is_device(xp, v) for v in choices):
        choices[0] = filled(xp, (), choices[0], dtype)
    return xp.where(condition.astype(bool, copy=False), *choices)


def select(xp: Any, /, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError("list of cases must be same length as list of conditions")
    conditions = [array(xp, c) for c in condlist]
    wrong(any(c.dtype != bool for c in conditions), "invalid entry in condlist: should be boolean ndarray")
    values = [array_or_number(xp, v) for v in (*choicelist, default)]
    dtype = np.result_type(*[getattr(v, "dtype", v) for v in values])
    if not all(np.can_cast(np.asarray(v).dtype, dtype, "same_kind") for v in values[:-1] if type(v) in WEAK):
        raise TypeError("Cannot cast a number among the choices to their common dtype")
    values = [array(xp, dtype.type(v) if type(v) in WEAK else v, dtype) for v in values]
    shape = np.broadcast_shapes(*[v.shape for v in (*conditions, *values[:-1])])
    if values[-1].ndim:
        shape = np.broadcast_shapes(shape, values[-1].shape)
    result = xp.broadcast_to(values[-1], shape)
    for condition, value in zip(conditions[::-1], values[-2::-1]):
        result = xp.where(condition, value, result)
    return xp.ascontiguousarray(result) if result.ndim else result


def unravel_index(xp: Any, /, indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    places = array(xp, indices)
    wrong(places.dtype.kind not in "iub", "only int indices permitted")
    return tuple(xp.unravel_index(places.astype(intp, copy=False), numbers(shape), order))


def ravel_multi_index(xp: Any, /, multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Any:
    parts = [array(xp, m) for m in multi_index]
    wrong(any(p.dtype.kind not in "iub" for p in parts), "only int indices permitted")
    parts = [p.astype(intp) if p.dtype.kind == "b" else p for p in parts]
    return xp.ravel_multi_index(parts, numbers(dims), mode, order)


def bincount(xp: Any, /, x: Any, weights: Any = None, minlength: Any = 0, lazy: Any = None) -> Any:
    """`lazy`: the lazy array that `x` is, if it is one, of which more may be known."""
    x = array(xp, x)
    if x.size == 0 and x.dtype.kind == "f" or x.dtype.kind not in "iub" or not np.can_cast(x.dtype, intp):
        raise NotOnDevice(f"counts of {x.dtype} are not supported on the device")
    if weights is not None:
        weights = array(xp, weights)
        wrong(weights.dtype.kind == "c", "Cannot cast array data from complex to float64")
        wrong(weights.shape != x.shape, "The weights and list don't have the same length.")
    wrong(minlength is None, "use 0 instead of None for minlength")
    minlength = operator.index(minlength)
    if x.ndim != 1 or not x.size or minlength < 0:      # some of it is an error
        return xp.bincount(x.astype(intp, copy=False), None if weights is None else weights.astype(float), minlength)
    (least, greatest), = index_bounds.bounds([(lazy, x, 0, minlength)])
    wrong(least < 0, "'list' argument must have no negative elements")
    return devices.current().count_places(x, weights, max(greatest + 1, minlength))


ADAPTED: dict[Any, Any] = {
    np.choose: choose, np.compress: compress,
    np.insert: insert, np.copyto: copyto, np.place: place, np.putmask: putmask, np.fill_diagonal: fill_diagonal,
    np.nonzero: nonzero, np.flatnonzero: flatnonzero, np.argwhere: argwhere, np.where: where, np.select: select,
    np.unravel_index: unravel_index, np.ravel_multi_index: ravel_multi_index,
}
