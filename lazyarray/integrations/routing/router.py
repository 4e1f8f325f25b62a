"""What stands in the place of a function while its library is enabled."""
from __future__ import annotations

import copy
import inspect
import sys
import types
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import wrapt

from ...errors import NotOnDevice
from ...errors.inspection import once_made
from ...events.callers import module_of
from ...settings import enabled
from ...settings.options import current as current_options
from ...storage import handles
from ...wrapping import decorator
from .twin import Parameters, Twin

LARGE = 1 << 20
"""Bytes from which on host arrays go to the device if that is enabled, unless ``options(min_bytes=...)`` is set."""

ON_THE_HOST = frozenset({f"skimage.measure.{name}" for name in ("_moments", "_regionprops", "_regionprops_utils")})
"""Modules that compute the properties of one region at a time, of the host's arrays: none of their calls is routed,
whether the name is in their namespace or imported within a function."""


class StandIn(wrapt.BaseObjectProxy):
    """What takes the place of a function.

    It has the function's attributes, signature and hash, and is equal to it, so that tables keyed by functions find
    one for the other.
    """

    #: For the simulated device, which lies below this module: it computes with the function that this stands for.
    __lazyarray_router__ = True

    @once_made("__wrapped__")
    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


class Router(StandIn):
    """A function that runs its twin on the device where that is enabled and an argument is lazy."""

    def __init__(self, function: Callable[..., Any], twin: Twin) -> None:
        super().__init__(function)
        self._self_twin = twin
        self._self_module = twin.module
        self._self_key = twin.module + " ufuncs" if isinstance(function, np.ufunc) else twin.module

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        stack = enabled.scopes.get()
        numpy = (stack[-1][1] if stack else enabled.default()).modules.get(self._self_module)
        if numpy is None or not has_lazy(args, kwargs) and not (
                numpy and has_large(args, kwargs) and module_of(sys._getframe(1)) not in ON_THE_HOST):
            return self.__wrapped__(*args, **kwargs)
        if self._self_twin.kind == "ufunc":
            return run_ufunc(self._self_twin, inspect.unwrap(self.__wrapped__), args, kwargs)
        return run(self._self_twin, self.__wrapped__, args, kwargs)

    @once_made("__wrapped__")
    def __str__(self) -> str:
        return str(self.__wrapped__)

    @once_made("__wrapped__")
    def __format__(self, spec: str) -> str:
        return format(self.__wrapped__, spec)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None or not hasattr(type(self.__wrapped__), "__get__"):
            return self
        return types.MethodType(self, instance)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By name, as the function itself; where the name is the function's again, as that."""
        place = sys.modules.get(self.__wrapped__.__module__)
        name = self.__wrapped__.__qualname__
        return name if getattr(place, name, None) is self else (copy.copy, (self.__wrapped__,))


class DeviceUfunc:
    """Gives the device's function for a ufunc, where its library is enabled: for `functions.FOREIGN_UFUNCS`."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin

    def __call__(self) -> Callable[..., Any]:
        if self.twin.module not in enabled.current().modules:
            raise NotOnDevice(f"{self.twin.module} is not enabled here")
        if self.twin.reason:
            raise NotOnDevice(self.twin.reason)
        function, taken = without_routing(self.twin.function), self.twin.dtypes

        def on_device(*args: Any) -> Any:
            for a in args:
                if a.dtype.char not in taken:
                    raise NotOnDevice(self.twin.unsupported(a.dtype))
            return function(*args)

        return on_device


def unrouted(function: Any) -> Any:
    """The function that a router stands for, or else what was given."""
    return function.__wrapped__ if is_router(function) else function


def is_router(value: Any) -> bool:
    """Whether something is a router (``isinstance`` would ask what it stands for)."""
    return type(value) is Router


def has_lazy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an argument is a lazy array, or a list or a tuple with one in it."""
    array_type = handles.array_type
    for value in (*args, *kwargs.values()) if kwargs else args:
        kind = type(value)
        if kind is array_type:
            return True
        if (kind is list or kind is tuple) and any(type(item) is array_type for item in value):
            return True
    return False


def has_large(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an argument is a host array that is worth a copy to the device."""
    options = current_options()
    limit = options.min_bytes or LARGE
    return options.lazy and any(type(value) is np.ndarray and value.nbytes >= limit
                                for value in (*args, *kwargs.values()))


class _Host:
    """A host function, with its signature read once, and the device's function that was last called in its place."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._device: tuple[Any, Callable[..., Any] | None] = None, None

    @cached_property
    def parameters(self) -> Parameters | None:
        try:
            return Parameters(inspect.signature(self.function))
        except (TypeError, ValueError):
            return None

    def on_device(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The device's function, whose own calls are not routed."""
        known, made = self._device
        if known is not function or made is None:
            made = without_routing(function)
            self._device = function, made
        return made

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Wholly on the host: its own calls are not routed either, whatever the size of their arrays."""
        with enabled.unrouted():
            try:
                return self.function(*args, **kwargs)
            except ValueError as error:
                if "read-only" not in str(error):
                    raise
                return self._run_on_copies(args, kwargs)

    def _run_on_copies(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """With memory that may be written to, as Cython code asks for that often does no more than read."""
        copies: list[tuple[np.ndarray, np.ndarray]] = []

        def writable(value: Any) -> Any:
            if type(value) is not np.ndarray or value.flags.writeable:
                return value
            copies.append((value, value.copy(order="K")))
            return copies[-1][1]

        result = self.function(*list(map(writable, args)), **{key: writable(value) for key, value in kwargs.items()})
        if any(not np.array_equal(value, copy, equal_nan=value.dtype.kind in "fc") for value, copy in copies):
            raise _WritesError
        return result


def without_routing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose own calls stay where it is: on the device, or on the host."""
    def call(*args: Any, **kwargs: Any) -> Any:
        with enabled.unrouted():
            return function(*args, **kwargs)

    return call


class _WritesError(Exception):
    """A host function writes to an argument, and no table says so."""


_hosts: dict[int, _Host] = {}


def run_ufunc(twin: Twin, ufunc: np.ufunc, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One call of a ufunc with host arrays: NumPy's protocol takes it from the first lazy one."""
    why = f"host operand of {twin.host}"
    operands = (handles.from_host(a, why) if type(a) is np.ndarray else a for a in args[:ufunc.nin])
    return ufunc(*operands, *args[ufunc.nin:], **kwargs)


def run(twin: Twin, host: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run one call of a function that has a twin: on the device, or with `host` if the twin can't do it.

    Arrays in the result are lazy.
    """
    if twin.adapter:
        module, _, name = twin.adapter.partition(":")
        return getattr(import_module(f"lazyarray.integrations.{module}"), name)(twin, host, args, kwargs)
    known = _hosts.get(id(host))
    if known is None or known.function is not host:
        known = _hosts[id(host)] = _Host(host)
    try:
        return _run(twin, known, args, kwargs)
    except _WritesError:
        return decorator.run(None, args, kwargs, name=twin.host, writes=None, host=known.run, signature=host,
                             reason="the function writes to its arguments")


def _run(twin: Twin, known: _Host, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    on_device, why = None, {}
    try:
        args, kwargs = twin.bounded(known.parameters, args, kwargs)
        on_device = known.on_device(twin.function)
    except NotOnDevice as error:
        why = {"reason": str(error)}
    return decorator.run(on_device, args, kwargs, name=twin.host, writes=twin.writes, host=known.run,
                         signature=known.function, **why)
