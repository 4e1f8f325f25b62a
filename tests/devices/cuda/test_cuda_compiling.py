"""Kernels are compiled beside the work: with a compiler that takes as long as it is told to, without a GPU."""
from __future__ import annotations

import logging
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from slow_compiler import F4, I4, Array, Compiler, program_of

from lazyarray.devices.cuda.device import CudaDevice
from lazyarray.devices.cuda.kernels import elementwise, launch_plan
from lazyarray.devices.cuda.kernels.elementwise import Kernels
from lazyarray.devices.program import Operand, Program, Step, step_of


def test_nobody_waits_for_the_compiler():
    compiler = Compiler()
    kernels = Kernels(compiler, 1)
    first, second = program_of("flat"), program_of("flat", output=np.dtype("f8"))
    for _ in range(3):      # whoever asks meanwhile gets None at once, for this program and for others
        assert kernels.get(first, 10) is None and kernels.get(second, 10) is None
    assert compiler.begun.wait(60) and not compiler.sources
    threading.Timer(0.05, compiler.free.set).start()
    CudaDevice.wait_for_kernels(SimpleNamespace(kernels=kernels))       # but who measures
    assert kernels.get(first, 10) is kernels.get(first, 10) is not None and kernels.get(second, 10) is not None
    assert len(compiler.sources) == 2, "each is compiled once"


def test_what_is_asked_for_most_is_compiled_first():
    compiler = Compiler()
    kernels = Kernels(compiler, 1)
    kernels.threads = 1
    first, *once, often = [program_of("flat", output=np.dtype(output)) for output in ("i8", "u1", "u4", "f8")]
    kernels.get(first, 10)
    assert compiler.begun.wait(60)
    for program in (*once, often, often, first, first):
        assert kernels.get(program, 10) is None
    compiler.free.set()
    kernels.wait()
    assert [re.search(r"(\S+)\* __restrict__ q0", text)[1] for text in compiler.sources] == [
        "long", "double", "char", "int"], "of several the first"
    assert all(kernels.get(program, 10) is not None for program in (first, *once, often))


def test_several_are_compiled_at_the_same_time():
    compiler = Compiler()
    kernels = Kernels(compiler, 1)
    kernels.threads = 3
    begun, usual = [], compiler.RawModule
    compiler.RawModule = lambda code, options: begun.append(code) or usual(code, options)
    programs = [program_of("flat", output=np.dtype(output)) for output in ("i8", "u1", "u4", "f8", "i2")]
    for program in programs:
        assert kernels.get(program, 10) is None
    for _ in range(1000):
        if len(begun) == 3:
            break
        time.sleep(0.01)
    assert len(begun) == 3
    compiler.free.set()
    kernels.wait()
    assert len(compiler.sources) == 5 and all(kernels.get(program, 10) is not None for program in programs)


def chain(*outputs):
    """A program of steps that cast, one after the other, each to one of these dtypes."""
    steps = []
    for k, output in enumerate(outputs):
        steps.append((step_of("astype", None, (outputs[k - 1] if k else F4,), output), (k,)))
    return Program((Operand(F4, "flat"),), tuple(steps), (len(outputs),), 0)


