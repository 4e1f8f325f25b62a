"""Metas do NumPy's arithmetic of views, also where NumPy can't be asked without touching memory."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from lazyarray.storage import views

OLD = [(), (1,), (6,), (2, 3), (2, 1, 3), (4, 6), (2, 3, 4), (0, 3), (1, 1)]
NEW = [(), 6, (6,), (3, 2), (-1,), (2, -1), (1, 6, 1), (24,), (2, 2, 6), (4, 6), (12, 2), (0,), (3, 0), (-1, 4), (5,)]
CUTS = [(), (slice(None, None, -1),), (slice(None, None, 2),), (Ellipsis, slice(1, None)), (Ellipsis, None)]


def copies_of(shape):
    base = np.arange(int(np.prod(shape)), dtype="f8").reshape(shape)
    for order, cut, turn in itertools.product("CF", CUTS, (False, True)):
        array = np.asarray(base, order=order)
        if len(cut) <= array.ndim or Ellipsis in cut:
            try:
                array = array[cut] if cut else array
            except IndexError:
                continue
        yield array.T if turn else array


@pytest.mark.parametrize("asked", [True, False], ids=["NumPy's copy=", "before NumPy 2.1"])
@pytest.mark.parametrize("order", ["C", "F", "A"])
@pytest.mark.parametrize("shape", OLD, ids=str)
def test_reshaped_is_numpys_view_or_none(shape, order, asked, monkeypatch):
    if asked and not views._RESHAPE_HAS_COPY:
        pytest.skip("this NumPy has no reshape(copy=)")
    monkeypatch.setattr(views, "_RESHAPE_HAS_COPY", asked)
    for array, new in itertools.product(copies_of(shape), NEW):
        start = 4096
        meta = views.meta(array.shape, array.dtype, array.strides, start)
        try:
            want = array.reshape(new, order=order)
        except ValueError:
            with pytest.raises(ValueError):
                views.reshaped(meta, new, order)
            continue
        got = views.reshaped(meta, new, order)
        shares = array.size == 0 or np.shares_memory(want, array)
        found = got is not None
        assert found == shares, (array.shape, array.strides, new, order)
        if found:
            assert got.shape == want.shape
            assert views.offset_of(got) == start
            assert [s for n, s in zip(got.shape, got.strides) if n > 1 and got.size] == [
                s for n, s in zip(want.shape, want.strides) if n > 1 and got.size]


def test_metas_are_numpys_views():
    array = np.zeros((4, 6), "i4")
    meta = views.meta((4, 6), "i4", None, 16)
    for cut in (np.s_[1:], np.s_[::-1, ::2], np.s_[..., None], np.s_[2], np.s_[:, 3]):
        assert meta[cut].strides == array[cut].strides
        assert meta[cut].shape == array[cut].shape
        assert views.offset_of(meta[cut]) - 16 == (
            array[cut].__array_interface__["data"][0] - array.__array_interface__["data"][0])
    assert views.extent(meta[::-1]) == (16, 16 + 96)
    start, stop = views.extent(meta[1:1])
    assert start == stop
