"""Which device is current: chosen once, when it is first needed.

``LAZYARRAY_DEVICE=cuda`` or ``=simulated`` decides; without it CUDA is used where it works, and the simulated device
where it does not, with a warning where a GPU was to be expected.  Importing this package imports neither.
"""
from __future__ import annotations

import os
import threading

from ..errors import DeviceUnavailableError, SimulatedDeviceWarning
from ..errors.interrupts import holding
from ..events import trace
from ..events.callers import warn_user
from .base import Device, Diagnosis

__all__ = ["Device", "Diagnosis", "after_fork", "current", "driver", "why"]

CHOICES = ("cuda", "simulated")

#: Variables of the environment by which NVIDIA's profilers have NVTX load their part.
ATTACHED = ("NVTX_INJECTION64_PATH", "NVTX_INJECTION32_PATH")

_lock = threading.RLock()
_current: Device | None = None
_why: Diagnosis | None = None
_silent = False     # whoever asks for the diagnosis is not warned of it, too


def current() -> Device:
    """Return the device of this process.

    Returns
    -------
    Device
        The same object at each call.

    Raises
    ------
    DeviceUnavailableError
        If ``LAZYARRAY_DEVICE`` names a device that is not available or does not exist.

    Examples
    --------
    >>> from lazyarray import devices
    >>> devices.current() is devices.current()
    True
    """
    return _current if _current is not None else _chosen()


def is_chosen() -> bool:
    """Whether there is a current device yet. Before that there are no lazy arrays."""
    return _current is not None


def why() -> Diagnosis:
    """Return which device was chosen and why, and what to do to use a GPU.

    It does not raise an error where `current` would: the diagnosis contains it.

    Examples
    --------
    >>> from lazyarray import devices
    >>> devices.why().device in ("cuda", "simulated", "none")
    True
    """
    global _silent
    if _why is None:
        _silent = True
        try:
            _choose()
        except DeviceUnavailableError as error:
            return _why or Diagnosis("none", "not asked", str(error), "Set LAZYARRAY_DEVICE to cuda or simulated.")
    assert _why is not None
    return _why


def driver() -> str | None:
    """Return NVIDIA's driver and the newest version of CUDA that it supports, as text; None without a driver."""
    from .cuda import driver as nvidia

    return nvidia.describe()


def after_fork() -> None:
    """Forget, in a forked child, the lock that another thread may have held; the device is lost there."""
    global _lock
    _lock = threading.RLock()
    if _current is not None:
        _current.after_fork()


def _chosen() -> Device:
    """`_choose`, and a warning where a GPU was to be expected: once everything is settled, since it may be an error."""
    global _silent
    device = _choose()
    with holding(_lock):
        silent, _silent = _silent, True
    if not silent and _why is not None and _why.expected:
        warn_user(f"lazyarray uses the simulated device, which computes on the CPU: {_why.reason}. {_why.advice} "
                  "To choose the simulated device without this warning, set LAZYARRAY_DEVICE=simulated.",
                  SimulatedDeviceWarning)
    return device


def _choose() -> Device:
    global _why
    with holding(_lock):
        if _current is not None:
            return _current
        asked = os.environ.get("LAZYARRAY_DEVICE") or None
        if asked is not None and asked not in CHOICES:
            raise DeviceUnavailableError(f"LAZYARRAY_DEVICE is {asked!r}; it may be {' or '.join(CHOICES)}")
        if asked == "simulated":
            return _settle(None, Diagnosis("simulated", "not asked", "LAZYARRAY_DEVICE=simulated asks for it"))
        from .cuda import device as cuda

        found = cuda.find()
        if isinstance(found, Device):
            return _settle(found, Diagnosis("cuda", "works", f"CUDA works: {cuda.describe()}"))
        if asked == "cuda":
            _why = Diagnosis("none", found.state, found.reason, found.advice)
            raise DeviceUnavailableError(f"LAZYARRAY_DEVICE=cuda, but {found.reason}. {found.advice}")
        return _settle(None, found)


def _settle(device: Device | None, diagnosis: Diagnosis) -> Device:
    """Make a device the current one; without any, the simulated one."""
    global _current, _why
    if device is None:
        from .simulated.device import SimulatedDevice

        device = SimulatedDevice()
    _why, _current = diagnosis, device
    if os.environ.get("LAZYARRAY_NVTX") or any(os.environ.get(name) for name in ATTACHED):
        trace.ranges = device.profiler_ranges()
    return device
