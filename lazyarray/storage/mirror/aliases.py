"""Memory that foreign code may hold parts of: who holds which bytes, and which were written.

The memory is lent as **aliases** (NumPy arrays over it), which say later which bytes were written through them. The
caller, a storage, holds its own lock around each call; aliases die whenever the garbage collector pleases.

An alias's ``base`` is its **owner**, a ``pickle.PickleBuffer``: the smallest thing that
lends its memory and can be weakly referenced. NumPy, which shortens chains of bases, stops
at an object that is no array, so every view, memoryview or buffer made of an alias
keeps the owner alive, and the owner keeps the memory. (A memoryview in its place would be
skipped by NumPy, and an ndarray over an ndarray too.)
"""
from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from pickle import PickleBuffer
from typing import Any

import numpy as np

from ...errors.inspection import Unique
from .byte_ranges import EMPTY, Ranges
from .dirty_tracking import Nothing, Pages, Snapshot, kernel
from .pages import Mapping

__all__ = ["NOTHING", "Early", "LentMemory", "lend_early"]

#: An alias in more ranges than this is taken to cover the smallest gaps between them.
_MOST_RANGES = 1 << 14
#: Aliases that died are counted by the next `collect`, or as soon as there are this many.
_MOST_DEAD = 64
#: With fewer live aliases than this, what they cover is worked out as soon as one is lent.
_FEW = 8

_ndarray = np.ndarray
NOTHING = Nothing()


class _Alias(weakref.ref):
    """The owner of an alias, and which bytes the alias covers."""

    __slots__ = ("ranges", "writeable")

    ranges: Ranges
    writeable: bool


class Early(weakref.ref):
    """The owner of an alias lent before there was a `LentMemory`, and how it lies in an ndarray."""

    __slots__ = ("shape", "strides", "offset", "dtype")

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: np.dtype[Any]


def lend_early(array: np.ndarray, whole: np.ndarray, lent: set[Early]) -> np.ndarray:
    """An alias of an array, which is all or a part of the ndarray `whole`, in C or Fortran order and nobody else's.

    Who writes through it writes the ndarray. It is noted in `lent`, which the `LentMemory` of `whole` takes on.
    """
    owner = PickleBuffer(whole if whole.flags.c_contiguous else whole.T)
    reference = Early(owner, lent.discard)      # no Python code, in which a signal handler may raise
    reference.shape, reference.strides, reference.dtype = array.shape, array.strides, array.dtype
    reference.offset = 0 if array is whole else (
        array.__array_interface__["data"][0] - whole.__array_interface__["data"][0])
    lent.add(reference)
    return _ndarray(array.shape, array.dtype, owner, reference.offset, array.strides)


