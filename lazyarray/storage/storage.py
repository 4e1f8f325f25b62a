"""Storage: one allocation with up to two homes, and the four verbs that reach its bytes.

A storage is current on the DEVICE, on the HOST or on BOTH, or it is PENDING: not computed yet. `coherence` says what is
current where. No other code reads or writes a block or a mirror:

========================  ==========================================================
``read_device(view)``     bring the view up to date on the device
``write_device(view)``    the same, and afterwards only the device is right, except
                          that aliases which foreign code holds are refreshed
``read_host(view)``       a private, read-only host array; BOTH stays BOTH
``expose_host(view)``     an alias for foreign code: writable and live
========================  ==========================================================
"""
from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors.interrupts import holding
from ..events import trace
from ..settings.options import current as current_options
from . import coherence, dirty_upload, exports, first_download, gathered, pending_on_host, transfer, views
from .mirror.byte_ranges import Ranges
from .mirror.mirror import Mirror
from .state import ON_BOTH, StorageState, all_ended, small_limit, tick
from .writeable import both_or_neither, writeable

if TYPE_CHECKING:
    from ..devices import Device
    from .mirror.aliases import Early

__all__ = ["Storage", "adopted", "write_all"]


#: So many views of an array of up to `ON_BOTH` bytes are asked for as buffers, one after the other, before one alias
#: serves more: to lend one took 13 us, 35 where 640 were alive, and to see a part takes 4.
_FEW_VIEWS = 8
_ALL = object()     # in place of the view that an alias is of


