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

COUNT = 2000 if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else 40

pytestmark = pytest.mark.skipif(lazyarray.device().name != "simulated" or sys.version_info < (3, 12),
                                reason="points are those of the simulated device, and of Python 3.12 and later")


@pytest.mark.together
@pytest.mark.parametrize("operation", faults.OPERATIONS)
def test_an_operation_is_done_or_not_done(operation):
    with faults.prepared() as surroundings:
        found, tried = faults.sample(operation, COUNT, 1e9, 0, surroundings)
    assert not found, faults.report(found, {operation: tried})
    assert tried == COUNT
