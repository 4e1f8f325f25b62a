"""Time of each line of a program, with lazy arrays and with CuPy's, in turn in one process.

``python -m benchmarks.lines FILE...`` takes programs as ``benchmarks.cold`` does, with ``np`` as `lazyarray.numpy`
and as CuPy. Two processes that run one program differ by up to 1.6 on one machine, which says nothing of the
libraries; here both have the same one. A line has the time of the processor until the next one begins, in functions
of the file, too: what a line has recorded is computed, and what it has launched is waited for, at a later one. Python
3.12 at least.
"""
from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import lazyarray
import lazyarray.numpy

from . import cold, timing

#: Runs of each before, and while lines are timed; seconds after which there are no more than three.
WARM, RUNS, SECONDS = 4, 7, 25.0
#: Seconds after which a program in a process of its own is given up.
LONGEST = 180.0
#: What the ratio of a program's times is called.
RATIO = "in times of {}'s"


class Clock:
    """Adds up seconds by line, in a thread of one module's functions, within a ``with`` statement."""

    def __init__(self, module: ModuleType) -> None:
        self.seconds: Counter[int | None] = Counter()
        self._codes = list(_codes(module.__file__, vars(module).values()))
        self._calls: list[int | None] = []
        self._line: int | None = None
        self._since = 0.0

    def __enter__(self) -> Clock:
        monitoring = sys.monitoring
        events, tool = monitoring.events, monitoring.PROFILER_ID
        monitoring.use_tool_id(tool, "lazyarray benchmarks")
        me = threading.get_ident()

        def mine(work: Any) -> Any:
            return lambda *args: work(*args) if threading.get_ident() == me else None

        monitoring.register_callback(tool, events.LINE, mine(lambda code, line: self._turn(line)))
        monitoring.register_callback(tool, events.PY_START, mine(lambda code, at: self._calls.append(self._line)))
        monitoring.register_callback(tool, events.PY_RETURN, mine(
            lambda code, at, value: self._turn(self._calls.pop() if self._calls else None)))
        for code in self._codes:
            monitoring.set_local_events(tool, code, events.LINE | events.PY_START | events.PY_RETURN)
        self._since = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self._turn(None)
        monitoring = sys.monitoring
        for code in self._codes:
            monitoring.set_local_events(monitoring.PROFILER_ID, code, monitoring.events.NO_EVENTS)
        monitoring.free_tool_id(monitoring.PROFILER_ID)

    def _turn(self, line: int | None) -> None:
        now = time.perf_counter()
        self.seconds[self._line] += now - self._since
        self._line, self._since = line, now


def _codes(path: str | None, found: Any) -> Iterator[CodeType]:
    """The code of the functions and classes of a file, and of those within."""
    for item in found:
        code = getattr(item, "__code__", None)
        if isinstance(item, type) and item.__module__.rpartition(".")[2] == Path(path or "").stem:
            yield from _codes(path, vars(item).values())
        elif isinstance(item, CodeType) or isinstance(code, CodeType) and code.co_filename == path:
            code = item if isinstance(item, CodeType) else code
            yield code
            yield from _codes(path, code.co_consts)


class Run(NamedTuple):
    """Seconds of one run, until the device is done, and of each line; the line None is the wait at the end."""

    whole: float
    lines: dict[int | None, float]


def timed(module: ModuleType, namespace: Any, asarray: Any, n: int, given: Any) -> Run:
    """One run of a program, with `namespace` as its ``np``."""
    module.np = namespace       # type: ignore[attr-defined]
    with Clock(module) as clock:
        start = time.perf_counter()
        module.main(asarray, n, given)
        over = time.perf_counter()
        lazyarray.device().synchronize()
        end = time.perf_counter()
    return Run(end - start, {**clock.seconds, None: end - over})


def measure(name: str, n: int | None = None, runs: int = RUNS, warm: int = WARM,
            seconds: float = SECONDS) -> dict[str, Run]:
    """The medians of the program in a file, by library."""
    module = cold.program(name)
    n = module.DEFAULT if n is None else n
    given, xp = module.inputs(n), lazyarray.device().xp
    libraries = {"lazyarray": (lazyarray.numpy, lazyarray.asarray), timing.peer(): (xp, xp.asarray)}
    found: dict[str, list[Run]] = {library: [] for library in libraries}
    for count, kept in ((warm, False), (runs, True)):
        end = time.perf_counter() + seconds
        for k in range(count):
            for library, (namespace, asarray) in libraries.items():
                run = timed(module, namespace, asarray, n, given)
                if kept:
                    found[library].append(run)
            if time.perf_counter() > end and k >= 2:
                break
    return {library: _median(runs_of) for library, runs_of in found.items()}


