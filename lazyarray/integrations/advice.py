"""What would make a program faster, read from its events. Each sentence is about what was seen, and names its line."""
from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..events.callers import place_of
from ..events.event import Event
from ..events.report import format_bytes
from . import hints

__all__ = ["Uploaded", "of"]

#: So often a line must do something for it to be worth a sentence.
OFTEN = 10


class Uploaded:
    """A host array that one line uploads: how often with the same values, and what the program calls it."""

    __slots__ = ("argument", "checksum", "name", "owner", "times")

    def __init__(self, owner: np.ndarray | None, checksum: int) -> None:
        #: What has its memory. Not kept alive: the program would need more memory than without a profile, and get it
        #: elsewhere, so that other uploads would be those of arrays that were uploaded before.
        self.owner = None if owner is None else weakref.ref(owner)
        self.checksum = checksum
        self.times = 1
        self.name = ""          # a variable of the program, if there is one
        self.argument = ""      # "the argument b of add", if it is passed as one

    def is_gone(self, owner: np.ndarray | None) -> bool:
        """Whether another array has taken its place in memory, before there was something to be said about it."""
        return self.owner is not None and self.owner() is not owner and self.times < OFTEN

    def advice(self, shape: tuple[int, ...], dtype: np.dtype) -> str:
        """What to do about it."""
        who = self.name or self.argument or f"a host array of shape {shape} and dtype {dtype}"
        if self.name and self.argument:
            who += f", {self.argument},"
        if self.argument and not self.name:
            do = "Pass a lazy array that is made once: lazyarray.asarray(...)"
        else:
            name = self.name
            do = ("Make it lazy once, before the loop: " + (f"{name} = " if name else "")
                  + f"lazyarray.asarray({name or '...'})")
        return f"{who} is uploaded {self.times} times with the same values. {do}"


def of(events: Iterable[Event], repeated: Mapping[tuple[Any, ...], Uploaded]) -> list[str]:
    """Sentences of advice, in the order of the lines.

    Parameters
    ----------
    events : iterable of Event
    repeated : mapping
        (file name, line number, .., shape, .., dtype) of a host array -> how it was uploaded there.
    """
    found: dict[tuple[str, int, int], str] = {}
    by_line: dict[tuple[str, int], list[Event]] = {}
    for event in events:
        by_line.setdefault((event.filename, event.lineno), []).append(event)
    for (filename, lineno), there in by_line.items():
        for number, text in enumerate(_of_line(there)):
            found[filename, lineno, number] = f"{place_of(filename, lineno)} {text}"
    for (filename, lineno, _, shape, _, dtype), uploaded in repeated.items():
        if uploaded.times >= OFTEN:
            found[filename, lineno, OFTEN + len(found)] = (
                f"{place_of(filename, lineno)}: {uploaded.advice(shape, dtype)}")
    return [text for _, text in sorted(found.items())]


def _of_line(events: list[Event]) -> Iterable[str]:
    left: dict[str, int] = {}
    for event in events:
        if event.kind == "materialise" and event.name:
            left[event.name] = left.get(event.name, 0) + event.nbytes
    for name, nbytes in left.items():
        if remedy := hints.remedy(name):
            yield f"left the GPU: {name} copied {format_bytes(nbytes)} to the host. To run it on the device, {remedy}"
    fallbacks: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        if event.kind == "fallback":
            fallbacks.setdefault((event.name, event.reason), []).append(event)
    for (name, reason), there in fallbacks.items():
        times = "" if len(there) == 1 else f", {len(there)} times"
        remedy = hints.of_fallback(name)
        yield f"ran {name} on the host{times}: {reason}" + (f". To run it on the device, {remedy}" if remedy else "")
    single = [event for event in events if event.kind == "materialise" and event.shape is not None
              and all(n == 1 for n in event.shape) and not event.name]
    if len(single) >= OFTEN:
        yield (f"copies one value at a time, {len(single)} times, and waits for the device each time. Compute with "
               "whole arrays; a loop over single elements belongs on numpy.asarray(x)")
