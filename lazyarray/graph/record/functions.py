"""Recording of functions that are no ufuncs: ``where``, ``clip``, ``round``, ``astype``, ``triu`` and ``tril``.

Each gives None where it can't be recorded, and then the general way does it, errors included.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import devices
from ...devices.base import HOLDABLE
from ...devices.program import Step
from ...errors import NotOnDevice, TransferError
from ...functions.adapters import shaping
from ...functions.adapters.common import filled, passable
from ...functions.kinds import NUMBERS
from ...functions.views import steering
from ...storage import handles, views
from ...storage.statements import held
from ...storage.storage import Storage
from ..node import least_bytes, native
from .creation import OF_PROTOTYPES
from .loops import Rule, cast, casts, like_ufuncs, named
from .memory_order import axes_of
from .operands import Operands
from .reductions import of_vectors
from .several_steps import SEVERAL
from .taken import along_axis, digitize, searchsorted
from .ufunc import recorded

__all__ = ["RECORDED", "astype", "lies_exactly"]

_bool, _int64 = np.dtype(bool), np.dtype(np.int64)
_none = np._NoValue


def _result_type(kinds: Any) -> np.dtype | None:
    """The dtype of dtypes and types of Python numbers together; None if the device holds no such numbers."""
    try:
        dtype = np.result_type(*[np.dtype(bool) if kind is bool else kind() if kind in NUMBERS else kind
                                 for kind in kinds])
    except TypeError:
        return None
    return dtype if dtype in HOLDABLE else None


def _rule(step: Step, kinds: Any) -> Rule | None:
    needed = casts(kinds, step.inputs)
    return None if needed is None else Rule(step, needed or None)


# -- where ---------------------------------------------------------------------------------------

def _chosen(condition: Any, x: Any, y: Any) -> Any:
    xp = devices.current().xp
    if not isinstance(x, xp.ndarray) and not isinstance(y, xp.ndarray):
        x = filled(xp, (), x, x.dtype)
    return xp.where(condition, x, y)


def where(condition: Any, x: Any, y: Any) -> Any:
    if native is None or type(condition) is not handles.array_type and type(condition) is not np.ndarray:
        return None
    return native.recorded(np.where, (condition, x, y))


def _rule_of_where(device: Any, condition: Any, *kinds: Any) -> Rule | None:
    dtype = _result_type(kinds)
    step = None if dtype is None else named(device, "where", _chosen, (_bool, dtype, dtype), dtype)
    return None if step is None else _rule(step, (condition, *kinds))


like_ufuncs[np.where] = _rule_of_where


# -- clip ----------------------------------------------------------------------------------------

def clip(a: Any, a_min: Any = _none, a_max: Any = _none, out: Any = None, *, min: Any = _none,
         max: Any = _none) -> Any:
    if native is None or type(a) is not handles.array_type:
        return None
    if out is not None:
        return held((a, a_min, a_max, min, max, out), _clip_into, out, a, a_min, a_max, min, max)
    if min is not _none or max is not _none:
        if a_min is not _none or a_max is not _none:
            return None     # NumPy raises the error
        a_min, a_max = min, max
    elif a_min is _none or a_max is _none:
        return None
    dtype = handles.meta_of(a).dtype
    a_min, a_max = passable(dtype, a_min, a_max)
    low, high = a_min is not None and a_min is not _none, a_max is not None and a_max is not _none
    if low and high:
        return native.recorded(np.clip, (a, a_min, a_max))
    if not (low or high) or bool in (type(a_min), type(a_max)) or dtype.kind == "b":
        return None
    return native.recorded(np.maximum, (a, a_min)) if low else native.recorded(np.minimum, (a, a_max))


def _clip_into(out: Any, a: Any, a_min: Any, a_max: Any, low: Any, high: Any) -> Any:
    """`out` once it holds a recorded result of its own shape and dtype; None where that is for others."""
    if type(out) is not handles.array_type:
        return None
    result = clip(a, a_min, a_max, min=low, max=high)
    if result is None or out.shape != result.shape or out.dtype != result.dtype:
        return None
    return np.positive(result, out=out)


def _clipped(a: Any, low: Any, high: Any) -> Any:
    """As NumPy has it: CuPy's clip has its own mind about NaN."""
    xp = devices.current().xp
    return xp.minimum(xp.maximum(a, low), high)


