"""Where the bytes of a view are, and a look at them that changes nothing: what displays ask of a storage.

To look is not to use: nothing is uploaded, no alias is refreshed, and only the elements that are shown are copied.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors.interrupts import holding
from . import coherence, pending_on_host, transfer, views
from .mirror.byte_ranges import Ranges

if TYPE_CHECKING:
    from .state import StorageState

_PIECES = 1024      # a view of more is taken as if it filled its gaps


def place(storage: StorageState, view: np.ndarray) -> str:
    """Where `view` is current, as far as is known without looking: "device", "host", "both", or nowhere: "pending"."""
    state = storage.state
    if state == "pending" or storage.mirror is None or storage.root is None and storage._block is None:
        return state
    if storage.host_dirty & _bytes_of(view):
        return "host"
    return "device" if glance(storage, view) is None else "both"


def glance(storage: StorageState, view: np.ndarray) -> np.ndarray | None:
    """A private, read-only host array of `view` if all of it is current there; else None.

    It is the mirror's memory, however sparse the view: to be looked at now, and not to be kept.
    """
    if storage.mirror is None or storage.loans or storage.foreign:
        return None
    with holding(storage.lock):
        mirror = storage.mirror     # another thread may have dropped it
        if mirror is None or not mirror.valid.covers(_bytes_of(view)):
            return None
        return mirror.view(view.shape, view.dtype, view.strides, views.offset_of(view))


def _bytes_of(view: np.ndarray) -> Ranges:
    return Ranges.of_view(view.shape, view.strides, view.itemsize, views.offset_of(view), _PIECES)


class Look(NamedTuple):
    """An array that is looked at: `array` of the functions `xp`, NumPy's or the device's, whose values are current.

    Not so the bytes of `written`, which only the host has: a device array is then good for `fetched` alone, which finds
    them in `memory`. `node`: the recorded work that gives the array, which is None then.
    """

    storage: StorageState
    view: np.ndarray
    xp: Any
    array: Any
    written: Ranges
    node: Any = None
    memory: np.ndarray | None = None

    def pick(self, function: Callable[[Any], Any]) -> Any:
        """``function(array)``, where the function makes an array of some elements, whatever their values are.

        Of recorded work no more than these elements is computed, where that is possible.
        """
        with self.storage.device.noting:
            return function(self.array) if self.node is None else self.node.sample(function)


def look(storage: StorageState, view: np.ndarray, array: Any = None) -> Look:
    """What to look at a view with: a host array, if that costs no copy, else the device's (`array`, if it is known)."""
    host = glance(storage, view)
    with holding(storage.lock):
        if host is None and storage.pending is not None:
            host = pending_on_host.private(storage, view)
        if host is not None:
            return Look(storage, view, np, host, Ranges.EMPTY)
        storage._check_usable()
        if storage.pending is not None and view is storage.root_view:
            return Look(storage, view, storage.device.xp, None, Ranges.EMPTY, storage.pending)
        if storage.pending is not None:
            storage.fill()
        if storage.mirror is not None:
            coherence.collect(storage)
        storage.join()
        if array is None:
            array = storage.root if view is storage.root_view and storage.root is not None else (
                storage.device_view(view))
        mirror = storage.mirror
        return Look(storage, view, storage.device.xp, array, storage.host_dirty & _bytes_of(view),
                    memory=None if mirror is None else mirror.bytes)


def corners(xp: Any, array: Any, edge: int, axes: int | None = None) -> Any:
    """`array` with no more than `edge` elements at each end of its axes (of the first so many), by `xp`'s functions."""
    for axis, n in enumerate(array.shape[:axes]):
        if n > 2 * edge:
            skip = (slice(None),) * axis
            array = xp.concatenate((array[(*skip, slice(edge))], array[(*skip, slice(n - edge, None))]), axis=axis)
    return array


def fetched(seen: Look, why: str, edge: int, axes: int | None = None, places: Sequence[tuple[int, ...]] = ((),)
            ) -> np.ndarray:
    """The corners of what lies at each of `places`, one after the other along a new first axis, in one copy."""
    xp = seen.xp
    cut = seen.pick(lambda array: xp.stack([corners(xp, array[(*place, ...)], edge, axes) for place in places]))
    if xp is np:
        return cut
    storage, view = seen.storage, seen.view
    found = transfer.to_host(storage.device, cut, why)
    if seen.written and found.size:
        offsets = [_offsets(view, place, edge, axes) for place in places]
        with holding(storage.lock):
            _overlay(found, np.stack(offsets), seen.written, seen.memory)
    return found


def _offsets(view: np.ndarray, place: tuple[int, ...], edge: int, axes: int | None) -> np.ndarray:
    """Where in the storage the corners begin of what lies at `place` in a view."""
    first = views.offset_of(view) + sum(i * stride for i, stride in zip(place, view.strides))
    shape, strides = view.shape[len(place):], view.strides[len(place):]
    offsets = np.array(first)
    for axis, (n, stride) in enumerate(zip(shape, strides)):
        cut = n > 2 * edge and (axes is None or axis < axes)
        index = np.r_[:edge, n - edge:n] if cut else np.arange(n)
        offsets = offsets[..., None] + index * stride
    return offsets


def _overlay(values: np.ndarray, offsets: np.ndarray, written: Ranges, memory: np.ndarray) -> None:
    """Put the bytes that only the host has, those of `written`, into values that came from these offsets."""
    itemsize = values.itemsize
    places = offsets.reshape(-1, 1) + np.arange(itemsize)
    bounds = np.array(list(written), np.int64)
    found = np.searchsorted(bounds[:, 0], places, "right") - 1
    inside = (found >= 0) & (places < bounds[found, 1])
    values.reshape(-1).view(np.uint8).reshape(places.shape)[inside] = memory[places[inside]]
