"""Asserting how many copies between host and device, or between devices, a block of code makes."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import lazyarray


@contextlib.contextmanager
def assert_copies(uploads: int | None = None, materialisations: int | None = None, *, nbytes: int | None = None,
                  fallbacks: int | None = None, peer_copies: int | None = None) -> Iterator[Any]:
    """Assert the number of copies between host and device, or between devices, in a ``with`` block.

    Parameters
    ----------
    uploads, materialisations : int, optional
        Number of copies from host to device, and from device to host. If not given, it is not checked.
    nbytes : int, optional
        Number of bytes of all copies together.
    fallbacks : int, optional
        Number of calls that NumPy ran on the host because the device does not support them.
    peer_copies : int, optional
        Number of copies from one device to another.

    Yields
    ------
    trace
        The `lazyarray.trace` of the block.

    Raises
    ------
    AssertionError
        If the numbers differ. The message lists each event with the line that caused it.

    Examples
    --------
    >>> import lazyarray
    >>> import numpy as np
    >>> x = lazyarray.asarray(np.arange(20_000.0))
    >>> with assert_copies(uploads=0, materialisations=1, nbytes=160_000):
    ...     y = np.asarray(x * 2)
    """
    asked = {"upload": uploads, "materialise": materialisations, "peer copy": peer_copies, "fallback": fallbacks,
             "bytes": nbytes}
    asked = {kind: number for kind, number in asked.items() if number is not None}
    with lazyarray.trace() as trace:
        yield trace
    kinds = [event.kind for event in trace.events]
    counted = {kind: kinds.count(kind) for kind in ("upload", "materialise", "peer copy", "fallback")}
    counted["bytes"] = trace.nbytes
    wrong = [f"{counted[kind]} {kind}, not {number}" for kind, number in asked.items() if counted[kind] != number]
    if wrong:
        raise AssertionError("; ".join(wrong) + "\n" + "\n".join(f"  {event}" for event in trace.events))
