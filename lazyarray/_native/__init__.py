"""The parts in C, as far as they were compiled when lazyarray was installed.

Without `recording` no work is put off: each operation is done at once, and results are the same.
"""
from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["launch", "missing", "recording", "small_copies", "staging"]

#: What the Python modules expect: raised with each change of what a module in C takes or gives.
INTERFACE = 59


#: Name of a part that can't be used -> the reason, for ``python -m lazyarray``.
missing: dict[str, str] = {}


def _found(name: str) -> ModuleType | None:
    try:
        module = importlib.import_module(name, __package__)
    except ModuleNotFoundError:
        missing[name[1:]] = "not compiled"
        return None
    except ImportError as error:
        missing[name[1:]] = str(error)
        return None
    if getattr(module, "INTERFACE", 0) != INTERFACE:
        missing[name[1:]] = "compiled from another version of the source"
        return None
    return module


#: `_native/recording.c`, for `graph` and `storage/handles.py`.
recording = _found(".recording")
#: `_native/small_copies.c`, for `devices/cuda/copies/small_download.py` and `storage/mirror/dirty_tracking.py`.
small_copies = _found(".small_copies")
#: `_native/launch.c`, for `devices/cuda/kernels/elementwise.py`.
launch = _found(".launch")
#: `_native/staging.c`, for `devices/cuda/copies/staged_upload.py`.
staging = _found(".staging")
