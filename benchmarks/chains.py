"""Element-wise work on large arrays, and on small ones, beside other libraries: ``python -m benchmarks.chains``.

NumPy, CuPy, ``cupy.fuse``, ``jax.jit`` and ``torch.compile`` do the same expression in the same run, as far as they are
installed. What lazyarray makes of it is compared with CuPy's result first.
"""
from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import lazyarray
from lazyarray.storage.handles import device_of

from . import timing
from .timing import peer

N = 100_000_000
TINY = 10_000

#: How near two results of one dtype must be.
NEAR = {"float16": 2e-2, "float32": 1e-5, "complex64": 1e-5, "float64": 1e-12, "int32": 0}


class Work(NamedTuple):
    """An expression of a namespace and arrays; `traffic` is how often a kernel that does it at once moves its bytes."""

    name: str
    run: Callable[..., Any]
    traffic: int
    fuses: bool     # whether `cupy.fuse` takes it


DOUBLE = Work("x * 2", lambda xp, x: x * 2, 2, True)
SOFTPLUS = Work("softplus", lambda xp, x: xp.maximum(0, x) + xp.log1p(xp.exp(-xp.abs(x))), 2, True)
SQUARES = Work("((x - mu) ** 2).mean()", lambda xp, x, mu: ((x - mu) ** 2).mean(), 1, False)
TRANSPOSED = Work("x.T * 2", lambda xp, x: x.T * 2, 2, False)
BROADCAST = Work("(x - row) * 2", lambda xp, x, row: (x - row) * 2, 2, True)


class Case(NamedTuple):
    """Work on one dtype, and what is asked of it: times CuPy's speed, of a copy's rate, and of peers."""

    work: Work
    dtype: str
    cupy: float | None = None
    copy: float | None = None
    fuse: float | None = None
    torch: float | None = None
    peers: bool = False


# On 8 bytes an element CuPy's own kernels come to 0.8 of a copy's rate: nothing is more than 1.25 times as fast. Its
# softplus of float64 takes 7.5 times as long as a copy, that of `cupy.fuse` 1.5 times.
CASES = (
    Case(DOUBLE, "float32", cupy=2.2, copy=0.85, peers=True),
    Case(SOFTPLUS, "float32", cupy=10, fuse=2, torch=1.05, peers=True),
    Case(SQUARES, "float32", cupy=3, peers=True),
    Case(TRANSPOSED, "float32", cupy=2.2, copy=0.85, peers=True),
    Case(BROADCAST, "float32", cupy=2.2, copy=0.85, peers=True),
    Case(DOUBLE, "float64", copy=0.85),
    Case(SOFTPLUS, "float64", torch=1.05, peers=True),
    Case(SQUARES, "float64", cupy=3),
    Case(DOUBLE, "float16", cupy=2.2, copy=0.85),
    Case(SOFTPLUS, "float16", cupy=10, fuse=2, torch=1.05, peers=True),
    Case(SQUARES, "float16", cupy=3),
    Case(DOUBLE, "int32", cupy=2.2, copy=0.85),
    Case(SQUARES, "int32", cupy=3),
    Case(DOUBLE, "complex64", copy=0.85),
    Case(SQUARES, "complex64", cupy=3),
)


#: What else is timed in turn with a case, and with peers that have to be loaded for it.
COPY, BESIDE = "a copy of as many float32", "lazyarray, in turn with these"


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def by_jax(work: Work, arrays: tuple[Any, ...]) -> Callable[[], Any]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")     # before JAX looks: it would take the memory
    import jax

    jax.config.update("jax_enable_x64", True)
    function = jax.jit(lambda *arrays: work.run(jax.numpy, *arrays))
    take = jax.dlpack.from_dlpack if peer() == "CuPy" else lambda x: jax.numpy.asarray(lazyarray.asnumpy(x))
    own = [take(x) for x in arrays]
    return lambda: function(*own).block_until_ready()


