"""Device memory in the hands of others: pointers lent to GPU code, and which storage an address belongs to.

GPU code may write through a pointer whenever it likes. A storage is known by its addresses once its device memory was
handed out, or came from outside, so that an array over the same memory is recognised as a view of it.
"""
from __future__ import annotations

import bisect
import sys
import threading
import weakref
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors.interrupts import holding
from . import coherence, foreign_streams
from .mirror.byte_ranges import Ranges
from .state import StorageState, loans_lock

if TYPE_CHECKING:
    from ..devices import Device

_u8 = np.dtype(np.uint8)

#: (device name, number) -> the storages that are known there.
_known: dict[tuple[str, int], _Table] = {}
_known_lock = threading.RLock()     # a finaliser that runs within may come here, too


def note(storage: StorageState, token: weakref.ref[Any]) -> None:
    """GPU code may write to the device memory for as long as `token` lives. The caller holds the storage's lock."""
    storage.before_change()     # it can't tell us when
    if storage.mirror is not None:
        coherence.exactly(storage)
    storage.host = None
    with holding(loans_lock):
        storage.loans = (*_lasting(storage), token) if storage.loans else (token,)
    if foreign_streams.partners:
        storage.clean = False
        foreign_streams.let_partners_wait(storage.device)
    if storage.incoming is not None:
        storage.incoming.ranges = Ranges.EMPTY      # it may be written at any time from now on
        storage.join_all()
    if not storage.registered:
        register(storage)


def _lasting(storage: StorageState) -> list[Any]:
    """The loans of a storage that have to be kept; `loans_lock` is held."""
    alive = [ref for ref in storage.loans if ref() is not None]
    if len(alive) < len(storage.loans):
        if storage.device_only:
            storage.writes += 1
        else:
            alive.append(ended)     # so that the mirror is not trusted when it is asked for next
    return alive


def ended() -> None:
    """Stands for loans whose holders are gone, as a weak reference to them does."""


class Held:
    """Memory that somebody brought: as a weak reference to a loan's token, it is called, and None means nobody."""

    __slots__ = ("device", "token")

    def __init__(self, device: Device, token: Any) -> None:
        self.device, self.token = device, token

    def __call__(self) -> Held | None:
        return self if self.device.held_elsewhere(self.token) else None


def held_besides(device: Device, array: Any) -> bool:
    """Whether any other array holds the memory of `array`, or may: told by the counts of references.

    They are compared with those of a view that was just made. References to `array` itself do not count.
    """
    if not device.counts_holders(array):
        return True
    usual = _spare(device, device.empty((2,), _u8)[1:])
    return any(count > usual.get(kind, -1) for kind, count in _spare(device, array).items())


def is_alone(device: Device, array: Any) -> bool:
    """Whether nothing but `array` holds its memory. The counts are compared with those of an array without memory."""
    if not device.counts_holders(array):
        return False
    usual = min(_spare(device, device.empty((0,), _u8)).values())
    return all(count <= usual for count in _spare(device, array).values())


def forget(storage: StorageState) -> None:
    """A storage has given up its device memory: its addresses are no longer known."""
    for key in [key for key, known in list(_owners.items()) if known is storage]:
        _owners.pop(key, None)
    if storage.registered:
        with holding(_known_lock):
            for key, before in list(_known.items()):
                _known[key] = _table_without(before, storage)
        storage.registered = False


def _table_without(before: Any, storage: StorageState) -> Any:
    return _table_of([entry for entry in before.entries if entry[2]() is not storage])


def _spare(device: Device, array: Any) -> dict[type, int]:
    """The references to what keeps the memory of an array alive, besides the known ones: the most of each type."""
    holdings = device.holdings(array)
    known = {(holder, id(held)) for holder, held in holdings}
    found: dict[type, int] = {}
    for _, held in holdings:
        ours = sum(other is held for _, other in holdings) + sum(target == id(held) for _, target in known)
        found[type(held)] = max(sys.getrefcount(held) - ours, found.get(type(held), 0))
    return found


class _Table(NamedTuple):
    """Storages by their addresses, in order; `reach`: the highest address that it and those before it go to."""

    starts: list[int]
    entries: list[tuple[int, int, weakref.ref[StorageState]]]
    reach: list[int]


def register(storage: StorageState) -> None:
    """Make a storage known by the device addresses of its block."""
    if storage.registered:
        return
    device, block = storage.device, storage.block
    start, stop = device.extent(block)
    entry = start, stop, weakref.ref(storage)
    key = device.name, device.device_of(block)
    with holding(_known_lock):
        while True:
            before = _known.get(key)
            table = _entered(before, entry)
            if _known.get(key) is before:       # else a finaliser has entered something meanwhile
                _known[key] = table     # in one step: others look without the lock
                break
    storage.registered = True


def _entered(before: _Table | None, entry: tuple[int, int, Any]) -> _Table:
    """A table with one more entry, and without those that are gone.

    A function of its own: CPython 3.13 was seen to leave the lock held when it was interrupted within a comprehension
    in the ``with`` block.
    """
    entries = [e for e in before.entries if e[2]() is not None] if before else []
    bisect.insort(entries, entry, key=_address)
    return _table_of(entries)


def _table_of(entries: list[tuple[int, int, Any]]) -> _Table:
    return _Table([e[0] for e in entries], entries, [*accumulate((e[1] for e in entries), max)])


def _address(entry: tuple[int, int, Any]) -> tuple[int, int]:
    return entry[:2]


#: (device name, number, address of an allocation) -> the storage that has all of a new array, of which each of several
#: results is a view.
_owners: weakref.WeakValueDictionary[tuple[str, int, int], StorageState] = weakref.WeakValueDictionary()


def own(storage: StorageState) -> None:
    """Make a storage known to later results that are views of the same array."""
    device = storage.device
    _owners[(device.name, *device.allocation(storage.root)[:2])] = storage


def owner(device: Device, array: Any) -> StorageState | None:
    """The storage that was made of the array that this one is a view of, if there is one."""
    return _owners.get((device.name, *device.allocation(array)[:2])) if _owners else None


def find(device: Device, array: Any) -> tuple | None:
    """The known storage that holds the bytes of a device array, and the array's offset in it."""
    table = _known.get((device.name, device.device_of(array))) if _known else None
    if table is None:
        return None
    start, stop = device.extent(array)
    at = bisect.bisect_right(table.starts, start) - 1
    while at >= 0 and table.reach[at] >= stop > start:
        low, high, ref = table.entries[at]
        if stop <= high and (storage := ref()) is not None:
            return storage, device.first(array) - low
        at -= 1
    return None
