"""Bytes that are not computed yet and that the host computes, because it is the one that asks and they are few.

The caller holds the storage's lock.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .mirror import Mirror
from .options import current as current_options
from .ranges import Ranges

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


def settle(storage: Storage) -> bool:
    """Give a storage of pending bytes a mirror with them, if the host is to compute them; it is current there alone."""
    node = storage.pending
    array = _bytes(storage)
    if array is None:
        return False
    nbytes = array.nbytes
    mirror = Mirror.reserve(nbytes, current_options().write_tracking)
    whole = Ranges.span(0, nbytes)
    with mirror.filling(whole) as target:
        target[:nbytes] = array
    # What was recorded to read them is still computed from what they were made of.
    if not node.leave():
        return False            # another thread has had it computed
    storage._nbytes, storage.mirror, storage.ahead, storage.stream = nbytes, mirror, whole, storage.device.stream()
    storage.pending = None      # last: until then other threads read what is recorded
    return True


def _bytes(storage: Storage) -> np.ndarray | None:
    node = storage.pending
    array = None if node is None else node.on_host()
    if array is None:
        return None
    return (array if array.flags.c_contiguous else array.T).reshape(-1).view(np.uint8)
