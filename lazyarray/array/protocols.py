"""How foreign code reaches the data: NumPy's, Python's and the GPU world's protocols.

NumPy asks in this order: buffer (Python 3.12 and later), ``__array_struct__``,
``__array_interface__``, ``__array__``. Each hands out an *alias*: live, writable if the
array is, and known to be gone when its owner object dies. What has been made read-only can be made writable again if
its base is a buffer without gaps, or has none: of other arrays `numpy.asarray` gets what ``__array__`` gives.
"""
from __future__ import annotations

import functools
import sys
import warnings
import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..errors.interrupts import from_handler
from ..events.callers import BYTES, FORTRAN, NDARRAY, ROW, STRIDES, called, module_of, who_asks
from ..storage import first_download, foreign_streams, handles, views
from ..storage.storage import Storage, write_all
from ..storage.writeable import may_write, writeable

if TYPE_CHECKING:
    from ..storage.handles import ArrayHandle

_CPU = (1, 0)
_CUDA = 2
_HAS_BUFFER = sys.version_info >= (3, 12)
_WRITABLE, _FORMAT, _STRIDES = 0x0001, 0x0004, 0x0018
_C_CONTIGUOUS, _F_CONTIGUOUS, _ANY_CONTIGUOUS = 0x0020 | _STRIDES, 0x0040 | _STRIDES, 0x0080 | _STRIDES


