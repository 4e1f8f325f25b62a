"""Calls like one that was met before: what was found of that one holds for them, and for no other call."""
from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest
from recorded import base, kernels, lazies, pending, same

import lazyarray
from lazyarray.graph import memory_bound, node, waiting
from lazyarray.graph.record import call_cache, loops
from lazyarray.graph.record.operands import Operands

SHAPE = (4, 6)
#: What an operand of shape (4, 6), or one that broadcasts to it, may be made of an array of that shape.
FORMS = {
    "whole": lambda x: x, "pending": lambda x: x + 1, "row": lambda x: x[1], "column": lambda x: x[:, 2:3],
    "pending row": lambda x: x[1] - 1, "pending column": lambda x: (x[:, :1] + 2), "stepped": lambda x: x[::-1, ::-1],
    "fortran": lambda x: x.reshape(6, 4).T, "pending fortran": lambda x: (x.reshape(6, 4) * 2).T,
    "pending, in another shape": lambda x: (x * 3).reshape(1, 4, 6), "one": lambda x: x[1:2, 2:3],
    "pending one": lambda x: x[1:2, 2:3] + 5, "number": lambda x: 3, "numpy's": lambda x: np.float64(2),
    "element": lambda x: x[2, 3], "sum": lambda x: x.sum(),
}


@pytest.fixture
def known():
    """The calls that were met since."""
    call_cache.known.clear()       # in place: the part in C has the same dict
    return call_cache.known


one_device = pytest.mark.one_device("where several are in use, all is looked at")


@contextlib.contextmanager
def looked_at():
    """The functions of the calls whose operands are looked at one by one within."""
    found, make = [], Operands.__init__

    def noted(self, function=None):
        found.append(function)
        make(self, function)

    Operands.__init__ = noted
    try:
        yield found
    finally:
        Operands.__init__ = make


