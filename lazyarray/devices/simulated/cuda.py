"""``xp.cuda`` of the simulated device: devices, the memory pools, and as much of CUDA's runtime as programs ask for.

There is no compiler: what only kernels need (graphs, textures, handles of CUDA's libraries) is missing.
"""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .execution import parts
from .hardware import DeviceError, Event, OutOfMemoryError, Stream, hardware

VERSION = 13000
"""The version of CUDA that the device claims, 13.0."""

CAPABILITY = (9, 0)
MULTIPROCESSORS = 132
HOST_MEMORY = 1 << 34
"""Bytes that a device without a limit claims to have."""


class DeviceContext:
    """``xp.cuda.Device``: as a context, makes a device the current one of this thread."""

    __hash__ = None  # type: ignore[assignment]
    id = -1     # of one that is being made, which may be looked at

    def __init__(self, device: Any = None) -> None:
        self.id = hardware.current_device() if device is None else int(device)
        if not 0 <= self.id < hardware.count:
            raise DeviceError("cudaErrorInvalidDevice: invalid device ordinal")
        self._outer: list[int] = []

    def __int__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceContext) and self.id == other.id

    def __lt__(self, other: object) -> bool:
        return self.id < other.id if isinstance(other, DeviceContext) else NotImplemented

    def __enter__(self) -> DeviceContext:
        self._outer.append(hardware.current_device())
        return self.use()

    def __exit__(self, *exc_info: object) -> None:
        hardware.local.device = self._outer[-1]     # first, as an interrupt may come in between
        self._outer.pop()

    def use(self) -> DeviceContext:
        """Make this the current device of this thread."""
        hardware.local.device = self.id
        return self

    def synchronize(self) -> None:
        """Let the host wait for all work on the device."""
        for stream in hardware.streams_of(self.id):
            stream.synchronize()

    @property
    def mem_info(self) -> tuple[int, int]:
        """Bytes that are free, and bytes in all."""
        total = hardware.limit or HOST_MEMORY
        return total - hardware.used_bytes(self.id), total

    @property
    def compute_capability(self) -> str:
        """Major and minor version, as "90"."""
        return "{}{}".format(*CAPABILITY)

    @property
    def pci_bus_id(self) -> str:
        """Where a GPU would be on the bus."""
        return f"0000:{self.id:02X}:00.0"

    @property
    def attributes(self) -> dict[str, int]:
        """What CUDA says about the device."""
        return {"MaxThreadsPerBlock": 1024, "MaxBlockDimX": 1024, "MaxBlockDimY": 1024, "MaxBlockDimZ": 64,
                "MaxGridDimX": 2**31 - 1, "MaxGridDimY": 65535, "MaxGridDimZ": 65535, "WarpSize": 32,
                "MaxSharedMemoryPerBlock": 48 << 10, "MaxSharedMemoryPerBlockOptin": 227 << 10,
                "MaxSharedMemoryPerMultiprocessor": 228 << 10, "MultiProcessorCount": MULTIPROCESSORS,
                "ComputeCapabilityMajor": CAPABILITY[0], "ComputeCapabilityMinor": CAPABILITY[1],
                "ManagedMemory": 1, "ConcurrentManagedAccess": 1}


class MemoryPool:
    """The part of CuPy's memory pool that says how much is in use, and may be. Nothing is kept in reserve."""

    def __init__(self, allocator: Any = None) -> None:
        pass

    def malloc(self, size: int) -> Any:
        """A pointer to new memory."""
        return alloc(size)

    def used_bytes(self) -> int:
        """Bytes in use on the current device, of what was allocated since a limit was set."""
        return hardware.used_bytes(hardware.current_device())

    total_bytes = used_bytes

    def free_bytes(self) -> int:
        """Bytes in reserve."""
        return 0

    n_free_blocks = free_bytes

    def get_limit(self) -> int:
        """Bytes that each device has; 0 if it has no limit."""
        return hardware.limit or 0

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Let each device have this many bytes, of what is allocated from now on; 0 for no limit."""
        if fraction is not None:
            if size is not None:
                raise ValueError("size and fraction cannot be specified at one time")
            if not 0 <= fraction <= 1:
                raise ValueError(f"memory limit fraction out of range: {fraction}")
            size = int(HOST_MEMORY * fraction)
        hardware.limit = size or None
        hardware.settle()

    def free_all_blocks(self, stream: Any = None) -> None:
        """Free what is in reserve."""

    free_all_free = free_all_blocks


class PinnedMemoryPool:
    """The part of CuPy's pool of page-locked memory that programs ask for. Nothing is kept in reserve."""

    def __init__(self, allocator: Any = None) -> None:
        pass

    def malloc(self, size: int) -> PinnedMemoryPointer:
        """New host memory."""
        return PinnedMemoryPointer(size)

    def n_free_blocks(self) -> int:
        """Blocks in reserve."""
        return 0

    def free_all_blocks(self) -> None:
        """Free what is in reserve."""


class PinnedMemoryPointer(bytearray):
    """Host memory that a real device would lock; it is a buffer."""

    @property
    def ptr(self) -> int:
        """Address of the first byte."""
        return np.frombuffer(self, np.uint8).ctypes.data

    @property
    def mem(self) -> PinnedMemoryPointer:
        """The allocation."""
        return self

    def size(self) -> int:
        """Bytes."""
        return len(self)


