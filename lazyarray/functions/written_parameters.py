"""Which of a function's arguments it writes, and which say how it works, by position and by name."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from . import host_parameters, tables

#: Functions in C whose signature `inspect` can't read in every release of NumPy.
_POSITIONS = {
    np.concatenate: {"axis": 1, "out": 2}, np.dot: {"out": 2}, np.copyto: {"dst": 0}, np.putmask: {"a": 0},
    np.busday_count: {"out": 5}, np.busday_offset: {"out": 6}, np.is_busday: {"out": 4},
}


@functools.cache
def written_slots(func: Callable[..., Any]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the parameters that a function modifies, `out` left out."""
    names = tuple([n for n in tables.WRITES.get(func, ()) if n != "out"])
    return tuple([i for i in (position(func, n) for n in names) if i is not None]), names


def written_on_host(func: Callable[..., Any], args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> tuple[set[int | None], tuple[str, ...]]:
    """Positions and names of the parameters that NumPy itself modifies in this call, `out` among them."""
    names = tables.WRITES.get(func, ())
    if func in tables.OVERWRITES:
        i = position(func, "overwrite_input")
        if kwargs.get("overwrite_input", args[i] if i is not None and i < len(args) else False):
            names += ("a",)
    return {position(func, n) for n in names}, names


@functools.cache
def position(func: Callable[..., Any], name: str) -> int | None:
    """Where a parameter may stand among the positional arguments; None if it is given by name only."""
    known = _POSITIONS.get(func)
    if known is not None:
        return known.get(name)
    for i, (key, parameter) in enumerate(inspect.signature(func).parameters.items()):
        if key == name and parameter.kind is not parameter.KEYWORD_ONLY:
            return i
    return None


@functools.cache
def steering_slots(func: Callable[..., Any]) -> dict[int | str, tuple[str, bool]]:
    """Where the parameters of `host_parameters` may stand: position or name -> (name, whether the device reads it)."""
    try:
        own = frozenset(inspect.signature(func).parameters)
    except ValueError:      # in C: an operand is given by position, all else by name
        own = frozenset()
    names = host_parameters.NAMES if "kwargs" in own or not own else own & host_parameters.NAMES
    found: dict[int | str, tuple[str, bool]] = {}
    for name in names:
        if (func, name) in host_parameters.OPERANDS:
            continue
        found[name] = name, (func, name) in host_parameters.ON_DEVICE
        if own and (i := position(func, name)) is not None:
            found[i] = found[name]
    return found


def take_out(func: Callable[..., Any], args: tuple[Any, ...],
             kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Split `out` from a call: (out or None, args, kwargs without it)."""
    if "out" not in tables.WRITES.get(func, ()):
        return None, args, kwargs       # NumPy's error, if there is an `out`
    if "out" in kwargs:
        kwargs = dict(kwargs)
        return kwargs.pop("out"), args, kwargs
    if args:
        i = position(func, "out")
        if i is not None and i < len(args):
            return args[i], args[:i] + (None,) + args[i + 1:], kwargs
    return None, args, kwargs
