"""Which bytes did foreign code write? Three ways to find out, one interface.

==========  ==========================================================================
`Pages`     the kernel marks written pages: exact to a page, costs next to nothing.
            userfaultfd in asynchronous write-protect mode marks, PAGEMAP_SCAN on
            ``/proc/self/pagemap`` names and re-arms (Linux 6.7; no privilege needed).
            See ioctl_userfaultfd(2) and Documentation/admin-guide/mm/pagemap.rst.
`Snapshot`  a copy is kept and compared: exact to a byte, costs memory and two passes,
            so it is for small memory, and where pages are too coarse.
`Nothing`   nobody knows: whatever a writable alias covers may have been written.
==========  ==========================================================================

A tracker watches ranges of one piece of memory on behalf of `lazyarray.storage.mirror.mirror`, whose
caller holds a lock. Foreign code takes no lock, and may write at any instant.
"""
from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import struct
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ... import _native
from ...errors.inspection import Unique
from .byte_ranges import EMPTY, Ranges, copy_ranges, mark, places_of
from .pages import Mapping, mapped

__all__ = ["Kernel", "Nothing", "Pages", "Rows", "Snapshot", "kernel", "memory_to_fill", "why_no_pages"]

PAGE = mmap.PAGESIZE

# System call numbers of userfaultfd; on these machines ioctl numbers are encoded alike.
_SYSCALL = {"x86_64": 323, "aarch64": 282, "riscv64": 282, "loongarch64": 282}

_USER_MODE_ONLY = 1
_UFFDIO_API, _UFFDIO_REGISTER, _UFFDIO_WRITEPROTECT = 0xC018AA3F, 0xC020AA00, 0xC018AA06
_UFFDIO_UNREGISTER = 0x8010AA01
_WP_UNPOPULATED, _WP_ASYNC = 1 << 13, 1 << 15
_REGISTER_MODE_WP = 1 << 1
_PAGEMAP_SCAN = 0xC0606610
_SCAN_WP_MATCHING, _SCAN_CHECK_WPASYNC, _PAGE_IS_WRITTEN = 1, 2, 1 << 1


_SCAN = struct.Struct("12Q")


class Rows:
    """Where a scan puts what it finds. Not shared: the call runs without the interpreter's lock."""

    __slots__ = ("array", "address", "count")

    def __init__(self, count: int = 128) -> None:
        rows = np.empty((count, 3), np.int64)
        self.array = rows[:, :2]
        self.address = rows.ctypes.data
        self.count = count


