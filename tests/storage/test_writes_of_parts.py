"""Parts of an array that is current on both sides are written on the device again and again."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray

SIZE = 60_000       # more bytes than are always sent whole


@pytest.fixture
def pair():
    plain = np.arange(float(SIZE))
    x = lazyarray.asarray(plain.copy())
    np.asarray(x)[:1]
    return x, plain, lazyarray.asarray(np.full(SIZE - 100, 0.5)) * 1


def fetched(call):
    with lazyarray.trace() as events:
        found = call()
    return found, sum(e.nbytes for e in events.materialisations)


def test_what_nobody_reads_on_the_host_has_no_account(pair):
    x, plain, y = pair
    for _ in range(3):
        x[50:-50] += y
        plain[50:-50] += 0.5
    assert x._self_storage.device_only
    assert np.array_equal(np.asarray(x), plain)


def test_what_is_read_in_between_is_fetched_in_part(pair):
    x, plain, y = pair
    for k in range(4):
        x[k:k + 10] = y[:10] * k
        plain[k:k + 10] = 0.5 * k
        found, nbytes = fetched(lambda: np.array(x))
        assert np.array_equal(found, plain)
        assert nbytes <= (x.nbytes if k == 0 else 4096)


def test_an_alias_sees_what_is_written(pair):
    x, plain, y = pair
    alias = np.asarray(x)
    for _ in range(3):
        x[50:-50] += y
        plain[50:-50] += 0.5
        alias[0] += 1
        plain[0] += 1
    assert np.array_equal(alias, plain) and np.array_equal(np.asarray(x), plain)
    assert float(x.sum()) == plain.sum()


def test_what_the_host_has_written_alone_is_kept(pair):
    x, plain, y = pair
    alias = np.asarray(x)
    alias[-1] = plain[-1] = 7
    del alias
    for _ in range(3):
        x[50:-50] += y
        plain[50:-50] += 0.5
    assert np.array_equal(np.asarray(x), plain)
