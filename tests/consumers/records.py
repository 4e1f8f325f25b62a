"""What a record of a consumer says, and the test that it makes."""
from __future__ import annotations

import importlib
import inspect
import math
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import lazyarray

from .comparing import comparable, difference
from .inputs import INPUTS

#: Before Python 3.12 no class written in Python can be a buffer.
HAS_BUFFER = sys.version_info >= (3, 12)

Copies = Literal["none", "each once", "in between"]
#: Bytes from device to host, single values aside: none; no more than the arrays have; also of what is made of them.
COPIES: dict[Copies, str] = {
    "none": "works, no copy",
    "each once": "works, one copy",
    "in between": "works, one copy, also of results",
}
_SINGLE = 16    # bytes of a complex number


@dataclass(frozen=True)
class Refused:
    """A call that raises, and what to do instead.

    Parameters
    ----------
    error : str
        Name of the exception's class or of one of its bases, with or without its module.
    says : str
        Regular expression that its message matches.
    way_out : str
        What the table says, in reST.
    way : callable
        Applied to each lazy array it makes the same call work.
    """

    error: str
    says: str
    way_out: str = "pass ``np.asarray(x)``"
    way: Callable[[Any], Any] = np.asarray


@dataclass(frozen=True)
class Record:
    """One consumer: a call of a library, and what becomes of it."""

    library: str
    needs: tuple[str, ...]
    call: str
    outcome: Copies | Refused
    before_buffers: Copies | Refused
    function: Callable[..., Any]
    tolerance: float

    @property
    def expected(self) -> Copies | Refused:
        """The outcome under this Python."""
        return self.outcome if HAS_BUFFER else self.before_buffers

    def arguments(self) -> dict[str, Any]:
        return {name: INPUTS[name]() for name in inspect.signature(self.function).parameters}

    def check(self) -> None:
        """Make the call on ndarrays and on lazy arrays, and compare results, arguments and copies."""
        for name in self.needs:
            pytest.importorskip(name, exc_type=ImportError)
        plain = self.arguments()
        lazy = {name: lazyarray.asarray(v) if isinstance(v, np.ndarray) else v for name, v in self.arguments().items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")     # of the libraries, and of what falls back to the host
            wanted = comparable(self.function(**plain))
            try:
                if isinstance(self.expected, Refused):
                    self._check_refused(self.expected, lazy)
                    lazy = {name: self.expected.way(v) if lazyarray.is_lazy(v) else v for name, v in lazy.items()}
                    got = comparable(self.function(**lazy))
                else:
                    with lazyarray.trace(process=True) as trace:
                        result = self.function(**lazy)
                    got = comparable(result)
                    self._check_copies(self.expected, trace, plain)
                found = [difference(got, wanted, self.tolerance)] + [
                    difference(comparable(lazy[name]), comparable(value), self.tolerance, f"argument {name}")
                    for name, value in plain.items() if isinstance(value, np.ndarray)]
                assert not any(found), "\n".join(filter(None, found))
            finally:
                for value in (*plain.values(), *lazy.values()):
                    if isinstance(value, Path):
                        shutil.rmtree(value, ignore_errors=True)

    def _check_refused(self, refused: Refused, lazy: Mapping[str, Any]) -> None:
        with pytest.raises(Exception) as caught:
            self.function(**lazy)
        names = [name for kind in type(caught.value).__mro__ for name in (
            kind.__name__, f"{kind.__module__}.{kind.__name__}")]
        assert refused.error in names, repr(caught.value)
        assert re.search(refused.says, str(caught.value)), caught.value

    def _check_copies(self, expected: Copies, trace: Any, plain: Mapping[str, Any]) -> None:
        down = sum(event.nbytes for event in trace.materialisations if event.nbytes > _SINGLE)
        most = {"none": 0, "in between": math.inf}.get(
            expected, sum(v.nbytes for v in plain.values() if isinstance(v, np.ndarray)))
        least = 1 if expected == "each once" else 0
        assert least <= down <= most, f"not {expected!r}: {down} bytes to the host, of {most}\n{trace.table()}"
        if expected == "none":
            assert not trace.uploads, trace.table()


class Library:
    """Makes the records of one library.

    Parameters
    ----------
    name : str
        As the table names it.
    needs : str, optional
        Modules that must be there, separated by spaces; `name` if not given. Without them the tests are skipped.
    """

    def __init__(self, name: str, needs: str | None = None) -> None:
        self.name = name
        self.needs = tuple((name if needs is None else needs).split())

    def __call__(self, call: str, *, copies: Copies | None = None, refused: Refused | None = None,
                 before_buffers: Copies | Refused | None = None, needs: str = "",
                 tolerance: float = 1e-9) -> Callable[[Callable[..., Any]], Callable[[], None]]:
        """Decorator that makes a test of a function whose parameters are names of `INPUTS`.

        Parameters
        ----------
        call : str
            What a user writes, in reST: a cell of the table, joined by commas with others of the same outcome.
        copies : {"none", "each once", "in between"}
            The call works; how much comes to the host.
        refused : Refused
            It doesn't.
        before_buffers : optional
            Either of the two, where it differs before Python 3.12.
        needs : str, optional
            More modules that must be there.
        tolerance : float, optional
            Relative, of floating-point results; 1e-9 if not given.
        """
        outcome = copies if refused is None else refused
        if outcome is None or copies is not None and refused is not None:
            raise TypeError("give either copies= or refused=")

        def make(function: Callable[..., Any]) -> Callable[[], None]:
            record = Record(self.name, (*self.needs, *needs.split()), call, outcome, before_buffers or outcome,
                            function, tolerance)

            def test() -> None:
                record.check()

            test.__name__ = test.__qualname__ = function.__name__
            test.__doc__, test.__module__ = function.__doc__, function.__module__
            test.record = record    # type: ignore[attr-defined]
            return test

        return make


def all_records() -> list[Record]:
    """The records of all files, in the order of the files' names and of the tests in them."""
    records = []
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        module = importlib.import_module(f"{__package__}.{path.stem}")
        found = [getattr(value, "record", None) for value in vars(module).values()]
        records += [record for record in found if isinstance(record, Record)]
    return records
