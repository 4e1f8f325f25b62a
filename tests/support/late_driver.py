"""A driver made of memory: a copy happens when somebody waits for it, no sooner."""
from __future__ import annotations

import ctypes
import threading

from lazyarray.devices.cuda.driver import Driver

MB = 1 << 20
POINTER, HANDLE = ctypes.c_uint64, ctypes.c_void_p


class Late:
    """A driver whose copies are under way until an event behind them is waited for."""

    def __init__(self):
        self.lock, self.issued, self.done, self.recorded = threading.RLock(), [], 0, {}
        self.refused = None     # the number of the copy that fails
        self.current, self.used, self.lost, self.unusable, self.unfinished = 0x77, [], 0, 0, 0
        self._kept = [ctypes.CFUNCTYPE(ctypes.c_int, *types)(function) for function, types in (
            (self.copy, (POINTER, POINTER, ctypes.c_size_t, HANDLE)), (self.record, (HANDLE, HANDLE)),
            (self.wait, (HANDLE,)), (self.context, (ctypes.POINTER(HANDLE),)), (self.use, (HANDLE,)),
            (self.synchronize, (HANDLE,)))]
        *others, finish = [ctypes.cast(f, HANDLE).value for f in self._kept]
        self.driver = Driver(1, *others, 1, finish, 1)

    def copy(self, target, source, nbytes, stream):
        with self.lock:
            if len(self.issued) == self.refused:
                return 700
            self.issued.append((target, source, nbytes))
            return 0

    def record(self, event, stream):
        with self.lock:
            self.recorded[event] = len(self.issued)
            return 0

    def wait(self, event):
        with self.lock:
            self.arrive(self.recorded.get(event, 0))
            return 0

    def synchronize(self, stream):
        with self.lock:
            self.arrive(len(self.issued))
            return self.unfinished

    def context(self, found):
        found[0] = self.current
        return self.lost

    def use(self, context):
        self.used.append(context)
        return self.unusable

    def arrive(self, count):
        for target, source, nbytes in self.issued[self.done:count]:
            ctypes.memmove(target, source, nbytes)
        self.done = max(self.done, count)
