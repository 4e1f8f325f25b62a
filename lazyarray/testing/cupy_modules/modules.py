"""The modules ``cupy`` and ``cupyx``, and how they come into `sys.modules` and leave it."""
from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ... import devices
from ...devices.simulated import libraries
from ...devices.simulated.array import SimulatedArray
from ...devices.simulated.namespace import Module, namespace
from ...errors import NotOnDevice
from . import names
from .kernels import stand_ins
from .members import table
from .missing import NotSimulatedError, missing

ROOTS = ("cupy", "cupyx")


class CupyModule(ModuleType):
    """A module of the simulated CuPy: exactly the names of CuPy's, each made when it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        if name == "__name__":      # of a module that is not complete yet
            raise AttributeError(name)
        if name == "__all__":
            return sorted(names.modules()[self.__name__])
        path = f"{self.__name__}.{name}"
        if name not in names.modules().get(self.__name__, ()):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = self._member(name, path)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *names.modules()[self.__name__]})

    def _member(self, name: str, path: str) -> Any:
        if path in _replaced:
            return _replaced[path]
        if path in names.modules():
            return importlib.import_module(path)
        known = _members.get(self.__name__, {})
        if name in known:
            return known[name]
        value = getattr(_simulated(self.__name__), name, None)
        return missing(self.__name__, name) if value is None or isinstance(value, Module) else value


_members: dict[str, dict[str, Any]] = {}
_replaced: dict[str, Any] = {}


def _simulated(path: str) -> Any:
    """The simulated device's module, None if it has none."""
    if path.startswith("cupyx.scipy"):
        return libraries.library(path) if path in libraries.modules() else None
    found: Any = namespace if path.startswith("cupy.") or path == "cupy" else None
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


