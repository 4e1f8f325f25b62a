"""What other libraries do with an array that they take for NumPy's: the rules that hold for all of them."""
from __future__ import annotations

import collections.abc
import inspect
import io
import itertools
import json
import math
import operator
import os
import pickle
import random
import statistics
import struct
from typing import Any

import numpy as np
import pytest

import lazyarray

pytestmark = pytest.mark.filterwarnings("ignore")
PLAIN = np.array([3.5, -1.25, 2.0, 0.5])
NUMBERS = [np.float64(2.5), np.float32(1.5), np.int64(3), np.uint8(7), np.bool_(True), np.complex128(1 + 2j)]


def lazy_scalar(value: np.generic) -> Any:
    """The LazyScalar of a value that lies on the device."""
    return lazyarray.asarray(np.array([value]))[0]


@pytest.fixture
def x() -> Any:
    return lazyarray.asarray(PLAIN)


# Scalars: what libraries ask to tell a number from a sequence.

@pytest.mark.parametrize("value", NUMBERS, ids=lambda v: v.dtype.name)
@pytest.mark.parametrize("question", [
    np.iterable, np.isscalar, callable,
    *(lambda s, kind=kind: isinstance(s, kind) for kind in (
        collections.abc.Iterable, collections.abc.Sized, collections.abc.Container, collections.abc.Collection,
        collections.abc.Sequence, collections.abc.Hashable, collections.abc.Reversible)),
    *(lambda s, name=name: hasattr(s, name) for name in (
        "__len__", "__contains__", "__setitem__", "__iadd__", "__matmul__", "__enter__", "__call__", "__reversed__",
        "__array_namespace__", "dot", "no_such_name", "item", "is_integer")),
])
def test_a_scalar_is_no_container(question, value):
    assert question(lazy_scalar(value)) == question(value)


@pytest.mark.parametrize("value", NUMBERS, ids=lambda v: v.dtype.name)
@pytest.mark.parametrize("refused", [iter, list, len, reversed, lambda s: 1 in s, lambda s: operator.setitem(s, 0, 1),
                                     lambda s: operator.delitem(s, 0), lambda s: s[0], lambda s: s.no_such_name,
                                     lambda s: setattr(s, "note", 1), lambda s: setattr(s, "dtype", float)])
def test_a_scalar_refuses_what_numpys_does(refused, value):
    with pytest.raises(Exception) as numpys:
        refused(value)
    with pytest.raises(numpys.type):
        refused(lazy_scalar(value))


def test_asking_a_scalar_for_what_it_lacks_fetches_nothing(x):
    s = x.sum()
    with lazyarray.no_transfers():
        assert not hasattr(s, "__len__")
        assert not hasattr(s, "keys") and not hasattr(s, "__iter__")
        assert not isinstance(s, collections.abc.Iterable)


@pytest.mark.parametrize("use", [
    lambda s: struct.pack("d", s), lambda s: f"{s:.2f} {s!r} {s}", lambda s: operator.mod("%.3f", s),
    math.sqrt, math.floor, round,
    lambda s: s[()] == 3.5, lambda s: {s: 1}[3.5], hash, lambda s: pickle.loads(
        pickle.dumps(s)), statistics.NormalDist, lambda s: isinstance(s, float), lambda s: max(s, 1.0), divmod,
])
def test_a_scalar_is_taken_for_the_number(use, x):
    if use is divmod:
        assert divmod(x[0], 2) == divmod(PLAIN[0], 2)
    else:
        assert use(x[0]) == use(PLAIN[0])


class Foreign:
    """A number of another library, which takes NumPy's scalars and no other proxies: as torch does."""

    __array_priority__ = 1000.0
    __cuda_array_interface__ = property(lambda self: {}["not on CUDA"])

    def of(self, other, name):
        return f"{name} {float(other)}" if type(other) is np.float64 else NotImplemented

    def __add__(self, other):
        return self.of(other, "+")

    def __radd__(self, other):
        return self.of(other, "r+")

    def __gt__(self, other):
        return self.of(other, ">")

    def __lt__(self, other):
        return self.of(other, "<")


def test_foreign_numbers_meet_numpys_scalar(x):
    assert (x[0] + Foreign(), Foreign() + x[0]) == (PLAIN[0] + Foreign(), Foreign() + PLAIN[0])
    assert (x[0] < Foreign(), Foreign() < x[0]) == (PLAIN[0] < Foreign(), Foreign() < PLAIN[0])


