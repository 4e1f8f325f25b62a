"""MONAI: transforms take lazy arrays and return them, for as long as somebody has enabled "monai".

MONAI computes with tensors, with CuPy arrays (`CuCIM`) and with NumPy, and has a function for each way between them.
While it is enabled those functions pass on the device's memory, and the outermost transform that is called with a lazy
array, `Compose` among them, returns lazy arrays. In between MONAI's tensors keep their metadata from one transform to
the next, so that the values are those of the same call with NumPy arrays. A tensor that goes in comes out as one, and
`ToTensor` returns tensors.
"""
from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial, wraps
from types import ModuleType
from typing import Any

import numpy as np
import wrapt

from .. import devices
from ..dispatch import convert
from ..functions.pytree import replace
from ..settings import enabled
from ..settings.options import current as current_options
from ..storage import foreign_streams, handles
from ..storage.writeable import writeable
from ..wrapping.results import at_once
from . import torch
from .routing.router import LARGE

#: What `settings.enabled.Choice` knows MONAI's transforms by.
MODULE = "monai.transforms"

#: Tensors of at most so many numbers are no pictures.
FEW = 64

#: Transforms that are called for a tensor, and the name of the last one in a chain that decides for the chain.
GIVE_TENSORS = ("ToTensor", "ToTensord")

_calls: ContextVar[_Call | None] = ContextVar("lazyarray.monai", default=None)
_functions: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
_replaced: list[tuple[Any, str, Any]] = []      # (class or module, name, what it was)


# -- in place and out of it ----------------------------------------------------------------------

def install() -> None:
    """Put our own `__call__` on MONAI's transforms, and our own ways in the place of its conversions."""
    from monai.utils import type_conversion

    if _replaced:
        return
    for name, function in CONVERSIONS.items():
        original = getattr(type_conversion, name)
        _functions[name] = original, wraps(original)(partial(_converted, function, original))
    _exchange({id(original): ours for original, ours in _functions.values()})
    if not type_conversion.has_cp:      # `ToCupy` and its like work with the simulated device's arrays
        device = devices.current()
        for name, value in (("cp", device.xp), ("cp_ndarray", device.array_type), ("has_cp", True)):
            _replace(type_conversion, name, value)
    for kind in _transforms():
        _replace(kind, "__call__", _called(vars(kind)["__call__"], WITHIN.get(kind.__name__)))


def remove() -> None:
    """Put everything back as it was."""
    while _replaced:
        setattr(*_replaced.pop())
    _exchange({id(ours): original for original, ours in _functions.values()})
    _functions.clear()


def _replace(owner: Any, name: str, value: Any) -> None:
    _replaced.append((owner, name, vars(owner)[name]))
    setattr(owner, name, value)


def _transforms() -> Iterator[type]:
    """MONAI's own transforms that have a `__call__` of their own; one or two are no subclasses of `Transform`."""
    from monai import transforms

    seen = {transforms.Transform, *(kind for kind in vars(transforms).values()
                                    if isinstance(kind, type) and hasattr(kind, "backend"))}
    waiting = list(seen)
    while waiting:
        kind = waiting.pop()
        new = set(kind.__subclasses__()) - seen
        seen |= new
        waiting += new
        call = vars(kind).get("__call__")
        if kind.__module__.startswith("monai.") and call is not None and not getattr(
                call, "__isabstractmethod__", False):
            yield kind


