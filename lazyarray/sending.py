"""What aliases wrote in a large mirror goes to the device part by part, as it is found.

To look at a GiB of written pages, and to arm them again, takes the kernel a fifth of the time of the copy.
The caller holds the storage's lock.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from .mirror_turns import collect_in_turns, goes_in_turns
from .ranges import Ranges
from .trace import heard

if TYPE_CHECKING:
    from .storage import Storage

#: Smaller mirrors are looked at as a whole.
FROM = 16 << 20
#: Bytes that are looked at in the first turn, which overlaps with no copy. While there is much to copy each further one
#: is so many times larger, up to the last; else it is far larger. To look takes 60 us and a third of the time of the
#: copy (measured): so each turn is over when the copies of the one before are, and the first is no longer than it must.
TURN, GROWTH, LAST, LEAP = 8 << 20, 2, 32 << 20, 32


def applies(storage: Storage) -> bool:
    """Whether what was written may be sent before all of it is known."""
    mirror = storage.mirror
    return (mirror.nbytes >= FROM and goes_in_turns(mirror) and not storage.compacts and not storage.loans
            and not storage.foreign and storage.readers is None
            and not heard())        # an event says how many bytes there are before they are copied


def _turns(nbytes: int, much: Callable[[], bool]) -> Iterator[tuple[int, int]]:
    """The (start, stop) of the turns; `much`: whether there was much to copy in the last one."""
    start, size = 0, TURN
    while start < nbytes:
        stop = min(start + size, nbytes)
        yield start, stop
        start, size = stop, min(size * GROWTH, LAST) if much() else size * LEAP


def as_found(storage: Storage, span: Ranges, overwritten: Ranges) -> None:
    """Learn what aliases wrote, and bring the device up to date within `span`, but for what is `overwritten`."""
    mirror = storage.mirror
    waiting = (storage.ahead & span) - overwritten if storage.ahead else storage.ahead
    sent: list[Ranges] = []
    found = [0]         # bytes that were written in the last turn

    def parts() -> Iterator[Ranges]:
        """What the device needs, the next as soon as it is known."""
        if waiting:
            yield waiting
        for written in collect_in_turns(mirror, _turns(mirror.nbytes, lambda: found[0] >= TURN)):
            found[0] = written.nbytes
            needed = (written & span) - overwritten
            if needed is not written:
                storage.ahead = storage.ahead | (written - needed)
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
            storage.stream, storage.joined = storage.device.stream(), ()
    except BaseException:       # a fault of the device, or an interrupt between two parts
        storage.ahead = Ranges.union([storage.ahead, *sent])       # they may or may not have arrived
        raise
    storage.ahead = storage.ahead - waiting
