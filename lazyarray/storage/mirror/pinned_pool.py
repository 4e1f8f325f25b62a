"""Large host memory: page-locked as it is filled, kept for the next of its size, given back when it lies idle.

The device's copies run at the link's rate only with page-locked memory, and page-locked memory is dear to get. So
what nobody uses any more is kept, up to a limit (`options.pool_bytes`), until it has lain idle for a while or
the machine runs short. Beyond the limit memory is ordinary, and copies to and from it are staged.

The garbage collector ends the use of a mapping at any instant, in any thread: it only puts it on a queue
(`returned`). All else happens under the lock, in `take`, `adopt` and `look_after`, which a thread calls every few
seconds for as long as there is a mapping. Within them the collector may run finalisers, which may ask for memory in
their turn: they get ordinary memory.
"""
from __future__ import annotations

import contextlib
import functools
import mmap
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import devices
from ...errors.inspection import Unique
from ...errors.interrupts import holding
from ...errors.own_threads import own
from ...settings.options import current as current_options

__all__ = ["HUGE_FROM", "Mapping", "Pool", "limit", "pool"]

#: From this size on memory is of huge pages, and pooled.
HUGE_FROM = 4 << 20
#: Memory that nobody has used for this long goes back to the system.
IDLE_SECONDS = 20.0
#: Kept memory goes back when less than this part of the machine's is available.
SHORT = 1 / 16
#: A kept mapping serves sizes down to this part of its own.
FITS = 0.75
_LOOK_SECONDS = 2.0


class Mapping(Unique):
    """An anonymous private mapping: `size` bytes at `address`, both multiples of a page.

    `undo`, if set, takes back what its user arranged with the kernel; called before another
    writes there.
    """

    __slots__ = ("memory", "size", "address", "undo", "region", "idle_since", "pid")

    def __init__(self, size: int) -> None:
        self.memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.size = size
        self.undo: Callable[[], None] | None = None
        self.region: Any = None         # what the device may lock of it
        self.idle_since = 0.0
        self.pid = os.getpid()          # in a forked child what the kernel was told is the parent's
        if size >= HUGE_FROM and hasattr(mmap, "MADV_HUGEPAGE"):
            try:
                self.memory.madvise(mmap.MADV_HUGEPAGE)
            except OSError:
                pass    # a kernel built without them
        self.address = np.frombuffer(self.memory, np.uint8).__array_interface__["data"][0]

    def __del__(self) -> None:
        """Locked memory whose user was interrupted goes back to the pool: unmapped, it would stay locked.

        What is later mapped at its addresses would be copied to where nobody looks.
        """
        if getattr(self, "region", None) is not None and self.pid == os.getpid() and not sys.is_finalizing():
            pool.returned.append(self)

    def clean(self) -> bool:
        """Make it fit for another use; False if it can't be."""
        undo, self.undo = self.undo, None
        if undo is not None:
            try:
                undo()
            except OSError:     # in a forked child it was the parent's arrangement
                return False
        return True

def limit() -> int:
    """Bytes of page-locked memory at most: the option, or a quarter of the machine's memory."""
    asked = current_options().pool_bytes
    return _total() // 4 if asked is None else asked


@functools.cache
def _total() -> int:
    return _memory()[0]


def _memory() -> tuple[int, int]:
    """Bytes of memory that the machine has, and that are available."""
    try:
        with open("/proc/meminfo", "rb") as lines:
            found = {name: int(value.split()[0]) << 10 for name, _, value in (line.partition(b":") for line in lines)}
        return found[b"MemTotal"], found[b"MemAvailable"]
    except (OSError, KeyError, ValueError, IndexError):     # not Linux
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 33
        return total, total


