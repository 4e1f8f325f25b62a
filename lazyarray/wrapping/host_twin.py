"""The host twin of a GPU function runs, on host arrays, and what it returns becomes lazy."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dispatch import host_fallback
from ..events.fallback_warning import warn_fallback
from ..events.trace import begin, end
from ..functions.kinds import DEVICE, HOST, LAZY, SCALAR
from ..functions.pytree import Copies, replace
from ..storage import coherence, handles, transfer
from ..storage.storage import Storage
from .arguments import MAYBE, READ, Arguments
from .results import in_place


def on_host(function: Callable[..., Any], arguments: Arguments, reason: str) -> Any:
    """Run the host twin of a GPU function, and tell so.

    Parameters
    ----------
    function : callable
    arguments : Arguments
    reason : str
        Why the device function does not run.

    Returns
    -------
    Any
        What it returns, with lazy arrays in place of host arrays; with device arrays, if the caller passed no others.
    """
    name = arguments.name
    token = begin("fallback", 0, None, None, reason, name)
    call = _HostCall(arguments)
    args, kwargs = call.opened()
    try:
        result = function(*args, **kwargs)
    finally:        # what fails may have written some of it
        call.hand_on()
    if token is not None:
        end(token)
    warn_fallback(name, reason)     # not before: what the host function refuses has not run there either
    result = replace(result, call.wrap, back=call.back)
    if arguments.copies is not None:
        arguments.copies.hand_on(lambda obj: replace(obj, call.wrap, back=call.back))
    return result


class _HostCall:
    """The host arrays of one call's arguments, and the way back of its results."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments, self.to_device = arguments, arguments.only_device
        self.why = f"{arguments.name} runs on the host"
        self.given: dict[int, Any] = {}
        self.back: dict[int, Any] = {}
        self.lazies: list[Any] = []
        self.hosts: list[np.ndarray] = []
        self.written: list[Any] = []
        self.downloaded: list[tuple[Any, np.ndarray, bytes | None]] = []

    def opened(self) -> tuple[list[Any], dict[str, Any]]:
        """What the host function is called with."""
        arguments = self.arguments
        for obj, kind, role in arguments.found.values():
            if kind == LAZY:
                self.lazies.append(obj)
                if role == READ:
                    self._give(obj, handles.host_of(obj, self.why))
                else:
                    self._give(obj, handles.alias_of(obj, self.why))
                    self.written.append(obj)
            elif kind == SCALAR:
                self.given[id(obj)] = handles.value_of(obj, self.why)
            elif kind == HOST:
                self.hosts.append(obj)
                self.back[id(obj)] = obj
            elif kind == DEVICE:
                array = transfer.to_host(arguments.device, obj, self.why)
                if role != READ:
                    self.downloaded.append((obj, array, array.tobytes() if role == MAYBE else None))
                self._give(obj, array)
        copies = arguments.copies = Copies()
        args = [replace(a, self._leaf, copies) for a in arguments.args]
        kwargs = {k: replace(a, self._leaf, copies) for k, a in arguments.kwargs.items()}
        self.back.update(copies.originals)
        return args, kwargs

    def _leaf(self, obj: Any) -> Any:
        return self.given.get(id(obj), obj)

    def _give(self, obj: Any, substitute: Any) -> None:
        self.given[id(obj)] = substitute
        self.back[id(substitute)] = obj

    def hand_on(self) -> None:
        """Let the device see what was written here, where somebody may look without asking."""
        device = self.arguments.device
        for x in self.written:
            if type(x._self_storage) is Storage:
                coherence.hand_on(x._self_storage, handles.meta_of(x))
        for target, array, before in self.downloaded:
            if before is None or array.tobytes() != before:
                device.assign(target, transfer.to_device(device, array, f"modified by {self.arguments.name}"))

    def wrap(self, obj: Any) -> Any:
        """A result as what the caller expects."""
        known = self.back.get(id(obj))
        if known is not None:
            return known
        device = self.arguments.device
        if self.to_device:
            if type(obj) is np.ndarray and device.can_hold(obj.dtype):
                return transfer.to_device(device, obj, f"result of {self.arguments.name}")
            return obj
        if type(obj) is not np.ndarray:
            return host_fallback.lazily(obj)
        home = host_fallback.home_on_host(obj, self.lazies)
        if home is not None:
            return home
        for array in self.hosts:
            if np.may_share_memory(array, obj):
                return in_place(device, obj) if device.can_hold(obj.dtype) else obj
        return handles.host_result(obj)
