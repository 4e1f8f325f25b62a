"""Reductions at the end of recorded work give what they give of an array that was computed before."""
from __future__ import annotations

import numpy as np
import pytest
from fused_reductions import ON_CUDA, deferred, function, fused, numbers, pending, taken  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st

import lazyarray
from lazyarray.graph import reduction
from lazyarray.graph.record import reductions as recording_reductions

DTYPES = "?bBhHiIlLefdFD"
NAMES = ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "argmin", "argmax")



def same(found, expected, exact):
    """Whether the results are alike; of floating point numbers `exact` ones only where additions have one order."""
    found = np.asarray(found)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert all(n == 1 or a == b for n, a, b in zip(found.shape, found.strides, expected.strides))
    if exact or expected.dtype.kind in "biu":
        assert np.array_equal(found, expected, equal_nan=expected.dtype.kind in "fc")
    else:
        assert np.allclose(found, expected, rtol=64 * np.finfo(expected.dtype).eps, equal_nan=True)


def chain(x):
    return np.positive(x) if x.dtype != bool else np.logical_not(np.logical_not(x))


class TestWhatIsTaken:
    @pytest.mark.parametrize("name", [*NAMES, "norm", "count"])
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_every_reduction_of_every_dtype(self, name, dtype):
        plain = numbers(dtype, (3, 4))
        x = lazyarray.asarray(plain)
        chain(x)
        for axis in (None, 0, 1) if not ON_CUDA or dtype == "f" else (1,):      # each has a kernel to be compiled
            def call(axis=axis):
                y = chain(x)
                return function(name)(y, axis=axis), y

            (result, y), found = fused(call)
            with np.errstate(all="ignore"):
                expected = function(name)(plain, axis=axis)
            with lazyarray.options(defer_from=None):
                unfused = np.asarray(function(name)(chain(x), axis=axis))
            same(result, unfused, exact=not ON_CUDA)
            same(result, np.asarray(expected), exact=name in ("min", "max"))
            complex_order = dtype in "FD" and name in ("min", "max", "argmin", "argmax", "prod")
            root_of_half = dtype == "e" and name == "std"       # the variance may overflow before
            assert found == ([] if complex_order or root_of_half else [name])
            assert pending(y) == bool(found)

    @pytest.mark.parametrize("call", [
        lambda y: y.sum(), lambda y: np.sum(y), lambda y: np.add.reduce(y, axis=None),
        lambda y: y.sum(axis=-1), lambda y: np.add.reduce(y), lambda y: y.sum((0, 1)), lambda y: y.sum(keepdims=True),
        lambda y: y.mean(1, keepdims=True), lambda y: y.sum(dtype="f4"), lambda y: np.mean(y, dtype=np.float32),
        lambda y: np.maximum.reduce(y, axis=1), lambda y: np.multiply.reduce(y), lambda y: y.std(ddof=1),
        lambda y: np.var(y, axis=0, ddof=2), lambda y: np.std(y, axis=1, correction=1.5),
        lambda y: np.linalg.norm(y), lambda y: np.linalg.norm(y, axis=1),
        lambda y: np.linalg.norm(y, 2, 0), lambda y: np.linalg.norm(y, "fro"), lambda y: y.argmin(1),
        lambda y: np.argmax(y), lambda y: np.count_nonzero(y > 2, axis=0, keepdims=True),
        lambda y: np.amax(y, 0), lambda y: np.logical_or.reduce(y, axis=1),
        lambda y: np.linalg.norm(y, 1, axis=0), lambda y: np.linalg.norm(y, np.inf, 1, True),
        lambda y: np.linalg.norm(y.reshape(-1), -np.inf), lambda y: np.linalg.norm(y[:, 0] * 1, 1),
        lambda y: y.T.sum(0), lambda y: y.reshape(-1).max(), lambda y: y.T.reshape(4, 5, 1).min(1),
    ])
    def test_every_way_to_ask(self, call):
        plain = numbers("d", (5, 4))
        x = lazyarray.asarray(plain)
        result, found = fused(lambda: call(x * 2))
        assert len(found) == 1
        same(result, np.asarray(call(plain * 2)), exact=False)

    @pytest.mark.parametrize("call", [
        lambda y: y.sum(where=y > 0), lambda y: y.sum(initial=3), lambda y: y.sum(out=lazyarray.asarray(0.0)[...]),
        lambda y: y.max(initial=9), lambda y: np.var(y, mean=y.mean(keepdims=True)),
        lambda y: y.sum(axis=()), lambda y: y[:2].sum(), lambda y: y.sum(dtype=complex).imag,
        lambda y: np.linalg.norm(y, 1), lambda y: np.linalg.norm(y, 2), lambda y: np.linalg.norm(y, -2, (0, 1)),
        lambda y: np.linalg.norm(y, 0, 1), lambda y: np.linalg.norm(y, 3, 1), lambda y: np.linalg.norm(y, 1, (0, 1)),
        lambda y: np.add.reduce(y, out=lazyarray.asarray(np.zeros(4))), lambda y: np.argmin(y.T),
        lambda y: np.nansum(y), lambda y: y[None, :, ::-1].sum(2),
    ])
    def test_what_else_can_be_asked_is_as_it_was(self, call):
        plain = numbers("d", (5, 4))
        x = lazyarray.asarray(plain)
        result, expected = call(x * 2), call(plain * 2)
        assert np.allclose(result, expected) and result.dtype == expected.dtype

    @pytest.mark.parametrize("call", [
        lambda y: y.sum(2), lambda y: y.sum((0, 0)), lambda y: y.sum(1.5), lambda y: y.sum(keepdims="no", axis=0.5),
        lambda y: y.mean(ddof=1), lambda y: y.std(correction=1), lambda y: y.argmin((0, 1)), lambda y: y.sum(0, 0),
        lambda y: np.linalg.norm(y, "nuclear"), lambda y: np.maximum.reduce(y, axis=5), lambda y: y.max(dtype=int),
        lambda y: y[:0].max(), lambda y: np.sum(y, 0, axis=0), lambda y: np.var(y, ddof=1, correction=1),
    ])
    def test_mistakes_are_numpys(self, call):
        plain = numbers("d", (5, 4))
        with pytest.raises(Exception) as expected:
            call(plain * 2)
        with pytest.raises(type(expected.value)):
            call(lazyarray.asarray(plain) * 2)

    def test_nothing_and_no_freedom(self):
        x = lazyarray.asarray(np.ones((3, 1)))
        assert (x * 2)[:0].sum() == 0
        with pytest.warns(RuntimeWarning):
            assert np.isnan((x * 2).var(axis=1, ddof=1)).all()

    @pytest.mark.parametrize("shape", [(7,), (2, 3, 4), (1, 5), (5, 1), (2, 1, 3), (1, 1), (2, 3, 2, 2)])
    @pytest.mark.parametrize("order", ["C", "F", "K"])
    def test_axes_and_orders(self, shape, order):
        plain = numbers("d", shape)
        plain = np.moveaxis(plain, 0, -1).copy().transpose(*np.roll(range(len(shape)), 1)) if order == "K" else (
            np.asarray(plain, order=order))
        x = lazyarray.asarray(plain)
        every = [None, *range(-1, len(shape)), (0, len(shape) - 1), tuple(range(len(shape)))]
        for axis in every:
            if type(axis) is tuple and len(set(axis)) < len(axis):
                continue
            for keepdims in (False, True):
                found, expected = ((z * 3).max(axis=axis, keepdims=keepdims) for z in (x, plain))
                same(found, np.asarray(expected), True)
                if type(axis) is not tuple:
                    found, expected = ((z * 3).argmin(axis=axis, keepdims=keepdims) for z in (x, plain))
                    same(found, np.asarray(expected), True)

    def test_arrays_that_are_computed(self):
        plain = numbers("f", (6, 8, 4))
        x = lazyarray.asarray(plain)
        for view in (lambda z: z, lambda z: z.T, lambda z: z[::2, 1:], lambda z: z.transpose(1, 0, 2)[:, :, ::-1]):
            for axis in (None, 0, 1, 2):
                result, found = fused(lambda view=view, axis=axis: np.var(view(x), axis=axis))
                assert found == ["var"]
                assert np.allclose(result, np.var(view(plain), axis=axis), rtol=1e-5)

    def test_where_the_device_library_is_quick_it_reduces_what_is_computed(self):
        x = lazyarray.asarray(numbers("f", (1024, 3)))
        for call, name in ((lambda: x.sum(axis=0), ["sum"]), (lambda: x.argmin(0), ["argmin"]), (lambda: x.sum(), []),
                           (lambda: x.max(axis=1), []), (lambda: np.linalg.norm(x, axis=1), ["norm"])):
            assert fused(call)[1] == name

    def test_what_others_may_write_is_read_the_general_way(self):
        x = lazyarray.asarray(numbers("d", (6,)))
        alias = np.asarray(x)
        alias[0] = 100
        with taken() as found:
            assert np.allclose(np.std(x), np.std(np.asarray(x)))
        assert not found

    def test_without_deferring(self):
        x = lazyarray.asarray(numbers("d", (6,)))
        y = x * 2
        with lazyarray.options(defer_from=None), taken() as found:
            assert y.sum() == np.asarray(x).sum() * 2
        assert not found


