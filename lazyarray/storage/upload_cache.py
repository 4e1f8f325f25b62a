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

import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from ..devices.base import flat_bytes
from ..errors.interrupts import holding
from . import transfer, views
from .storage import Storage

if TYPE_CHECKING:
    from types import ModuleType

    from ..devices import Device

__all__ = ["COPIED", "argument", "forget_all", "is_kept", "kept", "operand"]

#: Bytes of an array up to which it is found by its bytes; up to which its bytes are kept at once, and not only if it is
#: used a second time, is read-only or was made by a call on the host (`allowed`); up to which it is compared at all. To
#: compare 64 KiB takes 3 us, 1 MiB 50 us.
SMALL, AT_ONCE, COMPARED = 4 << 10, 64 << 10, 1 << 20
#: Bytes of integers that are looked through once, when they get to the device: 10 us beside an upload.
COPIED = 128 << 10
#: Copies of arrays that are compared: so many, of so many bytes in all.
MOST_COPIES, MOST_BYTES = 4096, 64 << 20
#: Bytes of an array from which on to ask the kernel is quicker than to upload it.
LEAST = 512 << 10
#: An array that has changed so many times in a row, before it was used again, is uploaded 2 ** that many times before
#: its bytes are kept again.
_MOST_MISSES = 6

_lock = threading.RLock()
#: `watched_uploads`, once it was needed.
_watching: ModuleType | None = None

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

    __slots__ = ("bytes", "storage", "hit", "misses", "wait")

    def __init__(self) -> None:
        self.bytes: Any = b""
        self.storage: Storage | None = None
        self.hit = False        # whether it was used since it was made
        self.misses = self.wait = 0


#: What is compared, the longest unused first: by the bytes of small arrays, by the place of larger ones.
_copies: dict[Any, _Copy] = {}
_held = 0       # bytes of them in all


def _dense(array: np.ndarray) -> np.ndarray:
    return array if views.is_dense_array(array) else np.array(array, order="K", subok=False)


def _by_bytes(device: Device, array: np.ndarray, why: str, allowed: bool) -> Storage:
    """The copy of a small array, made now or before."""
    dense = _dense(array)
    content = flat_bytes(dense).tobytes()
    key = device, _number(device), content, dense.shape, dense.strides, dense.dtype
    with holding(_lock):
        found = _copies.pop(key, None)
        if found is not None:
            _copies[key] = found
            if (storage := found.storage) is not None:      # taken here: another thread may let go of the copy
                return storage
    storage = _uploaded(device, np.frombuffer(content, np.uint8), dense, why, allowed)
    _enter(key, _Copy(), content, storage)
    return storage


def _by_place(device: Device, array: np.ndarray, why: str, allowed: bool) -> Storage | None:
    """The copy of a larger array that has not changed; None if the array is to be uploaded, without account of it."""
    key = (device, _number(device), array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
    dense = _dense(array)
    memory = flat_bytes(dense)
    with holding(_lock):
        found = _copies.pop(key, None)
        first = found is None
        found = _copies[key] = found or _Copy()
        if (storage := found.storage) is not None:
            if found.bytes == memory:
                found.misses, found.hit = 0, True
                return storage
            again, found.hit = found.hit, False     # such as a mask of which each statement makes use three times
            if not again:
                found.misses = min(found.misses + 1, _MOST_MISSES)
                found.wait = 2 ** found.misses - 1
            _drop(found)
            if not again:
                return None
        elif found.wait or first and not allowed and array.nbytes > AT_ONCE and array.flags.writeable:
            found.wait -= found.wait > 0
            return None
    content = bytearray(memory)
    storage = _uploaded(device, np.frombuffer(content, np.uint8), dense, why, allowed)
    _enter(key, found, content, storage)
    return storage


def _uploaded(device: Device, content: np.ndarray, dense: np.ndarray, why: str, allowed: bool) -> Storage:
    """A storage of what was kept of an array, not of what it may be by now."""
    values = np.ndarray(dense.shape, dense.dtype, content, 0, dense.strides)
    storage = _noted(device, transfer.to_device(device, values, why, allowed=allowed))
    if values.dtype.kind in "iu" and values.nbytes <= COPIED:     # as `facts` keeps them
        storage.facts = storage.writes, {"bounds": (int(values.min()), int(values.max()), values.dtype)}
    return storage


def _enter(key: Any, copy: _Copy, content: Any, storage: Storage) -> None:
    global _held
    with holding(_lock):
        if copy.storage is None:        # else another thread was quicker
            _held += len(content)
        else:
            _held += len(content) - len(copy.bytes)
        copy.bytes, copy.storage = content, storage
        _copies.pop(key, None)
        _copies[key] = copy
        _drop_oldest()
        if not _copies:
            _held = 0       # an interrupt may have come between a copy and its count


def _drop_oldest() -> None:
    while _copies and (_held > MOST_BYTES or len(_copies) > MOST_COPIES):
        _drop(_copies.pop(next(iter(_copies))))


def _drop(copy: _Copy) -> None:
    """Let go of what is kept of an array. The lock is held."""
    global _held
    if copy.storage is not None:
        _held -= len(copy.bytes)
        copy.bytes, copy.storage = b"", None


def _number(device: Device) -> int:
    return device.number() if device.count > 1 else 0


# -- the verbs -------------------------------------------------------------------------------

def kept(device: Device, array: np.ndarray, why: str, layout: bool = False, allowed: bool = False) -> Storage | None:
    """The storage of a host array's copy on the device, made now or before; None if none is kept.

    Nobody may write to it. `layout`: it has the strides of the array, as far as `transfer.to_device` gives it them.
    `allowed`: `no_transfers` is not asked about an upload.
    """
    nbytes = array.nbytes
    if not nbytes:
        return None
    layout = layout and not views.is_dense_array(array)
    storage = None
    if nbytes >= LEAST and not array.flags.writeable:
        global _watching
        from . import watched_uploads as _watching  # few programs have such arrays
        storage = _watching.copy_of(device, array, LEAST, layout, _number(device), lambda: _noted(
            device, transfer.to_device(device, array, why, layout=layout)))
    if storage is None and nbytes <= COMPARED and not layout:
        storage = (_by_bytes if nbytes <= SMALL else _by_place)(device, array, why, allowed)
    if storage is not None:
        storage.join()
    return storage


def found(device: Device, array: np.ndarray) -> Storage | None:
    """The storage of a copy of a small dense host array, if there is one, with the same bytes as now."""
    if array.nbytes > SMALL or not views.is_dense_array(array):
        return None
    key = device, _number(device), flat_bytes(array).tobytes(), array.shape, array.strides, array.dtype
    with holding(_lock):
        copy = _copies.get(key)
        return None if copy is None else copy.storage


def operand(device: Device, array: np.ndarray, why: str, allowed: bool = False) -> Any:
    """The device array of a host array, uploaded now or before. Nobody may write to it."""
    storage = kept(device, array, why, allowed=allowed)
    return transfer.to_device(device, array, why, allowed=allowed) if storage is None else storage.root


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
    global _held
    with holding(_lock):
        before = bool(_copies)
        for copy in list(_copies.values()):
            _drop(copy)
        _copies.clear()
        _held = 0
    return bool(_watching is not None and _watching.forget_all()) or before
