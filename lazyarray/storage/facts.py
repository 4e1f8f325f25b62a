"""What is known of the values of an array that is on the device: a count, bounds, the values of a small one.

To find such a thing out, the host waits for the device. It holds until somebody writes to the storage, and is forgotten
with it. Nothing is kept of a storage that others may write behind our back: of one whose aliases or device pointers
somebody holds.
"""
from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from . import handles, transfer, views
from .state import all_ended
from .storage import Storage
from .upload_cache import COPIED

__all__ = ["Bounds", "bounds_of", "bounds_of_value", "bounds_on_host", "host_value", "is_distinct", "keep_widened",
           "known_of", "note_bounds", "note_copy", "note_range", "note_source", "of_storage", "source_of", "widened",
           "with_bounds"]

#: Bytes of an array whose values are kept on the host, and of one that is looked through each time.
_MOST, _FEW = 1 << 16, 1 << 14
#: Bytes of an array that is looked through once, as `COPIED`, when a second part of it is.
_WHOLE = 1 << 20


def known_of(x: Any, turned: bool = False) -> dict[str, Any] | None:
    """What is known of a lazy array, or of it with its last two axes exchanged, to be read and added to; None if
    nothing can be kept.

    It is asked for before the values are looked at: what was found out of values that were written meanwhile is then
    lost, and not taken for true.
    """
    facts = of_storage(x._self_storage)
    if facts is None:
        return None
    meta = handles.meta_of(x)
    if turned:
        meta = meta.swapaxes(-1, -2)
    key = views.offset_of(meta), meta.shape, meta.strides, meta.dtype.char
    found: dict[str, Any] | None = facts.get(key)
    if found is None:
        if len(facts) >= _MOST_VIEWS:
            facts.clear()
        found = facts[key] = {}
    return found


#: Views of one storage of which something is known.
_MOST_VIEWS = 64


def of_storage(storage: Any) -> dict[Any, Any] | None:
    """What is known of a whole storage, to be read and added to, as of `known_of`: "bounds" are of all its elements, if
    these are of the dtype beside them, and "distinct" says that no two are equal."""
    if type(storage) is not Storage:
        return None
    if storage.loans and not all_ended(storage):
        return None
    writes = storage.writes         # before it is asked whether somebody may be writing
    if not (storage.clean or storage.pending is not None) or storage.loans or storage.foreign:
        return None
    facts = storage.facts
    if facts is None or facts[0] != writes:
        # How often indexes were taken of it goes on, unless what was found out then held no longer than to here.
        taken = None if facts is None or "looked" in facts[1] else facts[1].get("takings")
        facts = storage.facts = writes, {} if taken is None else {"takings": taken}
    return facts[1]     # type: ignore[no-any-return]


def host_value(x: Any, why: str) -> Any:
    """A read-only host array or NumPy scalar with the values of a lazy array that steers a call: fetched once."""
    if handles.is_scalar(x):
        return handles.value_of(x, why)
    storage = x._self_storage
    if type(storage) is not Storage or storage.state != "device":
        return handles.host_of(x, why)
    known = known_of(x)
    if known is not None and "value" in known:
        return known["value"]
    with storage.place():
        value = transfer.to_host(storage.device, handles.device_of(x), why, kind="synchronise")
    value.setflags(write=False)
    if known is not None and value.nbytes <= _MOST:
        known["value"] = value
    return value


# -- bounds --------------------------------------------------------------------------------------

#: The least and the greatest value.
Bounds = tuple[int, int]


def note_bounds(x: Any, low: int, high: int) -> None:
    """All elements of a new array of integers, or a new scalar, are from `low` to `high`, and those of views of it."""
    facts = of_storage(x._self_storage)
    if facts is None:
        return
    if _is_whole(x):
        facts["bounds"] = low, high, x.dtype
    elif (known := known_of(x)) is not None:
        known["bounds"] = low, high


def _is_whole(x: Any) -> bool:
    """Whether a lazy array or scalar sees all of its storage."""
    storage = x._self_storage
    whole = handles.is_scalar(x) or x._self_array is not None and x._self_array is storage.root
    return whole or x._self_base is None and x.nbytes == storage.nbytes


def bounds_of(x: Any) -> Bounds | None:
    """The bounds of a lazy array of integers, as far as they are known, or there for the host to see."""
    facts = of_storage(x._self_storage)
    known = None
    if facts is not None:
        whole: tuple[int, int, Any] | None = facts.get("bounds")
        if whole is not None and whole[2] == x.dtype and _is_of_elements(x):
            return whole[:2]
        known = known_of(x)
        if known is not None and "bounds" in known:
            return known["bounds"]      # type: ignore[no-any-return]
    found = bounds_on_host(x._self_storage, handles.meta_of(x))
    if facts is not None and known is not None and found is not None:
        if _is_whole(x):
            facts["bounds"] = *found, x.dtype
        else:
            known["bounds"] = found
            _look_at_whole(x, facts)
    return found


def _look_at_whole(x: Any, facts: dict[Any, Any]) -> None:
    """All of the storage that `x` is a part of is looked at with the second part of it: more will be asked for."""
    storage = x._self_storage
    facts["parts"] = facts.get("parts", 0) + 1
    if "bounds" in facts or facts["parts"] != 2 or storage.nbytes > _WHOLE or (
            storage.root is None and storage.root_view is None):
        return
    view = storage.root_meta()
    if view.dtype == x.dtype and (seen := bounds_on_host(storage, view, _WHOLE)) is not None:
        facts["bounds"] = *seen, view.dtype