class Kernel(Unique):
    """The kernel's page tracking, opened for this process. Addresses are multiples of a page.

    Raises
    ------
    OSError
        From making one: the platform, the kernel or a sandbox does not allow it. From its
        methods: also in a forked child, where the descriptors still speak of the parent's memory.
    """

    __slots__ = ("_pid", "_uffd", "_pagemap", "_call")

    def __init__(self) -> None:
        self._uffd = self._pagemap = -1
        self._pid = os.getpid()
        number = _SYSCALL.get(platform.machine()) if sys.maxsize > 1 << 32 else None
        if sys.platform != "linux" or number is None:
            raise OSError(f"no page tracking on {sys.platform} {platform.machine()}")
        from fcntl import ioctl  # not there on every platform

        self._call = ioctl
        self._uffd = ctypes.CDLL(None, use_errno=True).syscall(
            ctypes.c_long(number), ctypes.c_int(_USER_MODE_ONLY | os.O_CLOEXEC))
        if self._uffd < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"userfaultfd: {os.strerror(code)}")
        ioctl(self._uffd, _UFFDIO_API, bytearray(struct.pack("QQQ", 0xAA, _WP_ASYNC | _WP_UNPOPULATED, 0)))
        self._pagemap = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self, close: Any = os.close) -> None:     # bound here: at exit, `os` may be gone first
        for descriptor in (self._uffd, self._pagemap):
            if descriptor >= 0:
                close(descriptor)

    def _ioctl(self, descriptor: int, request: int, argument: bytes | bytearray) -> Any:
        if os.getpid() != self._pid:
            raise OSError(errno.ESTALE, "page tracking belongs to the parent process")
        return self._call(descriptor, request, argument)

    def descriptor(self) -> int:
        """For PAGEMAP_SCAN; -1 in a forked child."""
        return self._pagemap if os.getpid() == self._pid else -1

    def register(self, start: int, stop: int) -> None:
        """Make anonymous memory fit for `protect`. Unmapping it undoes this."""
        self._ioctl(self._uffd, _UFFDIO_REGISTER,
                    bytearray(struct.pack("QQQQ", start, stop - start, _REGISTER_MODE_WP, 0)))

    def unregister(self, start: int, stop: int) -> None:
        """Undo `register`, while the memory is still there."""
        self._ioctl(self._uffd, _UFFDIO_UNREGISTER, struct.pack("QQ", start, stop - start))

    def protect(self, start: int, stop: int, on: bool = True) -> None:
        """Arm the pages: the first write to each from now on marks it. Off: none is marked, none is slowed."""
        self._ioctl(self._uffd, _UFFDIO_WRITEPROTECT, struct.pack("QQQ", start, stop - start, on))

    def arming(self, runs: Iterable[tuple[int, int]]) -> Iterator[bytes]:
        """Does as `protect` for each (start, stop) when ``all`` goes through it; no Python code is run in between."""
        if os.getpid() != self._pid:
            raise OSError(errno.ESTALE, "page tracking belongs to the parent process")
        return map(partial(self._call, self._uffd, _UFFDIO_WRITEPROTECT),
                   [struct.pack("QQQ", start, stop - start, 1) for start, stop in runs])

    def written(self, start: int, stop: int, rows: Rows) -> list[np.ndarray]:
        """The (start, stop) of marked or never armed pages, as rows of arrays; they are armed again.

        `rows` : the caller's own.
        """
        found = []
        while start < stop:
            request = bytearray(_SCAN.pack(96, _SCAN_WP_MATCHING | _SCAN_CHECK_WPASYNC, start, stop, 0, rows.address,
                                           rows.count, 0, 0, _PAGE_IS_WRITTEN, 0, _PAGE_IS_WRITTEN))
            count = self._ioctl(self._pagemap, _PAGEMAP_SCAN, request)
            if count:
                found.append(rows.array[:count].copy())
            start = _SCAN.unpack(request)[4]
        return found


def self_test(kernel: Kernel) -> None:
    """Raise OSError unless user's and kernel's writes are found, each once, and reads are not."""
    size = 8 * PAGE
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    array = np.frombuffer(memory, np.uint8)
    start = array.ctypes.data
    array[:4 * PAGE] = 1        # the other pages are not there yet
    kernel.register(start, start + size)
    kernel.protect(start, start + size)
    array.sum()
    array[PAGE] = 2
    array[6 * PAGE:6 * PAGE + 2] = 3
    with open("/dev/zero", "rb", buffering=0) as zero:
        zero.readinto(memoryview(memory)[3 * PAGE:3 * PAGE + 9])
    for expected in ([1, 3, 6], []):
        found = kernel.written(start, start + size, Rows(2))
        rows = [(low - start, high - start) for part in found for low, high in part.tolist()]
        if rows != [(page * PAGE, (page + 1) * PAGE) for page in expected]:
            raise OSError(f"page tracking found {rows} in its self-test")
    kernel.protect(start, start + size, False)
    array[0] = 4


#: What was found, by process: a child shares no page tracking with its parent.
trackers: dict[int, Kernel | str] = {}


def _kernel_or_reason() -> Kernel | str:
    pid = os.getpid()
    if pid not in trackers:
        found: Kernel | str
        try:
            found = Kernel()
            self_test(found)
        except (OSError, ImportError) as error:
            found = str(error)
        # Two threads may get here at once; all must end up with the same one.
        trackers.setdefault(pid, found)
        for other in list(trackers):
            if other != pid:
                trackers.pop(other, None)
    return trackers[pid]


def kernel() -> Kernel | None:
    """The page tracking of this process if it passes its self-test (run once), else None."""
    found = trackers.get(os.getpid()) or _kernel_or_reason()
    return found if type(found) is Kernel else None


def why_no_pages() -> str | None:
    """Why the kernel's page tracking is not used in this process; None if it is.

    Examples
    --------
    >>> why_no_pages() is None or isinstance(why_no_pages(), str)
    True
    """
    found = _kernel_or_reason()
    return found if isinstance(found, str) else None


