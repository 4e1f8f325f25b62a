"""lazyarray as a backend of scikit-image: calls with lazy or device arrays go to cuCIM, and all others nowhere.

scikit-image 0.26 asks an object, which it finds by the entry point ``skimage_backends``, before each call of a function
that it dispatches. spatch, which may take that over, reads a TOML file instead; it finds it by the same entry point,
``lazyarray.integrations.skimage:backend.toml``: to Python the attribute ``toml`` of this module, to spatch the
file ``backend.toml`` in this folder (``tests/tools/skimage_listing.py`` writes it).
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ... import devices
from ...dispatch import convert
from ...settings import enabled
from ...storage import handles
from ..routing import router
from ..routing.twin import Twin, table

__all__ = ["Interface", "implementations", "information", "should_run", "toml"]

_ARRAYS_OF = frozenset({"cupy", "lazyarray"})
"""Packages that device arrays come from; only their types are looked at any closer."""


# -- whose call it is --------------------------------------------------------------------------

def takes(args: tuple[Any, ...], kwargs: dict[str, Any], module: str) -> bool:
    """Whether a call is ours: an array among the arguments is lazy or on the device, and none of them is a list.

    Looks at types alone. Host arrays count where `lazyarray.enable` asks for that.
    """
    found = False
    for value in (*args, *kwargs.values()) if kwargs else args:
        kind = type(value)
        if kind is list:
            return False
        if not found:
            found = kind is handles.array_type or kind is not np.ndarray and _is_device_type(kind)
    return found or bool(enabled.current().modules.get(module)) and router.has_large(args, kwargs)


def _is_device_type(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _ARRAYS_OF and issubclass(kind, devices.current().array_type)


def _twin(name: str) -> Twin | None:
    """The twin of "skimage.module:function", None if there is none."""
    twin = table("skimage").get(name.replace(":", ".", 1))
    return None if twin is None or twin.reason else twin


# -- scikit-image 0.26 -------------------------------------------------------------------------

def information() -> Any:
    """What scikit-image wants to know of this backend, as `BackendInformation` (its entry point for that)."""
    from skimage.util._backends import BackendInformation

    return BackendInformation([f"{twin.module}:{twin.name}" for twin in table("skimage").values() if not twin.reason])


@functools.cache
def implementation(name: str) -> Callable[..., Any]:
    """A function that runs the calls of "skimage.module:function" on the device, or on the host if it must.

    Lazy arrays in, lazy arrays out; device arrays in, device arrays out.
    """
    twin = _twin(name)
    if twin is None:
        raise LookupError(f"there is no twin of {name}")
    host = _undispatched(getattr(import_module(twin.module), twin.name))

    @functools.wraps(host)
    def run(*args: Any, **kwargs: Any) -> Any:
        return router.run(twin, host, args, kwargs)

    return run


def _undispatched(function: Any) -> Any:
    """The function that scikit-image wraps to dispatch its calls: the wrapper would ask us again."""
    while router.is_router(function) or _is_dispatcher(function):
        function = function.__wrapped__
    return function


def _is_dispatcher(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return getattr(code, "co_qualname", "").startswith("dispatchable.") and hasattr(function, "__wrapped__")


class Interface:
    """What scikit-image asks a backend: two questions, by the names of its functions ("skimage.metrics:...")."""

    @staticmethod
    def can_has(name: str, *args: Any, **kwargs: Any) -> bool:
        """Whether this call is ours. Nothing is imported, converted or moved to find out."""
        return takes(args, kwargs, name.partition(":")[0]) and _twin(name) is not None

    get_implementation = staticmethod(implementation)


# -- spatch ------------------------------------------------------------------------------------

def should_run(context: Any, *args: Any, **kwargs: Any) -> bool:
    """spatch's question: as `Interface.can_has`, and for any call if a type of ours is asked for."""
    asked = any(kind is handles.array_type or _is_device_type(kind) for kind in context.types)
    return asked and not any(type(value) is list for value in (*args, *kwargs.values()))


class _Module:
    """A module of scikit-image: its attributes are our implementations of its functions, for spatch to call."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        function = f"{self._path}:{name}"
        found = _in_context(function) if _twin(function) else _Module(f"{self._path}.{name}")
        setattr(self, name, found)
        return found


def _in_context(name: str) -> Callable[..., Any]:
    run = implementation(name)

    @functools.wraps(run)
    def call(context: Any, *args: Any, **kwargs: Any) -> Any:
        if handles.array_type not in context.types:     # device arrays are asked for, and no lazy ones
            args = tuple([_converted(value, convert.asdevice) for value in args])
            kwargs = {key: _converted(value, convert.asdevice) for key, value in kwargs.items()}
        elif not router.has_lazy(args, kwargs):
            args = tuple([_converted(value, convert.asarray) for value in args])
        return run(*args, **kwargs)

    return call


def _converted(value: Any, make: Callable[[Any], Any]) -> Any:
    return make(value) if type(value) is np.ndarray else value


implementations = _Module("skimage")

toml = Interface()
