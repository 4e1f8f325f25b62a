"""How work is run on the simulated device: unwrap the arguments, let NumPy compute, wrap the results.

Nothing crosses between the sides here: an `np.ndarray` among the arguments is refused, as CuPy refuses it.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..base import HOLDABLE, flat_bytes, owner_of
from .hardware import Memory, byte_bounds, hardware, note_read, note_write, poisoned, start_work, unseen

SCALARS = frozenset({int, float, bool, complex} | {dtype.type for dtype in HOLDABLE})
"""Types of the scalars that CuPy takes beside arrays."""


class SimulatedArrayBase:
    """The two slots of a device array: NumPy's idea of the view, and the memory that it lies in."""

    __slots__ = ("__weakref__", "_memory", "_view")
    _view: np.ndarray
    _memory: Memory


class Holder:
    """An object of a host library's whose arrays stand for device memory."""

    def __init__(self, host: Any) -> None:
        self._host = host


class Parts:
    """What launching work needs of the modules that are built on it; they enter it themselves."""

    array: type[SimulatedArrayBase]
    namespace: Any


parts = Parts()


def can_hold(dtype: np.dtype) -> bool:
    """Whether an array of this dtype can be on the device."""
    return dtype in HOLDABLE or dtype.type.__name__ == "bfloat16"


def check_dtype(dtype: np.dtype) -> None:
    """Raise ValueError, as CuPy does, for a dtype that the device can't hold."""
    if not can_hold(dtype):
        raise ValueError(f"Unsupported dtype {dtype}")


def unwrap(value: Any, memories: list[Memory]) -> Any:
    """`value` with NumPy arrays in place of device arrays, also inside lists, tuples and dicts.

    Memory that is met is added to `memories`.
    """
    kind = type(value)
    if kind in SCALARS or value is None or kind is str or kind is slice:
        return value
    if isinstance(value, SimulatedArrayBase):
        memories.append(value._memory)
        return value._view
    if kind is list or kind is tuple:
        return kind([unwrap(item, memories) for item in value])
    if exports(value):
        return unwrap(as_device(value), memories)
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {kind}")
    return value._host if isinstance(value, Holder) else value


def exports(value: Any) -> bool:
    """Whether CuPy's functions take this object as an array."""
    return hasattr(value, "__cuda_array_interface__") or hasattr(value, "__cupy_get_ndarray__")


def has_array(values: Iterable[Any]) -> bool:
    """Whether there is a device array among values, or in lists and tuples of them."""
    return any(has_array(value) if isinstance(value, (list, tuple)) else isinstance(value, SimulatedArrayBase)
               or exports(value) for value in values)


def from_interface(value: Any) -> SimulatedArrayBase:
    """A device array over the memory that an object with ``__cuda_array_interface__`` describes."""
    interface = value.__cuda_array_interface__
    dtype = np.dtype(interface["typestr"])
    shape, strides, address = tuple(interface["shape"]), interface.get("strides"), interface["data"][0]
    check_dtype(dtype)
    if 0 in shape:
        return wrap_new(np.empty(shape, dtype))
    owner = hardware.memory_at(address, address + 1)
    if not hardware.plain and interface.get("stream") is not None:
        hardware.stream_named(interface["stream"]).synchronize()
    return lent(owner, address, shape, dtype, strides, value)


def lent(owner: Memory, address: int, shape: tuple[int, ...], dtype: np.dtype, strides: Any, exporter: Any) -> Any:
    """A device array over a part of a memory; as with CuPy's UnownedMemory, whoever exported it is kept alive."""
    view = np.ndarray(shape, dtype, flat_bytes(owner.root), address - owner.start, strides)
    return make(view, owner.lend((exporter, owner)))


def as_device(value: Any) -> Any:
    """The device array that an object stands for."""
    if isinstance(value, SimulatedArrayBase):
        return value
    shared = getattr(type(value), "__cupy_get_ndarray__", None)
    return from_interface(value) if shared is None else shared(value)


def make(view: np.ndarray, memory: Memory) -> Any:
    """A device array of a view and the memory that it lies in."""
    array = parts.array.__new__(parts.array)
    array._view = view
    array._memory = memory
    return array


def wrap_new(view: np.ndarray) -> Any:
    """A device array of a fresh NumPy array, or of a view of one."""
    array = parts.array.__new__(parts.array)
    array._view = view
    root = view if view.base is None else owner_of(view)
    array._memory = hardware.memory_type(root, 0 if hardware.count == 1 else hardware.local.device)
    return array


