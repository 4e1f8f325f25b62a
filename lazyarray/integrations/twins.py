"""What a twin is: a function of a device library that stands in for one of a host library, and within which bounds.

A twin is in a table (`scipy_twins.TWINS`, `skimage_twins.TWINS`) once it has passed the host library's own tests for
that function: run on the device with the same arguments, it gave the same, within the tolerance stated, in every call
that the bounds below let through. What the bounds keep out goes to the host, with the reason.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from .. import devices, wrap
from ..containers import PLAIN
from ..errors import NotOnDevice
from .binding import Parameters

__all__ = ["DOUBLE", "Tolerance", "Twin", "none", "table", "twins"]

Condition = Callable[[dict[str, Any]], "str | None"]
"""Given the arguments by name: why they are not for the twin, or None."""


@dataclass(frozen=True)
class Tolerance:
    """How far a twin's results may be from the host's.

    Attributes
    ----------
    single, double : float
        By precision, against the largest value of the result and of the arguments, in magnitude; of ufuncs, of the
        result alone.
    ties : float
        Share of the integers or booleans of a result that may differ, where the function compares values with each
        other to decide them: rounding decides between values that are equal but for it.
    """

    single: float = 1e-5
    double: float = 1e-12
    ties: float = 0.0

    def of(self, dtype: np.dtype) -> float:
        """The bound for results of a dtype; 0 for integers and booleans, which must be the same but for `ties`."""
        if dtype.kind not in "fc":
            return 0.0
        return self.single if dtype.char in "efF" else self.double


DOUBLE = Tolerance()
"""A few units in the last place, in either precision, and the error of sums in another order."""


@dataclass(frozen=True)
class Twin:
    """A function of a device library in the place of one of a host library.

    Attributes
    ----------
    host, device : str
        Dotted paths, such as ``scipy.ndimage.sobel`` and ``cupyx.scipy.ndimage.sobel``; a function on device arrays
        may be in this package too.
    writes : tuple of str
        Parameters that the function writes into if they are arrays.
    tolerance : Tolerance
        How far its results may be from the host's.
    dtypes : str
        Characters of the dtypes of arrays that it takes as the host does.
    lacks : dict
        Parameter -> the values (None: all but the default) that go to the host.
    conditions : tuple of callable
        Further bounds: each is given the arguments by name, and returns why they are not for the twin, or None.
    ignored : tuple of str
        Parameters of the host's that say nothing about the result, which the twin is not given.
    arrays : tuple of str
        Parameters in which the twin takes no lists of numbers or of arrays, where the host does: they are made arrays.
    kind : str
        "function", "ufunc" where NumPy's protocol for ufuncs brings the calls, or "class": its instances are called.
    adapter : str
        "module:function" in this package: what runs a call where the plain way is wrong. It is given the twin, the
        host's function, and the arguments as the caller gave them.
    reason : str
        Why it is no twin at all. Such a function runs on the host, which costs its own arrays and nothing else.
    """

    host: str
    device: str
    writes: tuple[str, ...] = ()
    tolerance: Tolerance = DOUBLE
    dtypes: str = "?bhilqBHILQefdFD"
    lacks: dict[str, tuple[Any, ...] | None] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    ignored: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    kind: str = "function"
    adapter: str = ""
    reason: str = ""

    @property
    def module(self) -> str:
        """The module of the host library that it is in."""
        return self.host.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Its name in that module."""
        return self.host.rpartition(".")[2]

    @cached_property
    def function(self) -> Any:
        """The device's function, or class; NotOnDevice if the device library is missing, or has no such function."""
        path, _, name = self.device.rpartition(".")
        ours = path.startswith(__package__)
        found = getattr(import_module(path) if ours else devices.current().library(path), name, None)
        if found is None:
            raise NotOnDevice(f"there is no {self.device}")
        return found

    def bounded(self, parameters: Parameters | None, args: tuple[Any, ...], kwargs: dict[str, Any]
                ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments for the device's function; NotOnDevice if the call is not for the twin."""
        if self.reason:
            raise NotOnDevice(self.reason)
        values = (*args, *kwargs.values()) if kwargs else args
        for dtype in dtypes_of(values):
            if dtype.char not in self.dtypes:
                raise NotOnDevice(f"the device's {self.name} takes {dtype} otherwise")
        if not (self.lacks or self.conditions or self.ignored or self.arrays) or parameters is None:
            return args, kwargs
        try:
            way = parameters.way(args, kwargs)
            if way is None:
                given = parameters.named(args, kwargs)
            elif not (self.conditions or self.ignored or self.arrays) and self.lacks.keys().isdisjoint(way.places):
                return way.anew(values)     # there is nothing to look at
            else:
                given = way.named(values)
        except TypeError as error:      # the host says so in its own words
            raise NotOnDevice(str(error)) from None
        for name, lacking in self.lacks.items():
            if name not in given:
                continue
            if _same(given[name], parameters.default(name)):
                if lacking is None:     # said, but nothing new: the device's function may not know the name
                    given.pop(name)
                continue
            if lacking is None or any(_same(given[name], value) for value in lacking):
                raise NotOnDevice(f"the device's {self.name} has no {name}={_short(given[name])}")
        for condition in self.conditions:
            reason = condition(given)
            if reason is not None:
                raise NotOnDevice(reason)
        for name in self.ignored:
            given.pop(name, None)
        for name in self.arrays:
            if isinstance(given.get(name), (list, tuple)):
                given[name] = _as_array(given[name])
        return parameters.anew(given)


def _same(given: Any, value: Any) -> bool:
    return given is value or type(given) is type(value) and given == value


def _short(value: Any) -> str:
    return repr(value)[:60] if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__


def _as_array(value: Any) -> Any:
    """A list of numbers, of such lists, or of arrays of one shape, as an array; anything else as it is."""
    if value and all(isinstance(item, np.ndarray) for item in value):
        return np.stack(value) if len({item.shape for item in value}) == 1 else value
    rows = value if value and all(isinstance(row, (list, tuple)) for row in value) else [value]
    if any(not isinstance(item, (int, float, complex, np.number)) for row in rows for item in row):
        return value
    return np.asarray(value)


def dtypes_of(values: Iterable[Any]) -> set[np.dtype]:
    """The dtypes of the arrays among arguments."""
    found: set[np.dtype] = set()
    _gather(values, found)
    return found


def _gather(values: Iterable[Any], found: set[np.dtype]) -> None:
    for value in values:
        kind = type(value)
        if kind in PLAIN:
            continue
        if kind is wrap._array_type:
            found.add(value.dtype)
        elif isinstance(value, dict):
            _gather(value.values(), found)
        elif isinstance(value, (tuple, list)):
            _gather(value, found)
        elif wrap.is_lazy(value):
            if not wrap.is_scalar(value):
                found.add(value.dtype)
        elif isinstance(value, np.ndarray):
            found.add(value.dtype)


def twins(module: str, device: str, names: str, **bounds: Any) -> dict[str, Twin]:
    """Twins of the same name in two modules, within the same bounds."""
    return {f"{module}.{name}": Twin(f"{module}.{name}", f"{device}.{name}", **bounds) for name in names.split()}


def none(module: str, device: str, names: str, reason: str, **more: Any) -> dict[str, Twin]:
    """Functions that are no twins of those with the same name, for a reason; the host runs them."""
    return twins(module, device, names, reason=f"the device's function of that name is not used: {reason}", **more)


TABLES = {"scipy": "scipy_twins", "skimage": "skimage_twins"}
"""Host library -> the module of ours that has its table, ``TWINS``: a dict from `Twin.host` to `Twin`."""

WHOLE = {"monai": ("monai.transforms", "monai")}
"""Library that is enabled otherwise than function by function -> the module that is waited for, and the one of ours
that has ``install()`` and ``remove()`` for it."""


def table(library: str) -> dict[str, Twin]:
    """The twins of a host library; its table is read by those who ask for it."""
    return import_module(f"{__package__}.{TABLES[library]}").TWINS
