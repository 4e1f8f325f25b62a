"""Attributes of `numpy.ndarray` that can be set, or that make something: getters and setters."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dispatch import function
from ..dispatch.host_fallback import lazily
from ..storage import handles, views
from ..storage.storage import Storage
from .flags_and_flat import LazyFlatIter
from .methods import plain_ints

if TYPE_CHECKING:
    from ..storage.handles import ArrayHandle


def set_flat(x: ArrayHandle, values: Any) -> None:
    LazyFlatIter(x)[:] = values


def get_real(x: ArrayHandle) -> Any:
    """The real part: a view of a complex array, a real array itself."""
    meta = handles.meta_of(x)
    if meta.dtype.kind == "O":       # what the elements say of themselves, in newer releases of NumPy
        part = meta.real
        return x if part is meta else lazily(part)
    return handles.view_of(x, meta.real) if meta.dtype.kind == "c" else x


def get_imag(x: ArrayHandle) -> Any:
    """The imaginary part: a view of a complex array, read-only zeros of a real one."""
    meta = handles.meta_of(x)
    if meta.dtype.kind == "c":
        return handles.view_of(x, meta.imag)
    if type(x._self_storage) is not Storage and meta.dtype.kind == "O":
        return lazily(meta.imag)
    zeros = lazily(meta.imag) if type(x._self_storage) is not Storage else function.run(
        np.zeros_like, (x,), {"order": "A"})
    handles.detached(zeros).flags.writeable = False
    return zeros


def set_part(get: Callable[..., Any]) -> Callable[[ArrayHandle, Any], None]:
    """The setter that writes into what `get` returns."""
    def setter(x: ArrayHandle, value: Any) -> None:
        if get is get_imag and handles.meta_of(x).dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        meta = handles.meta_of(x)
        if meta.dtype.kind == "O":
            meta.real = handles.host_of(value, "assigned to objects") if handles.is_lazy(value) else value
        else:
            if handles.is_scalar(value):        # it passes for a float, and the device writes anything for what is none
                value = handles.value_of(value, "assigned to a part")
            if meta.dtype.kind != "c" and isinstance(value, (int, float, complex)):
                one = np.empty((), meta.dtype)
                one.real = value        # releases of NumPy differ in what they refuse, and refuse it first
                value = one[()]
            part = get(x)
            if not (handles.is_array(value) and part.ndim and handles.same_place(part, value)):    # it may be read-only
                part[...] = value
    return setter


def _changed(array: np.ndarray, name: str, value: Any) -> np.ndarray:
    """A view of an ndarray with another value of an attribute."""
    changed = array.view()
    setattr(changed, name, value)
    return changed


def set_meta(name: str) -> Callable[[ArrayHandle, Any], None]:
    """The setter of an attribute that a meta has: the array looks at the same bytes in another way."""
    def setter(x: ArrayHandle, value: Any) -> None:
        meta = handles.detached(x)
        if name == "shape":     # NumPy's own setter would first copy, where the shape needs a copy, and then refuse
            changed = views.reshaped(meta, plain_ints(value))
            if changed is None:
                raise AttributeError("Incompatible shape for in-place modification. Use `.reshape()` to make a copy "
                                     "with the desired shape.")
        else:
            if name == "dtype" and isinstance(value, np.ndarray):
                raise TypeError("invalid data-type for array")
            changed = _changed(meta, name, value)
        if name == "strides" and type(x._self_storage) is Storage:
            start, stop = views.extent(changed)
            if start < 0 or stop > x._self_storage.nbytes:
                raise ValueError("strides is not compatible with available memory")
        storage = x._self_storage
        if type(storage) is Storage and name != "shape" and not storage.holds(changed):
            other = handles.looked_at(x, lambda array: _changed(array, name, value), changed.dtype)
            x._self_storage, changed = other._self_storage, other._self_meta
        x._self_meta, x._self_array = changed, None
    return setter


def get_ctypes(x: ArrayHandle) -> Any:
    """The host address for ctypes: valid, and watched for writes, as long as the array's memory lives."""
    storage = x._self_storage
    if type(storage) is Storage:
        storage.pin_host(handles.meta_of(x), "ndarray.ctypes")
    return handles.alias_of(x, "ndarray.ctypes").ctypes

