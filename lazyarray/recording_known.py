"""Calls like one that was met before: how their operands are read, and what they give, is found under one key.

The key is the function and, of each operand, what `recording_operands` goes by: the dtype, the shape, and how it lies
in memory; then the same of what is written in place. `_recording_views.h` does in C what `of_known` does.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from . import layouts, recording_operands, wrap
from .fusion.graph import MOST_STEPS, Leaf, Node
from .fusion.large import LARGE
from .fusion.program import Step
from .recording_layouts import template_of
from .recording_operands import Operands, fits, is_strided, ready_array
from .recording_steps import Rule, numbers

__all__ = ["Known", "keep", "known", "of_known", "seen"]

#: How a node lies, where a whole array has a bool and a view its strides: in C order as it was recorded, in Fortran's,
#: and, seen in another shape, in one or the other.
_AS_RECORDED, _FORTRAN, _C_SEEN, _FORTRAN_SEEN = 2, 3, 4, 5


class Known:
    """What a call becomes.

    Attributes
    ----------
    rule : Rule
        Without a choice.
    modes : tuple of str or None
        How each operand is read, if it is a leaf.
    strided : tuple of bool
        Whether each is read along the axes.
    shape, fortran, template, size
        Of the node.
    order, back : tuple of int, or None
        The order of the axes of the result in memory, and what turns them back, if neither C's nor Fortran's.
    last : Step or None
        What casts the result to the dtype of what is written in place.
    nbytes, steps : int
        Of the result, and how many steps are made.
    """

    __slots__ = ("rule", "modes", "strided", "shape", "fortran", "template", "size", "order", "back", "last", "nbytes",
                 "steps", "any_strided")

    def __init__(self, rule: Rule, given: Operands, node: Node, last: Step | None) -> None:
        items = list(node.operands)
        casts = [cast is not None and outline is not None for cast, outline in zip(rule.casts or (), given.outlines)]
        self.last, self.steps = last, 1 + len(casts) + (last is not None)
        dtype = node.dtype if last is None else last.output
        uncast = [item.operands[0] if any(casts[i:i + 1]) else item for i, item in enumerate(items)]
        self.rule, self.shape, self.fortran, self.size = rule, node.shape, node.fortran, node.size
        self.modes = tuple(item.mode if type(item) is Leaf else None for item in uncast)
        self.strided = tuple(is_strided(item, node.size) for item in uncast)
        self.any_strided = node.strided
        self.template = template_of(node.shape, node.fortran, dtype)
        self.order = given.result.order
        self.back = None if self.order is None else tuple(map(int, np.argsort(self.order)))
        self.nbytes = node.size * dtype.itemsize


#: Key of a call -> Known.
known: dict[Any, Known] = {}
_MOST = 4096


def keep(key: Any, items: list[Any], rule: Rule, given: Operands, node: Node, last: Step | None = None) -> None:
    """Let the next call with this key be a known one, if this one was made of the operands that `seen` gave."""
    made = Known(rule, given, node, last)
    if all((type(item) is Leaf) is (mode is not None) for item, mode in zip(items, made.modes)):
        if len(known) >= _MOST:
            known.clear()
        known[key] = made


def seen(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]] | None:
    """The key of a call, and its operands, leaves and nodes for arrays; None if it can't be a known one."""
    if recording_operands.forked:
        return None
    key: list[Any] = [ufunc]
    items: list[Any] = []
    for x in inputs:
        kind = type(x)
        if kind is wrap._array_type:
            storage = x._self_storage
            node = storage.pending
            item = _leaf(x, storage, key) if node is None else node if _lies(x, storage, node, key) else None
            if item is None:
                return None
            items.append(item)
        elif kind in numbers:
            key.append(kind)
            items.append(x)
        elif kind is wrap._scalar_type:
            item = x._self_value
            if item is None:
                item = _leaf_of_scalar(x, key)
                if item is None:
                    return None
            else:
                key.append(item.dtype)
            items.append(item)
        elif isinstance(x, np.generic):
            key.append(x.dtype)
            items.append(x)
        else:
            return None
    return tuple(key), items


