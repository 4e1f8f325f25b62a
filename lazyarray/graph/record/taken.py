"""Recording of what positions name: ``x[i]`` and ``x[i, j]``, and ``take_along_axis``; and of positions, which
``searchsorted`` and ``digitize`` find.

A step takes elements of a table, an operand that is read by no element's own place: one kernel takes them and computes
what comes of them. Positions are known to lie within before, as where they are not recorded; those of indexes are
looked at in `_native/recording_rows.h`. Where nobody looks (`options.check_indices`), those out of range wrap around.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import devices
from ...devices.base import HOLDABLE
from ...devices.program import Step
from ...errors.own_threads import others_run
from ...functions import index_bounds
from ...settings.options import current as current_options
from ...storage import facts, handles
from ...storage.statements import held
from ...storage.storage import Storage
from .. import known_ranges
from ..node import least_bytes, native
from .loops import cast, named
from .operands import Operands, leaf_of
from .ufunc import recorded

__all__ = ["along_axis", "digitize", "searchsorted", "take_of", "takes"]

_int64 = np.dtype(np.int64)

#: Key -> what `take_of` has found.
takes: dict[tuple[Any, ...], Step | None] = {}


def take_of(key: tuple[Any, ...]) -> Step | None:
    """The step that takes an element of a table for each position along its axes: its operands are the table, the
    positions, and the lengths of the axes (int64). `key`: the dtypes of the table and of the positions; with None
    behind them it takes rows, and has one more operand: how many elements each of them has.
    """
    found = takes.get(key, key)
    if found is key:
        rows = key[-1] is None
        dtypes, found = key[:len(key) - rows], None
        numbers = (_int64,) * (len(dtypes) - 1 + rows)
        if HOLDABLE.issuperset(dtypes):
            found = named(devices.current(), "take_rows" if rows else "take", _rows_taken if rows else _taken,
                          (*dtypes, *numbers), dtypes[0], rows)
        takes[key] = found
    return found    # type: ignore[return-value]


def _taken(table: Any, *where: Any) -> Any:
    count = len(where) // 2
    shape = tuple([int(n) for n in where[count:]])
    keys = [int(key) % n if isinstance(key, np.generic) else key for key, n in zip(where, shape)]
    return devices.current().take_at(table if table.shape == shape else table.reshape(shape), keys)


def _rows_taken(table: Any, *where: Any) -> Any:
    *where, row, at = where      # type: ignore[assignment]
    count, index = len(where) // 2, 0
    for key, length in zip(where, where[count:]):       # perhaps not broadcast yet, as `at` is
        index = index * length + key.astype(_int64) % length
    return devices.current().take_at(table.reshape(-1), [index * row + at % row])


def along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """``numpy.take_along_axis`` where all axes but one are the same. Positions are looked at as those of indexes are;
    without that (`options.check_indices`) those out of range wrap around.
    """
    if native is None or type(arr) is not handles.array_type or type(indices) is not handles.array_type or (
            least_bytes() is None or type(axis) is not int or native.is_light(arr) or native.is_light(indices)):
        return None
    return held((arr, indices), _along_axis, arr, indices, axis) if others_run() else _along_axis(arr, indices, axis)


def _along_axis(arr: Any, indices: Any, axis: int) -> Any:
    storage, meta, places = arr._self_storage, handles.meta_of(arr), handles.meta_of(indices)
    home = indices._self_storage
    writes = getattr(home, "writes", -1)        # before it is asked how far they reach
    if not -meta.ndim <= axis < meta.ndim or places.ndim != meta.ndim or meta.dtype not in HOLDABLE or (
            places.dtype.char not in "ilq" or type(storage) is not Storage or type(home) is not Storage):
        return None
    axis %= meta.ndim
    n, inner = meta.shape[axis], math.prod(meta.shape[axis + 1:])
    if not places.size or not meta.size or not (meta.flags.c_contiguous and places.flags.c_contiguous) or (
            places.shape[:axis] != meta.shape[:axis] or places.shape[axis + 1:] != meta.shape[axis + 1:]):
        return None
    known_ranges.note(arr)      # before they are computed, for what is taken of it
    known_ranges.note(indices)
    bounds = facts.bounds_of(indices)
    if (bounds is None or bounds[0] < -n or bounds[1] >= n) and current_options().check_indices and (
            storage.device.spread or not index_bounds.are_within(indices, handles.device_of(indices), -n, n)):
        return None     # the general way says so
    handles.device_of(arr)
    table, step, least, given = leaf_of(arr), _step_along(meta.dtype, places.dtype), least_bytes(), Operands()
    if table is None or storage.loans or step is None or least is None or not given.add(indices) or (
            not given.is_on(storage.device, table.array) or not given.settle(None, (), meta.dtype.itemsize, least)):
        return None
    table.mode = "table"
    given.count(table)
    numbers = n, places.shape[axis] * inner, inner, math.prod(meta.shape[:axis])
    given.made(step, (table, *given.items, *[np.int64(number) for number in numbers]))
    found = recorded(given)
    return found if indices._self_storage is home and home.writes == writes else None     # else a handler has written


def _step_along(dtype: np.dtype, positions: np.dtype) -> Step | None:
    """Its operands are a table, positions along an axis, the length of that, how many elements of the result there are
    for each of the axes in front of it, and how many of the axes behind it, and in front of it.
    """
    return named(devices.current(), "take_along", _taken_along, (dtype, positions, *(_int64,) * 4), dtype, True)


def _taken_along(table: Any, positions: Any, length: Any, each: Any, row: Any, front: Any, at: Any) -> Any:
    # By the places of the elements in memory: who reads them may see other axes, or the same ones in another order.
    index = (at // each * length + positions % length) * row + at % row
    return devices.current().take_at(table.reshape(-1), [index])


# -- positions that are found ----------------------------------------------------------------------

def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """``numpy.searchsorted`` of real numbers, of which those that are sorted are there as they are compared."""
    if native is None or type(a) is not handles.array_type or type(v) not in (handles.array_type, np.ndarray) or (
            sorter is not None or least_bytes() is None or native.is_light(a) or type(side) is not str
            or side not in _SIDES):
        return None
    return held((a, v), _searched, a, v, side) if others_run() else _searched(a, v, side)


#: ``side=`` -> the step that searches.
_SIDES = {"left": "search_left", "right": "search_right"}


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """``numpy.digitize`` with bins that are known to rise."""
    if type(bins) is not handles.array_type or type(right) is not bool or native is None or native.is_light(bins) or (
            (known := facts.known_of(bins)) is None or not known.get("rises")):
        return None
    return searchsorted(bins, x, "left" if right else "right")


def _searched(a: Any, v: Any, side: str) -> Any:
    storage, meta = a._self_storage, handles.meta_of(a)
    given, dtype, least = Operands(np.searchsorted), meta.dtype, least_bytes()
    if meta.ndim != 1 or not meta.size or not meta.flags.c_contiguous or dtype.char not in _COMPARED or (
            type(storage) is not Storage or least is None):
        return None
    handles.device_of(a)
    table = leaf_of(a)
    if table is None or storage.loans or not given.add(v) or given.metas[0] is None or given.kinds[0].char not in (
            _COMPARED) or np.result_type(given.kinds[0], dtype) != dtype:
        return None
    step = named(devices.current(), _SIDES[side], _found[side], (dtype, dtype, _int64), _int64)
    casts = None if given.kinds[0] == dtype else (cast(given.kinds[0], dtype),)
    if step is None or not given.is_on(storage.device, table.array) or (
            not given.settle(casts, (), _int64.itemsize, least, None)):     # in C order, however the values lie
        return None
    table.mode = "table"
    given.count(table)
    given.made(step, (table, *given.items, np.int64(meta.size)))
    return recorded(given)


#: Characters of the dtypes whose numbers a kernel compares.
_COMPARED = frozenset("?bBhHiIlLqQfd")


def _found_on(side: str) -> Callable[..., Any]:
    return lambda table, values, length: devices.current().xp.searchsorted(table, values, side=side)


_found = {side: _found_on(side) for side in _SIDES}
