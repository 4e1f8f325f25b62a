"""What integers can be that are recorded as sums, differences and multiples of integers whose bounds are known.

Indexes are made so: ``x[i - 1]``, ``table[n - i, i]``, of an `i` that `numpy.arange` has made. Without it, the host
waits for the device to see whether they are in range (`functions.index_bounds`).
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..storage import facts, handles
from ..storage.storage import Storage
from .node import Leaf, Node

__all__ = ["note"]


_STEPS = frozenset({"add", "subtract", "multiply"})


class _Range(NamedTuple):
    """The least and the greatest integer, whether no two elements are equal, and whether it is one number."""

    low: int
    high: int
    distinct: bool
    is_number: bool = False


def note(x: Any) -> None:
    """Keep the bounds of a lazy array that is recorded work, if they follow from others; of another one nothing."""
    if type(x) is not handles.array_type or x._self_base is not None:
        return
    storage = x._self_storage
    node = storage.pending if type(storage) is Storage else None
    if type(node) is not Node or node.dtype.kind != "i" or len(node.shape) != 1 or x.dtype != node.dtype:
        return
    known = facts.of_storage(storage)   # before it is looked at what it is made of: a write puts another in its place
    if known is None or "bounds" in known or (found := _of_node(node)) is None or storage.pending is not node:
        return      # or computed meanwhile, by who writes to what it is made of
    known["bounds"] = found.low, found.high, node.dtype
    if found.distinct:
        known["distinct"] = True


def _of(operand: Any, size: int) -> _Range | None:
    if isinstance(operand, np.integer):
        return _Range(int(operand), int(operand), False, True)
    if type(operand) is Leaf:
        array, storage = operand.array, operand.storage
        if not _is_of_elements(storage, array):
            return None
        once = array.ndim == 1 and array.size == size and (size == 1 or array.strides[0] != 0)
        return _known(storage, array.dtype, once)
    if type(operand) is not Node or operand.dtype.kind != "i":
        return None
    storage = operand.storage() if operand.storage is not None else None
    known = None if storage is None else _known(storage, operand.dtype, operand.size == size)
    found = _of_node(operand) if known is None else known
    return found._replace(distinct=False) if found is not None and operand.size != size else found


def _is_of_elements(storage: Storage, array: Any) -> bool:
    """Whether the elements of a view are elements of its storage, if that has this dtype, not parts of two."""
    if array is storage.root:
        return True
    first, size = storage.device.first, array.dtype.itemsize
    return storage.root is not None and (first(array) - first(storage.root)) % size == 0 and not any(
        step % size for step in array.strides)


def _known(storage: Storage, dtype: np.dtype, once: bool) -> _Range | None:
    known = facts.of_storage(storage)
    whole = None if known is None else known.get("bounds")
    if whole is None or whole[2] != dtype or dtype.kind != "i":
        return None
    return _Range(whole[0], whole[1], once and "distinct" in known)     # type: ignore[operator]


def _of_node(node: Node) -> _Range | None:
    name, dtype = node.step.name, node.dtype
    if name == "index" and not node.operands:       # the places of the elements themselves
        return _Range(0, node.size - 1, True)
    if name not in _STEPS or len(node.operands) != 2 or any(kind != dtype for kind in node.step.inputs):
        return None         # there are no operands once it is computed
    first, second = [_of(operand, node.size) for operand in node.operands]
    if first is None or second is None:
        return None
    distinct = first.is_number and second.distinct or second.is_number and first.distinct
    if name == "multiply":
        number, other = (first, second) if first.is_number else (second, first)
        if not number.is_number:
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
    return _Range(min(ends), max(ends), distinct)
