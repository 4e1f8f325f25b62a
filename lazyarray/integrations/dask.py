"""Dask: lazy arrays as the chunks of a `dask.array`, as task results of `distributed`, and as keys of its caches.

Lazy arrays are registered with each of Dask's modules named in `_PARTS` when it has been imported. What a chunk
function returns stays lazy, and so does what ``compute()`` returns.
Between processes a lazy array travels as the bytes of its host copy, and opens on the host: a worker without a GPU can
open it, one with a GPU uploads it when it is needed there.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np

from .. import numpy as lazy_numpy
from ..array import protocols
from ..array.array import LazyNdarray, LazyScalar
from ..devices import current as current_device
from ..dispatch import convert
from ..storage import handles
from ..storage.storage import Storage
from ..storage.writeable import writeable
from .content_hash import digest


def register(module: ModuleType) -> None:
    """Register lazy arrays with one of Dask's modules, which has just been imported."""
    _PARTS[module.__name__](module)


# -- chunks of an array ----------------------------------------------------------------------------

def _chunks(module: ModuleType) -> None:
    from dask.array import dispatch
    from dask.array.backends import array_creation_dispatch, percentile

    for kind in (LazyNdarray, LazyScalar):      # who is no chunk type is not added to a Dask array
        module.register_chunk_type(kind)
    for name, function in _LOOKUPS.items():
        getattr(dispatch, name).register(LazyNdarray, function)
    dispatch.percentile_lookup.register(LazyNdarray, percentile)
    array_creation_dispatch.register_backend("lazyarray", backend())


def _count(x: LazyNdarray, axis: Any = None, keepdims: bool = False, dtype: Any = np.float64, **ignored: Any) -> Any:
    """How many elements a reduction of a chunk takes together, for each element of its result: made on the device,
    where the sums are that will be divided by it.
    """
    shape = x.shape
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    number = math.prod(shape[a] for a in axes)
    if axis is None and not keepdims:
        return np.dtype(dtype).type(number)
    kept = tuple([1 if a in axes else n for a, n in enumerate(shape) if keepdims or a not in axes])
    return np.full_like(x, number, shape=kept, dtype=dtype)


#: Name in `dask.array.dispatch` -> what it shall do for a lazy chunk. What is not here does for any object what it
#: should: ``divide`` and ``nannumel`` are written with NumPy's functions.
_LOOKUPS: dict[str, Callable[..., Any]] = {
    "concatenate_lookup": np.concatenate,
    "take_lookup": np.take,
    "tensordot_lookup": np.tensordot,
    "einsum_lookup": np.einsum,
    "empty_lookup": lazy_numpy.empty,
    "numel_lookup": _count,
    "to_numpy_dispatch": lambda x, **ignored: np.asarray(x),
    "to_cupy_dispatch": lambda x, **ignored: convert.asdevice(x),
}


def backend() -> Any:
    """What makes arrays for ``dask.config.set({"array.backend": "lazyarray"})`` and ``x.to_backend("lazyarray")``.

    Dask finds it by the entry point ``dask.array.backends`` where lazyarray has not been imported yet.
    """
    import dask.array
    from dask.array.backends import ArrayBackendEntrypoint
    from dask.array.core import Array

    def made_like(name: str) -> Callable[..., Array]:
        def make(*args: Any, **kwargs: Any) -> Array:
            if name == "arange":
                kwargs.setdefault("like", lazy_numpy.empty(0))
            elif kwargs.get("meta") is None:
                kwargs["meta"] = lazy_numpy.empty(0, dtype=kwargs.get("dtype") or float)
            with dask.config.set({"array.backend": "numpy"}):
                return getattr(dask.array, name)(*args, **kwargs)
        return make

    class LazyBackend(ArrayBackendEntrypoint):
        """Dask's functions that make arrays, of lazy chunks. Random numbers are NumPy's, drawn on the host."""

        RandomState = np.random.RandomState
        default_bit_generator = np.random.PCG64
        ones, zeros, empty, full, arange = map(
            staticmethod, map(made_like, ("ones", "zeros", "empty", "full", "arange")))

        @classmethod
        def to_backend_dispatch(cls) -> Callable[..., Any]:
            return lambda x, **ignored: convert.asarray(x)

        @classmethod
        def to_backend(cls, data: Array, **kwargs: Any) -> Array:
            return data if handles.is_lazy(data._meta) else data.map_blocks(cls.to_backend_dispatch(), **kwargs)

    return LazyBackend()


