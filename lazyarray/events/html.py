"""Events as a table and a picture for notebooks and web pages: what `trace` shows there."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lazyarray.events.markup import cell, clipped, element, escape, table
from lazyarray.events.report import COPIES, LINE_COLUMNS, NAMES, by_line, format_bytes, line_rows, summary

if TYPE_CHECKING:
    from lazyarray.events.event import Event

#: Each stands out by at least 3 to 1 (what WCAG asks of graphics) from a white page and from a dark grey one.
COLOURS = {"upload": "#2f7fd6", "materialise": "#c96a12", "peer copy": "#b0508f", "fallback": "#d64545",
           "synchronise": "#8a6fd0", "host": "#5b8a72", "spill": "#7d6b2f"}
MOST_THREADS = 6

_WIDTH, _RIGHT, _LANE, _TOP, _BOTTOM = 800, 14, 24, 6, 24
_LABELS, _LONG_LABELS = 120, 190        # room at the left for names of lanes, and for those with a thread's number
_NUMBERS = (2, 3, 4)    # columns of LINE_COLUMNS that are set to the right


class Block(NamedTuple):
    """Events of one lane that the picture can't tell apart: from when to when (seconds), and which."""

    start: float
    stop: float
    events: list[Event]


def report(events: Sequence[Event], span: tuple[float, float] | None = None, title: str = "") -> str:
    """Summary, timeline and totals by line, as one HTML element without ids, scripts or style sheets.

    Parameters
    ----------
    span : (float, float), optional
        As in `timeline`.
    title : str
        Put before the summary, in bold.
    """
    head = (element("b", escape(title)) + " " if title else "") + escape(summary(events))
    parts = [element("div", head, "margin:.2em 0 .5em")]
    if events:
        rows = line_rows(events)
        parts += [element("div", timeline(events, span), "overflow-x:auto"),
                  element("div", _by_line(rows), "overflow-x:auto;margin:.5em 0 0")]
        left = len(by_line(events)) - len(rows)
        if left:
            parts.append(element("div", f"and {left} more", "margin:.2em 0"))
    return element("div", "".join(parts), "text-align:left", **{"class": "lazyarray-trace"})


def page(events: Sequence[Event]) -> str:
    """`report` as a page of its own, light or dark as the reader's system is."""
    return whole(report(events, title="lazyarray trace"), "lazyarray trace")


def whole(content: str, title: str) -> str:
    """A page with this content, which is markup, and this title."""
    head = ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="color-scheme" content="light dark">' + element("title", escape(title)) + "</head>\n")
    return head + element("body", content, "font-family:system-ui,sans-serif;margin:1.5em") + "</html>\n"


def timeline(events: Sequence[Event], span: tuple[float, float] | None = None, standalone: bool = False) -> str:
    """When each event was, as an SVG picture: a lane for each kind (and thread, if there are a few).

    Parameters
    ----------
    span : (float, float), optional
        First and last moment to show, on the clock of the events; theirs by default.
    standalone : bool
        For a file of its own. Otherwise text has the colour of the page around it.
    """
    lanes = _lanes(events)
    left = _LONG_LABELS if any("," in label for label, _ in lanes) else _LABELS
    first = min((event.start for event in events), default=0.0)
    last = max((event.start + event.seconds for event in events), default=0.0)
    if span is not None:
        first, last = min(first, span[0]) if events else span[0], max(last, span[1])
    scale = (_WIDTH - left - _RIGHT) / max(last - first, 1e-6)
    foot = _TOP + _LANE * len(lanes)
    drawn = []
    for number, (label, found) in enumerate(lanes):
        y = _TOP + _LANE * number
        drawn.append(_text(label, left - 10, y + _LANE / 2 + 4, "end"))
        drawn.append(f'<line x1="{left}" x2="{_WIDTH - _RIGHT}" y1="{y + _LANE / 2:g}" y2="{y + _LANE / 2:g}"'
                     ' stroke="currentColor" stroke-opacity=".15"/>')
        for block in blocks(found, 1 / scale):
            x, width = left + (block.start - first) * scale, max((block.stop - block.start) * scale, 1.5)
            drawn.append(f'<rect x="{min(x, _WIDTH - _RIGHT - width):.2f}" y="{y + 4}" width="{width:.2f}"'
                         f' height="{_LANE - 8}" rx="1.5" fill="{COLOURS[found[0].kind]}">'
                         f"{element('title', escape(_tooltip(block)))}</rect>")
    unit, divisor, digits, ticks = axis_ticks(last - first)
    for moment in ticks:
        x = left + moment * scale
        drawn.append(f'<line x1="{x:.2f}" x2="{x:.2f}" y1="{_TOP}" y2="{foot + 4}" stroke="currentColor"'
                     ' stroke-opacity=".25"/>')
        drawn.append(_text(f"{moment / divisor:.{digits}f}" + (f" {unit}" if moment == ticks[-1] else ""), x, foot + 17,
                           "middle"))
    height = foot + _BOTTOM
    # Canvas and CanvasText are the reader's own; a program that does not know them draws black on nothing.
    style = "max-width:100%;height:auto" + (
        ";color-scheme:light dark;background:Canvas;color:CanvasText" if standalone else "")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="timeline: {escape(summary(events))}"'
            f' width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" style="{style}"'
            f' font-family="system-ui,sans-serif" font-size="12">{"".join(drawn)}</svg>')


