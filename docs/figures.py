"""A directive for tables of what was measured: ``.. figures:: calls-cuda`` shows the newest results of that name."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from benchmarks.timing import asked, missed

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"


class Figures(SphinxDirective):
    """A table of one file of ``benchmarks/results``, with what it was measured on.

    ``:only:`` takes the figures whose names have this text. ``:rows:`` takes some of those, in this order, by what
    follows the text in their names: ``name; name = label; ...``.
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"only": directives.unchanged, "rows": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        path = max(RESULTS.glob(f"{self.arguments[0]}-*.json"), default=None)
        if path is None:
            raise self.error(f"there are no results of {self.arguments[0]!r}")
        self.env.note_dependency(str(path))
        found = json.loads(path.read_text())
        only = self.options.get("only", "")
        chosen = [figure for figure in found["figures"] if only in figure["what"]]
        labels = {figure["what"]: figure["what"] for figure in chosen}
        if "rows" in self.options:
            named = {figure["what"].removeprefix(only).strip(): figure for figure in chosen}
            wanted = [text.partition("=") for text in self.options["rows"].split(";")]
            if absent := [name.strip() for name, _, _ in wanted if name.strip() not in named]:
                raise self.error(f"{path.name} has no figure of {only!r} {absent}")
            chosen = [named[name.strip()] for name, _, _ in wanted]
            labels = {named[name.strip()]["what"]: label.strip() or name.strip() for name, _, label in wanted}
        rows = [(labels[figure["what"]], f"{figure['value']:.3g} {figure['unit']}",
                 asked(figure) + ", missed" * missed(figure)) for figure in chosen]
        if not rows:
            raise self.error(f"{path.name} has no figure of {only!r}")
        head: tuple[str, ...] = ("What", "Median", "Target")
        if not any(map(asked, chosen)):
            head, rows = head[:2], [row[:2] for row in rows]
        return [table(head, rows), nodes.paragraph("", self._setting(found["setting"]))]

    def _setting(self, setting: dict[str, str]) -> str:
        versions = ", ".join(f"{name} {setting[name]}" for name in ("python", "numpy") if name in setting)
        return f"{setting['date']}: {setting['device'].removeprefix('CUDA works: ')}; {versions}."


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> nodes.table:
    """A table of text."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in (65, 15, 20)[:len(head)]), cols=len(head))
    for section, lines in ((nodes.thead(), [head]), (nodes.tbody(), rows)):
        section += [nodes.row("", *(nodes.entry("", nodes.paragraph("", text)) for text in line)) for line in lines]
        group += section
    return nodes.table("", group)


def setup(app: Any) -> dict[str, bool]:
    """Make the directive known to Sphinx."""
    app.add_directive("figures", Figures)
    return {"parallel_read_safe": True}
