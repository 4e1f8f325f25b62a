"""`CudaOperations.copied`: which strided copies a kernel of ours is given, and which are left to CuPy."""
from __future__ import annotations

import types

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.cuda.kernels import elementwise_source, launch_plan
from lazyarray.devices.cuda.operations import CudaOperations, _copying


class Array(types.SimpleNamespace):
    """As much of a CuPy array as is asked for."""

    def __init__(self, shape, dtype="f8", dense=True):
        super().__init__(
            shape=shape, dtype=np.dtype(dtype), ndim=len(shape), size=int(np.prod(shape)), _c_contiguous=dense)


@pytest.fixture
def copied():
    """`copied` of operations whose kernels note what they are given, and which is the first to be there."""
    given = []
    kernel = types.SimpleNamespace(launch=lambda *of: given.append(of) or [])
    operations = types.SimpleNamespace(_copying={}, kernel=lambda program, size: kernel if size else None)

    def call(target, value):
        done = CudaOperations.copied(operations, target, value)
        assert done is bool(given)
        programs = list(operations._copying.values())
        launched, given[:] = list(given), []
        return launched, programs

    return call


@pytest.mark.parametrize("shape, modes", [
    ((4, 6), ["flat", "strided"]), ((6,), ["strided"] * 2), ((4, 1), ["strided"] * 2), ((), ["strided"] * 2)])
def test_what_broadcasts(copied, shape, modes):
    target, value = Array((4, 6), dense=False), Array(shape)
    [(arguments, walked, fortran)], [program] = copied(target, value)
    assert arguments == [value, target] and walked == (4, 6) and not fortran
    assert [operand.mode for operand in program.inputs] == modes and program.into and program.ndim == 2


@pytest.mark.parametrize("dense", [True, False])
def test_a_number(copied, dense):
    target = Array((4, 6), dense=dense)
    [(arguments, walked, _)], [program] = copied(target, np.float64(2))
    assert arguments == [2, target] and walked == (4, 6)
    assert [operand.mode for operand in program.inputs] == ["value", "flat" if dense else "strided"]
    assert program.ndim == (0 if dense else 2)


@pytest.mark.parametrize("shape", [(2,), (3,), (4,), (5, 6), (1, 4, 6), (4, 6, 1), (0, 6), (6, 4)])
def test_what_does_not_is_for_cupy(copied, shape):
    """A kernel would read what lies beyond."""
    assert copied(Array((4, 6)), Array(shape)) == ([], [])


@pytest.mark.parametrize("pair, kept", [
    ("f8 f8", True), ("f4 f8", True), ("? i2", True), ("i8 f8", True), ("f8 f4", True), ("i8 u1", True), ("f8 ?", True),
    ("c16 f8", False), ("f8 c16", True), ("c16 c8", True), ("V3 V3", False)])
def test_casts(copied, pair, kept):
    source, target = pair.split()
    launched, programs = copied(Array((4, 6), target, False), Array((4, 6), source))
    assert bool(launched) is kept and bool(programs[0].steps) is kept


@pytest.mark.parametrize("source, target", [("f8", "f4"), ("f8", "i4"), ("i8", "u1"), ("f4", "?"), ("c16", "c8"),
                                            ("f8", "f2"), ("u8", "i2"), ("f2", "i8")])
def test_a_cast_compiles(source, target):
    cupy = pytest.importorskip("cupy")
    from nvrtc import compiled

    program = _copying(np.dtype(source), np.dtype(target), 2, "flat", True)
    form = launch_plan.packed(program, ("flat", "flat"), 0, False)
    assert compiled(elementwise_source.source(program, cupy, {"set": form})) == ""


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("dense", [True, False])
def test_a_number_compiles(dtype, dense):
    cupy = pytest.importorskip("cupy")
    from nvrtc import compiled

    program = _copying(np.dtype(dtype), np.dtype(dtype), 2, "value", dense)
    form = launch_plan.packed(program, ("value", "flat"), 0, False) if dense else launch_plan.general(
        program, False, ("value", "any"), 2)
    assert compiled(elementwise_source.source(program, cupy, {"set": form})) == ""


@pytest.mark.skipif(lazyarray.device().name != "cuda", reason="needs a GPU")
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("number", [0, 1, 3, -0.0, np.nan])
def test_numbers_on_a_gpu(dtype, number):
    if np.dtype(dtype).kind in "?biu" and not float(number).is_integer():
        number = 2
    number = np.dtype(dtype).type(number)
    device = lazyarray.device()
    views = [lambda a: a, lambda a: a[::2, 1:], lambda a: a.T, lambda a: a[1, 2:3], lambda a: a[:0], lambda a: a[::-1]]
    for view in views:
        for _ in range(2):      # the kernel is there the second time
            plain = np.ones((4, 6), dtype)
            x = device.xp.asarray(plain)
            view(plain)[...] = number
            device.assign(view(x), number)
            device.wait_for_kernels()
            assert x.get().tobytes() == plain.tobytes()
