"""Two threads in the state machine: what they do to arrays that share memory gives what one of both orders gives."""
from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import strategies as st
from interleaving import Schedule, locks
from machine import Machine, attempt, index, require, root_of, same, step, tame

from lazyarray.testing import DEVICE_DTYPES

#: What a thread does to an array, at once in NumPy; what it returns is new.
CALLS = {
    "+= 1": lambda a: operator.iadd(a, 1) is None,
    "*= 2": lambda a: operator.imul(a, 2) is None,
    "+= itself": lambda a: operator.iadd(a, a) is None,
    "x[...] = 3": lambda a: operator.setitem(a, Ellipsis, 3),
    "x[:1] = 2": lambda a: operator.setitem(a, slice(0, 1), 2),
    "x[::2] = 1": lambda a: operator.setitem(a, slice(None, None, 2), 1),
    "x[::-1] = x": lambda a: operator.setitem(a, slice(None, None, -1), a),
    "fill": lambda a: a.fill(2),
    "sort": lambda a: a.sort(axis=-1),
    "out=": lambda a: np.multiply(a, 3, out=a) is None,
    "cumsum": lambda a: np.cumsum(a[:2], axis=0, out=a[:2]) is None,
    "put": lambda a: np.put(a, [0, -1], 4),
    "where=": lambda a: np.add(a, 1, out=a, where=np.arange(a.size).reshape(a.shape) % 2 == 0) is None,
    "alias": lambda a: operator.setitem(np.asarray(a), slice(0, 1), 99),
    "recorded": lambda a: a * 2 + 1,
    "copy": lambda a: a.copy(),
    "sum": lambda a: a.sum(),
    "asarray": lambda a: np.asarray(a).copy(),
    "text": lambda a: str(a),
    "list": lambda a: a.tolist(),
}


class Threads(Machine):
    """The rules of `Machine`, and one in which two threads take turns.

    What `armed` returns ends what one of them does, done or not done; see `machine_faults`.
    """

    def __init__(self):
        self._patch = pytest.MonkeyPatch()
        self._locks = locks(self._patch)
        self._locks.__enter__()
        super().__init__()

    def teardown(self):
        try:
            super().teardown()
        finally:
            self._locks.__exit__(None, None, None)
            self._patch.undo()

    @step(n=index, m=index, first=st.sampled_from(sorted(CALLS)), second=st.sampled_from(sorted(CALLS)),
          seed=st.integers(0, 9999))
    def together(self, n, m, first, second, seed):
        def usable(door):
            storage, model = door.storage, door.model
            return (storage.on_device and model.dtype in DEVICE_DTYPES and model.ndim and model.flags.writeable
                    and model.dtype.kind in "if" and 0 < model.nbytes <= 4096 and tame(model)
                    and not any(d.kind == "handle" and d.storage is storage for d in self.doors))

        doors = self.pick(n, "lazy", where=usable), self.pick(m, "lazy", where=usable)
        # Of memory that several elements share, and of sums that pass the numbers, nobody says what the order gives.
        require(all(0 not in d.model.strides for d in doors) and all(np.all(np.abs(d.model) < 30) for d in doors))
        # What foreign code writes may be written back to be what it was: that is no write to be found.
        require("alias" not in (first, second) or first != second)
        calls = CALLS[first], CALLS[second]
        roots = list({id(r): r for r in map(root_of, (d.model for d in doors))}.values())
        before = [r.copy() for r in roots]

        def in_order(order):
            found = [None, None]
            for i in order:
                found[i] = _seen(attempt(calls[i], [doors[i].model]))
            state = [r.copy() for r in roots]
            for root, values in zip(roots, before):
                root[...] = values
            return found, state

        wanted = [in_order((0, 1)), in_order((1, 0))]
        got = [None, None]
        armed = self.armed()
        runs = [attempt, attempt]
        if armed is not None:
            runs[seed % 2] = armed.run

        def thread(i):
            got[i] = runs[i](calls[i], [doors[i].real])

        if self.library.has_device:
            schedule = Schedule(seed)
            schedule.run(lambda: thread(0), lambda: thread(1))
            assert not any(schedule.held.values()), f"{first}, {second}: a lock is held"
        else:
            thread(0), thread(1)
        seen = [_seen(outcome) for outcome in got]
        where = ""
        if armed is not None and armed.ended(got[seed % 2][1]):
            where = f", fault in thread {seed % 2} at {armed.place}"
            wanted.append(in_order((1 - seed % 2,)))
            for found, _ in wanted:
                found[seed % 2] = seen[seed % 2]
        if len({repr(one) for one in wanted}) > 1:      # then it has to be looked at; else nothing need be fetched
            now = [self.library.asnumpy(d.real) for d in doors]
            possible, wanted = wanted, [(found, state) for found, state in wanted
                                        if repr(found) == repr(seen) and self._shows(doors, roots, state, now)]
            assert wanted, f"{first}, {second} of {[d.name for d in doors]}: {seen} {now}, not any of {possible}{where}"
        else:
            assert repr(wanted[0][0]) == repr(seen), f"{first}, {second}: {seen}, not {wanted[0][0]}{where}"
        for root, values in zip(roots, wanted[0][1]):
            root[...] = values

    def armed(self):
        return None

    def _shows(self, doors, roots, state, now):
        kept = [r.copy() for r in roots]
        for root, values in zip(roots, state):
            root[...] = values
        alike = all(same(d.model, found) for d, found in zip(doors, now))
        for root, values in zip(roots, kept):
            root[...] = values
        return alike


def _seen(outcome):
    """What a call gave, to be compared by its text: the values, or the type of what it raised."""
    value, error = outcome
    if error is not None:
        return type(error).__name__
    return value if value is None or isinstance(value, (str, list, bool)) else np.asarray(value).tolist()
