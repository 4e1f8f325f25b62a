"""What a storage is made of: its fields, its two homes, its stream, and the recorded work that reads its bytes.

Threads: whoever writes on the device, or looks at the host side, holds the storage's lock. A thread takes its locks in
this order, and never one further up while it holds one further down:

1. the locks of storages: of several, in the order of `statements.held`, before any of them is used;
2. the lock of all recorded work (`graph.node.lock`): computing it waits for no storage's lock;
3. what guards one table each (`exports`, `upload_cache`, `pinned_pool` and so on), within which no other is taken.

`clean` is the short way: true while the device is current, nobody outside holds an alias or a device pointer, and
nobody is writing, so that who reads on the device has nothing to find out.
"""
from __future__ import annotations

import contextlib
import gc
import itertools
import os
import sys
import threading
import weakref
from _thread import RLock
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..devices.base import HERE
from ..errors import DeviceUnavailableError
from ..errors.inspection import Unique
from ..errors.interrupts import holding
from . import foreign_streams, views
from .mirror.byte_ranges import Ranges
from .mirror.mirror import Mirror

if TYPE_CHECKING:
    from ..devices import Device

_u8 = np.dtype(np.uint8)
making_lock = threading.RLock()     # a handler may come within, from Python 3.14 on
_joining_lock = threading.RLock()       # several threads may read on streams of their own; a finaliser within, too
#: Held while the loans of a storage change. Whoever holds it waits for nothing.
loans_lock = threading.RLock()


@contextlib.contextmanager
def _noting(device: Device, number: int) -> Iterator[None]:
    with device.noting, device.on(number):
        yield


#: The most bytes of a small array, which is computed with on the host while it is current there; 0: none is.
small_limit: Callable[[], int] = (lambda: 0) if _native.recording is None else _native.recording.small
#: Bytes up to which an array that is current on both sides counts as one of the host too: small parts of it are
#: computed with there. To copy so much on the host takes a millisecond at most.
ON_BOTH = 4 << 20

#: A clock that tells which of two storages was used last; see `spilling`.
tick: Callable[[], int] = itertools.count().__next__ if _native.recording is None else _native.recording.tick


class StorageLock(RLock):
    """A lock that knows how many statements of the thread that has it are under way; see `statements.held`."""

    held = 0


_LOCKS = type(threading.Lock()), RLock, StorageLock


def _after_fork() -> None:
    """In the child: no other thread is there, and what others held is free. (Each had left what it did done or not.)"""
    package = __name__.partition(".")[0]
    found = [obj for obj in gc.get_objects() if type(obj) is StorageLock]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package:
            found += [value for value in vars(module).values() if type(value) in _LOCKS]
    for lock in found:
        if not hasattr(lock, "_is_owned") or not lock._is_owned():      # else by this thread, which will let go of it
            lock._at_fork_reinit()
            if type(lock) is StorageLock:
                lock.held = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Slots(Unique):
    """What every storage has, where `_native/recording.c` finds it without a name."""

    __slots__ = ("device", "root", "stream", "loans", "foreign", "clean", "pending", "readers", "root_view",
                 "host", "used", "__weakref__")


