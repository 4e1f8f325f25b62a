"""Recorded work that nobody asks for does not wait for ever."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from recorded import base, lazies, pending, same

import lazyarray
import lazyarray.numpy as lazy
from lazyarray import recording_steps, speedups
from lazyarray.fusion import waiting


@pytest.fixture
def hurry(monkeypatch):
    monkeypatch.setattr(waiting, "SECONDS", 0.02)
    end = time.monotonic() + 5
    while waiting.watcher is not None and time.monotonic() < end:      # one that sleeps longer ends first
        time.sleep(0.01)


def until(condition):
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


class TestRounds:
    """One round after the other, as the thread does them."""

    @pytest.fixture(autouse=True)
    def alone(self, monkeypatch, hurry):
        monkeypatch.setattr(waiting, "_start", lambda: None)
        before, waiting.watcher = waiting.watcher, threading.current_thread()
        yield
        waiting.watcher = before if before is not None and before.is_alive() else None     # it may have ended

    def test_what_waited_a_round_is_computed(self):
        x, = lazies(base())
        held = (x * 2 + 1) * x
        last = held - 3
        waiting._round()
        assert pending(held) and pending(last)
        waiting._round()
        assert not pending(held) and not pending(last)
        assert same(last, (base() * 2 + 1) * base() - 3) and same(held, (base() * 2 + 1) * base())

    @pytest.mark.skipif(speedups.recording is None, reason="only there few are kept before they are sifted")
    def test_few_references_to_what_is_gone_are_kept(self):
        with lazyarray.options(defer_from=1):
            lazy.arange(10)
            held = lazy.arange(10) + 1      # a source that stays
            before = len(waiting.young)
            for _ in range(500):
                lazy.arange(10)
            other = lazy.arange(10)
            assert len(waiting.young) <= before + 2
        waiting._round()
        waiting._round()
        assert not pending(held) and not pending(other)
        assert same(held, np.arange(10) + 1) and same(other, np.arange(10))

    def test_what_rests_on_what_was_computed_meanwhile(self):
        x, = lazies(base())
        first = x + 1
        second = first * 2
        third = second - 1
        np.asarray(second)
        assert pending(third)
        del x, first
        waiting._round(), waiting._round()
        assert not pending(third) and same(third, (base() + 1) * 2 - 1)

    def test_views_casts_and_sources(self):
        import lazyarray.numpy as lnp

        x, = lazies(base((4, 6), "i4"))
        made = [x.T[::2] * 0.5, x.astype("f2"), np.where(x > 2, x, 0), lnp.arange(9) * 2, x + x[0] * 1]
        assert all(map(pending, made))
        waiting._round(), waiting._round()
        assert not any(map(pending, made))
        assert same(made[3], np.arange(9) * 2)

    def test_what_is_gone_is_forgotten(self):
        x, = lazies(base())
        for _ in range(5000):
            x * 2
        assert len(waiting.young) <= 2 * waiting._FEW
        waiting._round(), waiting._round()
        assert not waiting._round() and not waiting._old and not waiting.young

    def test_it_rests_after_each_stretch_and_large_inputs_come_first(self, monkeypatch):
        rests, seen, compute = [], [], waiting._compute
        monkeypatch.setattr(waiting.time, "sleep", rests.append)
        monkeypatch.setattr(waiting, "_STRETCH", -1)
        monkeypatch.setattr(waiting, "_compute", lambda ref, node: (seen.append(bool(node.large)), compute(ref, node)))
        x, y = lazies(base(), base())
        small, large = [x * n for n in range(5)], y * 7
        large._self_storage.pending.large = frozenset({(1, 2)})
        waiting._round(), waiting._round()
        assert seen == [True] + [False] * 5 and len(rests) == 5 and min(rests) >= 0
        assert not any(map(pending, [*small, large]))

    def test_what_can_not_be_computed_is_told_to_who_asks(self, monkeypatch):
        x, = lazies(base())
        x * 2
        recording_steps.rules[np.multiply, x.dtype, int].alone = 0      # else others' calls may have it done at once
        y = x * 2

        def fail(*args):
            raise MemoryError("no more")

        monkeypatch.setattr(lazyarray.device(), "kernel", fail)
        waiting._round(), waiting._round()
        assert pending(y)
        with pytest.raises(MemoryError, match="no more"):
            np.asarray(y)
        monkeypatch.undo()
        assert same(y, base() * 2)


def test_the_thread_comes_and_goes(hurry):
    x, = lazies(base())
    assert waiting.watcher is None
    made = [x * 2]
    assert pending(made[0]) and waiting.watcher is not None
    assert until(lambda: not pending(made[0]))
    assert same(made.pop(), base() * 2)
    assert until(lambda: waiting.watcher is None)
    z = x + 1
    assert until(lambda: not pending(z)) and same(z, base() + 1)


def test_importing_and_computing_at_once_start_no_thread():
    code = ("import threading, numpy as np, lazyarray; x = lazyarray.asarray(np.ones(9)); y = x.sum(); "
            "lazyarray.options.set(defer_from=None); z = x * 2; print([t.name for t in threading.enumerate()])")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "lazyarray-waiting" not in found.stdout


@pytest.mark.skipif(not hasattr(os, "fork") or lazyarray.device().name == "cuda", reason="a fork loses the device")
def test_a_forked_child_waits_for_nothing(hurry):
    """It has lost the device: what is on the host it computes there, and its parent's work goes on."""
    x, = lazies(base())
    np.asarray(x)
    x * 2
    y = x * 2
    child = os.fork()
    if not child:
        try:
            os._exit(0 if np.array_equal(np.asarray(x + 1), base() + 1) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert same(y, base() * 2)
    assert pending(x + 1)
