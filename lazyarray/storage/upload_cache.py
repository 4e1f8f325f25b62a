"""Copies of host arrays on the device, kept for as long as what they were made of is as it was.

A host array that is an operand again and again is uploaded once. That it has not changed is found out at each use:

- Up to `COMPARED` bytes, it is compared with the bytes that were uploaded. Small ones are found by their bytes,
  wherever they lie, so that a list that a program writes out is uploaded once, too.
- Of a large array that is read-only, the kernel watches the pages (see `dirty_tracking`): its owner may make it
  writable for a while, an older view may be writable still, C code may take no notice.

All other arrays are uploaded each time: large ones that may be written, which take about as long to compare as to
upload, and which devices may write by themselves; large ones of an allocator of somebody else's, or on a kernel that
watches no pages.

Nothing of an array is kept alive. What is kept is bounded in number and memory, and the longest unused goes first.

Measured on the simulated device, a call of a pure function that is given a read-only array whose pages are watched, and
one that is uploaded: 800 kB 40 and 45 us, 8 MB 47 and 1,350 us, 80 MB 0.1 and 22.6 ms.
"""
from __future__ import annotations

import ctypes
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from . import transfer, views
from .mirror.byte_ranges import Ranges
from .mirror.dirty_tracking import PAGE, Pages, kernel
from .storage import Storage

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..devices import Device

__all__ = ["argument", "forget_all", "is_kept", "kept", "operand"]

#: Bytes of an array up to which it is found by its bytes; up to which its bytes are kept at once, and not only if it is
#: used a second time or is read-only; and up to which it is compared at all. To compare 64 KiB takes 3 us, 1 MiB 50 us.
SMALL, AT_ONCE, COMPARED = 4 << 10, 64 << 10, 1 << 20
#: Copies of arrays that are compared: so many, of so many bytes in all.
MOST_COPIES, MOST_BYTES = 4096, 64 << 20
#: Watched copies take no more than this part of a device's memory.
SHARE = 1 / 8
#: Arrays watched at most. Each may split a mapping in three, of which the system allows a process some 65,000.
MOST = 1024
#: Bytes of an array from which on to ask the kernel is quicker than to upload it.
LEAST = 512 << 10
#: An array that has changed so many times in a row is uploaded 2 ** that many times before its bytes are kept again.
_MOST_MISSES = 6

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


#: (device, number, address of the allocation) -> the copy that lies there.
_kept_at: weakref.WeakValueDictionary[tuple[str, int, int], Storage] = weakref.WeakValueDictionary()


def _place_of(device: Device, array: Any) -> tuple[str, int, int]:
    number, address, _ = device.allocation(array)
    return device.name, number, address


def _noted(device: Device, array: Any) -> Storage:
    """The storage of a new copy."""
    storage = _kept_at[_place_of(device, array)] = Storage(device, array)
    return storage


# -- arrays that are compared -----------------------------------------------------------------

class _Copy:
    """The copy of an array that is compared: its bytes then, and its storage; None if it was only seen."""

    __slots__ = ("bytes", "storage", "misses", "wait")

    def __init__(self) -> None:
        self.bytes: Any = b""
        self.storage: Storage | None = None
        self.misses = self.wait = 0


#: What is compared, the longest unused first: by the bytes of small arrays, by the place of larger ones.
_copies: dict[Any, _Copy] = {}
_held = 0       # bytes of them in all


def _dense(array: np.ndarray) -> np.ndarray:
    return array if views.is_dense_array(array) else np.array(array, order="K", subok=False)


def _by_bytes(device: Device, array: np.ndarray, why: str) -> Storage:
    """The copy of a small array, made now or before."""
    dense = _dense(array)
    content = transfer.flat_bytes(dense).tobytes()
    key = device, _number(device), content, dense.shape, dense.strides, dense.dtype
    with _lock:
        found = _copies.pop(key, None)
        if found is not None:
            _copies[key] = found
    if found is None:
        found = _Copy()
        _enter(key, found, content, _uploaded(device, np.frombuffer(content, np.uint8), dense, why))
    assert found.storage is not None
    return found.storage


