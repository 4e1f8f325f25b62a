"""Another thread has its turn while a call that is prepared in C asks Python for something."""
from __future__ import annotations

import contextlib
import sys
import threading

import numpy as np
import pytest

import lazyarray
from lazyarray import _native
from lazyarray.storage import spilling

pytestmark = pytest.mark.skipif(lazyarray.device().name != "simulated" or _native.recording is None,
                                reason="turns are at functions of the simulated device; it is the compiled part's look")
N = 100_000


@pytest.fixture(autouse=True)
def recorded():
    before = _native.recording.small(0)
    with lazyarray.options(defer_from=0):
        yield
    _native.recording.small(before)


@contextlib.contextmanager
def turn(function, file, other):
    """Have another thread run `other` when `function`, of a file that ends so, is called first."""
    done = []

    def run():
        with lazyarray.options(defer_from=0):
            other()

    def called(frame, event, arg):
        code = frame.f_code
        if event == "call" and not done and code.co_name == function and code.co_filename.endswith(file):
            done.append(threading.Thread(target=run))
            sys.setprofile(None)
            done[0].start()
            done[0].join(20)
            sys.setprofile(called)

    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(None)
    assert done and not done[0].is_alive()


def there(values):
    """An array on the device alone, in memory of its own."""
    return lazyarray.block_until_ready(lazyarray.asarray(values).copy())


def test_a_shape_that_is_assigned():
    x = lazyarray.asarray(np.arange(N) * 1.0)
    lazyarray.asarray(np.ones(N)) * 2

    def other():
        x.shape = 1000, 100
    with turn("several", "simulated/device.py", other):
        x * 2
    assert x.shape == (x * 2).shape == (1000, 100)
    assert np.asarray(x * 3)[1, 0] == 300


def test_the_form_of_another_array_does_not_last():
    def view():
        return there(np.arange(6.0 * N))[::10]      # a stride that no call before had
    there(np.arange(6.0 * N))[::15] * 3
    v = view()

    def other():
        v.shape = 300, 200
    with turn("_general", "record/ufunc.py", other):
        v * 3
    w = view()
    assert np.asarray(w * 3).shape == w.shape == (60_000,)


def test_an_array_that_moves_to_the_host():
    x, w = there(np.arange(N) + 1.0), there(np.arange(N) * 1.0)
    for _ in range(2):
        np.asarray(w[::2] * 2)
    v, more = x[::2], []

    def other():
        assert spilling._tried(x._self_storage, lambda: spilling._move(x._self_storage, [x, v]))
        more.append(there(np.full(N, -7.0)))        # in the memory that is free now
    with turn("block", "storage/state.py", other):
        found = v * 2
    np.testing.assert_array_equal(np.asarray(found)[:3], [2, 6, 10])


@pytest.mark.together
def test_memory_that_is_lent():
    y = there(np.arange(N) * 1.0)
    for _ in range(3):
        np.asarray((y + 1) + y)
    x, y, lent = y + 1, there(y.copy()), []
    y._self_leaf = None
    with turn("several", "simulated/device.py", lambda: lent.append(lazyarray.asdevice(x))):
        found = x + y
    lent[0][...] = 0
    np.testing.assert_array_equal(np.asarray(found)[:3], [1, 3, 5])


@pytest.mark.parametrize("pending", [True, False])
def test_an_alias_of_what_is_written(pending):
    def made():
        x = lazyarray.asarray(np.arange(6.0))
        return x + 0 if pending else x
    y0 = lazyarray.asarray(np.arange(6.0))
    w = made()
    w += y0 * 2
    x, y, aliases = made(), y0 * 2, []
    with turn("lock", "storage/state.py", lambda: aliases.append(np.asarray(x))):
        x += y
    aliases[0][0] = 99
    np.testing.assert_array_equal(x, [99, 3, 6, 9, 12, 15])
    np.testing.assert_array_equal(aliases[0], x)


def test_arguments_are_of_one_time():
    base = lazyarray.asarray(np.ones(6))
    a, b = lazyarray.asarray(np.zeros(6)), base[::-1]
    for _ in range(20):
        w = lazyarray.asarray(np.zeros(6))
        w += lazyarray.asarray(np.zeros(6)) * 2
        w += 1
        float(w[0])
    a += 1
    float(a[0])
    np.concatenate([a, base])

    def other():
        x, y = a, base
        x += lazyarray.asarray(np.zeros(6)) * 2 + 9
        y += 9
    with turn("block", "storage/state.py", other):
        found = np.asarray(np.concatenate([a, b])).tolist()
    assert found in ([1.0] * 12, [10.0] * 6 + [1.0] * 6, [10.0] * 12)