def memory_to_fill(nbytes: int) -> tuple[np.ndarray, Mapping] | None:
    """Memory for a mirror that is found written by pages, and where it lies; None if there can be none."""
    if kernel() is None or sys.is_finalizing():     # nothing is imported any more
        return None
    try:
        return mapped(nbytes)
    except OSError:     # no more mappings, perhaps; if it is memory that lacks, NumPy says so
        return None


class Nothing:
    """Write tracking where there is none: all that may have been written counts as written."""

    __slots__ = ()

    #: Whether writes through aliases that were handed out read-only are found as well.
    sees_all = False

    def watch(self, ranges: Ranges) -> None:
        """From now on find writes to `ranges`; what is watched already stays as it is."""

    def written(self, ranges: Ranges, exact: bool) -> Ranges:
        """Bytes of `ranges` (watched ones) written since the last call, or since watched.

        Without `exact`, bytes that were not written may be among them.
        """
        return ranges

    def before_fill(self, ranges: Ranges, others: Ranges) -> Ranges:
        """We are about to write `ranges` ourselves. `others`: watched bytes that count.

        Returns bytes of `others` that are known to be written: the next `written` may not
        name them again.
        """
        return EMPTY

    def after_fill(self, ranges: Ranges, others: Ranges) -> Ranges:
        """We have written them: our writes are not to be found. Returns as `before_fill`."""
        return EMPTY


def fill_unwritten(memory: np.ndarray, copy: np.ndarray, source: np.ndarray, wanted: np.ndarray, written: np.ndarray,
                   itemsize: int, phase: int) -> None:
    """Copy `source` to `memory` and `copy` where `wanted`, but for elements that differ: they are marked in `written`.

    The part in C lets no thread that has the interpreter's lock write between the look and the change. Others may, so
    that only what is new in `source` is written.
    """
    differs = Ranges.of_positions(np.flatnonzero(memory != copy)).rounded(itemsize, phase)
    differs = differs & Ranges.span(0, len(memory))
    if differs:
        mark(written, 0, differs)
        written &= wanted
        copy_ranges(copy, 0, memory, 0, Ranges.of_positions(np.flatnonzero(written)))
    fills = (wanted > written) & (source != copy)
    np.copyto(memory, source, where=fills)
    np.copyto(copy, source, where=fills)


in_python = fill_unwritten
if _native.small_copies is not None:
    fill_unwritten = _native.small_copies.fill_unwritten

#: Bytes between two written ones that count as written with them, unless it is to be exact.
_GAP = 64
#: Bytes that are compared at once: they stay in the processor's cache.
_PART = 1 << 18


