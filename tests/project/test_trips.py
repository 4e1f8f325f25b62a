"""How many stations there are between a statement and the device: who reads along has to pass them all."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import trips

import lazyarray
from lazyarray import _native

#: At most so many calls, files and changes of file. Who shortens a trip lowers its bound.
BOUNDS = {
    "np.asarray(np.sqrt(x * 2 + 1))": trips.Trip(71, 22, 49),
    "np.sqrt(x * 2 + 1)": trips.Trip(3, 2, 1),
    "x[mask] = v": trips.Trip(47, 11, 32),
    "np.asarray(x)": trips.Trip(6, 5, 5),
    "np.add(x, y, out=z)": trips.Trip(7, 2, 1),
    "@lazy": trips.Trip(11, 9, 9),
}


@pytest.fixture(scope="module")
def found():
    """The trips in a process of their own: what other tests have imported or enabled is passed on the way, too."""
    done = subprocess.run([sys.executable, trips.__file__], capture_output=True, text=True, check=True,
                          env=os.environ | {"PYTHONPATH": str(Path(lazyarray.__file__).parents[1])})
    return {name: trips.Trip(*map(int, re.findall(r"=(\d+)", numbers)))
            for name, numbers in re.findall(r"^(.*): Trip(.*)$", done.stdout, re.M)}


@pytest.mark.skipif(
    lazyarray.device().name != "simulated" or _native.recording is None or sys.version_info < (3, 12),
    reason="other devices, builds and versions of Python take other ways")
@pytest.mark.skipif("lazyarray.device().count > 1", reason="with several, each call asks how many are used")
@pytest.mark.parametrize("name", BOUNDS)
def test_no_trip_grows(found, name):
    assert all(value <= most for value, most in zip(found[name], BOUNDS[name])), found[name]


@pytest.mark.skipif(lazyarray.device().name != "simulated" or _native.recording is None, reason="as above")
def test_it_is_no_longer_where_numpys_warnings_were_set():
    statement = trips.statements()["np.sqrt(x * 2 + 1)"]
    before = trips.trip(statement)
    with np.errstate(all="ignore"):
        assert trips.trip(statement) == before
    assert trips.trip(statement) == before


def test_each_trip_has_a_bound():
    assert trips.statements().keys() == BOUNDS.keys()
