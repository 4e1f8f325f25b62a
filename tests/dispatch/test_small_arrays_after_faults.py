"""Small arrays that are current on both sides, or on the host alone, have after a fault at any point of what the host
writes to them what they had, or what was written.
"""
from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from fault_points import ERRORS, Fault, monitored

import lazyarray
from lazyarray import _native

pytestmark = [
    pytest.mark.skipif(_native.recording is None, reason="small arrays are kept on the host by the part in C"),
    pytest.mark.skipif(lazyarray.device().name != "simulated" or sys.version_info < (3, 12),
                       reason="points are those of the simulated device, and of Python 3.12 and later")]

STATEMENTS = (
    "i[5] = 6", "i += 1", "np.add(i, 1, out=i)", "np.add.at(i, [5, 5], 1)", "i[np.array([5, 2])] = 6", "i[...] = 6",
    "i[2:4] = [7, 8]", "np.put(i, [1, 3], 9)", "i[i > 8] = 0", "np.copyto(i, 3)", "i.sort()", "i.fill(2)")
#: By day, each so many-th point.
STEP = 1 if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else 5


@pytest.fixture(autouse=True)
def small():
    before = _native.recording.small(1 << 12)
    with lazyarray.options(small_on_host=True):
        yield
    _native.recording.small(before)


def arrays(side):
    x = lazyarray.asarray(lazyarray.device().xp.arange(20_000)).copy()
    i = x[:12].copy()
    np.array(i)
    if side == "host":
        np.copyto(i, np.arange(12))
    assert i._self_storage.state == side
    return {"x": x, "i": i, "np": np}


@pytest.mark.together
@pytest.mark.parametrize("side", ["both", "host"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_both_sides_are_the_same(statement, side):
    code, before, after = compile(statement, "<statement>", "exec"), np.arange(12), {"i": np.arange(12), "np": np}
    exec(code, after)
    with monitored():
        passed = []
        for points in (None, None, passed):     # all that is done once in a process is done
            with Fault(sys.maxsize, None, None, points):
                exec(code, arrays(side))
        raised = 0
        for error in ERRORS.values():
            for number in range(0, len(passed), STEP):
                names = arrays(side)
                try:
                    with Fault(number, error):
                        exec(code, names)
                except error:
                    raised += 1
                x, i = names["x"], names["i"]
                found = np.array(i)
                assert np.array_equal(found, before) or np.array_equal(found, after["i"]), (number, found)
                assert np.array_equal(np.array(x[i]), found), (number, "the device has other bytes")
    assert raised
