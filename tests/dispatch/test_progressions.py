"""Indexes with vectors of integers in arithmetic progression: as NumPy has it, and a few on the host need no upload."""
from __future__ import annotations

import itertools
import random
import warnings

import numpy as np
import pytest

import lazyarray

K = np.arange(6)
#: Name -> an index of an array of shape (7, 8, 9).
INDEXES = {
    "rises": (K,), "falls": (K[::-1],), "every second": (K[::2],), "from the end": (K - 7,), "one": (K[3:4],),
    "two": (K[2:4],), "axis 1": (slice(None), K), "last axis": (..., K), "diagonal": (K, K),
    "other diagonal": (K, 7 - K),
    "diagonal of the last axes": (slice(None), K, K + 2), "after an Ellipsis": (..., K, 8 - K), "three": (K, K, 8 - K),
    "steps": (K[:3] * 2, K[:3] * 3), "part": (slice(1, 7), K, slice(None, None, 2)),
    "backwards": (slice(None, None, -1), K),
    "number before": (2, K), "number behind": (K, 3), "number between": (K, 3, K), "numbers": (2, K, -1),
    "one axis stays": (K, np.full(6, 4)), "int32": (K.astype(np.int32), K), "other end": (K - 7, K),
    "empty part": (slice(0, 0), K),
    "view of positions": (np.arange(20)[1:13:2], K)}
#: Those that are none, or are mistaken.
OTHERS = {
    "no progression": (K ** 2 % 7,), "one of two is none": (K, K ** 2 % 7), "the same again": (np.full(6, 4),),
    "across the end": (K - 3,), "too far": (K + 2,), "too far back": (K - 8,), "lengths": (K, K[:5]),
    "far": (K, slice(None), K),
    "number far": (0, slice(None), K), "two-dimensional": (K.reshape(2, 3),), "unsigned": (K.astype(np.uint8),),
    "truth": (K > 2, 0), "nothing": (K[:0],), "floats": (K * 1.0,), "too many": (K, K, K, K), "new axis": (None, K),
    "number out of range": (9, K), "wraps in int8": (np.array([100, -56, 44], np.int8) % 7,), "list": ([0, 1, 2],)}


@pytest.fixture(params=["ndarrays", "lazy arrays on the host", "lazy arrays"])
def given(request, monkeypatch):
    """What makes an index of ndarrays an index of these."""
    if request.param == "ndarrays":
        yield lambda index: index
    elif request.param == "lazy arrays":
        yield lambda index: tuple([lazyarray.asarray(i) if isinstance(i, np.ndarray) else i for i in index])
    else:
        native = pytest.importorskip("lazyarray._native.recording")
        native.small(2000)
        try:
            yield lambda index: tuple([lazyarray.asarray(i) if isinstance(i, np.ndarray) else i for i in index])
        finally:
            native.small(0)


def arrays(order="C"):
    plain = np.asarray(np.arange(7 * 8 * 9.0).reshape(7, 8, 9), order=order)
    lazy = lazyarray.asarray(plain.copy("K"))
    lazy += 0.0     # the device has it alone
    return plain, lazy


