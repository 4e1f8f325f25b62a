"""A small array on the device whose elements or rows are taken one by one is fetched once, and the host goes on."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray import _native
from lazyarray.dispatch.small_runs import TAKEN

pytestmark = pytest.mark.skipif(_native.recording is None, reason="without the part in C no array stays on the host")

VALUES = np.random.default_rng(3).random((40, 5))


@pytest.fixture(autouse=True)
def small():
    before = _native.recording.small(4096)
    yield
    _native.recording.small(before)


def on_device(values):
    """Computed from what is too large for the host."""
    large = lazyarray.asarray(np.concatenate([values.ravel(), np.ones(4000)]))
    return (large * 1.0)[:values.size].copy().reshape(values.shape)


def fetches(work):
    with lazyarray.trace() as seen:
        work()
    return [event for event in seen.events if event.kind in ("materialise", "synchronise")]


@pytest.mark.one_device("elements are taken in C")
@pytest.mark.parametrize("take", [lambda x, k: x[k, 3], lambda x, k: x[-k - 1, 0], lambda x, k: x[k]])
def test_it_is_fetched_once(take):
    x = on_device(VALUES)
    for k in range(TAKEN):
        assert not fetches(lambda: take(x, k))
    assert len(fetches(lambda: take(x, TAKEN))) == 1
    for k in range(len(VALUES)):
        found = take(x, k)
        assert not fetches(lambda: found + np.ones(5))
        assert np.array_equal(np.asarray(found + np.ones(5)), take(VALUES, k) + np.ones(5))


def test_once_after_each_write():
    x, plain = on_device(VALUES), VALUES.copy()
    for n in range(4):
        for _ in range(TAKEN - 1):
            assert not fetches(lambda: x[2, 3])
        x[2] = float(n)         # on the device
        plain[2] = n
    assert x._self_storage.state == "device"
    for k in range(2 * TAKEN):
        assert x[k, 1] == plain[k, 1]
    assert np.array_equal(np.asarray(x), plain)


def test_no_transfer_is_made_where_none_is_allowed():
    x = on_device(VALUES)
    with lazyarray.no_transfers():
        taken = [x[k, 1] for k in range(40)]
    assert [float(t) for t in taken] == VALUES[:, 1].tolist()


def test_nor_by_the_option():
    x = on_device(VALUES)
    with lazyarray.options(small_on_host=False):
        assert not fetches(lambda: [x[k % 40] for k in range(3 * TAKEN)])


def test_large_arrays_stay():
    x = lazyarray.asarray(np.random.default_rng(4).random((300, 2000))) * 1.0       # more than `ON_BOTH`
    assert not fetches(lambda: [x[k] for k in range(300)] + [x[k, 0] for k in range(300)])


def test_parts_of_large_arrays_stay():
    x = (lazyarray.asarray(np.ones(600_000)) * 1.0)[:100]
    assert not fetches(lambda: [x[k] for k in range(100)])
    assert x._self_storage.mirror is None


def test_what_is_taken_is_a_snapshot_and_a_row_is_a_view():
    x, plain = on_device(VALUES), VALUES.copy()
    elements, rows = [x[k, 0] for k in range(40)], [x[k] for k in range(40)]
    x[5] = 7.0
    plain[5] = 7.0
    assert elements[5] == VALUES[5, 0]
    assert all(np.array_equal(np.asarray(row), expected) for row, expected in zip(rows, plain))
    rows[6][1] = -1.0
    assert float(x[6, 1]) == -1.0
