"""A fault at each allocation, copy, launch, wait and compilation of the simulated device in turn: arrays stay whole."""
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


class CompileException(Exception):
    """As CuPy's: a function's kernel is compiled when it is called first, and no fault of the device."""


@pytest.mark.together
@pytest.mark.parametrize("fault, error", [
    (device_faults.Fault, DeviceError), (device_faults.Late, DeviceError), (device_faults.Fault, OutOfMemory),
    (device_faults.Late, OutOfMemory), (device_faults.Compiling, CompileException)])
def test_each_operation_of_the_device(fault, error, monkeypatch):
    """Of each statement in some states of its arrays."""
    monkeypatch.setitem(faults.ERRORS, "device", error)
    monkeypatch.setattr(faults, "Fault", fault)
    failures, runs = [], 0
    with lazyarray.options(warn_fallbacks=False), faults.prepared() as surroundings:
        for operation in faults.OPERATIONS:
            cases = faults.pairs(operation)
            draws = random.Random(f"{operation} {fault.__name__} {error.__name__}")
            for base, variants in draws.sample(cases, min(STATES or len(cases), len(cases))):
                variant = draws.choice([variant for variant in variants if variant in faults.PLAIN_FAULTS])
                case = dataclasses.replace(base, error="device", variant=variant)
                for number in range(100):
                    done = faults.run(case, number, surroundings)
                    if done.place is None:
                        break
                    runs += 1
                    failures += [f"{case} {number} {done.place}: {failure}" for failure in done.failures]
    assert not failures, f"{len(failures)}:\n" + "\n".join(failures[:30])
    assert runs > 200
