"""Arrays inside lists, tuples, dicts, named tuples and dataclasses: every one replaced, the rest as it was."""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from .kinds import PLAIN, is_container

__all__ = ["Copies", "leaves", "replace"]

Leaf = Callable[[Any], Any]


def replace(obj: Any, leaf: Leaf, copies: Copies | None = None, back: dict[int, Any] | None = None) -> Any:
    """`obj` with each thing in it that may be an array replaced by what `leaf` makes of it.

    Lists, tuples, dicts, named tuples and dataclass instances are looked into, subclasses included. One in which
    nothing is replaced is returned as it is; otherwise it is copied, and the original is never changed. Plain numbers,
    strings and the like (`kinds.PLAIN`) stay.

    Parameters
    ----------
    obj : object
    leaf : callable
        Gets each thing that is no container, and a container that lies in itself; returns it or another.
    copies : Copies, optional
        Notes which container was copied.
    back : mapping, optional
        Identity of a container -> what stands for it, without a look into it.

    Examples
    --------
    >>> from lazyarray.functions.pytree import replace
    >>> replace({"a": [1, {2, 3}], "b": "c"}, len)
    {'a': [1, 2], 'b': 'c'}
    """
    kind = type(obj)
    if kind in PLAIN:
        return obj
    return _Replacing(leaf, copies, back or {}).container(obj) if is_container(kind) else leaf(obj)


def leaves(obj: Any) -> list[Any]:
    """What `replace` would give to its leaf, in order."""
    found: list[Any] = []
    replace(obj, lambda item: found.append(item) or item)
    return found


class Copies:
    """Which containers were copied, so that what a function does to a copy can be done to the original.

    A function that is given a list with arrays in it may append to it, and one that is given a dict may fill it.
    """

    def __init__(self) -> None:
        self._made: list[tuple[Any, Any, Any]] = []     # original, copy, what was put into the copy
        self.originals: dict[int, Any] = {}             # id of a copy -> the original

    def note(self, original: Any, made: Any) -> None:
        """`made` was made of `original`."""
        self._made.append((original, made, _items(made)))
        self.originals[id(made)] = original

    def hand_on(self, back: Leaf) -> None:
        """Change the originals as their copies were changed, with ``back(item)`` in place of each new item."""
        for original, made, put in self._made:
            now = _items(made)
            if now is None or len(now) == len(put) and all(
                    a is c and b is d for (a, b), (c, d) in zip(now, put)):
                continue
            before = {id(b): item for (_, b), (_, item) in zip(put, _items(original))}
            items = [(key, before[id(b)] if id(b) in before else back(b)) for key, b in now]
            _assign(original, items)


def _items(obj: Any) -> list[tuple[Any, Any]] | None:
    """What a container that can be changed holds, by key; None of one that can't be."""
    kind = type(obj)
    if issubclass(kind, list):
        return [(None, item) for item in obj]
    if issubclass(kind, dict):
        return list(obj.items())
    if issubclass(kind, tuple):
        return None
    return [(name, getattr(obj, name)) for name in kind.__dataclass_fields__ if hasattr(obj, name)]


def _assign(obj: Any, items: list[tuple[Any, Any]]) -> None:
    """Let a container hold just these items."""
    kind = type(obj)
    if issubclass(kind, list):
        obj[:] = [item for _, item in items]
    elif issubclass(kind, dict):
        kept = dict(items)
        for key in [key for key in obj if key not in kept]:
            del obj[key]
        obj.update(kept)
    else:
        for name, item in items:
            if getattr(obj, name, None) is not item:
                object.__setattr__(obj, name, item)


class _Replacing:
    """One call of `replace`."""

    def __init__(self, leaf: Leaf, copies: Copies | None, back: dict[int, Any]) -> None:
        self.leaf, self.copies, self.back = leaf, copies, back
        self.above: set[int] = set()    # the containers that we are in

    def any(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in PLAIN:
            return obj
        return self.container(obj) if is_container(kind) else self.leaf(obj)

    def container(self, obj: Any) -> Any:
        if id(obj) in self.above:
            return self.leaf(obj)
        if id(obj) in self.back:
            return self.back[id(obj)]
        self.above.add(id(obj))
        try:
            kind = type(obj)
            made = (self.sequence(kind, obj) if issubclass(kind, (list, tuple)) else
                    self.mapping(kind, obj) if issubclass(kind, dict) else self.fields(kind, obj))
        finally:
            self.above.discard(id(obj))
        if made is not obj and self.copies is not None:
            self.copies.note(obj, made)
        return made

    def sequence(self, kind: type, obj: Any) -> Any:
        if PLAIN.issuperset(map(type, obj)):        # all of a long list without a step of Python's
            return obj
        items = [self.any(item) for item in obj]
        if all(a is b for a, b in zip(items, obj)):
            return obj
        if kind is list:
            return items
        if kind is tuple:
            return tuple(items)
        if issubclass(kind, tuple):
            # A named tuple takes its fields; other subclasses, and the sequences that C code makes, what tuple takes.
            return kind._make(items) if hasattr(kind, "_make") else kind(items)
        made = copy.copy(obj)
        made[:] = items
        return made

    def mapping(self, kind: type, obj: Any) -> Any:
        items = {key: self.any(value) for key, value in obj.items()}
        if all(items[key] is value for key, value in obj.items()):
            return obj
        if kind is dict:
            return items
        made = copy.copy(obj)       # a defaultdict has its factory, others their attributes
        made.update(items)
        return made

    def fields(self, kind: type, obj: Any) -> Any:
        made = None
        for name in kind.__dataclass_fields__:
            if not hasattr(obj, name):
                continue
            old = getattr(obj, name)
            new = self.any(old)
            if new is not old:
                made = copy.copy(obj) if made is None else made
                object.__setattr__(made, name, new)     # a frozen one too: it is still being made
        return obj if made is None else made
