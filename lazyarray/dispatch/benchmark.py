"""How long a function takes on lazy arrays, with the time of the host and of the device apart."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from types import CoroutineType
from typing import Any

import numpy as np

from .. import devices
from ..events.markup import cell, element, escape, table
from ..events.progress import progress
from ..events.report import align, summary
from ..events.trace import trace
from ..graph import waiting
from .ready import block_until_ready

__all__ = ["Benchmark", "benchmark"]

#: Colours of the plot: each stands out by at least 3 to 1 from white and from dark grey.
COLOURS = {"CPU": "#2f7fd6", "device": "#c96a12", "total": "#8a6fd0"}


class Benchmark:
    """The times of a function, as `benchmark` measured them.

    ``print`` shows mean, standard deviation, minimum and maximum of each.

    Attributes
    ----------
    name : str
        Name of the function.
    device : str
        "GPU-0" and so on, or "simulated"; "GPU-0, GPU-1" if lazy arrays are on several devices.
    cpu_times : numpy.ndarray, shape (n,), float64
        Seconds from each call until it had returned and its deferred work was handed to the device.
    gpu_times : numpy.ndarray, shape (number of devices, n), float64
        Seconds from the first to the last moment of each call on the device's stream, including the gaps in which the
        device waited for the host. (As CuPy's ``gpu_times``.)
    total_times : numpy.ndarray, shape (n,), float64
        Seconds from each call until the device had finished.
    copies : str
        Copies, fallbacks and waits of one call, in one line.
    """

    def __init__(self, name: str, devices: Sequence[str], times: np.ndarray, copies: str) -> None:
        self.name, self.device, self.copies = name, ", ".join(devices), copies
        self.cpu_times, self.gpu_times, self.total_times = times[0], times[1:-1], times[-1]

    def _times(self) -> list[tuple[str, np.ndarray]]:
        return [("CPU", self.cpu_times), *zip(self.device.split(", "), self.gpu_times), ("total", self.total_times)]

    def _rows(self) -> list[tuple[str, ...]]:
        unit, factor = _unit(float(np.median(self.total_times)))
        rows: list[tuple[str, ...]] = []
        for label, times in self._times():
            found = [times.mean(), times.std(), times.min(), times.max()]
            mean, deviation, least, most = (f"{seconds / factor:.3f}" for seconds in found)
            rows.append((label, f"{mean} {unit}", f"+/- {deviation}", least, most))
        return rows

    def __repr__(self) -> str:
        rows = [("", "mean", "std", "min", "max"), *self._rows()]
        lines = [f"{self.name}: {len(self.cpu_times)} calls", *align(rows, right=(1, 2, 3, 4)),
                 f"each call: {self.copies}"]
        return "\n".join([*lines, *self._remarks()])

    def _remarks(self) -> list[str]:
        return ["(the simulated device computes on the CPU: this says nothing about a GPU)"] * (
            self.device.startswith("simulated"))

    def _repr_html_(self) -> str:
        head = [cell(text, head=True, right=number > 0) for number, text in enumerate(
            ("", "mean", "std", "min", "max"))]
        rows = [[cell(row[0], head=True), *(cell(text, right=True) for text in row[1:])] for row in self._rows()]
        below = element("div", escape(" ".join([f"each call: {self.copies}", *self._remarks()])), "margin:.3em 0")
        title = element("div", element("b", escape(self.name)) + f": {len(self.cpu_times)} calls", "margin:0 0 .3em")
        return element("div", title + table([head, *rows]) + below, "text-align:left",
                       **{"class": "lazyarray-benchmark"})

    def plot(self, ax: Any = None) -> Any:
        """Plot the times of all calls, in their order, with the medians as lines. Needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots(layout="constrained")[1]
        unit, factor = _unit(float(np.median(self.total_times)))
        calls = np.arange(1, len(self.cpu_times) + 1)
        marks = {"CPU": "+", "total": ".", **dict(zip(self.device.split(", "), itertools.cycle("x1234sdv")))}
        for name, times in self._times():
            mark, median = marks[name], float(np.median(times)) / factor
            colour = COLOURS.get(name, COLOURS["device"])
            ax.plot(calls, times / factor, mark, color=colour, label=f"{name}: median {median:.3g} {unit}")
            ax.axhline(median, color=colour, linewidth=1)
        ax.set(title=self.name, xlabel="call", ylabel=f"time ({unit})", ylim=(0, None))
        ax.legend()
        return ax


def _unit(seconds: float) -> tuple[str, float]:
    return next(((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3)) if seconds >= size), ("us", 1e-6))


