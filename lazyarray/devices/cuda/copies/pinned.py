"""Page-locked memory: regions that are locked piece by piece, and stages for what can't be locked."""
from __future__ import annotations

import bisect
import ctypes
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from .... import _native
from ....errors.inspection import Unique
from ....errors.interrupts import holding
from ..driver import LASTING
from .crew import Crew, CrewInC, turn
from .host_memory import cores, madvise

if TYPE_CHECKING:
    from ..driver import Driver

#: Regions are locked in pieces of this size.
PIECE = 16 << 20
#: Bytes that a thread has cleared at once.
CHUNK = 4 << 20
#: From this size on pageable memory is staged by our threads.
STAGED_FROM = 4 << 20
THREADS = 8
_STAGE = 16 << 20
_STAGES = 3
#: More threads than this only wait for each other when memory is moved.
_MOVERS = 4
_MADV_POPULATE_WRITE = 23
_PORTABLE = 1       # cudaHostRegisterPortable: locked for every GPU


class Region(Unique):
    """Page-aligned host memory that the copies may lock as they fill it. `release` it before it is unmapped."""

    __slots__ = ("start", "stop", "locked", "_pinned")

    def __init__(self, pinned: Pinned, start: int, size: int) -> None:
        self._pinned = pinned
        self.start = start
        self.stop = start + size
        self.locked: set[int] = set()       # addresses of locked pieces

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """(start, stop) of the parts of a byte range that lie in one piece each, and (start, stop) of the piece."""
        while start < stop:
            piece = start - (start - self.start) % PIECE
            end = min(piece + PIECE, self.stop)
            yield start, min(stop, end), piece, end
            start = end

    @property
    def complete(self) -> bool:
        """Whether all of it is locked."""
        return len(self.locked) * PIECE >= self.stop - self.start

    def release(self) -> None:
        self._pinned.release(self)


