"""How a kernel walks its elements: chosen when it is launched, from the strides and addresses that are there.

Each form is a kernel of its own, and all give the same bits. A thread takes several packs of neighbours, of 16 bytes
where addresses allow, else of one element; the packs of a thread are a block apart, so that what the threads of a block
load together lies together.
"""
from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...program import WIDE

if TYPE_CHECKING:
    from ...program import Program

__all__ = ["THREADS", "VECTOR", "WIDE", "Form", "Plan", "collapsed", "dtype_of", "general", "packed", "plan",
           "vector_length", "walk_bytes", "walk_size"]

#: Bytes that a thread loads at once.
VECTOR = 16
#: Of a block. 128 threads with two packs each keep an H200's memory busiest: 1.00 of a copy's rate for a softplus of
#: float32 (256 threads: 0.98; one pack each: 0.95 and 0.91; four packs: 0.96; blocks that stay and loop: 0.86).
THREADS = 128
#: Tiles of a block: rows, columns, threads. Those that go through shared memory to be transposed, the larger for large
#: arrays (sums with a transposed matrix, of a copy's rate: float16 0.78, 0.64 with the smaller; float32 0.96, 0.92).
_SQUARES = (64, 64, 512), (32, 32, 256)
#: Rows one below the other, for programs with so many inputs that may be views of one array: what stencils read in
#: neighbouring rows comes from the multiprocessor's own cache.
_ROWS = 8, 128, 128
_STENCIL = 3
#: Shared memory of a block, in bytes, that needs no asking for.
_SHARED = 48 << 10
#: Packs of a thread, and single elements. What is repeated takes time to compile: programs of so many steps have half
#: of it, and those with complex numbers, whose functions are long, a quarter.
_UNITS = 2
_SINGLES = 8
_LONG = 12


class Form(NamedTuple):
    """How a kernel walks.

    Each input is read as a "value" (a number), a "table" (by a step), "flat" (in the result's own order), or strided:
    "same" for neighbours, "along" (neighbours are neighbours), "any", "tile" (neighbours are in the next row: it goes
    through shared memory).
    """

    reads: tuple[str, ...]
    ndim: int       # axes of the walk; 0 without strided inputs
    pack: int       # elements that are loaded at once
    units: int      # packs of a thread
    wide: bool      # indexes take 64 bits
    #: For each input, the first input with the same strides, whose walk it shares. Empty if each has its own.
    walks: tuple[int, ...] = ()
    #: Rows and columns of a block that takes a tile of the last two axes, or of others, and its threads; else empty.
    tile: tuple[int, ...] = ()

    @property
    def walkers(self) -> list[int]:
        """The strided inputs that have a walk of their own."""
        return [i for i, read in enumerate(self.reads)
                if read not in ("value", "table", "flat") and (not self.walks or self.walks[i] == i)]

    @property
    def takes_alignment(self) -> bool:
        """Whether the kernel is told if addresses allow packs: it does without, then, though not as quickly."""
        return self.pack > 1 and not self.ndim

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.tile[2] if self.tile else THREADS

    @property
    def elements(self) -> int:
        """Of a block."""
        return self.threads * self.pack * self.units


class Plan(NamedTuple):
    """A form, the value of its parameter ``w`` (a `Walk`; empty if it has none) and the blocks that it takes."""

    form: Form
    walk: bytes
    blocks: int


def dtype_of(program: Program, number: int) -> np.dtype:
    """The dtype of an operand by its number."""
    count = len(program.inputs)
    return program.inputs[number].dtype if number < count else program.steps[number - count][0].output


