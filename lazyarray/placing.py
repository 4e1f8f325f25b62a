"""Bytes that are not computed yet and that the host computes, because it is the one that asks and they are few.

The caller holds the storage's lock.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import speedups
from .mirror import PAGES_FROM, Mirror
from .options import current as current_options
from .ranges import Ranges
from .writable import writeable

if TYPE_CHECKING:
    from .storage import Storage

_u8 = np.dtype(np.uint8)


def seen(array: np.ndarray, storage: Storage, view: np.ndarray) -> np.ndarray:
    """A view of a storage in an array of all its bytes."""
    return np.ndarray(view.shape, view.dtype, array, storage._offset(view), view.strides)


def private(storage: Storage, view: np.ndarray) -> np.ndarray | None:
    """A read-only array of a view of pending bytes, if the host is to compute them. They stay pending."""
    node = storage.pending
    array = None if node is None else node.on_host()
    if array is None:
        return None
    array.setflags(write=False)
    if view is not storage._root_view:
        return seen(array, storage, view)
    return array.reshape(node.shape[::-1]).T if node.fortran else array.reshape(node.shape)     # as the node lies


if speedups.recording is not None:
    private = speedups.recording.private


def alias(storage: Storage, view: np.ndarray) -> np.ndarray | None:
    """An alias of a view of pending bytes, if the host is to compute them; they are current there alone."""
    node, options = storage.pending, current_options()
    array = None if node is None else node.on_host()
    if array is None:
        return None
    array = array.view(_u8)
    nbytes = array.nbytes
    whole = Ranges.span(0, nbytes)
    small = nbytes < PAGES_FROM and view is storage._root_view and writeable(view) and (
        options.write_tracking == "auto")
    if small:
        mirror = Mirror.small(nbytes)
        prepared = Mirror.prepared(array, (nbytes,), array.dtype)
        mirror.lend_first(prepared, array.tobytes())
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
        return np.ndarray(view.shape, view.dtype, prepared[0], 0, view.strides)
    return mirror.lend(view.shape, view.dtype, view.strides, storage._offset(view), writeable(view))

