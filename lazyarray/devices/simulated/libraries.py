"""What CuPy has of SciPy and cuCIM of scikit-image, on the simulated device: their names and parameters, no more.

What they compute, the host library computes on the simulated memory.  So dtypes, values and errors are the host
library's, where the real ones differ in places: cupyx.scipy.ndimage interpolates single precision in single
precision, cuCIM returns 0-d arrays where scikit-image returns numbers.
"""
from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from ...errors import NotOnDevice
from ...errors.inspection import once_made
from ...settings.enabled import unrouted
from . import api
from .cupy_differences import LIBRARY
from .execution import SCALARS, Holder, SimulatedArrayBase, has_array, launch, wrap, wrap_new
from .namespace import Module
from .signatures import binder, parameters
from .ufuncs import SimulatedUfunc

HOSTS = {"cupyx.scipy": "scipy", "cucim.skimage": "skimage"}
"""Which library on the host computes what one on the device does."""

OUTPUTS = frozenset({"out", "output", "distances", "indices"})
"""Parameters that a function writes into if they are arrays."""

MAKES_ARRAYS = frozenset((
    "fftfreq rfftfreq kaiser_beta kaiser_atten unit_impulse gauss_spline get_window gabor_kernel hadamard hilbert dft "
    "helmert invhilbert pascal invpascal").split())
"""Functions that work without an array among their arguments, beside window functions and those of shapes."""

SHAPES = tuple((
    "ball cube diamond disk ellipse footprint_ octagon octahedron rectangle square star buttord cheb ellip butter "
    "firwin iirdesign iirfilter gammatone generate_binary_structure iterate_structure").split())
"""How the names of those begin that make a shape or a filter of numbers."""

NO_CALLBACKS = frozenset({"generic_filter", "generic_filter1d"})
"""Functions that take a kernel where the host's takes any Python function."""


@cache
def modules() -> frozenset[str]:
    """The modules that CuPy and cuCIM have."""
    return frozenset(HOSTS).union(*[api.table("library_api")[kind] for kind in ("FUNCTIONS", "UFUNCS", "CLASSES")])


class Library(Module):
    """A module of functions on the device."""

    def _names(self) -> Iterable[str]:
        prefix = self.__name__ + "."
        return [*api.names_of("library_api", self.__name__),
                *(module.removeprefix(prefix) for module in modules() if module.startswith(prefix))]

    def _find(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        return library(path) if path in modules() else _member(self.__name__, name)


@cache
def library(path: str) -> Library:
    """The library at a dotted path, such as "cupyx.scipy.ndimage".

    Raises
    ------
    NotOnDevice
        If CuPy and cuCIM have no such module, or the host library that would compute is not installed.
    """
    if path not in modules():
        raise NotOnDevice(f"there is no module {path} on the device")
    host_module(path)
    return Library(path)


def host_module(path: str) -> Any:
    """The module of the host library that computes for a module of the device's."""
    package = next(package for package in HOSTS if path == package or path.startswith(package + "."))
    host = HOSTS[package] + path[len(package) :]
    try:
        return importlib.import_module(host)
    except ImportError as error:
        raise NotOnDevice(f"{path} on the simulated device needs {host} ({error})") from None


def _member(path: str, name: str) -> Any:
    if (path, name) == ("cupyx.scipy", "get_array_module"):
        return lambda *args: library("cupyx.scipy") if has_array(args) else importlib.import_module("scipy")
    facts = api.names_of("library_api", path).get(name)
    host = getattr(host_module(path), name, None)
    if isinstance(host, type) and name in api.table("library_api")["CLASSES"].get(path, "").split():
        return SimulatedClass(name, (), {"_host": host, "__module__": path})
    if facts is None or host is None:
        return None
    host = inspect.unwrap(host, stop=lambda f: not hasattr(f, "__lazyarray_router__"))
    if isinstance(facts, tuple):
        return SimulatedUfunc(name, host, *facts)
    as_cupys = LIBRARY.get(path, {}).get(name)
    return _function(path, name, facts, host if as_cupys is None else as_cupys(name, host))


def _function(path: str, name: str, text: str, host: Callable[..., Any]) -> Callable[..., Any]:
    mine = parameters(text)
    bind = binder(name, mine, host)
    names = [p.name for p in mine]
    alone = (name in MAKES_ARRAYS or name.startswith(SHAPES) or path.endswith((".windows", ".sparse"))
             or not any(p.default is p.empty for p in mine))
    listed = inspect.isgeneratorfunction(inspect.unwrap(host))

    def call(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(names, args)), **kwargs}
        positional, options = bind(args, kwargs)
        if name in NO_CALLBACKS and callable(given.get("function")):
            raise TypeError("bad function type")
        if not alone and not has_array((*positional, *options.values())):
            raise TypeError(f"Unsupported type {type(next(iter(given.values()), None))}")
        writes = tuple([given[key] for key in OUTPUTS & given.keys() if isinstance(given[key], SimulatedArrayBase)])
        with unrouted():
            if listed:
                return iter(launch(lambda *a, **k: list(host(*a, **k)), positional, options, writes))
            return _told(launch(host, positional, options, writes))

    call.__name__ = call.__qualname__ = name
    call.__module__ = path
    call.__signature__ = inspect.Signature(mine)  # type: ignore[attr-defined]
    return call


