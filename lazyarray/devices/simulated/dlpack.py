"""DLPack capsules of simulated device memory.

NumPy makes and reads the capsules; the only thing changed in them is the device, which lies at a fixed place in the
structures that DLPack lays down (``DLManagedTensor`` and ``DLManagedTensorVersioned``).
"""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .execution import lent, make, wrap_new
from .hardware import Memory, byte_bounds, hardware

CPU = 1
CUDA = 2

# Offset of DLTensor.device (after DLTensor.data) in a capsule of each name.  The versioned structure begins with the
# version (8 bytes), manager_ctx, deleter and flags (8 bytes each).
DEVICE_OFFSETS = {b"dltensor": 8, b"dltensor_versioned": 40}

_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _Held(np.ndarray):
    """A view that keeps device memory alive for as long as the capsule holds it."""

    memory: Memory


def set_device(capsule: Any, device_type: int, device_id: int) -> None:
    """Overwrite the device that a capsule names."""
    name = _capsule_name(capsule)
    place = _capsule_pointer(capsule, name) + DEVICE_OFFSETS[name]
    (ctypes.c_int32 * 2).from_address(place)[:] = [device_type, device_id]


def export(array: Any, max_version: tuple[int, int] | None) -> Any:
    """A capsule over the array's memory, which says that it is on a CUDA device."""
    held = array._view.view(_Held)
    held.memory = array._memory
    hardware.hand_out(array._memory)
    capsule = held.__dlpack__() if max_version is None else _versioned(held, max_version)
    set_device(capsule, CUDA, array._memory.device)
    return capsule


def _versioned(held: np.ndarray, max_version: tuple[int, int]) -> Any:
    try:
        return held.__dlpack__(max_version=max_version)
    except TypeError:  # NumPy 2.0 makes the older kind only, which every consumer takes.
        return held.__dlpack__()


class _OnHost:
    """An exporter whose capsule is passed off as one of host memory, so that NumPy reads it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


class ForHostCode(_OnHost):
    """Device memory for a library that computes on the host in the device's place: its capsule says host memory.

    What it computes is issued, as far as the clocks know, on the null stream.
    """

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **kwargs: Any) -> Any:
        if not hardware.plain:
            hardware.check()
            hardware.null_stream(self.array._memory.device).wait_event(hardware.current_stream().record())
        capsule = export(self.array, max_version)
        set_device(capsule, CPU, 0)
        return capsule


def adopt(view: np.ndarray) -> Any:
    """A device array over what such a library returned: in device memory that it was lent, or in its own, from now on
    the device's."""
    if not view.size:
        return wrap_new(np.empty(view.shape, view.dtype))
    low, high = byte_bounds(view)
    offset = view.__array_interface__["data"][0]
    if not hardware.plain:
        hardware.current_stream().wait_event(hardware.null_stream(hardware.current_device()).record())
    owner = hardware.find_memory(low, high)
    if owner is None:
        buffer = (ctypes.c_char * (high - low)).from_address(low)
        buffer.owner = view
        owner = hardware.memory_type(np.ndarray((high - low,), np.uint8, buffer), hardware.current_device())
        return make(np.ndarray(view.shape, view.dtype, owner.root, offset - low, view.strides), owner)
    return lent(owner, offset, view.shape, view.dtype, view.strides, view)


def take(exporter: Any) -> Any:
    """A device array over the device memory of another library's array."""
    stream = hardware.current_stream().ptr or 1
    try:
        capsule = exporter.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # From before DLPack 1.0.
        capsule = exporter.__dlpack__(stream=stream)
    set_device(capsule, CPU, 0)
    view = np.from_dlpack(_OnHost(capsule))
    if not view.size:
        return wrap_new(np.empty(view.shape, view.dtype))
    address = view.__array_interface__["data"][0]
    return lent(hardware.memory_at(*byte_bounds(view)), address, view.shape, view.dtype, view.strides, view)