class Storage(StorageState):
    """Bytes with a device home, a host home, or both.

    Parameters
    ----------
    device : Device
    root : device array or None
        The array that was wrapped; its extent is the storage. None if the bytes are born
        on the host (see `from_host`).
    """

    @classmethod
    def from_host(cls, device: Device, array: np.ndarray) -> tuple[Storage, np.ndarray]:
        """A storage, current on the host, with a copy of a dense array; and the array's meta in it."""
        if not views.is_dense_array(array):
            array = np.array(array, order="K")
        self = cls(device, None)
        self._nbytes = array.nbytes
        self.clean = False
        self.mirror = Mirror.reserve(max(array.nbytes, 1), current_options().write_tracking)
        whole = Ranges.span(0, array.nbytes)
        with self.mirror.filling(whole) as target:
            np.ndarray(array.shape, array.dtype, target, 0, array.strides)[...] = array
        self.host_dirty = whole
        return self, views.meta(array.shape, array.dtype, array.strides)

    @classmethod
    def on_both(cls, device: Device, array: np.ndarray, why: str) -> tuple[Storage, np.ndarray]:
        """The same, with the copy uploaded: current on both sides."""
        born, meta = cls.from_host(device, array)
        copy = born.mirror.view(meta.shape, meta.dtype, meta.strides, 0)    # type: ignore[union-attr]
        self = cls(device, transfer.to_device(device, copy, why, source=array))
        self._nbytes, self.mirror = born._nbytes, born.mirror
        coherence.note_on_host(self)
        return self, meta

    @classmethod
    def over_host(cls, device: Device, array: np.ndarray, lent: set[Early], root: Any = None) -> Storage:
        """A storage, current on the host, over the memory of a small array that is nobody else's, of which the aliases
        `lent` are; with the device array `root`, current there alone.
        """
        self = cls(device, root)
        for _ in range(1000):
            if array.flags.writeable:
                break
            time.sleep(1e-3)        # NumPy is writing it in another thread, and says that it is read-only meanwhile
        memory = transfer.extent_bytes(array) if array.nbytes else np.empty(1, np.uint8)
        self._nbytes = array.nbytes and memory.nbytes
        self.mirror = Mirror.of(memory, current_options().write_tracking)
        if root is None:
            self.clean = False
            self.mirror.valid = Ranges.span(0, memory.nbytes)
            self.host_dirty = self.placed = Ranges.span(0, self._nbytes)    # of an array without elements none
            self.host = True
            self.mirror.take_on(lent)
        return self

    # -- the four verbs --------------------------------------------------------------------

    def read_device(self, view: np.ndarray, array: Any = None, why: str = "operand") -> Any:
        """The device array of `view`, current. `array`: it, if the caller has it already."""
        if not self.clean and self.pending is not None:
            self.fill()
        self.used = tick()
        if self.clean:
            self.join()
            found = self._array(view) if array is None else array
            if self.clean:      # else it may have been spilled before `found` was there
                return found
        with holding(self.lock):
            if view is not self.root_view or not dirty_upload.at_once(self):
                coherence.settle_device(self, Ranges.span(*views.extent(view)), view, why)
                self.join()
            return self._array(view) if array is None else array

    def _array(self, view: np.ndarray) -> Any:
        return self.root if view is self.root_view and self.root is not None else self.device_view(view)

    def write_device(self, view: np.ndarray, array: Any, work: Callable[[Any], Any], overwrite: bool = False) -> Any:
        """Return ``work(target)``, which may write `target`, the device array of `view`, and no other byte.

        `array`: it, if the caller has it already. With `overwrite` all of it will be written, so that bytes which only
        the host has are not uploaded first.

        The lock is held, and the storage is not clean, from the first look at it until aliases see what was written.
        So other threads, which take no lock to read what is clean, see the bytes as they were or as they are then.
        """
        if self.device.spread:
            with holding(self._lock or self.lock), self.place(noting=False):
                return self._write(view, array, work, overwrite)
        with holding(self._lock or self.lock):
            return self._write(view, array, work, overwrite)

    def written(self, view: np.ndarray) -> None:
        """A view of a storage that was current on the device alone has been written there."""
        self.reads = 0
        self.writes += 1
        if self.host_dirty is not Ranges.EMPTY or not self.device_only:     # a finaliser has asked for the mirror
            coherence.end_write(self, view)
        self.update_clean()

    def _write(self, view: np.ndarray, array: Any, work: Callable[[Any], Any], overwrite: bool) -> Any:
        if self.loans:
            all_ended(self)     # what was lent is found to be ours again
        within, self.writing = self.writing, self.writing + 1
        begun = done = False
        later = Ranges.EMPTY
        try:
            pages = None if overwrite else coherence.compare_for_now(self)
            target = self.device_view(view) if array is None else array
            while True:
                later = coherence.begin_write(self, view, overwrite, later)
                begun = True        # at once: what is not valid in the mirror has to be refreshed, as aliases may write
                writes = self.writes
                result = work(target)
                if (self.host_dirty is not Ranges.EMPTY or self.writes != writes) and not coherence.has_written(
                        self, view, later, writes if overwrite else None):
                    continue
                break
            done = True
            self.writing = within
            coherence.end_write(self, view, False, later)
            if pages is not None:
                self.mirror.track_by(pages)     # type: ignore[union-attr]
        except BaseException as error:      # an interrupt too: where the device may have written, others see it
            self.writing = within
            try:
                self._end_failed(view, begun, done, later)
            except BaseException:           # and a second one: aliases see it all the same
                self._end_failed(view, begun, done, later)
                raise
            self.device.failed(error)
            raise
        return result

    def _end_failed(self, view: np.ndarray, begun: bool, done: bool, later: Ranges) -> None:
        if begun:
            coherence.end_write(self, view, not done, later)
        else:
            self.update_clean()

    def read_host(self, view: np.ndarray, why: str) -> np.ndarray:
        """A private read-only host array of `view`, current now."""
        if view.size == 0:
            return views.without_elements(view)
        with holding(self.lock):
            if self.pending is not None and (found := pending_on_host.private(self, view)) is not None:
                return found
            if gathered.is_sparse(self, view):
                return coherence.compacted(self, view, why)
            coherence.settle_host(self, view, why)
            if self.mirror.nbytes <= ON_BOTH and small_limit():
                coherence.note_on_host(self)
            return self.mirror.view(view.shape, view.dtype, view.strides, self._offset(view))

    def wrote_host(self, view: np.ndarray) -> None:
        """We have written a view on the host, where all of it was current."""
        with holding(self.lock):
            self.clean = False
            if coherence.is_sent_whole(self, view) or coherence.much_is_sent(self):
                written = Ranges.span(0, self.nbytes)
            else:
                written = Ranges.of_view(view.shape, view.strides, view.itemsize, self._offset(view))
            self.note_written(written)
            self.placed = self.placed | written

    def will_write_host(self, view: np.ndarray) -> tuple[Any, Any]:
        """The same, before it is done: an interrupt may come as soon as NumPy has written. For `not_written_host`."""
        with holding(self.lock):
            before = self.host_dirty, self.placed
            self.wrote_host(view)
            return before, (self.host_dirty, self.placed)

    def not_written_host(self, noted: tuple[Any, Any]) -> None:
        """What `will_write_host` has noted was not done after all."""
        with holding(self.lock):
            before, after = noted
            if self.host_dirty is after[0] and self.placed is after[1]:
                self.host_dirty, self.placed = before
                self.update_clean()

    def expose_host(self, view: np.ndarray, why: str) -> np.ndarray:
        """An alias of `view` for foreign code, writable if the view is, and live."""
        if view.size == 0:
            return views.without_elements(view)
        if self.mirror is None and (view is self.root_view or view.nbytes >= first_download.VIEW_FROM):
            alias = first_download.first_alias(self, view, why)
            if alias is not None:
                return alias
        with holding(self._lock or self.lock):
            if self.pending is not None and (alias := pending_on_host.alias(self, view)) is not None:
                return alias
            if gathered.is_sparse(self, view):
                return coherence.compacted(self, view, why).view()
            coherence.settle_host(self, view, why, lend=True)
            if self.mirror.nbytes <= ON_BOTH and small_limit():
                coherence.note_on_host(self)
            alias = self.mirror.lend(view.shape, view.dtype, view.strides, self._offset(view), writeable(view))
            self.clean = False      # from here on no signal handler or finaliser finds it clean, nor begins a prefetch
            if self.incoming is not None:
                self.incoming.land(self)
            return alias

    def expose_again(self, view: np.ndarray, why: str) -> np.ndarray:
        """`expose_host` for NumPy and for consumers of buffers: one alias serves all that ask for the same view, so
        nobody is to change its flags.

        After some views of an array that is not large one alias serves all: who makes an array of its rows asks for one
        after the other.
        """
        if view.size == 0:
            return views.without_elements(view)
        if trace.before_host_use is not None and self.mirror is not None:   # else it is copied, with an event
            trace.before_host_use()
        key = None if view is self.root_view else view
        with holding(self._lock or self.lock):
            resident = self._resident
            usable = resident is not None and self.mirror.full and not (self.loans or self.foreign)
            if usable and resident[0] is key and both_or_neither(resident[1], view):    # a program may have changed one
                return resident[1]
            if usable and resident[0] is _ALL and writeable(view):
                return self._part(resident[1], view)
            served = resident[2] + 1 if usable else 1
        del resident        # else the last alias lives on while the next is made
        if served > _FEW_VIEWS and self.nbytes <= ON_BOTH and writeable(view):
            key, view, part = _ALL, coherence.whole_of(self), view
        alias = self.expose_host(view, why)
        if self.compacts is None or not gathered.is_sparse(self, view):
            self._resident = key, alias, served
        return alias if key is not _ALL else self._part(alias, part)

    def _part(self, whole: np.ndarray, view: np.ndarray) -> np.ndarray:
        """What `view` is of an alias of all bytes."""
        self.mirror.note_elements(view.dtype, self._offset(view))
        return np.ndarray(view.shape, view.dtype, whole, self._offset(view), view.strides)

    def is_aliased(self, meta: np.ndarray) -> bool:
        """Whether somebody has an alias of any of its bytes, of which those of `meta` are some."""
        with holding(self.lock):
            self._resident = None       # nobody but us may have that one
            return self.mirror is not None and bool(self.mirror.aliased())

    def prefetch(self, view: np.ndarray) -> None:
        """Begin to copy `view` to the host; who asks for it waits."""
        if view.size:
            from . import prefetch as prefetching  # few programs do
            with holding(self.lock):
                prefetching.start(self, view, "prefetch")

    def pin_host(self, view: np.ndarray, why: str) -> int:
        """The host address of `view`, for as long as the storage lives (``ctypes.data``).

        Who has it may reach what lies between the elements, too.
        """
        start, stop = views.extent(view)
        with holding(self.lock):
            coherence.settle_host(self, views.meta((stop - start,), np.uint8, offset=start), why)
            self.mirror.pin()
            self.clean = False
            if self.incoming is not None:
                self.incoming.land(self)
            return self.mirror.bytes.ctypes.data + self._offset(view)

    def lend_device(self, view: np.ndarray, why: str) -> Any:
        """A device array of `view` for GPU code that may write through it, now or later."""
        with holding(self._lock or self.lock):
            if self.mirror is not None:
                coherence.exactly(self)
            lent, token = self.device.lend(self.read_device(view, why=why))
            exports.note(self, weakref.ref(token))
            return lent

    def note_loan(self, token: weakref.ref[Any]) -> None:
        """GPU code may write to the device memory for as long as a loan's token lives."""
        with holding(self.lock):
            exports.note(self, token)

    def take_copy(self, kept: Storage) -> None:
        """Have the bytes, which the host alone has, on the device too: they are those of another storage."""
        with holding(self.lock), self.place():
            if self._block is None and self.host_dirty.nbytes == self.nbytes == kept.nbytes:
                kept.join()
                self._block = self.device.block(kept.root.copy("K"))[0]
                self.sent(self.device.stream())
                self.host_dirty = self.placed = Ranges.EMPTY
                self.update_clean()

    def begin_statement(self) -> None:
        """A statement begins that will write: what aliases wrote until now came before it. The lock is held."""
        if self.mirror is not None and self.mirror.lent and self.mirror.compares:
            coherence.collect(self)


