"""Small arrays that no device can have: NumPy computes with them at once, and gives lazy arrays again."""
from __future__ import annotations

import collections
import operator
import sys
import threading

import numpy as np
import pytest

import lazyarray
from lazyarray import _native
from lazyarray.storage.handles import HostStorage

pytestmark = pytest.mark.skipif(_native.recording is None, reason="without the part in C all of it is left to Python")

RECORD = np.dtype([("a", "i4"), ("b", "f8"), ("c", "U3")])
ODD = np.dtype([("flag", "u1"), ("x", "f8")])      # of which the second field is not aligned


@pytest.fixture(autouse=True)
def small():
    before = _native.recording.small(95_000)
    yield
    _native.recording.small(before)


def words():
    return np.array(["delta", "alpha", "", "beta", "alpha", "gamma"])


def days():
    return np.array(["2020-02-28", "NaT", "2021-03-01", "1999-12-31", "2020-02-28"], "M8[D]")


def records():
    made = np.zeros(5, RECORD)
    made["a"], made["b"], made["c"] = [3, 1, 2, 1, 3], np.linspace(0, 1, 5), ["x", "yy", "", "zzz", "x"]
    return made


def odd():
    made = np.zeros(6, ODD)
    made["x"] = np.arange(6) / 4
    return made


ARRAYS = {
    "objects": lambda: np.array([3, 1.5, "b", 1, 1, None], object), "numbers": lambda: np.array([3, 1, 2, 1], object),
    "words": words, "bytes": lambda: words().astype("S"), "days": days, "spans": lambda: days() - days()[0],
    "records": records, "odd": odd, "long": lambda: np.arange(6, dtype="g") / 3,
    "swapped": lambda: np.arange(6).astype(">i4"),
    "raw": lambda: np.arange(12, dtype="u4").view("V8"), "two axes": lambda: np.tile(days(), (3, 1)),
    "turned": lambda: np.asfortranarray(np.tile(words(), (2, 1))), "every second": lambda: np.repeat(words(), 2)[::2],
    "one": lambda: np.array("2020-01-01", "M8[h]"), "none": lambda: words()[:0],
}


def ahead(x):
    """What an iterator gives of an array that is written before it gets there."""
    found = []
    for value in x:
        found.append(value if not isinstance(value, np.ndarray) else value.copy())
        x[-1] = x[0]
    return found


READING = {
    "an element": lambda x: x[(1,) * x.ndim] if x.size else x[0], "the last": lambda x: x[..., -1],
    "a slice": lambda x: x[1:4],
    "backwards": lambda x: x[::-1], "by a list": lambda x: x[[0, -1, 0]], "by a mask": lambda x: x[x == x],
    "equal": lambda x: x == x[::-1], "less": lambda x: x < x[::-1], "twice": lambda x: x + x,
    "less the first": lambda x: x - x[0], "negative": lambda x: -x, "sorted": lambda x: np.sort(x, axis=None),
    "order": lambda x: np.argsort(x, kind="stable"), "unique": lambda x: np.unique(x, return_counts=True),
    "the least": lambda x: x.min(), "the sum": lambda x: x.sum(), "together": lambda x: np.concatenate([x, x]),
    "stacked": lambda x: np.stack([x, x], axis=-1), "repeated": lambda x: np.repeat(x, 2, axis=0),
    "turned": lambda x: x.T, "flat": lambda x: x.reshape(-1), "raveled": lambda x: x.ravel(order="F"),
    "copy": lambda x: x.copy(),
    "of the first axis": lambda x: x.reshape(x.shape + (1,)), "as text": lambda x: x.astype("U12"),
    "as objects": lambda x: x.astype("O"), "as numbers": lambda x: x.astype("i8"), "as bytes": lambda x: x.tobytes(),
    "as lists": lambda x: x.tolist(),
    "where": lambda x: np.where(np.arange(x.size).reshape(x.shape) % 2 == 0, x, x[::-1]),
    "among": lambda x: np.isin(x, x[:2]), "between": lambda x: np.searchsorted(np.sort(x, axis=None), x),
    "differences": lambda x: np.diff(x), "broadcast": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "upper": np.char.upper,
    "lengths": np.strings.str_len, "months": lambda x: x.astype("M8[M]"), "field": lambda x: x["a"],
    "fields": lambda x: x[["c", "a"]],
    "a field and one": lambda x: x["a"] + 1, "the sum of a field": lambda x: x["b"].sum(),
    "unaligned": lambda x: x["x"] * 2,
    "a row": lambda x: x[1]["a"], "by words": lambda x: np.lexsort((x["c"], x["a"])),
    "taken": lambda x: np.take(x, [1, 0, 1], axis=0),
    "split": lambda x: np.array_split(x, 3), "twins": lambda x: np.meshgrid(x, x),
    "flags": lambda x: (x[1:].flags.owndata, x.flags.carray),
    "base": lambda x: (x.base is None, x[1:].base is x, x.reshape(-1).base is None, x.copy().base is None),
    "strides": lambda x: (x.strides, x[::2].strides), "the place": lambda x: x.argmax(),
    "a matrix": lambda x: np.outer(x, x), "each": lambda x: [*x], "each, written": ahead,
    "no number": lambda x: x * "a", "no such field": lambda x: x["z"], "beyond": lambda x: x[99],
}


