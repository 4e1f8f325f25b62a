"""The range of indexes, found out while somebody writes."""
from __future__ import annotations

import operator
import threading

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as lnp
from lazyarray import _native


@pytest.mark.together
def test_a_write_while_a_table_of_indexes_is_looked_through(monkeypatch):
    from lazyarray.functions import index_bounds

    places, table = lazyarray.asarray(np.arange(6000) % 50 + 100) + 0, lazyarray.asarray(np.arange(50.0))
    first, second = (places[lazyarray.asarray(np.array([k, k + 1]))] for k in (1, 3))
    with pytest.raises(IndexError):
        table[first]
    fetched = index_bounds._fetched

    def late(*args):
        monkeypatch.setattr(index_bounds, "_fetched", fetched)
        places[...] = 3
        return [np.array([3, 3])] if len(args) == 3 else fetched(*args)

    monkeypatch.setattr(index_bounds, "_fetched", late)
    with pytest.raises(IndexError):
        table[second]


@pytest.mark.parametrize("make", [
    lambda i: np.where((i >= 0) & (i < 50), i, 0), lambda i: operator.setitem(i, (i < 0) | (i >= 50), 0)],
    ids=["where", "a mask"])
def test_another_thread_writes_what_a_condition_is_about(make, monkeypatch):
    """After the look at the bounds: what was recorded is of what was there; an index that was written is looked at."""
    from lazyarray.graph import known_ranges

    i, table = lazyarray.asarray(np.arange(200) - 100) + 0, lazyarray.asarray(np.arange(50.0)) + 0
    note, threads = known_ranges.note, []

    def late(*args, **kwargs):
        found = note(*args, **kwargs)
        if threading.current_thread() is not threading.main_thread():
            return found
        threads.append(threading.Thread(target=lambda: operator.setitem(i, 7, 4000)))
        threads[-1].start()
        threads[-1].join(0.3)
        return found

    made = make(i)
    monkeypatch.setattr(known_ranges, "note", late)
    plain = np.arange(200) - 100
    plain = np.where((plain >= 0) & (plain < 50), plain, 0)
    try:
        found = table[i if made is None else made]
    except IndexError:
        assert made is None
    else:
        assert np.array_equal(found, plain)
    for thread in threads:
        thread.join()
    assert int(i[7]) == (4000 if threads else -93 if made is not None else 0)


@pytest.mark.skipif(_native.recording is None, reason="small arrays stay on the host in C alone")
@pytest.mark.parametrize("rows", [60, 170, 300, 683])
def test_two_views_of_one_computed_index(rows, small_on_host):
    small_on_host(95_000)
    h, plain = lnp.zeros((450, 450)), 3 * (np.arange(rows) % 50)[:, None] + np.arange(3)
    index = 3 * lnp.asarray(np.arange(rows) % 50)[:, None] + lnp.arange(3)
    h[index[:, :, None], index[:, None, :]] = 1.0
    expected = np.zeros((450, 450))
    expected[plain[:, :, None], plain[:, None, :]] = 1.0
    assert np.array_equal(h, expected)


@pytest.mark.skipif(_native.recording is None, reason="small arrays stay on the host in C alone")
def test_an_index_that_repeats_few_integers_is_looked_at_on_the_host(small_on_host):
    small_on_host(95_000)
    table = lazyarray.asarray(np.arange(600_000.0).reshape(3000, 200)) * 1
    rows = lnp.broadcast_to(lnp.arange(2000)[:, None], (2000, 50))
    columns = lazyarray.asarray(np.arange(50))
    with lazyarray.trace() as events:
        found = table[rows, columns]
    assert not [e for e in events if e.kind == "synchronise"]
    np.testing.assert_array_equal(found, np.arange(600_000.0).reshape(3000, 200)[:2000, :50])
    with pytest.raises(IndexError):
        table[rows + 1001, columns]
    np.testing.assert_array_equal(table[lnp.broadcast_to(lnp.arange(0)[:, None], (0, 50)), columns], np.zeros((0, 50)))


