"""Sets of byte ranges, against Python's own sets."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazyarray.storage.mirror.byte_ranges import Ranges, Regular, copy_ranges, mark

LIMIT = 60

spans = st.tuples(st.integers(0, LIMIT), st.integers(0, LIMIT)).map(sorted)
range_sets = st.lists(spans, max_size=6).map(lambda pairs: Ranges.of_pairs(np.array(pairs))) | st.builds(
    lambda count, gap, run, start: Ranges.of_view((count,), (run + gap,), run, start),
    st.integers(1, 6), st.integers(1, 5), st.integers(1, 5), st.integers(0, 9))


def members(ranges: Ranges) -> set[int]:
    return {byte for start, stop in ranges for byte in range(start, stop)}


def from_model(model: set[int]) -> Ranges:
    return Ranges.of_positions(np.array(sorted(model), np.int64))


def check(ranges: Ranges, model: set[int]) -> None:
    """The same bytes, and in normal form, so that equal sets compare equal."""
    assert members(ranges) == model
    pairs = list(ranges)
    assert all(type(edge) is int for pair in pairs for edge in pair)
    assert all(start < stop for start, stop in pairs)
    assert all(stop < start for (_, stop), (start, _) in zip(pairs, pairs[1:]))
    assert len(ranges) == len(pairs)
    assert ranges.nbytes == len(model)
    assert bool(ranges) == bool(model)
    assert ranges.bounds == ((min(model), max(model) + 1) if model else (0, 0))
    assert ranges == from_model(model)
    assert not ranges != from_model(model)


@given(st.lists(spans, max_size=8))
def test_pairs_in_any_order(pairs):
    model = {byte for start, stop in pairs for byte in range(start, stop)}
    check(Ranges.of_pairs(np.array(pairs)), model)


@given(range_sets, range_sets)
def test_set_algebra(a, b):
    x, y = members(a), members(b)
    check(a | b, x | y)
    check(a & b, x & y)
    check(a - b, x - y)
    assert a.covers(b) == (y <= x)
    assert (a == b) == (x == y)
    check(a, x)
    check(b, y)


@given(st.lists(range_sets, max_size=5))
def test_union_of_many(sets):
    check(Ranges.union(sets), set().union(*map(members, sets)))


@given(range_sets, range_sets, range_sets)
def test_laws_of_sets(a, b, c):
    assert a & (b | c) == (a & b) | (a & c)
    assert a - (b | c) == (a - b) - c
    assert (a - b) | (a & b) == a
    assert (a | b).covers(a)


@given(range_sets, st.integers(0, 12))
def test_positions_with_small_gaps_filled(a, gap):
    model = members(a)
    positions = np.array(sorted(model), np.int64)
    for (_, stop), (start, _) in zip(list(a), list(a)[1:]):
        if start - stop <= gap:
            model |= set(range(stop, start))
    check(Ranges.of_positions(positions, gap), model)


@given(range_sets, st.integers(1, 16))
def test_rounded_to_units(a, unit):
    check(a.rounded(unit), {page * unit + i for page in {byte // unit for byte in members(a)} for i in range(unit)})


@st.composite
def views(draw):
    ndim = draw(st.integers(0, 4))
    shape = tuple(draw(st.integers(0, 4)) for _ in range(ndim))
    strides = tuple(draw(st.integers(-20, 20)) for _ in range(ndim))
    itemsize = draw(st.integers(0, 9))
    offset = -sum(min((n - 1) * stride, 0) for n, stride in zip(shape, strides)) if 0 not in shape else 0
    return shape, strides, itemsize, offset + draw(st.integers(0, 10))


def bytes_of(shape, strides, itemsize, offset):
    return {offset + sum(i * stride for i, stride in zip(index, strides)) + byte
            for index in np.ndindex(*shape) for byte in range(itemsize)}


@given(views())
def test_bytes_of_a_view(view):
    check(Ranges.of_view(*view), bytes_of(*view))


@given(views(), st.integers(1, 8))
def test_a_limit_on_ranges_only_adds_bytes_between(view, limit):
    model = bytes_of(*view)
    ranges = Ranges.of_view(*view, limit=limit)
    assert len(ranges) <= limit
    assert members(ranges) >= model
    assert ranges.bounds == from_model(model).bounds
    if len(from_model(model)) <= 1:
        check(ranges, model)


@pytest.mark.parametrize("index", [
    np.s_[...], np.s_[::-1], np.s_[1:, ::2], np.s_[::3, 1], np.s_[:, ::-2], np.s_[2, 3, ...], np.s_[:0],
    np.s_[None, 1:3],
])
def test_bytes_of_numpy_views(index):
    base = np.arange(48, dtype=np.int16).reshape(6, 8)
    view = base[index]
    offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    mask = np.zeros_like(base)
    mask[index] = -1
    expected = set(np.flatnonzero(mask.reshape(-1).view(np.uint8)).tolist())
    check(Ranges.of_view(view.shape, view.strides, view.itemsize, offset), expected)


def test_every_other_element_of_a_matrix_is_one_axis_of_runs():
    # Rows that go on where the row above ends need no second axis, however many there are.
    ranges = Ranges.of_view((1000, 500), (8000, 16), 8, 0)
    assert len(ranges) == 500_000
    assert ranges.nbytes == 4_000_000


@pytest.mark.parametrize("strides", [(8 << 20, 8), (8, 8 << 20), (-8 << 20, 8)])
def test_dense_views_in_any_order_are_one_range(strides):
    start = (1 << 43) - (8 << 20) if strides[0] < 0 else 0
    assert Ranges.of_view((1 << 20, 1 << 20), strides, 8, start) == Ranges.span(0, 1 << 43)


def test_broadcast_views_count_their_bytes_once():
    assert Ranges.of_view((1 << 40, 3), (0, 8), 8, 0) == Ranges.span(0, 24)


def test_windows_overlap_without_being_listed_twice():
    windows = np.lib.stride_tricks.sliding_window_view(np.zeros(100_000)[::2], 1000)
    assert len(Ranges.of_view(windows.shape, windows.strides, 8, 0)) == 50_000


def test_sets_are_not_hashable_and_not_equal_to_other_things():
    with pytest.raises(TypeError):
        hash(Ranges.EMPTY)
    assert Ranges.EMPTY != ()


def test_repr_stays_short():
    assert repr(Ranges.span(3, 9)) == "Ranges(3:9)"
    assert repr(Ranges.EMPTY) == "Ranges()"
    assert len(repr(Ranges.of_view((1000,), (16,), 8, 0))) < 150


@given(range_sets, st.sampled_from([1, 2, 4, 8]))
def test_widened_to_whole_units(a, unit):
    firsts = {byte // unit * unit for byte in members(a)}
    check(a.rounded(unit), {first + i for first in firsts for i in range(unit)})


def test_what_a_strided_view_needs_makes_no_arrays(monkeypatch):
    """Fetched, held, asked for again, and written as a whole: the runs of a view are many."""
    a, b = (Ranges.of_view((1 << 20,), (16,), 4, 100) for _ in range(2))
    monkeypatch.delattr(Regular, "__getattr__")
    whole = Ranges.span(0, 1 << 25)
    assert a - Ranges.EMPTY is a and Ranges.EMPTY | a is a and a & whole is a
    assert not a - b and not a - whole and a.covers(b) and whole.covers(a) and a | a is a and a & a is a
    assert a.nbytes == 4 << 20 and len(a) == 1 << 20 and a
    assert a.rounded(4096).bounds == (0, (16 << 20) + 4096)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("length", [1, 3])
def test_bytes_of_ranges_are_copied_and_marked(seed, length):
    """Few bytes of what they span or many, of one length or several, and none."""
    rng = np.random.default_rng(seed)
    count, size = int(rng.integers(0, 700)), int(rng.choice([2000, 60_000]))
    starts = rng.integers(0, size - 10, count)
    ranges = Ranges.of_pairs(np.stack([starts, starts + rng.integers(1, length + 1, count)], axis=1))
    wanted = np.zeros(size, np.uint8)
    for low, high in ranges:
        wanted[low:high] = 1
    marked = np.zeros(size, np.uint8)
    mark(marked, 0, ranges)
    assert np.array_equal(marked, wanted)
    start = ranges.start
    first = int(rng.integers(0, start + 1))
    source, target = rng.integers(1, 255, size - start).astype(np.uint8), np.zeros(size - first, np.uint8)
    copy_ranges(target, first, source, start, ranges)
    assert np.array_equal(target, np.where(wanted[first:], np.pad(source, (start - first, 0)), 0))
