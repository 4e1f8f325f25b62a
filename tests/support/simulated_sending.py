"""`Device.copy_written` of a simulated device: CUDA's way of looking at pages, with copies of its own."""
from __future__ import annotations

import ctypes

import numpy as np

from lazyarray import _native
from lazyarray.storage.mirror.byte_ranges import Ranges

_COPY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p)
_WAIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Sender:
    """Stands for a device's `copy_written`.

    Attributes
    ----------
    count : int
        How often something was sent.
    error : int
        Of the driver's, for the next copy.
    interrupt : str
        "before", "after" or "": when the next one is interrupted.
    refuses : bool
        Nothing is done.
    small : int
        Ranges of up to so many bytes are left.
    """

    def __init__(self, device, small=0):
        self.device, self.small, self.sent = device, small, []
        self.count, self.error, self.interrupt, self.refuses = 0, 0, "", False
        self._kept = _COPY(self.copy), _WAIT(lambda stream: 0)
        self.functions = tuple(ctypes.cast(function, ctypes.c_void_p).value for function in self._kept)

    def copy(self, target, source, n, stream):
        if not self.error:
            self.sent.append(Ranges(target, target + n))
        return self.error

    def __call__(self, pages, region, block, turns, outcome):
        if self.refuses:
            return False
        self.count += 1
        if self.interrupt == "before":
            raise KeyboardInterrupt
        _, start, nbytes = pages
        self.sent.clear()
        try:
            _native.staging.copy_written(self.functions, MemoryError, pages, 0, 0, (1 << 24, self.small), turns,
                                         outcome)
            return True
        finally:
            source = np.frombuffer((ctypes.c_char * nbytes).from_address(start), np.uint8)
            self.device.upload_ranges(source, block, Ranges.union(self.sent))
            if self.interrupt == "after":
                raise KeyboardInterrupt
