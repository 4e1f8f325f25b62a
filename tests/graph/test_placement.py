"""Where work runs that needs nothing of either side, and the model that says so."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as lazy
from lazyarray.graph import cost_model
from lazyarray.testing import assert_copies

SMALL, LARGE = 1000, 1_000_000


def state(x):
    return x._self_storage.state


@pytest.fixture
def costs(monkeypatch):
    """Sets the constants of the model."""
    def put(**constants):
        monkeypatch.setattr(cost_model, "_costs", cost_model.Costs(**constants))

    put()
    return put


@pytest.fixture(autouse=True)
def as_users_have_it(costs):
    with lazyarray.options(defer_from=16 << 20):
        yield


MADE = {
    "arange": lambda xp, n: xp.arange(n),
    "a range of floats": lambda xp, n: xp.arange(0.5, n, 1.0),
    "linspace": lambda xp, n: xp.linspace(-1, 2, n),
    "full": lambda xp, n: xp.full((n // 10, 10), 3.5, "f4"),
    "in Fortran order": lambda xp, n: xp.ones((n // 10, 10), order="F") * 2,
    "the table of CuPy's paper": lambda xp, n: xp.arange(n).reshape(10, -1).T * 2,
    "products and sums": lambda xp, n: (xp.arange(n) * 2 + xp.arange(n) // 3) % 7,
    "a mask": lambda xp, n: (xp.arange(n) > 4) & (xp.arange(n) < 9),
    "a choice": lambda xp, n: np.where(xp.arange(n) > 4, xp.linspace(0, 1, n), 2.0),
    "a table": lambda xp, n: xp.arange(10)[:, None] * xp.arange(n),
    "casts": lambda xp, n: xp.arange(n).astype("f4") / 3,
}


ASKED = {
    "by the host": np.asarray, "by the device": lambda x: np.asarray(lazyarray.asarray(lazyarray.asdevice(x))),
    "by work on the device": lambda x: np.asarray(x * lazyarray.asarray(np.ones((), x.dtype))),
    "by both": lambda x: (np.asarray(x), np.asarray(x + np.zeros((), x.dtype)))[1],
}


@pytest.mark.parametrize("n", [20, SMALL, LARGE])
@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_as_numpy_makes_it(make, ask, n):
    expected = make(np, n)
    x = make(lazy, n)
    assert lazyarray.is_lazy(x) and x.strides == expected.strides and x.dtype == expected.dtype
    found = ask(x)
    np.testing.assert_array_equal(found, expected)
    assert found.strides == expected.strides


@pytest.mark.parametrize("make", [make for name, make in MADE.items() if name != "a table"],
                         ids=[name for name in MADE if name != "a table"])      # whose lines are computed before it
def test_what_the_host_asks_for_is_made_there_if_it_is_small(make):
    x = make(lazy, SMALL)
    with assert_copies(uploads=0, materialisations=0), lazyarray.no_transfers():
        found = np.asarray(x)
    np.testing.assert_array_equal(found, make(np, SMALL))


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_what_the_device_asks_for_is_made_there(make):
    expected = make(np, SMALL)
    other = lazyarray.asarray(np.ones_like(expected))
    with lazyarray.no_transfers():
        result = make(lazy, SMALL) + other
        lazyarray.asdevice(result)
    np.testing.assert_array_equal(result, expected + np.ones_like(expected))


def test_what_is_large_is_made_on_the_device_and_copied_once():
    x = lazy.arange(LARGE) * 2
    with assert_copies(uploads=0, materialisations=1):
        np.asarray(x)
        np.asarray(x)


def test_the_model_decides(costs):
    costs(launch=1e-12, copy_call=1e-12)
    with assert_copies(uploads=0, materialisations=1):
        np.asarray(lazy.arange(SMALL))
    costs(launch=1.0)
    with assert_copies(uploads=0, materialisations=0):
        np.asarray(lazy.arange(LARGE))


def test_a_value_on_the_device_is_not_fetched_to_be_computed_on():
    x = lazyarray.asarray(np.arange(5))
    with lazyarray.no_transfers():
        y = (x + lazy.arange(5)) * 2
        assert state(y) == "device"
    assert y.tolist() == [0, 4, 8, 12, 16]


HOST = {
    "the first places again": lambda xp: xp.arange(7), "more than are kept": lambda xp: xp.arange(40_000),
    "of another dtype": lambda xp: xp.arange(9, dtype="u1"), "one number": lambda xp: xp.full((3, 4), 7, "i2"),
    "one place another": lambda xp: xp.linspace(0, 1, 50).reshape(5, 10).T * 3,
    "a row": lambda xp: xp.arange(12).reshape(3, 4) * xp.arange(4),
    "a row in Fortran order": lambda xp: xp.ones((4, 3), order="F") * xp.arange(3),
    "twice the same": lambda xp: (lambda y: (y * y.T).T + y.T)(xp.arange(16).reshape(4, 4) + 1),
    "a view of a view": lambda xp: (xp.arange(24).reshape(2, 3, 4).transpose(2, 0, 1) - 5) // 2,
}


@pytest.mark.parametrize("make", HOST.values(), ids=HOST)
def test_who_looks_gets_an_array_of_his_own(make):
    expected = make(np)
    for _ in range(2):
        found = np.asarray(make(lazy))
        assert found.dtype == expected.dtype and found.strides == expected.strides
        np.testing.assert_array_equal(found, expected)
        found[...] = 77     # of what others see, nothing changes


@pytest.mark.parametrize("make", [
    lambda xp: xp.arange(5) / 0, lambda xp: xp.arange(5) // 0, lambda xp: xp.arange(5) % 0,
    lambda xp: (xp.arange(3.0) / 0 > 1) & (xp.arange(3) > 1), lambda xp: xp.full(4, 1e300) * 1e300,
    lambda xp: xp.full(4, 1e300).astype("f4"), lambda xp: xp.full(4, 2**62) * 4,
    lambda xp: (xp.arange(5) * 2**62).reshape(5, 1) + 2**62,
])
def test_the_host_warns_no_more_than_the_device(make):
    with np.errstate(all="ignore"):
        expected = make(np)
    with warnings.catch_warnings(), np.errstate(all="warn"), lazyarray.no_transfers():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(np.asarray(make(lazy)), expected)


@pytest.mark.skipif(lazyarray.device().name == "cuda", reason="a GPU's arithmetic tells of no errors")
@pytest.mark.parametrize("make", [lambda xp: xp.arange(5) / 0, lambda xp: xp.full(4, 1e300) * 1e300])
@pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
def test_what_numpy_is_told_to_raise_is_raised_of_sources_too(make):
    with np.errstate(all="raise"):
        for xp in (np, lazy):
            with pytest.raises(FloatingPointError):
                make(xp)


def test_no_value_depends_on_who_asked_first():
    x = np.sin(lazy.linspace(0, 1, SMALL))
    with assert_copies(uploads=0, materialisations=1):      # NumPy's sine is not the device's
        np.asarray(x)


class TestCoherence:
    def test_an_alias_is_written(self):
        x = lazy.arange(5)
        later, view = x * 2, x[1:]
        alias = np.asarray(x)
        alias[1] = 100
        assert x.tolist() == [0, 100, 2, 3, 4] and view[0] == 100
        assert (x + lazyarray.asarray(np.ones(5, int))).tolist() == [1, 101, 3, 4, 5]
        assert later.tolist() == [0, 2, 4, 6, 8], "recorded before the write"
        assert (x * 2).tolist() == [0, 200, 4, 6, 8]

    def test_the_device_writes_what_an_alias_holds(self):
        x = lazy.arange(5)
        alias = np.asarray(x)
        x += lazyarray.asarray(np.ones(5, int))
        assert alias.tolist() == [1, 2, 3, 4, 5]

    def test_a_view_that_is_asked_for(self):
        x = lazy.arange(20).reshape(4, 5)
        alias = np.asarray(x[1:3, ::2])
        assert alias.tolist() == [[5, 7, 9], [10, 12, 14]]
        alias[0, 0] = -1
        assert x[1, 0] == -1

    def test_what_must_not_be_written(self):
        x = lazy.arange(5)
        x.flags.writeable = False
        assert not np.asarray(x).flags.writeable
        spread = np.broadcast_arrays(lazy.arange(5), np.zeros((3, 1)))[0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")      # NumPy's is for who writes, or asks
            assert np.asarray(spread).tolist() == [[0, 1, 2, 3, 4]] * 3

    def test_a_private_look_leaves_it_to_be_made(self):
        x = lazy.arange(SMALL)
        with lazyarray.no_transfers():
            assert str(x) == str(np.arange(SMALL))
            lazyarray.asdevice(x)

    def test_written_before_it_was_made(self):
        x = lazy.zeros(5)
        y = x + 1
        x[2] = 7
        assert x.tolist() == [0, 0, 7, 0, 0] and y.tolist() == [1] * 5

    def test_an_address(self):
        x = lazy.arange(5)
        address = x.ctypes.data
        x += 1
        import ctypes
        assert list((ctypes.c_int64 * 5).from_address(address)) == [1, 2, 3, 4, 5] or x.tolist() == [1, 2, 3, 4, 5]


class TestModel:
    def test_constants_are_read_and_written(self):
        found = cost_model.Costs.of_text("launch=3e-6, copy_rate=1e9")
        assert found.launch == 3e-6 and found.copy_rate == 1e9 and found.host_call == cost_model.Costs().host_call
        assert cost_model.Costs.of_text(found.text()) == found

    @pytest.mark.parametrize("text", ["launcher=1", "launch", "launch=soon", "launch=0", "launch=-1", "launch=nan"])
    def test_mistakes_are_told(self, text):
        with pytest.raises(ValueError, match="LAZYARRAY_COSTS"):
            cost_model.Costs.of_text(text)

    def test_the_largest_on_the_host_is_where_the_two_are_equal(self):
        model = cost_model.Costs()

        def later_on_host(nbytes, steps):
            """Seconds that the host takes more for so many calls than the device for a kernel and the copy."""
            return steps * (model.host_call + nbytes / model.host_rate) - (
                model.launch + nbytes / model.device_rate + model.copy_call + nbytes / model.copy_rate)

        for steps in (1, 2, 10):
            most = model.largest_on_host(steps)
            assert most > 0 and later_on_host(most, steps) == pytest.approx(0, abs=1e-8)
            assert later_on_host(most - 64, steps) < 0 < later_on_host(most + 64, steps)
        assert cost_model.Costs(launch=1e-9, copy_call=1e-9).largest_on_host() == 0

    def test_they_are_measured(self):
        found = cost_model.measured(lazyarray.device(), large=1 << 20, rounds=3)
        assert all(value > 0 for value in found)