def vector_length(program: Program) -> int:
    """Elements that a thread takes at once."""
    sizes = [operand.dtype.itemsize for operand in program.inputs if operand.mode != "value"]
    sizes += [dtype_of(program, number).itemsize for number in program.outputs]
    return max(VECTOR // max(sizes), 1)


def packed(program: Program, reads: tuple[str, ...], ndim: int, wide: bool) -> Form:
    """The form that loads packs."""
    pack = vector_length(program)
    return Form(reads, ndim, pack, _repeated(program, _UNITS), wide)


def general(program: Program, wide: bool, reads: tuple[str, ...] = (), ndim: int = -1) -> Form:
    """The form that takes any strides and addresses."""
    reads = reads or tuple(["any" if operand.mode == "strided" else operand.mode for operand in program.inputs])
    if ndim < 0:
        ndim = max(program.ndim, 1) if "any" in reads else 0
    return Form(reads, ndim, 1, _repeated(program, _SINGLES), wide)


def _repeated(program: Program, most: int) -> int:
    """How often the text of a program is repeated."""
    if any(step.output.kind == "c" or "c" in [dtype.kind for dtype in step.inputs] for step, _ in program.steps):
        return max(most // 4, 1)
    return max(most // 2, 1) if len(program.steps) >= _LONG else most


def collapsed(shape: list[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Shape and strides with the axes joined that all strided inputs walk as one."""
    lengths: list[int] = []
    joined: list[list[int]] = [[] for _ in strides]
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        if lengths and all(axes[-1] == s[axis] * length for axes, s in zip(joined, strides)):
            lengths[-1] *= length
            for axes, s in zip(joined, strides):
                axes[-1] = s[axis]
        else:
            lengths.append(length)
            for axes, s in zip(joined, strides):
                axes.append(s[axis])
    if not lengths:
        return [1], [[0] for _ in strides]
    return lengths, joined


def plan(program: Program, shape: list[int], strides: list[list[int]], aligned: list[bool]) -> Plan:
    """The best form for a program with strided inputs.

    `shape` and the `strides` of strided inputs, in bytes, are in the result's memory order. `aligned`, for each input:
    whether it begins at a multiple of `VECTOR`.
    """
    strided = [i for i, operand in enumerate(program.inputs) if operand.mode == "strided"]
    target = len(program.inputs) - 1 if program.into else -1
    lengths, joined = collapsed(shape, strides)
    size, ndim, last = math.prod(lengths), len(lengths), lengths[-1]
    wide = size >= WIDE
    pack = vector_length(program)
    sizes = [program.inputs[i].dtype.itemsize for i in strided]
    reads = [operand.mode for operand in program.inputs]
    for i, axes, itemsize in zip(strided, joined, sizes):
        kind = "same" if axes[-1] == 0 else "along" if axes[-1] == itemsize else "any"
        if i == target and size == 1:
            kind = "along"
        reads[i] = "flat" if kind == "along" and ndim == 1 else kind
    kept = [(i, axes) for i, axes in zip(strided, joined) if reads[i] != "flat"]
    whole = ndim == 1 or last % pack == 0
    packs = whole and "any" not in reads and all(
        aligned[i] for i, read in enumerate(reads) if read in ("flat", "along", "table")) and all(   # as in C
        stride % (pack * program.inputs[i].dtype.itemsize) == 0
        for i, axes in kept if reads[i] == "along" for stride in axes[:-1])
    if not kept:    # all lie as the result does
        ndim = 0
    if packs:
        form = packed(program, tuple(reads), ndim, wide)
    else:
        found = _tile(program, lengths, kept)
        if found is not None:
            return _tiled(program, lengths, kept, reads, *found, wide)
        form = general(program, wide, tuple(reads), ndim)
    walks, own = _shared(reads, kept)
    form = form._replace(walks=walks)
    return Plan(form, walk_bytes(lengths, own, wide) if kept else b"", -(-size // form.elements))


def _shared(reads: list[str], kept: list[tuple[int, list[int]]]) -> tuple[tuple[int, ...], list[list[int]]]:
    """`Form.walks`, and the strides of those that have a walk of their own."""
    first: dict[Any, int] = {}
    walks = list(range(len(reads)))
    for i, axes in kept:
        walks[i] = first.setdefault((reads[i], *axes), i)
    own = [axes for i, axes in kept if walks[i] == i]
    return tuple(walks) if len(own) < len(kept) else (), own


def walk_bytes(lengths: list[int], strides: list[list[int]], wide: bool) -> bytes:
    """The value of a `Walk`: the strides in bytes of each input, and the lengths but the first.

    With each length goes what turns the division by it into a product, for dividends below 2 ** 31.
    """
    numbers = [stride for axes in strides for stride in axes]
    if wide:
        numbers += lengths[1:]
        return struct.pack(f"={len(numbers)}q", *numbers)
    divisors: list[int] = []
    for length in lengths[1:]:
        shift = (length - 1).bit_length()
        divisors += [length, ((1 << 32) * ((1 << shift) - length)) // length + 1, shift]
    text = struct.pack(f"={len(numbers)}q{len(divisors)}I", *numbers, *divisors)
    return text + bytes(-len(text) % 8)


def walk_size(form: Form) -> int:
    """The bytes of a form's walk, 0 if it has none."""
    if not form.ndim:
        return 0
    strided = len(form.walkers)
    if form.tile:
        return 8 * (3 * strided + 6)
    return 8 * strided * form.ndim + (8 if form.wide else 12) * (form.ndim - 1) + 7 & -8


def _tile(program: Program, lengths: list[int],
          kept: list[tuple[int, list[int]]]) -> tuple[int, tuple[int, ...]] | None:
    """The axis whose places are the rows of tiles, and their form; None if tiles are of no use."""
    if not 2 <= len(lengths) <= 3:
        return None
    if program.into:        # it is not read
        kept = [(i, axes) for i, axes in kept if i != len(program.inputs) - 1]
    columns = lengths[-1]
    for axis in range(len(lengths) - 2, -1, -1):
        sizes = [program.inputs[i].dtype.itemsize for i, axes in kept if _lies_along(axes, axis, program, i)]
        if sizes:
            for side, *rest in _SQUARES:
                # The smaller ones pay from half a tile on, the larger ones where there are many.
                least = 2 * side if side == _SQUARES[0][0] else side // 2
                if min(lengths[axis], columns) >= least and sum(sizes) * side * (side + 1) <= _SHARED:
                    return axis, (side, *rest)
            return None
    if sum(bool(axes[-1] and axes[-2]) for _, axes in kept) < _STENCIL:
        return None
    height, width, _ = _ROWS
    rows = lengths[-2]
    filled = rows * columns / (-(-rows // height) * height * -(-columns // width) * width)
    return (len(lengths) - 2, _ROWS) if filled >= 0.8 else None


def _lies_along(axes: list[int], axis: int, program: Program, i: int) -> bool:
    """Whether an input that is not read along the last axis is read along this one."""
    itemsize = program.inputs[i].dtype.itemsize
    return axes[axis] == itemsize and axes[-1] not in (0, itemsize)


def _tiled(program: Program, lengths: list[int], kept: list[tuple[int, list[int]]], reads: list[str], row: int,
           tile: tuple[int, ...], wide: bool) -> Plan:
    """The plan with tiles of the axis `row` and the last one; what axis is left is walked tile by tile."""
    height, width, threads = tile
    reads = ["any" if read in ("same", "along") else read for read in reads]
    for i, axes in kept:
        if tile != _ROWS and _lies_along(axes, row, program, i) and not (program.into and i == len(reads) - 1):
            reads[i] = "tile"
    rows, columns = lengths[row], lengths[-1]
    rest = [axis for axis in range(len(lengths) - 1) if axis != row]
    outer = rest[0] if rest else None
    batches = 1 if outer is None else lengths[outer]
    elements = [math.prod(lengths[axis + 1:]) for axis in range(len(lengths))]
    walks, own = _shared(reads, kept)
    numbers = [stride for axes in own for stride in (0 if outer is None else axes[outer], axes[row], axes[-1])]
    down, across = -(-rows // height), -(-columns // width)
    numbers += [0 if outer is None else elements[outer], elements[row], rows, columns, down, across]
    units = height * width // threads
    form = Form(tuple(reads), 3, 1, units, wide, walks, tile)
    return Plan(form, struct.pack(f"={len(numbers)}q", *numbers), batches * down * across)
