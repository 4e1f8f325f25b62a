"""Events: what was copied between device and host, how long it took, and which line of the user's code caused it.

The code that copies calls ``token = begin(...)`` before and ``end(token)`` after. `begin` returns None at once when
nobody listens. Who listens lies on one ContextVar stack (`trace` and `no_transfers` blocks) and in one process-wide
tuple; inner and later ones decide over outer and earlier ones.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from os import PathLike
from threading import RLock, get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from lazyarray.errors import TransferError
from lazyarray.errors.inspection import once_made
from lazyarray.errors.interrupts import holding
from lazyarray.events.callers import place_of, user_line
from lazyarray.events.event import Event, Kind
from lazyarray.settings.options import Scope, without

if TYPE_CHECKING:
    from lazyarray.events.report import LineTotal

__all__ = ["Event", "begin", "end", "forbidden", "no_transfers", "trace"]

Level = Literal["allow", "log", "error"]

DIRECTIONS: dict[str, tuple[str, str]] = {
    "upload": ("uploads", "host-to-device"),
    "materialise": ("materialisations", "device-to-host"),
    "peer copy": ("peer_copies", "device-to-device"),
    "spill": ("materialisations", "full-device"),
}


class _Token:
    """An event that has begun."""

    __slots__ = ("fields", "ranged", "recorders", "source", "start")

    def __init__(self, recorders: list[trace], fields: dict[str, Any], source: Any, ranged: bool) -> None:
        self.recorders = recorders
        self.fields = fields
        self.source = source
        self.ranged = ranged
        self.start = perf_counter()  # last of all, so that our own book-keeping does not count


listeners: ContextVar[tuple[tuple[Any, Any], ...]] = ContextVar("lazyarray.trace", default=())
_process: tuple[tuple[Any, Any], ...] = ()
_process_lock = RLock()       # a finaliser that runs within may listen, too


#: Called before other code gets values on the host while there may be something to say about it, and what names a
#: library's function that the call which copies belongs to: `integrations/hints.py`.
before_host_use: Callable[[], None] | None = None
function_of_stack: Callable[[], str] | None = None
#: What begins and ends a range in a profiler that is attached: `devices` sets it.
ranges: tuple[Callable[[str], object], Callable[[], object]] | None = None


def heard() -> bool:
    """Whether anybody listens to events, or forbids them, here and now."""
    return bool(listeners.get() or _process)


def forbidden(kind: Kind, said: tuple[Level, ...] = ("warn", "error")) -> bool:
    """Whether `no_transfers` would say anything of a copy of this kind, at one of the levels in `said`."""
    return any(levels is not None and levels.get(kind, "allow") in said for _, levels in _process + listeners.get())


def begin(
    kind: Kind,
    nbytes: int = 0,
    shape: tuple[int, ...] | None = None,
    dtype: Any = None,
    reason: str = "",
    name: str = "",
    source: Any = None,
    allowed: bool = False,
) -> _Token | None:
    """Announce an event before it happens; None when nobody wants to hear of it.

    `source`: the host array of an upload, for who wants to know whether it is the same as before. `allowed`:
    `no_transfers` is not asked.

    Raises
    ------
    TransferError
        If `no_transfers` forbids it here. Nothing has been copied yet.
    """
    if before_host_use is not None and kind == "materialise":
        before_host_use()
    listening = listeners.get()
    if not listening and not _process and ranges is None:
        return None
    return _begin(_process + listening, kind, nbytes, shape, dtype, reason, name, source, allowed)


def end(token: _Token | None) -> None:
    """Record the event that `begin` announced, with the time since then; nothing, if that gave None."""
    if token is None:
        return
    seconds = perf_counter() - token.start
    if token.ranged and ranges is not None:
        ranges[1]()
    event = Event(**token.fields, thread=get_ident(), start=token.start, seconds=seconds)
    for recorder in token.recorders:
        recorder.record(event, token.source)


def _begin(
    listening: tuple[tuple[Any, Any], ...],
    kind: Kind,
    nbytes: int,
    shape: tuple[int, ...] | None,
    dtype: Any,
    reason: str,
    name: str,
    source: Any,
    allowed: bool,
) -> _Token | None:
    level: Level = "allow"
    recorders: list[trace] = []
    for listener, levels in listening:
        if levels is not None:
            level = level if allowed else levels.get("materialise" if kind == "spill" else kind, level)
        elif listener not in recorders:
            recorders.append(listener)
    if level == "allow" and not recorders and ranges is None:
        return None
    filename, lineno, code = user_line()
    if level != "allow":
        text = _describe(kind, nbytes, shape, dtype, reason, place_of(filename, lineno, path=True), code,
                         level == "error")
        if level == "error":
            raise TransferError(text)
        import logging  # seldom needed, and not a reason to make the import of lazyarray slower

        logging.getLogger("lazyarray").warning(text)
    if not recorders and ranges is None:
        return None
    if kind == "materialise" and not name and function_of_stack is not None:
        name = function_of_stack()
    fields = {"kind": kind, "name": name, "nbytes": nbytes, "shape": shape, "dtype": dtype, "reason": reason}
    if ranges is not None:
        ranges[0](f"lazyarray {kind} {name or reason}, {nbytes} bytes, {place_of(filename, lineno)}")
    return _Token(recorders, fields | {"filename": filename, "lineno": lineno, "code": code}, source,
                  ranges is not None)


def _describe(
    kind: Kind, nbytes: int, shape: tuple[int, ...] | None, dtype: Any, reason: str, place: str, code: str,
    blocked: bool,
) -> str:
    # Seldom needed, here and below, and 0.5 ms of an import
    from lazyarray.events import report

    parameter, direction = DIRECTIONS[kind]
    size = f"{nbytes} bytes" + (f" ({report.format_bytes(nbytes)})" if nbytes >= 1024 else "")
    array = "" if shape is None else f"shape {shape}, dtype {dtype}, "
    return (
        f"{'Blocked' * blocked} {direction} copy: {array}{size}, at {place}".lstrip()
        + (f": {code}" if code else "")
        + (f" [{reason}]" if reason else "")
        + ". no_transfers() is in force here. If this copy is intended, wrap the line in"
        + f" `with lazyarray.no_transfers({parameter}='allow'):`"
    )


class trace(Scope):
    """Collect the events of a ``with`` block or of a function's calls.

    Parameters
    ----------
    process : bool
        Also collect the events of other threads. Otherwise only those of this thread, and of the asyncio tasks that it
        starts, are collected.

    Attributes
    ----------
    events : list of Event
        In the order in which they ended. A trace that is used for several blocks or calls collects all of them.

    Notes
    -----
    ``print(t)`` shows `table`. A trace copies nothing and keeps no arrays alive.

    Examples
    --------
    >>> import lazyarray, numpy
    >>> with lazyarray.trace() as t:
    ...     x = lazyarray.asarray(numpy.arange(30_000.0))
    ...     y = (x * 2 + 1).tolist()
    >>> len(t.uploads), len(t.materialisations), t.nbytes
    (1, 1, 480000)
    """

    _stack = listeners

    def __init__(self, *, process: bool = False) -> None:
        self.events: list[Event] = []
        self._whole_process = process

    def __enter__(self) -> Self:
        if not self._whole_process:
            return super().__enter__()
        global _process
        with holding(_process_lock):
            _process = (*_process, (self, None))
        return self

    def __exit__(self, *exc_info: object) -> None:
        if not self._whole_process:
            return super().__exit__(*exc_info)
        global _process
        with holding(_process_lock):
            _process = without(_process, self)
        return None

    def record(self, event: Event, source: Any = None) -> None:
        """Add an event; `source` is the host array of an upload."""
        self.events.append(event)

    def of_kind(self, kind: Kind) -> list[Event]:
        """Return the events of one kind."""
        return [event for event in self.events if event.kind == kind]

    @property
    def uploads(self) -> list[Event]:
        """The copies from the host to the device."""
        return self.of_kind("upload")

    @property
    def materialisations(self) -> list[Event]:
        """The copies from the device to the host."""
        return self.of_kind("materialise")

    @property
    def peer_copies(self) -> list[Event]:
        """The copies from one device to another."""
        return self.of_kind("peer copy")

    @property
    def fallbacks(self) -> list[Event]:
        """The functions that ran on the host because the device does not support the call."""
        return self.of_kind("fallback")

    @property
    def synchronisations(self) -> list[Event]:
        """The waits for the device."""
        return self.of_kind("synchronise")

    @property
    def host_calls(self) -> list[Event]:
        """The calls that NumPy computed on the host because all arrays are small and current there."""
        return self.of_kind("host")

    @property
    def spills(self) -> list[Event]:
        """The moves of arrays to the host because the device was full, and back."""
        return self.of_kind("spill")

    @property
    def nbytes(self) -> int:
        """Bytes of all copies."""
        return sum(event.nbytes for event in self.events if event.kind in DIRECTIONS)

    def __len__(self) -> int:
        return len(self.events)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    @once_made("events")
    def __repr__(self) -> str:
        return f"<trace: {self.summary()}>"

    @once_made("events")
    def __str__(self) -> str:
        return self.table()

    def summary(self) -> str:
        """Return one line with the number of events of each kind, and the bytes of the copies."""
        from lazyarray.events import report

        return report.summary(self.events)

    def table(self, limit: int = 60) -> str:
        """Return a text with a line for each event, at most `limit` of them, and the totals."""
        from lazyarray.events import report

        return report.table(self.events, limit)

    def by_line(self) -> list[LineTotal]:
        """Return the totals for each line of your code and kind of event, sorted by bytes, largest first."""
        from lazyarray.events import report

        return report.by_line(self.events)

    def line_table(self) -> str:
        """Return the totals for each line and kind as text, in the order of the lines, with the reasons."""
        from lazyarray.events import report

        return report.line_table(self.events)

    def timeline(self) -> str:
        """Return a timeline of the events as the text of an SVG file."""
        from lazyarray.events import html  # seldom needed, as in `_repr_html_`

        return html.timeline(self.events, standalone=True)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write the timeline and the totals for each line to an HTML file.

        Parameters
        ----------
        path : str or os.PathLike
            File to write, UTF-8.
        """
        from lazyarray.events import html

        with open(path, "w", encoding="utf-8") as file:
            file.write(html.page(self.events))

    def _repr_html_(self) -> str:
        from lazyarray.events import html

        return html.report(self.events)

    def to_chrome(self, path: str | PathLike[str]) -> None:
        """Write the events as a Chrome trace (JSON), for ``chrome://tracing`` or https://ui.perfetto.dev.

        Parameters
        ----------
        path : str or os.PathLike
            File to write, UTF-8.
        """
        from lazyarray.events import report

        report.write_chrome(self.events, path)


