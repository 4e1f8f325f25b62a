"""Kernels of reductions: they compile for every dtype, and are at least as exact as CuPy's own."""
from __future__ import annotations

import importlib.util
import math

import numpy as np
import pytest

import lazyarray

ON_CUDA = lazyarray.device().name == "cuda"
if importlib.util.find_spec("cupy") is None:
    pytest.skip("CuPy is not installed: there is nothing to make kernels of", allow_module_level=True)

import cupy  # noqa: E402
from nvrtc import compiled, loops  # noqa: E402

from lazyarray.devices.cuda.kernels import reduction as cuda_reductions  # noqa: E402
from lazyarray.devices.cuda.kernels import reduction_source as text_of  # noqa: E402
from lazyarray.devices.cuda.operations import _extremes_of  # noqa: E402
from lazyarray.devices.program import Extent, Operand, Program  # noqa: E402
from lazyarray.graph.record import reductions as recording_reductions  # noqa: E402
from lazyarray.graph.reduction import Reduction  # noqa: E402

DTYPES = "?bBhHiIlLefdFD"
NAMES = sorted(recording_reductions._DTYPES)


def reductions(dtype):
    """Every reduction of elements of a dtype, and some in each dtype that can be asked for."""
    wanted = [None, *(np.dtype(c) for c in (DTYPES[1:] if dtype.char in "?iF" else ""))]
    found = {recording_reductions.named(name, dtype, w)
             for name in NAMES for w in (wanted if name in ("sum", "mean") else [None])}
    if dtype.kind in "iu":
        found.add(_extremes_of(dtype)[1])
    return sorted(found - {None}, key=repr)


