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
from collections.abc import Callable
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import lazyarray
from lazyarray import devices
from lazyarray.storage import handles, pending_on_host

RESULTS = Path(__file__).parent / "results"


class Figures(list):
    """What was measured: each with its unit, and what is asked of it: "target" at most, or "least" at least."""

    def note(self, what: str, value: float, unit: str, *, least: float | None = None,
             most: float | None = None) -> None:
        """Add a figure."""
        self.append({"what": what, "value": float(f"{value:.4g}"), "unit": unit, "target": most, "least": least})


def missed(figure: dict) -> bool:
    """Whether a figure is not what is asked of it."""
    value, most, least = figure["value"], figure.get("target"), figure.get("least")
    return most is not None and value > most or least is not None and value < least


def asked(figure: dict) -> str:
    """What is asked of a figure, in words; empty if nothing is."""
    most, least = figure.get("target"), figure.get("least")
    return f"<= {most:g}" if most is not None else f">= {least:g}" if least is not None else ""


def peer() -> str:
    """The device's own library."""
    return {"cuda": "CuPy"}.get(lazyarray.device().name, lazyarray.device().name)


def compute(result: Any) -> Any:
    """Have what was recorded computed, where it belongs, also in tuples and lists; the same object."""
    if isinstance(result, tuple | list):
        for part in result:
            compute(part)
    elif (handles.is_array(result) or handles.is_scalar(result)) and getattr(result._self_storage, "pending", None):
        handles.device_of(result)
    return result


def looked_at(result: Any) -> Any:
    """Have a lazy array computed on the side where the model says, for who looks at it; the same object."""
    storage = result._self_storage
    with storage.lock:
        found = pending_on_host.private(storage, handles.meta_of(result))
    if found is None:
        handles.device_of(result)
    return result


def warm(call: Callable[[], Any], times: int = 8) -> None:
    """Call a few times: the first ones run unfused until a kernel is there, and fill the pools."""
    device = lazyarray.device()
    for _ in range(times):
        compute(call())
        device.wait_for_kernels()
    device.synchronize()


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of one call, and what it returns."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def medians(calls: dict[str, Callable[[], Any]], rounds: int = 11) -> dict[str, float]:
    """Median seconds of each callable, taken in turn; what they return is computed and waited for.

    Each turn begins with a call that is not timed: after another library's turn the processor's caches are not ours. A
    library with streams of its own has to wait for them within the call.
    """
    synchronize = lazyarray.device().synchronize
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            compute(call())
            synchronize()
            start = time.perf_counter()
            kept = compute(call())
            synchronize()
            found[name].append(time.perf_counter() - start)
            del kept        # not within the time of the next one, nor beside its memory
    return {name: statistics.median(seconds) for name, seconds in found.items()}


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


def import_milliseconds(modules: tuple[str, ...], rounds: int = 15) -> list[float]:
    """Median milliseconds of CPU time that the importing thread of a new interpreter takes for each, taken in turn."""
    seconds: list[list[float]] = [[] for _ in modules]
    with tempfile.TemporaryDirectory() as compiled:
        # Compiled files are kept, as they are for a user, wherever this runs.
        environment = os.environ | {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        for _ in range(rounds + 1):
            for found, names in zip(seconds, modules):
                code = f"import time; start = time.thread_time(); import {names}; print(time.thread_time() - start)"
                done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                                      env=environment)
                found.append(float(done.stdout))
    return [1e3 * statistics.median(found[1:]) for found in seconds]


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


def show(name: str, figures: list[dict], kept: bool = True) -> bool:
    """Print figures, keep them, and say whether all meet what is asked of them."""
    width = max(len(figure["what"]) for figure in figures)
    for figure in figures:
        verdict = "MISSED" if missed(figure) else "ok" if asked(figure) else ""
        line = f"{figure['what']:{width}}  {figure['value']:9.4g} {figure['unit']:6} {asked(figure):9} {verdict}"
        print(line.rstrip())
    print(f"device: {lazyarray.device().name}; " + (f"kept in {keep(name, figures)}" if kept else "not kept"))
    return not any(map(missed, figures))


def main(name: str, figures: Callable[[], list[dict]]) -> None:
    """Measure, show and keep; a simulated device's times say nothing, and are not kept."""
    show(name, figures(), kept=lazyarray.device().name == "cuda")
