"""What would make a program faster, read from its events. Each sentence is about what was seen, and names its line."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..events.callers import place_of
from ..events.event import Event
from ..events.report import format_bytes
from . import hints

__all__ = ["of"]

#: So often a line must do something for it to be worth a sentence.
OFTEN = 10


def of(events: Iterable[Event], repeated: Mapping[tuple[Any, ...], list[Any]]) -> list[str]:
    """Sentences of advice, in the order of the lines.

    Parameters
    ----------
    events : iterable of Event
    repeated : mapping
        (file name, line number, ...) of a host array -> [.., .., how often it was uploaded there with the same values,
        its name].
    """
    found: dict[tuple[str, int, int], str] = {}
    by_line: dict[tuple[str, int], list[Event]] = {}
    for event in events:
        by_line.setdefault((event.filename, event.lineno), []).append(event)
    for (filename, lineno), there in by_line.items():
        for number, text in enumerate(_of_line(there)):
            found[filename, lineno, number] = f"{place_of(filename, lineno)} {text}"
    for (filename, lineno, _, shape, _, dtype), (_, _, times, name) in repeated.items():
        if times >= OFTEN:
            array = name or f"a host array of shape {shape} and dtype {dtype}"
            found[filename, lineno, OFTEN + len(found)] = (
                f"{place_of(filename, lineno)}: {array} is uploaded {times} times with the same values. Make it lazy "
                "once, before the loop: " + (f"{name} = " if name else "") + f"lazyarray.asarray({name or '...'})")
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
