"""Fourier transforms by cuFFT itself: how an axis is walked; and on a GPU, that the values are NumPy's."""
from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.cuda.transforms import Step, Transforms, grouped, layout

ON_CUDA = lazyarray.device().name == "cuda"
RANDOM = np.random.default_rng(1)


@pytest.mark.parametrize(("shape", "first", "last", "expected"), [
    ((8,), 0, 0, (1, 1, True)), ((3, 8), 1, 1, (3, 1, True)), ((8, 3), 0, 0, (3, 3, False)),
    ((2, 3, 8), 2, 2, (6, 1, True)), ((8, 2, 3), 0, 0, (6, 6, False)), ((2, 8, 3), 1, 1, None),
    ((1, 8, 3), 1, 1, (3, 3, False)), ((2, 8, 1), 1, 1, (2, 1, True)), ((4, 5), 0, 1, (1, 1, True)),
    ((2, 3, 8), 1, 2, (2, 1, True)), ((2, 3, 8), 0, 1, (8, 8, False)), ((2, 3, 4, 5), 1, 2, None)])
def test_how_axes_are_walked(shape, first, last, expected):
    assert layout(shape, first, last) == expected


@pytest.mark.parametrize(("steps", "expected"), [
    ("C0", ["0"]), ("C1 C0", ["10"]), ("C0 C1", ["01"]), ("R1 C0", ["10"]), ("R0 C1", ["0", "1"]),
    ("C0 X1", ["0", "1"]), ("C2 C0", ["2", "0"]), ("C3 C2 C1 C0", ["321", "0"]), ("R2 C1 C0", ["210"]),
    ("C0 C1 X2", ["01", "2"]), ("C2 C0 C1", ["2", "01"])])
def test_what_one_plan_does(steps, expected):
    kinds = {"C": "C2C", "R": "R2C", "X": "C2R"}
    groups = grouped([Step(kinds[step[0]], 1, int(step[1]), 8) for step in steps.split()])
    assert ["".join([str(step.axis) for step in group]) for group in groups] == expected


def numbers(shape, dtype):
    values = RANDOM.normal(size=shape)
    return (values + 1j * RANDOM.normal(size=shape) if dtype in "FD" else values).astype(dtype)


def agree(call, x):
    expected, lazy = call(x), lazyarray.asarray(x)
    found = call(lazy)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    tolerance = 1e-4 if x.dtype.char in "fF" else 1e-11
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
    assert np.array_equal(np.asarray(lazy), x)      # cuFFT overwrites what it reads, in some transforms


@pytest.mark.skipif(not ON_CUDA, reason="needs a GPU")
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("shape", [(8,), (9,), (4, 6), (5, 7), (3, 4, 6), (1, 6), (6, 1)])
@pytest.mark.parametrize("dtype", "fdFD")
def test_values(dtype, shape, norm):
    x = numbers(shape, dtype)
    for axis in range(-1, len(shape)):
        agree(lambda a, axis=axis: np.fft.fft(a, axis=axis, norm=norm), x)
        agree(lambda a, axis=axis: np.fft.ifft(a, axis=axis, norm=norm), x)
        if dtype in "fd":
            agree(lambda a, axis=axis: np.fft.rfft(a, axis=axis, norm=norm), x)
        n = 2 * (shape[axis] - 1)
        for points in (n, n + 1, n + 3) if n else (1, 3):
            agree(lambda a, axis=axis, points=points: np.fft.irfft(a, points, axis, norm), x)
    for name in ("fftn", "ifftn", "rfftn")[:3 if dtype in "fd" else 2]:
        for count in range(1, len(shape) + 1):
            for axes in itertools.permutations(range(len(shape)), count):
                agree(lambda a, name=name, axes=axes: getattr(np.fft, name)(a, axes=axes, norm=norm), x)
                agree(lambda a, name=name, axes=axes: getattr(np.fft, name)(a.T, axes=axes, norm=norm), x)
    if len(shape) > 1:
        agree(lambda a: np.fft.irfftn(a, (4, 5), (0, 1), norm), x)
        last = 2 * (shape[-1] - 1) + 1
        agree(lambda a: np.fft.irfft2(a, (shape[-2], last), norm=norm), x)
        agree(lambda a: np.fft.irfftn(a, (*shape[:-1], last), tuple(range(len(shape))), norm), x)
        agree(lambda a: np.fft.irfft2(a.T, norm=norm), x) if min(shape) > 1 else None


