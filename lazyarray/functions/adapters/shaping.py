"""Joining, repeating, padding and packing: functions that arrange elements anew."""
from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ... import devices
from ...errors import NotOnDevice, refuse, wrong
from .. import memory_order
from .common import (
    CASTINGS,
    MOST_RUNS,
    array,
    axes_of,
    axis_index,
    dtype_or_number,
    fetch,
    filled,
    gather,
    intp,
    is_device,
    numbers,
    takes_arrays,
)


def _joined(arrays: list[Any], axis: int, dtype: Any, casting: str) -> Any:
    """Concatenate in the dtype that NumPy gives, checked against `casting`."""
    result = np.dtype(dtype) if dtype is not None else np.result_type(*[a.dtype for a in arrays])
    if dtype is not None:
        for a in arrays:
            if not np.can_cast(a.dtype, result, casting):
                raise TypeError(f"Cannot cast array data from {a.dtype} to {result} according to {casting!r}")
            refuse(a.dtype.kind == "c" and result.kind not in "cb", "complex values are cast to real ones")
    device = devices.current()
    made = device.joined([a.astype(result, copy=False) for a in arrays], axis)
    return memory_order.joined(device, made, arrays)


def _each(xp: Any, arrays: Any) -> list[Any]:
    if is_device(xp, arrays):
        return list(arrays) if arrays.ndim else [arrays]
    found = [array(xp, a) for a in arrays]
    wrong(not found, "need at least one array to concatenate")
    return found


def concatenate(xp: Any, /, arrays: Any, axis: int | None = 0, out: Any = None, *, dtype: Any = None,
                casting: str = "same_kind") -> Any:
    parts = _each(xp, arrays)
    refuse(casting not in CASTINGS and dtype is None, "casting= that may refuse arrays of several dtypes")
    if dtype is None and axis is not None and {a.dtype for a in parts} == {parts[0].dtype} and (
            all(map(operator.is_, parts, arrays))):
        device = devices.current()
        return memory_order.joined(device, device.joined(parts, axis_index(axis, parts[0].ndim)), parts)
    if dtype is None and not is_device(xp, arrays):
        dtype, casting = np.result_type(*list(map(dtype_or_number, arrays))), "unsafe"
    if axis is None:
        parts, axis = [p.ravel() for p in parts], 0
    return _joined(parts, axis_index(axis, parts[0].ndim), dtype, casting)


def repeat(xp: Any, /, a: Any, repeats: Any, axis: Any = None) -> Any:
    a = array(xp, a)
    if axis is None:
        a, axis = a.ravel(), 0
    axis = axis_index(axis, a.ndim)
    n = a.shape[axis]
    if isinstance(repeats, (int, np.integer)) and not isinstance(repeats, bool):
        return xp.repeat(a, int(repeats), axis)
    if is_device(xp, repeats) and not np.can_cast(repeats.dtype, intp):
        # NumPy takes them in a scalar, but not in an array
        raise NotOnDevice(f"counts of {repeats.dtype} are not supported on the device")
    if is_device(xp, repeats) and repeats.shape == (n,) and n and repeats.dtype.kind in "iu":
        # Positions from the running total, so that only one number has to be waited for.
        ends = xp.cumsum(repeats.astype(intp))
        low, total = fetch(xp.stack([repeats.astype(intp).min(), ends[-1]]), "how many elements there will be")
        wrong(low < 0, "repeats may not contain negative values.")
        return _repeated(xp, a, ends, int(total), axis)
    given = fetch(repeats, "how often to repeat")
    counts = np.asarray(given)
    if counts.shape == (n,) and n > MOST_RUNS and counts.dtype.kind in "iu" and (
            np.can_cast(counts.dtype, intp) and counts.min() >= 0):
        ends = np.cumsum(counts, dtype=intp)
        return _repeated(xp, a, array(xp, ends), int(ends[-1]), axis)
    return gather(xp, [a], np.repeat(np.arange(n), given), axis)


def _repeated(xp: Any, a: Any, ends: Any, total: int, axis: int) -> Any:
    """Elements along an axis, each as often as until its end in the result of so many."""
    return xp.take(a, xp.searchsorted(ends, xp.arange(total), side="right"), axis=axis)


def resize(xp: Any, /, a: Any, new_shape: Any) -> Any:
    a = array(xp, a)
    wrong(isinstance(new_shape, np.ndarray) and not new_shape.ndim, "iteration over a 0-d array")
    shape = tuple(numbers(new_shape)) if np.iterable(new_shape) else (new_shape,)
    wrong(any(n < 0 for n in shape), "all elements of `new_shape` must be non-negative")
    if not a.size or not math.prod(shape):
        return xp.zeros(shape, a.dtype)
    return xp.take(a.ravel(), xp.arange(math.prod(shape)) % a.size).reshape(shape)


