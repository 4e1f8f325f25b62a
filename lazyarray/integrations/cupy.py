"""CuPy's kernels take lazy arrays as they are, outputs included.

`ElementwiseKernel` and `ReductionKernel` would take them unaided, but write to an output without a word to us, so that
an alias of it on the host would be old; `RawKernel` and kernels of `cupyx.jit` refuse whatever is no CuPy array, and a
`RawKernel` takes the value of an array with one element for its address. They offer no place to register at. So their
names in ``cupy`` come to stand for subclasses that look for lazy arguments first: kernels that a program makes once
both libraries are imported take them, and all of `cupyx.jit`'s. For any other there is ``lazyarray.lazy(kernel)``.

``cupy.asnumpy(x)`` is ``x.get()``: CuPy's own would copy the array on the device first, and then to the host, also
where the values are there already.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from types import ModuleType
from typing import Any

from ..array import methods
from ..storage import handles
from ..wrapping.arguments import READ, WRITTEN, Rules
from ..wrapping.call import call
from ..wrapping.parameters import UNKNOWN


def register(module: ModuleType) -> None:
    """Let the kernels of ``cupy`` or ``cupyx.jit`` take lazy arrays."""
    if module.__name__ == "cupyx.jit":
        kernel = module._interface._JitRawKernel    # it has no public name
        kernel.__call__ = _raw(kernel.__call__)
        return
    for name, taking in (("ElementwiseKernel", _typed), ("ReductionKernel", _typed), ("RawKernel", _raw)):
        original = getattr(module, name)
        _replace(module, original, __call__=taking(original.__call__))
    original_get = module.RawModule.get_function

    @functools.wraps(original_get, updated=())
    def get_function(self: Any, name: str) -> Any:
        kernel = module.RawKernel.__new__(module.RawKernel)
        kernel.__setstate__(original_get(self, name).__getstate__())
        return kernel

    _replace(module, module.RawModule, get_function=get_function)
    original_asnumpy = getattr(module, "asnumpy", None)
    if original_asnumpy is None:        # a stand-in for CuPy
        return

    @functools.wraps(original_asnumpy)
    def asnumpy(a: Any, *args: Any, **kwargs: Any) -> Any:
        return methods.get(a, *args, **kwargs) if handles.is_lazy(a) else original_asnumpy(a, *args, **kwargs)

    module.asnumpy = asnumpy


def _replace(module: ModuleType, original: type, **methods: Any) -> None:
    """Let the name of a class stand for a subclass with other methods."""
    named = {"__module__": module.__name__, "__doc__": original.__doc__}
    setattr(module, original.__name__, type(original.__name__, (original,), named | methods))


def _typed(launch: Callable[..., Any]) -> Callable[..., Any]:
    """``kernel(*inputs, *outputs)``: it writes to what comes after the inputs, and to ``out``."""
    @functools.wraps(launch, updated=())
    def launching(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not has_lazy(args) and not (kwargs and has_lazy(kwargs.values())):
            return launch(self, *args, **kwargs)
        inputs = self.nin

        def role(slot: int | str) -> int:
            return WRITTEN if slot == "out" or isinstance(slot, int) and slot >= inputs else READ

        with _on(kwargs.get("stream")):
            return call(functools.partial(launch, self), args, kwargs, _name(self), Rules(role, False, False))

    return launching


def _raw(launch: Callable[..., Any]) -> Callable[..., Any]:
    """``kernel(grid, block, args)``: nobody says what it writes to."""
    @functools.wraps(launch, updated=())
    def launching(self: Any, grid: Any, block: Any, args: Any, *rest: Any, **kwargs: Any) -> Any:
        if not has_lazy(args):
            return launch(self, grid, block, args, *rest, **kwargs)
        stream = kwargs.get("stream", rest[1] if len(rest) > 1 else None)
        return launched(lambda *args: launch(self, grid, block, args, *rest, **kwargs), args, self, stream)

    return launching


def launched(launch: Callable[..., Any], args: Iterable[Any], kernel: Any, stream: Any) -> Any:
    """Launch a kernel that may write to any argument; what comes before it, and is noted of it, is on its stream."""
    with _on(stream):
        return call(launch, tuple(args), {}, _name(kernel), _ANY)


_ANY = UNKNOWN._replace(hosts=False)


def _on(stream: Any) -> Any:
    return nullcontext() if stream is None else stream


def _name(kernel: Any) -> str:
    return getattr(kernel, "name", None) or getattr(kernel, "__name__", "kernel")


def has_lazy(args: Iterable[Any]) -> bool:
    """Whether there is a lazy array or scalar among arguments."""
    array, scalar = handles.array_type, handles.scalar_type
    for arg in args:        # of every launch of every kernel: a generator takes three times as long
        kind = type(arg)
        if kind is array or kind is scalar:
            return True
    return False