# -- without a GPU, with NumPy in cuFFT's place ----------------------------------------------------

class Arrays(np.ndarray):
    """Arrays with the attribute of CuPy's that tells their order."""

    @property
    def _c_contiguous(self):
        return self.flags.c_contiguous


class Plan:
    """A plan as cuFFT's documentation of the advanced data layout has it, of three axes at most.

    The first element of transform i lies at ``i * dist``; the next one along the last axis is `stride` further on, and
    along the others as many times that as the `embed` after it says. A transform to real numbers overwrites what it
    reads.
    """

    def __init__(self, points, given, stride, dist, got, stride_out, dist_out, kind, count, order, axis, size):
        self.points, self.kind = points, kind
        self.read, self.written = (count, given, dist, stride), (count, got, dist_out, stride_out)
        assert len(points) <= 3 and size == (None if kind in ("C2C", "Z2Z") else got[-1])

    def fft(self, a, out, sign):
        def seen(array, count, lengths, dist, stride):
            strides = [stride * int(np.prod(lengths[i + 1:])) * array.itemsize for i in range(len(lengths))]
            return np.lib.stride_tricks.as_strided(array.reshape(-1), (count, *lengths),
                                                   (dist * array.itemsize, *strides))

        source, target = seen(a, *self.read), seen(out, *self.written)
        axes = tuple(range(1, source.ndim))
        if self.kind[0] in "CZ" and self.kind[-1] in "CZ":
            transform, norm = (np.fft.fftn, None) if sign < 0 else (np.fft.ifftn, "forward")
            target[...] = transform(source, axes=axes, norm=norm)
        elif self.kind[0] in "RD":
            target[...] = np.fft.rfftn(source, axes=axes)
        else:
            target[...] = np.fft.irfft(source, self.points[0], norm="forward")
            source[...] = np.nan


@pytest.fixture
def setting():
    """cuFFT and CuPy's settings of it, of which a test may change some."""
    cache = {}
    config = SimpleNamespace(get_current_callback_manager=lambda: None, use_multi_gpus=False,
                             get_plan_cache=lambda: cache)
    cufft = SimpleNamespace(get_current_plan=lambda: None, PlanNd=Plan,
                            **{f"CUFFT_{kind}": kind for kind in ("C2C", "R2C", "C2R", "Z2Z", "D2Z", "Z2D")})
    cupy = SimpleNamespace(ndarray=lambda shape, dtype: np.zeros(shape, dtype).view(Arrays),
                           ascontiguousarray=lambda a, dtype: np.ascontiguousarray(a, dtype).view(Arrays),
                           fft=SimpleNamespace(config=config))
    return SimpleNamespace(config=config, cufft=cufft, cache=cache, transform=Transforms(cupy, lambda: cufft))


