"""What ``pytest --lazyarray`` counts: a row for each function, and the calls that ran on the host."""
from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import lazyarray

FIELDS = ("calls", "lazy", "lost", "copies", "nbytes", "fallbacks")
SHOWN = 25
"""How many rows the terminal shows."""


class Row:
    """One call while it runs."""

    def __init__(self, counts: collections.Counter[str], measured: bool) -> None:
        self.counts, self.measured = counts, measured

    def note(self, result: Any, arguments: set[int]) -> None:
        """Count the arrays of a result: lazy, or lost. Arguments that come back are neither."""
        if isinstance(result, (tuple, list)):
            for item in result:
                self.note(item, arguments)
        elif self.measured and isinstance(result, np.ndarray) and id(result) not in arguments:
            self.counts["lazy" if lazyarray.is_lazy(result) else "lost"] += 1


class Table:
    """The counts of a run.

    Parameters
    ----------
    traced : bool
        Whether copies and fallbacks are counted.

    Attributes
    ----------
    functions : dict of str to Counter
        Dotted name of a function -> numbers of ``calls``, of arrays in the results that were ``lazy`` and that were
        ``lost`` (ndarrays, where an argument was lazy), of ``copies`` to the host and their ``nbytes``, and of
        ``fallbacks``.
    hosts : Counter
        (NumPy's function, reason) -> number of fallbacks.
    """

    def __init__(self, traced: bool) -> None:
        self.traced = traced
        self.arrays = 0
        self.functions: dict[str, collections.Counter[str]] = {}
        self.hosts: collections.Counter[tuple[str, str]] = collections.Counter()

    @property
    def calls(self) -> int:
        """Calls in all."""
        return sum(row["calls"] for row in self.functions.values())

    @contextlib.contextmanager
    def row(self, name: str, replaced: bool) -> Iterator[Row]:
        """Count one call, in which arrays were replaced or not."""
        counts = self.functions.setdefault(name, collections.Counter())
        counts["calls"] += 1
        with lazyarray.trace() if self.traced else contextlib.nullcontext() as trace:
            yield Row(counts, replaced)
        for event in trace.events if trace is not None else ():
            if event.kind == "materialise":
                counts["copies"] += 1
                counts["nbytes"] += event.nbytes
            elif event.kind == "fallback":
                counts["fallbacks"] += 1
                self.hosts[event.name, event.reason] += 1

    def content(self) -> dict[str, Any]:
        """Everything, for a JSON file or another process."""
        return {"calls": self.calls, "arrays": self.arrays,
                "functions": {name: {field: row[field] for field in FIELDS} for name, row in self.functions.items()},
                "hosts": [[*key, number] for key, number in self.hosts.items()]}

    def add(self, content: dict[str, Any]) -> None:
        """Add the counts of another process."""
        self.arrays += content["arrays"]
        for name, row in content["functions"].items():
            self.functions.setdefault(name, collections.Counter()).update(row)
        for name, reason, number in content["hosts"]:
            self.hosts[name, reason] += number

    def lines(self) -> Iterator[str]:
        """The table as text."""
        rows = sorted(self.functions.items(), key=lambda item: (-item[1]["nbytes"], -item[1]["lost"],
                                                                -item[1]["fallbacks"], -item[1]["calls"], item[0]))
        if not rows:
            return
        shown = rows[:SHOWN]
        width = max(len(name) for name, _ in [*shown, ("function", 0)])
        titles = ("calls", "lazy", "lost", "copies", "bytes", "fallbacks")
        yield f"{'function':{width}}" + "".join(f"{title:>11}" for title in titles)
        total: collections.Counter[str] = collections.Counter()
        for _, row in rows:
            total.update(row)
        for name, row in [*shown, ("all", total)]:
            yield f"{name:{width}}" + "".join(f"{row[field]:11,}" for field in FIELDS)
        if len(rows) > SHOWN:
            yield f"{len(rows) - SHOWN} more functions are in the report (--lazyarray-report=FILE)"
        if self.hosts:
            yield "on the host:"
            for (name, reason), number in self.hosts.most_common(SHOWN):
                yield f"{number:7} {name or '?'}: {reason}"