class LentMemory(Unique):
    """Host memory and its aliases.

    Attributes
    ----------
    bytes : ndarray
        All of the memory as uint8. Not an alias: whoever writes it does so inside `Mirror.filling`.
    mapping : Mapping or None
        What the memory lies in, if it can be watched by pages.
    lent : bool
        False when no alias is alive, and none has died since the last `collect`.
    """

    __slots__ = ("bytes", "mapping", "lent", "_tracker", "_aliases", "_dead", "_exact", "_live", "_late", "_found",
                 "_pinned", "_elements", "_lends")

    def __init__(self, memory: np.ndarray, mapping: Mapping | None, tracker: Nothing | None) -> None:
        self.bytes, self.mapping, self.lent = memory, mapping, False
        self._tracker: Nothing | Snapshot | Pages | None = tracker      # made when something is lent
        # By identity: weak references hash as what they refer to, whose address is soon used again.
        self._aliases: dict[int, _Alias] = {}
        self._dead: list[_Alias] = []
        self._exact = False
        self._live: Ranges | None = EMPTY   # what live aliases may write; None when it has to be worked out again
        self._late = EMPTY                  # the same of those that died since the last collect
        self._found = EMPTY                 # written, found before it was asked for
        self._pinned = EMPTY
        self._lends = 0
        #: (bytes of an element, and of what a processor moves at once, where the first begins) of what was lent
        self._elements: set[tuple[int, int, int]] = set()

    @property
    def address(self) -> int:
        """Where the memory begins."""
        return self.bytes.__array_interface__["data"][0]

    def lend(self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...], offset: int,
             writeable: bool = True) -> np.ndarray:
        """An array over the memory for foreign code; an alias until all that was made of it is gone.

        Its bytes must be valid when foreign code gets it. Writes through it are named by `collect`. One that is not
        writable can't be made so.
        """
        memory = self.bytes
        if not writeable:
            memory = memory.view()
            memory.setflags(write=False)
        owner = PickleBuffer(memory)
        array = _ndarray(shape, dtype, owner, offset, strides)
        if array.flags.forc:
            size = array.nbytes
            ranges = Ranges(offset, offset + size) if size else EMPTY
        else:
            ranges = Ranges.of_view(shape, array.strides, array.itemsize, offset, _MOST_RANGES)
        self._enter(owner, ranges, dtype, offset, writeable)
        return array

    def take_on(self, lent: set[Early]) -> None:
        """Take on the aliases that were lent of an ndarray, whose memory this is now; its bytes must be valid."""
        for reference in lent.copy():       # they stay: after an interrupt comes another storage
            owner = reference()
            if owner is not None:
                ranges = Ranges.of_view(reference.shape, reference.strides, reference.dtype.itemsize, reference.offset,
                                        _MOST_RANGES)
                self._enter(owner, ranges, reference.dtype, reference.offset, True)

    def _enter(self, owner: PickleBuffer, ranges: Ranges, dtype: np.dtype[Any], offset: int, writeable: bool) -> None:
        """Let it be known that bytes are lent."""
        if len(self._dead) > _MOST_DEAD:
            self._count_dead()
        if self._live is None and len(self._aliases) < _FEW:
            self._writable()
        # Called by the garbage collector, in any thread, with or without the lock: it may do no more than this.
        alias = _Alias(owner, self._dead.append)
        alias.ranges = ranges
        alias.writeable = writeable
        self.note_elements(dtype, offset)
        # What live aliases may write is watched already.
        live = self._live
        covered = live is not None and live.covers(ranges)
        # First it is entered: if there is none, a signal handler or a finaliser that looks gives up what is watched.
        self._aliases[id(alias)] = alias
        self.lent = True
        self._lends += 1
        if covered and self._live is live:
            return
        self._watch(ranges)
        if live is not None and (writeable or self._tracker.sees_all):      # type: ignore[union-attr]
            more = live | ranges
            if self._live is live:
                self._live = more
                return
        if self._live is not live:
            self._live = None

    def note_elements(self, dtype: np.dtype[Any], offset: int) -> None:
        """Let it be known that elements of a dtype are lent, from an offset on: see `elements_of`."""
        itemsize = dtype.itemsize
        self._elements.add((itemsize, dtype.alignment if dtype.names is None else 1, offset % (itemsize or 1)))

    def pin(self, ranges: Ranges | None = None) -> None:
        """A raw host pointer to `ranges` (all of it by default) was handed out.

        They count as a writable alias for as long as the mirror lives, and the memory lives
        as long as the mirror.
        """
        ranges = Ranges.span(0, self.bytes.nbytes) if ranges is None else ranges
        self._watch(ranges)
        self._pinned = self._pinned | ranges if ranges else self._pinned
        self.lent = True

    def aliased(self) -> Ranges:
        """Bytes that live aliases cover, writable or not: what a device write has to refresh."""
        if not self.lent:
            return EMPTY
        if self._dead:
            self._count_dead()
        if self._tracker is not NOTHING:
            return self._writable()     # every alias counts there
        return Ranges.union([self._pinned, *(alias.ranges for alias in self._held())])

    @property
    def held(self) -> bool:
        """Whether somebody holds an alias, or a raw pointer, as far as is known: he may write at any time."""
        return self.lent and (self._pinned is not EMPTY or len(self._aliases) > len(self._dead))

    def to_refresh(self) -> Ranges:
        """`aliased`, and where `compares` also what aliases covered that died since: what they wrote is found then."""
        return self.candidates() if self.lent and self.compares else self.aliased()

    def collect(self, exact: bool = False, note: Callable[[Ranges], None] | None = None,
                known: Callable[[Ranges], Ranges] | None = None) -> Ranges:
        """Bytes that were written through aliases since the last call. `note` gets them before they are forgotten here.

        `known` gets those before that were found by comparison, and returns what counts as found.

        Bytes that were not written may be among them, if an alias covers them: up to a page
        around each write where the kernel tracks, all of the alias where nothing does, and
        small gaps elsewhere, unless `track_exactly` was called or it is to be `exact`.
        """
        if not self.lent:
            return EMPTY
        candidates = self.candidates()
        late = self._late
        if candidates:
            self.look(candidates, exact or self._exact, known)
        found = self._found
        if note is not None and found:
            note(found)
        while True:     # a handler or a finaliser may have found more, or lent what nobody has looked at
            now = self._found
            left = EMPTY if now is found else now - found
            if self._found is now:
                self._found = left
                break
        if self._late is late:
            self._late = EMPTY
        self._rest()
        return found

    def look(self, candidates: Ranges, exact: bool, known: Callable[[Ranges], Ranges] | None = None) -> None:
        """Enter what was written among `candidates` into what is found.

        At any point in it, what could be lost by an interrupt counts as found.
        """
        before, tracker = self._found, self._tracker
        if tracker is None:     # an interrupt came before what was to be lent was watched: nobody has got it
            return
        try:
            if isinstance(tracker, Snapshot):
                old, now, differs = tracker.compared(exact)
                if differs:     # a handler or a finaliser may have lent more meanwhile, which is compared as well
                    differs = differs & (candidates | self.candidates())
                if known is not None:
                    differs = known(differs)
                if differs:     # a byte that differs is sent with its element: another write may follow before it is
                    differs = differs | (self.elements_of(differs, self._exact) & candidates)
                self._found = before | differs
                tracker.accept(old, now)
            else:       # the kernel forgets what it tells
                self._found = before | candidates
                found = tracker.written(candidates, exact)      # type: ignore[union-attr]
                if found:       # what was lent meanwhile may lie on the same pages
                    found = found & (candidates | self.candidates())
                self._found = before | found
        except OSError:
            self.give_up()
            self._found = before | candidates

    def elements_of(self, ranges: Ranges, parts: bool = False) -> Ranges:
        """All bytes of the elements, as they were lent, that bytes lie in; with `parts`, of the parts of complex ones.

        (GPU code may have written the other part, unknown to us.)
        """
        units = {(part if parts else size, phase) for size, part, phase in tuple(self._elements)}
        return Ranges.union([ranges.rounded(unit, phase) for unit, phase in units if unit])

    @property
    def compares(self) -> bool:
        """Whether writes are found by comparison, to the element."""
        return type(self._tracker) is Snapshot

    @property
    def guesses(self) -> bool:
        """Whether nobody knows what is written: all that aliases cover counts."""
        return self.lent and self._tracker is NOTHING

    @property
    def is_exact(self) -> bool:
        """Whether `track_exactly` was called, and has a tracker to show for it, or nothing is lent yet."""
        return self._exact and self._tracker is not NOTHING and type(self._tracker) is not Pages

    def track_exactly(self) -> None:
        """From now on find writes to the element, at the price of a copy of what is lent.

        For when the device may write other bytes of a page that an alias writes, unknown to us.
        Where there is no tracking, what may have been written until now counts as written.
        """
        self._exact = True
        tracker = self._tracker
        if tracker is NOTHING:
            candidates = self.candidates()
            self._found = self._found | candidates
            self._live = None       # aliases that can't be written count from now on
            compared = Snapshot(self.bytes)
            watched = Ranges.union([self._pinned, *(alias.ranges for alias in self._held())])
            if watched:
                compared.watch(watched)
            self._tracker = compared
            return
        if not isinstance(tracker, Pages):
            return
        candidates = self.candidates()
        exact = Snapshot(self.bytes)
        if candidates:
            # Watched before looked: what is written in between is found by one or the other.
            exact.watch(candidates)
            before = self._found
            self._found = before | candidates       # until it is known
            with contextlib.suppress(OSError):
                self._found = before | (tracker.written(candidates, False) & candidates)
        self._tracker = exact
        meanwhile = self.candidates() - candidates      # lent by a handler or a finaliser
        if meanwhile:
            exact.watch(meanwhile)
            self._found = self._found | meanwhile

    def compare_for_now(self) -> Pages | None:
        """`track_exactly` until `track_by` gets what this returns; None if writes are not found by pages."""
        pages = self._tracker
        if not self.lent or type(pages) is not Pages:
            return None
        self.track_exactly()
        return pages

    def track_by(self, pages: Pages) -> None:
        """Find writes by pages again. Those until now are found by comparison, those in between by one or the other."""
        if type(self._tracker) is not Snapshot:
            return
        candidates = self.candidates()
        try:
            if candidates:
                pages.arm(candidates)
                self.look(candidates, True)
        except OSError:     # it goes on as it is
            return
        self._exact, self._tracker = False, pages

    # -- how -----------------------------------------------------------------------------

    def tracker(self) -> Nothing | Snapshot | Pages:
        """What finds writes to the memory."""
        if self._tracker is None:
            made: Nothing | Snapshot | Pages
            found = kernel() if self.mapping is not None else None
            try:
                if self.mapping is not None and found is not None and not self._exact:
                    made = Pages(self.bytes, self.mapping, found)
                else:
                    made = Snapshot(self.bytes)
            except OSError:
                made = NOTHING
            if self._tracker is None:       # else a handler or a finaliser has lent something, and watches it
                self._tracker = made
        return self._tracker

    def give_up(self) -> None:
        """The kernel refuses, or this is a forked child: from now on nobody knows what is written."""
        self._tracker = NOTHING
        self._live = None

    def _watch(self, ranges: Ranges) -> None:
        if ranges:
            try:
                (self._tracker or self.tracker()).watch(ranges)
            except OSError:
                self.give_up()

    def _rest(self) -> None:
        """Nobody holds an alias any more, if it is so, and all that they wrote is known.

        Nothing comes between: a handler or a finaliser may lend at any call.
        """
        if not self._aliases and not self._dead and self._late is EMPTY and self._pinned is EMPTY:
            self.lent = False
            if type(self._tracker) is Snapshot:     # its copy is not needed; marks of pages cost nothing
                self._tracker = None

    def _count_dead(self) -> None:
        sees_all = self._tracker is not NOTHING
        while self._dead:
            alias = self._dead[0]
            if alias.writeable or sees_all:
                self._late = self._late | alias.ranges
            self._aliases.pop(id(alias), None)
            self._live = None if self._aliases else EMPTY
            if self._dead and self._dead[0] is alias:       # else a finaliser within has counted it
                del self._dead[0]

    def _held(self) -> list[_Alias]:
        # A copy, made at once: the collector may run finalisers that lend again, in this thread.
        return list(self._aliases.values())

    def _writable(self) -> Ranges:
        """What may be written by those that hold an alias or a pointer now."""
        while self._live is None:
            lends, sees_all = self._lends, self._tracker is not NOTHING
            live = Ranges.union([alias.ranges for alias in self._held() if alias.writeable or sees_all])
            if self._lends == lends:        # else a finaliser has lent more meanwhile
                self._live = live
        return self._live if self._pinned is EMPTY else self._live | self._pinned

    def candidates(self) -> Ranges:
        """What may have been written since the last collect."""
        if self._dead:
            self._count_dead()
        writable = self._writable()
        return writable if self._late is EMPTY else writable | self._late
