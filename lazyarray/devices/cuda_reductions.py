"""Reductions with their elements in one kernel: which kernel, how it is launched, and with how many blocks."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .cuda_forms import VECTOR, WIDE, general, walk_size
from .cuda_kernels import Inputs, Kernels, Launcher, functions
from .cuda_reduction_source import HEAVY, THREADS, Form, source
from .cuda_source import walk_values

if TYPE_CHECKING:
    from ..fusion.program import Program
    from ..fusion.reductions import Extent, Reduction
    from . import Device

__all__ = ["Plan", "Reductions", "form_of", "plan"]

#: Blocks that a multiprocessor gets, and packs that a thread takes at least before a row is given to several blocks.
_BLOCKS, _PACKS = 8, 4
#: Rows of more packs than this take a block each, however many they are.
_LONG = 256
#: Results that several blocks may share.
_TURNS = 1 << 14
#: Bytes of what one thread keeps at most (see `cuda_combiners`).
_LARGEST = 48
#: Launches that are remembered.
_MOST = 4096
#: Streams whose counters are kept.
_STREAMS = 16
#: cudaDevAttrMultiProcessorCount
_PROCESSORS = 16


class Plan(NamedTuple):
    """How a kernel is launched: in blocks of `THREADS`."""

    form: str
    group: int      # threads along a row, or along `inner`
    high: int       # threads along the reduced axis that share a column
    splits: int     # blocks for a result
    blocks: int
    shared: int     # results that several blocks share


def plan(extent: Extent, length: int, processors: int, resident: int = _BLOCKS) -> Plan:
    """The form and the grid for an extent that is taken in packs of `length`.

    `resident`: blocks of the kernel that a multiprocessor runs at once. The form does not depend on it.
    """
    target, once = processors * _BLOCKS, processors * resident
    outer = extent.outer
    packs = -(-(extent.length if extent.inner == 1 else extent.inner) // length)
    if extent.inner == 1:
        group = _power(min(-(-packs // 2), 32))     # two packs for each thread, so that it waits for both at once
        if packs <= 32 or packs <= _LONG and outer >= 8 * target:
            return Plan("groups", group, 1, 1, min(-(-outer * group // THREADS), 8 * target), 0)
        splits = max(min(once // outer, packs // (THREADS * _PACKS)), 1)
        return Plan("blocks", THREADS, 1, splits, outer * splits, outer if splits > 1 else 0)
    # As many threads share a column as are needed to fill the device, but each has some elements.
    most = max(extent.length // _PACKS, 1)
    wanted = -(-target * THREADS // (outer * packs))
    group = _power(min(packs, 32))
    high = min(_power(min(wanted, most)), THREADS // group)
    while group * high * outer < THREADS and group < packs:
        group *= 2
    tiles = -(-packs // group)
    rows = -(-outer // (THREADS // (group * high)))
    splits = 1 if group * high < THREADS else max(min(once // (tiles * rows), most // high), 1)
    return Plan("columns", group, high, splits, tiles * rows * splits, tiles * rows if splits > 1 else 0)


def _power(n: int) -> int:
    """The least power of two that is no smaller."""
    return 1 << (n - 1).bit_length()


def pack_length(program: Program, reduction: Reduction, extent: Extent, places: list[int]) -> int:
    """Elements that a thread takes at once: up to 16 bytes, if they lie on a boundary of as many in every row."""
    sizes = [operand.dtype.itemsize for operand in program.inputs if operand.mode == "flat"]
    most = 4 if reduction.name in HEAVY else 8
    if extent.inner > 1 and reduction.name in ("var", "std"):
        most = 2
    length = min(max(VECTOR // max(sizes, default=reduction.source.itemsize), 1), most)
    along = extent.inner if extent.inner > 1 else extent.length if extent.outer > 1 else 0
    while along % length or any(place % (size * length) for place, size in zip(places, sizes)):
        length //= 2
    return length


def form_of(program: Program, reduction: Reduction, extent: Extent, places: list[int],
            walked: tuple[tuple[int, ...], bool], processors: int) -> Form:
    """The kernel for flat inputs that begin so many bytes after a multiple of 16."""
    length = pack_length(program, reduction, extent, places)
    lengths, fortran = walked
    even = bool(program.ndim) and length > 1 and not lengths[0 if fortran else -1] % length
    return Form(plan(extent, length, processors).form, length,
                extent.outer * extent.length * extent.inner >= WIDE, even)


class ReductionKernel(NamedTuple):
    """A compiled kernel."""

    launch: Launcher
    inputs: Inputs
    program: Program
    result: np.dtype
    resident: int   # blocks that a multiprocessor runs at once


def _made(cupy: Any, program: Program, reduction: Reduction, form: Form) -> ReductionKernel | None:
    text = source(program, reduction, form, cupy)
    if text is None:
        return None
    function = functions(cupy, text, ("reduce",))[0]
    resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.ptr, THREADS, 0)
    inputs = Inputs(program)
    walk = walk_size(general(program, form.wide))
    launch = Launcher(cupy, function, [*inputs.formats, *"QQQqqqiiid", *([f"{walk}s"] if walk else [])])
    return ReductionKernel(launch, inputs, program, reduction.result, max(resident, 1))


class Reductions:
    """The kernels of reductions, and the memory in which their blocks count."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels, self._cupy = kernels, kernels.cupy
        self._ndarray = kernels.cupy.ndarray
        self._plans: dict[Any, tuple[ReductionKernel, Plan]] = {}
        self._processors: dict[int, int] = {}
        self._turns: dict[Any, Any] = {}

    def get(self, device: Device, program: Program, reduction: Reduction, extent: Extent, arguments: list[Any],
            walked: tuple[tuple[int, ...], bool]) -> Callable[..., Any] | None:
        """What computes and reduces, or None: then it is being compiled, or can't be."""
        number = device.number() if device.count > 1 else 0
        flat = [array for array, operand in zip(arguments, program.inputs) if operand.mode == "flat"]
        places = [array.data.ptr % VECTOR for array in flat]
        key = program, reduction, extent, walked, number, *places
        found = self._plans.get(key)
        if found is None:
            processors = self._count(number)
            form = form_of(program, reduction, extent, places, walked, processors)
            kernel = self._kernels.find((program, reduction, form), _made)
            if kernel is None:
                return None
            grid = plan(extent, form.length, processors, kernel.resident)
            if grid.shared > _TURNS or grid.blocks >= 1 << 31:
                return None
            if len(self._plans) >= _MOST:
                self._plans.clear()
            found = self._plans[key] = kernel, grid
        return functools.partial(self._launch, device, *found, arguments, extent, walked)

    def _launch(self, device: Device, kernel: ReductionKernel, grid: Plan, arguments: list[Any], extent: Extent,
                walked: tuple[tuple[int, ...], bool], divisor: float, shape: tuple[int, ...]) -> Any:
        out = parts = turns = self._ndarray(shape, kernel.result)
        if grid.splits > 1:
            parts = self._ndarray((grid.splits * extent.outer * extent.inner * _LARGEST,), "u1")
            turns = self.counters(device)
        kernel.launch(grid.blocks, THREADS, [
            *kernel.inputs(arguments), out.data.ptr, parts.data.ptr, turns.data.ptr, *extent, grid.group, grid.high,
            grid.splits, divisor, *walk_values(kernel.program, arguments, *walked)])
        return out

    def counters(self, device: Device) -> Any:
        """Zeros, which a kernel leaves as zeros. Kernels of one stream follow one another, so it has its own."""
        stream = device.stream()
        found = self._turns.get(stream)
        if found is None:
            if len(self._turns) >= _STREAMS:
                self._turns.clear()     # the memory goes back in the order of its stream
            found = self._turns[stream] = self._cupy.zeros(_TURNS, "u4")
        return found

    def _count(self, number: int) -> int:
        found = self._processors.get(number)
        if found is None:
            found = self._processors[number] = self._cupy.cuda.runtime.deviceGetAttribute(_PROCESSORS, number)
        return found
