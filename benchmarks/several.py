"""Two GPUs beside one: ``python -m benchmarks.several``, on a machine that has two.

The same element-wise work on the same number of arrays: all on one GPU, and every other one on each; the rate of
copies from one to the other, of lazy arrays and of the device library's; and, where Dask is installed, a pipeline of
scikit-image's filters over a stack of images, by one worker with a GPU and by two, and an array that goes from one
worker to another.
"""
from __future__ import annotations

import importlib.util
import os
import time
from typing import Any

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
        found += dask_figures()
        found += sent_figures()
    return found


#: Frames in a chunk of the stack.
FRAMES = 4


def frames_of(number: int, side: int) -> Any:
    """Some images of the stack, on the device of this process, as another program has left them there."""
    rows = lazyarray.numpy.arange(side, dtype="f4")
    waves = np.sin(rows[:, None] * (0.01 + 0.001 * number)) * np.cos(rows * 0.02)
    return np.stack([waves * (k + 1) for k in range(FRAMES)])


def edges(frames: Any) -> Any:
    """The edges in images, after a blur: how strong they are in each."""
    from skimage import filters

    with lazyarray.enabled("skimage"):
        return np.stack([filters.sobel(filters.gaussian(frame, 4)).mean(dtype=float) for frame in frames])


def filtered(number: int, side: int) -> np.ndarray:
    return np.asarray(edges(frames_of(number, side)))


def with_dask(gpus: int, chunks: int, side: int, rounds: int) -> tuple[float, np.ndarray]:
    """Seconds that `gpus` workers, each with its own GPU, take for `filtered` of all chunks, and what they give."""
    from distributed import Client, Nanny, Scheduler, SpecCluster

    there = min(gpus, lazyarray.device().count) if lazyarray.device().name == "cuda" else gpus
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(there)))).split(",")
    environments = [{"CUDA_VISIBLE_DEVICES": visible[i % len(visible)]} for i in range(gpus)]
    workers = {i: {"cls": Nanny, "options": {"nthreads": 1, "env": env}} for i, env in enumerate(environments)}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "dashboard_address": None, "host": "127.0.0.1"}}
    with SpecCluster(workers, scheduler, silence_logs="ERROR") as cluster, Client(cluster) as client:
        client.wait_for_workers(gpus)
        client.run(filtered, 0, side)       # libraries are imported, and kernels made, on each
        found = []
        for _ in range(rounds):
            begun = time.perf_counter()
            values = client.gather(client.map(filtered, range(chunks), side=side, pure=False))
            found.append(time.perf_counter() - begun)
    return float(np.median(found)), np.concatenate(values)


def dask_figures(chunks: int = 240, side: int = 4096, rounds: int = 3) -> timing.Figures:
    """Figures of Dask alone."""
    found = timing.Figures()
    if any(importlib.util.find_spec(name) is None for name in ("distributed", "skimage")):
        return found
    one, alone = with_dask(1, chunks, side, rounds)
    two, together = with_dask(2, chunks, side, rounds)
    found.note("filters of a stack by Dask, one worker with a GPU", one, "s")
    found.note("filters of a stack by Dask, one worker / two", one / two, "times", least=1.8)
    found.note("the same values", float(np.array_equal(alone, together)), "", least=1)
    return found


def told(x: Any) -> tuple[float, int]:
    """The sum of a chunk on the device of this process, and how many of its bytes were copied from or to the host."""
    with lazyarray.trace() as events:
        total = float(x.sum())
    return total, sum(event.nbytes for event in events if event.nbytes >= x.nbytes)


def sent_figures(elements: int = 10**8, rounds: int = 5) -> timing.Figures:
    """A lazy array from one worker's GPU to another's, by TCP and by UCX, where Dask-CUDA and UCX are installed."""
    found = timing.Figures()
    if any(importlib.util.find_spec(name) is None for name in ("dask_cuda", "distributed_ucxx")):
        return found
    from dask_cuda import LocalCUDACluster
    from distributed import Client, wait

    for protocol in ("tcp", "ucx"):
        with LocalCUDACluster(n_workers=2, threads_per_worker=1, dashboard_address=None,
                              protocol=protocol) as cluster, Client(cluster) as client:
            client.wait_for_workers(2)
            here, there = client.scheduler_info()["workers"]
            seconds, copied, right = [], 0, True
            for i in range(rounds):
                x = client.submit(lazyarray.numpy.full, elements, i + 1.0, workers=[here], pure=False)
                wait(x)
                begun = time.perf_counter()
                total, copied = client.submit(told, x, workers=[there], pure=False).result()
                seconds.append(time.perf_counter() - begun)
                right = right and total == elements * (i + 1.0)
        found.note(f"an array from one worker to another by {protocol.upper()}",
                   8 * elements / float(np.median(seconds)) / 1e9, "GB/s")
        found.note(f"the same by {protocol.upper()}, copied through the host where it arrives", copied / 1e6, "MB",
                   most=0 if protocol == "ucx" else None)
        found.note("the same values", float(right), "", least=1)
    return found


def _made(number: int, elements: int) -> lazyarray.LazyNdarray:
    with lazyarray.device(number):
        return lazyarray.asarray(np.linspace(-5, 5, elements, dtype="f4"))


if __name__ == "__main__":
    timing.main("several", figures)