class TestSpecialValues:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("values", [
        [np.nan, 1], [1, np.nan, 0], [np.inf, 1, -np.inf], [-np.inf, 2], [np.inf, np.inf], [0.0, -0.0], [-0.0, 0.0],
        [3, 1, 3, 1], [np.nan, np.nan], [5]])
    @pytest.mark.parametrize("dtype", "efd")
    def test_they_are_those_of_the_general_way(self, name, values, dtype):
        x = lazyarray.asarray(np.array(values, dtype))
        with np.errstate(all="ignore"):
            result = np.asarray(fused(lambda: function(name)(np.positive(x)))[0])
            with lazyarray.options(defer_from=None):
                expected = np.asarray(function(name)(np.positive(x)))
        same(result, expected, exact=not ON_CUDA)

    def test_integers_wrap_around(self):
        x = lazyarray.asarray(np.array([2**62, 2**62, 2**62], np.int64))
        assert (x + 0).sum() == np.array([2**62, 2**62, 2**62]).sum()
        y = lazyarray.asarray(np.array([200, 100], np.uint8))
        assert (y + 0).sum() == 300 and (y + 0).sum(dtype=np.uint8) == 44


@pytest.mark.skipif(ON_CUDA, reason="one GPU here")
class TestDevicesAndStreams:
    @pytest.mark.together
    def test_where_the_elements_are(self):
        device = lazyarray.device()
        with device.with_count(2):
            with device.on(1):
                x = lazyarray.asarray(numbers("d", (6,)))
                y = x * 2
            for z in (y.sum(), y.T.argmax(), (x * 3).reshape(2, 3).max(axis=0), np.std(x)):
                assert device.device_of(z._self_array) == 1
                assert np.isfinite(np.asarray(z)).all()

    def test_the_stream_of_the_elements_is_waited_for(self):
        device = lazyarray.device()
        with device.delayed():
            x = lazyarray.asarray(numbers("d", (1000,)))
            with device.new_stream():
                y = x * 2
                total = y.sum()
            assert total == (numbers("d", (1000,)) * 2).sum()
            with device.new_stream():
                assert (y - total).max() == (numbers("d", (1000,)) * 2).max() - float(total)