def _exchange(functions: dict[int, Callable[..., Any]]) -> None:
    """Replace functions, by their identity, in the namespaces of MONAI's modules."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and name.partition(".")[0] == "monai":
            for key, value in list(vars(module).items()):
                if id(value) in functions:
                    setattr(module, key, functions[id(value)])


# -- one transform -------------------------------------------------------------------------------

def lazy(transform: Callable[..., Any]) -> LazyTransform:
    """What ``lazyarray.lazy`` makes of a transform."""
    return LazyTransform(transform)


class LazyTransform(wrapt.BaseObjectProxy):
    """A transform that is called with MONAI enabled, and treats NumPy and device arrays as lazy ones."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        from .routing import enable

        given: set[bool] = set()

        def take(obj: Any) -> Any:
            device = devices.current()
            there = isinstance(obj, device.array_type)
            if there or type(obj) is np.ndarray or handles.is_array(obj):
                given.add(there)
            return handles.share(device, obj) if there else convert.asarray(obj) if type(obj) is np.ndarray else obj

        with enable.enabled("monai"):
            result = self.__wrapped__(*replace(args, take), **replace(kwargs, take))
        if given != {True}:
            return result
        return replace(result, lambda obj: convert.asdevice(obj) if handles.is_array(obj) else obj)

    def __copy__(self) -> LazyTransform:
        return LazyTransform(copy.copy(self.__wrapped__))

    def __deepcopy__(self, memo: dict[int, Any]) -> LazyTransform:
        return LazyTransform(copy.deepcopy(self.__wrapped__, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return LazyTransform, (self.__wrapped__,)


# -- a call from outside -------------------------------------------------------------------------

def _called(original: Callable[..., Any], within: Callable[..., Any] | None) -> Callable[..., Any]:
    """The `__call__` of a transform; `within` runs it inside of another call, or of its own, if there is more to do."""
    @wraps(original)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = _calls.get()
        if call is not None:
            return original(self, *args, **kwargs) if within is None else within(call, original, self, args, kwargs)
        numpy = enabled.current().modules.get(MODULE)
        if numpy is None:
            return original(self, *args, **kwargs)
        call = _Call(numpy)
        args, kwargs = replace(args, call.look), replace(kwargs, call.look)
        if not call.lazy:
            return original(self, *args, **kwargs)
        token, there = _calls.set(call), foreign_streams.host_is_device.set(devices.current().name != "cuda")
        try:
            with call.given.place():
                if _gives_tensors(self):
                    return __call__(self, *args, **kwargs)
                run = partial(call.as_given, partial(__call__, self), args, kwargs)
                return at_once(call.given.run(run), (args, kwargs))
        finally:
            foreign_streams.host_is_device.reset(there)
            _calls.reset(token)

    return __call__


def _gives_tensors(transform: Any) -> bool:
    last = transform
    while getattr(last, "transforms", None):
        last = last.transforms[-1]
    return type(last).__name__ in GIVE_TENSORS


class _Call:
    """The outermost call of a transform: what its arguments were made of, and what becomes of its result."""

    def __init__(self, numpy: bool) -> None:
        self.limit = (current_options().min_bytes or LARGE) if numpy else None
        self.lazy = False
        self.insists = False    # on real NumPy arrays
        self.given = _Given()

    def look(self, obj: Any) -> Any:
        self.given.look(obj)
        if handles.is_array(obj):
            self.lazy = True
        elif type(obj) is np.ndarray and self.limit is not None and obj.nbytes >= self.limit:
            self.lazy = True
            return convert.asarray(obj)
        else:
            self.given.untouched[id(obj)] = obj
        return obj

    def tensor(self, x: Any) -> Any:
        """The tensor of a lazy array or device array; anything else as it is.

        It is what MONAI makes of a NumPy array: contiguous, so that it writes into the array itself or into a copy as
        it would there, and of a wider dtype where torch has little use for the array's.
        """
        from monai.utils.type_conversion import UNSUPPORTED_TYPES

        device = devices.current()
        if isinstance(x, device.array_type):
            return torch.of_device(device, x)
        if not handles.is_array(x):
            return x
        if x.dtype in UNSUPPORTED_TYPES:
            x = x.astype(UNSUPPORTED_TYPES[x.dtype])
        elif not (x.flags.c_contiguous and writeable(handles.meta_of(x))):
            x = x.copy()
        tensor = torch.as_tensor(x)
        self.given.sources.append(x)
        return tensor

    def array(self, tensor: Any) -> Any:
        """The lazy array of a tensor that is on the device; anything else as it is."""
        found = self.device_array(tensor)
        return tensor if found is tensor else handles.share(devices.current(), found)

    def device_array(self, obj: Any) -> Any:
        """The device array of a lazy array or of a tensor on the device; anything else as it is."""
        if handles.is_array(obj):
            self.given.sources.append(obj)
            return convert.asdevice(obj)
        if not torch.is_tensor(obj) or not torch.is_on_device(obj):
            return obj
        plain = torch.plain(obj.detach())
        if torch.refusal(plain) is not None:
            return obj
        found = torch.from_torch(devices.current(), plain)
        return obj if found is None else found

    def on_device_arrays(self, original: Callable[..., Any], transform: Any, args: tuple[Any, ...],
                         kwargs: dict[str, Any]) -> Any:
        """Call a transform that works on device arrays; its result is of the kind of its first argument, as usual."""
        from monai.utils import convert_to_dst_type

        first = args[0] if args else next(iter(kwargs.values()), None)
        result = original(transform, *replace(args, self.device_array), **replace(kwargs, self.device_array))
        if not torch.is_tensor(first):
            return result
        lazy = self.given.lazy(result)
        return convert_to_dst_type(lazy, first, dtype=torch.torch_dtype(lazy.dtype))[0]

    def on_host(self, original: Callable[..., Any], transform: Any, args: tuple[Any, ...],
                kwargs: dict[str, Any]) -> Any:
        """Call a transform that hands NumPy arrays to compiled code which takes nothing else."""
        before, self.insists = self.insists, True
        try:
            return original(transform, *args, **kwargs)
        finally:
            self.insists = before

    def as_given(self, transform: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call; of a dictionary, what belongs to a tensor of the caller's is noted to stay one."""
        result = transform(*args, **kwargs)
        first = args[0] if args else None
        if isinstance(first, Mapping) and isinstance(result, Mapping):
            for key, value in result.items():
                if torch.is_tensor(first.get(key)):
                    self.given.untouched[id(value)] = value
        return result


class _Given(torch.Given):
    """`torch.Given`, where host arrays become lazy too, and what the caller passed stays what it was."""

    def __init__(self) -> None:
        super().__init__()
        self.untouched: dict[int, Any] = {}

    def lazy(self, obj: Any) -> Any:
        if id(obj) in self.untouched or getattr(obj, "has_pending_operations", False):
            return obj      # to be computed later, by MONAI, which keeps what is to be done in the tensor
        device = devices.current()
        if isinstance(obj, device.array_type):
            return handles.wrap(device, obj, self.sources)
        if type(obj) is np.ndarray:
            return handles.from_host(obj, "made on the host by a transform", eager=False)
        return super().lazy(obj)


# -- MONAI's conversions -------------------------------------------------------------------------

def _converted(function: Callable[..., Any], original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    call = _calls.get()
    return original(*args, **kwargs) if call is None else function(call, original, *args, **kwargs)


def _to_tensor(call: _Call, original: Callable[..., Any], data: Any, *args: Any, **kwargs: Any) -> Any:
    return original(replace(data, call.tensor), *args, **kwargs)


def _to_numpy(call: _Call, original: Callable[..., Any], data: Any, dtype: Any = None, *args: Any,
              **kwargs: Any) -> Any:
    """A lazy array is the NumPy array of what is on the device.

    A few numbers (a matrix of coordinates, a shape) are fetched: what is computed with them is for the host.
    """
    small = torch.is_tensor(data) and data.numel() <= FEW
    if small and not data.is_cuda:
        return original(data, dtype, *args, **kwargs)
    found = call.array(data)
    if not handles.is_array(found):
        return original(data, dtype, *args, **kwargs)
    if call.insists or small:
        return original(np.array(handles.host_of(found, "a transform that works on the host")), dtype, *args, **kwargs)
    if kwargs.get("safe") or len(args) > 1 and args[1]:
        from monai.utils.type_conversion import get_dtype_bound_value

        found = np.clip(found, *get_dtype_bound_value(found.dtype if dtype is None else dtype))
    if dtype is not None and np.dtype(dtype) != found.dtype:
        found = found.astype(dtype, order="C")
    return found if found.flags.c_contiguous else found.copy()


def _to_cupy(call: _Call, original: Callable[..., Any], data: Any, *args: Any, **kwargs: Any) -> Any:
    return original(replace(data, call.device_array), *args, **kwargs)


def _data_type(call: _Call, original: Callable[..., Any], data: Any, output_type: Any = None, *args: Any,
               **kwargs: Any) -> Any:
    if isinstance(output_type, type) and issubclass(output_type, handles.array_type):
        output_type = np.ndarray
    return original(data, output_type, *args, **kwargs)


#: Functions of `monai.utils.type_conversion`, and what they do with lazy arrays within a call.
CONVERSIONS: dict[str, Callable[..., Any]] = {
    "convert_to_tensor": _to_tensor,
    "convert_to_numpy": _to_numpy,
    "convert_to_cupy": _to_cupy,
    "convert_data_type": _data_type,
}

#: Transforms that need something else than tensors or lazy arrays, and how they are called. The others are called as
#: they are.
WITHIN: dict[str, Callable[..., Any]] = {
    "CuCIM": _Call.on_device_arrays,
    "RandCuCIM": _Call.on_device_arrays,
    "RemoveSmallObjects": _Call.on_host,
}