def _rule_of_clip(device: Any, *kinds: Any) -> Rule | None:
    dtype = None if bool in kinds else _result_type(kinds)
    # Of complex numbers NumPy looks for NaN in the real part alone.
    step = None if dtype is None or dtype.kind in "bc" else named(device, "clip", _clipped, (dtype,) * 3, dtype)
    return None if step is None else _rule(step, kinds)


like_ufuncs[np.clip] = _rule_of_clip


# -- round ---------------------------------------------------------------------------------------

def _rounded(array: Any, decimals: Any) -> Any:
    return devices.current().xp.around(array, int(decimals))


def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    if type(a) is not handles.array_type or type(decimals) is not int:
        return None
    meta = handles.meta_of(a)
    dtype, flags = meta.dtype, meta.flags
    if out is not None and decimals < 0 and dtype.kind in "iu":
        raise NotOnDevice("integers are rounded in floats, which NumPy may refuse to cast to out=")
    if out is not None or native is None:
        return None
    if dtype.kind in "fc":
        if not decimals:
            return native.recorded(np.rint, (a,))
        # NumPy's real ones have C or Fortran order, where ufuncs' results have that of their operands.
        as_ufunc = dtype.kind == "c" or flags.c_contiguous or flags.f_contiguous
        return native.recorded(np.round, (a, decimals)) if as_ufunc else None
    return astype(a, dtype, "K") if dtype.kind in "iu" and decimals >= 0 else None


def _rule_of_round(device: Any, dtype: Any, decimals: Any) -> Rule | None:
    step = named(device, "round", _rounded, (dtype, np.dtype(np.int64)), dtype)
    return None if step is None else _rule(step, (dtype, decimals))


like_ufuncs[np.round] = _rule_of_round


# -- astype --------------------------------------------------------------------------------------

#: dtype -> what stands for the function that casts to it, as whose calls casts are known.
_casting: dict[np.dtype, Callable[..., Any]] = {}


def _casting_to(target: np.dtype) -> Callable[..., Any]:
    def casting(array: Any) -> Any:
        return array.astype(target)

    def rule(device: Any, kind: Any) -> Rule | None:
        step = cast(kind, target)
        return None if step is None else Rule(step, None)

    like_ufuncs[casting] = rule
    return _casting.setdefault(target, casting)


def lies_exactly(meta: np.ndarray, order: str) -> bool:
    """Whether recorded work gives a copy the strides of NumPy's, also along axes that have no use for them."""
    return meta.flags.c_contiguous and order != "F" or 1 not in meta.shape and 0 not in meta.strides


def _is_in_turn(meta: np.ndarray) -> bool:
    """Whether an array's elements come in C's order, if not side by side: as they come, a copy is in C order."""
    steps = [abs(step) for step in meta.strides]
    return all(step > following for step, following in zip(steps, steps[1:]))


def astype(x: Any, target: np.dtype, order: str) -> Any:
    """A copy of an array in another dtype, or in the same, in this memory order."""
    meta = handles.meta_of(x)
    flags = meta.flags
    kept = order == "K" or (flags.c_contiguous or _is_in_turn(meta) if order == "C"
                            else flags.f_contiguous if order == "F" else flags.forc)
    storage = x._self_storage
    if native is not None and type(x) is handles.array_type and type(storage) is Storage and target in HOLDABLE:
        casting = _casting.get(target) or _casting_to(target)
        if kept and lies_exactly(meta, order):
            return native.recorded(casting, (x,))
        found = native.recorded(casting, (x,), views.like(meta, order, target))
        if found is not None and (storage.loans or storage.foreign):    # as of all that reads memory of others
            handles.device_of(found)
        return found
    return _one_step(x, meta, target, lambda: cast(meta.dtype, target), axes_of(views.like(meta, order, target)))


