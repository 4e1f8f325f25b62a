"""`numpy.fft`.

CuPy takes -1 in `s` for a slice's end and floats for sizes, mistakes the layout of a real array that it has to
convert, and gives irfftn of a spectrum without symmetry another meaning than NumPy: there, only the last axis is real.
NumPy rounds the factor of a transform to the input's precision, half precision included; so does this.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.fft as npf

from ... import devices
from ...errors import refuse, wrong
from .common import array, axis_index, integer


def _one(name: str) -> Any:
    def adapter(xp, /, a, n=None, axis=-1, norm=None, out=None):
        a = _ready(xp, a, real=name in ("rfft", "ihfft"))
        axis = axis_index(axis, a.ndim)
        n = None if n is None else integer(n)
        wrong(n is not None and n < 1, f"Invalid number of FFT data points ({n}) specified.")
        if name in _KINDS:
            points = n or (2 * (a.shape[axis] - 1) if name == "irfft" else a.shape[axis])
            found = _at_once(a, [(name, points, axis % a.ndim)], norm)
            if found is not None:
                return found
        return _transformed(xp, name, a, n, axis, norm)

    return adapter


#: Name -> kind of the transform, and the sign of its exponent.
_KINDS = {"fft": ("C2C", -1), "ifft": ("C2C", 1), "rfft": ("R2C", -1), "irfft": ("C2R", 1)}


def _at_once(a: Any, steps: list[tuple[str, int, int]], norm: str | None) -> Any:
    """Transforms (name, points, axis), one after the other, by `Device.transform`; None where that can't do it."""
    total = math.prod([points for _, points, _ in steps])
    if total < 1 or norm not in (None, "backward", "ortho", "forward"):
        return None
    plain = "forward" if steps[-1][0] in _BACKWARD else "backward"
    factor = 1.0 if (norm or "backward") == plain else 1 / math.sqrt(total) if norm == "ortho" else 1 / total
    return devices.current().transform(
        a, tuple([(*_KINDS[name], axis, points) for name, points, axis in steps]), factor)


_BACKWARD = frozenset({"ifft", "irfft", "ihfft"})


def _transformed(xp: Any, name: str, a: Any, n: int | None, axis: int, norm: str | None) -> Any:
    """The transform along one axis."""
    if a.dtype != np.float16 or norm not in (None, "backward", "ortho", "forward"):
        return getattr(xp.fft, name)(a, n, axis, norm)
    plain = "forward" if name in _BACKWARD else "backward"
    real = name in ("irfft", "hfft")
    result = getattr(xp.fft, name)(a.astype(np.float32), n, axis, plain)
    if (norm or "backward") != plain:
        points = n or (2 * (a.shape[axis] - 1) if real else a.shape[axis])
        points = np.sqrt(points, dtype=np.float16) if norm == "ortho" else points
        result = result * np.float32(np.reciprocal(points, dtype=np.float16))
    return result.astype(np.float16) if real else result


def _ready(xp: Any, a: Any, real: bool = False) -> Any:
    a = array(xp, a)
    wrong(real and a.dtype.kind == "c", "ufunc 'rfft' did not contain a loop with signature matching types")
    refuse(a.size == 0 or a.dtype.kind == "b", "transforms of empty or boolean arrays are not supported on the device")
    return a


def _shape_and_axes(a: Any, s: Any, axes: Any, real_output: bool) -> tuple[list[int], list[int]]:
    """Sizes and axes as plain lists; what NumPy warns of goes to the host."""
    if s is None:
        axes = list(range(a.ndim)) if axes is None else [axis_index(x, a.ndim) for x in axes]
        s = [a.shape[x] for x in axes]
        if real_output and axes:
            s[-1] = (s[-1] - 1) * 2
        return s, axes
    if set(map(type, s)) == {int} and -1 not in s and type(axes) is tuple and len(axes) == len(s) and (
            set(map(type, axes)) == {int}) and -a.ndim <= min(axes) and max(axes) < a.ndim:
        return list(s), [x % a.ndim for x in axes]
    refuse(any(n is None for n in s), "None among the sizes is not supported on the device")
    if axes is None:
        # NumPy itself gives its warning.
        np.fft.fftn(np.zeros((1,) * a.ndim), [1] * len(s))
        axes = range(a.ndim - len(s), a.ndim)
    axes = [axis_index(x, a.ndim) for x in axes]
    wrong(len(s) != len(axes), "Shape and axes have different lengths.")
    return [a.shape[x] if n == -1 else integer(n) for n, x in zip(s, axes)], axes


def _many(name: str) -> Any:
    real_input, real_output = name.startswith("rfft"), name.startswith("irfft")
    default = None if name.endswith("n") else (-2, -1)
    last = name.rstrip("n2")
    step = "ifft" if last in _BACKWARD else "fft"       # along the other axes

    def adapter(xp, /, a, s=None, axes=default, norm=None, out=None):
        a = _ready(xp, a, real_input)
        s, axes = _shape_and_axes(a, s, axes, real_output)
        if not axes and last in ("fft", "ifft") and not real_input:
            refuse(a.ndim == 0, "transforms of 0-d arrays are not supported on the device")
            return a
        refuse(not axes or min(s) < 1, "transforms of no axes or no points are not supported on the device")
        # One axis after the other, as NumPy does it: the last first, or last where its result is real.
        order = [*zip(s, axes)] if real_output else [*zip(s, axes)][::-1]
        at_last = len(order) - 1 if real_output else 0
        order = [(n, x, last if i == at_last else step) for i, (n, x) in enumerate(order)]
        if len(set(axes)) == len(axes) and a.dtype != np.float16:
            found = _at_once(a, [(kind, n, x % a.ndim) for n, x, kind in order], norm)
            if found is not None:
                return found
            if not real_output:
                if real_input:
                    a = xp.ascontiguousarray(a, a.dtype if a.dtype == np.float32 else np.float64)
                return getattr(xp.fft, name)(a, s, axes, norm)
        for n, x, kind in order:
            a = _transformed(xp, kind, a, n, x, norm)
        return a

    return adapter


ADAPTED: dict[Any, Any] = {
    **{getattr(npf, n): _one(n) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{getattr(npf, n): _many(n) for n in
       ("fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn")},
}