OPERATORS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "square": np.square,
    "absolute": np.absolute, "greater": np.greater,
}


@given(st.data())
def test_any_chain_and_any_reduction_give_what_numpy_gives(data):
    dtype = data.draw(st.sampled_from("fdil"))
    shape = data.draw(st.sampled_from([(6,), (2, 3), (3, 1, 4), (2, 2, 2, 2)]))
    plain = [numbers(dtype, shape, seed) for seed in range(2)]
    arrays = [lazyarray.asarray(p) for p in plain]
    for _ in range(data.draw(st.integers(1, 6))):
        ufunc = OPERATORS[data.draw(st.sampled_from(sorted(OPERATORS)))]
        i, j = (data.draw(st.integers(0, len(arrays) - 1)) for _ in range(2))
        if ufunc is np.subtract and bool in (plain[i].dtype, plain[j].dtype):
            continue
        pair = (i, j)[:ufunc.nin]
        if data.draw(st.booleans()):
            plain.append(ufunc(*(plain[k] for k in pair)))
            arrays.append(ufunc(*(arrays[k] for k in pair)))
        else:
            turned = len(shape) > 1 and data.draw(st.booleans())
            name = data.draw(st.sampled_from(NAMES))
            axis = data.draw(st.sampled_from([None, *range(len(shape))]))
            keepdims = data.draw(st.booleans())
            expected, found = (function(name)(a[k].T if turned else a[k], axis=axis, keepdims=keepdims)
                               for a, k in ((plain, i), (arrays, i)))
            with lazyarray.options(defer_from=None):
                array = lazyarray.asarray(np.asarray(arrays[i]).copy(order="K"))
                unfused = function(name)(array.T if turned else array, axis=axis, keepdims=keepdims)
            assert found.dtype == expected.dtype and found.shape == expected.shape
            assert np.allclose(found, expected, rtol=1e-4 if dtype == "f" else 1e-12, equal_nan=True)
            assert ON_CUDA or np.array_equal(np.asarray(found), np.asarray(unfused), equal_nan=True)
    for a, p in zip(arrays, plain):
        assert np.allclose(np.asarray(a), p)


