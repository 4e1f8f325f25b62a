"""The rows of an array where a mask is true, read or written, in two kernels with one look at the device between them.

The first counts: a block goes through a tile of the mask, keeps it as bits, and the last block to finish finds out
where the rows of each tile begin in the result.  The host waits for their number, which is the result's length.  The
second copies: a block lists the places of what is true in a part of its tile, and its threads go along the rows in the
widest words that begin and end where rows do.  It reads the bits, not the mask, so that it writes as many rows as were
counted even if another thread writes to the mask meanwhile.  To assign rows is the same, from the values to the array;
the positions of what is true are written in the place of rows.

Words are copied as they are: nothing here depends on the dtype, and the few functions are compiled together.
"""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....errors.inspection import Unique
from .elementwise import Kernels, Launcher, functions

if TYPE_CHECKING:
    from ..copies.copies import Copies

__all__ = ["SOURCE", "WORDS", "Plan", "Selected", "Selections", "plan"]

#: Of a block.
THREADS = 256
#: Elements of the mask that a block lists at once, four for each thread; so many of them are kept in one number.
ROUND, KEPT = 4 * THREADS, 16
#: Tiles that the last block adds up, a few for each thread.
MOST_TILES = 8 * THREADS
#: Blocks that fill a device; where there are fewer tiles, several blocks share a tile's rows.
_BLOCKS = 1024
#: Words of a row that a block copies: at least so many where blocks share rows, and never more.
LEAST, MOST = 8, 64
#: Axes of a mask whose positions a kernel finds.
MOST_AXES = 4
#: Bytes of a word -> its type.
WORDS = {16: "uint4", 8: "unsigned long long", 4: "unsigned int", 2: "unsigned short", 1: "unsigned char"}

_i8, _u1 = np.dtype(np.int64), np.dtype(np.uint8)

_TEXT = r"""
typedef unsigned long long lz_u8;

// The sum of what the threads before this one have; `all`: that of the block's. Between two calls there is a barrier.
template <typename T> __device__ inline T lz_before(const T mine, T& all) {
  __shared__ T sums[THREADS / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T sum = mine;
  #pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const T other = __shfl_up_sync(0xffffffffu, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  T before = 0;
  all = 0;
  #pragma unroll
  for (int w = 0; w < THREADS / 32; ++w) {
    if (w == warp) before = all;
    all += sums[w];
  }
  return before + sum - mine;
}

// A bit for each of four bytes: whether it is not zero.
__device__ inline unsigned int lz_bits(unsigned int bytes) {
  bytes |= bytes >> 4;
  bytes |= bytes >> 2;
  bytes |= bytes >> 1;
  return (bytes & 0x01010101u) * 0x01020408u >> 24 & 15u;
}

// offsets: where the rows of each tile begin in the result, and at the end their number. turn: zero, and left so.
extern "C" __global__ void __launch_bounds__(THREADS) select_count(const unsigned char* mask, lz_u8* offsets,
    unsigned short* bits, unsigned int* turn, const long long size, const long long rounds) {
  __shared__ bool last;
  const long long kept = rounds * (ROUND / KEPT), first = blockIdx.x * kept;
  const bool aligned = reinterpret_cast<lz_u8>(mask) % 16 == 0;
  unsigned int found = 0;
  for (long long i = threadIdx.x; i < kept; i += THREADS) {
    const long long at = (first + i) * KEPT;
    unsigned int set = 0;
    if (aligned && at + KEPT <= size) {
      const uint4 part = *reinterpret_cast<const uint4*>(mask + at);
      set = lz_bits(part.x) | lz_bits(part.y) << 4 | lz_bits(part.z) << 8 | lz_bits(part.w) << 12;
    } else {
      for (int k = 0; k < KEPT; ++k) if (at + k < size && mask[at + k]) set |= 1u << k;
    }
    bits[first + i] = set;
    found += __popc(set);
  }
  unsigned int all;
  lz_before(found, all);
  if (threadIdx.x == 0) {
    offsets[blockIdx.x] = all;
    __threadfence();
    last = atomicAdd(turn, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  const unsigned int each = (gridDim.x + THREADS - 1) / THREADS, begin = threadIdx.x * each;
  lz_u8 counts[MOST_TILES / THREADS], sum = 0;
  #pragma unroll
  for (unsigned int k = 0; k < MOST_TILES / THREADS; ++k) {
    // What another block wrote: not from this multiprocessor's own cache.
    counts[k] = k < each && begin + k < gridDim.x ? __ldcg(offsets + begin + k) : 0;
    sum += counts[k];
  }
  lz_u8 rows;
  lz_u8 before = lz_before(sum, rows);
  #pragma unroll
  for (unsigned int k = 0; k < MOST_TILES / THREADS; ++k) {
    if (k < each && begin + k < gridDim.x) offsets[begin + k] = before;
    before += counts[k];
  }
  if (threadIdx.x == 0) {
    offsets[gridDim.x] = rows;
    *turn = 0;
  }
}

// A row has `words`, of which a block copies `share`; so many blocks, `parts`, have a tile in common.
// Put: the rows are written where the mask is true, not read.
template <typename Word, bool Put> __device__ inline void lz_copy(const Word* __restrict__ from, Word* __restrict__ to,
    const lz_u8* __restrict__ offsets, const unsigned short* __restrict__ bits, const long long rounds,
    const long long words, const unsigned int share, const unsigned int parts) {
  __shared__ unsigned short places[ROUND];
  const unsigned int tile = blockIdx.x / parts;
  lz_u8 done = offsets[tile];
  if (offsets[tile + 1] == done) return;
  const long long low = (long long)(blockIdx.x % parts) * share;
  const unsigned int width = words - low < share ? words - low : share;
  const unsigned int down = THREADS / width, right = THREADS % width;
  for (long long round = 0; round < rounds; ++round) {
    const long long first = (tile * rounds + round) * ROUND;
    const unsigned int mine = bits[first / KEPT + threadIdx.x / 4] >> threadIdx.x % 4 * 4 & 15u;
    unsigned int rows;
    unsigned int place = lz_before<unsigned int>(__popc(mine), rows);
    #pragma unroll
    for (int k = 0; k < 4; ++k) if (mine >> k & 1u) places[place++] = threadIdx.x * 4 + k;
    __syncthreads();
    unsigned int row = threadIdx.x / width, column = threadIdx.x % width;
    while (row < rows) {
      Word held[4];     // so that a thread waits for four of them at once
      lz_u8 at[4];
      bool taken[4];
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        taken[k] = row < rows;
        const lz_u8 packed = (done + row) * words + low + column;
        const lz_u8 there = taken[k] ? (first + places[row]) * words + low + column : 0;
        at[k] = Put ? there : packed;
        if (taken[k]) held[k] = from[Put ? packed : there];
        row += down;
        column += right;
        if (column >= width) {
          column -= width;
          ++row;
        }
      }
      #pragma unroll
      for (int k = 0; k < 4; ++k) if (taken[k]) to[at[k]] = held[k];
    }
    done += rows;       // the next round lists its own places after the barrier in `lz_before`
  }
}
"""

