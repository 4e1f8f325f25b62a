"""Displaying an array, in whatever state, copies only the values that are shown, and changes nothing."""
from __future__ import annotations

import contextlib
import errno
import mmap
import re

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as lazy
from lazyarray.array import html as display_html
from lazyarray.storage import handles

SHAPE = (300, 400)
MOST = 4 << 10      # bytes of corners and, in HTML, of a thumbnail


def values(dtype="f8", shape=SHAPE):
    numbers = np.arange(np.prod(shape)).reshape(shape) % 251
    return (numbers * (1 + 1j) if np.dtype(dtype).kind == "c" else numbers).astype(dtype)


def with_alias(want, write=False, part=...):
    x = lazyarray.asarray(want)
    alias = np.asarray(x[part])
    if write:
        alias[...] = want[part] = 7
    return x, want, alias


def lent(want, write=False):
    x = lazyarray.asarray(want)
    handle = lazyarray.asdevice(x)
    if write:
        handle[:2] = want[:2] = 5
    return x, want, handle


def lent_with_alias(want):
    x = lazyarray.asarray(want)
    alias, handle = np.asarray(x), lazyarray.asdevice(x)
    handle[:2] = want[:2] = 5
    alias[-2:] = want[-2:] = 6
    return x, want, (alias, handle)


def half_written(want):
    """Half of it was written on the host, of the other half nothing is there."""
    x = lazyarray.asarray(want)
    alias = np.asarray(x[100:200])
    alias[...] = want[100:200] = 3
    x[200:] = want[200:] = 4
    return x, want, alias


STATES = {
    "device": lambda w: (lazyarray.asarray(w), w),
    "pending": lambda w: (lazyarray.asarray(w) + lazyarray.asarray(w), w + w),
    "pending reduction beside": lambda w: (lazyarray.asarray(w) - lazyarray.asarray(w).max(), w - w.max()),
    "view of pending": lambda w: ((lazyarray.asarray(w) + 1)[5:, ::-1], (w + 1)[5:, ::-1]),
    "turned pending": lambda w: ((lazyarray.asarray(w) + 1).T, (w + 1).T),
    "alias": with_alias,
    "alias written": lambda w: with_alias(w, True),
    "alias of a part": lambda w: with_alias(w, False, slice(2, 9)),
    "alias of a part written": lambda w: with_alias(w, True, slice(2, 9)),
    "alias of the last column written": lambda w: with_alias(w, True, np.s_[:, -1]),
    "alias of the middle written": lambda w: with_alias(w, True, slice(100, 150)),
    "half written on each side": half_written,
    "lent": lent,
    "lent and written": lambda w: lent(w, True),
    "lent, with an alias, both written": lent_with_alias,
    "host": lambda w: (born_on_host(w), w), "host, used on the device": lambda w: (born_on_host(w, True), w),
    "view": lambda w: (lazyarray.asarray(w)[3:, 7::2], w[3:, 7::2]),
    "Fortran": lambda w: (lazyarray.asarray(np.asfortranarray(w)), np.asfortranarray(w)),
    "broadcast": lambda w: (np.broadcast_to(lazyarray.asarray(w[0]), (9, *SHAPE)), np.broadcast_to(w[0], (9, *SHAPE))),
    "prefetched": lambda w: (prefetched(lazyarray.asarray(w)), w),
}


def born_on_host(want, used=False):
    """As the results of functions that the device lacks are."""
    x = handles.host_result(want.copy())
    if used:
        x + 1
    return x


def prefetched(x):
    lazyarray.prefetch(x)
    return x


WAYS = {
    "repr": repr, "str": str, "format": lambda x: f"{x}", "array_repr": np.array_repr, "array_str": np.array_str,
    "array2string": np.array2string, "named": lambda x: np.array_repr(arr=x), "named str": lambda x: np.array_str(a=x),
    "threshold": lambda x: np.array2string(x, threshold=10, edgeitems=2),
    "precise": lambda x: np.array_repr(x, precision=2),
    "options": lambda x: with_options(x, threshold=5, edgeitems=1), "legacy": lambda x: with_options(x, legacy="1.13"),
    "formatter": lambda x: with_options(x, formatter={"all": lambda v: f"<{v}>"}),
    "no edge": lambda x: with_options(x, edgeitems=0),
}


def with_options(x, **options):
    with np.printoptions(**options):
        return repr(x) + str(x)


def made(state, dtype="f8"):
    x, want, *held = STATES[state](values(dtype))
    return x, want, held


@pytest.mark.together
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("state", STATES)
def test_text_is_numpys_and_copies_what_it_shows(state, way):
    x, want, held = made(state)
    with lazyarray.trace() as t:
        got = WAYS[way](x)
    assert got == WAYS[way](want)
    assert t.nbytes <= MOST or way == "no edge", t      # NumPy reads all then
    assert not t.uploads or way == "no edge"
    assert np.array_equal(np.array(x), want)
    del held


