"""Every step that is recorded compiles, and gives in a kernel the bits that the device's own functions give one by one.
"""
from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.base import HOLDABLE
from lazyarray.functions import tables
from lazyarray.graph.record import loops
from lazyarray.storage import handles

ON_CUDA = lazyarray.device().name == "cuda"
if importlib.util.find_spec("cupy") is None:
    pytest.skip("CuPy is not installed: there is nothing to make kernels of", allow_module_level=True)

import cupy  # noqa: E402
from nvrtc import compiled  # noqa: E402

from lazyarray.devices.cuda.kernels import elementwise_source, launch_plan, snippets  # noqa: E402
from lazyarray.devices.program import Operand, Program, Step  # noqa: E402

DTYPES = sorted({np.dtype(f"{d.kind}{d.itemsize}") if d.kind in "iu" else d for d in HOLDABLE}, key=lambda d: d.str)
bool_, int64 = np.dtype(bool), np.dtype(np.int64)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def steps_of(dtype):
    """The steps beside CuPy's ufuncs whose first operand is of `dtype`."""
    found = [Step("where", None, (bool_, dtype, dtype), dtype), Step("value", None, (dtype,), dtype)]
    found += [Step("astype", None, (dtype,), target) for target in DTYPES if dtype.kind != "c" or target.kind == "c"]
    if dtype.kind == "c":
        real = np.dtype(dtype.char.lower())
        found += [Step(name, None, (dtype,), real) for name in ("real", "imag")]
        found += [Step("own_divide", None, (dtype, dtype), dtype), Step("own_log2", None, (dtype,), dtype)]
        found += [Step("own_logical_not", None, (dtype,), bool_)]
        found += [Step(f"own_logical_{name}", None, (dtype, dtype), bool_) for name in ("and", "or", "xor")]
    if dtype.kind in "fc":
        found += [Step("round", None, (dtype, int64), dtype)]
    if dtype.kind == "f":
        found += [Step(f"own_{name}", None, (dtype, dtype), dtype) for name in ("floor_divide", "remainder", "fmod")]
    if dtype.kind in "iu":
        found += [Step(f"own_{name}_shift", None, (dtype, dtype), dtype) for name in ("left", "right")]
        found += [Step("own_reciprocal", None, (dtype,), dtype)]
        found += [Step("own_fmod", None, (dtype, dtype), dtype)] * (dtype.itemsize == 8)
    if dtype.kind in "iuf":
        found += [Step("index", None, (), dtype, None, True),
                  Step("at_place", None, (dtype, dtype, int64), dtype, None, True)]
    compared = ("less", "equal", "not_equal", "greater_equal") + ("logical_and", "logical_or") * (dtype.kind != "c")
    return found + [Step(name, None, (dtype, dtype), bool_) for name in compared]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_step_compiles(dtype):
    inputs = {d: i for i, d in enumerate(dict.fromkeys((dtype, bool_, int64)))}
    steps = tuple((step, tuple(inputs[d] for d in step.inputs)) for step in steps_of(dtype))
    program = Program(tuple(Operand(d, "flat") for d in inputs), steps,
                      tuple(range(len(inputs), len(inputs) + len(steps))), 0)
    forms = {"once": launch_plan.Form(("flat",) * len(inputs), 0, 1, 1, False)}
    text = elementwise_source.source(program, cupy, forms)
    assert text is not None and compiled(text) == ""


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_steps_that_take_compile(dtype):
    where = [Operand(d, "flat") for d in (int64, np.dtype(np.int32), np.dtype(np.uint8))]
    inputs = (Operand(dtype, "table"), *where, *[Operand(int64, "value")] * 4)
    steps = [(Step("take", None, (dtype, int64, int64), dtype), (0, 1, 4)),
             (Step("take", None, (dtype, *[o.dtype for o in where], *(int64,) * 3), dtype), (0, 1, 2, 3, 4, 5, 6)),
             (Step("take_rows", None, (dtype, where[1].dtype, int64, int64), dtype, None, True), (0, 2, 4, 5)),
             (Step("take_along", None, (dtype, int64, *(int64,) * 4), dtype, None, True), (0, 1, 4, 5, 6, 7))]
    if dtype.kind != "c" and dtype.char != "e":
        inputs += (Operand(dtype, "flat"),)
        steps += [(Step(f"search_{side}", None, (dtype, dtype, int64), int64), (0, 8, 4)) for side in ("left", "right")]
    program = Program(inputs, tuple(steps), tuple(range(len(inputs), len(inputs) + len(steps))), 0)
    reads = ("table", *("flat",) * 3, *("value",) * 4, *("flat",) * (len(inputs) - 8))
    forms = {"packs": launch_plan.packed(program, reads, 0, False), "single": launch_plan.general(program, True, reads)}
    text = elementwise_source.source(program, cupy, forms)
    assert text is not None and compiled(text) == ""


