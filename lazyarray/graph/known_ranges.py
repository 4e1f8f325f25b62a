"""What integers can be that are recorded as sums, differences and multiples of integers whose bounds are known.

Indexes are made so: ``x[i - 1]``, ``table[n - i, i]``, of an `i` that `numpy.arange` has made. Without it, the host
waits for the device to see whether they are in range (`functions.index_bounds`).
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..storage import facts
from .node import Leaf, Node

__all__ = ["note"]


_STEPS = frozenset({"add", "subtract", "multiply"})


class _Range(NamedTuple):
    """The least and the greatest integer, and whether no two elements are equal (None: it is one number)."""

    low: int
    high: int
    distinct: bool | None


def note(x: Any) -> None:
    """Keep the bounds of a lazy array that is recorded work, if they follow from others."""
    node = x._self_storage.pending
    if type(node) is Node and node.dtype.kind == "i" and len(node.shape) == 1 and facts.bounds_of(x) is None and (
            found := _of_node(node)) is not None:
        (facts.note_range if found.distinct else facts.note_bounds)(x, found.low, found.high)


def _of(operand: Any, size: int) -> _Range | None:
    if isinstance(operand, np.integer):
        return _Range(int(operand), int(operand), None)
    if type(operand) is Leaf:
        array = operand.array
        once = array.ndim == 1 and array.size == size and (size == 1 or array.strides[0] != 0)
        return _known(operand.storage, array.dtype, once)
    if type(operand) is not Node or operand.dtype.kind != "i":
        return None
    storage = operand.storage() if operand.storage is not None else None
    known = None if storage is None else _known(storage, operand.dtype, operand.size == size)
    found = _of_node(operand) if known is None else known
    return found._replace(distinct=False) if found is not None and operand.size != size else found


def _known(storage: Any, dtype: np.dtype, once: bool) -> _Range | None:
    whole = facts.whole_bounds(storage)
    if whole is None or whole[2] != dtype or dtype.kind != "i":
        return None
    return _Range(whole[0], whole[1], once and facts.has_distinct(storage))


def _of_node(node: Node) -> _Range | None:
    name, dtype = node.step.name, node.dtype
    if name == "index" and not node.operands:       # the places of the elements themselves
        return _Range(0, node.size - 1, True)
    if name not in _STEPS or len(node.operands) != 2 or any(kind != dtype for kind in node.step.inputs):
        return None         # there are no operands once it is computed
    first, second = [_of(operand, node.size) for operand in node.operands]
    if first is None or second is None:
        return None
    distinct = second.distinct if first.distinct is None else second.distinct is None and first.distinct
    if name == "multiply":
        number, other = (first, second) if first.distinct is None else (second, first)
        if number.distinct is not None:
            return None
        ends = other.low * number.low, other.high * number.low
        distinct = distinct and number.low != 0
    elif name == "add":
        ends = first.low + second.low, first.high + second.high
    else:
        ends = first.low - second.high, first.high - second.low
    limits = np.iinfo(dtype)
    if min(ends) < limits.min or max(ends) > limits.max:        # it may have wrapped around
        return None
    return _Range(min(ends), max(ends), bool(distinct))
