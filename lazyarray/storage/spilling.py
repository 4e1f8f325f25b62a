"""Arrays move to the host when the device is full, and come back when they are used.

Where an allocation fails, a device calls `relieve`, and tries again for as long as that frees memory. Each step is the
cheapest that is left: copies of host arrays that are kept for their next use are dropped; the arrays that were used
longest ago move to their mirrors, which costs no copy where the mirror is current; recorded work is computed, because
its inputs stay on the device until then. A storage that has moved is like one that was created on the host.

References tell which arrays nobody computes with. Whoever uses device memory refers to it: the call that needs room,
recorded work, another thread, a user of CuPy. So a storage gives up its memory first, and gets it back if anything else
refers to that memory then: nobody can begin to after that. Storages and lazy arrays are found by the garbage
collector, as `memory_info` finds them, so that nothing has to be registered while there is room.

An allocation happens under locks, and a move needs the lock of another storage: it is tried, and never waited for.
"""
from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..devices import base
from ..errors.interrupts import holding
from ..events.report import format_bytes
from ..events.trace import begin, end
from . import coherence, exports, handles, transfer, upload_cache
from .mirror.byte_ranges import Ranges
from .state import all_ended
from .storage import Storage

if TYPE_CHECKING:
    from ..devices import Device

__all__ = ["moved", "relieve", "relieve_host", "spill"]

#: Smaller arrays stay: memory pools allocate in such units.
LEAST = 512
#: At least this part of the device's memory is freed at once, if it can be: to find the arrays takes some milliseconds.
PART = 8

#: Seconds to wait before arrays are looked for, and looked for again: other threads may be done with theirs by then.
_WAITS = 0, 1e-3, 1e-2

_FULL = "the device is full"


#: Number of a device -> (how many arrays have moved to the host because it was full, their bytes in all).
moved: dict[int, tuple[int, int]] = {}
#: Of whoever counts there: a thread has the lock of the storage that it moves, and another one that of another. A
#: finaliser that runs within may move arrays, too.
_counting = threading.RLock()


class _Local(threading.local):
    """What this thread does about a shortage of memory: each step may allocate, too."""

    moving = computing = False


_local = _Local()


def relieve(device: Device, nbytes: int) -> str | None:
    """Free memory of the current device for an allocation of `nbytes` bytes that failed; None, or why that can't be.

    Raises
    ------
    TransferError
        A copy is necessary, and `no_transfers` forbids it.
    """
    if _local.moving or device.usable() is not None:
        return ""
    if nbytes <= device.total_memory():
        for seconds in _WAITS if threading.active_count() > 1 else _WAITS[:1]:
            if seconds:
                time.sleep(seconds)
            if spill(device, nbytes):
                return None
        if not _local.computing:
            _local.computing = True
            try:
                for compute in base.deferred:
                    compute()
                if spill(device, nbytes):
                    return None
            except MemoryError:     # whoever needs a value gets the error; what was computed until here is done
                pass
            finally:
                _local.computing = False
    return (f"{format_bytes(nbytes)} were requested on a device of {format_bytes(device.total_memory())}, of which "
            f"{format_bytes(device.free_memory())} are free. Lazy arrays and what is to be computed from them hold "
            f"{format_bytes(_held(device))}, which can't be moved to the host now: they are in use, or other code "
            "holds their device memory.")


def _held(device: Device) -> int:
    """Bytes that storages hold on the current device, those included that only recorded work refers to."""
    number, found = device.number(), {}
    for obj in gc.get_referrers(Storage):       # its instances; see `_storages`
        if type(obj) is Storage and obj.device is device and (home := _home(obj)) is not None and (
                device.device_of(home) == number):
            found[id(home)] = home.nbytes
    return sum(found.values())


