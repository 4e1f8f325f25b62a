"""NumPy functions whose result is a view: NumPy itself does the arithmetic, on metas.

A handler has the function's own parameters, and gets lazy arrays as they were given. NotOnDevice: NumPy does it.
No byte is copied and none is looked at: a function that reads elements must not see a meta.
"""
from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..errors import NotOnDevice, refuse
from ..storage import facts, handles, transfer, views
from ..storage.storage import Storage
from .host_parameters import INTEGERS, ITERATING
from .kinds import PLAIN, SUBCLASS, kind_of
from .pytree import replace

if TYPE_CHECKING:
    from ..storage.handles import ArrayHandle


def as_lazy(obj: Any) -> ArrayHandle:
    """A lazy array of an argument, to which NumPy would apply ``np.asarray``."""
    if handles.is_array(obj):
        return obj
    if handles.is_scalar(obj):
        return obj[...]
    if isinstance(obj, devices.current().array_type):
        return handles.share(devices.current(), obj)
    return handles.from_host(np.asarray(obj), "host operand")


def viewed(x: Any, result: Any) -> Any:
    """Views of `x` for what NumPy made of its meta: an array, or a list or tuple of arrays."""
    meta = handles.meta_of(x)
    kind = type(meta)    # of which functions with `subok` make plain arrays

    def leaf(part: np.ndarray) -> Any:
        if not isinstance(part, np.ndarray):
            return x[()]        # the one element, of which the meta has no value
        return x if part is meta else handles.view_of(x, part if type(part) is kind else part.view(kind))

    return list(map(leaf, result)) if type(result) is list else replace(result, leaf)


def strided(x: ArrayHandle, shape: Any, strides: Any, writeable: bool) -> ArrayHandle | None:
    """A view of the memory that a lazy array is of, with another shape and strides in bytes, from its first element on;
    None where it would reach beyond, or NumPy knows more."""
    meta, storage = handles.meta_of(x), x._self_storage
    if type(storage) is not Storage:
        return None
    try:
        shape = tuple([operator.index(n) for n in (meta.shape if shape is None else shape)])
        if strides is None and meta.flags.c_contiguous:     # whose strides NumPy does not hand on
            strides = views.meta(shape, meta.dtype).strides
        strides = tuple([operator.index(n) for n in (meta.strides if strides is None else strides)])
    except (TypeError, ValueError):
        return None
    if len(shape) != len(strides) or any(n < 0 for n in shape):
        return None
    view = views.meta(shape, meta.dtype, strides, views.offset_of(meta))
    low, high = views.extent(view)
    size = meta.dtype.itemsize      # the device reads whole elements, at multiples of their size
    if low < 0 or high > storage.nbytes or any(n % size for n in (*strides, views.offset_of(meta))):
        return None
    view.flags.writeable = bool(writeable) and meta.flags.writeable
    return handles.view_of(x, view)


def on_host_side(obj: Any, why: str = "a parameter is on the host") -> Any:
    """A parameter that says how a function works, with host arrays and NumPy scalars in place of lazy ones."""
    return obj if type(obj) in PLAIN else replace(obj, functools.partial(_on_host, why))


def _on_host(why: str, item: Any) -> Any:
    if handles.is_lazy(item):
        found = facts.host_value(item, why)
        return found.copy() if isinstance(found, np.ndarray) else found     # NumPy's rot90 writes to its k
    device = devices.current()
    if isinstance(item, device.array_type):
        return transfer.to_host(device, item, why, kind="synchronise")
    refuse(kind_of(type(item)) == SUBCLASS, "a parameter is an ndarray subclass")
    return item


def steering(obj: Any, name: str, func: Callable[..., Any]) -> Any:
    """A parameter of `host_parameters.NAMES` as an adapter gets it: integers in an array as Python's own.

    Those with dimensions come as lists, which no function takes where NumPy refuses an array.
    """
    if type(obj) in PLAIN:
        return obj
    obj = on_host_side(obj, f"{name}= of {func.__name__}")
    if name not in INTEGERS or not isinstance(obj, (np.ndarray, np.generic)) or obj.dtype.kind not in "iu" or (
            (func, name) in ITERATING):
        return obj
    return obj.tolist()


