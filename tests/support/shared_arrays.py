"""Sixteen threads share a hundred arrays, and what they see is what NumPy may give: some order of their statements.

``python tests/support/shared_arrays.py --seconds 300`` runs it with threads of Python's, on whichever device there is:
every other thread on a stream of its own. `test_shared_arrays.py` runs it with turns that a seed decides.

The oracle: each statement is one that NumPy does at once, and says what it has seen. Arrays that statements connect
make a group. For each group `explained` looks for an order of its statements, those of a thread in theirs, in which
each has seen what it saw and which ends in what the arrays hold at the end. (Orders of different groups may contradict
each other: that each group has one is necessary for an order of all, and not sufficient.)
"""
from __future__ import annotations

import argparse
import contextlib
import random
import sys
import threading
import time
from typing import Any, NamedTuple

import numpy as np

import lazyarray
from lazyarray import _native

THREADS, ARRAYS, STATEMENTS, MOST = 16, 100, 6, 12


class Statement(NamedTuple):
    """`text` on arrays of these numbers, named x and y, with the value `k`; the first only is written."""

    text: str
    arrays: tuple[int, ...]
    k: int


READS = ["np.asarray(x).tolist()", "x.tolist()", "str(x)", "float(x.sum())", "float(x[1])", "(x * 2 + 1).tolist()",
         "np.sort(x).tolist()", "[int(np.count_nonzero(x))]", "x.copy().tolist()", "repr(x[::2])"]
#: What a thread may do to arrays, by the remainder of their number. GPU code with a pointer, and foreign code with an
#: alias, take no lock: what they write while the device writes the same bytes, nobody can order.
DEVICE = ["x.__iadd__(k) is None", "x.__imul__(2) is None", "x.fill(k)", "x.__setitem__(slice(1, 3), k)", "x.sort()",
          "x.__iadd__(y) is None", "np.add(x, y, out=x) is None", "x.__setitem__(..., y)",
          "np.cumsum(x, out=x) is None"]
ALIAS = ["np.asarray(x).__setitem__(0, k)", "np.asarray(x)[2:].__setitem__(0, k)", "alias(x).__setitem__(1, k)"]
POINTER = ["pointer(x)", "(pointer(x), np.asarray(x).tolist())"]
KINDS = {0: DEVICE, 1: DEVICE, 2: ALIAS, 3: POINTER}
_plain = {"np": np, "alias": np.asarray, "pointer": lambda x: x.tolist()}
_lazy = {"np": np, "alias": np.asarray, "pointer": lambda x: lazyarray.asdevice(x).get().tolist()}


def programs(seed: int, threads: int = THREADS, arrays: int = ARRAYS) -> list[list[Statement]]:
    """What each thread does; half of it to a few arrays, so that they meet."""
    draws = random.Random(seed)
    counts: dict[int, int] = {}
    found: list[list[Statement]] = [[] for _ in range(threads)]
    for k in range(threads * STATEMENTS):
        number = draws.randrange(draws.choice([8, arrays]))
        group = number // 4     # numbers 0 and 1 of four are used together
        if counts.setdefault(group, 0) < MOST:
            counts[group] += 1
            text = draws.choice(draws.choice([KINDS[number % 4], READS]))
            found[k % threads].append(Statement(text, (number, number ^ 1) if "y" in text.replace("copy", "").replace(
                "asarray", "") else (number,), k + 10))
    return found


def start(arrays: int = ARRAYS) -> list[np.ndarray]:
    return [np.arange(5.0) + number for number in range(arrays)]


def done(statement: Statement, arrays: list[Any], names: dict[str, Any]) -> Any:
    """What a statement gives."""
    x, *rest = (arrays[number] for number in statement.arrays)
    result = eval(statement.text, {**names, "x": x, "y": rest[0] if rest else None, "k": statement.k})
    return result if isinstance(result, (str, float, list, tuple)) else None


