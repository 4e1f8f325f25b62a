"""Indexes with arrays and masks on the device, checked and ordered as NumPy does."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native, devices
from ..errors import NotOnDevice
from ..events.trace import begin, end
from ..functions import index_bounds, memory_order
from ..graph import known_ranges
from ..graph.record.taken import take_of, takes
from ..settings.options import current as current_options
from ..storage import facts, handles, transfer, views
from ..storage.storage import Storage
from . import masks, small_arrays
from .assigned_values import ONE_VALUE, drop_leading, value_for
from .parsed_index import WHOLE, Index, is_monotonic, uploaded
from .small_arrays import device_operand, is_light

if TYPE_CHECKING:
    from ..devices import Device
    from ..storage.handles import ArrayHandle, ScalarHandle


def take(x: ArrayHandle, meta: np.ndarray, index: Any) -> ArrayHandle | ScalarHandle:
    device = devices.current()
    if (reason := device.usable()) is not None:
        raise NotOnDevice(reason)
    bounds, writes = None, -1
    if meta.dtype.kind in "iu":
        known_ranges.note(x)        # before it is computed, for those that are taken of it
        writes = getattr(x._self_storage, "writes", -1)
        bounds = facts.bounds_of(x)
    index = _by_positions(meta, index)
    if _is_mask(index, meta):
        with x._self_storage.place():
            try:
                mask = handles.operand_of(index, "an index")
                found = _rows(device, x, meta, mask, masks.known(index))
            except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
                raise device.refusal(error) from None
            taken = handles.fresh(device, found)
        return taken if writes < 0 else facts.with_bounds(taken, x, bounds, writes, facts.is_distinct(x))
    rows = None if device.spread else rows_of(meta, index)
    if rows is not None:
        if _recorded_rows is not None and (recorded := _recorded_rows(x, index)) is not None:   # now that it is known
            return recorded     # type: ignore[no-any-return]
        try:
            found = device.take_at(_device_view(x, rows.sub), rows.keys(), rows.axis)
        except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
            raise device.refusal(error) from None
        return facts.with_bounds(handles.fresh(device, found), x, bounds, writes)
    with x._self_storage.place():
        return _taken(device, x, meta, index, bounds, writes)


def _is_mask(index: Any, meta: np.ndarray) -> bool:
    """Whether an index is nothing but a mask of the first axes, which lies in C order, as the array does."""
    if type(index) is not handles.array_type or is_light(index) or not meta.flags.c_contiguous:
        return False
    form = handles.meta_of(index)
    return form.dtype == _bool and form.ndim > 0 and form.flags.c_contiguous and form.shape == meta.shape[:form.ndim]


def _by_positions(meta: np.ndarray, index: Any) -> Any:
    """An index, with positions in place of a short mask of the first axis that the host has: it looks where that is
    true in less time than it waits for the device to count.
    """
    if type(index) is handles.array_type:
        host = small_arrays.on_host(index)
        if host is not None and not is_light(index) and index._self_storage.state == "both":
            return index    # it is counted once
    else:
        host = index if type(index) is np.ndarray else None
    if host is None or host.dtype != _bool or host.ndim != 1 or host.nbytes > _MOST_LOOKED_AT or (
            host.shape != meta.shape[:1]):
        return index
    positions = handles.small_on_host(host.nonzero()[0])
    return index if positions is None else positions


_bool = np.dtype(bool)
_recorded_rows = None if _native.recording is None else _native.recording.rows


class Rows(NamedTuple):
    """What whole numbers and slices leave of an array, lazy arrays of positions along axes beside each other, from
    `axis` on, what has their forms (the ndarrays of those that are nothing else yet, metas of the others), and the
    shape that they are broadcast to.
    """

    sub: np.ndarray
    positions: Sequence[Any]
    forms: Sequence[np.ndarray]
    axis: int
    common: tuple[int, ...]

    def keys(self) -> list[Any]:
        """The positions on the device, which nobody may write to."""
        return [device_operand(p)[0] if is_light(p) else handles.device_of(p, "an index") for p in self.positions]

    def are_distinct(self) -> bool:
        """Whether no two rows are the same."""
        distinct = [form.shape for p, form in zip(self.positions, self.forms)
                    if (is_monotonic(form) if is_light(p) else facts.is_distinct(p))]
        return any(shape == self.common for shape in distinct) or len(distinct) > 1 and (
            np.broadcast_shapes(*distinct) == self.common)      # along each axis at least one of them differs

    def shape(self) -> tuple[int, ...]:
        """That of what is taken."""
        shape, axis = self.sub.shape, self.axis
        return (*shape[:axis], *self.common, *shape[axis + len(self.positions):])

    def lengths(self) -> tuple[int, ...]:
        """Of the axes that the positions are along."""
        return self.sub.shape[self.axis:self.axis + len(self.positions)]

    def are_in_turn(self, value: Any) -> bool:
        """Whether NumPy goes through the rows and their values in C order, and it takes little to find out which one of
        several values for an element is the last.
        """
        if any(is_light(p) for p in self.positions):
            return False
        count, ndim = len(self.positions), self.sub.ndim
        if any(form.shape != self.common for form in self.forms):
            return False
        in_turn = count == ndim == 1 or all(form.flags.c_contiguous for form in self.forms) and (    # a vector as it is
            count == 1 or count < ndim or handles.meta_of(value).flags.c_contiguous)
        return in_turn and all(_are_few(math.prod(self.lengths()), p) for p in self.positions)

    def order(self, device: Device, keys: list[Any]) -> Any:
        """The order of a value for each of those `are_in_turn`, for `Device.put_at`: of several for one element, each
        is the last one, as in `_last_wins`.
        """
        lengths = self.lengths()
        if len(keys) == 1:
            return _order_of_rows(lengths[0], self.positions[0], keys[0])
        return _kept_order(self.positions, keys, (device.stream(), lengths), lambda: device.last_of_each(
            device.numbered(keys, lengths, [True] * len(keys)), math.prod(lengths)))

    def are_of(self, storage: Any) -> bool:
        """Whether some positions are bytes of a storage."""
        return any((_home_of(p) if is_light(p) else p._self_storage) is storage for p in self.positions)


def _home_of(x: ArrayHandle) -> Any:
    """The storage of the memory in which an array lies that is nothing but an ndarray; None if it has none yet."""
    home = _native.recording.home(x)        # type: ignore[union-attr]
    return x._self_storage if home is None else home.storage


def rows_of(meta: np.ndarray, index: Any) -> Rows | None:
    """The rows that an index names: by lazy arrays of positions along axes beside each other, which are all there, by
    whole numbers before and behind them, and by slices around these. None of another index, and of one that has to be
    looked at.
    """
    if type(index) is handles.array_type:
        items, at, end, axis = (index,), 0, 1, 0
    else:
        found = _run_of(index, meta.ndim)
        if found is None:
            return None
        items, at, end, axis = found
    positions = items[at:end]
    if len(items) > 1:
        meta = _but_for(meta, items, at, end)
        if meta is None:
            return None
    if axis + len(positions) > meta.ndim or meta.ndim != 1 and not meta.flags.c_contiguous:
        return None
    forms = []
    for p in positions:
        if not is_light(p) and type(p._self_storage) is Storage and (
                p._self_array is not None or p._self_storage.pending is not None):
            form = handles.meta_of(p)
        else:
            form = small_arrays.on_host(p)      # type: ignore[assignment]
            if form is None or form.nbytes > _MOST_LOOKED_AT:
                return None
        if form.dtype.kind not in "iu" or not form.ndim or not form.size or form.ndim > 1 and (
                not form.flags.c_contiguous):
            return None
        forms.append(form)
    common, unknown = forms[0].shape, []
    if any(form.shape != common for form in forms):
        try:
            common = np.broadcast_shapes(*[form.shape for form in forms])
        except ValueError:      # NumPy has words for it
            return None
    for p, form, length in zip(positions, forms, meta.shape[axis:]):
        if is_light(p):
            bounds = int(form.min()), int(form.max())
        else:
            known_ranges.note(p)        # before one is computed: it does not know then what of
            bounds = facts.bounds_of(p)     # type: ignore[assignment]
            if bounds is None or bounds[0] < -length or bounds[1] >= length:
                bounds = known_ranges.look_through(p)   # type: ignore[assignment]
            if bounds is None:
                unknown.append((p, length))
                continue
        if bounds[0] < -length or bounds[1] >= length:
            return None
    if unknown and not (current_options().check_indices and _are_within(unknown)):
        return None
    return Rows(meta, positions, forms, axis, common)


def _are_within(positions: Sequence[tuple[Any, int]]) -> bool:
    """Whether lazy arrays of positions lie within so many: the host waits once for all of which it is not known."""
    found = index_bounds.bounds([(p, handles.device_of(p, "an index"), -length, length) for p, length in positions])
    return all(low >= -length and high < length for (low, high), (_, length) in zip(found, positions))


def _run_of(index: Any, ndim: int) -> tuple[tuple[Any, ...], int, int, int] | None:
    """An index as a tuple; where the lazy arrays in it are, which lie beside each other; and how many axes the slices
    before them leave. None of another index than `rows_of` has.
    """
    if type(index) is not tuple:
        return None
    at, end, count = 0, len(index), len(index)
    while at < count and (type(index[at]) is slice or index[at] is Ellipsis):
        at += 1
    while at < count and type(index[at]) is int:
        at += 1
    while end > at and (type(index[end - 1]) is slice or index[end - 1] is Ellipsis):
        end -= 1
    while end > at and type(index[end - 1]) is int:
        end -= 1
    if end == at or any(type(i) is not handles.array_type for i in index[at:end]):
        return None
    wide = [k for k, i in enumerate(index) if i is Ellipsis]
    if len(wide) > 1 or count - len(wide) > ndim:
        return None
    if wide and wide[0] < at:
        more = (WHOLE,) * (ndim - count + 1)
        index = (*index[:wide[0]], *more, *index[wide[0] + 1:])
        at, end = at + len(more) - 1, end + len(more) - 1
    return index, at, end, sum(type(i) is slice for i in index[:at])


def _but_for(meta: np.ndarray, items: tuple[Any, ...], at: int, end: int) -> np.ndarray | None:
    """What the items besides those from `at` to `end`, numbers and slices, leave of an array; None: they may raise."""
    whole = True
    for i in (*items[:at], *items[end:]):
        if type(i) is slice:
            if i != WHOLE:
                whole = False
                if any(type(n) is not int and n is not None for n in (i.start, i.stop, i.step)) or i.step == 0:
                    return None
        elif i is not Ellipsis:
            whole = False
    if whole:
        return meta
    try:
        return meta[(*items[:at], *(WHOLE,) * (end - at), *items[end:])]
    except IndexError:      # NumPy has words for the index as it is
        return None


#: Bytes of positions, or of a mask, that are looked through on the host at each use: for 16 KiB of a mask NumPy takes 6
#: to 17 microseconds, for as many of positions 3.
_MOST_LOOKED_AT = 1 << 14


def _taken(device: Device, x: ArrayHandle, meta: np.ndarray, index: Any, bounds: facts.Bounds | None,
           writes: int) -> ArrayHandle | ScalarHandle:
    parsed = Index(meta, index)
    parsed.check()
    mask = parsed.mask
    try:
        if parsed.plain:
            token = begin("synchronise", 0, meta.shape, meta.dtype, "boolean-mask size") if parsed.masks else None
            found = _laid_out(device, parsed, handles.device_of(x)[parsed.device()])
            end(token)
            taken = handles.wrap(device, found, (x,), scalar=not any(i is Ellipsis for i in parsed.items), fresh=True)
        elif mask is not None and not _is_looked_through(mask) and parsed.arrays[0][1][0] == 0 and (
                _is_in_order(device, parsed.sub, mask)):
            known = masks.known(parsed.lazy.get(id(mask)))
            taken = handles.fresh(device, _laid_out(device, parsed, _rows(device, x, parsed.sub, mask, known)))
        else:
            taken = handles.fresh(device, _gathered(device, x, parsed))
    except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
        raise device.refusal(error) from None
    if bounds is None and any(i is x for i in parsed.lazy.values()):    # its own index, which was looked at
        bounds = facts.bounds_of(x)
    return facts.with_bounds(taken, x, bounds, writes, mask is not None and facts.is_distinct(x))


def _is_looked_through(mask: Any) -> bool:
    """Whether a mask is on the host, and short: `Index.settle` looks where it is true."""
    return isinstance(mask, np.ndarray) and mask.nbytes <= _MOST_LOOKED_AT


def _gathered(device: Device, x: ArrayHandle, parsed: Index) -> Any:
    """A new device array of what an index names, in NumPy's memory order, by one kernel where that will do."""
    parsed.settle(device)
    order = None if len(parsed.axes) == parsed.sub.ndim and len(parsed.common) < 2 else memory_order.order_of_indexed(
        parsed.meta, tuple(parsed.items))
    if (order is None and not parsed.at or order == parsed.outermost()) and (
            leading := parsed.leading(device)) is not None:
        return device.take_at(_device_view(x, parsed.sub), leading, parsed.at)
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


