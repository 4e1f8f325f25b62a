"""What the modules have beside the functions of the simulated device."""
from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ...devices.simulated import cuda
from ...devices.simulated.array import FlatIterator, SimulatedArray
from ...devices.simulated.execution import launch
from ...devices.simulated.namespace import namespace
from . import comparisons, decorators, kernels, names


class _Grid:
    """``mgrid`` and ``ogrid``."""

    def __init__(self, host: Any) -> None:
        self._host = host

    def __getitem__(self, key: Any) -> Any:
        return launch(self._host.__getitem__, (key,), {}, ())


class vectorize:
    """``cupy.vectorize``: calls the function for each element, in Python."""

    def __init__(self, pyfunc: Callable[..., Any], otypes: Any = None, doc: str | None = None, excluded: Any = None,
                 cache: bool = False, signature: str | None = None) -> None:
        if excluded or signature is not None:
            raise NotImplementedError("cupy.vectorize does not support `excluded` and `signature`")
        self.pyfunc, self.otypes, self.__doc__ = pyfunc, otypes, doc or pyfunc.__doc__
        self._host = np.vectorize(pyfunc, otypes)

    def __call__(self, *args: Any) -> Any:
        return launch(self._host, args, {}, ())


def memoize(for_each_device: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``cupy.memoize``: keep results by argument, until ``clear_memo``."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        kept: dict[Any, Any] = {}
        _memos.append(kept)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            key = args, frozenset(kwargs.items()), cuda.DeviceContext().id if for_each_device else -1
            if key not in kept:
                kept[key] = function(*args, **kwargs)
            return kept[key]

        return call

    return decorate


_memos: list[dict[Any, Any]] = []


def _clear_memo() -> None:
    for kept in _memos:
        kept.clear()


def _get_array_module(*args: Any) -> Any:
    return sys.modules["cupy"] if any(isinstance(arg, SimulatedArray) or hasattr(arg, "__cupy_get_ndarray__")
                                      or type(arg).__name__ == "SimulatedSparse" for arg in args) else np


class _Nothing(contextlib.ContextDecorator):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass


def _scatter(operation: str) -> Callable[..., None]:
    return lambda a, slices, value: getattr(a, f"scatter_{operation}")(slices, value)


class Timings:
    """What ``cupyx.profiler.benchmark`` returns: seconds of each call, on the CPU and on the GPU."""

    def __init__(self, name: str, seconds: list[float]) -> None:
        self.name = name
        self.cpu_times, self.gpu_times = np.array(seconds), np.array([seconds])

    def to_str(self, show_gpu: bool = False) -> str:
        """The mean in microseconds."""
        return f"{self.name}: CPU: {self.cpu_times.mean() * 1e6:9.3f} us (simulated)"

    __str__ = __repr__ = to_str


def _benchmark(func: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: Any = None, n_repeat: int = 10000, *,
               name: str | None = None, n_warmup: int = 10, max_duration: float = float("inf"),
               devices: Any = None) -> Timings:
    for _ in range(n_warmup):
        func(*args, **(kwargs or {}))
    seconds: list[float] = []
    while len(seconds) < n_repeat and sum(seconds) < max_duration:
        start = time.perf_counter()
        func(*args, **(kwargs or {}))
        seconds.append(time.perf_counter() - start)
    return Timings(name or getattr(func, "__name__", ""), seconds)


class DeviceSynchronized(RuntimeError):
    """``cupyx.DeviceSynchronized``, which is never raised here."""


def _cupy() -> dict[str, Any]:
    nan, inf = float("nan"), float("inf")
    return {
        "Inf": inf, "Infinity": inf, "infty": inf, "PINF": inf, "NINF": -inf, "NAN": nan, "NaN": nan, "PZERO": 0.0,
        "NZERO": -0.0, "newaxis": None, "float_": np.float64, "complex_": np.complex128, "cfloat": np.complex128,
        "singlecomplex": np.complex64, "AxisError": np.exceptions.AxisError,
        "ComplexWarning": np.exceptions.ComplexWarning, "disable_experimental_feature_warning": False,
        "mgrid": _Grid(np.mgrid), "ogrid": _Grid(np.ogrid), "r_": _Grid(np.r_), "c_": _Grid(np.c_),
        "vectorize": vectorize, "memoize": memoize, "clear_memo": _clear_memo, "fuse": kernels.fuse,
        "ElementwiseKernel": kernels.ElementwiseKernel, "ReductionKernel": kernels.ReductionKernel,
        "RawKernel": kernels.RawKernel, "RawModule": kernels.RawModule, "get_array_module": _get_array_module,
        "flatiter": FlatIterator, "show_config": lambda *, _full=False: print(f"CuPy {names.version()}, simulated"),
    }


def _aliases() -> dict[str, Any]:
    """Functions under names that NumPy no longer has."""
    former = {"alltrue": "all", "sometrue": "any", "product": "prod", "cumproduct": "cumprod", "round_": "round",
              "row_stack": "vstack", "trapz": "trapezoid", "fromDlpack": "from_dlpack"}
    return {old: getattr(namespace, new) for old, new in former.items() if hasattr(namespace, new)} | {
        "in1d": lambda ar1, ar2, *args, **kwargs: namespace.isin(namespace.ravel(ar1), ar2, *args, **kwargs)}


def _polynomial(module: Any) -> dict[str, Any]:
    """Functions of one of NumPy's modules of polynomials."""
    def on_device(function: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(function)(lambda *args, **kwargs: launch(function, args, kwargs, ()))

    listed = names.modules()[module.__name__.replace("numpy", "cupy")]
    return {name: on_device(getattr(module, name)) for name in listed}


def _cuda_parts() -> dict[str, dict[str, Any]]:
    """Parts of ``cupy.cuda``, whose members ``cupy.cuda`` has too."""
    shared = cuda.members() | cuda.errors() | {
        "from_pointer": lambda ptr: cuda.DeviceContext(),
        "get_compute_capability": lambda: cuda.DeviceContext().compute_capability,
    }
    return {f"cupy.cuda.{part}": shared for part in ("device", "memory", "pinned_memory", "stream")}


def table() -> dict[str, dict[str, Any]]:
    """Module -> members that take the place of those of the simulated device's namespace."""
    exceptions = {name: getattr(np.exceptions, name) for name in names.modules()["cupy.exceptions"]
                  if hasattr(np.exceptions, name)}
    return {
        "cupy": _cupy() | _aliases(),
        "cupy.exceptions": exceptions,
        "cupy.fft": {"config": types.SimpleNamespace(enable_nd_planning=True, use_multi_gpus=False)},
        "cupy.linalg": {"LinAlgError": np.linalg.LinAlgError},
        "cupy.polynomial.polynomial": _polynomial(np.polynomial.polynomial),
        "cupy.polynomial.polyutils": _polynomial(np.polynomial.polyutils),
        "cupy.testing": comparisons.members() | decorators.members(),
        "cupy.typing": {name: getattr(np.typing, name) for name in names.modules()["cupy.typing"]},
        "cupy.cuda.runtime": names.runtime_constants() | cuda.runtime(),
        "cupy.cuda.profiler": {"start": lambda: None, "stop": lambda: None},
        "cupy.cuda.nvtx": cuda.annotations(),
        "cupy.cuda.nccl": {"available": False}, "cupy.cuda.cutensor": {"available": False},
        **_cuda_parts(),
        "cupyx": {
            "rsqrt": lambda x: 1 / namespace.sqrt(x),
            "scatter_add": _scatter("add"), "scatter_max": _scatter("max"), "scatter_min": _scatter("min"),
            "empty_pinned": np.empty, "empty_like_pinned": np.empty_like,
            "zeros_pinned": np.zeros, "zeros_like_pinned": np.zeros_like,
            "errstate": _Nothing, "seterr": lambda **kwargs: {}, "geterr": lambda: {"linalg": "ignore"},
            "allow_synchronize": _Nothing, "DeviceSynchronized": DeviceSynchronized,
            "get_runtime_info": lambda *, full=True: f"CuPy Version: {names.version()}\nDevice: simulated{os.linesep}",
        },
        "cupyx.jit": {"rawkernel": kernels.rawkernel},
        "cupyx.optimizing": {"optimize": _Nothing},
        "cupyx.profiler": {"benchmark": _benchmark, "profile": _Nothing, "time_range": _Nothing},
        "cupyx.time": {"repeat": _benchmark},
    }


