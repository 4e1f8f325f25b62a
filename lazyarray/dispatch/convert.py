"""Into and out of lazy arrays: the functions of the public face."""
from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, overload

import numpy as np

from .. import devices
from ..errors import NotOnDevice
from ..errors.inspection import once_made
from ..settings.options import current as current_options
from ..storage import facts, foreign_streams, handles, places, transfer, views
from ..storage.handles import ArrayHandle
from ..storage.state import small_limit
from ..storage.storage import Storage


def asarray(obj: Any, dtype: Any = None, *, copy: bool | None = None, donate: bool = False) -> ArrayHandle:
    """Convert an array or array-like object to a lazy array.

    Parameters
    ----------
    obj : array_like or device array
        A lazy array is returned unchanged. CuPy arrays and objects with ``__cuda_array_interface__`` or a
        CUDA ``__dlpack__`` share their memory with the result. Anything else that `numpy.asarray` accepts is
        copied to the device, in its memory order. Arrays of dtypes that the device does not support, such
        as strings or objects, stay on the host, inside the lazy array.
    dtype : data-type, optional
        Data type of the result. If it differs from that of `obj`, the result is a copy.
    copy : bool, optional
        True: always copy. False: raise an error if a copy is needed. None: copy if needed.
    donate : bool, default: False
        Promise that `obj`, a CuPy array, is not used again: no code reads it or writes to it. Its memory then belongs
        to the result, whose operations are as fast as those of an array that lazyarray made. While other CuPy arrays
        use the same memory, it is shared with them as without `donate`. So is the memory of other libraries' arrays.
        Without effect for lazy arrays and for arrays on the host.

    Returns
    -------
    LazyNdarray
        It has the shape of ``numpy.asarray(obj, dtype)``. Within ``options(lazy=False)``, a `numpy.ndarray`.

    Raises
    ------
    ValueError
        If ``copy=False``, and `obj` is on the host or has another dtype.
    RuntimeError, TypeError
        If `obj` is a torch tensor without an array equivalent: it requires grad (pass ``tensor.detach()``), is sparse,
        or similar.

    Notes
    -----
    Sharing means that `obj` and the result see each other's changes. Therefore operations on the result are not
    deferred, and its values are copied to the host again each time they are needed there. This ends when `obj` no
    longer exists.

    Examples
    --------
    >>> import numpy as np, lazyarray
    >>> x = lazyarray.asarray([[1, 2], [3, 4]], dtype=np.float32)
    >>> (x + 1).sum()
    np.float32(14.0)

    >>> c = lazyarray.device().xp.arange(3)         # a CuPy array
    >>> x = lazyarray.asarray(c, donate=True)       # c is not used from here on
    >>> np.asarray(x)
    array([0, 1, 2])
    """
    if not current_options().lazy:
        return _plain(obj, dtype, copy)
    if handles.is_scalar(obj):
        obj, copy = handles.as_array(obj), None if copy is None or copy else False
    device = devices.current()
    if handles.is_array(obj):
        lazy = obj
    else:
        shared = None if type(obj) in _host_types else foreign_streams.from_foreign(device, obj)
        take = handles.taken if donate else handles.share
        lazy = None if shared is None else take(device, shared)
    if lazy is not None:
        if dtype is not None and np.dtype(views.no_array(dtype)) != lazy.dtype:
            if copy is not None and not copy:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            return lazy.astype(dtype)
        return _copied(device, lazy) if copy else lazy
    if copy is not None and not copy:
        raise ValueError("Unable to avoid copy while creating an array as requested: the bytes are on the host. "
                         "Use copy=None to copy them to the device.")
    host = np.asarray(obj, views.no_array(dtype))
    x = handles.from_host(host, "asarray")
    if host.dtype.kind in "iu" and small_limit() < host.nbytes <= _MOST_LOOKED_AT:
        facts.note_bounds(x, int(host.min()), int(host.max()))
    return x


#: Bytes of integers up to which their bounds are found before they go to the device, which takes 10 us at most. An
#: index of known bounds needs no check, for which the host would wait.
_MOST_LOOKED_AT = 64 << 10


