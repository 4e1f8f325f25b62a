"""The quick way of ``np.sum(x)`` and its like: all of an array, or along one axis.

These lines run for every small reduction, so they ask for each thing once. What they can't do, errors included, they
leave to the general way (`function.run`).
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors.interrupts import from_handler
from ..graph.record.reductions import LARGE, MOST
from ..storage import handles
from ..storage.handles import new_array, new_scalar
from ..storage.storage import Storage

__all__ = ["METHODS", "plain"]

_float64 = np.dtype(np.float64)


def _mean_of_integers(array: Any, axis: Any, keepdims: bool) -> Any:
    return array.mean(axis, _float64, keepdims=keepdims)


_NAMES = frozenset(("axis", "keepdims"))


def _is_plain(axis: Any) -> bool:
    return type(axis) is int or type(axis) is tuple and set(map(type, axis)) == {int}


def _is_quick(array: Any, axis: Any) -> bool:
    """Whether the device library has many threads for a result along this axis, or many results."""
    if type(axis) is tuple or not -array.ndim <= axis < array.ndim:
        return False
    return axis in (-1, array.ndim - 1) or array.shape[axis] < 1024


def _methods() -> dict[Any, dict[np.dtype, str | Callable[..., Any]]]:
    """Where the device's method does what the adapter does."""
    table: dict[Any, dict[np.dtype, str | Callable[..., Any]]] = {}
    for names, kinds in (("sum prod any all", "?bBhHiIlLefdFD"), ("max min amax amin", "?bBhHiIlLefd"),
                         ("mean", "fdFD"), ("var std", "fd")):
        for name in names.split():
            method = name.removeprefix("a") if name.startswith("am") else name
            table[getattr(np, name)] = {np.dtype(kind): method for kind in kinds}
    table[np.mean].update({np.dtype(kind): _mean_of_integers for kind in "?bBhHiIlL"})
    return table


#: NumPy's function -> dtype of the array -> the device's method, or what does it on the device.
METHODS = _methods()


def plain(func: Callable[..., Any], x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function in `METHODS` makes of `x`, with what else it was given, or None."""
    axis, keepdims = None, False
    if args:
        if len(args) > 1 or "axis" in kwargs:
            return None
        axis = args[0]
    if kwargs:
        if not kwargs.keys() <= _NAMES:
            return None
        axis, keepdims = kwargs.get("axis", axis), kwargs.get("keepdims", False)
        if keepdims is not True and keepdims is not False:
            return None
    if handles.array_type is not type(x):
        return None
    if x._self_host is not None or type(storage := x._self_storage) is not Storage or not storage.clean:
        return None
    array = handles.device_of(x) if x._self_array is None else x._self_array
    nbytes = array.nbytes
    if nbytes >= MOST or not nbytes:
        return None
    if axis is not None and not (_is_plain(axis) and array._c_contiguous):
        return None
    if nbytes >= LARGE and (func is np.var or func is np.std or axis is not None and not _is_quick(array, axis)):
        return None     # there may be a kernel of ours
    method = METHODS[func].get(array.dtype)
    device = storage.device
    stream = device.stream()
    if method is None or storage.stream is not stream and storage.stream != stream or device.count > 1 and (
            not device.on_current(array)):
        return None
    try:
        if type(method) is not str:
            result = method(array, axis, keepdims)
        elif keepdims:
            result = getattr(array, method)(axis, keepdims=True)
        else:
            result = getattr(array, method)(axis)
    except Exception as error:      # the general way runs into it again, and knows what it means
        if from_handler(error):
            raise
        return None
    if result.ndim:
        return new_array(Storage(device, result, stream), None, result)
    return new_scalar(Storage(device, result, stream), None, result)