@pytest.mark.parametrize("shape", [(8,), (4, 6), (5, 7), (3, 4, 6), (1, 6), (6, 1)])
@pytest.mark.parametrize("dtype", "fdFD")
def test_plans(setting, dtype, shape):
    x = numbers(shape, dtype)
    tolerance = 1e-4 if dtype in "fF" else 1e-11

    def agrees(steps, factor, expected, x=x):
        given = x.copy().view(Arrays) if x.flags.c_contiguous else x.view(Arrays)
        found = setting.transform(given, tuple(steps), factor)
        if found is None:       # axes between others
            assert any(layout(x.shape, min(axes), max(axes)) is None for axes in [
                [step.axis for step in group] for group in grouped([Step(*step) for step in steps])])
            return
        assert found.dtype == expected.dtype and np.array_equal(given, x) and found.flags.c_contiguous
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())

    for count in range(1, len(shape) + 1):
        for axes in itertools.permutations(range(len(shape)), count):
            order = axes[::-1]
            agrees([("C2C", -1, i, shape[i]) for i in order], 1, np.fft.fftn(x, axes=axes))
            agrees([("C2C", 1, i, shape[i]) for i in order], 1 / np.prod([shape[i] for i in axes]),
                   np.fft.ifftn(x, axes=axes))
            agrees([("C2C", -1, i, x.T.shape[i]) for i in order], 1, np.fft.fftn(x.T, axes=axes), x.T)
            if dtype in "fd":
                agrees([("R2C", -1, axes[-1], shape[axes[-1]]), *(("C2C", -1, i, shape[i]) for i in order[1:])], 1,
                       np.fft.rfftn(x, axes=axes))
    for axis, n in enumerate(shape):
        if dtype in "fd":
            agrees([("R2C", -1, axis, n)], 1, np.fft.rfft(x, axis=axis))
            continue
        agrees([("C2C", -1, axis, n)], 1, np.fft.fft(x, axis=axis))
        agrees([("C2C", 1, axis, n)], 1 / n, np.fft.ifft(x, axis=axis))
        for points in {2 * n - 2, 2 * n - 1} - {0}:
            agrees([("C2R", 1, axis, points)], 1 / points, np.fft.irfft(x, points, axis))
    if dtype in "FD" and len(shape) == 2:
        points = 2 * shape[1] - 1
        agrees([("C2C", 1, 0, shape[0]), ("C2R", 1, 1, points)], 1 / shape[0] / points,
               np.fft.irfft2(x, (shape[0], points)))
    made = len(setting.cache)
    for _ in range(2):
        setting.transform(x.copy().view(Arrays), (("R2C" if dtype in "fd" else "C2C", -1, 0, shape[0]),), 1)
    assert len(setting.cache) == made       # a plan is made once


@pytest.mark.parametrize("change", [
    lambda s: setattr(s.cufft, "get_current_plan", object), lambda s: setattr(s.config, "use_multi_gpus", True),
    lambda s: setattr(s.config, "get_current_callback_manager", object)], ids=["plan", "several GPUs", "callback"])
def test_what_a_program_has_set_up_is_cupys(setting, change):
    x, steps = numbers((4, 8), "D").view(Arrays), (("C2C", -1, 1, 8),)
    assert setting.transform(x, steps, 1) is not None
    change(setting)
    assert setting.transform(x, steps, 1) is None


def test_what_is_left(setting):
    x = numbers((4, 8), "D").view(Arrays)
    for array, step in ((x, ("C2C", -1, 1, 7)), (x, ("C2R", 1, 1, 9)), (x, ("R2C", -1, 1, 8)),
                        (x[:0], ("C2C", -1, 1, 8)), (x.real.astype("e").view(Arrays), ("C2C", -1, 1, 8))):
        assert setting.transform(array, (step,), 1) is None


@pytest.mark.parametrize("dtype, shape, kind", [
    ("d", (1 << 11, 1 << 11), "R2C"), ("d", (1 << 14, 1 << 8), "R2C"), ("D", (1 << 10, 1 << 12), "C2R"),
    ("D", (1 << 13, 1 << 12), "C2C"), ("F", (100_000, 32), "C2C")])
def test_large_strides_are_left(setting, dtype, shape, kind):
    """Of memory that is not touched."""
    points = 2 * (shape[0] - 1) if kind == "C2R" else shape[0]
    x = np.empty(shape, dtype).view(Arrays)
    assert setting.transform(x, ((kind, -1, 0, points),), 1) is None
