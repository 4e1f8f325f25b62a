"""The range of indexes: that of functions' results is known, that of others is found out once.

CuPy wraps an index that is out of range around, where NumPy raises IndexError. So indexes are checked, and a check of
what the device has computed is a wait for the device.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..events.trace import begin, end
from ..storage import facts, handles

if TYPE_CHECKING:
    from ..devices import Device

__all__ = ["FETCHED", "NOTED", "SOURCES", "are_within", "bounds", "look_at", "note", "note_axes", "note_series", "seen"]


def _shape(a: Any) -> tuple[int, ...]:
    return a.shape if handles.is_lazy(a) else np.shape(a)       # which would be dispatched


def _along(a: Any, axis: Any = -1, *_: Any, **__: Any) -> int:
    shape = _shape(a)
    return (math.prod(shape) if axis is None else shape[axis]) - 1


def _each_axis(a: Any) -> tuple[int, ...]:
    return tuple([n - 1 for n in _shape(a)])


#: Function -> what gives the greatest index that it can return, or one for each result; the least is 0.
GREATEST: dict[Any, Callable[..., int | tuple[int, ...]]] = {
    np.argsort: _along, np.argpartition: lambda a, kth, axis=-1, *_, **__: _along(a, axis),
    np.lexsort: lambda keys, axis=-1: _along(keys[0], axis),
    np.nonzero: _each_axis, np.argwhere: lambda a: max(_each_axis(a)), np.flatnonzero: lambda a: _along(a, None),
    np.searchsorted: lambda a, *_, **__: _along(a, None) + 1,
    np.digitize: lambda x, bins, *_, **__: _along(bins, None) + 1,
    **dict.fromkeys((np.argmax, np.argmin, np.nanargmax, np.nanargmin), lambda a, axis=None, *_, **__: _along(a, axis)),
    np.where: lambda condition, *choices, **_: () if choices or _ else _each_axis(condition),
    np.unique: lambda ar, *_, **__: (),
    np.unravel_index: lambda indices, shape, order="C": (
        tuple([n - 1 for n in shape]) if type(shape) is tuple and set(map(type, shape)) == {int} else ()),
}


#: Functions whose results have elements of their first arguments alone -> how many these are, and of how many arguments
#: without a name none says otherwise. One may be a list of arrays.
SOURCES: dict[Any, tuple[int, int]] = {
    **dict.fromkeys((np.concatenate, np.stack), (1, 2)), **dict.fromkeys((np.hstack, np.vstack), (1, 1)),
    **dict.fromkeys((np.dstack, np.column_stack), (1, 1)), **dict.fromkeys((np.repeat, np.roll, np.sort), (1, 3)),
    np.tile: (1, 2), np.append: (2, 3), np.unique: (1, 5),
}
#: Functions of whose results something is known.
NOTED = GREATEST.keys() | SOURCES.keys()
#: Keywords that say nothing else either.
_PLAIN = frozenset(("axis", "kind", "return_index", "return_inverse", "return_counts", "equal_nan", "sorted"))


def seen(func: Callable[..., Any], args: tuple[Any, ...],
         kwargs: dict[str, Any]) -> list[tuple[Any, int, int, int]] | None:
    """What is known of the integers that the result of a function in `SOURCES` will have: of each array its storage,
    how often that had been written, and the bounds. It is asked for before the call; None if there is something else.
    """
    arrays, most = SOURCES.get(func, (1, 0))
    if not arrays <= len(args) <= most or not _PLAIN.issuperset(kwargs):
        return None
    found = []
    for arg in args[:arrays]:
        for a in arg if type(arg) in (list, tuple) else (arg,):
            storage, writes, bounds = None, 0, None
            if type(a) is handles.array_type:
                if a.dtype.kind in "iu" and not handles.is_light(a):     # whose writes nobody counts
                    storage = a._self_storage
                    writes, bounds = getattr(storage, "writes", -1), facts.bounds_of(a)
            elif type(a) is int:
                bounds = a, a
            if bounds is None:
                return None
            found.append((storage, writes, *bounds))
    return found


def note(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any,
         before: Any = None) -> None:
    """Keep what the results of a function can be, and of what `seen` has found `before` what holds still. The call has
    succeeded: its arguments are what they should be.
    """
    if func in GREATEST:
        _note_greatest(func, args, kwargs, result)
    values = result[0] if func is np.unique and type(result) is tuple else result
    if before and handles.is_array(values) and values.dtype.kind in "iu" and (
            all(storage is None or storage.writes == writes for storage, writes, _, _ in before)):
        facts.note_bounds(values, min([low for _, _, low, _ in before]), max([high for _, _, _, high in before]))


def _note_greatest(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    greatest = GREATEST[func](*args, **kwargs)
    if func is np.unique and type(result) is tuple:
        _note_unique(result, *args, **kwargs)
    elif type(greatest) is tuple:
        noted = facts.note_range if len(greatest) == 1 and func is not np.unravel_index else facts.note_bounds
        for x, most in zip(result, greatest) if greatest else ():       # of places along one axis each comes once
            if handles.is_array(x):
                noted(x, 0, most)
    elif handles.is_lazy(result):
        whole = func in _PERMUTATIONS and result.ndim == 1
        (facts.note_range if whole else facts.note_bounds)(result, 0, greatest)


def _note_unique(result: tuple[Any, ...], ar: Any, return_index: bool = False, return_inverse: bool = False,
                 return_counts: bool = False, axis: Any = None, **_: Any) -> None:
    """Of places among the elements, of those among the distinct ones, and of counts."""
    count, distinct = _along(ar, axis) + 1, _along(result[0], axis) + 1
    asked = [(return_index, count - 1), (return_inverse, distinct - 1), (return_counts, count)]
    for x, most in zip(result[1:], [most for wanted, most in asked if wanted]):
        if handles.is_array(x):
            facts.note_bounds(x, 0, most)
    if return_inverse and distinct and handles.is_array(x := result[1 + bool(return_index)]) and (
            known := facts.known_of(x)) is not None:
        known["extremes"] = 0, distinct - 1     # each distinct one is there


#: Functions whose results name no element twice, if they have one axis.
_PERMUTATIONS = frozenset((np.argsort, np.argpartition, np.lexsort, np.flatnonzero))


def note_series(args: tuple[Any, ...], result: Any) -> None:
    """The same for ``numpy.arange(*args)`` of Python's integers."""
    if set(map(type, args)) != {int} or not handles.is_array(result) or result.dtype.kind not in "iu":
        return
    series, limits = range(*args), np.iinfo(result.dtype)
    if len(series) and limits.min <= min(series[0], series[-1]) and max(series[0], series[-1]) <= limits.max:
        facts.note_range(result, min(series[0], series[-1]), max(series[0], series[-1]))     # else some wrap around


