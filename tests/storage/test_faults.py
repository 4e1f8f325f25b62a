"""Coherence is whole at any point: `faults` raises KeyboardInterrupt and MemoryError wherever Python may.

Some points of each operation are drawn; ``LAZYARRAY_NIGHTLY=1`` draws many, and
``python tests/support/faults.py --all`` tries every one.
"""
from __future__ import annotations

import os
import sys

import faults
import pytest

import lazyarray

NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"
COUNT = 2000 if NIGHTLY else 40

pytestmark = pytest.mark.skipif(lazyarray.device().name != "simulated" or sys.version_info < (3, 12),
                                reason="points are those of the simulated device, and of Python 3.12 and later")


@pytest.mark.together
@pytest.mark.parametrize("operation", faults.OPERATIONS)
def test_an_operation_is_done_or_not_done(operation):
    with faults.prepared() as surroundings:
        found, tried = faults.sample(operation, COUNT, 1e9, 0, surroundings)
    assert not found, faults.report(found, {operation: tried})
    assert tried == COUNT


#: What was found once: each point is tried. An operation, the state of its arrays, the variant.
FOUND = [
    # What only the host had was sent over what the device had just written.
    ("x[2] = 7", "a part", "a handler looks"),
    ("x[2] = 7", "untracked", "a handler writes"),
    ("x += 1", "untracked", "a handler computes"),
    # What we write into a mirror ourselves, in more ranges than are invalidated first, counted as written by an alias.
    ("x += 1", "large, view", "a handler computes"),
    # A second interrupt left aliases with what was there before the write.
    ("x[2] = 7", "by DLPack", "two faults"),
    ("x += 1", "view", "two faults"),
    # The storage was called clean again before the alias was lent.
    ("a = alias(x)", "host", "a handler computes"),
    # A prefetch that began meanwhile came over what was written through the alias.
    ("alias(x)[...] = 2", "pending twice", "a handler prefetches"),
    # What is watched was given up, or replaced by what it had been, while more was lent.
    ("a = by_dlpack(x[1:])", "a part", "a handler looks while garbage is collected"),
    ("a = by_array(x); x += 1", "a part", "a handler looks while garbage is collected"),
    # A second block took the place of the first, which had the bytes.
    ("x.flat[1:3] = 4", "host", "a handler computes"),
    # What a handler had written was overwritten by an upload that was about to begin.
    ("v = x.copy()", "untracked, dropped", "a handler writes"),
    # The copy of what an alias may write that was being sent was older than what a handler had written.
    ("v = np.where(x > 2, x, y)", "0-d", "a handler writes"),
]


@pytest.mark.together
@pytest.mark.parametrize("operation, state, variant", FOUND)
def test_what_was_found_once(operation, state, variant):
    """Each place of the library's code that the operation passes, the first time and the last; by day each fourth."""
    case = faults.Case(operation, state, "interrupt", variant)
    assert case.fits
    with faults.prepared() as surroundings:
        numbers = faults.points(faults.Case(operation, state), surroundings, 1)
        found = {}
        for number in numbers[::8 if state.startswith("large") else 1 if NIGHTLY else 4]:
            done = faults.run(case, number, surroundings)
            if done.failures:
                found[number] = done.place, done.failures
    assert not found, f"{len(found)} of {len(numbers)}: {list(found.items())[:5]}"
