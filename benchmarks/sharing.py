"""Memory that CuPy code holds too, and what crosses between the libraries: ``python -m benchmarks.sharing``.

Lazy arrays of CuPy arrays that still exist, beside donated ones and CuPy's own; what it costs to hand out a device
array, and to call CuPy's functions and those with `lazyarray.lazy`.
"""
from __future__ import annotations

import numpy as np

import lazyarray

from . import copies, timing
from .chains import SOFTPLUS

SMALL, LARGE = 1024, 10**8


def figures(large: int = LARGE, copied: int = 256 * copies.MB, number: int = 2000, rounds: int = 25) -> timing.Figures:
    """Each figure: what was measured, its value and unit, and the most or the least that is asked of it."""
    found = timing.Figures()
    figures_of_operations(found, large, number, rounds)
    figures_of_crossing(found, number, rounds)
    figures_of_copies(found, copied, rounds)
    return found


def figures_of_operations(found: timing.Figures, large: int, number: int, rounds: int) -> None:
    """Operations on memory that is held, beside the same on CuPy's array, and on memory that was donated."""
    xp = lazyarray.device().xp
    c = xp.linspace(0, 1, SMALL, dtype="f4")
    held, ours = lazyarray.asarray(c), lazyarray.asarray(c.copy(), donate=True)
    times = timing.in_turn({
        "CuPy": lambda: c + c,
        "held": lambda: timing.compute(np.add(held, held)),
        "donated": lambda: timing.compute(np.add(ours, ours)),
    }, number, rounds)
    peer = timing.peer()
    for name in ("held", "donated"):
        ratio = times[name] / times["CuPy"]
        found.note(f"np.add of 1,024 elements, {name} memory: in times of {peer}'s", ratio, "times", most=1.1)
    big = xp.linspace(-5, 5, large, dtype="f4")
    lazy = lazyarray.asarray(big)
    timing.warm(lambda: SOFTPLUS.run(np, lazy))
    timing.warm(lambda: lazy * 2)
    seconds = timing.medians({
        "CuPy": lambda: SOFTPLUS.run(xp, big), "held": lambda: SOFTPLUS.run(np, lazy),
        "one, CuPy": lambda: big * 2, "one, held": lambda: lazy * 2}, rounds=7)
    found.note(f"softplus of held memory: {peer} / lazyarray", seconds["CuPy"] / seconds["held"], "times", least=3.5)
    ratio = seconds["one, CuPy"] / seconds["one, held"]
    found.note(f"x * 2 of held memory: {peer} / lazyarray", ratio, "times", least=1.0)


def figures_of_crossing(found: timing.Figures, number: int, rounds: int) -> None:
    """What it costs to hand out a device array, and to enter functions."""
    device = lazyarray.device()
    xp = device.xp
    c, x = xp.ones(SMALL, "f4"), lazyarray.asarray(np.ones(SMALL, "f4"))
    host = np.ones(SMALL, "f4")
    add_one, pure = (lazyarray.lazy(lambda a: a + 1, pure=is_pure) for is_pure in (False, True))
    calls = {
        "asdevice(x)": lambda: lazyarray.asdevice(x),
        "x.__cupy_get_ndarray__()": lambda: x.__cupy_get_ndarray__(),
        "sqrt of a CuPy array": lambda: xp.sqrt(c),
        "sqrt of a lazy array": lambda: xp.sqrt(x),
        "a function": lambda: c + 1,
        "lazy function": lambda: add_one(x),
        "pure lazy function": lambda: pure(x),
        "lazy function of an ndarray": lambda: add_one(host),
    }
    if device.name == "cuda":
        calls["x.__dlpack__()"] = lambda: x.__dlpack__(stream=1)
    times = timing.in_turn(calls, number, rounds)
    for name in ("asdevice(x)", "x.__cupy_get_ndarray__()", "x.__dlpack__()"):
        if name in times:
            found.note(name, times[name], "us", most=3.0)
    found.note(f"{timing.peer()}'s sqrt of a lazy array, above that of its own", times["sqrt of a lazy array"]
               - times["sqrt of a CuPy array"], "us", most=3.0)
    for name in ("lazy function", "pure lazy function"):
        found.note(f"a {name}, above the function", times[name] - times["a function"], "us", most=3.0)
    found.note("a lazy function of an ndarray of 4 KiB", times["lazy function of an ndarray"], "us")


def figures_of_copies(found: timing.Figures, nbytes: int, rounds: int) -> None:
    """Copies to the host of memory that is held, the first and the next ones."""
    xp = lazyarray.device().xp
    for label, size in (("1 KiB", 1024), (f"{nbytes >> 20} MiB", nbytes)):
        c = xp.zeros(size, "u1")

        def fresh(c=c):
            return lazyarray.asarray(c)

        kept = fresh()
        alias = np.asarray(kept)
        seconds = {
            "CuPy": copies.seconds(lambda _, c=c: c.get(), rounds=rounds),
            "first": copies.seconds(np.asarray, fresh, rounds=rounds),
            "again, an alias alive": copies.seconds(lambda _, kept=kept: np.asarray(kept), rounds=rounds),
        }
        del alias
        for name in ("first", "again, an alias alive"):
            found.note(f"np.asarray of held memory, {label}, {name}: in times of {timing.peer()}'s",
                       seconds[name] / seconds["CuPy"], "times", most=1.3 if size == 1024 else None)
            if size > 1024 and lazyarray.device().name == "cuda":
                rate = nbytes / seconds[name] / 1e9 / copies.page_locked(xp, nbytes)[0]
                what = f"np.asarray of held memory, {label}, {name}: of the page-locked rate"
                found.note(what, rate, "times", least=0.9)


if __name__ == "__main__":
    timing.main("sharing", figures)
