"""Fourier transforms of whole arrays, one axis after the other, by cuFFT.

CuPy's own functions copy an array whose axis is not the last, and look at each argument again at each step; for small
arrays that takes several times as long as the transforms. Plans are kept where CuPy keeps its own
(``cupy.fft.config.get_plan_cache``), under CuPy's keys, so that the limits that are set there hold for them too. What
has to be cropped, padded or converted is left to CuPy, and so is what a program has set up for it: plans, callbacks and
several GPUs.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors.inspection import Unique

__all__ = ["Step", "Transforms", "layout"]

#: Elements from here on are left to CuPy: cuFFT counts by 32 bits.
_LONG = 1 << 31
_REAL = {"F": np.dtype("f"), "D": np.dtype("d")}
_COMPLEX = {"f": np.dtype("F"), "d": np.dtype("D")}


class Step(NamedTuple):
    """A transform along an axis (from 0 on): "C2C", "R2C" or "C2R", the sign of its exponent, and its points."""

    kind: str
    sign: int
    axis: int
    points: int


def layout(shape: tuple[int, ...], axis: int) -> tuple[int, int, int] | None:
    """(Transforms, from one element of a transform to the next, from one transform to the next is the axis) of an array
    in C order: the last is true where they lie one after the other. None if that is more than one distance."""
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1:])
    if outer > 1 and inner > 1:
        return None
    return outer * inner, inner, inner == 1


class Transforms(Unique):
    """Transforms on the current device and stream.

    Parameters
    ----------
    cupy : module
    load : callable
        Gives CuPy's module of cuFFT, which is loaded with the first transform.
    """

    def __init__(self, cupy: Any, load: Callable[[], Any]) -> None:
        self._cupy, self._ndarray, self._load = cupy, cupy.ndarray, load
        self._cufft: Any = None

    def __call__(self, a: Any, steps: Sequence[tuple[str, int, int, int]], factor: float) -> Any:
        """`a` after all steps, times `factor`, as a new array; None where it is for CuPy."""
        if not a._c_contiguous or not 0 < a.size < _LONG or a.dtype.char not in (
                _COMPLEX if steps[0][0] == "R2C" else _REAL):
            return None
        layouts = [layout(a.shape, axis) for _, _, axis, _ in steps]
        if None in layouts or any((points // 2 + 1 if kind == "C2R" else points) != a.shape[axis]
                                  for kind, _, axis, points in steps):
            return None
        cufft, config = self._cufft, self._cupy.fft.config
        if cufft is None:
            cufft = self._cufft = self._load()
        if cufft.get_current_plan() is not None or config.get_current_callback_manager() is not None or (
                config.use_multi_gpus):
            return None
        if steps[0][0] == "C2R":
            a = a.copy()        # cuFFT overwrites what it reads
        for step, (count, stride, together) in zip(steps, layouts):     # type: ignore[misc]
            a = self._transformed(cufft, config.get_plan_cache(), a, Step(*step), count, stride, together)
        if factor != 1:
            a *= factor
        return a

    def _transformed(self, cufft: Any, cache: Any, a: Any, step: Step, count: int, stride: int,
                     together: bool) -> Any:
        kind, sign, axis, points = step
        given = a.shape[axis]
        got = points // 2 + 1 if kind == "R2C" else points
        dtype = _COMPLEX[a.dtype.char] if kind == "R2C" else _REAL[a.dtype.char] if kind == "C2R" else a.dtype
        single = dtype.char in "fF"
        number = getattr(cufft, f"CUFFT_{kind}" if single else f"CUFFT_{kind.replace('C', 'Z').replace('R', 'D')}")
        key = ((points,), (given,), stride, given if together else 1, (got,), stride, got if together else 1, number,
               count, "C", axis, None if kind == "C2C" else got)
        plan = cache.get(key)
        if plan is None:
            plan = cache[key] = cufft.PlanNd(*key)
        out = self._ndarray((*a.shape[:axis], got, *a.shape[axis + 1:]), dtype)
        plan.fft(a, out, sign)
        return out
