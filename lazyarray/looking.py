"""Where the bytes of a view are, and a look at them that copies nothing: what displays ask of a storage."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import views
from .ranges import Ranges

if TYPE_CHECKING:
    from .storage import Storage

_PIECES = 1024      # a view of more is taken as if it filled its gaps


def place(storage: Storage, view: np.ndarray) -> str:
    """Where `view` is current, as far as is known without looking: "device", "host", "both", or nowhere: "pending"."""
    state = storage.state
    if state == "pending" or storage.mirror is None or storage.root is None and storage._block is None:
        return state
    if storage.ahead & _bytes_of(view):
        return "host"
    return "device" if glance(storage, view) is None else "both"


def glance(storage: Storage, view: np.ndarray) -> np.ndarray | None:
    """A private, read-only host array of `view` if all of it is current there; else None.

    It is the mirror's memory, however sparse the view: to be looked at now, and not to be kept.
    """
    mirror = storage.mirror
    if mirror is None or storage.loans or storage.foreign:
        return None
    with storage.lock:
        if not mirror.valid.covers(_bytes_of(view)):
            return None
        return mirror.view(view.shape, view.dtype, view.strides, views.offset_of(view))


def _bytes_of(view: np.ndarray) -> Ranges:
    return Ranges.of_view(view.shape, view.strides, view.itemsize, views.offset_of(view), _PIECES)