class Snapshot:
    """Write tracking by comparison with a copy."""

    __slots__ = ("_memory", "_start", "_copy")

    sees_all = True

    def __init__(self, memory: np.ndarray, copy: bytes = b"") -> None:
        """`copy`: what was all of the memory when it began to be watched."""
        self._memory = memory
        self._start = 0
        self._copy: bytes | bytearray = copy        # of one range: bytes compare at the speed of memcmp

    def copied(self) -> tuple[int, bytes | bytearray]:
        """(where what is watched begins, what it held when it was compared, filled or first watched)."""
        return self._start, self._copy

    def watch(self, ranges: Ranges) -> None:
        while True:
            start, old = self._start, self._copy
            stop = start + len(old)
            if old:
                if start <= ranges.start and ranges.stop <= stop:
                    return
                low, high = min(start, ranges.start), max(stop, ranges.stop)
                now = self._memory[low:high].tobytes()
                new = now[:start - low] + old + now[stop - low:]
            else:
                low, new = ranges.start, self._memory[ranges.start:ranges.stop].tobytes()
            if self._copy is old:       # else a finaliser has changed it meanwhile; nothing comes between this and that
                self._start, self._copy = low, new
                return

    def compared(self, exact: bool) -> tuple[bytes | bytearray, bytes | bytearray, Ranges]:
        """(what the memory held, what it holds now, where it differs), until `accept` gets the first two."""
        start, old = self._start, self._copy
        if self._is_unwritten(start, old):
            return old, old, EMPTY
        # One look at the memory: what is written later differs from `new`, and is found next time.
        new = self._memory[start:start + len(old)].tobytes()
        differs = np.frombuffer(new, np.uint8) != np.frombuffer(old, np.uint8)
        # A written float may differ in every other byte; so many small ranges cost more than bytes.
        return old, new, Ranges.of_positions(np.flatnonzero(differs) + start, 0 if exact else _GAP)

    def _is_unwritten(self, start: int, copy: bytes | bytearray) -> bool:
        """Whether the memory holds what the copy does, part by part: no second copy of all of it is made."""
        memory, old = self._memory[start:start + len(copy)], np.frombuffer(copy, np.uint8)
        for low in range(0, len(old), _PART):
            part, other = memory[low:low + _PART], old[low:low + _PART]
            words = len(part) & -8
            if not np.array_equal(part[:words].view(np.uint64), other[:words].view(np.uint64)) or (
                    part[words:].tobytes() != other[words:].tobytes()):
                return False
        return True

    def accept(self, old: bytes | bytearray, new: bytes | bytearray) -> None:
        """What was compared, and found, counts as known; not if a finaliser has changed what is watched meanwhile."""
        if self._copy is old:
            self._copy = new

    def written(self, ranges: Ranges, exact: bool) -> Ranges:
        old, new, found = self.compared(exact)
        self.accept(old, new)
        return found & ranges

    def before_fill(self, ranges: Ranges, others: Ranges) -> Ranges:
        return EMPTY

    def after_fill(self, ranges: Ranges, others: Ranges) -> Ranges:
        while True:
            start, old = self._start, self._copy
            filled = ranges & Ranges.span(start, start + len(old))
            new = old
            if filled.start == start and filled.nbytes == len(old):
                if filled.nbytes < _PART:
                    new = self._memory[start:filled.stop].tobytes()
                else:       # into memory that is there: to get so much anew takes longer than to fill it
                    new = old if type(old) is bytearray else bytearray(len(old))
                    np.frombuffer(new, np.uint8)[...] = self._memory[start:filled.stop]
            elif filled:
                copy = np.frombuffer(old, np.uint8).copy()
                copy_ranges(copy, start, self._memory[start:start + len(old)], start, filled)
                new = copy.tobytes()
            if self._copy is old:
                self._copy = new
                return EMPTY

    def fill(self, source: np.ndarray, start: int, ranges: Ranges, itemsize: int, offset: int) -> Ranges:
        """Write watched `ranges` ourselves, but for elements that were written since the last call; those.

        `source` has the bytes from `start` on. Elements of `itemsize` bytes begin at `offset`, and are written as one.
        """
        while True:
            first, old = self._start, self._copy
            size = len(old)
            stop = first + size
            wanted, written = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
            low, high = max(start, first), min(start + len(source), stop)
            if (low, high) == (first, stop):
                all_of_it = source[low - start:high - start]
            else:
                all_of_it = np.empty(size, np.uint8)
                all_of_it[low - first:high - first] = source[low - start:high - start]
            mark(wanted, first, ranges & Ranges.span(low, high))
            memory, phase = self._memory[first:stop], (offset - first) % itemsize
            new = old if type(old) is bytearray else bytearray(old)
            copy = np.frombuffer(new, np.uint8)
            if self._copy is old:
                self._copy = new
                fill_unwritten(memory, copy, all_of_it, wanted, written, itemsize, phase)
                return Ranges.of_positions(np.flatnonzero(written) + first) & ranges


#: Of more runs of pages than this the kernel is told as of one: each call takes it as long as many pages do.
_MOST_RUNS = 64


def _coarse(pages: Ranges) -> Ranges:
    """Pages, with those in between where they are many runs: of pages that nobody may write a mark says nothing."""
    return pages if len(pages) <= _MOST_RUNS else Ranges.span(*pages.bounds)


