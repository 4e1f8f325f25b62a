"""`Device.upload_written` of a simulated device: CUDA's way of looking at pages, with copies of its own."""
from __future__ import annotations

import ctypes

import numpy as np

from lazyarray import speedups
from lazyarray.ranges import Ranges

_COPY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p)
_WAIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Sender:
    """Stands for a device's `upload_written`.

    Attributes
    ----------
    count : int
        Calls.
    error : int
        Of the driver's, for the next copy.
    interrupt : str
        "before", "after" or "": when the next call is interrupted.
    small : int
        Ranges of up to so many bytes are left.
    """

    def __init__(self, device, small=0):
        self.device, self.small = device, small
        self.count, self.error, self.interrupt = 0, 0, ""

    def __call__(self, pages, region, block, turns, outcome):
        self.count += 1
        if self.interrupt == "before":
            raise KeyboardInterrupt
        _, start, nbytes = pages
        sent = []

        def copy(target, source, n, stream):
            if self.error:
                return self.error
            sent.append((target, target + n))
            return 0

        kept = _COPY(copy), _WAIT(lambda stream: 0)
        addresses = tuple(ctypes.cast(function, ctypes.c_void_p).value for function in kept)
        error = speedups.staging.send_written(addresses, pages, 0, 0, (1 << 24, self.small), turns, outcome)
        source = np.frombuffer((ctypes.c_char * nbytes).from_address(start), np.uint8)
        self.device.upload_ranges(source, block, Ranges.union([Ranges(*pair) for pair in sent]))
        if self.interrupt == "after":
            raise KeyboardInterrupt
        if error:
            raise MemoryError(error)
        return True
