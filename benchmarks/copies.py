"""Copies between the sides against the rate of page-locked memory, on CUDA: ``python -m benchmarks.copies``."""
from __future__ import annotations

import statistics
import time

import numpy as np

import lazyarray
from lazyarray.storage import handles
from lazyarray.storage.mirror import pinned_pool

from . import timing

MB = 1 << 20


def seconds(work, prepare=lambda: None, rounds: int = 7) -> float:
    """Median seconds of `work`, of what `prepare` returns, waited for on both sides."""
    synchronize = lazyarray.device().synchronize
    found = []
    for _ in range(rounds + 2):
        given = prepare()
        synchronize()
        start = time.perf_counter()
        kept = work(given)
        synchronize()
        found.append(time.perf_counter() - start)
        del kept, given
    return statistics.median(found[2:])


def written(cupy, nbytes: int) -> float:
    """GB/s of one copy to the device of page-locked memory that the host has just written."""
    memory, block = cupy.cuda.alloc_pinned_memory(nbytes), cupy.zeros(nbytes, cupy.uint8)
    array, stream = np.frombuffer(memory, np.uint8, nbytes), cupy.cuda.get_current_stream()
    return nbytes / seconds(lambda _: block.data.copy_from_host_async(memory.ptr, nbytes, stream),
                            lambda: array.fill(2)) / 1e9


def page_locked(cupy, nbytes: int = 256 * MB) -> tuple[float, float]:
    """GB/s to the host and to the device of one copy from or to page-locked memory."""
    memory, block = cupy.cuda.alloc_pinned_memory(nbytes), cupy.zeros(nbytes, cupy.uint8)
    stream = cupy.cuda.get_current_stream()
    down = seconds(lambda _: block.data.copy_to_host_async(memory.ptr, nbytes, stream))
    up = seconds(lambda _: block.data.copy_from_host_async(memory.ptr, nbytes, stream))
    return nbytes / down / 1e9, nbytes / up / 1e9