class StorageState(_Slots):
    """The fields of a storage, and what needs no look at who holds its bytes; `storage.Storage` has the verbs."""

    # Most storages never meet the host: what they then need is a default of the class, not a slot to fill.
    mirror: Mirror | None = None
    host_dirty = Ranges.EMPTY
    placed = Ranges.EMPTY       # what of it is there only because small arrays are computed on the host
    sending = Ranges.EMPTY      # what is on its way to the device; who writes there meanwhile writes on both sides
    joined: tuple = ()          # (stream, `writes` then): those that have waited for the last write, and read it
    ordered: tuple = ()         # (stream, stream): the memory won't be given back before the first has read it
    reads = 0                   # elements fetched one by one since the last write
    taken = 0                   # elements and rows taken of it; if small, from a number on that belongs to `writes`
    writes = 0                  # by device code, or perhaps by it, for who puts off a look at the bytes
    fetched = -1                # `writes` when the host was to go on with it: see `dispatch/small_runs.py`
    writing = 0                 # how many device writes are under way, all of the thread that has the lock
    compacts: Any = None        # the gathered.Compacts, if there are some
    returns_to: int | None = None   # the number of the device that a spilled storage comes back to
    spilled = False             # its bytes are on the host because the device was full
    host_dropped = False        # a mirror of it was dropped that lazy arrays may have looked at: see `host`
    registered = False          # whether it is known by its addresses: see `exports`
    incoming: Any = None        # the prefetch.Incoming that is under way
    facts: tuple | None = None  # (`writes` then, what is known of the values): see `facts`
    _resident: tuple | None = None      # (view, or None for the root's; alias; how many) of the last buffer asked for
    _block = None
    _root_offset = 0
    _lock = None
    _nbytes: int | None = None

    def __init__(self, device: Device, root: Any, stream: Any = None) -> None:
        if root is not None:
            device.claim(root, self)
        self.device = device
        self.root = root
        self.stream = device.stream() if stream is None else stream     # that of the last write
        self.loans: tuple = ()      # weak references to tokens of device pointers that were handed out
        self.foreign = False        # somebody holds the device memory for as long as it lives
        self.clean = True
        self.pending: Any = None    # the graph.node.Node that will give the bytes, while they are not computed
        self.readers: Any = None    # nodes that read the bytes, when they are computed
        self.root_view: np.ndarray | None = None
        #: True while a small array is current on the host, all of it, and no GPU code may write it.
        self.host: bool | None = None
        self.used: Any = tick()     # when it was used last

    @property
    def lock(self) -> Any:
        """Held by everything but the quick ways; made on first use."""
        if (lock := self._lock) is None:
            made = StorageLock()        # not within: to allocate may have the garbage collector run, and finalisers
            with holding(making_lock):
                lock = self._lock = self._lock or made
        return lock

    @property
    def nbytes(self) -> int:
        if self._nbytes is None:
            self._nbytes = self.block.nbytes if self.pending is None else self.root_view.nbytes
        return self._nbytes

    def _offset(self, view: np.ndarray) -> int:
        return self._root_offset if view is self.root_view else views.offset_of(view)

    @property
    def block(self) -> Any:
        """The device home as a flat array of bytes; allocated on first use if born on the host."""
        if self._block is None:
            if self.pending is not None:
                self.fill()
            if self.root is None:
                with self.place():
                    made, stream = self.device.empty((self.nbytes,), _u8), self.device.stream()
                if self._block is None:     # else a finaliser has made one meanwhile
                    self._block, self.stream = made, stream
            else:
                block, self._root_offset = self.device.block(self.root)
                self._block = block
        return self._block

    def root_meta(self) -> np.ndarray:
        """The meta of the device array that the storage was made of."""
        if self.root_view is not None:
            return self.root_view
        root = self.root
        if not self.device.contiguity(root)[0]:
            self.block  # noqa: B018  settles the root's offset
        self.root_view = views.meta(root.shape, root.dtype, root.strides, self._root_offset)
        return self.root_view

    def holds(self, view: np.ndarray) -> bool:
        """Whether the device can read the elements of a view: of their dtype, at multiples of their size."""
        size = view.itemsize
        if not self.device.can_hold(view.dtype):
            return False
        start = self._offset(view) + (0 if self.root is None else self.device.extent(self.root)[0])
        return not view.size or not start % size and all(
            stride % size == 0 for n, stride in zip(view.shape, view.strides) if n > 1)

    def device_view(self, view: np.ndarray) -> Any:
        return self.device.view(self.block, view.shape, view.dtype, view.strides, self._offset(view))

    @property
    def state(self) -> str:
        """"device", "host", "both" or "pending": where the bytes are current, as far as is known without looking."""
        if self.pending is not None:
            return "pending"
        if self._block is None and self.root is None:
            return "host"
        mirror = self.mirror        # another thread may drop it
        if mirror is None or not mirror.full:
            return "device"
        return "host" if self.host_dirty else "both"

    @property
    def homes(self) -> int:
        """On how many sides memory is held for the bytes."""
        return (self._block is not None or self.root is not None) + (self.mirror is not None)

    def number(self) -> int | None:
        """The number of the device that holds the bytes, will compute them or held them until it was full, or None."""
        node = self.pending
        if node is not None:
            if (number := node.number()) is not None:
                return number   # type: ignore[no-any-return]
            self.fill()
        array = self._block if self.root is None else self.root
        return self.returns_to if array is None else self.device.device_of(array)

    def place(self, noting: bool = True) -> contextlib.AbstractContextManager[Any]:
        """Context of work on the device that holds the bytes: it is the current one there, and notes its failures.

        Without `noting` whoever works there calls `Device.failed`.
        """
        device = self.device
        number = self.number() if device.spread else None
        if number is not None:
            return _noting(device, number)
        return device.noting if noting else HERE

    def before_change(self) -> None:
        """The bytes are about to change: they are computed, and so is what was recorded to read them.

        The caller holds the lock: else a second thread that is about to change them would not wait for the first.
        """
        if self.pending is not None:
            self.fill()
        if self.readers:
            changing(self)

    def fill(self) -> None:
        """Have the pending bytes computed.

        A node refers to its storage weakly, and Python's collector clears such references before it calls the
        finalizers of a cycle: one that asks for the value of an array in it has what the node computed brought here.
        """
        node = self.pending
        if node is None:
            return
        array = node.compute()
        if self.pending is node:
            with holding(node.lock):      # else another thread is about to do it
                if self.pending is node:
                    self.computed(array, node.stream, node.readers)

    def computed(self, array: Any, stream: Any, read_by: Any) -> None:
        """The pending bytes are there: `array`, written on `stream`. `read_by`: recorded work that still reads them.

        The part in C does the same, and leaves out the check.
        """
        self.device.claim(array, self)
        self.root, self.stream, self.readers = array, stream, read_by
        self.clean = True
        self.pending = None     # last: until then other threads wait for this one, and then none may find it half done

    def note_written(self, ranges: Ranges) -> None:
        """Foreign code has written `ranges`, which are valid in the mirror: they are current there alone."""
        mirror = self.mirror
        while True:
            valid, dirty = mirror.valid, self.host_dirty    # type: ignore[union-attr]
            noted = dirty | (ranges & valid)
            # Else a handler or a finaliser has written meanwhile; nothing comes between, as in `Mirror.invalidate`.
            if mirror.valid is valid and self.host_dirty is dirty:      # type: ignore[union-attr]
                self.host_dirty = noted
                break
        if self.placed:
            self.placed = self.placed - ranges

    def _let_go(self) -> None:
        if self._resident is not None and sys.getrefcount(self._resident[1]) <= 2:
            self._resident = None       # nobody but us holds it

    @property
    def device_only(self) -> bool:
        """Whether the mirror, if there is one, has nothing that is current, and nobody looks at it."""
        mirror = self.mirror
        return mirror is None or not (mirror.valid or mirror.lent or self.incoming is not None
                                      or self.sending is not Ranges.EMPTY)

    def update_clean(self) -> None:
        while True:
            loans, foreign = self.loans, self.foreign
            watched = is_watched(self)
            # A handler or a finaliser may lend and write at any call: there is none from here to the change.
            if self.loans is loans and self.foreign is foreign:
                mirror, compacts = self.mirror, self.compacts
                self.clean = not (
                    watched or self.pending is not None or self.writing or compacts is not None and compacts.arrays
                    or mirror is not None and (self.host_dirty is not Ranges.EMPTY or mirror.lent))
                return

    def _check_usable(self) -> None:
        reason = self.device.usable()
        if reason is not None:
            meta = self.root_view
            what = f"an array of {self.nbytes:,} bytes" if meta is None else f"an array of {meta.dtype}{meta.shape}"
            raise DeviceUnavailableError(f"{what} is needed on the device, or from there: {reason}")

    def sent(self, stream: Any) -> None:
        """Bytes were sent to the device on `stream`: a write, which a reader on another stream waits for."""
        self.stream = stream
        self.joined = ()
        self.writes += 1        # last, as `join` says

    def join(self) -> None:
        """Make the current stream wait for the last write, once for each write.

        Other threads may do the same, or write on the device meanwhile: then the stream has joined an earlier write,
        which the number of writes says that is entered with it.
        """
        device = self.device
        current = device.stream()
        if foreign_streams.partners and is_watched(self):
            foreign_streams.wait_for_partners(device)
        writes, stream = self.writes, self.stream       # in this order: who writes sets them the other way round
        if current is not stream and current != stream and (current, writes) not in self.joined:
            self._check_usable()
            with device.noting:
                device.wait(stream)
            with holding(_joining_lock):
                self.joined += ((current, writes),)
                first = (current, stream) not in self.ordered
                if first:
                    self.ordered += ((current, stream),)
            if first:
                # The memory goes back to the stream that made it; not while this one still reads.
                weakref.finalize(self, device.in_finaliser, device.order, current, stream).atexit = False

    def join_all(self) -> None:
        """Make the current stream wait for the last write, and for the streams that read what it wrote."""
        self.join()
        if self.joined:
            with self.device.noting:
                for stream, _ in self.joined:
                    self.device.wait(stream)


