"""Memory that nothing was written to holds noise: what is read too early can't be right by chance.

Memory that was freed a moment ago often still has the very bytes that a test expects.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

from lazyarray.devices.simulated.device import SimulatedDevice
from lazyarray.storage.mirror import mirror

#: Larger memory stays as it is: to fill it takes longer than what is tested.
MOST = 1 << 20
# No two pages are alike, and no number in it is one that tests compute with.
_NOISE = np.random.default_rng(0).integers(0x91, 0xef, MOST, np.uint8)


def fill(memory: np.ndarray) -> np.ndarray:
    """Overwrite contiguous memory with noise, if it is not too large; it is returned."""
    if 0 < memory.nbytes <= MOST:
        flat = memory.reshape(-1, order="A").view(np.uint8)
        flat[:] = _NOISE[:flat.size]
    return memory


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """A context in which new mirrors, and what the simulated device allocates for copies, hold noise."""
    memory, mapped, empty = mirror._memory, mirror.memory_to_fill, SimulatedDevice.empty

    def found(nbytes):
        made = mapped(nbytes)
        if made is not None:
            fill(made[0])
        return made

    def allocated(self, shape, dtype, *rest):
        made = empty(self, shape, dtype, *rest)
        fill(made._view)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mirror, "_memory", lambda nbytes: fill(memory(nbytes)))
        patch.setattr(mirror, "memory_to_fill", found)
        patch.setattr(SimulatedDevice, "empty", allocated)
        yield
