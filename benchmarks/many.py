"""Many live arrays: what each costs in host memory, and whether an operation takes longer where there are many.

``python -m benchmarks.many --count 1000000`` for a million; the default is enough to see growth.
"""
from __future__ import annotations

import argparse
import gc
import statistics
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import lazyarray

from . import timing

COUNT = 100_000
MEASURED = 10_000       # for bytes: more would not change the mean


def makers() -> dict[str, Callable[[], Any]]:
    """What arrays are made of: results of operators, computed and recorded, views, and what was read on the host."""
    (x, y), _ = timing.small(16)

    def recorded() -> Any:
        return x * y

    def fetched() -> Any:
        z = x + y
        np.asarray(z)
        return z

    return {"results": lambda: timing.compute(x + y), "recorded results": recorded, "views": lambda: x[1:],
            "fetched results": fetched}


def bytes_each(make: Callable[[], Any], count: int = MEASURED) -> float:
    """Bytes of host memory that Python's allocators give for each of many live arrays."""
    for _ in range(100):        # what is made once is made now
        make()
    kept = [None] * count
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for i in range(count):
            kept[i] = make()
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / count
    finally:
        tracemalloc.stop()


def microseconds(number: int, rounds: int) -> dict[str, float]:
    """Of operations, whatever else is alive."""
    (x, y), _ = timing.small(16)
    host = np.linspace(0, 1, 16)
    return timing.in_turn({"x + y": lambda: timing.compute(x + y), "np.sum(x)": lambda: timing.compute(np.sum(x)),
                           "x[1:]": lambda: x[1:], "np.asarray(x)": lambda: np.asarray(x),
                           "asarray(ndarray)": lambda: lazyarray.asarray(host)}, number, rounds)


def figures(count: int = COUNT, number: int = 500, rounds: int = 15, turns: int = 5) -> timing.Figures:
    """The figures, as in `calls.figures`: medians of turns, each of alone, crowded and alone again.

    A machine has its slow moments, which last as long as one of these.
    """
    found = timing.Figures()
    measured = min(count, MEASURED)
    for kind, make in makers().items():     # what was fetched has a second home, and its alias
        found.note(f"host memory of one of many {kind}", bytes_each(make, measured), "bytes",
                   most=None if kind == "fetched results" else 1024)
    _, (a, b) = timing.small(16)
    found.note("host memory of one of the device's own", bytes_each(lambda: a + b, measured), "bytes")
    before = microseconds(number, rounds)
    for kind, make in makers().items():
        ratios: dict[str, list[float]] = {what: [] for what in before}
        for _ in range(turns):
            kept = [make() for _ in range(count)]
            assert len({id(one) for one in kept}) == count
            crowded = microseconds(number, rounds)
            del kept
            after = microseconds(number, rounds)
            for what, value in crowded.items():
                ratios[what].append(2 * value / (before[what] + after[what]))
            before = after
        for what, values in ratios.items():
            found.note(f"{what} beside {count:,} {kind}, in times of beside none", statistics.median(values), "times",
                       most=1.1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT, help="of live arrays of each kind (%(default)s)")
    count = parser.parse_args().count
    timing.show("many", figures(count), kept=lazyarray.device().name == "cuda")


if __name__ == "__main__":
    main()
