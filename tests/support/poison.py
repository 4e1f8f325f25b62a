"""Memory that nothing was written to holds noise: what is read too early can't be right by chance.

Memory that was freed a moment ago often still has the very bytes that a test expects.
"""
from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from lazyarray.devices.simulated.device import SimulatedDevice
from lazyarray.storage.mirror.mirror import Mirror

#: Larger memory stays as it is: to fill it takes longer than what is tested.
MOST = 1 << 20
# No two pages are alike, and no number in it is one that tests compute with.
_NOISE = np.random.default_rng(0).integers(0x91, 0xef, MOST, np.uint8)


def fill(address: int, nbytes: int) -> None:
    """Overwrite memory with noise, if it is not too large."""
    if nbytes <= MOST:
        ctypes.memmove(address, _NOISE.ctypes.data, nbytes)


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """A context in which new mirrors, and what the simulated device allocates for copies, hold noise."""
    reserve, empty = Mirror.reserve.__func__, SimulatedDevice.empty

    def reserved(cls, nbytes, *tracking):
        made = reserve(cls, nbytes, *tracking)
        fill(made.bytes.ctypes.data, nbytes)
        return made

    def allocated(self, shape, dtype):
        made = empty(self, shape, dtype)
        fill(made.data.ptr, made.nbytes)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Mirror, "reserve", classmethod(reserved))
        patch.setattr(SimulatedDevice, "empty", allocated)
        yield
