"""One call of a NumPy function: choose a side, unwrap, run, wrap.

`call` is `__array_function__`. Which function runs how is said by the tables in `functions.py`;
`ufuncs.py` does the same for ufuncs.
"""
from __future__ import annotations

import contextlib
import functools
import inspect

import numpy as np

from . import devices, functions, transfer, views, wrap
from .errors import NotOnDevice
from .storage import Storage
from .trace import begin, end, warn_fallback

_sequence = (list, tuple)


# -- whose turn it is ------------------------------------------------------------------------

@functools.cache
def kind_of(kind: type) -> str:
    """"lazy", "array", "device", "subclass" (of ndarray) or "foreign": who decides about an operand's type."""
    if issubclass(kind, (wrap._array_type, wrap._scalar_type)):
        return "lazy"
    if kind is np.ndarray or issubclass(kind, (np.generic, np.memmap)):
        return "array"
    if issubclass(kind, np.ndarray):
        return "subclass"
    if issubclass(kind, devices.current().array_type):
        return "device"
    return "foreign"


def call(func, types, args, kwargs):
    """`__array_function__`: NotImplemented if an argument's type knows better."""
    on_host_whole = False
    for kind in types:
        who = kind_of(kind)
        if who == "foreign":
            return NotImplemented
        if who == "subclass":
            # A real subclass (masked array, matrix, Quantity) gets from NumPy what it would get beside an ndarray.
            on_host_whole = True
    if on_host_whole:
        return on_host(func, args, kwargs, "an ndarray subclass takes part", aliases=True)
    return run(func, args, kwargs)


def run(func, args, kwargs):
    """Run a NumPy function on lazy arguments, where its table says."""
    handler = functions.VIEWS.get(func) or functions.LAZY.get(func)
    if handler is not None:
        try:
            return handler(RUN, *args, **kwargs)
        except NotOnDevice as reason:
            return on_host(func, args, kwargs, str(reason))
    adapter = functions.ADAPTED.get(func)
    if adapter is None:
        path = functions.PLAIN.get(func)
        if path is None:
            return on_host(func, args, kwargs, functions.HOST_ONLY.get(func, "no table knows this function"))
    else:
        path = None
    return _on_device(func, adapter, path, args, kwargs)


def resolve_sort(xp):
    """The device's sort of a whole array along one axis, as a function that returns a new array."""
    adapter = functions.ADAPTED.get(np.sort)
    return xp.sort if adapter is None else lambda array, axis: adapter(xp, array, axis)


# -- on the device ---------------------------------------------------------------------------

def resolve(xp, path: str):
    """The function at a dotted path of the device's namespace."""
    for name in path.split("."):
        xp = getattr(xp, name)
    return xp


