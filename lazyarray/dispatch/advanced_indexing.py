"""Indexes with arrays and masks on the device, checked and ordered as NumPy does."""
from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, devices
from ..devices.base import is_negative_zero
from ..errors import NotOnDevice
from ..events.trace import begin, end
from ..functions import index_bounds, memory_order
from ..functions.adapters.indexing import at
from ..functions.pytree import replace
from ..settings.options import current as current_options
from ..storage import facts, handles, transfer, upload_cache, views
from ..storage.storage import Storage
from . import masks, small_arrays

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


_WHOLE = slice(None)
#: No value: the index is read.
_NOTHING = object()
#: Types of items that are no arrays.
_PLAIN = frozenset({int, slice, type(None), type(Ellipsis)})
#: Integers of a list whose array is kept.
_FEW = 64


@functools.lru_cache(1024)
def _of_integers(*values: int) -> np.ndarray:
    array = np.array(values)
    array.flags.writeable = False
    return array


def _uploaded(device: Device, array: Any) -> Any:
    return upload_cache.operand(device, array, "host operand of take") if isinstance(array, np.ndarray) else array


class Index:
    """An advanced index: what numbers and slices leave of an array, and positions along some axes of that.

    Arrays are on the device, or host ones still to be uploaded.
    """

    def __init__(self, meta: np.ndarray, index: Any) -> None:
        self.meta = meta
        self.items: list[Any] = []
        self.checked: list[Any] = []        # (array, axis length)
        self.lazy: dict[int, Any] = {}      # by the identity of an array
        self.least: dict[int, int] = {}     # the same, as far as it is known
        used = 0
        kinds: list[str] = []               # of the dtypes of arrays; "" for other items
        for i in index if type(index) is tuple else (index,):
            kind, n = "", 1
            if type(i) is slice:
                i = plain_slice(i)
            elif i is None or i is Ellipsis:
                n = 0
            elif type(i) is not int and (array := self._array(i)) is not None:
                if not array.dtype.isnative:        # the device would take the bytes as they are
                    array = array.astype(array.dtype.newbyteorder("="))
                if handles.is_array(i):
                    self.lazy[id(array)] = i
                i, kind = array, array.dtype.kind
                n = array.ndim if kind == "b" else 1
            used += n
            kinds.append(kind)
            self.items.append(i)
        shape = meta.shape
        missing = meta.ndim - used
        fits, whole, masks, flags, scalar = missing >= 0, True, False, False, True
        basic: list[Any] = []               # whole axes in place of arrays
        #: (positions or a mask, the axes of `sub` that they index)
        self.arrays: list[tuple[Any, tuple[int, ...]]] = []
        axis = left = at = first = last = count = 0
        for k, (i, kind) in enumerate(zip(self.items, kinds)):
            if type(i) is slice or i is None:
                whole = whole and i == _WHOLE
                axis += i is not None
                left += 1
            elif i is Ellipsis:
                axis += missing
                left += missing
            else:
                if not count:
                    at, first = left, k
                last, count, n = k, count + 1, 1
                if kind == "b":
                    masks, n = True, i.ndim
                    flags = flags or not n
                    fits = fits and i.shape == shape[axis:axis + n]
                elif kind:
                    fits = fits and kind in "iu"
                    if axis < len(shape):
                        self.checked.append((i, shape[axis]))
                elif not hasattr(type(i), "__index__") or axis < len(shape) and not (
                        -shape[axis] <= operator.index(i) < shape[axis]):
                    fits = False            # also a list that makes no array
                axis += n
                if kind and (i.ndim or not isinstance(i, (np.ndarray, np.generic))):
                    scalar = scalar and not i.ndim
                    self.arrays.append((i, (left,) if n == 1 else tuple(range(left, left + n))))
                    basic += [_WHOLE] * n
                    left += n
                    continue
                whole = False
            basic.append(i)
        self.fits, self.masks = fits, masks
        #: Where in the result the axes are that the arrays have in common: first if something lies between them.
        self.at = 0 if last - first >= count else at
        #: Whether there is a mask without dimensions, or no array with any: the device's library does those.
        self.plain = flags or scalar
        self._basic = None if whole or self.plain else basic
        #: What numbers and slices leave, once the index was checked.
        self.sub = meta
        #: The mask, if that is the only array; else None.
        self.mask: Any = self.arrays[0][0] if masks and len(self.arrays) == 1 and not self.plain else None

    @staticmethod
    def _array(i: Any) -> Any:
        """What indexes as an array, else None."""
        if handles.is_lazy(i):
            if type(i) is handles.array_type and handles.meta_of(i).dtype.kind != "b" and (     # masks are counted once
                    found := small_arrays.on_host(i)) is not None:
                return found
            return handles.operand_of(i, "an index")
        if isinstance(i, (list, tuple)):
            if len(i) <= _FEW and set(map(type, i)) == {int}:
                return _of_integers(*i)
            try:
                array = np.asarray(with_values(i))
            except ValueError:
                return None
            return array.astype(np.intp) if array.size == 0 and array.dtype.kind == "f" else array
        if isinstance(i, (np.ndarray, np.bool_, bool)):
            return np.asarray(i)
        if isinstance(i, devices.current().array_type):
            return transfer.to_current(devices.current(), i, "an index")
        return None

    def device(self) -> tuple[Any, ...]:
        """The index with every array on the device."""
        return tuple([_uploaded(devices.current(), i) if getattr(i, "ndim", 0) else
                     i[()] if isinstance(i, np.ndarray) else i for i in self.items])

    def check(self, value: Any = _NOTHING) -> None:
        """Raise what NumPy raises for this index, if it does; with a `value` to assign, it comes first."""
        bad = not self.fits
        if not bad and self.checked and current_options().check_indices:
            there = []
            for array, length in self.checked:
                if not isinstance(array, (np.ndarray, np.generic)):
                    if array.size:
                        there.append((self.lazy.get(id(array)), array, -length, length))
                elif array.size:
                    self.least[id(array)] = low = int(array.min())
                    bad = bad or low < -length or array.max() >= length
            for (_, array, least, length), (low, high) in zip(there, index_bounds.bounds(there) if there else there):
                self.least[id(array)] = low
                bad = bad or low < least or high >= length
        if bad:
            # NumPy's own words: the same index into an array of that shape without memory. The value is judged first.
            meta, device = self.meta, devices.current()
            blank = np.lib.stride_tricks.as_strided(np.zeros(1, meta.dtype), meta.shape, (0,) * meta.ndim)
            index = tuple([transfer.to_host(device, i, "an index that is out of range", "synchronise")
                           if isinstance(i, device.array_type) else i for i in self.items])
            if value is _NOTHING:
                blank[index]
            else:
                blank[index] = np.broadcast_to(np.zeros((), value.dtype), value.shape) if (
                    getattr(value, "ndim", 0) and hasattr(value, "dtype")) else with_values(value)
            raise NotOnDevice("this kind of index is not supported on the device")
        if self._basic is not None:
            self.sub = self.meta[tuple([i if type(i) in _PLAIN else operator.index(i) for i in self._basic])]

    # What it names, unless it is `plain`.

    def settle(self, device: Device) -> None:
        """Find out where masks are true, and the shape that the arrays are broadcast to."""
        arrays, sub = self.arrays, self.sub
        if len(arrays) > 1:
            arrays.sort(key=lambda a: -abs(sub.strides[a[1][0]]))
        #: The positions, in the order of their axes in memory; what they are of; their least; the lazy array.
        self.positions: list[tuple[Any, int, int | None, Any]] = []
        for array, axes in arrays:
            given = self.lazy.get(id(array))
            if array.dtype.kind != "b":
                self.positions.append((array, sub.shape[axes[0]], self.least.get(id(array)), given))
            else:
                found = np.flatnonzero(array) if isinstance(array, np.ndarray) else masks.places(
                    device, masks.known(given), array, sub)
                self.positions.append((found, array.size, 0, _SORTED))
        self.axes: tuple[int, ...] = arrays[0][1]
        self.common: tuple[int, ...] = self.positions[0][0].shape
        if len(arrays) > 1:
            self.axes = tuple([axis for _, axes in arrays for axis in axes])
            self.common = np.broadcast_shapes(*[p[0].shape for p in self.positions])

    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        rest = [n for axis, n in enumerate(self.sub.shape) if axis not in self.axes]
        return (*rest[:self.at], *self.common, *rest[self.at:])

    def is_distinct(self) -> bool:
        """Whether an array that has the shape of all of them is known to name no place twice."""
        return any(array.shape == self.common and (given is _SORTED or given is not None and facts.is_distinct(given))
                   for array, _, _, given in self.positions)

    def key(self, device: Device, positive: bool = False, host: list[Any] | None = None) -> Any:
        """The places along the axes taken as one, in memory order; `host`: the arrays, where NumPy is to compute.

        That of one array may count from the end, unless it is to be `positive`: the device wraps around.
        """
        arrays = [p[0] for p in self.positions] if host is None else host
        if len(arrays) == 1 and not positive:
            return _uploaded(device, arrays[0])
        on_host = all(isinstance(array, np.ndarray) for array in arrays)
        key, step = None, 1
        for array, (_, length, least, _) in zip(reversed(arrays), reversed(self.positions)):
            array = array.astype(np.int64, copy=False)
            if least is None or least < 0:
                array = (np if isinstance(array, np.ndarray) else device.xp).remainder(array, np.int64(length))
            if step != 1:
                array = array * np.int64(step)
            array = array if on_host else _uploaded(device, array)
            key = array if key is None else key + array
            step *= length
        return _uploaded(device, key) if on_host and host is None else key

    def leading(self, device: Device) -> list[Any] | None:
        """The positions along the first axes, on the device, where the device's `take_at` has a use for them: there is
        one array for each axis, all of one shape, and not all on the host, where they are taken as one.
        """
        positions, axes = [p[0] for p in self.positions], self.axes
        if self.at or len(axes) != len(positions) or sorted(axes) != list(range(len(axes))) or (
                not self.sub.flags.c_contiguous or not self.common or len(positions) > 1
                and all(isinstance(p, np.ndarray) for p in positions)
                or any(p.shape != self.common or p.dtype.char not in "ilq" for p in positions)):
            return None
        return [_uploaded(device, p) for _, p in sorted(zip(axes, positions), key=operator.itemgetter(0))]

    def spread(self, device: Device, array: Any) -> tuple[Any, tuple[Any, ...]]:
        """The device array of `sub` with the axes that are indexed beside each other, and the index into that."""
        rest = [i for i in range(array.ndim) if i not in self.axes]
        index: list[Any] = []
        for (positions, *_), (source, axes) in zip(self.positions, self.arrays):
            positions = _uploaded(device, positions)
            index += [positions] if source.dtype.kind != "b" else at(
                device.xp, positions, tuple([self.sub.shape[axis] for axis in axes]))
        return (array.transpose(*rest[:self.at], *self.axes, *rest[self.at:]),
                (*(_WHOLE,) * self.at, *index))

    def merged(self, order: tuple[int, ...] | None) -> tuple[np.ndarray, int, Any] | None:
        """A view of the elements in which all axes that are indexed are one; its number; how to turn what is taken.

        The result's axes lie in memory in this `order`. None where that can't be had of one view.
        """
        sub = self.sub
        if not sub.size:
            return None
        if order is None and self.axes == (self.at,):
            return sub, self.at, None
        found = _merged(sub.shape, sub.strides, self.axes, self.at, len(self.common), order)
        if found is None:
            return None
        shape, strides, axis, turned = found
        if shape != sub.shape or strides != sub.strides:
            sub = views.meta(shape, sub.dtype, strides, views.offset_of(sub))
        return sub, axis, turned


