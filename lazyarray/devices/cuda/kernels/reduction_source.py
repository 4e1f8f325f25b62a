"""CUDA source of kernels that compute elements and reduce them.

There are three forms, for an array of (outer, length, inner) elements whose middle axis is reduced:

- "groups": `inner` is 1 and rows are short. Up to 32 threads of one warp take a row.
- "blocks": `inner` is 1 and rows are long. A block takes a row, or several blocks a part of it each.
- "columns": threads go along `inner`, and blocks share the reduced axis.

Where several blocks have parts of one result, the last to finish joins them, always in the same order.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .elementwise_source import body
from .reduction_ops import combiner
from .snippets import type_of

if TYPE_CHECKING:
    from ...program import Program, Reduction

__all__ = ["HEAVY", "THREADS", "Form", "source", "texts"]

#: Of a block.
THREADS = 256
#: Reductions that keep so much of an element that a thread takes fewer at once.
HEAVY = frozenset({"var", "std", "argmin", "argmax"})
#: What a thread keeps apart along a row, so that additions need not wait for each other, has to be joined: less of it
#: where that takes divisions.
_LANES = {(name, form): lanes for name in ("var", "std") for form, lanes in (("groups", 1), ("blocks", 2))}
#: Chains of so many steps are repeated in a loop.
_SHORT = 8

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
    for (int k = 0; k < LENGTH; ++k) lz_none(a[k]);
    if (taken) {
      const lz_acc* from = parts + row * splits * inner + column;
FETCHED
    }
    if (place == 0) turns[row * tiles + tile] = 0;
  }
"""

#: What is fetched together is waited for once, but much of it would take too many registers.
_TOGETHER = """
      #pragma unroll 2
      for (INDEX s = y; s < splits; s += high) {
        #pragma unroll
        for (int k = 0; k < LENGTH; ++k) lz_merge(a[k], lz_fetch(from + s * inner + k));
      }
"""
_ONE_BY_ONE = """
      #pragma unroll
      for (int k = 0; k < LENGTH; ++k) {
        for (INDEX s = y; s < splits; s += high) lz_merge(a[k], lz_fetch(from + s * inner + k));
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
    lanes = length if columns else min(length, _LANES.get((reduction.name, form.name), 4))
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
    unroll = f"#pragma unroll {4 if len(program.steps) <= _SHORT else 2}"
    single, wide = one.offsets + one.load + one.steps, reduction.name in HEAVY
    for name, value in {"FETCHED": _ONE_BY_ONE if wide else _TOGETHER, "ALONG": _ALONG, "PACK": pack,
                        "SINGLE": single, "RESULT": one.results[0], "NONE": none, "JOIN": join, "UNROLL": unroll,
                        "INDEX": index, "LENGTH": str(length), "LANES": str(lanes), "THREADS": str(THREADS)}.items():
        text = text.replace(name, value)
    bounds = f"{THREADS}, 4" if columns and wide and len(program.steps) <= _SHORT else str(THREADS)
    parameters = [*one.inputs, "lz_R* __restrict__ out", "lz_acc* parts", "unsigned int* turns", f"const {index} outer",
                  f"const {index} length", f"const {index} inner", "const int group", "const int high",
                  "const int splits", "const double divisor", *one.walk]
    return one.head, (
        f"{combiner(reduction)}{_COMMON}"
        f'extern "C" __global__ void __launch_bounds__({bounds}) reduce({", ".join(parameters)}) {{\n{text}}}\n')
