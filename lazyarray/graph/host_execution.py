"""Recorded work that needs nothing of the device, done by NumPy: small arrays that a few numbers describe.

Only steps that NumPy rounds as the device does are done here, so that a value does not depend on who asked for it.
Elements are computed in the order of memory, whatever the shapes, unless something is broadcast.
"""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..devices.program import Step
from . import cost_model

__all__ = ["functions", "learn", "places", "value"]

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
#: Up to this many places are kept, and ways to see the first of them: to count them anew takes as long as many a step.
_KEPT, _MOST = 1 << 15, 4096
_int64 = np.dtype(np.int64)


class Places(dict[int, np.ndarray]):
    """The places of so many elements, counted from 0 in one dtype, by their number: not to be written."""

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype, self._counted = dtype, np.empty(0, dtype)

    def __missing__(self, n: int) -> np.ndarray:
        if n > _KEPT:
            return np.arange(n, dtype=self._dtype)
        if not len(self._counted):
            counted = np.arange(_KEPT, dtype=self._dtype)
            counted.flags.writeable = False
            self._counted = counted
        if len(self) >= _MOST:
            self.clear()
        found = self[n] = self._counted[:n]
        return found


#: What steps are given that ask for the place of their element.
places = Places(_int64)
#: Of the dtypes of steps that are places.
_places: dict[np.dtype, Places] = {_int64: places}


def _filled(n: int, value: Any, dtype: np.dtype) -> np.ndarray:
    """A new array of one value: `numpy.full` for what needs no cast."""
    array = np.empty(n, dtype)
    array.fill(value)
    return array


def _replaced(array: Any, one: Any, place: Any, at: Any) -> Any:
    return np.where(at == place, one, array)


def _clipped(array: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(array, low), high)


_OTHERS = {"where": np.where, "clip": _clipped, "at_place": _replaced, "value": _filled}

#: (what does a step on NumPy arrays, None if NumPy's value may be another one; whether it may warn of numbers).
functions: dict[Step, tuple[Any, bool]] = {}


def learn(step: Step) -> tuple[Any, bool]:
    """What `functions` has for a step, found out now."""
    name = step.name.removeprefix("own_")
    found: Any
    if name in _UFUNCS and not (name in _COMPLEX and any(d.kind == "c" for d in step.inputs)):
        found = getattr(np, name)
    elif name == "index":
        found = _places.setdefault(step.output, Places(step.output))
    elif name == "astype" and not (step.inputs[0].kind in "fc" and step.output.kind in "iu"):
        found = step.function       # a method, which NumPy's arrays have too
    else:
        found = _OTHERS.get(name)
    warns = name in _DIVIDING or any(d.kind not in "biu" for d in (*step.inputs, step.output))
    known = functions[step] = found, warns and type(found) is not Places and found is not _filled
    return known


def value(node: Any) -> np.ndarray | None:
    """What a node gives, where the host is to compute it, else None.

    Parameters
    ----------
    node : Node
        One that is `described`.

    Returns
    -------
    numpy.ndarray or None
        New, 1-D, with the elements in the order of memory.
    """
    if node.size * node.dtype.itemsize > cost_model.most_on_host(node.steps):
        return None
    if (functions.get(node.step) or learn(node.step))[1]:
        with np.errstate(all="ignore"):     # as the device has it
            found = _computed(node, {}, True)
    else:
        found = _computed(node, {}, False)
    return found if found is None or found.flags.writeable else found.copy()


def _computed(node: Any, known: dict[Any, np.ndarray], silent: bool) -> np.ndarray | None:
    """The value of a node, 1-D; `silent`: floating-point warnings are off."""
    if node.array is not None:      # on the device by now
        return None
    step, size, kind = node.step, node.size, type(node)
    function, warns = functions.get(step) or learn(step)
    if type(function) is Places:
        found = function[size]
    elif function is _filled:
        found = _filled(size, node.operands[0], step.output)
    elif function is None:
        return None
    else:
        taken, alone = [], True
        for operand in node.operands:
            if type(operand) is kind:
                array = known.get(operand)
                if array is None:
                    array = _computed(operand, known, silent)
                    if array is None:
                        return None
                taken.append(array)
                alone = False
            else:
                taken.append(operand)
        if step.indexed:
            taken.append(places[size])
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
            found = (found if found.shape == node.shape else np.broadcast_to(found, node.shape)).ravel(
                "F" if node.fortran else "C")
        elif found.size != size:        # of numbers alone
            found = _filled(size, found, step.output)
    known[node] = found
    return found


def _along(node: Any, taken: list[Any]) -> list[Any]:
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