@pytest.mark.together
@pytest.mark.parametrize("state", STATES)
def test_html_copies_what_it_shows(state):
    x, want, held = made(state)
    with lazyarray.trace() as t:
        got = x._repr_html_()
    assert t.nbytes <= display_html.MOST_BYTES and not t.uploads, t
    assert np.array_equal(np.array(x), want)
    fresh = lazyarray.asarray(want)._repr_html_()
    assert tables(got)[1:] == tables(fresh)[1:]
    del held


def tables(html):
    """The texts of its tables, the first of which says where the array is."""
    return [re.findall(r">([^<]+)</t[dh]>", table) for table in html.split("<table")[1:]]


@pytest.mark.together
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f4", "c16", "f2"])
@pytest.mark.parametrize("state", [
    "alias of a part written", "half written on each side", "lent, with an alias, both written"])
def test_bytes_of_both_sides_in_one_text(state, dtype):
    x, want, held = made(state, dtype)
    assert repr(x) == repr(want) and str(x[::-1, ::-1]) == str(want[::-1, ::-1])
    assert repr(x.T) == repr(want.T)
    del held


def test_a_part_of_an_element_that_was_written_on_the_host():
    want = values("i8")
    x = lazyarray.asarray(want)
    alias = np.asarray(x[0, :2])
    alias.view("u1")[3] = want[0, :2].view("u1")[3] = 9
    assert repr(x) == repr(want)


@pytest.mark.parametrize("way", ["repr", "str", "html"])
def test_of_a_pending_array_no_more_is_computed_than_is_shown(way):
    want = values()
    x, more = lazyarray.asarray(want) * 2 + 1, want * 2 + 1
    assert x.size > np.get_printoptions()["threshold"]
    for _ in range(3):
        if way == "html":
            assert str(more[0, 0]).rstrip("0") in x._repr_html_()
        else:
            assert WAYS[way](x) == WAYS[way](more)
        assert x._self_storage.state == "pending"
    assert np.array_equal(np.asarray(x), more)


@pytest.mark.parametrize("shape", [(3,), (40, 30), (50, 60)])
def test_what_the_host_computes_sooner_is_shown_without_a_copy(shape):
    size = int(np.prod(shape))
    x = (lazy.arange(size) * 2.0).reshape(shape)
    want = (np.arange(size) * 2.0).reshape(shape)
    with lazyarray.trace() as t:
        assert repr(x) == repr(want) and str(x) == str(want) and "<table" in x._repr_html_()
    assert not t.uploads
    assert np.array_equal(np.asarray(x), want)


@pytest.mark.parametrize("make", [
    lambda: np.zeros(SHAPE, "i4,f8"), lambda: np.full(SHAPE, "ab"), lambda: np.full(SHAPE, None),
    lambda: values().astype("M8[s]"), lambda: np.array(3.5), lambda: np.zeros((0, 5)), lambda: np.array(None),
    lambda: np.float32(2.5), lambda: values("g"), lambda: np.ones((6,) * 5)], ids=range(10))
def test_other_dtypes_and_shapes(make):
    want = make()
    x = lazyarray.asarray(want)
    with lazyarray.trace() as t:
        assert repr(x) == repr(np.asarray(want)) and str(x) == str(want) and f"{x}" == f"{want}"
        assert "<table" in x._repr_html_()
    assert t.nbytes <= max(want.nbytes, MOST) and not t.uploads


@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (3, 0, 4), (2, 3)])
def test_few_values_that_were_lent(shape):
    x, want, held = lent(np.ones(shape))
    assert repr(x) == repr(want) and str(x) == str(want) and "<table" in x._repr_html_()
    del held


def test_a_scalar_is_fetched_once():
    s = lazyarray.asarray(values()).sum()
    with lazyarray.trace() as t:
        want = values().sum()
        assert repr(s) == repr(want) and str(s) == str(want) and f"{s:.1f}" == f"{want:.1f}"
    assert t.nbytes == 8


def test_a_function_of_the_users_sees_all_values():
    x = lazyarray.asarray(values())
    options = {"override_repr": lambda a: f"sum {float(np.sum(a))}"}
    try:
        context = np.printoptions(**options)
    except TypeError:
        pytest.skip("this NumPy has no override_repr")
    with context:
        assert repr(x) == repr(values())


def test_arrays_beyond_memory_are_shown():
    x = np.broadcast_to(lazyarray.asarray(np.arange(10.0)), (10**9, 10**3, 10))
    want = np.broadcast_to(np.arange(10.0), (10**9, 10**3, 10))
    with contextlib.suppress(OSError):      # of a limited address space
        assert repr(x) == repr(want)
        assert str(x[::-1]) == str(want[::-1])


def test_a_system_that_promises_no_more_memory_than_it_has(monkeypatch):
    real = mmap.mmap

    def strict(file, size, **options):
        if file == -1:
            raise OSError(errno.ENOMEM, "strict")
        return real(file, size, **options)

    x, want = lazyarray.asarray(values()) * 2, values() * 2
    monkeypatch.setattr(mmap, "mmap", strict)
    assert repr(x) == repr(want)
