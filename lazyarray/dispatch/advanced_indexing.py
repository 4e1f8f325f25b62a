"""Indexes with arrays and masks on the device, checked and ordered as NumPy does."""
from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..devices.base import is_negative_zero
from ..errors import NotOnDevice
from ..events.trace import begin, end
from ..functions import memory_order
from ..functions.pytree import replace
from ..settings.options import current as current_options
from ..storage import facts, handles, transfer, upload_cache, views
from ..storage.storage import Storage
from . import masks, small_arrays
from .function import upload_operand

if TYPE_CHECKING:
    from ..devices import Device
    from ..storage.handles import ArrayHandle, ScalarHandle


_plain_bounds = frozenset({int, type(None)})


def plain_slice(s: slice) -> slice:
    """A slice whose bounds are not lazy scalars."""
    if type(s.start) in _plain_bounds and type(s.stop) in _plain_bounds and type(s.step) in _plain_bounds:
        return s
    if any(handles.is_lazy(b) for b in (s.start, s.stop, s.step)):
        return slice(*[operator.index(b) if handles.is_lazy(b) else b for b in (s.start, s.stop, s.step)])
    return s


#: No value: the index is read.
_NOTHING = object()


class Index:
    """An advanced index, item by item: arrays are on the device, or host ones still to be uploaded."""

    def __init__(self, meta: np.ndarray, index: Any) -> None:
        self.items = []
        self.checked = []       # (array, axis, axis length)
        self.masks = False
        items = index if type(index) is tuple else (index,)
        shape = meta.shape
        arrays = [self._array(i) for i in items]
        self.lazy = {id(a): i for i, a in zip(items, arrays) if handles.is_lazy(i) and handles.is_array(i)}
        used = sum(0 if i is None or i is Ellipsis else a.ndim if a is not None and a.dtype == bool else 1
                   for i, a in zip(items, arrays))
        self.fits = used <= len(shape)
        axis = 0
        for i, a in zip(items, arrays):
            if i is Ellipsis:
                axis += len(shape) - used
            elif a is None and i is not None:
                if isinstance(i, slice):
                    pass
                elif not hasattr(type(i), "__index__"):
                    self.fits = False       # also a list that makes no array
                elif axis < len(shape) and not -shape[axis] <= operator.index(i) < shape[axis]:
                    self.fits = False
                axis += 1
            elif a is not None and a.dtype == bool:
                self.masks = True
                if a.ndim and a.shape != shape[axis:axis + a.ndim]:
                    self.fits = False
                axis += a.ndim
            elif a is not None:
                if a.dtype.kind not in "iu":
                    self.fits = False
                if axis < len(shape):
                    self.checked.append((a, axis, shape[axis]))
                axis += 1
            self.items.append(i if a is None else a)

    @staticmethod
    def _array(i: Any) -> Any:
        """What indexes as an array, else None."""
        if handles.is_lazy(i):
            found = small_arrays.on_host(i) if type(i) is handles.array_type else None
            return handles.operand_of(i, "an index") if found is None else found
        if isinstance(i, (np.ndarray, np.bool_, bool)):
            return np.asarray(i)
        if isinstance(i, (list, tuple)):
            try:
                array = np.asarray(with_values(i))
            except ValueError:
                return None
            return array.astype(np.intp) if array.size == 0 and array.dtype.kind == "f" else array
        if isinstance(i, devices.current().array_type):
            return transfer.to_current(devices.current(), i, "an index")
        return None

    def is_distinct(self, array: Any, shape: tuple[int, ...]) -> bool:
        """Whether an array of the index, if it has the shape of all of them, is known to name no place twice."""
        if array.shape != shape:
            return False
        if isinstance(array, np.ndarray):       # in order, as ``arange`` is
            return (array.ndim == 1 and array.dtype.kind in "iu" and array[0] >= 0
                    and bool((array[1:] > array[:-1]).all()))
        return (x := self.lazy.get(id(array))) is not None and facts.is_distinct(x)

    def host(self) -> tuple[Any, ...]:
        """The index for NumPy."""
        device = devices.current()
        return tuple([transfer.to_host(device, i, "an index that is out of range", "synchronise")
                     if isinstance(i, device.array_type) else i for i in self.items])

    def check(self, meta: np.ndarray, value: Any = _NOTHING) -> None:
        """Raise what NumPy raises for this index, if it does; with a `value` to assign, it comes first."""
        bad = not self.fits
        if not bad and current_options().check_indices:
            for array, _, length in self.checked:
                if array.size and not _within(array, length, self.lazy.get(id(array))):
                    bad = True
                    break
        if bad:
            # NumPy's own words: the same index into an array of that shape without memory. The value is judged first.
            blank = np.lib.stride_tricks.as_strided(np.zeros(1, meta.dtype), meta.shape, (0,) * meta.ndim)
            if value is _NOTHING:
                blank[self.host()]
            elif getattr(value, "ndim", 0) and hasattr(value, "dtype"):
                blank[self.host()] = np.broadcast_to(np.zeros((), value.dtype), value.shape)
            else:
                blank[self.host()] = with_values(value)
            raise NotOnDevice("this kind of index is not supported on the device")

    def device(self) -> tuple[Any, ...]:
        """The index with every array on the device."""
        device = devices.current()
        return tuple([upload_operand(device, i, np.take) if isinstance(i, np.ndarray) and i.ndim else
                     i[()] if isinstance(i, np.ndarray) else
                     plain_slice(i) if type(i) is slice else i for i in self.items])