def _is_in_order(device: Device, sub: np.ndarray, mask: Any) -> bool:
    """Whether an array and a mask of its first axes lie in C order, as `Selected` has it."""
    return sub.flags.c_contiguous and (isinstance(mask, np.ndarray) or device.contiguity(mask)[0])


def _rows(device: Device, x: ArrayHandle, sub: np.ndarray, mask: Any, known: dict[str, Any] | None) -> Any:
    """A new device array of the rows of a view where a mask is true, which is counted."""
    array = _device_view(x, sub)
    mask = uploaded(device, mask)
    if array.size and device.contiguity(array)[0] and device.contiguity(mask)[0] and (
            device.on_current(array, mask)) and (
            selected := masks.selected(device, known, mask, sub)) is not None and (
            found := selected.take(array, mask.ndim)) is not None:
        return found
    token = begin("synchronise", 0, sub.shape, sub.dtype, "boolean-mask size")
    found = array[mask]
    end(token)
    return found


def _laid_out(device: Device, parsed: Index, result: Any) -> Any:
    """What an index takes of an array, in the memory order of NumPy's result."""
    if result.ndim < 2:
        return result
    order = memory_order.order_of_indexed(parsed.meta, tuple(parsed.items))
    return result if order is not None and len(order) != result.ndim else memory_order.laid_out(device, result, order)