class TestWaiting:
    """Where the device library would have to compile kernels of its own, which takes longer."""

    @pytest.fixture
    def compiler(self):
        compiler = Compiler()
        compiler.free.set()
        return compiler

    @pytest.fixture
    def device(self, compiler):
        kernels = Kernels(compiler, 1)
        kernels.waits = True
        return SimpleNamespace(kernels=kernels, several=False, spread=False, fused_from=CudaDevice.fused_from)

    def kernel(self, device, program, size=10):
        return CudaDevice.kernel(device, program, size)

    def test_a_program_of_new_steps_is_compiled_at_once(self, compiler, device):
        program = chain(I4, F4, np.dtype("f8"))
        kernel = self.kernel(device, program)
        assert kernel is not None and len(compiler.sources) == 1
        assert all(self.kernel(device, program) is kernel for _ in range(3)) and len(compiler.sources) == 1

    def test_what_the_device_library_has_done_it_does_again_meanwhile(self, compiler, device):
        device.kernels.unfused(chain(I4, F4))
        program = chain(I4, F4)
        assert not device.kernels.pays(program)
        assert [self.kernel(device, program) for _ in range(2)] == [None, None] and not compiler.sources
        self.kernel(device, program)
        device.kernels.wait()
        assert len(compiler.sources) == 1 and self.kernel(device, program) is not None

    def test_steps_that_a_kernel_does_need_no_other(self, device):
        """What reduces their result does, if the device library has not done that before."""
        program, reduction = chain(I4, F4, np.dtype("f8")), object()
        assert device.kernels.pays(program, reduction)
        assert self.kernel(device, program) is program.kernel is not None
        assert device.kernels.pays(program, reduction) == (
            elementwise.THEIRS >= elementwise.PROGRAM + 4 * elementwise.STEP)
        device.kernels.unfused(program, reduction)
        assert not device.kernels.pays(program, reduction)

    def test_few_new_steps_of_many_are_left_to_the_device_library(self, device):
        known = [I4, F4] * 10
        device.kernels.unfused(chain(*known))
        longer = chain(*known, np.dtype("f8"))
        assert not device.kernels.pays(longer) and self.kernel(device, longer) is None
        assert not device.kernels.pays(chain(*known, np.dtype("f8"))), "that has compiled them"

    def test_no_statement_waits_longer_than_for_the_device_librarys_kernels(self, device):
        for count in range(1, 40):
            program = chain(*[np.dtype(("i4", "u4", "f4", "f8")[k % 4]) for k in range(count)])
            new = len({step for step, _ in program.steps})
            assert device.kernels.pays(program) == (
                elementwise.THEIRS * new >= elementwise.PROGRAM + elementwise.STEP * count)

    def test_nobody_waits_for_another_thread(self, device):
        slow = Compiler()
        kernels = Kernels(slow, 1)
        program = chain(I4)
        assert kernels.get(program, 10) is None and slow.begun.wait(60)
        assert kernels.get(program, 10, now=True) is None
        slow.free.set()
        kernels.wait()
        assert kernels.get(program, 10, now=True) is not None and len(slow.sources) == 1

    def test_what_does_not_compile(self, compiler, device, caplog):
        compiler.fails = True
        with caplog.at_level(logging.WARNING, "lazyarray"):
            assert [self.kernel(device, chain(I4)) for _ in range(5)] == [None] * 5
        device.kernels.wait()
        assert caplog.messages == ["a kernel of 1 steps was not made: line 1: no"]

    def test_who_is_interrupted_asks_again(self, device):
        def interrupted(cupy, *key):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            device.kernels.find(("a kernel",), interrupted, now=True)
        assert device.kernels.find(("a kernel",), lambda cupy, *key: key, now=True) == ("a kernel",)


def test_what_does_not_compile_is_said_once_and_never_tried_again(caplog):
    compiler = Compiler()
    compiler.fails = True
    compiler.free.set()
    kernels, program, other = Kernels(compiler, 1), program_of("flat"), program_of("flat", "flat")
    with caplog.at_level(logging.WARNING, "lazyarray"):
        for _ in range(3):
            assert kernels.get(program, 10) is None
            kernels.wait()
    assert caplog.messages == ["a kernel of 1 steps was not made: line 1: no"]
    compiler.fails = False
    assert kernels.get(other, 10) is None
    kernels.wait()
    assert kernels.get(other, 10) is not None, "the thread lives on"


def test_each_gpu_has_kernels_of_its_own():
    compiler = Compiler()
    compiler.free.set()
    kernels, program = Kernels(compiler, 2), program_of("flat")
    assert kernels.get(program, 10) is None
    kernels.wait()
    compiler.device = 1
    assert kernels.get(program, 10) is None
    kernels.wait()
    assert [kind for kind in compiler.sources if isinstance(kind, int)] == [0, 1]
    mine = kernels.get(program, 10)
    compiler.device = 0
    assert kernels.get(program, 10) is not mine


def made(compiler, program):
    kernels = Kernels(compiler, 1)
    compiler.free.set()
    kernels.get(program, 10)
    kernels.wait()
    return kernels, kernels.get(program, 10)


def test_addresses_decide_whether_packs_are_loaded():
    compiler = Compiler()
    kernels, kernel = made(compiler, program_of("flat", "value"))

    def launched(start):
        (output,) = kernel([Array((5000,), start=start), np.float32(2.5)], (5000,), False)
        assert output.shape == (5000,) and output.dtype == I4
        blocks, values = compiler.launched[-1]
        assert blocks == 5 and values.items() >= {"p0": start, "x1": 2.5, "q0": 0, "n": 5000}.items()
        return values.get("aligned")

    assert launched(0) == 1 and launched(512) == 1 and len(compiler.sources) == 1
    compiler.free.clear()
    assert launched(4) == 0 and launched(8) == 0, "the same kernel does without"
    compiler.free.set()
    kernels.wait()
    assert launched(4) is None and launched(0) == 1 and launched(8) is None
    assert len(compiler.sources) == 2
    assert kernel([Array((50, 100)), np.float32(2)], (50, 100), True)[0].strides == (4, 200)


@pytest.mark.parametrize("value", [np.bool_(True), np.float16(1.5), np.complex64(1 - 2j), np.complex128(3 + 4j),
                                   np.float32(np.inf), np.int64(-5)], ids=lambda value: value.dtype.name)
