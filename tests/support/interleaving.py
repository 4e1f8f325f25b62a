"""Threads whose turns a seed decides: which of them goes on is drawn at any line of the library, and at each lock.

One thread runs at a time. Before a line of the library's Python code, before and after each lock and, where it is
simulated, around each operation of the device, a draw says whether another one goes on. So a seed gives the same
interleaving each time, with nothing that depends on the clock.

`outcomes` gives what NumPy may give: each of its statements on small arrays is done at once, since it keeps the
interpreter's lock, so that a program of several threads is one of the orders of their statements.
"""
from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
import threading
import types

import numpy as np

import lazyarray
from lazyarray.graph import node
from lazyarray.storage.mirror import pinned_pool

ROOT = os.path.dirname(lazyarray.__file__) + os.sep
_LOCKS = type(threading.Lock()), type(threading.RLock())
#: Draws without an end are a program that waits for itself.
MOST_POINTS = 2_000_000


class Deadlock(AssertionError):
    """All threads wait for each other."""


class Schedule:
    """Runs functions in threads of their own, one at a time.

    Parameters
    ----------
    seed : int
        What the draws are made of.
    often : float, optional
        How likely another thread goes on at each point; drawn, too, if not given.
    opcodes : bool
        Points are before each instruction of the interpreter, not before each line alone.
    """

    current: Schedule | None = None

    def __init__(self, seed: int, often: float | None = None, opcodes: bool = False) -> None:
        self.random = random.Random(seed)
        self.often = self.random.choice([0.003, 0.02, 0.1, 0.5]) if often is None else often
        self.opcodes = opcodes
        self.turns: dict[int, threading.Semaphore] = {}     # of threads that are not over
        self.waiting: dict[int, Lock] = {}                  # what threads wait for
        self.held: dict[int, list[Lock]] = {}
        self.order: dict[Lock, set[Lock]] = {}      # a lock -> those that a thread has asked for while it had it
        self.points = 0
        self.failed: list[BaseException] = []

    def run(self, *functions) -> None:
        """Run each to its end; what one raises is raised."""
        threads = []
        ready = threading.Semaphore(0)

        def body(function):
            mine = self.turns[threading.get_ident()] = threading.Semaphore(0)
            ready.release()
            mine.acquire()
            try:
                if not self.failed:
                    sys.settrace(self._trace)
                    function()
            except BaseException as error:  # noqa: BLE001  it is raised where the threads were started
                self.failed.append(error)
            finally:
                sys.settrace(None)
                del self.turns[threading.get_ident()]
                self._pass_on()

        Schedule.current = self
        collects = gc.isenabled()
        gc.disable()        # when it runs depends on what ran before
        try:
            for function in functions:      # one after the other, so that their order is the same each time
                threads.append(threading.Thread(target=body, args=(function,), daemon=True))
                threads[-1].start()
                ready.acquire()
            self._pass_on()
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive(), "a thread waits for something that the schedule does not know"
        finally:
            Schedule.current = None
            if collects:
                gc.enable()
        if self.failed:
            raise self.failed[0]
        if found := cycle(self.order):
            raise AssertionError(f"locks are taken in circles: {' -> '.join(lock.name for lock in found)}")

    def point(self) -> None:
        """Here another thread may go on."""
        if threading.get_ident() in self.turns and not self.failed:
            self.points += 1
            if self.points > MOST_POINTS:
                raise Deadlock("no end is in sight")
            if self.random.random() < self.often:
                self._switch()

    def _switch(self) -> None:
        mine = self.turns[threading.get_ident()]
        self._pass_on()
        mine.acquire()

    def wait(self, lock: Lock) -> None:
        """Let others go on, since this thread needs what one of them has."""
        me = threading.get_ident()
        self.waiting[me] = lock
        if len(self.waiting) == len(self.turns):
            self.waiting.clear()
            error = Deadlock("each thread waits for what another one holds")
            self.failed.append(error)
            raise error
        self._switch()
        self.waiting.pop(me, None)

    def check(self, lock: Lock) -> None:
        """The locks are taken in their order."""
        ranks = [other.rank for other in self.held.get(threading.get_ident(), ())]
        assert not ranks or lock.rank >= max(ranks), f"a lock of rank {lock.rank} within one of rank {max(ranks)}"
        for other in self.held.get(threading.get_ident(), ()):
            self.order.setdefault(other, set()).add(lock)

    def freed(self, lock: Lock) -> None:
        for thread in [t for t, wanted in self.waiting.items() if wanted is lock]:
            del self.waiting[thread]

    def _pass_on(self) -> None:
        going = [t for t in self.turns if t not in self.waiting] or list(self.turns)
        if going:
            self.turns[self.random.choice(going)].release()

    def _trace(self, frame, event, arg):
        name = frame.f_code.co_filename
        if not name.startswith(ROOT):
            return None
        frame.f_trace_opcodes = self.opcodes
        self.point()
        return self._trace


