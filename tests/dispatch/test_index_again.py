"""An index that names elements twice, used again and again: the last value wins each time, what is kept of it holds."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray


@pytest.mark.parametrize("seed", range(6))
def test_the_last_value_wins_each_time(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 3000))
    plain_index = rng.integers(0, count // 2 + 1, count)
    plain, other = np.zeros(count), np.zeros(2 * count)
    index, x, longer = lazyarray.asarray(plain_index), lazyarray.asarray(plain), lazyarray.asarray(other)
    streams = [lazyarray.device().new_stream() for _ in range(2)]
    for turn in range(12):
        values = rng.random(count)
        v = lazyarray.asarray(values)
        what = turn % 4
        if what == 0:
            x[index] = v
            plain[plain_index] = values
        elif what == 1:
            longer[index] = v
            other[plain_index] = values
        elif what == 2:
            part = slice(0, count // 2)
            x[index[part]] = v[part]
            plain[plain_index[part]] = values[part]
        else:
            lazyarray.block_until_ready(x, v, index)
            with streams[turn % 2]:
                x[index] = v
                lazyarray.device().synchronize()
            plain[plain_index] = values
        if turn == 5:       # what is known of it is forgotten
            index[: count // 3] = 0
            plain_index[: count // 3] = 0
        assert np.array_equal(x, plain) and np.array_equal(longer, other), turn


@pytest.mark.parametrize(("rows", "searched"), [
    (np.arange(500), False), (np.arange(0, 1000, 2), False), (np.arange(500)[::-1], False),
    (np.r_[np.arange(499), 3], True), (np.arange(-3, 497), True)])
def test_positions_that_rise_name_each_place_once(monkeypatch, rows, searched):
    """Who wrote last is asked only where two values may go to one place."""
    device, asked = type(lazyarray.device()), []
    search = device.last_of_each
    monkeypatch.setattr(device, "last_of_each", lambda *args: asked.append(1) or search(*args))
    columns = np.random.default_rng(0).integers(0, 4, rows.shape)
    expected, values = np.zeros((1000, 4)), np.arange(500.0).reshape(rows.shape)
    x = lazyarray.asarray(expected.copy())
    x[rows, lazyarray.asarray(columns) * 1] = lazyarray.asarray(values)
    expected[rows, columns] = values
    assert np.array_equal(np.asarray(x), expected)
    assert bool(asked) == searched
