"""Creation functions: NumPy's by name, parameters and errors, with lazy arrays as their results.

Three kinds, a table each: what a shape and numbers describe is made on the device, what is made of other arrays takes
lists and host arrays as well, and what NumPy computes or reads on the host stays there until the device needs it.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as _np

from lazyarray import _native, devices
from lazyarray.dispatch import convert, small_arrays
from lazyarray.dispatch.assigned_values import with_values
from lazyarray.dispatch.host_fallback import on_host
from lazyarray.errors import NotOnDevice
from lazyarray.functions import index_bounds
from lazyarray.functions.creation import MAKING, host_result, stacked
from lazyarray.functions.numerical_ranges import SERIES, check_device
from lazyarray.functions.pytree import replace
from lazyarray.graph.record.creation import QUICK, SOURCES
from lazyarray.settings.options import current as current_options
from lazyarray.storage import foreign_streams, handles

_HANDLERS = {**SERIES, **MAKING}

#: What makes an array of the class of the one that it is given.
_LIKE_GIVEN = frozenset({_np.zeros_like, _np.ones_like, _np.empty_like, _np.full_like})


def made(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Make what NumPy's `func` makes, on the device if that can be.

    NumPy has the last word on what the device's version refuses: its result, or its error.
    """
    if not current_options().lazy or (
            args and func in _LIKE_GIVEN and _is_subclass(args[0]) and kwargs.get("subok", True)):
        return func(*args, **kwargs)
    if (small := small_arrays.made(func, args, kwargs)) is not None:
        return small
    try:
        recorder = SOURCES.get(func)
        if recorder is not None and (result := recorder(*args, **kwargs)) is not None:
            return result
        return _HANDLERS[func](*args, **kwargs)
    except devices.current().faults:
        raise
    except NotOnDevice as reason:
        return on_host(func, args, kwargs, str(reason))
    except (TypeError, ValueError, ArithmeticError, AttributeError, IndexError):
        return lazy(func(*args, **kwargs))


def lazy(result: Any) -> Any:
    """`result` with lazy arrays in place of the ndarrays in it, which nobody else holds; subclasses stay."""
    return replace(result, host_result) if current_options().lazy else result


def passing(module: ModuleType) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module of ours with all names of one of NumPy's."""
    return functools.partial(getattr, module), functools.partial(dir, module)


def _is_subclass(obj: Any) -> bool:
    return isinstance(obj, _np.ndarray) and not handles.is_lazy(obj) and type(obj) not in (_np.ndarray, _np.memmap)


# -- conversions -----------------------------------------------------------------------------

def asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None,
            copy: bool | None = None) -> Any:
    """`numpy.asarray`: a lazy array as it is, anything else copied to the device."""
    check_device(device)
    if type(a) is handles.array_type and dtype is None and order is None and not copy and current_options().lazy:
        return a
    a = _stacked(a, copy, dtype)
    if not handles.is_array(a):
        a = convert.asarray(_with_values(a, dtype), dtype, copy=copy)
        if order is None and type(a) is handles.array_type and current_options().lazy:
            return a
        copy = dtype = None     # which of subarrays would make more axes a second time
    return made(_np.asarray, a, dtype, order, copy=copy)


def _with_values(obj: Any, dtype: Any) -> Any:
    """A list with NumPy's scalars for lazy ones, which NumPy would take for Python's numbers if it is told a dtype."""
    return with_values(obj) if dtype is not None and isinstance(obj, (list, tuple)) else obj


def _stacked(obj: Any, copy: bool | None = None, dtype: Any = None) -> Any:
    """A nested list of lazy arrays and scalars as one lazy array, without a look at the values."""
    if dtype is not None and ((kind := _np.dtype(dtype)).hasobject or kind.kind == "V"):
        return obj          # of which each element stays what it is, or a tuple is one element
    first = obj
    while type(first) is not handles.array_type and isinstance(first, (list, tuple)) and first:
        first = first[0]
    if first is obj or not handles.is_lazy(first):
        return obj
    items = [_stacked(o, None, dtype) for o in obj]
    if not all(map(handles.is_lazy, items)) or len({o.shape for o in items}) > 1:
        return obj
    if copy is not None and not copy:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    hosts = [small_arrays.on_host(o) if handles.is_array(o) else None for o in items]
    if all(host is not None for host in hosts):     # one array is copied to the device, not many
        return _np.array(hosts, dtype)
    return stacked(items, dtype)


