"""One call of a ufunc: dtypes by NumPy's own rules, work on the device.

`call` is `__array_ufunc__`. NumPy resolves the loop (`ufunc.resolve_dtypes`), so result dtypes,
NEP 50 and casting errors are NumPy's; the device function then gets operands of that loop's dtypes
wherever it would have chosen another one by itself. What was resolved is remembered per ufunc and
operand dtypes in `LOOPS`.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, devices
from ..errors import NotOnDevice
from ..functions.kinds import SUBCLASS, WEAK, is_foreign, kind_of
from ..graph.record.reductions import of_vectors
from ..storage import handles, places
from ..storage.handles import new_array, new_scalar
from ..storage.statements import held
from ..storage.storage import Storage
from . import small_arrays, ufunc_methods
from .function import TAKES_PART
from .host_fallback import name_of, on_host
from .ufunc_general import LOOPS, elementwise

if TYPE_CHECKING:
    from ..devices import Device
    from ..storage.handles import ArrayHandle, ScalarHandle

_LEAST = -1000000.0     # the priority of NumPy's scalars


def array_ufunc(x: ArrayHandle | ScalarHandle, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__`: NotImplemented if an operand's type knows better."""
    if not kwargs and method == "__call__" and (
            result := (contracted if getattr(ufunc, "signature", None) else quick)(ufunc, inputs)) is not None:
        return result
    return call(x, ufunc, method, inputs, kwargs, not kwargs and method == "__call__")


def call(x: ArrayHandle | ScalarHandle, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...],
         kwargs: dict[str, Any], tried: bool = False) -> Any:
    """`__array_ufunc__`, with the operands as a tuple and the keywords as a dict; `tried`: not by the quick way."""
    if type(ufunc) is not np.ufunc and method == "__call__":
        inputs, kwargs = _as_numpy_passes(ufunc, inputs, kwargs)
    if method == "at":
        if small_arrays.to_write(inputs[0], inputs[1:]):
            return getattr(ufunc, method)(*inputs, **kwargs)       # once more, of what is on the device now
        return held((inputs[0], *small_arrays.to_hold(inputs[1:])), _call, ufunc, method, inputs, kwargs, tried)
    if outs := kwargs.get("out"):
        if method == "__call__" and len(kwargs) == 1 and type(outs) is tuple and len(outs) == 1 and (
                updated(ufunc, inputs, outs[0]) is not None
                or small_arrays.to_write(outs[0], inputs) and updated(ufunc, inputs, outs[0]) is not None):
            return outs[0]
        if method == "__call__" and len(kwargs) == 1 and ufunc.signature is not None and _contracted_into(
                ufunc, inputs, outs):
            return outs[0]
        given = (*outs, *inputs) if type(outs) is tuple else (outs, *inputs)
        if len(kwargs) > 1:
            given += kwargs.get("where"),
        return held(given, _call, ufunc, method, inputs, kwargs, tried)
    if places.apart(devices.current(), inputs):     # nobody writes to one after another one has been copied
        return held(inputs, _call, ufunc, method, inputs, kwargs, tried)
    return _call(ufunc, method, inputs, kwargs, tried)


def _call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any], tried: bool) -> Any:
    outs = kwargs.get("out", ())
    if (outs or method == "at") and (small_arrays.on_host(inputs[0]) is not None
                                     or outs and small_arrays.on_host(outs[0]) is not None):
        result = small_arrays.run_ufunc(ufunc, method, inputs, kwargs)
        if result is not NotImplemented:
            return result
    if method == "__call__" and not tried:
        if not kwargs:
            result = quick(ufunc, inputs)
            if result is None:
                result = contracted(ufunc, inputs)
            if result is not None:
                return result
    elif method == "__call__" and not kwargs and (result := looped(ufunc, inputs)) is not None:
        return result
    if method == "__call__" and "where" in kwargs:
        # NumPy takes out=None away before it calls us, and would warn on the host of what the program has not left out.
        kwargs = {"out": (None,) * ufunc.nout if ufunc.nout > 1 else None, **kwargs}
        if not outs and small_arrays.on_host(inputs[0]) is not None:
            result = small_arrays.writing(ufunc, inputs, kwargs, [])
            if result is not NotImplemented:
                return result
    on_host_whole = None
    mask = kwargs.get("where")      # an operand too, for who decides
    for operand in (*inputs, *outs, mask):
        kind = type(operand)
        if is_foreign(kind):
            if hasattr(kind, "__array_ufunc__"):
                return NotImplemented
            if method == "__call__" and operand is not mask and _wraps(kind, inputs):
                on_host_whole = "an operand of another type wraps the result"
        elif kind_of(kind) == SUBCLASS:
            on_host_whole = TAKES_PART
    if any(out is not None and not hasattr(type(out), "__array_ufunc__") for out in outs):
        on_host_whole = "out= is not an array"
    function = ufunc if method == "__call__" else getattr(ufunc, method)
    if on_host_whole:
        return on_host(function, inputs, kwargs, on_host_whole, aliases=True)
    try:
        if devices.current().usable() is not None:
            raise NotOnDevice(devices.current().usable())
        if method == "__call__":
            return elementwise(ufunc, inputs, kwargs)
        with places.on_one(devices.current(), inputs, inputs[:1] if method == "at" else outs):
            return ufunc_methods.METHODS[method](ufunc, inputs, kwargs)
    except NotOnDevice as error:
        reason = str(error)
    name = name_of(ufunc) + ("" if method == "__call__" else f".{method}")
    return on_host(function, inputs, kwargs, reason, name=name, positions=(0,) if method == "at" else (),
                   names=("out",))