@functools.cache
def written_slots(func) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the parameters that a function modifies, `out` left out."""
    names = tuple(n for n in functions.WRITES.get(func, ()) if n != "out")
    return tuple(i for i in (_position(func, n) for n in names) if i is not None), names


@functools.cache
def _position(func, name: str) -> int | None:
    try:
        parameters = inspect.signature(func).parameters
    except ValueError:      # a C function without a signature: its `out` is known by name only
        return {np.concatenate: 2, np.dot: 2, np.where: None}.get(func) if name == "out" else None
    for i, (key, parameter) in enumerate(parameters.items()):
        if key == name and parameter.kind is not parameter.KEYWORD_ONLY:
            return i
    return None


def _take_out(func, args, kwargs):
    """Split `out` from a call: (out or None, args, kwargs without it)."""
    if "out" in kwargs:
        kwargs = dict(kwargs)
        return kwargs.pop("out"), args, kwargs
    if "out" in functions.WRITES.get(func, ()):
        i = _position(func, "out")
        if i is not None and i < len(args):
            return args[i], args[:i] + (None,) + args[i + 1:], kwargs
    return None, args, kwargs


def _on_device(func, adapter, path, args, kwargs):
    device = devices.current()
    out, bare_args, bare_kwargs = _take_out(func, args, kwargs)
    if type(out) is tuple and len(out) == 1:
        out = out[0]
    sources: list = []
    try:
        if device.usable() is not None:
            raise NotOnDevice(device.usable())
        positions, names = written_slots(func)
        with contextlib.ExitStack() as writing:
            device_args = [
                _open(a, writing) if i in positions else unwrap(device, a, sources, func)
                for i, a in enumerate(bare_args)
            ]
            device_kwargs = {
                k: _open(a, writing) if k in names else unwrap(device, a, sources, func)
                for k, a in bare_kwargs.items()
            }
            with _devices_of(device, sources):
                if adapter is not None:
                    result = adapter(device.xp, *device_args, **device_kwargs)
                else:
                    result = resolve(device.xp, path)(*device_args, **device_kwargs)
        if out is None:
            return wrap_tree(device, result, sources, func not in functions.ARRAY_0D)
        return _into(device, result, out)
    except device.faults:
        raise
    except NotOnDevice as error:
        reason = str(error)
    except Exception as error:  # contract, point 4: whatever the device refuses, NumPy decides
        reason = f"{type(error).__name__} on the device: {error}"
    return on_host(func, args, kwargs, reason)


def _open(x, writing: contextlib.ExitStack):
    """The device array of an argument that the function modifies."""
    if not wrap.is_lazy(x):
        raise NotOnDevice("it writes into a host array")
    outline = wrap.outline_of(x)
    if not outline.flags.writeable:
        raise NotOnDevice("the destination is read-only")
    return writing.enter_context(x._self_storage.write_device(outline, x._self_array))


_nothing = contextlib.nullcontext()


def _devices_of(device, sources):
    """Run where the first argument lies, on a machine with several devices."""
    if device.count > 1:
        for x in sources:
            if x._self_storage is not None and x._self_array is not None:
                return device.on(device.device_of(x._self_array))
    return _nothing


def unwrap(device, obj, sources: list, func=None):
    """`obj` with device arrays in place of lazy ones and of host arrays, also inside lists, tuples and dicts."""
    kind = type(obj)
    if kind in _plain_types:
        return obj
    if wrap.is_lazy(obj):
        if obj._self_storage is not None:
            sources.append(obj)
        return wrap.device_of(obj)
    if isinstance(obj, np.ndarray):
        return upload_operand(device, obj, func)
    if isinstance(obj, _sequence):
        items = [unwrap(device, o, sources, func) for o in obj]
        if all(a is b for a, b in zip(items, obj)):
            return obj
        if hasattr(obj, "_fields"):
            return kind(*items)
        return kind(items)
    if kind is dict:
        return {k: unwrap(device, v, sources, func) for k, v in obj.items()}
    return obj


_plain_types = frozenset({int, float, complex, bool, str, bytes, type(None), slice, type, np.dtype, type(Ellipsis)})


def upload_operand(device, array: np.ndarray, func=None):
    """A host operand on the device; NotOnDevice if its dtype can't be there."""
    if not device.can_hold(array.dtype):
        raise NotOnDevice(f"the device holds no {array.dtype}")
    name = getattr(func, "__name__", "")
    return transfer.to_device(device, np.asarray(array), f"host operand of {name}" if name else "host operand")


