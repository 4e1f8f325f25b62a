"""Any mixture of reads and writes through any doors gives what plain NumPy gives. See machine.py for the rules."""
from __future__ import annotations

import contextlib
import gc
import os
import sys

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from machine import DTYPES, LARGE, SMALL, Control, Library, Machine, seeds
from machine_faults import Faults
from machine_threads import Threads
from simulated_sending import Sender

import lazyarray
from lazyarray import _native
from lazyarray.devices.simulated.hardware import hardware
from lazyarray.storage import dirty_upload, spilling
from lazyarray.storage.mirror.dirty_tracking import why_no_pages

# What fails has to fail again: arrays that lie on several devices are those of `TwoDevicesMachine`.
pytestmark = pytest.mark.together

NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"
PROFILE = settings(max_examples=5000 if NIGHTLY else 300, stateful_step_count=100 if NIGHTLY else 50, deadline=None,
                   suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate, Phase.shrink])


class TrackedMachine(Machine):
    """With the best write tracking that this kernel has."""

    library = Library()
    write_tracking = "auto"
    defer_from = 0

    def __init__(self):
        super().__init__()
        self._options = lazyarray.options(write_tracking=self.write_tracking, defer_from=self.defer_from)
        self._options.__enter__()

    def teardown(self):
        try:
            super().teardown()
        finally:
            self.doors.clear()
            self._options.__exit__(None, None, None)


class _Untracked(Library):
    precise_tracking = False


class UntrackedMachine(TrackedMachine):
    """As on a kernel without write tracking: what a live alias covers counts as written."""

    library = _Untracked()
    write_tracking = "none"


class MachineInTurns(TrackedMachine):
    """What aliases wrote is sent to the device page by page as it is found, as in large mirrors."""

    write_tracking = "auto" if why_no_pages() else "pages"

    def __init__(self):
        super().__init__()
        self._sizes = dirty_upload.FROM, dirty_upload.TURN, dirty_upload.GROWTH, dirty_upload.LEAP
        dirty_upload.FROM, dirty_upload.TURN, dirty_upload.GROWTH, dirty_upload.LEAP = 0, 1 << 12, 1, 1

    def teardown(self):
        dirty_upload.FROM, dirty_upload.TURN, dirty_upload.GROWTH, dirty_upload.LEAP = self._sizes
        super().teardown()


class MachineAtOnce(MachineInTurns):
    """The same in one call of the device's, which leaves some of them to another one."""

    def __init__(self):
        super().__init__()
        self._at_once, dirty_upload.AT_ONCE = dirty_upload.AT_ONCE, (1 << 12, 1, 1 << 13, 1)
        device = lazyarray.device()
        self._sent = device.copy_written
        if device.name == "simulated" and _native.staging is not None:
            device.copy_written = Sender(device, small=1 << 12)

    def teardown(self):
        dirty_upload.AT_ONCE = self._at_once
        lazyarray.device().copy_written = self._sent
        super().teardown()


class SpillingMachine(TrackedMachine):
    """On a device that is full at each allocation: the array that was used longest ago moves to the host."""

    def __init__(self):
        super().__init__()
        device = lazyarray.device()
        self._limit = contextlib.ExitStack()
        if device.name == "simulated":
            self._limit.enter_context(device.limited(1 << 40))
            gc.freeze()     # else each look for arrays goes through all objects of the tests before
            self._limit.callback(gc.unfreeze)
            self._limit.callback(setattr, hardware, "allocated", hardware.allocated)
            hardware.allocated = self.allocated

    def allocated(self, allocate, nbytes, full):
        if nbytes:
            spilling.spill(lazyarray.device(), 1)
        allocate(nbytes)

    def teardown(self):
        try:
            super().teardown()
        finally:
            self._limit.close()


class ThreadedSpillingMachine(Threads, SpillingMachine):
    """The same with two threads."""


