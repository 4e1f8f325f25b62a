"""Host memory of a storage: what of it is current, who holds it (see `aliases`), and how it is filled."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ...errors import LazyArrayError
from ...errors.inspection import Unique
from .aliases import NOTHING, LentMemory
from .byte_ranges import EMPTY, Ranges
from .dirty_tracking import Pages, Snapshot, memory_to_fill, why_no_pages
from .pages import Mapping

__all__ = ["DIRECT_FROM", "PAGES_FROM", "Mirror"]

#: From this size on writes are found by pages. Below it, to copy and compare all of it is as quick, and exact.
PAGES_FROM = 128 << 10
#: Less is armed in no time: see `Mirror.begin_directly`.
DIRECT_FROM = 16 << 20

_u1 = np.dtype(np.uint8)

#: What frees host memory, as `devices.base.relief` does on the device.
relief: list[Callable[[int], str | None]] = []


def _memory(nbytes: int) -> np.ndarray:
    while True:
        try:
            return np.empty(nbytes, _u1)
        except MemoryError as error:
            reasons = [free(nbytes) for free in relief]
            if None not in reasons:
                for reason in filter(None, reasons):
                    error.add_note(reason)
                raise


class Mirror(LentMemory):
    """Host memory of `nbytes` bytes. Make one with `reserve`.

    Attributes
    ----------
    nbytes : int
    valid : Ranges
        Bytes that are current.
    """

    __slots__ = ("nbytes", "valid", "__weakref__")

    def __init__(self, memory: np.ndarray, mapping: Mapping | None = None, tracked: bool = True) -> None:
        super().__init__(memory, mapping, None if tracked else NOTHING)
        self.nbytes, self.valid = memory.nbytes, EMPTY

    @classmethod
    def reserve(cls, nbytes: int, tracking: str = "auto") -> Mirror:
        """A mirror of `nbytes` bytes, none of them valid.

        Parameters
        ----------
        tracking : {"auto", "pages", "none"}
            How writes through aliases are found. "auto": by comparison with a copy below
            128 KiB, by the kernel above, if it can; "pages": by the kernel at any size;
            "none": all that a writable alias covers counts as written.

        Raises
        ------
        LazyArrayError
            "pages", and the kernel can't.
        """
        if tracking == "pages" and (reason := why_no_pages()) is not None:
            raise LazyArrayError(f"write_tracking='pages' is not possible here: {reason}")
        by_pages = tracking == "pages" or (tracking == "auto" and nbytes >= PAGES_FROM)
        if by_pages and (found := memory_to_fill(nbytes)) is not None:
            return cls(*found)
        return cls(_memory(nbytes), None, tracking == "auto" and not by_pages)

    @classmethod
    def of(cls, memory: np.ndarray, tracking: str) -> Mirror:
        """A mirror whose memory is that of a small array of ours; `tracking` as in `reserve`, but never by pages."""
        return cls(memory, None, tracking == "auto")

    @classmethod
    def over(cls, memory: np.ndarray) -> Mirror:
        """A mirror whose memory is somebody else's, all of it valid; he may write there at any time, unseen.

        `memory` : its bytes, 1-D of uint8; read-only ones are never filled.
        """
        self = cls(memory, None, False)
        self.valid = Ranges.span(0, memory.nbytes)
        self.pin()
        return self

    @property
    def full(self) -> bool:
        """Whether every byte is valid."""
        valid = self.valid
        return valid.stop - valid.start == self.nbytes and type(valid) is Ranges and valid._starts is None

    def invalidate(self, ranges: Ranges) -> None:
        """These bytes are no longer current: the device has newer ones.

        A signal handler may change what is valid while this is worked out. It can't between a comparison and an
        assignment, since neither calls anything; `validate` rests on the same.
        """
        while True:
            before = self.valid
            after = before - ranges
            if self.valid is before:
                self.valid = after
                return

    def validate(self, ranges: Ranges) -> None:
        """These bytes are current from now on."""
        while True:
            before = self.valid
            after = before | ranges
            if self.valid is before:
                self.valid = after
                return

    def view(self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...], offset: int,
             writeable: bool = False) -> np.ndarray:
        """A private array over the memory, for ourselves: no alias, so it must not reach foreign code.

        Writes through it belong inside `filling`.
        """
        array = np.ndarray(shape, dtype, self.bytes, offset, strides)
        if not writeable:
            array.setflags(write=False)
        return array

    # -- what aliases wrote ----------------------------------------------------------------

    def collect(self, exact: bool = False, note: Callable[[Ranges], None] | None = None) -> Ranges:
        """`LentMemory.collect`, of valid bytes.

        With `note`, bytes that are known to be written, and not only near to what was, are valid from then on.
        """
        if note is None:
            return super().collect(exact) & self.valid
        full = self.full        # else bytes that are not valid lie between those that were written, perhaps
        return super().collect(exact or not full, lambda found: note(found & self.valid),
                               None if full else self._validate_written) & self.valid

    def as_found(self, ranges: Ranges) -> list[tuple[np.ndarray, int, Ranges]]:
        """Where `ranges` are: arrays of bytes, where in the mirror each begins, and which it has.

        What aliases may write and is compared is there as the last `collect` saw it. So a statement sees what other
        threads write at one time; and what is sent is what is compared with, whatever they write since.
        """
        tracker = self._tracker
        if type(tracker) is not Snapshot:
            return [(self.bytes, 0, ranges)]
        start, copy = tracker.copied()
        seen = ranges & Ranges.span(start, start + len(copy)) if copy else Ranges.EMPTY
        parts = (np.frombuffer(copy, _u1), start, seen) if seen else None, (self.bytes, 0, ranges - seen)
        return [part for part in parts if part is not None and part[2]]

    def _validate_written(self, differs: Ranges) -> Ranges:
        """Bytes that an alias has written are valid; of one that could not be refreshed, the elements they lie in."""
        stale = differs - self.valid
        if stale:
            differs = differs | (self.elements_of(stale) & self.candidates())
        self.validate(differs)
        return differs

    @property
    def in_turns(self) -> bool:
        """Whether parts can be looked at: a comparison with a copy is of the whole, and else nobody knows."""
        return self.lent and type(self._tracker) is Pages

    def collect_in_turns(self, turns: Iterable[tuple[int, int]]) -> Iterator[Ranges]:
        """What `collect` finds, perhaps nothing, turn by turn; each is looked at when it is asked for.

        `turns`: (start, stop) of parts of whole pages that make up the mirror.

        Until it has come to its end nothing counts as found that was not given.
        """
        candidates = self.candidates()
        late, self._late = self._late, EMPTY    # those that die from now on may yet write what was looked at
        try:
            for start, stop in turns:
                part = Ranges(start, stop)
                watched = candidates & part
                if watched:
                    self.look(watched, False)
                yield self._found & part & self.valid
                self._found = self._found - part
        except BaseException:       # of whoever asks: what was not given is found by the next collect
            self._late = self._late | late
            raise
        self._rest()

    def pages_of_all(self) -> tuple[int, int, int] | None:
        """What it takes to look at all pages: see `Pages.scanned_by`. What is found counts as collected.

        None unless aliases are all of the mirror and nothing is known yet.
        """
        tracker, live = self._tracker, self._live
        if (not isinstance(tracker, Pages) or not self.lent or self._dead or self._late or self._found
                or live is None or not live.is_span(0, self.nbytes) or not self.valid.is_span(0, self.nbytes)):
            return None
        return tracker.scanned_by(self.nbytes)

    # -- ways in which we write it ourselves -------------------------------------------------

    def filling(self, ranges: Ranges) -> Filling:
        """Context in which we write `ranges` ourselves; its value is `bytes`.

        Afterwards they are valid, and do not count as written by an alias. What aliases wrote
        there before is forgotten. If the block raises, the bytes are as valid as they were.
        """
        return Filling(self, ranges)

    def fill_unwritten(self, start: int, source: np.ndarray, ranges: Ranges, itemsize: int,
                       offset: int) -> Ranges | None:
        """Write `ranges` ourselves, as in `filling`, but for elements that an alias has written since the last collect.

        Returns those. `source` has the bytes from `start` on; elements of `itemsize` bytes begin at `offset`. Only
        where `compares`: None if that is so no more, since a handler or a finaliser has lent or dropped aliases. What
        none of them looks at any more is not written.
        """
        tracker = self._tracker
        if type(tracker) is not Snapshot:
            return None
        found = self._found & ranges
        self._found = self._found - found
        first, watched = tracker.copied()       # before it is filled: it may become more
        filled = (ranges - found) & Ranges.span(first, first + len(watched))
        written = tracker.fill(source, start, filled, itemsize, offset) | found
        self.validate(filled | found)
        return written

    def can_fill_directly(self, ranges: Ranges) -> bool:
        """Whether `begin_directly` does what `filling` does, and sooner."""
        return (len(ranges) == 1 and ranges.nbytes >= DIRECT_FROM and not self.lent and not self._exact
                and self.mapping is not None and self.mapping.region is not None
                and (self._tracker is None or type(self._tracker) is Pages))

    def begin_directly(self, ranges: Ranges, begin: Callable[[np.ndarray], Callable[[], None]]) -> Callable[[], None]:
        """Let a device whose writes the kernel does not mark fill one range, which is armed meanwhile.

        To arm a GiB of small pages takes the kernel a quarter of the time of the copy. `begin` gets the memory to fill,
        and returns what waits for it; so does this. Then the range can be called valid.
        """
        start, stop = ranges.bounds
        wait = begin(self.bytes[start:stop])
        try:
            tracker = self.tracker()
            if type(tracker) is Pages:
                tracker.arm(ranges)
        except OSError:
            self.give_up()
        except BaseException:       # an interrupt too: what has begun must end before anybody else gets the memory
            wait()
            raise
        return wait


class Filling(Unique):
    """`Mirror.filling`: a class, because a generator would double its cost."""

    __slots__ = ("_mirror", "_ranges", "_others")

    def __init__(self, mirror: Mirror, ranges: Ranges) -> None:
        self._mirror = mirror
        self._ranges = ranges
        self._others = EMPTY        # what others could write when it began

    def __enter__(self) -> np.ndarray:
        mirror = self._mirror
        if mirror._tracker is not None:
            self._tell("before_fill")
        elif mirror.mapping is not None:
            mirror.mapping.clean()      # else what its last user had armed would slow each page's first write
        return mirror.bytes

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        mirror = self._mirror
        if mirror._tracker is not None:
            self._tell("after_fill")
        if kind is None:
            mirror.validate(self._ranges)

    def _tell(self, what: str) -> None:
        mirror, ranges = self._mirror, self._ranges
        others = mirror.candidates() if mirror.lent else EMPTY
        before, tracker = mirror._found, mirror.tracker()
        if others and type(tracker) is Pages:       # what was written beside counts as found until it is known
            mirror._found = before | others
        try:
            found = getattr(tracker, what)(ranges, others)
        except OSError:
            mirror.give_up()
            found = others
        if what == "before_fill":
            self._others = others
        # What a handler or a finaliser lent meanwhile lies on pages whose marks are lost.
        meanwhile = mirror.candidates() - self._others if mirror.lent else EMPTY
        if meanwhile:
            found = found | meanwhile
        mirror._found = (before | found) - ranges