def test_numbers_reach_a_kernel_as_they_are(value):
    compiler = Compiler()
    inputs = (Operand(value.dtype, "value"), Operand(F4, "flat"), Operand(value.dtype, "value"))
    step = Step("astype", None, (value.dtype,), value.dtype)
    _, kernel = made(compiler, Program(inputs, ((step, (0,)),), (3,), 0))
    kernel([value, Array((5,), start=32), value], (5,), False)
    assert compiler.launched[-1][1].items() >= {"x0": value, "p1": 32, "x2": value, "q0": 0, "n": 5}.items()


def test_a_thread_without_a_context_gets_one():
    compiler = Compiler()
    _, kernel = made(compiler, program_of("flat"))
    compiler.context = False
    kernel([Array((5,))], (5,), False)
    assert compiler.context and len(compiler.launched) == 1


def test_a_layout_that_was_never_seen_takes_the_general_form_until_its_own_is_compiled():
    compiler = Compiler()
    kernels, kernel = made(compiler, program_of("strided", "flat", ndim=2))

    def source_for(*operands):
        """Which of the sources, in the order of their compiling, is used."""
        kernel(list(operands), (32, 64), False)
        values = compiler.launched[-1][1]
        assert ("aligned" in values) is False and "w" in values
        return compiler.sources.index(values["source"])

    row, column, matrix = Array((64,)), Array((32, 1)), Array((32, 64))
    compiler.free.clear()
    assert source_for(row, matrix) == source_for(row, matrix) == 0
    compiler.free.set()
    kernels.wait()
    assert source_for(row, matrix) == 1 and len(compiler.sources) == 2
    assert source_for(column, matrix) == 0
    kernels.wait()
    assert source_for(column, matrix) == 2 and source_for(row, matrix) == 1
    assert source_for(column, Array((32, 64), start=4)) == 0
    kernels.wait()
    assert source_for(column, Array((32, 64), start=4)) == 3


def test_what_is_strided_but_lies_as_the_result_does_is_read_in_packs():
    compiler = Compiler()
    kernels, kernel = made(compiler, program_of("strided", "flat", ndim=2))
    for start, last in ((0, {"aligned"}), (4, set())):
        for known in (False, True):
            kernel([Array((32, 64), start=start), Array((32, 64))], (32, 64), False)
            kernels.wait()
            assert compiler.launched[-1][1].keys() == {"p0", "p1", "q0", "n", "source"} | (last if known else {"w"})


def test_layouts_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(elementwise, "PLANS", 64)
    compiler = Compiler()
    kernels, kernel = made(compiler, program_of("strided", "flat", ndim=2))
    for n in range(1, 200):
        for _ in range(2):
            kernel([Array((4 * n,)), Array((3, 4 * n))], (3, 4 * n), False)
            kernels.wait()
    assert 0 < len(kernel._plans) <= 64


def test_a_kernel_of_very_many_elements_is_another_one():
    compiler = Compiler()
    compiler.free.set()
    kernels = Kernels(compiler, 1)
    kernels.get(program_of("flat"), launch_plan.WIDE - 1)
    kernels.get(program_of("flat"), launch_plan.WIDE)
    kernels.wait()
    narrow, wide = compiler.sources
    assert "const unsigned int n" in narrow and "const long long n" in wide


def test_a_process_ends_once_its_compiler_has_done_what_it_is_at():
    code = f"""
import atexit, sys, threading
sys.path.insert(0, {str(Path(__file__).parents[2] / 'support')!r})
import numpy as np
from slow_compiler import Compiler, program_of
from lazyarray.devices.cuda.kernels.elementwise import Kernels
compiler = Compiler()
atexit.register(lambda: print(len(compiler.sources)))   # what is registered first is called last
kernels = Kernels(compiler, 1)
kernels.threads = 1
for output in "f8", "i8", "i2":
    kernels.get(program_of("flat", output=np.dtype(output)), 10)
compiler.begun.wait(60)
later = threading.Timer(0.5, compiler.free.set)
later.daemon = True
later.start()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_form_that_another_thread_finds_compiled_between_two_looks():
    """What was asked for is looked up once: another thread may take it away when it is there."""
    compiler = Compiler()
    kernels, kernel = made(compiler, program_of("strided", "flat", ndim=2))

    def call():
        return kernel([Array((64,)), Array((32, 64))], (32, 64), False)

    call()
    kernels.wait()      # the form of this layout is compiled now, and still among those that were asked for

    class Asked(dict):
        def get(self, key, default=None):
            found = super().get(key, default)
            self.pop(key, None)         # the other thread's turn
            return found

        def __contains__(self, key):
            found = super().__contains__(key)
            self.pop(key, None)
            return found

    kernel._asked = Asked(kernel._asked)
    assert kernel._asked
    assert call() is not None and not kernel._asked