SHAPE = (8192, 8192)
VIEWS = {
    "the left half of each row": lambda a: a[:, :a.shape[1] // 2],
    "every other row": lambda a: a[::2],
    "every other column": lambda a: a[:, ::2],
    "a transposed array": lambda a: a.T,
    "every 64th element of a row": lambda a: a[:, ::64],
}


def figures_of_views(note) -> None:
    """Views of an array of 256 MiB, against a contiguous array of as many bytes."""
    source = lazyarray.asarray(np.ones(SHAPE, np.float32))
    rates: dict = {}
    for name, view in VIEWS.items():
        def fresh(view=view, contiguous=False):
            x = source + 1
            handles.device_of(x)
            x = view(x).copy("C") if contiguous else view(x)
            handles.device_of(x)
            return x

        nbytes = view(np.empty(SHAPE, np.float32)).nbytes
        if nbytes not in rates:
            rates[nbytes] = nbytes / seconds(np.asarray, lambda fresh=fresh: fresh(contiguous=True)) / 1e9
        rate = nbytes / seconds(np.asarray, fresh) / 1e9
        note(f"np.asarray of {name}", rate, "GB/s")
        note(f"np.asarray of {name}, of the contiguous rate of its bytes", rate / rates[nbytes], "times", 0.5)


def figures_of_prefetch(note, nbytes: int = 256 * MB) -> None:
    """Two copies to the host and a chain of kernels, together and one after the other."""
    xp, synchronize = lazyarray.device().xp, lazyarray.device().synchronize
    source = lazyarray.asarray(np.ones(nbytes // 4, np.float32))
    c = xp.ones(nbytes // 4, np.float32)

    def pair():
        found = source + 1, source + 2
        for x in found:
            handles.device_of(x)
        return found

    def compute(_=None):
        for _ in range(60):
            xp.sin(c, out=c)

    def copy(arrays):
        for x in arrays:
            np.asarray(x)

    def together(arrays):
        lazyarray.prefetch(*arrays)
        compute()
        copy(arrays)
        synchronize()

    alone = seconds(copy, pair), seconds(compute)
    both = seconds(together, pair)
    note("two copies to the host, 256 MiB each", 1e3 * alone[0], "ms")
    note("a chain of kernels", 1e3 * alone[1], "ms")
    note("both, with prefetch, of the longer of the two", both / max(alone), "times", most=1.15)
    note("both, with prefetch, of their sum", both / sum(alone), "times")


def figures_of_aliases(note, nbytes: int = 1 << 30) -> None:
    """What an alias costs the next use on the device: one that was only read, one that was written in some pages."""
    pinned_pool.pool.look_after(idle=-1)    # what was written all over is of small pages from then on, see below
    x = lazyarray.asarray(np.ones(nbytes // 4, np.float32)) + 1
    handles.device_of(x)
    aliases = [np.asarray(x)]

    def write(pages: int):
        return lambda: aliases[0][::x.size // pages][:pages].fill(2)

    write(16)()     # the first time, a kernel that reads single pages is compiled beside the copies
    handles.device_of(x)
    time.sleep(1)
    read = seconds(lambda _: handles.device_of(x), lambda: aliases[0][:1000].sum())
    note("an alias of 1 GiB that was only read", 1e3 * read, "ms", most=0.2 * nbytes / (1 << 30))
    for pages in (1, 16, 256):
        spent = seconds(lambda _: handles.device_of(x), write(pages))
        note(f"one of 1 GiB that was written in {pages} pages", 1e3 * spent, "ms")
        note(f"one of 1 GiB that was written in {pages} pages, of the uploads of {pages} pages and 0.2 ms",
             spent / (page_copies(pages) + 2e-4), "times", most=1)
    aliases[0].fill(3)
    handles.device_of(x)
    read = seconds(lambda _: handles.device_of(x), lambda: aliases[0][:1000].sum())
    note("one of 1 GiB that was only read, but written all over earlier", 1e3 * read, "ms")
    aliases.clear()
    handles.device_of(x)
    note("one that is gone", 1e6 * seconds(lambda _: handles.device_of(x)), "us", most=20)


def page_copies(count: int) -> float:
    """Seconds for so many copies of one page of page-locked memory to the device."""
    cupy = lazyarray.device().xp
    memory, block = cupy.cuda.alloc_pinned_memory(4096 * count), cupy.zeros(4096 * count, cupy.uint8)
    stream = cupy.cuda.get_current_stream()

    def copy(_):
        for low in range(0, 4096 * count, 4096):
            (block.data + low).copy_from_host_async(memory.ptr + low, 4096, stream)

    return seconds(copy)


def figures() -> list[dict]:
    """The figures, as in `calls.figures`; the device must be CUDA."""
    cupy = lazyarray.device().xp
    found: list[dict] = []

    def note(what: str, value: float, unit: str, least: float | None = None, most: float | None = None) -> None:
        found.append({"what": what, "value": round(value, 3), "unit": unit, "target": most, "least": least})

    down, up = page_locked(cupy)
    note("page-locked memory, device to host", down, "GB/s")
    note("page-locked memory, host to device", up, "GB/s")
    for nbytes in (64 * MB, 256 * MB, 1024 * MB):
        name, count = f"{nbytes // MB} MiB", nbytes // 4
        source, other = lazyarray.asarray(np.ones(count, np.float32)), cupy.ones(count, cupy.float32)

        def fresh(source=source):
            result = source + 1
            handles.device_of(result)
            return result

        ours = nbytes / seconds(np.asarray, fresh) / 1e9
        theirs = nbytes / seconds(lambda _, other=other: cupy.asnumpy(other), rounds=3) / 1e9
        note(f"np.asarray(x), {name}", ours, "GB/s")
        note(f"np.asarray(x), {name}, of the page-locked rate", ours / down, "times", 0.9)
        note(f"np.asarray(x), {name}, of cupy.asnumpy", ours / theirs, "times", 10)

        def fresh_without_a_pool(fresh=fresh):
            pinned_pool.pool.look_after(idle=-1)
            return fresh()

        cold = nbytes / seconds(np.asarray, fresh_without_a_pool, rounds=3) / 1e9
        note(f"np.asarray(x), {name}, nothing pooled", cold, "GB/s", 15)

        def fresh_after_a_write(fresh=fresh):
            np.asarray(fresh()).fill(1)     # the next one gets this memory
            return fresh()

        again = nbytes / seconds(np.asarray, fresh_after_a_write) / 1e9
        note(f"np.asarray(x), {name}, where the host wrote into the one before, of the page-locked rate", again / down,
             "times", 0.9)
        host = np.ones(count, np.float32)
        ours = nbytes / seconds(lambda _, host=host: lazyarray.asarray(host)) / 1e9
        theirs = nbytes / seconds(lambda _, host=host: cupy.asarray(host)) / 1e9
        note(f"asarray(ndarray), {name}", ours, "GB/s")
        note(f"asarray(ndarray), {name}, of cupy.asarray", ours / theirs, "times", 1.5)
        x = fresh()
        alias = np.asarray(x)
        rate = nbytes / seconds(lambda _, x=x: handles.device_of(x), lambda alias=alias: alias.fill(2)) / 1e9
        note(f"a written mirror to the device, {name}, of the page-locked rate", rate / up, "times", 0.9)
        note(f"a written mirror to the device, {name}, of the rate of such memory that was written",
             rate / written(cupy, nbytes), "times")
        del source, other, host, x, alias
    figures_of_views(note)
    figures_of_prefetch(note)
    figures_of_aliases(note)
    small = [lazyarray.asarray(np.ones(256, np.float32)) for _ in range(2000)]
    others = [cupy.ones(256, cupy.float32) for _ in range(2000)]
    ours = seconds(lambda arrays: [np.asarray(a) for a in arrays],
                   lambda: [handles.view_of(a, a[:]._self_meta).copy()
                                                                            for a in small]) / len(small)
    theirs = seconds(lambda _: [cupy.asnumpy(a) for a in others]) / len(others)
    note("np.asarray(x), 1 KiB", ours * 1e6, "us")
    note("np.asarray(x), 1 KiB, of the time of cupy.asnumpy", ours / theirs, "times", most=1.3)
    return found


if __name__ == "__main__":
    timing.show("copies", figures())
