"""Masks and integer indexes that are used more than once: counted once, checked once.

What is found out is kept with the storage of the mask or index until that is written: see `storage/facts.py`. After its
first use a mask is a list of places, by which elements are taken without a wait for their number.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..events.trace import begin, end
from ..functions.adapters import common
from ..storage import facts, handles

if TYPE_CHECKING:
    from ..devices import Device

__all__ = ["comes_again", "known", "places"]

#: Elements of a mask up to which its places are found by a search, without a wait, if their number is known. In a
#: larger one the wait is the shorter part.
_SEARCHED = 1 << 20
#: Bytes of places that are kept.
_MOST = 64 << 20


def known(index: Any) -> dict[str, Any] | None:
    """What is known of a mask, to be asked for before it is read; None if that may change unseen, or is on the host."""
    return facts.known_of(index) if handles.is_array(index) else None


def comes_again(known: dict[str, Any] | None) -> bool:
    """Whether a mask was counted before, and its places may be kept."""
    count = None if known is None else known.get("count")
    return count is not None and 8 * count <= _MOST


def places(device: Device, known: dict[str, Any] | None, array: Any, meta: np.ndarray) -> Any:
    """Where a mask is true, counted in C order; with a wait only if that is not known.

    `meta`: that of the array that is indexed, for the event.
    """
    stream = device.stream()
    kept = None if known is None else known.get("places")
    if kept is not None and kept[0] == stream:
        return kept[1]
    count = None if known is None else known.get("count")
    xp = device.xp
    flat = array if array.ndim == 1 else array.ravel()
    if count is not None and array.size <= _SEARCHED:       # CuPy's nonzero waits
        found = xp.searchsorted(xp.cumsum(flat), xp.arange(1, count + 1))
    else:
        token = begin("synchronise", 0, meta.shape, meta.dtype, "boolean-mask size")
        found, = common.places_of(xp, flat)
        end(token)
    if known is not None:
        known["count"] = found.size
        if found.nbytes <= _MOST:
            known["places"] = stream, found
    return found
