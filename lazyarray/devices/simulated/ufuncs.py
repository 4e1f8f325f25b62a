"""Universal functions of the simulated device, with the methods that CuPy's have."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors.inspection import once_made
from . import indexing
from .array import SimulatedArray
from .cupy_differences import UFUNCS, copied_to
from .execution import SCALARS, SimulatedArrayBase, as_device, check_dtype, exports, launch, parts, wrap_new
from .hardware import hardware


class SimulatedUfunc:
    """A universal function of the device."""

    def __init__(self, name: str, function: Any, nin: int, nout: int, methods: str) -> None:
        self.__name__ = self.name = name
        self.nin, self.nout, self.nargs = nin, nout, nin + nout
        self._function = UFUNCS.get(name, function)
        self._methods = methods.split()
        self._is_ufunc = isinstance(function, np.ufunc)

    @once_made("name")
    def __repr__(self) -> str:
        return f"<ufunc 'cupy_{self.name}'>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if sys.meta_path is None:   # CuPy would import what compiles the kernel
            raise ImportError("sys.meta_path is None, Python is likely shutting down")
        if not kwargs and len(args) == self.nin and self.nout == 1 and hardware.plain:
            # The usual call, without the generality of `launch`.
            values = []
            for arg in args:
                kind = type(arg)
                if kind is SimulatedArray:
                    values.append(arg._view)
                elif kind in SCALARS:
                    values.append(arg)
                else:
                    break
            else:
                result = self._function(*values)
                if type(result) is not np.ndarray:
                    result = np.asarray(result)
                return wrap_new(result if result.flags.c_contiguous else np.ascontiguousarray(result))
        elif self._is_ufunc and hardware.plain and len(args) == self.nargs == self.nin + 1 and not kwargs:
            # With an output, as in-place operators call it.
            out = args[-1]
            if type(out) is SimulatedArray and all(type(a) is SimulatedArray or type(a) in SCALARS for a in args):
                operands = [arg._view if type(arg) is SimulatedArray else arg for arg in args[:-1]]
                self._function(*operands, out=out._view)    # by position NumPy 2.5 deprecates it
                return out
        return self._general(args, kwargs)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for value in (*args, *kwargs.values()):
            if hasattr(value, "__cupy_override_elementwise_kernel__"):
                return value.__cupy_override_elementwise_kernel__(self, *args, **kwargs)
        out, where = kwargs.pop("out", None), kwargs.pop("_where", None)
        options = {key: value for key in ("dtype", "casting") if (value := kwargs.pop(key, None)) is not None}
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(f"Wrong number of arguments for {self.name!r}: {len(args)}")
        outs = args[self.nin :]
        if out is not None:
            if outs:
                raise ValueError("Cannot specify 'out' as both a positional and keyword argument")
            outs = out if isinstance(out, tuple) else (out,)
            if len(outs) != self.nout:
                raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
        for value in (*args[: self.nin], *(() if where is None else (where,))):
            _check_operand(value)
        for value in outs:
            if value is not None and not isinstance(value, SimulatedArrayBase) and not exports(value):
                raise TypeError("Output arguments must be cupy.ndarray")
        if "dtype" in options:
            check_dtype(np.dtype(options["dtype"]))
        outs = tuple([None if value is None else as_device(value) for value in outs])
        writes = tuple([value for value in outs if value is not None])
        if not self._is_ufunc:      # a NumPy function that is a ufunc in CuPy
            return launch(lambda *args, out: copied_to(out, self._function(*args)), args[: self.nin], {"out": writes},
                          writes)
        if where is not None:
            options["where"] = where
        if writes:
            options["out"] = outs
        function = self._function if writes else in_c_order(self._function)
        result = launch(function, args[: self.nin], options, writes)
        if self.nout > 1 and writes:
            result = tuple([given if given is not None else new for given, new in zip(outs, result)])
        return result

    def outer(self, A: Any, B: Any, **kwargs: Any) -> Any:
        """The function of every pair of elements."""
        A, B = parts.namespace.array(A), parts.namespace.array(B)
        return self(A.reshape(A.shape + (1,) * B.ndim), B.reshape((1,) * A.ndim + B.shape), **kwargs)

    def _require(self, method: str) -> None:
        if method not in self._methods:
            raise NotImplementedError(f"`cupy_{self.name}.{method}` is not supported yet")

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        """Unbuffered in-place work on the elements that `indices` name; out of range wraps around."""
        self._require("at")
        index, _ = indexing.normalised(indices)
        arrays: list[Any] = [item for item in index if isinstance(item, SimulatedArrayBase)]
        repeats = len(arrays) > 1 or any(item.dtype.kind != "b" for item in arrays)    # one mask names none twice
        if repeats and a.dtype.name not in AT_DTYPES[self.name]:
            raise TypeError(f"cupy.{self.name}.at does not support {a.dtype} as data type")
        if not isinstance(b, SimulatedArrayBase):
            b = wrap_new(np.array(b, dtype=a.dtype))
        as_float32 = a.dtype.kind == "f" and self.name in _AS_FLOAT32
        function = _AS_FLOAT32[self.name] if as_float32 else self._function

        def work(x: Any, i: Any, y: Any) -> None:
            i = indexing.wrapped(x.shape, i)
            # NumPy 2.5 reads beyond values of the array's own dtype that it has to broadcast.
            y = np.broadcast_to(y.astype(x.dtype), x[i].shape).copy()
            if as_float32:
                x[i], y = x[i].astype("f4"), y.astype("f4")
            function.at(x, i, y)

        launch(work, (a, index, b), {}, (a,))

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Reduce along axes."""
        self._require("reduce")
        return (array.sum if self.name == "add" else array.prod)(axis, dtype, out, keepdims)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Accumulate along an axis."""
        self._require("accumulate")
        return (array.cumsum if self.name == "add" else array.cumprod)(axis, dtype, out)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Reduce over slices."""
        self._require("reduceat")
        if not isinstance(indices, SimulatedArrayBase):
            indices = parts.namespace.array(indices)
        options = {"axis": axis, "dtype": dtype, "out": out}
        return launch(self._function.reduceat, (array, indices), options, () if out is None else (out,))


_ATOMIC = frozenset({"int32", "int64", "float32", "float64", "uint32", "uint64"})
_BITS = frozenset({"int32", "int64", "uint32", "uint64"})
AT_DTYPES = {
    "add": _ATOMIC | {"float16"}, "subtract": frozenset({"int32", "uint32"}), "maximum": _ATOMIC, "minimum": _ATOMIC,
    "bitwise_and": _BITS, "bitwise_or": _BITS, "bitwise_xor": _BITS,
}  # fmt: skip
"""Dtypes for which the device has atomic operations."""

#: What CuPy compares as float32, and without NaN, whatever the dtype (`atomics.cuh` of CuPy 14.2).
_AS_FLOAT32 = {"maximum": np.fmax, "minimum": np.fmin}


def in_c_order(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results are in C order, whatever its operands are: where NumPy's follow them, CuPy's do not."""

    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return (*map(_c_order, result),) if type(result) is tuple else _c_order(result)

    return call


def _c_order(result: Any) -> Any:
    return np.ascontiguousarray(result) if isinstance(result, np.ndarray) and result.ndim > 1 else result


def _check_operand(value: Any) -> None:
    if isinstance(value, SimulatedArrayBase) or type(value) in SCALARS or exports(value):
        return
    if isinstance(value, np.generic):
        check_dtype(value.dtype)
        return
    raise TypeError(f"Unsupported type {type(value)}")