#: In place of the lazy array: the positions rise, as those of a mask do.
_SORTED = object()


@functools.lru_cache(4096)
def _merged(shape: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...], at: int, ndim: int,
            order: tuple[int, ...] | None) -> tuple[Any, Any, int, Any] | None:
    """The shape and strides of that view, the axis, and the axes that make the result of what is taken along it."""
    if any(strides[i] != strides[k] * shape[k] for i, k in zip(axes, axes[1:])):
        return None
    rest = [i for i in range(len(shape)) if i not in axes]
    result = [*rest[:at], *[-1] * ndim, *rest[at:]]
    walk = tuple(range(len(result))) if order is None else order
    if len(walk) != len(result):
        return None
    axis = [result[i] for i in walk].index(-1)
    if walk[axis:axis + ndim] != tuple(range(at, at + ndim)):
        return None
    lengths, steps = [[n[i] for i in map(result.__getitem__, walk) if i >= 0] for n in (shape, strides)]
    lengths.insert(axis, math.prod([shape[i] for i in axes]))
    steps.insert(axis, strides[axes[-1]])
    return (*lengths,), (*steps,), axis, None if order is None else tuple([walk.index(i) for i in range(len(walk))])


# -- advanced indexes on the device ------------------------------------------------------------

def take(x: ArrayHandle, meta: np.ndarray, index: Any) -> ArrayHandle | ScalarHandle:
    device = devices.current()
    if (reason := device.usable()) is not None:
        raise NotOnDevice(reason)
    rows = None if device.spread else _rows_of(meta, index)
    if rows is not None:
        sub, positions = rows
        try:
            found = device.take_at(_device_view(x, sub), (handles.device_of(positions, "an index"),))
        except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
            raise device.refusal(error) from None
        return _with_bounds(handles.fresh(device, found), x, meta)
    with x._self_storage.place():
        return _taken(device, x, meta, index)


