"""Splines and grids of SciPy that are called with lazy arrays: they are made anew on the device, of the same arrays.

An object may be changed between two calls, so its arrays are uploaded in each call, but for those that are read-only
or lazy.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import devices
from ...settings import enabled
from ...wrapping import decorator
from ..routing.conditions import dtype_of
from ..routing.router import without_routing
from ..routing.twin import Twin

_SINGLE = frozenset(map(np.dtype, "efF"))


def piecewise(twin: Twin, host: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``PPoly.__call__``, of cubic splines and the like too, and ``BPoly.__call__``."""

    def family(self: Any) -> Any:
        name = next(kind.__name__ for kind in type(self).__mro__ if kind.__name__ in ("PPoly", "BPoly"))
        return getattr(devices.current().library("cupyx.scipy.interpolate"), name)

    def reason(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> str:
        if self.c.dtype.kind == "c":
            return "complex coefficients are not supported on the device"
        return "derivatives are not supported on the device" if nu else ""

    return _called(twin, host, args, kwargs, lambda self: (self.c, self.x), reason,
                   lambda self, c, x: family(self).construct_fast(c, x, self.extrapolate, self.axis))


def spline(twin: Twin, host: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``BSpline.__call__``."""

    def parts(self: Any) -> tuple[Any, Any]:
        return self.t, self.c[:len(self.t) - self.k - 1]    # there may be more, which CuPy takes for some of them

    def reason(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> str:
        ends = self.t[0] == self.t[self.k] and self.t[-1] == self.t[-self.k - 1]
        return "" if ends else "splines without repeated knots at the ends are not supported on the device"

    return _called(twin, host, args, kwargs, parts, reason,
                   lambda self, t, c: twin.function.construct_fast(t, c, self.k, self.extrapolate, self.axis))


def grid(twin: Twin, host: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``RegularGridInterpolator.__call__``."""

    def reason(self: Any, xi: Any, method: str | None = None, *, nu: Any = None) -> str:
        if (method or self.method) not in ("linear", "nearest"):
            return "methods other than linear and nearest differ on the device"
        single = {dtype_of(xi), dtype_of(self.values)} & _SINGLE
        return "single precision is not supported on the device, since SciPy computes in double" if single else ""

    def make(self: Any, values: Any, *points: Any) -> Any:
        return twin.function(points, values, method=self.method, fill_value=self.fill_value,
                             bounds_error=self.bounds_error)

    return _called(twin, host, args, kwargs, lambda self: (self.values, *self.grid), reason, make)


def _called(twin: Twin, host: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
            parts: Callable[[Any], tuple[Any, ...]], reason: Callable[..., str], make: Callable[..., Any]) -> Any:
    """Call what `make` makes of the device's arrays of the object's `parts`, unless there is a reason not to."""
    self, *rest = args
    name, alone = f"{twin.host}.__call__", without_routing(host)
    try:
        why_not = reason(self, *rest, **kwargs)
    except TypeError:       # the host says so in its own words
        why_not = "invalid arguments"
    if why_not:
        return decorator.run(None, tuple(rest), kwargs, name=name, host=functools.partial(alone, self), reason=why_not)
    arrays = parts(self)
    count = len(arrays)

    def on_device(*arrays: Any, **kwargs: Any) -> Any:
        with enabled.unrouted():
            # CuPy reads coefficients that are not contiguous as if they were.
            made = make(self, *list(map(devices.current().contiguous, arrays[:count])))
            return made(*arrays[count:], **kwargs)

    def on_host(*arrays: Any, **kwargs: Any) -> Any:
        return alone(self, *arrays[count:], **kwargs)

    return decorator.run(on_device, (*arrays, *rest), kwargs, name=name, host=on_host)