class _Finder:
    """Finds the modules of the simulated CuPy. It is both finder and loader."""

    def find_spec(self, name: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a module of CuPy's."""
        if name.partition(".")[0] not in ROOTS:
            return None
        if name not in names.modules():
            private = any(part.startswith("_") for part in name.split(".")[1:])
            raise ModuleNotFoundError(
                f"No module named {name!r}{': the simulated CuPy has the public modules only' if private else ''}",
                name=name)
        return ModuleSpec(name, self, origin="simulated by lazyarray", is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module."""
        if spec.name.startswith("cupyx.scipy.") and spec.name in libraries.modules():
            try:
                libraries.host_module(spec.name)
            except NotOnDevice as error:
                raise ImportError(str(error), name=spec.name) from error
        module = CupyModule(spec.name, "Simulated by lazyarray.")
        if spec.name in ROOTS:
            module.__version__ = names.version()  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is to be done."""


_finder = _Finder()
_depth = 0


@contextlib.contextmanager
def simulated_cupy(*, kernels: Mapping[str, Callable[..., Any]] | None = None,
                   replace: Mapping[str, Any] | None = None, fresh: Iterable[str] = ()) -> Iterator[ModuleType]:
    """Let ``import cupy`` and ``import cupyx`` find the simulated device, so that GPU code can be tested without a GPU.

    Everything that CuPy has can be imported. What the simulated device computes, NumPy and SciPy compute, with CuPy's
    restrictions: functions and parameters that CuPy lacks are missing, and a device array does not become a NumPy array
    by itself. What it can't compute raises `NotSimulatedError` when it is called: kernels of CUDA code, graphs,
    textures and other parts of CUDA itself.

    It works whether or not CuPy is installed. Afterwards `sys.modules` is as before. Blocks can be nested: an inner one
    adds its `kernels` and `replace`.

    Parameters
    ----------
    kernels : mapping, optional
        Name of a kernel (``ElementwiseKernel``, ``ReductionKernel``, ``RawKernel``, ``cupyx.jit.rawkernel``) -> the
        Python function to call in its place. It gets the arguments of the kernel's call.
    replace : mapping, optional
        Dotted name, such as ``"cupy.cuda.Graph"`` -> what to find there.
    fresh : iterable of str, optional
        Packages that import CuPy, to be imported anew within the block. Modules of them that were imported before come
        back afterwards. Without it, a module imported within the block keeps the simulated CuPy.

    Yields
    ------
    module
        The simulated ``cupy``.

    Raises
    ------
    TypeError
        If `replace` has a name that CuPy does not have.

    Examples
    --------
    >>> from lazyarray.testing import simulated_cupy
    >>> def double(values):
    ...     import cupy
    ...     return cupy.asnumpy(cupy.asarray(values) * 2)
    >>> with simulated_cupy():
    ...     double([1.0, 2.0])
    array([2., 4.])

    A kernel of CUDA code needs a stand-in:

    >>> with simulated_cupy(kernels={"square": lambda x: x * x}) as cupy:
    ...     kernel = cupy.ElementwiseKernel("float64 x", "float64 y", "y = x * x", "square")
    ...     kernel(cupy.arange(3.0)).get()
    array([0., 1., 4.])
    """
    global _depth
    for path in replace or ():
        module, _, name = path.rpartition(".")
        if name not in names.modules().get(module, ()):
            raise TypeError(f"CuPy {names.version()} has no {path}")
    outermost = _depth == 0
    packages = {*fresh, *(ROOTS if outermost else ())}
    with contextlib.ExitStack() as stack:
        if outermost:
            devices.why()       # chosen now: later, the simulated CuPy would be taken for a GPU's
            stack.enter_context(_as_cupys_array())
            stack.callback(_members.clear)
            _members.update(table())
            sys.meta_path.insert(0, _finder)  # type: ignore[arg-type]
            stack.callback(sys.meta_path.remove, _finder)  # type: ignore[arg-type]
        _depth += 1
        stack.callback(_leave)
        stack.enter_context(_set_aside(packages))
        stack.enter_context(_entered(stand_ins, kernels or {}))
        stack.enter_context(_entered(_replaced, replace or {}))
        cupy = importlib.import_module("cupy")
        stack.enter_context(_forgotten(replace or {}))
        yield cupy


def _leave() -> None:
    global _depth
    _depth -= 1


@contextlib.contextmanager
def _set_aside(packages: Iterable[str]) -> Iterator[None]:
    """Take packages out of `sys.modules`, and put them back in the end."""
    def theirs() -> dict[str, ModuleType]:
        return {name: module for name, module in list(sys.modules.items()) if name.partition(".")[0] in packages}

    before = theirs()
    for name in before:
        del sys.modules[name]
    try:
        yield
    finally:
        for name in theirs():
            del sys.modules[name]
        sys.modules.update(before)


@contextlib.contextmanager
def _entered(into: dict[str, Any], entries: Mapping[str, Any]) -> Iterator[None]:
    before = dict(into)
    into.update(entries)
    try:
        yield
    finally:
        into.clear()
        into.update(before)


@contextlib.contextmanager
def _forgotten(paths: Iterable[str]) -> Iterator[None]:
    """Let modules look up names anew, now and in the end."""
    def forget() -> None:
        for path in paths:
            module, _, name = path.rpartition(".")
            if module in sys.modules:
                vars(sys.modules[module]).pop(name, None)

    forget()
    try:
        yield
    finally:
        forget()


class _ForKernels:
    """A member of ``cupy.ndarray`` that only a kernel of CUDA code can use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, array: SimulatedArray | None, owner: type) -> Any:
        if array is None:
            return self
        raise NotSimulatedError(f"cupy.ndarray.{self._name}", "pass the array itself to the kernel")


@contextlib.contextmanager
def _as_cupys_array() -> Iterator[None]:
    """Device arrays are of a class that says it is ``cupy.ndarray``: libraries recognise arrays by that."""
    told = {"__module__": "cupy", "__name__": "ndarray", "__qualname__": "ndarray"}
    before = {name: getattr(SimulatedArray, name) for name in told}
    for name, value in told.items():
        setattr(SimulatedArray, name, value)
    for name in ("cstruct", "mdspan"):
        setattr(SimulatedArray, name, _ForKernels(name))
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(SimulatedArray, name, value)
        for name in ("cstruct", "mdspan"):
            delattr(SimulatedArray, name)