class Pool:
    """The large mappings of one process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._changing = False                  # under the lock; a finaliser finds it so that runs meanwhile
        self._kept: list[Mapping] = []          # the longest idle first
        self._watcher: threading.Thread | None = None
        self.returned: deque[Mapping] = deque()
        #: Bytes of mappings that may be page-locked, in use or kept.
        self.locked_bytes = 0
        #: Mappings, in use or kept.
        self.count = 0

    @property
    def kept_bytes(self) -> int:
        """Bytes that nobody uses."""
        with holding(self._lock):
            if not self._changing:
                self._drain()
            return sum(mapping.size for mapping in self._kept)

    def take(self, size: int) -> Mapping | None:
        """The smallest kept mapping that fits, or None."""
        try:
            found = self.returned.pop()     # the last one, which often is of this size
        except IndexError:
            pass
        else:
            if found.size == size and found.region is not None and found.pid == os.getpid():
                return found
            self.returned.append(found)
        with self._changed() as free:
            if not free:
                return None
            self._drain()
            return self._fitting(size)

    def _fitting(self, size: int) -> Mapping | None:
        fitting = [m for m in self._kept if size <= m.size and m.size * FITS <= size]
        while fitting:
            found = min(fitting, key=lambda m: m.size)
            fitting.remove(found)
            self._kept.remove(found)
            # What its user armed costs time to undo, and nothing if the device fills it: `Filling` knows.
            if found.pid == os.getpid() or found.clean():
                return found
            self._drop([found])
        return None

    def adopt(self, mapping: Mapping) -> None:
        """Take charge of a new mapping, now in use; the device may lock it if the limit allows."""
        with self._changed() as free:
            if not free:
                self.count += 1
                return
            self._drain()
            most = limit()
            self._drop_older(self.locked_bytes + mapping.size - most)
            self.count += 1
            if self.locked_bytes + mapping.size <= most:
                mapping.region = devices.current().region(mapping.address, mapping.size)
                if mapping.region is not None:
                    self.locked_bytes += mapping.size
            if self._watcher is None:
                self._watcher = thread = threading.Thread(target=own(self._watch), name="lazyarray-pool", daemon=True)
                try:
                    thread.start()
                except RuntimeError:        # the interpreter is ending, or there are too many
                    pass
                finally:
                    if not thread.is_alive():
                        self._watcher = None

    def _drop_older(self, excess: int) -> None:
        """Give back mappings of so many bytes, if there are, which are kept for sizes of the past, perhaps."""
        older = []
        for kept in self._kept:
            if excess > 0:
                older.append(kept)
                excess -= kept.size
        if excess <= 0:
            for kept in older:
                self._kept.remove(kept)
            self._drop(older)

    def look_after(self, idle: float = IDLE_SECONDS) -> None:
        """Give back what has lain idle, and everything kept if the machine is short of memory."""
        with self._changed() as free:
            if not free:
                return
            self._drain()
            if not self._kept:
                return
            self._drop_idle(time.monotonic() - idle)

    def _drop_idle(self, before: float) -> None:
        total, available = _memory()
        old = [m for m in self._kept if available < total * SHORT or m.idle_since <= before]
        self._kept = [m for m in self._kept if m not in old]
        self._drop(old)

    def after_fork(self) -> None:
        """In a forked child nothing is locked, and the thread that looks after the memory is not here."""
        self.__init__()  # type: ignore[misc]

    @contextlib.contextmanager
    def _changed(self) -> Iterator[bool]:
        """Hold the lock; False for a finaliser that runs within, in the same thread, and may change nothing."""
        with holding(self._lock):
            free = not self._changing
            self._changing = True
            try:
                yield free
            finally:
                self._changing = not free

    def _drain(self) -> None:
        while self.returned:
            mapping = self.returned.popleft()
            if mapping.region is None:
                self._drop([mapping])       # ordinary memory of this size costs little more fresh than used
            else:
                mapping.idle_since = time.monotonic()
                self._kept.append(mapping)

    def _drop(self, mappings: list[Mapping]) -> None:
        for mapping in mappings:
            self.count -= 1
            if mapping.region is not None:
                mapping.region.release()
                mapping.region = None
                self.locked_bytes -= mapping.size

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            self.look_after()
            with holding(self._lock):
                if self.count <= 0:     # below, in a forked child that gives back what it inherited
                    self._watcher = None
                    return


pool = Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.after_fork)
