"""How two results are compared: structure, type, dtype, shape, writeability and values.

Tolerances
----------
Integers, bools, strings and views are exact.  Floats are compared with a multiple of the spacing of the
result's dtype, by the kind of the function:

=========== ====== ========== =======================================================================
kind        factor relative   reason
=========== ====== ========== =======================================================================
exact       0      -          the bytes are moved, not computed
extreme     0      -          the same, but -0.0 and 0.0 are equal: either is the largest of the two
elementwise 8      to element CUDA's libm is documented to about 2 ulp, NumPy's SIMD loops to 4; half
                              precision is computed in single on both sides and rounded once
logarithm   16     to largest a number and a logarithm are added, and may cancel
power       8      to element as elementwise; of complex numbers 512 times as much: exp(y log x) has an
                              error of y log x ulp on either side, and that goes to 709
reduction   64     to largest the order of the additions differs (pairwise, by block, by warp)
fft         256    to largest other factorisations of the length
linalg      4096   to largest other algorithms; the matrices of the tables have condition below 1e3
=========== ====== ========== =======================================================================

A kind may end in the dtype of the loop, ``elementwise in f4``: what a loop of single precision writes into an
``out=`` of double precision is no better than single.

CuPy compiles with ``-ftz=true``: single precision numbers below the smallest normal one become zero, and the
one next to zero is the smallest normal one.  That is the absolute tolerance in single precision; in the others
it is 4 of the smallest subnormals.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np

FACTORS = {
    "exact": 0, "extreme": 0, "elementwise": 8, "logarithm": 16, "power": 8, "reduction": 64, "fft": 256,
    "linalg": 4096,
}  # fmt: skip


def host(value: Any) -> np.ndarray:
    """The host copy of an array of either run."""
    return np.array(value, copy=None, subok=False)


def close(want: np.ndarray, got: np.ndarray, kind: str) -> bool:
    """Whether two arrays of one dtype and shape agree within the tolerance of ``kind``."""
    kind, _, loop = kind.partition(" in ")
    if want.dtype.names:
        return all(close(want[name], got[name], kind) for name in want.dtype.names)
    if want.dtype.kind not in "fc":
        if want.dtype.kind in "mM":
            return bool(np.array_equal(want, got, equal_nan=True))
        if want.dtype.kind == "O":
            pairs = zip(want.flat, got.flat, strict=True)
            return all(difference(one, other, kind) is None for one, other in pairs)
        return bool((want == got).all())
    same = (want == got) | ((want != want) & (got != got))
    if same.all():
        return kind != "exact" or bool((np.signbit(want.real) == np.signbit(got.real))[want == 0].all())
    if kind == "exact":
        return False
    odd = ~same
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = want[odd].astype(wide), got[odd].astype(wide)
    finite = np.isfinite(want)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    by_element = kind in ("elementwise", "power")
    scale = np.abs(a) if by_element else np.abs(want[finite].astype(wide)).max(initial=0)
    info = max(np.finfo(want.dtype), np.finfo(loop or want.dtype), key=lambda one: float(one.eps))
    tiny = float(info.smallest_normal if info.dtype == np.float32 else 4 * info.smallest_subnormal)
    factor = FACTORS[kind]
    if want.dtype.kind == "c" and by_element:
        factor *= 512 if kind == "power" else 4
    return bool((np.abs(a - b) <= factor * float(info.eps) * scale + tiny).all())


def show(value: Any) -> str:
    return repr(value).replace("\n", " ")[:160]


def array_difference(want: np.ndarray, got: Any, kind: str) -> str | None:
    if not isinstance(got, np.ndarray):
        return f"type: {type(got).__name__} where NumPy gives an ndarray"
    if got.dtype != want.dtype:
        return f"dtype: {got.dtype} where NumPy gives {want.dtype}"
    if got.shape != want.shape:
        return f"shape: {got.shape} where NumPy gives {want.shape}"
    if got.flags.writeable != want.flags.writeable:
        return f"writeable: {got.flags.writeable} where NumPy gives {want.flags.writeable}"
    if kind == "unset":
        return None
    try:
        there = host(got)
    except Exception as error:  # noqa: BLE001  an array that can't be read is a difference like any other
        return f"host copy: {type(error).__name__}: {error}"
    if there.dtype != want.dtype or there.shape != want.shape:
        return f"host copy: {there.dtype}{there.shape}, expected {want.dtype}{want.shape}"
    if not close(host(want), there, kind):
        return f"values: {show(there)} where NumPy gives {show(want)}"
    return None


def difference(want: Any, got: Any, kind: str = "exact") -> str | None:
    """How two results differ, or None."""
    if isinstance(want, np.ndarray):
        return array_difference(want, got, kind)
    if isinstance(want, np.generic):
        if not isinstance(got, type(want)):
            return f"type: {type(got).__name__} where NumPy gives the scalar {type(want).__name__}"
        if isinstance(got, np.ndarray):
            return "type: an array where NumPy gives a scalar"
        if got.dtype != want.dtype:
            return f"dtype: scalar {got.dtype} where NumPy gives {want.dtype}"
        if kind != "unset" and not close(np.asarray(want), np.asarray(got), kind):
            return f"values: {show(got)} where NumPy gives {show(want)}"
        return None
    if isinstance(want, (tuple, list)):
        if type(got) is not type(want):
            return f"type: {type(got).__name__} where NumPy gives {type(want).__name__}"
        if len(got) != len(want):
            return f"length: {len(got)} where NumPy gives {len(want)}"
        parts = (difference(a, b, kind) for a, b in zip(want, got, strict=True))
        return next((part for part in parts if part), None)
    if isinstance(want, dict):
        if type(got) is not type(want) or list(got) != list(want):
            return f"keys: {show(got)} where NumPy gives {show(want)}"
        return difference(list(want.values()), list(got.values()), kind)
    if isinstance(want, (np.flatiter, types.GeneratorType)) or type(want).__name__.endswith("iterator"):
        return difference(list(want), list(got), kind)
    if type(want) is type(np.zeros(1).flags):
        want, got = str(want), str(got)
    if type(got) is not type(want):
        return f"type: {type(got).__name__} where NumPy gives {type(want).__name__}"
    if isinstance(want, memoryview):
        want, got = (want.tobytes(), want.format, want.shape), (got.tobytes(), got.format, got.shape)
    elif isinstance(want, (float, complex)):
        return None if close(np.asarray(want), np.asarray(got), kind) else f"values: {got!r} where NumPy gives {want!r}"
    elif type(want).__eq__ is object.__eq__:
        return None
    return None if want == got else f"values: {show(got)} where NumPy gives {show(want)}"


def leaves(value: Any) -> Iterator[Any]:
    """The arrays, scalars and other objects in a nested result."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))
    else:
        yield value