def _leaf(x: Any, storage: Any, key: list[Any]) -> Leaf | None:
    """The leaf of an array that is ready; its part of the key is added."""
    leaf = x._self_leaf
    if leaf is not None and leaf.array is x._self_array and storage.quiet and not (storage.loans or storage.foreign):
        key += leaf.dtype, leaf.shape, leaf.fortran
        return leaf
    array = ready_array(x)
    if array is None or storage.device.count > 1:
        return None
    key += array.dtype, array.shape, array.strides
    leaf = Leaf(array, storage, "flat")
    nbytes = array.nbytes if array is storage.root else storage.nbytes
    leaf.large = frozenset(((id(storage), nbytes),)) if nbytes >= LARGE else ()
    return leaf


def _leaf_of_scalar(x: Any, key: list[Any]) -> Leaf | None:
    storage, array = x._self_storage, x._self_array
    if array is None or not storage.quiet or storage.device.count > 1:
        return None
    key += array.dtype, (), ()
    leaf = Leaf(array, storage, "strided")
    leaf.large = ()
    return leaf


def _lies(x: Any, storage: Any, node: Node, key: list[Any]) -> bool:
    """Whether recorded work is seen as a whole, in C's or Fortran's order; its part of the key is added."""
    outline = x._self_outline
    if node.place is not None:
        return False
    if outline is storage._root_view:
        key += node.dtype, node.shape, _FORTRAN if node.fortran else _AS_RECORDED
        return True
    flags, shape = outline.flags, outline.shape
    c = flags.c_contiguous
    if outline.size != node.size or outline.dtype is not node.dtype or not c and not flags.f_contiguous:
        return False
    key += node.dtype, shape, (
        _FORTRAN_SEEN if not c else _AS_RECORDED if shape == node.shape and not node.fortran else _C_SEEN)
    return True


def of_known(found: Known, items: list[Any], least: int) -> Any:
    """The nodes of a known call, the last of which gives the result.

    None if it is not to be recorded; NotImplemented if something has to be computed before.
    """
    rule, shape, fortran, size = found.rule, found.shape, found.fortran, found.size
    device, large, steps = None, (), found.steps       # type: Any, Any, int
    for position, item in enumerate(items):
        kind = type(item)
        if kind is Leaf:
            if found.nbytes < least:
                return None     # small, and not of what waits already
            device = item.storage.device
        elif kind is Node:
            steps += item.steps
            device = item.device
        else:
            try:
                items[position] = rule.scalars[position](item)
            except OverflowError:       # beyond the dtype: compared by value, or refused
                return None
            continue
        if item.large:
            large = item.large if not large else large | item.large
    if not fits(device, found.nbytes):
        return None
    if steps > MOST_STEPS:
        return NotImplemented
    for position, mode in enumerate(found.modes):
        if mode is not None and (mode != "flat" or found.order is not None):
            item = items[position]
            items[position] = Leaf(item.array if found.order is None else layouts.along(item.array, found.order),
                                   item.storage, mode)
    nodes = []
    if rule.casts is not None:
        for position, (cast, item) in enumerate(zip(rule.casts, items)):
            if cast is not None and type(item) in _arrays:
                items[position] = made = Node(
                    device, cast, (item,), shape, fortran, steps, large, found.strided[position], size)
                nodes.append(made)
    node = Node(device, rule.step, tuple(items), shape, fortran, steps, large, found.any_strided, size)
    nodes.append(node)
    if found.last is not None:
        node = Node(device, found.last, (node,), shape, fortran, steps, large, False, size)
        nodes.append(node)
    node.template = found.template
    return nodes


_arrays = frozenset({Leaf, Node})
