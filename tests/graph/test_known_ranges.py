"""Indexes that are sums and differences: their bounds are known, so that nobody waits; and what is not known is not."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp


@pytest.fixture(autouse=True)
def _on_the_device():
    with lazyarray.options(small_on_host=False):
        yield


TABLE = np.arange(300.0).reshape(15, 20)


@pytest.mark.parametrize("rows", [
    lambda i: i, lambda i: i - 1, lambda i: 3 + i, lambda i: 11 - i, lambda i: i - np.int64(2), lambda i: (i + 2) - 1,
    lambda i: i - i, lambda i: i[::2] + 1, lambda i: 2 * i - 12, lambda i: i - 13], ids=range(10))
def test_no_one_waits_for_sums_and_differences(rows):
    lazy, plain = lazyarray.asarray(TABLE), rows(np.arange(2, 12))
    i = rows(xnp.arange(2, 12))
    with lazyarray.trace() as t:
        found = lazy[i, i + 1 if plain.max() < 14 else i]
    assert not t.synchronisations, t
    assert np.array_equal(found, TABLE[plain, plain + 1 if plain.max() < 14 else plain])


@pytest.mark.parametrize("rows", [
    lambda i: i + 4, lambda i: i - 18, lambda i: 2 * i, lambda i: i + (1 << 62) + (1 << 62)])
def test_what_is_out_of_range_is_told(rows):
    lazy, plain = lazyarray.asarray(TABLE), rows(np.arange(2, 12))
    try:
        expected = TABLE[plain]
    except IndexError as error:
        with pytest.raises(IndexError, match=str(error)):
            lazy[rows(xnp.arange(2, 12))]
    else:
        assert np.array_equal(lazy[rows(xnp.arange(2, 12))], expected)


def test_small_integers_that_wrap_around():
    i = xnp.arange(100, 120, dtype="i1")
    with np.errstate(all="ignore"):
        assert np.array_equal(lazyarray.asarray(np.arange(256))[i + np.int8(20)],
                              np.arange(256)[np.arange(100, 120, dtype="i1") + np.int8(20)])


def test_of_values_at_one_place_the_last_one_stays():
    for rows in (lambda i: i - 1, lambda i: 12 - i, lambda i: i - i, lambda i: i + i[::-1] - 12):
        lazy, plain = lazyarray.asarray(TABLE.copy()), TABLE.copy()
        values = np.arange(10.0)
        i, k = rows(xnp.arange(2, 12)), rows(np.arange(2, 12))
        lazy[i, i] = lazyarray.asarray(values)
        plain[k, k] = values
        assert np.array_equal(lazy, plain)


def test_what_is_written_is_not_known_any_more():
    i = xnp.arange(2, 12)
    k = i + 1
    i[3] = 999
    assert np.array_equal(lazyarray.asarray(TABLE)[k], TABLE[np.arange(3, 13)]), "it was computed before the write"
    with pytest.raises(IndexError):
        lazyarray.asarray(TABLE)[i + 1]
    k = xnp.arange(2, 12) + 1
    np.asarray(k)[0] = 99       # an alias
    with pytest.raises(IndexError):
        lazyarray.asarray(TABLE)[k]


@pytest.mark.parametrize("index", [
    lambda np: (np.arange(10, dtype="i4") - np.int32(10)).view("u4"),
    lambda np: np.arange(10, dtype="i4").view("u4") - 1,
    lambda np: (np.arange(3, dtype="i2") + np.int16(200)).view("i1"), lambda np: (np.arange(10) + 1).view("i4")[::2],
    lambda np: np.lib.stride_tricks.as_strided(np.arange(10), (5,), (4,)),
    lambda np: np.lib.stride_tricks.as_strided(np.arange(10) + 1, (5,), (4,)),
    lambda np: (np.arange(10) + 1).view("i2")[1:-3].view("i8"), lambda np: np.arange(10).view("i1")[4:-4].view("i8"),
    lambda np: np.arange(10).view("i4")[1:-1].view("i8") + 0, lambda np: np.arange(10)[::-1][2:5] * 3])
def test_parts_of_integers_are_other_integers(index):
    table = np.arange(300.0)
    try:
        expected = table[index(np)]
    except IndexError:
        with pytest.raises(IndexError):
            lazyarray.asarray(table)[index(xnp)]
        with pytest.raises(IndexError):
            lazyarray.asarray(table)[index(xnp)] = 0
    else:
        assert np.array_equal(lazyarray.asarray(table)[index(xnp)], expected)


def test_what_is_negative_in_another_dtype():
    i, v = (lambda np: (np.arange(3), (np.arange(3, dtype="i2") + np.int16(200)).view("i1")))(xnp)
    plain = np.arange(90000).reshape(300, 300)
    k, w = np.arange(3), (np.arange(3, dtype="i2") + np.int16(200)).view("i1")
    assert np.array_equal(lazyarray.asarray(plain)[i[:, None] + 1, v[None]], plain[k[:, None] + 1, w[None]])


def test_a_write_while_bounds_are_found_out(monkeypatch):
    """Of another thread, just before what was found would be kept."""
    from lazyarray.graph import known_ranges

    k, table, found = xnp.arange(10) + 1, lazyarray.asarray(np.arange(40.0)), known_ranges.note
    original = known_ranges.facts.of_storage

    def of_storage(storage):
        known = original(storage)
        monkeypatch.setattr(known_ranges.facts, "of_storage", original)
        k[3] = 50
        return known

    monkeypatch.setattr(known_ranges.facts, "of_storage", of_storage)
    found(k)
    with pytest.raises(IndexError):
        table[k]
    with pytest.raises(IndexError):
        table[k] = 0
