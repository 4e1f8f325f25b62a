"""Small arrays of the host into which the device writes are the device's from then on."""
from __future__ import annotations

import numpy as np
import pytest
from handlers import At

import lazyarray
import lazyarray.numpy as lnp


@pytest.fixture(autouse=True)
def small(small_on_host):
    small_on_host(95_000)


@pytest.mark.parametrize("make", [np.empty, np.zeros, lambda n: np.arange(float(n)), lambda n: np.ones((n, 2))[:, 1]])
def test_values_and_copies(make):
    values = np.arange(40_000.0)
    x = lazyarray.asarray(values) * 1
    h = make(50)
    h[...] = 0.5
    found = lazyarray.asarray(h.copy()) if h.base is None else lnp.ones((50, 2))[:, 1]
    found[...] = 0.5
    with lazyarray.trace() as record:
        for k in range(4):
            found[k] = (x * k).sum()
            h[k] = (values * k).sum()
        found[10:20] += x.max()
        h[10:20] += values.max()
        scalar = x[7] * 2
        found[-1], h[-1] = scalar, values[7] * 2
    assert not record.materialisations
    np.testing.assert_array_equal(np.asarray(found), h)
    found[2], h[2] = 3, 3
    np.testing.assert_array_equal(np.asarray(found + 0), h)


def test_a_scalar_whose_value_is_known_leaves_it_on_the_host():
    x = lazyarray.asarray(np.arange(40_000.0)) * 1
    total = x.sum()
    assert float(total) == 799_980_000
    h = lnp.zeros(5)
    with lazyarray.trace() as record:
        h[1] = total
        h[2] = 4
    assert not record.uploads and not record.materialisations
    assert h.tolist() == [0, 799_980_000, 4, 0, 0]


def big():
    return lazyarray.asarray(np.arange(40_000.0)) * 1


KNOWING = {
    "nobody": lambda x: None, "a view": lambda x: x[2:], "an alias": np.asarray,
    "a view of an alias": lambda x: np.asarray(x)[::2],
    "a transposed one": lambda x: x.T, "a holder of the device's": lazyarray.asdevice, "itself": lambda x: x,
    "a generator": lambda x: iter(x),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f8", "i4", "c16"])
@pytest.mark.parametrize("values", [0, 3])
@pytest.mark.parametrize("know", KNOWING.values(), ids=KNOWING)
def test_whoever_knows_its_memory_sees_what_is_written(know, values, dtype, order):
    h = np.full((6, 5), values, dtype, order)
    x = lnp.full((6, 5), values, dtype, order)
    known, other = know(x), know(h) if know is not lazyarray.asdevice else None
    x[1], h[1] = big()[:5].astype(dtype), np.arange(5).astype(dtype)
    x[:, 2], h[:, 2] = big()[30:36].astype(dtype), np.arange(30, 36).astype(dtype)
    assert x.flags.f_contiguous == h.flags.f_contiguous and x.strides == h.strides
    np.testing.assert_array_equal(np.asarray(x), h)
    if isinstance(other, np.ndarray):
        np.testing.assert_array_equal(np.asarray(known), other)
        known[0], other[0] = 9, 9
        np.testing.assert_array_equal(np.asarray(x), h)
    elif other is not None:
        for one, two in zip(known, other):
            np.testing.assert_array_equal(np.asarray(one), two)
    x += 1
    h += 1
    np.testing.assert_array_equal(np.asarray(x * 2), h * 2)


def test_bounds_move_with_it():
    x = lnp.arange(50)
    x[3] = big().astype(int)[40]
    y = lnp.zeros(60) + big()[:60]
    np.testing.assert_array_equal(np.asarray(y[x]), np.arange(60.0)[np.r_[0:3, 40, 4:50]])
    x[4] = big().astype(int)[70]
    with pytest.raises(IndexError):
        y[x]


def write(x, kept):
    x[0] = 5


def write_through_an_alias(x, kept):
    kept.append(np.asarray(x))
    kept[0][0] = 5


def look_at_a_view(x, kept):
    kept.append(x[:2])
    kept[0][0] = 5


@pytest.mark.parametrize("other", [write, write_through_an_alias, look_at_a_view])
@pytest.mark.parametrize("values", [0, 3])
def test_a_handler_that_comes_between(values, other, small_on_host):
    """What it writes is not lost, and what it keeps is memory of the array, wherever in the statement it comes."""
    x = lnp.full(20, float(values))
    source = big()
    x[3] = source[7]            # once without
    for number in range(400):
        small_on_host(95_000)       # which forgets the calls before: so many would fetch what this one is given
        x, kept = lnp.full(20, float(values)), []

        def handler(signum, frame, x=x, kept=kept):
            other(x, kept)

        scalar = source[7]
        with At(number, handler) as at:
            x[3] = scalar
        if not at.ran:
            break
        x[5] = source[9]
        wanted = np.full(20, float(values))
        wanted[[0, 3, 5]] = 5, 7, 9
        np.testing.assert_array_equal(np.asarray(x), wanted, err_msg=at.place)
        for one in kept:
            np.testing.assert_array_equal(np.asarray(one), wanted[:len(one)], err_msg=at.place)
            one[1] = 6
            assert float(x[1]) == 6, at.place
    assert number > 20 or lazyarray.device().name == "cuda"     # where C does all of it