def benchmark(f: Callable[..., Any], *args: Any, kwargs: Mapping[str, Any] | None = None, n_repeat: int = 100,
              n_warmup: int = 10, max_duration: float = 10.0, name: str | None = None) -> Benchmark:
    """Measure how long a function takes, with the times of the host and of the device apart.

    Each call is timed alone. Its deferred work is computed before the clock is read, and the device has finished, or
    all devices that lazy arrays are on, before the next call begins. The parameters after the function's own are those
    of `cupyx.profiler.benchmark`, whose times leave deferred work out.

    Parameters
    ----------
    f : callable
    *args, kwargs
        Its arguments; `kwargs` is a dict.
    n_repeat : int
        Number of calls that are timed.
    n_warmup : int
        Number of calls before that, 0 or more: the first calls compile kernels, for which `benchmark` waits, and
        allocate memory.
    max_duration : float
        Seconds after which no further call is begun. There is at least one.
    name : str, optional
        Name of the function in the report.

    Returns
    -------
    Benchmark
        ``print`` it, or call its method ``plot``.

    Raises
    ------
    ValueError
        If there are no calls to be timed, or a negative number of calls before.
    TypeError
        If `f` returns a coroutine, which has not run yet.

    Examples
    --------
    >>> import numpy as np, lazyarray
    >>> x = lazyarray.asarray(np.ones(100_000))
    >>> found = lazyarray.benchmark(lambda: np.sqrt(x * 2 + 1), n_repeat=5, name="sqrt")
    >>> found.name, found.total_times.shape, found.copies
    ('sqrt', (5,), '0 uploads, 0 materialisations')
    """
    if n_repeat < 1:
        raise ValueError(f"n_repeat must be at least 1, not {n_repeat}")
    if n_warmup < 0:
        raise ValueError(f"n_warmup must be at least 0, not {n_warmup}")
    given, device = dict(kwargs or {}), devices.current()
    what: str = name or getattr(f, "__name__", "") or type(f).__name__

    def moments() -> list[Any]:
        found = []
        for number in numbers:
            with device.on(number):
                found.append(device.moment())
        return found

    def call() -> list[float]:
        first = moments()
        start = perf_counter()
        result = f(*args, **given)
        waiting.compute_all()
        returned = perf_counter()
        on_devices = list(map(device.seconds_between, first, moments()))
        finished = perf_counter()
        if isinstance(result, CoroutineType):
            result.close()      # else Python warns that it never ran
            raise TypeError(f"{what} returned a coroutine, which has not run yet: pass a function that runs it, such "
                            "as lambda: asyncio.run(f())")
        del result      # not before: what nobody holds is not computed
        return [returned - start, *on_devices, finished - start]

    block_until_ready(*args, given)
    device.synchronize()
    numbers = device.in_use()
    for _ in progress(range(n_warmup), n_warmup, f"{what}: warming up"):
        call()
        device.wait_for_kernels()   # until then the calls do without them
    with trace() as found:
        call()
    device.synchronize()
    numbers = device.in_use()       # the calls may have been the first to use another one
    began, times = perf_counter(), []
    for _ in progress(range(n_repeat), n_repeat, what):
        times.append(call())
        if perf_counter() - began >= max_duration:
            break
    labels = ([f"GPU-{number}" for number in numbers] if device.name == "cuda" else
              [device.name] if len(numbers) == 1 else [f"{device.name}:{number}" for number in numbers])
    return Benchmark(what, labels, np.array(times).T, summary(found.events))
