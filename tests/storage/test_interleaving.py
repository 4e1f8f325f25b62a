"""Programs of several threads give what some order of their statements gives, as with NumPy."""
from __future__ import annotations

import itertools
import os
import random
import re
import sys
import threading

import numpy as np
import pytest
from fault_points import Fault, monitored
from interleaving import Deadlock, Schedule, locks, outcomes, overlaps

import lazyarray
import lazyarray.devices.simulated.libraries  # else under a lock that the schedule does not know
from lazyarray import _native
from lazyarray.storage import handles
from lazyarray.storage.storage import Storage

pytestmark = pytest.mark.skipif(lazyarray.device().name == "cuda", reason="the schedule does not know CUDA's own waits")

NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"
SEEDS = 24000 if NIGHTLY else 150
N = 6


class State:
    """Arrays that threads share, aliases of some of them, and what each thread has read."""

    def __init__(self, make, kinds, threads):
        self.x, self.y = (make(np.arange(float(N)) * k + k, kind) for k, kind in zip((1, 10), kinds))
        self.aliases = {}
        for name, kind in zip("xy", kinds):
            if "alias" in kind:
                self.aliases[name] = np.asarray(getattr(self, name))
        self.read = [[] for _ in range(threads)]
        self.own = [{} for _ in range(threads)]

    def alias(self, name):
        found = self.aliases.get(name)
        return np.asarray(getattr(self, name)) if found is None else found


def lazy(values, kind):
    x = lazyarray.asarray(values)
    return x + 0 if "recorded" in kind else x


def plain(values, kind):
    return values.copy()


def gpu(x):
    """A GPU function that writes its argument."""
    if lazyarray.is_lazy(x):
        lazyarray.lazy(lambda a: a.__iadd__(100))(x)
    else:
        x += 100


def statement(text):
    """One statement of a thread: of `x` and `y`, `a` and `b`, their aliases, and `read`, what it has read so far."""
    code = compile(text, text, "exec")

    def run(state, i):
        names = _Names(state, i)
        exec(code, {"np": np, "N": N, "gpu": gpu}, names)
    run.text = text
    return run


class _Names(dict):
    def __init__(self, state, i):
        super().__init__(x=state.x, y=state.y, read=state.read[i].append, own=state.own[i])
        self.state = state

    def __missing__(self, name):
        if name in ("a", "b"):
            return self.state.alias("xy"["ab".index(name)])
        raise KeyError(name)


#: Each is one statement to NumPy: done at once. (``x[0] += 1`` is two.)
WRITES = [
    "x.__iadd__(1)", "x.__imul__(2)", "x.__iadd__(y)", "y.__isub__(x)", "np.add(x, y, out=x)", "np.add(x, y, out=y)",
    "np.add(x, 1, out=y)", "x[1:4] = 7", "x[...] = y", "y[1:] = x[:-1]", "x[1:] = x[:-1]", "x.fill(3)", "x[2] = 5",
    "x[[0, 2]] = 9", "x.sort()", "np.add.at(x, [0, 0, 2], 1)", "np.copyto(y, x)", "np.putmask(x, [1, 0] * 3, 8)",
    "np.cumsum(x, out=x)", "np.maximum(x, y, out=x)", "own['v'] = x[::2]", "own.get('v', x).__iadd__(1)",
    "own.get('v', x).__imul__(3)", "x[::-1].__iadd__(x)", "np.multiply(x, 2, out=x, where=[True, False] * 3)",
    "np.clip(x, 2, 6, out=x)", "x.put([1], 4)", "own['v'] = x.T", "x[1:].__iadd__(own.get('z', y)[1:])",
    "x[:4] = own.get('z', y)[:4]", "x.__iadd__(own.get('z', y))",
]
#: No value that is there already, since that is no write to be found; and none that is made of what is there: foreign
#: code that reads and writes what a device statement writes meanwhile may read what was there before.
ALIASES = ["a[0] = 50", "a[1] = 51", "a[...] = 77", "a[::2] = 78", "read(a.copy())", "read(a[1:3].copy())",
           "np.asarray(x)[4] = 52", "np.asarray(x[::2])[1] = 61"]
