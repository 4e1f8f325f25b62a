"""Copies from the device into a region of host memory, which is locked piece by piece as it is filled the first time.

The kernel clears a piece's pages in several threads, the driver locks it, its copy starts; meanwhile the next is made
ready: in C (`_native/staging_filling.h`), where that is there.

Locking memory whose pages are there costs a tenth of locking fresh memory (measured: 22 against 217 ms for 1 GiB of
huge pages), which one thread would clear; so pages are populated first.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from .host_memory import cores
from .pinned import CHUNK, PIECE, STAGED_FROM, THREADS, Pinned, Region

__all__ = ["download_begin", "fill_begin"]

#: Of a piece: it is locked; to be locked; locked now; the driver refused; left out.
_LOCKED, _TO_LOCK, _NOW, _REFUSED, _LEFT = range(5)
#: What the driver says where a thread has no context yet (CUDA_ERROR_INVALID_CONTEXT).
_NO_CONTEXT = 201


def fill_begin(pinned: Pinned, region: Region, pointer: Any, start: int, nbytes: int, stream: Any,
               corners: bool = False) -> None:
    """Begin to copy from the device pointer into a region; what of it can't be locked has arrived on return.

    To lock a piece means to have all its memory: without `corners` it is not done for less than half of it.
    """
    stop = start + nbytes
    first = start - (start - region.start) % PIECE
    if region.complete:
        states = bytearray(-(-(stop - first) // PIECE))
    else:
        locked = region.locked
        states = bytearray(_LOCKED if piece in locked else _TO_LOCK if corners or (high - low) * 2 >= end - piece
                           else _LEFT for low, high, piece, end in region.pieces(start, stop))
    try:
        if pinned.crew is None:
            _in_python(pinned, region, pointer, start, stop, stream, states)
        else:
            _in_c(pinned, region, pointer, start, stop, stream, states)
        if any(states):
            _stage_rest(pinned, region, pointer, start, stop, stream, states)
    except BaseException:       # an interrupt too: nothing may be under way into memory that others get
        stream.synchronize()
        raise


def _stage_rest(pinned: Pinned, region: Region, pointer: Any, start: int, stop: int, stream: Any,
                states: bytearray) -> None:
    for (low, high, _, _), state in zip(region.pieces(start, stop), states):
        if state in (_REFUSED, _LEFT):
            pinned.stage_down(pointer + (low - start), low, high - low, stream)


def _in_c(pinned: Pinned, region: Region, pointer: Any, start: int, stop: int, stream: Any, states: bytearray) -> None:
    runtime, to_lock = pinned.runtime, _TO_LOCK in states
    threads = min(cores(), THREADS) if to_lock else 1
    where = pinned.driver, pointer.ptr, (start, stop), stream.ptr, (region.start, region.stop, PIECE), CHUNK, states
    try:
        if to_lock:
            runtime.setDevice(runtime.getDevice())      # so that this thread has a context
        error = pinned.crew.fill(threads, *where)
        if error == _NO_CONTEXT and not to_lock:    # of this thread: most have one, and the copy waits for each call
            runtime.setDevice(runtime.getDevice())
            error = pinned.crew.fill(threads, *where)
    finally:
        if _NOW in states:
            pinned.are_locked(region, [piece for (_, _, piece, _), state in zip(region.pieces(start, stop), states)
                                       if state == _NOW])
    if error:
        raise pinned.error(error)


def _in_python(pinned: Pinned, region: Region, pointer: Any, start: int, stop: int, stream: Any, states: bytearray
               ) -> None:
    parts = [*zip(range(len(states)), region.pieces(start, stop))]
    ready = {i: pinned.populate(piece, end) for i, (_, _, piece, end) in parts if states[i] == _TO_LOCK}
    for i, (low, high, piece, end) in parts:
        if i in ready:
            for future in ready[i]:
                future.result()
            states[i] = _NOW if pinned.lock_piece(region, piece, end) else _REFUSED
        if states[i] in (_LOCKED, _NOW):
            (pointer + (low - start)).copy_to_host_async(low, high - low, stream)


def download_begin(pinned: Pinned, source: Any, target: np.ndarray, stream: Any, region: Region | None = None
                   ) -> Callable[[], None]:
    """`Device.download_begin`. What is too large for a buffer of its own, and can't be locked, is copied at once."""
    start, nbytes = target.__array_interface__["data"][0], target.nbytes
    region = region or pinned.find(start, start + nbytes)
    try:
        if region is not None:
            fill_begin(pinned, region, source.data, start, nbytes, stream, corners=True)
            return _Wait(pinned.event(stream), source, target, None)
        if nbytes < STAGED_FROM:
            buffer = pinned.alloc(nbytes)
            source.data.copy_to_host_async(buffer.ptr, nbytes, stream)
            return _Wait(pinned.event(stream), source, target, buffer)
    except BaseException:       # an interrupt too: nobody would wait for what is under way
        stream.synchronize()
        raise
    pinned.download_elsewhere(source.data, start, nbytes, stream)
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