def alloc(size: int) -> Any:
    """A pointer to new memory on the current device."""
    return parts.array((size,), np.uint8).data  # type: ignore[call-arg,attr-defined]


default_pool, default_pinned_pool = MemoryPool(), PinnedMemoryPool()
_allocator: Callable[[int], Any] = default_pool.malloc


class _Allocators(threading.local):
    """The allocator of a thread in `using_allocator`."""

    own: Callable[[int], Any] | None = None


_allocators = _Allocators()


def set_allocator(allocator: Callable[[int], Any] | None = None) -> None:
    """Note who allocates; arrays are allocated as ever."""
    global _allocator
    if _allocators.own is not None:
        raise ValueError("Can't change the global allocator inside `using_allocator` context manager")
    _allocator = alloc if allocator is None else allocator


def get_allocator() -> Callable[[int], Any]:
    """Who allocates for this thread."""
    return _allocators.own or _allocator


@contextlib.contextmanager
def using_allocator(allocator: Callable[[int], Any] | None = None) -> Iterator[None]:
    """Note who allocates in a block, for this thread."""
    before, _allocators.own = _allocators.own, alloc if allocator is None else allocator
    try:
        yield
    finally:
        _allocators.own = before


def elapsed_time(start: Event, end: Event) -> float:
    """Milliseconds between two events."""
    if not (start.seconds and end.seconds):
        raise DeviceError("cudaErrorInvalidResourceHandle: invalid resource handle")
    return (end.seconds - start.seconds) * 1e3


def properties(device: int) -> dict[str, Any]:
    """CUDA's properties of a device, as far as programs look at them."""
    DeviceContext(device)
    return {"name": b"Simulated device", "totalGlobalMem": hardware.limit or HOST_MEMORY, "major": CAPABILITY[0],
            "minor": CAPABILITY[1], "multiProcessorCount": MULTIPROCESSORS, "maxThreadsPerBlock": 1024,
            "maxThreadsDim": (1024, 1024, 64), "maxGridSize": (2**31 - 1, 65535, 65535), "warpSize": 32,
            "sharedMemPerBlock": 48 << 10, "sharedMemPerMultiprocessor": 228 << 10, "regsPerBlock": 65536,
            "maxThreadsPerMultiProcessor": 2048, "pciBusID": device, "pciDeviceID": 0, "pciDomainID": 0,
            "memoryBusWidth": 5120, "clockRate": 1_700_000, "memoryClockRate": 2_600_000, "l2CacheSize": 50 << 20,
            "managedMemory": 1, "unifiedAddressing": 1}


def runtime() -> dict[str, Any]:
    """Members of ``xp.cuda.runtime``."""
    return {
        "CUDARuntimeError": DeviceError, "is_hip": False,
        "getDeviceCount": lambda: hardware.count, "getDevice": hardware.current_device,
        "setDevice": lambda device: DeviceContext(device).use() and None,
        "deviceSynchronize": lambda: DeviceContext().synchronize(),
        "streamSynchronize": lambda stream: hardware.stream_named(stream).synchronize(),
        "getDeviceProperties": properties, "memGetInfo": lambda: DeviceContext().mem_info,
        "runtimeGetVersion": lambda: VERSION, "driverGetVersion": lambda: VERSION,
        "deviceGetPCIBusId": lambda device: DeviceContext(device).pci_bus_id,
        "deviceCanAccessPeer": lambda device, peer: int(device != peer and 0 <= peer < hardware.count),
        "profilerStart": lambda: None, "profilerStop": lambda: None,
    }


class ExternalStream(Stream):
    """A stream of another library's, by its pointer."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        found = hardware.stream_named(ptr)
        vars(self).update(vars(found))


def members() -> dict[str, Any]:
    """Members of ``xp.cuda``."""
    return {
        "Stream": Stream, "Event": Event, "Device": DeviceContext, "ExternalStream": ExternalStream,
        "MemoryPool": MemoryPool, "PinnedMemoryPool": PinnedMemoryPool, "MemoryAsyncPool": MemoryPool,
        "PinnedMemoryPointer": PinnedMemoryPointer,
        "is_available": lambda: True, "get_current_stream": lambda device_id=-1: hardware.current_stream(),
        "get_device_id": hardware.current_device, "get_elapsed_time": elapsed_time, "alloc": alloc,
        "set_allocator": set_allocator, "get_allocator": get_allocator, "using_allocator": using_allocator,
        "malloc_managed": alloc, "malloc_async": alloc, "alloc_pinned_memory": PinnedMemoryPointer,
        "set_pinned_memory_allocator": lambda allocator=None: None, "get_local_runtime_version": lambda: VERSION,
        "get_cuda_path": lambda: None, "get_nvcc_path": lambda: None, "get_rocm_path": lambda: None,
        "get_hipcc_path": lambda: None, "profile": contextlib.nullcontext,
    }


def errors() -> dict[str, Any]:
    """Members of ``xp.cuda.memory`` beside those of ``xp.cuda``."""
    return {"OutOfMemoryError": OutOfMemoryError, "CUDARuntimeError": DeviceError}


def annotations() -> dict[str, Any]:
    """Members of ``xp.cuda.nvtx``: marks on the time line of a profiler."""
    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    names = ("Mark", "MarkC", "RangePush", "RangePushC", "RangePop", "RangeStart", "RangeEnd")
    return dict.fromkeys(names, nothing) | {"available": True}