def _by_place(device: Device, array: np.ndarray, why: str) -> Storage | None:
    """The copy of a larger array that has not changed; None if the array is to be uploaded, without account of it."""
    key = (device, _number(device), array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
    dense = _dense(array)
    memory = transfer.flat_bytes(dense)
    with _lock:
        found = _copies.pop(key, None)
        first = found is None
        found = _copies[key] = found or _Copy()
        if (storage := found.storage) is not None:
            if found.bytes == memory:
                found.misses = 0
                return storage
            found.misses = min(found.misses + 1, _MOST_MISSES)
            found.wait = 2 ** found.misses - 1
            _drop(found)
            return None
        if found.wait or first and array.nbytes > AT_ONCE and array.flags.writeable:
            found.wait -= found.wait > 0
            return None
    content = bytearray(memory)
    storage = _uploaded(device, np.frombuffer(content, np.uint8), dense, why)
    _enter(key, found, content, storage)
    return storage


def _uploaded(device: Device, content: np.ndarray, dense: np.ndarray, why: str) -> Storage:
    """A storage of what was kept of an array, not of what it may be by now."""
    values = np.ndarray(dense.shape, dense.dtype, content, 0, dense.strides)
    return _noted(device, transfer.to_device(device, values, why))


def _enter(key: Any, copy: _Copy, content: Any, storage: Storage) -> None:
    global _held
    with _lock:
        if copy.storage is None:        # else another thread was quicker
            _held += len(content)
        else:
            _held += len(content) - len(copy.bytes)
        copy.bytes, copy.storage = content, storage
        _copies.pop(key, None)
        _copies[key] = copy
        while _held > MOST_BYTES or len(_copies) > MOST_COPIES:
            _drop(_copies.pop(next(iter(_copies))))


def _drop(copy: _Copy) -> None:
    """Let go of what is kept of an array. The lock is held."""
    global _held
    if copy.storage is not None:
        _held -= len(copy.bytes)
        copy.bytes, copy.storage = b"", None


def _number(device: Device) -> int:
    return device.number() if device.count > 1 else 0


# -- arrays whose pages are watched ------------------------------------------------------------

def _watched(device: Device, array: np.ndarray, why: str, layout: bool) -> Storage | None:
    """The copy of a large read-only array, made now or before; None if none can be kept."""
    found = _owner_of(array)
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
            key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype, _number(device),
                   layout)
            if key not in known.copies:
                known.watch()       # before it is read
        except OSError:
            return None
        _owners[id(owner)] = known      # the last used
        if len(_owners) > MOST:
            del _owners[next(iter(_owners))]
        copy = known.copies.get(key)
        if copy is None:
            copy = known.copies[key] = _noted(device, transfer.to_device(device, array, why, layout=layout))
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


# -- the verbs -------------------------------------------------------------------------------

def kept(device: Device, array: np.ndarray, why: str, layout: bool = False) -> Storage | None:
    """The storage of a host array's copy on the device, made now or before; None if none is kept.

    Nobody may write to it. `layout`: it has the strides of the array, as far as `transfer.to_device` gives it them.
    """
    nbytes = array.nbytes
    if not nbytes:
        return None
    layout = layout and not views.is_dense_array(array)
    storage = None
    if nbytes >= LEAST:
        storage = _watched(device, array, why, layout)
    if storage is None and nbytes <= COMPARED and not layout:
        storage = _by_bytes(device, array, why) if nbytes <= SMALL else _by_place(device, array, why)
    if storage is not None:
        storage.join()
    return storage


def operand(device: Device, array: np.ndarray, why: str) -> Any:
    """The device array of a host array, uploaded now or before. Nobody may write to it."""
    storage = kept(device, array, why)
    return transfer.to_device(device, array, why) if storage is None else storage.root


def argument(device: Device, array: np.ndarray, why: str) -> tuple[Any, bool]:
    """The same for a GPU function that promises not to write to it; and whether the array is one that is kept.

    Whether it keeps the promise nobody knows: so what the host may write is copied for it, on the device. The array
    has the strides of the host's, as far as `transfer.to_device` gives it them.
    """
    storage = kept(device, array, why, layout=True)
    if storage is None:
        return transfer.to_device(device, array, why, layout=True), False
    if array.flags.writeable or array.nbytes < LEAST:
        return storage.root.copy("K"), False
    return storage.root, True


def is_kept(device: Device, array: Any) -> bool:
    """Whether a device array lies in a copy that is kept. One that is returned to a program must be its own."""
    return bool(_kept_at) and _place_of(device, array) in _kept_at


def forget_all() -> bool:
    """Let go of all copies, since the device lacks memory. Whether there were any."""
    with _lock:
        before = any(known.copies for known in list(_owners.values())) or _held > 0
        for known in list(_owners.values()):
            known.copies.clear()
        for copy in list(_copies.values()):
            _drop(copy)
        _copies.clear()
        return before