def _rows_of(meta: np.ndarray, index: Any) -> tuple[np.ndarray, Any] | None:
    """What whole numbers leave of an array, and a lazy array of positions along its first axis, which are all there.

    None of another index, and of one that has to be looked at.
    """
    positions = index[-1] if type(index) is tuple and index else index
    if type(positions) is not handles.array_type or (array := positions._self_array) is None or (
            array.dtype.kind not in "iu" or not array.ndim or type(positions._self_storage) is not Storage):
        return None
    if index is not positions and (numbers := index[:-1]):
        if len(numbers) >= meta.ndim or not all(type(i) is int and -n <= i < n for i, n in zip(numbers, meta.shape)):
            return None
        meta = meta[numbers]
    bounds = facts.bounds_of(positions) if meta.ndim == 1 or meta.ndim and meta.flags.c_contiguous else None
    if bounds is None or bounds[0] < -meta.shape[0] or bounds[1] >= meta.shape[0]:
        return None
    return meta, positions


def _with_bounds(taken: Any, x: ArrayHandle, meta: np.ndarray, once: bool = False) -> Any:
    """What was taken of an array, with what is known of its values; `once`: of each element at most once."""
    if meta.dtype.kind in "iu" and handles.is_array(taken) and (bounds := facts.bounds_of(x)) is not None:
        (facts.note_range if once else facts.note_bounds)(taken, *bounds)
    return taken