def array(object: Any, dtype: Any = None, *, copy: bool | None = True, order: Any = "K", subok: bool = False,
          ndmin: int = 0, **kwargs: Any) -> Any:
    """`numpy.array`: a copy on the device, with at least `ndmin` dimensions."""
    if subok and _is_subclass(object):
        return _np.array(object, dtype, copy=copy, order=order, subok=True, ndmin=ndmin, **kwargs)
    given, object = object, _stacked(object, copy, dtype)
    if handles.is_array(object):
        if object is not given:
            copy = None     # it is in new memory
    else:
        if kwargs:
            object, dtype = _np.array(object, dtype, **kwargs), None
        object = convert.asarray(_with_values(object, dtype), dtype, copy=copy)
        copy = dtype = None     # the upload is the copy that was asked for
    return made(_np.array, object, dtype, copy=copy, order=order, ndmin=ndmin)


def asanyarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None,
               copy: bool | None = None) -> Any:
    """`numpy.asanyarray`: as `asarray`, but subclasses of ndarray pass through."""
    if _is_subclass(a):
        return _np.asanyarray(a, dtype, order)
    return asarray(a, dtype, order, device=device, copy=copy)


def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """`numpy.ascontiguousarray` on the device."""
    return made(_np.ascontiguousarray, asarray(a, dtype))


def asfortranarray(a: Any, dtype: Any = None) -> Any:
    """`numpy.asfortranarray` on the device."""
    return made(_np.asfortranarray, asarray(a, dtype))


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """`numpy.asarray_chkfinite`: `asarray` that refuses infinities and NaNs, with ValueError."""
    x = asarray(a, dtype, order)
    if x.dtype.char in _np.typecodes["AllFloat"] and not _np.isfinite(x).all():
        raise ValueError("array must not contain infs or NaNs")
    return x


def require(a: Any, dtype: Any = None, requirements: Any = None) -> Any:
    """`numpy.require` on the device."""
    return made(_np.require, asarray(a), dtype, requirements)


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """`numpy.copy`: a copy on the device."""
    return array(a, order=order, subok=subok)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    """`numpy.frombuffer`: a view of a lazy array; of other buffers a copy on the device, read-only where the buffer is.
    """
    if handles.is_array(buffer) and not buffer.dtype.hasobject:
        found = _np.frombuffer(handles.meta_of(buffer), dtype, count, offset)   # or NumPy's error
        return buffer.reshape(-1).view(_np.uint8)[offset:offset + found.nbytes].view(found.dtype)
    host = _np.frombuffer(buffer, dtype, count, offset)
    x = convert.asarray(host)
    if not host.flags.writeable:
        x.setflags(write=False)
    return x


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """`numpy.from_dlpack`: memory on the device is shared, memory on the host copied to it.

    Raises BufferError if ``copy=False`` and the memory is on the host.
    """
    check_device(device)
    shared = x.view() if handles.is_array(x) else None
    if shared is None:
        found = foreign_streams.from_foreign(devices.current(), x)
        shared = None if found is None else handles.share(devices.current(), found)
    if shared is not None:
        shared = shared.copy(order="K") if copy else shared
        return shared if current_options().lazy else _np.asarray(shared)
    if copy is not None and not copy:
        raise BufferError("the memory is on the host, and is copied to the device")
    return convert.asarray(_np.from_dlpack(x))


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """`numpy.fromfunction`: `function` is called with lazy arrays of indices."""
    return function(*made(_np.indices, shape, dtype), **kwargs)


# -- the tables ------------------------------------------------------------------------------

#: Made on the device of a shape, of numbers, or of the layout of a prototype.
DESCRIBED = (
    "zeros ones empty full zeros_like ones_like empty_like full_like arange eye identity tri indices "
    "tril_indices triu_indices"
).split()

#: As above where numbers are given, and made of arrays otherwise.
SPACED = "linspace logspace geomspace".split()

#: NumPy's functions of arrays, which here take lists and host arrays to the device; which arguments are arrays.
OF_ARRAYS: dict[str, slice] = {
    "diag": slice(1), "diagflat": slice(1), "vander": slice(1), "tril": slice(1), "triu": slice(1),
    "meshgrid": slice(None), "ix_": slice(None),
}

#: Computed or read by NumPy on the host.
ON_HOST = (
    "fromfile fromiter fromregex fromstring genfromtxt loadtxt load bartlett blackman hamming hanning kaiser "
    "mask_indices diag_indices"
).split()

