"""A progress bar for what takes longer than a second: tqdm's where it is installed, else a line of text.

It is shown on terminals and in notebooks only: what is written to files and pipes stays as it is.
"""
from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any, TypeVar

__all__ = ["progress"]

_Item = TypeVar("_Item")

#: Seconds before a bar appears.
PATIENCE = 1.0
_WIDTH = 30


def progress(items: Iterable[_Item], total: int, what: str) -> Iterator[_Item]:
    """Give the items one by one, and show how many are done once that has taken longer than a second.

    Parameters
    ----------
    items : iterable
    total : int
        How many items there are.
    what : str
        What is being done, for the bar.

    Examples
    --------
    >>> from lazyarray.events.progress import progress
    >>> list(progress(range(3), 3, "counting"))
    [0, 1, 2]
    """
    start, bar = perf_counter(), None
    try:
        for number, item in enumerate(items):
            yield item
            if bar is not None:
                bar.update(1)
            elif perf_counter() - start > PATIENCE and number + 1 < total and _is_seen():
                bar = _bar(total, what)
                bar.update(number + 1)
    finally:
        if bar is not None:
            bar.close()


def _is_seen() -> bool:
    """Whether somebody looks: this is the kernel of a notebook, or writes to a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel") or sys.stderr is not None and sys.stderr.isatty()


def _bar(total: int, what: str) -> Any:
    try:
        with warnings.catch_warnings():     # of ipywidgets, which a notebook may lack
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return _Line(total, what)
    return tqdm(total=total, desc=what, leave=False, disable=False)


class _Line:
    """A bar of text on one line, which is cleared at the end."""

    def __init__(self, total: int, what: str) -> None:
        self._total, self._what, self._done, self._shown = total, what, 0, ""

    def update(self, number: int) -> None:
        self._done += number
        part = self._done / self._total
        text = f"{self._what}: {'#' * int(part * _WIDTH):{_WIDTH}} {part:4.0%}"
        if text != self._shown:
            sys.stderr.write("\r" + text)
            sys.stderr.flush()
            self._shown = text

    def close(self) -> None:
        sys.stderr.write("\r" + " " * len(self._shown) + "\r")
        sys.stderr.flush()
