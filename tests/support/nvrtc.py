"""CUDA's compiler, which needs no GPU, and the steps that kernels are made of."""
from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import cupy
import numpy as np
import pytest

from lazyarray.devices.base import HOLDABLE
from lazyarray.devices.cuda.kernels import snippets
from lazyarray.devices.program import Step
from lazyarray.functions import tables

DTYPES = sorted({np.dtype(f"{d.kind}{d.itemsize}") if d.kind in "iu" else d for d in HOLDABLE}, key=lambda d: d.str)
NAMES = sorted({(name, ufunc) for ufunc, name in tables.UFUNCS.items() if isinstance(name, str) and ufunc.nout == 1
                and ufunc.signature is None}, key=lambda pair: pair[0])


def loops(dtype):
    """The steps whose operands are all of `dtype`, one for each ufunc that has such a loop in NumPy and in CuPy.

    CuPy lists some for complex numbers that it can't compile itself (arctan2, hypot); NumPy never takes them.
    """
    found = []
    for name, ufunc in NAMES:
        inputs = (dtype,) * ufunc.nin
        try:
            resolved = ufunc.resolve_dtypes((*inputs, None))
        except TypeError:
            continue
        text = snippets.routine(getattr(cupy, name), inputs, resolved[-1]) if resolved[:-1] == inputs else None
        if text is not None:
            found.append(Step(name, getattr(cupy, name), inputs, resolved[-1]))
    return found


#: To optimise takes three quarters of the time, and has no complaints: by day it is done where what is made counts.
NOT_OPTIMISED = [] if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else ["--device-debug"]


def compiled(text, ptx=False):
    """The log of NVRTC, which needs no GPU; empty if it has no complaint. With `ptx`: what it made."""
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    include = Path(cupy.__file__).parent / "_core" / "include"
    parts = [include / "cupy" / "_cccl" / part for part in ("libcudacxx", "thrust", "cub")]
    folders = [include, *parts, *cuda_headers()]
    program = nvrtc.createProgram(text, "fused.cu", [], [])
    try:
        nvrtc.compileProgram(program, ["--std=c++17", "-arch=sm_90", *([] if ptx else NOT_OPTIMISED),
                                       *(f"-I{folder}" for folder in folders)])
        return nvrtc.getPTX(program).decode() if ptx else ""
    except nvrtc.NVRTCError:
        if ptx:
            raise
        return nvrtc.getProgramLog(program)
    finally:
        nvrtc.destroyProgram(program)


def cuda_headers():
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(place) for place in spec.submodule_search_locations] if spec else []
    found = [header.parent for root in roots for header in root.glob("*/include/cuda_fp16.h")]
    if "CUDA_PATH" in os.environ or Path("/usr/local/cuda/include/cuda_fp16.h").exists():
        found.append(Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "include")
    return found or pytest.skip("no CUDA headers here")
