"""Waiting for results: what a program does before it reads the clock."""
from __future__ import annotations

from numbers import Number
from typing import Any, TypeVar, overload

import numpy as np

from .. import devices
from ..events.trace import begin, end
from ..functions.kinds import is_container
from ..functions.pytree import leaves
from ..graph import waiting
from ..storage import handles
from ..storage.storage import Storage

__all__ = ["block_until_ready"]

_T = TypeVar("_T")

#: Types whose objects hold no arrays, beside those that `leaves` leaves out itself.
_PLAIN = (Number, str, bytes, bytearray, memoryview, range, type, np.dtype)


@overload
def block_until_ready(array: _T, /) -> _T: ...


@overload
def block_until_ready(*arrays: Any) -> tuple[Any, ...]: ...


def block_until_ready(*arrays: Any) -> Any:
    """Compute what is deferred in the arguments, and wait until the device has done it.

    Nothing is copied to the host. Use it before you read a clock: operations on lazy arrays return before they are
    computed, as those of CuPy and JAX do. Work on other arrays is not waited for, unless an argument is an object whose
    contents are not known, see below. `device` has a method ``synchronize`` for all deferred work of the process.

    Parameters
    ----------
    *arrays : array, or container of arrays
        Lazy arrays and scalars, device arrays, and lists, tuples, dicts, named tuples and dataclasses of them, nested
        in any way. Other libraries' arrays that have a method ``block_until_ready``, as JAX's have, are waited for too.
        Numbers, strings, and NumPy arrays of any dtype but object are ready. Any other object, such as an xarray
        ``DataArray``, a deque, or an array of dtype object, may hold lazy arrays where this function does not look:
        for such an object all deferred work of the process is computed, and all work on the device is waited for (on
        all devices, if several are in use).

    Returns
    -------
    object or tuple
        The argument itself, as from `jax.block_until_ready`; a tuple of them if there is not exactly one.

    Raises
    ------
    MemoryError
        If the deferred work needs more memory than the device has. Faults of the device are its library's errors.

    See Also
    --------
    benchmark : how long a function takes.

    Examples
    --------
    >>> import time
    >>> import numpy as np, lazyarray
    >>> x = lazyarray.asarray(np.ones(1000))
    >>> start = time.perf_counter()
    >>> y = lazyarray.block_until_ready(np.sqrt(x * 2 + 1))
    >>> seconds = time.perf_counter() - start
    """
    device = devices.current()
    places: dict[int, list[Storage]] = {}
    unknown = False
    for x in leaves(list(arrays)):
        if handles.is_lazy(x):
            storage = x._self_storage
            if type(storage) is Storage:
                waiting.compute((storage,))
                if storage.state != "host":
                    array = storage.block if storage.root is None else storage.root
                    places.setdefault(device.device_of(array), []).append(storage)
            else:
                unknown |= x.dtype.hasobject
        elif isinstance(x, device.array_type):
            places.setdefault(device.device_of(x), [])
        elif callable(wait := getattr(x, "block_until_ready", None)):
            wait()
        else:
            unknown |= not _is_ready(x)
    if unknown:
        waiting.compute_all()
    everything = unknown and device.lost is None    # on a lost one nothing runs, and all that is asked of it fails
    if places or everything:
        token = begin("synchronise", reason="block_until_ready")
        for number, storages in places.items():
            with device.on(number):
                for storage in storages:
                    storage.join()
                device.wait_for_stream()
        if everything:
            for number in device.in_use():
                with device.noting:     # all of its streams, as other objects may have been computed on any
                    device.xp.cuda.Device(number).synchronize()
        end(token)
    return arrays[0] if len(arrays) == 1 else arrays


def _is_ready(x: Any) -> bool:
    """Whether an object can hold no lazy arrays, or none that `leaves` has not found, as one that lies in itself."""
    if isinstance(x, (np.ndarray, np.generic)):
        return not x.dtype.hasobject
    return isinstance(x, _PLAIN) or is_container(type(x))
