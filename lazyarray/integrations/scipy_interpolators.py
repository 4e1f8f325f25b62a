"""Splines and grids of SciPy that are called with lazy arrays: they are made anew on the device, of the same arrays.

An object may be changed between two calls, so its arrays are uploaded in each call, but for those that are read-only
or lazy.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import devices, routed, wrapping
from .twins import Twin


def piecewise(twin: Twin, host: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``PPoly.__call__``, of cubic splines and the like too, and ``BPoly.__call__``, which is the same function."""
    self, *rest = args

    def family() -> Any:
        name = next(kind.__name__ for kind in type(self).__mro__ if kind.__name__ in ("PPoly", "BPoly"))
        return getattr(devices.current().library("cupyx.scipy.interpolate"), name)

    return _called(twin, host, self, (self.c, self.x), rest, kwargs,
                   lambda c, x: family().construct_fast(c, x, self.extrapolate, self.axis))


def spline(twin: Twin, host: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``BSpline.__call__``."""
    self, *rest = args
    return _called(twin, host, self, (self.t, self.c), rest, kwargs,
                   lambda t, c: twin.function.construct_fast(t, c, self.k, self.extrapolate, self.axis))


def grid(twin: Twin, host: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``RegularGridInterpolator.__call__``."""
    self, *rest = args
    return _called(twin, host, self, (self.values, *self.grid), rest, kwargs,
                   lambda values, *points: twin.function(points, values, method=self.method, fill_value=self.fill_value,
                                                         bounds_error=self.bounds_error))


def _called(twin: Twin, host: Callable[..., Any], self: Any, parts: tuple[Any, ...], rest: list[Any],
            kwargs: dict[str, Any], make: Callable[..., Any]) -> Any:
    """Call what `make` makes of the device's arrays of `parts`."""
    count = len(parts)

    def on_device(*arrays: Any, **kwargs: Any) -> Any:
        with routed.unrouted():
            return make(*arrays[:count])(*arrays[count:], **kwargs)

    def on_host(*arrays: Any, **kwargs: Any) -> Any:
        return host(self, *arrays[count:], **kwargs)

    return wrapping.run(on_device, (*parts, *rest), kwargs, name=f"{twin.host}.__call__", host=on_host)
