"""Reading and writing by index: basic indexes move only metadata, the rest runs on the device.

The device library wraps or clips an index that is out of range, and lets any of several
assignments to one element win. NumPy raises IndexError and lets the last one win, and so do we
(`options(check_indices=..., ordered_assignment=...)` for those who know better).
"""
from __future__ import annotations

import dis
import operator
import sys

import numpy as np

from . import devices, dispatch, transfer, views, wrap
from .errors import NotOnDevice
from .options import current as current_options
from .ranges import Ranges
from .storage import Storage
from .trace import begin, end

#: Arrays larger than this are not fetched whole because a loop reads elements.
_MOST_BULK = 256 << 20

_basic_types = (int, slice, type(None), type(Ellipsis), np.integer)


def getitem(x, index):
    """``x[index]``: a view, a snapshot of one element, or a new array."""
    plain = _basic(index)
    outline = wrap.outline_of(x)
    if plain is not None:
        sub = outline[plain]
        if sub.ndim == 0 and not _has_ellipsis(index):
            return element(x, sub)
        return wrap.view_of(x, sub)
    if type(x._self_storage) is not Storage:
        if type(index) is str or type(index) is list and index and all(type(i) is str for i in index):
            return wrap.view_of(x, outline[index])
        return _on_host(x, outline[_host_index(index)])
    try:
        return _take(x, outline, index)
    except NotOnDevice as reason:
        return dispatch.on_host(operator.getitem, (x, index), {}, str(reason))


def setitem(x, index, value):
    """``x[index] = value`` with NumPy's casts, errors and order."""
    outline = wrap.outline_of(x)
    if not outline.flags.writeable:
        raise ValueError("assignment destination is read-only")
    storage = x._self_storage
    if type(storage) is not Storage:
        outline[_host_index(index)] = wrap.alias_of(value, "assigned to a host array") if wrap.is_array(value) else (
            wrap.value_of(value) if wrap.is_scalar(value) else value)
        return
    plain = _basic(index)
    if type(index) is int and wrap.is_array(value) and value._self_storage is storage:
        _refuse_swap(outline, value)
    try:
        if devices.current().usable() is not None:
            raise NotOnDevice(devices.current().usable())
        if plain is None:
            _put(x, outline, index, value)
            return
        sub = outline[plain]
        value = value_for(x, sub, value)
        with storage.write_device(sub, overwrite=True) as target:
            storage.device.assign(target, value)
    except NotOnDevice as reason:
        _set_on_host(x, index, value, str(reason))


def _refuse_swap(outline, value):
    """Raise where compiled code assigns one row of an array to another: NumPy's shuffles swap rows so.

    They hold views in between, which the first assignment changes, and rows get lost (NumPy's own
    ndarrays take another way there). Python code that does the same gets what NumPy gives it.
    """
    if outline.ndim < 2 or value.ndim != outline.ndim - 1:
        return
    frame = sys._getframe(2)
    operation = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    if not operation.startswith("STORE_SUBSCR"):
        raise TypeError("compiled code is about to swap rows of a LazyNdarray through views, which would lose rows; "
                        "use rng.permutation(x), or rng.shuffle(numpy.asarray(x))")


def _set_on_host(x, index, value, reason):
    dispatch.on_host(operator.setitem, (x, _host_index(index), value), {}, reason, name="numpy.ndarray.__setitem__",
                     positions=(0,), names=())


def element(x, sub):
    """A snapshot of one element of `x`, at the 0-d outline `sub`."""
    storage = x._self_storage
    if type(storage) is not Storage:
        value = sub[()]
        return wrap.scalar_of_value(value) if isinstance(value, np.generic) and value.dtype.kind != "V" else value
    if storage.mirror is not None or storage.reads:
        value = _known_on_host(x, storage, sub)
        if value is not None:
            return wrap.scalar_of_value(value)
    array = storage.read_device(sub).copy()
    return wrap.new_scalar(Storage(storage.device, array), None, array, storage)