def blocks(events: Sequence[Event], gap: float) -> list[Block]:
    """The events of a lane, those less than `gap` seconds apart together, so that no picture has more than it shows."""
    found: list[Block] = []
    for event in sorted(events, key=lambda event: event.start):
        stop = event.start + event.seconds
        if found and event.start - found[-1].stop < gap:
            before = found[-1]
            before.events.append(event)
            found[-1] = before._replace(stop=max(before.stop, stop))
        else:
            found.append(Block(event.start, stop, [event]))
    return found


def _lanes(events: Sequence[Event]) -> list[tuple[str, list[Event]]]:
    threads = list(dict.fromkeys(event.thread for event in sorted(events, key=lambda event: event.start)))
    apart = 1 < len(threads) <= MOST_THREADS
    lanes = []
    for number, thread in enumerate(threads if apart else [None], 1):
        for kind, (_, plural) in NAMES.items():
            found = [event for event in events if event.kind == kind and thread in (None, event.thread)]
            if found:
                lanes.append((f"{plural}, thread {number}" if apart else plural, found))
    return lanes


def _tooltip(block: Block) -> str:
    first, number = block.events[0], len(block.events)
    copied = sum(event.nbytes for event in block.events)
    size = f", {format_bytes(copied)}" if first.kind in COPIES else ""
    name = first.kind if number == 1 else f"{number} {NAMES[first.kind][1]}"
    seconds = sum(event.seconds for event in block.events)
    where = f"line {first.lineno}: {clipped(first.code, 100)}" + (" ..." if number > 1 else "")
    return f"{name}{size}, {seconds * 1e3:.3f} ms\n{where}" + (f"\n{first.name or first.reason}" if number == 1 else "")


def axis_ticks(seconds: float) -> tuple[str, float, int, list[float]]:
    """Unit, its seconds, decimals, and the moments to mark: four to ten of them at round numbers."""
    seconds = max(seconds, 1e-6)
    unit, divisor = next(((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3)) if seconds >= size), ("\u00b5s",
                                                                                                          1e-6))
    rough = seconds / divisor / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step for step in (1, 2, 5, 10) if step * power >= rough * 0.999) * power
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return unit, divisor, digits, [i * step * divisor for i in range(int(seconds / divisor / step * (1 + 1e-9)) + 1)]


def _text(text: str, x: float, y: float, anchor: str) -> str:
    return f'<text x="{x:.2f}" y="{y:g}" text-anchor="{anchor}" fill="currentColor">{escape(text)}</text>'


def _by_line(rows: Sequence[Sequence[str]]) -> str:
    drawn = [[cell(name, head=True, right=number in _NUMBERS) for number, name in enumerate(LINE_COLUMNS)]]
    for row in rows:
        where, kind, *rest, code, why = row
        mark = element("span", "\u25a0", f"color:{COLOURS[kind]}", **{"aria-hidden": "true"}) + " "
        drawn.append([cell(where, most=40), cell(kind, mark=mark), *(cell(text, right=True) for text in rest),
                      cell(code, code=True, most=48), cell(why, prose=True, most=160)])
    return table(drawn)


__all__ = ["COLOURS", "Block", "blocks", "page", "report", "timeline", "whole"]