READS = ["read(x + y)", "read(x * 2)", "read(np.asarray(x).copy())", "read(x.copy())", "read(float(x.sum()))",
         "read(float(x[1]))", "read(x.tolist())", "read(np.sqrt(abs(x)) + 1)",
         "read(np.concatenate([x, y]))", "read(str(x))", "read(x[1:] - x[:-1])",
         "read(np.where([True, False] * 3, x, y))",
         "own['z'] = x + y", "own.get('z', x).__iadd__(1)", "read(own.get('z', x) * 1)"]


def program(random, most, kinds):
    """The statements of one thread."""
    return [random.choice(random.choice(kinds)) for _ in range(random.randint(1, most))]


def result(state):
    """All that a program can see at its end, in bytes."""
    parts = [np.asarray(state.x).tobytes(), np.asarray(state.y).tobytes()]
    parts += [alias.tobytes() for _, alias in sorted(state.aliases.items())]
    for read, own in zip(state.read, state.own):
        parts += [repr(value) if isinstance(value, (list, str, float)) else np.asarray(value).tobytes()
                  for value in read]
        parts += [np.asarray(value).tobytes() for _, value in sorted(own.items())]
    return tuple(parts)


def foreign(made):
    """Whether a statement reads or writes by an alias, and takes no lock meanwhile."""
    return made.text.startswith(("a[", "read(a", "np.asarray(x"))


def run(kinds, programs, schedule, options=None, faulty=None):
    """Run programs of texts in threads on lazy arrays; (outcome, what NumPy may give).

    `faulty`: (thread, number of a point, exception) of a fault, after which the thread goes on with its next statement.
    """
    made = [[statement(text) for text in texts] for texts in programs]
    wanted = outcomes(lambda: State(plain, kinds, len(made)), made, result)
    ended = []
    with lazyarray.options(**options or {}):
        state = State(lazy, kinds, len(made))

        def thread(i):
            def body():
                for each in made[i]:
                    each(state, i)
            return body

        def with_a_fault(i, number, error):
            def body():
                fault = Fault(number, error)
                for k, each in enumerate(made[i]):
                    try:
                        with fault:
                            each(state, i)
                    except error:
                        ended.append((k, fault.place))
                        for rest in made[i][k + 1:]:
                            rest(state, i)
                        return
            return body

        bodies = [with_a_fault(i, *faulty[1:]) if faulty and faulty[0] == i else thread(i) for i in range(len(made))]
        schedule.run(*(in_options(options, body) for body in bodies))
        assert not any(schedule.held.values()), f"a lock is held, fault at {ended}"
        got = result(state)
        again = result(state)
    for k, _ in ended:      # that statement is done or not
        left = [[each for n, each in enumerate(texts) if (i, n) != (faulty[0], k)] for i, texts in enumerate(made)]
        wanted |= outcomes(lambda: State(plain, kinds, len(made)), left, result)
        if got not in wanted:
            wanted |= overlaps(lambda: State(plain, kinds, len(made)), left, result, foreign, both)
    if got not in wanted:
        wanted |= overlaps(lambda: State(plain, kinds, len(made)), made, result, foreign, both)
    return got, wanted, again


def both(state):
    return state.x, state.y


def in_options(options, body):
    def run():
        with lazyarray.options(**options or {}):
            body()
    return run


@pytest.fixture(autouse=True)
def _locks(monkeypatch):
    with locks(monkeypatch):
        yield


KINDS = ["plain", "recorded", "alias", "recorded, alias"]


def _of_one(texts):
    """Those that read or write `x` alone, once."""
    return [text for text in texts if "y" not in re.sub("copy|array", "", text) and text.count("x[") < 2]