# Elements that a loop looks at, and values that the device can't hold, are NumPy's own scalars.

def test_elements_of_an_iterated_vector_are_numpys_own(x):
    assert [type(v) for v in x] == [np.float64] * 4
    assert [type(v) for v in x.flat] == [np.float64] * 4
    assert json.dumps(list(x)) == json.dumps(list(PLAIN))
    assert statistics.variance(x) == statistics.variance(PLAIN)
    assert list(itertools.accumulate(x)) == list(itertools.accumulate(PLAIN))


@pytest.mark.parametrize("loop", [iter, lambda a: a.flat], ids=["iter", "flat"])
def test_iteration_fetches_once_and_sees_what_is_written_meanwhile(loop):
    def visit(array):
        seen = []
        for i, v in enumerate(loop(array)):
            seen.append(float(v))
            if i == 1:
                array[3] = 50
            if i == 2:
                array += 1
            if i == 4:
                np.asarray(array)[6] = -7
        return seen

    assert visit(lazyarray.asarray(np.arange(8.0))) == visit(np.arange(8.0))
    x = lazyarray.asarray(np.arange(1000.0))
    with lazyarray.trace() as trace:
        assert sum(loop(x)) == 499_500
    assert len(trace.materialisations) == 1


@pytest.mark.parametrize(("dtype", "kind"), [("U3", np.str_), ("S3", np.bytes_), ("M8[s]", np.datetime64),
                                             ("m8[s]", np.timedelta64), ("g", np.longdouble)])
def test_values_that_the_device_cannot_hold_are_numpys_own(dtype, kind):
    plain = np.arange(4).astype(dtype)
    x = lazyarray.asarray(plain)
    assert type(x[1]) is type(x[[1, 2]][0]) is kind
    assert np.array([x[1], x[2]]).dtype == np.array([plain[1], plain[2]]).dtype
    if kind is np.str_:
        assert os.path.join("a", x[1]) == "a".join(["", os.sep + "1"])
        assert "-".join(x) == "0-1-2-3"
    if kind is np.datetime64:
        assert np.datetime64(x[1], "D") == np.datetime64(plain[1], "D")
        assert x[1] - x[0] == plain[1] - plain[0]


# Who wraps a result, and who gets which turn.

class Wrapper:
    """An old array type, which knows of `__array_wrap__` only."""

    def __init__(self, array, priority=1000.0):
        self.array = np.asarray(array)
        self.__class__ = Wrapper if priority > 0 else Modest if priority < 0 else Equal

    __array_priority__ = 1000.0

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return type(self)(array, self.__array_priority__)


class Modest(Wrapper):
    __array_priority__ = -5.0


class Equal(Wrapper):
    __array_priority__ = 0.0


@pytest.mark.parametrize("call", [np.add, lambda a, w: np.add(w, a), lambda a, w: w + a, lambda a, w: a * w,
                                  np.multiply.outer, lambda a, w: np.divmod(a, w)[1], lambda a, w: a[0] * w,
                                  lambda a, w: np.add(a[0], w), lambda a, w: np.add(a, w, out=a)])
@pytest.mark.parametrize("priority", [1000.0, -5.0, 0.0])
def test_the_operand_of_highest_priority_wraps(call, priority):
    def outcome(array):
        try:
            result = call(array, Wrapper(np.arange(1.0, 5.0), priority))
        except TypeError as error:
            return type(error), None
        return type(result) if isinstance(result, Wrapper) else np.ndarray, np.asarray(result).tolist()

    assert outcome(lazyarray.asarray(PLAIN)) == outcome(PLAIN.copy())


class Refusing:
    """It takes no part in ufuncs, and adds by itself."""

    __array_ufunc__ = None

    def __radd__(self, other):
        return "its own"


class Prior:
    __array_priority__ = 10.0

    def __radd__(self, other):
        return "its own"


class Subclass(np.ndarray):
    def __radd__(self, other):
        return "its own"


@pytest.mark.parametrize("make", [Refusing, Prior, lambda: np.zeros(4).view(Subclass)])
@pytest.mark.parametrize("add", [operator.add, operator.iadd, np.add])
def test_who_adds(make, add):
    def outcome(array):
        try:
            result = add(array, make())
        except TypeError:
            return TypeError
        return result if isinstance(result, str) else (type(result) is Subclass, np.asarray(result).tolist())

    assert outcome(lazyarray.asarray(PLAIN)) == outcome(PLAIN.copy())


