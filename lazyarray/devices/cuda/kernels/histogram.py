"""Numbers counted in bins, and places that are counted or weighed: each warp of a block counts in shared memory of its
own, where not all have to wait for all. Of many places, or few elements, all count at once in the result. And values
combined with those at places of an array, as ``numpy.add.at`` and ``numpy.maximum.at`` do.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ....errors.inspection import Unique
from .elementwise import Kernels, Launcher, functions
from .snippets import type_of

__all__ = ["BINS", "Histograms", "source", "source_of_at", "source_of_places"]

#: Bins at most, counts that a block has room for, and its threads.
BINS, _ROOM, _THREADS = 1024, 4096, 256
#: Blocks that fill a device.
_BLOCKS = 1024

_TEXT = """
// Edges rise. What lies below the first, at the last or above it, or is NaN, counts nowhere.
extern "C" __global__ void __launch_bounds__(THREADS) count_in_bins(const ELEMENT* __restrict__ x,
    const EDGE* __restrict__ edges, unsigned long long* counts, const long long size, const int bins) {
  __shared__ EDGE ends[BINS + 1];
  __shared__ unsigned int found[ROOM];
  const int warps = THREADS / 32, copies = ROOM / bins < warps ? ROOM / bins : warps;
  for (int i = threadIdx.x; i <= bins; i += THREADS) ends[i] = edges[i];
  for (int i = threadIdx.x; i < copies * bins; i += THREADS) found[i] = 0;
  __syncthreads();
  unsigned int* const mine = found + threadIdx.x / 32 % copies * bins;
  const EDGE low = ends[0], high = ends[bins];
  const long long step = (long long)gridDim.x * THREADS;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < size; i += step) {
    const EDGE value = (EDGE)x[i];
    if (!(value >= low && value < high)) continue;
    int first = 0, end = bins;
    while (end - first > 1) {
      const int middle = (first + end) / 2;
      if (ends[middle] <= value) first = middle; else end = middle;
    }
    atomicAdd(mine + first, 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < bins; i += THREADS) {
    unsigned long long sum = 0;
    for (int k = 0; k < copies; ++k) sum += found[k * bins + i];
    if (sum) atomicAdd(counts + i, sum);
  }
}
"""

_PLACES = """
// Each place is from 0 to below `places`, and counts as 1, or as what it weighs. It was looked at before: if somebody
// has written another one meanwhile, no other memory is written.
extern "C" __global__ void __launch_bounds__(THREADS) count_few_places(const ELEMENT* __restrict__ x,
    const WEIGHT* __restrict__ weights, SUM* counts, const long long size, const long long places) {
  __shared__ PART found[ROOM];
  const int bins = (int)places;
  const int warps = THREADS / 32, copies = ROOM / bins < warps ? ROOM / bins : warps;
  for (int i = threadIdx.x; i < copies * bins; i += THREADS) found[i] = 0;
  __syncthreads();
  PART* const mine = found + threadIdx.x / 32 % copies * bins;
  const long long step = (long long)gridDim.x * THREADS;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < size; i += step)
    if ((unsigned long long)x[i] < bins) atomicAdd(mine + (int)x[i], (PART)VALUE);
  __syncthreads();
  for (int i = threadIdx.x; i < bins; i += THREADS) {
    SUM sum = 0;
    for (int k = 0; k < copies; ++k) sum += found[k * bins + i];
    if (sum != 0) atomicAdd(counts + i, sum);
  }
}
extern "C" __global__ void __launch_bounds__(THREADS) count_places(const ELEMENT* __restrict__ x,
    const WEIGHT* __restrict__ weights, SUM* counts, const long long size, const long long places) {
  const long long step = (long long)gridDim.x * THREADS;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < size; i += step)
    if ((unsigned long long)x[i] < places) atomicAdd(counts + (long long)x[i], (SUM)VALUE);
}
"""
_AT = """
#if EXTREME == 1
#define BETTER(a, b) ((a) > (b))
#else
#define BETTER(a, b) ((a) < (b))
#endif
// NaN is above and below all else, and stays.
__device__ __forceinline__ void extreme(PART* to, const PART value) {
  BITS* const bits = (BITS*)to;
  BITS old = *bits;
  while (true) {
    const PART now = *(PART*)&old;
    if (now != now || !(BETTER(value, now) || value != value)) return;
    const BITS seen = atomicCAS(bits, old, *(const BITS*)&value);
    if (seen == old) return;
    old = seen;
  }
}
// To rows of an array (outer, places, inner): values (outer, count, inner), or one for all.
extern "C" __global__ void __launch_bounds__(THREADS) combine_at(PART* to, const KEY* __restrict__ key,
    const PART* __restrict__ values, const int each, const long long places, const long long count,
    const long long inner, const long long total) {
  const long long step = (long long)gridDim.x * THREADS;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < total; i += step) {
    long long above, row, column;
    if (total >> 32) {
      above = i / inner; column = i - above * inner; row = above / count; above -= row * count;
    } else {            // division of 32 bits takes a fifth of the time
      const unsigned int n = (unsigned int)i, m = n / (unsigned int)inner, r = m / (unsigned int)count;
      column = n - m * (unsigned int)inner; row = r; above = m - r * (unsigned int)count;
    }
    long long place = key[above];
    if (place < 0) place += places;
    if (place < 0 || place >= places) {     // unchecked ones wrap around, so that no other memory is written
      place %= places;
      if (place < 0) place += places;
    }
    COMBINE(to + (row * places + place) * inner + column, values[each ? i : 0]);
  }
}
"""
#: Dtype of an array -> the type that is added, or of bits, and how many of them an element has.
_PARTS = {"f": ("float", 1), "d": ("double", 1), "F": ("float", 2), "D": ("double", 2), "i": ("unsigned int", 1),
          "I": ("unsigned int", 1), "l": ("unsigned long long", 1), "L": ("unsigned long long", 1),
          "q": ("unsigned long long", 1), "Q": ("unsigned long long", 1)}
#: The same of what is compared.
_COMPARED = {"f": "float", "d": "double", "i": "int", "I": "unsigned int", "l": "long long", "q": "long long",
             "L": "unsigned long long", "Q": "unsigned long long"}
_INTEGERS = frozenset("iIlLqQ")
#: Ufunc -> what CUDA calls it, and the dtypes of arrays that it takes.
_COMBINED = {
    np.add: ("atomicAdd", _PARTS.keys()), np.maximum: ("atomicMax", _COMPARED.keys()),
    np.minimum: ("atomicMin", _COMPARED.keys()), np.bitwise_and: ("atomicAnd", _INTEGERS),
    np.bitwise_or: ("atomicOr", _INTEGERS), np.bitwise_xor: ("atomicXor", _INTEGERS),
}
#: Elements for each place from which on a block counts by itself.
_OFTEN = 4
_int64, _float64 = np.dtype(np.int64), np.dtype(np.float64)


def _defined(text: str, **names: Any) -> str:
    given = {"BINS": BINS, "ROOM": _ROOM, "THREADS": _THREADS, **names}
    return "".join(f"#define {name} {value}\n" for name, value in given.items()) + text


def source(element: np.dtype, edge: np.dtype) -> str:
    return _defined(_TEXT, ELEMENT=type_of(element), EDGE=type_of(edge))


def source_of_places(element: np.dtype, weight: np.dtype | None) -> str:
    counted = weight is None
    return _defined(_PLACES, ELEMENT=type_of(element), WEIGHT="char" if weight is None else type_of(weight),
                    SUM="unsigned long long" if counted else "double", PART="unsigned int" if counted else "double",
                    VALUE="1" if counted else "weights[i]")


def _made(cupy: Any, name: str, element: np.dtype, edge: np.dtype) -> Launcher:
    (function,) = functions(cupy, source(element, edge), ("count_in_bins",))
    return Launcher(cupy, function, list("QQQqi"))


def source_of_at(ufunc: np.ufunc, element: np.dtype, key: np.dtype) -> str:
    combine, compares = _COMBINED[ufunc][0], ufunc in (np.maximum, np.minimum)
    bits = "unsigned int" if element.itemsize == 4 else "unsigned long long"
    part = _COMPARED[element.char] if compares else _PARTS[element.char][0]
    return _defined(_AT, PART=part, KEY=type_of(key), BITS=bits, EXTREME=int(ufunc is np.maximum),
                    COMBINE="extreme" if compares and element.kind == "f" else combine)


def _made_of_at(cupy: Any, name: str, ufunc: np.ufunc, element: np.dtype, key: np.dtype) -> Launcher:
    (function,) = functions(cupy, source_of_at(ufunc, element, key), ("combine_at",))
    return Launcher(cupy, function, list("QQQiqqqq"))


def _made_of_places(cupy: Any, name: str, element: np.dtype, weight: np.dtype | None) -> tuple[Launcher, Launcher]:
    few, many = functions(cupy, source_of_places(element, weight), ("count_few_places", "count_places"))
    return Launcher(cupy, few, list("QQQqq")), Launcher(cupy, many, list("QQQqq"))


class Histograms(Unique):
    """Launches the kernels on the current stream."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels

    def __call__(self, x: Any, edges: Any) -> Any | None:
        """`Device.count_in_bins`."""
        bins = edges.size - 1
        if not 1 <= bins <= BINS or not x.size or x.dtype.kind not in "iuf" or x.dtype.char == "e" or (
                edges.dtype.char not in "fd" or not (x.dtype.isnative and x._c_contiguous and edges._c_contiguous)):
            return None
        kernel = self._kernels.find(("count_in_bins", x.dtype, edges.dtype), _made)
        if kernel is None:
            return None
        counts = self._kernels.cupy.zeros(bins, _int64)
        kernel(min(-(-x.size // _THREADS), _BLOCKS), _THREADS, [x, edges, counts, x.size, bins])
        return counts

    def places(self, x: Any, weights: Any, bins: int) -> Any | None:
        """`Device.count_places`."""
        given = (x,) if weights is None else (x, weights)
        if not x.size or not all(a._c_contiguous and a.dtype.isnative for a in given) or (
                weights is not None and (weights.dtype.kind not in "biuf" or weights.dtype.char == "e")):
            return None
        # CuPy's function asks by ``any`` whether an element is negative: see `program.is_slow_to_compile`.
        kernels = self._kernels.find(
            ("count_places", x.dtype, None if weights is None else weights.dtype), _made_of_places, self._kernels.waits)
        if kernels is None:
            return None
        counts = self._kernels.cupy.zeros(bins, _int64 if weights is None else _float64)
        few = bins <= _ROOM and bins * _OFTEN <= x.size
        blocks = min(-(-x.size // _THREADS), _BLOCKS)
        kernels[not few](blocks, _THREADS, [x, x if weights is None else weights, counts, x.size, bins])
        return counts

    def ufunc_at(self, ufunc: np.ufunc, array: Any, outer: int, places: int, key: Any, values: Any) -> bool:
        """`Device.ufunc_at`."""
        if ufunc not in _COMBINED or array.dtype.char not in _COMBINED[ufunc][1] or key.dtype.char not in "ilq" or not (
                array._c_contiguous and key._c_contiguous and values._c_contiguous and array.dtype.isnative):
            return False
        kernel = self._kernels.find(("combine_at", ufunc, array.dtype, key.dtype), _made_of_at)
        if kernel is None:
            return False
        inner = array.size // (outer * places)
        each = values.size == outer * key.size * inner
        if not each and array.dtype.kind == "c":
            return False
        inner *= _PARTS[array.dtype.char][1]
        total = outer * key.size * inner
        kernel(min(-(-total // _THREADS), _BLOCKS), _THREADS,
               [array, key, values, int(each), places, key.size, inner, total])
        return True
