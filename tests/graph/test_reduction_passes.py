"""How often recorded work is computed on the way to a reduction, before it is kept."""
from __future__ import annotations

import gc

import numpy as np
import pytest
from fused_reductions import deferred, function, fused, numbers, pending, taken

import lazyarray
from lazyarray.graph import reduction

__all__ = ["deferred"]


def test_once_for_a_reduction_and_once_for_its_elements():
    plain = numbers("d", (6,))
    x, z, w = (lazyarray.asarray(plain + i) for i in range(3))
    fused(lambda: (x * z + w).sum())
    y = x * z + w       # reads more than it would write
    with taken() as found:
        y.sum()
        assert pending(y) and found == ["sum"]
        y.max()
        assert not pending(y) and found == ["sum"]
        y.min()
    assert np.array_equal(y, plain * (plain + 1) + plain + 2)


def test_what_is_held_on_the_way_is_computed_the_second_time():
    plain = numbers("d", (6,))
    x, z, w = (lazyarray.asarray(plain + i) for i in range(3))
    fused(lambda: (x * z + w + 1).sum())
    held = x * z + w
    (held + 1).sum()
    assert pending(held)
    (held + 2).sum()
    assert not pending(held)
    assert np.allclose(held, plain * (plain + 1) + plain + 2)


@pytest.mark.together
def test_what_reads_little_is_not_computed_for_what_reads_much():
    x, z, w = (lazyarray.asarray(numbers("d", (6,)) + i) for i in range(3))
    fused(lambda: ((x * 2) * z + w).sum())
    held = x * 2
    for _ in range(3):
        (held * z + w).sum()
        assert pending(held)


def test_what_costs_little_is_passed_through_some_times():
    x = lazyarray.asarray(numbers("d", (6,)))
    for name in ("sum", "max", "min", "any"):
        fused(lambda name=name: function(name)(x * 2))
    y = x * 2
    with taken() as found:
        y.sum(), y.max(), y.min(), y.any()
        assert pending(y) and len(found) == reduction._PASSES == 4
        y.sum()
    assert not pending(y) and len(found) == 4
    assert np.array_equal(y, np.asarray(x) * 2)


def test_many_steps_are_computed_once_more():
    x = lazyarray.asarray(numbers("d", (6,)))

    def chain():
        y = x
        for i in range(reduction._FEW + 1):
            y = y * (i + 1)
        return y

    fused(lambda: chain().sum())
    y = chain()
    y.sum()
    assert pending(y)
    y.sum()
    assert not pending(y)


def test_a_quotient_by_its_own_sum():
    plain = numbers("f", (5, 8))
    x = lazyarray.asarray(plain)
    for _ in range(2):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        result = e / e.sum(axis=1, keepdims=True)
    expected = np.exp(plain - plain.max(axis=1, keepdims=True))
    assert np.allclose(result, expected / expected.sum(axis=1, keepdims=True), rtol=1e-5)


def test_writes_come_after():
    plain = numbers("d", (6,))
    x = lazyarray.asarray(plain)
    y = x + 1
    total = y.sum()
    x[...] = 0
    assert total == (plain + 1).sum() and np.array_equal(y, plain + 1)
    y[0] = 50
    assert y.sum() == (plain + 1)[1:].sum() + 50


def test_a_temporary_goes_at_once():
    import weakref

    x = lazyarray.asarray(numbers("d", (6,)))
    gc.disable()
    try:
        y = x * 2
        storage = weakref.ref(y._self_storage)
        y.sum()
        del y
        assert storage() is None
    finally:
        gc.enable()