# -- keys ------------------------------------------------------------------------------------------

def tokenise(x: LazyNdarray) -> Any:
    """`__dask_tokenize__`: the same for the same dtype, shape and values, in every process; another for others.

    Hashed where the bytes are: nothing but the hash is fetched. Arrays of references (objects, strings of variable
    length) lie on the host, and are hashed as Dask hashes NumPy's.
    """
    if x.dtype.hasobject or x.dtype.kind == "T":
        from dask.tokenize import normalize_token
        return "LazyNdarray", normalize_token(handles.host_of(x, "token for Dask"))
    return "LazyNdarray", digest(x), x.dtype, x.shape


def _tokens(module: ModuleType) -> None:
    LazyNdarray.__dask_tokenize__ = tokenise
    module.normalize_token.register(LazyNdarray, tokenise)


# -- sizes -----------------------------------------------------------------------------------------

def size_of(x: LazyNdarray) -> int:
    """Bytes that a lazy array occupies, on both sides together."""
    storage = x._self_storage
    if type(storage) is not Storage:
        from dask.sizeof import sizeof
        return sizeof(handles.host_of(x, "size estimate for Dask"))
    apart = (n for n, stride in zip(x.shape, x.strides) if stride)  # the others lie in the same place
    return math.prod(apart) * x.itemsize * storage.homes


def _sizes(module: ModuleType) -> None:
    module.sizeof.register(LazyNdarray, size_of)


# -- between processes -----------------------------------------------------------------------------

def _frames(module: ModuleType) -> None:
    from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
    from distributed.protocol.serialize import dask_deserialize, dask_serialize

    dask_serialize.register(LazyNdarray, to_frames)
    dask_deserialize.register(LazyNdarray, from_frames)
    cuda_serialize.register(LazyNdarray, to_device_frames)
    cuda_deserialize.register(LazyNdarray, from_device_frames)


def to_frames(x: LazyNdarray, context: Any = None) -> tuple[dict[str, Any], list]:
    """Header and frames of ``distributed``'s family "dask": the host copy's own memory, as of an ndarray."""
    from distributed.protocol.numpy import serialize_numpy_ndarray
    header, frames = serialize_numpy_ndarray(handles.host_of(x, "sent by distributed"), context)
    return {"array": header, "writeable": writeable(handles.meta_of(x))}, frames


def from_frames(header: dict[str, Any], frames: Iterable[Any]) -> LazyNdarray:
    """What `to_frames` packed, on the host until the device needs it."""
    from distributed.protocol.numpy import deserialize_numpy_ndarray
    return protocols.restored(deserialize_numpy_ndarray(header["array"], frames), header["writeable"])


def to_device_frames(x: LazyNdarray) -> tuple[dict[str, Any], list]:
    """The same for its family "cuda", whose transports carry device memory: no byte goes to the host."""
    storage = x._self_storage
    if type(storage) is not Storage or storage.device.name != "cuda" or storage.state == "host":
        raise NotImplementedError("not in CUDA memory")     # the next family is asked
    device = storage.device
    with storage.place():
        array = device.contiguous(convert.lend(x, "sent by distributed"))    # who opens it here shares the memory
        frame = device.view(array, (array.nbytes,), np.dtype(np.uint8), (1,), 0)
    return {"dtype": x.dtype.str, "shape": x.shape, "writeable": writeable(handles.meta_of(x))}, [frame]


def from_device_frames(header: dict[str, Any], frames: Iterable[Any]) -> LazyNdarray:
    """A lazy array that shares the memory of the frame."""
    (frame,) = frames
    device = current_device()
    block = device.from_foreign(frame)
    dtype, shape = np.dtype(header["dtype"]), tuple(header["shape"])
    x = LazyNdarray(device.view(block, shape, dtype, None, 0))
    x.flags.writeable = header["writeable"]
    return x


#: Module of Dask's -> what is done when it has been imported.
_PARTS: dict[str, Callable[[ModuleType], None]] = {
    "dask.tokenize": _tokens, "dask.sizeof": _sizes, "dask.array": _chunks, "distributed.protocol": _frames,
}
