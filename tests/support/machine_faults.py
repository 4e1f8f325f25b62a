"""Faults in the state machine: an interrupt, or memory that runs out, at a drawn point of what a rule does.

What it ends is done or not done. Which of the two it is, a look through one door says, of what the rule may have
written; all that comes after has to agree with that, through any other door. No lock may be held then, nor a setting of
the thread be changed.

A second interrupt may come while the first exception is handled, or in the same statement once more, which is what a
user does next. And at the point a signal handler may use the arrays, or the garbage collector runs; then nothing need
be raised at all.
"""
from __future__ import annotations

import contextlib
import functools
import gc
import random

import numpy as np
from fault_points import ERRORS, Fault, Surroundings, monitored
from finalisers import in_a_cycle
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from machine import Library, Machine, NotNow, attempt, index, require, root_of, same, step, tame
from machine_threads import CALLS

import lazyarray
from lazyarray.testing import DEVICE_DTYPES

#: So many of the library's calls are to end at a point, whose number is at most so large. Small ones are more likely,
#: since many calls have few points.
OFTEN, MOST = 0.4, 1000
#: So many of them meet a second interrupt, in so many points more at most; are made once more; have something done at
#: the point; and then go on.
TWICE, SOON, AGAIN, MEANWHILE, GOES_ON = 0.2, 40, 0.25, 0.3, 0.5

LOOKS = {
    "host": np.asarray,
    "device": lambda x: np.asarray(x + x.dtype.type(0)),
    "copy": lambda x: np.asarray(x.copy()),
}


def identical(want, got):
    """Equal, and of zeros each has its sign: it shows in texts."""
    return same(want, got) and (want.dtype.kind not in "fc" or all(
        np.array_equal(np.signbit(a), np.signbit(b)) for a, b in ((want.real, got.real), (want.imag, got.imag))))


def alike(state, other):
    return all(map(identical, state, other))


@functools.cache
def surroundings():
    """The library's locks and settings; to look for them takes a while."""
    return Surroundings()


#: What a signal handler, or a finaliser, does with the lazy arrays at the point. All of it only looks.
MEANWHILES = {
    "read": lambda x: np.asarray(x),
    "copy": lambda x: lazyarray.asnumpy(x),
    "compute": lambda x: x + x,
    "compare": lambda x: bool(np.any(x == x)),
    "prefetch": lambda x: lazyarray.prefetch(x),
    "show": lambda x: repr(x),
}


