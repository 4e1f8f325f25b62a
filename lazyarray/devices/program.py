"""What a kernel is made from: steps on operands, without the arrays. Two chains of one form are one program."""
from __future__ import annotations

import contextvars
import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _native
from ..errors.inspection import Unique, once_made

__all__ = ["Extent", "Operand", "Program", "Reduction", "Step", "cast_of", "extent_of", "reformed", "step_of"]


class Step(Unique):
    """What one operator does to an element; `step_of` returns the same object for each use with these dtypes.

    Its `name` is that of the device's ufunc, or of our own CUDA text; `function` does the step alone, on device arrays.
    `inputs` and `output` are the dtypes of the loop, and `scalar` makes an operand of it of a Python number. An
    `indexed` step is also given the place of its element in memory order, counted from 0: as a last argument ``at``, a
    ``long long``, in a kernel, and as an array of int64 by `function`. One that `takes` reads elements of a table, its
    first operand: where they are, its other operands say.
    """

    __slots__ = ("name", "function", "inputs", "output", "scalar", "indexed", "takes")

    def __init__(self, name: str, function: Callable[..., Any], inputs: tuple[np.dtype, ...], output: np.dtype,
                 scalar: Any = None, indexed: bool = False) -> None:
        self.name, self.function, self.inputs, self.output, self.scalar = name, function, inputs, output, scalar
        self.indexed, self.takes = indexed, name in _TAKES

    @once_made("output")
    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.inputs))}) -> {self.output}"


#: Steps that read elements of a table.
_TAKES = frozenset(("take", "take_rows", "take_along", "search_left", "search_right"))

#: Every step that was made. One object for one step, so that programs are compared by identity, which is quick.
_made: dict[tuple[Any, ...], Step] = {}


def step_of(name: str, function: Callable[..., Any], inputs: tuple[np.dtype, ...], output: np.dtype,
            scalar: Any = None, indexed: bool = False) -> Step:
    """The step with this name and these dtypes."""
    key = name, inputs, output, scalar
    found = _made.get(key)
    return _made.setdefault(key, Step(name, function, inputs, output, scalar, indexed)) if found is None else found


def cast_of(source: np.dtype, target: np.dtype) -> Step:
    """The step that makes numbers of `source` ones of `target`."""
    return step_of("astype", lambda array: array.astype(target), (source,), target, target.type)


#: Elements from which on their indexes take 64 bits.
WIDE = 1 << 31


class Operand(NamedTuple):
    """How a kernel reads an input: "flat" (the result's own order), "value" (a number), "strided"; "table": where a
    step finds the elements that it takes, in C order.
    """

    dtype: np.dtype
    mode: str


def _in_errstate(work: Callable[..., Any], *arguments: Any) -> Any:
    with np.errstate(all="ignore"):
        return work(*arguments)


def _made_quietly() -> Callable[..., Any]:
    """What calls a function without floating-point warnings.

    Before Python 3.12 the collector may run as `numpy.errstate` is entered, and a finaliser that computes, and enters
    it, too, ended the process: see `with_variable`. Its variable is found by its name, the one that NumPy 2 gives it.
    """
    if sys.version_info >= (3, 12) or _native.recording is None:
        return _in_errstate
    context = contextvars.copy_context()
    context.run(np.errstate(all="ignore").__enter__)
    found = [item for item in context.items() if item[0].name == "numpy.ufunc.extobj"]
    return functools.partial(_native.recording.with_variable, *found[0]) if found else _in_errstate


_quietly = _made_quietly()


