"""No public function of SciPy and scikit-image refuses a lazy array, or gives another result than for an ndarray.

Here each that needs one argument is called with a few arrays. What C code refused is adapted when it is imported, by
the tables of `lazyarray.integrations`.
"""
from __future__ import annotations

import importlib
import inspect
import json
import sys
import types
import warnings
from unittest import mock

import numpy as np
import pytest

import lazyarray
from lazyarray.integrations import compiled, on_import, scalars, serialisers

DEFAULT_RNG = np.random.default_rng
RANDOM = DEFAULT_RNG(0)
IMAGE = RANDOM.random((16, 16))
ARRAYS = {
    "image": IMAGE,
    "mask": IMAGE > 0.6,
    "labels": (IMAGE * 4).astype(int),
    "vector": np.sort(RANDOM.random(12)),
    "matrix": IMAGE @ IMAGE.T + np.eye(16),
    "bytes": (IMAGE * 255).astype(np.uint8),
}
MODULES = ["scipy.fft", "scipy.linalg", "scipy.linalg.interpolative", "scipy.ndimage", "scipy.optimize",
           "scipy.signal", "scipy.sparse.csgraph", "scipy.special", "scipy.stats", "skimage.color",
           "skimage.exposure", "skimage.feature", "skimage.filters", "skimage.measure", "skimage.morphology",
           "skimage.restoration", "skimage.segmentation", "skimage.transform", "skimage.util"]
SKIPPED = {
    "moments_coords": "the moments of what has as many dimensions as an image has columns take for ever",
    "moments_coords_central": "as before",
    "hough_ellipse": "takes half a minute",
    "expm_cond": "takes nine seconds",
    "try_all_threshold": "draws a picture, and takes seconds",
    "medial_axis": "draws random numbers from a generator of its own",
    "max_tree": "the library itself reads beyond its arrays with some of these",
    "denoise_tv_bregman": "the library itself reads beyond a vector",
    "distance_transform_cdt": "the library itself ends the process with some of these",
}


def functions(name):
    module = importlib.import_module(name)
    for key in sorted(getattr(module, "__all__", vars(module))):
        function = getattr(module, key, None)
        if key.startswith("_") or key in SKIPPED or isinstance(function, (type, types.ModuleType)):
            continue
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            continue
        needed = [p for p in parameters if p.default is p.empty and p.kind in (
            p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if len(needed) == 1:
            yield key, function


def result_of(function, array):
    """What a call gives, with its random numbers begun anew; its arrays as such, all else as types."""
    np.random.seed(0)
    with mock.patch.object(np.random, "default_rng", seeded):
        return plain(function(array))


def seeded(seed=None):
    return DEFAULT_RNG(0 if seed is None else seed)


def plain(value):
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return plain(value.toarray()) if hasattr(value, "toarray") else value.__class__


def check_same(got, wanted):
    assert type(got) is type(wanted)
    if isinstance(wanted, list):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted):
            check_same(a, b)
    elif isinstance(wanted, np.ndarray):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind in "biufc":
            np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9)
    else:
        assert got is wanted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_what_takes_an_ndarray_takes_a_lazy_array(name):
    pytest.importorskip(name)
    if sys.version_info < (3, 12) and name.startswith("skimage"):
        pytest.skip("before Python 3.12 a lazy array has no buffer, which Cython's memoryviews ask for")
    called = 0
    for key, function in functions(name):
        for kind, array in ARRAYS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    wanted = result_of(function, array.copy())
                except Exception:  # noqa: BLE001  whatever a function has against such an array, it is no call to compare
                    continue
                called += 1
                try:
                    check_same(result_of(function, lazyarray.asarray(array)), wanted)
                except Exception as error:
                    if (lazyarray.device().name == "cuda" and (key, kind) == ("rescale_intensity", "labels")):
                        continue    # casts 2.0 ** 63 to int64, which C leaves undefined
                    # Two draws may be alike, as the quotients of counts that p-values are.
                    random = any(repr(result_of(function, array.copy())) != repr(wanted) for _ in range(9))
                    if not random:
                        raise AssertionError(f"{name}.{key} of {kind}: {type(error).__name__}: {error}") from error
    assert called


