"""NumPy's answer for values, parameters and operands that programs meet by accident.

Infinities, NaN, negative zeros, subnormal numbers and extreme integers; masks that leave out such elements; parameters
that come as arrays or scalars in place of lists and numbers; operands of other classes. Each call is run on ndarrays
and on lazy arrays: on the device, recorded, and current on the host.
"""
from __future__ import annotations

import itertools
import math
import operator
import warnings

import numpy as np
import pytest

import lazyarray

inf, nan = np.inf, np.nan
SPECIAL = [0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 2.0, 0.5, -3.0, 5e-324, 3e4]


def on_host(array):
    x = lazyarray.asarray(np.zeros_like(array))
    np.asarray(x)[...] = array
    return x


def recorded(array):
    x = lazyarray.asarray(array)
    return ~~x if array.dtype == bool else np.positive(x) if array.ndim else np.positive(x[None]).reshape(())


STATES = {"device": lazyarray.asarray, "recorded": recorded, "host": on_host}


def outcome(call, make):
    """What a call gives: an error's class, or class, dtype, shape and host values of each result."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = call(make)
        except Exception as error:  # noqa: BLE001  any error is an outcome to compare
            return type(error)
        results = result if isinstance(result, (tuple, list)) else [result]
        return [(isinstance(r, np.ndarray), np.asarray(r).dtype, np.shape(r), np.array(r)) for r in results]


def assert_as_numpys(call, states=STATES):
    want = outcome(call, lambda array: array.copy(order="K"))
    for state in states:
        got = outcome(call, STATES[state])
        if isinstance(want, type) or isinstance(got, type):
            assert got is want or isinstance(got, type) and isinstance(want, type) and issubclass(got, want), (
                state, got, want)
            continue
        for one, other in zip(want, got, strict=True):
            assert other[:3] == one[:3], state
            tolerance = 4e-3 if one[1] == "f2" else 1e-5
            np.testing.assert_allclose(other[3], one[3], rtol=tolerance, atol=1e-12, err_msg=state)


def drawn(rng, pool, shape, dtype):
    values = rng.choice(np.array(pool, object), shape)
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind == "c":
            return (values.astype(float) + 1j * rng.choice(np.array(pool, float), shape)).astype(dtype)
        return values.astype(dtype)


# -- quantiles -----------------------------------------------------------------------------------

@pytest.mark.parametrize("func", [np.quantile, np.percentile, np.nanquantile, np.nanpercentile])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i2", "u1"])
def test_quantiles_interpolate_as_numpy(func, dtype):
    rng, of = np.random.default_rng(1), 100 if "percentile" in func.__name__ else 1
    pools = [[1, 2, -3, 5], [inf, -inf, 1, 2], [nan, 1, inf], [nan]]
    if dtype[0] in "iu":
        pools = [[0, 1, 100, np.iinfo(dtype).max, np.iinfo(dtype).min]]
    quantiles = [0.5 * of, 1 * of, 0, [0, 0.25 * of, 1.0 * of], np.float32(0.3 * of), np.array(0.3 * of),
                 [0, 1 * of], np.float64(0.1 * of)]
    for pool, (shape, axis), q in itertools.product(pools, [((1,), None), ((4, 3), 0), ((4, 3), 1)], quantiles):
        data, method = drawn(rng, pool, shape, dtype), rng.choice(["linear", "linear", "hazen", "midpoint", "lower"])
        assert_as_numpys(lambda make: func(make(data), q, axis=axis, method=method), ["device"])


# -- reductions ----------------------------------------------------------------------------------

REDUCTIONS = [np.sum, np.prod, np.max, np.min, np.any, np.all, np.mean, np.var, np.std, np.nansum, np.nanprod,
              np.nanmax, np.nanmean, np.nanvar, np.nanstd, np.add.reduce, np.multiply.reduce, np.maximum.reduce,
              np.logaddexp.reduce, np.fmin.reduce, np.logical_and.reduce]


@pytest.mark.parametrize("func", REDUCTIONS)
def test_what_is_masked_takes_no_part(func):
    rng = np.random.default_rng(2)
    for dtype, shape, axis in itertools.product(["f8", "f2", "c8", "i4", "?"], [(6,), (4, 3)], [0, -1]):
        data, mask = drawn(rng, SPECIAL if dtype[0] in "fc" else [0, 1, 2], shape, dtype), rng.random(shape) < 0.6
        for more in ({}, {"initial": 1}, {"keepdims": True}):
            assert_as_numpys(lambda make: func(make(data), axis=axis, where=make(mask), **more))


@pytest.mark.parametrize("where", [np.array([1, 0, 1]), [1, 0, 1], 1, [1.5, 0, 1], np.array([[True], [False]]), None,
                                   False, np.False_])
def test_masks_of_other_kinds(where):
    data = np.arange(3.0)
    for func in (np.add.reduce, np.sum):
        assert_as_numpys(lambda make: func(make(data), where=where))
        if isinstance(where, np.ndarray):
            assert_as_numpys(lambda make: func(make(data), where=make(where)))
    assert_as_numpys(lambda make: np.add(make(data), 1, out=make(np.zeros(3)), where=where))


@pytest.mark.parametrize("func", [np.var, np.std, np.nanvar, np.nanstd])
@pytest.mark.parametrize("dtype", ["c16", "c8", "f4", None])
def test_the_dtype_of_a_variance(func, dtype):
    for values in ([1 + 1j, 2, nan], [1 + 2j, 3j, 5]):
        for of in ("c16", "c8"):
            assert_as_numpys(lambda make: func(make(np.array(values, of)), dtype=dtype))


@pytest.mark.parametrize("func", [np.mean, np.var, np.std, np.nanmean, np.nanvar, np.nanstd])
def test_half_precision_overflows_where_numpys_does(func):
    data = np.full((3, 2), 3e4, "f2")
    data[0] = -2e4
    assert_as_numpys(lambda make: func(make(data), axis=0))
    assert_as_numpys(lambda make: func(make(data), axis=0, out=make(np.zeros(2, "f2"))))


def test_a_reduction_casts_before_it_compares():
    data = np.array([[1.5, nan], [7.0, -2.5]])
    data[0, 1] = 0
    assert_as_numpys(lambda make: np.maximum.reduce(make(data), dtype="i8"))
    complex_ones = np.array([1 + 2j, 1 + 1j, 3 - 1j])
    assert_as_numpys(lambda make: np.minimum.reduce(make(complex_ones), dtype="f8"))


# -- polynomials, histograms and clips -------------------------------------------------------------

def test_polynomials_of_infinities():
    for p, x in (([1, 2], [1.0, inf]), ([3.0], [inf, nan, -0.0]), ([0, 0, 1], [-inf, 2])):
        assert_as_numpys(lambda make: np.polyval(p, make(np.array(x))))
        assert_as_numpys(lambda make: np.polyval(make(np.array(p)), make(np.array(x))))
    assert_as_numpys(lambda make: np.vander(make(np.array([1 + inf * 1j, 2])), 4))


BINS = [3, np.int64(3), np.array(3), [3, 4], (3, 4), np.array([3, 4]), np.array([0.0, 0.3, 1]), [0.0, 0.3, 1],
        [np.array([0.0, 0.5, 1]), 4], np.array([[0.0, 0.5, 1], [0, 0.2, 1]]), [4], np.array([4]), 2.0, [2.0, 3], "auto"]


@pytest.mark.parametrize("bins", BINS, ids=repr)
def test_bins_are_a_sequence_if_they_have_a_length(bins):
    x, y = np.random.default_rng(0).random((2, 20))
    for func in (lambda make, b: np.histogram2d(make(x), make(y), bins=b)[:2],
                 lambda make, b: np.histogramdd((make(x), make(y)), bins=b)[0],
                 lambda make, b: np.histogram(make(x), bins=b)):
        assert_as_numpys(lambda make: func(make, bins))
        if isinstance(bins, np.ndarray):
            assert_as_numpys(lambda make: func(make, make(bins)))


def test_complex_numbers_are_clipped_as_numpys():
    rng = np.random.default_rng(4)
    a, low, high = (drawn(rng, SPECIAL, (20,), "c16") for _ in range(3))
    assert_as_numpys(lambda make: np.clip(make(a), make(low), make(high)))


# -- scalars ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("code", ["?", "u1", "i8", "f2", "f4", "f8", "c16"])
def test_functions_of_a_scalar_give_a_scalar_where_numpys_do(code):
    data = np.array([1, 0, 3]).astype(code)
    calls = [np.real, np.imag, np.squeeze, np.transpose, np.ravel, np.flip, np.copy, np.expand_dims, np.round,
             lambda s: s.squeeze(), lambda s: s.T, lambda s: np.moveaxis(s, (), ()), lambda s: np.reshape(s, ()),
             math.floor, math.ceil, math.trunc, lambda s: hash(np.real(s)), lambda s: np.flip(s, ())]
    for call in calls:
        args = (0,) if call is np.expand_dims else ()
        assert_as_numpys(lambda make: call(make(data).max(), *args))


def test_a_number_without_dimensions_is_flipped_along_none():
    assert_as_numpys(lambda make: np.flip(make(np.array(2.0)), ()))
    assert_as_numpys(lambda make: np.flip(make(np.array(2.0))))     # its meta has no element that could be read
    assert_as_numpys(lambda make: np.flip(make(np.array(2.0)), 0))
    assert_as_numpys(lambda make: np.flip(make(np.ones((2, 3))), make(np.array([0, 1]))))
    assert_as_numpys(lambda make: np.size(make(np.ones((2, 3))), make(np.array(1))))


# -- errors ----------------------------------------------------------------------------------------

ERRORS = {
    "casting with shapes that do not fit": lambda A: np.hypot(A(np.arange(3)), A(np.ones((3, 3))), out=A(np.arange(3)),
                                                              casting="unsafe"),
    "bool *= 2**63": lambda A: operator.imul(A(np.array([True])), 2 ** 63),
    "flat": lambda A: operator.setitem(A(np.zeros(3, "u1")).flat, -1, -1),
    "flat beyond": lambda A: operator.setitem(A(np.zeros(3, "u1")).flat, 7, 1),
    "complex into unsigned": lambda A: np.floor_divide(A(np.ones(2)), 1j, out=A(np.ones(2)), casting="unsafe",
                                                       dtype="u4"),
    "core dimensions": lambda A: np.matmul(A(np.ones((1, 1))), A(np.ones((1, 1))), out=A(np.zeros((3, 3)))),
    "a mask with more": lambda A: np.maximum.reduce(A(np.ones((1, 1))), where=A(np.ones((3, 4), bool)), initial=1),
    "outputs together": lambda A: np.modf(A(np.ones((1, 1))), out=(A(np.zeros((3, 4))), None)),
    "einsum_path": lambda A: len(np.einsum_path(A(np.ones((2, 3))), [0, 1], A(np.ones((3, 2))),
                                                A(np.array([1, 0])))[0]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_and_results_of_odd_calls(name):
    assert_as_numpys(ERRORS[name])


# -- other classes ---------------------------------------------------------------------------------

class Plain(np.ndarray):
    pass


class Asked(np.ndarray):
    """Answers for ufuncs, and for no function."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return f"{ufunc.__name__}.{method}"