def _known_on_host(x, storage, sub):
    """The element, if the mirror has it, or if so many were read one by one that all are fetched now."""
    if storage.loans or storage.foreign:
        return None
    if storage.mirror is not None:
        with storage.lock:
            offset = views.offset_of(sub)
            if storage.mirror.full or storage.mirror.valid.covers(Ranges.span(offset, offset + sub.itemsize)):
                return storage.read_host(sub, "element")[()]
    outline = wrap.outline_of(x)
    if storage.reads >= current_options().bulk_reads and outline.nbytes <= _MOST_BULK:
        storage.read_host(outline, "elements were read one by one")
        return storage.read_host(sub, "element")[()]
    return None


def iterate(x):
    """The iterator over the first axis; a vector is fetched at once, since each element will be looked at."""
    outline = wrap.outline_of(x)
    if outline.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    if outline.ndim == 1 and 0 < outline.nbytes <= _MOST_BULK and type(x._self_storage) is Storage:
        x._self_storage.read_host(outline, "iterated over")
    return (x[i] for i in range(outline.shape[0]))


# -- what an index is --------------------------------------------------------------------------

def _basic(index):
    """`index` as a tuple that makes NumPy return a view even of one element, or None if it is not basic."""
    if type(index) is int or type(index) is slice:
        return (index, Ellipsis)
    if type(index) is not tuple:
        index = (index,)
    items = []
    ellipsis = False
    for i in index:
        kind = type(i)
        if kind is int or kind is slice or i is None:
            items.append(_plain_slice(i) if kind is slice else i)
        elif i is Ellipsis:
            items.append(i)
            ellipsis = True
        elif isinstance(i, np.integer) and kind is not wrap._array_type:
            items.append(operator.index(i))
        elif isinstance(i, (bool, np.bool_, list, tuple, str, np.ndarray)) or wrap.is_lazy(i):
            if wrap.is_array(i) and wrap.outline_of(i).ndim == 0 and wrap.outline_of(i).dtype.kind in "iu":
                items.append(operator.index(i))
                continue
            return None
        elif hasattr(i, "__index__"):
            items.append(operator.index(i))
        else:
            return None
    if not ellipsis:
        items.append(Ellipsis)
    return tuple(items)


def _plain_slice(s: slice) -> slice:
    """A slice whose bounds are not lazy scalars."""
    if any(wrap.is_lazy(b) for b in (s.start, s.stop, s.step)):
        return slice(*(operator.index(b) if wrap.is_lazy(b) else b for b in (s.start, s.stop, s.step)))
    return s


def _has_ellipsis(index) -> bool:
    return index is Ellipsis or type(index) is tuple and any(i is Ellipsis for i in index)


def _host_index(index):
    """The index with host arrays in place of lazy ones."""
    if wrap.is_lazy(index):
        return wrap.host_of(index, "an index on the host")
    if type(index) is tuple:
        return tuple(_host_index(i) for i in index)
    return index


def _on_host(x, result):
    if isinstance(result, np.ndarray):
        return wrap.host_result(result)
    return wrap.scalar_of_value(result) if isinstance(result, np.generic) and result.dtype.kind != "V" else result


class _Index:
    """An advanced index, item by item: arrays are on the device, or host ones still to be uploaded."""

    def __init__(self, outline, index):
        self.items = []
        self.checked = []       # (array, axis, axis length)
        self.masks = False
        items = index if type(index) is tuple else (index,)
        shape = outline.shape
        arrays = [self._array(i) for i in items]
        used = sum(0 if i is None or i is Ellipsis else a.ndim if a is not None and a.dtype == bool else 1
                   for i, a in zip(items, arrays))
        self.fits = used <= len(shape)
        axis = 0
        for i, a in zip(items, arrays):
            if i is Ellipsis:
                axis += len(shape) - used
            elif a is None and i is not None:
                axis += 1
                if not isinstance(i, slice) and not hasattr(i, "__index__"):
                    self.fits = False
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
    def _array(i):
        """What indexes as an array, else None."""
        if wrap.is_lazy(i):
            return wrap.device_of(i, "an index")
        if isinstance(i, (np.ndarray, np.bool_, bool)):
            return np.asarray(i)
        if isinstance(i, (list, tuple)):
            if any(wrap.is_lazy(j) for j in i):
                i = [wrap.value_of(j) if wrap.is_scalar(j) else j for j in i]
            array = np.asarray(i)
            return array.astype(np.intp) if array.size == 0 and array.dtype.kind == "f" else array
        if isinstance(i, devices.current().array_type):
            return i
        return None

    def host(self):
        """The index for NumPy."""
        device = devices.current()
        return tuple(transfer.to_host(device, i, "an index that is out of range", "synchronise")
                     if isinstance(i, device.array_type) else i for i in self.items)

    def check(self, outline) -> None:
        """Raise what NumPy raises for this index, if it does."""
        bad = not self.fits
        if not bad and current_options().check_indices:
            for array, _, length in self.checked:
                if array.size and not _within(array, length):
                    bad = True
                    break
        if bad:
            # NumPy's own words: the same index into an array of that shape without memory.
            np.broadcast_to(np.False_, outline.shape)[self.host()]
            raise NotOnDevice("an index that only NumPy takes")

    def device(self):
        """The index with every array on the device."""
        device = devices.current()
        return tuple(dispatch.upload_operand(device, i, np.take) if isinstance(i, np.ndarray) and i.ndim else
                     i[()] if isinstance(i, np.ndarray) else
                     _plain_slice(i) if type(i) is slice else i for i in self.items)


