"""GPU functions that take and return lazy arrays: `lazy` decorates one, `lazy_module` a module of them.

`run` is one call. Its parts: `wrapping_arguments` (to the device, and back where it was modified), `wrapping_results`
and `wrapping_held` (where a result belongs, and who holds it), `wrapping_host` (the host twin).
"""
from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

import wrapt

from . import devices, wrapping_steps
from .errors import NotOnDevice
from .options import current as current_options
from .wrapping_arguments import DEVICE, HOST, LAZY, SUBCLASS, Arguments
from .wrapping_host import on_host
from .wrapping_names import name_of, parameters, roles_of
from .wrapping_results import Results, at_once

Writes = tuple[str, ...] | None


def run(function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any], *, name: str,
        writes: Writes = (), host: Callable[..., Any] | None = None, signature: Callable[..., Any] | None = None,
        reason: str = "there is no such device function") -> Any:
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
    return at_once(_run(function, args, kwargs, name, writes, host, signature, reason), (args, kwargs))


def _run(function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any], name: str,
         writes: Writes, host: Callable[..., Any] | None, signature: Callable[..., Any] | None, reason: str) -> Any:
    device = devices.current()
    arguments = Arguments(device, name, args, kwargs, roles_of(signature or function or host, writes))
    only_device = arguments.has(DEVICE) and not arguments.has(LAZY, HOST, SUBCLASS)
    if host is None:
        if function is None:
            raise NotImplementedError(f"{name}: {reason}")
        return function(*args, **kwargs) if only_device else _on_device(function, arguments, False)
    if small(arguments):
        return host(*args, **kwargs)
    try:
        if function is None:
            raise NotOnDevice(reason)
        if (unusable := device.usable()) is not None:
            raise NotOnDevice(unusable)
        return _on_device(function, arguments, True, only_device)
    except device.faults:
        raise
    except NotOnDevice as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001  whatever the device function refuses, the host's decides
        reason = f"{type(error).__name__} on the device: {error}"
    return on_host(host, arguments, reason, only_device)


def small(arguments: Arguments) -> bool:
    """Whether all arrays are on the host, and have fewer bytes than it takes to go to the device."""
    limit = current_options().min_bytes
    return bool(limit) and arguments.has(HOST) and not arguments.has(LAZY, DEVICE) and sum(
        array.nbytes for array, _, _ in arguments.of_kind(HOST)) < limit


def _on_device(function: Callable[..., Any], arguments: Arguments, has_twin: bool, only_device: bool = False) -> Any:
    device = arguments.device
    place = arguments.place() if device.count > 1 else contextlib.nullcontext()
    going_on = False
    try:
        with place:
            device_args, device_kwargs = arguments.convert(has_twin)
            results = Results(device, arguments.sources, arguments.back, arguments.copied)
            with arguments.opened() if arguments.writes else contextlib.nullcontext():
                try:
                    box = [function(*device_args, **device_kwargs)]
                except Exception:
                    arguments.restore()
                    raise
                if wrapping_steps.is_stepped(box[0]):
                    going_on = True
                    return wrapping_steps.drive(box[0], arguments)
                results.look(box)
            result = box[0] if only_device else results.wrap(box[0])
            arguments.copy_back()
            if arguments.copies is not None:
                arguments.copies.hand_on(results.wrap)
            return result
    finally:
        if not going_on:
            device_args = device_kwargs = box = None
            arguments.let_go()


# -- the decorator ---------------------------------------------------------------------------

class LazyFunction(wrapt.FunctionWrapper):
    """A GPU function that takes and returns lazy arrays. `lazy` makes one."""

    def __init__(self, function: Callable[..., Any], writes: Writes, host: Callable[..., Any] | None,
                 home: tuple[Any, str] | None = None) -> None:
        super().__init__(function, functools.partial(_called, name_of(function), writes, host))
        self._self_writes, self._self_host, self._self_home = writes, host, home

    def __getitem__(self, item: Any) -> Any:
        """A kernel with its launch configuration, ``kernel[blocks, threads]``."""
        configured = self.__wrapped__[item]
        return LazyFunction(configured, self._self_writes, self._self_host) if callable(configured) else configured

    def __reduce_ex__(self, protocol: int) -> Any:
        """By name, as functions are, or as what it was made of."""
        if self._self_home is not None:
            return getattr, self._self_home
        function = self.__wrapped__
        module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
        if module is not None and _at(module, name) is self:
            return _at, (module, name)
        return LazyFunction, (function, self._self_writes, self._self_host)

    def __copy__(self) -> LazyFunction:
        return self

    def __deepcopy__(self, memo: Any) -> LazyFunction:
        return self


def _at(module: str, name: str) -> Any:
    """What is found at a dotted name in a module; None if nothing is."""
    found = sys.modules.get(module) or importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _called(name: str, writes: Writes, host: Callable[..., Any] | None, function: Any, instance: Any,
            args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return run(function, args, kwargs, name=name, writes=writes, host=host)


def lazy(function: Callable[..., Any] | None = None, *, writes: tuple[str, ...] | None = None, pure: bool = False,
         host: Callable[..., Any] | None = None) -> Any:
    """Let a function on device arrays take lazy, host and device arrays, and return lazy ones."""
    if function is None:
        return functools.partial(lazy, writes=writes, pure=pure, host=host)
    if isinstance(writes, str):
        writes = (writes,)
    if pure and writes:
        raise TypeError("a function that modifies something is not pure")
    if inspect.isclass(function):
        raise TypeError(f"{function.__qualname__} is a class: decorate its methods")
    known = parameters(getattr(function, "__func__", function)) if writes else None
    if known and not any(p.kind is p.VAR_KEYWORD for p in known.values()):
        unknown = [name for name in writes or () if name not in known]
        if unknown:
            raise TypeError(f"{name_of(function)} has no parameter {unknown[0]!r}; it has {', '.join(known)}")
    return LazyFunction(function, () if pure else writes and tuple(writes), host)