# Compiled code that takes an array for a sequence, or for an ndarray without looking.

@pytest.mark.parametrize("shuffle", [lambda a: np.random.default_rng(3).shuffle(a),
                                     lambda a: np.random.RandomState(3).shuffle(a),
                                     lambda a: np.random.default_rng(3).shuffle(a[::2]),
                                     lambda a: np.random.default_rng(3).shuffle(a.swapaxes(0, -1))])
@pytest.mark.parametrize("dtype", ["f8", "U3", "O"])
@pytest.mark.parametrize("shape", [(30,), (20, 3), (20, 3, 2), (20, 1), (0, 2)], ids=str)
def test_shuffles_lose_no_rows(shuffle, dtype, shape):
    plain = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    x = lazyarray.asarray(plain)
    shuffle(x)
    shuffle(plain)
    assert x.tolist() == plain.tolist()


@pytest.mark.parametrize("exchange", [
    lambda a: a.__setitem__(0, a[1]) or a.__setitem__(1, a[0]),
    lambda a: list(map(a.__setitem__, (0, 1), (a[1], a[0]))),
    lambda a: list(map(operator.setitem, (a, a), (0, 1), (a[1], a[0]))),
    lambda a: [f(i, row) for f, i, row in zip([a.__setitem__] * 2, (0, 1), (a[1], a[0]))],
    lambda a: exec("a[0], a[1] = a[1], a[0]", {"a": a}),
    lambda a: [(a.__setitem__(0, r), a.__iadd__(100), a.__setitem__(2, s)) for r, s in [(a[1], a[0])]],
    lambda a: random.Random(3).shuffle(a),
])
def test_rows_that_python_exchanges_are_lost_as_numpys_are(exchange):
    x, plain = lazyarray.asarray(np.arange(6.0).reshape(3, 2)), np.arange(6.0).reshape(3, 2)
    exchange(x)
    exchange(plain)
    assert x.tolist() == plain.tolist()


def test_generators_are_what_they_were_but_for_lazy_arrays():
    generator = np.random.default_rng(3)
    items = [lazyarray.asarray([1]), lazyarray.asarray([2]), lazyarray.asarray([3])]
    before = list(items)
    generator.shuffle(items)        # a list of them is shuffled itself
    assert set(map(id, items)) == set(map(id, before))
    fixed = lazyarray.asarray(np.arange(4))
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        generator.shuffle(fixed)
    with pytest.raises(TypeError):
        generator.shuffle()
    assert "axis" in inspect.signature(np.random.Generator.shuffle).parameters
    assert pickle.loads(pickle.dumps(generator)).random() == generator.random()
    plain, x = np.arange(12.0).reshape(3, 4), lazyarray.asarray(np.arange(12.0).reshape(3, 4))
    for a in (plain, x):
        np.random.seed(5)
        np.random.shuffle(a)
        np.random.default_rng(5).shuffle(a, axis=1)
    assert x.tolist() == plain.tolist()


@pytest.mark.parametrize("draw", ["random", "standard_normal", "standard_exponential", "standard_gamma"])
@pytest.mark.parametrize("make", [lambda x: x, lambda x: x[:2], lambda x: x.reshape(2, 2), lambda x: x[::2]],
                         ids=["whole", "view", "2-D", "strided"])
def test_random_numbers_are_not_drawn_into_a_lazy_array(draw, make, x):
    # NumPy's generators cast `out` unchecked and look at its flags.
    shape = (1,) if draw == "standard_gamma" else ()
    with pytest.raises((TypeError, ValueError)):
        getattr(np.random.default_rng(0), draw)(*shape, out=make(x))
    assert x.tolist() == PLAIN.tolist()


@pytest.mark.parametrize("draw", [
    lambda g, a: g.choice(a, 3, p=np.abs(a) / np.abs(a).sum()), lambda g, a: g.permutation(a),
    lambda g, a: g.permuted(a), lambda g, a: g.normal(a, np.abs(a)), lambda g, a: g.multivariate_normal(
        a, np.eye(4)), lambda g, a: g.dirichlet(np.abs(a)), lambda g, a: g.uniform(a.min(), a.max(), int(a[2])),
    lambda g, a: g.integers(0, a.astype(int) + 5)])
def test_random_numbers_from_lazy_parameters(draw, x):
    assert np.asarray(draw(np.random.default_rng(0), x)).tolist() == draw(np.random.default_rng(0), PLAIN).tolist()


