"""Kernels that compute elements and reduce them: their CUDA source, and how they are launched.

There are three forms, for an array of (outer, length, inner) elements whose middle axis is reduced:

- "groups": `inner` is 1 and rows are short. Up to 32 threads of one warp take a row.
- "blocks": `inner` is 1 and rows are long. A block takes a row, or several blocks a part of it each.
- "columns": threads go along `inner`, and blocks share the reduced axis.

Where several blocks have parts of one result, the last to finish joins them, always in the same order.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .cuda_combiners import combiner
from .cuda_forms import VECTOR, WIDE, general, walk_size
from .cuda_kernels import Inputs, Kernels, Launcher, functions
from .cuda_snippets import type_of
from .cuda_source import body, walk_values

if TYPE_CHECKING:
    from ..fusion.program import Program
    from ..fusion.reductions import Extent, Reduction
    from . import Device

__all__ = ["Reductions", "source"]

#: Of a block.
THREADS = 256
#: Blocks that a multiprocessor gets, and packs that a thread takes at least before a row is given to several blocks.
_BLOCKS, _PACKS = 8, 4
#: Rows of more packs than this take a block each, however many they are.
_LONG = 256
#: Results that several blocks may share.
_TURNS = 1 << 14
#: Bytes of what one thread keeps at most (see `cuda_combiners`), and the reductions that keep so much of an element
#: that a thread takes fewer at once.
_LARGEST = 48
_WIDE = frozenset({"var", "std", "argmin", "argmax"})
#: Launches that are remembered.
_MOST = 4096
#: Streams whose counters are kept.
_STREAMS = 16
#: cudaDevAttrMultiProcessorCount
_PROCESSORS = 16

_COMMON = """
struct lz_words { unsigned int w[(sizeof(lz_acc) + 3) / 4]; };
__device__ inline lz_acc lz_other(const lz_acc& a, const int distance) {
  lz_words words;
  memcpy(&words, &a, sizeof(lz_acc));
  #pragma unroll
  for (int i = 0; i < sizeof(lz_words) / 4; ++i) words.w[i] = __shfl_xor_sync(0xffffffffu, words.w[i], distance);
  lz_acc b;
  memcpy(&b, &words, sizeof(lz_acc));
  return b;
}
// What another block wrote: not from this multiprocessor's own cache.
__device__ inline lz_acc lz_fetch(const lz_acc* from) {
  lz_words words;
  const unsigned int* source = reinterpret_cast<const unsigned int*>(from);
  #pragma unroll
  for (int i = 0; i < sizeof(lz_words) / 4; ++i) words.w[i] = __ldcg(source + i);
  lz_acc b;
  memcpy(&b, &words, sizeof(lz_acc));
  return b;
}
__device__ inline bool lz_is_last(unsigned int* turn, const unsigned int count) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(turn, 1u) == count - 1;
  __syncthreads();
  if (last) __threadfence();
  return last;
}
"""

_GROUPS = """
  const int lane = threadIdx.x % group, mine = threadIdx.x / group, each = blockDim.x / group;
  for (INDEX first = (INDEX)blockIdx.x * each; first < outer; first += (INDEX)gridDim.x * each) {
    const INDEX row = first + mine;
    NONE
    if (row < outer) {
      const INDEX start = row * length;
      const INDEX step = group, from = lane;
ALONG
    }
    JOIN
    for (int distance = group / 2; distance; distance /= 2) lz_merge(a[0], lz_other(a[0], distance));
    if (lane == 0 && row < outer) out[row] = lz_give(a[0], divisor);
  }
