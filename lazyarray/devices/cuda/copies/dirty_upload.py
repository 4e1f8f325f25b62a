"""What was written in page-locked memory to the device: as it is found, and many small pieces at once.

`staging_written.h` looks for written pages and has them copied, without the interpreter. Small pieces are left to a
kernel that reads them across the link, many with one launch: a copy of a page costs the driver 2.5 us, in which the
link carries thirty of them. The kernel is compiled beside the work, when it could have been used for the first time.
256 pages in 1 GiB take 0.45 ms by it, and 1.17 one by one (an H100: ``results/special-ways-cuda-2026-11-28.json``).
"""
from __future__ import annotations

import array
import logging
import threading
from typing import Any

import numpy as np

from .... import _native
from ....errors.interrupts import holding
from ....errors.own_threads import own
from ..kernels.elementwise import Launcher, functions
from .pinned import PIECE, Pinned, Region

#: Pieces of up to so many bytes are worth it, if there are so many; and so many are read by one launch.
SMALL, FEW, MOST = 64 << 10, 6, 480
#: Where pieces begin and end, and the addresses, are multiples of this.
UNIT = 16
_THREADS = 256
_CAN_READ = 91      # cudaDevAttrCanUseHostPointerForRegisteredMem
SOURCE = f"""
struct Bounds {{ unsigned at[{2 * MOST}]; }};     // of each piece, where it begins and ends, in units of {UNIT} bytes

extern "C" __global__ void pieces(const uint4* source, uint4* target, const Bounds bounds)
{{
    const unsigned stop = bounds.at[2 * blockIdx.x + 1];
    #pragma unroll 4
    for (unsigned i = bounds.at[2 * blockIdx.x] + threadIdx.x; i < stop; i += blockDim.x)
        target[i] = source[i];
}}
"""


def copy_written(pinned: Pinned, pages: tuple[int, int, int], region: Region | None, target: Any,
                 turns: tuple[int, ...], outcome: list[Any]) -> bool:
    """`Device.copy_written`, where all of the region is locked. Small ranges are left: a kernel may read them."""
    driver, runtime, stream = pinned.driver, pinned.runtime, pinned.stream()
    handle = stream.ptr
    if (_native.staging is None or driver is None or region is None or not region.complete
            or handle == runtime.streamPerThread):      # for which the driver has other functions
        return False
    runtime.setDevice(target.data.device_id)    # the current one: so that this thread has a context
    _native.staging.copy_written((driver.copy, driver.finish), pinned.error, pages, target.data.ptr, handle,
                                 (PIECE, SMALL), turns, outcome)
    return True


class Reader:
    """Launches the kernel on the current stream."""

    def __init__(self, cupy: Any) -> None:
        [function] = functions(cupy, SOURCE, ("pieces",))
        self._launch = Launcher(cupy, function, ["Q", "Q", f"{8 * MOST}s"])

    def __call__(self, source: int, target: int, bounds: list[int]) -> None:
        """Copy parts of the memory at `source` to the same places at `target`; `bounds`: start, stop, start, ..."""
        for first in range(0, len(bounds), 2 * MOST):
            part = bounds[first:first + 2 * MOST]
            units = np.frombuffer(array.array("Q", part), np.uint64) // UNIT
            self._launch(len(part) // 2, _THREADS, [source, target, units.astype(np.uint32).tobytes()])


class Readers:
    """A `Reader` for each device that can read page-locked memory at the host's addresses."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._known: dict[int, Reader | None] = {}
        self._lock = threading.RLock()      # as in `kernels.elementwise`

    def get(self, device: int) -> Reader | None:
        """That of a device, or None: then it is being compiled, or can't be."""
        if device not in self._known:
            with holding(self._lock):
                if device not in self._known:
                    self._known[device] = None
                    self._begin(device)
        return self._known[device]

    def _begin(self, device: int) -> None:
        try:
            # Not a daemon: the interpreter does not end while the compiler is at it.
            threading.Thread(target=own(self._make), args=(device,), name="lazyarray-pieces", daemon=False).start()
        except RuntimeError:
            pass        # the interpreter is ending, and starts no more threads

    def _make(self, device: int) -> None:
        cuda = self._cupy.cuda
        try:
            cuda.Device(device).use()
            if cuda.runtime.deviceGetAttribute(_CAN_READ, device):
                self._known[device] = Reader(self._cupy)
        except (cuda.compiler.CompileException, cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError,
                OSError) as error:
            # They are copied one by one for ever, which is slower and no less right.
            logging.getLogger("lazyarray").warning("the kernel that reads pages was not made: %s",
                                                   str(error).strip().partition("\n")[0])
