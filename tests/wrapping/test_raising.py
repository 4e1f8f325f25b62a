"""What functions leave behind that raise an error half-way: what they have written, as functions of NumPy's do."""
from __future__ import annotations

import asyncio
import inspect

import numpy as np
import pytest

import lazyarray


class Stop(Exception):
    """What a function raises."""


def _plain(error):
    def function(x, y):
        x += 1
        y[0] = 7
        raise error
    return function


def _generator(error):
    def function(x, y):
        x += 1
        yield x.sum()
        y[0] = 7
        raise error
    return function


def _coroutine(error):
    async def function(x, y):
        x += 1
        await asyncio.sleep(0)
        y[0] = 7
        raise error
    return function


def _run(made):
    if inspect.iscoroutine(made):
        asyncio.run(made)
    elif made is not None:
        for _ in made:
            pass


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("writes", [None, ("x", "y")])
@pytest.mark.parametrize("kinds", ["hh", "hl", "lh", "ll"])
@pytest.mark.parametrize("function", [_plain, _generator, _coroutine])
def test_what_was_written_before_the_error_stays(function, kinds, writes, error):
    given = [np.zeros(6), np.zeros((2, 3))]
    x, y = (lazyarray.asarray(a) if kind == "l" else a for kind, a in zip(kinds, given))
    with pytest.raises(error):
        _run(lazyarray.lazy(function(error), writes=writes)(x, y))
    assert np.array_equal(x, np.ones(6)) and np.array_equal(y, [[7] * 3, [0] * 3])


@pytest.mark.parametrize("size", [6, 100_000])
@pytest.mark.parametrize("number", [1, 2])
def test_what_others_write_between_two_steps_stays(size, number):
    @lazyarray.lazy
    async def function(x, *more):
        x[0] = 1
        await asyncio.sleep(0)
        x[1] = 2
        for y in more:
            y[0] = np.nan
        await asyncio.sleep(0)
        x[2] = 3

    async def main(x, more):
        running = asyncio.ensure_future(function(x, *more))
        for place in (3, 4, 0):
            await asyncio.sleep(0)
            x[place] += 50
        await running

    x, *more = (np.zeros(size) for _ in range(number))
    asyncio.run(main(x, more))
    assert x[:6].tolist() == [51, 2, 3, 50, 50, 0] and not x[6:].any()
    assert all(np.isnan(y[0]) and not y[1:].any() for y in more)


def test_one_that_writes_what_is_read_only_says_so():
    x = np.zeros(4)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only") as caught:
        lazyarray.lazy(lambda x: _plain(Stop)(x, x))(x)
    assert isinstance(caught.value.__context__, Stop) and not x.any()


def test_the_host_twin_sees_what_was_given():
    def on_device(x):
        x += 1
        raise Stop

    def on_host(x):
        assert not x.any()
        x[0] = 5

    x = np.zeros(4)
    with pytest.warns(lazyarray.HostFallbackWarning):
        lazyarray.lazy(on_device, host=on_host)(x)
    assert x.tolist() == [5, 0, 0, 0]


@pytest.mark.parametrize("view", [
    lambda x: np.broadcast_to(x, (2, 3)), lambda x: np.broadcast_to(x[::-1], (2, 3)), lambda x: np.broadcast_to(x, 3)])
@pytest.mark.parametrize("first", [True, False])
def test_a_read_only_view_of_what_is_modified_changes_with_it(view, first):
    def function(x, y):
        x *= 2
        x[0] = y[..., -1].sum()

    call = lazyarray.lazy(function if first else lambda y, x: function(x, y))
    plain, x = np.arange(3.0), lazyarray.asarray(np.arange(3.0))
    function(plain, view(plain))
    call(*(x, view(x)) if first else (view(x), x))
    assert np.array_equal(x, plain)


def test_a_read_only_argument_of_its_own_is_still_guarded():
    x, y = lazyarray.asarray(np.zeros(3)), np.broadcast_to(lazyarray.asarray(np.zeros(3)), (2, 3))

    @lazyarray.lazy
    def function(x, y):
        x += 1
        y += 1

    with pytest.raises(ValueError, match="read-only"):
        function(x, y)
