"""What is too large: views too sparse for a mirror, and results too large for the device."""
from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy
from lazyarray.storage import gathered
from lazyarray.testing import assert_copies


@pytest.fixture
def wide(monkeypatch):
    """An array whose columns are sparse views."""
    monkeypatch.setattr(gathered, "SPARSE_EXTENT", 4096)
    plain = np.arange(200 * 100.0).reshape(200, 100)
    return lazyarray.asarray(plain), plain


def test_a_sparse_view_moves_its_own_bytes_once(wide):
    x, plain = wide
    with assert_copies(uploads=0, materialisations=1, nbytes=200 * 8):
        assert np.asarray(x[:, 3]).tolist() == plain[:, 3].tolist()
        assert np.asarray(x[:, 3]).tolist() == plain[:, 3].tolist()


def test_a_sparse_view_is_handed_out_compact_and_read_only(wide):
    x, _ = wide
    column = np.asarray(x[:, 3])
    assert column.flags.c_contiguous
    assert not column.flags.writeable
    with pytest.raises(ValueError):
        column[0] = 1


def test_what_is_held_of_a_sparse_view_is_refreshed(wide):
    x, plain = wide
    column = np.asarray(x[:, 3])
    x += 1
    assert column.tolist() == (plain[:, 3] + 1).tolist()
    x[5, 3] = -1
    assert column[5] == -1
    with assert_copies(materialisations=0):
        x[:, 3:4].reshape(-1)       # nothing to do with the host


def test_what_nobody_holds_of_a_sparse_view_is_not_refreshed(wide):
    x, plain = wide
    np.asarray(x[:, 3])
    gc.collect()
    with assert_copies(materialisations=0, uploads=0):
        x += 1
    assert np.asarray(x[:, 3])[0] == plain[0, 3] + 1


def test_an_alias_of_the_whole_and_a_sparse_view_agree(wide):
    x, plain = wide
    whole, column = np.asarray(x), np.asarray(x[:, 3])
    whole[7, 3] = 99
    assert x[7, 3] == 99        # the next use of the array
    assert column[7] == 99
    assert column[8] == plain[8, 3]


def test_what_handed_out_a_compact_array_dies_at_once(wide):
    x, _ = wide
    x = x + 1
    np.asarray(x[:, 3])
    gone = weakref.ref(x._self_storage)
    gc.disable()
    try:
        del x
        assert gone() is None
    finally:
        gc.enable()


def test_out_of_memory_is_raised_and_not_tried_on_the_host():
    x = lazyarray.asarray(np.zeros(8))
    huge = np.broadcast_to(x, (1 << 24, 1 << 20, 8))      # 2**50 bytes; the host could not hold it either
    # At the call, also where the work would be put off.
    for call in (lambda: huge + 1, lambda: np.clip(huge, 0, 1), lambda: lazyarray.numpy.ones((1 << 24, 1 << 23)),
                 lambda: lazyarray.numpy.arange(1 << 47)):
        with pytest.raises(lazyarray.device().faults) as caught:
            call()
        assert not isinstance(caught.value, lazyarray.LazyArrayError)
    assert x.tolist() == [0] * 8


@pytest.mark.skipif("lazyarray.device().name != 'simulated'")
def test_no_function_falls_back_for_lack_of_memory():
    x = lazyarray.asarray(np.zeros(1000))
    calls = [lambda: x + 1, lambda: x.copy(), lambda: np.concatenate([x, x]), lambda: np.cumsum(x),
             lambda: x[[0] * 900], lambda: np.sort(x), lambda: x.astype("c16"), lambda: np.fft.fft(x),
             lambda: np.add.accumulate(x),
             lambda: lazyarray.asarray(np.zeros(1000))]
    gc.collect()
    with lazyarray.device().limited(4_000), lazyarray.trace() as t:
        for call in calls:
            with pytest.raises(lazyarray.device().faults):
                lazyarray.asdevice(call())      # what was recorded needs its memory when it is computed
    assert not [event for event in t.events if event.kind in ("fallback", "materialise")]
    assert (x + 1).sum() == 1000
