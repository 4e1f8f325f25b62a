"""Which functions take NumPy so little time that it may do them with the largest of the small arrays.

A kernel takes about the same time whatever it computes; NumPy takes ten times as long for a sine as for an addition.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..functions.adapters import fourier
from ..functions.views import VIEWS

__all__ = ["COSTLY", "COSTS", "cost_of"]

#: Functions are done on the host with so many times fewer bytes than small arrays have, if they are not in `COSTS`.
#: Nanoseconds for each element of 10,000 float64, NumPy 2.5 on one core of an AMD EPYC: addition 0.15, sum 0.2,
#: division 0.3, where 0.4, square root 0.9, bincount 1.3, power 1.4, sort 2.8, FFT 4, sine 7, argsort 8; and of 6,000
#: on another machine: addition 0.4, exponential 1.0, logarithms 0.9 to 1.1, hyperbolic functions 1 to 2.5, power 2.6
#: to 3.6, sums one after the other 3.7, sine 8.6, remainder 11.7, interpolation between as many points 73. C has the
#: number too (`_native/recording_host.h`).
COSTLY = 8
#: The same of functions that take some three times as long as an addition, and of those that take ten to 50 times
#: as long there (median 4 nanoseconds, percentile 8, transforms 6 to 17, partition and argpartition 11, histogram 14,
#: unwrap 17, unique and sort without wide registers 20), but that the device does in several kernels: on an H200 CuPy
#: took 55 to 120 us for a transform of 1,000 elements, 57 to 105 for a sort, 210 to 260 for a median, 230 to 1,170
#: for what is unique, 720 for a histogram, 400 to 600 for covariances and `unwrap` (2026-11-28, `benchmarks.sweep`).
_MODERATE, _LONG = 2, 3

_OPERATORS = (
    "add sub mul truediv and_ or_ xor lshift rshift iadd isub imul itruediv iand ior ixor ilshift irshift lt le "
    "eq ne gt ge neg pos abs invert matmul getitem setitem")
_UFUNCS = (
    "add subtract multiply divide negative positive absolute fabs conjugate sign square sqrt reciprocal rint "
    "floor ceil trunc copysign maximum minimum fmax fmin heaviside equal not_equal less less_equal greater "
    "greater_equal logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor invert "
    "left_shift right_shift isnan isinf isfinite signbit deg2rad rad2deg radians degrees matmul")
_METHODS = (
    "all any argmax argmin clip copy diagonal dot flatten max mean min nonzero prod ravel reshape round squeeze "
    "std sum swapaxes trace transpose var astype conj conjugate tolist tobytes item put fill")
#: Of products the multiplications are counted besides: `PRODUCTS` in C, and `GROWING` in `small_arrays`.
_FUNCTIONS = (
    "all any max min amax amin sum prod mean std var argmax argmin count_nonzero nonzero trace dot inner where "
    "clip concatenate stack vstack hstack dstack column_stack append copy copyto tile repeat roll flip take diff "
    "take_along_axis put put_along_axis place putmask fill_diagonal "
    "around fix iscomplex isreal real_if_close compress argwhere resize ldexp frexp "
    "array astype zeros_like ones_like empty_like full_like array_equal nansum nanmean nanmax nanmin tril triu "
    "outer tensordot einsum convolve correlate bincount flatnonzero ptp insert delete rot90 average trapezoid gradient")


def _named(place: Any, names: str) -> list[Callable[..., Any]]:
    return [getattr(place, name) for name in names.split() if hasattr(place, name)]


_MODERATE_FUNCTIONS = (
    "exp exp2 expm1 log log2 log10 log1p sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh cbrt power "
    "arctan2 tan modf cumsum cumprod nancumsum nancumprod isclose allclose nan_to_num polyval pad")

_LONG_FUNCTIONS = (
    "partition argpartition median percentile quantile nanmedian nanpercentile nanquantile histogram "
    "histogram2d histogramdd "
    "sort argsort unique unique_all unique_counts unique_inverse unique_values union1d intersect1d setdiff1d setxor1d "
    "cov corrcoef unwrap angle fmod nextafter")

#: Function -> by what the most bytes are divided: 1 for what takes about as long for each element as an addition.
COSTS: dict[Callable[..., Any], int] = {
    **dict.fromkeys((*_named(np, _MODERATE_FUNCTIONS), *fourier.ADAPTED, *_named(operator, "pow ipow"),
                     *_named(np.ndarray, "cumsum cumprod")), _MODERATE),
    **dict.fromkeys((*_named(np, _LONG_FUNCTIONS), *_named(np.ndarray, "partition argpartition sort argsort")), _LONG),
    **dict.fromkeys((
        *_named(operator, _OPERATORS), *_named(np, _UFUNCS), *_named(np.ndarray, _METHODS), operator.contains,
        *_named(np, _FUNCTIONS), *_named(np.linalg, "matmul vecdot outer tensordot norm vector_norm"), *VIEWS), 1),
}


def cost_of(func: Callable[..., Any]) -> int:
    """By what the most bytes are divided that small arrays of a call have."""
    return COSTS.get(func, COSTLY)