def put(x: ArrayHandle, meta: np.ndarray, index: Any, value: Any) -> None:
    device, storage = devices.current(), x._self_storage
    one = type(value) is not handles.array_type and isinstance(value, ONE_VALUE)
    rows = None if device.spread else rows_of(meta, index if one else _by_positions(meta, index))
    if rows is not None and not rows.are_of(storage) and (one or _is_fit(value, rows)):
        once = one or rows.are_distinct()
        if once or rows.are_in_turn(value):
            keys = rows.keys()
            order = None if once else rows.order(device, keys)
            given = value_for(x, rows.sub, value, by_arrays=True)
            _write(device, x, rows.sub, lambda target: device.put_at(target, keys, given, order, rows.axis))
            return
    parsed = Index(meta, index)
    parsed.check(value)
    for i in parsed.lazy.values():
        if i._self_storage is storage:      # the device's threads know no order
            index = index if type(index) is tuple else (index,)
            return put(x, meta, tuple([i.copy() if getattr(i, "_self_storage", None) is storage else i
                                       for i in index]), value)
    laid = handles.meta_of(value) if handles.is_array(value) else value
    value = value_for(x, parsed.sub, value, by_arrays=True)
    array = getattr(value, "ndim", 0) > 0
    mask, sub = parsed.mask, parsed.sub
    if array and parsed.masks and (parsed.plain or not meta.size):
        raise NotOnDevice("0-d masks, and assignments to an empty selection, are not supported on the device")
    if parsed.plain:
        token = begin("synchronise", 0, meta.shape, meta.dtype, "boolean-mask size") if parsed.masks else None
        items = parsed.device()
        _write(device, x, meta, lambda target: operator.setitem(target, items, value))
        end(token)
        return
    if mask is not None and mask.size and not array:        # without a wait
        where = uploaded(device, mask)
        if mask.ndim < sub.ndim:
            where = where.reshape([n if axis in parsed.arrays[0][1] else 1 for axis, n in enumerate(sub.shape)])
        _write(device, x, sub, lambda target: device.xp.copyto(target, value, "unsafe", where))
        return
    if mask is not None and mask.size and parsed.arrays[0][1][0] == 0 and not _is_looked_through(mask):
        placed = _placed(device, sub, parsed.lazy.get(id(mask)), uploaded(device, mask), value)
        if placed is not None:
            _write(device, x, sub, placed)
            return
    try:
        parsed.settle(device)
        if array:
            # Of a mask of all axes NumPy takes a vector or a scalar.
            value = _fitting(parsed, value, sub is meta and mask is not None and mask.ndim == meta.ndim)
            if parsed.checked and current_options().ordered_assignment:
                value = _last_wins(device, parsed, value, laid)
    except ValueError as error:
        raise NotOnDevice(f"the value cannot be broadcast to the indexed shape: {error}") from None
    if not sub.size or 0 in parsed.common:
        return
    if (leading := parsed.leading(device)) is not None:
        _write(device, x, sub, lambda target: device.put_at(target, leading, value, None, parsed.at))
        return
    if (merged := parsed.merged(None)) is None:
        _write(device, x, sub, lambda target: operator.setitem(*parsed.spread(device, target), value))
        return
    view, axis, _ = merged
    key = (*(WHOLE,) * axis, parsed.key(device))
    _write(device, x, view, lambda target: operator.setitem(target, key, value))


