"""Torch: tensors and lazy arrays on one memory, and torch functions that take lazy arrays.

`register` runs when torch is imported. From then on `lazyarray.asarray` knows a tensor, torch's functions take lazy
arrays through `__torch_function__`, and a DataLoader knows how to make a batch of them. ``torch.as_tensor(x)`` and
``torch.from_dlpack(x)`` need none of it: they ask for ``__cuda_array_interface__`` and ``__dlpack__``.

Without a GPU, torch computes on the simulated device's memory where a lazy array is handed to a torch function; a CPU
tensor of the user's own is host memory there as anywhere.
"""
from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..array.array import LazyNdarray
from ..array.scalar import LazyScalar
from ..devices.base import HERE
from ..dispatch import convert
from ..events.callers import TENSOR, who_asks
from ..functions.pytree import replace
from ..storage import exports, foreign_streams, handles, places, transfer
from ..storage.storage import Storage
from ..storage.writeable import writeable
from ..wrapping.results import at_once

if TYPE_CHECKING:
    from ..devices import Device

#: What a tensor may have that no array has: (question, error, what is said). The first that applies is raised.
REFUSALS: tuple[tuple[Callable[[Any], bool], type[Exception], str], ...] = (
    (lambda t: t.requires_grad, RuntimeError,
     "it requires grad, and an array has no gradient; pass tensor.detach(), which shares its memory"),
    (lambda t: t.device.type == "meta", TypeError, "it is on the meta device and has no values"),
    (lambda t: t.is_nested, TypeError, "it is nested; pass torch.nested.to_padded_tensor(tensor, padding)"),
    (lambda t: t.is_quantized, TypeError, "it is quantized; pass tensor.dequantize()"),
    (lambda t: t.layout != _torch().strided, TypeError, "its layout is {t.layout}; pass tensor.to_dense()"),
    (lambda t: t.dtype not in dtypes(), TypeError, "NumPy has no {t.dtype}; pass tensor.float() or another dtype"),
    (lambda t: t.is_conj(), RuntimeError, "its conjugate bit is set; pass tensor.resolve_conj()"),
    (lambda t: t.is_neg(), RuntimeError, "its negative bit is set; pass tensor.resolve_neg()"),
)

_NAMES = ("bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128").split()


@cache
def _torch() -> ModuleType:
    import torch

    return torch


@cache
def dtypes() -> dict[Any, np.dtype]:
    """The dtypes that torch and the device both have."""
    return {getattr(_torch(), name): np.dtype(name) for name in _NAMES if hasattr(_torch(), name)}


def register(library: ModuleType) -> None:
    """Make lazy arrays known to torch or its DataLoader, and tensors to `lazyarray.asarray`."""
    if library.__name__ == "torch":
        for kind in (LazyNdarray, LazyScalar):
            kind.__torch_function__ = property(_torch_function_of)
        LazyScalar.__dlpack__, LazyScalar.__dlpack_device__ = _scalar_dlpack, _scalar_device
        if (library.Tensor, from_tensor) not in foreign_streams.adopters:
            foreign_streams.adopters.append((library.Tensor, from_tensor))
            foreign_streams.partners.append(_stream)
    else:
        from torch.utils.data._utils.collate import default_collate_fn_map

        default_collate_fn_map.update({LazyNdarray: collate_arrays, LazyScalar: collate_scalars})


def _scalar_device(s: LazyScalar) -> tuple[int, int]:
    """`__dlpack_device__`: the host, where the value is needed."""
    return 1, 0


def _scalar_dlpack(s: LazyScalar, **options: Any) -> Any:
    """`__dlpack__`: the value on the host, as ``torch.tensor`` of one of NumPy's scalars has it."""
    return np.asarray(handles.value_of(s, "__dlpack__")).copy().__dlpack__(**options)


def _stream(device: Device) -> Any:
    """The stream on which torch works, if it does."""
    cuda = _torch().cuda
    if device.name != "cuda" or not cuda.is_initialized():
        return None
    return device.stream_at(cuda.current_stream().cuda_stream)