def note_axes(lengths: tuple[int, ...], result: tuple[Any, ...]) -> None:
    """The same of positions along axes of such lengths."""
    for x, length in zip(result, lengths):
        if handles.is_array(x) and not handles.is_light(x) and length > 0:
            facts.note_bounds(x, 0, length - 1)


# -- checks ----------------------------------------------------------------------------------------

#: Bytes up to which values are fetched to be looked at on the host: the copy takes as long as that of a flag, and the
#: device has nothing to compute for it.
FETCHED = 1 << 13
#: The same for an index, whose extremes would take two kernels; and for one that the host has, too, which it looks
#: through in 16 microseconds at most (int64, NumPy 2.5).
_LOOKED_AT, _ON_HOST = 1 << 16, 1 << 18


def are_within(index: Any, array: Any, low: int, high: int) -> bool:
    """Whether the integers of an array of the device, which is not empty, are in low ... high - 1.

    `index`: the array, lazy, or None.
    """
    least, greatest = bounds([(index, array, low, high)])[0]
    return least >= low and greatest < high


def bounds(entries: Sequence[tuple[Any, Any, int, int]]) -> list[facts.Bounds]:
    """Bounds of integers of the device: (lazy array or None, device array that is not empty, low, high) each.

    They are exact unless those that are known lie in low ... high - 1. All that is looked at takes one wait.
    """
    found: list[Any] = []
    missing: list[tuple[int, Any, Any]] = []        # place in `found`, what is known, the storage's facts
    for n, (index, array, low, high) in enumerate(entries):
        at = known = kept = None
        if index is not None:
            at = facts.bounds_of(index)
            # What is known may be wider than what is there.
            if (at is None or at[0] < low or at[1] >= high) and (source := facts.source_of(index, True)) is not None:
                at = _of_source(index, *source)
            if at is None or at[0] < low or at[1] >= high:
                # Asked for before the values are looked at: they are forgotten if somebody has written since.
                known, kept = facts.known_of(index), index._self_storage.facts
                at = None if known is None else known.get("extremes")
                if at is None and array.nbytes <= _ON_HOST and index._self_storage.state in ("host", "both"):
                    at = _noted(index, known, kept, handles.host_of(index, "bounds check"),
                                array.nbytes <= _LOOKED_AT)
        if at is None:
            missing.append((n, known, kept))
        found.append(at)
    if missing:
        device = devices.current()
        for (n, known, kept), values in zip(missing, _fetched(device, [entries[n][1] for n, _, _ in missing])):
            found[n] = _noted(entries[n][0], known, kept, values, entries[n][1].nbytes <= _LOOKED_AT)
    return found