def _taken(device: Device, x: ArrayHandle, meta: np.ndarray, index: Any) -> ArrayHandle | ScalarHandle:
    parsed = Index(meta, index)
    parsed.check()
    mask = parsed.mask
    try:
        if parsed.plain:
            token = begin("synchronise", 0, meta.shape, meta.dtype, "boolean-mask size") if parsed.masks else None
            found = _laid_out(device, parsed, handles.device_of(x)[parsed.device()])
            if token is not None:
                end(token)
            taken = handles.wrap(device, found, (x,), scalar=not any(i is Ellipsis for i in parsed.items), fresh=True)
        elif mask is not None and parsed.arrays[0][1][0] == 0 and not masks.comes_again(
                known := masks.known(parsed.lazy.get(id(mask)))):
            taken = handles.fresh(device, _laid_out(device, parsed, _rows(device, x, parsed.sub, mask, known)))
        else:
            taken = handles.fresh(device, _gathered(device, x, parsed))
    except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
        raise device.refusal(error) from None
    return _with_bounds(taken, x, meta, mask is not None and facts.is_distinct(x))


def _gathered(device: Device, x: ArrayHandle, parsed: Index) -> Any:
    """A new device array of what an index names, in NumPy's memory order, by one kernel where that will do."""
    parsed.settle(device)
    order = None if len(parsed.axes) == parsed.sub.ndim else memory_order.order_of_indexed(
        parsed.meta, tuple(parsed.items))
    if order is None and (leading := parsed.leading(device)) is not None:
        return device.take_at(_device_view(x, parsed.sub), leading)
    merged = parsed.merged(order)
    if merged is None:
        array, index = parsed.spread(device, _device_view(x, parsed.sub))
        return _laid_out(device, parsed, array[index])
    view, axis, turned = merged
    found = _device_view(x, view).take(parsed.key(device), axis)
    return found if turned is None else found.transpose(turned)


