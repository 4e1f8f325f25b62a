"""Page-aligned memory, recycled.

Fresh pages are dear: the kernel clears each on first touch, and in a virtual machine that
takes far longer than to fill them. So a mapping that nobody uses any more is kept for the
next one of its size, up to a limit, as malloc does with smaller memory. Large ones, which
may be page-locked, are `lazyarray.storage.mirror.pinned_pool`'s.
"""
from __future__ import annotations

import errno
import mmap
import weakref
from collections import deque

import numpy as np

from .pinned_pool import HUGE_FROM, Mapping, pool

__all__ = ["HUGE_FROM", "Mapping", "mapped"]

#: Bytes of smaller mappings kept at most, over all sizes.
KEPT_BYTES = 64 << 20
#: Mappings in use at most. The system allows a process some 65,000, for all that it does, and
#: those that are lent do not merge.
MOST = 16_384


class _Use(weakref.ref):
    """The array through which a mapping is used: all that reaches the memory keeps it alive."""

    __slots__ = ("mapping",)


_uses: dict[int, _Use] = {}
#: By size. No lock: the garbage collector may end a use at any instant, in any thread, and each change is one step.
_kept: dict[int, deque[Mapping]] = {}


def mapped(nbytes: int) -> tuple[np.ndarray, Mapping]:
    """Uninitialised page-aligned memory: a uint8 array and the mapping that it lies in.

    The mapping is free for another use when the array, and all that was made of it, is gone.

    Raises
    ------
    OSError
        No memory, or no more mappings.
    """
    if len(_uses) >= MOST:
        raise OSError(errno.ENOMEM, f"{MOST} mappings are in use")
    size = _rounded(nbytes)
    if size >= HUGE_FROM:
        mapping = pool.take(size)
        if mapping is None:
            mapping = Mapping(size)
            pool.adopt(mapping)
    else:
        mapping = _take(size) or Mapping(size)
    array = np.frombuffer(mapping.memory, np.uint8, nbytes)
    use = _Use(array, _unused)
    use.mapping = mapping
    _uses[id(use)] = use
    return array, mapping


def _rounded(nbytes: int) -> int:
    unit = mmap.PAGESIZE
    if nbytes < HUGE_FROM:
        # At most eight sizes to each doubling, so that a size near an earlier one finds its mapping.
        unit = max(unit, 1 << nbytes.bit_length() >> 4)
    return max(-(-nbytes // unit), 1) * unit


def _take(size: int) -> Mapping | None:
    try:
        mapping = _kept[size].pop()
    except LookupError:
        return None
    return mapping if mapping.clean() else None


def _unused(use: _Use) -> None:
    _uses.pop(id(use), None)
    mapping = use.mapping
    size = mapping.size
    if size >= HUGE_FROM:
        pool.returned.append(mapping)
        return
    if sum(kept * len(same) for kept, same in list(_kept.items())) + size > KEPT_BYTES:
        _kept.clear()       # kept for sizes of the past, perhaps: start again
    _kept.setdefault(size, deque()).append(mapping)