def drawn(seed):
    """(kinds of arrays, programs, options) of a seed."""
    draws = random.Random(seed)
    threads = draws.choice([2, 2, 2, 3])
    kinds = draws.choice(KINDS), draws.choice(KINDS)
    programs = []
    # A statement that reads two arrays sees each as it was at one time; foreign code takes no lock, so that where it
    # writes to one of them meanwhile that need not be the same time for both.
    statements = draws.choice([[WRITES, WRITES, READS], [_of_one(WRITES), ALIASES, _of_one(READS)]])
    for _ in range(threads):
        programs.append(program(draws, 4 if threads == 2 else 2, statements))
    return kinds, programs, {"write_tracking": "auto", "defer_from": draws.choice([0, 0, 1 << 20])}


@pytest.mark.parametrize("block", range(10))
def test_some_order_of_the_statements(block):
    for seed in range(block * SEEDS // 10, (block + 1) * SEEDS // 10):
        kinds, programs, options = drawn(seed)
        schedule = Schedule(seed, opcodes=seed % 3 == 0)
        try:
            got, wanted, again = run(kinds, programs, schedule, options)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {kinds} {programs} {options}") from error
        assert got in wanted, f"seed {seed}: {kinds} {programs} {options}"
        assert got == again, f"seed {seed}: to look at it has changed it"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="points are those of Python 3.12 and later")
