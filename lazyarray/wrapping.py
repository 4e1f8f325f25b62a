"""GPU functions that take and return lazy arrays."""
from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import wrapt

from . import containers, devices, dispatch, host, transfer, wrap
from .errors import NotOnDevice
from .options import current as current_options
from .storage import Storage

_Writes = tuple[str, ...] | None


def run(function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any], *, name: str,
        writes: _Writes = (), host: Callable[..., Any] | None = None,
        signature: Callable[..., Any] | None = None, reason: str = "there is no such device function") -> Any:
    """One call of a function on device arrays, with lazy, host or device arrays.

    Parameters
    ----------
    function : callable or None
        The device function; None if there is none, so that `host` runs.
    args, kwargs : tuple, dict
        What it is called with.
    name : str
        How it is called in events, warnings and errors.
    writes : tuple of str or None
        The parameters that it modifies. None: it may modify any array that it is given.
    host : callable, optional
        The same function on NumPy arrays.
    signature : callable, optional
        Whose parameters `writes` names, if not those of `function`.
    reason : str
        Why there is no device function.

    Returns
    -------
    Any
        What the function returns, with lazy arrays in place of device arrays; as it is, if device arrays are
        all the arrays that the caller passed.
    """
    result = _run(function, args, kwargs, name, writes, host, signature, reason)
    return result if current_options().lazy else at_once(result, (args, kwargs))


def at_once(result: Any, arguments: Any) -> Any:
    """A result with NumPy's arrays and scalars in place of lazy ones that are not among the arguments."""
    given: dict[int, Any] = {}
    containers.replace(arguments, lambda obj: given.setdefault(id(obj), obj))

    def fetch(obj: Any) -> Any:
        if not wrap.is_lazy(obj) or id(obj) in given:
            return obj
        return wrap.value_of(obj) if wrap.is_scalar(obj) else wrap.alias_of(obj, "options(lazy=False)")

    return containers.replace(result, fetch)


def _run(function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any], name: str,
         writes: _Writes, host: Callable[..., Any] | None, signature: Callable[..., Any] | None, reason: str) -> Any:
    device = devices.current()
    call = _Call(device, name)
    call.look((args, kwargs))
    if call.only_device and function is not None:
        return function(*args, **kwargs)
    try:
        if function is None:
            raise NotOnDevice(reason)
        if device.usable() is not None:
            raise NotOnDevice(device.usable())
        if host is not None and call.small(current_options().min_bytes):
            return _on_host(host, args, kwargs, "", name, writes, signature or host)
        return call.on_device(function, args, kwargs, writes, signature or function)
    except device.faults:
        raise
    except NotOnDevice as error:
        if host is None:
            raise TypeError(f"{name}: {error}") from None
        reason = str(error)
    except Exception as error:
        if host is None:
            raise
        reason = f"{type(error).__name__} on the device: {error}"
    return _on_host(host, args, kwargs, reason, name, writes, signature or host)


def _on_host(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], reason: str, name: str,
             writes: _Writes, signature: Callable[..., Any]) -> Any:
    written = _written(signature, writes, len(args), kwargs)
    return host.on_host(function, args, kwargs, reason, name=name,
                        positions=tuple(i for i in range(len(args)) if i in written),
                        names=tuple(k for k in kwargs if k in written))


def _written(signature: Callable[..., Any], writes: _Writes, count: int, kwargs: dict[str, Any]) -> set[int | str]:
    """The positions and names of the arguments that may be modified."""
    if writes is None:
        return {*range(count), *kwargs}
    if not writes:
        return set()
    found: set[int | str] = {k for k in kwargs if k in writes}
    try:
        parameters = _parameters(signature)
    except (TypeError, ValueError):
        return found
    for i, parameter in enumerate(parameters[:count]):
        if parameter in writes:
            found.add(i)
    return found


@functools.lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


