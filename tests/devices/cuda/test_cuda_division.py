"""What a division of floats leaves, by the text of our kernels: the bits of C's fmod, by the host's compiler too."""
from __future__ import annotations

import ctypes

import numpy as np
import pytest
from emulated_kernels import Array, compiled

from lazyarray.devices.cuda.kernels.snippets import FLOAT_DIVISION, HELPERS

# What the compiler of CUDA brings along.
_BROUGHT = """
#include <cmath>
#define __noinline__
static float __fadd_rn(float a, float b) { return a + b; }
static float __fsub_rn(float a, float b) { return a - b; }
static double __dsub_rn(double a, double b) { return a - b; }
static float __fmul_rn(float a, float b) { return a * b; }
static float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
"""
_KERNEL = """
extern "C" __global__ void __launch_bounds__(32) left_of_{name}(const {name}* a, const {name}* b, {name}* rest,
    {name}* quotient, {name}* remainder, int n) {{
  for (int i = threadIdx.x; i < n; i += 32) {{
    rest[i] = lz_rest(a[i], b[i]);
    quotient[i] = lz_divide(a[i], b[i], remainder[i]);
  }}
}}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    source = _BROUGHT + HELPERS + FLOAT_DIVISION + "".join(_KERNEL.format(name=name) for name in ("float", "double"))
    return compiled(source, tmp_path_factory.mktemp("division"))


def pairs(dtype, n=200_000):
    """Dividends and divisors: any bits, quotients that are nearly whole, and what is at an end of all numbers."""
    rng, info = np.random.default_rng(5), np.finfo(dtype)
    bits = rng.integers(0, 256, (2, n * dtype.itemsize), np.uint8).view(dtype)
    b = (rng.integers(1, 1000, n) / 8).astype(dtype)
    whole = b * rng.integers(-10**6, 10**6, n).astype(dtype)
    ends = np.array([0, 1, 3, 0.1, info.tiny, info.smallest_subnormal, info.max, np.inf, np.nan], dtype)
    ends = np.concatenate([ends, -ends])
    a, b = np.concatenate([bits, [np.nextafter(whole, 0), b], [np.nextafter(whole, 1e9).astype(dtype), -b], [whole, b],
                           [bits[0], np.resize(ends, n)], np.stack(np.meshgrid(ends, ends)).reshape(2, -1)], axis=1)
    return np.ascontiguousarray(a), np.ascontiguousarray(b)


@pytest.mark.parametrize("name", ["float", "double"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_bit(kernels, name):
    dtype = np.dtype("f4" if name == "float" else "f8")
    given = pairs(dtype)
    a, b, *results = [Array.of(x) for x in given] + [Array(given[0].shape, dtype) for _ in range(3)]
    slots = [ctypes.c_void_p(x.data.ptr) for x in (a, b, *results)] + [ctypes.c_int(a.size)]
    table = (ctypes.c_void_p * len(slots))(*[ctypes.addressof(slot) for slot in slots])
    assert kernels[f"left_of_{name}"](1, 32, 0, table) == 0
    expected = np.fmod(*given), np.floor_divide(*given), np.remainder(*given)
    for what, found, right in zip(("rest", "quotient", "remainder"), results, expected):
        found = found.get()
        same = (found == right) & (np.signbit(found) == np.signbit(right)) | np.isnan(found) & np.isnan(right)
        assert same.all(), (what, [x[~same][:3] for x in (*given, found, right)])
