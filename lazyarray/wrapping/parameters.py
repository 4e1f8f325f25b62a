"""What a function's parameters are called, which of them it modifies, and what it is called itself."""
from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from .arguments import MAYBE, READ, WRITTEN, Rules

OTHERWISE = {"monai.transforms": "lazyarray.integrations.monai"}
"""Library whose callable objects take no device arrays -> the module of ours whose ``lazy`` makes them take them."""

_Parameters = dict[str, inspect.Parameter]
_known: WeakKeyDictionary[Any, _Parameters | None] = WeakKeyDictionary()
_rules: WeakKeyDictionary[Any, dict[Any, Rules]] = WeakKeyDictionary()


def name_of(function: Callable[..., Any]) -> str:
    """The dotted name of a function, as users write it."""
    name = getattr(function, "__qualname__", None) or getattr(function, "name", None) or getattr(
        function, "__name__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}.{name}"


def taken_otherwise(function: Any) -> str | None:
    """The module of ours that makes an object of some library take lazy arrays; None for all that is a function.

    What a user's own class does when it is called is a function of the user's, whatever it derives from.
    """
    kinds = type(function).__mro__
    called = next((kind.__module__ for kind in kinds if "__call__" in vars(kind)), "")
    for library, module in OTHERWISE.items():
        if called.partition(".")[0] == library.partition(".")[0] and any(
                kind.__module__.startswith(library) for kind in kinds):
            return module
    return None


def parameters(function: Callable[..., Any], instance: Any = None) -> _Parameters | None:
    """The parameters of a function by name, the first one of a bound method left out; None where nobody says them.

    `instance`: what it is bound to, also where it does not say so, as a method that is called through its class.
    """
    bound = _is_bound(function, instance)
    function = getattr(function, "__func__", function)
    try:
        found = _known[function]
    except (KeyError, TypeError):
        try:
            found = dict(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            found = None
        try:
            _known[function] = found
        except TypeError:       # can't be referred to weakly
            pass
    return dict(list(found.items())[1:]) if bound and found else found


def _is_bound(function: Any, instance: Any) -> bool:
    """Whether the first parameter is given already, and the signature of the plain function has it."""
    return hasattr(function, "__func__") or instance is not None and getattr(function, "__self__", None) is None


def rules_of(function: Callable[..., Any] | None, writes: tuple[str, ...] | None, instance: Any = None) -> Rules:
    """How the arguments of a function are treated; `writes` as in `wrapping.run`, `instance` as in `parameters`."""
    if writes is None:
        return UNKNOWN
    if not writes:
        return PURE
    # As `parameters` has it, a bound method lacks the first one, and dies sooner than its function.
    key = writes, _is_bound(function, instance)
    plain = getattr(function, "__func__", function)
    try:
        return _rules[plain][key]
    except (KeyError, TypeError):
        found = Rules(_role(writes, positional(function, instance), _others(function, writes)))
    with contextlib.suppress(TypeError):        # can't be referred to weakly
        _rules.setdefault(plain, {})[key] = found
    return found


def positional(function: Callable[..., Any] | None, instance: Any = None) -> tuple[str, ...]:
    """The names of the parameters by position; the last one may go on for ever."""
    found = None if function is None else parameters(function, instance)
    if not found:
        return ()
    names = []
    for name, parameter in found.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            return (*names, name, "*")
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(name)
    return tuple(names)


assert (READ, WRITTEN) == (False, True)      # so that whether a slot is written is its role

PURE = Rules(frozenset().__contains__)     # READ for all
UNKNOWN = Rules(lambda slot: MAYBE)


def _others(function: Callable[..., Any] | None, writes: tuple[str, ...]) -> frozenset[str] | None:
    """The parameters beside the one that takes any keywords, if that is modified."""
    found = (None if function is None else parameters(function)) or {}
    others = {name for name, parameter in found.items() if parameter.kind is parameter.VAR_KEYWORD}
    return frozenset(found.keys() - others) if others & {*writes} else None


def _role(writes: tuple[str, ...], names: tuple[str, ...], others: frozenset[str] | None) -> Callable[
        [int | str], int]:
    """`role_of`, without a look at names where the slots can be listed."""
    if others is not None or names[-1:] == ("*",) and names[-2] in writes:
        return functools.partial(role_of, writes, names, others)
    return frozenset((*writes, *(i for i, name in enumerate(names) if name in writes))).__contains__


def role_of(writes: tuple[str, ...], names: tuple[str, ...], others: frozenset[str] | None, slot: int | str) -> int:
    """What becomes of an argument of a function that modifies some by name."""
    if isinstance(slot, int):
        if slot >= len(names) - 1 and names[-1:] == ("*",):
            slot = len(names) - 2
        slot = names[slot] if slot < len(names) else ""
    elif others is not None and slot not in others:
        return WRITTEN
    return WRITTEN if slot in writes else READ