def _device_view(x: ArrayHandle, view: np.ndarray) -> Any:
    """The device array, current, of a view of `x`."""
    return handles.device_of(x) if view is handles.meta_of(x) else x._self_storage.read_device(view)


def _rows(device: Device, x: ArrayHandle, sub: np.ndarray, mask: Any, known: dict[str, Any] | None) -> Any:
    """A new device array of the rows of a view where a mask is true, which is counted."""
    array = _device_view(x, sub)
    token = begin("synchronise", 0, sub.shape, sub.dtype, "boolean-mask size")
    mask = _uploaded(device, mask)
    found = None
    if array.size >= max(device.selected_from, 1) and device.contiguity(array)[0] and device.contiguity(mask)[0] and (
            device.on_current(array, mask)):
        found = device.select(array, mask)
    if found is None:
        found = array[mask]
    if token is not None:
        end(token)
    if known is not None:
        known["count"] = found.shape[0]
    return found


def _laid_out(device: Device, parsed: Index, result: Any) -> Any:
    """What an index takes of an array, in the memory order of NumPy's result."""
    if result.ndim < 2:
        return result
    order = memory_order.order_of_indexed(parsed.meta, tuple(parsed.items))
    return result if order is not None and len(order) != result.ndim else memory_order.laid_out(device, result, order)