_INTEGERS = frozenset((int,))


def _are_plain(given: Iterable[Any]) -> bool:
    """Whether there are only numbers, words and tuples of integers."""
    for item in given:
        if type(item) not in PLAIN and not (type(item) is tuple and _INTEGERS.issuperset(map(type, item))):
            return False
    return True


def viewing(func: Callable[..., Any]) -> Callable[..., Any]:
    """The handler of a function whose first parameter is the array that its result is a view of."""
    numpys = views.undispatched(func)
    # `inspect` finds the same, in 8 us for each of 21 at import.
    name = (numpys.__code__.co_varnames[0] if isinstance(numpys, types.FunctionType) else
            next(iter(inspect.signature(func).parameters)))

    @functools.wraps(func)
    def handler(*args: Any, **kwargs: Any) -> Any:
        if args:
            x, args = args[0], args[1:]
            if type(x) is handles.array_type and _are_plain(args) and (not kwargs or _are_plain(kwargs.values())):
                meta = handles.meta_of(x)       # the usual call, with nothing to be looked into
                if func is np.flip and not meta.ndim:
                    return _element(x, numpys, args, kwargs)
                result = numpys(meta, *args, **kwargs)
                return handles.view_of(x, result) if type(result) is type(meta) and result is not meta else (
                    viewed(x, result))
        elif name in kwargs:
            x = kwargs.pop(name)
        else:
            return func(**kwargs)       # NumPy words the error
        refuse(not handles.is_lazy(x), "only a parameter is lazy, not the array")
        args = on_host_side(args)
        kwargs = {k: on_host_side(v) for k, v in kwargs.items()}
        if handles.is_scalar(x) and isinstance(func(handles.meta_of(x).dtype.type(0), *args, **kwargs), np.generic):
            return x        # NumPy asks a scalar's own method, which gives the scalar
        x = as_lazy(x)
        if func is np.flip and not x.ndim:
            return _element(x, numpys, args, kwargs)
        return viewed(x, numpys(handles.meta_of(x), *args, **kwargs))

    return handler


