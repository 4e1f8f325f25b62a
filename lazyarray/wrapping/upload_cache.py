"""Uploads of large read-only host arrays, remembered for as long as the array lives and cannot have changed.

That an array is read-only does not say that nobody writes to it: its owner may make it writable for a while, an older
view may be writable still, C code may take no notice. So the kernel watches its pages (see `dirty_tracking`), and they
are asked for before each use. Memory of which that can't be known (writable on the way to its owner, shared with other
processes, of an allocator of somebody else's, or on a kernel without such a thing) is uploaded each time. A `bytes`
object never changes.

Measured on the simulated device, a call of a pure function that is given such an array, remembered and uploaded:
8 kB 33 and 17 us, 128 kB 33 and 20 us, 800 kB 40 and 45 us, 8 MB 47 and 1,350 us, 80 MB 0.1 and 22.6 ms.
"""
from __future__ import annotations

import ctypes
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ..storage import transfer
from ..storage.mirror.byte_ranges import Ranges
from ..storage.mirror.dirty_tracking import PAGE, Pages, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..devices import Device

__all__ = ["forget_all", "remembered"]

#: Remembered copies take no more than this part of a device's memory; the longest unused go first.
SHARE = 1 / 8
#: Arrays watched at most. Each may split a mapping in three, of which the system allows a process some 65,000.
MOST = 1024
#: Bytes of an array from which on to ask the kernel is quicker than to upload it.
LEAST = 512 << 10

_lock = threading.RLock()
#: Identity of the array that owns the memory -> what is known of it; the longest unused first.
_owners: dict[int, _Owner] = {}


class _Owner:
    """A read-only array that owns its memory, and the copies of it and of its views."""

    __slots__ = ("ref", "span", "pages", "whole", "ends", "before", "copies", "__weakref__")

    def __init__(self, owner: np.ndarray, unchanging: bool) -> None:
        identity = id(owner)
        self.span = address, stop = byte_bounds(owner)
        self.copies: dict[Any, Any] = {}        # which view, on which device -> a function that gives its device array
        self.pages: Pages | None = None
        self.ends: list[np.ndarray] = []
        self.before: list[bytes] = []
        if not unchanging:
            found = kernel()
            if found is None:
                raise OSError("no page tracking")
            # The pages at its ends are compared: others may be watching the other parts of them.
            first, last = -(-address // PAGE) * PAGE, stop // PAGE * PAGE
            span = _Span(first, last - first)
            self.pages, self.whole = Pages(_bytes(first, last), span, found), Ranges.span(0, last - first)
            self.ends = [_bytes(*end) for end in ((address, first), (last, stop)) if end[0] < end[1]]
            weakref.finalize(self, _let_go, found, span).atexit = False
        self.ref = weakref.ref(owner, lambda _: _owners.pop(identity, None))

    @property
    def nbytes(self) -> int:
        return sum(copy.args[1].nbytes for copy in self.copies.values())

    def watch(self) -> None:
        """Find out from now on whether the memory is written."""
        if self.pages is not None and not self.copies:
            self.pages.watch(self.whole)
            self.before = [end.tobytes() for end in self.ends]

    def changed(self) -> bool:
        """Whether it was."""
        return self.pages is not None and (bool(self.pages.written(self.whole, False))
                                           or self.before != [end.tobytes() for end in self.ends])


def _bytes(start: int, stop: int) -> np.ndarray:
    """Memory by its address: not a view of the array, which would keep that alive."""
    return np.frombuffer((ctypes.c_ubyte * (stop - start)).from_address(start), np.uint8)


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
    found = _owner_of(array) if array.nbytes >= LEAST else None
    if found is None or found[0].nbytes < LEAST:        # of a few bytes there may be views with many
        return None
    owner, unchanging = found
    with _lock:
        try:
            known = _owners.pop(id(owner), None)
            if known is not None and (known.ref() is not owner or known.span != byte_bounds(owner)):
                known = None        # before there is another of the same memory
            known = known or _Owner(owner, unchanging)
            if known.copies and known.changed():
                known.copies.clear()
            key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype,
                   device.number() if device.count > 1 else 0)
            if key not in known.copies:
                known.watch()       # before it is read
        except OSError:
            return None
        _owners[id(owner)] = known      # the last used
        if len(_owners) > MOST:
            del _owners[next(iter(_owners))]
        copy = known.copies.get(key)
        if copy is None:
            on_device = transfer.to_device(device, array, why, layout=True)
            copy = known.copies[key] = partial(_joined, device, on_device, [device.stream()])
            _make_room(device)
        return copy()


def _joined(device: Device, array: Any, streams: list[Any]) -> Any:
    """The array, once the current stream waits for its upload."""
    current = device.stream()
    if current not in streams:
        device.wait(streams[0])
        streams.append(current)
        # The memory goes back to the stream that made it; not while this one still reads.
        weakref.finalize(array, device.order, current, streams[0]).atexit = False
    return array


def _make_room(device: Device) -> None:
    limit = device.total_memory() * SHARE
    total = sum(known.nbytes for known in list(_owners.values()))
    for known in list(_owners.values()):
        if total <= limit:
            return
        total -= known.nbytes
        known.copies.clear()


def forget_all() -> bool:
    """Let go of all copies, since the device lacks memory. Whether there were any."""
    with _lock:
        before = any(known.copies for known in list(_owners.values()))
        for known in list(_owners.values()):
            known.copies.clear()
        return before
