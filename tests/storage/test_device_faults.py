"""A fault at each allocation, copy, launch and wait of the simulated device in turn leaves every array whole."""
from __future__ import annotations

import dataclasses
import os
import random

import device_faults
import faults
import pytest

import lazyarray
from lazyarray.devices.simulated.hardware import DeviceError, OutOfMemoryError

STATES = None if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else 3

pytestmark = pytest.mark.skipif(lazyarray.device().name != "simulated", reason="these are the simulated device's")


class OutOfMemory(OutOfMemoryError):
    def __init__(self, text):
        super().__init__(1, 2, 3)


@pytest.mark.parametrize("fault", [device_faults.Fault, device_faults.Late], ids=["before", "after"])
@pytest.mark.parametrize("error", [DeviceError, OutOfMemory])
def test_each_operation_of_the_device(fault, error, monkeypatch):
    """Of each statement in some states of its arrays."""
    monkeypatch.setitem(faults.ERRORS, "device", error)
    monkeypatch.setattr(faults, "Fault", fault)
    failures, runs = [], 0
    with faults.prepared() as surroundings:
        for operation in faults.OPERATIONS:
            cases = faults.pairs(operation)
            draws = random.Random(f"{operation} {fault.__name__} {error.__name__}")
            for base, variants in draws.sample(cases, min(STATES or len(cases), len(cases))):
                variant = draws.choice([variant for variant in variants if variant != "write at the fault"])
                case = dataclasses.replace(base, error="device", variant=variant)
                for number in range(100):
                    done = faults.run(case, number, surroundings)
                    if done.place is None:
                        break
                    runs += 1
                    failures += [f"{case} {number} {done.place}: {failure}" for failure in done.failures]
    assert not failures, f"{len(failures)}:\n" + "\n".join(failures[:30])
    assert runs > 300