def outcome(func, *args):
    try:
        return func(*args)
    except (ValueError, IndexError, TypeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", [*INDEXES, *OTHERS])
def test_what_is_read(name, order, given):
    plain, lazy = arrays(order)
    index = INDEXES[name] if name in INDEXES else OTHERS[name]
    expected, found = outcome(plain.__getitem__, index), outcome(lazy.__getitem__, given(index))
    if isinstance(expected, tuple):
        assert found == expected
        return
    assert type(found) is lazyarray.LazyNdarray and np.array_equal(found, expected)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert all(n < 2 or a == b for n, a, b in zip(found.shape, found.strides, expected.strides))
    found[...] = -1
    assert np.array_equal(lazy, plain), "it is a copy"


@pytest.mark.parametrize("value", [
    "number", "alike", "row", "lazy row", "other dtype", "itself", "too long", "backwards"])
@pytest.mark.parametrize("name", [*INDEXES, *OTHERS])
def test_what_is_written(name, value, given):
    plain, lazy = arrays()
    index = INDEXES[name] if name in INDEXES else OTHERS[name]
    seen = outcome(plain.__getitem__, index)
    shape = (6,) if isinstance(seen, tuple) else seen.shape
    fill = np.arange(float(np.prod(shape))).reshape(shape) * 1.5 - 3

    def write(x, index):
        whole = x[index] if value in ("itself", "backwards") and not isinstance(seen, tuple) else None
        x[index] = {
            "number": 7, "alike": fill, "row": fill[..., :1] if fill.ndim else fill, "lazy row": fill[..., :1],
            "other dtype": fill.astype(np.complex64 if name == "rises" else np.int8),
            "too long": np.arange(100.0),
            "itself": whole if whole is None else whole + 1,
            "backwards": whole if whole is None else whole[::-1]}[value]
        return None

    def lazily(x, index):
        nonlocal fill
        if value in ("lazy row", "alike"):
            fill = lazyarray.asarray(np.asarray(fill)) * 1
        return write(x, index)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        expected, found = outcome(write, plain, index), outcome(lazily, lazy, given(index))
    assert found == expected and np.array_equal(lazy, plain)


@pytest.mark.one_device("ranges are found in C")
@pytest.mark.parametrize("given", ["lazy arrays on the host"], indirect=True)
@pytest.mark.parametrize("name", ["diagonal", "diagonal of the last axes", "rises", "axis 1"])
def test_nothing_is_sent_nor_waited_for(name, given):
    plain, lazy = arrays()
    index = given(INDEXES[name])
    with lazyarray.trace() as t:
        found = lazy[index] + 1
        lazy[index] = found
    assert not t.uploads and not t.synchronisations and not t.materialisations, t
    plain[INDEXES[name]] += 1
    assert np.array_equal(lazy, plain)


@pytest.mark.parametrize("given", ["lazy arrays on the host"], indirect=True)
def test_what_is_read_is_as_it_was(given):
    """Later writes, by slices and by a host alias, do not show in it."""
    plain, lazy = arrays()
    index = given((K, K))
    before, expected = lazy[index], plain[K, K]
    np.asarray(lazy)[2, 2] = -5
    lazy[3] = 9
    lazy[index] = 0
    assert np.array_equal(before, expected)


@pytest.mark.parametrize("given", ["lazy arrays on the host"], indirect=True)
def test_read_only_arrays_and_facts(given):
    plain, lazy = arrays()
    view = lazy[:]
    view.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        view[given((K, K))] = 0
    integers, table = lazyarray.asarray(np.arange(40) % 9), lazyarray.asarray(np.arange(9.0))
    integers += 0
    taken = integers[given((K,))]
    assert np.array_equal(table[taken], np.arange(6.0))
    integers[given((K,))] = 30
    with pytest.raises(IndexError):
        table[integers[given((K,))]]


@pytest.mark.parametrize("seed", range(60))
def test_tables_filled_along_their_diagonals(seed, given):
    """Statements that read and write progressions of one array, in a row."""
    rng = random.Random(seed)
    n, m = rng.randrange(4, 12), rng.randrange(4, 12)
    plain = np.asarray(np.random.default_rng(seed).integers(-50, 50, (n, m)), order=rng.choice("CF")).astype(
        rng.choice(["f8", "i4", "c16"]))
    lazy = lazyarray.asarray(plain.copy("K"))
    for _ in range(12):
        length = rng.randrange(1, min(n, m))
        i, j = (rng.choice([1, -1]) * np.arange(length) for _ in range(2))
        i, j = i - i.min() + rng.randrange(n - length + 1), j - j.min() + rng.randrange(m - length + 1)
        k = (j - j.min() + rng.randrange(m - length + 1))[::rng.choice([1, -1])]
        what = rng.randrange(4)
        for x, lazily in (plain, lambda *index: index), (lazy, lambda *index: given(index)):
            if what == 0:
                x[lazily(i, j)] = x[lazily(i, k)] * 2 + x[lazily(i, j)]
            elif what == 1:
                x[lazily(i, j)] += 1
            elif what == 2:
                x[lazily(i)] = x[lazily(i)][::-1]
            else:
                x[lazily(i, j)] = x[lazily(i, k)]
    assert np.array_equal(lazy, plain)


def test_all_pairs_of_steps(given):
    plain, lazy = arrays()
    for a, b in itertools.product((-1, 0, 1, 2), repeat=2):
        i, j = (step * np.arange(3) + (2 if step < 0 else 0) for step in (a, b))
        assert np.array_equal(lazy[given((i, j))], plain[i, j]), (a, b)
        if a or b:
            lazy[given((i, j))] = plain[i, j] = a * 10 + b
            plain[i, j] = a * 10 + b
    assert np.array_equal(lazy, plain)
