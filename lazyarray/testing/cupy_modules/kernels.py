"""CuPy's kernels of CUDA code: there is no compiler, so a kernel runs as the Python function that was given for it."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from .missing import NotSimulatedError

#: Name of a kernel -> the function to call in its place.
stand_ins: dict[str, Callable[..., Any]] = {}


def _run(kind: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the function that stands for a kernel."""
    function = stand_ins.get(name)
    if function is None:
        raise NotSimulatedError(f"{kind} {name!r}", "give a Python function that does the same on CuPy arrays, "
                                f"simulated_cupy(kernels={{{name!r}: function}}),")
    return function(*args, **kwargs)


class ElementwiseKernel:
    """``cupy.ElementwiseKernel``. Its stand-in is called as the kernel is: ``function(*inputs, *outputs)``."""

    def __init__(self, in_params: str, out_params: str, operation: str, name: str = "kernel", reduce_dims: bool = True,
                 preamble: str = "", no_return: bool = False, return_tuple: bool = False, **kwargs: Any) -> None:
        self.operation, self.name, self.preamble, self.reduce_dims = operation, name, preamble, reduce_dims
        self.no_return, self.return_tuple, self.kwargs = no_return, return_tuple, kwargs
        self.nin, self.nout = _count(in_params), _count(out_params)
        self.nargs = self.nin + self.nout

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _run("cupy.ElementwiseKernel", self.name, args, kwargs)


class ReductionKernel:
    """``cupy.ReductionKernel``. Its stand-in is called as the kernel is: ``function(*inputs, axis=..., out=...)``."""

    def __init__(self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str,
                 identity: Any, name: str = "reduce_kernel", reduce_type: Any = None, reduce_dims: bool = True,
                 preamble: str = "", options: tuple[str, ...] = ()) -> None:
        self.name, self.map_expr, self.reduce_expr, self.post_map_expr = name, map_expr, reduce_expr, post_map_expr
        self.identity, self.reduce_type, self.preamble, self.options = identity, reduce_type, preamble, options
        self.nin, self.nout = _count(in_params), _count(out_params)
        self.nargs = self.nin + self.nout

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _run("cupy.ReductionKernel", self.name, args, kwargs)


class RawKernel:
    """``cupy.RawKernel``. Its stand-in is called as the kernel is: ``function(grid, block, args)``."""

    def __init__(self, code: str, name: str, options: tuple[str, ...] = (), backend: str = "nvrtc",
                 translate_cucomplex: bool = False, *, enable_cooperative_groups: bool = False,
                 jitify: Any = None) -> None:
        self.code, self.name, self.options, self.backend = code, name, options, backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.max_dynamic_shared_size_bytes = 48 << 10

    def compile(self, log_stream: Any = None) -> None:
        """Nothing is compiled, so a mistake in the code is not found."""

    def __call__(self, grid: Any, block: Any, args: Any, **kwargs: Any) -> Any:
        return _run("cupy.RawKernel", self.name, (grid, block, args), kwargs)


class RawModule:
    """``cupy.RawModule``: its functions are raw kernels."""

    def __init__(self, code: str | None = None, *, path: str | None = None, options: tuple[str, ...] = (),
                 backend: str = "nvrtc", translate_cucomplex: bool = False, enable_cooperative_groups: bool = False,
                 name_expressions: Iterable[str] | None = None, jitify: Any = None) -> None:
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        self.code, self.file_path, self.options, self.backend = code, path, options, backend
        self.name_expressions = name_expressions

    def compile(self, log_stream: Any = None) -> None:
        """Nothing is compiled, so a mistake in the code is not found."""

    def get_function(self, name: str) -> RawKernel:
        """The kernel of that name, whether or not the code has it."""
        return RawKernel(self.code or "", name, self.options, self.backend)

    def get_global(self, name: str) -> Any:
        """A global variable of the code: there is none."""
        raise NotSimulatedError("cupy.RawModule.get_global")


class _JitKernel:
    """A kernel of ``cupyx.jit``, by the name of its function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.__name__: str = function.__name__

    def __call__(self, grid: Any, block: Any, args: Any, **kwargs: Any) -> Any:
        return _run("cupyx.jit.rawkernel", self.__name__, (grid, block, args), kwargs)

    def __getitem__(self, grid_and_block: Any) -> Callable[..., Any]:
        grid, block, *_ = grid_and_block
        return lambda *args, **kwargs: self(grid, block, args, **kwargs)


def rawkernel(*, mode: str = "cuda", device: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """``cupyx.jit.rawkernel``: a decorator."""
    return _JitKernel


def fuse(*args: Any, **kwargs: Any) -> Any:
    """``cupy.fuse``: the function itself, whose steps run one by one."""
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda function: function


def _count(parameters: str) -> int:
    return len([part for part in parameters.split(",") if part.strip()])
