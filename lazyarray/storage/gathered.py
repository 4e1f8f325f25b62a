"""Sparse views of large storages: gathered on the device and handed out as compact read-only arrays.

A mirror of a few elements far apart would take as much address space, and as many pages, as all that
lies between them.
"""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from . import transfer, views

if TYPE_CHECKING:
    from .state import StorageState

#: A view is sparse if its extent is larger than this, and more than twice its bytes.
SPARSE_EXTENT = 64 << 20


def is_sparse(storage: StorageState, view: np.ndarray) -> bool:
    """Whether a view is handed out as a compact array."""
    if storage.nbytes <= SPARSE_EXTENT:
        return False
    start, stop = views.extent(view)
    return stop - start > SPARSE_EXTENT and stop - start > 2 * view.nbytes


class Compacts:
    """The compact arrays of one storage, by view. The storage holds its lock around each call, and is given in each:
    if they held it, it would live, with its memory, until a collection of garbage."""

    __slots__ = ("arrays",)

    def __init__(self) -> None:
        self.arrays: dict = {}

    def __len__(self) -> int:
        return len(self.arrays)

    def get(self, storage: StorageState, view: np.ndarray, source: Any, why: str) -> np.ndarray:
        """The array of a view; `source` is the view's device array, current."""
        key = (view.shape, view.strides, view.dtype, views.offset_of(view))
        array = self.arrays.get(key)
        if array is None:
            array = self.arrays[key] = transfer.to_host(storage.device, source, why, pooled=True)
            array.flags.writeable = False
        return array

    def refresh(self, storage: StorageState, written: np.ndarray) -> None:
        """The device wrote `written`: fetch again what somebody holds, forget the rest."""
        for key in list(self.arrays):
            shape, strides, dtype, offset = key
            view = views.meta(shape, dtype, strides, offset)
            if not views.overlap(view, written):
                continue
            if sys.getrefcount(self.arrays[key]) <= 2:      # nobody but this dict and the call
                del self.arrays[key]
                continue
            array = self.arrays[key]
            source = storage.device_view(view)
            array.flags.writeable = True
            array[...] = transfer.to_host(storage.device, source, "refresh of an alias", pooled=True)
            array.flags.writeable = False