def _within(array: Any, length: int, index: Any) -> bool:
    """Whether all indexes are in -length ... length - 1. `index`: the lazy array that they are, if it is one."""
    if isinstance(array, (np.ndarray, np.generic)):
        return int(array.min()) >= -length and int(array.max()) < length
    return masks.are_within(index, array, -length, length)


# -- advanced indexes on the device ------------------------------------------------------------

def take(x: ArrayHandle, meta: np.ndarray, index: Any) -> ArrayHandle | ScalarHandle:
    device = devices.current()
    if device.usable() is not None:
        raise NotOnDevice(device.usable())
    with x._self_storage.place():
        return _taken(device, x, meta, index)


def _taken(device: Device, x: ArrayHandle, meta: np.ndarray, index: Any) -> ArrayHandle | ScalarHandle:
    """`take`, where the device of `x` is the current one."""
    parsed: Index | None = None
    mask = _mask_alone(device, meta, index)
    if mask is None:
        parsed = Index(meta, index)
        parsed.check(meta)
    token = None
    known = None if mask is None else masks.known(mask[0])
    again = mask is not None and masks.comes_again(known, mask[1])
    if not again and (parsed is None or parsed.masks):
        token = begin("synchronise", 0, meta.shape, meta.dtype, "boolean-mask size")
    try:
        array = handles.device_of(x)
        if again:
            found = _laid_out(device, meta, (mask[1],), array[masks.counted(device, known, mask[1], meta)])
            return _noted(x, meta, handles.fresh(device, found), True)
        result = array[parsed.device()] if parsed is not None else _rows(device, array, mask[1])
        result = _laid_out(device, meta, (mask[1],) if parsed is None else parsed.items, result)
        if token is not None:
            end(token)
        if parsed is None:
            if known is not None:
                known["count"] = result.shape[0]
            return _noted(x, meta, handles.fresh(device, result), True)
        taken = handles.wrap(device, result, (x,), scalar=not any(i is Ellipsis for i in parsed.items), fresh=True)
        return _noted(x, meta, taken, False)
    except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
        raise device.refusal(error) from None


def _laid_out(device: Device, meta: np.ndarray, items: Any, result: Any) -> Any:
    """What an index takes of an array, in the memory order of NumPy's result."""
    if result.ndim < 2:
        return result
    order = memory_order.order_of_indexed(meta, tuple(items))
    return result if order is not None and len(order) != result.ndim else memory_order.laid_out(device, result, order)


def _noted(x: ArrayHandle, meta: np.ndarray, taken: Any, once: bool) -> Any:
    """The elements `taken` of `x`, with what is known of those; `once`: each was taken at most once."""
    if meta.dtype.kind in "iu" and handles.is_array(taken) and (bounds := facts.bounds_of(x)) is not None:
        (facts.note_range if once and facts.is_distinct(x) else facts.note_bounds)(taken, *bounds)
    return taken


