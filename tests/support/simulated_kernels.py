"""Kernels for the simulated device: they take and refuse what CuPy's do, and run a Python function.

Facts of CuPy 14.2 (`_kernel.pyx`, `_reduction.pyx` and `raw.pyx` in `cupy/_core`, `cupy/cuda/function.pyx`,
`cupyx/jit/_interface.py`): element-wise and reduction kernels take arrays by `__cuda_array_interface__` or
`__cupy_get_ndarray__`, and NumPy and Python scalars; raw kernels take CuPy arrays by address, NumPy arrays of one
element and scalars by value, and raise TypeError for other NumPy arrays; kernels of cupyx.jit take CuPy arrays and
scalars. None returns anything but CuPy arrays. Of numba-cuda 0.30 (`cext/_typeof.cpp`, `dispatcher.py`): to type an
argument that it does not know, a kernel asks it for a buffer.
"""
from __future__ import annotations

import functools
from types import ModuleType, SimpleNamespace

import numpy as np

import lazyarray

device = lazyarray.device()


def _array(arg):
    found = device.from_foreign(arg)
    if found is None and not isinstance(arg, (int, float, complex, np.generic)):
        raise TypeError(f"Unsupported type {type(arg)}")
    return arg if found is None else found


class _Typed:
    def __init__(self, inputs, outputs, operation, name="kernel", body=None):
        self.nin, self.nout = len(inputs.split(",")), len(outputs.split(","))
        self.name, self.body = name, body

    def _outputs(self, given, made):
        if not given:
            return made
        if not all(isinstance(arg, device.array_type) for arg in given):
            raise TypeError("Output arguments type must be cupy.ndarray")
        for target, value in zip(given, made):
            target[...] = value
        return given


class ElementwiseKernel(_Typed):
    def __call__(self, *args, size=-1, stream=None):
        args = [_array(arg) for arg in args]
        made = self.body(*args[:self.nin])
        found = self._outputs(args[self.nin:], made if isinstance(made, tuple) else (made,))
        return found[0] if self.nout == 1 else tuple(found)


class ReductionKernel(_Typed):
    def __call__(self, *args, out=None, axis=None, keepdims=False, stream=None):
        args = [_array(arg) for arg in args]
        outs = args[self.nin:] + ([] if out is None else [_array(out)])
        return self._outputs(outs, (self.body(*args[:self.nin], axis=axis),))[0]


class RawKernel:
    def __init__(self, code, name, body=None):
        self.code, self.name, self.body = code, name, body

    def __getstate__(self):
        return {"code": self.code, "name": self.name, "body": self.body}

    def __setstate__(self, state):
        self.__init__(**state)

    def __call__(self, grid, block, args, *, shared_mem=0, stream=None):
        taken = []
        for arg in args:
            if isinstance(arg, np.ndarray):         # what a lazy array says that it is
                if arg.size != 1:
                    raise TypeError(f"You are trying to pass a numpy.ndarray of shape {arg.shape}")
                arg = arg.item()
            elif not isinstance(arg, (device.array_type, int, float, np.generic)):
                raise TypeError(f"Unsupported type {type(arg)}")
            taken.append(arg)
        self.body(*taken)


class RawModule:
    def __init__(self, code, bodies):
        self.code, self.bodies = code, bodies

    def get_function(self, name):
        return RawKernel(self.code, name, self.bodies[name])


class _JitRawKernel:
    def __init__(self, body):
        self.body = body

    def __call__(self, grid, block, args, shared_mem=0, stream=None):
        for arg in args:
            if type(arg) is not device.array_type and not np.isscalar(arg):
                raise TypeError(f"{type(arg)} is not supported for RawKernel")
        self.body(*args)

    def __getitem__(self, grid_and_block):
        return lambda *args, **kwargs: self(*grid_and_block, args, **kwargs)


class CUDADispatcher:
    """What ``numba.cuda.jit`` makes. It asks for a buffer first; what has none must be on the device."""

    def __init__(self, body):
        self.body, self.__name__ = body, body.__name__

    def __getitem__(self, configuration):
        return lambda *args: self.call(args, SimpleNamespace(stream=0))

    def call(self, args, configuration):
        for arg in args:
            if isinstance(arg, np.ndarray):
                memoryview(arg)
        self.body(*(arg if np.isscalar(arg) else device.from_foreign(arg) for arg in args))


def numba_dispatcher():
    """A new module that stands for ``numba.cuda.dispatcher``."""
    module = ModuleType("numba.cuda.dispatcher")
    module.CUDADispatcher = type("CUDADispatcher", (CUDADispatcher,), {"call": CUDADispatcher.call})
    return module


def modules():
    """New modules that stand for ``cupy`` and ``cupyx.jit``, nobody having registered with them."""
    cupy, jit = ModuleType("cupy"), ModuleType("cupyx.jit")
    for kind in (ElementwiseKernel, ReductionKernel, RawKernel, RawModule):
        setattr(cupy, kind.__name__, type(kind.__name__, (kind,), {"__module__": "cupy"}))
    jit._interface = SimpleNamespace(_JitRawKernel=type("_JitRawKernel", (_JitRawKernel,), {
        "__call__": _JitRawKernel.__call__}))
    jit.rawkernel = lambda: lambda body: functools.update_wrapper(jit._interface._JitRawKernel(body), body)
    return cupy, jit