def _told(value: Any) -> Any:
    """What stands on the device for a sparse matrix, or an object with arrays, that a host library returned."""
    if isinstance(value, list):
        return [_told(item) for item in value]
    if is_sparse(value):
        return SimulatedSparse(value)
    return SimulatedObject(value) if type(value).__name__ in OBJECTS else value


def _computed(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with unrouted():
        return _told(launch(function, args, kwargs, ()))


def _on_device(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return wrap_new(value.copy())
    return _told(wrap(value, ()) if isinstance(value, (tuple, list)) else value)


# -- classes and their instances ---------------------------------------------------------------

OBJECTS = {"RegionProperties"}
"""Names of classes whose instances hold arrays."""


class SimulatedClass(type):
    """The class of a class of the device library, whose instances compute with simulated memory."""

    _host: type

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = _computed(cls._host, args, kwargs)
        return made if isinstance(made, Holder) else SimulatedObject(made)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Holder) and isinstance(instance._host, cls._host)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return issubclass(getattr(subclass, "_host", subclass), cls._host)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(cls._host, name)
        return (lambda *args, **kwargs: _computed(value, args, kwargs)) if callable(value) else value

    # What splines are made by of arrays that need no checks. With them, since SciPy 1.18 makes a PPoly where
    # BPoly.construct_fast is called.
    def construct_fast(cls, *args: Any, **kwargs: Any) -> Any:
        return cls(*args, **kwargs)


class SimulatedObject(Holder):
    """A result that is no array but has arrays, such as the properties of a region: what it gives is on the device."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _computed(self._host, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _on_device(getattr(self._host, name))

    def __getitem__(self, key: Any) -> Any:
        return _on_device(self._host[key])

    def __iter__(self) -> Any:
        return iter(self._host)

    def __dir__(self) -> list[str]:
        return dir(self._host)


def is_sparse(value: Any) -> bool:
    """Whether this is one of SciPy's sparse matrices."""
    return type(value).__module__.startswith("scipy.sparse") and hasattr(value, "nnz")


class SimulatedSparse(Holder):
    """A sparse matrix; ``_host`` is SciPy's, whose arrays stand for device memory.

    As CuPy's it takes device arrays, numbers and its like, and knows neither NumPy's arrays nor lazy ones.
    """

    __array_priority__ = 101

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_host":
            raise AttributeError(name)
        value = getattr(self._host, name)
        return (lambda *args, **kwargs: _computed(value, args, kwargs)) if callable(value) else _on_device(value)

    def dot(self, other: Any) -> Any:
        return self @ other

    @once_made("_host")
    def __repr__(self) -> str:
        return f"<simulated {type(self._host).__name__} of shape {self._host.shape}>"


def _operator(name: str) -> Callable[..., Any]:
    def method(self: SimulatedSparse, other: Any) -> Any:
        if not (isinstance(other, (SimulatedArrayBase, SimulatedSparse)) or type(other) in SCALARS):
            return NotImplemented
        return _computed(getattr(self._host, name), (other,), {})

    return method


for _name in ("matmul", "mul", "add", "sub", "truediv"):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(SimulatedSparse, _method, _operator(_method))
