"""Kernels are compiled beside the work: with a compiler that takes as long as it is told to, without a GPU."""
from __future__ import annotations

import logging
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np

from lazyarray.devices import cuda_forms
from lazyarray.devices.cuda_kernels import Kernels
from lazyarray.fusion.program import Operand, Program, step_of

F4, I4 = np.dtype("f4"), np.dtype("i4")


class Array:
    """Stands for a device array; `start` is its address."""

    def __init__(self, shape, dtype=F4, pointer=None, strides=None, order="C", start=0):
        held = np.lib.stride_tricks.as_strided(np.zeros(1, dtype), shape, strides) if strides else np.empty(
            shape, dtype, order)
        self.shape, self.strides, self.size, self.ndim = held.shape, held.strides, held.size, held.ndim
        self.dtype, self.data = held.dtype, types.SimpleNamespace(ptr=start)


class Compiler:
    """Stands for CuPy: compiles once `free` is set, and notes what is launched."""

    def __init__(self):
        self.free, self.begun, self.sources, self.launched = threading.Event(), threading.Event(), [], []
        self.device, self.ndarray, self.fails = 0, Array, False
        failures = {"CompileException": type("CompileException", (Exception,), {}),
                    "CUDARuntimeError": type("CUDARuntimeError", (Exception,), {}),
                    "CUDADriverError": type("CUDADriverError", (Exception,), {})}
        self.cuda = types.SimpleNamespace(
            compiler=types.SimpleNamespace(**failures), driver=types.SimpleNamespace(**failures),
            runtime=types.SimpleNamespace(**failures, getDevice=lambda: self.device),
            Device=lambda number: types.SimpleNamespace(use=lambda: self.sources.append(number)))

    def RawModule(self, code, options):
        def compile_():
            self.begun.set()
            assert self.free.wait(60)
            if self.fails:
                raise self.cuda.compiler.CompileException("line 1: no\nline 2")
            self.sources.append(code)

        return types.SimpleNamespace(compile=compile_, get_function=lambda name: self.function(name, code))

    def function(self, name, code):
        def linear_launch(threads, arguments, shared, block):
            self.launched.append((name, threads // block, arguments, code))

        return types.SimpleNamespace(num_regs=20, kernel=types.SimpleNamespace(linear_launch=linear_launch))


def program_of(*modes, output=I4, ndim=0):
    """A program that CUDA's text is known of without CuPy."""
    inputs = tuple(Operand(F4, mode) for mode in modes)
    steps = tuple((step_of("astype", None, (F4,), output), (i,)) for i in range(len(inputs)))
    return Program(inputs, steps, (len(inputs),), ndim)


def test_nobody_waits_for_the_compiler():
    compiler = Compiler()
    kernels = Kernels(compiler, 1)
    first, second = program_of("flat"), program_of("flat", output=np.dtype("f8"))
    for _ in range(3):      # whoever asks meanwhile gets None at once, for this program and for others
        assert kernels.get(first, 10) is None and kernels.get(second, 10) is None
    assert compiler.begun.wait(60) and not compiler.sources
    compiler.free.set()
    kernels.wait()
    assert kernels.get(first, 10) is kernels.get(first, 10) is not None and kernels.get(second, 10) is not None
    assert len(compiler.sources) == 2, "each is compiled once"


def test_what_does_not_compile_is_said_once_and_never_tried_again(caplog):
    compiler = Compiler()
    compiler.fails = True
    compiler.free.set()
    kernels = Kernels(compiler, 1)
    with caplog.at_level(logging.WARNING, "lazyarray"):
        for _ in range(3):
            assert kernels.get(program_of("flat"), 10) is None
            kernels.wait()
    assert caplog.messages == ["a kernel of 1 steps was not made: line 1: no"]
    compiler.fails = False
    assert kernels.get(program_of("flat", "flat"), 10) is None
    kernels.wait()
    assert kernels.get(program_of("flat", "flat"), 10) is not None, "the thread lives on"


def test_each_gpu_has_kernels_of_its_own():
    compiler = Compiler()
    compiler.free.set()
    kernels = Kernels(compiler, 2)
    assert kernels.get(program_of("flat"), 10) is None
    kernels.wait()
    compiler.device = 1
    assert kernels.get(program_of("flat"), 10) is None
    kernels.wait()
    assert [kind for kind in compiler.sources if isinstance(kind, int)] == [0, 1]
    mine = kernels.get(program_of("flat"), 10)
    compiler.device = 0
    assert kernels.get(program_of("flat"), 10) is not mine


def made(compiler, program):
    kernels = Kernels(compiler, 1)
    compiler.free.set()
    kernels.get(program, 10)
    kernels.wait()
    return kernels, kernels.get(program, 10)


def test_addresses_decide_whether_packs_are_loaded():
    compiler = Compiler()
    _, kernel = made(compiler, program_of("flat", "value"))
    for start, name in ((0, "packs"), (512, "packs"), (4, "general"), (8, "general")):
        (output,) = kernel([Array((5000,), start=start), np.float32(2)], (5000,), False)
        assert output.shape == (5000,) and output.dtype == I4
        assert compiler.launched[-1][:2] == (name, 5)
    assert kernel([Array((50, 100)), np.float32(2)], (50, 100), True)[0].strides == (4, 200)


def test_a_layout_that_was_never_seen_takes_the_general_form_until_its_own_is_compiled():
    compiler = Compiler()
    kernels, kernel = made(compiler, program_of("strided", "flat", ndim=2))
    row, matrix = Array((64,)), Array((32, 64))
    compiler.free.clear()
    for _ in range(2):
        kernel([row, matrix], (32, 64), False)
        assert compiler.launched[-1][0] == "general"
        assert len(compiler.launched[-1][2]) == 5 and compiler.launched[-1][2][4].nbytes == 8 * 2 + 16
    compiler.free.set()
    kernels.wait()
    kernel([row, matrix], (32, 64), False)
    assert compiler.launched[-1][0] == "fused" and len(compiler.sources) == 2
    kernel([Array((32, 1)), matrix], (32, 64), False)   # another form
    assert compiler.launched[-1][0] == "general"
    kernels.wait()
    kernel([Array((32, 1)), matrix], (32, 64), False)
    kernel([Array((32, 1)), Array((32, 64), start=4)], (32, 64), False)
    assert [name for name, *_ in compiler.launched[-2:]] == ["fused", "general"]
    kernel([Array((64, 32), strides=(4, 256)), Array((32, 64))], (32, 64), True)
    assert compiler.launched[-1][2][4].nbytes == 32, "the strides of the result's own order"


def test_layouts_are_forgotten_when_there_are_too_many():
    compiler = Compiler()
    kernels, kernel = made(compiler, program_of("strided", "flat", ndim=2))
    for n in range(1, 200):
        for _ in range(2):
            kernel([Array((4 * n,)), Array((3, 4 * n))], (3, 4 * n), False)
            kernels.wait()
    assert 0 < len(kernel._plans) <= 64
    assert {name for name, *_ in compiler.launched} == {"general", "fused"}


def test_a_kernel_of_very_many_elements_is_another_one():
    compiler = Compiler()
    compiler.free.set()
    kernels = Kernels(compiler, 1)
    kernels.get(program_of("flat"), cuda_forms.WIDE - 1)
    kernels.get(program_of("flat"), cuda_forms.WIDE)
    kernels.wait()
    narrow, wide = compiler.sources
    assert "const unsigned int n" in narrow and "const long long n" in wide


def test_a_process_ends_once_its_compiler_has_done_what_it_is_at():
    code = f"""
import atexit, sys, threading
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_cuda_compiling import Compiler, Kernels, np, program_of
compiler = Compiler()
atexit.register(lambda: print(len(compiler.sources)))   # what is registered first is called last
kernels = Kernels(compiler, 1)
for output in "f8", "i8", "i2":
    kernels.get(program_of("flat", output=np.dtype(output)), 10)
compiler.begun.wait(60)
later = threading.Timer(0.5, compiler.free.set)
later.daemon = True
later.start()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("1\n", "")
