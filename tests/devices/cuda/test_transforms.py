"""Fourier transforms by cuFFT itself: how an axis is walked; and on a GPU, that the values are NumPy's."""
from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.cuda.transforms import Transforms, layout

ON_CUDA = lazyarray.device().name == "cuda"
RANDOM = np.random.default_rng(1)


@pytest.mark.parametrize(("shape", "axis", "expected"), [
    ((8,), 0, (1, 1, True)), ((3, 8), 1, (3, 1, True)), ((8, 3), 0, (3, 3, False)), ((2, 3, 8), 2, (6, 1, True)),
    ((8, 2, 3), 0, (6, 6, False)), ((2, 8, 3), 1, None), ((1, 8, 3), 1, (3, 3, False)), ((2, 8, 1), 1, (2, 1, True))])
def test_how_an_axis_is_walked(shape, axis, expected):
    assert layout(shape, axis) == expected


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
    """A plan as cuFFT's documentation of the advanced data layout has it: element k of transform i lies at
    ``i * dist + k * stride``. A transform to real numbers overwrites what it reads."""

    def __init__(self, points, given, stride, dist, got, stride_out, dist_out, kind, count, order, axis, size):
        self.points, self.kind = points[0], kind
        self.read, self.written = (count, given[0], dist, stride), (count, got[0], dist_out, stride_out)

    def fft(self, a, out, sign):
        def seen(array, count, length, dist, stride):
            return np.lib.stride_tricks.as_strided(array.reshape(-1), (count, length),
                                                   (dist * array.itemsize, stride * array.itemsize))

        source, target = seen(a, *self.read), seen(out, *self.written)
        if self.kind[0] in "CZ" and self.kind[-1] in "CZ":
            target[...] = np.fft.fft(source) if sign < 0 else np.fft.ifft(source, norm="forward")
        elif self.kind[0] in "RD":
            target[...] = np.fft.rfft(source)
        else:
            target[...] = np.fft.irfft(source, self.points, norm="forward")
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
                           fft=SimpleNamespace(config=config))
    return SimpleNamespace(config=config, cufft=cufft, cache=cache, transform=Transforms(cupy, lambda: cufft))


@pytest.mark.parametrize("shape", [(8,), (4, 6), (5, 7), (3, 4, 6), (1, 6), (6, 1)])
@pytest.mark.parametrize("dtype", "fdFD")
def test_plans(setting, dtype, shape):
    x = numbers(shape, dtype)
    tolerance = 1e-4 if dtype in "fF" else 1e-11

    def agrees(steps, factor, expected):
        given = x.copy().view(Arrays)
        found = setting.transform(given, steps, factor)
        if found is None:       # an axis between others
            assert any(layout(shape, axis) is None for _, _, axis, _ in steps)
            return
        assert found.dtype == expected.dtype and np.array_equal(given, x)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())

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
        setting.transform(x.copy().view(Arrays), [("R2C" if dtype in "fd" else "C2C", -1, 0, shape[0])], 1)
    assert len(setting.cache) == made       # a plan is made once


@pytest.mark.parametrize("change", [
    lambda s: setattr(s.cufft, "get_current_plan", object), lambda s: setattr(s.config, "use_multi_gpus", True),
    lambda s: setattr(s.config, "get_current_callback_manager", object)], ids=["plan", "several GPUs", "callback"])
def test_what_a_program_has_set_up_is_cupys(setting, change):
    x, steps = numbers((4, 8), "D").view(Arrays), [("C2C", -1, 1, 8)]
    assert setting.transform(x, steps, 1) is not None
    change(setting)
    assert setting.transform(x, steps, 1) is None


def test_what_is_left(setting):
    x = numbers((4, 8), "D").view(Arrays)
    for array, steps in ((x.T, [("C2C", -1, 1, 4)]), (x, [("C2C", -1, 1, 7)]), (x, [("C2R", 1, 1, 9)]),
                         (x, [("R2C", -1, 1, 8)]), (x.real.copy(), [("C2C", -1, 1, 8)]), (x[:0], [("C2C", -1, 1, 8)])):
        assert setting.transform(array, steps, 1) is None