def wrap_tree(device, result, sources, scalar=True):
    """`result` with lazy arrays in place of device arrays, also inside lists, tuples and dicts."""
    if isinstance(result, device.array_type):
        return wrap.wrap(device, result, sources, scalar)
    if isinstance(result, _sequence):
        items = [wrap_tree(device, r, sources, scalar) for r in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    if type(result) is dict:
        return {k: wrap_tree(device, r, sources, scalar) for k, r in result.items()}
    if type(result) is np.ndarray:
        return wrap.host_result(result)
    if isinstance(result, np.generic):
        return wrap.scalar_of_value(result)
    return result


def _into(device, result, out):
    """Give a device result to `out=`: NumPy's host path decides where shapes or dtypes differ."""
    if not isinstance(result, device.array_type):
        raise NotOnDevice("several results with out=")
    if getattr(out, "shape", None) != result.shape or out.dtype != result.dtype:
        raise NotOnDevice("out= has another shape or dtype than the result")
    assign(device, out, result)
    return out


def assign(device, out, result) -> None:
    """Copy a device array into an output of the same shape, lazy, on the device, or on the host."""
    if wrap.is_array(out):
        outline = wrap.outline_of(out)
        if not outline.flags.writeable:
            raise ValueError("output array is read-only")
        if type(out._self_storage) is not Storage:
            raise NotOnDevice("out= is of a dtype that lives on the host")
        with out._self_storage.write_device(outline, out._self_array, overwrite=True) as target:
            target[...] = result
    elif isinstance(out, device.array_type):
        out[...] = result
    elif isinstance(out, np.ndarray):
        if not out.flags.writeable:
            raise ValueError("output array is read-only")
        out[...] = transfer.to_host(device, result, "out= is a host array").view(result.dtype)
    else:
        raise NotOnDevice("out= is not an array")


# -- on the host -----------------------------------------------------------------------------

def name_of(func) -> str:
    """The dotted name of a NumPy function, as users write it."""
    module = getattr(func, "__module__", None) or "numpy"
    return f"{module}.{getattr(func, '__name__', func)}"


def on_host(func, args, kwargs, reason: str, aliases: bool = False, name=None, positions=None, names=None):
    """Run NumPy itself, on private read-only host arrays, and wrap what it returns.

    Arguments that the function modifies are aliases for the time of the call. With `aliases` all are,
    and the result is returned as it is: it may hold on to them.
    """
    lent: dict[int, object] = {}
    sources: list = []
    if names is None:
        names = functions.WRITES.get(func, ())
        positions = {_position(func, n) for n in names}
    name = name or name_of(func)
    why = f"{name} runs on the host"

    def to_host(obj, written=False):
        if wrap.is_lazy(obj):
            if wrap.is_scalar(obj):
                return wrap.value_of(obj, why)
            if written or aliases:
                array = wrap.alias_of(obj, why)
                lent[id(array)] = obj, array
            else:
                array = wrap.host_of(obj, why)
            sources.append(obj)
            return array
        if isinstance(obj, _sequence):
            items = [to_host(o, written) for o in obj]
            if all(a is b for a, b in zip(items, obj)):
                return obj
            return type(obj)(*items) if hasattr(obj, "_fields") else type(obj)(items)
        if type(obj) is dict:
            return {k: to_host(v) for k, v in obj.items()}
        if isinstance(obj, devices.current().array_type):
            device = devices.current()
            return transfer.to_host(device, obj, why)
        return obj

    token = None
    if _on_device_somewhere(args, kwargs):
        warn_fallback(name, reason)
        token = begin("fallback", 0, None, None, reason, name)
    host_args = [to_host(a, i in positions) for i, a in enumerate(args)]
    host_kwargs = {k: to_host(v, k in names) for k, v in kwargs.items()}
    result = func(*host_args, **host_kwargs)
    if token is not None:
        end(token)
    if aliases:
        return _given_back(result, lent)
    return _wrap_host(result, sources, lent)


def _given_back(result, lent):
    found = lent.get(id(result))
    return result if found is None else found[0]


def _on_device_somewhere(args, kwargs) -> bool:
    for a in (*args, *kwargs.values()):
        if wrap.is_lazy(a):
            if type(a._self_storage) is Storage:
                return True
        elif isinstance(a, _sequence) and any(
                wrap.is_lazy(o) and type(o._self_storage) is Storage for o in a):
            return True
    return False


def _wrap_host(result, sources, lent):
    found = lent.get(id(result))
    if found is not None:
        return found[0]
    if type(result) is np.ndarray:
        home = _home_on_host(result, sources)
        return wrap.host_result(result) if home is None else home
    if isinstance(result, np.generic):
        return wrap.scalar_of_value(result)
    if isinstance(result, _sequence):
        items = [_wrap_host(r, sources, lent) for r in result]
        if all(a is b for a, b in zip(items, result)):
            return result
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    if type(result) is dict:
        return {k: _wrap_host(r, sources, lent) for k, r in result.items()}
    return result


def _home_on_host(array: np.ndarray, sources):
    """The view of an argument's storage that a host result is, or None if it is new memory."""
    if array.size == 0:
        return None
    start = array.__array_interface__["data"][0]
    for x in sources:
        if not wrap.is_array(x):
            continue
        storage = x._self_storage
        if type(storage) is Storage:
            if storage.mirror is None:
                continue
            low = storage.mirror.bytes.__array_interface__["data"][0]
            if low <= start < low + storage.mirror.nbytes:
                outline = views.outline(array.shape, array.dtype, array.strides, start - low)
                outline.flags.writeable = wrap.outline_of(x).flags.writeable
                return wrap.view_of(x, outline)
        elif np.may_share_memory(array, x._self_outline):
            return wrap.view_of(x, array)
    return None


class Run:
    """What a handler of `functions.VIEWS` or `functions.LAZY` may ask of the core."""

    @property
    def device_object(self):
        return devices.current()

    @property
    def xp(self):
        return devices.current().xp

    is_lazy = staticmethod(wrap.is_lazy)
    is_array = staticmethod(wrap.is_array)
    is_scalar = staticmethod(wrap.is_scalar)
    outline = staticmethod(wrap.outline_of)
    view = staticmethod(wrap.view_of)
    device = staticmethod(wrap.device_of)
    host = staticmethod(wrap.host_of)
    value = staticmethod(wrap.value_of)
    call = staticmethod(run)
    on_host = staticmethod(on_host)

    @staticmethod
    def wrap(array, sources=(), scalar=True):
        return wrap_tree(devices.current(), array, sources, scalar)

    @staticmethod
    def asarray(obj):
        if wrap.is_array(obj):
            return obj
        if wrap.is_scalar(obj):
            return obj[...]
        if isinstance(obj, devices.current().array_type):
            return wrap.share(devices.current(), obj)
        return wrap.from_host(np.asarray(obj), "host operand")

    @staticmethod
    def setitem(x, index, value):
        x[index] = value


RUN = Run()