CLASSES = {
    "subclass": lambda a: a.view(Plain), "asked": lambda a: a.view(Asked), "matrix": np.matrix,
    "masked": lambda a: np.ma.masked_array(a, mask=a % 2 == 0),
}
DATA, OTHER = np.arange(9.0).reshape(3, 3), np.arange(9.0)[::-1].reshape(3, 3) % 4
CALLS = {
    "dot": lambda x, q: x.dot(q), "clip": lambda x, q: x.clip(q, q + 3 if type(q) is not Asked else 5),
    "clip below": lambda x, q: x.clip(None, q), "sum(out=)": lambda x, q: x.sum(0, out=np.asarray(q).copy().view(
        type(q))[0] if type(q) in (Plain, Asked) else None), "mean(where=)": lambda x, q: x.mean(where=q > 1)
    if type(q) is not Asked else None, "choose": lambda x, q: (x > 3).astype(int).choose([x, q]),
    "x ** q": lambda x, q: x ** q, "x + q": lambda x, q: x + q, "x < q": lambda x, q: x < q,
    "x == q": lambda x, q: x == q, "x @ q": lambda x, q: x @ q,
    "q * x": lambda x, q: q * x, "searchsorted": lambda x, q: x.ravel().searchsorted(q),
    "in": lambda x, q: q in x, "full_like": lambda x, q: np.full_like(x, q),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("name", CALLS)
def test_operands_of_other_classes_have_their_say(name, kind):
    outcomes = []
    for make in (np.array, lazyarray.asarray):
        try:
            outcomes.append(CALLS[name](make(DATA), CLASSES[kind](OTHER)))
        except Exception as error:  # noqa: BLE001  any error is an outcome to compare
            outcomes.append(type(error))
    want, got = outcomes
    if isinstance(want, (str, type, bool, type(None))):
        assert got == want
        return
    assert got.__class__ is want.__class__ or isinstance(got, type(want)) and type(want) is np.ndarray
    assert np.array_equal(np.ma.getmaskarray(got), np.ma.getmaskarray(want))
    assert np.array_equal(np.ma.getdata(got), np.ma.getdata(want))


class Unit(np.ndarray):
    """Fills arrays in its own way, as quantities do."""

    def __array_function__(self, func, types, args, kwargs):
        if func is np.copyto:
            args[0][...] = -np.asarray(args[1])
            return None
        return super().__array_function__(func, types, args, kwargs)


def test_the_value_that_fills_an_array_is_asked():
    value = np.array(3.0).view(Unit)
    x = lazyarray.asarray(DATA)
    for call in (lambda a: np.full_like(a, value), lambda a: np.full((2, 3), value, like=a)):
        assert np.array_equal(call(x), call(DATA)) and lazyarray.is_lazy(call(x))


class Own:
    """A ufunc that is not NumPy's, which passes outputs to ``__array_ufunc__`` as its caller did."""

    nin, nout, signature, __name__ = 1, 1, None, "own"

    def __call__(self, *args, **kwargs):
        for arg in (*args, *kwargs.values()):
            if lazyarray.is_lazy(arg):
                return arg.__array_ufunc__(self, "__call__", *args, **kwargs)
        return np.square(*args, **kwargs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [lambda u, x, y: u(x, y), lambda u, x, y: u(x, out=y), lambda u, x, y: u(x, out=(y,))])
def test_outputs_given_by_position(call):
    x, y = lazyarray.asarray(np.arange(4.0)), lazyarray.asarray(np.zeros(4))
    call(Own(), x, y)
    assert np.array_equal(y, x * x)


# -- GPU functions with host arrays that share memory ------------------------------------------------

@pytest.mark.parametrize("how", [{}, {"writes": ("a",)}], ids=["default", "named"])
@pytest.mark.parametrize("other", [lambda h: h[::-1], lambda h: h[2:], lambda h: h.reshape(2, 3)])
def test_a_gpu_function_sees_what_it_writes_through_another_argument(how, other):
    def changes(a, b):
        a += 1
        return b.copy()

    plain, host = np.arange(6.0), np.arange(6.0)
    want = changes(plain, other(plain))
    got = lazyarray.lazy(changes, **how)(host, other(host))
    assert np.array_equal(got, want) and np.array_equal(host, plain)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_a_complex_number_of_which_one_part_is_nan_is_left_out_of_sums(axis, keepdims):
    """CuPy's own ``nansum`` adds up the other part."""
    a = np.array([[complex(nan, 1), complex(1, nan), 2 - 1j], [3 + 1j, complex(nan, nan), -1 + 2j]])
    wanted = np.nansum(a, axis=axis, keepdims=keepdims)
    for dtype in ("c16", "c8"):
        found = np.nansum(lazyarray.asarray(a.astype(dtype)), axis=axis, keepdims=keepdims)
        assert np.array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("axis", [(0, 1), (0, 2), (1, 2), (0, 1, 2), 0, 1, None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_rows_of_quantiles_along_several_axes(axis, keepdims):
    x, q = np.arange(60.0).reshape(5, 4, 3), [[0.1, 0.2, 0.4], [0.3, 1, 0.1]]
    with lazyarray.options(small_on_host=False), warnings.catch_warnings():
        warnings.simplefilter("ignore", lazyarray.HostFallbackWarning)
        for function in (np.nanquantile, np.quantile):
            found = function(lazyarray.asarray(x), q, axis=axis, keepdims=keepdims)
            np.testing.assert_allclose(np.asarray(found), function(x, q, axis=axis, keepdims=keepdims))


def test_values_that_are_cast_and_broadcast_are_added():
    x = lazyarray.asarray(np.zeros(3))
    with lazyarray.options(small_on_host=False):
        np.add.at(x, np.array([[0, 1], [1, 0]]), [1, 2])
    assert np.asarray(x).tolist() == [3, 3, 0]
