"""Indexes with arrays and masks: what they name, and what NumPy says of those that name nothing."""
from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..devices.operations import numbered
from ..errors import NotOnDevice
from ..errors.interrupts import from_handler
from ..functions import index_bounds
from ..functions.adapters.indexing import at
from ..graph import known_ranges
from ..settings.options import current as current_options
from ..storage import facts, handles, transfer, upload_cache, views
from ..storage.storage import Storage
from . import masks, small_arrays
from .assigned_values import with_values
from .small_arrays import is_light

if TYPE_CHECKING:
    from ..devices import Device


_plain_bounds = frozenset({int, type(None)})


def plain_slice(s: slice) -> slice:
    """A slice whose bounds are not lazy scalars."""
    if type(s.start) in _plain_bounds and type(s.stop) in _plain_bounds and type(s.step) in _plain_bounds:
        return s
    if any(handles.is_lazy(b) for b in (s.start, s.stop, s.step)):
        return slice(*[operator.index(b) if handles.is_lazy(b) else b for b in (s.start, s.stop, s.step)])
    return s


def whole_number(i: Any) -> int | None:
    """What an item of an index is as an integer; None where its class has no `__index__`, or where that fails: NumPy
    takes such an item for an array.
    """
    try:
        return operator.index(i)
    except Exception as error:      # whatever it raises, NumPy drops
        if from_handler(error):
            raise
        return None


WHOLE = slice(None)
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


def uploaded(device: Device, array: Any) -> Any:
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
        items = index if type(index) is tuple else (index,)
        for i in items:     # before one is computed: it does not know then what of
            if type(i) is handles.array_type and not is_light(i) and type(i._self_storage) is Storage and (
                    i._self_storage.pending is not None):
                known_ranges.note(i)
        for i in items:
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
                whole = whole and i == WHOLE
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
                elif (number := whole_number(i)) is None or axis < len(shape) and not (
                        -shape[axis] <= number < shape[axis]):
                    fits = False            # also a list that makes no array
                axis += n
                if kind and (i.ndim or not isinstance(i, (np.ndarray, np.generic))):
                    scalar = scalar and not i.ndim
                    self.arrays.append((i, (left,) if n == 1 else tuple(range(left, left + n))))
                    basic += [WHOLE] * n
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
            if type(i) is handles.array_type and (found := small_arrays.on_host(i)) is not None and (
                    is_light(i) or i._self_storage.state != "both"):
                return found    # else what the device has of it serves: it is counted, or its bounds looked for, once
            return handles.operand_of(i, "an index")
        if isinstance(i, (list, tuple, range)):
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
        return tuple([uploaded(devices.current(), i) if getattr(i, "ndim", 0) else
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
                blank[index] = np.zeros((), meta.dtype)     # makes no array of what would be taken, which may be large
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
                self.positions.append((found, array.size, 0, SORTED))
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
        return any(array.shape == self.common and (
            given is SORTED or given is not None and facts.is_distinct(given)
            or isinstance(array, np.ndarray) and is_monotonic(array)) for array, _, _, given in self.positions)

    def key(self, device: Device, positive: bool = False, host: list[Any] | None = None) -> Any:
        """The places along the axes taken as one, in memory order; `host`: the arrays, where NumPy is to compute.

        That of one array may count from the end, unless it is to be `positive`: the device wraps around.
        """
        arrays = [p[0] for p in self.positions] if host is None else host
        if len(arrays) == 1 and not positive:
            return uploaded(device, arrays[0])
        on_host = all(isinstance(array, np.ndarray) for array in arrays)
        lengths, from_end = zip(*[(length, least is None or least < 0) for _, length, least, _ in self.positions])
        if not on_host and len(arrays) > 1:
            return device.numbered([uploaded(device, array) for array in arrays], lengths, from_end)
        key = numbered(np if on_host else device.xp, arrays, lengths, from_end)
        return uploaded(device, key) if on_host and host is None else key

    def leading(self, device: Device) -> list[Any] | None:
        """The positions along axes beside each other, from `at` on, on the device, where the device's `take_at` has a
        use for them: there is one array for each axis, and not all are on the host, where they are taken as one.
        """
        positions, axes = [p[0] for p in self.positions], self.axes
        if len(axes) != len(positions) or sorted(axes) != list(range(self.at, self.at + len(axes))) or (
                not self.sub.flags.c_contiguous or not self.common or len(positions) > 1
                and all(isinstance(p, np.ndarray) for p in positions)
                or any(p.dtype.char not in "ilq" for p in positions)):
            return None
        return [uploaded(device, p) for _, p in sorted(zip(axes, positions), key=operator.itemgetter(0))]

    def outermost(self) -> tuple[int, ...]:
        """The order in memory of the axes of what the device's `take_at` gives."""
        at, count = self.at, len(self.common)
        ndim = self.sub.ndim - len(self.axes) + count
        return (*range(at, at + count), *range(at), *range(at + count, ndim))

    def spread(self, device: Device, array: Any) -> tuple[Any, tuple[Any, ...]]:
        """The device array of `sub` with the axes that are indexed beside each other, and the index into that."""
        rest = [i for i in range(array.ndim) if i not in self.axes]
        index: list[Any] = []
        for (positions, *_), (source, axes) in zip(self.positions, self.arrays):
            positions = uploaded(device, positions)
            index += [positions] if source.dtype.kind != "b" else at(
                device.xp, positions, tuple([self.sub.shape[axis] for axis in axes]))
        return (array.transpose(*rest[:self.at], *self.axes, *rest[self.at:]),
                (*(WHOLE,) * self.at, *index))

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
SORTED = object()


def is_monotonic(array: np.ndarray) -> bool:
    """Whether each integer is greater than the one before, or each is less, and all count from one end: so that none
    comes twice.
    """
    flat = array.reshape(-1)
    if not flat.size or flat[0] < 0 <= flat[-1] or flat[-1] < 0 <= flat[0]:
        return False
    return bool((flat[1:] > flat[:-1]).all() or (flat[1:] < flat[:-1]).all())


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
