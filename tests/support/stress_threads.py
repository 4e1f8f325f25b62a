"""Threads and streams in fresh processes: what one process does wrong at its first use of something, another shows.

``python tests/support/stress_threads.py --processes 200 --at-once 8`` prints each failure with its seed, and exits 1
if there is one; ``--seed N`` runs one process's work here, with all that it says.

In a process some threads start together: half of them on the null stream, the others on new streams in each round, of
their own or for two of them, so that what is made at the first use of a stream is made by several threads at the same
time. Each does all of `WORK`, in an order of its own, on arrays of its own and on some that all of them read, and
compares each value with NumPy's. A value that differs, a fallback to the host and a warning are failures. In three of
four processes one thread did the same work before, on a stream that no other uses: then the kernels are there.

In every process with an odd seed, threads take turns after each few steps of Python (`sys.setswitchinterval`), and
before the rounds there are `FIRSTS` more: all threads wait for each other, and then each asks for a mask or a sum as
the very first work on one stream, in the first of them the null stream. Two more threads meanwhile take memory on that
stream, write to it and let it go, so that a block that was let go before its kernel was launched is somebody else's by
then.
"""
from __future__ import annotations

import argparse
import contextlib
import os
import random
import subprocess
import sys
import threading
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
THREADS, ROUNDS, SECONDS = 8, 3, 120
#: Streams whose first work all threads do at once.
FIRSTS = 12
#: Lengths: small enough for the small ways, large enough for kernels that several blocks share, and in between.
LENGTHS = 1000, 20_001, 300_000