"""

_BLOCK = """
  __shared__ lz_acc warps[32];
  const INDEX row = blockIdx.x / splits;
  const INDEX split = blockIdx.x % splits;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  NONE
  {
    const INDEX start = row * length;
    const INDEX step = (INDEX)splits * blockDim.x, from = split * blockDim.x + threadIdx.x;
ALONG
  }
  JOIN
  for (int round = 0; ; ++round) {
    #pragma unroll
    for (int distance = 16; distance; distance /= 2) lz_merge(a[0], lz_other(a[0], distance));
    if (lane == 0) warps[warp] = a[0];
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < blockDim.x / 32; ++w) lz_merge(a[0], warps[w]);
      if (round || splits == 1) out[row] = lz_give(a[0], divisor);
      else parts[row * splits + split] = a[0];
    }
    if (round || splits == 1 || !lz_is_last(turns + row, splits)) return;
    lz_none(a[0]);
    for (int s = threadIdx.x; s < splits; s += blockDim.x) lz_merge(a[0], lz_fetch(parts + row * splits + s));
    if (threadIdx.x == 0) turns[row] = 0;
  }
"""

_COLUMNS = """
  __shared__ lz_acc shared[THREADS];
  const int place = threadIdx.x, x = place % group, y = place / group % high, deep = THREADS / (group * high);
  const INDEX tiles = (inner + group * LENGTH - 1) / (group * LENGTH);
  const INDEX split = blockIdx.x % splits, tile = blockIdx.x / splits % tiles;
  const INDEX row = blockIdx.x / splits / tiles * deep + place / (group * high);
  const INDEX column = (tile * group + x) * LENGTH;
  const bool taken = row < outer && column < inner;
  NONE
  if (taken) {
    UNROLL
    for (INDEX r = split * high + y; r < length; r += (INDEX)splits * high) {
      const INDEX base = (row * length + r) * inner + column;
PACK
    }
  }
  #pragma unroll
  for (int k = 0; k < LENGTH; ++k) lz_settle(a[k]);
  for (int round = 0; ; ++round) {
    #pragma unroll
    for (int k = 0; k < LENGTH; ++k) {
      if (high > 1) {
        __syncthreads();
        shared[place] = a[k];
        for (int half = high / 2; half; half /= 2) {
          __syncthreads();
          if (y < half) lz_merge(shared[place], shared[place + half * group]);
        }
        a[k] = shared[place];
      }
      if (y == 0 && taken) {
        if (round || splits == 1) out[row * inner + column + k] = lz_give(a[k], divisor);
        else parts[(row * splits + split) * inner + column + k] = a[k];
      }
    }
    if (round || splits == 1 || !lz_is_last(turns + row * tiles + tile, splits)) return;
    #pragma unroll
    for (int k = 0; k < LENGTH; ++k) {
      lz_none(a[k]);
      if (taken) {
        for (int s = y; s < splits; s += high) {
          lz_merge(a[k], lz_fetch(parts + (row * splits + s) * inner + column + k));
        }
      }
    }
    if (place == 0) turns[row * tiles + tile] = 0;
  }
"""

#: Along a row that begins at `start`: packs, each `step` after the one before, and then single elements.
_ALONG = """
      const INDEX packs = length / LENGTH;
      UNROLL
      for (INDEX p = from; p < packs; p += step) {
        const INDEX base = start + p * LENGTH;
PACK
      }
      for (INDEX r = packs * LENGTH + from; r < length; r += step) {
        const INDEX at = start + r;
SINGLE
        lz_take(a[0], RESULT, r);
      }
