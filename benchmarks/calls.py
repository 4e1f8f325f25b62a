"""What a call costs: the first table of the page on performance."""
from __future__ import annotations

import numpy as np

import lazyarray
from lazyarray.storage.handles import device_of

from .timing import Figures, import_milliseconds, in_turn, small


def figures(number: int = 2000, rounds: int = 25) -> Figures:
    """Each figure: what was measured, its value and unit, and the most that it may be (None: for information)."""
    device = lazyarray.device()
    (x, y), (a, b) = small()
    read = lazyarray.asarray(np.linspace(0, 1, 64))
    np.asarray(read)
    add = device.xp.add
    pure, any_of_them = lazyarray.lazy(_add(add), pure=True), lazyarray.lazy(_add(add))
    times = in_turn({
        "np.add(lazy)": lambda: done(np.add(x, y)),
        "np.add(device)": lambda: np.add(a, b),
        "device add": lambda: add(a, b),
        "GPU function (pure)": lambda: pure(x, y),
        "GPU function": lambda: any_of_them(x, y),
        "lazy + lazy": lambda: done(x + y),
        "lazy + 1.0": lambda: done(x + 1.0),
        "lazy += lazy": lambda: x.__iadd__(y),
        "np.sum(lazy)": lambda: np.sum(x),
        "np.sum(device)": lambda: np.sum(a),
        "device sum": lambda: device.xp.sum(a),
        "x[0]": lambda: y[0],
        "x[1:]": lambda: y[1:],
        "x.shape": lambda: x.shape,
        "second np.asarray": lambda: np.asarray(read),
        "begin()": _begin_call(),
        "nothing": lambda: None,
    }, number, rounds)
    # Computed by nobody: each result goes when the next one comes.
    times |= in_turn({"recording lazy * lazy": lambda: x * y, "recording ten operators": lambda: ten(x)},
                     number // 4, rounds)
    times["recording one of ten operators"] = times.pop("recording ten operators") / 10
    idle = times.pop("nothing")
    times = {name: value - idle for name, value in times.items()}
    simulated = device.name == "simulated"
    found = Figures()
    found.note("np.add of small lazy arrays, above the device operation", times["np.add(lazy)"] - times["device add"],
               "us", most=3.0 if simulated else None)
    found.note("np.add of small lazy arrays, in times of np.add of device arrays",
               times["np.add(lazy)"] / times["np.add(device)"], "times", most=None if simulated else 1.2)
    found.note("np.sum of a small lazy array, in times of np.sum of a device array",
               times["np.sum(lazy)"] / times["np.sum(device)"], "times", most=None if simulated else 1.15)
    found.note("recording an operator", times["recording lazy * lazy"], "us", most=2.5)
    found.note("recording an operator of a chain", times["recording one of ten operators"], "us", most=2.5)
    found.note("a pure GPU function of two small lazy arrays, above the device operation",
               times["GPU function (pure)"] - times["device add"], "us", most=6.0 if simulated else None)
    found.note("one that may modify them, above the device operation", times["GPU function"] - times["device add"],
               "us", most=15.0 if simulated else None)
    found.note("x.shape", times["x.shape"], "us", most=0.3)
    found.note("a second np.asarray(x)", times["second np.asarray"], "us", most=2.0)
    found.note("an event with nobody listening", times["begin()"], "us", most=0.3)
    with_us, with_wrapt, without = import_milliseconds(("lazyarray", "numpy, wrapt", "numpy"), min(rounds, 15))
    found.note("import lazyarray, above import numpy", with_us - without, "ms", most=60.0)
    found.note("import wrapt, above import numpy", with_wrapt - without, "ms")
    for name, value in times.items():
        if name not in ("begin()", "x.shape"):
            found.note(name, value, "us")
    return found


def done(x):
    """Have it computed, if it was recorded."""
    if x._self_storage.pending is not None:
        device_of(x)


def ten(x):
    """Ten operators."""
    y = x + 1
    return ((((y * x - 3) * y + x) * 2 - y) * x + 0.5) * y


def _add(add):
    return lambda x, y: add(x, y)


def _begin_call():
    from lazyarray.events.trace import begin

    return lambda: begin("upload", 8, (1,), None, "a benchmark")

