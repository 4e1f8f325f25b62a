"""Recording of the calls of ufuncs that need not be computed now.

What may be recorded is decided by tables that the general way fills (`remember`): a call is recorded once NumPy's loop
for its dtypes is known to be the device's own. Everything that could tell recorded work from work done at once, errors
included, is left to the general way.
"""
from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from . import views, wrap
from .fusion.graph import LARGE, MOST_STEPS, Leaf, Node, note_large, note_readers
from .fusion.program import Step, step_of
from .loans import all_ended
from .options import current as current_options
from .storage import Storage

__all__ = ["STEPS", "quick", "remember"]

#: (ufunc, dtypes of the operands, or the type of a Python number) -> Step.
STEPS: dict[Any, Step] = {}

_python_numbers = frozenset({int, float, complex})


def remember(ufunc: np.ufunc, kinds: tuple[Any, ...], name: str, function: Any, dtypes: tuple[np.dtype, ...]) -> None:
    """Note a call whose operands and result need no cast."""
    inputs, output = dtypes[:-1], dtypes[-1]
    scalar = next((dtype.type for kind, dtype in zip(kinds, inputs) if kind in _python_numbers), None)
    STEPS[(ufunc, *kinds)] = step_of(name, function, tuple(inputs), output, scalar)


def quick(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """The result of a plain call, recorded, or None if it can't be."""
    least = current_options().defer_from
    if least is None:
        return None
    array_type, scalar_type = wrap._array_type, wrap._scalar_type
    for x in inputs:
        if type(x) is array_type and ((array := x._self_array) is None or array.nbytes >= least):
            break
    else:
        return None     # small operands only: most calls, most often
    kinds: list[Any] = [ufunc]
    operands: list[Any] = []
    shapes: list[Any] = []
    device: Any = None
    steps, large = 1, ()
    for x in inputs:
        kind = type(x)
        if kind is array_type:
            storage = x._self_storage
            node = storage.pending
            if node is not None:
                if x._self_outline is not storage._root_view:
                    return None
                kinds.append(node.step.output)
                operands.append(node)
                steps += node.steps
                if node.large:
                    large = (*large, *node.large)
                shapes.append(node.shape)
            else:
                array = x._self_array
                if array is None and storage.quiet and x._self_outline is storage._root_view:
                    array = x._self_array = storage.root
                if array is None or not storage.quiet or storage.foreign or (
                        storage.loans and not all_ended(storage)):
                    return None
                kinds.append(array.dtype)
                operands.append(Leaf(array, storage, "flat"))
                shapes.append(array.shape)
                if array.nbytes >= LARGE:
                    large = (*large, storage)
            device = storage.device
        elif kind in _python_numbers:
            kinds.append(kind)
            operands.append(x)
        elif kind is scalar_type:
            value = x._self_value
            if value is None:
                storage, array = x._self_storage, x._self_array
                if array is None or not storage.quiet:
                    return None
                kinds.append(array.dtype)
                operands.append(Leaf(array, storage, "strided"))
            else:
                kinds.append(value.dtype)
                operands.append(value)
        else:
            return None
    step = STEPS.get(tuple(kinds))
    if step is None or not shapes:
        return None
    shape = shapes[0]
    if len(shapes) == 2 and shapes[1] != shape:
        shape = _broadcast(shape, shapes[1])
    if not shape or math.prod(shape) * step.output.itemsize < least or 0 in shape:
        return None
    fortran = _layout(device, operands, shape)
    if fortran is None:
        return None
    if step.scalar is not None:
        for i, operand in enumerate(operands):
            if type(operand) in _python_numbers:
                try:
                    operands[i] = step.scalar(operand)
                except OverflowError:       # beyond the dtype: compared by value, or refused
                    return None
    if steps > MOST_STEPS:
        longest = max((o for o in operands if type(o) is Node), key=lambda node: node.steps)
        longest.compute()
        return None
    return _recorded(
        device, Node(device, step, tuple(operands), shape, fortran, steps, frozenset(large) if large else ()))


def _recorded(device: Any, node: Node) -> Any:
    """The lazy array of a node."""
    storage = Storage(device, None)
    outline = views.outline(node.shape, node.step.output, order="F" if node.fortran else "C")
    storage.pending, storage.quiet, storage._root_view = node, False, outline
    node.storage = weakref.ref(storage)
    note_readers(node)
    if node.large:
        note_large(node)
    return wrap.new_array(storage, outline)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
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


def _layout(device: Any, operands: list[Any], shape: tuple[int, ...]) -> bool | None:
    """Whether the result is Fortran-contiguous, as NumPy's "K" order has it; None if it is neither that nor C.

    Sets how a kernel reads each leaf.
    """
    one_c = one_f = False
    for operand in operands:
        if type(operand) is Node:
            if operand.shape != shape:
                if operand.fortran:
                    return None
            elif operand.fortran:
                one_f = True
            elif len(shape) > 1:
                one_c = True
        elif type(operand) is Leaf and operand.mode == "flat":
            array = operand.array
            c, f = device.contiguity(array)
            if array.shape != shape:
                if not c:
                    return None
                operand.mode = "strided"
            elif c and f:
                pass
            elif c:
                one_c = True
            elif f:
                one_f = True
            else:
                return None
    if one_c and one_f:
        return None
    return one_f
