"""lazyarray.numpy.random: NumPy's generator by parameters, shapes, dtypes and errors, which draws on the device."""
from __future__ import annotations

import contextlib
import copy
import inspect
import pickle
import threading
import warnings

import numpy as np
import pytest

import lazyarray
from lazyarray.numpy import random
from lazyarray.numpy.random import ON_DEVICE, Generator, default_rng

SIMULATED = lazyarray.device().name == "simulated"

#: Arguments of each method with which it draws on the device, but for the shape.
ARGUMENTS = {
    "random": (), "standard_normal": (), "standard_exponential": (), "integers": (3, 10), "uniform": (-1, 2.5),
    "exponential": (2,), "normal": (10, np.float32(0.5)), "gamma": (2, 3.0), "standard_gamma": (1.5,), "beta": (2, 3),
    "chisquare": (4,), "f": (3, 20), "power": (2,), "binomial": (10, 0.25), "geometric": (0.3,),
    "hypergeometric": (10, np.int64(20), 15), "logseries": (0.4,), "poisson": (4,),
}
METHODS = [name for name in dir(np.random.Generator)
           if not name.startswith("_") and callable(getattr(np.random.Generator, name))]


def outcome(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call()
        except Exception as error:  # noqa: BLE001  whatever NumPy raises
            return type(error), str(error)
    return (type(found) if not isinstance(found, np.ndarray) else "array", getattr(found, "dtype", None),
            np.shape(found))


@pytest.mark.parametrize("name", ARGUMENTS)
class TestOnTheDevice:
    @pytest.mark.parametrize("size", [1000, (20, 30), (0, 3), (), [4, 5]])
    def test_arrays_are_drawn_without_a_copy(self, name, size):
        with lazyarray.no_transfers():
            found = getattr(default_rng(1), name)(*ARGUMENTS[name], size=size)
        want = getattr(np.random.default_rng(1), name)(*ARGUMENTS[name], size=size)
        assert lazyarray.is_lazy(found) == isinstance(want, np.ndarray)
        assert found.dtype == want.dtype and found.shape == want.shape
        if SIMULATED and name != "standard_exponential":        # by another method than NumPy's default
            assert np.array_equal(np.asarray(found), want)

    def test_the_distribution_is_the_same(self, name):
        found = np.asarray(getattr(default_rng(2), name)(*ARGUMENTS[name], size=20_000)).astype(float)
        want = getattr(np.random.default_rng(99), name)(*ARGUMENTS[name], size=20_000).astype(float)
        error = 6 * want.std() / np.sqrt(len(want))
        assert abs(found.mean() - want.mean()) < 2 * error and 0.7 < found.std() / want.std() < 1.4
        assert abs(np.median(found) - np.median(want)) <= max(2 * error, 1 if found[0] == int(found[0]) else 0)

    def test_a_seed_gives_the_same_numbers_again(self, name):
        first, again = (np.asarray(getattr(default_rng(7), name)(*ARGUMENTS[name], size=50)) for _ in range(2))
        rng = default_rng(7)
        getattr(rng, name)(*ARGUMENTS[name], size=50)
        later = np.asarray(getattr(rng, name)(*ARGUMENTS[name], size=50))
        assert np.array_equal(first, again) and not np.array_equal(first, later)


def test_each_method_has_numpys_signature_and_is_ours():
    assert set(ARGUMENTS) == set(ON_DEVICE) <= set(METHODS)
    for name in METHODS:
        ours, theirs = getattr(Generator, name), getattr(np.random.Generator, name)
        assert inspect.signature(ours) == inspect.signature(theirs), name
        assert (ours is theirs) == (name in ("spawn", "bytes", "shuffle")), name


@pytest.mark.parametrize("call", [
    lambda r: r.random(), lambda r: r.normal(), lambda r: r.integers(5), lambda r: r.poisson(3),
    lambda r: r.random(3, dtype=np.float32), lambda r: r.random(3, "f8"), lambda r: r.standard_normal(3, dtype="f4"),
    lambda r: r.integers(5, size=3, dtype=np.uint8), lambda r: r.integers(0, 2**64 - 1, 3, np.uint64, True),
    lambda r: r.integers(2, size=3, dtype=bool), lambda r: r.integers([1, 2], [5, 6]), lambda r: r.normal([1, 2], 3),
    lambda r: r.normal(np.ones((2, 1)), np.ones(3)), lambda r: r.permutation(5), lambda r: r.choice(5, 3),
    lambda r: r.choice([1.5, 2.5], (2, 2), p=[0.5, 0.5]), lambda r: r.dirichlet([1, 2], 3), lambda r: r.bytes(3),
    lambda r: r.multinomial(5, [0.5, 0.5]), lambda r: r.laplace(size=4),
    lambda r: r.standard_exponential(3, method="inv"),
    # errors
    lambda r: r.normal(0, -1, 5), lambda r: r.normal(0, "a", 5), lambda r: r.random(-1), lambda r: r.random((2, -3)),
    lambda r: r.random(2.5), lambda r: r.random("a"), lambda r: r.random(3, dtype=int), lambda r: r.integers(5, 3, 4),
    lambda r: r.integers(300, size=3, dtype=np.uint8), lambda r: r.binomial(-1, 0.5, 3), lambda r: r.binomial(5, 2, 3),
    lambda r: r.beta(0, 1, 3), lambda r: r.random(3, 4, 5, 6), lambda r: r.random(shape=3), lambda r: r.poisson(-1, 3),
    lambda r: r.poisson(np.nan, 3), lambda r: r.hypergeometric(1, 1, 5, 3), lambda r: r.uniform(0, np.inf, 3),
    lambda r: r.permutation(), lambda r: r.geometric(0, 3), lambda r: r.gamma(-1, size=3),
    lambda r: r.standard_exponential(3, method="none"),
])
def test_results_and_errors_are_numpys(call):
    assert outcome(lambda: call(default_rng(0))) == outcome(lambda: call(np.random.default_rng(0)))


class TestOnTheHost:
    def test_it_is_told(self):
        rng = default_rng(0)
        warned = pytest.warns(lazyarray.HostFallbackWarning, match=r"\.permutation runs on the host: CuPy's generator")
        with lazyarray.trace() as t, warned:
            found = rng.permutation(5)
        (event,) = t.fallbacks
        assert event.name == "lazyarray.numpy.random.Generator.permutation" and lazyarray.is_lazy(found)
        assert np.array_equal(np.asarray(found), np.random.default_rng(0).permutation(5))
        with lazyarray.trace() as t:
            assert type(rng.random()) is float and not lazyarray.is_lazy(rng.integers(3))
        assert not t.events, "single numbers are not told of"

    @pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
    @pytest.mark.parametrize("call", [
        lambda r: r.choice(10, 5), lambda r: r.choice(10, 5, p=np.full(10, 0.1)), lambda r: r.choice(10, 5, False),
        lambda r: r.multivariate_normal(np.zeros(2), np.eye(2), 5), lambda r: r.permuted(np.arange(10)),
        lambda r: r.multivariate_hypergeometric([3, 4], 5, 2), lambda r: r.dirichlet([1, 2], 3),
    ])
    def test_methods_that_call_others_draw_numpys_numbers(self, call, monkeypatch):
        want = call(np.random.default_rng(3))
        rng = default_rng(3)
        monkeypatch.setattr(Generator, "on_device", None)
        found = call(rng)
        assert lazyarray.is_lazy(found) and np.array_equal(np.asarray(found), want)

    def test_lazy_arguments(self):
        x = lazyarray.asarray(np.arange(10.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lazyarray.HostFallbackWarning)
            for call in (lambda r, x: r.permutation(x), lambda r, x: r.choice(x, 5), lambda r, x: r.permuted(x),
                         lambda r, x: r.normal(x, 2.0)):
                found, want = call(default_rng(3), x), call(np.random.default_rng(3), np.arange(10.0))
                assert lazyarray.is_lazy(found) and np.array_equal(np.asarray(found), want)
        default_rng(3).shuffle(x)
        want = np.arange(10.0)
        np.random.default_rng(3).shuffle(want)
        assert np.array_equal(np.asarray(x), want)


class TestOut:
    @pytest.mark.parametrize("name", ["random", "standard_normal", "standard_exponential"])
    def test_a_lazy_array(self, name):
        out = lazyarray.asarray(np.zeros((3, 4), "f4"))
        with lazyarray.no_transfers():
            assert getattr(default_rng(5), name)(out=out, dtype=np.float32) is out
        assert np.asarray(out).all()
        if SIMULATED and name != "standard_exponential":
            assert np.array_equal(np.asarray(out), getattr(np.random.default_rng(5), name)((3, 4), dtype=np.float32))

    def test_a_host_array_and_errors(self):
        out = np.zeros(3)
        assert default_rng(5).random(out=out) is out and out.all()
        lazy = lazyarray.asarray(np.zeros(3))
        for call in (lambda r, o: r.random(out=o, dtype="f4"), lambda r, o: r.random(4, out=o)):
            assert outcome(lambda call=call: call(default_rng(0), lazy)) == outcome(
                lambda call=call: call(np.random.default_rng(0), np.zeros(3)))


class TestGenerator:
    def test_it_is_numpys(self):
        rng = default_rng(0)
        assert isinstance(rng, np.random.Generator) and np.random.default_rng(rng) is rng is default_rng(rng)
        assert isinstance(rng.bit_generator, np.random.PCG64)
        assert all(type(child) is Generator for child in rng.spawn(2))
        assert type(default_rng(np.random.Philox(3)).bit_generator) is np.random.Philox

    @pytest.mark.parametrize("way", [copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
    def test_copies_go_on_alike(self, way):
        rng = default_rng(4)
        rng.random()
        other = way(rng)
        assert type(other) is Generator and rng.random() == other.random()
        if SIMULATED:
            assert np.array_equal(rng.random(5), other.random(5))

    def test_seeds(self):
        for seed in (5, [1, 2], np.random.SeedSequence(3), np.random.PCG64(3)):
            numbers = default_rng(seed).random(3)
            assert lazyarray.is_lazy(numbers) and numbers.shape == (3,)
        assert not np.array_equal(default_rng().random(3), default_rng().random(3))
        assert outcome(lambda: default_rng(-1)) == outcome(lambda: np.random.default_rng(-1))

    def test_off(self):
        with lazyarray.options(lazy=False):
            assert type(default_rng(0).random(3)) is np.ndarray

    def test_the_module_is_numpys_otherwise(self):
        assert lazyarray.numpy.random is random and random.PCG64 is np.random.PCG64
        assert set(np.random.__all__) <= set(dir(random)) and type(random.rand(3)) is np.ndarray


def test_two_threads_that_begin_at_once_share_a_generator(monkeypatch):
    """Two of one seed would give both threads the same numbers."""
    device, both = lazyarray.device(), threading.Barrier(2)
    make = type(device).generator

    def generator(self, host):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(2)
        return make(self, host)
    monkeypatch.setattr(type(device), "generator", generator)
    rng, found = lazyarray.numpy.random.default_rng(0), []
    threads = [threading.Thread(target=lambda: found.append(rng.on_device())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1] is rng.on_device()