def _copied(device: devices.Device, x: Any) -> Any:
    """A copy of a lazy array, on the current device where there are several."""
    if places.elsewhere(device, x):
        array = handles.operand_of(x, "a copy on another device")
        return handles.new_array(Storage(device, array), None, array)
    return x.copy(order="K")


def _plain(obj: Any, dtype: Any, copy: bool | None) -> Any:
    """What `asarray` gives where ``options(lazy=False)``: a host array, a new one where the lazy one would be."""
    device = devices.current()
    if handles.is_lazy(obj):
        return np.array(obj, dtype, copy=copy, subok=False)
    shared = None if type(obj) in _host_types else foreign_streams.from_foreign(device, obj)
    if copy is not None and not copy:
        raise ValueError("Unable to avoid copy while creating an array as requested: under options(lazy=False) device "
                         "memory is copied to the host, and what is on the host as it would be to the device.")
    if shared is not None:
        return np.asarray(transfer.to_host(device, shared, "asarray, with options(lazy=False)"), dtype)
    return np.array(obj, dtype, order="K", copy=True, subok=False)


_host_types = frozenset({np.ndarray, list, tuple, int, float, complex, bool, str, bytes})


def asnumpy(obj: Any) -> np.ndarray:
    """Return the values of a lazy array or device array as a NumPy array.

    The bytes are copied to the host unless they are current there. The result for a lazy array is an
    alias, as from `numpy.asarray`: a write to either is visible in the other.

    Parameters
    ----------
    obj : LazyNdarray, LazyScalar, device array or array_like

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> import lazyarray
    >>> type(lazyarray.asnumpy(lazyarray.asarray([1, 2])))
    <class 'numpy.ndarray'>
    """
    device = devices.current()
    if isinstance(obj, device.array_type):
        with device.on(device.device_of(obj)):
            return transfer.to_host(device, obj, "asnumpy")
    return np.asarray(obj)


def asdevice(obj: Any) -> Any:
    """Return the device array (`cupy.ndarray`) of a lazy array.

    The result shares the memory of the lazy array, or of another library's device array. You may write to it: lazyarray
    reads the memory again afterwards. Anything else is copied to the device, and so is a lazy array whose memory is on
    the host (a view of an array with a dtype that the device does not support).

    Parameters
    ----------
    obj : LazyNdarray, device array or array_like

    Returns
    -------
    device array

    Raises
    ------
    TypeError
        If the device does not support the dtype.

    Examples
    --------
    >>> import lazyarray
    >>> x = lazyarray.asarray([1.0, 2.0])
    >>> d = lazyarray.asdevice(x)
    >>> d *= 2
    >>> x
    array([2., 4.])
    """
    if type(obj) is handles.array_type and type(obj._self_storage) is Storage:
        return lend(obj, "asdevice")
    device = devices.current()
    if isinstance(obj, device.array_type):
        return obj
    if handles.is_scalar(obj):
        obj = handles.as_array(obj)
    if handles.is_array(obj):
        if type(obj._self_storage) is Storage:
            return lend(obj, "asdevice")
        obj = handles.host_of(obj, "asdevice")     # it lives on the host; a view of it may be of a dtype the device has
    shared = foreign_streams.from_foreign(device, obj)
    if shared is not None:
        return shared
    host = np.asarray(obj)
    if not device.can_hold(host.dtype):
        raise TypeError(f"dtype {host.dtype} is not supported on the device")
    return transfer.to_device(device, host, "asdevice")


def is_lazy(obj: Any) -> bool:
    """Return whether `obj` is a lazy array or a lazy scalar.

    (``isinstance`` can't tell: they are instances of `numpy.ndarray` and of NumPy's scalar types.)

    Examples
    --------
    >>> import lazyarray
    >>> lazyarray.is_lazy(lazyarray.asarray([1]))
    True
    """
    return handles.is_lazy(obj)