class no_transfers(Scope):
    """Forbid or log copies between device and host, and between devices, in a ``with`` block or a function.

    `no_transfers.set` does so for the whole process. An inner block has priority over an outer one, and any block over
    the process-wide setting.

    Parameters
    ----------
    level : {"error", "log", "allow"}, optional
        What happens at a copy in any direction: a `TransferError` is raised before it, the logger ``lazyarray`` gets
        a line, or nothing happens. The default is "error", unless a direction is given.
    uploads, materialisations, peer_copies : {"error", "log", "allow"}, optional
        The same for one direction; `peer_copies` are those from one device to another. If neither this nor `level` is
        given, the setting from outside the block applies.

    Notes
    -----
    Small arrays that lazyarray keeps on the host are uploaded when the device needs them. That is an event of a `trace`
    too, but no error here. The level for materialisations is that for spills, too: moves of arrays to the host because
    the device is full, and back.

    Raises
    ------
    ValueError
        If a level is not one of the three.

    Examples
    --------
    >>> import lazyarray, numpy
    >>> x = lazyarray.asarray(numpy.arange(30_000.0))
    >>> with lazyarray.no_transfers():
    ...     y = x * 2                           # stays on the device
    ...     numpy.asarray(y)
    Traceback (most recent call last):
      ...
    lazyarray.errors.TransferError: Blocked device-to-host copy: shape (30000,), dtype float64, 240000 bytes ...
    >>> with lazyarray.no_transfers(uploads="error"):
    ...     numpy.asarray(y)[:3]
    array([0., 2., 4.])
    """

    _stack = listeners

    def __init__(
        self,
        level: Level | None = None,
        *,
        uploads: Level | None = None,
        materialisations: Level | None = None,
        peer_copies: Level | None = None,
    ) -> None:
        given = uploads, materialisations, peer_copies
        if level is None and given == (None, None, None):
            level = "error"
        self._levels: dict[str, Level] = {}
        for kind, one in zip(DIRECTIONS, given):
            chosen = one or level
            if chosen is None:
                continue
            if chosen not in get_args(Level):
                raise ValueError(f"a level is one of {get_args(Level)}, not {chosen!r}")
            self._levels[kind] = chosen

    def _value(self) -> dict[str, Level]:
        return self._levels

    @once_made("_levels")
    def __repr__(self) -> str:
        levels = ", ".join(f"{DIRECTIONS[kind][0]}={level!r}" for kind, level in self._levels.items())
        return f"no_transfers({levels})"

    @staticmethod
    def set(
        level: Level | None = None,
        *,
        uploads: Level | None = None,
        materialisations: Level | None = None,
        peer_copies: Level | None = None,
    ) -> None:
        """Set the levels for the whole process; ``no_transfers.set("allow")`` removes them."""
        global _process
        changes = no_transfers(level, uploads=uploads, materialisations=materialisations,
                               peer_copies=peer_copies)._levels
        with holding(_process_lock):
            before: dict[str, Level] = next((levels for listener, levels in _process if listener is no_transfers), {})
            levels = before | changes
            others = without(_process, no_transfers)
            _process = others if set(levels.values()) == {"allow"} else ((no_transfers, levels), *others)