def kernels(program, found, form):
    """Source of a kernel for each reduction, in namespaces of their own: headers take longest to compile."""
    texts = [text_of.texts(program, reduction, form, cupy) for reduction in found]
    rooms = [f"namespace n{i} {{\n{kernel}}}\n".replace('extern "C" ', "") for i, (_, kernel) in enumerate(texts)]
    return texts[0][0] + "".join(rooms)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_reduction_compiles(dtype):
    dtype = np.dtype(dtype)
    found = reductions(dtype)
    assert len(found) >= (7 if dtype.kind == "c" else 12)
    program = Program((Operand(dtype, "flat"),), (), (0,), 0)
    form = text_of.Form("blocks", max(16 // dtype.itemsize, 1), False)
    assert compiled(kernels(program, found, form)) == ""


@pytest.mark.parametrize(("length", "wide"), [(1, True), (4, False)], ids=["64 bits", "packs"])
@pytest.mark.parametrize("name", ["groups", "blocks", "columns"])
def test_every_form_compiles(name, length, wide):
    dtype = np.dtype("f4")
    steps = {step.name: step for step in loops(dtype)}
    program = Program((Operand(dtype, "flat"), Operand(dtype, "strided"), Operand(dtype, "value")),
                      ((steps["subtract"], (0, 1)), (steps["multiply"], (3, 2))), (4,), 2)
    found = [recording_reductions.named(n, dtype, None) for n in ("mean", "std", "argmin")]
    assert compiled(kernels(program, found, text_of.Form(name, length, wide, length > 1))) == ""


def test_what_cupy_has_no_snippet_for_has_no_kernel():
    from lazyarray.devices.program import Step

    f = np.dtype("f4")
    program = Program((Operand(f, "flat"),) * 2, ((Step("add", None, (f, np.dtype("i1")), f), (0, 1)),), (2,), 0)
    reduction = Reduction("sum", f, f, f)
    assert text_of.source(program, reduction, text_of.Form("blocks", 4, False), cupy) is None


@pytest.mark.parametrize("extent", [
    Extent(1, 1, 1), Extent(1, 10**8, 1), Extent(10**4, 10**4, 1), Extent(10**6, 16, 1), Extent(10**7, 3, 1),
    Extent(20, 5 * 10**6, 1), Extent(300, 1000, 1), Extent(1, 10**4, 10**4), Extent(1, 10**6, 16),
    Extent(10**6, 16, 8), Extent(1, 10**8, 3), Extent(7, 7, 7), Extent(3, 2**33, 1), Extent(10**5, 2, 10**4),
])
@pytest.mark.parametrize("length", [1, 4])
@pytest.mark.parametrize("resident", [1, 5, 8])
def test_grids(extent, length, resident):
    """Every result has its blocks, no more of them than CUDA takes, and counters where several share it."""
    grid, threads = cuda_reductions.plan(extent, length, 132, resident), text_of.THREADS
    assert grid.form == cuda_reductions.plan(extent, length, 132).form
    assert grid.splits == 1 or grid.blocks <= 132 * resident
    assert 1 <= grid.blocks < 2**31 and threads % (grid.group * grid.high) == 0
    if grid.form == "columns":
        across = math.ceil(math.ceil(extent.inner / length) / grid.group)
        results = across * math.ceil(extent.outer * grid.group * grid.high / threads)
        assert grid.splits == 1 or grid.group * grid.high == threads, "blocks that share a result have one row"
    elif grid.form == "blocks":
        results = extent.outer
    else:
        assert grid.splits == 1 and grid.group <= 32
        return
    assert grid.blocks == results * grid.splits
    assert grid.shared == (results if grid.splits > 1 else 0) <= cuda_reductions._TURNS
    assert grid.splits * extent.outer * extent.inner < extent.outer * extent.length * extent.inner or grid.splits == 1


@pytest.mark.skipif(not ON_CUDA, reason="needs a GPU")
class TestOnTheGpu:
    """Kernels in one pass with the elements, beside exact sums and CuPy's own reductions."""

    @staticmethod
    def fused(work):
        """The result of a kernel: it is there once it was asked for and compiled."""
        from fused_reductions import taken

        with lazyarray.options(defer_from=0):
            for _ in range(4):
                with taken() as found:
                    result = work()
                if found:
                    return np.asarray(result)
                lazyarray.device().kernels.wait()
        raise AssertionError("it was never taken")

    @staticmethod
    def numbers(dtype, shape):
        values = np.random.default_rng(0).normal(size=shape) * 3
        if np.dtype(dtype).kind == "c":
            values = values + 1j * np.random.default_rng(1).normal(size=shape)
        return abs(values * 10).astype(dtype) if np.dtype(dtype).kind == "u" else values.astype(dtype)

    SHAPES = (((100003,), None), ((300, 1001), 0), ((5, 70000), 1), ((70000, 16), 1), ((3, 4099, 12), 1), ((7,), 0),
              ((20000, 7), 0), ((20000, 7), 1), ((2, 3, 500, 8), (2, 3)))

    @pytest.mark.parametrize(("shape", "axis"), SHAPES)
    @pytest.mark.parametrize("dtype", "fdBl")
    def test_results(self, dtype, shape, axis):
        host = self.numbers(dtype, shape)
        x = lazyarray.asarray(cupy.asarray(host))
        wide = host.astype(np.longdouble)
        for name in NAMES:
            if name in ("norm", "prod", "count") or name.startswith("arg") and type(axis) is tuple:
                continue
            function = getattr(np, name)
            found, expected = self.fused(lambda f=function: f(np.positive(x), axis=axis)), function(host, axis=axis)
            assert found.dtype == expected.dtype and found.shape == expected.shape
            if expected.dtype.kind == "f":
                exact = function(wide, axis=axis)
                scale = np.abs(wide).max() if name in ("sum", "mean") else np.abs(exact)
                eps = np.finfo(expected.dtype).eps
                units = 16 if name in ("var", "std") else 4
                assert np.all(np.abs(found - exact) <= units * eps * np.maximum(np.abs(exact), scale * eps)), name
            else:
                assert np.array_equal(found, expected), name

    @pytest.mark.parametrize("dtype", "efd")
    def test_sums_are_nearer_than_cupys(self, dtype):
        host = (self.numbers("d", 10**6) * 10.0 ** np.random.default_rng(2).integers(-3, 2, 10**6)).astype(dtype)
        array = cupy.asarray(host)
        x, exact = lazyarray.asarray(array.copy()), math.fsum(host.astype(float))
        ours = abs(float(self.fused(lambda: np.positive(x).sum())) - exact)
        assert ours <= abs(float(array.sum()) - exact) or ours <= abs(exact) * np.finfo(dtype).eps / 2
        rows = lazyarray.asarray(array.reshape(1000, 1000).copy())
        ours = self.fused(lambda: np.positive(rows).sum(axis=1)).astype(float)
        exact = np.array([math.fsum(row) for row in host.reshape(1000, 1000).astype(float)])
        assert np.all(np.abs(ours - exact) <= np.abs(exact) * np.finfo(dtype).eps * 0.51)

    @pytest.mark.parametrize("dtype", "efd")
    def test_special_values(self, dtype):
        for values in ([np.nan, 1], [1, np.nan, 0], [np.inf, 1, -np.inf], [-np.inf, 2], [np.inf, np.inf], [3, 1, 3, 1]):
            x = lazyarray.asarray(cupy.asarray(np.array(values, dtype)))
            for name in NAMES:
                if name not in ("norm", "count") and (name, dtype) != ("std", "e"):     # whose root is taken apart
                    function = getattr(np, name)
                    with np.errstate(all="ignore"):
                        expected = function(np.array(values, dtype))
                    found = self.fused(lambda f=function, x=x: f(np.positive(x)))
                    assert np.array_equal(found, expected, equal_nan=True), (name, values)

    def test_a_chain_with_a_row(self):
        host, row = self.numbers("f", (3000, 64)), self.numbers("f", (64,))
        x, y = (lazyarray.asarray(cupy.asarray(a)) for a in (host, row))
        for axis in (None, 0, 1):
            found = self.fused(lambda axis=axis: ((x - y) * (x - y)).sum(axis=axis))
            assert np.allclose(found, ((host - row).astype(float) ** 2).sum(axis=axis), rtol=1e-6)

    def test_blocks_of_two_streams_do_not_share_counters(self):
        x = lazyarray.asarray(cupy.asarray(self.numbers("f", 10**7)))
        expected = self.fused(lambda: np.positive(x).sum())
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
        results = []
        for _ in range(20):
            for stream in streams:
                with stream:
                    results.append(self.fused(lambda: np.positive(x).sum()))
        assert all(result == expected for result in results)
