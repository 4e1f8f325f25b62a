"""What programs did that were written from the contract alone: each is what NumPy does."""
from __future__ import annotations

import asyncio
import gc

import numpy as np
import pytest

import lazyarray


@pytest.fixture(autouse=True, params=[0, 95_000], ids=["all on the device", "small on the host"])
def small(request, small_on_host):
    small_on_host(request.param)


view = lazyarray.lazy(lambda a: a[...])


@lazyarray.lazy
def increased(a, b=None):
    a += 1


@pytest.mark.parametrize("flat", [
    lazyarray.lazy(lambda a: a.reshape(-1)), lazyarray.lazy(lambda a: a.reshape(-1), pure=True), view,
    lambda a: lazyarray.lazy_module(lazyarray.device().xp).ravel(a)])
def test_views_of_a_part_of_a_host_array(flat):
    h = np.arange(8.0)
    v = flat(h[1:])
    assert np.array_equal(np.array(v), h[1:])
    assert np.array_equal(np.asarray(v[:2]), [1, 2]) and np.array_equal(np.asarray(v[1:]), h[2:])
    np.asarray(v[:2])[...] = -1
    assert h.tolist() == [0, -1, -1, 3, 4, 5, 6, 7] and np.array_equal(v, h[1:])


class Methods:
    @lazyarray.lazy(writes=("a",))
    def plain(self, a, b=None):
        a += 1

    @lazyarray.lazy(writes=("a",))
    def steps(self, a):
        a += 1
        yield a

    @lazyarray.lazy(writes=("a",))
    @classmethod
    def of_class(cls, a):
        a += 1

    @lazyarray.lazy(writes=("a",))
    @staticmethod
    def static(a):
        a += 1


class Derived(Methods):
    def plain(self, a, b=None):
        Methods.plain(self, a)


@lazyarray.lazy(writes=("others",))
def by_keyword(first, **others):
    others["a"] += 1


@pytest.mark.parametrize("make", [np.array, lazyarray.asarray], ids=["host", "lazy"])
@pytest.mark.parametrize("call", [
    lambda a: Methods().plain(a), lambda a: Methods.plain(Methods(), a), lambda a: Methods.plain(Methods(), a=a),
    lambda a: list(map(Methods.plain, [Methods()], [a])), lambda a: list(Methods.steps(Methods(), a)),
    lambda a: list(Methods().steps(a)), lambda a: Methods.of_class(a), lambda a: Methods().of_class(a),
    lambda a: Methods.static(a), lambda a: Methods().static(a), lambda a: Derived().plain(a),
    lambda a: by_keyword(1, a=a)])
def test_what_is_written_by_name(call, make):
    a = make(np.zeros(4))
    call(a)
    assert np.array_equal(a, np.ones(4))


def cleaned_up(a):
    try:
        yield a
    finally:
        a += 100


@pytest.mark.parametrize("make", [np.array, lazyarray.asarray], ids=["host", "lazy"])
@pytest.mark.parametrize("end", [lambda steps: steps.close(), lambda steps: None], ids=["closed", "forgotten"])
def test_what_a_generator_writes_at_its_end(make, end):
    x = make(np.zeros(5))
    steps = lazyarray.lazy(cleaned_up)(x)
    next(steps)
    np.asarray(x)
    end(steps)
    del steps
    gc.collect()
    assert np.array_equal(x, np.full(5, 100.0))


