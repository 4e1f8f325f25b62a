"""Threads and streams in fresh processes: a few, or ``LAZYARRAY_STRESS=200`` of them (see `stress_threads`)."""
from __future__ import annotations

import os

import stress_threads

from lazyarray.events import fallback_warning

PROCESSES = int(os.environ.get("LAZYARRAY_STRESS") or (200 if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else 2))


def test_fresh_processes_give_what_numpy_gives():
    lines = []
    failures = stress_threads.run(PROCESSES, min(PROCESSES, 8), say=lambda text, flush: lines.append(text))
    assert not failures, "\n".join(lines)


def test_a_wrong_value_a_fallback_and_a_warning_are_failures(monkeypatch):
    def wrong(a):
        stress_threads.same(a.x + 1, a.values, "a sum")

    def falls_back(a):
        fallback_warning.reset_warnings()
        a.np.apply_along_axis(lambda row: row, 0, a.x)

    def warns(a):
        import warnings

        warnings.warn("unexpected", stacklevel=1)

    monkeypatch.setattr(stress_threads, "THREADS", 2)
    monkeypatch.setattr(stress_threads, "LENGTHS", (40,))
    for work, said in ((wrong, "40 of 40 values differ"), (falls_back, "numpy.apply_along_axis runs on the host"),
                       (warns, "UserWarning: unexpected")):
        monkeypatch.setattr(stress_threads, "WORK", (work,))
        found = stress_threads.process(4)
        assert found and any(said in line for line in found), found