def explained(todo: list[list[tuple[Statement, Any]]], before: dict[int, np.ndarray], after: dict[int, np.ndarray]
              ) -> bool:
    """Whether some order of the statements gives what they have seen, and leads from one state to the other."""
    seen = set()
    stack = [((0,) * len(todo), before)]
    while stack:
        places, state = stack.pop()
        key = places, b"".join(state[number].tobytes() for number in sorted(state))
        if key in seen:
            continue
        seen.add(key)
        if all(place == len(each) for place, each in zip(places, todo)):
            if all(np.array_equal(state[number], after[number]) for number in state):
                return True
            continue
        for thread, place in enumerate(places):
            if place < len(todo[thread]):
                statement, saw = todo[thread][place]
                now = {number: array.copy() for number, array in state.items()}
                if done(statement, now, _plain) == saw:     # type: ignore[arg-type]  by number, as a list is
                    stack.append(((*places[:thread], place + 1, *places[thread + 1:]), now))
    return False


def unexplained(seed: int, run: Any, threads: int = THREADS, arrays: int = ARRAYS) -> list[str]:
    """Have `run` call functions in threads, all at once; the groups whose outcome NumPy can't give."""
    texts = programs(seed, threads, arrays)
    lazy = [lazyarray.asarray(array) for array in start(arrays)]
    saw: list[list[Any]] = [[] for _ in texts]
    held = [np.asarray(lazy[number]) for number in range(2, arrays, 8)]     # aliases that foreign code keeps

    def body(thread: int) -> Any:
        def work() -> None:
            for statement in texts[thread]:
                saw[thread].append((statement, done(statement, lazy, _lazy)))
        return work

    run(*map(body, range(threads)))
    after, wrong = [np.array(np.asarray(x)) for x in lazy], []
    if not all(np.array_equal(alias, after[2 + 8 * i]) for i, alias in enumerate(held)):
        wrong.append(f"seed {seed}: an alias shows other values than its array")
    for group in range(-(-arrays // 4)):
        for numbers in ({4 * group, 4 * group + 1}, {4 * group + 2}, {4 * group + 3}):
            todo = [[one for one in each if one[0].arrays[0] in numbers] for each in saw]
            before = {number: start(arrays)[number] for number in numbers}
            if not explained([each for each in todo if each], before, {n: after[n] for n in numbers}):
                wrong.append(f"seed {seed}, arrays {sorted(numbers)}: {[each for each in todo if each]}, then "
                             f"{[after[number].tolist() for number in sorted(numbers)]}")
    return wrong


def at_once(*bodies: Any) -> None:
    """Run functions in threads of Python's, every other one on a stream of its own."""
    device, failed = lazyarray.device(), []
    barrier = threading.Barrier(len(bodies))

    def thread(number: int, body: Any) -> None:
        with device.new_stream() if number % 2 else contextlib.nullcontext():
            barrier.wait(60)
            try:
                body()
            except Exception as error:  # noqa: BLE001  whatever it is, it is raised below
                failed.append(error)

    threads = [threading.Thread(target=thread, args=given, daemon=True) for given in enumerate(bodies)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert not any(each.is_alive() for each in threads), "a thread waits for ever"
    if failed:
        raise failed[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    chosen = parser.parse_args()
    if _native.recording is not None:       # arrays of five elements are to be on the device; and NumPy prints ndarrays
        _native.recording.small(0)          # in Python, while other threads may write them
    began, seed, wrong = time.monotonic(), chosen.seed, []
    while time.monotonic() - began < chosen.seconds:
        sys.setswitchinterval(1e-6 if seed % 2 else 5e-3)
        for text in unexplained(seed, at_once):
            print(text, flush=True)
            wrong.append(text)
        seed += 1
    print(f"{seed - chosen.seed} runs of {THREADS} threads and {ARRAYS} arrays on {lazyarray.device().name}: "
          f"{len(wrong)} groups that no order explains")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
