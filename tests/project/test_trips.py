"""How many stations there are between a statement and the device: who reads along has to pass them all."""
from __future__ import annotations

import sys

import numpy as np
import pytest
import trips

import lazyarray
from lazyarray import _native

#: At most so many calls, files and changes of file. Who shortens a trip lowers its bound.
BOUNDS = {
    "np.asarray(np.sqrt(x * 2 + 1))": trips.Trip(72, 23, 49),
    "np.sqrt(x * 2 + 1)": trips.Trip(3, 2, 1),
    "x[mask] = v": trips.Trip(37, 11, 30),
    "np.asarray(x)": trips.Trip(8, 6, 6),
    "np.add(x, y, out=z)": trips.Trip(18, 5, 13),
    "@lazy": trips.Trip(12, 9, 11),
}


@pytest.mark.skipif(
    lazyarray.device().name != "simulated" or _native.recording is None or sys.version_info < (3, 12),
    reason="other devices, builds and versions of Python take other ways")
@pytest.mark.parametrize("name", BOUNDS)
def test_no_trip_grows(name):
    found = trips.trip(trips.statements()[name])
    assert all(value <= most for value, most in zip(found, BOUNDS[name])), found


@pytest.mark.skipif(lazyarray.device().name != "simulated" or _native.recording is None, reason="as above")
def test_it_is_no_longer_where_numpys_warnings_were_set():
    statement = trips.statements()["np.sqrt(x * 2 + 1)"]
    before = trips.trip(statement)
    with np.errstate(all="ignore"):
        assert trips.trip(statement) == before
    assert trips.trip(statement) == before


def test_each_trip_has_a_bound():
    assert trips.statements().keys() == BOUNDS.keys()
