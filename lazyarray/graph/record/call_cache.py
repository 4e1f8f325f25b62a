"""Calls like one that was met before: how their operands are read, and what they give, is found under one key.

The key is the function and, of each operand, what `operands` goes by: the dtype, which of its lengths are one and
which are alike, and how it lies in memory; then the same of what is written in place. How long the others are it does
not say: arrays whose sizes depend on data have new ones all the time. `_native/recording_operands.h` makes it, and
`_native/recording_calls.h` makes nodes of what is found. Calls of whole arrays of one form, and numbers, only need a
rule: see `loops.rules`.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...devices.program import Step
from ..node import Leaf, Node
from .loops import Rule
from .operands import Operands, is_strided

__all__ = ["Known", "keep", "keep_places", "known"]


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
    shape, fortran
        Of the node; a length of more than one is told by its place among those of the operands, as -1 - place.
    order, back : tuple of int, or None
        The order of the axes of the result in memory, and what turns them back, if neither C's nor Fortran's.
    last : Step or None
        What casts the result to the dtype of what is written in place.
    steps : int
        How many are made.
    form : tuple or None
        (lengths of the operands, shape, size) of the last such call.
    """

    __slots__ = ("rule", "modes", "strided", "shape", "fortran", "order", "back", "last", "steps", "any_strided",
                 "form")

    def __init__(self, rule: Rule, lengths: tuple[int, ...], given: Operands, node: Node, last: Step | None) -> None:
        items = list(node.operands)
        casts = [cast is not None and meta is not None for cast, meta in zip(rule.casts or (), given.metas)]
        self.last, self.steps = last, 1 + len(casts) + (last is not None)
        uncast = [item.operands[0] if any(casts[i:i + 1]) else item for i, item in enumerate(items)]
        self.rule, self.fortran = rule, node.fortran
        self.shape = tuple([n if n < 2 else -1 - lengths.index(n) for n in node.shape])
        self.modes = tuple([item.mode if type(item) is Leaf else None for item in uncast])
        self.strided = tuple([is_strided(item, node.size) for item in uncast])
        self.any_strided = node.strided
        self.order = given.result.order
        self.back = None if self.order is None else (*map(int, np.argsort(self.order)),)
        self.form: Any = None


#: Key of a call -> Known; or the places of the operands that are computed before it is recorded.
known: dict[Any, Known | tuple[int, ...]] = {}
_MOST = 4096


def keep(key: Any, seen: tuple[Any, ...], lengths: tuple[int, ...], rule: Rule, given: Operands, node: Node,
         last: Step | None) -> None:
    """Let the next call with this key be a known one, if this one was made of operands of the kinds that were seen."""
    made = Known(rule, lengths, given, node, last)
    if all((one is not None and one[0] is Leaf) is (mode is not None) for one, mode in zip(seen, made.modes)):
        _keep(key, made)


def keep_places(key: Any, places: tuple[int, ...]) -> None:
    """Let the operands at these places be computed before the next call with this key: they can't be read otherwise."""
    _keep(key, places)


def _keep(key: Any, what: Known | tuple[int, ...]) -> None:
    if len(known) >= _MOST:
        known.clear()
    known[key] = what
