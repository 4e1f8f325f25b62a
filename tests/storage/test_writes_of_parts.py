"""Parts of an array that is current on both sides are written on the device again and again."""
from __future__ import annotations

import contextlib

import numpy as np
import pytest

import lazyarray
from lazyarray import _native

SIZE = 60_000       # more bytes than are always sent whole


@pytest.fixture
def pair():
    plain = np.arange(float(SIZE))
    x = lazyarray.asarray(plain.copy())
    np.asarray(x)[:1]
    return x, plain, lazyarray.asarray(np.full(SIZE - 100, 0.5)) * 1


@pytest.fixture
def small():
    before = _native.recording.small(4096)
    yield
    _native.recording.small(before)


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


@pytest.mark.skipif(_native.recording is None, reason="without the part in C no array stays on the host")
@pytest.mark.one_device("what is small is of one device")
def test_what_the_host_computed_in_it_is_sent_once_and_has_no_account_then(pair, small):
    _, plain, y = pair
    x = lazyarray.asarray(plain.copy())
    x.tolist()      # which has all of it on the host, until the device writes it
    row = x[70:90]
    row += 1.0
    plain[70:90] += 1.0
    assert x._self_storage.host_dirty
    with lazyarray.trace() as events:
        for _ in range(3):
            x[100:-50] = y[:SIZE - 150]
    assert [event.nbytes for event in events if event.kind == "upload"] == [row.nbytes]
    plain[100:-50] = 0.5
    assert x._self_storage.device_only and x._self_storage.clean
    assert np.array_equal(np.asarray(x), plain)


@pytest.mark.parametrize("forbidden", [False, True])
def test_what_an_alias_wrote_that_is_gone_is_sent_once_unless_that_is_forbidden(pair, forbidden):
    x, plain, y = pair
    alias = np.asarray(x)
    alias[-1] = plain[-1] = 7
    del alias
    with lazyarray.trace() as events, lazyarray.no_transfers() if forbidden else contextlib.nullcontext():
        for _ in range(4):
            x[100:-5000] = y[:SIZE - 5100]
    plain[100:-5000] = 0.5
    assert sum(event.kind == "upload" for event in events) == (not forbidden)
    assert x._self_storage.device_only is not forbidden     # then there is no account to keep
    assert np.array_equal(np.asarray(x), plain)