# -- one memory --------------------------------------------------------------------------------

def is_tensor(obj: Any) -> bool:
    """Whether something is a tensor, of a subclass too."""
    return isinstance(obj, _torch().Tensor)


def plain(tensor: Any) -> Any:
    """A tensor without what a subclass adds to it."""
    return tensor if type(tensor) is _torch().Tensor else tensor.as_subclass(_torch().Tensor)


def is_on_device(tensor: Any) -> bool:
    """Whether a tensor within a call of ours lies on the device; on the simulated one, every CPU tensor does."""
    return tensor.is_cuda or devices.current().name != "cuda" and tensor.device.type == "cpu"


def torch_dtype(dtype: np.dtype) -> Any:
    """Torch's name for a dtype."""
    return getattr(_torch(), dtype.name)


def refusal(tensor: Any) -> Exception | None:
    """Why a tensor can't be an array as it is, if it can't."""
    for question, error, text in REFUSALS:
        if question(tensor):
            return error(f"a lazy array can't share this tensor: {text.format(t=tensor)}")
    return None


def from_tensor(device: Device, tensor: Any) -> Any | None:
    """The device array on the memory of a CUDA tensor; None for a tensor in host memory.

    Raises
    ------
    RuntimeError
        The tensor requires grad, or its conjugate or negative bit is set.
    TypeError
        It is sparse, nested, quantized, without values, or of a dtype that NumPy lacks.
    """
    error = refusal(tensor)
    if error is not None:
        raise error
    return from_torch(device, plain(tensor)) if tensor.is_cuda and device.name == "cuda" else None


def from_torch(device: Device, tensor: Any) -> Any | None:
    """`Device.from_torch`, for work on our stream after what torch has issued on its own."""
    with device.on(tensor.device.index) if tensor.is_cuda else HERE:
        theirs = _stream(device)
        if theirs is not None:
            device.order(theirs, device.stream())
        return device.from_torch(tensor)


def as_tensor(x: LazyNdarray, to_be_read: bool = False) -> Any:
    """The tensor on the device memory of a lazy array: a write to either is a write to both.

    It is on the GPU that has `x`; on the simulated device, a CPU tensor on the memory of that device. What torch has no
    view for (negative strides, strides between elements, elements at odd places) is copied on the device first, and, if
    it is only `to_be_read`, what lies on another GPU than the current one. TypeError if torch has no such dtype.
    """
    storage, meta = x._self_storage, handles.meta_of(x)
    if meta.dtype not in dtypes().values():
        raise TypeError(f"torch has no {meta.dtype}; use x.astype(...) before")
    if type(storage) is not Storage:
        return of_device(storage.device, convert.asdevice(x))
    if to_be_read and places.elsewhere(storage.device, x):
        return of_device(storage.device, handles.operand_of(x, "operand of torch"))
    array = handles.device_of(x) if _is_odd(meta) else convert.lend(x, "torch")
    with storage.place():
        return of_device(storage.device, array)


def on_host(x: LazyNdarray) -> Any:
    """The tensor over an alias of a lazy array, live as any; of a copy if torch can't have one there."""
    alias = handles.alias_of(x, "operand of a CPU tensor")
    if _is_odd(alias) or not alias.flags.writeable:
        alias = alias.copy()
    return _torch().from_numpy(alias)


def of_device(device: Device, array: Any) -> Any:
    """The tensor on the memory of a device array, or on that of a copy if torch can't have one there."""
    if _is_odd(array):
        array = array.copy()    # torch aborts where strides are negative, and CuPy rounds those that are no multiples
    return _torch().from_dlpack(device.to_torch(array))


def _is_odd(array: Any) -> bool:
    return any(s < 0 or s % array.itemsize for s in array.strides)


# -- torch functions on lazy arrays --------------------------------------------------------------

def _torch_function_of(x: Any) -> Callable[..., Any]:
    """`__torch_function__`, which the tensor types do not find: torch takes an object that has it for a storage there
    (seen in 2.11 and 2.13; they take an ndarray)."""
    if who_asks(sys._getframe(1)) == TENSOR:
        raise AttributeError("__torch_function__")
    return torch_function