@pytest.mark.parametrize("one", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("dtype", [(float, float), (np.float32, float), (np.int32, np.float32)])
def test_each_pair_time_after_time(known, one, dtype):
    """In every order of the calls, so that what holds for one is at hand when the next one comes."""
    first, second = dtype
    for (_, other), repeat in itertools.product([*FORMS.items(), *FORMS.items()], range(2)):
        plain_x, plain_y = base(SHAPE, first) + repeat, base(SHAPE, second)[::-1].copy()
        x, y = lazies(plain_x, plain_y)
        expected = one(plain_x) - other(plain_y)
        found = one(x) - other(y)
        if np.ndim(expected):
            assert same(found, expected)
        else:
            assert found == expected and np.asarray(found).dtype == np.asarray(expected).dtype


@one_device
@pytest.mark.parametrize("call", [
    lambda x, row: x - row, lambda x, row: x[1:, 1:] * 2, lambda x, row: x[1:, 1:] + x[:-1, 1:],
    lambda x, row: x.T * 2, lambda x, row: (x + 1)[:, None] * row, lambda x, row: row < x[::2],
    lambda x, row: -x[::2], lambda x, row: x.reshape(2, 2, 6).transpose(1, 0, 2) * 2,
])
def test_nothing_is_looked_at_again(known, call):
    x, row = lazies(base(SHAPE), base((6,)))
    for _ in range(3):
        call(x, row)        # the first one finds its rule
    with looked_at() as found:
        y = call(x, row)
        assert pending(y)
    assert not found
    assert same(y, call(base(SHAPE), base((6,))))


def test_a_call_that_the_quick_way_does_is_not_kept(known):
    x, y = lazies(base(SHAPE), base(SHAPE))
    rules = dict(loops.rules)
    loops.rules.clear()
    for _ in range(3):
        x - y, x > 2, x + 1 + y
    assert not known
    loops.rules.update(rules)


def test_shapes_strides_and_dtypes_tell_calls_apart(known):
    plain = base((6, 6))
    x = lazyarray.asarray(plain)
    cuts = [np.s_[:3, :3], np.s_[::2, :3], np.s_[::2, ::2], np.s_[2::-1, :3], np.s_[:3, 0], np.s_[0, :3],
            np.s_[1:4, 3:], np.s_[:1, :3], np.s_[:3, None, :3]]
    for cut, dtype, shift in itertools.product(cuts, [float, np.float32, np.int64, np.complex64], range(2)):
        lazy, host = x.astype(dtype), plain.astype(dtype)
        assert same(lazy[cut] * lazy[cut] + shift, host[cut] * host[cut] + shift)
        assert same(lazy[cut].T - lazy[:3, :3], host[cut].T - host[:3, :3])


@pytest.mark.together
def test_an_array_that_others_may_write_is_looked_at_each_time(known):
    x, row = lazies(base(SHAPE), base((6,)))
    for _ in range(3):
        x[1:] - row
    alias = np.asarray(row)
    for i in range(3):
        alias[:] = i
        assert same(x[1:] - row, base(SHAPE)[1:] - i * np.ones(6))
        lent = lazyarray.asdevice(row)
        lent[...] = i + 7
        assert same(x[1:] - row, base(SHAPE)[1:] - (i + 7) * np.ones(6))
        del lent


@pytest.mark.together
def test_small_results_are_not_recorded(known):
    x, row = lazies(base(SHAPE), base((6,)))
    for _ in range(3):
        assert pending(x[1:] - row)
    with lazyarray.options(defer_from=3 * 6 * 8):
        assert pending(x[1:] - row)
    with lazyarray.options(defer_from=3 * 6 * 8 + 1):
        assert not pending(x[1:] - row) and pending(np.stack([x] * 2) - row)
        assert same(x[1:] - row, base(SHAPE)[1:] - base((6,)))
    with lazyarray.options(defer_from=None):
        assert not pending(x[1:] - row)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_a_number_beyond_the_dtype(known, dtype):
    x, plain = lazyarray.asarray(base(SHAPE, dtype)), base(SHAPE, dtype)
    for _ in range(3):
        assert same(x[1:] + 3, plain[1:] + 3) and same(x[1:] < 3, plain[1:] < 3)
    with pytest.raises(OverflowError):
        x[1:] + 100_000
    assert same(x[1:] < 100_000, plain[1:] < 100_000)


def test_long_chains_are_cut(known):
    x, row = lazies(base(SHAPE), np.ones(6))
    y, plain = x, base(SHAPE)
    for _ in range(3 * node.MOST_STEPS):
        y, plain = y - row, plain - 1
    assert same(y, plain)


@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("cut", [np.s_[1:-1, 1:-1], np.s_[1:3], np.s_[:, 2], np.s_[::-1], np.s_[...]])
@pytest.mark.parametrize("turned", [False, True])
def test_in_place(known, dtype, cut, turned):
    x, plain = lazyarray.asarray(base(SHAPE, dtype)), base(SHAPE, dtype)
    if turned:
        x, plain = x.T, plain.T
    for i in range(4):
        x[cut] += x[cut] * 0.5 + i
        plain[cut] += plain[cut] * 0.5 + i
        y, host = x[cut] * 2, plain[cut] * 2
        y *= np.float32(3)
        host *= np.float32(3)
        assert same(y, host)
    assert same(x, plain)
    x[cut] -= base((1,)) + x[cut]
    plain[cut] -= base((1,)) + plain[cut]
    assert same(x, plain)


@one_device
def test_in_place_with_a_cast(known):
    x, plain = lazyarray.asarray(base(SHAPE, np.float32)), base(SHAPE, np.float32)
    for _ in range(4):
        x[1:] += x[1:].astype(float) * 0.5
        plain[1:] += plain[1:].astype(float) * 0.5
    with looked_at() as found:
        x[1:] += x[1:].astype(float) * 0.5
    plain[1:] += plain[1:].astype(float) * 0.5
    assert np.add not in found
    assert same(x, plain)
    y = lazyarray.asarray(base(SHAPE, int))
    for _ in range(3):
        with pytest.raises(TypeError):
            y[1:] += x[1:] * 2
    assert same(y, base(SHAPE, int))


def test_what_is_seen_without_dimensions_gives_a_scalar(known):
    x = lazyarray.asarray(base((1,))) + 1
    for call in (lambda x: x * 2, lambda x: -x, lambda x: x + x):
        for _ in range(2):
            assert type(call(x.reshape(()))) is lazyarray.LazyScalar
            assert call(x.reshape(())) == call(np.float64(2))


@pytest.mark.together
def test_the_kernel_reads_each_operand_once(known):
    x, row = lazies(base(SHAPE), base((6,)))
    for _ in range(3):
        with kernels() as found:
            assert same((x[1:] - row) * x[1:], (base(SHAPE)[1:] - base((6,))) * base(SHAPE)[1:])
        assert [len(program.steps) for program in found] == [2]


class TestLargeInputs:
    def test_bytes_that_views_keep_are_bounded(self, known, monkeypatch):
        """Also of calls that were met before."""
        rows = memory_bound.LARGE // 8 // 64 + 1
        monkeypatch.setattr(memory_bound, "MOST_BYTES", 3 * rows * 64 * 8)
        results = []
        for i in range(6):
            results.append(lazyarray.asarray(np.full((rows, 64), float(i)))[1:] * 2)
            assert sum(map(pending, results)) <= 3
        assert [pending(result) for result in results] == [False] * 3 + [True] * 3
        assert all(result[-1, -1] == 2 * i for i, result in enumerate(results))

    def test_one_input_counts_once_however_many_read_it(self, known, monkeypatch):
        rows = memory_bound.LARGE // 8 // 64 + 1
        monkeypatch.setattr(memory_bound, "MOST_BYTES", 2 * rows * 64 * 8)
        x = lazyarray.asarray(np.ones((rows, 64)))
        results = [x[i:i + 2] * 2 for i in range(200)]
        assert all(map(pending, results))
        assert (results[7] == 2).all()

    def test_small_inputs_of_many_results_are_bounded(self, known, monkeypatch):
        waiting.compute_all()       # of other tests
        monkeypatch.setattr(memory_bound, "MOST_BYTES", 300 * base().nbytes)
        results = [lazyarray.asarray(base() + i) * 2 for i in range(200)]
        memory_bound.note_many()    # which the part in C does now and then
        assert all(map(pending, results))
        monkeypatch.setattr(memory_bound, "MOST_BYTES", 100 * base().nbytes)
        memory_bound.note_many()
        assert not any(map(pending, results))
        assert all(np.array_equal(result, (base() + i) * 2) for i, result in enumerate(results))

    def test_what_is_gone_is_not_kept_in_mind(self, known):
        rows = memory_bound.LARGE // 8 // 64 + 1
        x = lazyarray.asarray(np.ones((rows, 64)))
        for i in range(2000):
            x[i:i + 2] * 2
        assert len(memory_bound.kept.sizes) < 200