class Lock:
    """A lock of the library's, at which threads of a schedule take turns; others wait for it as ever.

    `rank`: where it comes in the order that `storage.py` states. Who has one waits for none of a lower rank.
    """

    held = 0

    def __init__(self, lock=None, rank=1, name="of a storage") -> None:
        self.lock = threading.RLock() if lock is None else lock
        self.rank, self.name = rank, name
        self.owner = None
        self.depth = 0

    def acquire(self, blocking=True, timeout=-1):
        schedule = Schedule.current
        if schedule is None or threading.get_ident() not in schedule.turns or not blocking:
            got = self.lock.acquire(blocking, timeout)
        else:
            if self.owner != threading.get_ident():
                schedule.check(self)
                schedule.point()
            got = self.lock.acquire(False)
            while not got:
                if schedule.failed:
                    raise Deadlock("another thread has failed")
                if self.owner in schedule.turns:
                    schedule.wait(self)
                    got = self.lock.acquire(False)
                else:       # a thread that looks after recorded work
                    got = self.lock.acquire(timeout=10)
        if got:
            self.owner = threading.get_ident()
            self.depth += 1
            if schedule is not None and self.owner in schedule.turns:
                schedule.held.setdefault(self.owner, []).append(self)
        return got

    def release(self):
        if Schedule.current is not None and self in (held := Schedule.current.held.get(self.owner, [])):
            held.remove(self)
        self.depth -= 1
        if not self.depth:
            self.owner = None
        self.lock.release()
        schedule = Schedule.current
        if schedule is not None and not self.depth:
            schedule.freed(self)
            schedule.point()

    def locked(self):
        return self.depth > 0

    def _is_owned(self):
        return self.owner == threading.get_ident()

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *given):
        self.release()


@contextlib.contextmanager
def locks(monkeypatch):
    """A context in which the library's locks, of tables and of storages that are made in it, are those of schedules."""
    made: dict[int, Lock] = {}
    with monkeypatch.context() as patch:
        graphs = node.lock
        owners = [m for name, m in list(sys.modules.items())
                  if name.startswith("lazyarray") and isinstance(m, types.ModuleType)]
        for owner in (*owners, node.Node, pinned_pool.pool):
            for name, value in list(vars(owner).items()):
                if isinstance(value, _LOCKS):
                    rank = 2 if value is graphs else 3
                    where = getattr(owner, "__name__", "pool")
                    patch.setattr(owner, name, made.setdefault(id(value), Lock(value, rank, f"{where}.{name}")))
        patch.setattr("lazyarray.storage.state.StorageLock", Lock)
        yield


def cycle(order):
    """Locks of which each was waited for by a thread that had the one before, the first after the last; () if none."""
    done: set[Lock] = set()

    def follow(lock, path):
        if lock in path:
            return path[path.index(lock):] + [lock]
        if lock not in done:
            for other in order.get(lock, ()):
                if found := follow(other, [*path, lock]):
                    return found
            done.add(lock)
        return ()

    return next(filter(None, (follow(lock, []) for lock in order)), ())


def _merged(lengths):
    if not any(lengths):
        return [()]
    found = []
    for i, n in enumerate(lengths):
        if n:
            rest = (*lengths[:i], n - 1, *lengths[i + 1:])
            found += [(i, *order) for order in _merged(rest)]
    return found


def _overlapped(programs, foreign):
    """Orders of (thread, step), where `foreign` statements of others may come between the two steps of another one.

    Steps: "all" of a statement, or its "begin" and its "end".
    """
    def follow(done, within):
        if within is None and all(n == len(program) for n, program in zip(done, programs)):
            yield ()
            return
        if within is not None:
            for rest in follow(done, None):
                yield ((within, "end"), *rest)
        for i, program in enumerate(programs):
            if i == within or done[i] == len(program):
                continue
            after = (*done[:i], done[i] + 1, *done[i + 1:])
            if foreign(program[done[i]]):
                for rest in follow(after, within):
                    yield ((i, "all"), *rest)
            elif within is None:
                for rest in follow(after, i):
                    yield ((i, "begin"), *rest)
    return follow((0,) * len(programs), None)


def overlaps(start, programs, result, foreign, arrays):
    """`outcomes`, where others may write and read by `foreign` statements while a statement is under way.

    They take no lock, and read what was there before it. When it ends, elements that they have written meanwhile stay;
    the others get what it gave. NumPy does so where arrays are so large that it lets other threads run while it
    computes. `arrays` gives those that may be written of a state.
    """
    found = set()
    for order in _overlapped(programs, foreign):
        state = start()
        todo = [iter(program) for program in programs]
        before = given = []
        for i, step in order:
            if step == "end":
                for x, old, new in zip(arrays(state), before, given):
                    np.copyto(x, new, where=(new != old) & (x == old))
                continue
            if step == "begin":
                before = [x.copy() for x in arrays(state)]
            next(todo[i])(state, i)
            if step == "begin":
                given = [x.copy() for x in arrays(state)]
                for x, old in zip(arrays(state), before):
                    x[...] = old
        found.add(result(state))
    return found


def outcomes(start, programs, result):
    """What any order of the statements gives, from a state that `start` makes anew; `result` makes it comparable."""
    found = set()
    for order in _merged(tuple(map(len, programs))):
        state = start()
        todo = [iter(program) for program in programs]
        for i in order:
            next(todo[i])(state, i)
        found.add(result(state))
    return found