def _share_names() -> None:
    # Instances share the names of attributes that the first few of them set; any other costs its instance 150 bytes.
    first = Storage.__new__(Storage)
    for name in ("_lock", "_nbytes", "mirror", "_resident", "joined", "ordered", "incoming", "facts", "sending"):
        setattr(first, name, None)


_share_names()


def adopted(device: Device, host: np.ndarray, array: Any = None) -> Storage:
    """A storage whose mirror is the memory of a host array, gaps included; its owner may write there at any time.

    `array` is its copy on the device, in the same layout, if there is one.
    """
    storage = Storage(device, array)
    memory = transfer.extent_bytes(host)
    storage._nbytes = memory.nbytes
    storage.clean = False
    storage.mirror = Mirror.over(memory)
    if array is None:
        storage.host_dirty = Ranges.span(0, memory.nbytes)
    return storage


def write_all(entries: Sequence[tuple[Storage, np.ndarray, Any]], work: Callable[[], Any]) -> Any:
    """Return ``work()``, which may write the device arrays of several views: each is (storage, view, device array).

    In one order for all threads, so that none waits for what another holds.
    """
    first, *rest = entries if len(entries) == 1 else sorted(entries, key=lambda entry: id(entry[0]))
    storage, view, array = first
    return storage.write_device(view, array, lambda target: write_all(rest, work) if rest else work())