def tried(work, x):
    try:
        return work(x)
    except Exception as error:  # noqa: BLE001  what NumPy raises is what is expected
        return type(error), str(error)


def same(found, expected, lazily=True):
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other, lazily)
    elif isinstance(expected, np.ndarray):
        assert type(found) is (lazyarray.LazyNdarray if lazily else np.ndarray)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.strides == expected.strides or not expected.size       # a buffer of nothing says other ones
        assert found.tolist() == expected.tolist() or repr(found) == repr(expected)     # NaT equals nothing
    elif isinstance(expected, np.generic):
        assert found.dtype == expected.dtype and str(found) == str(expected)
    else:
        assert found == expected


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("read", READING.values(), ids=READING)
def test_what_is_read(make, read):
    same(tried(read, lazyarray.asarray(make())), tried(read, np.array(make())))


WRITING = {
    "an element": lambda x: operator.setitem(x, 1, x[0]), "a slice": lambda x: operator.setitem(x, slice(1, 3), x[:2]),
    "backwards": lambda x: operator.setitem(x, slice(None), x[::-1]), "a number": lambda x: operator.setitem(x, ..., 7),
    "text": lambda x: operator.setitem(x, 0, "2020"), "a mask": lambda x: operator.setitem(x, x == x[0], x[-1]),
    "a list": lambda x: operator.setitem(x, [0, 2], x[1]), "a field": lambda x: operator.setitem(x, "a", 9),
    "of a field": lambda x: operator.setitem(x["c"], slice(0, 2), "new"),
    "a row": lambda x: operator.setitem(x, 1, (5, .5, "q")),
    "of a row": lambda x: operator.setitem(x[1], "a", 5), "added": lambda x: operator.iadd(x, 1),
    "to a field": lambda x: operator.iadd(x["a"], 1),
    "out": lambda x: np.add(x, x, out=x), "to a view": lambda x: operator.iadd(x[1:], x[:-1]),
    "sorted": lambda x: x.sort(),
    "filled": lambda x: x.fill(x[0]), "put": lambda x: np.put(x, [0, 1], x[2:4]),
    "copied": lambda x: np.copyto(x[:2], x[2:4]),
    "where": lambda x: np.copyto(x, x[::-1].copy(), where=[True] + [False] * (x.shape[-1] - 1)),
    "turned": lambda x: operator.setitem(x.T, 0, x.T[1]), "at": lambda x: np.add.at(x, [0, 0], 1),
    "placed": lambda x: np.place(x, x == x[1], x[:1]),
    "too long": lambda x: operator.setitem(x, slice(0, 2), x[:3]), "unfit": lambda x: operator.setitem(x, 0, threading),
    "read-only": lambda x: (x.setflags(write=False), operator.setitem(x, 0, x[1])),
    "of a result": lambda x: operator.setitem((x == x), slice(0, 2), False),
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("write", WRITING.values(), ids=WRITING)
def test_what_is_written(make, write):
    x, expected = lazyarray.asarray(make()), np.array(make())
    views, wanted = (x, x[..., :3], x.T, np.asarray(x)) if x.ndim else (x, x, x.T, np.asarray(x)), (
        expected, expected[..., :3], expected.T, np.asarray(expected)) if x.ndim else (expected,) * 4
    found, result = tried(write, x), tried(write, expected)
    if isinstance(result, tuple) and isinstance(result[0], type):
        assert found[0] is result[0]
    same(views[:3], wanted[:3])
    same(views[3], wanted[3], lazily=False)


@pytest.mark.parametrize("form", ["M8[s]", [("re", "f8"), ("im", "f8")], ">f8", "S8"])
def test_memory_that_the_device_knows(form):
    """Views of numbers: what is written through them, the numbers have, on the device too."""
    expected = np.arange(8.0) if not isinstance(form, str) or form != "M8[s]" else np.arange(8)
    x = lazyarray.asarray(expected)
    lazyarray.asdevice(x)
    for _ in range(3):
        view, wanted = x.view(form), expected.view(form)
        same(view[1:3], wanted[1:3])
        same(view == view[::-1], wanted == wanted[::-1])
        view[0], wanted[0] = view[2], wanted[2]
        view[3:5] = view[1]
        wanted[3:5] = wanted[1]
        assert lazyarray.asnumpy(x).tobytes() == expected.tobytes()
        assert lazyarray.asnumpy(x * 2).tobytes() == (expected * 2).tobytes()
        x += 1
        expected += 1
        assert view.tobytes() == wanted.tobytes()


def test_what_a_device_array_is_beside():
    large = np.linspace(0, 1, 100_000)
    x, picked = lazyarray.asarray(large), np.arange(0, 100_000, 20_000)
    lazyarray.asdevice(x)
    assert lazyarray.asnumpy(x[:6] * odd()["x"]).tolist() == (large[:6] * odd()["x"]).tolist()
    assert lazyarray.asnumpy(x[:6] * lazyarray.asarray(odd())["x"]).tolist() == (large[:6] * odd()["x"]).tolist()
    assert records()[lazyarray.asarray(picked) % 5].tolist() == lazyarray.asarray(records())[picked % 5].tolist()


def test_elements_that_are_arrays_are_not_ours():
    inside = np.arange(3.0)
    held = np.empty(2, object)
    held[0], held[1] = inside, lazyarray.asarray(inside)
    x = lazyarray.asarray(held)
    assert x[0] is inside and x[1] is held[1]
    assert type(x[:1]) is lazyarray.LazyNdarray and x[:1][0] is inside
    assert [one is other for one, other in zip(x, held, strict=True)] == [True, True]
    one = lazyarray.asarray(inside)
    x[1], held[1] = one, one
    assert x[1] is one and (x + 1)[1].tolist() == (held + 1)[1].tolist() == [1, 2, 3]
    for place, value in ((0, [1, one, None]), (slice(None), inside[:2]), ([1, 0], lazyarray.asarray(inside[:2]))):
        grid, wanted = lazyarray.asarray(np.zeros((2, 3), object).T), np.zeros((2, 3), object).T
        grid[..., place], wanted[..., place] = value, np.asarray(value, object)
        assert [type(item) for item in grid.ravel().tolist()] == [type(item) for item in wanted.ravel().tolist()]


def test_it_is_told():
    x = lazyarray.asarray(words())
    with lazyarray.no_transfers(), lazyarray.trace() as seen:
        np.unique(x[x != "alpha"])
    kinds = collections.Counter(event.kind for event in seen.events)
    assert set(kinds) == {"host"}


def test_it_costs_little():
    """In calls of Python's functions of ours: none where the result is a scalar, or holds numbers."""
    x, calls = lazyarray.asarray(days()), []

    def note(frame, event, _):
        if event == "call" and "lazyarray" in frame.f_globals.get("__name__", ""):
            calls.append(frame.f_code.co_name)

    np.less(x, x), x[2], x.min()        # what is found out once
    sys.setprofile(note)
    try:
        x < x, x[2], x.min(), x[1:], np.isnat(x)
        quick = len(calls)
        x[1:] - x[0]
    finally:
        sys.setprofile(None)
    assert quick == 0 and len(calls) <= 8, calls


def test_threads_that_read_and_write():
    """Each call is whole, as with ndarrays: NumPy holds the lock of the interpreter while it casts and copies."""
    x, failed = lazyarray.asarray(np.repeat(days()[:1], 100)), []

    def write(value):
        for _ in range(300):
            x[...] = value
            x[5] = value

    def read():
        for _ in range(300):
            found = np.unique(x.copy())
            if len(found) > 3:
                failed.append(found)

    threads = [threading.Thread(target=write, args=(day,)) for day in days()[2:4]] + [threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and type(x._self_storage) is HostStorage
