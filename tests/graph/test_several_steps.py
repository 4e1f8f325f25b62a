"""Functions that NumPy makes of several ufuncs: recorded, where they are plain, and NumPy's to the bit in any case."""
from __future__ import annotations

import functools
import itertools
import warnings

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as lnp
from lazyarray.graph.record import several_steps

pytestmark = pytest.mark.filterwarnings("ignore")


def values(shape, dtype, order="C"):
    rng = np.random.default_rng(len(shape))
    x = np.asarray((rng.random(shape) * 10 - 5).astype(dtype), order=order)
    if x.dtype.kind == "f" and x.ndim and x.size > 5:
        x.flat[:5] = [np.nan, np.inf, -np.inf, -0.0, 0.0]
    return x


def told(work):
    """A result or the type of an error, and the warnings of slices in which nothing is a number."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = work()
        except Exception as error:  # noqa: BLE001  NumPy's is compared
            found = type(error)
    return found, [str(one.message) for one in caught if str(one.message).startswith(("All-NaN", "Mean of"))]


def _strides(x):
    return [stride for n, stride in zip(x.shape, x.strides) if n > 1]


def same(work, *arrays, zeros=True):
    """`zeros`: their signs too, which NumPy does not promise of an extreme."""
    expected, warned = told(lambda: work(*arrays))
    found, ours = told(lambda: work(*map(lazyarray.asarray, arrays)))
    if isinstance(expected, type):
        assert found is expected
        return
    for one, other in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, expected)], strict=True):
        assert (one.dtype, one.shape, _strides(one)) == (other.dtype, other.shape, _strides(other))
        assert np.array_equal(np.asarray(one), other, equal_nan=other.dtype.kind in "fc")
        if other.dtype.kind == "f" and zeros:
            sign = ~np.isnan(other)
            assert np.array_equal(np.signbit(np.asarray(one))[sign], np.signbit(other)[sign])
    assert ours == warned


LAYOUTS = {"C": lambda x: x, "F": np.asfortranarray, "turned": lambda x: x[..., ::-1] if x.ndim else x}
EACH = pytest.mark.parametrize("layout", LAYOUTS)
DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "?", "c8"])
SHAPES = [(), (0,), (7,), (30, 20), (5, 4, 3)]


@pytest.fixture(autouse=True, params=[True, False], ids=["small on the host", "all on the device"])
def place(request):
    with lazyarray.options(small_on_host=request.param):
        yield


@EACH
@DTYPES
def test_nan_to_num(dtype, layout):
    given = [{}, {"nan": 3}, {"nan": 2.5, "posinf": 9}, {"neginf": -1.0}, {"posinf": 1e300}, {"posinf": np.inf},
             {"nan": np.float64(2)}, {"nan": 10**400}, {"nan": 1j}]
    for shape in SHAPES:
        x = LAYOUTS[layout](values(shape, dtype))
        for kwargs in given:
            same(lambda x, kwargs=kwargs: np.nan_to_num(x, **kwargs), x)


@EACH
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "?", "c8", "u1", "u2", "u4", "u8", "i2", "i8"])
def test_select(dtype, layout):
    for shape in SHAPES:
        x = LAYOUTS[layout](values(shape, dtype))
        for default in (0, 1.5, -0.0, 7, True, np.float32(2), 1j, 2**40):
            for work in (lambda x, d: np.select([x > 0, x > 2], [x, x * 2], d),
                         lambda x, d: np.select([x > 2, x > 0], [5, x], d),
                         lambda x, d: np.select([x > 2, x > 0], [1, 2], d),
                         lambda x, d: np.select([x > 2, x < 0], [x, x.astype("c16")], d),
                         lambda x, d: np.select((x > 2,), (x[:1] if x.ndim else x,), d),
                         lambda x, d: np.select([x], [x], d), lambda x, d: np.select([x > 0], [x, x], d)):
                same(lambda x, d=default, work=work: work(x, d), x)


@EACH
@DTYPES
@pytest.mark.parametrize("name", ["isclose", "allclose", "array_equal"])
def test_comparisons(dtype, layout, name):
    def function(x, y, **kwargs):
        found = getattr(np, name)(x, y, **kwargs)
        return np.bool_(found) if type(found) is bool else found

    given = [{}, {"equal_nan": True}]
    if name != "array_equal":
        given += [{"rtol": 0.5}, {"atol": 3.0, "rtol": 0.0}, {"rtol": 1}, {"atol": np.inf}]
    for shape in SHAPES:
        x = LAYOUTS[layout](values(shape, dtype))
        near = (x * 1.000001).astype(x.dtype) if x.dtype.kind in "fc" else x
        moved = np.where(np.arange(x.size).reshape(shape) % 3 == 0, x, np.roll(x, 1)).astype(dtype)
        others = [x, near, moved, x.astype("f8") if dtype != "c8" else x]
        for other in [*others, 0.5, np.nan, np.inf, np.float32(1), x[..., :1]] if shape else others:
            for kwargs in given:
                if isinstance(other, np.ndarray):
                    same(lambda x, y, kwargs=kwargs: function(x, y, **kwargs), x, other)
                else:
                    same(lambda x, y=other, kwargs=kwargs: function(x, y, **kwargs), x)
    x = lazyarray.asarray(np.arange(6.0))
    assert type(np.allclose(x, x)) is type(np.array_equal(x, x)) is bool and type(np.array_equal(x, x[1:])) is bool


@EACH
@DTYPES
@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean"])
def test_totals_without_nan(dtype, layout, name):
    function = getattr(np, name)
    for shape in SHAPES:
        x = values(shape, dtype) / 5 if dtype not in "i4?" else values(shape, dtype)
        for case in (x, x * 0 if dtype == "?" else x * np.nan, np.abs(x)):
            case = LAYOUTS[layout](case)
            for kwargs in ({}, {"axis": 0}, {"axis": -1}, {"keepdims": True}, {"axis": (0,)}, {"axis": 5}):
                expected, found = (told(lambda a=a, kwargs=kwargs: function(a, **kwargs))
                                   for a in (case, lazyarray.asarray(case)))
                if isinstance(expected[0], type):
                    assert found[0] is expected[0]
                    continue
                assert (found[0].dtype, found[0].shape) == (expected[0].dtype, expected[0].shape)
                relative, absolute = (5e-2, 1e-6) if dtype == "f2" else (1e-5, 1e-5)
                np.testing.assert_allclose(np.asarray(found[0]), expected[0], rtol=relative, atol=absolute)
                assert found[1] == expected[1]


@EACH
@DTYPES
def test_average(dtype, layout):
    for shape in SHAPES:
        x = LAYOUTS[layout](np.nan_to_num(values(shape, dtype), posinf=1, neginf=1))
        weights = np.random.default_rng(1).random(shape)
        some = [weights.astype(dtype), weights, (weights > 2).astype(dtype), weights.astype("f4")]
        some += [w[0] for w in some if w.size > 1] + [w[..., 0] for w in some if w.size > 1]
        for w in some:
            for axis in (None, 0, -1, 1, (0,), 1.5):
                for kwargs in ({}, {"keepdims": True}, {"returned": True}):
                    (expected, _), (found, _) = (
                        told(lambda a=a, kwargs=kwargs, axis=axis: np.average(a[0], axis, a[1], **kwargs))
                        for a in ((x, w), (lazyarray.asarray(x), lazyarray.asarray(w))))
                    if isinstance(expected, type):
                        assert found is expected
                        continue
                    both = (found, expected) if kwargs == {"returned": True} else ((found,), (expected,))
                    for one, other in zip(*both, strict=True):
                        assert (one.dtype, one.shape) == (other.dtype, other.shape)
                        tolerance = 2e-2 if "f2" == dtype else 1e-4
                        np.testing.assert_allclose(np.asarray(one), other, rtol=tolerance, atol=tolerance)


@EACH
@DTYPES
@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nanargmax", "nanargmin"])
def test_extremes_without_nan(dtype, layout, name):
    function = getattr(np, name)
    for shape in SHAPES:
        x = values(shape, dtype)
        cases = [x]
        if x.dtype.kind == "f":
            cases += [np.full_like(x, value) for value in (np.nan, np.inf, -np.inf)]
            cases.append(np.where(np.isnan(x), x.dtype.type(-np.inf), x))
            if x.ndim > 1:
                cases.append(x.copy())
                cases[-1][1] = np.nan
        for case in map(LAYOUTS[layout], cases):
            for kwargs in ({}, {"axis": 0}, {"axis": -1}, {"keepdims": True}, {"axis": 1, "keepdims": True},
                           {"axis": 5}):
                same(lambda x, kwargs=kwargs: function(x, **kwargs), case, zeros=False)


@EACH
@DTYPES
def test_angle(dtype, layout):
    for shape in SHAPES:
        for degrees in (False, True, 1):
            x = LAYOUTS[layout](values(shape, dtype))
            found, expected = (np.angle(a, degrees) for a in (lazyarray.asarray(x), x))
            assert (found.dtype, found.strides) == (expected.dtype, expected.strides)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=3e-3 if dtype == "f2" else 3e-7)


@EACH
@DTYPES
def test_sinc(dtype, layout):
    for shape in SHAPES:
        x = LAYOUTS[layout](values(shape, dtype))
        found, expected = (np.sinc(a) for a in (lazyarray.asarray(x), x))
        assert (found.dtype, found.strides) == (expected.dtype, expected.strides)
        tolerance = 2e-2 if dtype == "f2" else 1e-6
        np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


@EACH
@DTYPES
def test_outer(dtype, layout):
    for n, m in ((7, 3), (300, 40), (1, 1), (0, 4)):
        a, b = (LAYOUTS[layout](values((k,), dtype)) for k in (n, m))
        same(np.outer, a, b)
        same(np.outer, a, b.astype("f4"))


@EACH
@DTYPES
def test_differences(dtype, layout):
    for shape in SHAPES:
        x = LAYOUTS[layout](values(shape, dtype))
        for given in ({}, {"n": 2}, {"n": -1}, {"axis": 0}, {"axis": -2}, {"axis": 3}, {"axis": None},
                      {"n": 40}, {"n": True}, {"prepend": 0}, {"append": 2.5}):
            same(lambda x, given=given: np.diff(x, **given), x)
        for given in ({}, {"to_end": 3}, {"to_begin": [1, 2]}):
            same(lambda x, given=given: np.ediff1d(x, **given), x)


@EACH
@DTYPES
def test_from_the_least_to_the_greatest(dtype, layout):
    for shape in SHAPES:
        x = LAYOUTS[layout](values(shape, dtype))
        for axis in (None, 0, -1, 1, 5, (0, 1)):
            same(lambda x, axis=axis: np.ptp(x, axis), x, zeros=False)
            same(lambda x, axis=axis: np.ptp(x, axis=axis, keepdims=True), x, zeros=False)


@EACH
@DTYPES
def test_traces(dtype, layout):
    for shape in SHAPES:
        x = LAYOUTS[layout](values(shape, dtype))
        for given in ((), (1,), (-3,), (99,), (0, 1, 0), (0, -1, 0), (0, 0, 0), (0, 0, 7), (2, 1, 2), (0, 0, 1, "f8")):
            found, expected = told(lambda given=given: np.trace(lazyarray.asarray(x), *given)), told(
                lambda given=given: np.trace(x, *given))
            if isinstance(expected[0], type):
                assert found == expected
                continue
            assert (found[0].dtype, found[0].shape) == (expected[0].dtype, expected[0].shape)
            half = dtype == "f2"        # of numbers up to 5, whose neighbours are 0.004 apart
            np.testing.assert_allclose(np.asarray(found[0]), expected[0], 1e-2 if half else 1e-5, 0.01 if half else 0)


@EACH
@DTYPES
def test_real_numbers(dtype, layout):
    for shape in SHAPES:
        x = LAYOUTS[layout](values(shape, dtype))
        for function in (np.isreal, np.iscomplex, np.fix):
            same(function, x)


PAIRS = [
    "ij,ij->i", "ij,ij->j", "ij,ij->", "ij,ji->i", "ij,ji->j", "ij,ji", "ij,ij", "i,i", "i,i->", "...i,...i->...",
    "...ij,...ji->...", "...ij,...ij", "kij,kij->k", "kij,kji->k", "kij,kij->ki", "kij,kij->ik", "kij,kij->ji",
    "kij,ikj->kj", "kij,kij->", "ij,jk->ik", "ij,ij->ij", "ii,ii->i", "0i,0i->0", "...i,i...->...", "i...,i...",
    "...i,i->", "ij , ij -> i", "...k,...k->", ",->", "ij,ij->ijk", "..ij,ij->i"]
PAIRS_OF = [
    ((20, 20), (20, 20)), ((30, 20), (30, 20)), ((6, 5, 5), (6, 5, 5)), ((4, 5, 3), (4, 3, 5)), ((7,), (7,)),
    ((30, 20), (30, 1)), ((30, 20), (20,)), ((), ()), ((0, 3), (0, 3)), ((2, 3, 4, 5), (2, 3, 5, 4))]


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c16", "f2"])
def test_products_that_are_added_up(dtype, layout):
    tolerance = {"f2": 0.3, "f4": 1e-3, "c8": 1e-3}.get(dtype, 1e-9)
    for subscripts, shapes in itertools.product(PAIRS, PAIRS_OF):
        x, y = (LAYOUTS[layout](np.nan_to_num(values(shape, dtype), posinf=1, neginf=2)) for shape in shapes)
        for work in (np.einsum, functools.partial(np.einsum, optimize=True)) if len(subscripts) < 9 else (np.einsum,):
            expected, _ = told(lambda work=work: work(subscripts, x, y))
            found, _ = told(lambda work=work: work(subscripts, *map(lazyarray.asarray, (x, y))))
            if isinstance(expected, type):
                assert found is expected, (subscripts, shapes)
                continue
            assert (found.dtype, found.shape, _strides(found)) == (
                expected.dtype, expected.shape, _strides(expected)), (subscripts, shapes)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["i4", "f2", "f8"])
def test_what_the_library_adds_up_lies_as_numpys(dtype, monkeypatch):
    """Whichever order of the axes in memory the library gives it."""
    xp = lazyarray.device().xp
    einsum = xp.einsum

    def turned(*args, **kwargs):
        found = einsum(*args, **kwargs)
        return xp.asfortranarray(found) if found.ndim > 1 else found

    monkeypatch.setattr(xp, "einsum", turned)
    for subscripts in (
            "ij,jk->ik", "kij,kij->ki", "kij,kij->ik", "kij,kij->ij", "...ij,...ij->...", "...i,...i->...", "ij,kl",
            "ij,ij->ji", "ij,k->kij", "...i,...j", "ij,jk,kl->il"):
        for shape, layout in itertools.product(((5, 5), (6, 5, 5), (2, 3, 4, 4)), LAYOUTS):
            part = LAYOUTS[layout](np.nan_to_num(values(shape, dtype), posinf=1, neginf=2))
            parts = [part] * (1 + subscripts.count(","))
            expected, _ = told(lambda: np.einsum(subscripts, *parts))
            found, _ = told(lambda: np.einsum(subscripts, *map(lazyarray.asarray, parts)))
            if isinstance(expected, type):
                assert found is expected
            else:
                assert (found.shape, _strides(found)) == (expected.shape, _strides(expected)), (subscripts, shape)


@pytest.mark.one_device("with several, each operand is looked up")
def test_products_that_are_added_up_are_not_kept(launched):
    given = [np.random.default_rng(k).random((3000, 40)) for k in range(2)]
    x, y = map(lazyarray.asarray, given)
    for subscripts in ("ij,ij->i", "ij,ij->j", "...ij,...ij->...", "ij,ij"):
        expected, twice = np.einsum(subscripts, given[0] * 2, given[1]), x * 2
        del launched[:]
        np.testing.assert_allclose(np.asarray(np.einsum(subscripts, twice, y)), expected)
        assert [step.name for step, *_ in launched[0].steps] == ["multiply", "multiply"]


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i4", "u8", "?", "c8", ">f8", ">i4"])
def test_pieces(dtype, layout):
    for shape in SHAPES:
        x = LAYOUTS[layout](values(shape, dtype))
        for pieces in ([1], [1, 2], [1, 2, 3], [1, 2, 3, 4], [1.5, -0.0, 0], [300, 1], [-1, 2], [True, 2], [1j, 2],
                       [np.float32(2), 1], [lambda x: -x if dtype != "?" else ~x, 1], [10**30, 1], [np.nan, 1.0]):
            for conditions in (lambda x: [x > 0, x > 2], lambda x: (x > 2, x < 0), lambda x: [x > 0], lambda x: x > 0,
                               lambda x: [x, x > 0], lambda x: [x > 0, np.ones(x.shape[1:], bool)]):
                same(lambda x, p=pieces, c=conditions: np.piecewise(x, c(x), p), x)


@DTYPES
def test_quotients_and_remainders(dtype):
    a, b = values((50,), dtype), values((40, 50), dtype)
    b[b == 0] = 1
    for work in (divmod, np.divmod, lambda a, b: np.divmod(a, 3), lambda a, b: divmod(7, b),
                 lambda a, b: np.divmod(a[:, None], b.T)):
        same(work, a, b)


@pytest.mark.parametrize("given", [
    (5, 0, None), (300, -3, None), (200, 2, 400), (0, 0, None), (3, 9, 4), (90, -99, 30), (1, 0, None), (5, 0, 1),
    (2, -1, None)])
def test_triangles(given):
    n, k, m = given
    x = np.ones((n, n if m is None else m))
    for name in ("tril_indices", "triu_indices"):
        for one, other in zip(getattr(lnp, name)(n, k, m), getattr(np, name)(n, k, m), strict=True):
            assert type(one) is lazyarray.LazyNdarray and (one.dtype, one.strides) == (other.dtype, other.strides)
            assert np.array_equal(np.asarray(one), other)
        same(lambda x, name=name: getattr(np, f"{name}_from")(x, k), x)


def test_they_are_recorded():
    x = lazyarray.asarray(values((300, 200), "f8"))
    for found in (np.nan_to_num(x), np.select([x > 0, x < -1], [x, 2.0], 5), np.angle(x), np.angle(x, True), np.sinc(x),
                  np.outer(x[0], x[1]), np.diff(x), np.diff(x, axis=0), np.ediff1d(x), np.ptp(x, axis=0), np.fix(x),
                  np.isreal(x), np.iscomplex(x), np.zeros_like(x), np.ones_like(x, bool), np.full_like(x, 2),
                  *divmod(x, 2.0), np.piecewise(x, [x > 0, x < -1], [1, 2, 3])):
        assert found._self_storage.pending is not None


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("sizes", [(5000, 5000), (5000, 4990), (300, 5000), (5000, 100)])
def test_long_correlations(sizes, dtype):
    rng = np.random.default_rng(2)
    a, v = (rng.random(n).astype(dtype) for n in sizes)
    for function in (np.correlate, np.convolve):
        for mode in ("valid", "same", "full"):
            found = function(lazyarray.asarray(a), lazyarray.asarray(v), mode)
            np.testing.assert_allclose(np.asarray(found), function(a, v, mode), rtol=3e-4)
    a[3] = np.nan
    found = np.asarray(np.correlate(lazyarray.asarray(a), lazyarray.asarray(v), "full"))
    assert np.array_equal(np.isnan(found), np.isnan(np.correlate(a, v, "full")))


# -- means and variances without NaN --------------------------------------------------------------

def heard(call):
    """The result of a call, and the warnings that are NumPy's."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(one.message) for one in caught if one.category is RuntimeWarning]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("name, ddofs", [("nanmean", [None]), ("nanvar", [0, 1, 5, -1]), ("nanstd", [0, 2])])
