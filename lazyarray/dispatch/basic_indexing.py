"""Reading and writing by index: basic indexes move only metadata, the rest runs on the device.

The device library wraps or clips an index that is out of range, and lets any of several
assignments to one element win. NumPy raises IndexError and lets the last one win, and so do we
(`options(check_indices=..., ordered_assignment=...)` for those who know better).
"""
from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, devices
from ..devices.base import HERE
from ..errors import DeviceUnavailableError, NotOnDevice, TransferError
from ..errors.interrupts import holding
from ..errors.own_threads import others_run
from ..functions.pytree import replace
from ..graph import known_ranges
from ..graph.record.loops import cast
from ..settings.options import current as current_options
from ..storage import facts, handles, transfer, upload_cache, views
from ..storage.mirror.byte_ranges import Ranges
from ..storage.state import all_ended
from ..storage.statements import held
from ..storage.storage import Storage
from ..storage.writeable import may_write
from . import small_arrays
from .advanced_indexing import put, take
from .assigned_values import for_dtype, value_for, with_values
from .host_fallback import lazily, on_host
from .parsed_index import plain_slice, whole_number
from .small_arrays import form_of, is_light

if TYPE_CHECKING:
    from ..storage.handles import ArrayHandle

#: Arrays larger than this are not fetched whole because a loop reads elements.
_MOST_BULK = 256 << 20


#: Bytes of an array that an element of it, which waits, may keep alive.
_MOST_KEPT = 1 << 20


def getitem(x: ArrayHandle, index: Any) -> Any:
    """``x[index]``: a view, a snapshot of one element, or a new array."""
    if type(index) is not handles.array_type and isinstance(index, tuple) and type(index) is not tuple:
        index = tuple(index)
    if is_light(x) and (found := _of_copy(x, index)) is not None:
        return found
    plain = _basic(index)
    meta = x._self_meta
    if meta is None:
        meta = handles.meta_of(x)
    if plain is not None:
        sub = meta[plain]
        if plain is not index and sub.ndim == 0 and not _has_ellipsis(index):
            return element(x, sub)
        base = x._self_base
        view = handles.new_array(x._self_storage, sub, None, x if base is None else base)
        return view.copy("K") if type(plain) is _OfArrays else view
    if type(x._self_storage) is not Storage:
        if type(index) is str or type(index) is list and index and all(type(i) is str for i in index):
            return handles.view_of(x, meta[index])
        return lazily(meta[_host_index(index)])
    try:
        if others_run():        # what is looked at and what is taken of are the same positions
            return held((x, *index) if type(index) is tuple else (x, index), take, x, meta, index)
        return take(x, meta, index)
    except NotOnDevice as reason:
        return on_host(operator.getitem, (x, index), {}, str(reason))


def _of_copy(x: ArrayHandle, index: Any) -> Any:
    """Elements of a small array that is nothing but its ndarray, by an index that the device has: of the copy there, so
    that it stays what it is. None if there is none.
    """
    parts = index if type(index) is tuple else (index,)
    there = [i for i in parts if type(i) is handles.array_type and not is_light(i)]
    host, device = small_arrays.on_host(x), devices.current()
    if not there or host is None or device.spread or device.usable() is not None or (
            any(i.dtype.kind not in "iu" or not i.ndim for i in there) or not device.can_hold(host.dtype)
            or not handles.stays_light(x, host)):
        return None
    copy = upload_cache.kept(device, host, "operand of an index", allowed=True)
    return None if copy is None else handles.new_array(copy, None, copy.root)[index]


#: Bytes of an array up to which it is written whole where a mask is true of some elements.
_MOST_WHOLE = 32 << 20
_updated: Callable[..., Any] = (lambda *args: None) if _native.recording is None else _native.recording.updated


def _masked(x: ArrayHandle, mask: ArrayHandle, value: Any) -> bool:
    """Whether ``x[mask] = value`` was done as ``np.where(mask, value, x)``, which is recorded."""
    if is_light(x) or mask.dtype.kind != "b" or mask.shape != x.shape or not x.ndim:
        return False
    one = _number_of(x.dtype, value)
    if one is None or x.nbytes > _MOST_WHOLE and getattr(mask._self_storage, "pending", None) is None:
        return False
    return _updated(np.where, (mask, one, x), x) is not None


