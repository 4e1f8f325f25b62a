"""NumPy's creation functions in programs that know nothing of lazy arrays, while ``"numpy"`` is enabled.

A program that makes an array by ``np.zeros`` and puts results of the device into it, part by part, copies each of them
to the host, and all of it back when the device reads it. So large arrays that the program itself makes are lazy ones
from the moment on at which it has sent something to the device: they take no memory anywhere until somebody reads or
writes them. Before that, in a program that never uses the device, and within libraries, they are NumPy's own.
"""
from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .. import devices
from ..events.callers import SERVED, module_of
from ..numpy import creation
from ..settings import enabled
from ..settings.options import current as current_options
from ..storage import handles, transfer
from .routing.router import LARGE, StandIn

__all__ = ["LARGE", "NAMES", "install", "remove"]

_FILLED = frozenset({"full", "full_like"})


class Creator(StandIn):
    """A creation function of NumPy's that makes lazy arrays where that is enabled."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        function = self.__wrapped__
        stack = enabled.scopes.get()
        if not transfer.sent or "numpy" not in (stack[-1][1] if stack else enabled.default()).modules or (
                not is_programs_own(sys._getframe(1))):
            return function(*args, **kwargs)
        made = _made(function, args, kwargs)
        return function(*args, **kwargs) if made is None else made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__wrapped__.__name__


def _made(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The lazy array that a call makes; None if it is to be NumPy's, or its error."""
    if kwargs.get("like") is not None or not current_options().lazy:
        return None
    name = function.__name__
    try:
        blank = _blank(name, args, kwargs)
    except (TypeError, ValueError, KeyError, MemoryError, OverflowError):
        return None
    if type(blank) is not np.ndarray or blank.nbytes < (current_options().min_bytes or LARGE):
        return None
    device = devices.current()
    if device.usable() is not None or not device.can_hold(blank.dtype):
        return None
    made = creation.made(function, *args, **kwargs)
    return made if handles.is_lazy(made) else None


def _blank(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What has the shape and dtype of a call's result; memory that nobody touches."""
    given = dict(zip(_PARAMETERS[name], args)) | kwargs
    if name in _FILLED:
        value = given.pop("fill_value")
        if name == "full" and given.get("dtype") is None:
            given["dtype"] = np.asarray(value).dtype
    first = given.pop(_PARAMETERS[name][0])
    if handles.is_lazy(first):
        return None         # NumPy asks it
    return (np.empty_like if name.endswith("_like") else np.empty)(first, **given)


_PARAMETERS = {
    **dict.fromkeys(("zeros", "ones", "empty"), ("shape", "dtype", "order")),
    "full": ("shape", "fill_value", "dtype", "order"),
    "empty_like": ("prototype", "dtype", "order", "subok", "shape"),
    **dict.fromkeys(("zeros_like", "ones_like"), ("a", "dtype", "order", "subok", "shape")),
    "full_like": ("a", "fill_value", "dtype", "order", "subok", "shape"),
}
NAMES = tuple(_PARAMETERS)


# -- whose code it is ----------------------------------------------------------------------------

_paths = sysconfig.get_paths()
_INSTALLED = tuple({_paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")})


def is_programs_own(frame: Any) -> bool:
    """Whether a frame runs the program's own code: no library's, and none of Python's."""
    return module_of(frame).partition(".")[0] not in SERVED and _is_own(frame.f_code.co_filename)


@cache
def _is_own(filename: str) -> bool:
    return not filename.startswith((*_INSTALLED, "<frozen")) and "site-packages" not in filename


# -- in their places -----------------------------------------------------------------------------

_replaced: list[tuple[dict[str, Any], str, Any]] = []


def install() -> None:
    """Put ours in the place of NumPy's functions: in NumPy's own namespace and in those of the program's modules."""
    if _replaced:
        return
    ours = {id(function): Creator(function) for function in (getattr(np, name) for name in NAMES)}
    namespaces = [vars(np)]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in SERVED and _is_own(getattr(module, "__file__", None) or "<frozen"):
            namespaces.append(vars(module))
    for namespace in namespaces:
        for name, value in list(namespace.items()):
            if id(value) in ours:
                _replaced.append((namespace, name, value))
                namespace[name] = ours[id(value)]


def remove() -> None:
    """Put NumPy's functions back."""
    while _replaced:
        namespace, name, value = _replaced.pop()
        if type(namespace.get(name)) is Creator:
            namespace[name] = value