def _one_step(x: Any, meta: Any, target: np.dtype, step_of: Callable[[], Step | None], order: Any,
              *numbers: Any) -> Any:
    """A step on an array and NumPy scalars, which gives this dtype, its axes in this order."""
    storage, least = x._self_storage, least_bytes()
    if least is None or type(storage) is not Storage:
        return None
    if meta.size * target.itemsize < least and storage.pending is None:
        return None
    step = step_of()
    if step is None:
        return None
    given = Operands()
    if not given.add(x) or not given.settle(None, (), target.itemsize, least, order):
        return None
    given.made(step, (*given.items, *numbers))
    return recorded(given)


# -- triangles -----------------------------------------------------------------------------------

def _in_triangle(array: Any, rows: Any, columns: Any, sign: Any, least: Any, at: Any) -> Any:
    xp = devices.current().xp
    # Else who reads it sees other axes, or it is not broadcast yet.
    if array.shape == at.shape and array.shape[-2:] == (rows, columns) and at._c_contiguous:
        return shaping.triu(xp, array, int(least)) if sign > 0 else shaping.tril(xp, array, -int(least))
    beyond = at % columns - at // columns % rows
    return xp.where(sign * beyond >= least, array, filled(xp, (), array.dtype.type(0), array.dtype))


def _triangle(sign: int) -> Callable[..., Any]:
    """``triu`` (1) or ``tril`` (-1): what lies at least so far on this side of the diagonal, and zeros."""
    def recorder(m: Any, k: Any = 0) -> Any:
        if native is None or type(m) is not handles.array_type or type(k) is not int or abs(k) >= 1 << 30:
            return None
        meta = handles.meta_of(m)
        if meta.ndim < 2 or not meta.size or not meta.flags.c_contiguous or meta.dtype not in HOLDABLE:
            return None
        dtype, (rows, columns) = meta.dtype, meta.shape[-2:]
        inputs = dtype, _int64, _int64, _int64, _int64
        return _one_step(
            m, meta, dtype, lambda: named(devices.current(), "triangle", _in_triangle, inputs, dtype, True), None,
            np.int64(rows), np.int64(columns), np.int64(sign), np.int64(sign * k))

    return recorder


# -- products of vectors -------------------------------------------------------------------------

def dot(a: Any, b: Any, out: Any = None) -> Any:
    return of_vectors(a, b) if out is None else None


def inner(a: Any, b: Any, /) -> Any:
    return of_vectors(a, b)


def vdot(a: Any, b: Any, /) -> Any:
    return of_vectors(a, b, conjugated=True, seen=True)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Of one position NumPy computes the indexes. (The device would wait for it, too, to see whether it lies within:
    `x[np.unravel_index(np.argmin(x), x.shape)]` waits once then, not twice.)
    """
    if not handles.is_scalar(indices):
        return None
    try:
        return np.unravel_index(steering(indices, "indices", np.unravel_index), shape, order)
    except TransferError:       # `no_transfers` is in force
        return None


#: NumPy's function -> what records a call of it, or does it in another way; None: neither.
RECORDED: dict[Callable[..., Any], Callable[..., Any]] = {
    np.where: where, np.clip: clip, np.round: round_, np.around: round_, np.triu: _triangle(1), np.tril: _triangle(-1),
    np.take_along_axis: along_axis, np.searchsorted: searchsorted, np.digitize: digitize, np.dot: dot,
    np.inner: inner, np.vdot: vdot, np.unravel_index: unravel_index, **OF_PROTOTYPES, **SEVERAL,
}
