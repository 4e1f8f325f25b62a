"""Recorded work that nobody has asked for: all of it in the process, for who measures time.

The part in C notes a weak reference to the storage of each new result, which takes 5 ns of the 1.4 us of a recorded
call (medians of 300 runs of 2,000 calls in four processes each, on one core).
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import node

if TYPE_CHECKING:
    from ..storage.storage import Storage

__all__ = ["compute", "compute_all", "waiting"]


def waiting() -> list[Storage]:
    """The storages whose bytes are recorded and not computed, in all threads, the oldest first."""
    return [] if node.native is None else node.native.waiting()


def compute(storages: Iterable[Storage]) -> None:
    """Have the bytes of storages computed that wait for it; one kernel may compute those of several."""
    for storage in storages:
        if storage.pending is not None:
            storage.fill()


def compute_all() -> None:
    """Have all recorded work of the process computed, on the current stream."""
    compute(waiting())
