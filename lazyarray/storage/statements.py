"""One statement of a program at a time, for what it writes: ``x += 1`` reads `x`, computes, and writes it.

NumPy does such a thing to a small array at once, since it keeps the interpreter's lock. What only reads needs no more
than to see each array as it is at one time, which `Storage` and recorded work see to.

Foreign code takes no lock. What it writes through an alias while such a statement is under way comes after it, element
by element. Three things can't be known: that it wrote what was there already; that what it writes is made of what it
read before the statement was over; and, of a statement that reads several arrays, that it wrote one of them in between.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..errors.interrupts import holding
from .storage import Storage

__all__ = ["held", "within"]


def held(given: Iterable[Any], statement: Callable[..., Any], *args: Any) -> Any:
    """Return ``statement(*args)``, called while no other thread writes any of these lazy arrays.

    Those in tuples and lists are meant, too: whoever waits for an array that he reads while he has the one that he
    writes may wait for ever. What else there may be among `given` is left out. A function, not a context: only a
    ``with`` statement on the lock itself is sure to release it, whenever a signal handler raises.
    """
    # While one of these names refers to a storage, nobody takes an array away from it: see `become_recorded`.
    first = several = None
    for x in within(given):
        if type(storage := getattr(x, "_self_storage", None)) is Storage and storage is not first:
            if first is None:
                first = storage
            elif several is None:
                several = {id(first): first, id(storage): storage}
            else:
                several[id(storage)] = storage
    if several is not None:
        first = storage = None
        return _in_turn([several.pop(name) for name in sorted(several, reverse=True)], statement, args)
    if first is None:
        return statement(*args)
    with holding(lock := first._lock or first.lock):
        lock.held += 1
        try:
            if first.mirror is not None:
                first.begin_statement()
            first = storage = None
            return statement(*args)
        finally:
            lock.held -= 1


def within(given: Iterable[Any], depth: int = 8) -> Iterator[Any]:
    """What is among these, and in tuples and lists among them."""
    for x in given:
        if (type(x) is tuple or type(x) is list) and depth:
            yield from within(x, depth - 1)
        else:
            yield x


def _in_turn(storages: list[Storage], statement: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Of several storages, the last one first: all threads take locks in this order, so that none waits for ever."""
    if not storages:
        return statement(*args)
    storage = storages.pop()
    with holding(lock := storage.lock):
        lock.held += 1
        try:
            storage.begin_statement()
            del storage
            return _in_turn(storages, statement, args)
        finally:
            lock.held -= 1
