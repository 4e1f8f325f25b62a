"""Bytes that are not computed yet: a storage that needs them has them computed."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .storage import Storage


def fill(storage: Storage) -> None:
    """Have the pending bytes of a storage computed.

    A node refers to its storage weakly, and Python's collector clears such references before it calls the finalizers of
    a cycle: one that asks for the value of an array in it has what the node computed brought here.
    """
    node = storage.pending
    if node is None:
        return
    array = node.compute()
    if storage.pending is node:
        with node.lock:      # else another thread is about to do it
            if storage.pending is node:
                storage.computed(array, node.stream, node.readers)
