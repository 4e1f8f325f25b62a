"""Throughput of threads that work on arrays of their own: ``python -m benchmarks.threads``.

Each request uploads an array, computes a chain and a sum, and reads the result on the host, as one of a server's does.
Python's lock is free while the device copies and computes, and while the host waits for it.
"""
from __future__ import annotations

import statistics
import threading
import time

import numpy as np

import lazyarray

from . import timing

THREADS, REQUESTS, SIZE = 8, 50, 1 << 20


def request(host: np.ndarray) -> float:
    """One request on an array that nobody else has."""
    x = lazyarray.asarray(host)
    y = np.sqrt(x * 2 + 1) - x / 3
    return float(np.asarray(y)[-1] + y.sum())


def per_second(threads: int, requests: int, size: int) -> float:
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


def figures(threads: int = THREADS, requests: int = REQUESTS, size: int = SIZE, turns: int = 5) -> timing.Figures:
    """Requests in a second of one thread and of several, in turn, and how many times as many those do."""
    found = timing.Figures()
    timing.warm(lambda: request(np.linspace(0, 1, size, dtype=np.float32)))
    rates: dict[int, list[float]] = {1: [], threads: []}
    for _ in range(turns):
        for count, values in rates.items():
            values.append(per_second(count, requests, size))
    one, several = (statistics.median(values) for values in rates.values())
    found.note(f"requests on {size * 4 / 2**20:g} MiB of one thread", one, "per second")
    found.note(f"requests on {size * 4 / 2**20:g} MiB of {threads} threads", several, "per second")
    found.note(f"{threads} threads on arrays of their own, in times of one", several / one, "times", least=3.0)
    return found


if __name__ == "__main__":
    timing.show("threads", figures(), kept=lazyarray.device().name == "cuda")