def _mask_alone(device: Device, meta: np.ndarray, index: Any) -> tuple[Any, Any] | None:
    """The index, and its array on the device or host, if it is one mask that fits, which is all that it has to do."""
    rest = 0
    if type(index) is tuple and index:
        rest = len(index) - 1       # whole axes after the mask are what it leaves anyway
        if rest and not all(type(i) is slice and i.start is i.stop is i.step is None for i in index[1:]):
            return None
        index = index[0]
    lazy = handles.is_array(index)
    if not (lazy or type(index) is np.ndarray or isinstance(index, device.array_type)):
        return None
    mask = handles.meta_of(index) if lazy else index
    ndim = mask.ndim
    if mask.dtype.char != "?" or not ndim or mask.shape != meta.shape[:ndim] or ndim + rest > meta.ndim:
        return None
    if lazy:
        return index, handles.operand_of(index, "an index")
    return index, mask if type(mask) is np.ndarray else transfer.to_current(device, mask, "an index")


def _rows(device: Device, array: Any, mask: Any) -> Any:
    """A new device array of what a mask, still to be uploaded if it is on the host, is true of."""
    if type(mask) is np.ndarray:
        mask = upload_operand(device, mask, np.take)
    if array.size >= max(device.selected_from, 1) and device.contiguity(array)[0] and device.contiguity(mask)[0] and (
            device.on_current(array, mask)) and (found := device.select(array, mask)) is not None:
        return found
    return array[mask]


def put(x: ArrayHandle, meta: np.ndarray, index: Any, value: Any) -> None:
    device = devices.current()
    storage = x._self_storage
    parsed: Index | None = None
    mask = _mask_alone(device, meta, index)
    if mask is None:
        parsed = Index(meta, index)
        parsed.check(meta, value)
        items = parsed.device()
    else:
        items = (upload_operand(device, mask[1], np.take) if type(mask[1]) is np.ndarray else mask[1],)
    value = value_for(x, meta, value, by_arrays=True)
    token = None
    placed = None
    if getattr(value, "ndim", 0):
        if parsed is None:          # it names each place once
            placed = _placed(device, meta, mask[0], items[0], value)
            if placed is None:
                items = _counted(device, meta, items, value, mask[0])
        elif parsed.masks:
            items = _counted(device, meta, items, value)
            if parsed.checked:
                parsed = Index(meta, items)
        if parsed is not None and parsed.checked and current_options().ordered_assignment:
            try:
                value = _last_wins(device, meta, parsed, items, value)
            except ValueError as error:
                raise NotOnDevice(f"the value cannot be broadcast to the indexed shape: {error}") from None
    elif parsed is not None and parsed.masks and len(items) > 1:     # a mask alone that takes one value is a kernel
        token = begin("synchronise", 0, meta.shape, meta.dtype, "boolean-mask size")

    def assign(target: Any) -> None:
        try:
            if placed is not None and device.contiguity(target)[0]:
                placed(target)
            elif parsed is None and not getattr(value, "ndim", 0) and items[0].size:
                device.xp.copyto(target, value, "unsafe", _along_first(items[0], target.ndim))     # without a wait
            else:
                target[items] = value
            if token is not None:
                end(token)
        except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
            raise device.refusal(error) from None

    storage.write_device(meta, x._self_array, assign)


def _along_first(mask: Any, ndim: int) -> Any:
    """A mask of the first axes, which broadcasts along the others."""
    return mask.reshape((*mask.shape, *(1,) * (ndim - mask.ndim))) if mask.ndim < ndim else mask


