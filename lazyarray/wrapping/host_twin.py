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
from ..storage import transfer
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
    end(token)
    warn_fallback(name, reason)     # not before: what the host function refuses has not run there either
    result = call.results(result)
    if arguments.copies is not None:
        arguments.copies.hand_on(call.results)
    return result


class _HostCall(host_fallback.HostArguments):
    """The host arrays of one call's arguments, and the way back of its results."""

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(f"{arguments.name} runs on the host")
        self.arguments = arguments
        self.downloaded: list[tuple[Any, np.ndarray, bytes | None]] = []

    def opened(self) -> tuple[list[Any], dict[str, Any]]:
        """What the host function is called with."""
        arguments, given = self.arguments, {}
        for obj, kind, role in arguments.found.values():
            if kind == DEVICE:
                given[id(obj)] = array = self.lend(obj, transfer.to_host(arguments.device, obj, self.why))
                if role != READ:
                    self.downloaded.append((obj, array, array.tobytes() if role == MAYBE else None))
            elif kind in (LAZY, SCALAR, HOST):
                given[id(obj)] = self.host(obj, role != READ)

        def leaf(obj: Any) -> Any:
            return given.get(id(obj), obj)

        copies = arguments.copies = Copies()
        return ([replace(a, leaf, copies) for a in arguments.args],
                {k: replace(a, leaf, copies) for k, a in arguments.kwargs.items()})

    def hand_on(self) -> None:
        """Let the device see what was written here, where somebody may look without asking."""
        super().hand_on()
        device = self.arguments.device
        for target, array, before in self.downloaded:
            if before is None or array.tobytes() != before:
                device.assign(target, transfer.to_device(device, array, f"modified by {self.arguments.name}"))

    def results(self, obj: Any) -> Any:
        """What the function returned, or has put into a container, as what the caller expects."""
        return replace(obj, self.back, back=self.arguments.copies.originals)    # type: ignore[union-attr]

    def new(self, result: Any) -> Any:
        arguments = self.arguments
        is_for_device = type(result) is np.ndarray and arguments.device.can_hold(result.dtype)
        if arguments.only_device:
            return transfer.to_device(
                arguments.device, result, f"result of {arguments.name}") if is_for_device else result
        if type(result) is np.ndarray and any(
                np.may_share_memory(array, result) for array, *_ in arguments.of_kind(HOST)):
            return in_place(arguments.device, result) if is_for_device else result
        return super().new(result)
