"""Numba: compiled functions take lazy arrays, as arguments and to write into.

Numba types a lazy array as the ndarray that it says it is, so that one compiled function serves both; only the code
that opens an argument asks for the ndarray struct. Here it makes an alias of whatever has none, and goes on with that.
Functions that Numba compiled in this process before lazyarray was imported keep the old code: for a lazy array they
raise TypeError ("can't unbox array"). On disk (``cache=True``) both codes stand side by side.

CUDA kernels would take lazy arrays unaided, by ``__cuda_array_interface__``. But to find the types of its arguments a
kernel first asks each one for a buffer, which would copy it to the host at every launch, and it writes to them unseen.
So a launch with lazy arguments goes through us, and the kernel gets their device arrays.
"""
from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np

from .. import devices
from . import cupy

#: Added to the keys of Numba's caches on disk. The number changes with the code that `register` has Numba generate.
_MARK = "lazyarray unboxes, 1"


def register(module: ModuleType) -> None:
    """Let the arguments of compiled functions be lazy arrays, and those of ``numba.cuda.dispatcher``'s kernels."""
    if module.__name__ == "numba":
        _register_unboxing()
        return
    launch = module.CUDADispatcher.call

    @functools.wraps(launch)
    def launching(self: Any, args: Any, *configuration: Any) -> Any:
        if not cupy.has_lazy(args):
            return launch(self, args, *configuration)
        return cupy.launched(lambda *args: launch(self, args, *configuration), args, self, _stream(configuration))

    module.CUDADispatcher.call = launching


def _stream(configuration: tuple[Any, ...]) -> Any:
    """CuPy's name for the stream of a launch, None where the device is not CUDA."""
    device = devices.current()
    if device.name != "cuda":
        return None
    # One object that says how to launch, or, in releases of Numba that bring their own CUDA, its parts.
    stream = configuration[0].stream if len(configuration) == 1 else configuration[2]
    handle = getattr(stream, "handle", stream)
    pointer = int(getattr(handle, "value", handle) or 0)
    streams = device.xp.cuda
    return streams.Stream.null if pointer == 0 else streams.ExternalStream(pointer)


def _register_unboxing() -> None:
    from llvmlite import ir
    from numba.core import boxing, cgutils, types
    from numba.core.caching import Cache, FunctionCache
    from numba.core.pythonapi import _unboxers
    from numba.extending import NativeValue

    unbox_ndarray = boxing.unbox_array

    def unbox(typ: Any, obj: Any, c: Any) -> Any:
        builder, api = c.builder, c.pyapi
        native = c.context.make_array(typ)(c.context, builder)
        # The adaptor that takes no reference, which `api` lends only to code without Numba's memory manager: here it
        # only tells whether there is a struct.
        adapt = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.IntType(32), [api.pyobj, api.voidptr]), "numba_adapt_ndarray")
        has_none = cgutils.is_not_null(builder, builder.call(
            adapt, (obj, builder.bitcast(native._getpointer(), api.voidptr))))
        array = cgutils.alloca_once_value(builder, obj)
        alias = cgutils.alloca_once_value(builder, cgutils.get_null_value(api.pyobj))
        with builder.if_then(has_none, likely=False):
            asarray = api.unserialize(api.serialize_object(np.asarray))
            made = api.call_function_objargs(asarray, (obj,))
            api.decref(asarray)
            builder.store(made, array)
            builder.store(made, alias)
        value = cgutils.alloca_once(builder, c.context.get_value_type(typ), zfill=True)
        failed = cgutils.alloca_once_value(builder, cgutils.true_bit)
        with builder.if_then(cgutils.is_not_null(builder, builder.load(array)), likely=True):
            opened = unbox_ndarray(typ, builder.load(array), c)
            builder.store(opened.value, value)
            builder.store(opened.is_error, failed)
        api.decref(builder.load(alias))     # what was opened holds it now
        return NativeValue(builder.load(value), is_error=builder.load(failed))

    # `numba.extending.unbox` refuses a second rule for a type.
    _unboxers.functions[types.Array] = unbox

    def index_key(self: Any, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*Cache._index_key(self, sig, codegen), _MARK)

    FunctionCache._index_key = index_key
