"""Libraries that compute on streams of their own, and those whose arrays share device memory with ours."""
from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .. import devices

if TYPE_CHECKING:
    from ..devices import Device

#: (class, function) of libraries whose arrays need more than a look at their protocols: the function gets the device
#: and such an array, and returns what `Device.from_foreign` does, or raises. Entered when the library is imported.
adopters: list[tuple[type, Callable[[Device, Any], Any]]] = []


#: Functions of libraries that compute on streams of their own: each gets the device and gives the stream on which its
#: library works now, or None if it is idle. Who holds device memory may use it there, so we wait for it and it for us.
partners: list[Callable[[Device], Any]] = []

#: Set while a library computes on the host in the simulated device's place: it is handed that device's memory.
host_is_device: ContextVar[bool] = ContextVar("lazyarray.host_is_device", default=False)


def wait_for_partners(device: Device) -> None:
    """Let our current stream come after what other libraries have issued on theirs."""
    for partner in partners:
        theirs = partner(device)
        if theirs is not None:
            device.order(theirs, device.stream())


def let_partners_wait(device: Device) -> None:
    """The reverse, after we wrote."""
    for partner in partners:
        theirs = partner(device)
        if theirs is not None:
            device.order(device.stream(), theirs)


def from_foreign(device: Device, obj: Any) -> Any | None:
    """A device array on the memory of somebody else's array, or None if that is not on the device."""
    for kind, adopt in adopters:
        if isinstance(obj, kind):
            return adopt(device, obj)
    return device.from_foreign(obj)


if hasattr(os, "register_at_fork"):
    # In a forked child the device's context is gone; every use must take the slow path and say so.
    os.register_at_fork(after_in_child=devices.after_fork)
