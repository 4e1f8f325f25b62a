"""Fourier transforms by cuFFT itself: how an axis is walked; and on a GPU, that the values are NumPy's."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.cuda.transforms import layout

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


@pytest.mark.skipif(not ON_CUDA, reason="needs a GPU")
def test_what_a_program_has_set_up_is_cupys():
    import cupy

    x = numbers((4, 8), "D")
    lazy = lazyarray.asarray(x)
    plan = cupy.fft.config.get_plan_cache()
    before = plan.get_curr_size()
    np.fft.ifft(lazy, axis=0).sum()
    assert plan.get_curr_size() > before or before == plan.get_size()   # where CuPy keeps its own
