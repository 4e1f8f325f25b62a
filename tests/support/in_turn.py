"""The arrays that tests make, on each of several devices in turn (``LAZYARRAY_TEST_TWO_DEVICES=1``)."""
from __future__ import annotations

import contextlib
import functools
import itertools
import zlib

import lazyarray
from lazyarray.events import callers
from lazyarray.storage import transfer

_together = False


def install():
    """Let `lazyarray.asarray` place host data on the next device at each call, whatever the current one is.

    Tests that count copies, or forbid them, mean those between host and device: copies between devices are no events.
    """
    asarray, begin, device, calls = lazyarray.asarray, transfer.begin, lazyarray.device(), itertools.count()

    @functools.wraps(asarray)
    def placed(*args, **kwargs):
        obj = args[0] if args else kwargs.get("obj")
        if _together or lazyarray.is_lazy(obj) or isinstance(obj, device.array_type):
            return asarray(*args, **kwargs)
        with lazyarray.device(next(calls) % device.count):
            return asarray(*args, **kwargs)

    callers.SERVED |= {__name__}        # events are those of the test's line
    lazyarray.asarray = placed
    transfer.begin = lambda kind, *args, **kwargs: (
        None if kind == "peer copy" and not _together else begin(kind, *args, **kwargs))


@contextlib.contextmanager
def test(name, together):
    """One test, in which one of the devices is the current one: which one depends on its name.

    `together`: its arrays lie there, all of them.
    """
    global _together
    _together = together
    try:
        with lazyarray.device(zlib.crc32(name.encode()) % lazyarray.device().count):
            yield
    finally:
        _together = False
