"""Division as NumPy has it: of floats towards minus infinity, and of complex numbers by Smith's algorithm.

The same text is in a kernel of its own and in a step of a fused one.
"""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .snippets import COMPLEX_DIVISION, FLOAT_DIVISION, HELPERS, type_of

__all__ = ["divide_complex", "divide_floats"]

#: What a division gives -> the outputs of its kernel, and what they become.
_PARTS = {"q": ("out", "out = q"), "m": ("out", "out = m"), "qm": ("out, {name} rest", "out = q; rest = m")}


@functools.cache
def _floats(xp: Any, dtype: np.dtype, parts: str) -> Any:
    # Parameters have NumPy's names of dtypes, where "float" is double precision; the body has C's.
    outputs, becomes = _PARTS[parts]
    return xp.ElementwiseKernel(
        f"{dtype.name} a, {dtype.name} b", f"{dtype.name} {outputs.format(name=dtype.name)}",
        f"{type_of(dtype)} m; const {type_of(dtype)} q = lz_divide(a, b, m); {becomes}",
        f"lazyarray_divide_{parts}_{dtype.char}", preamble=HELPERS + FLOAT_DIVISION)


@functools.cache
def _complex(xp: Any, dtype: np.dtype) -> Any:
    real = type_of(np.dtype(dtype.char.lower()))
    return xp.ElementwiseKernel(
        f"{dtype.name} a, {dtype.name} b", f"{dtype.name} out",
        f"{real} re, im; lz_quotient(a.real(), a.imag(), b.real(), b.imag(), re, im);"
        f" out = thrust::complex<{real}>(re, im)", f"lazyarray_quotient_{dtype.char}", preamble=COMPLEX_DIVISION)


def divide_floats(xp: Any, a: Any, b: Any, parts: str) -> tuple[Any, ...]:
    """`Device.divide_floats`."""
    found = _floats(xp, a.dtype, parts)(a, b)
    return found if parts == "qm" else (found,)     # type: ignore[no-any-return]


def divide_complex(xp: Any, a: Any, b: Any) -> Any:
    """`Device.divide_complex`."""
    return _complex(xp, a.dtype)(a, b)
