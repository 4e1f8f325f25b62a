"""Recording of the calls of ufuncs that need not be computed now.

Everything that could tell recorded work from work done at once, errors included, is left to the general way.
"""
from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from . import views, wrap
from .fusion.graph import Node, note_large, note_readers
from .options import current as current_options
from .recording_operands import Operands
from .recording_steps import rule_of
from .storage import Storage

__all__ = ["quick", "recorded"]


def quick(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """The result of a plain call, recorded, or None if it can't be."""
    least = current_options().defer_from
    if least is None:
        return None
    array_type = wrap._array_type
    for x in inputs:
        if type(x) is array_type and ((array := x._self_array) is None or array.nbytes >= least):
            break
    else:
        return None     # small operands only: most calls, most often
    given = Operands()
    for x in inputs:
        if not given.add(x):
            return None
    rule = rule_of((ufunc, *given.kinds))
    if rule is None:
        return None
    if rule.choose is not None:
        rule = rule.choose(given.items[1] if given.outlines[1] is None else None)
        if rule is None:
            return None
        given.keep(len(rule.scalars))
    if not given.settle(rule.casts, rule.scalars, rule.step.output.itemsize, least):
        return None
    return recorded(given, given.made(rule.step, tuple(given.items)))


def recorded(given: Operands, node: Node) -> Any:
    """The lazy array of a new node."""
    storage = Storage(node.device, None)
    outline = views.outline(node.shape, node.step.output, order="F" if node.fortran else "C")
    storage.pending, storage.quiet, storage._root_view = node, False, outline
    node.storage = weakref.ref(storage)
    for made in given.nodes:
        note_readers(made)
    if node.large:
        note_large(node)
    order = given.result.order
    if order is not None:
        outline = outline.transpose(np.argsort(order))
    return wrap.new_array(storage, outline)