class Pages:
    """Write tracking by the kernel, on memory from `lazyarray.storage.mirror.pages`."""

    __slots__ = ("_memory", "_kernel", "_base", "_armed", "_filling", "_rows")

    sees_all = True

    def __init__(self, memory: np.ndarray, mapping: Mapping, kernel: Kernel) -> None:
        self._memory = memory
        self._kernel = kernel
        self._base = start = mapping.address
        self._rows = Rows()
        self._armed = EMPTY     # pages whose marks mean something
        self._filling: tuple[Ranges, list[tuple[int, Any, np.ndarray]]] = EMPTY, []
        # Not earlier than needed: of registered memory the kernel makes no huge pages later on.
        kernel.register(start, start + mapping.size)
        mapping.undo = partial(kernel.protect, start, start + mapping.size, False)

    def _protect(self, pages: Ranges, on: bool) -> None:
        for start, stop in pages:
            self._kernel.protect(self._base + start, self._base + stop, on)

    def _scan(self, pages: Ranges) -> Ranges:
        found = []
        for start, stop in pages:
            found += self._kernel.written(self._base + start, self._base + stop, self._rows)
        if not found:
            return EMPTY
        if len(found) == 1 and len(found[0]) == 1:
            [[start, stop]] = found[0].tolist()
            return Ranges(start - self._base, stop - self._base)
        return Ranges.of_pairs((np.concatenate(found) if len(found) > 1 else found[0]) - self._base)

    def watch(self, ranges: Ranges) -> None:
        pages = _coarse(ranges.rounded(PAGE))
        while not (before := self._armed).covers(pages):
            arming = self._kernel.arming([(self._base + start, self._base + stop) for start, stop in pages - before])
            after = before | pages
            # To arm a page twice would lose its mark. A handler or a finaliser may lend what lies there at any call,
            # but nothing comes between the comparison and the kernel.
            if self._armed is before:
                self._armed = after
                all(arming)

    def arm(self, ranges: Ranges) -> None:
        """Watch `ranges` from now on, whatever was written there before, or marked."""
        pages = ranges.rounded(PAGE)
        self._protect(pages, True)
        self._armed = self._armed | pages

    def scanned_by(self, nbytes: int) -> tuple[int, int, int] | None:
        """(descriptor for PAGEMAP_SCAN, address, `nbytes`), if so many bytes from the first on are armed."""
        armed, descriptor = self._armed, self._kernel.descriptor()
        if descriptor < 0 or armed.stop < nbytes or not armed.is_span(0, armed.stop):
            return None
        return descriptor, self._base, nbytes

    def written(self, ranges: Ranges, exact: bool) -> Ranges:
        """Whole pages: what is beside `ranges` on one is forgotten here as well, and may be of another alias."""
        pages = _coarse(ranges.rounded(PAGE))
        loose = pages - self._armed     # an interrupt has left them so: what was written there is not marked
        if loose:
            self._protect(loose, True)
            self._armed = self._armed | loose
        return self._scan(pages) | loose

    def before_fill(self, ranges: Ranges, others: Ranges) -> Ranges:
        pages = ranges.rounded(PAGE)
        pages = (pages if others else _coarse(pages)) & self._armed
        self._filling = pages, []
        if not pages:
            return EMPTY
        found = EMPTY
        # On a page that is filled in part, foreign code may be writing the rest right now. Marks
        # made during the filling are lost, so such bytes are compared.
        beside = (pages & others) - ranges
        if beside:
            places = places_of(beside)
            parts = beside if len(beside) <= _MOST_RUNS else Ranges.span(*beside.bounds)
            copies = [(0, places, self._memory[places])] if places is not None else [
                (start, slice(start, stop), self._memory[start:stop].copy()) for start, stop in parts]
            found = self._scan(pages) & beside
            self._filling = pages, copies
        # Else each page would fault on our first write, and huge pages be split.
        self._armed = self._armed - pages
        self._protect(pages, False)
        return found

    def after_fill(self, ranges: Ranges, others: Ranges) -> Ranges:
        pages, copies = self._filling
        self._filling = EMPTY, []
        if not others or not pages:
            return EMPTY
        self._protect(pages, True)
        self._armed = self._armed | pages
        found = EMPTY
        for start, which, copy in copies:
            differs = np.flatnonzero(self._memory[which] != copy)
            if len(differs):
                where = differs + start if isinstance(which, slice) else which[differs]
                found = found | (Ranges.of_positions(where) & others) - ranges
        return found
