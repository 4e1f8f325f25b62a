"""Whose memory the results of a GPU function are: its own alone, or somebody's who may write to it later."""
from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections import namedtuple

import numpy as np
import pytest

import lazyarray
from lazyarray import lazy

xp = lazyarray.device().xp
Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Both:
    a: object
    b: object


class Keeper:
    """It has what it returned last."""

    @lazy
    def double(self, a):
        return a * 2

    @lazy
    def kept(self, a):
        self.last = a * 2
        return self.last


def in_place(a):
    r = xp.zeros_like(a)
    r += a
    part = r[1:3]
    part += 1
    return r


def after_an_error(a):
    try:
        raise ValueError
    except ValueError:
        r = a * 2
    return r


def of_a_cell(a):
    r = a * 2
    return (lambda: r)()


def arrays(result):
    if lazyarray.is_lazy(result):
        return [result] if result.ndim else []
    if isinstance(result, dict):
        return [x for item in result.values() for x in arrays(item)]
    if isinstance(result, (list, tuple)):
        return [x for item in result for x in arrays(item)]
    return arrays(list(vars(result).values())) if dataclasses.is_dataclass(result) else []


def is_ours(x):
    return not (x._self_storage.loans or x._self_storage.foreign)


@pytest.fixture
def x():
    return lazyarray.asarray(np.arange(12.0))


@pytest.mark.parametrize("settings", [{}, {"pure": True}], ids=["any", "pure"])
@pytest.mark.parametrize("function", [
    lambda a: a * 2, lambda a: +a, lambda a: (a * 2)[1:], lambda a: (a * 2).reshape(3, 4).T, lambda a: (a * 2)[::2],
    lambda a: a[1:], lambda a: a, lambda a: a.sum(), lambda a: (a * 2, a * 3), lambda a: [a * 2, [a * 3]],
    lambda a: (lambda r: (r, r))(a * 2), lambda a: {"p": a * 2, "q": (a * 3, [a * 4])}, lambda a: Pair(a * 2, a * 3),
    lambda a: Both(a * 2, a * 3), lambda a: (lambda r: (r[:6], r[6:]))(a * 2), lambda a: (lambda r: (r, r[6:]))(a * 2),
    lambda a: xp.nonzero(a), lambda a: (a * 2, 3, None, "x"), functools.partial(lambda k, a: a * k, 2),
    lambda a: a.copy().ravel(), lambda a: a.astype("f4"), lambda a: xp.where(a > 2, a, 0), in_place, after_an_error,
    of_a_cell])
def test_what_nobody_else_holds_is_found_to_be_so(x, function, settings):
    found = arrays(lazy(function, **settings)(x))
    assert all(map(is_ours, found))


def test_of_methods_coroutines_and_generators(x):
    async def later(a):
        return a * 2

    def steps(a):
        for k in range(3):
            yield a * k

    assert is_ours(Keeper().double(x)) and is_ours(asyncio.run(lazy(later)(x)))
    assert all(is_ours(part) for part in lazy(steps)(x))


@pytest.mark.together
def test_what_the_function_keeps_is_held_until_it_lets_go(x):
    keeper = Keeper()
    found = keeper.kept(x)
    assert not is_ours(found)
    keeper.last[0] = 50
    assert found[0] == 50 and (found + 1)[0] == 51
    del keeper.last
    again = lazyarray.asarray(np.zeros(12)) + found
    assert again[1] == 2


def test_a_generator_that_goes_on_with_what_it_gave(x):
    def growing(a):
        r = a * 0
        for _ in range(3):
            r += 1
            yield r

    given = lazy(growing)(x)
    first = next(given)
    assert first[0] == 1
    next(given)
    assert first[0] == 2, "the same array"