_wrote = None if _native.recording is None else _native.recording.wrote


def _is_fit(value: Any, rows: Rows) -> bool:
    """Whether a value has an element for each that is assigned to."""
    return handles.is_array(value) and handles.meta_of(value).shape == rows.shape()


def _are_few(places: int, positions: Any) -> bool:
    """Whether the last of the values for one element can be found with an array of so many places."""
    return (positions.ndim == 1 and places <= _MOST_PLACES and positions.size < 2**31
            and current_options().ordered_assignment)


#: Bytes of an index up to which its `_order_of_rows` is kept.
_MOST_KEPT = 16 << 20


def _order_of_rows(places: int, positions: Any, key: Any) -> Any:
    """`Device.last_of_each` of an index along an axis of so many places, kept for the next use of it on this stream.
    None where that takes too much.
    """
    if not _are_few(places, positions):
        return None
    device = devices.current()
    return _kept_order([positions], [key], (device.stream(), (places,)), lambda: device.last_of_each(key, places))


def _kept_order(positions: Sequence[Any], keys: Sequence[Any], where: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What `make` gives for these positions, on a stream and of axes (`where`), kept while nobody writes to them."""
    known = [facts.known_of(p) for p in positions]      # before they are read: they are forgotten by who writes
    if sum([key.nbytes for key in keys]) > _MOST_KEPT or any(one is None for one in known):
        return make()
    first, *others = known
    found = first.get("order")      # type: ignore[union-attr]
    if found is None or found[0] != where or len(found[1]) != len(others) or any(
            map(operator.is_not, found[1], others)):
        found = first["order"] = where, others, make()      # type: ignore[index]
    return found[2]


def for_native() -> dict[str, Any]:
    return {"order_of_rows": _order_of_rows, "uploaded": uploaded, "takes": takes, "take_of": take_of,
            "getitem": operator.getitem}


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
    if (not meta.size or value.dtype != meta.dtype or not meta.flags.c_contiguous
            or value.shape[1:] != meta.shape[mask.ndim:]
            or not (device.contiguity(value)[0] and device.contiguity(mask)[0] and device.on_current(mask, value))
            or (selected := masks.selected(device, masks.known(given), mask, meta)) is None):
        return None
    if value.shape[0] != selected.count:
        raise NotOnDevice("the number of values differs from the number of True elements in the mask")

    def write(target: Any) -> None:
        if not selected.put(target, value):
            target[mask] = value

    return write


def _fitting(parsed: Index, value: Any, whole: bool) -> Any:
    """The values to assign, without superfluous axes; NotOnDevice if NumPy would find too few or too many.

    The device library does not look: it repeats the values or leaves some out. `whole`: the index is a mask of all
    axes.
    """
    shape = parsed.shape()
    value = value if whole else drop_leading(value, len(shape))
    if value.shape != shape and (value.shape != (1,) if whole else np.broadcast_shapes(value.shape, shape) != shape):
        raise NotOnDevice("the number of values differs from the number of selected elements")
    return value


#: Places of an array up to which one more of that size may be made, to note who was the last. Else the index is sorted.
_MOST_PLACES = 1 << 26


def _last_wins(device: Device, parsed: Index, value: Any, laid: Any) -> Any:
    """The values to assign: of several to one element, each is the last one, as NumPy's order has it.

    So it does not matter in which order the device assigns them, nor how many there are: nobody waits to find out.
    `laid`: the values as they were given, whose copy on the device may lie in memory in another way.
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
    turn = _common_order(parsed, laid if isinstance(laid, np.ndarray) else value, full)
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
        order = np.argsort(key, kind="stable") if on_host else device.sort_rows(key, True)
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
    operands = [handles.meta_of(given) if handles.is_array(given) else array for array, _, _, given in parsed.positions]
    for array in [*operands, value] if ndim == len(full) else operands:
        strides = [0 if n == 1 else stride for n, stride in zip(array.shape, array.strides)][-ndim:]
        strides = [0] * (ndim - len(strides)) + strides
        signed.append(strides)
        item = np.dtype((np.void, array.dtype.itemsize))
        metas.append(views.meta(parsed.common, item, tuple([abs(n) for n in strides])))
    back = [max(along) <= 0 > min(along) for along in zip(*signed)]
    order = memory_order.order_of(metas)
    if order is None and not any(back):
        return None
    if ndim < len(full):
        raise NotOnDevice("rows are assigned at positions that are not in C order, and may be named twice")
    return order or (*range(ndim),), tuple([slice(None, None, -1) if b else WHOLE for b in back])
