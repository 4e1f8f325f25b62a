"""``searchsorted`` and ``digitize`` are recorded: one kernel finds positions and computes what comes of them."""
from __future__ import annotations

import numpy as np
import pytest
from recorded import compiled, pending

import lazyarray
import lazyarray.numpy as lnp

DEVICE = lazyarray.device()
needs_c = pytest.mark.skipif(lazyarray._native.recording is None, reason="calls in C alone are recorded so")
pytestmark = [needs_c, pytest.mark.one_device("what is recorded is of one device")]
REAL = ["?", "i1", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


def on_device(values):
    return lazyarray.asarray(DEVICE.xp.asarray(values)).copy()


def values_of(dtype, count, seed):
    found = (np.random.default_rng(seed).random(count) * 60 - (0 if dtype[0] in "u?" else 20)).astype(dtype)
    if dtype[0] == "f":
        found[:3] = np.nan, np.inf, -np.inf
    return found


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("other", REAL)
def test_positions_are_numpys(dtype, other, side):
    keys, values = np.sort(values_of(dtype, 300, 1)), values_of(other, 600, 2).reshape(20, 30)
    expected = np.searchsorted(keys, values, side)
    a, v = on_device(keys), on_device(values)
    found = lnp.searchsorted(a, v, side)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert pending(found) == (np.result_type(keys, values) == keys.dtype)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(np.searchsorted(a, v, side) * 2), expected * 2)
        compiled()
    np.testing.assert_array_equal(np.asarray(found), expected)
    np.testing.assert_array_equal(np.asarray(a.searchsorted(v, side)), expected)


@pytest.mark.parametrize("right", [False, True])
def test_digitize_with_bins_that_are_known_to_rise(right):
    edges, values = np.linspace(0, 1, 40), np.random.default_rng(0).random((50, 20))
    bins, x = on_device(edges), on_device(values)
    np.digitize(x, bins, right)
    found = np.digitize(x, bins, right)
    assert pending(found)
    np.testing.assert_array_equal(np.asarray(found), np.digitize(values, edges, right))
    bins[...] = on_device(edges[::-1])
    np.testing.assert_array_equal(np.asarray(np.digitize(x, bins, right)), np.digitize(values, edges[::-1], right))
    bins[3] = 7.0
    with pytest.raises(ValueError, match="monotonically"):
        np.digitize(x, bins, right)


def test_what_is_taken_where_they_are_is_one_kernel():
    keys, values = np.arange(0.0, 90.0, 0.3), np.random.default_rng(0).random(5000) * 100
    a, v, table = on_device(keys), on_device(values), on_device(keys[::-1].copy())
    with lazyarray.trace() as t:
        place = np.minimum(lnp.searchsorted(a, v), len(keys) - 1)
        found = np.where(a[place] == v, table[place], -1.0)
    assert not [e for e in t.events if e.kind == "synchronise"] and pending(found)
    place = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    np.testing.assert_array_equal(np.asarray(found), np.where(keys[place] == values, keys[::-1][place], -1.0))


def test_positions_beyond_the_end_are_indexerror():
    a, v = on_device(np.arange(10.0)), on_device(np.array([3.0, 99.0]))
    with pytest.raises(IndexError, match="out of bounds"):
        a[lnp.searchsorted(a, v)]


@pytest.mark.parametrize("changed", ["keys", "values"])
def test_a_write_after_it_was_recorded(changed):
    keys, values = np.arange(0.0, 100.0), np.random.default_rng(0).random(400) * 100
    a, v = on_device(keys), on_device(values)
    found = lnp.searchsorted(a, v)
    assert pending(found)
    (a if changed == "keys" else v)[...] = 0.0
    np.testing.assert_array_equal(np.asarray(found), np.searchsorted(keys, values))


def test_what_is_not_recorded():
    keys, values = np.arange(0.0, 100.0), np.random.default_rng(0).random(400) * 100
    a, v = on_device(keys), on_device(values)
    order = np.random.default_rng(1).permutation(100)
    np.testing.assert_array_equal(np.asarray(np.searchsorted(a[order], v, sorter=on_device(np.argsort(order)))),
                                  np.searchsorted(keys[order], values, sorter=np.argsort(order)))
    np.testing.assert_array_equal(np.asarray(np.searchsorted(a[::2], v)), np.searchsorted(keys[::2], values))
    assert np.asarray(np.searchsorted(on_device(np.zeros(0)), v)).sum() == 0
    for bad in (lambda: np.searchsorted(a.reshape(10, 10), v), lambda: np.searchsorted(a, v, "middle")):
        with pytest.raises(ValueError):
            bad()
    assert int(np.searchsorted(a, 3.5)) == 4 and int(np.searchsorted(a, on_device(np.float64(3.5)))) == 4
    kept = DEVICE.xp.asarray(keys)      # who holds it may write
    held = lazyarray.asarray(kept)
    found = np.searchsorted(held, v)
    kept[...] = 0.0
    DEVICE.synchronize()
    np.testing.assert_array_equal(np.asarray(found), np.searchsorted(keys, values))


def test_small_arrays_of_the_host_beside_one_of_the_device(small_on_host):
    small_on_host(95_000)
    keys, values = np.sort(np.random.default_rng(0).random(20_000)), np.linspace(0, 1, 50)
    a = on_device(keys)
    for v in (values, lazyarray.asarray(values), lnp.linspace(0, 1, 50), [0.25, 0.5]):
        np.testing.assert_array_equal(np.asarray(lnp.searchsorted(a, v)), np.searchsorted(keys, np.asarray(v)))


@pytest.mark.parametrize("view", [lambda v: v.T, lambda v: v.T[::-1], lambda v: v.T * 2, lambda v: v[:, ::2].T])
def test_positions_are_in_c_order(view):
    keys, values = np.arange(0.0, 9.0, 0.5), np.random.default_rng(0).random((40, 30)) * 9
    a, v = on_device(keys), on_device(values)
    for _ in range(3):
        for found, expected in ((np.searchsorted(a, view(v)), np.searchsorted(keys, view(values))),
                                (np.digitize(view(v), a), np.digitize(view(values), keys))):
            assert found.strides == expected.strides and (found + 1).strides == (expected + 1).strides
            np.testing.assert_array_equal(np.asarray(found), expected)
        compiled()


def test_a_sorter_of_unsigned_integers_is_refused_as_by_numpy():
    a, order = on_device(np.arange(3.0)), on_device(np.arange(3, dtype=np.uint64))
    with pytest.raises(ValueError, match="could not parse sorter"):
        np.searchsorted(a, on_device(np.arange(2.0)), sorter=order)
