"""Faults in the state machine: an interrupt, or memory that runs out, at a drawn point of what a rule does.

What it ends is done or not done. Which of the two it is, a look through one door says, of what the rule may have
written; all that comes after has to agree with that, through any other door. No lock may be held then, nor a setting of
the thread be changed.
"""
from __future__ import annotations

import contextlib
import functools
import random

import numpy as np
from fault_points import ERRORS, Fault, Surroundings, monitored
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from machine import Library, Machine, NotNow, attempt, root_of, same

#: So many of the library's calls are to end at a point, whose number is at most so large. Small ones are more likely,
#: since many calls have few points.
OFTEN, MOST = 0.4, 1000

LOOKS = {
    "host": np.asarray,
    "device": lambda x: np.asarray(x + x.dtype.type(0)),
    "copy": lambda x: np.asarray(x.copy()),
}


@functools.cache
def surroundings():
    """The library's locks and settings; to look for them takes a while."""
    return Surroundings()


class Armed:
    """The fault that is to come, and where it came."""

    def __init__(self, draws):
        self.number = int(MOST ** draws.random()) - 1
        self.error = ERRORS[draws.choice(sorted(ERRORS))]
        self.look = draws.choice(sorted(LOOKS))
        self.place = None

    def run(self, function, arguments):
        """Like `attempt`; the fault itself is an outcome, too."""
        outcome = None
        try:
            with Fault(self.number, self.error) as fault:
                outcome = attempt(function, arguments)
        except KeyboardInterrupt as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            outcome = None, error
        self.place = fault.place
        return outcome

    def ended(self, error):
        """Whether the call was ended by the fault."""
        return self.place is not None and type(error) is self.error


class Faults(Machine):
    """The rules of `Machine`, with the library's calls ended at points that a seed draws."""

    draws = None

    def __init__(self):
        super().__init__()
        self._monitored = contextlib.ExitStack()
        self._monitored.enter_context(monitored())
        self.surroundings = surroundings()
        self.library = _Faulty(self)

    @initialize(seed=st.integers(0, 9999))
    def faults(self, seed):
        self.draws = random.Random(seed)

    def teardown(self):
        self.draws = None
        try:
            super().teardown()
        finally:
            self._monitored.close()

    def armed(self):
        return Armed(self.draws) if self.draws is not None and self.draws.random() < OFTEN else None

    def run_armed(self, armed, function, arguments):
        """The outcome of the library's call."""
        self.surroundings.before = self.surroundings.now()
        outcome = armed.run(function, arguments)
        if armed.place is not None:
            found = self.surroundings.wrong([d.real for d in self.doors])
            assert not found, f"{found} after a fault at {armed.place}"
        return outcome

    def both(self, call, *doors):
        self.ended = None
        armed = self.armed()
        if armed is None:
            return super().both(call, *doors)
        # Some share memory, since NumPy made one of another by an interface. What is read-only writes nothing.
        roots = list({id(r): r for r in (root_of(d.model) for d in doors) if r.flags.writeable}.values())
        before = [r.copy() for r in roots]
        want, error = attempt(call, [d.model for d in doors])
        got, raised = self.run_armed(armed, call, [d.real for d in doors])
        if not armed.ended(raised):
            assert type(error) is type(raised), (
                f"NumPy gives {error!r} {want!r}, the library {raised!r} {got!r} after a fault at {armed.place}")
            return None if error is not None else (want, got)
        self.ended = armed
        self.decide(armed, doors, roots, [before, [r.copy() for r in roots]])
        return None

    def decide(self, armed, doors, roots, states):
        """Have the models in the one of these states of their roots that the library shows."""
        if all(map(same, *states)):
            return
        seen = [d.real.copy() if d.kind == "alias" else self.look(armed, d) for d in doors]
        for state in states:
            for root, values in zip(roots, state):
                root[...] = values
            if all(same(d.model, found) for d, found in zip(doors, seen)):
                return
        raise AssertionError(f"{[d.name for d in doors]} are {seen}: neither done nor not done, "
                             f"after a fault at {armed.place}")

    def look(self, armed, door):
        # What the device does not hold comes as it is.
        how = armed.look if door.storage.on_device and door.model.dtype.kind in "iufc" else "host"
        return np.array(LOOKS[how](door.real))

    def give_alias(self, a, door):
        super().give_alias(a, door)
        if door == "ctypes" and self.ended is not None:
            a.storage.pins.append((a.real, a.model))        # its address may be known


class _Faulty(Library):
    """The library's verbs, which may end at a point. Then the rule ends, too."""

    def __init__(self, machine):
        self.machine = machine
        self.precise_tracking = type(machine).library.precise_tracking


def _verb(name):
    plain = getattr(Library, name)

    def verb(self, *arguments):
        armed = self.machine.armed()
        if armed is None:
            return plain(self, *arguments)
        result, error = self.machine.run_armed(armed, lambda *given: plain(self, *given), arguments)
        if error is not None:
            raise NotNow if armed.ended(error) else error
        return result
    return verb


for _name in ("array", "handle", "prefetch"):
    setattr(_Faulty, _name, _verb(_name))
