"""Recording of functions that are no ufuncs: ``where``, ``clip``, ``round`` and ``astype``.

Each gives None where it can't be recorded, and then the general way does it, errors included.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import devices
from ...devices.base import HOLDABLE
from ...devices.program import Step
from ...functions.adapters.common import filled
from ...storage import handles, views
from ...storage.storage import Storage
from ..node import least_bytes
from .loops import cast, casts, named, numbers, rule_of
from .memory_order import axes_of
from .operands import Operands
from .ufunc import recorded

__all__ = ["RECORDED", "astype"]

_bool = np.dtype(bool)
_none = np._NoValue


def _gathered(function: Any, *operands: Any) -> tuple[Operands, int] | None:
    """The operands of a call with an array that is large enough, and the least number of bytes that is recorded."""
    least = least_bytes()
    if least is None:
        return None
    array_type = handles.array_type
    if not any(type(x) is array_type and ((a := x._self_array) is None or a.nbytes >= least) for x in operands):
        return None
    given = Operands(function)
    return (given, least) if all(map(given.add, operands)) else None


def _result_type(given: Operands, positions: range) -> np.dtype | None:
    """The dtype of operands together, as NumPy has it; None if the device holds no such numbers."""
    kinds = [given.items[i] if given.kinds[i] in numbers and given.kinds[i] is not bool else np.dtype(given.kinds[i])
             for i in positions]
    try:
        dtype = np.result_type(*kinds)
    except TypeError:
        return None
    return dtype if dtype in HOLDABLE else None


def _settled(given: Operands, dtypes: tuple[np.dtype, ...], output: np.dtype, least: int, more: int = 1) -> bool:
    """Whether the operands are ready, in these dtypes."""
    needed = casts(tuple(given.kinds), dtypes)
    return needed is not None and given.settle(needed, tuple([d.type for d in dtypes]), output.itemsize, least,
                                               more=more)


# -- where ---------------------------------------------------------------------------------------

def _chosen(condition: Any, x: Any, y: Any) -> Any:
    xp = devices.current().xp
    if not isinstance(x, xp.ndarray) and not isinstance(y, xp.ndarray):
        x = filled(xp, (), x, x.dtype)
    return xp.where(condition, x, y)


def where(condition: Any, x: Any, y: Any) -> Any:
    found = _gathered(np.where, condition, x, y)
    if found is None:
        return None
    given, least = found
    if given.metas[0] is None:
        return None
    dtype = _result_type(given, range(1, 3))
    if dtype is None:
        return None
    step = named(given.device, "where", _chosen, (_bool, dtype, dtype), dtype)
    if step is None or not _settled(given, step.inputs, dtype, least):
        return None
    given.made(step, tuple(given.items))
    return recorded(given)


# -- clip ----------------------------------------------------------------------------------------

def clip(a: Any, a_min: Any = _none, a_max: Any = _none, out: Any = None, *, min: Any = _none,
         max: Any = _none) -> Any:
    """Two steps, as the general way has it: CuPy's clip has its own mind about NaN."""
    if out is not None or type(a) is not handles.array_type:
        return None
    named_too = min is not _none or max is not _none
    if named_too == (a_min is not _none or a_max is not _none) or not named_too and (a_min is _none or a_max is _none):
        return None     # NumPy raises the error
    bounds = [(bound, ufunc) for bound, ufunc in zip((min, max) if named_too else (a_min, a_max),
                                                     (np.maximum, np.minimum))
              if bound is not None and bound is not _none]
    found = _gathered(np.clip, a, *[bound for bound, _ in bounds]) if bounds else None
    if found is None:
        return None
    given, least = found
    dtype = _result_type(given, range(len(bounds) + 1))
    if dtype is None or dtype.kind == "b" or bool in given.kinds:
        return None
    rules = [rule_of((ufunc, dtype, dtype)) for _, ufunc in bounds]
    if None in rules or not _settled(given, (dtype,) * len(given.items), dtype, least, len(bounds)):
        return None
    result, *limits = given.items
    for rule, limit in zip(rules, limits):
        result = given.made(rule.step, (result, limit))     # type: ignore[union-attr]
    return recorded(given)


# -- round ---------------------------------------------------------------------------------------

def _rounded(array: Any, decimals: Any) -> Any:
    return devices.current().xp.around(array, int(decimals))


def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    if out is not None or type(a) is not handles.array_type or type(decimals) is not int:
        return None
    found = _gathered(np.round, a)
    if found is None:
        return None
    given, least = found
    dtype = given.kinds[0]
    if dtype.kind in "iu" and decimals >= 0:
        step: Step | None = cast(dtype, dtype)
    elif dtype.kind not in "fc":
        return None
    elif decimals:
        step = named(given.device, "round", _rounded, (dtype, np.dtype(np.int64)), dtype)
    else:
        rule = rule_of((np.rint, dtype))
        step = None if rule is None else rule.step
    if step is None or not given.settle(None, (), dtype.itemsize, least):
        return None
    items = (given.items[0], np.int64(decimals))
    given.made(step, items[:len(step.inputs)])
    return recorded(given)


# -- astype --------------------------------------------------------------------------------------

def astype(x: Any, target: np.dtype, order: str) -> Any:
    """A copy of an array in another dtype, or in the same, in this memory order."""
    storage = x._self_storage
    least = least_bytes()
    if least is None or type(storage) is not Storage:
        return None
    meta = handles.meta_of(x)
    if meta.size * target.itemsize < least and storage.pending is None:
        return None
    step = cast(meta.dtype, target)
    if step is None:
        return None
    layout = views.like(meta, order, target)
    given = Operands()
    if not given.add(x) or not given.settle(None, (), target.itemsize, least, axes_of(layout)):
        return None
    given.made(step, tuple(given.items))
    return recorded(given)


#: NumPy's function -> what records a call of it.
RECORDED: dict[Callable[..., Any], Callable[..., Any]] = {
    np.where: where, np.clip: clip, np.round: round_, np.around: round_,
}