def widened(x: Any, value: Any) -> Bounds | None:
    """What all integers of the storage of `x` will be within once some of them are a value; None: not known.

    It is asked for before the write, in a statement that holds both, and kept by `keep_widened` after it.
    """
    storage, meta = x._self_storage, handles.meta_of(x)
    if meta.dtype.kind not in "iu" or (other := bounds_of_value(value)) is None:
        return None
    known, limits = of_storage(storage), np.iinfo(meta.dtype)
    whole: Any = None if known is None else known.get("bounds")
    if whole is None and meta.nbytes == storage.nbytes and (seen := bounds_on_host(storage, meta, COPIED)) is not None:
        whole = *seen, meta.dtype
    if whole is None or whole[2] != meta.dtype or other[0] < limits.min or other[1] > limits.max:
        return None
    return min(whole[0], other[0]), max(whole[1], other[1])


def bounds_of_value(value: Any) -> Bounds | None:
    """The bounds of integers: those of a lazy array or scalar as far as they are known, or those of a number."""
    if handles.is_scalar(value):
        if value._self_value is None:
            known = of_storage(value._self_storage)
            whole = None if known is None else known.get("bounds")
            return None if whole is None else whole[:2]     # type: ignore[no-any-return]
        value = value._self_value
    if handles.is_array(value):
        return bounds_of(value) if value.dtype.kind in "iu" else None
    exact = type(value) is int or isinstance(value, np.integer) and type(value) is value.dtype.type and (
        value.dtype.kind != "m")
    return (int(value), int(value)) if exact else None


def keep_widened(x: Any, bounds: Bounds | None) -> None:
    """What `widened` has found holds from now on."""
    if bounds is not None and (known := of_storage(x._self_storage)) is not None:
        known["bounds"] = *bounds, x.dtype


def bounds_on_host(storage: Any, view: Any, most: int = _FEW) -> Bounds | None:
    """The bounds of a few integers (`most` bytes) that the host has, and that nobody else may write; else None."""
    view = views.each_once(view)
    if type(storage) is not Storage or not 0 < view.nbytes <= most or view.dtype.kind not in "iu" or (
            storage.loans or storage.foreign or storage.state not in ("host", "both")):
        return None
    values = storage.read_host(view, "bounds check")
    return int(values.min()), int(values.max())


def note_copy(storage: Any, host: np.ndarray) -> None:
    """The bounds of a storage that is a copy of a few integers of the host."""
    if host.dtype.kind in "iu" and 0 < host.nbytes <= COPIED and (facts := of_storage(storage)) is not None and (
            "bounds" not in facts):
        facts["bounds"] = int(host.min()), int(host.max()), host.dtype


def note_range(x: Any, low: int, high: int) -> None:
    """As `note_bounds`, and no two elements of the array, or of a view of it, are equal."""
    note_bounds(x, low, high)
    if (facts := of_storage(x._self_storage)) is not None and "bounds" in facts:
        facts["distinct"] = True


def note_source(x: Any, source: Any, writes: int) -> None:
    """All elements of a new array of integers are some of those of another array, whose bounds are not known yet, or
    wider than what is there.

    `writes`: how often its storage had been written before they were taken.
    """
    found, storage = of_storage(x._self_storage), source._self_storage
    if found is not None and type(storage) is Storage and x.dtype == source.dtype:
        found["source"] = weakref.ref(storage), writes


def source_of(x: Any, wide: bool = False) -> tuple[Storage, dict[Any, Any]] | None:
    """The storage of the array that the integers of `x` were taken of, or that `x` is a part of, and what is known of
    it, if nobody has written to it since and it is asked for the second time: to look through all of it pays if more is
    taken of it. Else None. `wide`: also of one whose bounds are known, if nobody has looked.
    """
    own = x._self_storage
    found = of_storage(own)
    if found is None or not _is_of_elements(x):
        return None
    storage = own
    if "source" in found:
        ref, writes = found["source"]
        storage = ref()
    elif x._self_base is None or x.nbytes >= own.nbytes:
        return None
    known = None if storage is None else of_storage(storage)
    if known is None or "bounds" in known and (not wide or "looked" in known) or (
            storage.root is None and storage.root_view is None) or (
            storage is not own and storage.facts[0] != writes):
        return None
    view = storage.root_meta()
    if view.dtype != x.dtype or not view.size:
        return None
    known["takings"] = known.get("takings", 0) + 1
    return (storage, known) if known["takings"] > 1 else None


def with_bounds(taken: Any, x: Any, bounds: Bounds | None, writes: int, once: bool = False) -> Any:
    """What was taken of an array, with the bounds of its values, as they were known before, if they are so still;
    `writes`: how often it had been written then; `once`: each element was taken at most once.
    """
    if taken.dtype.kind in "iu":
        if bounds is None or "looked" not in (of_storage(x._self_storage) or ()):
            note_source(taken, x, writes)
        if bounds is not None and bounds == bounds_of(x):
            (note_range if once else note_bounds)(taken, *bounds)
    return taken


def is_distinct(x: Any) -> bool:
    """Whether all elements of a lazy array are known to be different, and none to be negative.

    A view of two axes or more may show an element of a storage twice.
    """
    facts = of_storage(x._self_storage)
    return (facts is not None and "distinct" in facts and (facts["bounds"][0] >= 0) and facts["bounds"][2] == x.dtype
            and (x.ndim == 1 and x.strides[0] != 0) and _is_of_elements(x))


def _is_of_elements(x: Any) -> bool:
    """Whether the elements of a view are elements of its storage, if that has this dtype, not parts of two."""
    if x._self_base is None:
        return True
    meta = handles.meta_of(x)
    size = meta.dtype.itemsize
    return views.offset_of(meta) % size == 0 and not any(step % size for step in meta.strides)
