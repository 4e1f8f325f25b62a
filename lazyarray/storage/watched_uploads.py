"""Copies of large read-only host arrays on the device, kept while the kernel says that nobody has written to the array.

The array is looked up by what owns its memory, whose pages are watched (see `dirty_tracking`). Where such an array of
64 MiB is an operand again and again, a product with it takes 0.12 ms, and 1.83 with an upload each time (an H100:
``benchmarks/results/special-ways-cuda-2026-11-28.json``).
"""
from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ..errors.interrupts import holding
from .mirror.byte_ranges import Ranges
from .mirror.dirty_tracking import PAGE, Pages, kernel

if TYPE_CHECKING:
    from ..devices import Device
    from .storage import Storage

__all__ = ["copy_of", "forget_all"]

#: Watched copies take no more than this part of a device's memory.
SHARE = 1 / 8
#: Arrays watched at most. Each may split a mapping in three, of which the system allows a process some 65,000.
MOST = 1024

_lock = threading.RLock()
#: Identity of the array that owns the memory -> what is known of it; the longest unused first.
_owners: dict[int, _Owner] = {}


class _Owner:
    """A read-only array that owns its memory, and the copies of it and of its views."""

    __slots__ = ("ref", "span", "pages", "whole", "ends", "before", "copies", "__weakref__")

    def __init__(self, owner: np.ndarray, unchanging: bool) -> None:
        identity = id(owner)
        self.span = address, stop = byte_bounds(owner)
        self.copies: dict[Any, Storage] = {}    # which view, on which device -> its copy
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
        return sum(copy.root.nbytes for copy in self.copies.values())

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

def copy_of(device: Device, array: np.ndarray, least: int, layout: bool, number: int,
            upload: Callable[[], Storage]) -> Storage | None:
    """The copy of a read-only array, made now, by `upload`, or before; None if none can be kept.

    It is kept if what owns its memory has at least `least` bytes. `layout` and `number`, the device's, tell copies of
    one array apart.
    """
    found = _owner_of(array)
    if found is None or found[0].nbytes < least:        # of a few bytes there may be views with many
        return None
    owner, unchanging = found
    with holding(_lock):
        try:
            known = _owners.pop(id(owner), None)
            if known is not None and (known.ref() is not owner or known.span != byte_bounds(owner)):
                known = None        # before there is another of the same memory
            known = known or _Owner(owner, unchanging)
            if known.copies and known.changed():
                known.copies.clear()
            key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype, number, layout)
            if key not in known.copies:
                known.watch()       # before it is read
        except OSError:
            return None
        _owners[id(owner)] = known      # the last used
        if len(_owners) > MOST:
            del _owners[next(iter(_owners))]
        copy = known.copies.get(key)
        if copy is None:
            copy = known.copies[key] = upload()
            _make_room(device)
        return copy


def _make_room(device: Device) -> None:
    limit = device.total_memory() * SHARE
    total = sum(known.nbytes for known in list(_owners.values()))
    for known in list(_owners.values()):
        if total <= limit:
            return
        total -= known.nbytes
        known.copies.clear()


def forget_all() -> bool:
    """Let go of all copies. Whether there were any."""
    with holding(_lock):
        before = any(known.copies for known in list(_owners.values()))
        for known in list(_owners.values()):
            known.copies.clear()
        return before