_POSITIONS = """
// A place in C order as one along each of `axes` axes; numbers of 32 bits are divided several times as fast.
template <typename T> __device__ inline void lz_note(T rest, const T n1, const T n2, const T n3,
    const unsigned int axes, long long* to0, long long* to1, long long* to2, long long* to3, const lz_u8 at) {
  if (axes > 3) { to3[at] = rest % n3; rest /= n3; }
  if (axes > 2) { to2[at] = rest % n2; rest /= n2; }
  if (axes > 1) { to1[at] = rest % n1; rest /= n1; }
  to0[at] = rest;
}

// The positions of what is true, along each of `axes` axes, of which the inner ones have n1, n2 and n3 elements.
extern "C" __global__ void __launch_bounds__(THREADS) select_positions(long long* to0, long long* to1, long long* to2,
    long long* to3, const lz_u8* __restrict__ offsets, const unsigned short* __restrict__ bits, const long long rounds,
    const unsigned int axes, const lz_u8 n1, const lz_u8 n2, const lz_u8 n3) {
  __shared__ unsigned short places[ROUND];
  const long long tile = blockIdx.x;
  lz_u8 done = offsets[tile];
  if (offsets[tile + 1] == done) return;
  const bool narrow = (n1 | n2 | n3) >> 32 == 0;
  for (long long round = 0; round < rounds; ++round) {
    const lz_u8 first = (tile * rounds + round) * ROUND;
    const unsigned int mine = bits[first / KEPT + threadIdx.x / 4] >> threadIdx.x % 4 * 4 & 15u;
    unsigned int rows;
    unsigned int place = lz_before<unsigned int>(__popc(mine), rows);
    #pragma unroll
    for (int k = 0; k < 4; ++k) if (mine >> k & 1u) places[place++] = threadIdx.x * 4 + k;
    __syncthreads();
    for (unsigned int row = threadIdx.x; row < rows; row += THREADS) {
      if (narrow && first + ROUND >> 32 == 0) {
        lz_note<unsigned int>(first + places[row], n1, n2, n3, axes, to0, to1, to2, to3, done + row);
      } else {
        lz_note<lz_u8>(first + places[row], n1, n2, n3, axes, to0, to1, to2, to3, done + row);
      }
    }
    done += rows;       // the next round lists its own places after the barrier in `lz_before`
  }
}
"""

_COPY = """
extern "C" __global__ void __launch_bounds__(THREADS) NAME_BYTES(const WORD* __restrict__ from, WORD* __restrict__ to,
    const lz_u8* __restrict__ offsets, const unsigned short* __restrict__ bits, const long long rounds,
    const long long words, const unsigned int share, const unsigned int parts) {
  lz_copy<WORD, PUT>(from, to, offsets, bits, rounds, words, share, parts);
}
"""

SOURCE = "".join(f"#define {name} {value}\n" for name, value in (
    ("THREADS", THREADS), ("ROUND", ROUND), ("KEPT", KEPT), ("MOST_TILES", MOST_TILES))) + _TEXT + _POSITIONS + "".join(
    _COPY.replace("BYTES", str(size)).replace("WORD", word).replace("NAME", name).replace("PUT", put)
    for size, word in WORDS.items() for name, put in (("select", "false"), ("place", "true")))