# -- who else may use the device memory -------------------------------------------------------------

def is_watched(storage: StorageState) -> bool:
    """Whether somebody on another stream may use the device memory of a storage."""
    if not foreign_streams.partners or storage.foreign:
        return bool(foreign_streams.partners)
    if storage.device_only and storage.loans:
        keep_alive(storage)
    return bool(storage.loans)


def keep_alive(storage: StorageState) -> None:
    """Forget the loans whose holders are gone, and count what they may have written as a write.

    Whoever computes calls this, and waits for no storage's lock.
    """
    loans = storage.loans
    alive = tuple([ref for ref in loans if ref() is not None])
    with holding(loans_lock):
        if len(alive) < len(loans) and storage.loans is loans:      # else it was lent meanwhile
            storage.loans = alive
            storage.writes += 1


def all_ended(storage: StorageState) -> bool:
    """Whether nobody holds a pointer any more, and nothing has to be looked at for that: nobody sees the mirror.

    The mirror is not trusted then: whoever had a pointer may have written.
    """
    for ref in (loans := storage.loans):
        if ref() is None:
            break
    else:
        return not loans
    with holding(storage.lock):
        _distrust_unseen(storage)
        if storage.device_only:
            keep_alive(storage)
        return not storage.loans


def _distrust_unseen(storage: StorageState) -> None:
    """What the mirror has is not current, if a holder is gone and nobody looks at the mirror. The lock is held.

    Another thread, or a finaliser, may have forgotten the holder first, and trust the mirror by now.
    """
    while True:
        loans, mirror = storage.loans, storage.mirror
        if mirror is None:
            return
        valid = mirror.valid
        if all(ref() is not None for ref in loans) or mirror.lent or storage.host_dirty or (
                storage.incoming is not None or storage.sending is not Ranges.EMPTY):
            return
        if storage.loans is loans and mirror.valid is valid:    # nothing comes between this and the change
            mirror.valid = Ranges.EMPTY
            return


