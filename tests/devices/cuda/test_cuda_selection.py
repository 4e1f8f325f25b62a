"""``x[mask]``, read and assigned, by kernels of our own: they compile, and give what NumPy gives, here and on a GPU."""
from __future__ import annotations

import importlib.util
import itertools
import types

import numpy as np
import pytest
from emulated_kernels import Array, Emulator

from lazyarray.devices.cuda.kernels import boolean_mask
from lazyarray.devices.cuda.kernels.boolean_mask import ROUND, SOURCE, THREADS, Plan, plan
from lazyarray.devices.cuda.kernels.elementwise import Kernels

MASKS = {"random": lambda n: np.random.default_rng(n).random(n) < 0.4, "all": lambda n: np.ones(n, bool),
         "none": lambda n: np.zeros(n, bool), "the last": lambda n: np.arange(n) == n - 1,
         "few": lambda n: np.random.default_rng(n).random(n) < 0.002, "the first half": lambda n: np.arange(n) < n // 2}


def numbers(shape, dtype):
    """Arbitrary bytes, so that each element is another one."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=int))
    if dtype.kind == "b":
        return np.random.default_rng(1).random(shape) < 0.5
    return np.random.default_rng(0).integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype).reshape(shape)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed: it brings the compiler")
def test_the_kernels_compile():
    from nvrtc import compiled

    assert compiled(SOURCE) == ""


@pytest.mark.parametrize("row", [1, 2, 3, 4, 8, 12, 16, 24, 32, 400, 1000, 4096, 10**6 + 1, 1 << 30])
def test_grids(row):
    for size in (1, 3, ROUND, ROUND + 1, 10**6, 2048 * ROUND, 2048 * ROUND + 1, 10**8, 3 * 10**10):
        for start in (0, 8, 1):
            check_grid(plan(size, row, start), size, row, start)


def check_grid(found, size, row, start):
    """Tiles hold the mask, parts hold the rows, and there are no more of either than a kernel takes."""
    tile = found.rounds * ROUND
    assert found.tiles * tile >= size > (found.tiles - 1) * tile and found.tiles <= boolean_mask.MOST_TILES
    assert found.word * found.words == row and start % found.word == 0
    assert found.word == 16 or row % (2 * found.word) or start % (2 * found.word)
    assert found.parts * found.share >= found.words > (found.parts - 1) * found.share
    assert 1 <= found.share <= boolean_mask.MOST <= THREADS
    assert found.share >= min(found.words, boolean_mask.LEAST) // 2 or found.parts == 1


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    cupy = Emulator(tmp_path_factory.mktemp("kernels"))
    kernels = Kernels(cupy, 1)
    turn = Array.of(np.zeros(1, np.uint32))
    found = boolean_mask.Selections(kernels, lambda: turn, cupy)
    assert found.of(Array.of(MASKS["all"](8))) is None, "it is being compiled"
    kernels.wait()
    return types.SimpleNamespace(of=found.of, turn=turn, cupy=cupy)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("shape", [
    (1,), (15,), (1025,), (4096,), (3, 700), (700, 3), (7, 11, 13), (1, 9, 1), (3, 5, 7, 11)])
def test_positions(emulator, shape, mask):
    flags = mask(int(np.prod(shape))).reshape(shape)
    found = emulator.of(Array.of(flags)).positions(shape)
    assert [f.get().tolist() for f in found] == [e.tolist() for e in np.nonzero(flags)]
    assert emulator.turn.get()[0] == 0


def test_positions_along_more_axes_are_the_librarys(emulator):
    shape = 1, 2, 1, 2, 1
    assert emulator.of(Array.of(np.ones(shape, bool))).positions(shape) is None


def test_kernels_that_do_not_compile_are_done_without(tmp_path, caplog):
    cupy = Emulator(tmp_path)

    def fails(code, options):
        raise cupy.cuda.compiler.CompileException("line 1: no")

    cupy.RawModule = fails
    kernels = Kernels(cupy, 1)
    found = boolean_mask.Selections(kernels, None, cupy)
    for _ in range(2):
        assert found.of(Array.of(MASKS["all"](8))) is None
        kernels.wait()
    assert caplog.messages == ["the kernel 'select' was not made: line 1: no"]


def check(emulator, values, mask, misplaced=0, mask_misplaced=0):
    selected = emulator.of(Array.of(mask, mask_misplaced))
    result = selected.take(Array.of(values, misplaced), mask.ndim)
    expected = values[mask]
    assert result.shape == expected.shape and result.dtype == expected.dtype
    assert result.get().tobytes() == expected.tobytes()
    expected = np.zeros_like(values)
    expected[mask] = values[mask]
    target = Array.of(np.zeros_like(values), misplaced)
    assert selected.put(target, result)
    assert selected.count == result.shape[0] and target.get().tobytes() == expected.tobytes()
    assert not emulator.turn.get().any(), "the counter is zero for the next kernel"


class TestOnTheHost:
    """The text that CUDA runs, compiled for the host."""

    @pytest.mark.parametrize("mask", MASKS)
    @pytest.mark.parametrize("size", [1, 15, 16, 17, 255, 257, ROUND - 1, ROUND, ROUND + 1, 3 * ROUND + 7])
    def test_sizes(self, emulator, size, mask):
        check(emulator, numbers(size, "f"), MASKS[mask](size))

    @pytest.mark.parametrize("dtype", "?bhilefdFDBHILQq")
    def test_dtypes(self, emulator, dtype):
        check(emulator, numbers(1500, dtype), MASKS["random"](1500))

    @pytest.mark.parametrize("row", [1, 2, 3, 5, 7, 8, 9, 16, 31, 63, 64, 65, 100, 130, 1000])
    @pytest.mark.parametrize("dtype", ["u1", "f8"])
    def test_rows(self, emulator, row, dtype):
        check(emulator, numbers((1100, row), dtype), MASKS["random"](1100))

    def test_few_rows_that_are_wide(self, emulator):
        check(emulator, numbers((5, 3, 2001), "f"), np.array([1, 0, 1, 1, 0], bool))
        assert emulator.cupy.launched[-1][1] > 300

    @pytest.mark.parametrize("place", [1, 2, 4, 8, 12])
    @pytest.mark.parametrize("row", [1, 8])
    def test_addresses(self, emulator, place, row):
        check(emulator, numbers((1030, row), "u1"), MASKS["random"](1030), place, place)

    def test_masks_of_several_axes(self, emulator):
        mask = MASKS["random"](6 * 7 * 50).reshape(6, 7, 50)
        check(emulator, numbers((6, 7, 50), "d"), mask)
        check(emulator, numbers((6, 7, 50, 3, 2), "h"), mask)

    def test_any_byte_that_is_not_zero_is_true(self, emulator):
        bytes_ = np.arange(ROUND + 5).astype(np.uint8)
        result = emulator.of(Array.of(bytes_.view(bool))).take(Array.of(numbers(ROUND + 5, "f")), 1)
        assert np.array_equal(result.get().view("u4"), numbers(ROUND + 5, "f").view("u4")[bytes_ != 0])

    def test_nothing_is_copied_where_nothing_is_true(self, emulator):
        emulator.cupy.launched.clear()
        check(emulator, numbers((50, 4), "f"), MASKS["none"](50))
        assert [name for name, _ in emulator.cupy.launched] == ["select_count"]

    def test_more_tiles_than_threads(self, emulator):
        size = (2 * THREADS + 9) * ROUND - 100
        check(emulator, numbers(size, "B"), MASKS["few"](size) | (np.arange(size) < 5))
        assert emulator.cupy.launched[-1] == ("place_1", 2 * THREADS + 9)

    @pytest.mark.parametrize("parts", [1, 2])
    def test_tiles_of_several_rounds(self, emulator, monkeypatch, parts):
        def of_three(size, row, start):
            return Plan(-(-size // (3 * ROUND)), 3, 16, 4, 4 // parts, parts)

        monkeypatch.setattr(boolean_mask, "plan", of_three)
        for size, mask in itertools.product((1, 3 * ROUND, 3 * ROUND + 1, 7 * ROUND + 33), MASKS):
            check(emulator, numbers((size, 16), "f"), MASKS[mask](size))

    def test_a_mask_written_after_it_was_counted_does_no_harm(self, emulator, monkeypatch):
        values, mask = numbers((2000, 2), "f"), Array.of(MASKS["few"](2000))
        expected = values[mask.get()]

        def fetched(copy, memory):
            memory[:] = copy.get().tobytes()
            mask.data.memory[...] = 1       # by another thread, while this one waits

        monkeypatch.setattr(emulator.cupy, "fetch_end", fetched)
        assert emulator.of(mask).take(Array.of(values), 1).get().tobytes() == expected.tobytes()