@overload
def device() -> devices.Device: ...
@overload
def device(number: int) -> contextlib.AbstractContextManager[None]: ...
def device(number: int | None = None) -> devices.Device | contextlib.AbstractContextManager[None]:
    """Return the device in use: CUDA if it works, else the simulated device. With a number, choose among several GPUs.

    ``python -m lazyarray`` shows why it was chosen.

    Parameters
    ----------
    number : int, optional
        Of a GPU, from 0 to ``lazyarray.device().count - 1``.

    Returns
    -------
    Device or context manager
        With a number, a context manager, which is a decorator of functions too. In its block new arrays of this thread
        are placed on that GPU. Operations on arrays run where the largest of them lies, in any block.

    Raises
    ------
    ValueError
        If there is no GPU of this number.
    TypeError
        If the number is not an integer, as True is not here. If it decorates a generator or a coroutine: what runs
        between its steps would run on that GPU, too.

    Examples
    --------
    >>> import numpy as np, lazyarray
    >>> lazyarray.device().name in ("cuda", "simulated")
    True
    >>> last = lazyarray.device().count - 1
    >>> with lazyarray.device(last):
    ...     x = lazyarray.asarray(np.ones(100_000))
    >>> lazyarray.where(x).device.endswith(f":{last}")
    True
    """
    found = devices.current()
    if number is None:
        return found
    if isinstance(number, bool):
        raise TypeError(f"lazyarray.device takes the number of a GPU, not {number}")
    number = operator.index(number)
    if not 0 <= number < found.count:
        raise ValueError(f"there is no device {number}: the number of devices is {found.count}")
    return _Placing(found, number)


class _Placing(contextlib.ContextDecorator):
    """`device` with a number. One object may be entered again, also in several threads."""

    def __init__(self, device: devices.Device, number: int) -> None:
        self._device, self._number = device, number
        self._entered = threading.local()

    @once_made("_number")
    def __repr__(self) -> str:
        return f"lazyarray.device({self._number})"

    def __call__(self, func: Callable[..., Any]) -> Any:
        if isgeneratorfunction(func) or isasyncgenfunction(func) or iscoroutinefunction(func):
            raise TypeError(f"{func.__qualname__} runs in steps, and its caller in between, in the same thread: use "
                            "with blocks in it")
        return super().__call__(func)

    def __enter__(self) -> None:
        there = self._device.on(self._number)
        there.__enter__()
        self._entered.blocks = (*getattr(self._entered, "blocks", ()), there)

    def __exit__(self, *error: Any) -> None:
        *left, there = self._entered.blocks
        self._entered.blocks = tuple(left)
        there.__exit__(*error)


def prefetch(*arrays: Any) -> None:
    """Begin to copy lazy arrays to the host, while the device goes on computing.

    Reading the array on the host then waits for this copy. The copy comes after all work that the device was given
    before. A later write on the device waits for the copy; what it wrote is copied again when it is read.

    Parameters
    ----------
    *arrays : array_like
        Of a view, only its own bytes are copied. Arrays that are current on the host or are not lazy are ignored. So is
        memory that GPU code holds a pointer to, since it may be written at any time.

    Raises
    ------
    TransferError
        Within `no_transfers`.

    Examples
    --------
    >>> import numpy as np, lazyarray
    >>> x = lazyarray.asarray(np.arange(4.0)) * 2
    >>> lazyarray.prefetch(x)
    >>> y = np.sqrt(x)              # computed while x is copied
    >>> np.asarray(x)
    array([0., 2., 4., 6.])
    """
    for x in arrays:
        if handles.is_lazy(x) and handles.is_array(x):
            x._self_storage.prefetch(handles.meta_of(x))


def lend(x: ArrayHandle, why: str) -> Any:
    """The device array for GPU code that may write into it (``__wrapped__``, ``__cupy_get_ndarray__``)."""
    storage = x._self_storage
    if type(storage) is not Storage:
        raise NotOnDevice(f"{storage.refusal(handles.meta_of(x).dtype)}; use numpy.asarray(x)")
    return storage.lend_device(handles.meta_of(x), why)