"""

_FORMS = {"groups": _GROUPS, "blocks": _BLOCK, "columns": _COLUMNS}


class Form(NamedTuple):
    """Which kernel: its name in `_FORMS`, the elements that a thread takes at once, whether indexes take 64 bits.

    `even`: those elements are neighbours for the strided inputs too, so that it is found out once where they are.
    """

    name: str
    length: int
    wide: bool
    even: bool = False


def source(program: Program, reduction: Reduction, form: Form, xp: Any) -> str | None:
    """CUDA source of the kernel ``reduce``; None if CuPy has no snippet for a step."""
    parts = texts(program, reduction, form, xp)
    return None if parts is None else "".join(parts)


def texts(program: Program, reduction: Reduction, form: Form, xp: Any) -> tuple[str, str] | None:
    """What all kernels of a program have in common, and the kernel."""
    index = "long long" if form.wide else "unsigned int"
    one = body(program, xp, index)
    many = body(program, xp, index, "a{i}.v[k]")
    if one is None or many is None:
        return None
    length = form.length
    columns = form.name == "columns"
    lanes = length if columns else min(length, 4)
    loads = ""
    for i, operand in enumerate(program.inputs):
        if operand.mode == "flat":
            t = type_of(operand.dtype)
            loads += f"      const Pack<{t}, {length}> a{i} = lz_load<{t}, {length}>(p{i} + base);\n"
    place = "r" if columns else "p * LENGTH + k"
    offsets, load = many.offsets, many.load
    if form.even:
        loads += offsets.replace("rest = at;", "rest = base;")
        offsets = ""
        for i, operand in enumerate(program.inputs):
            if operand.mode == "strided":
                load = load.replace(f"p{i} + o{i})", f"p{i} + o{i} + k * w.s{i}_{program.ndim - 1})")
    pack = (f"{loads}      #pragma unroll\n      for (int k = 0; k < LENGTH; ++k) {{\n"
            f"      const INDEX at = base + k;\n{offsets}{load}{many.steps}"
            f"      lz_take(a[k % LANES], {many.results[0]}, {place});\n      }}\n")
    none = "lz_acc a[LANES];\n  #pragma unroll\n  for (int k = 0; k < LANES; ++k) lz_none(a[k]);"
    join = ("lz_settle(a[0]);\n  #pragma unroll\n  for (int k = 1; k < LANES; ++k) "
            "{ lz_settle(a[k]); lz_merge(a[0], a[k]); }")
    text = _FORMS[form.name]
    unroll = f"#pragma unroll {4 if len(program.steps) <= 8 else 2}"
    single = one.offsets + one.load + one.steps
    for name, value in {"ALONG": _ALONG, "PACK": pack, "SINGLE": single, "RESULT": one.results[0], "NONE": none,
                        "JOIN": join, "UNROLL": unroll, "INDEX": index, "LENGTH": str(length),
                        "LANES": str(lanes), "THREADS": str(THREADS)}.items():
        text = text.replace(name, value)
    parameters = [*one.inputs, "lz_R* __restrict__ out", "lz_acc* parts", "unsigned int* turns", f"const {index} outer",
                  f"const {index} length", f"const {index} inner", "const int group", "const int high",
                  "const int splits", "const double divisor", *one.walk]
    return one.head, (
        f"{combiner(reduction)}{_COMMON}"
        f'extern "C" __global__ void __launch_bounds__({THREADS}) reduce({", ".join(parameters)}) {{\n{text}}}\n')


class Plan(NamedTuple):
    """How a kernel is launched: in blocks of `THREADS`."""

    form: str
    group: int      # threads side by side along a row, or along `inner`
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
    group = _power(min(packs, 32))
    if extent.inner == 1:
        if packs <= 32 or packs <= _LONG and outer >= 8 * target:
            return Plan("groups", group, 1, 1, min(-(-outer * group // THREADS), 8 * target), 0)
        splits = max(min(once // outer, packs // (THREADS * _PACKS)), 1)
        return Plan("blocks", THREADS, 1, splits, outer * splits, outer if splits > 1 else 0)
    # As many threads share a column as are needed to fill the device, but each has some elements.
    most = max(extent.length // _PACKS, 1)
    wanted = -(-target * THREADS // (outer * packs))
    high = min(_power(min(wanted, most)), THREADS // group)
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
    most = 4 if reduction.name in _WIDE else 8
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
            turns = self._counters(device)
        kernel.launch(grid.blocks, THREADS, [
            *kernel.inputs(arguments), out.data.ptr, parts.data.ptr, turns.data.ptr, *extent, grid.group, grid.high,
            grid.splits, divisor, *walk_values(kernel.program, arguments, *walked)])
        return out

    def _counters(self, device: Device) -> Any:
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