def test_the_names_are_known_to_all():
    from lazyarray.devices.cuda.kernels import reduction_ops

    own = {"extremes"}      # which no function of NumPy has
    assert set(recording_reductions._DTYPES) == set(reduction.ALONE) == set(reduction_ops._FAMILIES) - own


@pytest.mark.together
def test_of_memory_that_somebody_keeps_and_writes():
    """Also when it was asked for so often that a kernel is known."""
    xp, plain = lazyarray.device().xp, np.arange(12.0).reshape(3, 4)
    kept = xp.asarray(plain)
    x = lazyarray.asarray(kept)
    for i in range(2 * recording_reductions.OFTEN):
        kept[0, 1] = plain[0, 1] = i
        assert float(x.sum()) == plain.sum() and float((x * 2).max()) == plain.max() * 2
        assert np.array_equal(x.sum(axis=0), plain.sum(axis=0))
        assert np.array_equal(x.argmax(axis=1), plain.argmax(axis=1))
        x[1] = x[2] + 1
        plain[1] = plain[2] + 1
        assert np.array_equal(xp.asnumpy(kept), plain)


@pytest.mark.together
def test_nobody_waits_for_the_kernel_of_what_the_device_library_has_done(monkeypatch):
    device, asked = lazyarray.device(), []
    reduced = device.reduction

    def noted(*args):
        asked.append(args[5] if len(args) > 5 else False)
        return reduced(*args)

    monkeypatch.setattr(device, "reduction", noted, raising=False)
    x = lazyarray.asarray(np.arange(12.0).reshape(3, 4)) * 1
    np.asarray(x)
    x[0, 0] = 1         # it is the device's, and waits for nothing
    for _ in range(2 * recording_reductions.OFTEN):
        x.sum(axis=0), x.min()
    plain, asked[:] = asked[:], []
    np.asarray((x * 3 + 1).sum())
    assert True in plain and all(plain), "it is compiled meanwhile"
    assert asked and not any(asked), "new work may be waited for"
