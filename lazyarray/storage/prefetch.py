"""Copies to the host that begin before they are needed, on a stream of their own.

What is under way is not valid in the mirror before it has landed, which whoever asks for host bytes waits for. The
stream has *joined* the storage like any reader's: a device write waits for it, and so does the memory, before another
array gets it. What is written on the device meanwhile counts as not fetched.
"""
from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..events.trace import begin, end
from . import coherence, gathered, transfer, views
from .mirror.byte_ranges import Ranges

if TYPE_CHECKING:
    from ..devices import Device
    from .mirror.mirror import Mirror
    from .state import StorageState

_u8 = np.dtype(np.uint8)
_streams: dict[tuple[str, int], Any] = {}


class Incoming:
    """A copy that is under way: into the mirror itself, or into memory of its own, and from there when it lands.

    An interrupt may end any of this. So it is the storage's until all of it has arrived, and to wait twice does no
    harm: what comes late would else be written over what aliases show by then.

    Attributes
    ----------
    ranges : Ranges
        What of the mirror it will make valid; less, once the device writes there.
    """

    __slots__ = ("ranges", "keeper", "_device", "_waits", "_scatter")

    keeper: weakref.finalize    # waits when the storage dies: until then the memory is written, whoever has it

    def __init__(self, device: Device, ranges: Ranges, waits: Sequence[Callable[[], None]],
                 scatter: Sequence[tuple[np.ndarray, np.ndarray]] = ()) -> None:
        self.ranges = ranges
        self._device = device
        self._waits = waits         # they keep the host memory alive
        self._scatter = scatter     # (part of the mirror, what comes there); none if it is written directly

    def wait(self) -> bool:
        """Let the host wait until nothing is under way; False if the bytes can't come, in a forked child."""
        if self._device.usable() is not None:
            return False
        with self._device.noting:
            for wait in self._waits:
                wait()
        return True

    def land(self, storage: StorageState) -> None:
        """Wait; then what came is valid. The caller holds the storage's lock."""
        token = begin("synchronise", reason="wait for a prefetch")
        try:
            arrived = self.wait()
        except self._device.faults:     # it won't come, however often it is waited for
            storage.incoming = None
            self.keeper.detach()
            raise
        if storage.incoming is self:    # else a signal handler has had it land
            storage.incoming = None
            self.keeper.detach()
            if arrived and self.ranges:
                self._enter(storage.mirror)
        end(token)

    def _enter(self, mirror: Mirror) -> None:
        if not self._scatter:
            mirror.validate(self.ranges)
            return
        with mirror.filling(self.ranges):
            for target, source in self._scatter:
                target[...] = source


def start(storage: StorageState, view: np.ndarray, why: str) -> None:
    """Begin to make the mirror current where `view` is. The caller holds the storage's lock."""
    if storage.pending is not None:
        storage.fill()
    if gathered.is_sparse(storage, view):
        coherence.compacted(storage, view, why)
        return
    if storage.foreign or any(ref() is not None for ref in storage.loans):
        return      # what may be written at any time would not be trusted when it is asked for
    if storage.loans:
        coherence.distrust(storage, view)       # who held it is gone
    mirror = coherence.mirror_of(storage)
    if storage.incoming is not None:
        if storage.incoming.ranges.covers(coherence.missing(mirror, view, storage._offset(view))):
            return
        storage.incoming.land(storage)
    if not mirror.full:
        coherence.collect(storage)
    missing = coherence.missing(mirror, view, storage._offset(view))
    if not missing:
        return
    in_pieces = len(missing) <= transfer.MOST_PIECES
    if mirror.lent or not in_pieces and mirror.valid & Ranges.span(*views.extent(view)):
        coherence.settle_host(storage, view, why)     # somebody may be writing beside what is missing
        return
    storage._check_usable()
    device = storage.device
    nbytes = missing.nbytes if in_pieces else view.nbytes
    token = begin("materialise", nbytes, view.shape, view.dtype, why)
    try:
        with storage.place(), _stream(device):
            storage.join()
            incoming = _begin(storage, view, missing, in_pieces)
        incoming.keeper = weakref.finalize(storage, device.in_finaliser, incoming.wait)
        incoming.keeper.atexit = False
        storage.incoming = incoming
    except BaseException:       # an interrupt too: nothing may be under way into memory that others get
        with contextlib.suppress(*device.faults):       # of a device that is lost nothing comes
            _stream(device).synchronize()
        raise
    end(token)


def _stream(device: Device) -> Any:
    key = device.name, device.number()
    found = _streams.get(key)
    if found is None:
        found = _streams.setdefault(key, device.new_stream())
    return found


def _begin(storage: StorageState, view: np.ndarray, missing: Ranges, in_pieces: bool) -> Incoming:
    device, block, memory = storage.device, storage.block, storage.mirror.bytes
    if in_pieces and device.writes_unseen and storage.mirror.can_fill_directly(missing):
        low, high = missing.bounds
        source = device.view(block, (high - low,), _u8, (1,), low)
        wait = storage.mirror.begin_directly(missing, lambda target: device.download_begin(source, target))
        return Incoming(device, missing, [wait])
    if in_pieces:
        packed, waits, scatter, first = transfer.host_empty((missing.nbytes,), _u8), [], [], 0
        for low, high in missing:
            part = packed[first:first + high - low]
            waits.append(device.download_begin(device.view(block, (high - low,), _u8, (1,), low), part))
            scatter.append((memory[low:high], part))
            first += high - low
        return Incoming(device, missing, waits, scatter)
    packed = transfer.host_empty(view.shape, view.dtype)
    wait = device.download_begin(device.contiguous(storage.device_view(view)), packed)
    target = np.ndarray(view.shape, view.dtype, memory, storage._offset(view), view.strides)
    return Incoming(device, missing, [wait], [(target, packed)])
