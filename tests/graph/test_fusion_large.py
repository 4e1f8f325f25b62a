"""Recorded work that keeps large inputs alive is bounded."""
from __future__ import annotations

import numpy as np
import pytest
from recorded import base, forget_kernels, large_inputs, lazies, pending

import lazyarray
from lazyarray.graph import memory_bound
from lazyarray.graph.memory_bound import kept

NBYTES = base().nbytes


@pytest.fixture(autouse=True)
def everything_is_large():
    """Inputs of a few elements count, and nothing else is known."""
    kept.sizes.clear()
    kept.total, kept.look_at = 0, memory_bound._FEW
    with lazyarray.options(defer_from=0), large_inputs(8):
        yield
    assert kept.look_at > 0 and kept.total == sum(kept.sizes.values())


def names(x):
    return {name for name, _ in x._self_storage.pending.large}


@pytest.mark.together
def test_each_input_is_counted_once():
    x, y = lazies(base(), base()[::-1].copy())
    results = [x * 2]
    results += [results[0] + 1, results[0] - y, y * y, results[0] * y]
    assert kept.sizes.keys() == names(results[2]) and kept.total == sum(kept.sizes.values()) == 2 * NBYTES
    assert names(results[0]) < names(results[2])


@pytest.mark.one_device("with several, each input is looked up")
def test_what_goes_on_from_a_result_was_counted_with_it():
    x, y = lazies(base(), base()[::-1].copy())
    held = x * 2
    for _ in range(2):      # the first call of each kind counts them once more
        kept.sizes.clear()
        kept.total = 0
        results = [held + i for i in range(3)]
        results.append(np.sqrt(results[0]) * results[0])
    assert not kept.sizes
    results.append(results[0] + y)
    assert kept.sizes.keys() == names(results[-1]) > names(held)


@pytest.mark.together
def test_what_is_cast_first_is_counted_too():
    x, y = lazies(base(dtype="f4"), base())
    for _ in range(3):
        kept.sizes.clear()
        kept.total = 0
        result = x * y
        assert kept.sizes.keys() == names(result) and len(kept.sizes) == 2
        other = x + np.float64(2)
        assert names(other) < kept.sizes.keys()


def test_it_is_looked_through_now_and_then():
    many = [base() + i for i in range(3 * memory_bound._FEW)]
    for array in many:
        lazyarray.asarray(array) * 2
    assert len(kept.sizes) < memory_bound._FEW + 2
    inputs = lazies(*many)
    results = [x * 2 for x in inputs]
    assert kept.look_at > len(kept.sizes) >= 3 * memory_bound._FEW and all(map(pending, results))
    assert np.array_equal(results[7], many[7] * 2)


def test_beyond_the_bound_the_oldest_is_computed(monkeypatch):
    monkeypatch.setattr(memory_bound, "MOST_BYTES", 3 * NBYTES)
    inputs = lazies(*[base() + i for i in range(5)])
    results = []
    for x in inputs:
        results += [x * 2, x * 3]
        assert kept.total <= 3 * NBYTES
    assert [pending(result) for result in results] == [False] * 4 + [True] * 6
    assert kept.sizes.keys() == set().union(*map(names, results[4:]))
    assert all(np.array_equal(results[2 * i], (base() + i) * 2) for i in range(5))


def test_what_a_finaliser_records_meanwhile_is_seen(monkeypatch):
    monkeypatch.setattr(memory_bound, "MOST_BYTES", 2 * NBYTES)
    inputs = lazies(*[base() + i for i in range(4)])
    waiting, made = memory_bound._waiting, []

    def within():
        if not made:
            made.append(inputs[3] * 2)
        return waiting()

    monkeypatch.setattr(memory_bound, "_waiting", within)
    results = [x * 2 for x in inputs[:3]]
    assert made and names(made[0]) <= kept.sizes.keys()
    results.append(inputs[0] * 5)       # one too many, now that it counts
    assert kept.total <= 2 * NBYTES and not pending(results[0])
    assert np.array_equal(made[0], (base() + 3) * 2)


def test_a_result_that_fails_leaves_the_rest_as_it_was(monkeypatch):
    monkeypatch.setattr(memory_bound, "MOST_BYTES", 2 * NBYTES)
    inputs = lazies(*[base() + i for i in range(3)])
    results = [x * 2 for x in inputs[:2]]
    device = lazyarray.device()

    def refuses(*args):
        raise MemoryError("none left")

    forget_kernels()
    with monkeypatch.context() as patch:
        patch.setattr(device, "kernel", refuses, raising=False)
        with pytest.raises(MemoryError):
            inputs[2] * 2
    assert kept.look_at > 0 and all(map(pending, results)) and kept.total >= 2 * NBYTES
    assert all(np.array_equal(result, (base() + i) * 2) for i, result in enumerate(results))
