"""Why CUDA does not work, and what to do: the words of `python -m lazyarray`.

CuPy is given to these functions; it is imported in `cuda.py` alone.
"""

from __future__ import annotations

from typing import Any

from .base import Diagnosis

PACKAGES = "cupy-cuda12x or cupy-cuda13x (pip install 'lazy-ndarray[cuda12]' or 'lazy-ndarray[cuda13]')"

# cudaError_t values that tell why there is no device.
_INSUFFICIENT_DRIVER, _NO_DEVICE = 35, 100


def no_device(cupy: Any, error: Exception) -> Diagnosis:
    """What CUDA means by the error that it starts with."""
    status = getattr(error, "status", None)
    if status == _NO_DEVICE:
        return missing("no gpu", "the driver finds no GPU", "Check nvidia-smi and CUDA_VISIBLE_DEVICES.")
    if status == _INSUFFICIENT_DRIVER:
        # CUDA says this both without any driver and with one that is too old for the runtime that CuPy brings.
        driver, runtime = cupy.cuda.runtime.driverGetVersion(), cupy.cuda.runtime.runtimeGetVersion()
        if not driver:
            reason = "CuPy is installed but there is no NVIDIA driver"
            return missing("no driver", reason, "Install the NVIDIA driver.")
        return missing(
            "wrong driver",
            f"the NVIDIA driver is for CUDA {version(driver)}, CuPy for CUDA {version(runtime)}",
            f"Update the driver, or install the CuPy that fits it: {PACKAGES}.",
        )
    return missing(
        "broken",
        f"CuPy is installed but CUDA does not start ({type(error).__name__}: {first_line(error)})",
        "Check nvidia-smi; a driver that was updated under a running system needs a restart.",
    )


def missing(state: str, reason: str, advice: str) -> Diagnosis:
    """The simulated device instead, for this reason."""
    return Diagnosis("simulated", state, reason, advice)


def first_line(error: Exception) -> str:
    """The first line of what an error says."""
    return next(iter(str(error).strip().splitlines()), "no message")


def version(number: int) -> str:
    """CUDA's number of a version, as people write it."""
    return f"{number // 1000}.{number % 1000 // 10}"
