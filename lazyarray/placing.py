"""Bytes that are not computed yet and that the host computes, because it is the one that asks and they are few.

The caller holds the storage's lock.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .mirror import PAGES_FROM, Mirror
from .options import current as current_options
from .ranges import Ranges
from .writable import writeable

if TYPE_CHECKING:
    from .storage import Storage


def private(storage: Storage, view: np.ndarray) -> np.ndarray | None:
    """A read-only array of a view of pending bytes, if the host is to compute them. They stay pending."""
    array = _bytes(storage)
    if array is None:
        return None
    found = np.ndarray(view.shape, view.dtype, array, storage._offset(view), view.strides)
    found.flags.writeable = False
    return found


def alias(storage: Storage, view: np.ndarray) -> np.ndarray | None:
    """An alias of a view of pending bytes, if the host is to compute them; they are current there alone."""
    node, options = storage.pending, current_options()
    array = _bytes(storage)
    if array is None:
        return None
    nbytes = array.nbytes
    whole = Ranges.span(0, nbytes)
    small = nbytes < PAGES_FROM and view is storage._root_view and writeable(view) and (
        options.write_tracking == "auto")
    if small:
        mirror = Mirror.small(nbytes)
        memory = mirror.prepare(array, (nbytes,), array.dtype)
    else:
        mirror = Mirror.reserve(nbytes, options.write_tracking)
        with mirror.filling(whole) as target:
            target[:nbytes] = array
    # What was recorded to read them is still computed from what they were made of.
    if not node.leave():
        return None             # another thread has had it computed
    storage._nbytes, storage.mirror, storage.ahead = nbytes, mirror, whole
    storage.stream = storage.device.stream()
    storage.pending = None      # last: until then other threads read what is recorded
    if small:
        mirror.lend_first()
        return np.ndarray(view.shape, view.dtype, memory, 0, view.strides)
    return mirror.lend(view.shape, view.dtype, view.strides, storage._offset(view), writeable(view))


def _bytes(storage: Storage) -> np.ndarray | None:
    node = storage.pending
    array = None if node is None else node.on_host()
    if array is None:
        return None
    return (array if array.flags.c_contiguous else array.T).reshape(-1).view(np.uint8)
