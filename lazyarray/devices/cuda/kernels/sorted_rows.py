"""The rows of an array sorted, several by a block, where CuPy's library sorts all elements twice.

A block holds a number for each element, in the order of NumPy's sort, with the element's place in its row: equal ones
keep their order. It sorts them by a bitonic network (K. E. Batcher, Sorting networks and their applications, 1968) in
its shared memory, and writes the places, or the elements that are at those places, whatever bits they have.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ....errors.inspection import Unique
from .elementwise import Kernels, Launcher, functions

__all__ = ["MOST", "SortedRows", "source"]

#: Elements of all rows that a block sorts: the fewer, the more blocks a multiprocessor has room for.
ROOMS = (1024, 4096)
#: The longest row.
MOST = ROOMS[-1]
#: Threads of a block, each of which compares two elements at once.
_THREADS = 1024
#: The most elements that a thread reads and writes.
_HELD = MOST // _THREADS
#: Blocks that fill a device.
_BLOCKS = 512
_WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
#: Kind of dtype -> the text that makes `key`, numbers without a sign, of an element's bits.
_KEYS = {
    "u": "key = bits;",
    "i": "key = (WORD)(bits ^ SIGN);",
    "f": """const WORD size = bits & (WORD)~SIGN;
    if (size > INFINITE) key = ~(KEY)0;     // NaN
    else key = !size ? SIGN : bits & SIGN ? (WORD)~bits : (WORD)(bits | SIGN);""",
}
_TEXT = """
__device__ inline KEY lz_key(const WORD bits) {
    KEY key;
    MADE
    return key;
}

// Rows of n elements, `each` of them by a block, with room for 2 ** bits of each row.
extern "C" __global__ void __launch_bounds__(1024) sort_rows(const WORD* from, WORD* to, long long* positions,
    const long long rows, const unsigned int n, const unsigned int bits, const unsigned int each) {
  __shared__ KEY keys[ROOM];
  __shared__ unsigned short places[ROOM];
  const long long first = (long long)blockIdx.x * each;
  const unsigned int length = 1u << bits, used = each << bits, threads = blockDim.x;
  for (unsigned int i = threadIdx.x; i < used; i += threads) {
    const unsigned int place = i & (length - 1);
    const long long row = first + (i >> bits);
    keys[i] = place < n && row < rows ? lz_key(from[row * n + place]) : ~(KEY)0;
    places[i] = place;      // so what is none of the row comes last
  }
  __syncthreads();
  for (unsigned int size = 2; size <= length; size *= 2) {
    for (unsigned int distance = size / 2; distance; distance /= 2) {
      for (unsigned int i = threadIdx.x; i < used / 2; i += threads) {
        const unsigned int a = 2 * i - (i & (distance - 1)), b = a + distance;
        const KEY left = keys[a], right = keys[b];
        const unsigned short before = places[a], after = places[b];
        const bool wrong = left > right || (left == right && before > after);
        if (wrong == !(a & (length - 1) & size)) {
          keys[a] = right;
          keys[b] = left;
          places[a] = after;
          places[b] = before;
        }
      }
      __syncthreads();
    }
  }
  WORD held[HELD];      // all is read before anything is written: the rows may be sorted in their place
  #pragma unroll
  for (int k = 0; k < HELD; ++k) {
    const unsigned int i = threadIdx.x + k * threads;
    const long long row = first + (i >> bits);
    if (!positions && i < used && (i & (length - 1)) < n && row < rows) held[k] = from[row * n + places[i]];
  }
  __syncthreads();
  #pragma unroll
  for (int k = 0; k < HELD; ++k) {
    const unsigned int i = threadIdx.x + k * threads, place = i & (length - 1);
    const long long row = first + (i >> bits);
    if (i >= used || place >= n || row >= rows) continue;
    if (positions) positions[row * n + place] = places[i];
    else to[row * n + place] = held[k];
  }
}
"""
_int64 = np.dtype(np.int64)


def source(kind: str, itemsize: int, room: int) -> str:
    """The kernel for a kind of dtype ("u" for booleans too) of so many bytes."""
    made = _KEYS[kind].replace("\n", "\n" + 4 * " ")
    sign = 1 << 8 * itemsize - 1
    infinite = int.from_bytes(np.array(np.inf, f"f{itemsize}").tobytes(), "little") if kind == "f" else 0
    return "".join(f"#define {name} {value}\n" for name, value in (
        ("ROOM", room), ("HELD", _HELD), ("WORD", _WORDS[itemsize]), ("KEY", _WORDS[max(itemsize, 4)]),
        ("SIGN", f"((WORD){sign}ull)"), ("INFINITE", f"((WORD){infinite}ull)"))) + _TEXT.replace("MADE", made)


def _made(cupy: Any, name: str, kind: str, itemsize: int, room: int) -> Launcher:
    (function,) = functions(cupy, source(kind, itemsize, room), ("sort_rows",))
    return Launcher(cupy, function, list("QQQqIII"))


class SortedRows(Unique):
    """Launches the kernels on the current stream."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels, self._ndarray = kernels, kernels.cupy.ndarray

    def __call__(self, x: Any, places: bool, out: Any = None) -> Any | None:
        """`Device.sort_rows`; None for what no kernel sorts, or while it is being compiled. `out` may be `x`."""
        n, kind, itemsize = x.shape[-1], x.dtype.kind, x.dtype.itemsize
        if not 1 < n <= MOST or x.size == 0 or kind not in "biuf" or not x.dtype.isnative:
            return None
        kind = "u" if kind == "b" else kind
        rows, bits = x.size // n, (n - 1).bit_length()
        room = next(room for room in ROOMS if n <= room)
        each = max(1, min(room >> bits, -(-rows // _BLOCKS)))
        kernel = self._kernels.find(("sort_rows", kind, itemsize, room), _made)
        if kernel is None or -(-rows // each) >= 1 << 31:
            return None
        result = self._ndarray(x.shape, _int64 if places else x.dtype) if out is None else out
        threads = min(_THREADS, -(-(each << bits) // 64) * 32)
        to = (0, result) if places else (result, 0)
        kernel(-(-rows // each), threads, [x, *to, rows, n, bits, each])
        return result