# Other people's solvers call back with what we return, and keep what we return.

@pytest.mark.parametrize("method", ["BFGS", "Nelder-Mead", "SLSQP", "Powell", "TNC"])
def test_minimise_with_a_lazy_objective(method, x):
    optimize = pytest.importorskip("scipy.optimize")
    found = optimize.minimize(lambda p: ((p - x) ** 2).sum(), np.zeros(4), method=method)
    np.testing.assert_allclose(np.asarray(found.x), PLAIN, atol=1e-3)


@pytest.mark.parametrize("method", ["L-BFGS-B", "BFGS", "CG", "SLSQP", "TNC", "trust-constr"])
def test_minimise_with_a_lazy_gradient(method, x):
    optimize = pytest.importorskip("scipy.optimize")
    found = optimize.minimize(lambda p: (((p - x) ** 2).sum(), 2 * (p - x)), np.zeros(4), jac=True, method=method)
    assert found.success
    np.testing.assert_allclose(np.asarray(found.x), PLAIN, atol=1e-3)


def test_minimise_under_lazy_constraints(x):
    optimize = pytest.importorskip("scipy.optimize")
    constraint = {"type": "eq", "fun": lambda p: p.sum() - x[:3].sum(), "jac": lambda p: x * 0 + 1}
    found = optimize.minimize(lambda p: ((p - x) ** 2).sum(), np.zeros(4), jac=lambda p: 2 * (p - x), method="SLSQP",
                              constraints=constraint)
    assert found.success
    np.testing.assert_allclose(np.asarray(found.x), PLAIN - PLAIN[3] / 4, atol=1e-3)


def test_factors_of_a_sparse_matrix_solve_for_lazy_arrays(x):
    linalg, sparse = pytest.importorskip("scipy.sparse.linalg"), pytest.importorskip("scipy.sparse")
    matrix = sparse.csc_array(np.diag([2.0, 4.0, 5.0, 8.0]))
    for factors in (linalg.splu(matrix), linalg.spilu(matrix)):
        assert isinstance(factors, linalg.SuperLU) and factors.shape == (4, 4)
        np.testing.assert_allclose(factors.solve(x), PLAIN / [2, 4, 5, 8])
        np.testing.assert_allclose(factors.solve(x[:, None], trans="T")[:, 0], PLAIN / [2, 4, 5, 8])
        np.testing.assert_allclose(factors.L.toarray() @ factors.U.toarray(), matrix.toarray())
    np.testing.assert_allclose(linalg.factorized(matrix)(x), PLAIN / [2, 4, 5, 8])


def test_integrate_interpolate_and_transform(x):
    integrate, interpolate = pytest.importorskip("scipy.integrate"), pytest.importorskip("scipy.interpolate")
    end = integrate.solve_ivp(lambda t, y: -np.abs(x) * y, (0, 1), np.ones(4)).y[:, -1]
    np.testing.assert_allclose(np.asarray(end), np.exp(-np.abs(PLAIN)), rtol=1e-2)
    assert integrate.quad(lambda t: t * x[0], 0, 1)[0] == pytest.approx(PLAIN[0] / 2)
    places = np.arange(4.0)
    assert interpolate.interp1d(places, x)(1.5) == interpolate.interp1d(places, PLAIN)(1.5)
    sparse = pytest.importorskip("scipy.sparse").csr_array(np.diag(PLAIN))
    for act in (lambda s, a: s @ a, lambda s, a: a @ s, lambda s, a: s.multiply(a).toarray(), lambda s, a: (
            s * a[0]).toarray(), lambda s, a: (a[0] * s).toarray(), lambda s, a: s[[int(i) for i in a[2:]]].toarray()):
        assert np.asarray(act(sparse, x)).tolist() == np.asarray(act(sparse, PLAIN)).tolist()


def test_images_through_filters_and_files():
    filters = pytest.importorskip("skimage.filters")
    image = np.abs(np.sin(np.arange(256.0))).reshape(16, 16)
    for apply in (filters.gaussian, filters.sobel, filters.median, filters.threshold_otsu):
        np.testing.assert_allclose(np.asarray(apply(lazyarray.asarray(image))), apply(image))
    buffer = io.BytesIO()
    np.savez(buffer, image=lazyarray.asarray(image))
    buffer.seek(0)
    assert np.load(buffer)["image"].tolist() == image.tolist()
