"""Many live arrays: what each costs, and that an operation does no more where there are many."""
from __future__ import annotations

import gc
import os
import sys

import numpy as np
import pytest
from recorded import compiled

import lazyarray
from benchmarks import many
from lazyarray.graph import node, waiting

KIBIBYTE = 1024
MANY = 1_000_000 if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else 20_000


@pytest.fixture
def default_deferring():
    with lazyarray.options(defer_from=16 << 20):
        yield


@pytest.mark.parametrize("kind", ["results", "recorded results", "views"])
def test_an_array_takes_less_than_a_kibibyte_of_host_memory(kind, default_deferring):
    assert many.bytes_each(many.makers()[kind], 4000) <= KIBIBYTE


@pytest.mark.parametrize("deferring", [None, 0])
def test_many_live_arrays_work(deferring):
    x = lazyarray.asarray(np.arange(4.0))
    with lazyarray.options(defer_from=deferring):
        kept = [x + i for i in range(MANY)]
        x += 1      # recorded work that reads it has to be done before
        views = [result[1:] for result in kept]
        assert all(float(views[i][2]) == i + 3 for i in range(0, MANY, MANY // 50)) and float(x[3]) == 4


def calls(work):
    """How many calls, of Python's functions and of others, a piece of work makes."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()        # what the collector calls is not the work's
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


OPERATIONS = {
    "x + y": lambda x, y: x + y,
    "x += 1": lambda x, y: x.__iadd__(1),
    "np.sum": lambda x, y: np.sum(x),
    "view": lambda x, y: x[1:],
    "index": lambda x, y: x[[0, 2]],
    "assign": lambda x, y: x.__setitem__(0, 3),
    "np.asarray": lambda x, y: np.asarray(x + y),
    "asarray": lambda x, y: lazyarray.asarray(np.ones(3)),
}


@pytest.mark.together
@pytest.mark.parametrize("deferring", [None, 0])
@pytest.mark.parametrize("kind", many.makers())
def test_an_operation_does_the_same_among_many(kind, deferring):
    x, y = lazyarray.asarray(np.linspace(0, 1, 16)), lazyarray.asarray(np.ones(16))
    make = many.makers()[kind]
    with lazyarray.options(defer_from=deferring):
        for _ in range(3):      # what is made once is made now
            for operation in OPERATIONS.values():
                operation(x, y)
            compiled()
        alone = {name: calls(lambda operation=operation: operation(x, y)) for name, operation in OPERATIONS.items()}
        kept = [make() for _ in range(3000)]
        crowded = {name: calls(lambda operation=operation: operation(x, y)) for name, operation in OPERATIONS.items()}
    # One call more or less: of the look at the clock, or of a table that had no place left.
    more = {name: count - alone[name] for name, count in crowded.items() if count - alone[name] > 2}
    assert len(kept) == 3000 and not more


def test_recording_does_not_look_through_all_that_read_the_same_array(monkeypatch):
    looked = 0

    class Ref(node.weakref.ref):
        def __call__(self):
            nonlocal looked
            looked += 1
            return super().__call__()

    monkeypatch.setattr(node.weakref, "ref", Ref)
    x = lazyarray.asarray(np.ones(4))
    with lazyarray.options(defer_from=0):
        kept = [x + i for i in range(2000)]
        assert looked <= 10 * len(kept)
        del kept[1000:]
        kept += [x * i for i in range(1000)]
    assert all(float(a[0]) == 1 + i for i, a in enumerate(kept[:1000])) and float(kept[-1][0]) == 999


def test_many_arrays_die_and_leave_nothing():
    make = many.makers()["fetched results"]
    make()
    waiting.waiting()       # the list of what waits is looked through when it is asked for, or has become long
    gc.collect()
    before = len(gc.get_objects())
    kept = [make() for _ in range(500)]
    del kept
    waiting.waiting()
    gc.collect()
    assert len(gc.get_objects()) < before + 100
