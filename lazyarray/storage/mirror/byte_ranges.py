"""Sets of byte ranges: which bytes are current, lent, written.

Nearly every set in a program is one range or none, so that case is two Python integers;
more than one are sorted arrays, and all work on them is vectorised.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from ...errors.inspection import once_made

__all__ = ["Ranges", "copy_ranges", "mark", "places_of", "runs_of"]


class Ranges:
    """An immutable set of bytes, as ranges that neither overlap nor touch, in ascending order.

    Make one with `span`, `of_view`, `of_positions` or `of_pairs`; combine them with ``|``, ``&``, ``-`` and `union`.
    Iteration gives ``(start, stop)`` pairs of Python integers, ``len`` their number.

    Attributes
    ----------
    start, stop : int
        First byte, and one past the last byte, in the set; both 0 for the empty set.

    Examples
    --------
    >>> a = Ranges.span(0, 100) - Ranges.span(20, 30)
    >>> list(a)
    [(0, 20), (30, 100)]
    >>> (a & Ranges.span(10, 40)).nbytes
    20
    """

    __slots__ = ("start", "stop", "_starts", "_stops")

    EMPTY: ClassVar[Ranges]

    # Arrays of int64 both, or, with fewer than two ranges, None both.
    _starts: Any
    _stops: Any

    def __init__(self, start: int, stop: int, starts: Any = None, stops: Any = None) -> None:
        # Callers keep the normal form.
        self.start = start
        self.stop = stop
        self._starts = starts
        self._stops = stops

    # -- making --------------------------------------------------------------------------

    @classmethod
    def span(cls, start: int, stop: int) -> Ranges:
        """The bytes from `start` up to, not including, `stop`; empty if there are none."""
        return cls(start, stop) if start < stop else EMPTY

    @classmethod
    def of_view(cls, shape: Sequence[int], strides: Sequence[int], itemsize: int, offset: int,
                limit: int | None = None) -> Ranges:
        """The bytes of a strided view: exact, unless that takes more than `limit` ranges.

        Parameters
        ----------
        shape, strides : sequences of int
            As NumPy's; strides in bytes, of any sign, 0 included.
        itemsize : int
            Bytes of an element.
        offset : int
            Bytes from the start of the storage to the view's first element.
        limit : int, optional
            The most ranges wanted. Beyond it gaps are filled, smallest first, so that the
            result may hold bytes between the view's own, never fewer.

        Examples
        --------
        >>> list(Ranges.of_view((2, 3), (100, -8), 8, 16))
        [(0, 24), (100, 124)]
        """
        if not itemsize or 0 in shape:
            return EMPTY
        offset, run, outer = runs_of(shape, strides, itemsize, offset)
        if limit is not None:
            run = _fill_gaps(outer, run, limit)
        if not outer:
            return cls(offset, offset + run)
        if len(outer) == 1 and outer[0][0] > run:
            return Regular(offset, run, *outer[0])
        starts = np.array([offset], np.int64)
        for stride, n in reversed(outer):
            starts = (starts[:, None] + np.arange(0, n * stride, stride)).ravel()
        if len(outer) > 1:
            starts.sort()
        return _merged(starts, starts + run)

    @classmethod
    def of_positions(cls, positions: np.ndarray, gap: int = 0) -> Ranges:
        """The bytes at ascending positions; gaps of up to `gap` bytes between them are filled.

        Examples
        --------
        >>> list(Ranges.of_positions(np.array([1, 2, 5, 9]), gap=2))
        [(1, 6), (9, 10)]
        """
        if not len(positions):
            return EMPTY
        first, last = int(positions[0]), int(positions[-1]) + 1
        if last - first == len(positions):
            return cls(first, last)
        edges = np.flatnonzero(np.diff(positions) > gap + 1)
        if not len(edges):
            return cls(first, last)
        return cls(first, last, positions[np.concatenate([[0], edges + 1])],
                   positions[np.concatenate([edges, [-1]])] + 1)

    @classmethod
    def of_pairs(cls, pairs: np.ndarray) -> Ranges:
        """The union of the rows ``(start, stop)`` of an integer array, in any order."""
        pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
        pairs = pairs[pairs[:, 0] < pairs[:, 1]]
        if not len(pairs):
            return EMPTY
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        return _merged(pairs[:, 0], np.maximum.accumulate(pairs[:, 1]))

    @classmethod
    def union(cls, sets: Iterable[Ranges]) -> Ranges:
        """The bytes that are in any of the sets, at one go."""
        spans: set[tuple[int, int]] = set()
        rows = []
        for ranges in sets:
            if ranges._starts is None:
                spans.add((ranges.start, ranges.stop))
            else:
                rows.append(np.stack([ranges._starts, ranges._stops], axis=1))
        if len(spans) <= 1 and not rows:
            return cls(*spans.pop()) if spans else EMPTY
        if spans:
            rows.append(np.array(list(spans), np.int64))
        return cls.of_pairs(np.concatenate(rows))

    # -- asking --------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Number of bytes in the set."""
        if self._starts is None:
            return self.stop - self.start
        return int((self._stops - self._starts).sum())

    @property
    def bounds(self) -> tuple[int, int]:
        """``(start, stop)``."""
        return self.start, self.stop

    def is_span(self, start: int, stop: int) -> bool:
        """Whether the set is the bytes from `start` up to `stop`."""
        return self._starts is None and self.start == start and self.stop == stop

    def covers(self, other: Ranges) -> bool:
        """Whether every byte of `other` is in the set."""
        if other.start >= other.stop:
            return True
        if not (self.start <= other.start and other.stop <= self.stop):
            return False
        if self._starts is None:
            return True
        starts, stops = _arrays(other)
        home = np.searchsorted(self._starts, starts, "right") - 1
        return bool((self._stops[home] >= stops).all())

    def __bool__(self) -> bool:
        return self.stop > self.start

    def __len__(self) -> int:
        if self._starts is None:
            return int(self.stop > self.start)
        return len(self._starts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        if self._starts is not None:
            return zip(self._starts.tolist(), self._stops.tolist())
        return iter(((self.start, self.stop),) if self.stop > self.start else ())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranges):
            return NotImplemented
        if self.start != other.start or self.stop != other.stop or len(self) != len(other):
            return False
        return self._starts is None or (np.array_equal(self._starts, other._starts)
                                        and np.array_equal(self._stops, other._stops))

    __hash__ = None  # type: ignore[assignment]

    @once_made("stop")
    def __repr__(self) -> str:
        shown = [f"{start}:{stop}" for (start, stop), _ in zip(self, range(8))]
        if len(self) > len(shown):
            shown.append(f"... {len(self)} in all")
        return f"Ranges({', '.join(shown)})"

    # -- combining -----------------------------------------------------------------------

    def __or__(self, other: Ranges) -> Ranges:
        if other.start >= other.stop or other is self:
            return self
        if self.start >= self.stop:
            return other
        if self._starts is None and self.start <= other.start and other.stop <= self.stop:
            return self
        if other._starts is None and other.start <= self.start and self.stop <= other.stop:
            return other
        if self._starts is None and other._starts is None:
            first, second = (self, other) if self.start <= other.start else (other, self)
            if second.start <= first.stop:
                return Ranges(first.start, max(first.stop, second.stop))
            return _of_lists([first.start, second.start], [first.stop, second.stop])
        starts = np.concatenate([_arrays(self)[0], _arrays(other)[0]])
        stops = np.concatenate([_arrays(self)[1], _arrays(other)[1]])
        order = np.argsort(starts, kind="stable")
        return _merged(starts[order], np.maximum.accumulate(stops[order]))

    def __and__(self, other: Ranges) -> Ranges:
        # Not max() and min(): they take as long as all the rest.
        if other is self:
            return self
        start = self.start if self.start > other.start else other.start
        stop = self.stop if self.stop < other.stop else other.stop
        if start >= stop:
            return EMPTY
        if type(self) is Regular and start == self.start and stop == self.stop and type(other) is Ranges and (
                other._starts is None):
            return self
        if self._starts is None:
            if start == other.start and stop == other.stop:
                return other
            if other._starts is None:
                return Ranges(start, stop)
        elif other._starts is None and start == self.start and stop == self.stop:
            return self
        starts, stops = _arrays(self)
        other_starts, other_stops = _arrays(other)
        # Range i meets the ranges first[i] ... first[i] + count[i] - 1 of the other set.
        first = np.searchsorted(other_stops, starts, "right")
        count = np.maximum(np.searchsorted(other_starts, stops, "left") - first, 0)
        mine = np.repeat(np.arange(len(starts)), count)
        theirs = np.arange(len(mine)) + np.repeat(first - (np.cumsum(count) - count), count)
        return _packed(np.maximum(starts[mine], other_starts[theirs]), np.minimum(stops[mine], other_stops[theirs]))

    def __sub__(self, other: Ranges) -> Ranges:
        if other.start >= self.stop or other.stop <= self.start:
            return self
        if type(self) is type(other) is Regular and self.pattern == other.pattern:
            return EMPTY
        if other._starts is None:
            if other.start <= self.start and self.stop <= other.stop:
                return EMPTY
            if self._starts is None:
                if other.start <= self.start:
                    return Ranges(other.stop, self.stop)
                if self.stop <= other.stop:
                    return Ranges(self.start, other.start)
                return _of_lists([self.start, other.stop], [other.start, self.stop])
        starts, stops = _arrays(other)
        gap_starts = np.concatenate([[min(self.start, other.start)], stops])
        gap_stops = np.concatenate([starts, [max(self.stop, other.stop)]])
        inside = gap_starts < gap_stops
        return self & _packed(gap_starts[inside], gap_stops[inside])

    def rounded(self, unit: int, phase: int = 0) -> Ranges:
        """The set with every range widened to multiples of `unit`, counted from `phase`."""
        if not self:
            return EMPTY
        if self._starts is None:
            return Ranges((self.start - phase) // unit * unit + phase, -((phase - self.stop) // unit) * unit + phase)
        return _merged((self._starts - phase) // unit * unit + phase, -((phase - self._stops) // unit) * unit + phase)


class Regular(Ranges):
    """Runs of one length at one distance, as a strided view has them: arrays are made only where they meet others.

    Without, to keep account of each second element of an array takes longer than to copy them.
    """

    __slots__ = ("pattern",)

    def __init__(self, start: int, run: int, stride: int, count: int) -> None:
        self.start = start
        self.stop = start + (count - 1) * stride + run
        self.pattern = start, run, stride, count

    def __getattr__(self, name: str) -> Any:
        if name not in ("_starts", "_stops"):
            raise AttributeError(name)
        start, run, stride, count = self.pattern
        self._starts = np.arange(start, start + count * stride, stride)
        self._stops = self._starts + run
        return self._starts if name == "_starts" else self._stops

    @property
    def nbytes(self) -> int:
        return self.pattern[1] * self.pattern[3]

    def __len__(self) -> int:
        return self.pattern[3]

    def covers(self, other: Ranges) -> bool:
        return type(other) is Regular and self.pattern == other.pattern or super().covers(other)

    def rounded(self, unit: int, phase: int = 0) -> Ranges:
        if not phase and self.pattern[2] - self.pattern[1] < unit:      # no page lies in a gap
            return Ranges(self.start // unit * unit, -(-self.stop // unit) * unit)
        return super().rounded(unit, phase)


EMPTY = Ranges.EMPTY = Ranges(0, 0)


def runs_of(shape: Sequence[int], strides: Sequence[int], itemsize: int,
            offset: int) -> tuple[int, int, list[tuple[int, int]]]:
    """A strided view that has elements as runs of bytes: where the first begins, how long they are, how they repeat.

    The last is (stride, count) of each level of repetition, the smallest stride first, none of them negative.

    Examples
    --------
    >>> runs_of((2, 3, 4), (100, -8, 2), 2, 16)
    (0, 24, [(100, 2)])
    """
    axes = []
    for n, stride in zip(shape, strides):
        if n > 1 and stride:
            if stride < 0:
                offset += (n - 1) * stride
                stride = -stride
            axes.append((stride, n))
    if len(axes) > 1:
        axes.sort()
    # From the smallest stride up: an axis that leaves no gap makes the run longer, one whose
    # stride continues the axis below it makes that axis longer; what is left is `outer`.
    run = itemsize
    outer: list[tuple[int, int]] = []
    for stride, n in axes:
        if not outer:
            if stride <= run:
                run += (n - 1) * stride
                continue
        else:
            step, count = outer[-1]
            if stride % step == 0 and stride // step <= count:
                outer[-1] = step, count + (n - 1) * (stride // step)
                continue
        outer.append((stride, n))
    return offset, run, outer


def copy_ranges(target: np.ndarray, first: int, source: np.ndarray, start: int, ranges: Ranges) -> None:
    """Copy byte ranges from one array of bytes to another, which have those from `start` and from `first` on."""
    if len(ranges) == 1:
        low, high = ranges.bounds
        target[low - first:high - first] = source[low - start:high - start]
        return
    if (places := places_of(ranges)) is not None:
        target[places - first] = source[places - start]
        return
    wanted = np.zeros(len(source), np.uint8)
    mark(wanted, start, ranges)
    np.copyto(target[start - first:start - first + len(source)], source, where=wanted.view(bool))


def mark(target: np.ndarray, first: int, ranges: Ranges) -> None:
    """Set the bytes of ranges to 1; those of `target` are from `first` on."""
    if len(ranges) <= _FEW:
        for low, high in ranges:
            target[low - first:high - first] = 1
        return
    if (places := places_of(ranges)) is not None:
        target[places - first] = 1
        return
    edges = np.zeros(len(target) + 1, np.int8)
    starts, stops = _arrays(ranges)
    edges[starts - first], edges[stops - first] = 1, -1
    target |= edges[:-1].cumsum(dtype=np.int8).view(np.uint8)


#: Ranges up to which they are taken one by one.
_FEW = 256
#: Bytes of what is spanned for each byte of the ranges from which on these are named one by one. Of 6.4 MB (NumPy 2.5,
#: one core) it takes 3.5 to 4.4 ns for each byte that is only looked at, and for each that is named 6 to 15 where these
#: are a fortieth or less, and 30 to 35 where they are an eighth.
_SPARSE = 8


def places_of(ranges: Ranges) -> np.ndarray | None:
    """The bytes of ranges that are few of those that they span, else None."""
    if not ranges or ranges.nbytes * _SPARSE > ranges.stop - ranges.start:
        return None
    starts, stops = _arrays(ranges)
    lengths = stops - starts
    length = int(lengths[0])
    if (lengths == length).all():
        return (starts[:, np.newaxis] + np.arange(length)).reshape(-1)
    ends = lengths.cumsum()
    return np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1])


def _arrays(ranges: Ranges) -> tuple[np.ndarray, np.ndarray]:
    if ranges._starts is not None:
        return ranges._starts, ranges._stops
    if not ranges:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.array([ranges.start], np.int64), np.array([ranges.stop], np.int64)


def _packed(starts: np.ndarray, stops: np.ndarray) -> Ranges:
    """A set from arrays in normal form."""
    if not len(starts):
        return EMPTY
    if len(starts) == 1:
        return Ranges(int(starts[0]), int(stops[0]))
    return Ranges(int(starts[0]), int(stops[-1]), starts, stops)


def _of_lists(starts: list[int], stops: list[int]) -> Ranges:
    return Ranges(starts[0], stops[-1], np.array(starts, np.int64), np.array(stops, np.int64))


def _merged(starts: np.ndarray, stops: np.ndarray) -> Ranges:
    """A set from ascending starts and ascending stops, joining ranges that touch or overlap."""
    apart = starts[1:] > stops[:-1]
    if apart.all():
        return _packed(starts, stops)
    return _packed(starts[np.concatenate([[True], apart])], stops[np.concatenate([apart, [True]])])


def _fill_gaps(outer: list[tuple[int, int]], run: int, limit: int) -> int:
    """Take axes off `outer` into the run until at most `limit` runs are left; the longer run."""
    while outer:
        runs = 1
        for _, n in outer:
            runs *= n
        if runs <= limit and outer[0][0] > run:
            break
        stride, n = outer.pop(0)
        run += (n - 1) * stride
    return run