def by_torch(work: Work, arrays: tuple[Any, ...]) -> Callable[[], Any]:
    import torch

    namespace = SimpleNamespace(maximum=lambda least, x: torch.clamp(x, min=least), log1p=torch.log1p, exp=torch.exp,
                                abs=torch.abs)

    def run(*arrays: Any) -> Any:
        return work.run(namespace, *arrays)

    if peer() != "CuPy":    # nothing that a compiler would be worth waiting for
        host = [torch.as_tensor(lazyarray.asnumpy(x)) for x in arrays]
        return lambda: run(*host)
    function, own = torch.compile(run, dynamic=False), [torch.from_dlpack(x) for x in arrays]
    return lambda: (function(*own), torch.cuda.synchronize())


#: Beside NumPy and the device's library.
PEERS = {"jax.jit": ("jax", by_jax), "torch.compile": ("torch", by_torch)}


def arrays_of(case: Case, size: int) -> tuple[Any, ...]:
    """The device's own arrays."""
    xp = lazyarray.device().xp
    if case.work in (TRANSPOSED, BROADCAST):
        side = int(size**0.5)
        x = (xp.arange(side * side, dtype=xp.int32) % 1000).astype(case.dtype).reshape(side, side)
        return (x, x[0].copy()) if case.work is BROADCAST else (x,)
    x = (xp.arange(size, dtype=xp.int32) % 1000).astype(case.dtype) - xp.asarray(500, case.dtype)
    if case.dtype != "int32":
        x = x / xp.asarray(100, case.dtype)
    return (x, x.mean()) if case.work is SQUARES else (x,)


def lazily(arrays: tuple[Any, ...]) -> list[Any]:
    """Lazy arrays of copies that nobody else holds."""
    made = [lazyarray.asarray(x.copy()) for x in arrays]
    return [x if x.ndim else x[()] for x in made]


def name_of(case: Case) -> str:
    return f"{case.work.name}, {case.dtype}"


def measured(case: Case, size: int, rounds: int) -> dict[str, float]:
    """Seconds of lazy arrays, of the device's library, of what that fuses, and of copies within the device.

    A copy of float32 in turn with the rest shows what the rate is by then: the device has its faster and its slower
    minutes. One of the array itself shows what the same bytes may take: the fewer, the more their beginning and their
    end count.
    """
    work, xp, own = case.work, lazyarray.device().xp, arrays_of(case, size)
    lazy = lazily(own)
    target = xp.empty_like(own[0])
    calls = {"lazyarray": lambda: work.run(np, *lazy), peer(): lambda: work.run(xp, *own),
             COPY: copying(size), "a copy of the array": lambda: xp.copyto(target, own[0])}
    if work.fuses and hasattr(xp, "fuse"):
        fused = xp.fuse(kernel_name="fused")(lambda *arrays: work.run(xp, *arrays))
        calls["cupy.fuse"] = lambda: fused(*own)
    for call in calls.values():
        timing.warm(call)
    check(name_of(case), calls["lazyarray"](), calls[peer()]())
    return timing.medians(calls, rounds)


def by_peers(case: Case, size: int, rounds: int) -> dict[str, float]:
    """Seconds of other libraries, as far as they are installed, of lazy arrays in turn with them, and of NumPy."""
    own = arrays_of(case, size)
    lazy = lazily(own)
    calls: dict[str, Callable[[], Any]] = {BESIDE: lambda: case.work.run(np, *lazy)}
    timing.warm(calls[BESIDE])
    for name, (library, make) in PEERS.items():
        if installed(library):
            calls[name] = make(case.work, own)
            timing.warm(calls[name])
        else:
            print(f"{name_of(case)}: {library} is not installed")
    medians = timing.medians(calls, rounds)
    hosts = [lazyarray.asnumpy(x) for x in own]
    return medians | {"NumPy": timing.once(lambda: case.work.run(np, *hosts))[0]}


