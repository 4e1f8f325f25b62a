"""CuPy's kernels take lazy arrays as they are, outputs included.

`ElementwiseKernel` and `ReductionKernel` would take them unaided, but write to an output without a word to us, so that
an alias of it on the host would be old; `RawKernel` and the kernels of `cupyx.jit` refuse whatever is no CuPy array, and
a `RawKernel` takes the value of an array with one element for its address. They offer no place to register at. So their
names in ``cupy`` come to stand for subclasses that look for lazy arguments first: kernels that a program makes once both
libraries are imported, and all of `cupyx.jit`'s, take them. For any other kernel there is ``lazyarray.lazy(kernel)``.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType
from typing import Any

from .. import wrap
from ..containers import is_container
from ..wrapping_arguments import MAYBE, READ, WRITTEN, Rules
from ..wrapping_call import call

Roles = Callable[[Any], Callable[[int | str], int]]


def register(module: ModuleType) -> None:
    """Let the kernels of ``cupy`` or ``cupyx.jit`` take lazy arrays."""
    if module.__name__ == "cupyx.jit":
        kernel = module._interface._JitRawKernel    # it has no public name
        kernel.__call__ = _taking_lazies(kernel.__call__, _any)
        return
    for name, roles, numbers in (("ElementwiseKernel", _after_inputs, False), ("ReductionKernel", _after_inputs, False),
                                 ("RawKernel", _any, True)):
        original = getattr(module, name)
        made = type(name, (original,), {
            "__module__": module.__name__, "__doc__": original.__doc__,
            "__call__": _taking_lazies(original.__call__, roles, numbers)})
        setattr(module, name, made)
    module.RawModule = _raw_module(module)


def _raw_module(module: ModuleType) -> type:
    original = module.RawModule

    @functools.wraps(original.get_function, updated=())
    def get_function(self: Any, name: str) -> Any:
        found = original.get_function(self, name)
        kernel = module.RawKernel.__new__(module.RawKernel)
        kernel.__setstate__(found.__getstate__())
        return kernel

    return type("RawModule", (original,), {
        "__module__": module.__name__, "__doc__": original.__doc__, "get_function": get_function})


def _taking_lazies(launch: Callable[..., Any], roles: Roles, numbers: bool = True) -> Callable[..., Any]:
    """A kernel's ``__call__`` that sees to lazy arguments."""
    @functools.wraps(launch, updated=())
    def launching(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _has_lazy(args) and not (kwargs and _has_lazy(kwargs.values())):
            return launch(self, *args, **kwargs)
        # What comes before the launch, and what is noted of it, belong to the stream that it goes to.
        stream = kwargs.get("stream")
        name = getattr(self, "name", None) or getattr(self, "__name__", "kernel")
        with nullcontext() if stream is None else stream:
            return call(functools.partial(launch, self), args, kwargs, name, Rules(roles(self), False, numbers))

    return launching


def _has_lazy(args: Any) -> bool:
    return any(wrap.is_lazy(arg) or is_container(type(arg)) and _has_lazy(
        arg.values() if isinstance(arg, dict) else arg) for arg in args if not isinstance(arg, (int, str)))


def _any(kernel: Any) -> Callable[[int | str], int]:
    """Nobody says what such a kernel writes to."""
    return lambda slot: MAYBE


def _after_inputs(kernel: Any) -> Callable[[int | str], int]:
    """It writes to what comes after its inputs, and to ``out``."""
    inputs = kernel.nin
    return lambda slot: WRITTEN if slot == "out" or isinstance(slot, int) and slot >= inputs else READ
