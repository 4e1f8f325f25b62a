"""From a call as CuPy's signature has it to a call of NumPy's function of the same name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

Parameters = tuple[tuple[str, ...], frozenset[str], bool, bool, int]

IGNORED = frozenset({"blocking", "stream"})
"""Parameters that only mean something to a device that works while the host goes on."""


REFUSED = {"astype": ("casting", "subok")}
"""Parameters that a function has but takes no value for."""


@cache
def parameters(signature: str) -> Parameters:
    """What a signature's text says.

    Positional names, all names, whether there is a ``*args``, and a ``**kwargs``, how many names need a value.
    """
    found = inspect.signature(eval(f"lambda {signature}: None")).parameters.values()  # a text of our own table
    positional = tuple(p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    names = frozenset(p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    kinds = {p.kind for p in found}
    needed = sum(p.default is p.empty for p in found if p.name in positional)
    return positional, names, inspect.Parameter.VAR_POSITIONAL in kinds, inspect.Parameter.VAR_KEYWORD in kinds, needed


def numpy_parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """NumPy's parameters, or None where it doesn't tell (compiled functions, before NumPy 2.4)."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def binder(
    name: str, wanted: Parameters, function: Callable[..., Any]
) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """A function that checks a call against CuPy's parameters and returns the call of NumPy's function."""
    positional, names, var_positional, var_keyword, needed = wanted
    theirs = numpy_parameters(function)
    keep = len(positional)
    renamed: dict[str, str] = {}
    known: frozenset[str] | None = None
    refused = REFUSED.get(name, ())
    if theirs is not None:
        order = [p.name for p in theirs if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if not any(p.kind is p.VAR_KEYWORD for p in theirs):
            known = frozenset(p.name for p in theirs)
        for i, mine in enumerate(() if any(p.kind is p.VAR_POSITIONAL for p in theirs) else positional):
            if order[i : i + 1] == [mine]:
                continue
            if i < len(order) and mine not in order and order[i] not in names:
                renamed[mine] = order[i]  # The same parameter under another name.
            elif i >= sum(p.kind is p.POSITIONAL_ONLY for p in theirs):
                keep = i
                break

    def bind(
        args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        if len(args) < needed and any(key not in kwargs for key in positional[len(args) : needed]):
            raise TypeError(f"{name}() missing a required argument")
        if not kwargs and len(args) <= keep:
            return function, args, kwargs
        if any(kwargs.get(key) is not None for key in refused):
            raise TypeError(f"{name}() does not support {' and '.join(refused)} yet")
        if kwargs.get("kind") not in (None, "stable"):
            raise ValueError("kind can only be None or 'stable'")
        if len(args) > len(positional) and not var_positional:
            raise TypeError(f"{name}() takes {len(positional)} positional arguments but {len(args)} were given")
        if kwargs and not var_keyword and not names.issuperset(kwargs):
            unknown = next(key for key in kwargs if key not in names)
            raise TypeError(f"{name}() got an unexpected keyword argument {unknown!r}")
        if len(args) > keep and not var_positional:
            kwargs = {**dict(zip(positional[keep:], args[keep:])), **kwargs}
            args = args[:keep]
        if known is not None and kwargs and not known.issuperset(kwargs):
            kwargs = {
                renamed.get(key, key): value
                for key, value in kwargs.items()
                if key in known or key in renamed or (key not in IGNORED and value is not None)
            }
        return function, args, kwargs

    return bind