# -- bits ----------------------------------------------------------------------------------------

def packbits(xp: Any, /, a: Any, axis: Any = None, bitorder: str = "big") -> Any:
    a = array(xp, a)
    refuse(a.dtype.kind not in "biu" or a.ndim == 0 or bitorder not in ("big", "little"), "bits that only NumPy packs")
    if (axis is None or a.ndim == 1 and axis in (0, -1)) and a.size < _MOST_PACKED:
        return xp.packbits(a, bitorder=bitorder)
    bits = a.ravel() if axis is None else xp.moveaxis(a, axis, -1)
    n = bits.shape[-1]
    whole = -(-n // 8) * 8
    padded = xp.zeros((*bits.shape[:-1], whole), np.uint8)
    padded[..., :n] = bits != 0
    shifts = xp.arange(8, dtype=np.uint8)
    weights = xp.left_shift(np.uint8(1), 7 - shifts if bitorder == "big" else shifts).astype(np.uint8)
    packed = (padded.reshape(*bits.shape[:-1], whole // 8, 8) * weights).sum(axis=-1, dtype=np.uint8)
    return packed if axis is None else xp.moveaxis(packed, -1, axis)


#: Elements that CuPy's ``packbits`` counts, in 32 bits.
_MOST_PACKED = (1 << 31) - 8


def unpackbits(xp: Any, /, a: Any, axis: Any = None, count: Any = None, bitorder: str = "big") -> Any:
    a = array(xp, a)
    refuse(a.dtype != np.uint8 or a.ndim == 0 or bitorder not in ("big", "little"), "bits that only NumPy unpacks")
    if count is None and (axis is None or a.ndim == 1 and axis in (0, -1)):
        return xp.unpackbits(a, bitorder=bitorder)
    packed = a.ravel() if axis is None else xp.moveaxis(a, axis, -1)
    shifts = xp.arange(8, dtype=np.uint8)
    if bitorder == "big":
        shifts = 7 - shifts
    bits = (xp.right_shift(packed[..., None], shifts) & np.uint8(1)).astype(np.uint8)
    bits = bits.reshape(*packed.shape[:-1], packed.shape[-1] * 8)
    n = bits.shape[-1]
    if count is not None:
        wanted = count if count >= 0 else n + count
        wrong(wanted < 0, "-count larger than number of elements")
        if wanted > n:
            grown = xp.zeros((*bits.shape[:-1], wanted), np.uint8)
            grown[..., :n] = bits
            bits = grown
        bits = bits[..., :wanted]
    return bits if axis is None else xp.moveaxis(bits, -1, axis)


# -- differences ---------------------------------------------------------------------------------

def gradient(xp: Any, /, f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    f = array(xp, f)
    spacing = [v if isinstance(v, (int, float, np.number)) else array(xp, v) for v in varargs]
    result = xp.gradient(f, *spacing, axis=axes_of(axis, f.ndim), edge_order=edge_order)
    return tuple(result) if isinstance(result, list) else result


# -- triangles -----------------------------------------------------------------------------------

def tril(xp: Any, /, m: Any, k: Any = 0) -> Any:
    return _triangle(xp, array(xp, m), k, False)


def triu(xp: Any, /, m: Any, k: Any = 0) -> Any:
    return _triangle(xp, array(xp, m), k - 1, True)


def _triangle(xp: Any, m: Any, k: Any, above: bool) -> Any:
    """What is at and below a diagonal of each matrix, or `above` it, and zeros. (CuPy 14.2 takes one matrix.)"""
    refuse(isinstance(k, int) and abs(k) >= 1 << 31, "a diagonal that far away is not supported on the device")
    below, zero = xp.tri(*m.shape[-2:], k=k, dtype=bool), filled(xp, (), m.dtype.type(0), m.dtype)
    result = xp.where(below, zero, m) if above else xp.where(below, m, zero)
    return memory_order.laid_out(devices.current(), result, memory_order.order_of([below, m]))


ADAPTED: dict[Any, Any] = {
    np.concatenate: concatenate, np.repeat: repeat, np.resize: resize,
    np.packbits: packbits, np.unpackbits: unpackbits, np.gradient: gradient,
    np.tril: tril, np.triu: triu, np.diagflat: takes_arrays("diagflat", "v"),
}
