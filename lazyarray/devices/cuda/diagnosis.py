"""Why CUDA does not work, and what to do: what `python -m lazyarray` says.

CuPy is passed to these functions; it is imported in `devices/cuda/device.py` alone.
"""
from __future__ import annotations

import os
from typing import Any

from ..base import Diagnosis
from . import driver

PACKAGES = "cupy-cuda12x or cupy-cuda13x (pip install 'lazy-ndarray[cuda12]' or 'lazy-ndarray[cuda13]')"

# cudaError_t values that tell why there is no device.
_INSUFFICIENT_DRIVER, _NO_DEVICE = 35, 100
# Major versions of CUDA that there is an extra for.
_OLDEST, _NEWEST = 12, 13


def no_cupy() -> Diagnosis:
    """CuPy is not installed, which is expected only of those who have a driver."""
    if not driver.is_present():
        return Diagnosis("simulated", "missing", "CuPy is not installed", f"To use a GPU, install {PACKAGES}.")
    number = driver.version()
    if number is None:
        return missing("missing", "an NVIDIA driver is present but CuPy is not installed",
                       f"To use the GPU, install {PACKAGES}.")
    major = min(number // 1000, _NEWEST)
    reason = f"an NVIDIA driver for CUDA {version(number)} is present but CuPy is not installed"
    if major < _OLDEST:
        return missing("missing", reason, f"Update the driver, then install {PACKAGES}.")
    return missing("missing", reason, f"To use the GPU, install CuPy: pip install 'lazy-ndarray[cuda{major}]'.")


def no_gpu(reason: str) -> Diagnosis:
    """No GPU is there, or none may be seen."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return missing("no gpu", reason, "Check that nvidia-smi lists a GPU.")
    return missing("no gpu", f"{reason}, and CUDA_VISIBLE_DEVICES is {visible!r}",
                   "Unset CUDA_VISIBLE_DEVICES, or name a GPU in it that nvidia-smi lists.")


def no_device(cupy: Any, error: Exception) -> Diagnosis:
    """What CUDA means by the error that it starts with."""
    status = getattr(error, "status", None)
    if status == _NO_DEVICE:
        return no_gpu("the driver finds no GPU")
    if status == _INSUFFICIENT_DRIVER:
        # CUDA says this both without any driver and with one that is too old for the runtime that CuPy brings.
        supported, runtime = cupy.cuda.runtime.driverGetVersion(), cupy.cuda.runtime.runtimeGetVersion()
        if not supported:
            return missing("no driver", "CuPy is installed but there is no NVIDIA driver", "Install the NVIDIA driver.")
        return missing(
            "wrong driver", f"the NVIDIA driver is for CUDA {version(supported)}, CuPy for CUDA {version(runtime)}",
            f"Update the driver, or install the CuPy that fits it: {PACKAGES}.")
    return missing("broken", f"CuPy is installed but CUDA does not start ({type(error).__name__}: {first_line(error)})",
                   "Check nvidia-smi; a driver that was updated under a running system needs a restart.")


def missing(state: str, reason: str, advice: str) -> Diagnosis:
    """The simulated device instead, for this reason, where a GPU was to be expected."""
    return Diagnosis("simulated", state, reason, advice, True)


def first_line(error: Exception) -> str:
    """The first line of what an error says."""
    return next(iter(str(error).strip().splitlines()), "no message")


def version(number: int) -> str:
    """CUDA's number of a version, as people write it."""
    return f"{number // 1000}.{number % 1000 // 10}"
