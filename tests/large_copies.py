"""Copies of large arrays to the host, where the device fills memory unseen: as on CUDA, whose copies mark no pages."""
from __future__ import annotations

import ctypes
import gc
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import lazyarray
from lazyarray import mirror_pool, speedups, wrap

MB = 1 << 20
#: An error of a buffer's is raised by memoryview; NumPy passes over it.
ask = memoryview if sys.version_info >= (3, 12) else np.asarray
NBYTES = 16 * MB
#: What NumPy calls; NumPy itself passes over errors, and a call of memoryview gets something else.
view_of = ctypes.pythonapi.PyMemoryView_FromObject
view_of.restype, view_of.argtypes = ctypes.py_object, (ctypes.py_object,)

_HANDLE = ctypes.c_void_p
_COPY = ctypes.CFUNCTYPE(ctypes.c_int, _HANDLE, ctypes.c_uint64, ctypes.c_size_t, _HANDLE)
_WAIT = ctypes.CFUNCTYPE(ctypes.c_int, _HANDLE)


class Refused(Exception):
    """In place of CuPy's errors."""


def made(dtype=np.float32, shape=None, order="C"):
    dtype = np.dtype(dtype)
    shape = shape or (NBYTES // dtype.itemsize,)
    values = (np.arange(np.prod(shape)) % 120).astype(dtype).reshape(shape, order=order)
    x = lazyarray.asarray(values) + dtype.type(1)
    wrap.device_of(x)
    return x, values + dtype.type(1)


class Copies:
    """What was begun and waited for, and what happens in between.

    Attributes
    ----------
    begun, waited : int
    then : callable
        Called when one has begun.
    error : Exception or None
        Of each copy that is asked for.
    """

    def __init__(self):
        self.begun = self.waited = 0
        self.then, self.error = lambda: None, None


class Driver:
    """What C calls: of a simulated device it copies memory, which is there when it is waited for; else CUDA's own.

    Attributes
    ----------
    refused : int
        What it says of the copy of the piece whose number is `refuses`, -1 if of none.
    fails : int
        What it says when it is waited for.
    pieces : list of int
        Bytes of each copy that was asked for.
    """

    def __init__(self, copies, device, piece):
        self.copies, self.under_way = copies, []
        self.refused, self.refuses, self.fails, self.pieces = 201, -1, 0, []
        self._own, self._lock = None, threading.RLock()
        if device.name == "cuda":
            driver = device._copies.driver
            self._own = _COPY(driver.fetch), _WAIT(driver.finish)
        self._kept = _COPY(self.copy), _WAIT(self.wait)
        addresses = [ctypes.cast(function, _HANDLE).value for function in self._kept]
        self.fetcher = speedups.fetching.Fetcher(*addresses, device.stream, None, self.failed, 1, piece)

    def failed(self, stream, code):
        raise Refused(code)

    def copy(self, target, source, nbytes, stream):
        if len(self.pieces) == self.refuses:
            return self.refused
        if self.copies.error is not None:
            return 2
        first, values = not self.under_way, None
        self.pieces.append(nbytes)
        if self._own is not None:
            error = self._own[0](target, source, nbytes, stream)
            if error:
                return error
        else:
            values = ctypes.string_at(source, nbytes)
            ctypes.memset(target, 99, nbytes)   # a copy that marks no pages would write at any time
        self.under_way.append((target, values))
        if first:
            self.copies.begun += 1
            self.copies.then()
        return 0

    def arrive(self):
        with self._lock:        # whoever else waits, too, until all is there
            under_way, self.under_way = self.under_way, []
            for target, values in under_way:
                if values is not None:
                    ctypes.memmove(target, values, len(values))

    def wait(self, stream):
        self.copies.waited += 1
        self.arrive()
        return self.fails or (0 if self._own is None else self._own[1](stream))


def simulated_copies(monkeypatch, device, copies):
    """A simulated device has memory filled unseen."""
    monkeypatch.setattr(device, "writes_unseen", True, raising=False)
    monkeypatch.setattr(device, "region", lambda start, size: SimpleNamespace(release=lambda: None, complete=True))
    under_way, download, lock = [], device.download, threading.RLock()

    def arrive():
        with lock:
            for target, values in under_way:
                target[...] = values
            under_way.clear()

    def begin(source, target, region=None):
        with lock:
            arrive()
            under_way.append((target, source.get()))
            target[...] = 99
        return arrive

    def behind(source, target):     # on the same stream
        arrive()
        if (driver := getattr(copies, "driver", None)) is not None:
            driver.arrive()
        download(source, target)

    monkeypatch.setattr(device, "download", behind)
    return begin


#: Who begins a copy; in the second case C asks Python to.
WAYS = "begun in C", "from C", "from Python"


def begun_in(way, monkeypatch):
    """What a fixture of copies begun in one of `WAYS` yields, a `Copies`; its `driver`: what C calls, or None."""
    device = lazyarray.device()
    if way != "from Python" and (speedups.fetching is None or sys.version_info < (3, 12) or device.count > 1):
        pytest.skip("Python asks")
    found = Copies()
    found.driver = None
    gc.collect()
    mirror_pool.pool.look_after(idle=-1)    # what is kept has another region, or none
    ordinary = device.download_begin if device.name == "cuda" else simulated_copies(monkeypatch, device, found)
    if way == "from Python":
        monkeypatch.setattr(device, "fetcher", None)
    elif way == "from C":
        driver = Driver(found, device, 0)       # of large arrays none is asked
        monkeypatch.setattr(device, "fetcher", driver.fetcher)

    def begin(source, target, *region):
        if found.error is not None:
            raise found.error
        found.begun += 1
        wait = ordinary(source, target, *region)

        def waited():
            found.waited += 1
            wait()

        found.then()
        return waited

    monkeypatch.setattr(device, "download_begin", begin)
    if way == "begun in C":
        found.driver = Driver(found, device, NBYTES)    # CUDA's pieces
        monkeypatch.setattr(device, "fetcher", found.driver.fetcher)
        monkeypatch.setattr(device, "faults", (*device.faults, Refused), raising=False)
        np.asarray(made()[0])       # from now on there is memory
        found.begun = found.waited = 0
        assert mirror_pool.pool.returned
    with monkeypatch.context() as patch:
        patch.setattr(mirror_pool.Pool, "look_after", lambda self: None)    # at any time, in its thread
        yield found
    assert found.driver is None or not found.driver.under_way, "something is under way"
    mirror_pool.pool.look_after(idle=-1)
