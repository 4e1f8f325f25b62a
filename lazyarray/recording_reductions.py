"""Reductions of recorded work, and of large arrays where one kernel is better than the device library's.

A call is taken if its operand is pending, or large, and all its keywords are of the plain kind; None leaves it to the
general way, errors included. Dtypes are those of the adapters: NumPy's for the result, and for what is added up.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import recording, wrap
from .fusion.graph import Leaf
from .fusion.reductions import Extent, Reduction, extent_of, reduced
from .loans import all_ended
from .options import current as current_options
from .storage import Storage

__all__ = ["TAKEN", "of_ufunc", "taken"]

_none = np._NoValue
_float64, _float32, _intp, _bool = (np.dtype(t) for t in (np.float64, np.float32, np.intp, np.bool_))
_longs = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
#: The dtypes that kernels reduce.
_KNOWN = frozenset("?bBhHiIlLefdFD")

_AXIS = ("axis", "out", "keepdims", "initial", "where")
_SUM = ("axis", "dtype", "out", "keepdims", "initial", "where")
#: NumPy's function -> (name of the reduction, its parameters after the array).
TAKEN: dict[Callable[..., Any], tuple[str, tuple[str, ...]]] = {
    np.sum: ("sum", _SUM), np.prod: ("prod", _SUM),
    np.max: ("max", _AXIS), np.min: ("min", _AXIS), np.amax: ("max", _AXIS), np.amin: ("min", _AXIS),
    np.all: ("all", _AXIS[:3]), np.any: ("any", _AXIS[:3]),
    np.mean: ("mean", _SUM[:4]),
    np.var: ("var", ("axis", "dtype", "out", "ddof", "keepdims")),
    np.std: ("std", ("axis", "dtype", "out", "ddof", "keepdims")),
    np.argmax: ("argmax", _AXIS[:2]), np.argmin: ("argmin", _AXIS[:2]),
    np.linalg.norm: ("norm", ("ord", "axis", "keepdims")),
}
_UFUNCS = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logical_and: "all",
    np.logical_or: "any",
}
#: Keywords that say nothing, with these values.
_SILENT = {"out": (None,), "initial": (_none,), "where": (_none, True)}
_keywords = frozenset({"axis", "dtype", "keepdims", "ddof", "ord"})

#: Reductions of arrays that are computed already: those for which the device library takes several passes.
_BETTER = frozenset({"var", "std", "norm"})


def taken(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function in `TAKEN`, or None."""
    x = args[0] if args else None
    if type(x) is not wrap._array_type:
        return None
    if x._self_storage.pending is None and (
            (array := x._self_array) is None or array.nbytes < (current_options().defer_from or 0)):
        return None     # most calls, most often
    name, names = TAKEN[func]
    given = dict(zip(names, args[1:]))
    if len(args) > len(names) + 1 or given.keys() & kwargs.keys():
        return None
    given.update(kwargs)
    return _reduced(name, x, given)


