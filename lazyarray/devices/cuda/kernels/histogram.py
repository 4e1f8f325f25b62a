"""Numbers counted in bins: each warp of a block counts in shared memory of its own, where not all have to wait for all.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ....errors.inspection import Unique
from .elementwise import Kernels, Launcher, functions
from .snippets import type_of

__all__ = ["BINS", "Histograms", "source"]

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
_uint64, _int64 = np.dtype(np.uint64), np.dtype(np.int64)


def source(element: np.dtype, edge: np.dtype) -> str:
    return "".join(f"#define {name} {value}\n" for name, value in (
        ("BINS", BINS), ("ROOM", _ROOM), ("THREADS", _THREADS), ("ELEMENT", type_of(element)), ("EDGE", type_of(edge))
    )) + _TEXT


def _made(cupy: Any, name: str, element: np.dtype, edge: np.dtype) -> Launcher:
    (function,) = functions(cupy, source(element, edge), ("count_in_bins",))
    return Launcher(cupy, function, list("QQQqi"))


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
        counts = self._kernels.cupy.zeros(bins, _uint64)
        kernel(min(-(-x.size // _THREADS), _BLOCKS), _THREADS, [x, edges, counts, x.size, bins])
        return counts.view(_int64)
