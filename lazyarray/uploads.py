"""Uploads of read-only host arrays, remembered for as long as the array lives and cannot have changed.

That an array is read-only does not say that nobody writes to it: its owner may make it writable for a while, an older
view may be writable still, C code may take no notice. So it is looked at before each use: small memory is compared with
a copy, large memory is watched by the kernel, in whole pages (see `lazyarray.tracking`). Memory that neither can be
said of (writable on the way to its owner, shared with other processes, of an allocator of somebody else's, or large
where the kernel has no such thing) is uploaded each time. A `bytes` object never changes.
"""
from __future__ import annotations

import ctypes
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from . import transfer
from .ranges import Ranges
from .tracking import PAGE, Pages, Snapshot, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from .devices import Device

__all__ = ["forget", "forget_all", "remembered"]

#: Remembered copies take no more than this part of a device's memory; the longest unused go first.
SHARE = 1 / 8
#: Arrays watched at most. Each may split a mapping in three, of which the system allows a process some 65,000.
MOST = 1024
#: From this size on memory is watched by the kernel. Below it, to compare all of it is as quick.
PAGES_FROM = 128 << 10

_lock = threading.RLock()
#: Identity of the array that owns the memory -> what is known of it; the longest unused first.
_owners: dict[int, _Owner] = {}


class _Owner:
    """A read-only array that owns its memory, and the copies of it and of its views."""

    __slots__ = ("ref", "span", "watch", "copies")

    def __init__(self, owner: np.ndarray, watch: _Unchanging | _Watch) -> None:
        identity = id(owner)
        self.ref = weakref.ref(owner, lambda _: _gone(identity))
        self.span = byte_bounds(owner)
        self.watch = watch
        self.copies: dict[Any, Any] = {}        # which view, on which device -> a function that gives its device array

    @property
    def nbytes(self) -> int:
        return sum(copy.args[1].nbytes for copy in self.copies.values())


class _Unchanging:
    """The memory of a `bytes` object."""

    def changed(self, start: int, stop: int) -> bool:
        return False

    def watch(self, start: int, stop: int) -> None:
        """Nothing to watch."""

    def end(self) -> None:
        """Nothing was arranged."""


class _Watch:
    """Finds out whether memory was written: whole pages by the kernel, what is left by comparison."""

    def __init__(self, owner: np.ndarray) -> None:
        address, stop = byte_bounds(owner)
        size = stop - address
        # Not a view of the owner, which would keep it alive. Its end is told to `_gone`, after which nobody looks here.
        memory = np.frombuffer((ctypes.c_ubyte * size).from_address(address), np.uint8)
        self.pages: list[tuple[int, int, Pages]] = []
        self.copies: list[tuple[int, int, Snapshot]] = []
        self.undo: Callable[[], None] | None = None
        if size < PAGES_FROM:
            self._compare(memory, 0, size)
            return
        found = kernel()
        if found is None:
            raise OSError("no page tracking")
        # Not the pages at its ends: others may be watching the other parts of them.
        start = -address % PAGE
        stop = size - (address + size) % PAGE
        span = _Span(address + start, stop - start)
        self.pages.append((start, stop, Pages(memory[start:stop], span, found)))
        self.undo = partial(_let_go, found, span)
        self._compare(memory, 0, start)
        self._compare(memory, stop, size)

    def _compare(self, memory: np.ndarray, start: int, stop: int) -> None:
        if start < stop:
            self.copies.append((start, stop, Snapshot(memory[start:stop])))

    def watch(self, start: int, stop: int) -> None:
        for low, high, tracker in (*self.pages, *self.copies):
            if start < high and low < stop:
                tracker.watch(Ranges.span(max(start, low) - low, min(stop, high) - low))

    def changed(self, start: int, stop: int) -> bool:
        found = False
        for low, high, tracker in (*self.pages, *self.copies):
            if start < high and low < stop:
                span = Ranges.span(max(start, low) - low, min(stop, high) - low)
                found |= bool(tracker.written(span, False))     # each is asked: what it finds it forgets
        return found

    def end(self) -> None:
        if self.undo is not None:
            self.undo()