class Plan(NamedTuple):
    """How the two kernels are launched, in blocks of `THREADS`: the first in `tiles`, the second in `tiles * parts`."""

    tiles: int
    rounds: int     # of `ROUND` elements that a tile of the mask has
    word: int       # bytes that a thread copies at once
    words: int      # of a row
    share: int      # words of a row that a block copies
    parts: int      # blocks that share the rows of a tile


@functools.lru_cache(maxsize=256)
def plan(size: int, row: int, start: int) -> Plan:
    """The grids for a mask of `size` elements, and rows of `row` bytes that begin `start` after a multiple of 16."""
    rounds = -(-size // (ROUND * MOST_TILES))
    tiles = -(-size // (ROUND * rounds))
    word = min((row | start) & -(row | start), max(WORDS))
    words = row // word
    parts = max(-(-words // MOST), min(-(-_BLOCKS // tiles), -(-words // LEAST)))
    share = -(-words // parts)
    return Plan(tiles, rounds, word, words, share, -(-words // share))


class _Selection(NamedTuple):
    """The compiled kernels."""

    counts: Launcher
    copies: dict[int, Launcher]     # by the bytes of a word
    places: dict[int, Launcher]
    positions: Launcher


def _made(cupy: Any, name: str) -> _Selection:
    count, positions, *copies = functions(cupy, SOURCE, (
        "select_count", "select_positions",
        *(f"select_{size}" for size in WORDS), *(f"place_{size}" for size in WORDS)))
    launchers = [Launcher(cupy, copy, list("QQQQqqII")) for copy in copies]
    return _Selection(Launcher(cupy, count, list("QQQQqq")), dict(zip(WORDS, launchers)),
                      dict(zip(WORDS, launchers[len(WORDS):])), Launcher(cupy, positions, list("QQQQQQqIQQQ")))


class Selections(Unique):
    """Counts masks on the current stream."""

    def __init__(self, kernels: Kernels, counters: Callable[[], Any], copies: Copies) -> None:
        """`counters`: gives zeros that kernels of the current stream leave as zeros."""
        self._kernels, self._counters, self._copies = kernels, counters, copies
        self._ndarray = kernels.cupy.ndarray

    def of(self, mask: Any) -> Selected | None:
        """`Device.selected`, or None: then the kernels are being compiled, or can't be."""
        kernels = self._kernels.find(("select",), _made)
        if kernels is None:
            return None
        grid = plan(mask.size, 1, 1)
        end = 8 * grid.tiles        # of the offsets, and where the number of rows is
        memory = self._ndarray((end + 8 + grid.tiles * grid.rounds * ROUND // KEPT * 2,), _u1)
        bits = memory.data.ptr + end + 8
        kernels.counts(grid.tiles, THREADS, [mask, memory, bits, self._counters(), mask.size, grid.rounds])
        arrived = bytearray(8)
        self._copies.fetch_end(self._copies.fetch_begin(self._ndarray((1,), _i8, memory.data + end)),
                               memoryview(arrived))
        return Selected(kernels, self._ndarray, int.from_bytes(arrived, sys.byteorder), mask.size, memory, bits)


class Selected(Unique):
    """`devices.operations.Selected`: the memory with the offsets and bits of a mask, and the address of the bits."""

    def __init__(self, kernels: _Selection, ndarray: Any, count: int, size: int, memory: Any, bits: int) -> None:
        self._kernels, self._ndarray = kernels, ndarray
        self.count, self._size, self._memory, self._bits = count, size, memory, bits

    def take(self, d: Any, ndim: int) -> Any | None:
        grid = plan(self._size, d.nbytes // self._size, d.data.ptr % max(WORDS))
        if grid.tiles * grid.parts >= 1 << 31:
            return None
        result = self._ndarray((self.count, *d.shape[ndim:]), d.dtype)
        self._copy(self._kernels.copies, grid, d, result)
        return result

    def put(self, d: Any, values: Any) -> bool:
        grid = plan(self._size, d.nbytes // self._size, (d.data.ptr | values.data.ptr) % max(WORDS))
        if grid.tiles * grid.parts >= 1 << 31:
            return False
        self._copy(self._kernels.places, grid, values, d)
        return True

    def _copy(self, copies: dict[int, Launcher], grid: Plan, source: Any, target: Any) -> None:
        if self.count:
            copies[grid.word](grid.tiles * grid.parts, THREADS, [
                source, target, self._memory, self._bits, grid.rounds, grid.words, grid.share, grid.parts])

    def positions(self, shape: tuple[int, ...]) -> tuple[Any, ...] | None:
        ndim, grid = len(shape), plan(self._size, 1, 1)
        if ndim > MOST_AXES:
            return None
        found = tuple([self._ndarray((self.count,), _i8) for _ in shape])
        if self.count:
            unused = MOST_AXES - ndim
            self._kernels.positions(grid.tiles, THREADS, [
                *found, *found[:1] * unused, self._memory, self._bits, grid.rounds, ndim, *shape[1:], *(1,) * unused])
        return found