def _as_numpy_passes(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...],
                                                                                             dict[str, Any]]:
    """The operands and keywords of a ufunc that others have made, as NumPy's own come: outputs as a tuple by name."""
    outs = inputs[ufunc.nin:] or kwargs.get("out", ())
    if not isinstance(outs, tuple):
        outs = (outs,)
    kwargs = {key: value for key, value in kwargs.items() if key != "out"}
    if any(out is not None for out in outs):
        kwargs["out"] = outs
    return inputs[:ufunc.nin], kwargs


def _wraps(kind: type, inputs: tuple[Any, ...]) -> bool:
    """Whether an operand of type `kind` wraps the result, as that of the highest priority does, and before plain arrays
    one of theirs.
    """
    arrays = any(handles.is_array(a) or type(a) is np.ndarray for a in inputs)
    return hasattr(kind, "__array_wrap__") and getattr(kind, "__array_priority__", 0) >= (0 if arrays else _LEAST)


# -- the quick way: lazy arrays and Python numbers, nothing else ---------------------------------

def _not_here(*args: Any) -> None:
    return None


#: The result of a plain call, recorded; else None.
quick: Callable[[np.ufunc, tuple[Any, ...]], Any] = (
    _not_here if _native.recording is None else _native.recording.recorded)

#: The result of a plain call that is not recorded, if its loop is known; else None.
looped: Callable[[np.ufunc, tuple[Any, ...]], Any] = (
    _not_here if _native.recording is None else _native.recording.looped)


def contracted(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """The result of a plain call that is not recorded, of a generalised ufunc or one whose loop is known, or None."""
    if ufunc in _DOTS and len(inputs) == 2 and (result := of_vectors(*inputs, ufunc is not np.matmul)) is not None:
        return result
    return looped(ufunc, inputs)


_DOTS = frozenset((np.matmul, np.vecdot))


def _contracted_into(ufunc: np.ufunc, inputs: tuple[Any, ...], outs: tuple[Any, ...]) -> bool:
    """Whether a generalised ufunc was done, and its result put into an array of its form that is none of its inputs."""
    out = outs[0]
    is_light = small_arrays.is_light
    if len(outs) > 1 or type(out) is not handles.array_type or is_light(out) or any(
            handles.is_lazy(x) and not is_light(x) and x._self_storage is out._self_storage for x in inputs):
        return False
    result = contracted(ufunc, inputs)
    if type(result) is not handles.array_type or result.shape != out.shape or result.dtype != out.dtype:
        return False
    out[...] = result
    return True


#: Writes the result of a plain call into an array, by the kernel that computes it, and gives the array, or None.
updated: Callable[[np.ufunc, tuple[Any, ...], Any], Any] = (
    _not_here if _native.recording is None else _native.recording.updated)


def for_native() -> dict[str, Any]:
    """What the part in C calls and looks at."""
    return {"weak": WEAK, "loops": LOOPS, "of_new_memory": _of_new_memory, "add": np.add,
            "maximum": np.maximum, "minimum": np.minimum, "addend": ufunc_methods.addend}


def _of_new_memory(device: Device, array: Any) -> Any:
    if type(array) is tuple:
        return tuple([_of_new_memory(device, one) for one in array])
    if device.root(array) is not array:
        return handles.wrap(device, array, (), fresh=True)
    return (new_array if array.ndim else new_scalar)(Storage(device, array), None, array)
