"""Throughput of threads that work on arrays of their own: ``python -m benchmarks.threads``.

Two kinds of requests, as a server has them. Both upload an array and read a result on the host. In one nearly all time
is the device's: singular values, for which the driver launches many small kernels. The other computes a chain and a
sum, which the device does in microseconds: what takes time are Python and the copies. Python's lock is free while the
device copies and computes, and while the host waits for it.
"""
from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable

import numpy as np

import lazyarray

from . import timing

THREADS, REQUESTS, SIZE = 8, 50, 1 << 20
#: Rows and columns of the matrices that are decomposed, and requests of a thread.
SIDE, DECOMPOSED = 384, 8


def decompose(host: np.ndarray) -> float:
    """The largest singular value."""
    side = int(host.size ** 0.5)
    x = lazyarray.asarray(host[:side * side].reshape(side, side))
    return float(np.asarray(np.linalg.svd(x, compute_uv=False))[0])


def request(host: np.ndarray) -> float:
    """One request on an array that nobody else has."""
    x = lazyarray.asarray(host)
    y = np.sqrt(x * 2 + 1) - x / 3
    return float(np.asarray(y)[-1] + y.sum())


def per_second(threads: int, requests: int, size: int, request: Callable[[np.ndarray], float] = request) -> float:
    """Requests that are done in a second by so many threads, each on a stream of its own."""
    device, barrier = lazyarray.device(), threading.Barrier(threads + 1)
    failed: list[BaseException] = []

    def run(number: int) -> None:
        host = np.linspace(number, number + 1, size, dtype=np.float32)
        try:
            with device.new_stream():
                for _ in range(3):
                    expected = request(host)
                barrier.wait()
                for _ in range(requests):
                    if request(host) != expected:
                        raise AssertionError("another result than before")
        except BaseException as error:
            failed.append(error)
            barrier.abort()
            raise

    made = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in made:
        thread.start()
    barrier.wait()
    began = time.perf_counter()
    for thread in made:
        thread.join()
    if failed:
        raise failed[0]
    return threads * requests / (time.perf_counter() - began)


def figures(threads: int = THREADS, requests: int = REQUESTS, size: int = SIZE, turns: int = 5,
            side: int = SIDE, decomposed: int = DECOMPOSED) -> timing.Figures:
    """Requests in a second of one thread and of several, in turn, and how many times as many those do."""
    found = timing.Figures()
    timing.warm(lambda: decompose(np.linspace(0, 1, side * side)))
    of_device: dict[int, list[float]] = {1: [], threads: []}
    for _ in range(turns):
        for count, values in of_device.items():
            values.append(per_second(count, decomposed, side * side, decompose))
    one, several = (statistics.median(values) for values in of_device.values())
    found.note(f"singular values of {side} x {side}, by one thread", one, "per second")
    found.note(f"singular values of {side} x {side}, by {threads} threads", several, "per second")
    found.note(f"{threads} threads where the work is the device's, in times of one", several / one, "times", least=3.0)
    timing.warm(lambda: request(np.linspace(0, 1, size, dtype=np.float32)))
    rates: dict[int, list[float]] = {1: [], threads: []}
    for _ in range(turns):
        for count, values in rates.items():
            values.append(per_second(count, requests, size))
    one, several = (statistics.median(values) for values in rates.values())
    found.note(f"requests on {size * 4 / 2**20:g} MiB of one thread", one, "per second")
    found.note(f"requests on {size * 4 / 2**20:g} MiB of {threads} threads", several, "per second")
    found.note(f"{threads} threads where it is Python's, in times of one", several / one, "times")
    return found


if __name__ == "__main__":
    timing.show("threads", figures(), kept=lazyarray.device().name == "cuda")
