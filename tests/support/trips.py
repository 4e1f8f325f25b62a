"""Counts the stations of a statement on its way from the array to the device: calls, files, and changes of file.

``python tests/support/trips.py`` prints them for each of `statements`; with the name of one, its calls in order too.
What the simulated device does within itself is left out, since CuPy does it on a GPU.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import lazyarray

HOME = os.path.dirname(lazyarray.__file__) + os.sep
LIBRARY = os.path.join("devices", "simulated") + os.sep


class Trip(NamedTuple):
    """How many calls of lazyarray's own functions there were, in how many files, and how often the file changed."""

    calls: int
    files: int
    changes: int


def statements() -> dict[str, Callable[[], Any]]:
    """The statements, of arrays of a thousand elements."""
    x, y, z = (lazyarray.asarray(np.arange(1000.0) + i) for i in range(3))
    mask = x > 500
    np.asarray(mask)
    plus = lazyarray.lazy(lambda a: a + 1, pure=True)
    return {
        "np.asarray(np.sqrt(x * 2 + 1))": lambda: np.asarray(np.sqrt(x * 2 + 1)),
        "np.sqrt(x * 2 + 1)": lambda: np.sqrt(x * 2 + 1),
        "x[mask] = v": lambda: x.__setitem__(mask, 3.0),
        "np.asarray(x)": lambda: np.asarray(y),
        "np.add(x, y, out=z)": lambda: np.add(x, y, out=z),
        "@lazy": lambda: plus(x),
    }


def calls(statement: Callable[[], Any]) -> list[tuple[str, str]]:
    """(file, function) of each call within lazyarray, after some that made everything warm."""
    found: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(HOME) and not path.startswith(HOME + LIBRARY):
            found.append((path.removeprefix(HOME), frame.f_code.co_qualname))

    for _ in range(5):
        statement()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        statement()
    finally:
        sys.setprofile(before)
    return found


def trip(statement: Callable[[], Any]) -> Trip:
    """The trip of a statement, warm."""
    files = [path for path, _ in calls(statement)]
    return Trip(len(files), len(set(files)), sum(a != b for a, b in zip(files, files[1:])))


if __name__ == "__main__":
    if lazyarray._native.recording is not None:
        lazyarray._native.recording.small(0)       # small arrays would stay on the host
    for name, statement in statements().items():
        print(f"{name}: {trip(statement)}")
        if name in sys.argv[1:]:
            print(*(f"    {path}: {function}" for path, function in calls(statement)), sep="\n")
