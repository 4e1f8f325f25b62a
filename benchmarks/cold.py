"""Seconds to the first result in a new process: with empty caches, with those of a process before, and warm.

``python -m benchmarks.cold`` runs the programs of ``plain.py``, and ``python -m benchmarks.cold FILE...`` those in
files. Such a file has ``inputs(n)``, ``main(asarray, n, inputs)``, which returns a dict of results, ``DEFAULT``, and
NumPy as ``np``. CuPy: the file's ``np`` is CuPy; lazyarray: its inputs are lazy arrays, without and with ``np`` as
`lazyarray.numpy`. Imports are not within the time, which would be the same for all.
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import lazyarray
import lazyarray.numpy

from . import plain, timing

MODES = ("theirs", "lazy", "namespace")
ROOT = Path(__file__).parent.parent
#: Runs in the first process: one cold, the others warm.
RUNS = 6
#: What is asked of the first runs, in times of CuPy's.
COLD = 1.1


def _plain(name: str) -> Any:
    """A program of `plain` in the form of a file."""
    rng = np.random.default_rng(0)
    inputs, run = {
        "kappa-sigma": (lambda n: (rng.normal(100, 5, (n, n)).astype("f4"),), plain.kappa_sigma),
        "mixture": (lambda n: (rng.random((n * n // 8, 4)), np.full(6, 1 / 6), *rng.random((2, 6, 4)) + [[[0]], [[1]]]),
                    plain.e_step),
        "heat": (lambda n: (rng.random((n, n)),), plain.diffuse),
        "k-means": (lambda n: (points := rng.random((n * n // 8, 4)), points[:8].copy()), plain.k_means),
    }[name]

    def main(asarray: Callable[[Any], Any], n: int, given: Any) -> dict[str, Any]:
        found = run(*map(asarray, given))
        return {str(k): part for k, part in enumerate(found if isinstance(found, tuple) else (found,))}

    return SimpleNamespace(__name__=name, inputs=inputs, main=main, DEFAULT=512)


PLAIN = ("kappa-sigma", "mixture", "heat", "k-means")


def program(name: str) -> Any:
    """The program of this name, or in this file."""
    if name in PLAIN:
        return _plain(name)
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    module = importlib.util.module_from_spec(spec)     # type: ignore[arg-type]
    spec.loader.exec_module(module)     # type: ignore[union-attr]
    return module


def child(name: str, mode: str, runs: int, n: int | None) -> list[float]:
    """Seconds of each run in this process."""
    found = program(name)
    n = found.DEFAULT if n is None else n
    given = found.inputs(n)
    device = lazyarray.device()
    namespace = {"theirs": device.xp, "namespace": lazyarray.numpy}.get(mode, np)
    where: Any = found if isinstance(found, ModuleType) else plain
    where.np = namespace
    asarray = device.xp.asarray if mode == "theirs" else lazyarray.asarray
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        results = found.main(asarray, n, given)
        for result in results.values():
            timing.compute(result)
        device.synchronize()
        seconds.append(time.perf_counter() - start)
    return seconds


def run(name: str, mode: str, runs: int, caches: str, n: int | None) -> list[float] | None:
    """`child` in a process of its own, with these caches; None if the program does not run there."""
    paths = {key: f"{caches}/{key}" for key in ("CUPY_CACHE_DIR", "XDG_CACHE_HOME", "CUDA_CACHE_PATH")}
    size = [] if n is None else [str(n)]
    command = [sys.executable, "-m", "benchmarks.cold", "--child", name, mode, str(runs), *size]
    done = subprocess.run(command, env=os.environ | paths, cwd=ROOT, capture_output=True, text=True, timeout=300,
                          check=False)
    return json.loads(done.stdout.splitlines()[-1]) if not done.returncode else None


def figures(names: Sequence[str] = PLAIN, n: int | None = None, runs: int = RUNS) -> timing.Figures:
    """Seconds of each program in each mode, and what they are in times of CuPy's."""
    found = timing.Figures()
    for name in names:
        title = Path(name).stem
        seconds: dict[str, tuple[float, float, float]] = {}
        for mode in MODES:
            with tempfile.TemporaryDirectory() as caches:
                first = run(name, mode, runs, caches, n)
                second = first and run(name, mode, 1, caches, n)
            if first and second:
                seconds[mode] = first[0], second[0], statistics.median(first[1:] or first)
        for mode, label in zip(MODES, (timing.peer(), "lazyarray", "lazyarray.numpy")):
            for what, value in zip(("first run", "first run of a second process", "warm"), seconds.get(mode, ())):
                found.note(f"{title}, {label}: {what}", value, "s")
        if "theirs" in seconds and "namespace" in seconds:
            for k, what in enumerate(("first run", "first run of a second process")):
                ratio = seconds["namespace"][k] / seconds["theirs"][k]
                found.note(f"{title}: {what}, in times of {timing.peer()}'s", ratio, "times", most=COLD)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold", description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", help="programs (default: those of plain.py)")
    parser.add_argument("--size", type=int, default=None)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, mode, runs, *size = options.child
        print(json.dumps(child(name, mode, int(runs), int(size[0]) if size else None)))
        return
    timing.main("cold", lambda: figures([str(Path(path).resolve()) for path in options.files] or PLAIN, options.size))


if __name__ == "__main__":
    main()