class Program:
    """Steps over one shape.

    Each of `steps` has the numbers of its operands: first the inputs, then the results of earlier steps. `outputs` are
    the numbers of the results that are kept, `ndim` that of the shape that strided inputs are walked in (0 without
    any), `arrays` the numbers of the inputs that are arrays, and whether these are "flat"; `uses` counts how often a
    kernel was asked for at first. `kernel`: what runs it on less than `WIDE` elements, once there is one, where there
    is one device alone. `into`: the last input is no operand but memory that the output is written to, which
    other inputs may be, too, in the same place.
    """

    __slots__ = ("inputs", "steps", "outputs", "ndim", "arrays", "uses", "into", "kernel", "_hash")

    def __init__(self, inputs: tuple[Operand, ...], steps: tuple[tuple[Step, tuple[int, ...]], ...],
                 outputs: tuple[int, ...], ndim: int, into: bool = False) -> None:
        self.inputs, self.steps, self.outputs, self.ndim, self.uses = inputs, steps, outputs, ndim, 0
        self.into, self.kernel = into, None
        self.arrays = tuple([(i, mode == "flat") for i, (_, mode) in enumerate(inputs) if mode != "value"])
        self._hash = hash((inputs, steps, outputs, ndim, into))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is Program and self.steps == other.steps and self.inputs == other.inputs
            and self.outputs == other.outputs and self.ndim == other.ndim and self.into == other.into)

    def run(self, arguments: list[Any], form: tuple[tuple[int, ...], bool] | None = None, xp: Any = None) -> list[Any]:
        """The outputs, one step after another with the device's own functions.

        `form`: (shape, whether in Fortran order) that "flat" arguments are seen in, and places are counted in.

        There are no floating-point warnings, as on a GPU: the caller's `numpy.errstate` is not the one in which the
        steps were recorded, and a warning would point at another line. Calls for which an error does more than warn
        are not recorded.
        """
        return _quietly(self._run, arguments, form, xp)

    def _run(self, arguments: list[Any], form: tuple[tuple[int, ...], bool] | None, xp: Any) -> list[Any]:
        last = {}
        for position, (_, operands) in enumerate(self.steps):
            for operand in operands:
                last[operand] = position
        values = list(arguments)
        if form is not None:
            values = [reformed(value, *form) if operand.mode == "flat" else value
                      for value, operand in zip(values, self.inputs)]
        at = None
        for position, (step, operands) in enumerate(self.steps):
            taken = [values[i] for i in operands]
            if step.indexed:
                if at is None:
                    at = _places(xp, *form)     # type: ignore[misc]
                taken.append(at)
            values.append(step.function(*taken))
            del taken
            for operand in operands:    # memory of what nobody needs any more serves the next steps
                if last[operand] == position and operand not in self.outputs:
                    values[operand] = None
        return [values[i] for i in self.outputs]


def reformed(array: Any, shape: tuple[int, ...], fortran: bool) -> Any:
    """A dense device array, seen in another shape, or in Fortran order, with its elements in memory where they are."""
    if array.shape == shape and (array._f_contiguous if fortran else array._c_contiguous):
        return array
    flat = (array if array._c_contiguous else array.T).reshape(-1)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _places(xp: Any, shape: tuple[int, ...], fortran: bool) -> Any:
    """The place of each element in memory."""
    n = 1
    for length in shape:
        n *= length
    return reformed(xp.arange(n, dtype=np.dtype(np.int64)), shape, fortran)


class Reduction(NamedTuple):
    """What becomes of the elements."""

    name: str               # such as "sum"
    source: np.dtype        # of the elements
    work: np.dtype          # that they are cast to before they are combined
    result: np.dtype


class Extent(NamedTuple):
    """Elements in memory order, as an array of three dimensions whose middle one is reduced."""

    outer: int
    length: int
    inner: int


def is_slow_to_compile(name: str, dtype: np.dtype, extent: Extent) -> bool:
    """Whether the device library compiles two kernels of CUB's blocks for a reduction, each of which takes seconds.

    CuPy 14.2: where the reduced elements lie in one run, and the device-wide functions of CUB that it comes with don't
    take them (``cupy/cuda/cub.pyx``). For ``any`` that was 3.1 and 2.8 s, for the mean of truth values 2.3 and 2.9
    (CUDA 13.2, H200, 2026-11-29), and a kernel of ours 0.2 to 0.35 s.
    """
    if extent.inner > 1 or name in ("min", "max") and dtype.kind != "b" or name in ("var", "std", "norm"):
        return False
    if name in ("sum", "prod"):
        return dtype.kind == "b" or dtype.kind in "iu" and dtype.itemsize < 8 or dtype.char == "e"    # which is cast
    if name == "mean":
        return dtype.kind in "biu" or dtype.char == "e"
    return name not in ("argmin", "argmax") or dtype.kind == "b"


def extent_of(lengths: tuple[int, ...], gone: tuple[bool, ...]) -> Extent | None:
    """Axes in memory order as an extent, by which of them are reduced; None if that takes more than three."""
    joined: list[int] = []
    kinds: list[bool] = []
    for length, kind in zip(lengths, gone):
        if length == 1:
            continue
        if kinds and kinds[-1] == kind:
            joined[-1] *= length
        else:
            joined.append(length)
            kinds.append(kind)
    if sum(kinds) > 1:
        return None
    if True not in kinds:
        return Extent(joined[0] if joined else 1, 1, 1)
    at = kinds.index(True)
    return Extent(joined[0] if at else 1, joined[at], joined[-1] if at < len(joined) - 1 else 1)
