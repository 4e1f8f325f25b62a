"""HTML that reads well on any page: text in the page's own colour, lines and grounds half transparent.

Notebooks tell dark from light each in its own way, and not always as the browser does; what only takes the page's own
colours is right in all of them. Styles are inline, since a style sheet would act on the whole page and is not shown
at all where a notebook isn't trusted; there are no ids that could meet another output's.
"""
from __future__ import annotations

import html
from collections.abc import Sequence

__all__ = ["cell", "clipped", "element", "escape", "image", "table"]

LINE = "1px solid rgba(128,128,128,.45)"
GROUND = "rgba(128,128,128,.12)"
MONOSPACE = "var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace,Menlo,Consolas,monospace))"

_TABLE = f"border-collapse:collapse;margin:0;border:{LINE};font-size:90%;line-height:1.35"
_CELL = f"padding:.15em .55em;border:{LINE};vertical-align:top;white-space:pre"
_HEAD = f"{_CELL};background:{GROUND};font-weight:600"


def escape(text: str) -> str:
    """Plain text as markup; what can't be seen, or may not stand in a page at all, as Python writes it."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
    return html.escape(text)


def element(tag: str, content: str, style: str = "", **attributes: str) -> str:
    """``<tag ...>content</tag>``; `content` is markup already, attributes are not."""
    return f"<{tag}{_attributes(style, attributes)}>{content}</{tag}>"


def image(source: str, alt: str, style: str) -> str:
    """A picture."""
    return f"<img{_attributes(style, {'src': source, 'alt': alt})}/>"


def _attributes(style: str, others: dict[str, str]) -> str:
    given = {"style": style, **others} if style else others
    return "".join(f' {name}="{escape(value)}"' for name, value in given.items())


def clipped(text: str, length: int) -> str:
    """At most so many characters of `text`, the last one an ellipsis if there are more."""
    return text if len(text) <= length else text[: length - 1] + "\u2026"


def cell(text: str, head: bool = False, right: bool = False, code: bool = False, prose: bool = False,
         most: int | None = None, mark: str = "") -> str:
    """A cell of a table, of plain text after the markup `mark`; of more than `most` characters, all are the tooltip."""
    style = _HEAD if head else _CELL
    if prose:
        style += ";white-space:normal;min-width:16em"
    style += f";text-align:{'right' if right else 'left'}" + (f";font-family:{MONOSPACE}" if code else "")
    whole = {"title": text} if most is not None and len(text) > most else {}
    return element("th" if head else "td", mark + escape(clipped(text, most) if most else text), style, **whole)


def table(rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table of rows of cells, which are markup already."""
    head = element("caption", escape(caption), "text-align:left;caption-side:top;padding:0 0 .2em") if caption else ""
    return element("table", head + "".join(element("tr", "".join(row)) for row in rows), _TABLE)
