"""One call of a NumPy function: choose a side, unwrap, run, wrap.

`call` is `__array_function__`. Which function runs how is said by the tables in `functions/tables.py`;
`dispatch/ufunc.py` does the same for ufuncs.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..errors import NotOnDevice
from ..functions import index_bounds, memory_order, tables, written_parameters
from ..functions.kinds import SUBCLASS, is_container, is_foreign, kind_of
from ..functions.pytree import leaves, replace
from ..functions.views import steering
from ..graph import known_ranges
from ..graph.record import functions, reductions
from ..storage import handles, places, transfer, upload_cache, views
from ..storage.statements import held
from ..storage.storage import Storage, write_all
from ..storage.writeable import may_write
from . import small_arrays
from .host_fallback import lazily, on_host
from .plain_call import tried, wrapped
from .small_arrays import is_light

if TYPE_CHECKING:
    from ..devices import Device
    from ..storage.handles import ArrayHandle

_bool = np.dtype(bool)


# -- whose turn it is ------------------------------------------------------------------------

def call(func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`__array_function__`: NotImplemented if an argument's type knows better."""
    if len(types) == 1 and types[0] is handles.array_type:
        if func in tables.VIEWS and args and type(args[0]) is handles.array_type and not is_light(args[0]) and (
                devices.current().count == 1):
            return _by_tables(func, args, kwargs)       # nothing is computed, but a copy that `ravel` may make
        return run(func, args, kwargs)
    subclass = False
    for kind in types:
        if is_foreign(kind):
            return NotImplemented
        # A real subclass (masked array, matrix, Quantity) gets from NumPy what it would get beside an ndarray.
        subclass |= kind_of(kind) == SUBCLASS
    if subclass:
        return on_host(func, args, kwargs, TAKES_PART, aliases=True)
    return run(func, args, kwargs)