def array(x: ArrayHandle, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray:
    """`__array__`: an alias on the host; a copy if `copy` or another dtype asks for one.

    Raises ValueError if ``copy=False`` and `dtype` needs a cast.
    """
    _raise_lost()
    wanted = None if dtype is None else np.dtype(views.no_array(dtype))
    if not copy and handles.is_light(x) and (wanted is None or wanted == x.dtype) and (
            alias := handles.lent_light(x)) is not None:
        return _keeping(alias, x)
    meta = handles.meta_of(x)
    if wanted is not None and wanted != meta.dtype:
        if copy is not None and not copy:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return handles.host_of(x, "np.asarray").astype(wanted)
    if copy:
        return np.array(handles.host_of(x, "np.array"), order="K")
    if who_asks(sys._getframe(1), True) == NDARRAY:     # it asks for one array again and again
        return _keeping(x._self_storage.expose_again(meta, "np.asarray").view(), x._self_storage)
    return _keeping(handles.alias_of(x, "np.asarray"), x._self_storage)


class _Kept(weakref.ref):
    """An alias, and what lives as long as it; by identity, since arrays have no hash."""

    __slots__ = ("owner",)
    __hash__, __eq__ = object.__hash__, object.__eq__

    owner: Any


_kept_by_aliases: set[_Kept] = set()


def _keeping(alias: np.ndarray, owner: Any) -> np.ndarray:
    """An alias that keeps the storage, as one that NumPy makes of a buffer does: who has the device memory, and makes
    a lazy array of it again, gets one that knows of the alias.
    """
    kept = _Kept(alias, _kept_by_aliases.discard)       # no Python code, in which a signal handler may raise
    kept.owner = owner
    _kept_by_aliases.add(kept)
    return alias


_BY_ARRAY = "numpy.asarray gets an array without C order from __array__"


def buffer(x: ArrayHandle, flags: int, /) -> memoryview:
    """`__buffer__`: the memory of an alias; writable if the array is.

    Raises ValueError, as an ndarray does, if the consumer asks for another layout or for writable memory.
    """
    if (flags & (_WRITABLE | _FORMAT | _ANY_CONTIGUOUS | _F_CONTIGUOUS) == _FORMAT | _STRIDES and handles.is_light(x)):
        special, host = who_asks(sys._getframe(1), True), x._self_host
        if special == NDARRAY and host is not None and not host.flags.c_contiguous:
            raise BufferError(_BY_ARRAY)
        if special in (0, NDARRAY) and (alias := handles.lent_light(x)) is not None:
            return memoryview(alias)
    if flags & _WRITABLE or flags & (_C_CONTIGUOUS | _F_CONTIGUOUS | _ANY_CONTIGUOUS) != _STRIDES:
        _check_buffer(handles.meta_of(x), flags)
    meta, storage = x._self_meta, x._self_storage
    if flags & (_ANY_CONTIGUOUS | _FORMAT) == _ANY_CONTIGUOUS:
        return _kept(x)
    if (type(storage) is Storage and storage.mirror is None and storage.root_view is meta
            and (meta is None or meta.flags.carray) and flags & _F_CONTIGUOUS != _F_CONTIGUOUS):
        found = first_download.first_alias(storage, None, "C buffer access", sys._getframe(1))
        if found is not None:
            return found
    if meta is None:
        meta = handles.meta_of(x)
    if (type(x._self_storage) is not Storage and not flags & (_FORMAT | _STRIDES) and meta.nbytes
            and not meta.dtype.hasobject):
        # Who asks for neither a format nor a shape gets the bytes of any dtype; they are C-contiguous then.
        return memoryview(meta.reshape(-1).view(np.uint8))
    special = who_asks(sys._getframe(1), True)
    if special in (FORTRAN, STRIDES):
        return memoryview(_lent(x, meta, special))
    if special == NDARRAY and not meta.flags.c_contiguous:
        raise BufferError(_BY_ARRAY)
    if special == ROW:
        text = "torch.asarray takes every buffer for one row of float32: use torch.as_tensor(x)"
        warnings.warn(text, stacklevel=2)       # torch keeps only the class of an error, and not what it says
        raise BufferError(text)
    kind = meta.dtype
    if special != BYTES and type(x._self_storage) is not Storage and not _comes_back(kind, kind.isalignedstruct):
        raise BufferError(f"NumPy reads a buffer of {kind} as another dtype; use numpy.asarray(x)")
    return memoryview(x._self_storage.expose_again(meta, "C buffer access"))


def _kept(x: ArrayHandle) -> memoryview:
    """The memory for ``numpy.ndarray(shape, dtype, buffer=x)``, which alone asks for any order and no format.

    It lets go of the buffer at once and keeps `x` (NumPy 2.5, ``PyArray_BufferConverter``): whoever has that array may
    read and write the memory for as long as `x` lives, and `x` can't be resized.
    """
    meta, storage = handles.meta_of(x), x._self_storage
    if type(storage) is Storage and meta.size:
        storage.pin_host(meta, "numpy.ndarray(buffer=)")
        if not weakref.getweakrefcount(x):
            weakref.finalize(x, type, storage).atexit = False       # a call that does nothing
    return memoryview(handles.alias_of(x, "numpy.ndarray(buffer=)"))


def release_buffer(x: ArrayHandle, view: memoryview, /) -> None:
    """`__release_buffer__`: the last consumer let go of the alias.

    An object without it tells C code that its memory stays as long as the object itself: `numpy.frombuffer` lets the
    buffer go at once then, and writes through its array would not be found.
    """
    view.release()


def _raise_lost() -> None:
    """Raise what a signal handler raised while NumPy asked for a buffer, in the call that asks for something else now.

    NumPy takes no notice of why it got no buffer. See `_native/recording_buffers.h`.
    """
    if _native.recording is not None and (lost := _native.recording.lost()) is not None:
        error, frame, instruction = lost
        asks = sys._getframe(2)
        if asks is frame and asks.f_lasti == instruction:
            raise error


if _native.recording is not None:
    buffer, release_buffer = _native.recording.buffer_methods(buffer, from_handler)


def _check_buffer(meta: np.ndarray, flags: int) -> None:
    """Raise what an ndarray raises that does not have the memory that a consumer of its buffer asks for."""
    has = meta.flags
    if not has.c_contiguous:
        if flags & _C_CONTIGUOUS == _C_CONTIGUOUS or flags & _STRIDES != _STRIDES:
            raise ValueError("ndarray is not C-contiguous")
        if flags & _ANY_CONTIGUOUS == _ANY_CONTIGUOUS and not has.f_contiguous:
            raise ValueError("ndarray is not contiguous")
    if flags & _F_CONTIGUOUS == _F_CONTIGUOUS and not has.f_contiguous:
        raise ValueError("ndarray is not Fortran contiguous")
    if flags & _WRITABLE and not may_write(meta):
        raise ValueError("buffer source array is read-only")


@functools.cache
def _comes_back(dtype: np.dtype, aligned: bool) -> bool:
    """Whether NumPy makes the same dtype of the buffer of an array; of padded and of plain bytes it does not.

    `aligned`: that of the dtype, which is equal to one without.
    """
    blank = np.empty(0, dtype)
    try:
        view = memoryview(blank)
    except ValueError:
        return True     # there is no buffer, and the caller hears that
    try:
        found = np.asarray(view).dtype
    except RuntimeError:
        return False
    return found == dtype and found.isalignedstruct == aligned


def array_struct(x: ArrayHandle) -> Any:
    """`__array_struct__`: a capsule that holds an alias, which NumPy keeps with its array."""
    _raise_lost()
    special = who_asks(sys._getframe(1), True)
    if special == NDARRAY:
        raise AttributeError("__array_struct__")
    if not special and handles.is_light(x) and (alias := handles.lent_light(x)) is not None:
        return alias.__array_struct__
    meta = handles.meta_of(x)
    if meta.dtype.kind not in "biufcSO":
        # The struct has no room for units, fields or references: the next protocols in line have.
        raise AttributeError("__array_struct__")
    if special in (FORTRAN, STRIDES):
        return _lent(x, meta, special).__array_struct__
    return handles.alias_of(x, "C array access (__array_struct__)").__array_struct__


def _lent(x: ArrayHandle, meta: np.ndarray, asker: int) -> np.ndarray:
    """What those get whom `callers.who_asks` tells from others."""
    if asker == FORTRAN:
        return handles.host_of(x, "a Fortran routine")     # read-only, so that it is copied before it is written
    # What NumPy makes of it may reach every byte of the storage, to read and to write.
    storage = x._self_storage
    if type(storage) is not Storage or meta.size == 0:
        return handles.alias_of(x, "as_strided")
    bytes_ = storage.expose_host(views.meta((storage.nbytes,), np.uint8), "as_strided")
    alias = np.ndarray(meta.shape, meta.dtype, bytes_, views.offset_of(meta), meta.strides)
    alias.flags.writeable = writeable(meta)
    return alias


def _has_descr(dtype: np.dtype) -> bool:
    """Whether a dtype of bytes or fields is what its `descr` says."""
    try:
        return dtype.names is not None and np.dtype(dtype.descr) == dtype
    except ValueError:
        return False


#: What has the memory whose address was given for an array, by its id.
_given: dict[int, list[Any]] = {}


def _keep(x: ArrayHandle, owner: Any) -> None:
    """Whoever got the bare address of memory that `owner` has holds `x` alone: the memory lives as long as that, even
    if `x` gets another (`resize`, `__setstate__`).
    """
    kept = _given.get(id(x))
    if kept is None:
        weakref.finalize(x, _given.pop, id(x), None).atexit = False
        kept = _given.setdefault(id(x), [])     # another thread may have been quicker
    if not any(one is owner for one in kept):
        kept.append(owner)


def is_given(x: ArrayHandle) -> bool:
    """Whether somebody got the bare address of its memory, and may have it still."""
    return id(x) in _given


def array_interface(x: ArrayHandle) -> dict:
    """`__array_interface__`, version 3."""
    _raise_lost()
    if who_asks(sys._getframe(1), True) == NDARRAY:
        raise AttributeError("__array_interface__")
    meta = handles.meta_of(x)
    storage = x._self_storage
    if meta.dtype.kind == "T" or meta.dtype.kind == "V" and not _has_descr(meta.dtype):
        # bfloat16, strings of variable length and fields in disorder have no description; `__array__` keeps them.
        raise AttributeError("__array_interface__")
    if type(storage) is not Storage:
        _keep(x, meta)
        return meta.__array_interface__
    _keep(x, storage)
    # NumPy does not get here (buffer and struct come first); others keep the bare address, with or without `x`.
    interface = dict(meta.__array_interface__)
    interface["data"] = (storage.pin_host(meta, "__array_interface__"), not writeable(meta))
    if not _HAS_BUFFER:
        # Who reads the bytes as a buffer if there are no strides (Pillow) must not: there is none.
        interface["strides"] = meta.strides
    return interface


def dlpack_device(x: ArrayHandle) -> tuple[int, int]:
    """`__dlpack_device__`: (2, index) on CUDA, (1, 0) for what lives on the host."""
    storage = x._self_storage
    if type(storage) is Storage and storage.device.name == "cuda" and storage.device.usable() is None:
        return _CUDA, storage.device.device_of(handles.device_of(x))
    return _CPU


def dlpack(x: ArrayHandle, *, stream: Any = None, max_version: tuple[int, int] | None = None,
           dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
    """`__dlpack__`: a capsule of the device memory for a consumer that names a stream or a CUDA device,
    else of an alias on the host (NumPy passes neither).

    Raises BufferError for another device, for strides between elements, and where a copy would be needed with
    ``copy=False``; ValueError if torch asks and a stride is negative.
    """
    meta = handles.meta_of(x)
    storage = x._self_storage
    if module_of(sys._getframe(1)) == "torch.utils.dlpack":
        if min(meta.strides, default=0) < 0:
            # Torch would end the process (seen in 2.11 and 2.13).
            raise ValueError("torch has no tensors with negative strides; pass a copy of the array, x.copy()")
        asker = sys._getframe(1).f_back
        if not writeable(meta) and (asker is None or called(asker) not in ("tensor", "new_tensor")):     # they copy
            warnings.warn("the array is read-only, which a tensor can't be: do not write into the tensor, or make it "
                          "of a copy, x.copy()", stacklevel=3)
    if meta.itemsize and any(stride % meta.itemsize for stride in meta.strides):
        raise BufferError("DLPack only supports strides which are a multiple of itemsize.")     # CuPy rounds them
    home = dlpack_device(x)
    if dl_device is not None:
        wanted = tuple([int(i) for i in dl_device])
        if wanted not in (home, _CPU):
            raise BufferError(f"unsupported device {wanted}")
    else:
        wanted = home if stream is not None else _CPU
    if wanted[0] == _CUDA:
        lent = handles.device_of(x).copy() if copy else storage.lend_device(meta, "__dlpack__")
        return lent.__dlpack__(stream=stream, max_version=max_version)
    if stream is not None:
        raise ValueError("a stream has no meaning on the host")
    if foreign_streams.host_is_device.get() and type(storage) is Storage and not copy:
        return storage.device.to_torch(storage.lend_device(meta, "__dlpack__")).__dlpack__(max_version=max_version)
    if copy:
        host = np.array(handles.host_of(x, "__dlpack__"))
    else:
        host = _keeping(handles.alias_of(x, "__dlpack__"), x._self_storage)
    return host.__dlpack__(max_version=max_version)


#: Packages that understand every ``__cuda_array_interface__``.
_TAKES_ALL = frozenset({"cupy", "cupyx", "cucim", "numba", "cudf", "cuml", "lazyarray"})


def _is_for_torch(frame: FrameType) -> bool:
    """Whether it may be torch that asks, whose code in C has no frame: a call of the user's, with torch in use."""
    return "torch" in sys.modules and module_of(frame).partition(".")[0] not in _TAKES_ALL and (
        called(frame) not in (None, "getattr", "hasattr"))


def cuda_array_interface(x: ArrayHandle) -> dict:
    """`__cuda_array_interface__`, version 3: the device memory itself, with the stream to wait for."""
    storage = x._self_storage
    if type(storage) is not Storage or storage.device.name != "cuda":
        raise AttributeError("__cuda_array_interface__: the array is not in CUDA memory")
    asker = sys._getframe(1)
    if module_of(asker).partition(".")[0] in ("cupy", "cupyx"):
        # It asks for `__cupy_get_ndarray__` next, and lets go of what that gives: we know when.
        raise AttributeError("__cuda_array_interface__")
    meta = handles.meta_of(x)
    if (min(meta.strides, default=0) < 0 or not writeable(meta)) and _is_for_torch(asker):
        # Torch ends the process at a negative stride, and refuses what is read-only (seen in 2.11); with `__dlpack__`,
        # which it asks for next, both go as they do with an ndarray.
        raise AttributeError("__cuda_array_interface__")
    lent = storage.lend_device(meta, "__cuda_array_interface__")
    interface = dict(lent.__cuda_array_interface__)
    # The pointer outlives the lent array object: whoever holds it holds `x`.
    storage.foreign = True
    if not writeable(meta):
        interface["data"] = (interface["data"][0], True)
    return interface


def elementwise_kernel(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`__cupy_override_elementwise_kernel__`: CuPy's ufuncs ask for it, before they look at the arguments.

    They compute with the device arrays of lazy ones, and keep none of them; what they write to is seen to be written.
    """
    array_type = handles.array_type
    outs = list(args[kernel.nin:])
    if (out := kwargs.get("out")) is not None:
        outs += out if type(out) is tuple else (out,)
    written = {id(y): y for y in outs if type(y) is array_type}
    known = {key: handles.device_of(y) for key, y in written.items()}

    def on_device(obj: Any) -> Any:
        kind = type(obj)
        if kind is array_type:
            return known[id(obj)] if id(obj) in written else handles.operand_of(obj)
        return (*map(on_device, obj),) if kind is tuple else obj

    given = [on_device(arg) for arg in args]
    named = {name: on_device(arg) for name, arg in kwargs.items()} if kwargs else kwargs
    if not written:
        return kernel(*given, **named)
    result = write_all([(y._self_storage, handles.meta_of(y), known[key]) for key, y in written.items()],
                       lambda: kernel(*given, **named))
    back = {id(known[key]): y for key, y in written.items()}
    return tuple([back.get(id(r), r) for r in result]) if type(result) is tuple else back.get(id(result), result)


def restore(host: np.ndarray, writeable: bool = True) -> ArrayHandle:
    """Open a pickled lazy array, which is read-only if the memory is that protocol 5 found beside the pickle."""
    return restored(host, writeable and host.flags.writeable)


def restored(host: np.ndarray, writeable: bool) -> ArrayHandle:
    """The lazy array of an array that was sent: on the host, until the device needs it."""
    x = handles.from_host(host, "unpickled", eager=False)
    if not writeable:
        handles.detached(x).flags.writeable = False
    return x


def restore_state(state: tuple[Any, ...]) -> ArrayHandle:
    """Open a pickled lazy array whose bytes are within the pickle."""
    host = np.empty(0)
    host.__setstate__(state)
    return restore(host)


def reduce(x: ArrayHandle, protocol: int = 2) -> tuple[Any, ...]:
    """`__reduce_ex__`: the values as an ndarray, so that no GPU is needed to open it."""
    flags = handles.meta_of(x).flags
    # As NumPy's pickles: contiguous, and read-only only where protocol 5 takes the memory as it is.
    host = np.array(handles.host_of(x, "pickle"), order="F" if flags.fnc else "C")
    if not flags.forc:      # NumPy gives no buffer beside the pickle of an array that is not contiguous
        return restore_state, (host.__reduce__()[2],)
    return restore, (host, writeable(handles.meta_of(x)) or protocol < 5 or not _has_buffer(host))


def _has_buffer(host: np.ndarray) -> bool:
    """Whether an ndarray gives its memory as a buffer: objects, dates and their kin do not."""
    try:
        memoryview(host)
    except (ValueError, BufferError):
        return False
    return not host.dtype.hasobject