def spill(device: Device, nbytes: int) -> bool:
    """Move arrays of the current device to the host, the longest unused first, until `nbytes` bytes are free, or more.

    False if nothing could be freed, and within itself: to move arrays takes memory, too.
    """
    if _local.moving:
        return False
    _local.moving = True
    try:
        return upload_cache.forget_all() or _spill(device, max(nbytes, device.total_memory() // PART)) > 0
    finally:
        _local.moving = False


def _spill(device: Device, nbytes: int) -> int:
    number, freed = device.number(), 0
    for storage, lazies in _longest_unused():
        if storage.device is device and _may_move(storage) and device.device_of(_home(storage)) == number:
            freed += _tried(storage, lambda s=storage, xs=lazies: _move(s, xs))
        if freed >= nbytes:
            break
    return freed


#: What was found the last time and not needed then, the longest unused first: when a storage was used, a weak reference
#: to it, and some to its lazy arrays. It takes 10 ms to look through a process with many libraries.
_found: deque[tuple[int, weakref.ref[Storage], list[weakref.ref[Any]]]] = deque()


def _longest_unused() -> Iterator[tuple[Storage, list[Any]]]:
    """The storages of all lazy arrays, the longest unused first, each with those arrays.

    What was found before and was not used since comes first: all others were used later. Where there are views by now
    that were not found then, the storage is in use, and stays.
    """
    yield from _taken(unused=True)
    entries = sorted(_storages(), key=lambda entry: _last_used(entry[0]))
    _found.clear()      # what another thread has found meanwhile
    _found.extend([(_last_used(storage), weakref.ref(storage), [weakref.ref(x) for x in lazies])
                   for storage, lazies in entries if _home(storage) is not None])
    del entries
    yield from _taken(unused=False)


def _taken(unused: bool) -> Iterator[tuple[Storage, list[Any]]]:
    """What was found, which is taken from there. `unused`: without what was used since."""
    while True:
        try:
            used, ref, refs = _found.popleft()
        except IndexError:
            return
        storage = ref()
        if storage is not None and not (unused and _last_used(storage) != used):
            yield storage, [x for r in refs if (x := r()) is not None]


def _last_used(storage: Storage) -> int:
    return getattr(storage, "used", None) or 0


def _storages() -> list[tuple[Storage, list[Any]]]:
    """The storages of all lazy arrays of the process, each with those arrays."""
    # Read without the class's `__getattr__`, which makes what is missing: a small array on the host has no storage.
    kind, slot = handles.ArrayHandle, handles.ArrayHandle._self_storage.__get__     # type: ignore[attr-defined]
    found: dict[int, tuple[Storage, list[Any]]] = {}
    # An instance refers to its class. A list of all objects would refer to the device arrays, in which another thread
    # that looks for memory sees that they are in use.
    for obj in gc.get_referrers(*_classes(kind)):
        if issubclass(type(obj), kind):
            try:
                storage = slot(obj)
            except AttributeError:
                continue
            if type(storage) is Storage:
                found.setdefault(id(storage), (storage, []))[1].append(obj)
    return list(found.values())


def _classes(kind: type) -> list[type]:
    return [kind, *(found for sub in kind.__subclasses__() for found in _classes(sub))]


def _home(storage: Storage) -> Any:
    return storage._block if storage.root is None else storage.root


def _may_move(storage: Storage) -> bool:
    """Whether no other code has the memory of a storage or is at work on it, as far as the storage knows."""
    home = _home(storage)
    return not (home is None or home.nbytes < LEAST or storage.pending is not None or storage.writing
                or storage.foreign or storage.compacts
                or any(ref() is not None for ref in storage.loans))


def _tried(storage: Storage, work: Callable[[], int]) -> int:
    """``work()`` with the lock of a storage, or 0 if a call of this thread or another thread has it."""
    lock = storage.lock
    if lock._is_owned() or not lock.acquire(blocking=False):
        return 0
    try:
        return work()
    except MemoryError:     # the host's; perhaps another array has a mirror
        return 0
    finally:
        lock.release()


def _move(storage: Storage, lazies: list[Any]) -> int:
    """Move a storage, whose lock is held, to the host. The bytes of device memory that this frees."""
    device = storage.device
    if not _may_move(storage) or upload_cache.is_kept(device, _home(storage)):
        return 0
    if storage.incoming is not None:
        storage.incoming.land(storage)      # a copy to the host that was asked for before
    if storage.loans and not all_ended(storage):
        coherence.distrust(storage, coherence.whole_of(storage))
    if storage.root is not None:
        storage.root_meta()
    storage._nbytes = nbytes = storage.nbytes
    for x in lazies:
        handles.meta_of(x)
    home = _home(storage)
    leaves = {id(x._self_leaf) for x in lazies if x._self_leaf is not None and x._self_leaf.array is home}
    if sys.getrefcount(home) - 3 > len(leaves) + sum(x._self_array is home for x in lazies):
        return 0        # in use: not to copy it in vain
    del home
    with storage.place():
        if not _fetched(storage):
            return 0
        before, number = storage.host_dirty, device.device_of(_home(storage))
        # From here on other threads wait for the lock, and all bytes count as current on the host alone.
        storage.clean = False
        storage.host_dirty = Ranges.span(0, nbytes)
        for x in lazies:
            x._self_leaf = x._self_array = None
        home, rooted = _home(storage), storage.root is not None
        try:
            storage.root = storage._block = storage.facts = None
            free = sys.getrefcount(home) <= 2 and exports.is_alone(device, home)
        except BaseException:       # an interrupt
            _restore(storage, home, rooted)
            raise
        if not free:
            _restore(storage, home, rooted)
            storage.host_dirty = before
            storage.update_clean()
            return 0
        storage.returns_to, storage.spilled = number, True
        exports.forget(storage)
        for reader, writer in storage.ordered:      # the memory goes back to one stream, while others may still read it
            device.order(reader, writer)
        storage.joined = ()
        with holding(_counting):
            count, before_it = moved.get(number, (0, 0))
            moved[number] = count + 1, before_it + nbytes
        del home
    return nbytes


def _restore(storage: Storage, home: Any, rooted: bool) -> None:
    if rooted:
        storage.root = home
    else:
        storage._block = home


def _fetched(storage: Storage) -> bool:
    """Bring the mirror of a storage up to date; False if that can't be done now."""
    mirror, whole = coherence.mirror_of(storage), coherence.whole_of(storage)
    coherence.collect(storage)
    lacking = Ranges.span(0, storage.nbytes) - mirror.valid
    if not lacking:
        end(begin("spill", 0, whole.shape, whole.dtype, _FULL))
        return True
    if len(lacking) > transfer.MOST_PIECES and storage.host_dirty:
        return False        # a gather would overwrite bytes that the host alone has
    writes = storage.writes
    storage.join()
    transfer.download(storage.device, storage.block, mirror, lacking, whole, 0, _FULL, kind="spill")
    if storage.writes != writes:        # a signal handler or a finaliser wrote on the device meanwhile
        mirror.invalidate(lacking - storage.host_dirty)
    return mirror.full


# -- host memory ---------------------------------------------------------------------------------

def relieve_host(nbytes: int) -> str | None:
    """Drop mirrors whose bytes are current on the device until `nbytes` bytes are free; None, or why that can't be."""
    freed = held = 0
    for storage, _ in _storages():
        if freed < nbytes and storage.mirror is not None:
            freed += _tried(storage, lambda s=storage: _drop(s))
        if storage.mirror is not None:
            held += storage.mirror.nbytes
    return None if freed else (f"{format_bytes(nbytes)} of host memory were requested. Lazy arrays hold "
                               f"{format_bytes(held)} of it, which is current on the host alone, or in use.")


def _drop(storage: Storage) -> int:
    """Drop the mirror of a storage, whose lock is held, if nobody has an alias of it. The bytes that this frees."""
    mirror = storage.mirror
    if mirror is None or _home(storage) is None or storage.writing or storage.incoming is not None:
        return 0
    coherence.collect(storage)
    if mirror.lent or storage.host_dirty or storage.compacts or storage.loans or storage.foreign:
        return 0
    # First, and for ever: what lazy arrays have seen of this mirror may not count when there is another one.
    storage.host, storage.host_dropped = None, True
    storage.mirror = storage._resident = None
    storage.update_clean()
    return mirror.nbytes
