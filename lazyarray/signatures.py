"""Which of a function's arguments it writes, by position and by name."""
from __future__ import annotations

import functools
import inspect

import numpy as np

from . import functions


@functools.cache
def written_slots(func) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the parameters that a function modifies, `out` left out."""
    names = tuple(n for n in functions.WRITES.get(func, ()) if n != "out")
    return tuple(i for i in (position(func, n) for n in names) if i is not None), names


@functools.cache
def position(func, name: str) -> int | None:
    try:
        parameters = inspect.signature(func).parameters
    except ValueError:      # a C function without a signature: its `out` is known by name only
        return {np.concatenate: 2, np.dot: 2, np.where: None}.get(func) if name == "out" else None
    for i, (key, parameter) in enumerate(parameters.items()):
        if key == name and parameter.kind is not parameter.KEYWORD_ONLY:
            return i
    return None


def take_out(func, args, kwargs):
    """Split `out` from a call: (out or None, args, kwargs without it)."""
    if "out" in kwargs:
        kwargs = dict(kwargs)
        return kwargs.pop("out"), args, kwargs
    if "out" in functions.WRITES.get(func, ()):
        i = position(func, "out")
        if i is not None and i < len(args):
            return args[i], args[:i] + (None,) + args[i + 1:], kwargs
    return None, args, kwargs