@pytest.mark.parametrize("case", ["some", "none", "a slice of NaN", "all", "infinite"])
@pytest.mark.parametrize("large", [0, several_steps.LARGE], ids=["recorded", "small"])
def test_moments_without_nan(dtype, order, name, ddofs, case, large, monkeypatch):
    monkeypatch.setattr(several_steps, "LARGE", large)
    plain = np.array(np.random.default_rng(2).normal(3, 2, (4, 5, 6)), dtype, order=order)
    if case != "none":
        plain[np.random.default_rng(3).random(plain.shape) < 0.3] = np.nan
    if case in ("a slice of NaN", "all"):
        plain[:, 2] = np.nan
    if case == "all":
        plain[...] = np.nan
    if case == "infinite":
        plain[1, 1, 1] = np.inf
    x, function = lazyarray.asarray(plain.copy("K")), getattr(np, name)
    for axis in (None, 0, -1, (0, 2)):
        for options in [{"axis": axis, "keepdims": keepdims} | ({} if ddof is None else {"ddof": ddof})
                        for keepdims in (False, True) for ddof in ddofs]:
            with np.errstate(invalid="ignore"):
                want, said = heard(lambda: function(plain, **options))
                got, says = heard(lambda: function(x, **options))
            assert says == said and lazyarray.is_lazy(got)
            assert got.dtype == want.dtype and np.shape(got) == np.shape(want)
            assert np.allclose(got, want, rtol=1e-4 if dtype == "f4" else 1e-12, equal_nan=True)
            assert np.array_equal(np.isnan(got), np.isnan(want))


def test_moments_read_the_array_alone(monkeypatch):
    """What is NaN is looked for in each pass, and kept in none."""
    monkeypatch.setattr(several_steps, "LARGE", 0)
    x = lazyarray.asarray(np.where(np.arange(6.0) > 4, np.nan, np.arange(6.0)))
    with lazyarray.trace() as seen:
        assert float(np.nanmean(x)) == 2 and float(np.nanvar(x)) == 2
    assert [event.kind for event in seen.events] == ["synchronise", "materialise"] * 2
