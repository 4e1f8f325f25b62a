"""Whole programs: from NumPy to NumPy, and plain NumPy on lazy arrays against the same source on CuPy's arrays.

``python -m benchmarks.programs`` checks each result against NumPy's before it is timed.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import lazyarray

from . import plain, timing
from .timing import peer


class Sizes(NamedTuple):
    """How large the data are, and how often each thing is done; host arrays of 1 MiB are the smallest to be routed."""

    side: int
    picture: int
    points: int
    steps: int
    rounds: int


FULL = Sizes(side=4096, picture=2048, points=1_000_000, steps=100, rounds=9)
TINY = Sizes(side=512, picture=64, points=2000, steps=3, rounds=1)


class Program(NamedTuple):
    """Plain NumPy, and arguments for it; `rtol` is how near the results must be to NumPy's."""

    name: str
    run: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]
    rtol: float


def programs(sizes: Sizes) -> Iterator[Program]:
    """The programs, one at a time: their data are large."""
    random = np.random.default_rng(0)
    sky = random.normal(100, 5, (sizes.side, sizes.side)).astype(np.float32)
    sky.ravel()[random.integers(0, sky.size, sky.size // 200)] += random.exponential(500, sky.size // 200)
    yield Program("kappa-sigma clipping", plain.kappa_sigma, (sky,), 1e-4)
    yield Program("kappa-sigma clipping about the mean", functools.partial(plain.kappa_sigma, centre=np.mean), (sky,),
                  1e-4)
    means = random.normal(0, 5, (8, 4))
    points = means[random.integers(0, 8, sizes.points)] + random.normal(size=(sizes.points, 4))
    yield Program("Gaussian mixture, E-step", plain.e_step, (points, np.full(8, 1 / 8), means, np.ones((8, 4))), 1e-9)
    plate = np.zeros((sizes.side, sizes.side), np.float32)
    plate[:, 0] = plate[sizes.side // 3] = 100
    yield Program("heat equation", functools.partial(plain.diffuse, steps=sizes.steps), (plate,), 1e-4)
    middles = random.normal(0, 10, (16, 8))
    points = (middles[random.integers(0, 16, sizes.points)] + random.normal(size=(sizes.points, 8))).astype(np.float32)
    first = (middles + random.normal(size=middles.shape)).astype(np.float32)
    yield Program("k-means", plain.k_means, (points, first), 1e-4)


def check(name: str, found: Any, wanted: Any, rtol: float) -> None:
    """Raise if a result is not NumPy's, but for rounding; of whole numbers (labels) one in 100,000 may go elsewhere."""
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted), name
        for one, other in zip(found, wanted):
            check(name, one, other, rtol)
        return
    found, wanted = np.asarray(lazyarray.asnumpy(found)), np.asarray(wanted)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, f"{name}: {found.dtype}, not {wanted.dtype}"
    if wanted.dtype.kind == "f":
        far = np.abs(found - wanted).max() / np.abs(wanted).max()
    else:
        far, rtol = np.mean(found != wanted), 1e-5
    assert far <= rtol, f"{name}: {far:.2g} from NumPy's"


def plainly(found: timing.Figures, program: Program, rounds: int) -> None:
    """NumPy once, then the same source on lazy arrays and on the device's own."""
    name, run, arguments, rtol = program
    seconds, wanted = timing.once(lambda: run(*arguments))
    lazy = [lazyarray.asarray(x) for x in arguments]
    own = [lazyarray.asdevice(x) for x in arguments]
    check(name, run(*lazy), wanted, rtol)
    check(f"{name}, {peer()}", run(*own), wanted, rtol)
    calls = {"lazyarray": lambda: run(*lazy), peer(): lambda: run(*own)}
    for call in calls.values():
        timing.warm(call)
    medians = timing.medians(calls, rounds)
    for library, value in medians.items():
        found.note(f"{name}: {library}", value * 1e3, "ms")
    found.note(f"{name}: NumPy", seconds * 1e3, "ms")
    found.note(f"{name}: {peer()} / lazyarray", medians[peer()] / medians["lazyarray"], "times", least=1.5)


def filtered(filters: Any, image: Any) -> Any:
    """Four filters, one after the other; `filters` is scikit-image's module, or cuCIM's."""
    smooth = filters.gaussian(image, sigma=1)
    sharp = filters.unsharp_mask(smooth, radius=2, amount=1)
    edges = filters.sobel(sharp)
    return filters.gaussian(edges, sigma=2)


def around_each(filters: Any, image: np.ndarray) -> np.ndarray:
    """The same, with each filter's argument and result moved by hand."""
    xp = lazyarray.device().xp

    class Moved:
        def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
            return lambda x, **settings: xp.asnumpy(getattr(filters, name)(xp.asarray(x), **settings))

    return filtered(Moved(), image)


def locked_copies(nbytes: int, rounds: int) -> tuple[float, float]:
    """Seconds of one copy to the device and of one back, at the page-locked rate (where there is such a thing)."""
    device = lazyarray.device()
    block = device.empty((nbytes,), np.dtype(np.uint8))
    if device.name != "cuda":
        host = np.zeros(nbytes, np.uint8)
        found = timing.medians({"up": lambda: device.upload(host, block), "down": lambda: device.download(block, host)},
                               rounds)
    else:
        memory = device.xp.cuda.alloc_pinned_memory(nbytes)
        stream = device.xp.cuda.get_current_stream()
        found = timing.medians({"up": lambda: block.data.copy_from_host_async(memory.ptr, nbytes, stream),
                                "down": lambda: block.data.copy_to_host_async(memory.ptr, nbytes, stream)}, rounds)
    return found["up"], found["down"]


def four_filters(found: timing.Figures, sizes: Sizes) -> None:
    """Filters of scikit-image on a NumPy image, NumPy out."""
    from skimage import filters

    device, name = lazyarray.device(), "four filters"
    cucim = device.library("cucim.skimage.filters")
    image = np.random.default_rng(0).random((sizes.side, sizes.side), dtype=np.float32)
    seconds, wanted = timing.once(lambda: filtered(filters, image))

    def lazily() -> np.ndarray:
        return np.asarray(filtered(filters, image))

    with lazyarray.enabled("skimage", numpy=True):      # once for a program: it takes milliseconds
        with lazyarray.trace() as record:
            check(name, lazily(), wanted, 1e-4)
        timing.warm(lazily)
        medians = timing.medians({"lazyarray": lazily}, sizes.rounds)
    moved = len(record.uploads), len(record.materialisations)
    assert moved == (1, 1), f"one copy each way, not {moved}"
    check(f"{name}, moved by hand", around_each(cucim, image), wanted, 1e-4)
    there = lazyarray.asdevice(image)
    calls = {"on the device alone": lambda: filtered(cucim, there),
             "a round trip around each": lambda: around_each(cucim, image)}
    for call in calls.values():
        timing.warm(call)
    medians |= timing.medians(calls, sizes.rounds)
    for what, value in medians.items():
        found.note(f"{name}: {what}", value * 1e3, "ms")
    found.note(f"{name}: scikit-image", seconds * 1e3, "ms")
    up, down = locked_copies(image.nbytes, sizes.rounds)
    found.note(f"{name}: one page-locked copy to the device", up * 1e3, "ms")
    found.note(f"{name}: one page-locked copy to the host", down * 1e3, "ms")
    upload = timing.medians({"upload": lambda: lazyarray.asarray(image)}, sizes.rounds)["upload"]
    found.note(f"{name}: one upload of a NumPy array", upload * 1e3, "ms")
    ours, alone, trips = medians.values()
    found.note(f"{name}: of device time, an upload and a page-locked copy", ours / (alone + upload + down), "times",
               most=1.2)
    # The strict reading: the image lies in pageable memory, from which no single copy goes at that rate.
    found.note(f"{name}: of device time and two page-locked copies", ours / (alone + up + down), "times", most=1.2)
    found.note(f"{name}: a round trip around each / lazyarray", trips / ours, "times", least=8)


def convolution(found: timing.Figures, sizes: Sizes) -> None:
    """The lesson's convolution of a picture of dots, NumPy to NumPy, against its copies by hand."""
    from scipy.signal import convolve2d

    device, name = lazyarray.device(), "convolve2d"
    xp, there = device.xp, device.library("cupyx.scipy.signal").convolve2d
    deltas = np.zeros((sizes.picture, sizes.picture))
    deltas[8::16, 8::16] = 1
    t = np.linspace(-2, 2, 15)
    gauss = np.exp(-(t[:, np.newaxis] ** 2 + t**2) / 2)
    lazy = lazyarray.lazy(there, pure=True)
    calls = {"lazyarray": lambda: np.asarray(lazy(deltas, gauss)),
             "moved by hand": lambda: xp.asnumpy(there(xp.asarray(deltas), xp.asarray(gauss)))}
    seconds, wanted = timing.once(lambda: convolve2d(deltas, gauss))
    for how, call in calls.items():
        check(f"{name}, {how}", call(), wanted, 1e-9)
        timing.warm(call)
    medians = timing.medians(calls, sizes.rounds)
    for what, value in medians.items():
        found.note(f"{name}: {what}", value * 1e3, "ms")
    found.note(f"{name}: SciPy", seconds * 1e3, "ms")
    found.note(f"{name}: moved by hand / lazyarray", medians["moved by hand"] / medians["lazyarray"], "times",
               least=1.5)


def figures(sizes: Sizes | None = None) -> timing.Figures:
    """The figures; on the simulated device, of small data."""
    sizes = sizes or (FULL if lazyarray.device().name == "cuda" else TINY)
    found = timing.Figures()
    four_filters(found, sizes)
    convolution(found, sizes)
    for program in programs(sizes):
        plainly(found, program, sizes.rounds)
    return found


if __name__ == "__main__":
    timing.main("programs", figures)
