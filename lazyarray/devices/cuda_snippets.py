"""CUDA's text of one step: CuPy's own snippet for that ufunc and those dtypes, so that a fused result is the unfused one.

What CUDA's compiler might contract across steps (a product and a sum into one fused multiply-add, which rounds once) is
written with intrinsics that are never contracted, see `_EXACT`; within a step it may, as it does in CuPy's kernel.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..fusion.program import Step

__all__ = ["HELPERS", "routine", "snippet", "type_of"]

#: What `_EXACT` calls.
HELPERS = """
__device__ inline float lz_add(float a, float b) { return __fadd_rn(a, b); }
__device__ inline double lz_add(double a, double b) { return __dadd_rn(a, b); }
__device__ inline float lz_sub(float a, float b) { return __fsub_rn(a, b); }
__device__ inline double lz_sub(double a, double b) { return __dsub_rn(a, b); }
__device__ inline float lz_mul(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double lz_mul(double a, double b) { return __dmul_rn(a, b); }
template <typename T> __device__ inline complex<T> lz_add(complex<T> a, complex<T> b) {
  return complex<T>(lz_add(a.real(), b.real()), lz_add(a.imag(), b.imag()));
}
template <typename T> __device__ inline complex<T> lz_sub(complex<T> a, complex<T> b) {
  return complex<T>(lz_sub(a.real(), b.real()), lz_sub(a.imag(), b.imag()));
}
"""

#: Steps that end or begin with what the compiler would contract with its neighbour.
_EXACT = {
    ("add", "f"): "out0 = lz_add(in0, in1)",
    ("add", "d"): "out0 = lz_add(in0, in1)",
    ("add", "F"): "out0 = lz_add(in0, in1)",
    ("add", "D"): "out0 = lz_add(in0, in1)",
    ("subtract", "f"): "out0 = lz_sub(in0, in1)",
    ("subtract", "d"): "out0 = lz_sub(in0, in1)",
    ("subtract", "F"): "out0 = lz_sub(in0, in1)",
    ("subtract", "D"): "out0 = lz_sub(in0, in1)",
    ("multiply", "f"): "out0 = lz_mul(in0, in1)",
    ("multiply", "d"): "out0 = lz_mul(in0, in1)",
    ("square", "f"): "out0 = lz_mul(in0, in0)",
    ("square", "d"): "out0 = lz_mul(in0, in0)",
}

#: NumPy's dtype characters and CUDA's types, as CuPy pairs them.
_TYPES = {
    "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short", "i": "int",
    "I": "unsigned int", "l": "long long", "L": "unsigned long long", "q": "long long", "Q": "unsigned long long",
    "e": "float16", "f": "float", "d": "double", "F": "complex<float>", "D": "complex<double>",
}


def type_of(dtype: np.dtype) -> str:
    """CUDA's name of a dtype."""
    if dtype.kind in "iu":
        return _TYPES[np.dtype(f"{dtype.kind}{dtype.itemsize}").char]
    return _TYPES[dtype.char]


def routine(ufunc: Any, inputs: tuple[np.dtype, ...], output: np.dtype) -> str | None:
    """CuPy's snippet for a ufunc's loop, or None if it has none for just these dtypes."""
    for op in ufunc._ops.ops:
        if op.in_types == inputs and op.out_types == (output,) and isinstance(op.routine, str):
            return op.routine
    return None


def snippet(step: Step, xp: Any) -> tuple[str, str] | None:
    """What sets ``out0`` from ``in0``, ``in1`` ..., and the helpers it needs; None if CuPy has nothing for the step."""
    if step.name == "astype":
        return "out0 = (out0_type)in0", ""
    ufunc = getattr(xp, step.name)
    text = routine(ufunc, step.inputs, step.output)
    if text is None:
        return None
    return _EXACT.get((step.name, step.output.char), text), ufunc._preamble or ""
