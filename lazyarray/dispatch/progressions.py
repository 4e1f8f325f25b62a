"""Indexes with arrays of integers in arithmetic progression: what they name is a view.

``D[i, d - i]`` of an ``i`` that ``numpy.arange`` has made is a diagonal of `D`, ``Q[k, k]`` another one: their elements
lie at even steps in memory. So nothing is sent to the device, what is read is fused like any slice, and what is written
is written in place. That holds of progressions that the host has: to find out whether one on the device is one would
take longer than to use it.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..functions import memory_order
from ..storage import handles, views
from ..storage.writeable import writeable
from . import small_arrays
from .parsed_index import WHOLE
from .small_arrays import is_light

__all__ = ["Seen", "view_of"]

#: Bytes of an array of integers that is looked through.
_MOST = 1 << 16


class Seen(NamedTuple):
    """A view, and the index that names it, with ndarrays in place of lazy arrays."""

    view: np.ndarray
    items: tuple[Any, ...]
    distinct: bool
    """Whether no element is seen twice."""

    def copied(self, x: Any, meta: np.ndarray) -> Any:
        """A copy of the view of a lazy array, whose meta this is, laid out as NumPy lays out what an index takes."""
        view = handles.new_array(x._self_storage, self.view, None, x if x._self_base is None else x._self_base)
        order = None if view.ndim == 1 else memory_order.order_of_indexed(meta, self.items)
        if order is None or order == (*range(view.ndim),)[::-1]:
            return view.copy("C" if order is None else "F")
        return view.transpose(order).copy("C").transpose(np.argsort(order).tolist())


def view_of(meta: np.ndarray, index: Any) -> Seen | None:
    """What an index sees of an array if that is a view; else None.

    It has one or more vectors of integers of one length, each in progression, within range and counted from one end;
    whole numbers only beside them; besides, slices and an Ellipsis.
    """
    items, found, size = index if type(index) is tuple else (index,), [], 0
    for i in items:
        kind = type(i)
        if kind is handles.array_type or kind is np.ndarray:
            values = _on_host(i) if kind is handles.array_type else i
            if values is None or values.ndim != 1 or values.dtype.kind != "i" or values.nbytes > _MOST or (
                    not values.size or size and values.size != size):
                return None
            size = values.size
            found.append(values)
        elif kind is int or kind is slice or i is Ellipsis:
            found.append(i)
        else:
            return None
    places = [k for k, i in enumerate(found) if type(i) is np.ndarray or type(i) is int]
    wide = [k for k, i in enumerate(found) if i is Ellipsis]
    if not size or places[-1] - places[0] >= len(places) or len(wide) > 1 or len(found) - len(wide) > meta.ndim:
        return None
    first = places[0]
    if wide and wide[0] < first:
        first += meta.ndim - len(found)
    try:
        part = meta[tuple([WHOLE if type(i) is np.ndarray else i for i in found])]
    except (IndexError, TypeError):     # NumPy's words for it are found elsewhere
        return None
    return _seen(meta, part, first, [i for i in found if type(i) is np.ndarray], tuple(found)) if part.size else None


def _seen(meta: np.ndarray, part: np.ndarray, at: int, vectors: list[np.ndarray],
          items: tuple[Any, ...]) -> Seen | None:
    """`view_of` the vectors along the axes of a part from `at` on."""
    offset, along, distinct, size = views.offset_of(part), 0, vectors[0].size == 1, vectors[0].size
    for values, length, stride in zip(vectors, part.shape[at:], part.strides[at:]):
        start = int(values[0])
        step = int(values[1]) - start if size > 1 else 0
        last = start + step * (size - 1)
        low, high = (start, last) if step > 0 else (last, start)
        if low < 0 and (low < -length or high >= 0) or high >= length:
            return None
        if size > 2 and (int(values[-1]) != last or (values[1:] - values[:-1] != step).any()):
            return None
        offset += (start + length if start < 0 else start) * stride
        along += step * stride
        distinct = distinct or step != 0
    end = at + len(vectors)
    view = views.meta((*part.shape[:at], size, *part.shape[end:]), part.dtype,
                      (*part.strides[:at], along, *part.strides[end:]), offset)
    if not writeable(meta):
        view.flags.writeable = False
    return Seen(view, items, distinct)


def _on_host(x: Any) -> np.ndarray | None:
    """The ndarray of a lazy array of positions, if it is on the host and what the device has of it does not serve."""
    host = small_arrays.on_host(x)
    return host if host is None or is_light(x) or x._self_storage.state != "both" else None
