"""A program that waits for the device at each step goes on on the host with arrays that are larger than small ones."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp
from lazyarray import _native
from lazyarray.dispatch.cheap_on_host import COSTLY, cost_of

pytestmark = [pytest.mark.skipif(_native.recording is None, reason="without the part in C no array stays on the host"),
              pytest.mark.one_device("what is small is of one device")]

SET = 4096
VALUES = np.random.default_rng(7).random(1024) + 0.5        # twice as many bytes


@pytest.fixture(autouse=True)
def small():
    before = _native.recording.small(SET)       # which forgets what other tests have begun
    yield
    _native.recording.small(before)


def limit():
    return _native.recording.small()


def on_device(values=VALUES):
    return lazyarray.asarray(np.tile(values, 4))[:len(values)] * 1.0


def stepped(x, steps, calls=2):
    """Steps after each of which a number is looked at, and the numbers."""
    seen = []
    for _ in range(steps):
        for _ in range(calls):
            x = x * 0.99
        seen.append(float(x[3]))
    return x, seen


def kinds(work):
    with lazyarray.trace() as seen:
        work()
    return [event.kind for event in seen.events]


def raised():
    """An array of the host in a program for which `VALUES` are small by now."""
    x, _ = stepped(on_device(), 60)
    assert limit() == VALUES.nbytes
    return x


def test_after_some_waits_the_host_goes_on_with_what_is_waited_for():
    x = on_device()
    found = []
    first = kinds(lambda: found.append(stepped(x, 60)))
    assert limit() == VALUES.nbytes
    assert "materialise" in first
    later = kinds(lambda: found.append(stepped(found[0][0], 60)))
    assert {*later} == {"host"}
    wanted = stepped(VALUES, 120)
    assert np.allclose([*found[0][1], *found[1][1]], wanted[1], rtol=1e-12)
    assert np.allclose(np.asarray(found[1][0]), wanted[0], rtol=1e-12)


def test_sums_and_new_arrays_follow():
    x = raised()
    assert type(x.sum()) is np.float64
    assert {*kinds(lambda: xnp.zeros(1024) + x)} == {"host"}


def test_a_program_that_does_not_wait_stays_on_the_device():
    x = on_device()
    for _ in range(400):
        x = x * 0.99
    assert limit() == SET
    assert "host" not in kinds(lambda: x * 0.99)


@pytest.mark.parametrize("calls", [13, 40])
def test_nor_does_one_that_does_much_between(calls):
    x, seen = stepped(on_device(), 60, calls)
    assert limit() == SET
    assert np.allclose(seen, stepped(VALUES, 60, calls)[1], rtol=1e-12)


def test_nor_one_with_large_arrays_between():
    x, large = on_device(), lazyarray.asarray(np.ones(1 << 17))
    for _ in range(60):
        x = x * 0.99
        large = large + 1
        float(x[3])
    assert limit() == SET


def test_what_does_more_for_each_element_counts_as_more():
    assert cost_of(np.sin) == COSTLY
    x = on_device()
    for _ in range(60):
        x = xnp.sin(x * 0.1)
        float(x[3])
    assert limit() == SET


def test_where_numbers_are_no_longer_looked_at_the_limit_is_what_was_set():
    x = raised()
    y = VALUES
    for _ in range(400):
        x = x * 0.99 + 0.01
    assert limit() == SET
    found = []
    assert "host" not in kinds(lambda: found.append(x + x))
    wanted = stepped(y, 60)[0]
    for _ in range(400):
        wanted = wanted * 0.99 + 0.01
    assert np.allclose(np.asarray(found[0]), 2 * wanted, rtol=1e-12)


def test_what_gives_nothing_is_no_look():
    x = raised()
    for _ in range(400):
        np.multiply(x, 0.99, out=x)
        np.add.at(x, [3], 1.0)
    assert limit() == SET


def test_and_more_waits_are_asked_for_then():
    x = raised()
    for _ in range(400):
        x = x * 0.99
    assert limit() == SET
    stepped(x, 20)
    assert limit() == SET           # 16 were enough at first
    stepped(x, 40)
    assert limit() == VALUES.nbytes


def test_what_served_long_is_trusted_again():
    x = raised()
    x, _ = stepped(x, 100)
    for _ in range(400):
        x = x * 0.99
    assert limit() == SET
    stepped(x, 20)
    assert limit() == VALUES.nbytes


def test_what_was_set_is_given_back():
    raised()
    assert _native.recording.small(SET) == SET
    assert limit() == SET


def test_none_is_small_with_zero():
    _native.recording.small(0)
    x, _ = stepped(on_device(), 60)
    assert limit() == 0
    assert "host" not in kinds(lambda: stepped(x, 5))


def test_the_bytes_of_matrices_that_are_multiplied_are_as_before():
    raised()
    a = lazyarray.asarray(np.ones((128, 128)))      # 128 kB, more than 16 times what was set
    v = xnp.ones(128)
    assert "host" not in kinds(lambda: a @ v)
