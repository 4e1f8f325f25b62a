"""The quick ways in C, as far as they were compiled when lazyarray was installed.

``LAZYARRAY_PURE=1`` leaves them out: then the same is done in Python, and each call takes longer.
"""
from __future__ import annotations

import importlib
import os
from types import ModuleType

__all__ = ["launch", "recording"]

PURE = os.environ.get("LAZYARRAY_PURE", "") not in ("", "0")


def _found(name: str) -> ModuleType | None:
    if PURE:
        return None
    try:
        return importlib.import_module(name, __package__)
    except ImportError:     # there was no compiler, or it was for another Python
        return None


#: `_recording.c`, for `recording.py` and `wrap.py`.
recording = _found("._recording")
#: `devices/_launch.c`, for `devices/cuda_kernels.py`.
launch = _found(".devices._launch")