def wrap(value: Any, memories: Iterable[Memory]) -> Any:
    """Device arrays in place of NumPy's arrays and scalars, in tuples and lists too."""
    if isinstance(value, np.ndarray):
        if value.dtype not in HOLDABLE:
            check_dtype(value.dtype)
        if value.base is None:
            root = value
        else:
            root = owner_of(value)
            if not value.flags.writeable and root.flags.writeable:
                # CuPy has no read-only arrays; what broadcast_to and diagonal give can be written.
                value = _writable(value, root)
        for memory in memories:
            if memory.root is root:
                return make(value, memory)
        return wrap_new(value) if root.base is None else _wrap_strided(value, memories)
    if isinstance(value, np.generic):
        return wrap(np.asarray(value), ())
    if isinstance(value, (tuple, list)):
        known, items = list(memories), []
        for item in value:
            items.append(wrap(item, known))
            if isinstance(items[-1], SimulatedArrayBase):
                known.append(items[-1]._memory)     # the next may be a view of the same new array
        # A named tuple takes its fields one by one.
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _wrap_strided(value: np.ndarray, memories: Iterable[Memory]) -> Any:
    """A device array of a view under which lies no array but something's interface, as of `as_strided`."""
    low, high = byte_bounds(value)
    for memory in memories:
        if memory.start <= low and high <= memory.start + memory.root.nbytes:
            return make(value, memory)
    return wrap_new(value.copy())


def _writable(view: np.ndarray, root: np.ndarray) -> np.ndarray:
    start = view.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    if not view.size or start < 0:
        return view
    return np.ndarray(view.shape, view.dtype, flat_bytes(root), start, view.strides)


def launch(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], writes: tuple[Any, ...]) -> Any:
    """Run a NumPy function on the device memory of its arguments.

    `writes` are the device arrays among the arguments that the function changes; one of them is what the function
    returns if NumPy returns it.
    """
    memories: list[Memory] = []
    host_args = []
    array_type = parts.array
    for arg in args:
        if type(arg) is array_type:
            memories.append(arg._memory)
            host_args.append(arg._view)
        else:
            host_args.append(unwrap(arg, memories))
    host_kwargs = {key: unwrap(value, memories) for key, value in kwargs.items()} if kwargs else kwargs
    if not hardware.plain:
        hardware.check()
        elsewhere = another_device(memories)
        # A view is made of memory of any device: nothing runs for it.
        if elsewhere is not None and (writes or not _is_view(function(*host_args, **host_kwargs), memories)):
            raise ValueError(f"The array is on device {elsewhere}, different from the current device "
                             f"{hardware.current_device()}.")
        if hardware.delay:
            return _launch_delayed(function, host_args, host_kwargs, memories, writes)
    value = function(*host_args, **host_kwargs)
    for array in writes:
        if value is array._view:
            return array
    return wrap(value, memories)


def _launch_delayed(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], memories: list[Memory],
                    writes: tuple[Any, ...]) -> Any:
    """`launch`, where work that is not waited for shows."""
    stream = hardware.current_stream()
    tick = start_work(stream)
    written = [array._memory.home for array in writes]
    late = [memory for memory in memories if memory.home not in written and unseen(stream.clock, memory, False)]
    races = [array for array in writes if unseen(stream.clock, array._memory, True)]
    value = None
    if not writes:
        value = function(*args, **kwargs)
        if _is_view(value, memories):
            # Only the way of looking at the memory has changed; nothing has been read.
            return wrap(value, memories)
    if late or writes:
        roots = [memory.root for memory in late]
        value = function(*_spoil(args, roots), **{key: _spoil(item, roots) for key, item in kwargs.items()})
    for array in races:
        array._view[...] = poisoned(array._view)
    for memory in memories:
        if memory.home not in written:
            note_read(memory, stream, tick)
    for memory in written:
        note_write(memory, stream, tick)
    for array in writes:
        if value is array._view:
            return array
    result = wrap(value, memories)
    for array in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(array, SimulatedArrayBase) and array._memory not in memories:
            note_write(array._memory, stream, tick)
    return result


def another_device(memories: Iterable[Memory]) -> int | None:
    """The number of a device that some memory is of, if it is not the current one.

    Kernels refuse such memory, as CuPy's do where devices can't reach each other's memory.
    """
    current = hardware.current_device()
    return next((memory.device for memory in memories if memory.device != current), None)


def _is_view(value: Any, memories: list[Memory]) -> bool:
    if isinstance(value, (tuple, list)):
        return bool(value) and all(_is_view(item, memories) for item in value)
    return isinstance(value, np.ndarray) and any(memory.root is owner_of(value) for memory in memories)


def _spoil(value: Any, roots: list[np.ndarray]) -> Any:
    """`value` with poisoned copies in place of arrays that lie in one of `roots`."""
    if isinstance(value, (list, tuple)):
        return type(value)([_spoil(item, roots) for item in value])
    if isinstance(value, np.ndarray) and any(root is owner_of(value) for root in roots):
        return poisoned(value)
    return value
