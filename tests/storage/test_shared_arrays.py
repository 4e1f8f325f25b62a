"""Sixteen threads and a hundred arrays that they share: see `shared_arrays`. And locks are taken in one order."""
from __future__ import annotations

import os
import subprocess
import sys
import sysconfig

import numpy as np
import pytest
import shared_arrays
from interleaving import Lock, Schedule, cycle, locks

import lazyarray

SEEDS = 200 if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else 3


@pytest.mark.skipif(lazyarray.device().name == "cuda", reason="the schedule does not know CUDA's own waits")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_some_order_of_the_statements_explains_what_was_seen(seed, monkeypatch):
    with locks(monkeypatch):
        schedule = Schedule(seed, 0.02)
        assert not shared_arrays.unexplained(seed, schedule.run)
        assert schedule.points > 1000 and schedule.order
        assert not any(schedule.held.values())


@pytest.mark.parametrize("seed", range(SEEDS))
def test_threads_of_python(seed):
    assert not shared_arrays.unexplained(seed, shared_arrays.at_once)


@pytest.mark.skipif(os.environ.get("LAZYARRAY_NIGHTLY") != "1", reason="takes a minute")
def test_a_minute_of_threads_of_python():
    subprocess.run([sys.executable, shared_arrays.__file__, "--seconds", "60"], check=True, timeout=300)


def test_the_oracle_finds_a_lost_write():
    add = shared_arrays.Statement("x.__iadd__(k) is None", (0,), 10)
    read = shared_arrays.Statement("float(x[1])", (0,), 11)
    before = {0: np.arange(5.0)}

    def explains(seen, after):
        return shared_arrays.explained([[(add, None)], [(add, None)], [(read, seen), (read, 21.0)]], before,
                                       {0: np.arange(5.0) + after})

    assert explains(1.0, 20) and explains(11.0, 20) and explains(21.0, 20)
    assert not explains(11.0, 10) and not explains(31.0, 20) and not explains(12.0, 20)


def test_a_circle_of_locks_is_found():
    one, two, three = (Lock(name=name) for name in ("one", "two", "three"))

    def takes(*wanted):
        def run():
            for lock in wanted:
                lock.acquire()
            for lock in wanted:
                lock.release()
        return run

    Schedule(0, 0.0).run(takes(one, two), takes(two, three), takes(one, three))
    with pytest.raises(AssertionError, match="one -> |two -> |three -> "):
        Schedule(0, 0.0).run(takes(one, two), takes(two, three), takes(three, one))
    assert cycle({one: {two}, two: {three}}) == ()


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs the free-threaded build of Python")
def test_free_threaded_python_has_its_lock_on():
    """The modules in C do not declare `Py_mod_gil`: importing them turns the lock on."""
    assert sys._is_gil_enabled()
