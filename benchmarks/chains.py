"""Element-wise work on large arrays against CuPy, ``cupy.fuse`` and a copy's rate: ``python -m benchmarks.chains``."""
from __future__ import annotations

import numpy as np

import lazyarray
from lazyarray import wrap

from . import timing
from .copies import seconds

N = 100_000_000


def softplus(x, xp):
    return xp.maximum(0, x) + xp.log1p(xp.exp(-xp.abs(x)))


def figures() -> list[dict]:
    """The figures, as in `calls.figures`; the device must be CUDA."""
    device = lazyarray.device()
    cupy = device.xp
    found: list[dict] = []

    def note(what: str, value: float, unit: str, least: float | None = None) -> None:
        found.append({"what": what, "value": round(value, 4), "unit": unit, "target": None, "least": least})

    def compare(name: str, lazily, plainly, nbytes: int, least: float | None, fused=None) -> None:
        for _ in range(4):      # the first ones run unfused, while the kernel is compiled
            wrap.device_of(lazily())
            device._kernels.wait()
        ours = seconds(lambda _: wrap.device_of(lazily()), rounds=15)
        theirs = seconds(lambda _: plainly(), rounds=15)
        note(f"{name}: lazyarray", ours * 1e3, "ms")
        note(f"{name}: CuPy", theirs * 1e3, "ms")
        note(f"{name}: CuPy / lazyarray", theirs / ours, "times", least)
        note(f"{name}: of the bandwidth of a copy", nbytes / ours / copy, "times")
        if fused is not None:
            fused()
            note(f"{name}: cupy.fuse / lazyarray", seconds(lambda _: fused(), rounds=15) / ours, "times", 2)

    source, target = cupy.ones(N, cupy.float32), cupy.empty(N, cupy.float32)
    copy = 8 * N / seconds(lambda _, to=target, of=source: cupy.copyto(to, of), rounds=15)
    note("device to device copy", copy / 1e9, "GB/s")
    del source, target

    @cupy.fuse
    def fuse(x):
        return softplus(x, cupy)

    for name in ("float32", "float64", "float16", "int32", "complex64"):
        plain = (cupy.arange(N, dtype=cupy.int32) % 1000).astype(name)
        x = lazyarray.asarray(plain.copy())
        compare(f"x * 2, {name}", lambda x=x: x * 2, lambda plain=plain: plain * 2, 2 * plain.nbytes,
                2.2 if name == "float32" else None)
        if plain.dtype.kind == "f":
            compare(f"softplus, {name}", lambda x=x: softplus(x, np), lambda plain=plain: softplus(plain, cupy),
                    2 * plain.nbytes, 10 if name == "float32" else None, lambda plain=plain: fuse(plain))
        del plain, x
    plain = cupy.random.random((10_000, 10_000), dtype=cupy.float32)
    x, row = lazyarray.asarray(plain.copy()), lazyarray.asarray(plain[0].copy())
    compare("x.T * 2", lambda: x.T * 2, lambda: plain.T * 2, 2 * plain.nbytes, None)
    compare("(x - row) * 2", lambda: (x - row) * 2, lambda: (plain - plain[0]) * 2, 2 * plain.nbytes, None)
    return found


if __name__ == "__main__":
    timing.show("chains", figures())
