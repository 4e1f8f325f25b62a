"""The parts in C, as far as they were compiled when lazyarray was installed.

Without `recording` no work is put off: each operation is done at once, and results are the same.
"""
from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["launch", "recording", "small_copies", "staging"]

#: What the Python modules expect: raised with each change of what a module in C takes or gives.
INTERFACE = 16


def _found(name: str) -> ModuleType | None:
    try:
        module = importlib.import_module(name, __package__)
    except ImportError:     # there was no compiler, or it was for another Python
        return None
    return module if getattr(module, "INTERFACE", 0) == INTERFACE else None     # else it was compiled from other text


#: `_native/recording.c`, for `graph` and `storage/handles.py`.
recording = _found(".recording")
#: `_native/small_copies.c`, for `devices/cuda/copies/small_download.py` and `storage/mirror/dirty_tracking.py`.
small_copies = _found(".small_copies")
#: `_native/launch.c`, for `devices/cuda/kernels/elementwise.py`.
launch = _found(".launch")
#: `_native/staging.c`, for `devices/cuda/copies/staged_upload.py`.
staging = _found(".staging")