@pytest.mark.parametrize("make", [np.array, lazyarray.asarray], ids=["host", "lazy"])
def test_what_is_written_at_an_asynchronous_end(make):
    @lazyarray.lazy
    async def waiting(a, event):
        try:
            await event.wait()
        finally:
            a += 5

    @lazyarray.lazy
    async def giving(a):
        try:
            while True:
                yield a
        finally:
            a += 7

    async def run(x, y):
        task = asyncio.ensure_future(waiting(x, asyncio.Event()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        steps = giving(y)
        await anext(steps)
        await steps.aclose()

    x, y = make(np.zeros(3)), make(np.zeros(3))
    asyncio.run(run(x, y))
    assert np.array_equal(x, np.full(3, 5.0)) and np.array_equal(y, np.full(3, 7.0))


@lazyarray.lazy
def later():
    r = yield 1
    yield 2
    r += 1
    yield r
    yield 3
    r *= 2
    yield r[:1]


@pytest.mark.together       # of an array on another device the generator has a copy, as of a host array
@pytest.mark.parametrize("n", [5, 20_000])
def test_what_is_sent_is_an_argument(n):
    x = lazyarray.asarray(np.zeros(n))
    steps = later()
    next(steps)
    steps.send(x)
    assert next(steps) is x and np.array_equal(x, np.ones(n))
    x += 1
    next(steps)
    part = next(steps)
    assert np.array_equal(x, np.full(n, 4.0))
    part[...] = 9
    assert np.asarray(x)[0] == 9
    h = np.zeros(n)
    steps = later()
    next(steps)
    steps.send(h)
    assert next(steps) is h and h[0] == 1
    next(steps)
    next(steps)
    assert h[0] == 2


def test_what_was_sent_is_forgotten_once_nobody_has_it():
    @lazyarray.lazy
    def summed():
        total = 0.0
        while True:
            a = yield total
            total = total + a.sum()

    steps = summed()
    next(steps)
    for k in range(50):
        steps.send(lazyarray.asarray(np.full(3000, 1.0 * k)))
        found = steps.send(np.ones(4))
    assert float(found) == 3000 * sum(range(50)) + 50 * 4
    assert len(steps.gi_frame.f_locals["steps"].sent) <= 1


def test_what_else_may_be_sent():
    @lazyarray.lazy
    def taken():
        found = []
        while True:
            given = yield found
            found = [len(given) if hasattr(given, "__len__") else given, *found]
            if isinstance(given, list):
                given[0] += 1
                given[1] *= 3

    steps = taken()
    next(steps)
    x, y, h = lazyarray.asarray(np.zeros(3)), lazyarray.asarray(np.ones(4)), np.ones(2)
    for _ in range(3):
        for value in ([x, y, 5], [h, x], np.array(["a", "b"]), "word", None, 7, [x.sum(), y], {"a": x}, ()):
            steps.send(value)
    assert np.array_equal(h, np.full(2, 4.0)) and np.array_equal(x, np.full(3, 39.0))
    assert np.array_equal(y, np.full(4, 3.0 ** 6))


def test_an_argument_beside_a_view_of_it():
    both = lazyarray.lazy(lambda a: (a, a[1:]), pure=True)
    x = lazyarray.asarray(np.arange(20_000.0)) * 1
    one, part = both(x)
    np.asarray(x), np.asarray(part)
    assert np.shares_memory(x, part)
    part[...] = 7
    assert np.asarray(x)[2] == 7 and np.asarray(one)[2] == 7


def test_two_lazy_arrays_of_one_host_array():
    h = np.zeros(4)
    p, q = view(h), view(h)
    increased(p, q)
    increased(q, p)
    assert np.array_equal(h, np.full(4, 2.0)) and np.array_equal(p, h) and np.array_equal(q, h)
    h = np.zeros(4)
    p, q = view(h[1:]), view(h)
    h += 1
    increased(q, p)
    assert np.array_equal(h, np.full(4, 2.0)) and np.array_equal(p, h[1:])


def test_a_host_array_that_reaches_beyond_a_lazy_one_in_it():
    h = np.arange(6.0)
    v = view(h[:3])
    increased(h, v)
    assert h.tolist() == [1, 2, 3, 4, 5, 6] and np.array_equal(v, h[:3])
    increased(v, h)
    assert h.tolist() == [2, 3, 4, 4, 5, 6] and np.array_equal(v, h[:3])


def test_several_lazy_arrays_of_one_host_array_among_others():
    @lazyarray.lazy
    def several(a, b, c, d):
        a += 1
        c *= 2

    h, x = np.arange(6.0), lazyarray.asarray(np.ones(3))
    p, q = view(h[:4]), view(h[2:])
    several(p, x, q, lazyarray.asarray(np.ones(6)))
    assert h.tolist() == [1, 2, 6, 8, 8, 10] and np.array_equal(p, h[:4]) and np.array_equal(q, h[2:])


def test_an_empty_result_of_a_host_twin_keeps_no_memory():
    def device(a):
        raise TypeError

    h = np.arange(1.0, 7)
    empty = lazyarray.lazy(device, pure=True, host=lambda a: a[0:0])(h[-1:])
    part = lazyarray.lazy(lambda a, b, c: b[1:])(h[...], h[:2], empty)

    @lazyarray.lazy
    def work(a, b, c):
        b += 1
        a *= 2

    work(h[1:], part, [h[2:]])
    assert h.tolist() == [1, 6, 6, 8, 10, 12] and np.asarray(part).tolist() == [6]


@pytest.mark.parametrize("part", [np.s_[:2], np.s_[1:3]])
@pytest.mark.parametrize("argument", [np.s_[:], np.s_[1:], np.s_[::-1]])
def test_a_host_twin_of_a_host_array_that_reaches_beyond(part, argument):
    def device(*args):
        raise TypeError

    h = np.arange(6.0)
    v, a = view(h[part]), h[argument]
    found = lazyarray.lazy(device, host=lambda a, b: a[...])(a, v)
    assert np.array_equal(found, a)
    found += 1
    expected = np.arange(6.0)
    expected[argument] += 1
    assert np.array_equal(h, expected) and np.array_equal(v, h[part])


def test_what_an_asynchronous_generator_writes_when_the_loop_ends():
    @lazyarray.lazy
    async def giving(a):
        try:
            yield a
            yield 3
        finally:
            a += 100

    async def begin(steps):
        await anext(steps)

    kept = []
    for _ in range(30):
        h = np.zeros(4)
        kept.append(giving(h))
        asyncio.run(begin(kept[-1]))
        assert np.array_equal(h, np.full(4, 100.0))


def test_a_host_twin_that_fails_runs_once():
    def device(a, b):
        raise TypeError

    def host(a, b):
        b += 1
        a += b

    b = np.zeros(4)
    with lazyarray.options(min_bytes=1 << 20), pytest.raises(ValueError):
        lazyarray.lazy(device, host=host)(np.zeros(3), b)
    assert np.array_equal(b, np.ones(4))


def test_one_element_with_a_stride():
    pure = lazyarray.lazy(lambda a: a[None], pure=True)
    h = np.array([5.0])
    pure(h[::-1])[...] = 2
    assert h.tolist() == [2]


def test_a_list_of_many_rows():
    x = lazyarray.asarray(np.zeros((3000, 2))) * 1
    rows = lazyarray.lazy(lambda a: list(a))(x)
    rows[7][...] = 1
    assert np.asarray(x).sum() == 2 and len(rows) == 3000
