"""Metas: views without data, on which NumPy itself does the arithmetic of views.

An *meta* is an ndarray with the dtype, shape, strides and flags of a view, whose data pointer is ``ORIGIN +
offset``. Slicing, transposing, reshaping, ``view(dtype)``, ``flags.writeable`` and the errors of all of these are
NumPy's own, whatever side the bytes are on.

Metas lie in frames, where debuggers, tracebacks with variables and walkers of the garbage collector's objects meet
them. So they are of a class of their own, `Meta`, that has no values: its text says what it is, it compares by
identity, is copied and pickled as what it is, and whatever else would read or write elements is a TypeError, in the
library's own code too. What gets at the memory nevertheless, past the class (`numpy.asarray`, the buffer protocol,
code in C), finds zeros that take no memory: the addresses from `ORIGIN` on are reserved.

Dtypes that hold Python objects cannot have a meta (NumPy refuses buffers of objects); they live on the host alone,
where the real array serves as its own meta.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .. import _native
from . import reserved_memory
from .writeable import writeable

REGION = reserved_memory.blank_region()
ORIGIN: int = 1 << 62 if REGION is None else np.frombuffer(REGION, np.uint8, 1).ctypes.data
"""Where metas begin: reserved memory, or, where there is none to be had, addresses that no process can map."""

_EXTENT = 1 << 60
MEMORY = (ctypes.c_ubyte * _EXTENT).from_address(ORIGIN)
_BUFFERED = frozenset("?bhilqBHILQefdFD")

#: ``reshape(copy=False)`` came with NumPy 2.1.
_RESHAPE_HAS_COPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def undispatched(func: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function itself, which asks no argument's ``__array_function__``."""
    return getattr(func, "__wrapped__", func)


class Meta(np.ndarray):
    """What is known of an array, without its data: see the module."""

    __slots__ = ()

    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return (f"<meta of {self.dtype!r}, shape {self.shape}, strides {self.strides}, "
                f"offset {offset_of(self)}, without data>")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __eq__(self, other: object) -> bool:    # type: ignore[override]
        return self is other

    def __ne__(self, other: object) -> bool:    # type: ignore[override]
        return self is not other

    def __bool__(self) -> bool:
        return True

    def __copy__(self) -> Meta:
        return self.view()

    def copy(self, order: Any = "C") -> Meta:
        """Another meta of the same: whoever finds one may copy it."""
        return self.view()

    def __deepcopy__(self, memo: Any) -> Meta:
        return self.view()

    def __reduce__(self) -> tuple[Any, ...]:    # type: ignore[override]
        return _again, (self.shape, self.dtype, self.strides, offset_of(self), writeable(self))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:      # type: ignore[override]
        return self.__reduce__()

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if func in _TEXTS:
            return repr(self)
        if func not in _OF_FORM and not (func in _LIKE and kwargs.get("subok") is False):
            raise TypeError(f"a meta has no data for {getattr(func, '__name__', func)}")
        return super().__array_function__(func, types, args, kwargs)


_TEXTS = frozenset((np.array_repr, np.array_str, np.array2string))

#: Functions that read no elements, only shapes, dtypes and strides.
_OF_FORM = frozenset((
    np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.common_type, np.iscomplexobj, np.isrealobj,
    np.einsum_path, np.min_scalar_type, np.shares_memory, np.may_share_memory, np.transpose, np.swapaxes, np.moveaxis,
    np.rollaxis, np.matrix_transpose, np.linalg.matrix_transpose, np.squeeze, np.expand_dims, np.broadcast_to,
    np.broadcast_arrays, np.diagonal, np.linalg.diagonal, np.fliplr, np.flipud, np.flip, np.rot90, np.split,
    np.array_split, np.hsplit, np.vsplit, np.dsplit, np.lib.stride_tricks.sliding_window_view, np.atleast_1d,
    np.atleast_2d, np.atleast_3d, np.reshape, np.real, np.imag))

#: And these, whose results are new; not of this class.
_LIKE = frozenset((np.empty_like, np.zeros_like, np.ones_like, np.full_like))

#: Members that read no elements: NumPy's own, which the class leaves alone.
_KEPT = frozenset((
    "reshape", "transpose", "swapaxes", "squeeze", "diagonal", "view", "getfield", "setflags", "_set_shape",
    "_set_dtype", "copy"))


