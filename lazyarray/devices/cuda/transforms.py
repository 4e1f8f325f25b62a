"""Fourier transforms of whole arrays by cuFFT: along adjacent axes at once, else one axis after the other.

CuPy's own functions copy an array whose axis is not the last, and look at each argument again at each step; for small
arrays that takes several times as long as the transforms. Plans are kept where CuPy keeps its own
(``cupy.fft.config.get_plan_cache``), under CuPy's keys, so that the limits that are set there hold for them too. What
has to be cropped or padded is left to CuPy, and so is what a program has set up for it: plans, callbacks and several
GPUs.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors.inspection import Unique

__all__ = ["Step", "Transforms", "grouped", "layout"]

#: Elements from here on are left to CuPy: cuFFT counts by 32 bits.
_LONG = 1 << 31
_REAL = {"F": np.dtype("f"), "D": np.dtype("d")}
_COMPLEX = {"f": np.dtype("F"), "d": np.dtype("D")}
#: As many axes as one plan of cuFFT transforms.
_RANK = 3
#: Transforms with strides, along an axis that is not the last: from so many bytes on cuFFT is slower at them than CuPy
#: at a copy, transforms of what lies together and a copy back; of real numbers, of complex ones, and of so many points
#: (H200; `benchmarks/results/transforms-cuda-2026-11-29.json`).
_MOST_REAL, _MOST_COMPLEX, _MOST_LONG, _LONG_POINTS = 32 << 20, 512 << 20, 24 << 20, 1 << 14
#: So many arrangements are kept.
_KEPT = 1024


class Step(NamedTuple):
    """A transform along an axis (from 0 on): "C2C", "R2C" or "C2R", the sign of its exponent, and its points."""

    kind: str
    sign: int
    axis: int
    points: int


class Stage(NamedTuple):
    """What one plan does: the key of CuPy's for it, and what comes out."""

    key: tuple[Any, ...]
    sign: int
    shape: tuple[int, ...]
    dtype: np.dtype


def layout(shape: tuple[int, ...], first: int, last: int) -> tuple[int, int, bool] | None:
    """(Transforms, from one element of a transform to the next along the last axis, whether they lie one after the
    other) for the axes from `first` to `last` of an array in C order. None if that is more than one distance."""
    outer, inner = math.prod(shape[:first]), math.prod(shape[last + 1:])
    if outer > 1 and inner > 1:
        return None
    return outer * inner, inner, inner == 1


def grouped(steps: Sequence[Step]) -> list[list[Step]]:
    """The steps, those together that one plan can do: of adjacent axes, of which only the last may be real."""
    groups: list[list[Step]] = []
    for step in steps:
        group = groups[-1] if groups else []
        axes = [one.axis for one in group]
        if group and len(group) < _RANK and step.kind == "C2C" and step.sign == group[0].sign and (
                group[0].kind != "C2R" and (step.axis == min(axes) - 1 or (
                    step.axis == max(axes) + 1 and group[0].kind == "C2C"))):
            group.append(step)
        else:
            groups.append([step])
    return groups


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
        self._stages: dict[Any, list[Stage] | None] = {}

    def __call__(self, a: Any, steps: tuple[tuple[str, int, int, int], ...], factor: float) -> Any:
        """`a` after all steps, times `factor`, as a new array in C order; None where it is for CuPy."""
        arranged = a.shape, a.dtype.char, steps
        try:
            stages = self._stages[arranged]
        except KeyError:
            if len(self._stages) >= _KEPT:
                self._stages.clear()
            stages = self._stages[arranged] = self._arranged(a.shape, a.dtype, [Step(*step) for step in steps])
        if stages is None:
            return None
        cufft, config = self._cufft, self._cupy.fft.config
        if cufft.get_current_plan() is not None or config.get_current_callback_manager() is not None or (
                config.use_multi_gpus):
            return None
        given = a
        wanted = _read_dtype(a.dtype, steps[0][0])
        if not a._c_contiguous or a.dtype != wanted:
            a = self._cupy.ascontiguousarray(a, wanted)
        if steps[0][0] == "C2R" and a is given:
            a = a.copy()        # cuFFT overwrites what it reads
        cache, ndarray = config.get_plan_cache(), self._ndarray
        for key, sign, shape, dtype in stages:
            plan = cache.get(key)
            if plan is None:
                plan = cache[key] = cufft.PlanNd(*key)
            out = ndarray(shape, dtype)
            plan.fft(a, out, sign)
            a = out
        if factor != 1:
            a *= factor
        return a

    def _arranged(self, shape: tuple[int, ...], dtype: np.dtype, steps: Sequence[Step]) -> list[Stage] | None:
        """The plans for an array of this shape and dtype; None where that is for CuPy."""
        if self._cufft is None:
            self._cufft = self._load()
        if not 0 < math.prod(shape) < _LONG or dtype.char == "e" or (steps[0].kind == "R2C" and dtype.kind == "c"):
            return None
        stages: list[Stage] = []
        dtype = _read_dtype(dtype, steps[0].kind)
        for group in grouped(steps):
            stage = self._stage(shape, dtype, sorted(group, key=lambda step: step.axis))
            if stage is None:
                return None
            stages.append(stage)
            shape, dtype = stage.shape, stage.dtype
        return stages

    def _stage(self, shape: tuple[int, ...], dtype: np.dtype, group: Sequence[Step]) -> Stage | None:
        first, last = group[0].axis, group[-1].axis
        walked, kind = layout(shape, first, last), group[-1].kind
        given = shape[first:last + 1]
        points = tuple([step.points for step in group])
        if walked is None or given != (*points[:-1], points[-1] // 2 + 1 if kind == "C2R" else points[-1]):
            return None
        count, stride, together = walked
        nbytes = math.prod(shape) * dtype.itemsize
        if len(group) == 1 and stride > 1 and nbytes >= (
                _MOST_LONG if points[0] > _LONG_POINTS else _MOST_COMPLEX if kind == "C2C" else _MOST_REAL):
            return None
        got = (*points[:-1], points[-1] // 2 + 1) if kind == "R2C" else points
        dtype = _COMPLEX[dtype.char] if kind == "R2C" else _REAL[dtype.char] if kind == "C2R" else dtype
        name = kind if dtype.char in "fF" else kind.replace("C", "Z").replace("R", "D")
        alone = first == 0 and last == len(shape) - 1       # CuPy's key has a distance of 1 then
        distances = [math.prod(n) if together and not alone else 1 for n in (given, got)]
        key = (points, given, stride, distances[0], got, stride, distances[1], getattr(self._cufft, f"CUFFT_{name}"),
               count, "C", last, None if kind == "C2C" else got[-1])
        return Stage(key, group[0].sign, (*shape[:first], *got, *shape[last + 1:]), dtype)


def _read_dtype(dtype: np.dtype, kind: str) -> np.dtype:
    """The dtype of what a transform reads, where it is given an array of `dtype`."""
    single = dtype.char in "fF"
    return np.dtype(("f" if single else "d") if kind == "R2C" else "F" if single else "D")
