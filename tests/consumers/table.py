"""The table of the page on other libraries: one row for each library and outcome."""
from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from .records import COPIES, Copies, Record, Refused

PAGE = Path(__file__).parents[2] / "docs" / "libraries.rst"
_BEGIN = ".. the next lines are made by `python -m tests.consumers --write`\n"
_END = ".. the end of what is made\n"
_VERSIONS = "Measured with "


def outcome_text(outcome: Copies | Refused) -> str:
    """What the table says of an outcome."""
    if isinstance(outcome, Refused):
        return f"``{outcome.error}``: {outcome.way_out}"
    return COPIES[outcome]


def row_of(record: Record) -> tuple[str, str]:
    """Library and outcome, with what differs before Python 3.12."""
    text = outcome_text(record.outcome)
    if record.before_buffers != record.outcome:
        text += f"; before Python 3.12 {outcome_text(record.before_buffers)}"
    return record.library, text


def table(records: Iterable[Record]) -> str:
    """The table in reST."""
    rows: dict[tuple[str, str], list[str]] = {}
    for record in records:
        rows.setdefault(row_of(record), []).append(record.call)
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 12 58 30", ""]
    previous = None
    for library, text in [("Library", "Result"), *sorted(rows, key=lambda row: row[0].casefold())]:
        calls = "; ".join(rows.get((library, text), ["Calls"]))
        for mark, cell in zip("*  ", (library if library != previous else "", calls, text)):
            lines += _wrapped(f"   {mark} - {cell}".rstrip())
        previous = library
    return "\n".join(lines) + "\n"


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, 118, subsequent_indent=" " * 7, break_long_words=False, break_on_hyphens=False)


def _split() -> tuple[str, str, str]:
    text = PAGE.read_text()
    before, begin, rest = text.partition(_BEGIN)
    made, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"{PAGE} has no place for the table: {_BEGIN!r} ... {_END!r}")
    return before + begin, made, end + after


def in_page() -> str:
    """The table as it stands in the page, less the versions that it was measured with."""
    return re.sub(rf"{_VERSIONS}.*?\.\n\n", "", _split()[1], flags=re.DOTALL).strip() + "\n"


def write(records: Iterable[Record], versions: str) -> None:
    """Put the table into the page."""
    before, _, after = _split()
    PAGE.write_text(f"{before}\n{table(records)}\n{_VERSIONS}{versions}.\n\n{after}")
