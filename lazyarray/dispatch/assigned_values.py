"""What is assigned: NumPy's casts, warnings and errors, and the value where the device can write it."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..errors import NotOnDevice
from ..functions.pytree import replace
from ..storage import handles, transfer, upload_cache, views
from ..storage.storage import Storage

if TYPE_CHECKING:
    from ..storage.handles import ArrayHandle, ScalarHandle


def drop_leading(value: Any, ndim: int) -> Any:
    """NumPy lets an assigned value have more dimensions, if the leading ones are 1."""
    while value.ndim > ndim and value.shape[0] == 1:
        value = value.reshape(value.shape[1:])
    return value


#: What is one value, whatever NumPy would make of it; anything else may be a sequence, a buffer or an array.
ONE_VALUE = (bool, int, float, complex, str, bytes, np.generic, type(None))


def value_for(x: ArrayHandle, target: np.ndarray, value: Any, by_arrays: bool = False) -> Any:
    """What is assigned: a NumPy scalar of the dtype of `x`, or a device array that may still need a cast.

    NumPy itself converts what comes from the host, in a small array of that dtype, since its rules depend on the dtype,
    on the kind of value and on the index. `target` is the meta of the elements that are assigned to, or, if the
    index has arrays in it (`by_arrays`), that of `x`, and the value is not yet compared with the index.
    """
    dtype = target.dtype
    device = devices.current()
    if handles.is_scalar(value):
        value = for_dtype(value, dtype)
    if handles.is_lazy(value):
        meta = handles.meta_of(value)
        if type(value._self_storage) is not Storage:
            return value_for(x, target, handles.host_of(value, "assigned to the device"), by_arrays)
        if meta.dtype.kind == "c" and dtype.kind not in "cb":
            _warn_complex()
        array = handles.operand_of(value, "assigned")
        if value._self_storage is x._self_storage and views.overlap(meta, target):
            with device.noting:
                array = array.copy()
    elif isinstance(value, device.array_type):
        array = transfer.to_current(device, value, "assigned")
    else:
        cast = converted(value, dtype, by_arrays)
        if not cast.ndim:
            return device.with_sign(cast[()])
        if not by_arrays:
            if cast.ndim > target.ndim and not isinstance(value, np.ndarray):
                raise NotOnDevice("a list is nested deeper than the array has dimensions")
            cast = drop_leading(cast, target.ndim)
            _check_broadcast(cast.shape, target.shape)
        return upload_cache.operand(device, cast, "assigned from the host")
    if not by_arrays:
        array = drop_leading(array, target.ndim)
        _check_broadcast(array.shape, target.shape)
    return array


def for_dtype(s: ScalarHandle, dtype: np.dtype[Any]) -> ScalarHandle | np.generic:
    """What stands for a scalar that is assigned to elements of a dtype: its value, if that decides what happens.

    Where the dtype can't take every value, NumPy raises an error or warns, and the device writes anything.
    """
    if s._self_value is not None:
        return s._self_value
    source = s.dtype
    if dtype.kind == "b" or np.can_cast(source, dtype, "same_kind" if dtype.kind in "fc" else "safe"):
        return s
    return handles.value_of(s, f"assigned to an array of {dtype}, which may not hold it")


def converted(value: Any, dtype: np.dtype[Any], by_arrays: bool = False) -> np.ndarray:
    """A new host array of what NumPy makes of a value that is assigned to elements of a dtype.

    An error in one value is NumPy's; where there are several, NumPy may have written some of them, and it is
    NotOnDevice.
    """
    if isinstance(value, ONE_VALUE) or isinstance(value, np.ndarray) and not value.ndim:
        if by_arrays:       # casts NumPy's scalars as it does arrays, where other indexes refuse what does not fit
            one = np.empty(1, dtype)
            one[[0]] = value
            return one.reshape(())
        one = np.empty((), dtype)
        one[...] = value
        return one
    try:
        if not isinstance(value, np.ndarray):
            return np.array(with_values(value), dtype)      # by elements, each of which must fit
        cast = np.empty(value.shape, dtype)
        cast[...] = value
        return cast
    except (TypeError, ValueError, OverflowError) as error:
        raise NotOnDevice(f"some of the values are invalid: {error}") from error


def with_values(obj: Any) -> Any:
    """`obj`, with NumPy's scalars in place of the lazy ones, also in a list, where NumPy would take them for arrays."""
    return replace(obj, lambda item: handles.value_of(item) if handles.is_scalar(item) else item)


def _check_broadcast(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    if shape != target:
        np.broadcast_to(np.False_, target)      # cheap; the next line words the error as an assignment does
        try:
            fits = np.broadcast_shapes(shape, target) == target
        except ValueError:
            fits = False
        if not fits:
            text = ",".join(map(str, shape)) + ("," if len(shape) == 1 else "")
            into = ",".join(map(str, target)) + ("," if len(target) == 1 else "")
            raise ValueError(f"could not broadcast input array from shape ({text}) into shape ({into})")


def _warn_complex() -> None:
    warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning,
                  stacklevel=5)
