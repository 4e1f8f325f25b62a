"""Asserting how many copies between host and device a block of code makes."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import lazyarray


@contextlib.contextmanager
def assert_copies(uploads: int | None = None, materialisations: int | None = None, *, nbytes: int | None = None,
                  fallbacks: int | None = None) -> Iterator[Any]:
    """Assert how many copies between host and device the block makes.

    Parameters
    ----------
    uploads, materialisations : int, optional
        Copies host to device, and device to host. What is not given is not looked at.
    nbytes : int, optional
        Bytes of both together.
    fallbacks : int, optional
        Calls that NumPy answered on the host because the device could not.

    Yields
    ------
    trace
        What `lazyarray.trace` yields.

    Raises
    ------
    AssertionError
        If the numbers differ. The message lists each event with the line that caused it.

    Examples
    --------
    >>> import lazyarray
    >>> import numpy as np
    >>> x = lazyarray.asarray([1.0, 2.0])
    >>> with assert_copies(uploads=0, materialisations=1, nbytes=16):
    ...     y = np.asarray(x * 2)
    """
    asked = {"upload": uploads, "materialise": materialisations, "fallback": fallbacks, "bytes": nbytes}
    asked = {kind: number for kind, number in asked.items() if number is not None}
    with lazyarray.trace() as trace:
        yield trace
    kinds = [event.kind for event in trace.events]
    counted = {kind: kinds.count(kind) for kind in ("upload", "materialise", "fallback")}
    counted["bytes"] = sum(event.nbytes for event in trace.events if event.kind in ("upload", "materialise"))
    wrong = [f"{counted[kind]} {kind}, not {number}" for kind, number in asked.items() if counted[kind] != number]
    if wrong:
        raise AssertionError("; ".join(wrong) + "\n" + "\n".join(f"  {event}" for event in trace.events))
