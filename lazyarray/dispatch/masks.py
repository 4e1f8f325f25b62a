"""Masks and integer indexes that are used more than once: counted once, checked once.

What is found out is kept with the storage of the mask or index until that is written: see `storage/facts.py`. After its
first use a mask is a list of places, by which elements are taken without a wait for their number.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..events.trace import begin, end
from ..functions.adapters.indexing import at
from ..storage import facts, handles, transfer

if TYPE_CHECKING:
    from ..devices import Device

__all__ = ["Mask", "bounds"]

#: Elements of a mask up to which its places are found by a search, without a wait, if their number is known. In a
#: larger one the wait is the shorter part.
_SEARCHED = 1 << 20
#: Bytes of places that are kept.
_MOST = 64 << 20


class Mask:
    """A mask of the device, and what is known of it.

    Parameters
    ----------
    index : object
        What the program gave: of a lazy array, what is found out is kept.
    array : device array or numpy.ndarray
        The mask.
    """

    __slots__ = ("array", "_known", "_token")

    def __init__(self, index: Any, array: Any) -> None:
        self.array = array
        self._known = facts.known_of(index) if handles.is_array(index) else None

    def places(self, device: Device) -> tuple[Any, ...] | None:
        """Where it is true, one array for each axis, if that takes no wait."""
        known = self._known
        if known is None:
            return None
        kept = known.get("places")
        if kept is not None and kept[0] == device.stream():
            return kept[1]  # type: ignore[no-any-return]
        count = known.get("count")
        if count is None or self.array.size > _SEARCHED:
            return None
        xp = device.xp      # CuPy's nonzero waits
        ends = xp.cumsum(self.array.ravel())
        found = xp.searchsorted(ends, xp.arange(1, count + 1))
        return self._kept(device, at(xp, found, self.array.shape))

    def counted(self, device: Device, meta: np.ndarray) -> tuple[Any, ...]:
        """The same, with a wait if it needs one. `meta`: that of the array that is indexed, for the event."""
        found = self.places(device)
        if found is None:
            token = begin("synchronise", 0, meta.shape, meta.dtype, "boolean-mask size")
            found = self._kept(device, device.xp.nonzero(self.array))
            if token is not None:
                end(token)
        return found

    @property
    def comes_again(self) -> bool:
        """Whether it was counted before, and its places may be kept."""
        count = None if self._known is None else self._known.get("count")
        return count is not None and 8 * count * self.array.ndim <= _MOST

    def note(self, count: int) -> None:
        """So many elements are true."""
        if self._known is not None:
            self._known["count"] = count

    def _kept(self, device: Device, places: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._known is not None and sum(p.nbytes for p in places) <= _MOST:
            self._known["places"] = device.stream(), places
        return places


def bounds(index: Any, array: Any) -> tuple[int, int]:
    """The least and the greatest of an integer array of the device that is not empty; `index`: it, lazy, or None."""
    if index is not None and (found := facts.bounds_of(index)) is not None:
        return found
    known = None if index is None else facts.known_of(index)
    device = devices.current()
    both = device.xp.stack([array.min(), array.max()])
    low, high = transfer.to_host(device, both, "bounds check", "synchronise").tolist()
    if known is not None:
        known["bounds"] = low, high
    return low, high
