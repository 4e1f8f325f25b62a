"""Uploads of pageable memory: threads move it to page-locked buffers, and from there it goes to the device.

Who moved a part has it copied by the device or, where threads need no interpreter (`staging.c`), the one that uploads
has all parts copied, since the driver lets one thread in at a time. On return all parts have been moved, so that the
memory may change; the last copies may be under way. Whoever needs a buffer again waits for its copy.
"""
from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ....errors.inspection import Unique
from .crew import Crew, turn
from .host_memory import cores
from .pinned import Pinned

#: Threads that move at most.
SENDERS = 8
_TO_DEVICE = 1      # cudaMemcpyHostToDevice


class Sizes(NamedTuple):
    """The buffers of a thread, and the bytes of each: of a part."""

    buffers: int
    slot: int


#: Where the interpreter has a hand in each part, few large ones are quickest: 35 GB/s on an H200's host, others 15.
IN_PYTHON = Sizes(2, 4 << 20)
#: Else they are as small as the link allows, which takes 64 copies of 1 MiB in 1.40 ms and one of 64 MiB in 1.23.
#: Through buffers of 512 KiB 64 MiB take 9 % longer; with more of them, or smaller parts first, within 5 % as long.
IN_C = Sizes(2, 1 << 20)


@functools.lru_cache(64)
def parts(nbytes: int, slot: int) -> np.ndarray:
    """The starts and stops of the parts, in the order in which threads take them: an array of shape (parts, 2)."""
    starts = np.arange(0, nbytes, slot)
    return np.stack([starts, np.minimum(starts + slot, nbytes)], axis=1)


class Buffer(Unique):
    """Page-locked memory, and what says when the device has read it."""

    __slots__ = ("_memory", "address", "_device", "_event", "_read")

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self.address: int = memory.ptr
        self._device: int | None = None     # an event belongs to a device
        self._event: Any = None
        self._read = True

    def wait(self) -> None:
        """Wait until the device has read it."""
        if not self._read:
            self._event.synchronize()
            self._read = True

    def event_of(self, stream: Any, device: int, event: Callable[[Any], Any]) -> int:
        """The handle of its event, which belongs to this device, for C code that waits and records."""
        if self._device != device:
            self.wait()
            self._event, self._device = event(stream), device
        self._read = False
        return self._event.ptr

    def reads(self, stream: Any, device: int, event: Callable[[Any], Any]) -> None:
        """A copy was issued on a stream of a device."""
        if self._device == device:
            self._event.record(stream)
        else:
            self._event, self._device = event(stream), device
        self._read = False


class Staging(Unique):
    """The buffers and threads of one process."""

    def __init__(self, pinned: Pinned) -> None:
        self._pinned = pinned
        self._lock = threading.Lock()       # of who uploads: see `turn`
        self._buffers: list[list[Buffer]] = []      # of each thread
        self._crew = Crew()
        self._sizes = IN_PYTHON if pinned.crew is None else IN_C

    def upload(self, target: int, start: int, nbytes: int, stream: Any) -> bool:
        """Copy `nbytes` at the host address `start` to the device address; the host's may change on return.

        False where the driver has to do it: see `turn`.
        """
        with turn(self._lock) as mine:
            if mine:
                self._moved_up(target, start, nbytes, stream)
        return mine

    def _moved_up(self, target: int, start: int, nbytes: int, stream: Any) -> None:
        pinned, sizes = self._pinned, self._sizes
        handle, event = stream.ptr, pinned.event
        device = pinned.runtime.getDevice()
        threads = 1 if sys.is_finalizing() else max(min(cores(), SENDERS, nbytes // sizes.slot), 1)
        bounds = parts(nbytes, sizes.slot)
        while len(self._buffers) < threads:
            memory = [pinned.alloc(sizes.slot) for _ in range(sizes.buffers)]
            self._buffers.append([Buffer(part) for part in memory])
        buffers = self._buffers[:threads]
        try:
            if pinned.crew is None:
                self._moved(buffers, bounds, target, start, stream, device)
            else:
                pinned.runtime.setDevice(device)    # so that this thread has a context
                table = np.array([(b.address, b.event_of(stream, device, event)) for row in buffers for b in row],
                                 np.uint64)
                error = pinned.crew.send(threads, pinned.driver, bounds, table, target, start, handle)
                if error:
                    raise pinned.error(error)
        except BaseException:       # an interrupt too: no buffer may be in use when the next upload takes it
            stream.synchronize()        # what was issued and not noted reads a buffer
            raise
        if handle == pinned.runtime.streamPerThread:    # another one in each thread
            for row in buffers:
                for buffer in row:
                    buffer.wait()

    def _moved(self, buffers: list[list[Buffer]], bounds: np.ndarray, target: int, start: int, stream: Any,
               device: int) -> None:
        pinned, handle = self._pinned, stream.ptr
        copy, event = pinned.runtime.memcpyAsync, pinned.event
        left = iter(bounds.tolist())        # whoever is free takes the next

        def work(mine: list[Buffer]) -> None:
            pinned.runtime.setDevice(device)
            turn = 0
            for low, high in left:
                buffer = mine[turn]
                buffer.wait()
                ctypes.memmove(buffer.address, start + low, high - low)
                copy(target + low, buffer.address, high - low, _TO_DEVICE, handle)
                buffer.reads(stream, device, event)
                turn = turn + 1 if turn + 1 < len(mine) else 0

        try:
            self._crew.run(work, buffers)
        finally:
            for _ in left:      # the others take no more
                pass