def _without_data(name: str) -> Callable[..., Any]:
    def refused(self: Meta, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"a meta has no data for {name}")

    refused.__name__ = name
    return refused


for _name in dir(np.ndarray):
    if not _name.startswith("_") and callable(getattr(np.ndarray, _name)) and _name not in _KEPT:
        setattr(Meta, _name, _without_data(_name))
for _name in ("__setitem__", "__delitem__", "__iter__", "__contains__", "__int__", "__float__", "__complex__",
              "__index__", "__dlpack__", "__setstate__"):
    setattr(Meta, _name, _without_data(_name))


def _again(shape: Any, dtype: Any, strides: Any, offset: int, writes: bool) -> Meta:
    """A meta that was pickled."""
    found = meta(shape, dtype, strides, offset)
    found.flags.writeable = writes
    return found


def meta(shape: Any, dtype: Any, strides: Any = None, offset: int = 0, order: Any = "C") -> Meta:
    """A meta `offset` bytes into a storage; contiguous in `order` without `strides`.

    One without elements has the strides of a new array: zeros.
    """
    if 0 in shape:
        strides = (0,) * len(shape)
    return Meta(shape, dtype, MEMORY, offset, strides, order)


def is_dtype_class(dtype: Any) -> bool:
    """Whether it is a class of dtypes, such as ``np.dtypes.Float64DType``."""
    return isinstance(dtype, type) and issubclass(dtype, np.dtype)


def as_dtype(dtype: Any) -> np.dtype:
    """The dtype that ``dtype=`` asks for. NumPy's functions take a class of dtypes for the plain one of its kind,
    where ``np.dtype`` takes it for object, as any class."""
    return np.empty(0, dtype).dtype if is_dtype_class(dtype) else np.dtype(no_array(dtype))


def no_array(dtype: Any) -> Any:
    """`dtype` itself, unless it is an array: NumPy refuses these, but takes any other object that has a dtype for it,
    a lazy array too."""
    if isinstance(dtype, np.ndarray):
        raise TypeError("Cannot construct a dtype from an array")
    return dtype


def without_elements(view: np.ndarray) -> np.ndarray:
    """A host array for a meta that has no elements, as writable as the meta."""
    array = np.empty(view.shape, view.dtype)
    array.flags.writeable = writeable(view)
    return array


def offset_of(view: np.ndarray) -> int:
    """Bytes from the start of the storage to the first element of a meta."""
    return view.__array_interface__["data"][0] - ORIGIN


def _offset_of(view: np.ndarray) -> int:
    """`offset_of` by the buffer protocol, which knows few dtypes and is six times as quick."""
    if view.dtype.char in _BUFFERED:
        return _address(view) - ORIGIN
    return _offset_of_any(view)


if _native.recording is not None:
    _address, _offset_of_any = _native.recording.address, offset_of
    offset_of = _offset_of


def extent(view: np.ndarray) -> tuple[int, int]:
    """First byte and one past the last byte that a meta spans in its storage."""
    start = stop = offset_of(view)
    if view.size == 0:
        return start, start
    for n, stride in zip(view.shape, view.strides):
        if stride < 0:
            start += (n - 1) * stride
        else:
            stop += (n - 1) * stride
    return start, stop + view.itemsize


def each_once(array: np.ndarray) -> np.ndarray:
    """A view of an array without what it repeats: of one element along each axis whose stride is 0."""
    if 0 not in array.strides:
        return array
    return array[tuple([slice(1) if step == 0 else slice(None) for step in array.strides])]


def is_dense_array(array: np.ndarray) -> bool:
    """Whether an ndarray's elements fill its extent once, with no negative strides."""
    flags = array.flags
    if flags.c_contiguous or flags.f_contiguous:
        return True
    expected = array.itemsize
    for stride, n in sorted((stride, n) for stride, n in zip(array.strides, array.shape) if n != 1):
        if stride != expected:
            return False
        expected *= n
    return True


_shares_memory = undispatched(np.shares_memory)
#: How long NumPy looks for an element that two views share: enough where each lies on a grid of its own.
MOST_WORK = 100


