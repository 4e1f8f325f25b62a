"""From a call as CuPy's signature has it to a call of the host's function of the same name."""
from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Call = tuple[tuple[Any, ...], dict[str, Any]]

IGNORED = frozenset({"blocking", "stream"})
"""Parameters that only mean something to a device that works while the host goes on."""

REFUSED = {"astype": ("casting", "subok")}
"""Parameters that a function has but takes no value for."""

SIZES = frozenset({"shape", "newshape", "new_shape", "axes", "axis", "reps", "s"})
"""Parameters that take lengths or axes: a host array of them is as good as a tuple."""

_SORTS = frozenset({"sort", "argsort"})
_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD


@cache
def parameters(signature: str) -> tuple[inspect.Parameter, ...]:
    """The parameters of a signature, which is a text from a table of ours."""
    made = eval(f"lambda {signature}: None", {"inf": math.inf, "nan": math.nan})
    return tuple(inspect.signature(made).parameters.values())


def host_parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters of the host's function, None where it doesn't tell (compiled functions)."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def numbers(value: Any) -> Any:
    """The integers of a host array, as a tuple, or as a number if it has no dimensions; anything else as it is."""
    if type(value) is not np.ndarray or value.dtype.kind not in "iu":
        return value
    return int(value) if not value.ndim else tuple(value.tolist())


def binder(name: str, wanted: tuple[inspect.Parameter, ...],
           function: Callable[..., Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], Call]:
    """A function that checks a call against CuPy's parameters and returns the arguments of the host's function."""
    kinds = {p.kind for p in wanted}
    sizes = [i for i, p in enumerate(wanted) if p.name in SIZES]
    var_positional, var_keyword = inspect.Parameter.VAR_POSITIONAL in kinds, inspect.Parameter.VAR_KEYWORD in kinds
    positional = [p.name for p in wanted if p.kind in _POSITIONAL]
    needed = sum(p.default is p.empty for p in wanted if p.kind in _POSITIONAL)
    defaults = {p.name: p.default for p in wanted if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    theirs = host_parameters(function)
    keep = len(positional)
    renamed: dict[str, str] = {}
    known: frozenset[str] | None = None
    refused = REFUSED.get(name, ())
    if theirs is not None:
        order = [p.name for p in theirs if p.kind in _POSITIONAL]
        if not any(p.kind is p.VAR_KEYWORD for p in theirs):
            known = frozenset(p.name for p in theirs)
        for i, mine in enumerate(() if any(p.kind is p.VAR_POSITIONAL for p in theirs) else positional):
            if order[i : i + 1] == [mine]:
                continue
            if i < len(order) and mine not in order and order[i] not in defaults:
                renamed[mine] = order[i]  # The same parameter under another name.
            elif i >= sum(p.kind is p.POSITIONAL_ONLY for p in theirs):
                keep = i
                break

    def is_needed(key: str, value: Any) -> bool:
        """Whether an argument that the host's function does not know has a meaning."""
        default = defaults.get(key)
        return key not in IGNORED and value is not None and not (type(value) is type(default) and value == default)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        if any(i < len(args) and isinstance(args[i], np.ndarray) for i in sizes):
            args = tuple([numbers(value) if i in sizes else value for i, value in enumerate(args)])
        if sizes and any(key in SIZES and isinstance(value, np.ndarray) for key, value in kwargs.items()):
            kwargs = {key: numbers(value) if key in SIZES else value for key, value in kwargs.items()}
        if len(args) < needed and any(key not in kwargs for key in positional[len(args) : needed]):
            raise TypeError(f"{name}() missing a required argument")
        if not kwargs and len(args) <= keep:
            return args, kwargs
        if any(kwargs.get(key) is not None for key in refused):
            raise TypeError(f"{name}() does not support {' and '.join(refused)} yet")
        if name in _SORTS and kwargs.get("kind") not in (None, "stable"):
            raise ValueError("kind can only be None or 'stable'")
        if len(args) > len(positional) and not var_positional:
            raise TypeError(f"{name}() takes {len(positional)} positional arguments but {len(args)} were given")
        unknown = None if var_keyword else next((key for key in kwargs if key not in defaults), None)
        if unknown is not None:
            raise TypeError(f"{name}() got an unexpected keyword argument {unknown!r}")
        while len(args) < min(needed, keep) and positional[len(args)] in kwargs:
            # Some decorators of scikit-image look at positions only.
            kwargs = dict(kwargs)
            args = (*args, kwargs.pop(positional[len(args)]))
        if len(args) > keep and not var_positional:
            kwargs = {**dict(zip(positional[keep:], args[keep:])), **kwargs}
            args = args[:keep]
        if known is not None and kwargs and not known.issuperset(kwargs):
            kwargs = {renamed.get(key, key): value for key, value in kwargs.items()
                      if key in known or key in renamed or is_needed(key, value)}
        return args, kwargs

    return bind