class _InTurn(Library):
    """New arrays, and those of GPU code, lie on each of two devices in turn."""

    made = 0

    def array(self, values):
        with self.next():
            return super().array(values)

    def born(self, values):
        with self.next():
            return super().born(values)

    def next(self):
        self.made += 1
        return lazyarray.device(self.made % lazyarray.device().count)


class TwoDevicesMachine(TrackedMachine):
    """With arrays on two devices."""

    def __init__(self):
        super().__init__()
        self.library = _InTurn()
        self._count = contextlib.ExitStack()
        device = lazyarray.device()
        if device.name == "simulated":
            self._count.enter_context(device.with_count(2))

    @initialize(dtype=st.sampled_from(DTYPES), shape=st.sampled_from(SMALL + LARGE), seed=seeds)
    def begin(self, dtype, shape, seed):
        """Arrays of one shape on both, so that many a rule finds two that fit."""
        for more in range(4):
            self.make(dtype=dtype, shape=shape, seed=seed + more)

    def teardown(self):
        try:
            super().teardown()
        finally:
            self.doors.clear()      # while there are two
            self._count.close()


class ThreadedMachine(Threads, TrackedMachine):
    """With two threads, whose turns are drawn."""


class FaultyMachine(Faults, TrackedMachine):
    """With interrupts, and memory that runs out, at drawn points of what is done."""


class FaultyUntrackedMachine(Faults, UntrackedMachine):
    """The same without write tracking."""


class FaultyMachineInTurns(Faults, MachineInTurns):
    """The same of large mirrors."""


class FaultySpillingMachine(Faults, SpillingMachine):
    """The same of arrays that move to the host."""


class FaultyThreadedMachine(Faults, ThreadedMachine):
    """The same of two threads, of which one is ended at a drawn point."""


class ControlMachine(Machine):
    """Plain NumPy in the library's place: a failure here is a mistake in the rules."""

    library = Control()


TestTracked = TrackedMachine.TestCase
TestTracked.settings = PROFILE
TestTwoDevices = TwoDevicesMachine.TestCase
TestTwoDevices.settings = settings(PROFILE, max_examples=PROFILE.max_examples // 4)
TestUntracked = UntrackedMachine.TestCase
TestUntracked.settings = PROFILE
TestInTurns = MachineInTurns.TestCase
TestInTurns.settings = settings(PROFILE, max_examples=PROFILE.max_examples // 4)
TestAtOnce = MachineAtOnce.TestCase
TestAtOnce.settings = settings(PROFILE, max_examples=PROFILE.max_examples // 4)
TestThreaded = ThreadedMachine.TestCase
TestThreaded.settings = settings(PROFILE, max_examples=PROFILE.max_examples // 4)
TestSpilling = SpillingMachine.TestCase
TestSpilling.settings = settings(PROFILE, max_examples=PROFILE.max_examples // 4)
TestThreadedSpilling = ThreadedSpillingMachine.TestCase
TestThreadedSpilling.settings = settings(PROFILE, max_examples=PROFILE.max_examples // 8)
TestControl = ControlMachine.TestCase
TestControl.settings = settings(PROFILE, max_examples=200)

if lazyarray.device().name == "simulated" and sys.version_info >= (3, 12):      # what else has points is not drawn well
    FEW = settings(PROFILE, max_examples=PROFILE.max_examples // 4)
    TestFaulty = FaultyMachine.TestCase
    TestFaulty.settings = FEW
    TestFaultyUntracked = FaultyUntrackedMachine.TestCase
    TestFaultyUntracked.settings = FEW
    TestFaultyInTurns = FaultyMachineInTurns.TestCase
    TestFaultyInTurns.settings = FEW
    TestFaultySpilling = FaultySpillingMachine.TestCase
    TestFaultySpilling.settings = FEW
    TestFaultyThreaded = FaultyThreadedMachine.TestCase
    TestFaultyThreaded.settings = FEW