def note(found: timing.Figures, case: Case, medians: dict[str, float], size: int, copy: float) -> None:
    """The figures of a case; `copy`: seconds of a copy of as many float32, at the beginning."""
    name, ours = name_of(case), medians["lazyarray"]
    for library, value in medians.items():
        found.note(f"{name}: {library}", value * 1e3, "ms")
    found.note(f"{name}: {peer()} / lazyarray", medians[peer()] / ours, "times", least=case.cupy)
    moved = case.work.traffic * arrays_of(case, size)[0].nbytes
    part = moved / (8 * size)
    found.note(f"{name}: of the bandwidth of a copy", part * copy / ours, "times", least=case.copy)
    found.note(f"{name}: of the bandwidth of a copy in turn with it", part * medians[COPY] / ours, "times")
    own = medians["a copy of the array"] * case.work.traffic / 2
    found.note(f"{name}: of the bandwidth of a copy of the array", own / ours, "times")
    if "cupy.fuse" in medians:
        found.note(f"{name}: cupy.fuse / lazyarray", medians["cupy.fuse"] / ours, "times", least=case.fuse)
    if "torch.compile" in medians:
        found.note(f"{name}: of the time of torch.compile", medians[BESIDE] / medians["torch.compile"], "times",
                   most=case.torch)


def check(name: str, found: Any, wanted: Any) -> None:
    """Raise if a result is not that of the device's library."""
    xp = lazyarray.device().xp
    found = lazyarray.asdevice(found)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, f"{name}: {found.dtype}, not {wanted.dtype}"
    far = float(xp.abs(found - wanted).max()) / max(float(xp.abs(wanted).max()), 1e-30)
    assert far <= NEAR[wanted.dtype.name], f"{name}: {far:.2g} from the device's own"


def six(x: Any, y: Any) -> Any:
    """Six operators."""
    return (np.sqrt(abs(x * 2 + 1)) - 0.5) * y


def small(found: timing.Figures, number: int, rounds: int) -> None:
    """What counts for small arrays is the time of a call."""
    theirs = peer()
    values = np.linspace(0, 1, 1024, dtype=np.float32)
    x, y = lazyarray.asarray(values), lazyarray.asarray(values)
    a, b = lazyarray.asdevice(values), lazyarray.asdevice(values)
    calls = {"one operator, lazyarray": lambda: device_of(x + y), f"one operator, {theirs}": lambda: a + b,
             "six operators, lazyarray": lambda: device_of(six(x, y)), f"six operators, {theirs}": lambda: six(a, b)}
    for call in calls.values():
        timing.warm(call)
    check("six operators", six(x, y), six(a, b))
    times = timing.in_turn(calls, number, rounds)
    for what, value in times.items():
        found.note(f"1,024 elements: {what}", value, "us")
    one, its, chain, their_chain = times.values()
    found.note(f"1,024 elements: one operator, lazyarray / {theirs}", one / its, "times", most=1)
    found.note(f"1,024 elements: six operators, lazyarray / {theirs}", chain / their_chain, "times", most=0.6)


def copying(size: int) -> Callable[[], Any]:
    """What copies so many float32 within the device, to the same place each time."""
    xp = lazyarray.device().xp
    source, target = xp.ones(size, np.float32), xp.empty(size, np.float32)
    return lambda: xp.copyto(target, source)


def figures(size: int | None = None) -> timing.Figures:
    """The figures; on the simulated device, of small arrays."""
    on_gpu = lazyarray.device().name == "cuda"
    size, rounds = size or (N if on_gpu else TINY), 11 if on_gpu else 1
    found, copy = timing.Figures(), timing.medians({COPY: copying(size)}, rounds)[COPY]
    found.note("device to device copy", 8 * size / copy / 1e9, "GB/s")
    medians = {case: measured(case, size, rounds) for case in CASES}
    small(found, *((500, 25) if on_gpu else (5, 1)))
    for case in CASES:      # JAX and torch come last: where they are loaded, every call of Python's takes longer
        if case.peers:
            medians[case] |= by_peers(case, size, rounds)
    for case in CASES:
        note(found, case, medians[case], size, copy)
    return found


if __name__ == "__main__":
    timing.main("chains", figures)
