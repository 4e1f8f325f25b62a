"""CUDA's driver: whether there is one, where its functions are for calls from C, and how its streams are told apart."""
from __future__ import annotations

import ctypes
import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any, NamedTuple

from ...errors.inspection import Unique

__all__ = ["LASTING", "Driver", "StreamOnDevice", "describe", "found", "here", "is_present", "version"]

LIBRARY = "libcuda.so.1"
#: Statuses after which "the process must be terminated and relaunched", as CUDA's documentation of `cudaError_t` says
#: (``driver_types.h`` of CUDA 13). `CUresult` has the same numbers. cudaErrorIllegalAddress is 700, LaunchFailure 719.
LASTING = frozenset({226, 700, 702, 710, *range(714, 720), 721, 810, 911})
#: What there is where the driver is loaded, and a program that comes with it.
DEVICE_FILE, PROGRAM = "/dev/nvidiactl", "nvidia-smi"
#: Where Linux shows the driver's own version.
VERSION_FILE = Path("/proc/driver/nvidia/version")


class Driver(NamedTuple):
    """Addresses of functions."""

    launch: int
    copy: int
    record: int
    wait: int
    context: int
    use: int
    fetch: int
    finish: int
    lock: int


_FUNCTIONS = ("cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuEventSynchronize", "cuCtxGetCurrent",
              "cuCtxSetCurrent", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", "cuMemHostRegister_v2")
"""In the order of the fields of `Driver`."""


def found() -> Driver | None:
    """The driver's functions; None where it has another name, or lacks one."""
    try:
        library = ctypes.CDLL(LIBRARY)
        addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _FUNCTIONS]
    except (OSError, AttributeError):
        return None
    return Driver(*addresses) if all(addresses) else None   # type: ignore[arg-type]


def is_present() -> bool:
    """Whether an NVIDIA driver is installed on this machine."""
    return os.path.exists(DEVICE_FILE) or shutil.which(PROGRAM) is not None or version() is not None


def version() -> int | None:
    """The newest version of CUDA that the driver supports, such as 13020; None without the driver's library."""
    number = ctypes.c_int()
    try:
        status = ctypes.CDLL(LIBRARY).cuDriverGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):       # no such library, or no driver's
        return None
    return None if status else number.value


def describe() -> str | None:
    """The driver's version and the newest version of CUDA that it supports, as text; None if there is no driver."""
    if not is_present():
        return None
    number = version()
    if number is None:
        supported = f"without the library {LIBRARY}"
    else:
        supported = f"for CUDA {number // 1000}.{number % 1000 // 10}"
    try:
        text = VERSION_FILE.read_text()
    except OSError:     # other systems have no such file
        text = ""
    release = re.search(r"\b\d{3}\.\d+(\.\d+)?\b", text)
    return f"{f'{release[0]}, ' if release else ''}{supported}"


class _Thread(threading.local):
    """`name` stands for the calling thread, and for no later one: the system gives its numbers to others again."""

    def __init__(self) -> None:
        self.name = object()


#: What the calling thread is known by.
here = _Thread()


class StreamOnDevice(Unique):
    """A stream where its pointer alone does not say which one it is.

    That is so with several devices, and for the per-thread default stream, which has one pointer in all threads:
    `thread` is the name of its own (see `here`), and None for any other stream.
    """

    __slots__ = ("device_id", "stream", "thread")

    def __init__(self, stream: Any, device_id: int, thread: object) -> None:
        self.stream = stream
        self.device_id = device_id
        self.thread = thread

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, StreamOnDevice) and self.stream.ptr == other.stream.ptr
                and self.device_id == other.device_id and self.thread is other.thread)

    def __hash__(self) -> int:
        return hash((self.stream.ptr, self.device_id, self.thread))