#: What is computed at once, and why.
NOT_RECORDED = {
    **dict.fromkeys(("frexp", "modf"), ("?bBhHiIlLefd", "they have two results")),
    "divmod": ("?bBhHiIlLefd", "it is recorded as a quotient and a remainder"),
    **dict.fromkeys(("isfinite", "isinf", "isnan"), ("?bBhHiIlL", "CuPy takes no whole numbers there")),
    "clip": ("?bBhHiIlLefdFD", "np.clip is recorded, as two steps"),
    "spacing": ("?bBhHiIlLefd", "it is computed at once, where the device can"),
}


def test_every_other_ufunc_is_recorded(monkeypatch):
    monkeypatch.setattr(type(lazyarray.device()), "fuses", lambda self, step: snippets.snippet(
        step, cupy) is not None)
    monkeypatch.setattr(loops, "rules", {})
    missing = {}
    for ufunc in tables.UFUNCS:
        for char in "?bBhHiIlLefdFD" * (ufunc.signature is None):
            dtypes = (np.dtype(char),) * ufunc.nin
            try:
                ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout))
            except TypeError:
                continue
            if loops.rule_of((ufunc, *dtypes)) is None:
                missing[ufunc.__name__] = missing.get(ufunc.__name__, "") + char
    assert missing == {name: chars for name, (chars, _) in NOT_RECORDED.items()}


def test_a_step_has_a_text_or_is_not_recorded():
    f, i = np.dtype("f4"), np.dtype("i4")
    assert snippets.snippet(Step("own_remainder", None, (i, i), i), cupy) is None
    assert snippets.snippet(Step("less", None, (f, i), bool_), cupy) is None
    assert snippets.snippet(Step("add", None, (f, i), f), cupy) is None


def settled(work, *arrays):
    """What some work gives, all of it in one kernel."""
    for _ in range(3):
        found = work(*arrays)
        handles.device_of(found[-1])
        for array in found:
            handles.device_of(array)
        lazyarray.device().kernels.wait()
    return found


