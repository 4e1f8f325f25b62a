"""Python's operators for lazy arrays and scalars, from a few factories.

An operator is its ufunc, after NumPy's own rule of who gets the first turn: another type with
``__array_ufunc__ = None`` or a higher ``__array_priority__`` does, and a real subclass of ndarray
that overrides the reflected operator. What takes device arrays only, the device's sparse matrices,
is given ours.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import devices
from ..dispatch import small_arrays, ufunc_general
from ..dispatch.function import TAKES_PART
from ..dispatch.host_fallback import on_host
from ..dispatch.ufunc import call, contracted, quick, updated
from ..functions.kinds import NUMBERS, SUBCLASS, WEAK, is_foreign, kind_of
from ..storage import handles, places
from ..storage.statements import held
from ..storage.storage import Storage

#: Types of operands that are asked for nothing: numbers, and our arrays once there is a class of them.
direct = {*WEAK, *(kind for kind in np.sctypeDict.values() if issubclass(kind, (np.number, np.bool_)))}


@functools.cache
def whose_turn(kind: type, reflected: str) -> str:
    """Who handles an operand of another type: "us", "ufunc" (through NumPy's dispatch), "other" or "partner"."""
    if is_foreign(kind) and devices.current().computes_with(kind):
        return "partner"
    if kind_of(kind) == SUBCLASS:
        own = getattr(kind, reflected, None)
        return "other" if own is not getattr(np.ndarray, reflected, None) else "ufunc"
    if kind in NUMBERS or not is_foreign(kind):
        return "us"
    if hasattr(kind, "__array_ufunc__"):
        return "other" if kind.__array_ufunc__ is None else "ufunc"
    if getattr(kind, "__array_priority__", -1.0) > 0.0:
        return "other"
    return "ufunc"


def _apply(x: Any, ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
           tried: bool = False) -> Any:
    result = call(x, ufunc, "__call__", inputs, kwargs or {}, tried)
    return ufunc(*inputs, **(kwargs or {})) if result is NotImplemented else result


def _partnered(x: Any, other: Any, method: str) -> Any:
    """An operator by the other operand's own method, on our device array; a device array that it returns is lazy."""
    device = devices.current()
    function = getattr(other, method, None)
    if function is None or type(x._self_storage) is not Storage:
        return NotImplemented       # Python says so
    place = places.of_partner(device, other)    # it stays there, as one of CuPy's sparse matrices has to
    if place is None:
        place = places.of(device, x)
    with device.noting, device.on(place):
        result = function(handles.operand_of(x))
        return handles.wrap(device, result, (x,)) if isinstance(result, device.array_type) else result


def _with_alias(other: Any, name: str, x: Any, reason: str = TAKES_PART) -> Any:
    """The operator `name` of `other`, given an alias: of the class of `x` a real subclass can't make its own."""
    return on_host(getattr(other, name), (x,), {}, reason, aliases=True, name=f"{type(other).__name__}.{name}",
                   positions=(), names=())


def _by_other(other: Any, name: str, x: Any, tried: bool = False) -> Any:
    """The operator `name` of what has the first turn; given an alias if it refuses `x`, as compiled classes do that
    know ndarrays alone (pandas' ``Timestamp``): else Python would take ``==`` for the identity of both.

    `tried`: it has refused `x`.
    """
    if not hasattr(type(other), name):
        return NotImplemented
    result = NotImplemented if tried else getattr(other, name)(x)
    if result is NotImplemented and getattr(other, "__array_ufunc__", 0) is not None:
        result = _with_alias(other, name, x, "it takes ndarrays alone")
    return result


def _priority_of_instance(other: Any) -> bool:
    """An instance may carry the priority that its type does not."""
    return getattr(other, "__array_ufunc__", 0) is None


def binary(ufunc: np.ufunc, reflected: str) -> Callable[..., Any]:
    """``x + y``."""
    at_once = quick if ufunc.signature is None else contracted

    def method(self: Any, other: Any, /) -> Any:
        if type(other) in direct and (result := at_once(ufunc, (self, other))) is not None:
            return result
        turn = whose_turn(type(other), reflected)
        if turn == "us":
            return _apply(self, ufunc, (self, other), None, type(other) in direct)
        if turn == "partner":
            return _partnered(self, other, reflected)
        if turn == "other" and isinstance(other, np.ndarray):
            result = _with_alias(other, reflected, self)       # before ndarray's own, for what it does not take
            return ufunc(self, other) if result is NotImplemented else result
        if turn == "other" or _priority_of_instance(other):
            return _by_other(other, reflected, self)
        return ufunc(self, other)
    return method


def reflected(ufunc: np.ufunc, name: str) -> Callable[..., Any]:
    """``y + x`` where `y` had its turn: as NumPy, it gets no second one, whatever its priority."""
    def method(self: Any, other: Any, /) -> Any:
        if type(other) in direct and (result := quick(ufunc, (other, self))) is not None:
            return result
        turn = whose_turn(type(other), name)
        if turn == "us":
            return _apply(self, ufunc, (other, self), None, type(other) in direct)
        if turn == "partner":
            return _partnered(self, other, name)
        if turn == "other" and not isinstance(other, np.ndarray) and (
                result := _by_other(other, name, self, tried=True)) is not NotImplemented:
            return result
        return ufunc(other, self)
    return method


def in_place(ufunc: np.ufunc, reflected: str) -> Callable[..., Any]:
    """``x += y``: the array itself is written, as ``ufunc(x, y, out=x)`` does."""
    def method(self: Any, other: Any, /) -> Any:
        if type(other) in direct and (updated(ufunc, (self, other), self) is not None or small_arrays.to_write(
                self, (other,)) and updated(ufunc, (self, other), self) is not None):
            return self
        turn = whose_turn(type(other), reflected)
        if turn == "us":
            return _apply(self, ufunc, (self, other), {"out": (self,)})
        if turn in ("other", "partner") and not hasattr(type(other), "__array_ufunc__"):
            return NotImplemented       # by its priority; a type that knows ufuncs can't take the place of `x`
        return ufunc(self, other, out=(self,))
    return method


def comparison(ufunc: np.ufunc, reflected: str) -> Callable[..., Any]:
    """``x < y``; ``==`` and ``!=`` of what can't be compared are all False and all True."""
    equality = ufunc in (np.equal, np.not_equal)

    def method(self: Any, other: Any, /) -> Any:
        if type(other) in direct and (result := quick(ufunc, (self, other))) is not None:
            return result
        turn = whose_turn(type(other), reflected)
        if turn != "us" and isinstance(other, np.ndarray):
            result = _with_alias(other, reflected, self)       # Python asks a subclass first
            if result is not NotImplemented:
                return result
        elif turn == "other" or _priority_of_instance(other):
            return _by_other(other, reflected, self)
        elif turn == "partner":
            return NotImplemented
        if equality and self.dtype.kind == "V" and type(self._self_storage) is not Storage:
            return _compared(ufunc, self, other)
        try:
            return _apply(self, ufunc, (self, other), None, type(other) in direct) if turn == "us" else (
                ufunc(self, other))
        except TypeError:
            if not equality:
                raise
            return _compared(ufunc, self, other)
    return method


def _compared(ufunc: np.ufunc, one: Any, other: Any) -> Any:
    """By NumPy's operator: fields one by one; what else has no loop is unequal, whatever its values."""
    one, other = (_host_or_blank(x) if handles.is_lazy(x) else x for x in (one, other))
    answer = (operator.eq if ufunc is np.equal else operator.ne)(one, other)
    return handles.host_result(answer) if type(answer) is np.ndarray else answer


def _host_or_blank(x: Any) -> Any:
    """The values of what lives on the host; zeros without memory in place of what would have to be fetched."""
    if handles.is_scalar(x) or type(x._self_storage) is not Storage:
        return handles.host_of(x, "compared on the host")
    return np.broadcast_to(np.zeros((), ufunc_general.dtype_of(x)), ufunc_general.shape_of(x))


def unary(ufunc: np.ufunc) -> Callable[..., Any]:
    """``-x``."""
    def method(self: Any, /) -> Any:
        result = quick(ufunc, (self,))
        return _apply(self, ufunc, (self,), None, True) if result is None else result
    return method


def power(self: Any, other: Any, mod: Any = None, /) -> Any:
    """``x ** y``; NumPy has no third argument, and another ufunc for some numbers."""
    if mod is not None:
        return NotImplemented
    ufunc = _instead(self, other)
    return _power(self, other) if ufunc is None else _apply(self, ufunc, (self,))


def in_place_power(self: Any, other: Any, /) -> Any:
    """``x **= y``."""
    ufunc = _instead(self, other)
    return _in_place_power(self, other) if ufunc is None else _apply(self, ufunc, (self,), {"out": (self,)})


def _instead(x: Any, power: Any) -> np.ufunc | None:
    """What NumPy's operator does instead of raising to a power, if it does."""
    if type(power) in (int, float) and type(x) is handles.array_type:
        for number, kind, kinds, ufunc in _POWERS:
            if type(power) is kind and power == number and x.dtype.kind in kinds:
                return ufunc
    return None


def reflected_power(self: Any, other: Any, mod: Any = None, /) -> Any:
    """``y ** x``."""
    return NotImplemented if mod is not None else _reflected_power(self, other)


_power = binary(np.power, "__rpow__")
_in_place_power = in_place(np.power, "__rpow__")
#: (power, its type, kinds of numbers that are raised to it, what NumPy's operator does instead).
_POWERS = ((2, int, "biufc", np.square), (-1, int, "fc", np.reciprocal), (0.5, float, "fc", np.sqrt))
_reflected_power = reflected(np.power, "__pow__")


_MISFIT = ("inplace matrix multiplication requires the first operand to have at least one and the second at least two "
           "dimensions.")


def in_place_matmul(self: Any, other: Any, /) -> Any:
    """``x @= y``: the product must have the shape of `x`."""
    ufunc_general.check_outputs((self,))
    turn = whose_turn(type(other), "__rmatmul__")
    if turn == "ufunc" and not hasattr(type(other), "__array_ufunc__"):
        turn, other = "us", np.asarray(other)       # as NumPy would: what a list has is an array's
    if turn != "us":
        ends = (-1,) if self.ndim == 1 else (-2, -1)
        try:
            return np.matmul(self, other, out=(self,), axes=[ends, (-2, -1), ends])     # as NumPy's operator calls it
        except np.exceptions.AxisError:
            raise ValueError(_MISFIT) from None
    return held((self, other), _multiplied, self, other)


def _multiplied(self: Any, other: Any) -> Any:
    meta = handles.meta_of(self)
    try:
        ufunc_general.resolve_dtypes(np.matmul, (meta.dtype, ufunc_general.operand_of(other)[0]), (self,))
    except TypeError:       # which NumPy says before it looks at the shapes
        return np.matmul(self, other, out=(self,))
    product = np.matmul(self, other)
    shape = np.shape(product)
    if len(shape) > meta.ndim and shape[-meta.ndim:] == meta.shape and set(shape[:-meta.ndim]) == {1}:
        product = product.reshape(meta.shape)       # NumPy lets a stack of one be written to less
    elif shape != meta.shape:
        raise ValueError(_MISFIT)
    self[...] = product
    return self


def contains(self: Any, value: Any, /) -> bool:
    """``v in x``: whether any element equals `v`."""
    return bool(np.any(self == value))


#: name -> ufunc of the binary operators; each also has its reflected and its in-place name.
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "lshift": np.left_shift, "rshift": np.right_shift, "and": np.bitwise_and,
    "xor": np.bitwise_xor, "or": np.bitwise_or,
}
COMPARISONS = {
    "lt": (np.less, "__gt__"), "le": (np.less_equal, "__ge__"), "eq": (np.equal, "__eq__"),
    "ne": (np.not_equal, "__ne__"), "gt": (np.greater, "__lt__"), "ge": (np.greater_equal, "__le__"),
}
UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


def for_native() -> dict[str, Any]:
    """What the part in C goes by: a call of these, with operands that are asked for nothing, is that of a ufunc."""
    ufuncs = {getattr(operator, name): ufunc for name, (ufunc, _) in COMPARISONS.items()}
    binary = {**BINARY, "pow": np.power}
    for name, ufunc in {**UNARY, **binary, **{f"i{name}": ufunc for name, ufunc in binary.items()}}.items():
        ufuncs[getattr(operator, f"__{name}__")] = ufunc
    ufuncs[operator.matmul] = np.matmul
    return {"direct": direct, "operators": ufuncs, "powers": tuple([ufunc for *_, ufunc in _POWERS]),
            "power": np.power}
