"""Masks and integer indexes that are used more than once: counted once, checked once.

What is found out is kept with the storage of the mask or index until that is written: see `storage/facts.py`. From its
second use on there is no wait for the number of what a mask names.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..events.trace import begin, end
from ..storage import facts, handles

if TYPE_CHECKING:
    from ..devices import Device
    from ..devices.operations import Selected

__all__ = ["known", "places", "selected"]

#: Bytes of places that are kept.
_MOST = 64 << 20


def known(index: Any) -> dict[str, Any] | None:
    """What is known of a mask, to be asked for before it is read; None if that may change unseen, or is on the host."""
    return facts.known_of(index) if handles.is_array(index) else None


def selected(device: Device, known: dict[str, Any] | None, mask: Any, meta: np.ndarray) -> Selected | None:
    """`Device.selected`, with a wait only if the mask has been written since it was counted.

    `meta`: that of the array that is indexed, for the event.
    """
    stream = device.stream()
    kept = None if known is None else known.get("selected")
    if kept is not None and kept[0] == stream:
        return kept[1]      # type: ignore[no-any-return]
    token = begin("synchronise", 0, meta.shape, meta.dtype, "boolean-mask size")
    found = device.selected(mask)
    if found is not None:
        end(token)
        if known is not None:
            known["selected"] = stream, found
    return found


def places(device: Device, known: dict[str, Any] | None, array: Any, meta: np.ndarray) -> Any:
    """Where a mask is true, counted in C order; with a wait only if that is not known. `meta`: as of `selected`."""
    stream = device.stream()
    kept = None if known is None else known.get("places")
    if kept is not None and kept[0] == stream:
        return kept[1]
    flat = array if array.ndim == 1 else array.ravel()
    found = None
    if flat.size and device.contiguity(flat)[0] and device.on_current(flat) and (
            counted := selected(device, known, flat, meta)) is not None:
        found = counted.positions((flat.size,))
    if found is None:
        token = begin("synchronise", 0, meta.shape, meta.dtype, "boolean-mask size")
        found = device.xp.nonzero(flat)
        end(token)
    places, = found
    if known is not None and places.nbytes <= _MOST:
        known["places"] = stream, places
    return places
