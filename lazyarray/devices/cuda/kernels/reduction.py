"""Reductions with their elements in one kernel: which kernel, how it is launched, and with how many blocks."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .... import _native
from ....errors.inspection import Unique
from ....errors.interrupts import holding
from ...program import is_slow_to_compile
from .elementwise import THEIRS, Inputs, Kernels, Launcher, functions
from .elementwise_source import walk_values
from .launch_plan import VECTOR, WIDE, general, walk_size
from .reduction_source import HEAVY, THREADS, Form, source

if TYPE_CHECKING:
    from ...program import Extent, Program, Reduction

__all__ = ["Plan", "Ready", "Reductions", "form_of", "plan"]

#: Blocks that a multiprocessor gets, and packs that a thread takes at least before a row is given to several blocks.
_BLOCKS, _PACKS = 8, 4
#: Rows of more packs than this take a block each, however many they are.
_LONG = 256
#: Results that several blocks may share.
_TURNS = 1 << 14
#: Their counters' bytes, and the bytes after them for the blocks' parts; larger parts have memory of their own.
_OFFSET, _ROOM = 4 * _TURNS, 1 << 20
#: Bytes of what one thread keeps at most (see `reduction_ops`).
_LARGEST = 48
#: Launches that are remembered.
_MOST = 4096
#: Streams whose counters are kept.
_STREAMS = 16
#: cudaDevAttrMultiProcessorCount
_PROCESSORS = 16
_BYTE = np.dtype(np.uint8)


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

    function: Any
    launch: Launcher
    inputs: Inputs
    result: np.dtype
    resident: int   # blocks that a multiprocessor runs at once
    walk: int       # bytes of its last parameter, 0 if it has none


def _made(cupy: Any, program: Program, reduction: Reduction, form: Form) -> ReductionKernel | None:
    text = source(program, reduction, form, cupy)
    if text is None:
        return None
    function = functions(cupy, text, ("reduce",))[0]
    resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.ptr, THREADS, 0)
    inputs = Inputs(program)
    walk = walk_size(general(program, form.wide))
    launch = Launcher(cupy, function, [*inputs.formats, *"QQQqqqiiid", *([f"{walk}s"] if walk else [])])
    return ReductionKernel(function, launch, inputs, reduction.result, max(resident, 1), walk)


class Ready(Unique):
    """A kernel, and all of a launch that does not change from one call to the next."""

    def __init__(self, owner: Reductions, kernel: ReductionKernel, grid: Plan, extent: Extent, walk: bytes) -> None:
        self._owner, self._kernel, self._blocks, self._shared = owner, kernel, grid.blocks, grid.splits > 1
        self._parts = grid.splits * extent.outer * extent.inner * _LARGEST if self._shared else 0
        self._rest = *extent, grid.group, grid.high, grid.splits
        self._walk = [walk] if walk else []

    def in_c(self) -> Any:
        """The same in C, or itself where that is not there."""
        owner, kernel, launch = self._owner, self._kernel, _native.launch
        function, sizes = kernel.function, kernel.inputs.sizes
        if owner.driver is None or launch is None or len(sizes) > launch.MOST - launch.AFTER:
            return self
        return launch.Reduction(
            function.ptr, owner.driver.launch, function, owner.cupy.ndarray, owner.cupy.cuda.get_current_stream,
            sizes, kernel.result, self._blocks, THREADS, self._rest, _OFFSET,
            (self._parts,) if self._parts > _ROOM else None, _BYTE, owner.turns if self._shared else None,
            b"".join(self._walk).ljust(kernel.walk, b"\0"), self)

    def __call__(self, arguments: list[Any], divisor: float, shape: tuple[int, ...], stream: Any) -> Any:
        ndarray, kernel = self._owner.cupy.ndarray, self._kernel
        out: Any = ndarray(shape, kernel.result)
        parts: Any = out        # a kernel whose blocks share no result looks at neither of these
        turns: Any = out
        if self._shared:
            turns = self._owner.counters(stream)
            parts = ndarray((self._parts,), _BYTE) if self._parts > _ROOM else turns.data.ptr + _OFFSET
        kernel.launch(self._blocks, THREADS, [*kernel.inputs(arguments), out, parts, turns, *self._rest, divisor,
                                              *self._walk])
        return out


def _theirs(reduction: Reduction, extent: Extent) -> int:
    """How long CUDA's compiler takes for CuPy's kernels for a reduction, as `THEIRS`."""
    if is_slow_to_compile(reduction.name, reduction.source, extent):
        return 40 * THEIRS
    several = reduction.name in ("var", "std", "norm", "argmin", "argmax") and reduction.source.kind in "fc"
    return 3 * THEIRS if several else THEIRS if extent.inner > 1 else 0


class Reductions(Unique):
    """The kernels of reductions, and the memory in which their blocks count.

    `turns`: stream -> zeros, which a kernel leaves as zeros, and after them `_ROOM` bytes for what its blocks have of a
    result. Kernels of one stream follow one another, so it has its own.
    """

    def __init__(self, kernels: Kernels, count: int) -> None:
        self._kernels, self.cupy, self.driver = kernels, kernels.cupy, kernels.driver
        self._several = count > 1
        self._ready: dict[Any, Callable[..., Any]] = {}
        self._processors: dict[int, int] = {}
        self.turns: dict[Any, Any] = {}
        self._lock = threading.RLock()      # a finaliser that runs within may reduce, too

    def get(self, program: Program, reduction: Reduction, extent: Extent, arguments: list[Any],
            walked: tuple[tuple[int, ...], bool], known: bool = False) -> Callable[..., Any] | None:
        """What computes and reduces, or None: then it is being compiled, or can't be."""
        number = self.cupy.cuda.runtime.getDevice() if self._several else 0
        layout: list[Any] = [program, reduction, extent, walked, number]
        for i, flat in program.arrays:
            array = arguments[i]
            if flat:
                layout.append(array.data.ptr % VECTOR)
            else:
                layout.append(array.shape)
                layout.append(array.strides)
        key = tuple(layout)
        found = self._ready.get(key)
        if found is None:
            found = self._prepared(program, reduction, extent, arguments, walked, number, known)
            if found is not None:
                if len(self._ready) >= _MOST:
                    self._ready.clear()
                self._ready[key] = found
        return found

    def _prepared(self, program: Program, reduction: Reduction, extent: Extent, arguments: list[Any],
                  walked: tuple[tuple[int, ...], bool], number: int, known: bool) -> Callable[..., Any] | None:
        processors = self._count(number)
        places = [arguments[i].data.ptr % VECTOR for i, flat in program.arrays if flat]
        form = form_of(program, reduction, extent, places, walked, processors)
        kernels = self._kernels
        done = reduction, extent.inner > 1
        now = not known and kernels.pays(program, done, _theirs(reduction, extent))
        kernel = kernels.find((program, reduction, form), _made, now)
        if kernel is None:
            kernels.unfused(program, done)
            return None
        grid = plan(extent, form.length, processors, kernel.resident)
        if grid.shared > _TURNS or grid.blocks >= 1 << 31:
            return None
        return Ready(self, kernel, grid, extent, b"".join(walk_values(program, arguments, *walked))).in_c()

    def counters(self, stream: Any) -> Any:
        """Those of a stream, the same for all threads. The caller holds them until the launch is over.

        They may be forgotten at any time, and then their memory goes back in the order of the stream.
        """
        found = self.turns.get(stream)
        if found is None:
            with holding(self._lock):
                found = self.turns.get(stream)
                if found is None:
                    if len(self.turns) >= _STREAMS:
                        self.turns.clear()
                    found = self.turns.setdefault(stream, self.cupy.zeros(_OFFSET + _ROOM, "u1"))
        return found

    def _count(self, number: int) -> int:
        found = self._processors.get(number)
        if found is None:
            found = self._processors[number] = self.cupy.cuda.runtime.deviceGetAttribute(_PROCESSORS, number)
        return found