def torch_function(func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (),
                   kwargs: dict[str, Any] | None = None) -> Any:
    """Run a torch function: what `__torch_function__` is."""
    return call(func, args, kwargs or {})


def call(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function of tensors on tensors that share the memory of the lazy arrays among its arguments.

    Beside tensors the result is what the function returns. A function that got lazy arrays alone returns lazy ones.
    With several GPUs it runs on that of the first tensor on one; without any, on that of the first lazy array that is
    written, or of the largest one. What lies on another one is copied there, and copied back if the function modified
    it.
    """
    given = Given(written_of(func, args, kwargs))
    replace((args, kwargs), given.look)
    with given.place():
        tensor_args, tensor_kwargs = replace(args, given.tensor), replace(kwargs, given.tensor)
        check_written(func, given.written)
        if given.tensors:
            result = replace(func(*tensor_args, **tensor_kwargs), given.back)
        else:
            result = at_once(given.run(partial(func, *tensor_args, **tensor_kwargs)), (args, kwargs))
        given.copy_back()
        return result


class Given:
    """The arguments of one call, and what comes back."""

    def __init__(self, written: Sequence[Any] = ()) -> None:
        self.written = written
        self.tensors = False                            # the caller knows tensors
        self.on_host = False                            # and has some in host memory
        self.number: int | None = None                  # of the GPU of the first one on a GPU
        self.arrays: list[LazyNdarray] = []
        self.copied: list[tuple[LazyNdarray, Any, Any, Any]] = []   # with its copy, the copy's bytes and what they were
        self.sources: list[LazyNdarray] = []
        self.known: dict[int, tuple[Any, Any]] = {}     # id of a tensor -> (it, the lazy array that it was made of)
        self.new: list[tuple[Any, Any]] = []            # (memory of a result, its storage)

    def look(self, obj: Any) -> Any:
        """Note where the tensors among the arguments are. One without dimensions goes with those of any place."""
        if is_tensor(obj):
            self.tensors = True
            self.on_host |= obj.device.type == "cpu" and obj.dim() > 0 and not foreign_streams.host_is_device.get()
            if self.number is None and obj.is_cuda and obj.dim() > 0:
                self.number = obj.device.index
        elif handles.is_array(obj):
            self.arrays.append(obj)
        elif isinstance(obj, _torch().Generator):
            self.on_host |= obj.device.type == "cpu" and devices.current().name == "cuda"
        return obj

    def place(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which the GPU on which the function runs is the current one."""
        return places.on_one(devices.current(), self.arrays, self.written, self.number)

    def tensor(self, obj: Any) -> Any:
        """The tensor of a lazy array, on the host beside one that is there; anything else as it is."""
        if not handles.is_lazy(obj):
            return obj
        if handles.is_scalar(obj):
            return handles.value_of(obj, "scalar for torch")
        if self.on_host:
            tensor = on_host(obj)
        elif places.elsewhere(devices.current(), obj) and not any(obj is x for x in self.written):
            tensor = self._copy(obj)
        else:
            tensor = as_tensor(obj)
        self.sources.append(obj)
        self.known[id(tensor)] = tensor, obj
        return tensor

    def _copy(self, x: LazyNdarray) -> Any:
        """The tensor of a copy on the current GPU."""
        device, tensor = devices.current(), as_tensor(x, to_be_read=True)
        array = device.from_torch(tensor)
        if array is not None and array.size:
            block = device.block(array)[0]
            self.copied.append((x, array, block, block.copy()))
        return tensor

    def copy_back(self) -> None:
        """Write what the function has modified of copies to the arrays on other GPUs."""
        if not self.copied:
            return
        device = devices.current()
        theirs = _stream(device)
        if theirs is not None:
            device.order(theirs, device.stream())
        for x, array, block, before in self.copied:
            modified = (block != before).any()
            if transfer.to_host(device, modified, "whether an argument of torch was modified", "synchronise"):
                x[...] = array

    def back(self, obj: Any) -> Any:
        found = self.known.get(id(obj))
        return obj if found is None else found[1]

    def run(self, call: Callable[[], Any]) -> Any:
        """What a call returns, with lazy arrays in place of the tensors in it that can be arrays."""
        result = call()
        made = replace(result, self.lazy)
        del result
        for memory, storage in self.new:
            if _uses(memory) != _uses_alone(memory.device):
                # Somebody else has the tensor, or a view of it, and may write into it.
                storage.foreign, storage.clean = True, False
                exports.register(storage)
        return made

    def lazy(self, obj: Any) -> Any:
        """The lazy array on the memory of a tensor that a function returned; anything else as it is."""
        found = self.known.get(id(obj))
        if found is not None:
            return found[1]
        if not is_tensor(obj) or refusal(obj) is not None:
            return obj
        device = devices.current()
        memory = _memory(obj)
        array = from_torch(device, memory)
        if array is None:
            return handles.from_host(memory.cpu().numpy(), "a tensor on the host", eager=False)
        if array.ndim == 0:
            array = array.copy()    # a scalar is a snapshot
        made = handles.wrap(device, array, self.sources)
        storage = made._self_storage
        if storage.root is array:
            self.new.append((memory, storage))
        return made


def _memory(tensor: Any) -> Any:
    """Another tensor on the same memory, which holds neither this one nor what it is a view of, as `detach` would."""
    tensor = plain(tensor)
    empty = _torch().empty(0, dtype=tensor.dtype, device=tensor.device)
    return empty.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())