def _median(runs: list[Run]) -> Run:
    lines = {line for run in runs for line in run.lines}
    return Run(statistics.median([run.whole for run in runs]),
               {line: statistics.median([run.lines.get(line, 0.0) for run in runs]) for line in lines})


def table(name: str, found: dict[str, Run], most: int) -> str:
    """The lines on which both differ most, in milliseconds."""
    (ours, one), (theirs, other) = found.items()
    source = Path(name).read_text().splitlines()
    head = f"{Path(name).stem}: {ours} {one.whole * 1e3:.1f} ms, {theirs} {other.whole * 1e3:.1f} ms"
    rows = sorted(one.lines.keys() | other.lines.keys(),
                  key=lambda line: -abs(one.lines.get(line, 0.0) - other.lines.get(line, 0.0)))
    shown = [f"{1e3 * one.lines.get(line, 0.0):10.2f} {1e3 * other.lines.get(line, 0.0):10.2f}  "
             + ("until the device is done" if line is None else f"{line}: {source[line - 1].strip()[:100]}")
             for line in rows[:most]]
    return "\n".join([head, *shown])


def figures(names: list[str], n: int | None = None, most: int = 8, seconds: float = SECONDS, runs: int = RUNS,
            warm: int = WARM) -> timing.Figures:
    """Milliseconds of each program with both libraries, and their ratio; the lines are printed."""
    found = timing.Figures()
    for name in names:
        medians = measure(name, n, runs, warm, seconds)
        print(table(name, medians, most), flush=True)
        ours, theirs = [run.whole for run in medians.values()]
        for library, run in medians.items():
            found.note(f"{Path(name).stem}: {library}", run.whole * 1e3, "ms")
        found.note(f"{Path(name).stem}: {RATIO.format(timing.peer())}", ours / theirs, "times", most=1.05)
    return found


def beside(names: list[str], at_once: int, arguments: list[str]) -> timing.Figures:
    """`figures` of programs in processes of their own, `at_once` at a time, and the geometric mean of their ratios."""
    devices: queue.SimpleQueue[int] = queue.SimpleQueue()
    count = lazyarray.device().xp.cuda.runtime.getDeviceCount() if lazyarray.device().name == "cuda" else 1
    for k in range(at_once):
        devices.put(k % count)

    def one(name: str) -> list[dict[str, Any]]:
        place = devices.get()
        try:
            done = subprocess.run([sys.executable, "-m", "benchmarks.lines", "--child", *arguments, name],
                                  env=os.environ | {"CUDA_VISIBLE_DEVICES": str(place)}, cwd=cold.ROOT, timeout=LONGEST,
                                  stdout=subprocess.PIPE, text=True, check=True)
        except subprocess.SubprocessError as error:
            print(f"{Path(name).stem} is left out: {error}", flush=True)
            return []
        finally:
            devices.put(place)
        *shown, figures_of = done.stdout.splitlines()
        print(*shown, sep="\n", flush=True)
        return json.loads(figures_of)

    with ThreadPoolExecutor(at_once) as pool:
        found = timing.Figures(figure for part in pool.map(one, names) for figure in part)
    title = RATIO.format(timing.peer())
    ratios = [figure["value"] for figure in found if figure["what"].endswith(title)]
    if ratios:
        mean = statistics.geometric_mean(ratios)
        found.note(f"geometric mean of {len(ratios)}: {title}", mean, "times", most=1 / 1.5)
        found.note(f"programs of {len(ratios)} that are within 1.05", sum(ratio <= 1.05 for ratio in ratios), "",
                   least=len(ratios))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lines", description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", help="programs")
    parser.add_argument("--size", type=int, default=None)
    parser.add_argument("--lines", type=int, default=8, help="lines that are shown of each (default: 8)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the longest that one is run (default: 25), "
                        "three times each at the least")
    parser.add_argument("--at-once", type=int, default=None,
                        help="programs that run at a time, in processes of their own")
    parser.add_argument("--unchecked", action="store_true", help="without the errors that NumPy raises for indexes out "
                        "of range and singular matrices, as CuPy")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    files = [str(Path(path).resolve()) for path in options.files]
    if options.at_once:
        arguments = [f"--lines={options.lines}", f"--seconds={options.seconds}"]
        arguments += [] if options.size is None else [f"--size={options.size}"]
        arguments += ["--unchecked"] if options.unchecked else []
        timing.main("lines", lambda: beside(files, options.at_once, arguments))
        return
    checked = not options.unchecked
    with lazyarray.options(check_indices=checked, check_linalg=checked):
        if options.child:
            print(json.dumps(figures(files, options.size, options.lines, options.seconds)))
        else:
            timing.main("lines", lambda: figures(files, options.size, options.lines, options.seconds))


if __name__ == "__main__":
    main()
