"""The range of indexes: that of functions' results is known, that of others is found out once.

CuPy wraps an index that is out of range around, where NumPy raises IndexError. So indexes are checked, and a check of
what the device has computed is a wait for the device.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import devices
from ..storage import facts, handles, transfer

__all__ = ["FETCHED", "GREATEST", "are_within", "note", "note_series"]


def _shape(a: Any) -> tuple[int, ...]:
    return a.shape if handles.is_lazy(a) else np.shape(a)       # which would be dispatched


def _along(a: Any, axis: Any = -1, *_: Any, **__: Any) -> int:
    shape = _shape(a)
    return (math.prod(shape) if axis is None else shape[axis]) - 1


def _along_axis(a: Any, kth: Any, axis: Any = -1, *_: Any, **__: Any) -> int:
    return _along(a, axis)


def _keys(keys: Any, axis: Any = -1) -> int:
    return _along(keys[0], axis)


def _each_axis(a: Any) -> tuple[int, ...]:
    return tuple([n - 1 for n in _shape(a)])


#: Function -> what gives the greatest index that it can return, or one for each result; the least is 0.
GREATEST: dict[Any, Callable[..., int | tuple[int, ...]]] = {
    np.argsort: _along, np.argpartition: _along_axis, np.lexsort: _keys,
    np.nonzero: _each_axis, np.argwhere: lambda a: max(_each_axis(a)), np.flatnonzero: lambda a: _along(a, None),
    np.searchsorted: lambda a, *_, **__: _along(a, None) + 1,
    np.digitize: lambda x, bins, *_, **__: _along(bins, None) + 1,
}


def note(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    """Keep what the results of a function can be. The call has succeeded: its arguments are what they should be."""
    greatest = GREATEST[func](*args, **kwargs)
    if type(greatest) is tuple:
        noted = facts.note_range if len(result) == 1 else facts.note_bounds      # places along one axis, each once
        for x, most in zip(result, greatest):
            noted(x, 0, most)
    elif handles.is_array(result):
        whole = func in _PERMUTATIONS and result.ndim == 1
        (facts.note_range if whole else facts.note_bounds)(result, 0, greatest)


#: Functions whose results name no element twice, if they have one axis.
_PERMUTATIONS = frozenset((np.argsort, np.argpartition, np.lexsort, np.flatnonzero))


def note_series(args: tuple[Any, ...], result: Any) -> None:
    """The same for ``numpy.arange(*args)`` of Python's integers."""
    if set(map(type, args)) != {int} or not handles.is_array(result) or result.dtype.kind not in "iu":
        return
    series = range(*args)
    if len(series):
        facts.note_range(result, min(series[0], series[-1]), max(series[0], series[-1]))


# -- checks ----------------------------------------------------------------------------------------

#: Bytes up to which values are fetched to be looked at on the host: the copy takes as long as that of a flag, and the
#: device has nothing to compute for it.
FETCHED = 1 << 13
#: Bytes up to which the host looks at an index that it has.
_LOOKED_AT = 1 << 16


def are_within(index: Any, array: Any, low: int, high: int) -> bool:
    """Whether the integers of an array of the device, which is not empty, are in low ... high - 1.

    `index`: the array, lazy, or None.
    """
    found = None if index is None else facts.bounds_of(index)
    if found is not None and found[0] >= low and found[1] < high:
        return True
    least, greatest = _extremes(index, array)       # what is known may be wider than what is there
    return least >= low and greatest < high


def _extremes(index: Any, array: Any) -> tuple[int, int]:
    known = None if index is None else facts.known_of(index)
    if known is not None and "extremes" in known:
        return known["extremes"]    # type: ignore[no-any-return]
    device = devices.current()
    if index is not None and array.nbytes <= _LOOKED_AT and index._self_storage.state in ("host", "both"):
        values = handles.host_of(index, "bounds check")
    elif array.nbytes <= FETCHED:
        values = transfer.to_host(device, array, "bounds check", "synchronise")
    else:
        both = device.empty((2,), array.dtype)
        array.min(out=both[0]), array.max(out=both[1])
        values = transfer.to_host(device, both, "bounds check", "synchronise")
    low, high = int(values.min()), int(values.max())
    if known is not None:
        known["bounds"] = known["extremes"] = low, high
    return low, high