def _number_of(dtype: np.dtype[Any], value: Any) -> np.generic | None:
    """A number as a dtype has it; None where something else than that may come of it."""
    kind = type(value)
    if isinstance(value, np.generic):
        return value if value.dtype == dtype else None
    if kind is bool and dtype.kind == "b" or kind is float and dtype.char == "d":
        return dtype.type(value)    # type: ignore[no-any-return]
    if kind is float and dtype.char == "f":
        return dtype.type(value) if not abs(value) > _LARGEST else None
    if kind is int and dtype.kind in "iufd":
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        low, high = (limits.min, limits.max) if limits is not None else _EXACT.get(dtype.char, (0, 0))
        return dtype.type(value) if low <= value <= high else None
    return None


_LARGEST = float(np.finfo(np.float32).max)
#: Whole numbers that each of these dtypes has.
_EXACT = {"f": (-1 << 24, 1 << 24), "d": (-1 << 53, 1 << 53)}


def setitem(x: ArrayHandle, index: Any, value: Any) -> None:
    """``x[index] = value`` with NumPy's casts, errors and order. (Most of these are done in C before.)"""
    given = (value, *index) if type(index) is tuple else (value, index)
    if small_arrays.to_write(x, given):
        x[index] = value        # once more, of what is on the device now
        return
    if type(index) is handles.array_type and _masked(x, index, value):
        return
    if any(map(is_light, given)):
        given = small_arrays.to_hold(given)     # type: ignore[assignment]
    held((x, *given), _setitem, x, index, value)


def _setitem(x: ArrayHandle, index: Any, value: Any) -> None:
    meta = handles.meta_of(x)
    if not may_write(meta):
        raise ValueError("assignment destination is read-only")
    if type(index) is not handles.array_type and isinstance(index, tuple) and type(index) is not tuple:
        index = tuple(index)
    if small_arrays.on_host(x) is not None and (
            small_arrays.writing(operator.setitem, (x, index, value), {}, [x]) is not NotImplemented):
        return
    storage = x._self_storage
    if type(storage) is not Storage:
        if isinstance(value, storage.device.array_type):
            value = transfer.to_host(storage.device, value, "assigned to a host array")
        if not handles.is_array(value):
            value = with_values(value)
        elif meta.dtype.kind != "O":        # else it may be an element itself
            value = handles.alias_of(value, "assigned to a host array")
        meta[_host_index(index)] = value
        return
    plain = _basic(index)
    try:
        if devices.current().usable() is not None:
            raise NotOnDevice(devices.current().usable())
        here = storage.place(noting=False) if storage.device.spread else HERE     # a write notes failures itself
        if plain is None:
            bounds = facts.widened(x, value)
            with here:
                put(x, meta, index, value)
            facts.keep_widened(x, bounds)
            return
        sub = meta[plain]
        if (handles.is_array(value) and value._self_storage is storage
                and views.same_place(handles.meta_of(value), sub)):
            return      # ``x[1:] += y`` writes a view, and then assigns it to its own place
        if sub.ndim == 0 and not _has_ellipsis(index) and (_has_dimensions(value) or _is_of_a_subclass(value)):
            value = _one_element(sub.dtype, value)
        if not sub.size:
            _set_nothing(sub, value)
            return
        for one in (x, value):      # before they are computed
            known_ranges.note(one)
        bounds = facts.widened(x, value)
        with here:
            value = value_for(x, sub, value)
            storage.write_device(sub, None, lambda target: storage.device.assign(target, value), overwrite=True)
        facts.keep_widened(x, bounds)
    except NotOnDevice as reason:
        try:
            on_host(operator.setitem, (x, _host_index(index), value), {}, str(reason), name="numpy.ndarray.__setitem__",
                    positions=(0,), names=())
        except TransferError:
            if reason.__cause__ is None:
                raise
            raise reason.__cause__ from None        # it would fail on the host too: that is what is wrong


