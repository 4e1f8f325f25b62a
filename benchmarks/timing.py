"""Timing small calls: medians of many rounds, the candidates taken in turn so that a slow moment hits all of them."""
from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import lazyarray
from lazyarray import devices

RESULTS = Path(__file__).parent / "results"


def in_turn(calls: dict, number: int = 2000, rounds: int = 25) -> dict:
    """Median microseconds a call, of callables without arguments, each timed `rounds` times in turn."""
    synchronize = lazyarray.device().synchronize
    for call in calls.values():
        for _ in range(200):
            call()
    seconds: dict = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            synchronize()
            start = time.perf_counter()
            for _ in range(number):
                call()
            synchronize()
            seconds[name].append((time.perf_counter() - start) / number)
    return {name: 1e6 * statistics.median(found) for name, found in seconds.items()}


def import_milliseconds(statement: str, rounds: int = 15) -> float:
    """Median milliseconds of CPU time that the importing thread of a new interpreter takes."""
    code = f"import time; start = time.thread_time(); {statement}; print(time.thread_time() - start)"
    with tempfile.TemporaryDirectory() as compiled:
        # Compiled files are kept, as they are for a user, wherever this runs.
        environment = os.environ | {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        found = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                                      env=environment).stdout) for _ in range(rounds + 1)]
    return 1e3 * statistics.median(found[1:])


def setting() -> dict:
    """What the figures were measured on."""
    found = {"date": date.today().isoformat(), "device": devices.why().reason, "python": platform.python_version(),
             "machine": platform.machine(), "kernel": platform.release(), "lazyarray": lazyarray.__version__}
    for name in ("numpy", "wrapt", "cupy-cuda13x", "cupy-cuda12x", "scipy", "torch", "jax"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def keep(name: str, figures: list[dict]) -> Path:
    """Write the figures and their setting to ``benchmarks/results``."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{lazyarray.device().name}-{date.today().isoformat()}.json"
    path.write_text(json.dumps({"setting": setting(), "figures": figures}, indent=1) + "\n")
    return path


def small(n: int = 64):
    """A pair of small lazy arrays, and the pair of device arrays with the same values."""
    values = np.linspace(0, 1, n)
    lazy = lazyarray.asarray(values), lazyarray.asarray(values)
    return lazy, (lazyarray.asdevice(values), lazyarray.asdevice(values))


def show(name: str, figures: list[dict]) -> bool:
    """Print figures, keep them, and say whether all meet what is asked of them: "target" at most, "least" at least."""
    met = True
    width = max(len(figure["what"]) for figure in figures)
    for figure in figures:
        value, most, least = figure["value"], figure["target"], figure.get("least")
        missed = most is not None and value > most or least is not None and value < least
        asked = f"<= {most:g}" if most is not None else f">= {least:g}" if least is not None else ""
        print(f"{figure['what']:{width}}  {value:9.4g} {figure['unit']:6} {asked:9} "
              f"{'MISSED' if missed else 'ok' if asked else ''}".rstrip())
        met &= not missed
    print(f"device: {lazyarray.device().name}; kept in {keep(name, figures)}")
    return met
