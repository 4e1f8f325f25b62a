"""Where functions of CUDA's driver are, for what calls them from C."""
from __future__ import annotations

import ctypes
from typing import NamedTuple

__all__ = ["Driver", "found"]

LIBRARY = "libcuda.so.1"


class Driver(NamedTuple):
    """Addresses of functions."""

    launch: int     # cuLaunchKernel
    copy: int       # cuMemcpyHtoDAsync
    record: int     # cuEventRecord
    wait: int       # cuEventSynchronize
    context: int    # cuCtxGetCurrent
    use: int        # cuCtxSetCurrent
    fetch: int      # cuMemcpyDtoHAsync
    finish: int     # cuStreamSynchronize
    lock: int       # cuMemHostRegister


def found() -> Driver | None:
    """The driver's functions; None where it has another name, or lacks one."""
    try:
        library = ctypes.CDLL(LIBRARY)
        functions = [getattr(library, name) for name in (
            "cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuEventSynchronize",
            "cuCtxGetCurrent", "cuCtxSetCurrent", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize",
            "cuMemHostRegister_v2")]
    except (OSError, AttributeError):
        return None
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    return Driver(*addresses) if all(addresses) else None   # type: ignore[arg-type]
