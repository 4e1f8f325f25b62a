"""Steps of float16 that the GPU does as such give CuPy's bits: for every half, and for every pair of halves."""
from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.cuda.kernels import snippets
from lazyarray.devices.program import Operand, Program, Step

ON_CUDA = lazyarray.device().name == "cuda"
if importlib.util.find_spec("cupy") is None:
    pytest.skip("CuPy is not installed: there is nothing to make kernels of", allow_module_level=True)

import cupy  # noqa: E402

HALF = np.dtype("f2")


def step_of(name):
    ufunc = getattr(cupy, name)
    return Step(name, ufunc, (HALF,) * ufunc.nin, HALF)


@pytest.mark.parametrize("name", sorted(snippets._HALVES))
def test_the_table_is_of_functions_that_cupy_has_for_halves(name):
    step = step_of(name)
    assert snippets.routine(step.function, step.inputs, HALF) is not None
    assert snippets.snippet(step, cupy) == (snippets._HALVES[name], "")
    wider = Step(name, step.function, (np.dtype("f4"),) * len(step.inputs), np.dtype("f4"))
    assert "half" not in snippets.snippet(wider, cupy)[0]


@pytest.mark.skipif(not ON_CUDA, reason="needs a GPU")
@pytest.mark.parametrize("name", sorted(snippets._HALVES))
def test_every_half_and_every_pair_of_them(name):
    step = step_of(name)
    count = len(step.inputs)
    program = Program((Operand(HALF, "flat"),) * count, ((step, tuple(range(count))),), (count,), 0)
    kernels = lazyarray.device().kernels
    kernels.get(program, 1)
    kernels.wait()
    kernel = kernels.get(program, 1)
    halves = cupy.arange(1 << 16, dtype="u2").view(HALF)
    second = cupy.tile(halves, 1 << 8)
    for start in range(0, 1 << 16, 1 << 8) if count == 2 else (0,):
        arguments = [cupy.repeat(halves[start:start + (1 << 8)], 1 << 16), second] if count == 2 else [halves]
        (found,), expected = kernel(arguments, arguments[0].shape, False), step.function(*arguments)
        # As bits, so that zeros have their signs; what is no number may have any.
        same = (found.view("u2") == expected.view("u2")) | ((found != found) & (expected != expected))
        assert bool(same.all()), (name, [argument[~same][:3] for argument in arguments], found[~same][:3])