def put(x: ArrayHandle, meta: np.ndarray, index: Any, value: Any) -> None:
    device, storage = devices.current(), x._self_storage
    rows = None if device.spread else _rows_of(meta, index)
    one = type(value) is not handles.array_type and isinstance(value, _one_value)
    if rows is not None and rows[1]._self_storage is not storage and (one or _is_fit(value, rows)):
        sub, positions = rows
        once = one or facts.is_distinct(positions)
        if once or _are_few(sub, positions):
            key, given = handles.device_of(positions, "an index"), value_for(x, sub, value, by_arrays=True)
            # Of several values to one element, each is the last one, as in `_last_wins`.
            last = None if once else _last_of_each(device, positions, key, sub.size)
            _write(device, x, sub, lambda target: device.put_at(target, (key,), given, last))
            return
    parsed = Index(meta, index)
    parsed.check(value)
    for i in parsed.lazy.values():
        if i._self_storage is storage:      # the device's threads know no order
            index = index if type(index) is tuple else (index,)
            return put(x, meta, tuple([i.copy() if getattr(i, "_self_storage", None) is storage else i
                                       for i in index]), value)
    value = value_for(x, parsed.sub, value, by_arrays=True)
    array = getattr(value, "ndim", 0) > 0
    mask, sub = parsed.mask, parsed.sub
    if array and parsed.masks and (parsed.plain or not meta.size):
        raise NotOnDevice("0-d masks, and assignments to an empty selection, are not supported on the device")
    if parsed.plain:
        token = begin("synchronise", 0, meta.shape, meta.dtype, "boolean-mask size") if parsed.masks else None
        items = parsed.device()
        _write(device, x, meta, lambda target: operator.setitem(target, items, value))
        if token is not None:
            end(token)
        return
    if mask is not None and mask.size and not array:        # without a wait
        where = _uploaded(device, mask)
        if mask.ndim < sub.ndim:
            where = where.reshape([n if axis in parsed.arrays[0][1] else 1 for axis, n in enumerate(sub.shape)])
        _write(device, x, sub, lambda target: device.xp.copyto(target, value, "unsafe", where))
        return
    if mask is not None and mask.size and parsed.arrays[0][1][0] == 0:
        placed = _placed(device, sub, parsed.lazy.get(id(mask)), _uploaded(device, mask), value)
        if placed is not None:
            _write(device, x, sub, placed)
            return
    try:
        parsed.settle(device)
        if array:
            # Of a mask of all axes NumPy takes a vector or a scalar.
            value = _fitting(parsed, value, sub is meta and mask is not None and mask.ndim == meta.ndim)
            if parsed.checked and current_options().ordered_assignment:
                value = _last_wins(device, parsed, value)
    except ValueError as error:
        raise NotOnDevice(f"the value cannot be broadcast to the indexed shape: {error}") from None
    if not sub.size or 0 in parsed.common:
        return
    if (leading := parsed.leading(device)) is not None:
        _write(device, x, sub, lambda target: device.put_at(target, leading, value))
        return
    if (merged := parsed.merged(None)) is None:
        _write(device, x, sub, lambda target: operator.setitem(*parsed.spread(device, target), value))
        return
    view, axis, _ = merged
    key = (*(_WHOLE,) * axis, parsed.key(device))
    _write(device, x, view, lambda target: operator.setitem(target, key, value))


_wrote = None if _native.recording is None else _native.recording.wrote


def _is_fit(value: Any, rows: tuple[np.ndarray, Any]) -> bool:
    """Whether a value has an element for each that is assigned to."""
    sub, positions = rows
    return handles.is_array(value) and handles.meta_of(value).shape == (*positions.shape, *sub.shape[1:])


def _are_few(sub: np.ndarray, positions: Any) -> bool:
    """Whether the last of the values for one element can be found with an array of as many places as `sub` has."""
    bounds = facts.bounds_of(positions)
    return (sub.ndim == positions.ndim == 1 and bounds is not None and bounds[0] >= 0 and sub.size <= _MOST_PLACES
            and positions.size < 2**31 and current_options().ordered_assignment)


#: Bytes of an index up to which its `_last_of_each` is kept.
_MOST_KEPT = 16 << 20


def _last_of_each(device: Device, positions: Any, key: Any, places: int) -> Any:
    """`Device.last_of_each` of an index, kept for the next time that it is used on this stream."""
    known, stream = facts.known_of(positions) if key.nbytes <= _MOST_KEPT else None, device.stream()
    found = None if known is None else known.get("last")
    if found is None or found[:2] != (stream, places):
        found = stream, places, device.last_of_each(key, places)
        if known is not None:
            known["last"] = found
    return found[2]


def _write(device: Device, x: ArrayHandle, view: np.ndarray, work: Callable[[Any], object]) -> None:
    """Have `work` write to a view of `x`."""
    def assign(target: Any) -> None:
        try:
            work(target)
        except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
            raise device.refusal(error) from None

    if _wrote is not None and _wrote(x, view, assign):
        return
    x._self_storage.write_device(view, x._self_array if view is handles.meta_of(x) else None, assign)


