"""Masks that the host has: where they are true is looked up there, and nobody waits for the device to count."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray import _native
from lazyarray.storage import handles

SHAPES = [(2000,), (2000, 7), (2000, 2, 3)]


def events(work):
    with lazyarray.trace() as seen:
        found = work()
    return found, [event.kind for event in seen.events]


@pytest.fixture(params=["ndarray", "lazy"])
def mask_of(request, small_on_host):
    if request.param == "ndarray":
        return lambda mask: mask
    if _native.recording is None:
        pytest.skip("without the part in C no array stays on the host")
    small_on_host(95_000)
    return lambda mask: handles.small_on_host(mask.copy())      # as the host's results are


def large(shape):
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_taken_is_numpys(mask_of, shape, share, order):
    plain = np.asarray(np.tile(large(shape), (5, *(1,) * (len(shape) - 1))), order=order)
    mask = np.random.default_rng(3).random(len(plain)) < share
    x = lazyarray.block_until_ready(lazyarray.asarray(plain) + 1)
    found, kinds = events(lambda: x[mask_of(mask)])
    assert "synchronise" not in kinds
    assert found.shape == (plain + 1)[mask].shape and np.array_equal(np.asarray(found), (plain + 1)[mask])
    assert found.flags.c_contiguous == (plain + 1)[mask].flags.c_contiguous


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_what_is_assigned_is_numpys(mask_of, shape, share):
    plain = np.tile(large(shape), (5, *(1,) * (len(shape) - 1)))
    mask = np.random.default_rng(3).random(len(plain)) < share
    x = lazyarray.block_until_ready(lazyarray.asarray(plain) + 1)
    plain = plain + 1
    for values in (-plain[mask], 7.0, np.float32(2), plain[mask][:1]):
        given = lazyarray.asarray(values) if isinstance(values, np.ndarray) else values

        def assign(given=given):
            x[mask_of(mask)] = given

        plain[mask] = values
        assert "synchronise" not in events(assign)[1]
        assert np.array_equal(np.asarray(x + 0), plain)


def test_updates_in_place(mask_of):
    plain = np.tile(large((2000,)), 6)
    mask = plain % 3 == 0
    x = lazyarray.block_until_ready(lazyarray.asarray(plain) + 0)
    for _ in range(3):
        plain[mask] += 2
        x[mask_of(mask)] += 2
    assert np.array_equal(np.asarray(x + 0), plain)


@pytest.mark.parametrize("index", [
    lambda m: (m, slice(1, 3)), lambda m: (m, 2), lambda m: (m, [1] * int(m.sum())), lambda m: (slice(None), m[:7]),
    lambda m: (None, m), lambda m: (m, Ellipsis), lambda m: (m, None)])
def test_beside_other_items(mask_of, index):
    plain = np.tile(large((2000, 7)), (5, 1))
    mask = np.random.default_rng(4).random(len(plain)) < 0.3
    x = lazyarray.block_until_ready(lazyarray.asarray(plain) + 0)
    lazily = tuple(mask_of(i) if isinstance(i, np.ndarray) else i for i in index(mask))
    wanted = plain[index(mask)]
    assert np.array_equal(np.asarray(x[lazily]), wanted) and x[lazily].shape == wanted.shape
    x[lazily] = wanted * 2
    plain[index(mask)] = wanted * 2
    assert np.array_equal(np.asarray(x + 0), plain)


@pytest.mark.parametrize("length", [1999, 2001, 1])
def test_of_another_length(mask_of, length):
    plain = large((2000, 7))
    x = lazyarray.block_until_ready(lazyarray.asarray(plain) + 0)
    mask = mask_of(np.ones(length, bool))

    def assign(array, mask):
        array[mask] = array[:5]

    for work in (lambda array, mask: array[mask], assign):
        with pytest.raises(IndexError) as wanted:
            work(plain, np.ones(length, bool))
        with pytest.raises(IndexError) as found:
            work(x, mask)
        assert str(found.value) == str(wanted.value)


def test_too_few_and_too_many_values(mask_of):
    plain = np.tile(large((2000,)), 6)
    mask = plain < 10
    x = lazyarray.block_until_ready(lazyarray.asarray(plain) + 0)
    for values in (np.ones(int(mask.sum()) + 1), np.ones(2)):
        with pytest.raises(ValueError) as wanted:
            plain[mask] = values
        with pytest.raises(ValueError) as found:
            x[mask_of(mask)] = lazyarray.asarray(values)
        assert str(found.value) == str(wanted.value)
    assert np.array_equal(np.asarray(x), plain)


def test_a_mask_that_is_written_meanwhile(mask_of):
    """What is taken is of the mask as it was, whenever it is computed."""
    plain = np.tile(large((2000,)), 6)
    mask = plain % 7 == 0
    x, m = lazyarray.block_until_ready(lazyarray.asarray(plain) + 0), mask_of(mask.copy())
    taken, rest = x[m], None
    m[:] = ~np.asarray(m)
    rest = x[m]
    assert np.array_equal(np.asarray(taken), plain[mask]) and np.array_equal(np.asarray(rest), plain[~mask])
