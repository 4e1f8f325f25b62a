"""Functions whose results are indexes: how large these can be, so that they need no check where they are used."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..storage import facts, handles

__all__ = ["GREATEST", "note", "note_series"]


def _along(a: Any, axis: Any = -1, *_: Any, **__: Any) -> int:
    shape = np.shape(a)
    return (math.prod(shape) if axis is None else shape[axis]) - 1


def _along_axis(a: Any, kth: Any, axis: Any = -1, *_: Any, **__: Any) -> int:
    return _along(a, axis)


def _keys(keys: Any, axis: Any = -1) -> int:
    return _along(keys[0], axis)


def _each_axis(a: Any) -> tuple[int, ...]:
    return tuple([n - 1 for n in np.shape(a)])


#: Function -> what gives the greatest index that it can return, or one for each result; the least is 0.
GREATEST: dict[Any, Callable[..., int | tuple[int, ...]]] = {
    np.argsort: _along, np.argpartition: _along_axis, np.lexsort: _keys,
    np.nonzero: _each_axis, np.argwhere: lambda a: max(_each_axis(a)), np.flatnonzero: lambda a: np.size(a) - 1,
    np.searchsorted: lambda a, *_, **__: np.size(a), np.digitize: lambda x, bins, *_, **__: np.size(bins),
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