def _is_of_a_subclass(value: Any) -> bool:
    """Whether a value says itself what number it is, if any: a length has a unit."""
    return isinstance(value, np.ndarray) and type(value) is not np.ndarray and not handles.is_lazy(value)


def _has_dimensions(value: Any) -> bool:
    if handles.is_array(value):
        return bool(handles.meta_of(value).ndim)
    return isinstance(value, (list, tuple, range)) or getattr(value, "ndim", 0) > 0


def _one_element(dtype: np.dtype[Any], value: Any) -> Any:
    """What NumPy makes of an array or a sequence that is assigned to one element: mostly an error."""
    one = np.zeros(1, dtype)
    if handles.is_array(value) and handles.meta_of(value).size != 1:
        value = np.zeros(handles.meta_of(value).shape, value.dtype)      # the values don't matter
    one[0] = handles.host_of(value, "assigned to an element") if handles.is_array(value) else value
    return one[0]


def _set_nothing(sub: np.ndarray, value: Any) -> None:
    """Raise what NumPy raises where a value is assigned to no elements, if it does."""
    if handles.is_scalar(value):
        value = for_dtype(value, sub.dtype)
    if handles.is_lazy(value) or isinstance(value, devices.current().array_type):      # the shape alone may be wrong
        value = np.broadcast_to(np.zeros((), value.dtype), value.shape)
    np.empty(sub.shape, sub.dtype)[...] = with_values(value)


def element(x: ArrayHandle, sub: np.ndarray) -> Any:
    """A snapshot of one element of `x`, at the 0-d meta `sub`."""
    storage = x._self_storage
    if type(storage) is not Storage:
        return sub[()] if sub.dtype.kind == "O" else lazily(sub[()])    # an array in there is not ours
    if storage.mirror is not None or storage.reads:
        value = _known_on_host(x, storage, sub)
        if value is not None:
            return handles.scalar_of_value(value)
    if sys.is_finalizing():     # CuPy imports what it copies with, and nothing is imported any more
        value = transfer.to_host(storage.device, storage.read_device(sub), "one element read at exit")
        return handles.scalar_of_value(value[()])
    reason = storage.device.usable()
    if reason is not None:
        raise DeviceUnavailableError(reason)
    with storage.place():
        found = storage.read_device(sub)
        step = cast(sub.dtype, sub.dtype) if _native.recording is not None and not storage.device.spread and (
            storage.nbytes <= _MOST_KEPT) else None
        if step is not None and (
                scalar := _native.recording.element(storage, found, step, weakref.ref(storage))) is not None:
            return scalar
        array = storage.device.empty((), sub.dtype)
        storage.device.assign(array, found)
        return handles.new_scalar(Storage(storage.device, array), None, array, weakref.ref(storage))


def _known_on_host(x: ArrayHandle, storage: Storage, sub: np.ndarray) -> Any:
    """The element, if the mirror has it, or if so many were read one by one that all are fetched now."""
    if storage.foreign or storage.loans and not all_ended(storage):
        return None
    if storage.mirror is not None:
        with holding(storage.lock):
            offset, mirror = views.offset_of(sub), storage.mirror
            if mirror is not None and (
                    mirror.full or mirror.valid.covers(Ranges.span(offset, offset + sub.itemsize))):
                return storage.read_host(sub, "one element read")[()]
    meta = handles.meta_of(x)
    if storage.reads >= current_options().bulk_reads and meta.nbytes <= _MOST_BULK:
        storage.read_host(meta, "elements were read one by one")
        return storage.read_host(sub, "one element read")[()]
    return None


def iterate(x: ArrayHandle) -> Iterator[Any]:
    """The iterator over the first axis: rows are views; the elements of a vector are NumPy's own scalars.

    Somebody looks at each element of a vector, so they are fetched, many at once, and what is known on the host
    is worth more as a real number: json, statistics and compiled code take it where they take no LazyScalar.
    (The price: `numpy.poly` and `numpy.roots` of a vector, which ask its elements who overrides them, give ndarrays.)
    """
    if x.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    if x.ndim > 1:
        return (x[i] for i in range(x.shape[0]))
    return _elements(x) if is_light(x) or type(x._self_storage) is Storage else iter(x._self_meta)


