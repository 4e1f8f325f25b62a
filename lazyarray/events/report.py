"""Events as text, sums and Chrome-trace JSON: what `trace` shows."""
from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, getpid
from typing import TYPE_CHECKING, Any, NamedTuple

from lazyarray.events.callers import place_of

if TYPE_CHECKING:
    from lazyarray.events.event import Event

#: How one and several events of a kind are called.
NAMES = {
    "upload": ("upload", "uploads"),
    "materialise": ("materialisation", "materialisations"),
    "peer copy": ("peer copy", "peer copies"),
    "fallback": ("fallback", "fallbacks"),
    "synchronise": ("synchronisation", "synchronisations"),
    "host": ("call on the host", "calls on the host"),
    "spill": ("spill", "spills"),
}
COPIES = ("upload", "materialise", "peer copy", "spill")
COLUMNS = ("kind", "bytes", "ms", "array", "where", "line", "why")
LINE_COLUMNS = ("where", "kind", "times", "bytes", "ms", "line", "why")
MOST_ROWS = 200


class LineTotal(NamedTuple):
    """What one line of the user's caused, of one kind: how often, how many bytes, how many seconds."""

    filename: str
    lineno: int
    code: str
    kind: str
    events: int
    nbytes: int
    seconds: float


def format_bytes(nbytes: int) -> str:
    """Bytes in the largest binary unit that leaves at least 1.

    Examples
    --------
    >>> from lazyarray.events.report import format_bytes
    >>> format_bytes(0), format_bytes(1023), format_bytes(1536), format_bytes(1 << 30)
    ('0 B', '1023 B', '1.5 KiB', '1.0 GiB')
    """
    if nbytes < 1024:
        return f"{nbytes} B"
    size, units = nbytes / 1024, ("KiB", "MiB", "GiB", "TiB", "PiB")
    for unit in units[:-1]:
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {units[-1]}"


def summary(events: Sequence[Event]) -> str:
    """One line: how many events of each kind, with the bytes and the time of the copies."""
    parts = []
    for kind, names in NAMES.items():
        found = [event for event in events if event.kind == kind]
        if found or kind in ("upload", "materialise"):
            text = f"{len(found)} {names[len(found) != 1]}"
            if kind in COPIES and found:
                nbytes = format_bytes(sum(event.nbytes for event in found))
                text += f" ({nbytes}, {sum(event.seconds for event in found) * 1e3:.3f} ms)"
            parts.append(text)
    return ", ".join(parts)


def table(events: Sequence[Event], limit: int) -> str:
    """A line for each of the first `limit` events, in the order in which they began, and the summary."""
    rows = [_row(event) for event in sorted(events, key=lambda event: event.start)[:limit]]
    lines = align([COLUMNS, *rows], right=(1, 2)) if rows else []
    if len(events) > limit:
        lines.append(f"... and {len(events) - limit} more")
    return "\n".join([*lines, summary(events)])


def align(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines of text, in columns two blanks apart; those named in `right` are set to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _row(event: Event) -> tuple[str, ...]:
    shape = "" if event.shape is None else "x".join(map(str, event.shape)) or "0-d"
    return (
        event.kind,
        format_bytes(event.nbytes),
        f"{event.seconds * 1e3:.3f}",
        f"{shape} {'' if event.dtype is None else event.dtype}".strip(),
        place_of(event.filename, event.lineno),
        _short(event.code),
        _why(event),
    )


def by_line(events: Sequence[Event]) -> list[LineTotal]:
    """Totals of each line and kind, those with the most bytes first, then those that took longest."""
    totals: dict[tuple[str, int, str, str], list[Any]] = {}
    for event in events:
        total = totals.setdefault((event.filename, event.lineno, event.code, event.kind), [0, 0, 0.0])
        total[0] += 1
        total[1] += event.nbytes
        total[2] += event.seconds
    lines = [LineTotal(*where, *total) for where, total in totals.items()]
    return sorted(lines, key=lambda line: (-line.nbytes, -line.seconds))


def line_rows(events: Sequence[Event]) -> list[tuple[str, ...]]:
    """A row of cells (`LINE_COLUMNS`) for each line of the user's and kind, in the order of the lines.

    Of more than `MOST_ROWS`, those with the least bytes, then the least time, are left out.
    """
    totals = by_line(events)[:MOST_ROWS]
    files: dict[str, int] = {}
    reasons: dict[tuple[str, int, str], dict[str, None]] = {}
    for event in sorted(events, key=lambda event: event.start):
        files.setdefault(event.filename, len(files))
        reasons.setdefault((event.filename, event.lineno, event.kind), {})[_why(event)] = None
    kinds = list(NAMES)
    totals.sort(key=lambda total: (files[total.filename], total.lineno, kinds.index(total.kind)))
    return [
        (
            place_of(total.filename, total.lineno),
            total.kind,
            str(total.events),
            format_bytes(total.nbytes) if total.kind in COPIES else "",
            f"{total.seconds * 1e3:.3f}",
            total.code,
            _few(list(reasons[total.filename, total.lineno, total.kind])),
        )
        for total in totals
    ]


def line_table(events: Sequence[Event]) -> str:
    """`line_rows` as text, and the summary."""
    rows = [(*row[:5], _short(row[5]), _short(row[6])) for row in line_rows(events)]
    lines = align([LINE_COLUMNS, *rows], right=(2, 3, 4)) if rows else []
    left = len(by_line(events)) - len(rows)
    return "\n".join([*lines, *([f"... and {left} more"] if left else []), summary(events)])


def _few(texts: list[str]) -> str:
    return "; ".join(texts[:3]) + (f"; and {len(texts) - 3} more" if len(texts) > 3 else "")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _why(event: Event) -> str:
    return f"{event.name}: {event.reason}" if event.name and event.reason else event.name or event.reason


def write_chrome(events: Sequence[Event], target: str | PathLike[str]) -> None:
    """Write complete ("X") events, one row for each thread, times in microseconds."""
    import json  # only here, so that the import of lazyarray stays quick

    from .progress import progress

    process = getpid()
    with open(target, "w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ms", "traceEvents": [')
        for number, event in enumerate(progress(events, len(events), f"writing {target}")):
            record = {
                "name": f"{event.kind} {event.name}".strip(),
                "cat": event.kind,
                "ph": "X",
                "ts": event.start * 1e6,
                "dur": event.seconds * 1e6,
                "pid": process,
                "tid": event.thread,
                "args": {
                    "bytes": event.nbytes,
                    "shape": None if event.shape is None else list(event.shape),
                    "dtype": None if event.dtype is None else str(event.dtype),
                    "reason": event.reason,
                    "where": f"{event.filename}:{event.lineno}",
                    "line": event.code,
                },
            }
            file.write((",\n" if number else "\n") + json.dumps(record))
        file.write("\n]}\n")