class _Span:
    """The pages of somebody else's memory, as `Pages` wants them described."""

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size
        self.undo: Callable[[], None] | None = None


def _let_go(found: Any, span: _Span) -> None:
    try:
        found.unregister(span.address, span.address + span.size)
    except OSError:
        pass    # a forked child: it was the parent's arrangement


def _gone(identity: int) -> None:
    """Stop watching an array. Where it is dying, its memory is not yet free: afterwards others may watch it."""
    known = _owners.pop(identity, None)
    if known is not None:
        known.watch.end()


# -- what may be remembered ------------------------------------------------------------------

def _owner_of(array: np.ndarray) -> tuple[np.ndarray, bool] | None:
    """The array that owns the memory of a read-only one, and whether the memory can't change; None: don't remember."""
    while not array.flags.writeable:
        base = array.base
        if base is None:
            return (array, False) if array.flags.owndata and _is_ours(array) else None
        if type(base) is bytes:
            return array, True
        if not issubclass(type(base), np.ndarray):
            return None
        array = base
    return None


def _is_ours(array: np.ndarray) -> bool:
    """Whether memory is from NumPy's own allocator: private to this process, and not a device's."""
    return _handler(array) == "default_allocator"


_handler = getattr(getattr(np, "_core", None), "multiarray", None)
_handler = getattr(_handler, "get_handler_name", lambda array: None)


# -- the verbs -------------------------------------------------------------------------------

def remembered(device: Device, array: np.ndarray, why: str) -> Any:
    """The device copy of a read-only host array, made now or before; None if none can be remembered.

    Nobody may write to it.
    """
    found = _owner_of(array)
    if found is None or not array.size:
        return None
    owner, unchanging = found
    with _lock:
        known = _owners.pop(id(owner), None)
        if known is None or known.ref() is not owner or known.span != byte_bounds(owner):
            known = _begin(owner, unchanging)
            if known is None:
                return None
        _owners[id(owner)] = known      # the last used
        if len(_owners) > MOST:
            _gone(next(iter(_owners)))
        low, high = byte_bounds(array)
        start, stop = low - known.span[0], high - known.span[0]
        try:
            if known.copies and known.watch.changed(start, stop):
                known.copies.clear()    # of its other views too: a change is told once
        except OSError:
            _gone(id(owner))
            return None
        key = (low, array.__array_interface__["data"][0], array.shape, array.strides, array.dtype,
               device.number() if device.count > 1 else 0)
        copy = known.copies.get(key)
        if copy is None:
            try:
                known.watch.watch(start, stop)      # before it is read
            except OSError:
                _gone(id(owner))
                return None
            on_device = transfer.to_device(device, array, why, layout=True)
            copy = known.copies[key] = partial(_joined, device, on_device, [device.stream()])
            _make_room(device, known)
        return copy()


def _begin(owner: np.ndarray, unchanging: bool) -> _Owner | None:
    try:
        return _Owner(owner, _Unchanging() if unchanging else _Watch(owner))
    except OSError:
        return None


def _joined(device: Device, array: Any, streams: list[Any]) -> Any:
    """The array, once the current stream waits for its upload."""
    current = device.stream()
    if current not in streams:
        device.wait(streams[0])
        streams.append(current)
        # The memory goes back to the stream that made it; not while this one still reads.
        weakref.finalize(array, device.order, current, streams[0]).atexit = False
    return array


def _make_room(device: Device, kept: _Owner) -> None:
    limit = device.total_memory() * SHARE
    total = sum(known.nbytes for known in list(_owners.values()))
    for known in list(_owners.values()):
        if total <= limit:
            return
        total -= known.nbytes
        known.copies.clear()


def forget(array: np.ndarray) -> None:
    """Don't use the copy of an array again: somebody may write to it."""
    with _lock:
        found = _owner_of(array)
        known = None if found is None else _owners.get(id(found[0]))
        if known is not None:
            known.copies.clear()


def forget_all() -> bool:
    """Let go of all copies, since the device lacks memory. Whether there were any."""
    with _lock:
        before = any(known.copies for known in list(_owners.values()))
        for known in list(_owners.values()):
            known.copies.clear()
        return before
