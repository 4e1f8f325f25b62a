"""What aliases wrote in a large mirror goes to the device part by part, as it is found.

To look at a GiB of written pages, and to arm them again, takes the kernel a fifth of the time of the copy.
The caller holds the storage's lock.

Measured on an H100 (``benchmarks/results/special-ways-cuda-2026-11-28.json``), of a mirror that was written all over:
64 MiB go at 0.86 to 0.89 of the rate of page-locked memory by `at_once` and at 0.79 by `as_found` alone, 256 MiB at
0.95 and 0.93.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ..events.trace import heard
from . import foreign_streams
from .mirror.byte_ranges import Ranges

if TYPE_CHECKING:
    from .state import StorageState

#: Smaller mirrors are looked at as a whole.
FROM = 16 << 20
#: Bytes that are looked at in the first turn, which overlaps with no copy. While there is much to copy each further one
#: is so many times larger, up to the last; else it is far larger. To look takes a fifth of the time of the copy, and
#: Python 50 us in between: so each turn is over when the copies of the one before are.
TURN, GROWTH, LAST, LEAP = 4 << 20, 2, 32 << 20, 32
#: The same where the device does both and nothing comes in between: there each further turn is so many times as large
#: as all before. As large, and the device still copies when it has been looked at, though from caches that the writing
#: has emptied; three times as large, and it has waited for 30 us of the 1,360 that 64 MiB take on an H200's host.
AT_ONCE = 1 << 20, 1, 32 << 20, 32


def applies(storage: StorageState) -> bool:
    """Whether what was written may be sent before all of it is known."""
    mirror = storage.mirror
    return (mirror.nbytes >= FROM and mirror.in_turns and not storage.compacts and not storage.loans
            and not storage.foreign and not storage.readers and not storage.spilled
            and not heard())        # an event says how many bytes there are before they are copied


def at_once(storage: StorageState) -> bool:
    """`as_found` in one call of the device's, of all that a mirror has; False if it can't be, and nothing was done."""
    mirror, device, block, kept = storage.mirror, storage.device, storage._block, storage._resident
    if (mirror is None or mirror.nbytes < FROM or block is None or storage.host_dirty or storage.loans
            or storage.foreign or storage.compacts or storage.readers
            or kept is not None and sys.getrefcount(kept[1]) <= 2       # nobody but us holds it
            or device.count > 1 and not device.on_current(block) or heard()
            or (pages := mirror.pages_of_all()) is None):       # as in a forked child, where nobody can look at them
        return False
    stream = device.stream()
    if stream != storage.stream or storage.joined or foreign_streams.partners:
        storage.join_all()
        storage.sent(stream)
    outcome: list[tuple[int, int, bytes, bytes]] = []
    try:
        return device.copy_written(pages, mirror.mapping.region, block, AT_ONCE, outcome) and _settled(storage, outcome)
    except BaseException as error:      # a fault of the device, or an interrupt: what was found counts as written
        _failed(storage, outcome)
        device.failed(error)
        raise


def _failed(storage: StorageState, outcome: list[tuple[int, int, bytes, bytes]]) -> None:
    """A fault of the device, or an interrupt: what was written may or may not have arrived."""
    known = outcome and not outcome[0][1]
    storage.host_dirty = _ranges(outcome[0][2]) if known else Ranges.span(0, storage.mirror.nbytes)


def _settled(storage: StorageState, outcome: list[tuple[int, int, bytes, bytes]]) -> bool:
    """Send what a sender has left; whether all has arrived by now."""
    _, refused, _, left = outcome[0]
    mirror = storage.mirror
    if left:
        storage.device.upload_ranges(mirror.bytes, storage._block, _ranges(left))
    if refused:     # nobody knows what is written, from now on
        mirror.give_up()
        storage.host_dirty = Ranges.span(0, mirror.nbytes)
    return not refused


def _ranges(pairs: bytes) -> Ranges:
    return Ranges.of_pairs(np.frombuffer(pairs, np.int64))


def _turns(nbytes: int, much: Callable[[], bool]) -> Iterator[tuple[int, int]]:
    """The (start, stop) of the turns; `much`: whether there was much to copy in the last one."""
    start, size = 0, TURN
    while start < nbytes:
        stop = min(start + size, nbytes)
        yield start, stop
        start, size = stop, min(size * GROWTH, LAST) if much() else size * LEAP


def as_found(storage: StorageState, span: Ranges) -> None:
    """Learn what aliases wrote, and bring the device up to date within `span`."""
    mirror = storage.mirror
    waiting = storage.host_dirty & span if storage.host_dirty else storage.host_dirty
    sent: list[Ranges] = []
    found = [0]         # bytes that were written in the last turn

    def parts() -> Iterator[Ranges]:
        """What the device needs, the next as soon as it is known."""
        if waiting:
            yield waiting
        for written in mirror.collect_in_turns(_turns(mirror.nbytes, lambda: found[0] >= TURN)):
            found[0] = written.nbytes
            needed = written & span
            if needed is not written:
                storage.host_dirty = storage.host_dirty | (written - needed)
            if needed:
                sent.append(needed)
                yield needed

    needs = parts()
    first = next(needs, None)
    if first is None:
        return
    try:
        storage._check_usable()
        with storage.place():
            storage.join_all()
            pairs = (pair for ranges in chain([first], needs) for pair in ranges)
            storage.device.upload_ranges(mirror.bytes, storage.block, pairs)
            storage.sent(storage.device.stream())
    except BaseException:       # a fault of the device, or an interrupt between two parts
        storage.host_dirty = Ranges.union([storage.host_dirty, *sent])  # they may or may not have arrived
        raise
    storage.host_dirty = storage.host_dirty - waiting