CONVERSIONS = (array, asarray, asanyarray, ascontiguousarray, asfortranarray, asarray_chkfinite, require, copy,
               frombuffer, from_dlpack, fromfunction)


class Grid:
    """`numpy.mgrid` or `numpy.ogrid`: made on the host, and copied to the device when it is needed there."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid

    def __getitem__(self, key: Any) -> Any:
        return lazy(self._grid[key])


def _spaced(func: Callable[..., Any]) -> Callable[..., Any]:
    def create(start: Any, stop: Any, *args: Any, **kwargs: Any) -> Any:
        if any(map(handles.is_lazy, (start, stop))):
            return func(start, stop, *args, **kwargs)
        if _np.ndim(start) or _np.ndim(stop):
            return func(asarray(start), asarray(stop), *args, **kwargs)
        return made(func, start, stop, *args, **kwargs)
    return create


def _of_arrays(func: Callable[..., Any]) -> Callable[..., Any]:
    which = OF_ARRAYS[func.__name__]

    def create(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        given[which] = [a if handles.is_lazy(a) or _is_subclass(a) else convert(a) for a in given[which]]
        return func(*given, **kwargs)

    convert = _positions if func is _np.ix_ else asarray
    return create


def _positions(a: Any) -> Any:
    """The lazy array of an index; a list without any is one of integers."""
    found = asarray(a)
    return found if found.size or isinstance(a, _np.ndarray) else asarray(a, _np.intp)


def _on_host(func: Callable[..., Any]) -> Callable[..., Any]:
    def create(*args: Any, **kwargs: Any) -> Any:
        return lazy(func(*args, **kwargs))
    return create


def _series(args: tuple[Any, ...], result: Any) -> Any:
    if handles.is_array(result) and small_arrays.on_host(result) is None:
        index_bounds.note_series(args, result)
    return result


def _of_triangle(args: tuple[Any, ...], result: Any) -> Any:
    if set(map(type, args)) == {int}:
        index_bounds.note_axes((args[0], args[2] if len(args) > 2 else args[0]), result)
    return result


_DTYPE = frozenset(("dtype",))

#: Functions of whose results it is known what they may index -> what keeps that of ``function(*args)``.
_NOTED = {_np.arange: _series, _np.triu_indices: _of_triangle, _np.tril_indices: _of_triangle}


def _named(func: Callable[..., Any], create: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """`create` under the name and with the parameters of NumPy's `func`, its `like=` too."""
    quick, noted = func in QUICK, _NOTED.get(func)
    of_list = small_arrays.quick_array if func in (_np.array, _np.asarray, _np.asanyarray) else None

    def call(*args: Any, **kwargs: Any) -> Any:
        if quick and (result := _native.recording.sourced(func, args, kwargs)) is not None:
            return result
        if kwargs:
            if kwargs.get("like") is not None:
                return lazy(func(*args, **kwargs))      # whose array it becomes is for its type to say
            kwargs.pop("like", None)
        if of_list is not None and 0 < len(args) < 3 - len(kwargs) and kwargs.keys() <= _DTYPE and (
                (result := of_list(*args, **kwargs)) is not None):
            return result
        result = create(*args, **kwargs)
        return result if noted is None or kwargs.get("m") is not None else noted(args, result)

    call.__name__ = call.__qualname__ = func.__name__
    call.__module__ = "lazyarray.numpy"
    call.__doc__ = doc
    try:
        call.__signature__ = inspect.signature(func)    # type: ignore[attr-defined]
    except ValueError:
        pass        # NumPy's functions in C have told theirs since 2.4
    return call


def _functions() -> Iterator[tuple[Callable[..., Any], Callable[..., Any], str]]:
    for names, kind, doc in (
            (DESCRIBED, lambda func: functools.partial(made, func), ", made on the device."),
            (SPACED, _spaced, ", computed on the device."),
            (OF_ARRAYS, _of_arrays, ", whose arrays may be lists, and whose result is lazy."),
            (ON_HOST, _on_host, ": made on the host, and copied to the device when needed there.")):
        for name in names:
            func = getattr(_np, name)
            yield func, kind(func), f"`numpy.{name}`{doc}"
    for convert_one in CONVERSIONS:
        yield getattr(_np, convert_one.__name__), convert_one, convert_one.__doc__ or ""


#: What makes arrays in the namespace, by name.
FUNCTIONS: dict[str, Any] = {
    **{func.__name__: _named(func, create, doc) for func, create, doc in _functions()},
    "mgrid": Grid(_np.mgrid), "ogrid": Grid(_np.ogrid),
}
