"""Device memory: the peak of whole programs and of chains, beside CuPy's: ``python -m benchmarks.memory``."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import lazyarray

from . import programs, timing
from .chains import lazily

N = 50_000_000
TINY = 10_000
OPERATORS = 12


class Peak:
    """Bytes allocated within a block, and the most there were at a time."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def add(self, nbytes: int) -> None:
        self.now += nbytes
        self.most = max(self.most, self.now)


@contextlib.contextmanager
def watched() -> Iterator[Peak]:
    """Count what the device's memory pool hands out and takes back."""
    device, peak = lazyarray.device(), Peak()
    if device.name == "cuda":
        class Hook(device.xp.cuda.MemoryHook):
            name = "peak"

            def malloc_postprocess(self, **facts: Any) -> None:
                peak.add(facts["mem_size"] if facts["mem_ptr"] else 0)

            def free_postprocess(self, **facts: Any) -> None:
                peak.add(-facts["mem_size"])

        with Hook():
            yield peak
    else:
        from lazyarray.devices.simulated import hardware as simulated

        hardware = simulated.hardware

        class Watched(simulated.Memory):
            __slots__ = ()

            def __init__(self, root: np.ndarray, device: int) -> None:
                simulated.Memory.__init__(self, root, device)
                peak.add(root.nbytes)

            def __del__(self) -> None:
                peak.add(-self.root.nbytes)

        before, hardware.memory_type = hardware.memory_type, Watched
        try:
            yield peak
        finally:
            hardware.memory_type = before


def peak_bytes(call: Callable[[], Any]) -> int:
    """The most that a call adds to the memory in use, once it is warm."""
    timing.warm(call)
    with watched() as peak:
        kept = timing.compute(call())
        lazyarray.device().synchronize()
    del kept
    return peak.most


def chain(x: Any, operators: int = OPERATORS) -> Any:
    """A value after many operators."""
    for i in range(operators // 2):
        x = x * 0.5 + i
    return x


def figures(sizes: programs.Sizes | None = None, size: int | None = None) -> timing.Figures:
    """The figures; on the simulated device, of small data."""
    on_gpu = lazyarray.device().name == "cuda"
    sizes, size = sizes or (programs.FULL if on_gpu else programs.TINY), size or (N if on_gpu else TINY)
    found, theirs, mb = timing.Figures(), timing.peer(), 1 << 20
    for name, run, arguments, _ in programs.programs(sizes):
        lazy, own = map(lazyarray.asarray, arguments), map(lazyarray.asdevice, arguments)
        nbytes = sum(x.nbytes for x in arguments)
        ours, its = (nbytes + peak_bytes(lambda run=run, made=list(made): run(*made)) for made in (lazy, own))
        found.note(f"{name}: peak, lazyarray", ours / mb, "MiB")
        found.note(f"{name}: peak, {theirs}", its / mb, "MiB")
        found.note(f"{name}: peak, in times of {theirs}'s", ours / its, "times", most=1.05)
    own = lazyarray.device().xp.ones(size, np.float32)
    x, = lazily((own,))
    found.note(f"a chain of {OPERATORS} operators: peak, in outputs", peak_bytes(lambda: chain(x)) / own.nbytes,
               "outputs", most=1.05)
    found.note(f"a chain of {OPERATORS} operators: peak of {theirs}, in outputs",
               peak_bytes(lambda: chain(own)) / own.nbytes, "outputs")
    return found


if __name__ == "__main__":
    timing.main("memory", figures)
