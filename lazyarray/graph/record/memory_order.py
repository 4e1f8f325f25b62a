"""The memory order of recorded results: NumPy's, which goes by that of the operands, given by their metas."""
from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from ...functions import memory_order

__all__ = ["Form", "axes_of", "broadcast", "form_of", "is_flat", "order_of"]


class Form(NamedTuple):
    """How a result lies in memory: the shape of its node, whether that is in Fortran order, and the order of axes."""

    shape: tuple[int, ...]
    fortran: bool
    order: tuple[int, ...] | None


def form_of(shape: tuple[int, ...], order: tuple[int, ...] | None) -> Form:
    """How a result of this shape lies whose axes are in this order, from the outermost on; None: in C order."""
    if order is None:
        return Form(shape, False, None)
    if order == tuple(range(len(shape) - 1, -1, -1)):
        return Form(shape, True, None)
    return Form(tuple([shape[i] for i in order]), False, order)


def _in_order(meta: Any) -> bool:
    return meta.ndim < 2 or meta.flags.c_contiguous


_orders: dict[Any, tuple[int, ...] | None] = {}


def order_of(metas: list[Any]) -> tuple[int, ...] | None:
    """The order of a result's axes after these operands; None for C order."""
    if all(map(_in_order, metas)):
        return None
    key = tuple([(o.shape, o.strides) for o in metas])
    found = _orders.get(key, key)
    if found is key:
        if len(_orders) >= 4096:
            _orders.clear()
        found = _orders[key] = memory_order.order_of(metas)
    return found    # type: ignore[return-value]


def is_flat(meta: Any, shape: tuple[int, ...], order: tuple[int, ...] | None) -> bool:
    """Whether the elements of an operand lie in memory as those of a dense result in this order."""
    flags = meta.flags
    if meta.shape != shape:
        return order is None and flags.c_contiguous and meta.size == math.prod(shape)
    if order is None:
        return flags.c_contiguous
    if order == tuple(range(len(shape) - 1, -1, -1)):
        return flags.f_contiguous
    expected = meta.itemsize
    for axis in reversed(order):
        if shape[axis] != 1:
            if meta.strides[axis] != expected:
                return False
            expected *= shape[axis]
    return True


def axes_of(layout: np.ndarray) -> tuple[int, ...] | None:
    """The axes of an array from the outermost to the innermost; None for C order."""
    flags, strides = layout.flags, layout.strides
    if flags.c_contiguous:
        return None
    if flags.f_contiguous:
        return tuple(range(layout.ndim - 1, -1, -1))
    if all(map(operator.ge, strides, strides[1:])):
        return None
    return tuple(sorted(range(layout.ndim), key=lambda i: (-strides[i], i)))


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that both broadcast to, or None if there is none."""
    if len(a) < len(b):
        a, b = b, a
    shape = list(a)
    for i in range(1, len(b) + 1):
        n, m = a[-i], b[-i]
        if n != m:
            if n == 1:
                shape[-i] = m
            elif m != 1:
                return None
    return tuple(shape)
