"""What CUDA computes by kernels of ours and by NVIDIA's libraries, where CuPy is slower or means another thing.

Kernels are compiled in the background. Until one is there, and for what none is made for, CuPy's function does it.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import lines
from ..base import HOLDABLE
from ..operations import Operations
from ..program import WIDE, Extent, Operand, Program, Reduction, cast_of
from .factors import Cholesky, Factorizer
from .kernels import division
from .kernels.boolean_mask import Selections
from .kernels.elementwise import Kernel, Kernels
from .kernels.histogram import Histograms
from .kernels.line_filters import LineFilters
from .kernels.reduction import Reductions
from .kernels.rows import Rows
from .kernels.snippets import snippet
from .kernels.sorted_rows import SortedRows
from .products import Products
from .transforms import Transforms

if TYPE_CHECKING:
    from ..program import Step
    from .copies.copies import Copies

__all__ = ["CudaOperations"]

#: Elements below which a program is fused only when it comes again.
_FEW = 1 << 18
#: Elements that one thread adds up on the average, at most (not varied).
_LONG_SUM = 64


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    return len(shape) <= len(target) and all(n in (1, wanted) for n, wanted in zip(shape[::-1], target[::-1]))


def _copying(source: np.dtype, target: np.dtype, ndim: int, value_mode: str, target_flat: bool) -> Program:
    """What sets elements from others, or from a number; without steps if that would lose an imaginary part."""
    if source not in HOLDABLE or target not in HOLDABLE or source.kind == "c" and target.kind != "c":
        return Program((), (), (), 0)
    inputs = Operand(source, value_mode), Operand(target, "flat" if target_flat else "strided")
    ndim = 0 if value_mode != "strided" and target_flat else ndim
    return Program(inputs, ((cast_of(source, target), (0,)),), (2,), ndim, into=True)


@functools.cache
def _extremes_of(dtype: np.dtype) -> tuple[Program, Reduction, np.dtype]:
    """What finds both in one pass, into the bytes of a number of 16, and the dtype that these are to be seen in."""
    wide = np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return Program((Operand(dtype, "flat"),), (), (0,), 0), Reduction("extremes", dtype, dtype, np.dtype(complex)), wide


class CudaOperations(Operations):
    """The operations of a device that has these members besides."""

    count: int
    _ndarray: type
    fused_from: int
    several: bool
    stream: Callable[[], Any]
    on_current: Callable[..., bool]

    def compute_with(self, kernels: Kernels, copies: Copies, cublas: Callable[[], Any], cusolver: Callable[[], Any],
                     cufft: Callable[[], Any]) -> None:
        """Compute by these kernels from now on, and by these libraries, which are loaded when they are needed."""
        cupy, self.kernels = kernels.cupy, kernels
        kernels.waits = True
        reductions = Reductions(kernels, self.count)
        self.reduction = reductions.get     # type: ignore[method-assign]
        selections = Selections(kernels, lambda: reductions.counters(self.stream()), copies)
        self.selected = selections.of       # type: ignore[method-assign]
        self._rows, self._line_filters = Rows(kernels), LineFilters(kernels)
        self._sorted_rows, self._histograms = SortedRows(kernels), Histograms(kernels)
        self.product = Products(cupy, cublas, self._in_c_order)     # type: ignore[method-assign]
        factorizer = self.factors = Factorizer(     # type: ignore[method-assign]
            cupy, lambda: cublas()[0], cusolver, self.stream)
        self.triangular = factorizer.triangular     # type: ignore[method-assign]
        self.cholesky = Cholesky(self.factors)      # type: ignore[method-assign]
        self.transform = Transforms(cupy, cufft)       # type: ignore[method-assign]
        self._copying: dict[Any, Program] = {}      # of dtypes, axes, and whether these are in C order

    def kernel(self, program: Program, size: int) -> Kernel | None:
        kernels, now = self.kernels, False
        if program.uses < self.fused_from:
            now = not program.uses and kernels.pays(program)
            program.uses = self.fused_from if now else program.uses + 1
            if size < _FEW and program.uses < self.fused_from:
                kernels.unfused(program)
                return None
        found = kernels.get(program, size, now)
        if found is None:
            kernels.unfused(program)
        elif size < WIDE and not self.several:
            program.kernel = found
        return found

    def copied(self, target: Any, value: Any) -> bool:
        """Whether a kernel of ours has set an array from a number, or from one that lies apart. What does not broadcast
        to it, or would lose an imaginary part, is left to others, errors included.
        """
        if isinstance(value, np.generic):
            mode = "value"
        elif (same := value.shape == target.shape) or _broadcasts(value.shape, target.shape):
            mode = "flat" if same and value._c_contiguous else "strided"
        else:
            return False
        key = value.dtype, target.dtype, target.ndim, mode, target._c_contiguous
        program = self._copying.get(key)
        if program is None:
            program = self._copying[key] = _copying(*key)
        if not program.steps:
            return False
        kernel, arguments, shape = program.kernel or self.kernel(program, target.size), [value, target], target.shape
        launch = None if kernel is None or target.size >= WIDE else kernel.launch
        return launch is not None and (launch(arguments, shape, False) is not None or (
            kernel.prepare(arguments, shape, False) and launch(arguments, shape, False) is not None))

    def _in_c_order(self, array: Any) -> Any:
        """A copy in C order."""
        out = self.empty(array.shape, array.dtype)
        if not (self.on_current(array) and self.copied(out, array)):
            out[...] = array
        return out

    def positions(self, array: Any) -> Any:
        return self._in_c_order(array) if array.dtype.char in "ilq" else super().positions(array)

    def extremes(self, array: Any) -> Any:
        program, reduction, wide = _extremes_of(array.dtype)
        if not (array._c_contiguous or array._f_contiguous):
            array = self.xp.ascontiguousarray(array)
        kernel = self.reduction(program, reduction, Extent(1, array.size, 1), [array], (array.shape, False), True)
        if kernel is not None:
            return kernel([array], 1.0, (1,), self.stream()).view(wide)
        found = self._ndarray((2,), array.dtype)
        found[0], found[1] = array.min(), array.max()
        return found

    def take_at(self, view: Any, positions: Sequence[Any], axis: int = 0) -> Any:
        arrays = [p for p in positions if type(p) is self._ndarray]
        found = self._rows.take(view, positions, axis) if self.on_current(view, *arrays) else None
        return super().take_at(view, positions, axis) if found is None else found

    def put_at(self, view: Any, positions: Sequence[Any], values: Any, order: Any = None, axis: int = 0) -> None:
        arrays = [x for x in (view, *positions, values, order) if type(x) is self._ndarray]
        if not (self.on_current(*arrays) and self._rows.put(view, positions, values, order, axis)):
            super().put_at(view, positions, values, order, axis)

    def numbered(self, positions: Sequence[Any], lengths: Sequence[int], from_end: Sequence[bool]) -> Any:
        found = self._rows.number(positions, lengths) if self.on_current(*positions) else None
        return super().numbered(positions, lengths, from_end) if found is None else found

    def joined(self, arrays: Sequence[Any], axis: int) -> Any:
        found = self._rows.join(arrays, axis) if self.on_current(*arrays) else None
        return super().joined(arrays, axis) if found is None else found

    @functools.cached_property
    def _convolved(self) -> Any:
        """One kernel: lines of it take a third of the time of CuPy's (the same results)."""
        return self.xp.ElementwiseKernel(
            "raw T a, raw T v, int64 start, int64 n, int64 m", "T out", """
            const long long k = i + start, last = k < m ? k : m - 1;
            T sum = T(0);
            for (long long j = k < n ? 0 : k - n + 1; j <= last; ++j) sum += a[k - j] * v[j];
            out = sum;
            """, "lazyarray_convolved")

    def convolved(self, a: Any, v: Any, start: int, count: int) -> Any:
        if not self.on_current(a, v):
            return super().convolved(a, v, start, count)
        out = self.empty((count,), a.dtype)
        self._convolved(a, v, start, a.size, v.size, out)
        return out

    @functools.cached_property
    def _interpolated(self) -> Any:
        """CuPy's ``interp`` looks for places in contiguous copies of the points, and has a second kernel for the rest:
        a call with points that are not contiguous took 121 us of the host's time, and takes 97 so, then with a
        test-suite on the same machine (``benchmarks/results/statements-cuda-2026-11-28.json``). As NumPy's
        `compiled_base.c`: on a point its value, however large its neighbours are.
        """
        return self.xp.ElementwiseKernel(
            "float64 x, raw float64 xs, raw float64 ys, int64 n, float64 left, float64 right, int32 given",
            "float64 y", """
            long long k = 0;
            for (long long end = n; end - k > 1;) {
              const long long half = k + (end - k) / 2;
              if (xs[half] <= x) k = half; else end = half;
            }
            const double x0 = xs[k], y0 = ys[k];
            if (isnan(x)) y = x;
            else if (x < x0) y = given & 1 ? left : y0;
            else if (k == n - 1) y = x > x0 && given & 2 ? right : y0;
            else if (x == x0) y = y0;
            else {
              const double x1 = xs[k + 1], y1 = ys[k + 1];
              const double slope = __ddiv_rn(__dsub_rn(y1, y0), __dsub_rn(x1, x0));
              y = __dadd_rn(__dmul_rn(slope, __dsub_rn(x, x0)), y0);
              if (isnan(y)) {
                y = __dadd_rn(__dmul_rn(slope, __dsub_rn(x, x1)), y1);
                if (isnan(y) && y0 == y1) y = y0;
              }
            }
            """, "lazyarray_interpolated")

    def interpolated(self, x: Any, xs: Any, ys: Any, left: float | None, right: float | None) -> Any:
        if not self.on_current(x, xs, ys):
            return super().interpolated(x, xs, ys, left, right)
        out = self.empty(x.shape, x.dtype)
        self._interpolated(x, xs, ys, xs.size, *[0.0 if v is None else float(v) for v in (left, right)],
                           (left is not None) + 2 * (right is not None), out)
        return out

    @functools.cached_property
    def _between(self) -> Any:
        """One kernel for six."""
        return self.xp.ElementwiseKernel(
            "T low, T high, T last, R weight, int32 kind", "R out", """
            const R a = low, b = high, step = (R)(T)(high - low);
            if (kind & 1 && last != last) out = (R)CUDART_NAN;
            else if (!(kind & 2)) out = a;
            else out = kind & 4 ? lz_sum(a, lz_product(step, weight)) : lz_sum(b, -lz_product(step, weight));
            """, "lazyarray_between", preamble="""
            #include <cupy/math_constants.h>
            __device__ inline float lz_sum(float a, float b) { return __fadd_rn(a, b); }
            __device__ inline double lz_sum(double a, double b) { return __dadd_rn(a, b); }
            __device__ inline float lz_product(float a, float b) { return __fmul_rn(a, b); }
            __device__ inline double lz_product(double a, double b) { return __dmul_rn(a, b); }
            """)

    def between(self, low: Any, high: Any, weight: float, last: Any, out: Any) -> None:
        result, near = out.dtype, weight < 0.5
        if result.char not in "fd" or low.dtype.char not in "bBhHiIlLqQfd" or not self.on_current(low, high, out):
            super().between(low, high, weight, last, out)
        else:
            self._between(low, high, low if last is None else last, result.type(weight if near else 1 - weight),
                          (last is not None) + 2 * (low is not high) + 4 * near, out)

    @functools.cached_property
    def _differences(self) -> Any:
        """CuPy's ``gradient`` has a kernel for each operator, of what is inside and of each edge. A line of it in a
        program takes 16 ms, CuPy's 47 (``benchmarks/results/statements-cuda-2026-11-28.json``).
        """
        return self.xp.ElementwiseKernel(
            "raw T f, int64 columns, int64 length, T twice, T once", "T out", """
            const long long row = _ind.size() >> 31 ? i / columns % length
                                : (unsigned int)i / (unsigned int)columns % (unsigned int)length;
            const bool after = row + 1 < length, before = row > 0;
            out = (f[after ? i + columns : i] - f[before ? i - columns : i]) / (after && before ? twice : once);
            """, "lazyarray_differences")

    def differences(self, f: Any, axis: int, spacing: float) -> Any:
        if not self.on_current(f):
            return super().differences(f, axis, spacing)
        out, number = self.empty(f.shape, f.dtype), f.dtype.type
        self._differences(f, math.prod(f.shape[axis + 1:]), f.shape[axis], number(2.0 * spacing), number(spacing), out)
        return out

    def padded(self, array: Any, pairs: Sequence[Sequence[int]], mode: str, value: np.generic) -> Any:
        found = self._rows.pad(array, pairs, mode, value) if self.on_current(array) else None
        return super().padded(array, pairs, mode, value) if found is None else found

    @functools.cached_property
    def _sums(self) -> Any:
        """CuPy's ``reduceat`` subtracts running totals, by ten kernels: 281 us of the host's time for 6,000 of 20,000
        elements (H100, 2026-11-29), and digits are lost.
        """
        return self.xp.ElementwiseKernel(
            "raw T a, raw int64 starts, int64 count, int64 n, int64 inner", "T sum", """
            const long long one = i / inner, w = i - one * inner, outer = one / count, k = one - outer * count;
            const long long begin = starts[k], next = k + 1 < count ? starts[k + 1] : n;
            lz_wide<T>::type total = a[(outer * n + begin) * inner + w];
            for (long long j = begin + 1; j < next; ++j) total += a[(outer * n + j) * inner + w];
            sum = total;
            """, "lazyarray_sums_from", preamble="""
            template <typename T> struct lz_wide { typedef T type; };
            template <> struct lz_wide<float> { typedef double type; };
            """)

    def sums_from(self, array: Any, starts: Any, axis: int) -> Any:
        count, n = starts.size, array.shape[axis]
        if not count or n > _LONG_SUM * count or array.dtype.char == "e" or not self.on_current(array, starts):
            return super().sums_from(array, starts, axis)
        shape = *array.shape[:axis], count, *array.shape[axis + 1:]
        out = self.empty(shape, array.dtype)
        self._sums(array, starts, count, n, math.prod(shape[axis + 1:]), out)
        return out

    def rolled(self, array: Any, shift: int, axis: int) -> Any:
        found = self._rows.roll(array, shift, axis) if self.on_current(array) else None
        return super().rolled(array, shift, axis) if found is None else found

    @functools.cached_property
    def _last(self) -> tuple[Any, Any]:
        """Kernels that note, in numbers that begin at -1, where each key comes last, and that read it."""
        make, place = self.xp.ElementwiseKernel, "(key < 0 ? key + last.size() : key)"
        return (make("K key", "raw int32 last", f"atomicMax(&last[{place}], (int)i)", "lazyarray_note_last"),
                make("K key, raw int32 last", "int32 found", f"found = last[{place}]", "lazyarray_read_last"))

    def last_of_each(self, key: Any, places: int) -> Any:
        note, read = self._last
        last = self.empty((places,), np.dtype(np.int32))
        last.data.memset_async(0xFF, last.nbytes)
        note(key, last)
        return read(key, last)

    def fuses(self, step: Step) -> bool:
        return snippet(step, self.xp) is not None

    def sort_rows(self, x: Any, places: bool = False) -> Any:
        found = self._sorted_rows(x, places) if self.on_current(x) else None
        return super().sort_rows(x, places) if found is None else found

    def sort_in_place(self, x: Any) -> None:
        if not self.on_current(x) or self._sorted_rows(x, False, x) is None:
            super().sort_in_place(x)

    @functools.cached_property
    def _unsigned_nan(self) -> Any:
        return self.xp.ElementwiseKernel(
            "T x", "T y", "y = x == x ? x : (T)__int_as_float(0x7fffffff)", "lazyarray_unsigned_nan")

    def unsigned_nan(self, x: Any, out: Any = None) -> Any:
        return self._unsigned_nan(x) if out is None else self._unsigned_nan(x, out)

    def count_in_bins(self, x: Any, edges: Any) -> Any | None:
        return self._histograms(x, edges) if self.on_current(x, edges) else None

    def count_places(self, x: Any, weights: Any, bins: int) -> Any:
        given = (x,) if weights is None else (x, weights)
        found = self._histograms.places(x, weights, bins) if self.on_current(*given) else None
        return super().count_places(x, weights, bins) if found is None else found

    def ufunc_at(self, ufunc: np.ufunc, array: Any, outer: int, places: int, key: Any, values: Any) -> None:
        if not self.on_current(array, key, values) or not self._histograms.ufunc_at(
                ufunc, array, outer, places, key, values):
            super().ufunc_at(ufunc, array, outer, places, key, values)

    def divide_floats(self, a: Any, b: Any, parts: str) -> tuple[Any, ...]:
        return division.divide_floats(self.xp, a, b, parts)

    def divide_complex(self, a: Any, b: Any) -> Any:
        return division.divide_complex(self.xp, a, b)

    def correlate_lines(self, x: Any, weights: lines.Weights, axis: int, cval: float, dtype: np.dtype) -> Any:
        found = self._line_filters.correlate(x, weights, axis, cval, dtype)
        return super().correlate_lines(x, weights, axis, cval, dtype) if found is None else found
