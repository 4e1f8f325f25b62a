"""What the copies ask of the host."""
from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

_u1 = np.dtype(np.uint8)


def left_behind(*kept: Any) -> None:
    """Keep objects for ever: a forked child can't give CUDA's events, modules and memory back, not even at its exit."""
    for one in kept:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


def cores() -> int:
    """Processors that this process may use, less some for those that wait for the copies."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(found // 2, 1)


def over(start: int, nbytes: int) -> np.ndarray:
    return np.frombuffer((ctypes.c_char * nbytes).from_address(start), _u1)


def madvise() -> Any:
    try:
        found = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):       # not Linux: pages come as they are touched
        return None
    found.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return found