def _within(array, length: int) -> bool:
    """Whether all indexes are in -length ... length - 1; looks at one flag where they are on the device."""
    if isinstance(array, (np.ndarray, np.generic)):
        return int(array.min()) >= -length and int(array.max()) < length
    device = devices.current()
    xp = device.xp
    flag = xp.logical_or(xp.any(array >= length), xp.any(array < -length)) if array.dtype.kind == "i" \
        else xp.any(array >= length)
    return not transfer.to_host(device, flag, "index check", "synchronise")[()]


# -- advanced indexes on the device ------------------------------------------------------------

def _take(x, outline, index):
    device = devices.current()
    if device.usable() is not None:
        raise NotOnDevice(device.usable())
    parsed = _Index(outline, index)
    parsed.check(outline)
    token = begin("synchronise", 0, outline.shape, outline.dtype, "a mask is counted") if parsed.masks else None
    try:
        result = wrap.device_of(x)[parsed.device()]
    except device.faults:
        raise
    except Exception as error:  # contract, point 4: whatever the device refuses, NumPy decides
        raise NotOnDevice(f"{type(error).__name__} on the device: {error}") from None
    if token is not None:
        end(token)
    return wrap.wrap(device, result, scalar=not any(i is Ellipsis for i in parsed.items), fresh=True)


def _put(x, outline, index, value):
    device = devices.current()
    storage = x._self_storage
    parsed = _Index(outline, index)
    parsed.check(outline)
    items = parsed.device()
    value = value_for(x, outline, value, broadcast=False)
    if getattr(value, "ndim", 0) and not parsed.masks and current_options().ordered_assignment:
        items, value = _last_wins(device, outline, parsed, items, value)
    with storage.write_device(outline, x._self_array) as target:
        try:
            target[items] = value
        except device.faults:
            raise
        except Exception as error:  # contract, point 4: whatever the device refuses, NumPy decides
            raise NotOnDevice(f"{type(error).__name__} on the device: {error}") from None


def _last_wins(device, outline, parsed, items, value):
    """Leave of several assignments to one element only the last, as NumPy's order does."""
    arrays = [(k, i) for k, i in enumerate(items) if hasattr(i, "ndim") and i.ndim]
    if not arrays:
        return items, value
    shape = np.broadcast_shapes(*(a.shape for _, a in arrays))
    count = int(np.prod(shape))
    if count < 2:
        return items, value
    xp = device.xp
    key = None
    for (array, _, length) in parsed.checked:
        if isinstance(array, np.ndarray) and all(isinstance(a, np.ndarray) for a, _, _ in parsed.checked):
            module = np
        else:
            module = xp
            array = array if not isinstance(array, np.ndarray) else dispatch.upload_operand(device, array)
        flat = module.broadcast_to(module.where(array < 0, array + length, array), shape).ravel().astype(np.int64)
        key = flat if key is None else key * length + flat
    if isinstance(key, np.ndarray):
        _, first = np.unique(key[::-1], return_index=True)
        if len(first) == count:
            return items, value
        keep = np.sort(count - 1 - first)
        keep = transfer.to_device(device, keep, "an index with duplicates")
    else:
        # A stable sort by key: the last of each run of equal keys is the last assignment.
        order = xp.argsort(key * count + xp.arange(count))
        ordered = key[order]
        last = xp.concatenate((ordered[1:] != ordered[:-1], xp.ones(1, bool)))
        total = int(transfer.to_host(device, xp.count_nonzero(last), "duplicates in an index", "synchronise")[()])
        if total == count:
            return items, value
        keep = order[last]
    if len(arrays) != len([i for i in items if i is not Ellipsis]) or any(i is Ellipsis for i in items):
        if len(arrays) < len(parsed.checked):
            raise NotOnDevice("duplicates in an index with scalars")
        return _keep_with_slices(device, outline, items, arrays, shape, keep, value)
    rest = outline.shape[len(arrays):]
    value = xp.broadcast_to(_drop_leading(value, len(shape) + len(rest)), shape + rest)
    value = value.reshape((count, *rest))[keep]
    return tuple(xp.broadcast_to(a, shape).ravel()[keep] for _, a in arrays), value