def of_ufunc(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of ``ufunc.reduce``, or None."""
    name = _UFUNCS.get(ufunc)
    if name is None or type(inputs[0]) is not wrap._array_type:
        return None
    given = {"axis": 0, **kwargs}
    if given.get("out") == (None,):
        del given["out"]
    if name not in ("sum", "prod") and given.pop("dtype", None) is not None:
        return None
    return _reduced(name, inputs[0], given)


def _reduced(name: str, x: Any, given: dict[str, Any]) -> Any:
    for key in [*given]:
        if key in _SILENT:
            if not any(given[key] is value for value in _SILENT[key]):
                return None
        elif key not in _keywords:
            return None
    least = current_options().defer_from
    storage = x._self_storage
    if least is None or not isinstance(storage, Storage):
        return None
    source: Any = storage.pending
    if source is not None:
        if x._self_outline is not storage._root_view:
            return None
        shape, fortran, dtype = source.shape, source.fortran, source.step.output
    else:
        if name not in _BETTER:
            return None
        found = _leaf(x, storage)
        if found is None:
            return None
        source, fortran = found
        shape, dtype = source.array.shape, source.array.dtype
        if source.array.nbytes < least:
            return None
    if name == "norm":
        if not _is_euclidean(given.pop("ord", None), given.get("axis"), len(shape)):
            return None
    axes = _axes(given.get("axis"), len(shape))
    keepdims = given.get("keepdims", False)
    if axes is None or keepdims is not True and keepdims is not False and keepdims is not _none or not shape or (
            0 in shape) or dtype.char not in _KNOWN:
        return None
    if name in ("argmin", "argmax") and len(axes) != 1 and len(axes) != len(shape):
        return None
    extent = extent_of(shape, axes, fortran)
    if extent is None or name in ("argmin", "argmax") and fortran and extent.length != shape[axes[0]]:
        return None     # positions are counted in C order
    reduction = _reduction(name, dtype, given.get("dtype"))
    freedom = _freedom(extent, given.get("ddof", 0))
    if reduction is None or freedom is None:
        return None
    keepdims = keepdims is True
    if keepdims:
        left = tuple(1 if i in axes else n for i, n in enumerate(shape))
    else:
        left = tuple(n for i, n in enumerate(shape) if i not in axes)
    device = storage.device
    if device.usable() is not None:
        return None
    result = reduced(device, source, reduction, extent, freedom, left, fortran)
    if result is None:
        return None
    home = Storage(device, result)
    return wrap.new_array(home, None, result) if left else wrap.new_scalar(home, None, result)


def _leaf(x: Any, storage: Storage) -> tuple[Leaf, bool] | None:
    """A whole, dense array that lies ready on the device, and whether it is in Fortran order."""
    if storage.mirror is not None or not storage.quiet or storage.foreign or storage.loans and not all_ended(storage):
        return None
    array = x._self_array
    if array is None:
        if x._self_outline is not storage._root_view:
            return None
        array = storage.root
    c, f = storage.device.contiguity(array)
    return (Leaf(array, storage, "flat"), not c) if c or f else None


def _axes(axis: Any, ndim: int) -> tuple[int, ...] | None:
    """The axes as numbers from 0, or None: NumPy says what is wrong."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is not tuple:
        axis = (axis,)
    if any(type(a) is not int or not -ndim <= a < ndim for a in axis):
        return None
    found = tuple(a % ndim for a in axis)
    return found if len(set(found)) == len(found) else None


def _freedom(extent: Extent, ddof: Any) -> float | None:
    if type(ddof) is not int and type(ddof) is not float or extent.length - ddof <= 0:
        return None
    return float(extent.length - ddof)


def _is_euclidean(order: Any, axis: Any, ndim: int) -> bool:
    """Whether a norm is the root of the sum of squares."""
    count = ndim if axis is None else len(axis) if type(axis) is tuple else 1
    if order is None:
        return axis is None or count <= 2
    if count == 1:
        return type(order) in (int, float) and order == 2
    return count == 2 and type(order) is str and order in ("fro", "f")


def _reduction(name: str, dtype: np.dtype, wanted: Any) -> Reduction | None:
    if wanted is not None:
        try:
            wanted = np.dtype(wanted)
        except TypeError:
            return None
        if wanted.char not in _KNOWN or wanted.kind == "b" or wanted.byteorder == ">":
            return None
    found = _DTYPES[name](dtype, wanted)
    return None if found is None else Reduction(name, dtype, *found)


def _of_sum(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype] | None:
    if wanted is None:
        wanted = _longs.get(dtype.kind, dtype)
    elif not np.can_cast(dtype, wanted, "same_kind") or wanted.char == "e" and dtype.char != "e":
        return None
    return wanted, wanted


def _of_product(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype] | None:
    found = _of_sum(dtype, wanted)
    return None if found is None or found[0].kind == "c" else found


def _of_mean(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype] | None:
    if wanted is not None:
        if wanted.kind not in "fc" or wanted.char == "e" or dtype.kind == "c" and wanted.kind != "c":
            return None
        return wanted, wanted
    if dtype.kind in "biu":
        return _float64, _float64
    return (_float32 if dtype.char == "e" else dtype), dtype


def _of_spread(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype] | None:
    found = _of_mean(dtype, wanted)
    if found is None or found[0].kind == "c" != dtype.kind:
        return None
    return found[0], np.dtype(found[1].char.lower())


def _of_norm(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype]:
    work = _float64 if dtype.kind in "biu" else dtype
    return work, np.dtype(work.char.lower())


def _of_extreme(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype] | None:
    return None if dtype.kind == "c" else (dtype, dtype)


#: Name of a reduction -> what gives (work dtype, result dtype) for the elements' dtype and a ``dtype=``.
_DTYPES: dict[str, Callable[..., Any]] = {
    "sum": _of_sum, "prod": _of_product, "mean": _of_mean, "var": _of_spread, "std": _of_spread, "norm": _of_norm,
    "min": _of_extreme, "max": _of_extreme,
    "any": lambda dtype, wanted: (dtype, _bool), "all": lambda dtype, wanted: (dtype, _bool),
    "argmin": lambda dtype, wanted: None if dtype.kind == "c" else (dtype, _intp),
    "argmax": lambda dtype, wanted: None if dtype.kind == "c" else (dtype, _intp),
}