class _Call:
    """The arguments of one call on their way to the device, and what comes back."""

    def __init__(self, device: Any, name: str) -> None:
        self.device, self.name = device, name
        self.lazy: list[Any] = []
        self.on_its_device = 0
        self.hosts: list[np.ndarray] = []
        self.sources: list[Any] = []
        self.given: dict[int, tuple[Any, Any]] = {}     # id of a device array -> (it, what the caller passed)
        self.uploaded: list[tuple[np.ndarray, Any, Any]] = []

    def look(self, arguments: Any) -> None:
        containers.replace(arguments, self._seen)

    def _seen(self, obj: Any) -> Any:
        if wrap.is_lazy(obj):
            self.lazy.append(obj)
        elif isinstance(obj, np.ndarray):
            self.hosts.append(obj)
        elif isinstance(obj, self.device.array_type):
            self.on_its_device += 1
        return obj

    @property
    def only_device(self) -> bool:
        return bool(self.on_its_device) and not self.lazy and not self.hosts

    def small(self, limit: int) -> bool:
        return bool(limit and self.hosts) and not self.lazy and not self.on_its_device and sum(
            a.nbytes for a in self.hosts) < limit

    def on_device(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], writes: _Writes,
                  signature: Callable[..., Any]) -> Any:
        written = _written(signature, writes, len(args), kwargs)
        compare = writes is None
        with contextlib.ExitStack() as writing:
            device_args = [containers.replace(a, functools.partial(self._open, writing, i in written, compare))
                           for i, a in enumerate(args)]
            device_kwargs = {k: containers.replace(a, functools.partial(self._open, writing, k in written, compare))
                             for k, a in kwargs.items()}
            with dispatch.devices_of(self.device, self.sources):
                result = function(*device_args, **device_kwargs)
                self._copy_back()
                return containers.replace(result, self._wrap)

    def _open(self, writing: contextlib.ExitStack, written: bool, compare: bool, obj: Any) -> Any:
        if wrap.is_lazy(obj):
            if wrap.is_scalar(obj):
                return wrap.value_of(obj, f"a number given to {self.name}")
            storage = obj._self_storage
            if type(storage) is not Storage:
                raise NotOnDevice(f"the device holds no {wrap.outline_of(obj).dtype}")
            self.sources.append(obj)
            outline = wrap.outline_of(obj)
            if written and outline.flags.writeable:
                array = writing.enter_context(storage.write_device(outline, obj._self_array))
            elif written:
                array = wrap.device_of(obj).copy()
            else:
                array = wrap.device_of(obj)
            self.given[id(array)] = array, obj
            return array
        if isinstance(obj, np.ndarray):
            if type(obj) not in (np.ndarray, np.memmap):
                raise NotOnDevice("an ndarray subclass takes part")
            if not self.device.can_hold(obj.dtype):
                raise NotOnDevice(f"the device holds no {obj.dtype}")
            array = transfer.to_device(self.device, np.asarray(obj), f"host operand of {self.name}")
            if written and obj.flags.writeable:
                self.uploaded.append((obj, array, array.copy() if compare else None))
            return array
        return obj

    def _copy_back(self) -> None:
        for target, array, before in self.uploaded:
            if before is None or bool((array != before).any()):
                target[...] = transfer.to_host(self.device, array, f"written by {self.name}")
                self.given[id(array)] = array, target

    def _wrap(self, obj: Any) -> Any:
        if not isinstance(obj, self.device.array_type):
            return obj
        known = self.given.get(id(obj))
        if known is not None:
            return known[1]
        return wrap.wrap(self.device, obj, self.sources)


class LazyFunction(wrapt.FunctionWrapper):
    """A GPU function that takes and returns lazy arrays; made by `lazy`."""

    def __init__(self, function: Callable[..., Any], writes: _Writes, host: Callable[..., Any] | None) -> None:
        super().__init__(function, functools.partial(_called, writes, host, function))


def _called(writes: _Writes, host: Callable[..., Any] | None, function: Callable[..., Any], wrapped: Any,
            instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return run(wrapped, args, kwargs, name=name, writes=writes, host=host, signature=wrapped)


def lazy(function: Callable[..., Any] | None = None, *, writes: tuple[str, ...] | None = None, pure: bool = False,
         host: Callable[..., Any] | None = None) -> Any:
    """Let a function on device arrays take lazy, host and device arrays, and return lazy ones."""
    if function is None:
        return functools.partial(lazy, writes=writes, pure=pure, host=host)
    return LazyFunction(function, () if pure else writes, host)