# -- recorded work that reads the bytes ----------------------------------------------------------------
#
# Whoever records appends to a list of readers at any time, with no lock, in C. So a list that is there
# stays there, and only its first items are ever left out. What is in it may be done already.


def changing(storage: StorageState) -> None:
    """The bytes of a storage are about to change: what was recorded to read them is computed.

    The caller holds the storage's lock. The list stays where it is until then: who is interrupted has lost nothing.
    """
    readers = storage.readers
    for node in lasting(readers, set()):
        node.compute()
    cut(readers)


def cut(readers: list[Any]) -> None:
    """Leave out who is gone or done. Others may append meanwhile; where another cuts the same items, nothing happens.

    There is no lock and no flag: a finaliser may come back to it, and an interrupt would leave a flag behind.
    """
    known = slice(len(readers))
    before = readers[known]
    left = [ref for ref in before if (node := ref()) is not None and node.array is None]
    if readers[known] == before:        # nothing comes between this and the change: both compare, call and make nothing
        readers[known] = left


def lasting(refs: Any, seen: set[int]) -> list[Any]:
    """The last nodes that depend on these, of those that wait: which no other reads, or which somebody holds."""
    found: list[Any] = []
    _follow(refs, seen, found)
    return found


def _follow(refs: Any, seen: set[int], found: list[Any]) -> None:
    for ref in tuple(refs or ()):
        node = ref()
        if node is None or node.array is not None or id(node) in seen:
            continue
        seen.add(id(node))
        waiting = node.readers and [r for r in tuple(node.readers)
                                    if (reader := r()) is not None and reader.array is None]
        if waiting:
            _follow(waiting, seen, found)
        if not waiting or node.storage is not None and node.storage() is not None:
            found.append(node)
