"""The exceptions and warnings of lazyarray, in addition to those of NumPy."""
from __future__ import annotations

from typing import Any

__all__ = [
    "DeviceUnavailableError",
    "HostFallbackWarning",
    "LazyArrayError",
    "NotEnabledWarning",
    "SimulatedDeviceWarning",
    "TransferError",
]


class LazyArrayError(Exception):
    """Base class of the exceptions of lazyarray."""


class TransferError(LazyArrayError, RuntimeError):
    """A copy between device and host was needed within `no_transfers`.

    It is raised before the copy: nothing has been copied or changed.
    """


class DeviceUnavailableError(LazyArrayError, RuntimeError):
    """The requested device is missing, broken, or can't be used in this process."""


class HostFallbackWarning(UserWarning):
    """NumPy ran a function on the host, because the device does not support it.

    It is given once per function and process, for the first line of your code that calls it. Turn it off with
    ``lazyarray.options(warn_fallbacks=False)`` or a warning filter.
    """


class NotEnabledWarning(UserWarning):
    """A library's function ran on the host because the library is not enabled: the device has an equivalent.

    It is given once per library and process, for the first line of your code whose call copied a lazy array to the
    host. `lazyarray.enable` is what it asks for. Turn it off with ``lazyarray.options(warn_fallbacks=False)`` or a
    warning filter. A filter that makes errors of all warnings does not make an error of this one.
    """


class SimulatedDeviceWarning(UserWarning):
    """A GPU was expected but can't be used, so everything runs on the simulated device, on the CPU.

    It is given once per process, if CuPy is installed or an NVIDIA driver is present. The message says why the GPU
    can't be used, and what to do. Set ``LAZYARRAY_DEVICE=simulated`` in the environment to turn it off.
    """


class NotOnDevice(Exception):
    """Internal signal: the device version can't do this call, for the reason given; NumPy does it on the host."""


def refuse(condition: Any, reason: str) -> None:
    """Leave a call to NumPy on the host if `condition` is true: `reason` names what the device can't do."""
    if condition:
        raise NotOnDevice(reason)


def wrong(condition: Any, text: str) -> None:
    """Raise an error if `condition` is true, where NumPy, which then does the call, raises its own."""
    if condition:
        raise ValueError(text)
