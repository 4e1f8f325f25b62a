"""Views that are read one by one: after a few, their neighbours come along, and nothing is copied twice."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import lazyarray

X = np.random.default_rng(0).random((1000, 100))


def made():
    return lazyarray.asarray(X) + 0


def rows(x):
    return [x[i] for i in range(len(x))]


ORDERS = {"forward": lambda n: range(n), "backward": lambda n: range(n)[::-1],
          "random": lambda n: np.random.default_rng(1).permutation(n).tolist(),
          "every third": lambda n: range(0, n, 3)}
#: Before Python 3.12 there is no buffer of a class written in Python.
buffer = memoryview if sys.version_info >= (3, 12) else np.asarray
READERS = {"buffer": buffer, "alias": np.asarray, "private": lazyarray.asnumpy, "list": lambda row: row.tolist()}


@pytest.mark.parametrize("read", READERS.values(), ids=list(READERS))
@pytest.mark.parametrize("order", ORDERS.values(), ids=list(ORDERS))
def test_rows_come_in_a_few_copies(order, read):
    x = made()
    with lazyarray.trace() as t:
        for i in order(len(X)):
            assert np.array_equal(read(x[i]), X[i])
    assert len(t.materialisations) <= 10 and sum(e.nbytes for e in t.materialisations) <= X.nbytes
    assert any("one by one" in event.reason for event in t)


def test_columns_and_single_elements_too():
    x = made()
    with lazyarray.trace() as t:
        for i in range(100):
            assert np.array_equal(np.asarray(x[:, i]), X[:, i])
    assert sum(e.nbytes for e in t.materialisations) <= 1.1 * X.nbytes and len(t) <= 10
    x = made()
    with lazyarray.trace() as t:
        for i in range(200):
            assert float(x[i, 3]) == X[i, 3]
    assert len(t) <= 10


def test_a_few_views_bring_their_own_bytes_alone():
    x = made()
    with lazyarray.trace() as t:
        for i in range(4):
            np.asarray(x[10 * i])
    assert t.nbytes == 4 * X[0].nbytes


def test_writes_between_reads_are_seen():
    x, expected = made(), X.copy()
    kept = []
    for i in range(60):
        row = np.asarray(x[i])
        assert np.array_equal(row, expected[i])
        if i % 10 == 3:
            x[i + 5] += 1
            expected[i + 5] += 1
        if i % 7 == 2:
            row[3] = -i
            expected[i, 3] = -i
            kept.append(row)
    assert np.array_equal(np.asarray(x * 1), expected)


@pytest.mark.skipif(lazyarray.device().name != "simulated", reason="many gigabytes on a GPU mean nothing")
def test_a_large_array_comes_in_growing_parts(monkeypatch):
    from lazyarray.storage import coherence

    monkeypatch.setattr(coherence, "EACH", 4096)
    x = made()
    with lazyarray.trace() as t:
        for i in range(1000):
            assert np.array_equal(buffer(x[i]), X[i])
    sizes = [event.nbytes for event in t.materialisations]
    assert len(sizes) < 20 and sum(sizes) == X.nbytes and max(sizes) < X.nbytes


def test_memory_that_others_hold_is_read_as_it_is():
    held = lazyarray.device().xp.asarray(X)
    x = lazyarray.asarray(held)
    for i in range(20):
        held[i] = i
        assert np.asarray(x[i]).tolist() == [float(i)] * 100
