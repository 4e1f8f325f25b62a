"""The first alias of a storage that has never been on the host: what `settle` and `Mirror.lend` do, in fewer steps.

Measured on an H100 (``benchmarks/results/special-ways-cuda-2026-11-28.json``): ``numpy.asarray`` of 64 MiB has 0.95 of
the rate of page-locked memory with `_first_large` and 0.89 without, of 256 MiB 0.98 and 0.93. Of 1 KiB it takes 33 us
with `_first_small` and 74 without, ``cupy.asnumpy`` 16 (``statements-cuda-2026-11-28.json``).
"""
from __future__ import annotations

import functools
import math
from types import FrameType
from typing import Any

import numpy as np

from ..errors.interrupts import holding
from ..events.callers import who_asks
from ..events.trace import begin, end
from ..settings.options import current as current_options
from . import coherence, views
from .coherence import MANY
from .mirror.byte_ranges import Ranges, runs_of
from .mirror.dirty_tracking import memory_to_fill
from .mirror.mirror import DIRECT_FROM, PAGES_FROM, Mirror
from .state import ON_BOTH, StorageState, all_ended, small_limit
from .writeable import writeable

_u8 = np.dtype(np.uint8)

#: Of a view of at least so many bytes it is worth to ask whether it spans all of its storage but one part of so many.
VIEW_FROM, _LEFT_OUT = DIRECT_FROM // 2, 16


def first_alias(storage: StorageState, view: np.ndarray | None, why: str, frame: FrameType | None = None) -> Any:
    """An alias of all of a small or large storage that has never been on the host and is nobody else's; else None.

    What `settle` and `Mirror.lend` do, where there is nothing yet that they would have to look at; as much as can be is
    done while the device copies. `view`: the root's meta, or a view that spans nearly all of a large storage.
    Without one, the result is the alias's buffer, if it is for whoever `frame` calls: see `callers`.
    """
    root = storage.root
    if storage.mirror is not None or root is None or not storage.clean:
        return None
    nbytes, device, written = root.nbytes, storage.device, storage.stream
    if PAGES_FROM <= nbytes < DIRECT_FROM:
        return None
    if (not nbytes or not root._c_contiguous or storage.foreign or device.spread
            or storage.loans and not all_ended(storage) or current_options().write_tracking != "auto"
            or view is not None and not (view.flags.carray if view is storage.root_view else spans(view, nbytes))):
        return None
    try:
        current = device.stream()
    except device.faults as error:
        device.failed(error)
        raise
    if current is not written and current != written:
        return None
    with holding(storage._lock or storage.lock):
        if storage.mirror is not None or not storage.clean or storage.stream is not written:
            return None         # another thread was quicker
        first = _first_large if nbytes >= DIRECT_FROM else _first_small
        return first(storage, view, why, frame)


def _first_small(storage: StorageState, view: np.ndarray | None, why: str, frame: FrameType | None) -> Any:
    """`first_alias` of less than `PAGES_FROM` bytes."""
    if frame is not None and who_asks(frame):
        return None
    root, device = storage.root, storage.device
    empty = Mirror.reserve(root.nbytes)
    if storage.mirror is not None or not storage.clean:
        return None             # a finaliser has used the storage meanwhile
    # Something is there before the bytes are: from now on device code that writes tells of it.
    storage.mirror = empty
    writes = storage.writes
    try:
        token = begin("materialise", root.nbytes, root.shape, root.dtype, why)
        copy = device.fetch_begin(root)
        try:
            mirror = Mirror.reserve(root.nbytes)
            filling = mirror.filling(Ranges(0, root.nbytes))
            target = filling.__enter__().data
            alias = mirror.lend(root.shape, root.dtype, root.strides, 0)    # nobody has it until it is filled
            found = memoryview(alias) if view is None else alias
        except BaseException:       # memory that ran out, or an interrupt: nothing may be under way
            device.fetch_end(copy, np.empty(root.nbytes, _u8).data)
            raise
        device.fetch_end(copy, target)
        filling.__exit__(None, None, None)
        if token is not None:
            end(token)
    except BaseException as error:      # nobody gets the alias, and the storage is as it was
        _undo(storage, empty)
        device.failed(error)
        raise
    storage._nbytes = root.nbytes
    storage.clean = False
    if (storage.writes != writes or storage.mirror is not empty or empty.lent or empty.valid is not Ranges.EMPTY
            or storage.loans or storage.foreign):       # a finaliser has used the storage; nothing is called here
        _undo(storage, empty)
        return None
    storage.mirror = mirror
    if view is None:
        storage._resident = None, alias, 1
    if root.nbytes <= ON_BOTH and small_limit():
        coherence.note_on_host(storage)
    return found


def _undo(storage: StorageState, empty: Mirror) -> None:
    """The storage has no mirror again, unless a finaliser has used the one that it has."""
    if storage.mirror is empty and not empty.lent and not empty.valid:
        storage.mirror = None
        storage.update_clean()


def spans(view: np.ndarray, nbytes: int) -> bool:
    """Whether to copy a large storage of `nbytes` bytes is the quickest way to a view, whose gaps are fine or few."""
    return _spans(nbytes, view.nbytes, views.offset_of(view), view.shape, view.strides, view.itemsize)


@functools.lru_cache(64)        # programs ask for views of few forms, and before the copy each look takes its time
def _spans(nbytes: int, needed: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
           ) -> bool:
    start, stop = views.extent(views.meta(shape, np.dtype((np.void, itemsize)), strides, offset))
    if nbytes < DIRECT_FROM or stop - start < nbytes - nbytes // _LEFT_OUT or stop - start > 2 * needed:
        return False
    _, _, levels = runs_of(shape, strides, itemsize, 0)
    return not levels or math.prod(n for _, n in levels) >= MANY


def _first_large(storage: StorageState, view: np.ndarray | None, why: str, frame: FrameType | None) -> Any:
    """`first_alias` of a large storage, where the device can fill the memory directly.

    As little as can be is done before the copy begins: what has not run for a while takes three times as long.
    """
    root, device = storage.root, storage.device
    if not device.writes_unseen or (found := memory_to_fill(root.nbytes)) is None:
        return None
    memory, mapping = found
    mirror = Mirror(memory, mapping)
    if storage.mirror is not None or not storage.clean:
        return None             # a finaliser has used the storage meanwhile
    # Something is there before the bytes are: from now on device code that writes tells of it.
    storage.mirror = mirror
    if mapping.region is None:
        return None             # to be filled in stages
    writes, seen = storage.writes, root if view is None else view
    try:
        token = begin("materialise", root.nbytes, seen.shape, seen.dtype, why)
        wait = device.download_begin(root, np.ndarray(root.shape, root.dtype, memory), mapping.region)
    except device.faults as error:
        device.failed(error)
        raise
    try:
        storage._nbytes = root.nbytes
        storage.clean = False
        lent: Any = None
        if frame is None or not who_asks(frame):        # others get something else, of the same bytes
            if view is None:
                alias = mirror.lend(root.shape, root.dtype, root.strides, 0, True)
                storage._resident = None, alias, 1
                lent = memoryview(alias)
            else:
                lent = mirror.lend(view.shape, view.dtype, view.strides, storage._offset(view), writeable(view))
    except BaseException:       # an interrupt too: nothing may be under way into memory that others get
        wait()
        raise
    wait()
    if storage.writes == writes:
        mirror.valid = Ranges(0, root.nbytes)
    else:                       # a finaliser wrote on the device meanwhile
        coherence.settle_host(storage, views.meta(root.shape, root.dtype, root.strides), why)
    if token is not None:
        end(token)
    return lent