class Armed:
    """The fault that is to come, and where it came.

    `doors`: what may be used at the point.
    """

    def __init__(self, draws, doors=()):
        self.number = int(MOST ** draws.random()) - 1
        self.error = ERRORS[draws.choice(sorted(ERRORS))]
        self.look = draws.choice(sorted(LOOKS))
        self.then = int(SOON ** draws.random()) - 1 if draws.random() < TWICE else None
        self.again = draws.random() < AGAIN
        self.meanwhile = None
        if draws.random() < MEANWHILE:
            self.what, self.nth, self.collects = draws.choice(sorted(MEANWHILES)), draws.random(), draws.random() < 0.4
            self.meanwhile, self.doors = self.use, doors
            if draws.random() < GOES_ON:
                self.error = None
        self.place = self.fault = None

    def use(self):
        """Something is done with an array, by a handler or by the finaliser of what is garbage."""
        found = [d.real for d in self.doors if d.kind == "lazy"]
        if not found:
            return
        x = found[int(self.nth * len(found))]
        work = functools.partial(attempt, MEANWHILES[self.what], [x])
        if self.collects:
            in_a_cycle(work)
            del work
            gc.collect(0)
        else:
            work()

    def run(self, function, arguments):
        """Like `attempt`; the fault itself is an outcome, too."""
        outcome = None
        try:
            with Fault(self.number, self.error, self.meanwhile, then=self.then) as fault:
                outcome = attempt(function, arguments)
        except KeyboardInterrupt as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            outcome = None, error
        self.place = fault.place if fault.second is None else (*fault.place, "and", *fault.second)
        self.came = {self.error} if fault.second is None else {self.error, KeyboardInterrupt}
        return outcome

    def ended(self, error):
        """Whether the call was ended by the fault."""
        return self.place is not None and type(error) in self.came


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

    def armed(self, doors=(), often=OFTEN):
        return Armed(self.draws, doors) if self.draws is not None and self.draws.random() < often else None

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
        armed = self.armed(self.doors)
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
        states = [before, [r.copy() for r in roots]]
        if armed.again:
            states = self.repeat(call, doors, roots, states)
        self.decide(armed, doors, roots, states)
        return None

    def repeat(self, call, doors, roots, states):
        """Make a call that was ended once more, before anybody has looked; the states that are possible after it."""
        armed, later, errors = self.armed(self.doors, 0.5), [], set()
        for state in states:
            for root, values in zip(roots, state):
                root[...] = values
            _, error = attempt(call, [d.model for d in doors])
            errors.add(type(error))
            later.append([r.copy() for r in roots])
        arguments = [d.real for d in doors]
        _, raised = attempt(call, arguments) if armed is None else self.run_armed(armed, call, arguments)
        if armed is not None and armed.ended(raised):
            return states + later
        assert type(raised) in errors, f"once more, NumPy gives one of {errors}, the library {raised!r}"
        return later

    def decide(self, armed, doors, roots, states):
        """Have the models in the one of these states of their roots that the library shows."""
        for root, values in zip(roots, states[0]):
            root[...] = values
        if all(alike(state, states[0]) for state in states):
            return
        seen = [d.real.copy() if d.kind == "alias" else self.look(armed, d) for d in doors]
        for equal in (identical, same):
            for state in states:
                for root, values in zip(roots, state):
                    root[...] = values
                if all(equal(d.model, found) for d, found in zip(doors, seen)):
                    return
        raise AssertionError(f"{[d.name for d in doors]} are {seen}: neither done nor not done, "
                             f"after a fault at {armed.place}")

    def look(self, armed, door):
        # What the device does not hold comes as it is.
        how = armed.look if door.storage.on_device and door.model.dtype.kind in "iufc" else "host"
        return np.array(LOOKS[how](door.real))

    @step(n=index, m=index, first=st.sampled_from(sorted(CALLS)), second=st.sampled_from(sorted(CALLS)))
    def handler(self, n, m, first, second):
        """A signal handler writes to the same memory within what a statement does: one comes before the other."""
        require(self.draws is not None)

        def usable(door):
            storage, model = door.storage, door.model
            return (storage.on_device and model.dtype in DEVICE_DTYPES and model.ndim and model.flags.writeable
                    and model.dtype.kind in "if" and model.size and 0 not in model.strides and tame(model)
                    and np.all(np.abs(model) < 30)
                    and not any(d.kind == "handle" and d.storage is storage for d in self.doors))

        doors = self.pick(n, "lazy", where=usable), self.pick(m, "lazy", where=usable)
        require("alias" not in (first, second))
        armed = Armed(self.draws)
        armed.collects, outcomes = self.draws.random() < 0.4, []
        if self.draws.random() < GOES_ON:
            armed.error = None

        def work():
            outcomes.append(attempt(CALLS[second], [doors[1].real]))

        def use():
            if armed.collects:
                in_a_cycle(work)
                gc.collect(0)
            else:
                work()

        armed.meanwhile = use
        roots = list({id(r): r for r in (root_of(d.model) for d in doors)}.values())
        before = [r.copy() for r in roots]

        def after(*steps):
            """The state after these, each the number of a call."""
            for root, values in zip(roots, before):
                root[...] = values
            for i in steps:
                attempt(CALLS[(first, second)[i]], [doors[i].model])
            return [r.copy() for r in roots]

        states = {steps: after(*steps) for steps in ((), (0,), (1,), (0, 1), (1, 0))}
        # What a statement writes is made of what it read, perhaps before the handler wrote to the same elements.
        if not (alike(states[0, 1], states[1, 0]) and all(
                not np.any((a != old) & (b != old)) for a, b, old in zip(states[0,], states[1,], before))):
            for root, values in zip(roots, before):
                root[...] = values
            require(False)
        _, raised = self.run_armed(armed, CALLS[first], [doors[0].real])
        if armed.ended(raised):
            possible = [(0, 1), (1, 0), (1,)] if outcomes and outcomes[0][1] is None else list(states)
        elif outcomes:
            possible = [(0, 1), (1, 0)]
        else:
            possible = [(0,)]
        self.decide(armed, doors, roots, [states[steps] for steps in possible])

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
        armed = self.machine.armed(self.machine.doors)
        if armed is None:
            return plain(self, *arguments)
        result, error = self.machine.run_armed(armed, lambda *given: plain(self, *given), arguments)
        if error is not None:
            raise NotNow if armed.ended(error) else error
        return result
    return verb


for _name in ("array", "handle", "prefetch"):
    setattr(_Faulty, _name, _verb(_name))
