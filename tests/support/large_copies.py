"""Copies of large arrays to the host, where the device fills memory unseen: as on CUDA, whose copies mark no pages."""
from __future__ import annotations

import ctypes
import gc
import sys
import threading
from types import SimpleNamespace

import numpy as np

import lazyarray
from lazyarray.storage import handles
from lazyarray.storage.mirror import pinned_pool

MB = 1 << 20
#: An error of a buffer's is raised by memoryview; NumPy passes over it.
ask = memoryview if sys.version_info >= (3, 12) else np.asarray
NBYTES = 16 * MB
#: What NumPy calls; NumPy itself passes over errors, and a call of memoryview gets something else.
view_of = np.asarray
if sys.version_info >= (3, 12):
    view_of = ctypes.pythonapi.PyMemoryView_FromObject
    view_of.restype, view_of.argtypes = ctypes.py_object, (ctypes.py_object,)


def made(dtype=np.float32, shape=None, order="C"):
    dtype = np.dtype(dtype)
    shape = shape or (NBYTES // dtype.itemsize,)
    values = (np.arange(np.prod(shape)) % 120).astype(dtype).reshape(shape, order=order)
    x = lazyarray.asarray(values) + dtype.type(1)
    handles.device_of(x)
    return x, values + dtype.type(1)


class Copies:
    """What was begun and waited for, and what happens in between.

    Attributes
    ----------
    begun, waited : int
    then : callable
        Called when one has begun.
    error, fails : Exception or None
        Of each copy that is asked for, and of each that is waited for.
    """

    def __init__(self):
        self.begun = self.waited = 0
        self.then, self.error, self.fails = lambda: None, None, None


def simulated_copies(monkeypatch, device):
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
        download(source, target)

    monkeypatch.setattr(device, "download", behind)
    return begin


def watched(monkeypatch):
    """What a fixture of copies yields, a `Copies`."""
    device = lazyarray.device()
    found = Copies()
    gc.collect()
    pinned_pool.pool.look_after(idle=-1)    # what is kept has another region, or none
    ordinary = device.download_begin if device.name == "cuda" else simulated_copies(monkeypatch, device)

    def begin(source, target, *region):
        if found.error is not None:
            raise found.error
        found.begun += 1
        wait = ordinary(source, target, *region)

        def waited():
            found.waited += 1
            wait()
            if found.fails is not None:
                raise found.fails

        found.then()
        return waited

    monkeypatch.setattr(device, "download_begin", begin)
    with monkeypatch.context() as patch:
        patch.setattr(pinned_pool.Pool, "look_after", lambda self: None)    # at any time, in its thread
        yield found
    pinned_pool.pool.look_after(idle=-1)
