"""Small arrays on the host, indexed by what the device has."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray import _native

pytestmark = pytest.mark.skipif(_native.recording is None, reason="without C all arrays have a storage")

RNG = np.random.default_rng(0)
PLACES = RNG.integers(-30, 30, 5000)
TABLES = {"floats": RNG.random(30), "integers": RNG.integers(0, 9, 30), "rows": RNG.random((30, 4)),
          "Fortran": np.asfortranarray(RNG.random((30, 40))), "every other": RNG.random((60, 5))[::2],
          "complex": RNG.random(30) + 1j, "truth values": RNG.random(30) > 0.5, "dates": np.arange(30).astype("M8[D]")}
INDEXES = {
    "one": lambda i: i, "computed": lambda i: i % 7, "of two axes": lambda i: i.reshape(50, 100),
    "without axes": lambda i: i[3], "with a slice": lambda i: (i, slice(1, 3)), "at the end": lambda i: (..., i % 4),
    "and a number": lambda i: (i, 2), "two": lambda i: (i, i % 4), "new axis": lambda i: (None, i),
    "mask": lambda i: i[:30] > 0, "too far": lambda i: i + 1, "none": lambda i: i[:0],
    "32 bits": lambda i: i.astype("i4")}


@pytest.fixture(autouse=True)
def small(small_on_host):
    small_on_host(2000)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("table", TABLES)
def test_elements_are_numpys(table, index):
    plain, places = TABLES[table], lazyarray.asarray(PLACES) * 1
    for _ in range(12):     # the last times the table has a storage
        x = lazyarray.asarray(plain.copy())
        try:
            expected = plain[INDEXES[index](PLACES)]
        except IndexError as error:
            with pytest.raises(IndexError, match="out of bounds|too many indices|boolean index"):
                x[INDEXES[index](places)]
            assert str(error)
            continue
        found = x[INDEXES[index](places)]
        np.testing.assert_array_equal(np.asarray(found), expected)
        assert found.dtype == expected.dtype
        if expected.ndim and index != "without axes":      # which gives a view
            found[...] = found[:1] if len(found) else 0     # which is a new array
        np.testing.assert_array_equal(np.asarray(x), plain)


def test_a_table_that_is_written_in_between():
    x, places, plain = lazyarray.asarray(np.arange(30.0)), lazyarray.asarray(PLACES) * 1, np.arange(30.0)
    for k in range(20):
        x[k] = plain[k] = 100 + k
        np.testing.assert_array_equal(np.asarray(x[places]), plain[PLACES])
        alias = np.asarray(x)
        alias[29] = plain[29] = k
        np.testing.assert_array_equal(np.asarray(x[places]), plain[PLACES])


@pytest.mark.one_device("with several, it has a storage")
def test_a_table_stays_on_the_host():
    places = lazyarray.asarray(PLACES) * 1
    places.min(), places.max()
    for _ in range(3):
        x = lazyarray.asarray(np.arange(30.0)) + 1
        assert x[places].shape == PLACES.shape
        assert _native.recording.is_light(x)
