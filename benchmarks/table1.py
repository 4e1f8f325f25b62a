"""The table of the first paper on CuPy, today: ``arange(n).reshape(1000, -1).T * 2`` by NumPy, CuPy and lazy arrays.

``python -m benchmarks.table1`` measures all three in one run, in turn and waiting for the device, and prints medians
and ratios. On a GPU the figures are kept in ``benchmarks/results``; on the simulated device they say nothing of speed,
and only the smaller sizes are run.
"""
from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lazyarray
import lazyarray.numpy as lazy

from . import timing

SIZES = (10**4, 10**5, 10**6, 10**7, 10**8)
LARGEST_SIMULATED = 10**6
SECONDS = 2.0       # of measuring, for each size and library
ROUNDS = (7, 1000)  # at least and at most


def work(xp: Any, size: int) -> Any:
    """What the paper measures."""
    return xp.arange(size).reshape(1000, -1).T * 2


def candidates() -> dict[str, Callable[[int], Any]]:
    """The libraries by name, and the work done with each.

    A lazy array counts when its bytes are there, on the side where the model has them computed for who looks at them.
    """
    device = lazyarray.device()
    name = timing.peer()
    return {"NumPy": lambda n: work(np, n), name: lambda n: work(device.xp, n),
            "lazyarray": lambda n: timing.looked_at(work(lazy, n))}


def on_device(result: Any) -> bool:
    """Whether the device computed it: what the host computed of a lazy array still waits there."""
    return not isinstance(result, np.ndarray) if not lazyarray.is_lazy(result) else result._self_storage.pending is None


def milliseconds(size: int, seconds: float = SECONDS) -> dict[str, float]:
    """Median milliseconds of each library at one size; they take turns, each with a call that is not timed first."""
    calls, wait = candidates(), lazyarray.device().synchronize
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        timing.warm(lambda call=call: call(size))
    end = time.perf_counter() + seconds * len(calls)
    while len(found["NumPy"]) < ROUNDS[0] or len(found["NumPy"]) < ROUNDS[1] and time.perf_counter() < end:
        for name, call in calls.items():
            call(size)
            wait()
            start = time.perf_counter()
            result = call(size)
            if on_device(result):   # else there is nothing to wait for, and to ask takes as long as a small array
                wait()
            found[name].append(time.perf_counter() - start)
            del result      # not while the next one is timed
    return {name: 1e3 * statistics.median(values) for name, values in found.items()}


#: What is asked: at most so many times NumPy at the smallest size, the better of both at larger ones, and CuPy at 1e8.
MOST_OF_NUMPY, MOST_OF_BETTER, MOST_OF_CUPY = 2.0, 1.2, 0.35


def figures(sizes: tuple[int, ...] | None = None, seconds: float = SECONDS) -> timing.Figures:
    """A figure for each size and library, and the ratios of the last library to the others."""
    made = timing.Figures()
    for size in sizes or sizes_up_to(None):
        found = milliseconds(size, seconds)
        (numpy, host), (name, device), (ours, lazy_) = found.items()
        print(f"{size:>11,}  " + "  ".join(f"{value:10.4f}" for value in found.values())
              + f"  {host / lazy_:9.1f}  {device / lazy_:9.2f}")
        for library, value in found.items():
            made.note(f"{library}, n = {size:.0e}", value, "ms")
        for library, value in ((numpy, host), (name, device)):
            made.note(f"{library} / {ours}, n = {size:.0e}", value / lazy_, "times")
        if size == SIZES[0]:
            made.note(f"{ours}, in times of {numpy}, n = {size:.0e}", lazy_ / host, "times", most=MOST_OF_NUMPY)
        else:
            made.note(f"{ours}, in times of the better of {numpy} and {name}, n = {size:.0e}",
                      lazy_ / min(host, device), "times", most=MOST_OF_BETTER)
        if size == SIZES[-1]:
            made.note(f"{ours}, in times of {name}, n = {size:.0e}", lazy_ / device, "times", most=MOST_OF_CUPY)
    return made


def sizes_up_to(largest: float | None) -> tuple[int, ...]:
    """The sizes to measure; without a limit, all of them on a GPU."""
    if largest is None:
        largest = SIZES[-1] if lazyarray.device().name == "cuda" else LARGEST_SIMULATED
    return tuple(size for size in SIZES if size <= largest)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table1", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=float, help="leave out sizes above this one (default: none on a GPU)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of measuring, for each size and library"
                        " (%(default)s)")
    arguments = parser.parse_args()
    on_gpu = lazyarray.device().name == "cuda"
    names = [*candidates()]
    print(f"{'n':>11}  " + "  ".join(f"{name + ' ms':>10}" for name in names)
          + f"  {names[0] + '/lazy':>9}  {names[1] + '/lazy':>9}")
    found = figures(sizes_up_to(arguments.largest), arguments.seconds)
    if on_gpu and arguments.largest is None:        # a part of the table would take the place of all of it
        print(f"kept in {timing.keep('table1', found)}")


if __name__ == "__main__":
    main()
