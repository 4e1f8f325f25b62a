"""Magics for IPython and Jupyter: ``%load_ext lazyarray``.

``%%lazy_trace`` runs a cell and shows its copies, fallbacks and waits by line, when they were, and how long each line
took, with advice: as HTML with a picture in notebooks, as text in terminals. All that it shows comes from `Profile`,
which needs no IPython.
``%lazy_off`` and ``%lazy_on`` set ``options(lazy=...)`` for the whole process.
"""
from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

from lazyarray.events import html
from lazyarray.events.report import line_table
from lazyarray.integrations.profile import Profile
from lazyarray.settings.options import options

NAMES = {"lazy_trace": "line_cell", "lazy_off": "line", "lazy_on": "line"}

OFF = ("lazyarray is off: asarray and GPU functions give NumPy arrays, fetched at once. "
       "Run the cells that make the arrays again; %lazy_on turns it on.")
ON = "lazyarray is on: asarray and GPU functions give lazy arrays. Run the cells that make the arrays again."


class Report(Profile):
    """What one cell copied and how long its lines took: HTML in a notebook, tables of text in a terminal."""

    @property
    def title(self) -> str:
        """How long the cell ran, and whether lazyarray was off."""
        return super().title + ("" if options.get().lazy else ", with lazyarray off")

    def __repr__(self) -> str:
        return f"{self.title}\n{line_table(self.trace.events)}{self.text()}"


def load(shell: Any) -> None:
    """Register the magics with a shell (``%load_ext lazyarray``)."""
    from IPython.core.error import UsageError
    from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

    @magic_arguments("%lazy_trace")
    @argument("-o", "--output", metavar="NAME", help="keep the `lazyarray.trace` in this variable")
    @argument("-p", "--process", action="store_true", help="hear what other threads copy meanwhile, too")
    @argument("--html", metavar="FILE", help="write the report to this file, as a web page")
    @argument("--svg", metavar="FILE", help="write the timeline to this file, as a picture")
    @argument("statement", nargs="*", help="what to run (%%lazy_trace: what is below it in the cell)")
    def lazy_trace(line: str, cell: str | None = None) -> None:
        """Run a cell, or a statement, and show for each line what it copies between host and device, and its time."""
        __tracebackhide__ = True
        chosen, statement = _arguments(lazy_trace, line, parse_argstring)
        if cell is not None and statement:
            raise UsageError(f"%%lazy_trace takes options only, and the code below them; not {statement!r}")
        if not (statement if cell is None else cell.strip()):
            raise UsageError("%lazy_trace: there is nothing to run")
        # With a first line in place of the magic's own, line numbers are those of the cell.
        source = statement if cell is None else f"# %%lazy_trace\n{cell}"
        runs = _compiled(shell, source, UsageError)
        found = Report(process=chosen.process)
        try:
            with found:
                for code in runs:
                    exec(code, shell.user_global_ns, shell.user_ns)
        finally:
            _show(shell, found, chosen)

    def lazy_off(line: str) -> None:
        """Let `asarray` and GPU functions give NumPy arrays, to compare a program with and without lazy arrays."""
        options.set(lazy=False)
        print(OFF)

    def lazy_on(line: str) -> None:
        """Let `asarray` and GPU functions give lazy arrays again."""
        options.set(lazy=True)
        print(ON)

    for magic in (lazy_trace, lazy_off, lazy_on):
        shell.register_magic_function(magic, NAMES[magic.__name__], magic.__name__)


def unload(shell: Any) -> None:
    """Take the magics away, and undo ``%lazy_off`` (``%unload_ext lazyarray``)."""
    options.set(lazy=True)
    for name in NAMES:
        for magics in shell.magics_manager.magics.values():
            magics.pop(name, None)


def _arguments(magic: Any, line: str, parse: Callable[[Any, str], Any]) -> tuple[Any, str]:
    """The options of a line, and the statement after them, untouched by the rules of a command line."""
    words, rest = [], line
    takes_value = {"-o", "--output", "--html", "--svg"}
    while rest.startswith("-") and (parts := rest.split(None, 1)):
        words.append(parts[0])
        rest = parts[1] if len(parts) > 1 else ""
        if parts[0] in takes_value and rest:
            parts = rest.split(None, 1)
            words.append(parts[0])
            rest = parts[1] if len(parts) > 1 else ""
    return parse(magic, " ".join(words)), rest


def _compiled(shell: Any, source: str, error: type[Exception]) -> list[CodeType]:
    """The cell's code, under a name by which tracebacks find its lines; the last expression is to be displayed."""
    __tracebackhide__ = True
    source = shell.transform_cell(source)
    number = getattr(shell.displayhook.exec_result, "execution_count", None) or shell.execution_count
    name = shell.compile.cache(source, number)
    nodes = shell.transform_ast(shell.compile.ast_parse(source, name)).body
    shown = {"all": len(nodes), "none": 0}.get(shell.ast_node_interactivity, 1)
    silenced = shell.displayhook.semicolon_at_end_of_expression(source)
    if nodes and shown == 1 and (silenced or shell.ast_node_interactivity != "last" and not isinstance(nodes[-1],
                                                                                                      ast.Expr)):
        shown = 0
    quiet, loud = nodes[: len(nodes) - shown], nodes[len(nodes) - shown:]
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with shell.compile.extra_flags(flags):
        runs = [shell.compile(ast.Module(quiet, []), name, "exec")] if quiet else []
        runs += [shell.compile(ast.Interactive([node]), name, "single") for node in loud]
    if any(code.co_flags & inspect.CO_COROUTINE for code in runs):
        raise error("%lazy_trace can't await; put `with lazyarray.trace() as t:` around it, and show `t` after it")
    return runs


def _show(shell: Any, report: Report, chosen: Any) -> None:
    from IPython.display import display

    if chosen.output:
        shell.push({chosen.output: report.trace})
    if chosen.html:
        Path(chosen.html).write_text(report.page(report.title), encoding="utf-8")
    if chosen.svg:
        Path(chosen.svg).write_text(html.timeline(report.trace.events, report.span, standalone=True), encoding="utf-8")
    sys.stdout.flush()      # what the cell printed comes first
    display(report)