def _keep_with_slices(device, outline, items, arrays, shape, keep, value):
    """`_last_wins` where slices, new axes or an ellipsis stand among the index arrays."""
    xp = device.xp
    blank = tuple(np.zeros(i.shape, np.intp) if hasattr(i, "ndim") and i.ndim else i for i in items)
    # Where NumPy puts the indexed axes: they come first unless all index arrays are neighbours.
    probe = np.broadcast_to(np.False_, tuple(min(n, 1) for n in outline.shape))
    free = np.broadcast_to(np.False_, outline.shape)[tuple(
        0 if hasattr(i, "ndim") and i.ndim else i for i in blank)].shape
    positions = [k for k, _ in arrays]
    neighbours = positions == list(range(positions[0], positions[-1] + 1))
    at = 0
    if neighbours:
        before = tuple(i for i in blank[:positions[0]])
        if Ellipsis in before:
            after = sum(1 for i in blank[positions[-1] + 1:])
            at = len(free) - after
        else:
            at = sum(1 for i in before if i is None or isinstance(i, slice))
    del probe
    full = free[:at] + shape + free[at:]
    value = xp.broadcast_to(_drop_leading(value, len(full)), full)
    value = value.reshape(free[:at] + (-1,) + free[at:])
    value = value[(slice(None),) * at + (keep,)]
    return tuple(xp.broadcast_to(i, shape).ravel()[keep] if hasattr(i, "ndim") and i.ndim else i
                 for i in items), value


def _drop_leading(value, ndim):
    """NumPy lets an assigned value have more dimensions, if the leading ones are 1."""
    while value.ndim > ndim and value.shape[0] == 1:
        value = value[0]
    return value


def value_for(x, target, value, broadcast=True):
    """What is assigned: a NumPy scalar of the dtype of `x`, or a device array that may still need a cast."""
    dtype = target.dtype
    device = devices.current()
    if wrap.is_scalar(value) and value._self_storage is None:
        value = value._self_value
    if wrap.is_lazy(value):
        outline = wrap.outline_of(value)
        if type(value._self_storage) is not Storage:
            return value_for(x, target, wrap.host_of(value, "assigned to the device"), broadcast)
        if outline.dtype.kind == "c" and dtype.kind not in "cb":
            _warn_complex()
        array = wrap.device_of(value)
        if value._self_storage is x._self_storage and views.overlap(outline, target):
            array = array.copy()
        if broadcast:
            array = _drop_leading(array, target.ndim)
            _check_broadcast(array.shape, target.shape)
        return array
    if isinstance(value, device.array_type):
        return _drop_leading(value, target.ndim) if broadcast else value
    host = value if isinstance(value, np.ndarray) else np.asarray(value) if isinstance(value, (list, tuple)) else None
    if host is None or host.ndim == 0:
        filled = np.empty((), dtype)
        filled[()] = value
        return filled[()]
    if broadcast:
        host = _drop_leading(host, target.ndim)
        _check_broadcast(host.shape, target.shape)
    cast = np.empty(host.shape, dtype)
    cast[...] = host
    return transfer.to_device(device, cast, "assigned from the host")


def _check_broadcast(shape, target):
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


def _warn_complex():
    import warnings
    warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning,
                  stacklevel=5)
