"""What a call costs: the figures of the section "Speed" in the README."""
from __future__ import annotations

import numpy as np

import lazyarray

from .timing import import_milliseconds, in_turn, small


def figures() -> list[dict]:
    """Each figure: what was measured, its value and unit, and the most that it may be (None: for information)."""
    device = lazyarray.device()
    (x, y), (a, b) = small()
    read = lazyarray.asarray(np.linspace(0, 1, 64))
    np.asarray(read)
    add = device.xp.add
    pure, any_of_them = lazyarray.lazy(_add(add), pure=True), lazyarray.lazy(_add(add))
    times = in_turn({
        "np.add(lazy)": lambda: np.add(x, y),
        "np.add(device)": lambda: np.add(a, b),
        "device add": lambda: add(a, b),
        "GPU function (pure)": lambda: pure(x, y),
        "GPU function": lambda: any_of_them(x, y),
        "lazy + lazy": lambda: x + y,
        "lazy + 1.0": lambda: x + 1.0,
        "lazy += lazy": lambda: x.__iadd__(y),
        "np.sum(lazy)": lambda: np.sum(x),
        "np.sum(device)": lambda: device.xp.sum(a),
        "x[0]": lambda: y[0],
        "x[1:]": lambda: y[1:],
        "x.shape": lambda: x.shape,
        "second np.asarray": lambda: np.asarray(read),
        "begin()": _begin_call(),
        "nothing": lambda: None,
    })
    idle = times.pop("nothing")
    times = {name: value - idle for name, value in times.items()}
    simulated = device.name == "simulated"
    found = [
        figure("np.add of small lazy arrays, above the device operation", times["np.add(lazy)"] - times["device add"],
               "us", 3.0 if simulated else None),
        figure("np.add of small lazy arrays, in times of np.add of device arrays",
               times["np.add(lazy)"] / times["np.add(device)"], "times", None if simulated else 1.2),
        figure("a pure GPU function of two small lazy arrays, above the device operation",
               times["GPU function (pure)"] - times["device add"], "us", 6.0 if simulated else None),
        figure("one that may modify them, above the device operation", times["GPU function"] - times["device add"],
               "us", 15.0 if simulated else None),
        figure("x.shape", times["x.shape"], "us", 0.3),
        figure("a second np.asarray(x)", times["second np.asarray"], "us", 2.0),
        figure("an event with nobody listening", times["begin()"], "us", 0.3),
        figure("import lazyarray, above import numpy",
               import_milliseconds("import lazyarray") - import_milliseconds("import numpy"), "ms", 60.0),
    ]
    found += [figure(name, value, "us", None) for name, value in times.items() if name not in ("begin()", "x.shape")]
    return found


def _add(add):
    return lambda x, y: add(x, y)


def _begin_call():
    from lazyarray.trace import begin

    return lambda: begin("upload", 8, (1,), None, "a benchmark")


def figure(what: str, value: float, unit: str, target: float | None) -> dict:
    return {"what": what, "value": round(value, 4), "unit": unit, "target": target}