def same(found, expected, what):
    """Raise where a value is another than NumPy's; sums may be in another order."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        raise AssertionError(f"{what}: {found.dtype}{found.shape} for {expected.dtype}{expected.shape}")
    exact = expected.dtype.kind in "biu"
    equal = found == expected if exact else np.isclose(found, expected, 1e-9, 1e-9)
    if not equal.all():
        where = np.flatnonzero(~np.atleast_1d(equal).ravel())
        raise AssertionError(f"{what}: {where.size} of {expected.size} values differ, the first at {where[0]}: "
                             f"{found.ravel()[where[0]]} for {expected.ravel()[where[0]]}")


class Arrays:
    """NumPy's arrays of a thread, and the lazy ones of the same values."""

    def __init__(self, seed, n, shared):
        random_ = np.random.default_rng(seed)
        self.n, self.plain_shared, self.lazy_shared = n, *shared[n]
        self.values = random_.normal(size=(n // 4, 4))
        self.mask = random_.random(n // 4) < random_.random()
        self.ints = random_.integers(-1000, 1000, n)
        import lazyarray

        self.np, self.lazyarray = np, lazyarray
        self.x, self.m, self.i = map(lazyarray.asarray, (self.values, self.mask, self.ints))


def masks(a):
    same(a.x[a.m], a.values[a.mask], "rows by a mask")
    same(a.x[a.x > 0.5], a.values[a.values > 0.5], "elements by a mask")
    same(a.lazy_shared[a.lazy_shared > 0], a.plain_shared[a.plain_shared > 0], "shared elements by a mask")
    same(np.nonzero(a.m)[0], np.nonzero(a.mask)[0], "nonzero")
    same(np.count_nonzero(a.m), np.count_nonzero(a.mask), "count_nonzero")
    y, expected = a.x.copy(), a.values.copy()
    y[a.m] = -1.0
    expected[a.mask] = -1.0
    same(y, expected, "written by a mask")


def reductions(a):
    same(a.i.sum(), a.ints.sum(), "sum of integers")
    same((a.x * 2 + 1).sum(), (a.values * 2 + 1).sum(), "sum of a chain")
    same((a.x - 1).max(axis=0), (a.values - 1).max(axis=0), "columns' maxima")
    same((a.x * a.x).mean(axis=1), (a.values * a.values).mean(axis=1), "rows' means")
    same(np.argmin(a.x + 0.5), np.argmin(a.values + 0.5), "position of the least")
    same(np.linalg.norm(a.lazy_shared * 3), np.linalg.norm(a.plain_shared * 3), "norm of what is shared")
    same((a.x > 0).any(), (a.values > 0).any(), "any")


def chains(a):
    y = a.x
    expected = a.values
    for k in range(6):
        y, expected = y * 0.5 + k, expected * 0.5 + k
    same(y, expected, "chain")
    z = np.where(a.x > 0, a.x, -a.x) + a.x[:, :1]
    same(z, np.where(a.values > 0, a.values, -a.values) + a.values[:, :1], "chain with a choice and a broadcast")
    same((a.lazy_shared + 1) * 2, (a.plain_shared + 1) * 2, "chain of what is shared")
    w, kept = a.x + 0, a.values + 0
    w += 1
    kept += 1
    same(w, kept, "in place")


def copies(a):
    alias = np.asarray(a.x * 1)
    same(alias, a.values, "alias")
    y = a.x.copy()
    held = np.asarray(y)
    held[3] = 77.0
    y *= 2
    expected = a.values.copy()
    expected[3] = 77.0
    same(held, expected * 2, "an alias that is held")
    same(a.x.T.copy(), a.values.T, "transposed")
    same(a.x[::-1, 1:3], a.values[::-1, 1:3], "view")


def small_fetches(a):
    for k in range(0, min(a.n // 4, 40), 4):
        same(a.x[k, 1], a.values[k, 1], "element")
        same(float(a.x[k].sum()), float(a.values[k].sum()), "float of a sum")
    same((a.x[:5] * 3).tolist(), (a.values[:5] * 3).tolist(), "list")


def uploads(a):
    mine = np.random.default_rng(a.n).normal(size=a.n // 4)
    same(a.x[:, 0] + mine, a.values[:, 0] + mine, "a host operand")
    mine.flags.writeable = False
    for _ in range(2):
        same(a.x[:, 1] * mine, a.values[:, 1] * mine, "a host operand that is kept")
    y = a.lazyarray.asarray(np.arange(a.n))
    same(y[a.i % a.n], np.arange(a.n)[a.ints % a.n], "gathered")


def prefetches(a):
    y = a.x * 3
    a.lazyarray.prefetch(y)
    z = y + 1
    same(y, a.values * 3, "prefetched")
    same(z, a.values * 3 + 1, "computed beside a prefetch")


def functions(a):
    @a.lazyarray.lazy
    def twice(x):
        return x * 2

    @a.lazyarray.lazy(writes=("x",))
    def add_one(x):
        x += 1

    same(twice(a.x), a.values * 2, "a function on device arrays")
    y = a.x.copy()
    add_one(y)
    same(y, a.values + 1, "a function that writes")


WORK = masks, reductions, chains, copies, small_fetches, uploads, prefetches, functions


def first_work(number, seed, plain, lazy):
    """A mask or a reduction that several blocks share, by the kernels that count: nothing is uploaded before it."""
    if (number + seed) % 2:
        same(lazy[lazy > 0], plain[plain > 0], "the first elements by a mask")
    else:
        same((lazy * 2 + 1).sum(), (plain * 2 + 1).sum(), "the first sum")


def churn(device, stream, stop):
    """Take memory on a stream, write to it and let it go, until `stop` is set."""
    from lazyarray.devices.cuda.kernels.reduction import _OFFSET, _ROOM

    held = []
    with stream:
        while not stop.is_set():
            for size in (_OFFSET + _ROOM, _OFFSET):     # what the counters of a stream take, and a part of it
                block = device.empty((size,), np.dtype(np.uint8))
                block[...] = 0xA5
                held.append(block)
            del held[:-2]


def same_time(device, seed, plain, lazy, wrong):
    """All threads' first work on each of `FIRSTS` streams, at the same time."""
    streams = [contextlib.nullcontext(), *(device.new_stream() for _ in range(FIRSTS - 1))]
    barrier, over, stops = threading.Barrier(THREADS), threading.Barrier(THREADS), [
        threading.Event() for _ in streams]

    def run(number):
        for k, stream in enumerate(streams):
            busy = None
            if number < 2:
                busy = threading.Thread(target=churn, args=(device, stream, stops[k]), daemon=True)
                busy.start()
            with stream:
                barrier.wait(SECONDS)
                try:
                    first_work(number, seed + k, plain, lazy)
                except Exception as error:  # noqa: BLE001  whatever it is, it is a failure, and the others go on
                    wrong.append(f"thread {number}, the first work on stream {k}: {type(error).__name__}: {error}")
            over.wait(SECONDS)
            stops[k].set()
            if busy is not None:
                busy.join(SECONDS)

    together([threading.Thread(target=run, args=(number,), daemon=True) for number in range(THREADS)], wrong)


def together(threads, wrong):
    """Start threads and wait for them."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    if any(thread.is_alive() for thread in threads):
        wrong.append("a thread waits for ever")


def process(seed):
    """The work of one process; what went wrong."""
    import lazyarray
    from lazyarray import _native

    if _native.recording is not None and seed % 8 != 1:     # else the host computes what is small
        _native.recording.small(0)
    device, chosen = lazyarray.device(), random.Random(seed)
    order = [[(work, n) for work in WORK for n in LENGTHS] for _ in range(THREADS)]
    for turns in order:
        chosen.shuffle(turns)
    first = chosen.choice(WORK)     # all begin with the same, so that its kernels and counters are asked for together
    wrong = []
    plain = {n: np.random.default_rng(n).normal(size=n) for n in LENGTHS}
    shared = {n: (values, lazyarray.asarray(values)) for n, values in plain.items()}
    rounds = [threading.Barrier(THREADS) for _ in range(ROUNDS)]
    in_pairs = [device.new_stream() for _ in range(ROUNDS)]

    def turn(number, k):
        for work, n in [(first, LENGTHS[-1]), *order[number][k::ROUNDS]]:
            try:
                work(Arrays(seed * 1000 + number, n, shared))
            except Exception as error:  # noqa: BLE001  whatever it is, it is a failure, and the others go on
                where = traceback.extract_tb(error.__traceback__)[-1]
                stream = ("the null stream", "a stream of two", "the null stream", "a stream of its own")[number % 4]
                wrong.append(f"thread {number} on {stream}, {work.__name__}, {n}: "
                             f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")

    def run(number):
        for k in range(ROUNDS):
            stream = contextlib.nullcontext() if number % 2 == 0 else in_pairs[k] if number % 4 == 1 else (
                device.new_stream())
            rounds[k].wait(SECONDS)
            with stream:
                turn(number, k)

    with warnings.catch_warnings(record=True) as caught:    # no trace: what is heard goes slower ways
        warnings.simplefilter("always")
        if seed % 4:
            with device.new_stream():
                for k in range(2):      # what comes again is compiled
                    for work in WORK:
                        work(Arrays(seed * 1000 + 999 + k, LENGTHS[-1], shared))
                    first_work(k, 0, *shared[LENGTHS[-1]])
                    first_work(k, 1, *shared[LENGTHS[-1]])
            if device.name == "cuda":
                device.kernels.wait(SECONDS)
        interval = sys.getswitchinterval()
        try:
            if seed % 2:
                sys.setswitchinterval(1e-6)
                same_time(device, seed, *shared[LENGTHS[-1]], wrong)
            together([threading.Thread(target=run, args=(number,), daemon=True) for number in range(THREADS)], wrong)
        finally:
            sys.setswitchinterval(interval)
        device.synchronize()
    return wrong + [f"{w.category.__name__}: {w.message}" for w in caught]


def child(seed, seconds):
    """The outcome of one fresh process: what it says of what went wrong, "" if nothing."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    try:
        done = subprocess.run([sys.executable, __file__, "--seed", str(seed)], env=environment, capture_output=True,
                              text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"it did not end within {seconds} s"
    return "" if done.returncode == 0 else f"exit {done.returncode}\n{done.stdout}{done.stderr}".strip()


def run(processes, at_once, first=0, seconds=SECONDS, say=print):
    """Run fresh processes with the seeds from `first` on; the failures by seed."""
    failures, began = {}, time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        for seed, said in zip(range(first, first + processes),
                              pool.map(lambda seed: child(seed, seconds), range(first, first + processes))):
            if said:
                failures[seed] = said
                say(f"seed {seed}: {said}", flush=True)
            elif (seed - first + 1) % 25 == 0:
                say(f"{seed - first + 1} of {processes} after {time.monotonic() - began:.0f} s, "
                    f"{len(failures)} failed", flush=True)
    say(f"{processes} processes, {at_once} at a time, {time.monotonic() - began:.0f} s: {len(failures)} failed"
        + (f", seeds {', '.join(map(str, failures))}" if failures else ""), flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="run the work of one process here")
    chosen = parser.parse_args()
    if chosen.seed is None:
        sys.exit(bool(run(chosen.processes, chosen.at_once, chosen.first)))
    wrong = process(chosen.seed)
    print("\n".join(wrong))
    sys.stdout.flush()
    os._exit(bool(wrong))       # threads that wait for ever don't keep it


if __name__ == "__main__":
    main()
