"""Two GPUs beside one: ``python -m benchmarks.several``, on a machine that has two.

The same element-wise work on the same number of arrays: all on one GPU, and every other one on each; and the rate of
copies from one to the other, of lazy arrays and of the device library's.
"""
from __future__ import annotations

import numpy as np

import lazyarray

from . import timing
from .chains import SOFTPLUS


def figures(arrays: int = 16, elements: int = 10**8, rounds: int = 11) -> timing.Figures:
    """Each figure: what was measured, its value and unit, and the most or the least that is asked of it."""
    found = timing.Figures()
    device = lazyarray.device()
    found.note("devices", device.count, "")
    if device.count == 1:
        return found
    placed = {"one": [_made(0, elements) for _ in range(arrays)],
              "two": [_made(i % 2, elements) for i in range(arrays)]}

    def work(name: str) -> None:
        lazyarray.block_until_ready(*[SOFTPLUS.run(np, x) for x in placed[name]])

    for name in placed:
        timing.warm(lambda name=name: work(name))
    seconds = timing.medians({name: lambda name=name: work(name) for name in placed}, rounds)
    found.note("softplus of many arrays, one GPU / two GPUs", seconds["one"] / seconds["two"], "times", least=1.8)

    x = placed["one"][0]
    own = lazyarray.asdevice(x)

    def copied() -> None:
        with lazyarray.device(1):
            lazyarray.block_until_ready(lazyarray.asarray(x, copy=True))

    def copied_by_library() -> None:
        with device.on(1):
            own.copy() if device.name == "cuda" else device.from_peer(own)
            device.wait_for_stream()

    for call in (copied, copied_by_library):
        timing.warm(call)
    seconds = timing.medians({"lazy": copied, "library": copied_by_library}, rounds)
    found.note("a copy from one GPU to the other", x.nbytes / seconds["lazy"] / 1e9, "GB/s")
    if device.name == "cuda":
        ratio = seconds["library"] / seconds["lazy"]
        found.note("a copy from one GPU to the other: lazyarray's rate in that of CuPy", ratio, "times", least=0.9)
    return found


def _made(number: int, elements: int) -> lazyarray.LazyNdarray:
    with lazyarray.device(number):
        return lazyarray.asarray(np.linspace(-5, 5, elements, dtype="f4"))


if __name__ == "__main__":
    timing.main("several", figures)
