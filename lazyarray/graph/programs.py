"""What the computing of recorded work leaves to Python: programs that were not met before, and what no kernel does."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..devices.program import Operand, Program, Step
from ..storage.foreign_streams import partners
from .node import Leaf, Node

if TYPE_CHECKING:
    from ..devices import Device

__all__ = ["joined", "laid_out", "new_program", "programs", "unfused"]

#: The programs of chains that were computed, by their form.
programs: dict[Any, Program] = {}
_MOST_PROGRAMS = 4096


def new_program(key: tuple[Any, ...], codes: int, inputs: int) -> Program:
    """The program of a form that was not known.

    `key` has so many codes, the modes of so many inputs, the numbers of outputs, and how many axes are walked, below 0
    where the last input is what is written.
    """
    if len(programs) >= _MOST_PROGRAMS:
        programs.clear()
    dtypes: list[Any] = [None] * inputs
    steps: list[tuple[Step, list[int]]] = []
    for code in key[:codes]:
        if type(code) is Step:
            steps.append((code, []))
            continue
        step, operands = steps[-1]
        if code >= 0:
            dtypes[code] = step.inputs[len(operands)]
        operands.append(code if code >= 0 else inputs - 1 - code)
    outputs = tuple([code if code >= 0 else inputs - 1 - code for code in key[codes + inputs:-1]])
    ndim, into = (key[-1], False) if key[-1] >= 0 else (-1 - key[-1], True)
    if into:
        dtypes[-1] = steps[-1][0].output
    program = programs[key] = Program(
        (*map(Operand, dtypes, key[codes:codes + inputs]),),
        tuple([(step, tuple(operands)) for step, operands in steps]), outputs, ndim, into)
    return program


def unfused(device: Device, program: Program, arguments: list[Any], shape: tuple[int, ...], fortran: bool,
            outputs: list[Node]) -> list[Any]:
    """The arrays of these nodes, by the device's own functions one after the other."""
    return [laid_out(device, array, shape, fortran, n.dtype)
            for array, n in zip(program.run(arguments, (shape, fortran), device.xp), outputs)]


def laid_out(device: Device, array: Any, shape: tuple[int, ...], fortran: bool, dtype: np.dtype) -> Any:
    """The array in the shape and the order that were promised for it."""
    if not isinstance(array, device.array_type) or array.dtype != dtype:    # of numbers alone: a NumPy scalar
        array = array.astype(dtype) if isinstance(array, device.array_type) else device.xp.full((), array, dtype)
    if array.shape != shape:
        array = device.xp.broadcast_to(array, shape)
    if device.contiguity(array)[fortran]:
        return array
    return device.xp.asfortranarray(array) if fortran else device.xp.ascontiguousarray(array)


def joined(device: Device, sources: list[Leaf | Node], stream: Any) -> list[Any]:
    """Have the current stream wait for those that wrote these; the other streams of nodes among them.

    What such a stream wrote is read by the current one before its memory goes back there: ``device.order``.
    """
    crossed = []
    for source in sources:
        if type(source) is Leaf:
            storage = source.storage
            if storage.stream is not stream or partners:
                storage.join()
        elif source.stream is not stream and source.stream != stream:   # type: ignore[union-attr]
            crossed.append(source.stream)   # type: ignore[union-attr]
            device.wait(crossed[-1])
    return crossed
