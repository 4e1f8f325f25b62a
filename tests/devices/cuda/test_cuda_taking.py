"""Steps that take elements of a table, by the text of our kernels: no thread reads any other memory.

Threads beyond the last element compute, too, with whatever is there, and places that no element has.
"""
from __future__ import annotations

import ctypes

import numpy as np
import pytest
from emulated_kernels import Array, compiled

from lazyarray.devices.cuda.kernels.snippets import HELPERS, snippet
from lazyarray.devices.program import Step

# What the compiler of CUDA brings along.
_BROUGHT = """
static float __fadd_rn(float a, float b) { return a + b; }
static float __fsub_rn(float a, float b) { return a - b; }
static double __dsub_rn(double a, double b) { return a - b; }
static float __fmul_rn(float a, float b) { return a * b; }
"""
_INT, _LONG = np.dtype(np.int32), np.dtype(np.int64)
#: Positions along axes -> how many numbers there are besides.
STEPS = {"take": 0, "take_rows": 1}


def step_of(name, count):
    numbers = 4 if name == "take_along" else count + STEPS[name]
    return Step(name, None, (_INT, *(_LONG,) * (count + numbers)), _INT, None, name != "take")


def kernel(name, count):
    step = step_of(name, count)
    text, _ = snippet(step, None)
    numbers = len(step.inputs) - 1 - count
    positions = "".join(f"const long long* i{k}, " for k in range(1, count + 1))
    values = ", ".join(f"const long long in{count + 1 + k}" for k in range(numbers))
    here = "".join(f"const long long in{k} = i{k}[at]; " for k in range(1, count + 1))
    return f"""
extern "C" __global__ void __launch_bounds__(32) {name}{count}(const int* in0, int* to, {positions}const long long n,
    {values}) {{
  for (long long at = threadIdx.x; at < n; at += 32) {{
    typedef int out0_type; int out0; {here}
    {text};
    to[at] = out0;
  }}
}}
"""


CASES = [("take", 1), ("take", 2), ("take", 3), ("take_rows", 1), ("take_rows", 2), ("take_along", 1)]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    return compiled(_BROUGHT + HELPERS + "".join(kernel(*case) for case in CASES), tmp_path_factory.mktemp("taking"))


def run(function, table, positions, numbers, count):
    """What so many threads read; memory around the table is -1."""
    memory = Array.of(np.concatenate([np.full(4096, -1, _INT), table.ravel(), np.full(4096, -1, _INT)]))
    found, given = Array((count,), _INT), [Array.of(np.resize(p.ravel(), count)) for p in positions]
    slots = [ctypes.c_void_p(memory.data.ptr + 4 * 4096), ctypes.c_void_p(found.data.ptr)]
    slots += [ctypes.c_void_p(p.data.ptr) for p in given] + [ctypes.c_longlong(n) for n in (count, *numbers)]
    addresses = (ctypes.c_void_p * len(slots))(*[ctypes.addressof(slot) for slot in slots])
    assert function(1, 32, 0, addresses) == 0
    return found.get()


@pytest.mark.parametrize("name,count", CASES)
@pytest.mark.parametrize("rubbish", [False, True])
def test_elements_of_the_table_alone(kernels, name, count, rubbish):
    rng = np.random.default_rng(count)
    shape = {"take": (5, 4, 3)[:count], "take_rows": (5, 4, 3), "take_along": (4, 5, 6)}[name]
    table = np.arange(np.prod(shape), dtype=_INT).reshape(shape)
    lengths = shape[:count] if name != "take_along" else shape[1:2]
    where = (7,) if name != "take_along" else (4, 3, 6)
    positions = [rng.integers(-n, n, where) for n in lengths]
    if name == "take":
        expected, numbers, each = table[tuple(positions)], lengths, 1
    elif name == "take_rows":
        expected, each = table[tuple(positions)], int(np.prod(shape[count:]))
        numbers = *lengths, each
    else:
        expected, numbers, each = np.take_along_axis(table, positions[0], 1), (5, 18, 6, 4), 1
    given, size = [np.repeat(p.ravel(), each) for p in positions], expected.size
    if rubbish:
        given = [np.concatenate([p, rng.integers(-2**62, 2**62, 3 * size)]) for p in given]
    found = run(kernels[f"{name}{count}"], table, given, numbers, 4 * size)
    np.testing.assert_array_equal(found[:size], expected.ravel())
    assert found.min() >= 0 and found.max() < table.size


SEARCHES = [(side, dtype) for side in ("left", "right") for dtype in ("int", "unsigned char", "double")]


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    text = _BROUGHT + HELPERS
    for side, name in SEARCHES:
        dtype = {"int": _INT, "unsigned char": np.dtype(np.uint8), "double": np.dtype(float)}[name]
        step, _ = snippet(Step(f"search_{side}", None, (dtype, dtype, _LONG), _LONG), None)
        text += f"""
extern "C" __global__ void __launch_bounds__(32) {side}_{name.split()[0]}(const {name}* in0, const {name}* values,
    long long* to, const long long n, const long long in2) {{
  for (long long at = threadIdx.x; at < n; at += 32) {{
    long long out0; const {name} in1 = values[at];
    {step};
    to[at] = out0;
  }}
}}
"""
    return compiled(text, tmp_path_factory.mktemp("searching"))


@pytest.mark.parametrize(("side", "name"), SEARCHES)
def test_where_values_are_among_sorted_ones(searches, side, name):
    dtype = {"int": "i4", "unsigned char": "u1", "double": "f8"}[name]
    rng = np.random.default_rng(3)
    for count in (0, 1, 2, 100):
        keys, values = np.sort((rng.random(count) * 90).astype(dtype)), (rng.random(200) * 99).astype(dtype)
        values[:count] = keys[:200]
        if dtype == "f8":
            keys[count - count // 9:] = np.nan
            values[150:153] = np.nan, np.inf, -np.inf
        found, given = Array((200,), _LONG), [Array.of(np.append(keys, keys[:0])), Array.of(values)]
        slots = [*[ctypes.c_void_p(p.data.ptr) for p in (*given, found)], *map(ctypes.c_longlong, (200, count))]
        addresses = (ctypes.c_void_p * len(slots))(*[ctypes.addressof(slot) for slot in slots])
        assert searches[f"{side}_{name.split()[0]}"](1, 32, 0, addresses) == 0
        np.testing.assert_array_equal(found.get(), np.searchsorted(keys, values, side))