def overlap(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two metas of the same storage share bytes, or may do so: columns side by side do not."""
    try:
        return _shares_memory(a, b, MOST_WORK)     # type: ignore[no-any-return]
    except np.exceptions.TooHardError:
        return True


def by_strides(array: Any) -> tuple[int, ...]:
    """The axes of an array, or of anything with strides, from the outermost to the innermost in memory."""
    return tuple(sorted(range(array.ndim), key=lambda i: (-abs(array.strides[i]), i)))


def same_place(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two metas name the same elements in the same order."""
    return (a.shape == b.shape and a.strides == b.strides and a.dtype == b.dtype
            and offset_of(a) == offset_of(b))


def reshaped(view: np.ndarray, shape: Any, order: str | None = "C") -> np.ndarray | None:
    """The meta in another shape, or None where NumPy would have to copy."""
    if _RESHAPE_HAS_COPY:
        try:
            return view.reshape(shape, order=order, copy=False)
        except ValueError:
            _check_reshape(view, shape, order)
            return None
    new = _check_reshape(view, shape, order)
    fortran = order in ("F", "f") or order in ("A", "a") and view.flags.fnc
    found = (_regrouped(view.shape[::-1], view.strides[::-1], new[::-1], view.itemsize) if fortran
             else _regrouped(view.shape, view.strides, new, view.itemsize))
    if found is None:
        return None
    result = meta(new, view.dtype, found[::-1] if fortran else found, offset_of(view))
    result.flags.writeable = writeable(view)
    return result


def _regrouped(shape: tuple[int, ...], strides: tuple[int, ...], new: Any, itemsize: int) -> tuple[int, ...] | None:
    """The strides of the same elements, in C order, in a new shape; None if one stride can't reach them.

    For NumPy before 2.1, which can't be asked: there a reshape that needs a copy reads the memory.
    """
    if 0 in new:
        return meta(new, np.dtype((np.void, itemsize))).strides
    old = [(n, stride) for n, stride in zip(shape, strides) if n != 1]
    found: list[int] = []
    i = k = 0
    while i < len(new) and k < len(old):
        first_new, first_old = i, k
        count, held = new[i], old[k][0]
        i, k = i + 1, k + 1
        while count != held:        # the smallest group of new axes that covers a group of old ones
            if count < held:
                count, i = count * new[i], i + 1
            else:
                held, k = held * old[k][0], k + 1
        if any(old[j][1] != old[j + 1][0] * old[j + 1][1] for j in range(first_old, k - 1)):
            return None
        stride = old[k - 1][1]
        group = []
        for n in reversed(new[first_new:i]):
            group.append(stride)
            stride *= n
        found += group[::-1]
    return (*found, *[found[-1] if found else itemsize] * (len(new) - len(found)))


def _check_reshape(view: np.ndarray, shape: Any, order: str | None) -> tuple[int, ...]:
    """The new shape, without -1; NumPy's error if `shape` can't hold the view."""
    # A meta of the same size that is contiguous reshapes without a copy, or not at all.
    return meta((view.size,), np.uint8).reshape(shape, order=order).shape


_ORDERS = {key: order for order in "CFAK" for key in (order, order.lower(), order.encode())}


def order_of(order: str | None, default: str) -> str:
    """An `order=` as one of "C", "F", "A" and "K"; NumPy's error if it is none."""
    found = _ORDERS.get(order)
    if found is None:
        np.empty(0).copy(order)
        return default
    return found


def like(view: np.ndarray, order: str = "K", dtype: Any = None, shape: Any = None) -> np.ndarray:
    """A meta at offset 0 laid out as ``np.empty_like(view, order=order)`` would be."""
    dtype = view.dtype if dtype is None else np.dtype(dtype)
    if shape is not None and len(shape) != view.ndim:
        fortran = order == "F" or order == "A" and view.flags.fnc
        return meta(shape[::-1], dtype).T if fortran else meta(shape, dtype)
    shape = view.shape if shape is None else tuple(shape)
    flags = view.flags
    if order == "C" or (order in "AK" and flags.c_contiguous) or (order == "A" and not flags.fnc):
        return meta(shape, dtype)
    if order == "F" or flags.f_contiguous:
        return meta(shape[::-1], dtype).T
    # K: the axes in the order of their strides, ties in C order.
    axes = by_strides(view)
    packed = meta([shape[i] for i in axes], dtype)
    return packed.transpose(np.argsort(axes))