@pytest.mark.parametrize("block", range(5))
def test_some_order_of_the_statements_of_which_a_fault_ended_one(block):
    with monitored():
        for seed in range(block * SEEDS // 5, (block + 1) * SEEDS // 5):
            kinds, programs, options = drawn(seed)
            draws = random.Random(f"fault {seed}")
            faulty = (draws.randrange(len(programs)), int(1500 ** draws.random()) - 1,
                      draws.choice([KeyboardInterrupt, MemoryError]))
            try:
                got, wanted, again = run(kinds, programs, Schedule(seed), options, faulty)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {kinds} {programs} {options} {faulty}") from error
            assert got in wanted, f"seed {seed}: {kinds} {programs} {options} {faulty}"
            assert got == again, f"seed {seed}: to look at it has changed it"


#: Kinds of arrays, and statements of threads, where some order of them was missed once.
MISSED = [
    (("recorded", "plain"), [["x.__iadd__(1)"] * 2] * 3),
    (("plain", "plain"), [["x.__iadd__(1)"] * 2] * 3),
    (("recorded, alias", "plain"), [["x.__iadd__(1)"] * 2] * 3),
    (("recorded", "recorded"), [["x.__iadd__(y)", "y.__iadd__(x)"]] * 2),
    (("alias", "alias"), [["x.__iadd__(y)", "y.__iadd__(x)"], ["y.__iadd__(x)", "x.__iadd__(y)"]]),
    (("plain", "plain"), [["read(x * 2)", "x[...] = y"], ["x.fill(3)"], ["x[1:4] = 7"]]),
    (("alias", "plain"), [["np.cumsum(x, out=x)", "read(a.copy())"], ["a[...] = 77"]]),
    (("alias", "plain"), [["own['v'] = x[::2]", "own.get('v', x).__iadd__(1)"], ["a[1] = 51", "read(x * 1)"]]),
    (("recorded", "recorded"), [["own['v'] = x[1:]", "own.get('v', x).__imul__(3)"], ["x.__iadd__(1)"] * 2]),
    (("recorded", "plain"), [["x.__imatmul__(np.eye(N) * 2)"], ["x.__iadd__(1)"] * 2]),
    (("plain", "plain"), [["np.take(x, np.arange(N)[::-1], out=x)"], ["x.__iadd__(1)"] * 2]),
    (("plain", "plain"), [["x.byteswap(inplace=True)"], ["x.fill(3)", "x.__iadd__(1)"]]),
    (("alias", "plain"), [["a[::2] = 78"], ["a[0] = 50", "read(float(x.sum()))"]]),
    (("alias", "plain"), [["a[0] = 50"], ["x[::-1].__iadd__(x)"]]),
    (("alias", "plain"), [["a[0] = 50", "read(a.copy())"], ["x[[0, 2]] = 9"]]),
]


@pytest.mark.parametrize("kinds, programs", MISSED)
def test_what_was_missed_once(kinds, programs):
    for seed in range(200 if NIGHTLY else 12):
        got, wanted, _ = run(kinds, programs, Schedule(seed, [0.02, 0.1, 0.5][seed % 3]), {"defer_from": 0})
        assert got in wanted, f"seed {seed}"


@pytest.mark.skipif(_native.recording is None, reason="needs the compiled part")
@pytest.mark.parametrize("text", [
    "x.clip(2, 4, out=x)", "np.add.at(x, [0, 0], 1)", "x.byteswap(True)", "x.sort()", "np.putmask(x, [1, 0] * 3, 8)",
    "x[::-1].sort()", "np.copyto(x, 9, where=[True, False] * 3)"])
def test_a_small_array_that_another_thread_takes_to_the_device(text, small_on_host):
    small_on_host(4096)
    for seed in range(600) if NIGHTLY else (*range(30), 73, 195, 267, 307, 327, 328, 345, 381):
        schedule = Schedule(seed, [0.02, 0.1, 0.5][seed % 3], opcodes=seed % 2 == 0)
        got, wanted, _ = run(("plain", "plain"), [[text], ["gpu(x)"]], schedule)
        assert got in wanted, f"seed {seed}"


@pytest.mark.skipif(_native.recording is None, reason="needs the compiled part")
def test_what_numpy_writes_to_a_small_array_while_another_thread_takes_it_to_the_device(small_on_host):
    """Others take turns within these: they are Python's, or let other threads run while they compute."""
    small_on_host(4096)
    writes = [lambda x: np.take(x, [3] * 8, out=x[:8]), lambda x: np.dot(np.eye(8) * 2, x[:8].copy(), out=x[:8]),
              lambda x: np.quantile(x.reshape(2, 8), 0.0, axis=0, out=x[:8])]
    others = [lazyarray.lazy(lambda x: x.__setitem__(slice(8, None), 7)),
              lambda x: lazyarray.asdevice(x).__setitem__(slice(8, None), 7)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for write, other in itertools.product(writes, others):
            arrays = [lazyarray.asarray(np.arange(16.0)) for _ in range(200)]
            barrier, expected = threading.Barrier(2), np.arange(16.0)
            write(expected)

            def run(statement, arrays=arrays, barrier=barrier):
                for x in arrays:
                    barrier.wait()
                    statement(x)
            threads = [threading.Thread(target=run, args=(statement,)) for statement in (write, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            expected[8:] = 7
            assert sum(not np.array_equal(x, expected) for x in arrays) == 0
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.skipif(_native.recording is None, reason="needs the compiled part")
def test_an_array_that_gets_its_storage_between_two_looks_at_it(small_on_host, monkeypatch):
    """Who writes it on the host looks first whether another thread is about to give it one, then whether it has one."""
    small_on_host(4096)
    x = lazyarray.asarray(np.arange(16.0))
    assert _native.recording.is_light(x)

    class Promoted(list):
        def __iter__(self):     # another thread's turn
            assert type(x._self_storage) is Storage
            return iter(())

    monkeypatch.setattr(handles, "promoted", Promoted())
    assert handles.held_on_host([x], lambda: x._self_storage.lock.held) == 1


@pytest.mark.together
def test_a_schedule_is_the_same_each_time():
    points = []
    for _ in range(3):
        schedule = Schedule(3, 0.1)
        run(("plain", "plain"), [["x.__iadd__(1)", "read(x * 2)"], ["x[1:3] = 4"]], schedule)
        points.append(schedule.points)
    # What is done once in a process is done in the first.
    assert points[1] == points[2] > 50


def test_a_deadlock_is_told():
    from interleaving import Lock
    one, two = Lock(), Lock()

    def take(a, b):
        def run():
            for _ in range(50):
                with a, b:
                    pass
        return run

    with pytest.raises(Deadlock):
        for seed in range(100):
            Schedule(seed, 0.5).run(take(one, two), take(two, one))
