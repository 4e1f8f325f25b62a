"""Device memory in the hands of others: pointers lent to GPU code, and which storage an address belongs to.

GPU code may write through a pointer whenever it likes. A storage is known by its addresses once its device memory was
handed out, or came from outside, so that an array over the same memory is recognised as a view of it.
"""
from __future__ import annotations

import bisect
import threading
import weakref
from typing import TYPE_CHECKING, Any

from . import coherence, foreign_streams
from .mirror.byte_ranges import Ranges
from .state import StorageState, loans_lock

if TYPE_CHECKING:
    from ..devices import Device

#: {(device name, number): sorted list of (start, stop, weak reference to a storage)}.
_known: dict[tuple[str, int], list[Any]] = {}
_known_lock = threading.RLock()     # a finaliser that runs within may come here, too


def note(storage: StorageState, token: weakref.ref[Any]) -> None:
    """GPU code may write to the device memory for as long as `token` lives. The caller holds the storage's lock."""
    storage.before_change()     # it can't tell us when
    coherence.exactly(storage)
    with loans_lock:
        storage.loans += (token,)
    if foreign_streams.partners:
        storage.clean = False
        foreign_streams.let_partners_wait(storage.device)
    if storage.incoming is not None:
        storage.incoming.ranges = Ranges.EMPTY      # it may be written at any time from now on
        storage.join_all()
    register(storage)


class Held:
    """Memory that somebody brought: as a weak reference to a loan's token, it is called, and None means nobody."""

    __slots__ = ("device", "token")

    def __init__(self, device: Device, token: Any) -> None:
        self.device, self.token = device, token

    def __call__(self) -> Held | None:
        return self if self.device.held_elsewhere(self.token) else None


def register(storage: StorageState) -> None:
    """Make a storage known by the device addresses of its block."""
    block = storage.block
    device = storage.device
    start, stop = device.extent(block)
    entry = (start, stop, weakref.ref(storage))
    with _known_lock:
        _enter(_known.setdefault((device.name, device.device_of(block)), []), entry, storage)


def _enter(entries: list[Any], entry: tuple[int, int, Any], storage: StorageState) -> None:
    """Enter a storage, and leave out its earlier entry and those of storages that are gone. The lock is held."""
    while True:
        before = list(entries)
        known = [e for e in before if e[2]() is not None and e[2]() is not storage]
        bisect.insort(known, entry, key=lambda e: e[:2])
        if entries == before:       # else a finaliser has entered something meanwhile
            entries[:] = known      # in one step: others look without the lock
            return


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
    if not _known:
        return None
    key = device.name, device.device_of(array)
    with _known_lock:       # not while a storage is taken out to be entered anew
        entries = list(_known.get(key, ()))
    if not entries:
        return None
    start, stop = device.extent(array)
    for low, high, ref in tuple(entries):
        if low <= start and stop <= high and start < stop:
            storage = ref()
            if storage is not None:
                return storage, device.first(array) - low
    return None