def _elements(x: ArrayHandle) -> Iterator[Any]:
    done, on_host = 0, small_arrays.on_host
    if on_host(x, True) is None and x.nbytes <= _MOST_BULK and not (x._self_storage.loans or x._self_storage.foreign):
        x._self_storage.read_host(handles.meta_of(x), "iterated over")
    if (host := on_host(x, True)) is not None:
        for value in host:
            if on_host(x, True) is not host:    # written since, on the device
                break
            yield value
            done += 1
        else:
            return
    storage, meta = x._self_storage, handles.meta_of(x)
    block = max(1, _MOST_BULK // max(meta.itemsize, 1))
    valid = mirror = None
    for start in range(done, meta.shape[0], block):
        fetched: Any = range(start, min(start + block, meta.shape[0]))
        if type(storage) is Storage and not (storage.loans or storage.foreign):
            fetched = storage.read_host(meta[start:start + block], "iterated over")
            mirror = storage.mirror
            valid = None if mirror is None else mirror.valid
        for i, value in enumerate(fetched, start):
            if valid and storage.mirror is mirror and mirror.valid is valid and not (storage.loans or storage.foreign):
                yield value
            else:
                value = x[i]        # written since: an iterator sees that
                yield handles.value_of(value, "iterated over") if handles.is_scalar(value) else value


# -- what an index is --------------------------------------------------------------------------

class _OfArrays(tuple):
    """A basic index in which integers were given as arrays without dimensions: NumPy copies what it reads by one."""

    __slots__ = ()


def _basic(index: Any) -> tuple[Any, ...] | None:
    """`index` as a tuple that makes NumPy return a view even of one element, or None if it is not basic.

    It is `index` itself where that makes views only.
    """
    if type(index) is int or type(index) is slice:
        return (index, Ellipsis)
    if type(index) is handles.array_type and (form_of(index) if is_light(index) else handles.meta_of(index)).ndim:
        return None
    if type(index) is not tuple:
        index = (index,)
    else:       # most are of slices, with whole numbers or new axes among them
        views_only = False
        for i in index:
            kind = type(i)
            if kind is slice:
                if plain_slice(i) is not i:
                    break
                views_only = True
            elif i is None or i is Ellipsis:
                views_only = True
            elif kind is not int:
                break
        else:
            if views_only:
                return index
    items = []
    ellipsis = of_arrays = False
    for i in index:
        kind = type(i)
        if kind is int or kind is slice or i is None:
            items.append(plain_slice(i) if kind is slice else i)
        elif i is Ellipsis:
            items.append(i)
            ellipsis = True
        elif kind is handles.array_type:
            meta = form_of(i) if is_light(i) else handles.meta_of(i)
            if meta.ndim or meta.dtype.kind not in "iu":
                return None
            items.append(operator.index(i))
            of_arrays = True
        elif isinstance(i, np.integer) and not isinstance(i, np.timedelta64):
            items.append(operator.index(i))
        elif isinstance(i, (bool, np.bool_, list, tuple, str, np.ndarray)) or handles.is_lazy(i):
            if not isinstance(i, np.ndarray) or i.ndim or i.dtype.kind not in "iu":
                return None
            items.append(operator.index(i))
            of_arrays = True
        elif (number := whole_number(i)) is not None:
            items.append(number)
        else:
            return None
    if not ellipsis:
        items.append(Ellipsis)
    return _OfArrays(items) if of_arrays else tuple(items)


def _has_ellipsis(index: Any) -> bool:
    return index is Ellipsis or type(index) is tuple and any(i is Ellipsis for i in index)


def _host_index(index: Any) -> Any:
    """The index with host arrays in place of lazy ones."""
    return replace(index, lambda i: handles.host_of(i, "index of a host array") if handles.is_lazy(i) else i)
