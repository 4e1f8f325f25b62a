"""Copies between the two sides at the speed of the link.

A copy runs at the link's rate only from or to page-locked memory. Who owns the host memory decides how it gets there:

=====================  ===============================================================================
small                  through a page-locked buffer of the thread, which beats the driver's own up to
                       `BOUNCED` bytes (with other work meanwhile: see `small_download`)
a `Region` (a mirror)  locked piece by piece while it is filled the first time (see `pinned_download`)
anything else, large   in turns through page-locked buffers, which threads empty or fill (see `staged_upload`)
many small pieces      of a region: a kernel reads them (see `dirty_upload`)
anything else          the driver stages it
=====================  ===============================================================================
"""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .dirty_upload import FEW, SMALL, UNIT, Readers
from .host_memory import left_behind, over
from .pinned import PIECE, STAGED_FROM, Pinned, Region
from .pinned_download import fill_begin
from .small_download import Fetches
from .staged_upload import Staging

if TYPE_CHECKING:
    from ..driver import Driver

#: Downloads up to this size go through the thread's page-locked buffer.
BOUNCED = 1 << 20
#: Zeros from so many bytes on are not copied: the device clears its memory. To look at 240 KB takes 5 us.
CLEARED = 16 << 10
_TO_DEVICE = 1      # cudaMemcpyHostToDevice

_u1 = np.dtype(np.uint8)


def _is_zero(start: int, nbytes: int) -> bool:
    """Whether host memory has zeros alone, as that of ``np.zeros`` has."""
    return not ctypes.c_ubyte.from_address(start).value and not over(start, nbytes).view(bool).any()


class Copies(Pinned):
    """The copies of one process; `cupy` is the module."""

    def __init__(self, cupy: Any, driver: Driver | None = None, fetches: Fetches | None = None) -> None:
        super().__init__(cupy, driver)
        self._cupy = cupy
        self._staging_up = Staging(self)
        self._readers = Readers(cupy)
        self._mine = threading.local()
        self.fetches = fetches or Fetches(cupy.cuda, driver, self.alloc, self.error)
        self.fetch_begin, self.fetch_end = self.fetches.begin, self.fetches.end

    def forget(self) -> None:
        """In a forked child: what is locked is the parent's, and the threads are not here."""
        for region in self._regions:
            region.locked = set()
        left_behind((self.crew, self._staging_up, self._workers, self._readers, self.fetches.forget()))
        self.__init__(self._cupy, self.driver, self.fetches)  # type: ignore[misc]

    # -- copies --------------------------------------------------------------------------------

    def download(self, pointer: Any, start: int, nbytes: int, stream: Any) -> None:
        """Copy `nbytes` (not 0) at the device pointer to the host address `start`; they are there on return."""
        if nbytes <= BOUNCED:
            buffer, address = found = self._buffer(nbytes)
            try:
                self._driven_down(pointer, address, nbytes, stream)
                if nbytes < 4096:
                    ctypes.memmove(start, address, nbytes)
                else:
                    over(start, nbytes)[...] = buffer[:nbytes]
            finally:
                self._mine.buffer = found
            return
        region = self.find(start, start + nbytes)
        if region is not None:
            fill_begin(self, region, pointer, start, nbytes, stream)
            stream.synchronize()
        else:
            self.download_elsewhere(pointer, start, nbytes, stream)

    def upload(self, pointer: Any, start: int, nbytes: int, stream: Any) -> None:
        """Copy `nbytes` at the host address `start` to the device pointer; the host's may change on return."""
        read = True
        try:
            read = self._send(pointer, start, nbytes, stream)
        finally:        # after an interrupt too: what is read may change, or be given back
            if read:
                stream.synchronize()

    def upload_ranges(self, pointer: Any, start: int, ranges: Iterable[tuple[int, int]], stream: Any) -> None:
        """Copy parts of the memory at the host address `start` to the same parts of that at the device pointer.

        The next is asked for while the copies run, less those of small pieces; the host's memory may change on return.
        """
        read = False
        region = self.find(start, start + 1)
        # Where all of it is locked, small pieces are gathered, for a kernel that reads many at once.
        last = 0
        if region is not None and region.complete:
            last = 0 if (start | pointer.ptr) % UNIT else region.stop - start
        small: list[int] = []
        try:
            for low, high in ranges:
                if high <= last and high - low <= SMALL and not (low | high) % UNIT:
                    small += low, high
                else:
                    read |= self._send_range(region, pointer, start, low, high, stream)
            if len(small) >= 2 * FEW and (reader := self._readers.get(self.runtime.getDevice())) is not None:
                read = True
                reader(start, pointer.ptr, small)
            else:
                for low, high in zip(small[::2], small[1::2]):
                    read |= self._send_range(region, pointer, start, low, high, stream)
        except BaseException:       # an interrupt too: nobody knows what was issued
            read = True
            raise
        finally:
            if read:
                stream.synchronize()

    def _send_range(self, region: Region | None, pointer: Any, start: int, low: int, high: int, stream: Any) -> bool:
        """`_send` of one of many ranges, in less time if it lies in one locked piece."""
        begin, stop = start + low, start + high
        if region is not None:
            piece = begin - (begin - region.start) % PIECE
            if piece in region.locked and stop <= piece + PIECE and stop <= region.stop:
                self.runtime.memcpyAsync(pointer.ptr + low, begin, high - low, _TO_DEVICE, stream.ptr)
                return True
        return self._send(pointer + low, begin, high - low, stream)

    def _send(self, pointer: Any, start: int, nbytes: int, stream: Any) -> bool:
        """Begin a copy to the device; whether the host's memory may still be read on return."""
        region = self.find(start, start + nbytes)
        if region is None:
            if nbytes < STAGED_FROM:
                return self._driven_up(pointer, start, nbytes, stream)
            if not self.is_locked(start, nbytes) and self._staging_up.upload(pointer.ptr, start, nbytes, stream):
                return False
            pointer.copy_from_host_async(start, nbytes, stream)
            return True
        # Piece by piece, however small: a copy may not begin in locked memory and end in other, or in another piece.
        read = False
        for low, high, piece, end in region.pieces(start, start + nbytes):
            part = pointer + (low - start)
            if piece in region.locked or (high - low) * 2 >= end - piece and self.lock_piece(region, piece, end):
                part.copy_from_host_async(low, high - low, stream)
                read = True
            elif high - low < STAGED_FROM or not self._staging_up.upload(part.ptr, low, high - low, stream):
                read |= self._driven_up(part, low, high - low, stream)
        return read

    def _driven_up(self, pointer: Any, start: int, nbytes: int, stream: Any) -> bool:
        if nbytes >= CLEARED and _is_zero(start, nbytes):
            pointer.memset_async(0, nbytes, stream)
            return False
        pointer.copy_from_host_async(start, nbytes, stream)
        # From pageable memory the driver has staged the copy by now. Page-locked memory is still being read.
        return bool(nbytes) and self.runtime.pointerGetAttributes(start).type > 0

    def _buffer(self, nbytes: int) -> tuple[np.ndarray, int]:
        """The calling thread's page-locked buffer, taken away from it: a finaliser within may download, too."""
        found, self._mine.buffer = getattr(self._mine, "buffer", None), None
        if found is None or found[0].nbytes < nbytes:
            found = self._buffer_of(max(64 << 10, 1 << (nbytes - 1).bit_length()))
        return found

    def _buffer_of(self, nbytes: int) -> tuple[np.ndarray, int]:
        memory = self.alloc(nbytes)
        return np.frombuffer(memory, _u1), memory.ptr
