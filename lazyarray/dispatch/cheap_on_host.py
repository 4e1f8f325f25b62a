"""Which functions take NumPy so little time that it may do them with the largest of the small arrays.

A kernel takes about the same time whatever it computes; NumPy takes ten times as long for a sine as for an addition.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..functions.views import VIEWS

__all__ = ["CHEAP", "COSTLY"]

#: All functions but those in `CHEAP` are done on the host with so many times fewer bytes. Nanoseconds for each element
#: of 10,000 float64, NumPy 2.5 on one core of an AMD EPYC: addition 0.15, sum 0.2, division 0.3, where 0.4, square root
#: 0.9, bincount 1.3, power 1.4, sort 2.8, FFT 4, sine 7, argsort 8. C has the number too (`_native/recording_host.h`).
COSTLY = 8

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
    "std sum swapaxes trace transpose var astype conj conjugate tolist tobytes item")
#: Of products the multiplications are counted besides: `PRODUCTS` in C, and `GROWING` in `small_arrays`.
_FUNCTIONS = (
    "all any max min amax amin sum prod mean std var argmax argmin count_nonzero nonzero trace dot inner where "
    "clip concatenate stack vstack hstack dstack column_stack append copy copyto tile repeat roll flip take diff "
    "take_along_axis "
    "array astype zeros_like ones_like empty_like full_like array_equal nansum nanmean nanmax nanmin tril triu "
    "outer tensordot einsum convolve correlate bincount flatnonzero ptp insert delete rot90 average trapezoid gradient")


def _named(place: Any, names: str) -> list[Callable[..., Any]]:
    return [getattr(place, name) for name in names.split() if hasattr(place, name)]


#: What takes about as long for each element as an addition: operators, ufuncs, methods and functions.
CHEAP: frozenset[Callable[..., Any]] = frozenset((
    *_named(operator, _OPERATORS), *_named(np, _UFUNCS), *_named(np.ndarray, _METHODS), operator.contains,
    *_named(np, _FUNCTIONS), *_named(np.linalg, "matmul vecdot outer tensordot"), *VIEWS))