def _element(x: Any, numpys: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The one element of an array without axes, as ``numpy.flip`` reads it: a meta has none to be read."""
    numpys(np.zeros(()), *args, **kwargs)       # NumPy words the errors
    return x[()]


def _each(func: Callable[..., Any]) -> Callable[..., Any]:
    """The handler of `atleast_1d` and its like: each argument for itself."""

    @functools.wraps(func)
    def handler(*arys: Any) -> Any:
        results = []
        for x in arys:
            if handles.is_lazy(x):
                x = as_lazy(x)
                results.append(viewed(x, func(handles.meta_of(x))))
            else:
                # An ndarray stays what it is, or is looked at; a list or number is nobody else's.
                made = func(x)
                results.append(made if isinstance(x, np.ndarray) else handles.host_result(made))
        return results[0] if len(results) == 1 else tuple(results)

    return handler


_broadcast_arrays = views.undispatched(np.broadcast_arrays)


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    # An ndarray among them gives a view of itself, as in NumPy; lists and numbers are nobody else's.
    args = [as_lazy(a) if handles.is_lazy(a) else a if isinstance(a, np.ndarray) else handles.host_result(np.array(a))
            for a in args]
    given = [handles.meta_of(a) if handles.is_lazy(a) else a if subok else np.asarray(a) for a in args]
    results = _broadcast_arrays(*given, subok=True)
    return type(results)([viewed(a, r) if handles.is_lazy(a) else r for a, r in zip(args, results)])


_FEW = 64
"""Up to this many elements, each becomes a scalar on the device; more are fetched in one piece."""


def unstack(x: Any, *, axis: int = 0) -> tuple[Any, ...]:
    x = as_lazy(x)
    meta = handles.meta_of(x)
    if meta.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    moved = np.moveaxis(meta, axis, 0)
    if moved.ndim == 1:
        return tuple([x[i] for i in range(moved.size)]) if moved.size <= _FEW else tuple(x)
    return tuple([handles.view_of(x, moved[i]) for i in range(moved.shape[0])])


def reshape(a: Any, shape: Any, order: Any = "C", *, copy: Any = None) -> Any:
    result = as_lazy(a).reshape(shape, order=order, copy=copy)
    return a if handles.is_scalar(a) and not result.ndim else result


def ravel(a: Any, order: Any = "C") -> Any:
    x = as_lazy(a)
    meta = handles.meta_of(x)
    np.ravel(np.empty(0), order)        # NumPy judges the order
    order = "C" if order is None else order.upper()
    if order == "A":
        order = "F" if meta.flags.fnc else "C"
    if order == "K":
        # The order of the strides: a view if the axes so arranged are contiguous.
        turned = meta.transpose(views.by_strides(meta))
        if turned.flags.c_contiguous:
            return handles.view_of(x, views.reshaped(turned, -1))
        if any(n > 1 and not stride for n, stride in zip(meta.shape, meta.strides)):
            # Axes along which nothing moves have no place in the order of strides: NumPy leaves them where they are.
            raise NotOnDevice("the memory order of a broadcast array")
        return ravel(x.copy("K"), "K")
    if order == "F":
        meta = meta.T
    if meta.flags.c_contiguous:
        return handles.view_of(x, views.reshaped(meta, -1))
    return x.flatten(order)


def _part(func: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The handler of `real` and `imag`."""

    @functools.wraps(func)
    def handler(val: Any) -> Any:
        x = as_lazy(val)
        refuse(handles.meta_of(x).dtype == object, "arrays of objects are not supported on the device")
        part = getattr(x, name)
        return part[()] if handles.is_scalar(val) else part

    return handler


def diag(v: Any, k: Any = 0) -> Any:
    x, k = as_lazy(v), steering(k, "k", np.diag)
    if handles.meta_of(x).ndim == 1:
        device, values = devices.current(), handles.operand_of(x)
        n = values.size + abs(k)
        result = device.xp.zeros((n, n), values.dtype)
        if values.size:
            device.assign(result.reshape(-1)[max(k, -k * n)::n + 1][:values.size], values)
        return handles.wrap(device, result)
    if handles.meta_of(x).ndim != 2:
        raise ValueError("Input must be 1- or 2-d.")
    return viewed(x, np.diagonal(handles.meta_of(x), k))


def ix_(*args: Any) -> Any:
    """NumPy's own, which makes a view of each that is no mask. One of an array of the host stays there."""
    found = zip(args, views.undispatched(np.ix_)(*args))
    return tuple([x if handles.is_array(x) or type(given) is np.ndarray and given.dtype != bool else as_lazy(x)
                  for given, x in found])


_OF_THE_FIRST = (
    np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.matrix_transpose, np.linalg.matrix_transpose,
    np.squeeze, np.expand_dims, np.broadcast_to, np.diagonal, np.linalg.diagonal, np.flip, np.fliplr, np.flipud,
    np.rot90, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit, np.lib.stride_tricks.sliding_window_view)

VIEWS: dict[Any, Callable[..., Any]] = {
    **{func: viewing(func) for func in _OF_THE_FIRST},
    **{func: _each(func) for func in (np.atleast_1d, np.atleast_2d, np.atleast_3d)},
    np.broadcast_arrays: broadcast_arrays, np.reshape: reshape, np.ravel: ravel,
    np.real: _part(np.real, "real"), np.imag: _part(np.imag, "imag"), np.diag: diag, np.ix_: ix_,
}
if hasattr(np, "unstack"):      # NumPy 2.1
    VIEWS[np.unstack] = unstack


def for_native() -> dict[str, Any]:
    """What the part in C goes by: NumPy's own function, which makes a view of a meta, and whether it copies others than
    such in C order."""
    seeing = {func: (views.undispatched(func), False) for func in _OF_THE_FIRST}
    seeing |= {np.reshape: (views.undispatched(np.reshape), True), np.ravel: (np.ndarray.ravel, True)}
    return {"seeing": seeing}
