"""Correlation along one axis in the order of SciPy's sums, in one kernel for each pair of dtypes.

A thread computes an element. Where a line is long enough on either side of it the neighbours are read as they lie,
elsewhere by a table: so there is no padded copy, and one kernel for all modes. Each operation is rounded by itself, as
the host's are.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors.inspection import Unique
from .elementwise import Kernels, Launcher, functions
from .snippets import type_of

if TYPE_CHECKING:
    from ...lines import Weights

__all__ = ["TYPES", "LineFilters", "source"]

#: Of a block.
THREADS = 256
#: Blocks of a launch at most: where there are more elements, threads take several.
_MOST = 1 << 20

TYPES = {char: "unsigned char" if char == "?" else type_of(np.dtype(char)) for char in "?bBhHiIlLqQfd"}
"""The types of elements in C, by the characters of dtypes; booleans are bytes, as SciPy has it."""

_CONVERSIONS = {
    "float": "(float)t",
    "double": "t",
    "long long": "lz_long(t)",
    "unsigned int": "(unsigned int)lz_long(t)",
    "unsigned long long": "lz_unsigned(t)",
}
"""How double precision becomes another type; any other by 32 bits. See `lines.converted`."""

_TEXT = r"""
#define LEAST (-9223372036854775807ll - 1)

__device__ inline long long lz_long(const double t) {
  return t >= -9223372036854775808.0 && t < 9223372036854775808.0 ? (long long)t : LEAST;
}

__device__ inline unsigned long long lz_unsigned(const double t) {
  const double size = t < 0 ? -t : t;
  const unsigned long long whole = size < 9223372036854775808.0 ? (unsigned long long)(long long)size :
    size < 18446744073709551616.0 ? (unsigned long long)(long long)(size - 9223372036854775808.0) + (1ull << 63) :
    size == size ? 0 : 1ull << 63;
  return t < 0 ? 0 - whole : whole;
}

__device__ inline int lz_int(const double t) {
  return t > -2147483649.0 && t < 2147483648.0 ? (int)t : -2147483647 - 1;
}

// The sum for one element: AT gives the element at a place of those that the weights are for.
#define LZ_SUM(AT) \
  if (form == 0) { \
    t = __dmul_rn(AT(count - 1), w[count - 1]); \
    for (int k = 0; k < count - 1; ++k) t = __dadd_rn(t, __dmul_rn(AT(k), w[k])); \
  } else { \
    t = __dmul_rn(AT(half), w[half]); \
    if (form > 0) { \
      _Pragma("unroll 4") \
      for (int k = 0; k < half; ++k) \
        t = __dadd_rn(t, __dmul_rn(__dadd_rn(AT(k), AT(count - 1 - k)), w[k])); \
    } else { \
      _Pragma("unroll 4") \
      for (int k = 0; k < half; ++k) \
        t = __dadd_rn(t, __dmul_rn(__dadd_rn(AT(k), -AT(count - 1 - k)), w[k])); \
    } \
  }
#define LZ_NEAR(k) ((double)near[(INDEX)(k) * step])
#define LZ_FAR(k) (places[k] < 0 ? cval : (double)line[(INDEX)places[k] * step])

// x: lines of `length` elements, each `inner` after the one before. Weights of form 2 are looked at here.
extern "C" __global__ void __launch_bounds__(THREADS) correlate(const IN* __restrict__ x, OUT* __restrict__ y,
    const double* __restrict__ w, const long long* __restrict__ table, const long long size, const long long length,
    const long long inner, const long long before, const int count, const int known, const double cval) {
  __shared__ int shared;
  const int half = count / 2;
  if (known == 2) {
    if (threadIdx.x == 0) {
      bool even = count % 2 == 1, odd = even;
      for (int k = 0; k < half; ++k) {
        const double difference = w[count - 1 - k] - w[k], sum = w[count - 1 - k] + w[k];
        if (difference > EPSILON || difference < -EPSILON) even = false;
        if (sum > EPSILON || sum < -EPSILON) odd = false;
      }
      shared = even ? 1 : odd ? -1 : 0;
    }
    __syncthreads();
  }
  const int form = known == 2 ? shared : known;
  const INDEX step = inner, all = size, last = length, stride = gridDim.x * THREADS;
  for (INDEX i = blockIdx.x * THREADS + threadIdx.x; i < all; i += stride) {
    const INDEX place = i / step % last, first = place - (INDEX)before;
    double t;
    if (first >= 0 && first + count <= last) {
      const IN* const near = x + (i - (INDEX)before * step);
      LZ_SUM(LZ_NEAR)
    } else {
      const IN* const line = x + (i - place * step);
      const long long* const places = table + place;
      LZ_SUM(LZ_FAR)
    }
    y[i] = CONVERTED;
  }
}
"""


def source(given: str, made: str, wide: bool) -> str:
    """The kernel for elements of one dtype (a character) to those of another; `wide`: 2**31 elements and more."""
    target = TYPES[made]
    names = {"THREADS": THREADS, "IN": TYPES[given], "OUT": target, "INDEX": "long long" if wide else "int",
             "EPSILON": repr(float(np.finfo(np.float64).eps)),
             "CONVERTED": _CONVERSIONS.get(target, f"({target})lz_int(t)")}
    return "".join(f"#define {name} {value}\n" for name, value in names.items()) + _TEXT


def _made(cupy: Any, name: str, given: str, made: str, wide: bool) -> Launcher:
    function, = functions(cupy, source(given, made, wide), ("correlate",))
    return Launcher(cupy, function, list("QQQQqqqqiid"))


class LineFilters(Unique):
    """Launches the kernels on the current stream."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels, self._ndarray = kernels, kernels.cupy.ndarray

    def correlate(self, x: Any, weights: Weights, axis: int, cval: float, dtype: np.dtype) -> Any | None:
        """`Device.correlate_lines`, or None: then the kernel is being compiled, or can't be."""
        wide = x.size >= 1 << 30     # so that the sum of an index and a stride of all threads has 31 bits
        launch = self._kernels.find(("correlate", x.dtype.char, dtype.char, wide), _made)
        if launch is None:
            return None
        result = self._ndarray(x.shape, dtype)
        inner = math.prod(x.shape[axis + 1:])
        launch(min(-(-x.size // THREADS), _MOST), THREADS, [
            x, result, weights.values, weights.table, x.size, x.shape[axis], inner, weights.before, weights.values.size,
            weights.form, cval])
        return result
