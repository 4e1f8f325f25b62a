"""Random numbers on the device, with NumPy's interface.

`default_rng` returns a `Generator` whose methods have the parameters, dtypes, shapes and errors of NumPy's. Arrays that
CuPy's generator can draw are made on the device; the others are drawn by NumPy on the host and copied to the device
when they are needed there, with an event and a `HostFallbackWarning`. All other names are those of `numpy.random`.

On CUDA the numbers are drawn by cuRAND: the same seed gives the same numbers again, but others than NumPy's. On the
simulated device NumPy draws them (`standard_exponential` by the method "inv").
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import random as _random

from lazyarray import devices
from lazyarray.dispatch.host_fallback import on_host
from lazyarray.events.fallback_warning import warn_fallback
from lazyarray.events.trace import begin, end
from lazyarray.settings.options import current as current_options
from lazyarray.storage import handles

__all__ = sorted({*_random.__all__, "Generator", "default_rng"})

#: Method -> its parameters that CuPy's method of the same name takes as numbers, besides the shape.
ON_DEVICE: dict[str, tuple[str, ...]] = {
    "random": (), "standard_normal": (), "standard_exponential": (), "integers": ("low", "high"),
    "uniform": ("low", "high"), "exponential": ("scale",), "normal": ("loc", "scale"), "gamma": ("shape", "scale"),
    "standard_gamma": ("shape",), "beta": ("a", "b"), "chisquare": ("df",), "f": ("dfnum", "dfden"), "power": ("a",),
    "binomial": ("n", "p"), "geometric": ("p",), "hypergeometric": ("ngood", "nbad", "nsample"), "logseries": ("p",),
    "poisson": ("lam",),
}
#: Parameters that are whole numbers for CuPy; it takes the others as floats.
_WHOLE = frozenset({"n", "ngood", "nbad", "nsample"})
_numbers = (int, float, np.integer, np.floating)


class Generator(_random.Generator):
    """A `numpy.random.Generator` whose arrays are lazy, and are drawn on the device where possible.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
        What draws on the host. Its seed determines the numbers of the device too.

    See Also
    --------
    default_rng : makes one of a seed.

    Examples
    --------
    >>> import lazyarray
    >>> rng = lazyarray.numpy.random.default_rng(42)
    >>> x = rng.normal(size=(2, 3))
    >>> lazyarray.is_lazy(x), x.dtype, x.shape
    (True, dtype('float64'), (2, 3))
    """

    def __init__(self, bit_generator: Any) -> None:
        super().__init__(bit_generator)
        self._generators: dict[int, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (self.bit_generator,)

    def on_device(self) -> Any:
        """The generator of the current device."""
        device = devices.current()
        number = device.number()
        found = self._generators.get(number)
        if found is None:       # of two that threads make at once, which would give the same numbers, one counts
            found = self._generators.setdefault(number, device.generator(self))
        return found


def default_rng(seed: Any = None) -> Generator:
    """Return a `Generator` for a seed, as `numpy.random.default_rng` does.

    Parameters
    ----------
    seed : {None, int, array_like of int, SeedSequence, BitGenerator, Generator, RandomState}, optional
        As for NumPy. A Generator of this module is returned as it is.

    Returns
    -------
    Generator

    Examples
    --------
    >>> import lazyarray
    >>> rng = lazyarray.numpy.random.default_rng(0)
    >>> rng.integers(10, size=1000).dtype
    dtype('int64')
    """
    found = _random.default_rng(seed)
    return found if isinstance(found, Generator) else Generator(found.bit_generator)


def _method(name: str, theirs: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(theirs)

    @functools.wraps(theirs)
    def method(self: Generator, *args: Any, **kwargs: Any) -> Any:
        if not current_options().lazy:
            return theirs(self, *args, **kwargs)
        reason = "CuPy's generator has no such method"
        if name in ON_DEVICE:
            try:
                given = signature.bind(self, *args, **kwargs)
            except TypeError:       # which NumPy raises in its own words
                return theirs(self, *args, **kwargs)
            given.apply_defaults()
            found = _drawn(self, name, theirs, given.arguments)
            if not isinstance(found, str):
                return found
            reason = found
        return _on_host(self, name, theirs, args, kwargs, reason)

    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


def _drawn(self: Generator, name: str, theirs: Callable[..., Any], given: dict[str, Any]) -> Any:
    """The lazy array of a call, drawn on the device; the reason, a text, if the host has to draw."""
    given = dict(given)
    given.pop("self")
    device, size, out = devices.current(), given["size"], given.get("out")
    if out is not None and not (handles.is_array(out) and out.flags.c_contiguous):
        return "out= is a host array, or not contiguous"
    if size is None and out is not None:
        size = out.shape
    if size is None:
        return ""       # one number: of Python's, as NumPy's
    numbers = [given[key] for key in ON_DEVICE[name] if not (key == "high" and given[key] is None)]
    if not all(isinstance(value, _numbers) and not isinstance(value, bool) for value in numbers):
        return "parameters that are arrays are not supported on the device"
    if reason := device.usable():
        return reason
    shape = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    # NumPy checks the arguments, and says which dtype the result has: it draws nothing.
    asked = {**given, "size": (*shape, 0)}
    if out is not None:
        asked["out"] = np.empty((*shape, 0), out.dtype)
        if out.shape != shape:
            raise ValueError("size must match out.shape when used together")
    try:
        dtype = theirs(self, **asked).dtype
    except (TypeError, ValueError):
        if out is not None:
            theirs(self, **{**given, "out": np.empty(out.shape, out.dtype)})
        return "the arguments are invalid"    # and says so in its own words
    if not device.can_hold(dtype) or dtype.kind == "b":
        return f"{dtype} is not supported on the device"
    array = _array(self.on_device(), name, given, tuple([int(n) for n in shape]))
    if array.dtype != dtype:
        array = array.astype(dtype)
    result = handles.fresh(device, array)
    if out is None:
        return result if array.ndim else handles.as_array(result)
    out[...] = result
    return out


def _array(generator: Any, name: str, given: dict[str, Any], shape: tuple[int, ...]) -> Any:
    """A device array of this shape, drawn by the device's generator."""
    if name == "integers":
        low, high = given["low"], given["high"]
        return generator.integers(int(low), None if high is None else int(high), shape, given["dtype"],
                                  given["endpoint"])
    if name in ("random", "standard_normal"):
        return getattr(generator, name)(shape, given["dtype"])
    if name == "standard_exponential":      # NumPy's method "zig" is another way to the same distribution
        return generator.standard_exponential(shape, given["dtype"], "inv")
    numbers = [int(given[key]) if key in _WHOLE else float(given[key]) for key in ON_DEVICE[name]]
    if name == "normal":
        loc, scale = numbers
        return generator.standard_normal(shape) * scale + loc
    if name == "standard_gamma":
        return generator.standard_gamma(*numbers, shape, given["dtype"])
    return getattr(generator, name)(*numbers, shape)


def _on_host(self: Generator, name: str, theirs: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
             reason: str) -> Any:
    """What NumPy draws, lazy if it is an array; that is told, but not of single numbers.

    A plain generator of the same bits draws: NumPy's own methods call each other, and ours would draw on the device.
    """
    args = _random.Generator(self.bit_generator), *args
    path = f"lazyarray.numpy.random.Generator.{name}"
    token = begin("fallback", 0, None, None, reason, path) if reason else None
    is_lazy = any(map(handles.is_lazy, (*args, *kwargs.values())))
    result = on_host(theirs, args, kwargs, reason or "the result is one number", name=path, positions=(),
                     names=("out",)) if is_lazy else theirs(*args, **kwargs)
    if type(result) is np.ndarray and not any(result is given for given in (*args, *kwargs.values())):
        result = handles.host_result(result)
    end(token)
    if reason and handles.is_array(result):
        warn_fallback(path, reason)
    return result


for _name in dir(_random.Generator):
    _theirs = getattr(_random.Generator, _name)
    if not _name.startswith("_") and callable(_theirs) and _name not in ("spawn", "bytes", "shuffle"):
        setattr(Generator, _name, _method(_name, _theirs))


def __getattr__(name: str) -> Any:
    return getattr(_random, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_random)})
