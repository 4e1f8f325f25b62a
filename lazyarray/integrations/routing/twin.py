"""What a twin is: a function of a device library that stands in for one of a host library, and within which bounds.

A twin is in a table (`scipy.twins.TWINS`, `skimage.twins.TWINS`) once it has passed the host library's tests for that
function: run on the device with the same arguments, it gave the same, within the tolerance stated, in every call
that the bounds below let through. Other calls run on the host, with the reason.
"""
from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from ... import devices
from ...errors import NotOnDevice
from ...functions.pytree import leaves
from .conditions import Condition

__all__ = ["COMPILED", "DOUBLE", "Condition", "Parameters", "Tolerance", "Twin", "none", "table", "twins"]

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Parameters:
    """The parameters of a function; how a call binds to them is found once for each number and names of arguments."""

    def __init__(self, signature: inspect.Signature) -> None:
        self.signature = signature
        parameters = signature.parameters.values()
        self._by_position = {p.name for p in parameters if p.kind is p.POSITIONAL_ONLY
                             or p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
        self._many = {p.name: p.kind for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        self._places: dict[tuple[int | str, ...], dict[str, int]] = {}

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by the names of their parameters. TypeError if the function takes no such call."""
        if self._many:
            return self.signature.bind(*args, **kwargs).arguments
        count, key = len(args), (len(args), *kwargs)
        places = self._places.get(key)
        if places is None:
            bound = self.signature.bind(*range(count), **{name: count + i for i, name in enumerate(kwargs)})
            places = self._places[key] = bound.arguments
        values = (*args, *kwargs.values())
        return {name: values[place] for name, place in places.items()}

    def default(self, name: str) -> Any:
        """What a parameter is if it is not given."""
        return self.signature.parameters[name].default

    def anew(self, given: dict[str, Any]) -> Arguments:
        """A call's arguments: by position what has no default, and by name the rest, whose order may differ."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, value in given.items():
            kind = self._many.get(name)
            if name in self._by_position:
                args.append(value)
            elif kind is inspect.Parameter.VAR_POSITIONAL:
                args.extend(value)
            elif kind is inspect.Parameter.VAR_KEYWORD:
                kwargs.update(value)
            else:
                kwargs[name] = value
        return tuple(args), kwargs


@dataclass(frozen=True)
class Tolerance:
    """How far a twin's results may be from the host's.

    `single` and `double` are relative to the largest magnitude in the result and the arguments (of ufuncs, in the
    result alone). `ties` is the share of integers or booleans of a result that may differ, where the function compares
    values that are equal but for rounding.
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
    """A function of a device library in the place of one of a host library."""

    #: Dotted paths, such as ``scipy.ndimage.sobel`` and ``cupyx.scipy.ndimage.sobel``; a function on device arrays may
    #: be in this package too.
    host: str
    device: str
    #: Parameters that the function writes into if they are arrays.
    writes: tuple[str, ...] = ()
    #: How far its results may be from the host's.
    tolerance: Tolerance = DOUBLE
    #: Characters of the dtypes of arrays that it takes as the host does.
    dtypes: str = "?bhilqBHILQefdFD"
    #: Parameter -> the values (None: all but the default) that go to the host.
    lacks: dict[str, tuple[Any, ...] | None] = field(default_factory=dict)
    #: Further bounds: each is given the arguments by name, and returns why they are not for the twin, or None.
    conditions: tuple[Condition, ...] = ()
    #: Parameters of the host's that say nothing about the result, which the twin is not given.
    ignored: tuple[str, ...] = ()
    #: Parameters for which the host takes lists of numbers or of arrays, and the twin does not: they are made arrays.
    arrays: tuple[str, ...] = ()
    #: "function", "ufunc" where NumPy's protocol for ufuncs brings the calls, or "class": its instances are called.
    kind: str = "function"
    #: "module:function" in this package: what runs a call where the plain way is wrong. It is given the twin, the
    #: host's function, and the arguments as the caller gave them.
    adapter: str = ""
    #: Why it is no twin at all. Such a function runs on the host.
    reason: str = ""

    @property
    def module(self) -> str:
        """The module of the host library that it is in."""
        return self.host.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Its name in that module."""
        return self.host.rpartition(".")[2]

    def __getstate__(self) -> dict[str, Any]:
        """Without the device's function: a copy finds that by itself, and a copy of it is nobody's business."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def function(self) -> Any:
        """The device's function, or class; NotOnDevice if the device library is missing, or has no such function."""
        path, _, name = self.device.rpartition(".")
        ours = path.startswith("lazyarray.")
        found = getattr(import_module(path) if ours else devices.current().library(path), name, None)
        if found is None:
            raise NotOnDevice(f"there is no {self.device}")
        return found

    def bounded(self, parameters: Parameters | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The arguments for the device's function; NotOnDevice if the call is not for the twin."""
        if self.reason:
            raise NotOnDevice(self.reason)
        for dtype in dtypes_of((*args, *kwargs.values()) if kwargs else args):
            if dtype.char not in self.dtypes:
                raise NotOnDevice(self.unsupported(dtype))
        if not (self.lacks or self.conditions or self.ignored or self.arrays) or parameters is None:
            return args, kwargs
        try:
            given = parameters.named(args, kwargs)
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
                raise NotOnDevice(f"{name}={_short(given[name])} is not supported on the device")
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

    def unsupported(self, dtype: np.dtype) -> str:
        """The reason why calls with this dtype run on the host."""
        return f"{dtype} is not supported on the device by {self.name}"


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
    return {x.dtype for x in leaves(list(values)) if isinstance(x, np.ndarray)}


def twins(module: str, device: str, names: str, **bounds: Any) -> dict[str, Twin]:
    """Twins of the same name in two modules, within the same bounds."""
    return {f"{module}.{name}": Twin(f"{module}.{name}", f"{device}.{name}", **bounds) for name in names.split()}


def none(module: str, device: str, names: str, reason: str, **more: Any) -> dict[str, Twin]:
    """Functions that are no twins of those with the same name, for a reason; the host runs them."""
    return twins(module, device, names, reason=f"CuPy's function {reason}", **more)


TABLES = {"scipy": "scipy.twins", "skimage": "skimage.twins"}
"""Host library -> the module of ours that has its table, ``TWINS``: a dict from `Twin.host` to `Twin`."""

WHOLE = {"monai": ("monai.transforms", "monai"), "numpy": ("numpy", "numpy_creation")}
"""Library that is enabled otherwise than function by function -> the module that is waited for, and the one of ours
that has ``install()`` and ``remove()`` for it."""

COMPILED: dict[str, tuple[str, ...]] = {"cv2": (), "torch": ("from_numpy",)}
"""Library whose compiled functions require NumPy's own arrays -> those of them that are given host aliases while it is
enabled; without any named, all functions of its modules."""


def table(library: str) -> dict[str, Twin]:
    """The twins of a host library, if it has any; its table is read by those who ask for it."""
    return import_module(f"lazyarray.integrations.{TABLES[library]}").TWINS if library in TABLES else {}
