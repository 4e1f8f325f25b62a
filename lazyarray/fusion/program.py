"""What a kernel is made from: steps on operands, without the arrays. Two chains of one form are one program."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Operand", "Program", "Step", "step_of"]


class Step:
    """What one operator does to an element; `step_of` gives the same object for each use with these dtypes.

    Attributes
    ----------
    name : str
        Of the device's ufunc.
    function : callable
        Does the step alone, on device arrays.
    inputs : tuple of numpy.dtype
        Of the loop.
    output : numpy.dtype
    scalar : type or None
        What makes an operand of the loop of a Python number.
    """

    __slots__ = ("name", "function", "inputs", "output", "scalar")

    def __init__(self, name: str, function: Callable[..., Any], inputs: tuple[np.dtype, ...], output: np.dtype,
                 scalar: Any = None) -> None:
        self.name, self.function, self.inputs, self.output, self.scalar = name, function, inputs, output, scalar

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.inputs))}) -> {self.output}"


#: Every step that was made. One object for one step, so that programs are compared by identity, which is quick.
_made: dict[tuple[Any, ...], Step] = {}


def step_of(name: str, function: Callable[..., Any], inputs: tuple[np.dtype, ...], output: np.dtype,
            scalar: Any = None) -> Step:
    """The step with this name and these dtypes."""
    key = name, inputs, output, scalar
    found = _made.get(key)
    return _made.setdefault(key, Step(name, function, inputs, output, scalar)) if found is None else found


class Operand(NamedTuple):
    """How a kernel reads an input: "flat" (the result's own order), "value" (a number), "strided"."""

    dtype: np.dtype
    mode: str


class Program(NamedTuple):
    """Steps over one shape.

    Attributes
    ----------
    inputs : tuple of Operand
    steps : tuple of (Step, tuple of int)
        With the numbers of their operands: first the inputs, then the results of earlier steps.
    outputs : tuple of int
        The numbers of the results that are kept.
    ndim : int
        Of the shape that strided inputs are walked in; 0 where there is none.
    """

    inputs: tuple[Operand, ...]
    steps: tuple[tuple[Step, tuple[int, ...]], ...]
    outputs: tuple[int, ...]
    ndim: int

    def run(self, arguments: list[Any]) -> list[Any]:
        """The outputs, one step after another with the device's own functions."""
        last = {}
        for position, (_, operands) in enumerate(self.steps):
            for operand in operands:
                last[operand] = position
        values = list(arguments)
        for position, (step, operands) in enumerate(self.steps):
            values.append(step.function(*[values[i] for i in operands]))
            for operand in operands:    # memory of what nobody needs any more serves the next steps
                if last[operand] == position and operand not in self.outputs:
                    values[operand] = None
        return [values[i] for i in self.outputs]
