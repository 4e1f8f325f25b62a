"""NumPy functions that make or convert arrays: ``zeros_like(x)``, ``ones(shape, like=x)``, ``asarray(obj, like=x)``.

What a shape and a dtype say is made on the device, and no value of the prototype is looked at. What NumPy makes or
reads on the host stays there until the device needs it.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import devices
from ..errors import NotOnDevice, refuse
from ..storage import handles, views
from ..storage.writeable import writeable
from .adapters import common
from .numerical_ranges import SERIES, check_device, device_for, wrapped
from .pytree import replace
from .views import as_lazy


def _blank(layout: np.ndarray) -> Any:
    """A new device array laid out as a meta, its values undefined."""
    device = device_for(layout.dtype)
    if layout.flags.c_contiguous:
        return device.empty(layout.shape, layout.dtype)
    block = device.empty((layout.nbytes,), np.dtype(np.uint8))
    return device.view(block, layout.shape, layout.dtype, layout.strides, 0)


_NO_BYTES = np.dtype([])


def _shape(shape: Any) -> tuple[int, ...]:
    """A shape as NumPy reads it, or its error: by an array whose elements have no bytes."""
    return np.empty(shape, _NO_BYTES).shape


def _decides_itself(value: Any) -> bool:
    """Whether ``np.copyto``, by which NumPy fills arrays, asks the value: a Quantity has its unit converted there."""
    kind = type(value)
    return not handles.is_lazy(value) and getattr(kind, "__array_function__", np.ndarray.__array_function__) is not (
        np.ndarray.__array_function__)


def _fill(array: Any, value: Any) -> None:
    """Fill with what ``np.copyto(array, value, casting="unsafe")`` would put there."""
    if type(value) is int and value in (0, 1):      # of `zeros`, `ones` and the like, in any dtype
        array.fill(value)
        return
    if array.size == 0:
        if not handles.is_lazy(value) and np.ndim(value) == 0:
            np.copyto(np.empty((), array.dtype), value, casting="unsafe")
        given = handles.meta_of(value).shape if handles.is_lazy(value) else np.shape(value)
        refuse(np.broadcast_shapes(given, array.shape) != array.shape, "the value has another shape")
        return
    if handles.is_lazy(value) or isinstance(value, devices.current().array_type):
        source = handles.operand_of(value) if handles.is_lazy(value) else value
        refuse(source.dtype.kind == "c" and array.dtype.kind != "c", "complex values are cast to real ones")
        if not isinstance(source, np.generic):
            refuse(source.ndim > array.ndim, "the value has more dimensions")
            array[...] = devices.current().xp.broadcast_to(source, array.shape)
            return
        value = source
    if np.ndim(value):
        try:
            value = np.array(value).astype(array.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise NotOnDevice(f"some of the values are invalid: {error}") from None
        refuse(value.ndim > array.ndim, "the value has more dimensions")
        array[...] = common.array(devices.current().xp, value)
        return
    one = np.empty((), array.dtype)
    np.copyto(one, value, casting="unsafe")
    devices.current().assign(array, one[()])


def _like(func: Callable[..., Any], value: Any = None) -> Callable[..., Any]:
    """The handler of `zeros_like` and its kin: the layout of the prototype, whose values nobody needs."""
    filled = func is np.full_like       # which is another one while ``"numpy"`` is enabled

    def made(prototype, fill, dtype, order, shape, device):
        check_device(device)
        meta = handles.meta_of(prototype) if handles.is_lazy(prototype) else np.asarray(prototype)
        kind = meta.dtype if dtype is None else np.dtype(views.no_array(dtype))
        if shape is not None:
            shape = _shape(shape)
        if kind.itemsize == 0 or not devices.current().can_hold(kind) or filled and _decides_itself(fill):
            fills = (_on_host(fill),) if filled else ()
            return handles.host_result(func(meta, *fills, dtype=dtype, order=order, shape=shape, subok=False))
        array = _blank(views.like(meta, views.order_of(order, "K"), kind, shape))
        if fill is not None:
            _fill(array, fill)
        return wrapped(array)

    if filled:
        def handler(a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True,
                    shape: Any = None, *, device: Any = None) -> Any:
            refuse(fill_value is None, "the value is None")
            return made(a, fill_value, dtype, order, shape, device)
    elif func is np.empty_like:
        def handler(prototype, dtype=None, order="K", subok=True, shape=None, *, device=None):
            return made(prototype, None, dtype, order, shape, device)
    else:
        def handler(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
            return made(a, value, dtype, order, shape, device)
    return functools.wraps(func)(handler)


def _new(func: Callable[..., Any], value: Any) -> Callable[..., Any]:
    """The handler of ``func(shape, ..., like=lazy)``: made on the device."""
    filled = func is np.full

    @functools.wraps(func)
    def handler(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Any:
        check_device(device)
        shape = _shape(shape)
        kind = np.dtype(float if dtype is None else views.no_array(dtype))
        if kind.itemsize == 0 or not devices.current().can_hold(kind) or order not in (
                "C", "F", "A", "K") or filled and (value is None or _decides_itself(value)):
            fills = (_on_host(value),) if filled else ()
            return handles.host_result(func(shape, *fills, dtype, order))
        array = _blank(views.meta(shape[::-1], kind).T) if order == "F" else device_for(kind).empty(shape, kind)
        if value is not None:
            _fill(array, value)
        return wrapped(array)

    return handler


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Any:
    if dtype is None:
        if not handles.is_lazy(fill_value):
            fill_value = np.asarray(fill_value)
        dtype = handles.meta_of(fill_value).dtype if handles.is_lazy(fill_value) else fill_value.dtype
    return _new(np.full, fill_value)(shape, dtype, order, device=device)


def _on_host(obj: Any) -> Any:
    return replace(obj, lambda item: handles.host_of(item, "a parameter") if handles.is_lazy(item) else item)


def _made_by_numpy(func: Callable[..., Any]) -> Callable[..., Any]:
    """The handler of ``func(..., like=lazy)`` for what NumPy makes or reads on the host."""

    @functools.wraps(func)
    def handler(*args: Any, **kwargs: Any) -> Any:
        made = func(*[_on_host(a) for a in args], **{k: _on_host(v) for k, v in kwargs.items()})
        given = [a for a in args if isinstance(a, np.ndarray) and not handles.is_lazy(a)]
        if any(made is a or np.may_share_memory(made, a) for a in given):
            return made     # the operand itself, or a view of it
        return host_result(made)

    return handler


def host_result(made: Any) -> Any:
    """A lazy array of what NumPy made, read-only if that is; anything but an ndarray as it is."""
    if type(made) is not np.ndarray:
        return made
    x = handles.host_result(made)
    if not made.flags.writeable:
        x.setflags(write=False)
    return x


def stacked(items: list[Any], dtype: Any = None) -> Any:
    """Lazy arrays and scalars of one shape as one array; each is cast to `dtype` by itself, as by ``np.array``."""
    if dtype is not None and np.dtype(dtype).kind in "iu" and any(      # an error if one has no such value
            handles.is_scalar(o) and not np.can_cast(o.dtype, dtype) for o in items):
        return host_result(np.array([
            handles.value_of(o, "one of a list") if handles.is_scalar(o) else handles.host_of(o, "one of a list")
            for o in items], dtype))
    if dtype is not None and len({o.dtype for o in items}) > 1:
        items = [o.astype(dtype, copy=False) for o in items]
    found = np.stack(items)
    return found if found.flags.c_contiguous else found.copy("C")      # of Fortran's order, too


def _converting(func: Callable[..., Any], names: str, order: str | None = None, copies: bool = False) -> Any:
    """The handler of ``asarray(obj, ..., like=lazy)`` and its kin; a lazy `obj` stays where it is.

    `names` are those of the positional parameters, `order` the memory order that `func` stands for.
    """
    by_numpy = _made_by_numpy(func)

    @functools.wraps(func)
    def handler(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(names.split(), args)), **kwargs}
        obj = given.pop(names.split()[0], None)
        if isinstance(obj, list) and obj and all(map(handles.is_array, obj)) and len({o.shape for o in obj}) == 1:
            obj = stacked(obj, given.get("dtype"))
        dtype, copy = given.pop("dtype", None), given.pop("copy", True if copies else None)
        wanted = given.pop("order", order) or "K"
        ndmin = given.pop("ndmin", 0)
        if not handles.is_array(obj) or any(v not in (None, False) for v in given.values()):
            return by_numpy(*args, **kwargs)
        meta = obj._self_host if handles.is_light(obj) else handles.meta_of(obj)
        np.empty(0).astype(float, order=wanted)     # NumPy judges the order
        dtype = meta.dtype if dtype is None else np.dtype(views.no_array(dtype))
        flags = meta.flags
        laid = wanted in ("K", "A") or (flags.f_contiguous if wanted == "F" else flags.c_contiguous)
        if copy is False and not (laid and dtype == meta.dtype):
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        if copy or not laid or dtype != meta.dtype:
            obj = obj.astype(dtype, order=wanted, copy=True)
        ndmin = max(ndmin, 1 if order else 0)
        return obj if obj.ndim >= ndmin else obj.reshape((1,) * (ndmin - obj.ndim) + obj.shape)

    return handler


_asarray = _converting(np.asarray, "a dtype order")


def require(a: Any, dtype: Any = None, requirements: Any = None) -> Any:
    np.require(np.empty(0), None, requirements)     # NumPy judges the words
    if not handles.is_array(a):
        return _made_by_numpy(np.require)(a, dtype, requirements)
    wanted = {r[0].upper() for r in requirements or ()}
    order = "F" if "F" in wanted else "C" if "C" in wanted else None
    x = _asarray(a, dtype, order)
    copied = "O" in wanted and x._self_base is not None or "W" in wanted and not writeable(handles.meta_of(x))
    return x.copy(order or "K") if copied else x


def copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    np.copy(np.empty(0), order)     # NumPy judges the order
    return as_lazy(a).copy(order=order)


def astype(x: Any, dtype: Any, *, copy: Any = True, device: Any = None) -> Any:
    check_device(device)
    return x.astype(dtype, copy=copy)


MAKING: dict[Any, Callable[..., Any]] = {
    **{func: _made_by_numpy(func) for func in (
        np.frombuffer, np.fromfile, np.fromfunction, np.fromiter, np.fromstring, np.genfromtxt, np.loadtxt)},
    **{func: SERIES[func] for func in (np.arange, np.eye, np.identity, np.tri)},
    np.array: _converting(np.array, "object dtype", copies=True), np.asarray: _asarray,
    np.asanyarray: _converting(np.asanyarray, "a dtype order"),
    np.ascontiguousarray: _converting(np.ascontiguousarray, "a dtype", "C"),
    np.asfortranarray: _converting(np.asfortranarray, "a dtype", "F"), np.require: require,
    np.empty_like: _like(np.empty_like), np.zeros_like: _like(np.zeros_like, 0), np.ones_like: _like(np.ones_like, 1),
    np.full_like: _like(np.full_like), np.empty: _new(np.empty, None), np.zeros: _new(np.zeros, 0),
    np.ones: _new(np.ones, 1), np.full: full, np.copy: copy, np.astype: astype,
}
