"""The array of the simulated device.

It has the members that ``cupy.ndarray`` has, by name and by parameter, and no others, and refuses to become a NumPy
array unless asked to with ``get``.  What it computes, NumPy computes.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors.inspection import once_made
from . import dlpack, indexing
from .api import table
from .cuda import DeviceContext
from .cupy_differences import order_of_row, refuse_output
from .execution import SCALARS, SimulatedArrayBase, check_dtype, exports, launch, make, parts, wrap_new
from .hardware import Stream, hardware, merge, note_write, poisoned, start_work, unseen
from .signatures import binder, parameters

COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
"""Ufuncs that take 0-d host arrays as scalars."""


class MemoryPointer:
    """``array.data``: an address, and the memory that it points into."""

    __slots__ = ("device_id", "mem", "ptr")

    def __init__(self, array: SimulatedArray) -> None:
        self.mem, self.device_id = array._memory, array._memory.device
        start = self.mem.ptr
        self.ptr = array._view.__array_interface__["data"][0] if array._view.size else start


class Flags:
    """``array.flags``: layout and ownership.  There are no read-only arrays on the device."""

    __slots__ = ("c_contiguous", "f_contiguous", "fnc", "forc", "owndata")

    def __init__(self, flags: Any, owndata: bool) -> None:
        self.c_contiguous, self.f_contiguous, self.owndata = flags.c_contiguous, flags.f_contiguous, owndata
        self.fnc, self.forc = flags.fnc, flags.forc

    def __getitem__(self, name: str) -> bool:
        if name.lower() not in self.__slots__ or not name.isupper():
            raise KeyError(name)
        return getattr(self, name.lower())


class SimulatedArray(SimulatedArrayBase):
    """An uninitialised array in simulated device memory, with a shape, a dtype (float64) and an order ("C").

    `_install` adds the operators and the methods that need nothing of their own.
    """

    __slots__ = ()
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __new__(cls, *args: Any, **kwargs: Any) -> SimulatedArray:
        array = object.__new__(cls)
        if args or kwargs:
            array._allocate(*args, **kwargs)
        return array

    def _allocate(self, shape: Any, dtype: Any = float, order: str = "C") -> None:
        dtype = np.dtype(dtype)
        check_dtype(dtype)
        self._view = np.empty(shape, dtype, order)  # type: ignore[call-overload]
        self._memory = hardware.memory_type(self._view, hardware.current_device())

    # What the array is.

    dtype = property(lambda self: self._view.dtype)
    ndim = property(lambda self: self._view.ndim)
    size = property(lambda self: self._view.size)
    itemsize = property(lambda self: self._view.itemsize)
    nbytes = property(lambda self: self._view.nbytes)
    strides = property(lambda self: self._view.strides)
    _c_contiguous = property(lambda self: self._view.flags.c_contiguous)  # CuPy's, which needs no object for it
    _f_contiguous = property(lambda self: self._view.flags.f_contiguous)
    flags = property(lambda self: Flags(self._view.flags, self._view is self._memory.root))
    data = property(MemoryPointer)
    flat = property(lambda self: FlatIterator(self))
    device = property(lambda self: DeviceContext(self._memory.device))
    base = property(lambda self: None if self._view is self._memory.root else make(self._memory.root, self._memory))
    T = property(lambda self: make(self._view.T, self._memory))
    mT = property(lambda self: make(self._view.mT, self._memory))

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis; assigning one reshapes in place where no copy is needed."""
        return self._view.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        view = self._view.view()
        try:
            view = view.reshape(shape, copy=False)
        except TypeError:  # NumPy 2.0 has no copy= here, but its setter refuses to copy.
            view.shape = shape
        self._view = view

    @property
    def real(self) -> SimulatedArray:
        """The real parts: a view, or the array itself."""
        return make(self._view.real, self._memory) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        make(self._view.real, self._memory)[...] = value

    @property
    def imag(self) -> SimulatedArray:
        """The imaginary parts: a view, or new zeros."""
        return make(self._view.imag, self._memory) if self.dtype.kind == "c" else wrap_new(np.zeros_like(self._view))

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("cupy.ndarray does not have imaginary part to set")
        make(self._view.imag, self._memory)[...] = value

    # Between the sides, when asked to.

    def get(self, stream: Stream | None = None, order: str = "C", out: np.ndarray | None = None,
            blocking: bool = True) -> np.ndarray:
        """Copy to the host, waiting for the given or the current stream, and for no other."""
        view = self._view
        if not hardware.plain:
            view = seen_by(stream or hardware.current_stream(), self, wait=blocking)
        if out is None:
            return np.array(view, order=order)  # type: ignore[call-overload]
        if not isinstance(out, np.ndarray):
            raise TypeError("Only numpy.ndarray can be obtained fromcupy.ndarray")
        if out.dtype != self.dtype:
            raise TypeError(f"{out.dtype} array cannot be obtained from {self.dtype} array")
        if out.shape != self.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {out.shape}")
        out[...] = view
        return out

    def set(self, arr: np.ndarray, stream: Stream | None = None) -> None:
        """Copy from the host."""
        if not isinstance(arr, np.ndarray) or arr.dtype != self.dtype:
            raise TypeError(f"{getattr(arr, 'dtype', type(arr))} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not self._view.flags.forc:
            raise RuntimeError("Cannot set to non-contiguous array")
        fill_from_host(self, arr, stream)

    def item(self) -> Any:
        """The value of an array of size one, as a Python scalar."""
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.get().item()

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap_new, (self.get(),)

    def __copy__(self, memo: Any = None) -> SimulatedArray:
        return self.copy()  # type: ignore[attr-defined]

    __deepcopy__ = __copy__

    def __bool__(self) -> bool:
        if self.size == 0:
            return False
        return bool(self.get())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    # To other libraries, without a copy.

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        view = self._view
        return {"shape": view.shape, "typestr": view.dtype.str, "descr": view.dtype.descr, "version": 3,
                "stream": hardware.current_stream().ptr or 1, "data": (self.data.ptr if view.size else 0, False),
                "strides": None if view.flags.c_contiguous else view.strides}

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        if dl_device is not None and tuple(dl_device) == (dlpack.CPU, 0):
            return self.get().__dlpack__(max_version=max_version)
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError("unsupported device requested.")
        if copy:
            raise BufferError("copy=True only supported for copy to CPU.")
        if not hardware.plain and stream != -1:
            here, there = hardware.current_stream(), hardware.stream_named(stream or 1)
            there.wait_event(here.record())
        return dlpack.export(self, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self._memory.device

    toDlpack = __dlpack__

    # Items.

    def __len__(self) -> int:
        if not self._view.ndim:
            raise TypeError("len() of unsized object")
        return len(self._view)

    def __iter__(self) -> Iterator[SimulatedArray]:
        if not self._view.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self._view.shape[0]))

    def __getitem__(self, index: Any) -> SimulatedArray:
        return indexing.get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        indexing.put(self, index, value)

    def fill(self, value: Any) -> None:
        """Set every element to a scalar, or to the value of a 0-d array."""
        if not isinstance(value, SimulatedArray):
            value = np.asarray(value, dtype=self.dtype)[()]
        if value.shape != ():
            raise ValueError("non-scalar array cannot be used for fill")
        if not isinstance(value, SimulatedArray):
            if value == 0 and self.flags.c_contiguous:
                value = self.dtype.type(0)      # memory is cleared: a negative zero loses its sign
        launch(indexing.assign, (self, value), {}, (self,))

    def put(self, indices: Any, values: Any, mode: str = "wrap") -> None:
        """Set flat elements; indexes out of range wrap around unless `mode` says otherwise."""
        indexing.put_flat(self, indices, values, mode)

    def take(self, indices: Any, axis: int | None = None, out: Any = None) -> SimulatedArray:
        """Elements along an axis; indexes out of range wrap around."""
        return indexing.take(self, indices, axis, out)

    def scatter_add(self, slices: Any, value: Any) -> None:
        """Add to elements, to one that is named twice both times; indexes out of range wrap around."""
        parts.namespace.add.at(self, slices, value)

    def scatter_max(self, slices: Any, value: Any) -> None:
        """Set elements to the maximum of themselves and the values for them."""
        parts.namespace.maximum.at(self, slices, value)

    def scatter_min(self, slices: Any, value: Any) -> None:
        """Set elements to the minimum of themselves and the values for them."""
        parts.namespace.minimum.at(self, slices, value)

    def reduced_view(self, dtype: Any = None) -> SimulatedArray:
        """A view of as few dimensions as possible, with the elements in the same order; or the array itself."""
        if dtype is not None:
            warnings.warn("calling reduced_view with dtype is deprecated", DeprecationWarning, stacklevel=2)
            return self.reduced_view().view(dtype)  # type: ignore[attr-defined]
        view = self._view
        if view.ndim <= 1:
            return self
        if view.flags.c_contiguous:
            return make(view.reshape(-1), self._memory)
        shape: list[int] = []
        previous = 0
        for length, stride in zip(view.shape, view.strides):
            if length == 1:
                continue
            if shape and previous == length * stride:
                shape[-1] *= length
            else:
                shape.append(length)
            previous = stride
        return self if len(shape) == view.ndim else make(view.reshape(shape), self._memory)

    # NumPy's protocols.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        outs = kwargs.get("out", ())
        if outs:
            if len(outs) != 1:
                raise ValueError("The 'out' parameter must have exactly one array value")
            kwargs["out"] = outs[0]
        function = getattr(parts.namespace, ufunc.__name__, None)
        if function is not None and method != "__call__":
            function = getattr(function, method, None)
        if function is None:
            return NotImplemented
        if ufunc.__name__ in COMPARISONS:
            inputs = tuple([v.item() if isinstance(v, np.ndarray) and v.ndim == 0 else v for v in inputs])
        for value in (*inputs, *outs):
            if not (type(value) in SCALARS or isinstance(value, (SimulatedArray, np.ndarray)) or exports(value)):
                return NotImplemented
        return function(*inputs, **kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        function: Any = parts.namespace
        for part in [*func.__module__.split(".")[1:], func.__name__]:
            function = getattr(function, part, None)
        if function is None or not all(issubclass(kind, (SimulatedArray, np.ndarray)) for kind in types):
            return NotImplemented
        return function(*args, **kwargs)


parts.array = SimulatedArray


class FlatIterator:
    """``array.flat``."""

    def __init__(self, array: SimulatedArray) -> None:
        self.base = array

    def __len__(self) -> int:
        return self.base.size

    def __getitem__(self, index: Any) -> SimulatedArray:
        return self.base.ravel()[index]  # type: ignore[attr-defined]

    def __setitem__(self, index: Any, value: Any) -> None:
        launch(lambda a, i, v: a.flat.__setitem__(i, v), (self.base, index, value), {}, (self.base,))


def fill_from_host(array: SimulatedArray, source: np.ndarray, stream: Stream | None = None) -> None:
    """Copy host memory into a device array, in the order of a stream."""
    array._view[...] = source
    if not hardware.plain:
        hardware.check()
        stream = stream or hardware.current_stream()
        tick = start_work(stream)
        if hardware.delay and unseen(stream.clock, array._memory, True):
            array._view[...] = poisoned(array._view)
        note_write(array._memory, stream, tick)


def seen_by(stream: Stream, array: SimulatedArray, wait: bool) -> np.ndarray:
    """What a copy to the host on `stream` finds."""
    hardware.check()
    start_work(stream)
    late = hardware.delay and unseen(stream.clock, array._memory, False)
    if wait:
        merge(hardware.host_clock, stream.clock)
    return poisoned(array._view) if late else array._view


# -- members that come from tables ---------------------------------------------------------------

BINARY = {
    "add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "truediv", "floor_divide": "floordiv",
    "remainder": "mod", "power": "pow", "left_shift": "lshift", "right_shift": "rshift", "bitwise_and": "and",
    "bitwise_or": "or", "bitwise_xor": "xor",
}  # fmt: skip
PAIRS = {"matmul": "matmul", "divmod": "divmod"}
ORDERED = {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}
UNARY = {"negative": "neg", "positive": "pos", "absolute": "abs", "invert": "invert"}
ON_HOST = (
    "tolist", "tobytes", "tofile", "dump", "dumps", "__int__", "__float__", "__complex__", "__repr__", "__str__",
    "__format__",
)  # fmt: skip
"""Members that CuPy has NumPy do on a copy of the array."""

IN_PLACE = frozenset({"sort", "partition"})


def _operator(name: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    def apply(self: SimulatedArray, other: Any) -> Any:
        kind = type(other)
        if kind is not SimulatedArray and kind not in SCALARS:
            protocol = getattr(other, "__array_ufunc__", SCALARS)
            if protocol is None or (protocol is SCALARS and getattr(other, "__array_priority__", 0) > 100):
                return NotImplemented
            return getattr(np, name)(*((other, self) if swapped else (self, other)))
        ufunc = getattr(parts.namespace, name)
        return ufunc(other, self) if swapped else ufunc(self, other)

    return apply


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: getattr(parts.namespace, name)(self, other, self)


def _equality(name: str) -> Callable[[Any, Any], Any]:
    compare = _operator(name)

    def apply(self: SimulatedArray, other: Any) -> Any:
        # What has no notion of equality but its identity is never equal to an element.
        if not exports(other) and (other is None or type(other).__eq__ is object.__eq__):
            return wrap_new(np.full(self.shape, name == "not_equal"))
        return compare(self, other)

    return apply


def _unary(name: str) -> Callable[[Any], Any]:
    return lambda self: getattr(parts.namespace, name)(self)


def _on_host(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: getattr(self.get(), name)(*args, **kwargs)


def _sort(array: np.ndarray, axis: int = -1) -> None:
    if array.ndim == 1:
        array[:] = array[order_of_row(array)]
    else:
        array.sort(axis, kind="stable")     # as CuPy's is


def _method(name: str, signature: str) -> Callable[..., Any]:
    function = _sort if name == "sort" else getattr(np.ndarray, name, None) or getattr(np, name)
    bind = binder(name, parameters(f"self, {signature}" if signature else "self"), function)

    def method(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = bind(args, kwargs)
        out = kwargs.get("out")
        refuse_output(name, out)
        return launch(function, args, kwargs, args[:1] if name in IN_PLACE else () if out is None else (out,))

    method.__name__ = name
    return method


def _install() -> None:
    """Give the array its operators, and the methods that NumPy has under the same name."""
    special: dict[str, Callable[..., Any]] = {}
    for ufunc, name in {**BINARY, **PAIRS}.items():
        special[name], special[f"r{name}"] = _operator(ufunc), _operator(ufunc, swapped=True)
    special |= {f"i{name}": _in_place(ufunc) for ufunc, name in BINARY.items()}
    special |= {name: _operator(ufunc) for ufunc, name in ORDERED.items()}
    special |= {name: _unary(ufunc) for ufunc, name in UNARY.items()}
    special |= {"eq": _equality("equal"), "ne": _equality("not_equal")}
    members = {f"__{name}__": member for name, member in special.items()}
    members |= {name: _on_host(name) for name in ON_HOST}
    for name in ("__repr__", "__str__", "__format__"):
        members[name] = once_made("_view")(members[name])
    for signature, names in table("cupy_api")["METHODS"].items():
        for name in names.split():
            if name not in {**members, **vars(SimulatedArray)} and (hasattr(np.ndarray, name) or hasattr(np, name)):
                members[name] = _method(name, signature)
    for name, member in members.items():
        setattr(SimulatedArray, name, member)


_install()