def _uses(memory: Any) -> int:
    """How many tensors there are on the memory of this one, plus what looking costs."""
    return _torch()._C._storage_Use_Count(memory.untyped_storage()._cdata)


@cache
def _uses_alone(place: Any) -> int:
    """The `_uses` of a result that nobody else has."""
    torch = _torch()
    memory = _memory(torch.ones(1, device=place))
    array = devices.current().from_torch(memory)
    uses = _uses(memory)
    del array
    return uses


def written_of(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that a torch function writes: ``out=``, and the first one of ``add_`` and its like."""
    out = kwargs.get("out")
    written = list(out) if isinstance(out, (list, tuple)) else [out]
    name = getattr(func, "__name__", "")
    return [*written, *args[:1]] if name.endswith("_") and not name.endswith("__") else written


def check_written(func: Callable[..., Any], written: Iterable[Any]) -> None:
    """Refuse to write into what NumPy would refuse, and into what torch would get a copy of."""
    for x in written:
        if handles.is_scalar(x):
            raise TypeError(f"{getattr(func, '__name__', '')} can't write into a NumPy scalar")
        if handles.is_array(x):
            meta = handles.meta_of(x)
            if not writeable(meta):
                raise ValueError("output array is read-only")
            if _is_odd(meta) or type(x._self_storage) is not Storage:
                raise ValueError("torch has no tensor with these strides to write into; pass a copy (x.copy())")


# -- DataLoader --------------------------------------------------------------------------------

def collate_arrays(batch: list[Any], *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    """A batch of lazy arrays, for ``default_collate``: a tensor where they are; on the host in a worker process."""
    torch = _torch()
    if torch.utils.data.get_worker_info() is None:
        arrays = [x if handles.is_array(x) else convert.asarray(x) for x in batch]
        with places.on_one(devices.current(), arrays):
            tensors = [as_tensor(x, to_be_read=True) for x in arrays]
            return torch.utils.data.default_collate(tensors)
    # What is on a GPU doesn't go from a worker to its parent without care, and a forked worker has no GPU.
    tensors = [torch.from_numpy(np.array(handles.host_of(x, "DataLoader") if handles.is_array(x) else x))
               for x in batch]
    return torch.utils.data.default_collate(tensors)


def collate_scalars(batch: list[Any], *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    """A batch of lazy scalars, for ``default_collate``: the tensor that NumPy's scalars give."""
    return _torch().as_tensor([handles.value_of(s, "DataLoader") if handles.is_scalar(s) else s for s in batch])