def run(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a NumPy function on lazy arguments, where its table says."""
    if "dtype" in kwargs:
        views.no_array(kwargs["dtype"])
    if small_arrays.limit() and (result := small_arrays.run(func, args, kwargs)) is not NotImplemented:
        return result
    assign = tables.ASSIGNING.get(func)
    if assign is not None:
        try:
            if assign(*args, **kwargs):
                return None
        except TypeError:       # of the arguments, or their dtypes: NumPy words it
            pass
    if func in reductions.TAKEN and (result := reductions.taken(func, args, kwargs)) is not None:
        return result
    recorder = functions.RECORDED.get(func)
    if recorder is not None:
        try:
            result = recorder(*args, **kwargs)
        except TypeError:       # of the arguments: NumPy words it
            result = None
        except NotOnDevice as reason:
            return on_host(func, args, kwargs, str(reason))
        if result is not None:
            return result
    device = devices.current()
    if device.count == 1 or places.one_alone(device, (*args, *kwargs.values())):
        return _by_tables(func, args, kwargs)
    out, bare_args, bare_kwargs = written_parameters.take_out(func, args, kwargs)
    positions, names = written_parameters.written_slots(func)
    written = [*(out if type(out) is tuple else (out,)), *(a for i, a in enumerate(bare_args) if i in positions),
               *(bare_kwargs.get(name) for name in names)]
    given = leaves((bare_args, bare_kwargs))
    with places.on_one(device, given, written):
        if places.apart(device, given):     # nobody writes to one after another one has been copied
            return held((*given, *written), _by_tables, func, args, kwargs)
        return _by_tables(func, args, kwargs)


#: Functions with positions among their arguments, whose bounds are asked for.
_OF_PLACES = frozenset((np.take, np.take_along_axis, np.put, np.put_along_axis, np.bincount))


def _by_tables(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function where its table says; on the current device, if on a device."""
    handler = tables.VIEWS.get(func) or tables.LAZY.get(func)
    if handler is not None:
        if func in _OF_PLACES:      # before one is computed: it does not know then what of
            for x in args:
                known_ranges.note(x)
            # The greatest says how many bins there are: bounds that are wider would be looked at each time.
            if func is np.bincount and args and handles.is_array(args[0]):
                known_ranges.look_through(args[0], at_once=False)
        try:
            return handler(*args, **kwargs)
        except NotOnDevice as reason:
            return on_host(func, args, kwargs, str(reason))
    adapter = tables.ADAPTED.get(func)
    if adapter is None and func not in tables.COMPOSED:
        reason = tables.HOST_ONLY.get(func, "this function is not supported on the device")
        return on_host(func, args, kwargs, reason, expected=func in tables.FILES)
    if (result := tried(func, args, kwargs)) is not NotImplemented:
        return result
    out, bare_args, bare_kwargs = written_parameters.take_out(func, args, kwargs)
    if type(out) is tuple:
        return on_host(func, args, kwargs, "out= is a tuple")       # which NumPy takes of ufuncs alone
    call = func, adapter, args, kwargs, out, bare_args, bare_kwargs
    positions, names = written_parameters.written_slots(func)
    if out is not None or positions or names:
        return held((out, *args, *kwargs.values()), _on_device, *call)
    return _on_device(*call)


TAKES_PART = "an argument is an ndarray subclass"


class SubclassTakesPart(NotOnDevice):
    """An argument is an instance of a real subclass of ndarray: NumPy itself decides about the result's class."""

    def __init__(self) -> None:
        super().__init__(TAKES_PART)


def decides_itself(kind: type) -> bool:
    """Whether an operand of this type has a say in what NumPy's own methods and ufuncs return."""
    return kind_of(kind) == SUBCLASS or is_foreign(kind) and hasattr(kind, "__array_ufunc__")


# -- on the device ---------------------------------------------------------------------------

def _on_device(func: Callable[..., Any], adapter: Callable[..., Any] | None, args: tuple[Any, ...],
               kwargs: dict[str, Any], out: Any, bare_args: tuple[Any, ...], bare_kwargs: dict[str, Any]) -> Any:
    """Run a function's adapter, or NumPy's code of it if there is none; what it writes is `held`.

    `bare_args` and `bare_kwargs` are without `out`.
    """
    device = devices.current()
    sources: list = []
    brought: dict[int, tuple[Any, Any]] = {}    # identity of an operand's copy on this device -> both
    try:
        if device.usable() is not None:
            raise NotOnDevice(device.usable())
        if out is not None and func in tables.OUT_OR_DTYPE and bare_kwargs.get("dtype") is not None:
            raise NotOnDevice("out= and dtype= cannot be combined")
        if adapter is None:
            return _composed(func, device, out, bare_args, bare_kwargs)
        positions, names = written_parameters.written_slots(func)
        leaf = functools.partial(_unwrapped, device, sources, brought, func)
        slots = written_parameters.steering_slots(func)

        def unwrapped(slot: int | str, a: Any) -> Any:
            name, read_there = slots.get(slot, ("", True))
            if read_there and not (name and type(a) is np.ndarray):
                return replace(a, leaf)
            return steering(a, name, func)

        device_args = [a if i in positions else unwrapped(i, a) for i, a in enumerate(bare_args)]
        device_kwargs = {k: a if k in names else unwrapped(k, a) for k, a in bare_kwargs.items()}
        # Opened last, so that no thread waits for another array while it holds one for writing.
        writing: list = []
        device_args = [_opened(a, writing) if i in positions else a for i, a in enumerate(device_args)]
        device_kwargs = {k: _opened(a, writing) if k in names else a for k, a in device_kwargs.items()}

        def compute() -> Any:
            result = adapter(device.xp, *device_args, **device_kwargs)
            rule = memory_order.RULES.get(func)
            if rule is not None and out is None:
                result = memory_order.after(device, rule, result, tuple(device_args), device_kwargs)
            if out is not None:
                return _into(func, device, result, out)
            if _of_nothing(device, result, sources):
                return on_host(func, args, kwargs, "a value of arrays without elements")
            scalar = func not in tables.ARRAY_0D
            if brought:     # what the function gives back is the operand
                result = replace(result, lambda obj: brought[id(obj)][1] if id(obj) in brought else obj)
            if isinstance(result, device.array_type):
                return handles.wrap(device, result, sources, scalar)
            return wrapped(device, result, sources, scalar)

        before = index_bounds.seen(func, args, kwargs)
        result = write_all(writing, compute) if writing else compute()
        index_bounds.note(func, args, kwargs, result, before)
        return result
    except SubclassTakesPart as error:      # in a parameter that NumPy asks no `__array_function__` of
        return on_host(func, args, kwargs, str(error), aliases=True)
    except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
        reason = str(device.refusal(error))
    return on_host(func, args, kwargs, reason)


def _composed(func: Callable[..., Any], device: Device, out: Any, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> Any:
    """Run NumPy's code of a function, each operation of which is a call of its own."""
    slots = written_parameters.steering_slots(func)

    def hosted(slot: int | str, a: Any) -> Any:
        name, read_there = slots.get(slot, ("", True))
        return a if read_there else steering(a, name, func)

    args = tuple([hosted(i, a) for i, a in enumerate(args)])
    kwargs = {k: hosted(k, a) for k, a in kwargs.items()}
    given = [x for a in (*args, *kwargs.values()) for x in (leaves(a) if is_container(type(a)) else (a,))]
    for x in given:
        if isinstance(x, np.ndarray):
            if kind_of(type(x)) == SUBCLASS:
                raise SubclassTakesPart
            if not device.can_hold(x.dtype):
                raise NotOnDevice(f"dtype {x.dtype} is not supported on the device")
        elif callable(x) and not isinstance(x, type):
            raise NotOnDevice("it calls a Python function")
    if func in tables.TAKES_MEANS and not all(x.size for x in given if isinstance(x, np.ndarray)):
        raise NotOnDevice("mean of an empty slice")
    result = tables.COMPOSED[func](*args, **kwargs)
    hosts = [x for x in given if type(x) is np.ndarray]

    def leaf(x: Any) -> Any:        # a view of an array of the host stays one
        return x if type(x) is np.ndarray and any(np.may_share_memory(x, host) for host in hosts) else lazily(x)

    return replace(result, leaf) if out is None else _into(func, device, handles.device_of(result), out)


def _of_nothing(device: Device, result: Any, sources: Sequence[Any]) -> bool:
    """Whether a result is one value of arrays without elements: to fetch it would be a copy for nothing.

    Libraries ask for such values to find out what a function returns, while nothing is being computed yet.
    """
    return isinstance(result, device.array_type) and not result.ndim and bool(sources) and all(
        handles.is_array(x) and not handles.meta_of(x).size for x in sources)


def _opened(x: ArrayHandle, writing: list[tuple[Storage, np.ndarray, Any]]) -> Any:
    """The device array of an argument that the function modifies, which is entered into `writing`."""
    if not handles.is_array(x):
        raise NotOnDevice("the destination is a host array or a scalar")
    meta = handles.meta_of(x)
    if not may_write(meta):
        raise NotOnDevice("the destination is read-only")
    array = handles.device_of(x)
    writing.append((x._self_storage, meta, array))
    return array


def _unwrapped(device: Device, sources: list[Any], brought: dict[int, tuple[Any, Any]], func: Callable[..., Any],
               obj: Any) -> Any:
    """The device array of a lazy or a host array; what else there is among arguments stays."""
    if kind_of(type(obj)) == SUBCLASS:
        raise SubclassTakesPart
    if is_container(type(obj)):
        raise NotOnDevice("an argument is a list or dict that contains itself")
    array = read_operand(device, obj, sources, func)
    if device.several and handles.is_array(obj) and array is not handles.device_of(obj):
        brought[id(array)] = array, obj
    return array


def read_operand(device: Device, x: Any, sources: list[Any], func: Callable[..., Any]) -> Any:
    """An operand that is only read, as a device array on the current device; what is no array as it is.

    A lazy one is added to `sources`. NotOnDevice if the device can't hold the dtype of a host array.
    """
    if handles.is_lazy(x):
        if x._self_storage is not None:
            sources.append(x)
        return handles.operand_of(x)
    if isinstance(x, np.ndarray):
        return upload_operand(device, x, func)
    return transfer.to_current(device, x, "operand") if isinstance(x, device.array_type) else x


def upload_operand(device: Device, array: np.ndarray, func: Callable[..., Any] | None = None) -> Any:
    """A host operand on the device, to be read alone; NotOnDevice if its dtype can't be there."""
    if not device.can_hold(array.dtype):
        raise NotOnDevice(f"dtype {array.dtype} is not supported on the device")
    name = getattr(func, "__name__", "")
    return upload_cache.operand(device, np.asarray(array), f"host operand of {name}" if name else "host operand")


def _into(func: Callable[..., Any], device: Device, result: Any, out: Any) -> Any:
    """Give a device result to `out=`: NumPy's host path decides where shapes or dtypes differ."""
    if not isinstance(result, device.array_type):
        raise NotOnDevice("out= with several results is not supported on the device")
    if func in tables.IGNORES_OUT:
        return handles.wrap(device, result)
    if getattr(out, "shape", None) != result.shape:
        raise NotOnDevice("out= has another shape than the result")
    rule = tables.OUT_CASTS.get(func)
    if out.dtype != result.dtype and not (rule is not None and np.can_cast(
            result.dtype, out.dtype, "same_kind") and (rule != "narrower" or not np.can_cast(result.dtype, out.dtype))):
        raise NotOnDevice("out= has another dtype than the result")
    if func in tables.ADDS_UP_IN_OUT and out.dtype == np.float16:
        raise NotOnDevice("a float16 out= accumulates the sum, which may overflow")
    if func in (np.dot, np.linalg.multi_dot) and not out.flags.c_contiguous:
        raise NotOnDevice(f"np.{func.__name__} requires a C-contiguous out=")
    write(device, out, result)
    return out[()] if func is np.dot and not result.ndim else out


def check_written(out: Any) -> None:
    """Raise NotOnDevice of an array that the device can't write."""
    if handles.is_array(out) and type(out._self_storage) is not Storage:
        raise NotOnDevice("out= has a dtype that is not supported on the device")


def write(device: Device, out: Any, result: Any, where: Any = True) -> None:
    """Write a result where ``out=`` and ``where=`` say: into a lazy array, one of the device, or one of the host.

    The result is new memory, so overlap is harmless.
    """
    if handles.is_array(out):
        meta = handles.meta_of(out)
        if not may_write(meta):
            raise ValueError("output array is read-only")
        check_written(out)
        whole = where is True
        stream = device.stream()

        def assign(target: Any) -> None:
            value = result
            if not device.on_current(result):       # one of several outputs, which lie on different devices
                device.wait(stream)
                value = transfer.to_current(device, result, "out=")
            if whole:
                device.assign(target, value)
            else:
                mask = mask_of(device, where)
                device.xp.copyto(target, value.astype(target.dtype, copy=False), where=mask)

        out._self_storage.write_device(meta, out._self_array, assign, overwrite=whole)
    elif isinstance(out, device.array_type):
        device.xp.copyto(out, result.astype(out.dtype, copy=False), where=mask_of(device, where))
    elif isinstance(out, np.ndarray):
        if not may_write(out):
            raise ValueError("output array is read-only")
        values = transfer.to_host(device, result, "out= is a host array")
        mask = handles.host_of(where, "where=") if handles.is_lazy(where) else where
        np.copyto(out, values, where=mask, casting="unsafe")
    else:
        raise NotOnDevice("out= is not an array")


def mask_of(device: Device, where: Any) -> Any:
    """``where=`` on the device. NumPy refuses arrays of other than bool, and takes the truth of a list's items."""
    if not hasattr(where, "dtype") and np.ndim(where) == 0 or type(where) is np.bool_:
        return bool(where)
    if getattr(where, "dtype", _bool) != _bool:
        raise NotOnDevice("where= is not a boolean array")
    if handles.is_lazy(where):
        return handles.operand_of(where, "where=")
    if isinstance(where, device.array_type):
        return transfer.to_current(device, where, "where=")
    return upload_operand(device, np.asarray(where, dtype=bool))
