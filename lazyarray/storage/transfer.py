"""The only code that copies between the two sides, and from one device to another.

Every function here records one event (`trace.begin`/`trace.end`), however many pieces
the bytes come in, and asks the guards of `no_transfers` first. Where there are no bytes
nothing is copied, and nothing told: libraries find out what a function returns by calling
it with empty arrays.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from .. import _native
from ..devices.base import HERE, MOST_FETCHED, flat_bytes
from ..events.event import Kind
from ..events.trace import begin, end
from . import views
from .mirror.byte_ranges import Ranges, copy_ranges, runs_of
from .mirror.pages import HUGE_FROM, mapped

if TYPE_CHECKING:
    from ..devices import Device
    from .mirror.mirror import Mirror

_u8 = np.dtype(np.uint8)
#: Called with the bytes of what was made on the host, and is sent because the device needs it.
_note_sent = _native.recording.note_sent if _native.recording is not None else int
#: Called before the host waits for something that the device has.
_note_wait = _native.recording.note_wait if _native.recording is not None else int

#: Whether the scalars that are fetched here only steer a call, such as an ``any`` that decides about a warning.
steering: ContextVar[bool] = ContextVar("steering", default=False)


#: Whether anything was sent to a device in this process.
sent = False


#: The extent of an array, against its bytes, up to which it is quicker copied with its gaps than gathered first.
_FEW_GAPS = 4


def extent_bytes(array: np.ndarray) -> np.ndarray:
    """The memory from the lowest byte of an array to its highest, gaps included, as one run of bytes."""
    if views.is_dense_array(array):
        return flat_bytes(array)
    low, high = byte_bounds(array)
    lowest = array[tuple([slice(n - 1, n) if stride < 0 else slice(0, 1)
                         for n, stride in zip(array.shape, array.strides)])]
    return as_strided(np.asarray(lowest).reshape(-1).view(_u8)[:1], (high - low,), (1,))


def to_device(device: Device, array: np.ndarray, why: str, layout: bool = False, allowed: bool = False,
              source: np.ndarray | None = None) -> Any:
    """A new device array with the dtype, shape and values of `array`, in its memory order ("K").

    With `layout` it has the strides of `array` too, unless there are too many gaps, or elements that are not aligned.
    `allowed`: `no_transfers` is not asked. `source`: the array of which `array` is a copy.
    """
    if layout and array.size and not views.is_dense_array(array) and not any(n % array.itemsize for n in array.strides):
        memory = extent_bytes(array)
        if memory.nbytes <= _FEW_GAPS * array.nbytes:
            block = to_device(device, memory, why)
            offset = array.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
            return device.view(block, array.shape, array.dtype, array.strides, offset)
    dense = np.array(array, order="K", copy=None if views.is_dense_array(array) else True, subok=False)
    global sent
    sent = True
    if allowed:
        _note_sent(dense.nbytes)
    token = begin("upload", dense.nbytes, dense.shape, dense.dtype, why, source=array if source is None else source,
                  allowed=allowed) if dense.nbytes else None
    with device.noting:
        block = device.empty((dense.nbytes,), _u8)
        if dense.nbytes:
            device.upload(flat_bytes(dense), block)
    result = device.view(block, dense.shape, dense.dtype, dense.strides, 0)
    end(token)
    return result


#: Bytes up to which an array is fetched in the quickest way.
FETCHED = 4096


def to_host(device: Device, array: Any, why: str, kind: str = "materialise", pooled: bool = False) -> np.ndarray:
    """A new C-contiguous host array with the values of a device array.

    The copy, and that to dense memory before it, is work of the device on which the array lies. `kind` is "synchronise"
    where the program only waits for a flag or a count. `pooled`: its memory is not its own.
    """
    token = begin(kind, array.nbytes, array.shape, array.dtype, why) if array.nbytes else None
    _note_wait()
    result = (host_empty if pooled else np.empty)(array.shape, array.dtype)
    if array.size:
        with device.noting:
            if array.nbytes <= FETCHED and device.on_current(array) and device.contiguity(array)[0]:
                device.fetch_end(device.fetch_begin(array), result.reshape(-1).view(np.uint8).data)
            else:
                with HERE if device.count == 1 else device.on(device.device_of(array)):
                    device.download(device.contiguous(array), result)
    end(token)
    return result


@contextmanager
def fetching(device: Device, array: Any, why: str) -> Iterator[np.ndarray]:
    """A context at whose end there are the values of a C-contiguous array that steers a call.

    What is issued within it is not waited for, if the array is small.
    """
    token = begin("synchronise", array.nbytes, array.shape, array.dtype, why)
    _note_wait()
    result = np.empty(array.shape, array.dtype)
    with device.noting:
        if array.nbytes > MOST_FETCHED:
            yield result
            device.download(array, result)
        else:
            copy = device.fetch_begin(array)
            try:
                yield result
            finally:        # nothing may be under way when an error or an interrupt is raised
                device.fetch_end(copy, result.reshape(-1).view(np.uint8).data)
    end(token)


def to_current(device: Device, array: Any, why: str) -> Any:
    """`array` itself if it lies on the current device; otherwise a copy there, without gaps, in its memory order.

    The current stream has waited for what wrote `array`. Results are laid out after their operands.
    """
    if device.on_current(array):
        return array
    token = begin("peer copy", array.nbytes, array.shape, array.dtype, why) if array.nbytes else None
    if array.ndim < 2 or array.flags.forc:
        result = device.from_peer(array)
    else:
        order = views.by_strides(array)
        result = device.from_peer(array.transpose(*order)).transpose(*np.argsort(order).tolist())
    end(token)
    return result


def upload(device: Device, block: Any, mirror: Mirror, ranges: Ranges, view: np.ndarray, why: str,
           placed: bool = False, kind: Kind = "upload") -> None:
    """Copy byte ranges of a mirror to the same place in the device block.

    `placed`: they are not there yet only because small arrays are computed on the host. No program can help that, so
    `no_transfers` allows it.
    """
    if placed:
        _note_sent(ranges.nbytes)
    token = begin(kind, ranges.nbytes, view.shape, view.dtype, why, allowed=placed)
    for found, start, part in mirror.as_found(ranges):
        if start:
            target = device.view(block, (found.nbytes,), _u8, (1,), start)
            device.upload_ranges(found, target, [(low - start, high - start) for low, high in part])
        else:
            device.upload_ranges(found, block, part)
    end(token)


#: More pieces than this are copied by rows, or gathered on the device and copied as one.
MOST_PIECES = 16


def download(device: Device, block: Any, mirror: Mirror, ranges: Ranges, view: np.ndarray, offset: int,
             why: str, lend: bool = False, kind: Kind = "materialise") -> None:
    """Copy byte ranges of a device block, all within `view`, to the same place in the mirror.

    Nothing in the extent of `view` may be ahead on the host: a gather rewrites all of it, unless there are aliases,
    which somebody may be writing between the pieces. `lend`: an alias follows.
    """
    in_pieces = len(ranges) <= MOST_PIECES
    nbytes = ranges.nbytes if in_pieces else view.nbytes
    token = begin(kind, nbytes, view.shape, view.dtype, why)
    _note_wait()
    if not in_pieces and mirror.lent:
        low, found = gathered_bytes(device, block, view, offset)
        with mirror.filling(ranges) as target:
            copy_ranges(target, 0, found, low, ranges)
        end(token)
        return
    if not in_pieces:
        ranges = Ranges.of_view(view.shape, view.strides, view.itemsize, offset)
    if lend and in_pieces and device.writes_unseen and mirror.can_fill_directly(ranges):
        start, stop = ranges.bounds
        source = device.view(block, (stop - start,), _u8, (1,), start)
        mirror.begin_directly(ranges, lambda target: device.download_begin(source, target))()
        mirror.validate(ranges)
    else:
        _fill(device, block, mirror, ranges, view, offset, in_pieces)
    end(token)


def _fill(device: Device, block: Any, mirror: Mirror, ranges: Ranges, view: np.ndarray, offset: int,
          in_pieces: bool) -> None:
    with mirror.filling(ranges) as target:
        if in_pieces:
            for start, stop in ranges:
                device.download(device.view(block, (stop - start,), _u8, (1,), start), target[start:stop])
        elif not device.download_rows(block, target, *runs_of(view.shape, view.strides, view.itemsize, offset)):
            packed = host_empty(view.shape, view.dtype)
            source = device.view(block, view.shape, view.dtype, view.strides, offset)
            device.download(device.contiguous(source), packed)
            np.ndarray(view.shape, view.dtype, target, offset, view.strides)[...] = packed


def gathered_bytes(device: Device, block: Any, view: np.ndarray, offset: int) -> tuple[int, np.ndarray]:
    """The bytes of a view of a device block: where the first lies, and an array up to the last, rubbish in the gaps."""
    packed = host_empty(view.shape, view.dtype)
    device.download(device.contiguous(device.view(block, view.shape, view.dtype, view.strides, offset)), packed)
    if view.flags.c_contiguous:
        return offset, flat_bytes(packed)
    before = offset - views.offset_of(view)
    low, high = [before + end for end in views.extent(view)]
    found = np.empty(high - low, _u8)
    np.ndarray(view.shape, view.dtype, found, offset - low, view.strides)[...] = packed
    return low, found


def host_empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """New host memory for a copy from the device: from the pool, whose copies are quick, if it is large."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < HUGE_FROM:
        return np.empty(shape, dtype)
    try:
        return np.ndarray(shape, dtype, mapped(nbytes)[0])
    except OSError:     # no more mappings; if it is memory that lacks, NumPy says so
        return np.empty(shape, dtype)
