"""Recorded work that needs nothing of the device, done by NumPy: small arrays that a few numbers describe.

Only steps that NumPy rounds as the device does are done here, so that a value does not depend on who asked for it.
"""
from __future__ import annotations

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


def _replaced(array: Any, one: Any, place: Any, at: Any) -> Any:
    return np.where(at == place, one, array)


_functions: dict[Step, Callable[..., Any] | None] = {}


def _function(step: Step) -> Callable[..., Any] | None:
    """What does a step on NumPy arrays; None if NumPy's value may be another one."""
    try:
        return _functions[step]
    except KeyError:
        pass
    name = step.name.removeprefix("own_")
    found: Callable[..., Any] | None = None
    if name in _UFUNCS and not (name in _COMPLEX and any(d.kind == "c" for d in step.inputs)):
        found = getattr(np, name)
    elif name == "where":
        found = np.where
    elif name == "at_place":
        found = _replaced
    elif name == "astype" and not (step.inputs[0].kind in "fc" and step.output.kind in "iu"):
        found = step.function       # a method, which NumPy's arrays have too
    _functions[step] = found
    return found


def value(node: Node) -> np.ndarray | None:
    """What a node gives, where the host is to compute it, else None.

    Returns
    -------
    numpy.ndarray or None
        New, and dense, in the shape and the order of the node.
    """
    if not placement.on_host(node.size * node.dtype.itemsize, node.steps):
        return None
    with np.errstate(all="ignore"):     # as the device has it
        return _computed(node, {})


def _computed(node: Node, known: dict[Node, np.ndarray]) -> np.ndarray | None:
    found = known.get(node)
    if found is not None:
        return found
    if node.array is not None:      # on the device by now
        return None
    step, shape, fortran = node.step, node.shape, node.fortran
    if step.name == "index":
        found = _reformed(np.arange(node.size, dtype=step.output), shape, fortran)
    elif step.name == "value":
        found = np.full(shape, node.operands[0], step.output, "F" if fortran else "C")
    else:
        function = _function(step)
        if function is None:
            return None
        taken = []
        for operand in node.operands:
            if type(operand) is type(node):
                array = _computed(operand, known)
                if array is None:
                    return None
                taken.append(_reformed(array, shape, fortran) if operand.size == node.size else array)
            elif isinstance(operand, np.generic):
                taken.append(operand)
            else:
                return None     # bytes that are on the device
        if step.indexed:
            taken.append(_reformed(np.arange(node.size), shape, fortran))
        found = np.asarray(function(*taken))
        if found.dtype != step.output:
            return None
        if found.shape != shape:        # of one number
            found = np.full(shape, found, step.output, "F" if fortran else "C")
        elif not (found.flags.f_contiguous if fortran else found.flags.c_contiguous):
            found = np.asarray(found, order="F" if fortran else "C")
    known[node] = found
    return found


def _reformed(array: np.ndarray, shape: tuple[int, ...], fortran: bool) -> np.ndarray:
    """A dense array, seen in another shape or order, with its elements in memory where they are."""
    flags = array.flags
    if array.shape == shape and (flags.f_contiguous if fortran else flags.c_contiguous):
        return array
    flat = (array if flags.c_contiguous else array.T).reshape(-1)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)
