"""Recorded work that needs nothing of the device, done by NumPy: small arrays that a few numbers describe.

Only steps that NumPy rounds as the device does are done here, so that a value does not depend on who asked for it.
Elements are computed in the order of memory, whatever the shapes, unless something is broadcast.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import placement
from .program import Step

if TYPE_CHECKING:
    from .graph import Node

__all__ = ["value"]

#: Steps that are ufuncs of these names on either side, exact or rounded once.
_UFUNCS = frozenset("""
    absolute add bitwise_and bitwise_not bitwise_or bitwise_xor ceil conjugate divide equal fabs floor floor_divide fmax
    fmin greater greater_equal invert isfinite isinf isnan left_shift less less_equal logical_and logical_not logical_or
    logical_xor maximum minimum multiply negative not_equal positive remainder right_shift rint sign signbit sqrt square
    subtract true_divide trunc""".split())
#: Complex ones among them that are not.
_COMPLEX = frozenset({"absolute", "divide", "multiply", "sign", "sqrt", "square", "true_divide"})
#: Those that warn of whole numbers, too: of division by zero.
_DIVIDING = frozenset({"divide", "floor_divide", "remainder", "true_divide"})
#: Up to this many places are kept: to count them anew takes as long as many a step on them.
_KEPT = 1 << 15


def _replaced(array: Any, one: Any, place: Any, at: Any) -> Any:
    return np.where(at == place, one, array)


#: (what does a step on NumPy arrays, None if NumPy's value may be another one; whether it may warn of numbers).
_functions: dict[Step, tuple[Callable[..., Any] | None, bool]] = {}


def _learn(step: Step) -> tuple[Callable[..., Any] | None, bool]:
    name = step.name.removeprefix("own_")
    found: Callable[..., Any] | None = None
    if name in _UFUNCS and not (name in _COMPLEX and any(d.kind == "c" for d in step.inputs)):
        found = getattr(np, name)
    elif name == "where":
        found = np.where
    elif name == "at_place":
        found = _replaced
    elif name == "index":
        found = places
    elif name == "value":
        found = np.full
    elif name == "astype" and not (step.inputs[0].kind in "fc" and step.output.kind in "iu"):
        found = step.function       # a method, which NumPy's arrays have too
    warns = name in _DIVIDING or any(d.kind not in "biu" for d in (*step.inputs, step.output))
    known = _functions[step] = found, warns and found is not places and found is not np.full
    return known


_counted = np.empty(0, np.int64)
_int64 = np.dtype(np.int64)


def places(n: int, dtype: np.dtype = _int64) -> np.ndarray:
    """The places of so many elements, counted from 0: not to be written."""
    global _counted
    if dtype is not _int64 or n > _KEPT:
        return np.arange(n, dtype=dtype)
    if not len(_counted):
        counted = np.arange(_KEPT)
        counted.flags.writeable = False
        _counted = counted
    return _counted[:n]


def value(node: Node) -> np.ndarray | None:
    """What a node gives, where the host is to compute it, else None.

    Returns
    -------
    numpy.ndarray or None
        New, 1-D, with the elements in the order of memory.
    """
    if not placement.on_host(node.size * node.dtype.itemsize, node.steps):
        return None
    if (_functions.get(node.step) or _learn(node.step))[1]:
        with np.errstate(all="ignore"):     # as the device has it
            found = _computed(node, {}, True)
    else:
        found = _computed(node, {}, False)
    return found if found is None or found.flags.writeable else found.copy()


def _computed(node: Node, known: dict[Node, np.ndarray], silent: bool) -> np.ndarray | None:
    """The value of a node, 1-D; `silent`: floating-point warnings are off."""
    if node.array is not None:      # on the device by now
        return None
    step, size, own = node.step, node.size, type(node)
    function, warns = _functions.get(step) or _learn(step)
    if function is places:
        found = places(size, step.output)
    elif function is np.full:
        found = np.full(size, node.operands[0], step.output)
    elif function is None:
        return None
    else:
        taken, alone = [], True
        for operand in node.operands:
            if type(operand) is own:
                array = known.get(operand)
                if array is None:
                    array = _computed(operand, known, silent)
                    if array is None:
                        return None
                taken.append(array)
                alone = False
            elif isinstance(operand, np.generic):
                taken.append(operand)
            else:
                return None     # bytes that are on the device
        if step.indexed:
            taken.append(places(size))
        if node.strided:
            taken = _along(node, taken)
        if silent or not (warns or alone):      # single integers warn, too
            found = function(*taken)
        else:
            with np.errstate(all="ignore"):
                found = function(*taken)
        if found.dtype != step.output:
            return None
        if node.strided:
            found = np.broadcast_to(found, node.shape).ravel("F" if node.fortran else "C")
        elif found.size != size:        # of numbers alone
            found = np.full(size, found, step.output)
    known[node] = found
    return found


def _along(node: Node, taken: list[Any]) -> list[Any]:
    """The operands of a step of which some are broadcast, in their shapes."""
    shape = node.shape
    found = []
    for array, operand in itertools.zip_longest(taken, node.operands):
        if not isinstance(array, np.ndarray):
            found.append(array)
        elif array.size != node.size:
            found.append(array.reshape(operand.shape))
        else:
            found.append(array.reshape(shape[::-1]).T if node.fortran else array.reshape(shape))
    return found
