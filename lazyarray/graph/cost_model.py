"""On which side recorded work runs that needs nothing of either side: arrays that a few numbers describe, and what is
computed of them.

Such work can be done wherever its value is wanted: a kernel computes an element from its place, and so does NumPy.
Where the host asks, small work is done there, for a kernel and a copy take longer than NumPy does. Where the device
asks, it is done on the device, so that nothing is copied. What has bytes on the device is computed on the device,
whatever its size: a value is never fetched to be computed on.

Small arrays that are current on the host stay there, and so does what is computed of them: `Costs.small` says how
many bytes they have at most.

The model has six constants, see `Costs`. Those it comes with were measured on one H200 (PCIe 5, CuPy 14.2, NumPy 2.5);
``python -m lazyarray measure`` measures them where it runs, and says how to put them in force.
"""

import functools
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors.environment import unusable

__all__ = ["Costs", "costs", "measured", "most_on_host"]

VARIABLE = "LAZYARRAY_COSTS"
"""The environment variable with other constants, as `Costs.text` writes them."""


_CACHED = 256 << 10     # bytes that any processor's cache holds
_WAITED_FOR = 3         # a launch takes so many times as long as the call that asks for it


class Costs(NamedTuple):    # without annotations as text, see `Event`
    """What the model is made of.

    Attributes
    ----------
    host_call : float
        Seconds of a NumPy call, however little it computes.
    host_rate : float
        Bytes a second that an element-wise NumPy call writes, as long as all stays in the processor's cache: what does
        not is far beyond the sizes where the host is quicker.
    launch : float
        Seconds until a kernel that does next to nothing has run, from the call on.
    device_rate : float
        Bytes a second that a kernel writes.
    copy_call : float
        Seconds of a copy of a few bytes to the host.
    copy_rate : float
        Bytes a second of a large one.
    """

    host_call: float = 0.6e-6
    host_rate: float = 25e9
    launch: float = 12e-6
    device_rate: float = 2e12
    copy_call: float = 12e-6
    copy_rate: float = 50e9

    def text(self) -> str:
        """The constants on a line, for the environment variable ``LAZYARRAY_COSTS``."""
        return ",".join(f"{name}={value:.3g}" for name, value in self._asdict().items())

    @classmethod
    def of_text(cls, text: str) -> "Costs":
        """The constants that `text` gives, the others as they are by default.

        Raises
        ------
        ValueError
            If there is no such constant, or it is not a positive number.
        """
        found: dict[str, float] = {}
        names = cls._fields
        for part in filter(None, text.split(",")):
            name, _, value = part.partition("=")
            if name.strip() not in names:
                raise ValueError(f"{VARIABLE} has no {name.strip()!r}; it may set {', '.join(names)}")
            try:
                found[name.strip()] = float(value)
            except ValueError:
                raise ValueError(f"{VARIABLE}: {part.strip()!r} is not name=seconds or name=bytes a second") from None
        if any(not value > 0 for value in found.values()):
            raise ValueError(f"{VARIABLE}: the constants are greater than 0")
        return cls(**found)

    def small(self) -> int:
        """The most bytes of an array that is computed on the host because it is there.

        It is what an addition does in the part of a launch that a program waits for: the rest goes on beside it. What
        does more for each element is done there with fewer, see `dispatch.cheap_on_host.COSTLY`. Of 42 programs in
        ``benchmarks/unseen`` and like them, the geometric mean of the times was 6 % more with three times as many
        bytes, 5 % more with a third (H100, 2026-11-27).
        """
        return max(int((self.launch - self.host_call) * self.host_rate / _WAITED_FOR), 0)

    @functools.lru_cache    # noqa: B019  of tuples of numbers, few of which there ever are
    def largest_on_host(self, steps: int = 1) -> int:
        """The most bytes that so many steps compute on the host when the host asks for them."""
        fixed = self.launch + self.copy_call - steps * self.host_call
        each = steps / self.host_rate - 1 / self.device_rate - 1 / self.copy_rate
        if each <= 0:
            return 0 if fixed <= 0 else np.iinfo(np.int64).max
        return max(int(fixed / each), 0)


_costs: Costs | None = None


def costs() -> Costs:
    """The constants in force: those of the environment variable ``LAZYARRAY_COSTS``, else those that we came with."""
    global _costs
    if _costs is None:
        try:
            _costs = Costs.of_text(os.environ.get(VARIABLE, ""))
        except ValueError as error:
            raise unusable(str(error)) from None
    return _costs


def most_on_host(steps: int) -> int:
    """The most bytes that NumPy computes in so many steps sooner than the device brings the result."""
    return (_costs or costs()).largest_on_host(steps)


def measured(device: Any, large: int = 64 << 20, rounds: int = 9) -> Costs:
    """The constants on this machine.

    Parameters
    ----------
    device : Device
    large : int
        Bytes of the arrays that the device's rates are measured with.
    rounds : int
        Medians are of so many.
    """
    from ..events.progress import progress  # few programs measure

    steps = progress(range(6), 6, "measuring")

    def seconds(call: Callable[[], Any], number: int = 1) -> float:
        next(steps, None)
        call()
        device.wait_for_stream()
        found = []
        for _ in range(rounds):
            start = time.perf_counter()
            for _ in range(number):
                call()
            device.wait_for_stream()
            found.append((time.perf_counter() - start) / number)
        return sorted(found)[len(found) // 2]

    def rate(call: Callable[[], Any], fixed: float, nbytes: int = large, number: int = 1) -> float:
        return nbytes / max(seconds(call, number) - fixed, 1e-9)

    xp = device.xp
    few, some = np.arange(16.0), np.arange(_CACHED / 8)
    few_there, many_there = xp.arange(16.0), xp.arange(large / 8)
    to_few, to_many = np.empty(16), np.empty(large // 8)
    host_call = seconds(lambda: few * 2.0, 1000)
    launch = seconds(lambda: (few_there * 2.0, device.wait_for_stream()), 100)
    copy_call = seconds(lambda: device.download(few_there, to_few), 100)
    return Costs(host_call=host_call, host_rate=rate(lambda: some * 2.0, host_call, _CACHED, 100), launch=launch,
                 device_rate=rate(lambda: many_there * 2.0, launch), copy_call=copy_call,
                 copy_rate=rate(lambda: device.download(many_there, to_many), copy_call))