def numbers(dtype, n=5003, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        found = rng.integers(info.min, info.max, n, dtype, True)
        found[: n // 2] = rng.integers(max(info.min, -9), 9, n // 2)
        return found
    found = rng.normal(size=n) * 10.0 ** rng.integers(-5, 6, n)
    if dtype.kind == "c":
        found = found + 1j * found[::-1]
    found = found.astype(dtype)
    found[:8] = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1, 2.5, -2.5]
    return found


def same_bits(found, expected):
    a, b = np.asarray(found), np.asarray(expected)
    assert (a.dtype, a.shape, found.strides) == (b.dtype, b.shape, expected.strides)
    equal = (a == b) | ((a != a) & (b != b))
    if a.dtype.kind == "c":
        # Within a quotient of complex numbers the compiler may contract, as it likes in each kernel.
        equal |= abs(a - b) <= np.finfo(a.dtype).eps * abs(b)
    assert equal.all(), (a[~equal][:3], b[~equal][:3])
    if a.dtype.kind == "f":
        nan = np.isnan(a)
        assert np.array_equal(np.signbit(a[~nan]), np.signbit(b[~nan]))


def against_unfused(work, *arrays):
    """`work` gives a tuple of arrays, the last of which needs the others."""
    with lazyarray.options(defer_from=None):
        expected = work(*arrays)
    for one, other in zip(settled(work, *arrays), expected):
        same_bits(one, other)


def steps_in_one(v, target, back):
    cast = v.astype(target)
    return (equal := (v == v).astype(target)), cast, np.where(equal, cast, cast).astype(back)


def mixed(a, b):
    return (product := a * b), (chosen := np.where(a > 1, a, b)), (a < b) + product * 2 + chosen


@pytest.mark.skipif(not ON_CUDA, reason="needs a GPU")
class TestOnTheGpu:
    @pytest.mark.parametrize("target", DTYPES, ids=str)
    @pytest.mark.parametrize("source", DTYPES, ids=str)
    def test_casts(self, source, target):
        if source.kind == "c" != target.kind:
            return
        back = source if target.kind != "c" or source.kind == "c" else target
        against_unfused(lambda v: steps_in_one(v, target, back), lazyarray.asarray(numbers(source)))

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_mixed(self, dtype):
        x = lazyarray.asarray(numbers(dtype))
        for other in ("?", "u1", "i4", "u8", "f2", "f4", "c8"):
            against_unfused(mixed, x, lazyarray.asarray(numbers(np.dtype(other), seed=1)))

    @pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "b"], ids=str)
    def test_functions(self, dtype):
        x, y = lazyarray.asarray(numbers(dtype)), lazyarray.asarray(numbers(dtype, seed=1))
        works = [lambda a, b: a.clip(b, 3) + 1, lambda a, b: np.where(a, a, b), lambda a, b: a.round() + a,
                 lambda a, b: (a > b) & (a < 2) | (b == a), lambda a, b: a ** 2 - b]
        if dtype.kind in "fc":
            works += [lambda a, b: a.round(2) - b, lambda a, b: np.round(a, -1) * b, lambda a, b: a / b + a]
        if dtype.kind == "f":
            works += [lambda a, b: a // b, lambda a, b: a % b + b, lambda a, b: a % 3 - a // 3, lambda a, b: a ** 1.5]
        if dtype.kind == "c":
            works += [lambda a, b: (a * b).real, lambda a, b: (a + b).imag * (a - b).real, lambda a, b: np.log2(a),
                      lambda a, b: np.logical_and(a, b), lambda a, b: np.logical_xor(a - a, b)]
        if dtype.kind in "iu":
            works += [lambda a, b: np.reciprocal(a), lambda a, b: np.fmod(a, b)]
            works += [lambda a, b: a // b + a % b, lambda a, b: (a << 3) | (b >> 1), lambda a, b: a >> (b & 7),
                      lambda a, b: a << b]
        def every(a, b):
            made = [work(a, b) for work in works]
            last = made[0] != made[0]
            for array in made:
                last = last | (array == array)
            return *made, last

        against_unfused(every, x, y)
        against_unfused(every, x[:5000].reshape(50, 100).T, y[:5000].reshape(50, 100).T)
        against_unfused(every, x[1:-1:3], y[::-1][1:-1:3])

    def test_a_stencil(self):
        u = lazyarray.asarray(numbers(np.dtype("f4"), 90 * 70).reshape(90, 70))
        against_unfused(lambda v: (
            (v[1:-1, 2:] + v[1:-1, :-2] + v[2:, 1:-1] + v[:-2, 1:-1] - 4 * v[1:-1, 1:-1]) * 0.1,), u)
        against_unfused(lambda v: (v.T * v.T[:, ::-1] + v[0, 0],), u[:70, :70])

    def test_orders(self):
        x = lazyarray.asarray(numbers(np.dtype("f8"), 6 * 7 * 8).reshape(6, 7, 8))
        for axes in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0)):
            against_unfused(lambda v, axes=axes: (v.transpose(axes) * 2 + v.transpose(axes)[:1],), x)
            against_unfused(lambda v, axes=axes: (
                (v * 2).transpose(axes) * v.transpose(axes) - v.transpose(axes)[:, 0:1],), x)