def test_fitpack_takes_lazy_arrays():
    interpolate = pytest.importorskip("scipy.interpolate")
    x, y = np.linspace(0, 3, 20), np.sin(np.linspace(0, 3, 20))
    u, v = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, 8), np.linspace(0, 1, 8)))

    def fits(x, y, u, v):
        knots = interpolate.splrep(x, y, s=0.01)
        surface = interpolate.bisplrep(u, v, u * v, s=0.1)
        return [interpolate.splev(x, knots), interpolate.splint(0, 1, knots), interpolate.splder(knots)[1],
                interpolate.bisplev(0.5, 0.5, surface), interpolate.UnivariateSpline(x, y)(x),
                interpolate.SmoothBivariateSpline(u, v, u + v)(u[:3], v[:3], grid=False),
                interpolate.make_lsq_spline(x, y, np.r_[[0.0] * 4, 1.5, [3.0] * 4])(x), interpolate.splprep([x, y])[1]]

    for got, wanted in zip(fits(*map(lazyarray.asarray, (x, y, u, v))), fits(x, y, u, v)):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-9, atol=1e-12)


def test_what_is_written_into_a_dict_stays_written():
    """SciPy's solvers keep their state in one."""
    def step(state, x):
        state["count"] += 1
        return x

    state = {"count": 0}
    compiled.on_ndarrays(step)(state, lazyarray.asarray([1.0]))
    assert state == {"count": 1}


def test_each_table_is_waited_for():
    for tables, module in (({**compiled.FUNCTIONS, **compiled.MAKERS}, compiled),
                           ({**scalars.FUNCTIONS, "sqlite3": ()}, scalars), (serialisers._TABLE, serialisers)):
        assert set(tables) == {name for name, path in on_import.REGISTRATIONS.items() if path == module.__name__}


def test_random_numbers_are_not_drawn_into_what_is_no_ndarray():
    """NumPy casts `out` unchecked: it must refuse it, with nothing written."""
    generator, x = np.random.default_rng(0), lazyarray.asarray(np.zeros(4))
    for draw in (generator.random, generator.standard_normal, generator.standard_exponential):
        with pytest.raises(ValueError, match="contiguous, writable"):
            draw(out=x)
    assert x.tolist() == [0.0] * 4


# -- serialisers ---------------------------------------------------------------------------------

NUMBERS = [np.float64(0.5), np.float64(np.nan), np.float32(0.5), np.int64(3), np.bool_(True), np.uint8(7)]


def lazy_of(number):
    return lazyarray.asarray(np.array([number])).max()


def outcome(call):
    try:
        return call()
    except Exception as error:  # noqa: BLE001  its class is compared
        return type(error)


WAYS = {
    "default": {}, "indent": {"indent": 2}, "str": {"default": str}, "item": {"default": lambda o: o.item()},
    "no nan": {"allow_nan": False}, "skipped keys": {"skipkeys": True}, "sorted": {"sort_keys": True},
}
SHAPES = {
    "top": lambda s: s, "list": lambda s: [1, (s, "a")], "dict": lambda s: {"a": {"b": s}}, "key": lambda s: {s: [s]},
    "array": lambda s: [np.asarray(s)],
}


@pytest.mark.parametrize("library", ["json", "simplejson"])
@pytest.mark.parametrize("way", WAYS)
def test_json_writes_lazy_numbers_as_numpys(library, way):
    library = pytest.importorskip(library)
    for number in NUMBERS:
        for shape in SHAPES.values():
            wanted = outcome(lambda: library.dumps(shape(number), **WAYS[way]))
            assert outcome(lambda: library.dumps(shape(lazy_of(number)), **WAYS[way])) == wanted
            encoder = library.JSONEncoder(**WAYS[way])
            assert outcome(lambda: "".join(encoder.iterencode(shape(lazy_of(number))))) == outcome(
                lambda: "".join(encoder.iterencode(shape(number))))


def test_an_encoder_of_the_users_own_sees_numpys_values():
    class Encoder(json.JSONEncoder):
        def default(self, o):
            return [type(o).__name__, o.tolist()] if isinstance(o, (np.ndarray, np.generic)) else super().default(o)

    values = [np.float64(1.5), np.int64(3), np.arange(3)]
    lazy = [lazy_of(values[0]), lazy_of(values[1]), lazyarray.asarray(values[2])]
    assert json.dumps(lazy, cls=Encoder) == json.dumps(values, cls=Encoder)
    with pytest.raises(TypeError, match="Object of type int64 is not JSON serializable"):
        json.dumps(lazy[1])
    with pytest.raises(TypeError, match="Object of type set is not JSON serializable"):
        json.dumps([lazy[0], {1}])


@pytest.mark.parametrize("more", [{}, {"skipkeys": True}, {"indent": 1}])
def test_what_holds_itself_is_refused_as_ever(more):
    circle = {"a": lazy_of(np.float64(2.5))}
    circle["b"] = [circle]
    with pytest.raises(ValueError, match="Circular reference"):
        json.dumps(circle, **more)
    with pytest.raises(TypeError, match="Object of type set"):
        json.dumps({"c": {1}, "d": circle}, **more)