def look_at(storage: Any, known: dict[Any, Any]) -> bool:
    """Have the host wait for the bounds of all that a storage has, of which so much is `known`; whether they are."""
    view = storage.root_meta()
    if not view.size:
        return False
    with storage.place():
        array = storage.read_device(view, why="bounds check")
        (least, greatest), = _fetched(devices.current(), [array], 0)
    if facts.of_storage(storage) is not known:       # somebody has written meanwhile
        return False
    known["bounds"], known["looked"] = (int(least), int(greatest), view.dtype), True
    return True


def _of_source(index: Any, source: Any, known: dict[Any, Any]) -> facts.Bounds | None:
    """The bounds of an index, of those of the whole storage of what it was taken of, of which so much is `known`."""
    if not look_at(source, known):
        return None
    least, greatest, _ = known["bounds"]
    if source is not index._self_storage:
        facts.note_bounds(index, least, greatest)
    return facts.bounds_of(index)


def _noted(index: Any, known: dict[str, Any] | None, kept: Any, values: np.ndarray, whole: bool) -> facts.Bounds:
    """The bounds of an index, which are kept: of all its `values` (`whole`), or of the least and the greatest."""
    at = int(values.min()), int(values.max())
    if known is not None:
        known["bounds"] = known["extremes"] = at
        if whole and values.flags.owndata:
            known["value"] = values
        if index._self_base is None and index.nbytes == index._self_storage.nbytes:     # so have views of it
            kept[1]["bounds"] = *at, index.dtype
    return at


def _fetched(device: Device, arrays: list[Any], few: int = _LOOKED_AT) -> list[np.ndarray]:
    """The values of each device array, or its least and its greatest from so many bytes on: with one wait for all."""
    parts = [device.contiguous(a) if a.nbytes <= few else device.extremes(a) for a in arrays]
    found = [np.empty(part.shape, part.dtype) for part in parts]
    token = begin("synchronise", sum([values.nbytes for values in found]), arrays[0].shape, arrays[0].dtype,
                  "bounds check")
    copies: list[Any] = []
    with device.noting:
        try:
            for part in parts:
                copies.append(device.fetch_begin(part))
        finally:        # nothing may be under way when an error or an interrupt is raised
            for copy, values in zip(copies, found):
                device.fetch_end(copy, values.reshape(-1).view(np.uint8).data)
                values.flags.writeable = False
    end(token)
    return found
