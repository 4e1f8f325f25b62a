"""Copies from the device into a region of host memory, which is locked piece by piece as it is filled the first time.

The kernel clears a piece's pages in several threads, the driver locks it, its copy starts; meanwhile the next is made
ready: in C (`_staging_filling.h`), where that is there.

Locking memory whose pages are there costs a tenth of locking fresh memory (measured: 22 against 217 ms for 1 GiB of
huge pages), which one thread would clear; so pages are populated first.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .cuda_host import cores

if TYPE_CHECKING:
    from .cuda_copies import Copies, Region

__all__ = ["CHUNK", "PIECE", "fill_begin"]

#: Regions are locked in pieces of this size.
PIECE = 16 << 20
#: Bytes that a thread has cleared at once.
CHUNK = 4 << 20
_THREADS = 8
#: Of a piece: it is locked; to be locked; locked now; the driver refused; left out.
_LOCKED, _TO_LOCK, _NOW, _REFUSED, _LEFT = range(5)
#: What the driver says where a thread has no context yet (CUDA_ERROR_INVALID_CONTEXT).
_NO_CONTEXT = 201


def fill_begin(copies: Copies, region: Region, pointer: Any, start: int, nbytes: int, stream: Any,
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
        if copies.crew is None:
            _in_python(copies, region, pointer, start, stop, stream, states)
        else:
            _in_c(copies, region, pointer, start, stop, stream, states)
        if any(states):
            for (low, high, _, _), state in zip(region.pieces(start, stop), states):
                if state in (_REFUSED, _LEFT):
                    copies.stage_down(pointer + (low - start), low, high - low, stream)
    except BaseException:       # an interrupt too: nothing may be under way into memory that others get
        stream.synchronize()
        raise


def _in_c(copies: Copies, region: Region, pointer: Any, start: int, stop: int, stream: Any, states: bytearray) -> None:
    runtime, to_lock = copies.runtime, _TO_LOCK in states
    threads = min(cores(), _THREADS) if to_lock else 1
    where = copies.driver, pointer.ptr, (start, stop), stream.ptr, (region.start, region.stop, PIECE), CHUNK, states
    try:
        if to_lock:
            runtime.setDevice(runtime.getDevice())      # so that this thread has a context
        error = copies.crew.fill(threads, *where)
        if error == _NO_CONTEXT and not to_lock:    # of this thread: most have one, and the copy waits for each call
            runtime.setDevice(runtime.getDevice())
            error = copies.crew.fill(threads, *where)
    finally:
        if _NOW in states:
            copies.are_locked(region, [piece for (_, _, piece, _), state in zip(region.pieces(start, stop), states)
                                       if state == _NOW])
    if error:
        raise copies.error(error)


def _in_python(copies: Copies, region: Region, pointer: Any, start: int, stop: int, stream: Any, states: bytearray
               ) -> None:
    parts = [*zip(range(len(states)), region.pieces(start, stop))]
    ready = {i: copies.populate(piece, end) for i, (_, _, piece, end) in parts if states[i] == _TO_LOCK}
    for i, (low, high, piece, end) in parts:
        if i in ready:
            for future in ready[i]:
                future.result()
            states[i] = _NOW if copies.lock_piece(region, piece, end) else _REFUSED
        if states[i] in (_LOCKED, _NOW):
            (pointer + (low - start)).copy_to_host_async(low, high - low, stream)
