"""Copies to the host that are not waited for at once."""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from .cuda_copies import STAGED_FROM, Copies, Region
from .cuda_filling import fill_begin


def download_begin(copies: Copies, source: Any, target: np.ndarray, stream: Any, region: Region | None = None
                   ) -> Callable[[], None]:
    """`Device.download_begin`. What is too large for a buffer of its own, and can't be locked, is copied at once."""
    start, nbytes = target.__array_interface__["data"][0], target.nbytes
    region = region or copies.find(start, start + nbytes)
    if region is not None:
        fill_begin(copies, region, source.data, start, nbytes, stream, corners=True)
        return _Wait(copies.event(stream), source, target, None)
    if nbytes < STAGED_FROM:
        buffer = copies.alloc(nbytes)
        source.data.copy_to_host_async(buffer.ptr, nbytes, stream)
        return _Wait(copies.event(stream), source, target, buffer)
    copies.download(source.data, start, nbytes, stream)
    return _nothing


def _nothing() -> None:
    """What has arrived already is not waited for."""


class _Wait:
    """Waits for the copy; keeps what it reads and writes until then."""

    __slots__ = ("_event", "_source", "_target", "_buffer")

    def __init__(self, event: Any, source: Any, target: np.ndarray, buffer: Any) -> None:
        self._event, self._source, self._target, self._buffer = event, source, target, buffer

    def __call__(self) -> None:
        self._event.synchronize()
        if self._buffer is not None:
            ctypes.memmove(self._target.__array_interface__["data"][0], self._buffer.ptr, self._target.nbytes)
