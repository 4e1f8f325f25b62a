"""The range of indexes, found out while somebody writes."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray


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
        return [[np.array(3), np.array(3)]] if len(args) == 3 else fetched(*args)

    monkeypatch.setattr(index_bounds, "_fetched", late)
    with pytest.raises(IndexError):
        table[second]