class Pinned(Unique):
    """The page-locked memory of one process; `cupy` is the module."""

    def __init__(self, cupy: Any, driver: Driver | None = None) -> None:
        self.driver = driver
        self._cuda = cupy.cuda
        self.runtime, self.stream = cupy.cuda.runtime, cupy.cuda.get_current_stream
        self._errors = (cupy.cuda.runtime.CUDARuntimeError,)
        self._starts: list[int] = []        # of the regions, sorted
        self._regions: list[Region] = []
        # Of the two lists, which belong together, and of what is locked, which takes the driver a while. Both are
        # acquired by finalisers within, too.
        self._listing, self._locking = threading.RLock(), threading.RLock()
        self._staging = threading.Lock()
        self._stages: list[Any] = []
        self.crew = None if driver is None or _native.staging is None else CrewInC()
        self._workers = Crew()
        self._madvise = madvise()

    # -- regions -------------------------------------------------------------------------------

    def region(self, start: int, size: int) -> Region:
        found = Region(self, start, size)
        with self._listing:
            place = bisect.bisect(self._starts, start)
            self._starts.insert(place, start)
            self._regions.insert(place, found)
        return found

    def release(self, region: Region) -> None:
        with self._listing:
            place = bisect.bisect_left(self._starts, region.start)
            if place < len(self._regions) and self._regions[place] is region:
                del self._starts[place], self._regions[place]
        with holding(self._locking):
            locked, region.locked = region.locked, set()
        for piece in locked:
            try:
                self.runtime.hostUnregister(piece)
            except self._errors as error:
                if error.status not in LASTING:     # else all of CUDA's is lost: finalisers come here, too
                    raise

    def find(self, start: int, stop: int) -> Region | None:
        with self._listing:
            place = bisect.bisect(self._starts, start) - 1
            region = self._regions[place] if place >= 0 else None
        return region if region is not None and stop <= region.stop else None

    def locked(self, start: int, stop: int) -> Region | None:
        """The region around a range of addresses once all its pieces there are locked; None if they can't be.

        To lock a piece means to have all its memory: it is not done for less than half of it.
        """
        region = self.find(start, stop)
        if region is None:
            return None
        pieces = {piece: end for _, _, piece, end in region.pieces(start, stop) if piece not in region.locked}
        if (stop - start) * 2 < sum(end - piece for piece, end in pieces.items()):
            return None
        ready = [(piece, end, self.populate(piece, end)) for piece, end in pieces.items()]
        done = True
        for piece, end, futures in ready:
            for future in futures:
                future.result()
            done = done and self.lock_piece(region, piece, end)
        return region if done else None

    def are_locked(self, region: Region, pieces: Iterable[int]) -> None:
        """These pieces were locked elsewhere."""
        with holding(self._locking):
            region.locked.update(pieces)

    def lock_piece(self, region: Region, start: int, stop: int) -> bool:
        with holding(self._locking):
            if start not in region.locked:
                try:
                    self.runtime.hostRegister(start, stop - start, _PORTABLE)
                except self._errors:
                    return False        # the system's limit on locked memory, for one: such memory is staged
                region.locked.add(start)
        return True

    def populate(self, start: int, stop: int) -> list[Future[Any]]:
        """Have the kernel give the pages, in several threads; their contents are kept."""
        if self._madvise is None:
            return []
        return [self._submit(self._madvise, low, min(CHUNK, stop - low), _MADV_POPULATE_WRITE)
                for low in range(start, stop, CHUNK)]

    # -- staging -------------------------------------------------------------------------------

    def is_locked(self, start: int, nbytes: int) -> bool:
        """Whether memory in no region is page-locked, by others."""
        attributes = self.runtime.pointerGetAttributes
        return attributes(start).type > 0 and attributes(start + nbytes - 1).type > 0

    def download_elsewhere(self, pointer: Any, start: int, nbytes: int, stream: Any) -> None:
        """Copy from the device pointer to memory in no region; the bytes are there on return."""
        if nbytes < STAGED_FROM or self.is_locked(start, nbytes):
            self._driven_down(pointer, start, nbytes, stream)
        else:
            self.stage_down(pointer, start, nbytes, stream)

    def stage_down(self, pointer: Any, start: int, nbytes: int, stream: Any) -> None:
        with turn(self._staging) as mine:
            if not mine:
                self._driven_down(pointer, start, nbytes, stream)       # the driver stages it
                return
            try:
                self._by_stages(pointer, start, nbytes, stream)
            except BaseException:       # an interrupt too: the stages are another copy's next
                stream.synchronize()
                raise

    def _driven_down(self, pointer: Any, start: int, nbytes: int, stream: Any) -> None:
        try:
            pointer.copy_to_host_async(start, nbytes, stream)
        finally:        # after an interrupt too: nothing may be under way into memory that others get
            stream.synchronize()

    def _by_stages(self, pointer: Any, start: int, nbytes: int, stream: Any) -> None:
        while len(self._stages) < _STAGES:
            self._stages.append(self.alloc(_STAGE))
        stages = [stage.ptr for stage in self._stages]
        arrived: list[Any] = [None] * _STAGES
        offsets = range(0, nbytes, _STAGE)
        for i in range(len(offsets) + _STAGES - 1):
            if i < len(offsets):
                (pointer + offsets[i]).copy_to_host_async(stages[i % _STAGES], min(_STAGE, nbytes - offsets[i]), stream)
                arrived[i % _STAGES] = self.event(stream)
            done = i - _STAGES + 1
            if 0 <= done < len(offsets):
                arrived[done % _STAGES].synchronize()
                self._move(start + offsets[done], stages[done % _STAGES], min(_STAGE, nbytes - offsets[done]))

    def _move(self, target: int, source: int, nbytes: int) -> None:
        """memmove by several threads: one alone reaches a fraction of the memory's rate."""
        part = max(-(-nbytes // min(cores(), _MOVERS)), 1 << 20)
        lows = range(0, nbytes, part)
        left = iter(lows)       # whoever is free takes the next

        def move(_: None) -> None:
            for low in left:
                ctypes.memmove(target + low, source + low, min(part, nbytes - low))

        # It waits, an interrupt notwithstanding: else threads would write to memory that its owner gives back.
        self._workers.run(move, [None] * (1 if sys.is_finalizing() else len(lows)))

    def _submit(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        return self._workers.submit(min(THREADS, cores()), work, *args)

    def event(self, stream: Any) -> Any:
        """An event for all that was issued on a stream so far."""
        event = self._cuda.Event(disable_timing=True)
        event.record(stream)
        return event

    def error(self, code: int) -> Exception:
        """What an error of the driver's is raised as."""
        return self._cuda.driver.CUDADriverError(code)

    def alloc(self, nbytes: int) -> Any:
        """Page-locked memory of the driver's, at its `ptr`."""
        return self._cuda.alloc_pinned_memory(nbytes)
