"""What is known of integers holds after an interrupt, or memory that ran out, anywhere in a statement on them."""
from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from fault_points import ERRORS, Fault, monitored

import lazyarray
from lazyarray.storage import facts

DEVICE = lazyarray.device()
#: Of the points of a statement each one, or each of so many.
STEP = 1 if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else 83

pytestmark = pytest.mark.skipif(DEVICE.name != "simulated" or sys.version_info < (3, 12),
                                reason="points are those of the simulated device, and of Python 3.12 and later")

STATEMENTS = [
    "path[1] = best[2, path[3]]", "path[s] = 7", "best[1] = path[:5] * 2", "best[2, s] = best[0, path[4]]",
    "path[path[0]] = large[2]", "waits[2] = 9", "waits[s] = large[3]", "best[1:3] = large[0]", "v = best[3, 4] + 1",
    "v = np.digitize(path, large); path[2] = 5", "np.maximum.at(path, waits, large)", "v = best.T.copy(); best[0] = 3",
    "best[3] = np.argmax(best, axis=0)"]


def arrays(make):
    path = make(np.array([3, 1, 2, 0, 4, 0, 0, 0]))
    return {"best": make(np.arange(40).reshape(8, 5) % 5), "path": path, "large": make(np.full(8, 70)),
            "waits": make(np.zeros(8, int)) + 1, "s": path[0], "np": np}


def on_device(values):
    x = lazyarray.asarray(DEVICE.xp.asarray(values)).copy()
    facts.note_bounds(x, int(values.min()), int(values.max()))
    return x


def held(how):
    """Arrays of which `path` has an alias, or is around device memory that its user keeps."""
    names = arrays(on_device)
    if how == "alias":
        names["alias"] = np.asarray(names["path"])
    elif how == "kept":
        names["kept"] = DEVICE.xp.asarray(np.array([3, 1, 2, 0, 4, 0, 0, 0]))
        names["path"] = lazyarray.asarray(names["kept"])
    return names


def is_done_or_not(names, before, after):
    for name in ("best", "path", "waits"):
        x = names[name]
        bounds, on_host, there = facts.bounds_of(x), np.array(x), np.array(x + 0)
        assert np.array_equal(on_host, before[name]) or np.array_equal(on_host, after[name]), name
        assert np.array_equal(on_host, there), name
        assert bounds is None or bounds[0] <= on_host.min() and on_host.max() <= bounds[1], name


@pytest.mark.together
@pytest.mark.parametrize("how", ["", "alias", "kept"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_they_are_within_what_is_known(statement, how):
    code, before, after = compile(statement, "<statement>", "exec"), arrays(np.array), arrays(np.array)
    exec(code, after)
    with monitored():
        passed = []
        for points in (None, None, passed):     # all that is done once in a process is done
            with Fault(sys.maxsize, None, None, points):
                exec(code, held(how))
        raised = 0
        for error in ERRORS.values():
            for number in range(0, len(passed), STEP):
                names = held(how)
                try:
                    with Fault(number, error):
                        exec(code, names)
                except error:
                    raised += 1
                is_done_or_not(names, before, after)
    assert raised