def test_what_holds_nothing_lazy_is_given_on_as_it_is():
    seen = []
    data = {"a": [1.5, object()]}
    json.dumps(data, default=lambda o: seen.append(o))
    assert seen == [data["a"][1]]


def test_other_serialisers():
    orjson, ujson = pytest.importorskip("orjson"), pytest.importorskip("ujson")
    for number in NUMBERS:
        for option in (None, orjson.OPT_SERIALIZE_NUMPY):
            for default in (None, str, lambda o: o.tolist()):
                assert outcome(lambda: orjson.dumps([lazy_of(number)], default, option)) == outcome(
                    lambda: orjson.dumps([number], default, option))
        for more in ({}, {"default": str}):
            assert outcome(lambda: ujson.dumps({"a": lazy_of(number)}, **more)) == outcome(
                lambda: ujson.dumps({"a": number}, **more))
    array = lazyarray.asarray(np.arange(6.0).reshape(2, 3))
    assert orjson.dumps(array, option=orjson.OPT_SERIALIZE_NUMPY) == b"[[0.0,1.0,2.0],[3.0,4.0,5.0]]"


@pytest.mark.parametrize("strict", [False, True])
def test_msgpack_packs_lazy_numbers_as_numpys(strict):
    msgpack = pytest.importorskip("msgpack")
    for number in NUMBERS:
        for default in (None, str, lambda o: o.tolist()):
            for shape in SHAPES.values():
                assert outcome(lambda: msgpack.packb(shape(lazy_of(number)), default=default, strict_types=strict)
                               ) == outcome(lambda: msgpack.packb(shape(number), default=default, strict_types=strict))
    assert isinstance(msgpack.Packer(), msgpack.Packer)


# -- tables of exact types -----------------------------------------------------------------------

def test_autograd_differentiates_with_respect_to_lazy_values():
    autograd = pytest.importorskip("autograd")
    import autograd.numpy as anp

    def loss(p, a, b):
        return anp.sum((anp.dot(a, anp.tanh(p)) - b) ** 2)

    a, b, p = RANDOM.normal(size=(6, 3)), np.ones(6), np.array([0.1, 0.2, 0.3])
    lazy = list(map(lazyarray.asarray, (p, a, b)))
    for how in (autograd.grad, autograd.hessian, autograd.elementwise_grad):
        np.testing.assert_allclose(how(loss)(*lazy), how(loss)(p, a, b))
        np.testing.assert_allclose(how(loss)(p, lazy[1], b), how(loss)(p, a, b))
    assert autograd.grad(anp.sin)(lazy[0].max()) == pytest.approx(np.cos(0.3))
    for whole in (np.int64(3), lazyarray.asarray([3]).max()):
        with pytest.raises(TypeError, match="Can't differentiate"):
            autograd.grad(lambda x: x * 2.0)(whole)
    with lazyarray.no_transfers():
        autograd.extend.vspace(lazy[0])


def test_numexpr_and_bottleneck_write_into_lazy_arrays():
    numexpr, bottleneck = pytest.importorskip("numexpr"), pytest.importorskip("bottleneck")
    a, out = lazyarray.asarray(np.arange(4.0)), lazyarray.asarray(np.zeros(4))
    assert numexpr.evaluate("a * 2 + 1", out=out) is not None
    assert out.tolist() == [1.0, 3.0, 5.0, 7.0]
    assert numexpr.evaluate("sum(a)") == 6
    bottleneck.replace(a, 1, 9)
    assert a.tolist() == [0.0, 9.0, 2.0, 3.0]
    bottleneck.slow.replace(a, 9.0, 5)
    assert a.tolist() == [0.0, 5.0, 2.0, 3.0]


def test_extension_arrays_of_pandas_are_made_of_lazy_arrays():
    pandas = pytest.importorskip("pandas")
    whole, masked = lazyarray.asarray(np.array([2, 1])), lazyarray.asarray(np.array([False, True]))
    made = pandas.arrays.IntegerArray(whole, masked)
    np.testing.assert_array_equal(np.asarray(made), [2, np.nan])
    assert not pandas.Index(made).is_monotonic_increasing
    assert pandas.Series(made).sort_values().tolist() == [2, pandas.NA]
    assert pandas.arrays.NumpyExtensionArray(lazyarray.asarray(np.array([1.0, 2.0]))).to_numpy().tolist() == [1, 2]
