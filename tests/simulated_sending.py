"""`Device.sender` of a simulated device: CUDA's way of looking at pages, with copies of its own."""
from __future__ import annotations

import ctypes

import numpy as np

from lazyarray import speedups
from lazyarray.ranges import Ranges

_COPY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p)
_WAIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Senders:
    """Stands for a device's `sender`.

    Attributes
    ----------
    count, made : int
        How often something was sent; the senders that were made for that.
    error : int
        Of the driver's, for the next copy.
    interrupt : str
        "before", "after" or "": when the next one is interrupted.
    small : int
        Ranges of up to so many bytes are left.
    """

    def __init__(self, device, small=0):
        self.device, self.small = device, small
        self.count, self.made, self.error, self.interrupt = 0, 0, 0, ""

    def __call__(self, pages, region, block, turns):
        self.made += 1
        return Sender(self, pages, block, turns)


class Sender:
    """What they give."""

    def __init__(self, senders, pages, block, turns):
        self.senders, self.pages, self.block, self.sent = senders, pages, block, []
        self.current = senders.device.stream
        self._kept = _COPY(self.copy), _WAIT(lambda stream: 0), _GET(lambda found: 0)
        addresses = tuple(ctypes.cast(function, ctypes.c_void_p).value for function in self._kept)
        self.send = speedups.staging.Sender(addresses, MemoryError, self.current, pages, 0, 0,
                                            (1 << 24, senders.small), turns)

    def copy(self, target, source, n, stream):
        if not self.senders.error:
            self.sent.append(Ranges(target, target + n))
        return self.senders.error

    def __call__(self, outcome):
        self.senders.count += 1
        if self.senders.interrupt == "before":
            raise KeyboardInterrupt
        _, start, nbytes = self.pages
        self.sent.clear()
        try:
            return self.send(outcome)
        finally:
            source = np.frombuffer((ctypes.c_char * nbytes).from_address(start), np.uint8)
            self.senders.device.upload_ranges(source, self.block, Ranges.union(self.sent))
            if self.senders.interrupt == "after":
                raise KeyboardInterrupt
