"""Correlation along one axis in the order of SciPy's sums, so that results are the same bits.

SciPy adds what is on either side of the centre before it multiplies by their weight, where the weights are symmetric:
so neighbourhoods that mirror each other give equal results, and what looks for maxima in them finds the same ones.
All is computed in double precision, and then converted as C does.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

SYMMETRIC, ANTISYMMETRIC, NEITHER, UNKNOWN = 1, -1, 0, 2
"""The forms of weights; UNKNOWN where they are on the device, and the device finds out."""

_EPSILON = float(np.finfo(np.float64).eps)


class Weights(NamedTuple):
    """What lines are correlated with, and where the elements come from that are beyond their ends.

    `table` is a device array of int64: for each place, from `before` places before the start of a line to the last
    that a sum takes, the place in the line whose element stands there, or -1 for the constant.
    """

    values: Any     # a device array: 1-D of float64, C-contiguous, not empty
    form: int       # one of those above
    table: Any
    before: int


def form_of(weights: np.ndarray) -> int:
    """The form of weights that are on the host."""
    left, right = weights, weights[::-1]
    if len(weights) % 2 == 0:
        return NEITHER
    centre = np.arange(len(weights)) == len(weights) // 2
    with np.errstate(invalid="ignore"):     # NaN is nowhere larger
        if not ((abs(left - right) > _EPSILON) & ~centre).any():
            return SYMMETRIC
        return NEITHER if ((abs(left + right) > _EPSILON) & ~centre).any() else ANTISYMMETRIC


def correlate(xp: Any, x: Any, weights: Weights, axis: int, cval: float, dtype: np.dtype) -> Any:
    """`Device.correlate_lines` with the functions of a namespace, each of which rounds once."""
    count, length = weights.values.size, x.shape[axis]
    lines = (x.view(np.uint8) if x.dtype.kind == "b" else x).reshape(
        int(np.prod(x.shape[:axis], dtype=int)), length, -1).astype(np.float64)
    table = weights.table
    with np.errstate(all="ignore"):     # SciPy gives no warnings
        extended = xp.where((table < 0)[:, None], cval, lines[:, xp.maximum(table, 0)])
        found = _sums(xp, extended, weights, count, length)
        return converted(xp, found, dtype).reshape(x.shape)


def _sums(xp: Any, extended: Any, weights: Weights, count: int, length: int) -> Any:
    values, half = weights.values, count // 2

    def at(tap: int) -> Any:
        return extended[:, tap:tap + length]

    def weight(tap: int) -> Any:
        return values[tap:tap + 1]

    def paired(combine: Any) -> Any:
        total = at(half) * weight(half)
        for tap in range(half):
            total += combine(at(tap), at(count - 1 - tap)) * weight(tap)
        return total

    def single() -> Any:
        total = at(count - 1) * weight(count - 1)
        for tap in range(count - 1):
            total += at(tap) * weight(tap)
        return total

    if weights.form == SYMMETRIC:
        return paired(xp.add)
    if weights.form == ANTISYMMETRIC:
        return paired(xp.subtract)
    if weights.form == NEITHER or count % 2 == 0:
        return single()
    gaps = [xp.abs(combine(values[:half], values[:half:-1])) > _EPSILON for combine in (xp.subtract, xp.add)]
    return xp.where(~gaps[0].any(), paired(xp.add), xp.where(~gaps[1].any(), paired(xp.subtract), single()))


def converted(xp: Any, values: Any, dtype: np.dtype) -> Any:
    """Double precision as another dtype, as compiled C does it on x86-64: modulo the range, where it can be.

    What is no number of 32 bits (of 64, for the wider dtypes) is the least one there; as an unsigned number of 64 bits,
    zero, and a negative one is that of its magnitude, negated. For a boolean, whatever is not
    zero as a byte is true.
    """
    if dtype.kind == "f":
        return values.astype(dtype)
    if dtype.kind == "b":
        return converted(xp, values, np.dtype(np.uint8)).view(dtype)
    wide = dtype.itemsize == 8 or dtype == np.uint32
    limit = 2.0 ** (63 if wide else 31)
    if dtype == np.uint64:
        size = xp.abs(values)
        high = (size >= limit) & (size < 2 * limit)
        size = xp.where(high, size - limit, xp.where(size >= 2 * limit, 0.0, size))
        whole = xp.where(size < limit, size, -limit).astype(np.int64).astype(dtype) + high * np.uint64(1 << 63)
        return xp.where(values < 0, ~whole + np.uint64(1), whole)
    # What is above the least number by less than one is truncated to it.
    fits = (values < limit) & ((values >= -limit) if wide else (values > -limit - 1))
    return xp.where(fits, values, -limit).astype(np.int64).astype(dtype)
