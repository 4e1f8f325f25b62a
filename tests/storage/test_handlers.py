"""Signal handlers, which Python runs in the main thread in the middle of a statement, and programs that are ending."""
from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import handlers
import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp
from lazyarray import _native
from lazyarray.storage import foreign_streams

TRIED = 30      # points of a statement, spread evenly over all of them


class TimeLimit(Exception):
    """What a program's handler raises."""


def _stop(signum, frame):
    raise TimeLimit


def _ready(values):
    return lazyarray.asarray(lazyarray.asdevice(lazyarray.asarray(values)).copy())


def _looked_at(values):
    x = _ready(values)
    np.asarray(x)
    return x


def _pending(values):
    return _ready(values) + 0


def _add(x):
    x += 1


def _add_to_itself(x):
    np.add(x, x, out=x)


def _set_all(x):
    x[...] = 5


def _set_one(x):
    x[0] += 1


def _sort(x):
    x.sort()


def _total(x):
    float(x.sum())


def _points(make, values, statement, tried=TRIED):
    """Numbers of points at which a handler may run within `statement`."""
    statement(make(values))     # what is done once in a process is done
    count = handlers.At(sys.maxsize, _stop)
    with count:
        statement(make(values))
    points = sys.maxsize - count.left
    return range(0, points, max(1, points // tried))


def _is_free(lock):
    """Whether another thread gets a lock."""
    got = []

    def take():
        if lock.acquire(timeout=1):
            lock.release()
            got.append(True)
    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return bool(got)


@pytest.mark.together
@pytest.mark.parametrize("alias_held", [False, True])
@pytest.mark.parametrize("make", [_ready, _looked_at, _pending])
@pytest.mark.parametrize("statement", [_add, _add_to_itself, _set_all, _set_one, _sort, _total])
def test_a_handler_that_raises_leaves_the_statement_done_or_not_done(make, statement, alias_held):
    values = np.arange(6.0)[::-1].copy()
    done = values.copy()
    statement(done)
    for point in _points(make, values, statement):
        x = make(values)
        alias = np.asarray(x) if alias_held else None
        at = handlers.At(point, _stop)
        try:
            with at:
                statement(x)
        except TimeLimit:
            pass
        else:
            assert not at.ran, f"the time limit was swallowed at {at.place}"
        lock = x._self_storage._lock
        assert lock is None or _is_free(lock) and not lock.held, at.place
        device, host = np.array(np.asarray(x + 0)), np.array(np.asarray(x))
        assert any(np.array_equal(host, one) for one in (values, done)), (at.place, host)
        np.testing.assert_array_equal(device, host, at.place)
        if alias_held:
            np.testing.assert_array_equal(alias, host, at.place)


@pytest.mark.together
def test_a_write_by_a_handler_is_not_undone_by_a_write_beside_it():
    values = np.arange(6.0)
    for point in _points(_looked_at, values, _set_one, 1000):
        x = _looked_at(values)

        def write(signum, frame, x=x):
            x[1] += 1
        at = handlers.At(point, write)
        with at:
            _set_one(x)
        if not at.ran:
            continue
        assert x[1] == 2 and x[0] == 1 and (np.asarray(x) == [1, 2, 2, 3, 4, 5]).all(), at.place


@pytest.mark.together
def test_a_write_by_a_handler_is_seen_by_the_look_that_it_came_in():
    def look(x):
        np.asarray(x[1:])

    values = np.arange(6.0)
    for point in _points(_ready, values, look, 1000):
        x = _ready(values)

        def write(signum, frame, x=x):
            x[1] = 7
        at = handlers.At(point, write)
        with at:
            look(x)
        if not at.ran:
            continue
        assert x.tolist() == np.array(x + 0).tolist() == [0, 7, 2, 3, 4, 5], at.place


@pytest.mark.parametrize("text", [
    "atexit.register(lambda: print((x + 5).tolist()))",
    "threading.Thread(target=lambda: (time.sleep(0.3), print((x + 5).tolist()))).start()",
])
def test_the_first_operation_of_a_program_that_is_ending(text):
    program = "import atexit, threading, time\nimport numpy as np, lazyarray\nx = lazyarray.asarray(np.arange(4.0))\n"
    done = subprocess.run([sys.executable, "-c", program + text], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("[5.0, 6.0, 7.0, 8.0]", ""), done.stderr


@pytest.mark.skipif(_native.recording is None, reason="needs the compiled part")
def test_a_handler_that_asks_for_what_its_own_thread_writes_does_not_wait():
    """NumPy's quantile is Python code: a handler runs within it, and asks for the array that it writes."""
    before, waited, x = _native.recording.small(4096), [], None

    def handler(signum, frame):
        begun = time.perf_counter()
        lazyarray.asdevice(x)
        waited.append(time.perf_counter() - begun)

    previous = signal.signal(signal.SIGALRM, handler)
    try:
        for k in range(200):
            x = lazyarray.asarray(np.arange(16.0))
            signal.setitimer(signal.ITIMER_REAL, 2e-5 * (k % 20 + 1))
            np.quantile(x.reshape(2, 8), 0.0, axis=0, out=x[:8])
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert np.array_equal(x, np.arange(16.0))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        _native.recording.small(before)
    assert waited and np.median(waited) < 0.5 and max(waited) < 0.9


@pytest.mark.parametrize("look", [repr, lambda x: x.tolist(), lambda x: x.max(), np.asarray],
                         ids=["repr", "tolist", "max", "asarray"])
@pytest.mark.parametrize("write", [
    lambda x: x.__setitem__(0, 7), lambda x: x.fill(3), lambda x: np.add.at(x, np.array([1, 1]), 2),
    lambda x: np.copyto(x, 9), lambda x: x.__setitem__(slice(1, 3), 5), lambda x: np.negative(x, out=x)])
def test_a_small_array_is_looked_at_while_it_is_written(write, look, small_on_host):
    """What was fetched meanwhile is of before: from then on NumPy would have computed with it."""
    small_on_host(95_000)
    expected = np.arange(5)
    write(expected)
    number, wrong = 1, []
    while True:
        x = _ready(np.arange(5))
        with handlers.At(number, lambda signum, frame, x=x: look(x)) as point:
            write(x)
        if (x + 1).tolist() != (expected + 1).tolist() or np.asarray(x * 1).tolist() != expected.tolist():
            wrong.append(number)
        if not point.ran:
            break
        number += 3
    assert not wrong, f"{wrong} of {number}"


@pytest.mark.parametrize("statement", [
    lambda x, i: x.__setitem__(i, x[i] + 1), lambda x, i: x.__setitem__(i, x[i[::-1]]),
    lambda x, i: (x[i] * 2).sum() + 0, lambda x, i: np.take_along_axis(x, i, 0) + 1])
def test_an_interrupt_is_what_it_was(statement):
    """No part in C goes on with an error that it was given, of which Python makes a SystemError."""
    number, ran = 1, True
    while ran:
        x, i = _ready(np.arange(5.0)), _ready(np.arange(5))
        x[i]
        point = handlers.At(number, _stop)
        try:
            with point:
                statement(x, i)
        except TimeLimit:
            assert np.array_equal(x + 0, x.tolist())
        number, ran = number + 3, point.ran


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("write", [
    lambda x: x.__imod__(3), lambda x: x[::2].__iadd__(3), lambda x: np.put(x, [1, 2], 3), lambda x: x.fill(4)])
def test_a_handler_that_drops_the_last_alias_and_looks(write, again):
    """What compares an alias with a copy goes with the last one, and may come again with the next."""
    expected = np.arange(8.0)
    write(expected)
    number, ran = 1, True
    while ran:
        x = _ready(np.arange(8.0))
        held = [np.asarray(x)]

        def handler(signum, frame, x=x, held=held):
            held.clear()
            np.array(x[::2])
            if again:
                held.append(np.asarray(x[1:]))

        with handlers.At(number, handler) as point:
            write(x)
        assert (x + 0).tolist() == np.array(x).tolist() == expected.tolist(), number
        assert all(alias.tolist() == expected.tolist()[-alias.size:] for alias in held), number
        number, ran = number + 3, point.ran


_IN_PLACE = {
    "x += 1": lambda np, x: x.__iadd__(1.0),
    "x[1:4] += 1": lambda np, x: x[1:4].__iadd__(1.0),
    "out=": lambda np, x: np.multiply(x, 2.0, out=x),
}


@pytest.mark.together
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("state", ["computed", "waiting"])
@pytest.mark.parametrize("name", [*_IN_PLACE])
def test_a_write_by_a_handler_within_a_statement_that_reads_and_writes(name, state, beside):
    """It comes before the statement, or after it; also where other threads are there, and locks are taken."""
    statement, base = _IN_PLACE[name], np.arange(6.0) + 0.25
    first, last = base.copy(), base.copy()
    first[2] = -100.0
    statement(np, first)
    statement(np, last)
    last[2] = -100.0
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    if beside:
        thread.start()
    try:
        for _ in range(3):      # the first calls go a general way
            statement(xnp, _in_state(base, state))
        number, ran = 0, True
        while ran:
            x = _in_state(base, state)

            def write(signum, frame, x=x):
                x[2] = -100.0

            at = handlers.At(number, write)
            with at:
                statement(xnp, x)
            number, ran, found = number + 1, at.ran, np.asarray(x)
            if ran and "/devices/" not in at.place:     # a kernel is no statement of Python's
                assert np.array_equal(found, first) or np.array_equal(found, last), (at.place, found)
    finally:
        over.set()
        if beside:
            thread.join()


def _in_state(values, state):
    x = lazyarray.asarray(lazyarray.device().xp.asarray(values)).copy()
    return x * 1.0 if state == "waiting" else x


# -- aliases that live within a statement ------------------------------------------------------------------

def _read(part, beside):
    return part + 1


def _write(part, beside):
    part += 1


def _fetch(part, beside):
    return np.asarray(part + 0)


def _lend(part, beside):
    return np.asarray(part)


def _pass_on(part, beside):
    beside.sum()
    part[3:] = 2


@pytest.mark.together
@pytest.mark.parametrize("size", [82, 3000, 60_000, 200_000], ids=str)
@pytest.mark.parametrize("alias_held", [False, True])
@pytest.mark.parametrize("partner", [False, True])
@pytest.mark.parametrize("statement", [_read, _write, _fetch, _lend, _pass_on])
def test_a_write_by_an_alias_that_a_handler_makes_and_drops(statement, partner, alias_held, size, monkeypatch):
    """On pages that the statement looks at, or fills, for others: the kernel's marks are of all that lies there."""
    values = np.arange(float(size)).astype("f4")
    monkeypatch.setattr(foreign_streams, "partners", [lambda device: None] if partner else [])  # as if torch were there

    def make(_):
        x = lazyarray.asarray(lazyarray.asdevice(lazyarray.asarray(values)).copy())
        first, second = x[:size // 2], x[size // 2:]
        return x, first, second, np.asarray(second) if alias_held else None

    def run(made):
        return statement(made[2], made[1])

    wanted = values.copy()
    run((wanted, wanted[:size // 2], wanted[size // 2:]))
    wanted[:size // 2] = 11
    for point in _points(make, values, run, tried=60):
        x, first, second, alias = made = make(values)

        def handler(signum, frame, first=first):
            np.asarray(first)[:] = 11

        at = handlers.At(point, handler)
        with at:
            kept = run(made)        # noqa: F841  an alias, perhaps
        if not at.ran:
            continue
        np.testing.assert_array_equal(np.asarray(x + 0), wanted, at.place)
        np.testing.assert_array_equal(np.asarray(x), wanted, at.place)
        if alias_held:
            np.testing.assert_array_equal(alias, wanted[size // 2:], at.place)