def _placed(device: Device, meta: np.ndarray, given: Any, mask: Any, value: Any) -> Callable[[Any], None] | None:
    """What writes the rows of `value` where a mask is true; None where the device does not know better than others."""
    known = masks.known(given)
    if (meta.size < max(device.selected_from, 1) or value.dtype != meta.dtype or not meta.flags.c_contiguous
            or value.shape[1:] != meta.shape[mask.ndim:] or masks.comes_again(known)
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


def _fitting(parsed: Index, value: Any, whole: bool) -> Any:
    """The values to assign, without superfluous axes; NotOnDevice if NumPy would find too few or too many.

    The device library does not look: it repeats the values or leaves some out. `whole`: the index is a mask of all
    axes.
    """
    shape = parsed.shape()
    value = value if whole else _drop_leading(value, len(shape))
    if value.shape != shape and (value.shape != (1,) if whole else np.broadcast_shapes(value.shape, shape) != shape):
        raise NotOnDevice("the number of values differs from the number of selected elements")
    return value


#: Places of an array up to which one more of that size may be made, to note who was the last. Else the index is sorted.
_MOST_PLACES = 1 << 26


def _last_wins(device: Device, parsed: Index, value: Any) -> Any:
    """The values to assign: of several to one element, each is the last one, as NumPy's order has it.

    So it does not matter in which order the device assigns them, nor how many there are: nobody waits to find out.
    """
    count = math.prod(parsed.common)
    if count < 2 or value.size == 1 or parsed.is_distinct():
        return value
    host = [p[0] if isinstance(p[0], np.ndarray) else (masks.known(p[3]) or {}).get("value") for p in parsed.positions]
    on_host = all(values is not None for values in host)
    xp = np if on_host else device.xp
    key = xp.broadcast_to(parsed.key(device, True, host if on_host else None), parsed.common)
    # NumPy goes through the positions and the values in the order that their memory has in common.
    full, at, ndim = parsed.shape(), parsed.at, len(parsed.common)
    turn = _common_order(parsed, value, full)
    key = (key if turn is None else key[turn[1]].transpose(turn[0])).ravel()
    places = math.prod([p[1] for p in parsed.positions])
    if places <= _MOST_PLACES and count < 2**31:
        if on_host:     # where one thread writes, in this order
            last = np.empty(places, np.int32)
            last[key] = np.arange(count, dtype=np.int32)
            winners = last[key]
        else:
            winners = device.last_of_each(key, places)
    else:
        order = xp.argsort(key, kind="stable")
        winners = order[xp.searchsorted(key[order], key, side="right") - 1]
    if on_host:
        if (winners == np.arange(count)).all():
            return value
        winners = transfer.to_device(device, winners, "index with duplicates")
    value = device.xp.broadcast_to(value, full)
    if turn is None:
        return value.reshape((*full[:at], count, *full[at + ndim:])).take(winners, at).reshape(full)
    order, ways = turn      # of elements: there are no other axes
    return value[ways].transpose(order).ravel().take(winners).reshape([full[axis] for axis in order]).transpose(
        np.argsort(order).tolist())[ways]


def _common_order(parsed: Index, value: Any, full: tuple[int, ...]) -> tuple[tuple[int, ...], Any] | None:
    """The order in which NumPy goes through the axes of the positions, and its way along each; None: C order.

    It is that of the memory of the positions and of the values, as far as they have one in common. Where rows are
    assigned, only NumPy knows.
    """
    ndim = len(parsed.common)
    if ndim == len(full) == len(parsed.positions) == 1:
        return None
    metas, signed = [], []
    operands = [(p[0], parsed.common, range(ndim)) for p in parsed.positions]
    if ndim == len(full):
        operands.append((value, full, range(ndim)))
    for array, shape, axes in operands:
        strides = [0] * (len(shape) - array.ndim) + [
            0 if n == 1 else stride for n, stride in zip(array.shape, array.strides)]
        signed.append([strides[axis] for axis in axes])
        metas.append(views.meta(parsed.common, array.dtype, tuple([abs(strides[axis]) for axis in axes])))
    back = [max(along) <= 0 > min(along) for along in zip(*signed)]
    order = memory_order.order_of(metas)
    if order is None and not any(back):
        return None
    if ndim < len(full):
        raise NotOnDevice("rows are assigned at positions that are not in C order, and may be named twice")
    return order or (*range(ndim),), tuple([slice(None, None, -1) if b else _WHOLE for b in back])


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
