"""The context in which we write into a mirror ourselves."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .ranges import EMPTY, Ranges

if TYPE_CHECKING:
    from .mirror import Mirror


class Filling:
    """`Mirror.filling`: a class, because a generator would double its cost."""

    __slots__ = ("_mirror", "_ranges")

    def __init__(self, mirror: Mirror, ranges: Ranges) -> None:
        self._mirror = mirror
        self._ranges = ranges

    def __enter__(self) -> np.ndarray:
        mirror = self._mirror
        if mirror._tracker is not None:
            self._tell("before_fill")
        return mirror.bytes

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        mirror = self._mirror
        if mirror._tracker is not None:
            self._tell("after_fill")
        if kind is None:
            mirror.valid = mirror.valid | self._ranges

    def _tell(self, what: str) -> None:
        mirror, ranges = self._mirror, self._ranges
        others = EMPTY
        if mirror.lent:
            others = mirror._candidates()
        tracker = mirror._working_tracker()
        try:
            found = getattr(tracker, what)(ranges, others)
        except OSError:
            mirror._give_up()
            found = others
        mirror._found = (mirror._found | found) - ranges