def _placed(device: Device, meta: np.ndarray, given: Any, mask: Any, value: Any) -> Callable[[Any], None] | None:
    """What writes the rows of `value` where a mask is true; None where the device does not know better than others."""
    known = masks.known(given)
    if (meta.size < max(device.selected_from, 1) or value.dtype != meta.dtype or not meta.flags.c_contiguous
            or value.shape[1:] != meta.shape[mask.ndim:] or masks.comes_again(known, mask)
            or not (device.contiguity(value)[0] and device.contiguity(mask)[0] and device.on_current(mask, value))):
        return None
    token = begin("synchronise", 0, meta.shape, meta.dtype, "boolean-mask size")
    found = device.place(mask, value, meta.nbytes // mask.size)
    if found is None:
        return None
    if token is not None:
        end(token)
    count, write = found
    if known is not None:
        known["count"] = count
    if value.shape[0] != count:
        raise NotOnDevice("the number of values differs from the number of True elements in the mask")
    return write


def _counted(device: Device, meta: np.ndarray, items: tuple[Any, ...], value: Any,
             alone: Any = None) -> tuple[Any, ...]:
    """The index with positions in place of masks; NotOnDevice if NumPy would find too few or too many values.

    The device library does not look: it repeats the values or leaves some out. `alone`: the mask, as it was
    given, if it is all of the index.
    """
    if meta.size == 0:
        raise NotOnDevice("assignment to an empty selection")
    found: list[Any] = []
    for i in items:
        if hasattr(i, "ndim") and i.dtype == bool:
            if not i.ndim:
                raise NotOnDevice("0-d masks are not supported on the device")
            found += masks.counted(device, None if alone is None else masks.known(alone), i, meta)
        else:
            found.append(i)
    shape, _ = _target(meta, found)
    whole = len(items) == 1 and len(found) == meta.ndim      # NumPy takes a vector or a scalar there
    value = value if whole else _drop_leading(value, len(shape))
    if not (value.shape in ((1,), shape) if whole else value.ndim <= len(shape) and _joins(value.shape, shape)):
        raise NotOnDevice("the number of values differs from the number of True elements in the mask")
    return tuple(found)


def _target(meta: np.ndarray, items: list[Any]) -> tuple[tuple[int, ...], int]:
    """The shape of ``x[items]``, where at least one item is an array and none is a mask; where its own axes begin."""
    places = [k for k, i in enumerate(items) if not (i is None or i is Ellipsis or isinstance(i, slice))]
    try:
        common = np.broadcast_shapes(*[getattr(items[k], "shape", ()) for k in places])
    except ValueError as error:
        raise NotOnDevice(f"index arrays cannot be broadcast together: {error}") from None
    first, last = places[0], places[-1]
    rest = np.broadcast_to(np.False_, meta.shape)[tuple([0 if k in places else i for k, i in enumerate(items)])].shape
    if last - first >= len(places):     # something lies between them: the common axes come first
        return (*common, *rest), 0
    used = sum(i is not None and i is not Ellipsis for i in items)
    before = sum(meta.ndim - used if i is Ellipsis else 1 for i in items[:first])
    return (*rest[:before], *common, *rest[before:]), before


def _joins(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether values of one shape can be repeated to fill another."""
    return all(n in (1, m) for n, m in zip(shape[::-1], target[::-1]))


#: Places of an array up to which one more of that size may be made, to note who was the last. Else the index is sorted.
_MOST_PLACES = 1 << 26


def _last_wins(device: Device, meta: np.ndarray, parsed: Index, items: tuple[Any, ...], value: Any) -> Any:
    """The values to assign: of several to one element, each is the last one, as NumPy's order has it.

    So it does not matter in which order the device assigns them, nor how many there are: nobody waits to find out.
    """
    shape = np.broadcast_shapes(*[getattr(i, "shape", ()) for i in items])
    count = math.prod(shape)
    if count < 2 or value.size == 1 or any(parsed.is_distinct(array, shape) for array, _, _ in parsed.checked):
        return value
    on_host = all(isinstance(a, np.ndarray) for a, _, _ in parsed.checked)
    xp = np if on_host else device.xp
    key, places = None, 1
    for array, _, length in parsed.checked:
        if not on_host and isinstance(array, np.ndarray):
            array = upload_operand(device, array)
        array = array.astype(np.int64, copy=False)
        flat = xp.broadcast_to(xp.where(array < 0, array + length, array), shape).ravel()
        key = flat if key is None else key * length + flat
        places *= length
    if on_host:
        found, which = np.unique(key, return_inverse=True)
        if len(found) == count:
            return value
        last = np.empty(len(found), np.intp)
        last[which] = np.arange(count)
        winners = transfer.to_device(device, last[which], "index with duplicates")
    elif places <= _MOST_PLACES and count < 2**31:
        last = xp.empty(places, np.int32)
        last[key] = -1
        xp.maximum.at(last, key, xp.arange(count, dtype=np.int32))
        winners = last[key]
    else:
        order = xp.argsort(key, kind="stable")
        winners = order[xp.searchsorted(key[order], key, side="right") - 1]
    full, at = _target(meta, list(items))
    value = device.xp.broadcast_to(_drop_leading(value, len(full)), full)
    value = value.reshape((*full[:at], count, *full[at + len(shape):]))
    return value[(*(slice(None),) * at, winners)].reshape(full)


def _drop_leading(value: Any, ndim: int) -> Any:
    """NumPy lets an assigned value have more dimensions, if the leading ones are 1."""
    while value.ndim > ndim and value.shape[0] == 1:
        value = value.reshape(value.shape[1:])
    return value


#: What is one value, whatever NumPy would make of it; anything else may be a sequence, a buffer or an array.
_one_value = (bool, int, float, complex, str, bytes, np.generic, type(None))


def value_for(x: ArrayHandle, target: np.ndarray, value: Any, by_arrays: bool = False) -> Any:
    """What is assigned: a NumPy scalar of the dtype of `x`, or a device array that may still need a cast.

    NumPy itself converts what comes from the host, in a small array of that dtype, since its rules depend on the dtype,
    on the kind of value and on the index. `target` is the meta of the elements that are assigned to, or, if the
    index has arrays in it (`by_arrays`), that of `x`, and the value is not yet compared with the index.
    """
    dtype = target.dtype
    device = devices.current()
    if handles.is_scalar(value):
        value = for_dtype(value, dtype)
    if handles.is_lazy(value):
        meta = handles.meta_of(value)
        if type(value._self_storage) is not Storage:
            return value_for(x, target, handles.host_of(value, "assigned to the device"), by_arrays)
        if meta.dtype.kind == "c" and dtype.kind not in "cb":
            _warn_complex()
        array = handles.operand_of(value, "assigned")
        if value._self_storage is x._self_storage and views.overlap(meta, target):
            with device.noting:
                array = array.copy()
    elif isinstance(value, device.array_type):
        array = transfer.to_current(device, value, "assigned")
    else:
        cast = converted(value, dtype, by_arrays)
        if not cast.ndim:
            one = cast[()]
            return device.without_dimensions(one) if isinstance(one, np.inexact) and is_negative_zero(one) else one
        if not by_arrays:
            if cast.ndim > target.ndim and not isinstance(value, np.ndarray):
                raise NotOnDevice("a list is nested deeper than the array has dimensions")
            cast = _drop_leading(cast, target.ndim)
            _check_broadcast(cast.shape, target.shape)
        return upload_cache.operand(device, cast, "assigned from the host")
    if not by_arrays:
        array = _drop_leading(array, target.ndim)
        _check_broadcast(array.shape, target.shape)
    return array


def for_dtype(s: ScalarHandle, dtype: np.dtype[Any]) -> ScalarHandle | np.generic:
    """What stands for a scalar that is assigned to elements of a dtype: its value, if that decides what happens.

    Where the dtype can't take every value, NumPy raises an error or warns, and the device writes anything.
    """
    if s._self_value is not None:
        return s._self_value
    source = s.dtype
    if dtype.kind == "b" or np.can_cast(source, dtype, "same_kind" if dtype.kind in "fc" else "safe"):
        return s
    return handles.value_of(s, f"assigned to an array of {dtype}, which may not hold it")


def converted(value: Any, dtype: np.dtype[Any], by_arrays: bool = False) -> np.ndarray:
    """A new host array of what NumPy makes of a value that is assigned to elements of a dtype.

    An error in one value is NumPy's; where there are several, NumPy may have written some of them, and it is
    NotOnDevice.
    """
    if isinstance(value, _one_value) or isinstance(value, np.ndarray) and not value.ndim:
        if by_arrays:       # casts NumPy's scalars as it does arrays, where other indexes refuse what does not fit
            one = np.empty(1, dtype)
            one[[0]] = value
            return one.reshape(())
        one = np.empty((), dtype)
        one[...] = value
        return one
    try:
        if not isinstance(value, np.ndarray):
            return np.array(with_values(value), dtype)      # by elements, each of which must fit
        cast = np.empty(value.shape, dtype)
        cast[...] = value
        return cast
    except (TypeError, ValueError, OverflowError) as error:
        raise NotOnDevice(f"some of the values are invalid: {error}") from error


def with_values(obj: Any) -> Any:
    """`obj`, with NumPy's scalars in place of the lazy ones, also in a list, where NumPy would take them for arrays."""
    return replace(obj, lambda item: handles.value_of(item) if handles.is_scalar(item) else item)


def _check_broadcast(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    if shape != target:
        np.broadcast_to(np.False_, target)      # cheap; the next line words the error as an assignment does
        try:
            fits = np.broadcast_shapes(shape, target) == target
        except ValueError:
            fits = False
        if not fits:
            text = ",".join(map(str, shape)) + ("," if len(shape) == 1 else "")
            into = ",".join(map(str, target)) + ("," if len(target) == 1 else "")
            raise ValueError(f"could not broadcast input array from shape ({text}) into shape ({into})")


def _warn_complex() -> None:
    warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning,
                  stacklevel=5)
