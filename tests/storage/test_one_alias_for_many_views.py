"""Buffers of many views of one array, one after the other: one alias serves them, and is as live as one of each."""
from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest

import lazyarray
from lazyarray.storage.state import ON_BOTH

SHAPE = 40, 50


@pytest.fixture
def x():
    x = lazyarray.asarray(np.arange(2000.0).reshape(SHAPE))
    x += 0      # the device's own
    return x


def lends(x):
    mirror = x._self_storage.mirror
    return 0 if mirror is None else mirror._lends


@pytest.mark.skipif(sys.version_info < (3, 12), reason="NumPy asks for no buffer there")
def test_an_array_of_the_rows_takes_few_aliases(x):
    plain = np.arange(2000.0).reshape(SHAPE)
    assert np.array_equal(np.array([x[i] for i in range(40)]), plain)
    assert lends(x) <= 15       # until all of its bytes are there, each row has one
    before = lends(x)
    assert np.array_equal(np.mean([x[i, 3:9] for i in range(40)], axis=0), plain[:, 3:9].mean(axis=0))
    assert np.array_equal(np.array([x[:, i][::-2] for i in range(50)]), plain[::-2].T)
    assert lends(x) <= before + 10


def test_every_one_of_them_is_live(x):
    plain = np.arange(2000.0).reshape(SHAPE)
    rows = [np.asarray(x[i]) for i in range(40)]
    for step in range(3):
        x *= 2
        plain *= 2
        assert np.array_equal(rows, plain)
        rows[5][:] = rows[30][7] = plain[5] = plain[30, 7] = step
        assert np.array_equal(np.asarray(x.copy()), plain) and np.array_equal(np.asarray(x[5] + 1), plain[5] + 1)
        lazyarray.asdevice(x)[2, 3] = plain[2, 3] = -step
        assert float(x[2, 3]) == -step
    kept = rows[17]
    del rows
    gc.collect()
    x[17] = plain[17] = 9
    assert np.array_equal(kept, plain[17])
    kept[0] = plain[17, 0] = 4
    assert np.array_equal(np.asarray(x * 1), plain)


def test_what_is_written_is_whole_elements(x):
    """Bytes that differ are sent with their element: GPU code may have written it, unknown to the host."""
    raw = x.view("u1")
    before = [np.asarray(raw[i]) for i in range(40)]        # as bytes, which are elements of their own
    rows = [np.asarray(x[i]) for i in range(40)]
    del before
    handle = lazyarray.asdevice(x)
    for value, other in ((0.1, 7.0), (1 / 3, 2.0), (1e300, -0.0)):
        handle[...] = value
        rows[30][7] = other
        assert float(lazyarray.asdevice(x)[30, 7]) == other
        assert float((x + 0)[30, 7]) == other


def test_those_that_are_read_only_stay_so(x):
    x.setflags(write=False)
    rows = [np.asarray(x[i]) for i in range(40)]
    for row in rows:
        assert not row.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            row.flags.writeable = True
    x.setflags(write=True)
    mixed = [np.asarray(x[i]) for i in range(40)]
    part = x[3]
    part.setflags(write=False)
    assert mixed[-1].flags.writeable and not np.asarray(part).flags.writeable


def test_one_that_nobody_has_any_more_is_given_up(x):
    for i in range(40):
        np.asarray(x[i])
    gc.collect()
    x += 1
    assert not x._self_storage.is_aliased(x._self_meta)
    x.resize(10, refcheck=True)


def test_large_arrays_lend_what_is_asked_for():
    x = lazyarray.asarray(np.zeros((40, ON_BOTH // 8 // 20)))
    x += 1
    rows = [np.asarray(x[i]) for i in range(40)]
    assert lends(x) == 40 and all(row[0] == 1 for row in rows)


def test_threads_that_make_arrays_of_rows_while_others_write(x):
    wrong, ended = [], threading.Event()

    def read():
        while not ended.is_set():
            if not np.isin(np.array([x[i] for i in range(20, 40)]), values).all():
                wrong.append(1)

    def write():
        for k in range(200):
            x[20 + k % 20] = float(k % 4)

    def write_by_aliases():
        for k in range(200):
            np.asarray(x[k % 20])[:] = k

    x[20:] = 0
    values = [0.0, 1.0, 2.0, 3.0]
    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [threading.Thread(target=write), threading.Thread(target=write_by_aliases)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    ended.set()
    for thread in readers:
        thread.join()
    found = np.asarray(x * 1)
    assert not wrong
    assert found[:20, 7].tolist() == [float(180 + k) for k in range(20)]
    assert found[20:, 7].tolist() == [float((180 + k) % 4) for k in range(20)]
