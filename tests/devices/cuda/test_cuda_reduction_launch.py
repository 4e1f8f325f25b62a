"""What reaches a kernel that reduces, launched in Python and in C, without a GPU."""
from __future__ import annotations

import gc

import numpy as np
import pytest
from slow_compiler import F4, Array, Compiler

from lazyarray import _native
from lazyarray.devices.cuda.kernels import reduction
from lazyarray.devices.cuda.kernels.elementwise import Kernels
from lazyarray.devices.program import Extent, Operand, Program, Reduction, Step

SUM = Reduction("sum", F4, F4, F4)


@pytest.fixture(params=["python", "c"])
def compiler(request):
    compiler = Compiler()
    compiler.free.set()
    compiler.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor = lambda *_: 8
    compiler.cuda.runtime.deviceGetAttribute = lambda *_: 10
    compiler.zeroed = []

    def zeros(n, dtype):
        compiler.zeroed.append(n)
        return Array((n,), np.dtype(dtype), start=96)

    compiler.zeros = zeros
    if request.param == "c" and _native.launch is None:
        pytest.skip("the part in C was not compiled")
    compiler.kernels = Kernels(compiler, 1, compiler.driver() if request.param == "c" else None)
    compiler.reductions = reduction.Reductions(compiler.kernels, 1)
    return compiler


def program_of(mode, ndim=1):
    inputs = Operand(np.dtype("c8"), "value"), Operand(F4, mode)
    return Program(inputs, ((Step("astype", None, (F4,), F4), (1,)),), (2,), ndim if mode == "strided" else 0)


def launched(compiler, program, extent, array, shape=(), stream=7, walked=None, divisor=2.5):
    arguments = [np.complex64(1 - 2j), array]
    for _ in range(2):
        launch = compiler.reductions.get(program, SUM, extent, arguments, walked or (array.shape, False))
        compiler.kernels.wait()
    in_c = compiler.kernels.driver is not None
    assert type(launch) is (_native.launch.Reduction if in_c else reduction.Ready)
    result = launch(arguments, divisor, shape, stream)
    assert type(result) is Array and (result.shape, result.dtype) == (shape, F4)
    return compiler.launched[-1]


@pytest.mark.parametrize("mode", ["flat", "strided"])
def test_blocks_that_share_a_result(compiler, mode):
    program, extent, array = program_of(mode), Extent(1, 100_000, 1), Array((100_000,), start=64)
    for count in range(1, 3):
        blocks, values = launched(compiler, program, extent, array)
        assert blocks == values["splits"] > 1 and len(compiler.launched) == count
        assert values.items() >= {"x0": 1 - 2j, "p1": 64, "out": 0, "turns": 96, "outer": 1, "length": 100_000,
                                  "parts": 96 + reduction._OFFSET, "inner": 1, "divisor": 2.5}.items()
        assert ("w" in values) is (mode == "strided")
    assert len(compiler.zeroed) == 1
    launched(compiler, program, extent, array, stream=8)
    assert len(compiler.zeroed) == 2, "each stream has its own"


def test_parts_of_many_results_have_memory_of_their_own(compiler, monkeypatch):
    made, extent, array, usual = [], Extent(1, 4096, 4096), Array((4096, 4096)), Array.__init__
    compiler.cuda.runtime.deviceGetAttribute = lambda *_: 132

    def noted(self, *given, **more):
        usual(self, *given, **more)
        if more:
            return      # the counters
        made.append(self)
        if self.dtype == np.uint8:
            self.data.ptr = 4096

    monkeypatch.setattr(Array, "__init__", noted)
    _, values = launched(compiler, program_of("flat"), extent, array, (4096,))
    assert values.items() >= {"parts": 4096, "turns": 96, "out": 0}.items() and values["splits"] > 1
    assert [a.size for a in made] == [4096, values["splits"] * 4096 * reduction._LARGEST]
    assert made[1].size > reduction._ROOM


def test_a_block_for_each_result(compiler):
    extent = Extent(100_000, 8, 1)
    _, values = launched(compiler, program_of("flat"), extent, Array((100_000, 8)), (100_000,))
    assert values.items() >= {"splits": 1, "parts": 0, "turns": 0, "outer": 100_000, "length": 8}.items()
    assert not compiler.zeroed


def test_another_layout_of_the_same_program(compiler):
    program, extent = program_of("strided", 2), Extent(1, 6400, 1)
    walked = (100, 64), False
    for _ in range(2):
        for array in (Array((100, 64), strides=(512, 8)), Array((64,), strides=(12,)), Array((100, 1))):
            _, values = launched(compiler, program, extent, array, walked=walked)
            assert values["w"] == (array.strides[0] if array.ndim == 2 else 0)


def test_another_place_of_the_same_program(compiler):
    program, extent = program_of("flat"), Extent(1, 6400, 1)
    texts = [launched(compiler, program, extent, Array((6400,), start=start))[1]["source"]
             for start in (64, 4, 64, 20)]
    assert texts[0] == texts[2] != texts[1] == texts[3], "packs are loaded where they can be"


def test_each_gpu_has_its_own(compiler):
    compiler.kernels = Kernels(compiler, 2, compiler.kernels.driver)
    compiler.reductions = reduction.Reductions(compiler.kernels, 2)
    given = program_of("flat"), SUM, Extent(1, 6400, 1), [np.complex64(1), Array((6400,))], ((6400,), False)
    found = {}
    for compiler.device in (0, 1, 0, 1):
        compiler.reductions.get(*given)
        compiler.kernels.wait()
        found.setdefault(compiler.device, []).append(compiler.reductions.get(*given))
    assert found[0][0] is found[0][1] is not found[1][0] is found[1][1] is not None


def test_the_last_parameter_is_as_long_as_the_kernel_s(compiler):
    for shape, strides in (((100, 64), (512, 8)), ((4, 5, 6, 7), (0, 4, 0, 20)), ((6400,), (8,))):
        array = Array(shape, strides=strides)
        launched(compiler, program_of("strided", len(shape)), Extent(1, array.size, 1), array)
    for ready in compiler.reductions._ready.values():
        plain = ready if type(ready) is reduction.Ready else next(
            o for o in gc.get_referents(ready) if type(o) is reduction.Ready)
        assert len(plain._walk[0]) == plain._kernel.walk > 0


def test_a_thread_without_a_context(compiler):
    compiler.context = False
    launched(compiler, program_of("flat"), Extent(1, 6400, 1), Array((6400,)))
    assert compiler.context and len(compiler.launched) == 1


def test_an_error_that_stays(compiler):
    launched(compiler, program_of("flat"), Extent(1, 6400, 1), Array((6400,)))

    def fails(*given):
        raise compiler.cuda.driver.CUDADriverError("too much")

    compiler.launch = compiler.cuda.driver.launchKernel = fails
    with pytest.raises(compiler.cuda.driver.CUDADriverError):
        compiler.reductions._ready.clear()
        compiler.kernels._known.clear()
        launched(compiler, program_of("flat"), Extent(1, 6400, 1), Array((6400,)))
