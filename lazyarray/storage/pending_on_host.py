"""Bytes that are not computed yet and that the host computes, because it is the one that asks and they are few.

The caller holds the storage's lock.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..settings.options import current as current_options
from . import coherence
from .mirror.byte_ranges import Ranges
from .mirror.mirror import PAGES_FROM, Mirror
from .state import ON_BOTH, small_limit
from .writeable import writeable

if TYPE_CHECKING:
    from .state import StorageState

_u8 = np.dtype(np.uint8)


def seen(array: np.ndarray, storage: StorageState, view: np.ndarray) -> np.ndarray:
    """A view of a storage in an array of all its bytes."""
    return np.ndarray(view.shape, view.dtype, array, storage._offset(view), view.strides)


def private(storage: StorageState, view: np.ndarray) -> np.ndarray | None:
    """A read-only array of a view of pending bytes, if the host is to compute them. They stay pending."""
    node = storage.pending
    array = None if node is None else node.on_host()
    if array is None:
        return None
    array.setflags(write=False)
    if view is not storage.root_view:
        return seen(array, storage, view)
    return array.reshape(node.shape[::-1]).T if node.fortran else array.reshape(node.shape)     # as the node lies


def alias(storage: StorageState, view: np.ndarray) -> np.ndarray | None:
    """An alias of a view of pending bytes, if the host is to compute them; they are current there alone."""
    node, options = storage.pending, current_options()
    array = None if node is None else node.on_host()
    if array is None:
        return None
    array = array.view(_u8)
    nbytes = array.nbytes
    whole = Ranges.span(0, nbytes)
    if nbytes < PAGES_FROM and options.write_tracking == "auto":
        mirror = Mirror(array)
        mirror.valid = whole
    else:
        mirror = Mirror.reserve(nbytes, options.write_tracking)
        with mirror.filling(whole) as target:
            target[:nbytes] = array
    # What was recorded to read them is still computed from what they were made of.
    if not node.leave():
        return None             # another thread has had it computed
    storage._nbytes, storage.mirror, storage.host_dirty = nbytes, mirror, whole
    storage.stream = storage.device.stream()
    storage.pending = None      # last: until then other threads read what is recorded
    if nbytes <= ON_BOTH and small_limit():
        coherence.note_on_host(storage)
    return mirror.lend(view.shape, view.dtype, view.strides, storage._offset(view), writeable(view))

