"""Numba's CUDA kernels take lazy arrays, outputs included.

They would take them unaided, by ``__cuda_array_interface__``. But to find out the types of its arguments a kernel asks
each one for a buffer first, which would copy it to the host at every launch; and it writes without a word to us. So a
launch with lazy arguments goes through us, and the kernel gets their device arrays.
"""
from __future__ import annotations

import functools
from contextlib import nullcontext
from types import ModuleType
from typing import Any

from .. import devices, wrap
from ..wrapping.arguments import MAYBE, Rules
from ..wrapping.call import call

_ANY = Rules(lambda slot: MAYBE, hosts=False)


def register(module: ModuleType) -> None:
    """Let what ``numba.cuda.jit`` makes take lazy arrays. `module` is ``numba.cuda.dispatcher``."""
    launch = module.CUDADispatcher.call

    @functools.wraps(launch)
    def launching(self: Any, args: Any, *configuration: Any) -> Any:
        array, scalar = wrap._array_type, wrap._scalar_type
        if not any(type(arg) is array or type(arg) is scalar for arg in args):
            return launch(self, args, *configuration)
        with _stream(configuration):
            return call(lambda *args: launch(self, args, *configuration), tuple(args), {},
                        getattr(self, "__name__", "kernel"), _ANY)

    module.CUDADispatcher.call = launching


def _stream(configuration: tuple[Any, ...]) -> Any:
    """What comes before a launch, and what is noted of it, belong to the stream that it goes to."""
    device = devices.current()
    if device.name != "cuda":
        return nullcontext()
    # One object that says how to launch, or, in releases of Numba that bring their own CUDA, its parts.
    stream = configuration[0].stream if len(configuration) == 1 else configuration[2]
    handle = getattr(stream, "handle", stream)
    pointer = int(getattr(handle, "value", handle) or 0)
    streams = device.xp.cuda
    return streams.Stream.null if pointer == 0 else streams.ExternalStream(pointer)
