"""Arrays inside lists, tuples, dicts, named tuples and dataclasses: every one replaced, the rest as it was."""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

#: Types that hold no arrays; most arguments are of these.
PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None), slice, type, type(Ellipsis)})


def replace(obj: Any, leaf: Callable[[Any], Any]) -> Any:
    """`obj` with each thing in it that is no container replaced by what `leaf` makes of it.

    Lists, tuples, dicts, named tuples and dataclass instances are looked into, subclasses included. One in which
    nothing is replaced is returned as it is; otherwise it is copied, and the original is never changed. A container
    that holds itself is replaced once.

    Examples
    --------
    >>> from lazyarray.containers import replace
    >>> replace({"a": [1, 2], "b": "c"}, lambda x: x * 10 if isinstance(x, int) else x)
    {'a': [10, 20], 'b': 'c'}
    """
    kind = type(obj)
    if kind in PLAIN:
        return obj
    if not is_container(kind):
        return leaf(obj)
    return _replace(obj, leaf, {})


def is_container(kind: type) -> bool:
    """Whether instances of a type are looked into."""
    return issubclass(kind, (list, tuple, dict)) or hasattr(kind, "__dataclass_fields__")


def _replace(obj: Any, leaf: Callable[[Any], Any], above: dict[int, Any]) -> Any:
    kind = type(obj)
    if kind in PLAIN:
        return obj
    if not is_container(kind):
        return leaf(obj)
    if id(obj) in above:
        return obj
    above[id(obj)] = obj
    try:
        if issubclass(kind, (list, tuple)):
            return _sequence(kind, obj, leaf, above)
        if issubclass(kind, dict):
            items = {k: _replace(v, leaf, above) for k, v in obj.items()}
            if all(items[k] is v for k, v in obj.items()):
                return obj
            if kind is dict:
                return items
            new = copy.copy(obj)        # a defaultdict has its factory, a Bunch its attributes
            new.update(items)
            return new
        return _dataclass(obj, leaf, above)
    finally:
        del above[id(obj)]


def _sequence(kind: type, obj: Any, leaf: Callable[[Any], Any], above: dict[int, Any]) -> Any:
    items = [_replace(o, leaf, above) for o in obj]
    if all(a is b for a, b in zip(items, obj)):
        return obj
    if kind is list:
        return items
    if kind is tuple:
        return tuple(items)
    if issubclass(kind, tuple):
        # A named tuple takes its fields; other subclasses (and the sequences that C code makes) what tuple takes.
        return kind._make(items) if hasattr(kind, "_make") else kind(items)
    new = copy.copy(obj)
    new[:] = items
    return new


def _dataclass(obj: Any, leaf: Callable[[Any], Any], above: dict[int, Any]) -> Any:
    new = None
    for name in type(obj).__dataclass_fields__:
        try:
            old = getattr(obj, name)
        except AttributeError:      # a field without a value
            continue
        value = _replace(old, leaf, above)
        if value is not old:
            if new is None:
                new = copy.copy(obj)
            object.__setattr__(new, name, value)    # a frozen one is still being made
    return obj if new is None else new
