"""Arrays of four times the device's memory: the rate while they spill, against the link's.

``python -m benchmarks.spilling``. On a GPU the limit is that of CuPy's memory pool. Dask-CUDA spills the chunks of a
cluster: the time that it takes for the same passes is measured where it is installed.
"""
from __future__ import annotations

import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterator

import numpy as np

import lazyarray

from . import timing

#: Bytes of the device that may be used, arrays that fit into it, times its memory that there are, and passes.
LIMIT, FIT, TIMES, PASSES = 8 << 30, 16, 4, 2
TINY = 16 << 20


@contextlib.contextmanager
def limited(nbytes: int) -> Iterator[None]:
    """A device of so many bytes."""
    device = lazyarray.device()
    if device.name == "simulated":
        with device.limited(nbytes):
            yield
        return
    pool = device.xp.get_default_memory_pool()
    before = pool.get_limit()
    pool.free_all_blocks()
    pool.set_limit(size=nbytes)
    try:
        yield
    finally:
        pool.set_limit(size=before)


def seconds_of(call: Callable[[], object]) -> float:
    """Seconds that a call takes, with the work that it issues."""
    lazyarray.device().synchronize()
    start = time.perf_counter()
    call()
    lazyarray.device().synchronize()
    return time.perf_counter() - start


def link(nbytes: int) -> float:
    """Bytes a second of an array that goes to the host and back, page-locked on CUDA, the third time."""
    device = lazyarray.device()
    own = device.empty((nbytes,), np.dtype(np.uint8))
    if device.name == "cuda":
        memory = np.frombuffer(device.xp.cuda.alloc_pinned_memory(nbytes), np.uint8, nbytes)
    else:
        memory = np.zeros(nbytes, np.uint8)

    def there_and_back() -> None:
        if device.name == "cuda":
            own.get(out=memory)
            own.set(memory)
        else:
            device.download(own, memory)
            device.upload(memory, own)

    return 2 * nbytes / min(seconds_of(there_and_back) for _ in range(3))


def passes(arrays: list[lazyarray.LazyNdarray]) -> None:
    """Use and write each array, in turn."""
    for x in arrays:
        x += 1
        lazyarray.block_until_ready(x)


def figures(limit: int | None = None) -> timing.Figures:
    """The figures; on the simulated device, of small data."""
    limit = limit or (LIMIT if lazyarray.device().name == "cuda" else TINY)
    found = timing.Figures()
    rate = link(limit // FIT)
    with limited(limit):
        arrays = [lazyarray.numpy.full(limit // FIT // 8, i, dtype=float) for i in range(FIT * TIMES)]
        passes(arrays)      # mirrors have their memory then
        before = lazyarray.memory_info()
        with lazyarray.trace() as t:
            seconds = seconds_of(lambda: [passes(arrays) for _ in range(PASSES)])
        moved = lazyarray.memory_info().spilled - before.spilled
        right = all(float(x[0]) == i + PASSES + 1 for i, x in enumerate(arrays))
    nbytes = sum(event.nbytes for event in t.spills)
    found.note("moved to the host", moved / 2**20, "MiB")
    found.note("the link, page-locked, there and back", rate / 1e9, "GB/s")
    found.note("while arrays spill", nbytes / seconds / 1e9, "GB/s")
    found.note("while arrays spill, in parts of the link's rate", nbytes / seconds / rate, "times", least=0.5)
    found.note("right results", float(right), "", least=1)
    if importlib.util.find_spec("dask_cuda") is not None and lazyarray.device().name == "cuda":
        found.note("the same passes with Dask-CUDA", dask_cuda(limit), "s")
        found.note("the same passes with lazyarray", seconds, "s")
    return found


def dask_cuda(limit: int) -> float:
    """Seconds for the same passes over chunks in a cluster of one GPU that spills."""
    import dask.array as da
    from dask.distributed import Client, wait
    from dask_cuda import LocalCUDACluster

    cupy = lazyarray.device().xp
    with LocalCUDACluster(n_workers=1, device_memory_limit=limit) as cluster, Client(cluster):
        size = limit // FIT // 8
        x = da.zeros(size * FIT * TIMES, chunks=size).map_blocks(cupy.asarray).persist()
        wait(x)
        start = time.perf_counter()
        for _ in range(PASSES):
            x = (x + 1).persist()       # Dask writes no chunk in place
            wait(x)
        return time.perf_counter() - start


if __name__ == "__main__":
    timing.main("spilling", figures)
