"""Who reads bytes that are about to change: recorded work, which is done first."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .storage import Storage


def changing(storage: Storage) -> None:
    """The bytes of a storage are about to change: what was recorded to read them is computed."""
    readers, storage.readers = storage.readers, None
    for node in lasting(readers, set()):
        node.compute()


def lasting(refs: Any, seen: set[int]) -> list[Any]:
    """The last nodes that depend on these, of those that wait: which no other reads, or which somebody holds."""
    found: list[Any] = []
    _follow(refs, seen, found)
    return found


def _follow(refs: Any, seen: set[int], found: list[Any]) -> None:
    for ref in refs or ():
        node = ref()
        if node is None or node.array is not None or id(node) in seen:
            continue
        seen.add(id(node))
        waiting = node.readers and [r for r in node.readers if (reader := r()) is not None and reader.array is None]
        if waiting:
            _follow(waiting, seen, found)
        if not waiting or node.storage is not None and node.storage() is not None:
            found.append(node)