@pytest.mark.skipif(_native.recording is None, reason="small arrays stay on the host in C alone")
@pytest.mark.one_device("a copy is kept for each")
def test_what_repeats_few_elements_is_uploaded_once(small_on_host):
    small_on_host(95_000)
    x, expected = lazyarray.asarray(np.arange(120_000.0).reshape(2000, 60)) * 1, np.arange(120_000.0).reshape(2000, 60)
    for turn in range(4):
        with lazyarray.trace() as events:
            found = x < lnp.broadcast_to(lnp.arange(60), (2000, 60))
            both = np.where(found, lnp.broadcast_to(lnp.arange(60), (2000, 60)), 0)
        assert [e.nbytes for e in events if e.kind == "upload"] == [480] * (not turn)
        np.testing.assert_array_equal(np.asarray(found), expected < np.arange(60))
        np.testing.assert_array_equal(np.asarray(both), np.where(expected < np.arange(60), np.arange(60), 0))
    alone = lnp.broadcast_to(lnp.arange(60), (2000, 60))
    assert alone.shape == (2000, 60) and not alone.flags.writeable
    for found, wanted in ((alone + 1, np.broadcast_to(np.arange(60), (2000, 60)) + 1), (alone.sum(), 2000 * 59 * 30)):
        np.testing.assert_array_equal(np.asarray(found), wanted)


JOINED = [
    lambda a, b: np.concatenate([a, b]), lambda a, b: np.concatenate((a, b[:2]), axis=0), lambda a, b: np.stack([a, a]),
    lambda a, b: np.hstack((b, a)), lambda a, b: np.vstack([a, a]), lambda a, b: np.column_stack([a, a]),
    lambda a, b: np.dstack([a, a]), lambda a, b: np.repeat(a, 3), lambda a, b: np.tile(a, 2),
    lambda a, b: np.roll(b, 2), lambda a, b: np.sort(a), lambda a, b: np.append(a, b), lambda a, b: np.append(a, 3)]


@pytest.mark.one_device("with several, the general way joins")
@pytest.mark.parametrize("join", JOINED)
def test_what_is_joined_of_known_integers_is_known(join):
    order = np.random.default_rng(0).permutation(30_000)
    table, x = np.arange(30_000.0), lazyarray.asarray(np.arange(30_000.0)) * 1
    a, b = np.argsort(lazyarray.asarray(order.astype(float)) * 1), lazyarray.asarray(np.arange(20_000)) * 1
    x[a], x[b]      # from now on both are known
    index = join(a, b)
    with lazyarray.trace() as events:
        found = x[index]
    assert not [e for e in events if e.kind == "synchronise"]
    np.testing.assert_array_equal(found, table[np.asarray(index)])


def test_what_is_joined_with_others_is_looked_at():
    x, known = lazyarray.asarray(np.arange(10_000.0)) * 1, lazyarray.asarray(np.arange(10_000)) * 1
    other, out, again = known + 1, np.concatenate([known, known]), np.concatenate([known, known])
    x[known], x[out], x[again]
    np.concatenate([known, other], out=out)
    np.concatenate([known, other], 0, again)
    for index in (np.concatenate([known, other]), np.append(known, 10_000), np.append(10_000, known), out, again):
        with pytest.raises(IndexError):
            x[index]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_source_that_is_written_while_it_is_joined(when, monkeypatch):
    device = lazyarray.device()
    x, known = lazyarray.asarray(np.arange(5000.0)) * 1, lazyarray.asarray(np.arange(10_000)) * 1
    assert known[-1] == 9999 and (known >= 0).all()
    with pytest.raises(IndexError):
        x[known]        # from now on it is known
    joined = type(device).joined

    def late(self, arrays, axis):
        if when == "before":
            known[...] = 0
        made = joined(self, arrays, axis)
        if when == "after":
            known[...] = 0
        return made

    monkeypatch.setattr(type(device), "joined", late)
    index = np.concatenate([known, known])
    monkeypatch.undo()
    if when == "before":
        assert x[index].shape == (20_000,)
    else:
        with pytest.raises(IndexError):
            x[index]


@pytest.mark.parametrize("length", [100, 3000])
def test_a_table_that_is_written_while_it_is_sent(length, small_on_host, monkeypatch):
    """What is known of a copy is known of what was sent."""
    small_on_host(95_000)
    from lazyarray.storage import upload_cache

    plain = np.full(length, length + 7)
    table, places = lazyarray.asarray(plain.copy()) + 0, lazyarray.asarray(np.zeros(30_000, int)) * 1
    x = lazyarray.asarray(np.arange(30_000.0))[:length] * 1
    kept = upload_cache.kept

    def late(*args, **kwargs):
        found = kept(*args, **kwargs)
        table[...] = 0      # as a signal handler may
        return found

    monkeypatch.setattr(upload_cache, "kept", late)
    index = table[places]
    monkeypatch.undo()
    assert int(index.max()) == length + 7
    with pytest.raises(IndexError):
        x[index]
