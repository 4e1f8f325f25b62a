"""An exception at any point of the library's code leaves every array as NumPy's statement would: done or not done.

    python faults.py --all [--operation TEXT] [--state TEXT]   every point of every case; the failures by source line
    python faults.py --sample 500 [--operation TEXT]           so many runs of each operation, drawn
    python faults.py --one OPERATION STATE ERROR VARIANT N     one run, with its place and what failed

`fault_points` says what a point is. A **case** is an operation on arrays in one of several states. Both are program
text, which runs on NumPy's arrays and on lazy ones: NumPy says what is right.

After the fault each array is looked at from the device (through a recorded operation) and from the host, in either
order, and foreign code writes through each alias: before the statement, at the fault or after it, and later. All looks
have to agree with one of the states that NumPy's statement can leave: before it, after it, or after some of the writes
that it is made of. In the end, or at once, all lazy arrays are dropped, and foreign code's are looked at alone.

In other variants a signal handler uses the array at the point, before it raises or in place of that; a second
interrupt comes while the first is handled; or the statement is made once more before anybody looks.
"""
from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import dataclasses
import functools
import gc
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("LAZYARRAY_DEVICE", "simulated")

from fault_points import ERRORS, ROOT, Fault, Surroundings, monitored
from finalisers import in_a_cycle
from poison import poisoned

import lazyarray

# -- cases -----------------------------------------------------------------------------------------------------------

#: Program text, and the statements of which NumPy may have done the first ones only, if it is more than one. Further
#: names: y and z, arrays in the same state; `alias`, `device`: what hands them out; `twice`, a @lazy function.
OPERATIONS: dict[str, tuple[str, ...]] = {text: (text,) for text in [
    "x += 1", "x *= y", "x[...] = 3", "x[...] = y", "x[2] = 7", "x[x > 2] = 9", "x[MASK] = y[MASK]", "x[[0, 2]] = 8",
    "x[[2, 0]] = y[:2]", "x[1:] = x[:-1]", "x[::-1] = x", "x.fill(0)", "x.sort()", "np.put(x, [0, 3], 5)",
    "np.copyto(x, y)", "np.copyto(x, y, where=x > 2)", "np.add(x, y, out=z)", "np.multiply(x, 2, out=x, where=y > 2)",
    "np.cumsum(x, out=x)", "np.add.at(x, [0, 0, 1], 5)", "np.putmask(x, x > 2, 4)", "x.flat[1:3] = 4",
    "np.clip(x, 1, 3, out=x)", "x.real = 5",
    "a = alias(x)", "a = alias(x[1:])", "v = float(x.sum())", "v = x.sum()", "v = x.max(); float(v)", "v = repr(x)",
    "v = x.tolist()", "v = float(x[0])", "v = x.copy()", "v = x * 2 + y", "v = np.concatenate([x, y])",
    "v = np.where(x > 2, x, y)", "v = x[x > 2]", "v = x.view()", "v = x.reshape(-1)", "v = len(pickle.dumps(x, 4)) > 9",
    "v = pickle.loads(pickle.dumps(x, 4))", "v = np.interp(x, [0, 5], [0, 1])", "x.setflags(write=False)",
    "h = device(x)", "prefetch(x)", "prefetch(x); a = alias(x)", "del x_alias; collect()", "del x; collect()",
    "alias(x)[...] = 2", "memoryview(x).nbytes", "a = by_array(x)", "a = by_interface(x)", "a = by_dlpack(x[1:])",
    "a = by_data(x)", "prefetch(x[::3]); prefetch(x); a = by_array(x)", "prefetch(x[1:]); prefetch(x[:-1]); v = x + 1",
    "prefetch(x[:4]); a = by_array(x[2:]); prefetch(x)",
]}
OPERATIONS |= {
    "twice(x, y)": ("x += 1", "y[...] = x"),
    "v = twice(y, out=x)": ("y += 1", "x[...] = y; v = x"),
    "np.nan_to_num(x, copy=False)": ("pass",),
    "x[0] = 1; x[1] = 2": ("x[0] = 1", "x[1] = 2"),
    "prefetch(x); x += 1; prefetch(x[1:]); a = by_array(x)": ("x += 1", "a = by_array(x)"),
    "a = by_array(x); x += 1": ("a = by_array(x)", "x += 1"),
    "x += 1; x *= 2; float(x.sum())": ("x += 1", "x *= 2"),
    # Written by the kernel that computes it: what waits, what reads the same elements, and what somebody still holds.
    "x[1:] += y[1:]": ("x[1:] += y[1:]",),
    "x[1:] = x[1:] * 2 + y[1:]": ("x[1:] = x[1:] * 2 + y[1:]",),
    "x[1:] = (y[1:] > 2) * 3": ("x[1:] = (y[1:] > 2) * 3",),
    "v = y.astype('f4') * 2; x[...] = v; v += 1": ("v = y.astype('f4') * 2", "x[...] = v", "v += 1"),
    "v = y * 2 + x; x[...] = v; v += 1": ("v = y * 2 + x", "x[...] = v", "v += 1"),
    "r = x - y; x[:4] -= r[:4]; v = float(r.sum())": ("r = x - y", "x[:4] -= r[:4]", "v = float(r.sum())"),
    "r = x * 3; x[::2] += y[::2] * 2; v = float(r.sum())": ("r = x * 3", "x[::2] += y[::2] * 2", "v = float(r.sum())"),
    "r = x * 3; x += 1; v = float(r.sum())": ("r = x * 3", "x += 1", "v = float(r.sum())"),
}

#: What writes each element of x, even if with the value that it has.
ALL_WRITTEN = {"np.nan_to_num(x, copy=False)"}

#: How an array comes about: `x` its name, `X` its values. Names that end in "_alias" are foreign code's host arrays,
#: in "_handle" device arrays. `put` writes one element.
STATES = {
    "device": "x = A(X)",
    "mirror": "x = A(X); alias(x)",
    "alias": "x = A(X); x_alias = alias(x)",
    "written": "x = A(X); x_alias = alias(x); put(x_alias, 1, 50)",
    "dropped": "x = A(X); x_alias = alias(x); put(x_alias, 1, 50); del x_alias",
    "pending": "x = A(X - 1) + 1",
    "pending twice": "x_p = A(X - 1) + 1; x = x_p * 1; x_r = x - 2",
    "readers": "x = A(X); x_r = x * 3; x_s = x[..., :2] - 1",
    "readers, written": "x = A(X); x_alias = alias(x); put(x_alias, 1, 50); x_r = x * 3; put(x_alias, 0, 51)",
    "pointer": "x = A(X); x_handle = device(x); put(x_handle, 1, 50)",
    "pointer, alias": "x = A(X); x_alias = alias(x); put(x_alias, 1, 50); x_handle = device(x)",
    "view": "x_base = A(np.repeat(X, 2)); x = x_base[::2]; x_alias = alias(x_base); put(x_alias, 4, 50)",
    "view, own alias": "x_base = A(np.repeat(X, 2)); x_base += 0; x = x_base[::2]; x_alias = alias(x); "
                       "put(x_alias, 1, 50)",
    "read-only": "x_base = A(X); x = x_base[...]; x.setflags(write=False); x_alias = alias(x_base); "
                 "put(x_alias, 1, 50)",
    "host": "x = hosted(X)",
    "prefetched": "x = A(X); prefetch(x)",
    "untracked": "x = A(X); x_alias = alias(x); put(x_alias, 1, 50)",
    "untracked, dropped": "x = A(X); x_alias = alias(x); put(x_alias, 1, 50); del x_alias",
    "0-d": "x = A(X[2:3].reshape(())); x_alias = alias(x); put(x_alias, 0, 50)",
    "prefetched part": "x_base = A(np.repeat(X, 2)); x = x_base[::2]; prefetch(x_base[1:]); prefetch(x)",
    "prefetched, changed": "x = A(X); prefetch(x); x += 1; prefetch(x[1:])",
    "prefetched, alias": "x = A(X); prefetch(x); x_alias = by_array(x); x += 1; prefetch(x)",
    "by __array__": "x = A(X); x_alias = by_array(x); put(x_alias, 1, 50)",
    "by an interface": "x = A(X); x_alias = by_interface(x); put(x_alias, 1, 50)",
    "by DLPack": "x = A(X); x_alias = by_dlpack(x); put(x_alias, 1, 50)",
    "by a buffer": "x = A(X); x_alias = by_data(x); put(x_alias, 1, 50)",
    # Nothing but another array keeps the memory that a pointer names.
    "by a pointer": "x = A(X); x_a_alias = by_array(x); x_alias = by_pointer(x); put(x_alias, 1, 50)",
    "a part": "x = A(X); x_alias = by_array(x[1:-1]); put(x_alias, 1, 50)",
    "transposed": "x_base = A(X.reshape(4, -1)); x = x_base.T; x_alias = alias(x); put(x_alias, 1, 50)",
}
LARGE = ["device", "written", "dropped", "readers, written", "pointer, alias", "view", "prefetched", "untracked",
         "prefetched part", "prefetched, changed", "prefetched, alias", "by __array__", "a part"]
STATES |= {f"large, {name}": STATES[name] for name in LARGE}
SMALL_SIZE, LARGE_SIZE = 8, 17000       # of 8 bytes each; mirrors of more than 128 KiB are tracked by pages


def _collected(work: Callable[[Any], Any], x: Any) -> None:
    in_a_cycle(functools.partial(work, x))
    gc.collect(0)


VARIANTS = {
    "": ("device", "host"),
    "host first": ("host", "device"),       # and with a trace around it all
    "write at the fault": ("device", "host"),
    "write after the fault": ("host", "device"),
    "alone": (),        # at once the lazy arrays are gone
    "two faults": ("device", "host"),
    "once more": ("host", "device"),
}

#: What a signal handler, or a finaliser, does with the array at the point.
HANDLERS = {
    "looks": lambda x: (np.asarray(x), None)[1],
    "computes": lambda x: float((x + 1).sum()),
    "prefetches": lambda x: lazyarray.prefetch(x),
    "writes": lambda x: put(x, 3, 60.0),
}
HANDLERS |= {f"{name} while garbage is collected": functools.partial(_collected, work)
             for name, work in HANDLERS.items() if name != "computes"}
#: And then it raises, or not. A variant -> what is done, and whether it raises.
AT_THE_POINT = {f"a handler {name}{then}": (work, bool(then))
                for name, work in HANDLERS.items() for then in ("", ", and raises")}
VARIANTS |= {name: ("device", "host") if raises else ("host", "device") for name, (_, raises) in AT_THE_POINT.items()}
#: Those in which the fault is nothing but an exception.
PLAIN_FAULTS = [name for name in VARIANTS if name not in AT_THE_POINT and name not in (
    "write at the fault", "two faults")]


@functools.cache
def _values(size: int) -> dict[str, np.ndarray]:
    numbers = np.arange(size)
    return {"x": (numbers * 5 + 3) % 8.0, "y": (numbers * 3 + 1) % 8.0, "z": numbers % 3.0}


def put(array: Any, position: int, value: float) -> None:
    """Write one element, counted in C order, if there is any."""
    if array.size:
        array[np.unravel_index(position % array.size, array.shape) if array.ndim else ...] = value


def _plain_twice(a: Any, out: Any) -> Any:
    a += 1
    out[...] = a
    return out


def _interp_into(x: np.ndarray) -> Any:
    """A lazy array whose bytes were born on the host."""
    made = lazyarray.asarray(np.array(x, object)).astype(float)
    return made


def _pointed_at(x: Any) -> np.ndarray:
    if not x.flags.c_contiguous:
        raise BufferError("not contiguous")
    return np.frombuffer((ctypes.c_char * x.nbytes).from_address(x.ctypes.data), x.dtype).reshape(x.shape)


class _Interface:
    """All that is known of an array is where it lies."""

    def __init__(self, x: Any) -> None:
        self.x = x

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.x.__array_interface__


#: How foreign code gets an array: most of these do not keep the lazy array alive.
DOORS = {
    "by_array": lambda x: x.__array__(),
    "by_interface": lambda x: np.asarray(_Interface(x)),
    "by_dlpack": lambda x: np.from_dlpack(x, device="cpu"),
    "by_data": lambda x: np.asarray(x.data),
    "by_pointer": _pointed_at,
}
PLAIN = {"A": lambda values: values.copy(), "alias": lambda x: x[...], "device": lambda x: x[...],
         "prefetch": lambda x: None, "hosted": lambda values: values.copy(), "twice": _plain_twice}
LAZY = {"A": lazyarray.asarray, "alias": np.asarray, "device": lazyarray.asdevice, "prefetch": lazyarray.prefetch,
        "hosted": _interp_into, "twice": lazyarray.lazy(_plain_twice, writes=("a", "out"))}
PLAIN |= dict.fromkeys(DOORS, lambda x: x[...])
LAZY |= DOORS
COMMON = {"np": np, "pickle": pickle, "put": put, "collect": gc.collect, "__builtins__": __builtins__}


@functools.cache
def _code(text: str) -> Any:
    return compile(text, "<statement>", "exec")


def _uses(text: str, name: str) -> bool:
    return name in _code(text).co_names


def scene(case: Case, side: dict[str, Any]) -> dict[str, Any]:
    """The names of a case, its arrays made."""
    size = LARGE_SIZE if case.state.startswith("large") else SMALL_SIZE
    names = {**COMMON, **side, "MASK": np.arange(size) % 3 == 0}
    state = STATES[case.state]
    for name, values in _values(size).items():
        if name == "x" or _uses(case.operation, name):
            made = {**names, "X": values}
            exec(_code(state), made)
            names |= {name + key[1:]: value for key, value in made.items() if key == "x" or key.startswith("x_")}
    return names


def own(names: dict[str, Any]) -> dict[str, Any]:
    """What a case made: arrays, and whatever else the statement gave."""
    return {key: value for key, value in names.items() if key not in COMMON and key not in PLAIN and key != "MASK"}


@dataclasses.dataclass(frozen=True)
class Case:
    operation: str
    state: str
    error: str = "interrupt"
    variant: str = ""

    @property
    def options(self) -> dict[str, Any]:
        return {"write_tracking": "none" if "untracked" in self.state else "auto"}

    @functools.cached_property
    def fits(self) -> bool:
        """Whether the operation can be done to such arrays at all, and there are aliases to be written if need be."""
        if "write" in self.variant and not any(part in STATES[self.state] for part in ("_alias", "_handle")):
            return False
        if "_handle" in STATES[self.state] and ("alias(x)[" in self.operation or "del x;" in self.operation):
            return False        # two writes behind the library's back, and no use of the array in between
        if self.variant == "write at the fault" and ("large" in self.state or "untracked" in self.state):
            return False        # within what a statement writes, nobody can tell which of the two writes came last
        if self.variant == "write at the fault" and "_alias" not in STATES[self.state]:
            return False
        try:
            with np.errstate(all="ignore"):
                made = scene(self, PLAIN)
                if "writes" in self.variant:
                    HANDLERS["writes"](made["x"])
                exec(_code(self.operation), made)
                # What a statement overwrites is made of what it read, perhaps before a handler wrote there.
                if "writes" in self.variant and (self.operation in ALL_WRITTEN or "x" in made
                                                 and made["x"].flat[3 % made["x"].size] != 60):
                    return False
        except ValueError as error:
            return "read-only" in str(error)
        except (IndexError, TypeError, NameError, BufferError):
            return False
        return True


@functools.cache
def pairs(operation: str, state: str = "") -> list[tuple[Case, list[str]]]:
    """Cases of an operation in the states whose name contains this, and the variants that each can be run in."""
    found = []
    for name in STATES:
        if state in name:
            variants = [variant for variant in VARIANTS if Case(operation, name, variant=variant).fits]
            if variants:
                found.append((Case(operation, name), variants))
    return found


# -- what is looked at -----------------------------------------------------------------------------------------------

def _same(want: Any, got: Any) -> bool:
    if isinstance(want, np.ndarray):
        return want.shape == got.shape and want.dtype == got.dtype and np.array_equal(want, got)
    return bool(want == got)


class Wrong(Exception):
    """What a look found: the message begins with the kind."""


@dataclasses.dataclass
class Looks:
    """Looks at the arrays of a case, each of which has to agree with a state that NumPy may be in.

    Attributes
    ----------
    real : dict
        Names of the case, with lazy arrays.
    models : list of dict
        The same with NumPy's, one for each state that is possible by what was seen until now.
    """

    real: dict[str, Any]
    models: list[dict[str, Any]]
    written: set[int] = dataclasses.field(default_factory=set)
    all_models: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def look(self, door: str) -> None:
        """Look at all arrays through a door, "device" or "host", and then at the aliases."""
        self.all_models = self.all_models or self.models
        real = own(self.real)
        order = sorted(real, key=lambda key: key.endswith(("_alias", "_handle")))
        for key in order:
            value = real[key]
            if lazyarray.is_lazy(value):
                got = np.array(np.asarray(value + 0)) if door == "device" else np.array(np.asarray(value))
            elif isinstance(value, np.ndarray):
                got = value.copy()
            elif hasattr(value, "get") and hasattr(value, "strides"):
                got = value.get()
            else:
                got = value
            self._agree(key, got, door)
            if lazyarray.is_lazy(value) and isinstance(value, np.ndarray):
                if not any(key in model and model[key].flags.writeable == value.flags.writeable
                           for model in self.models):
                    raise Wrong(f"flags: {key}")

    def _agree(self, key: str, got: Any, door: str) -> None:
        agreeing = [model for model in self.models if key in model and _same(model[key], got)]
        if agreeing:
            self.models = agreeing
            return
        known = [model[key] for model in self.all_models if key in model]
        seen = f"{key} from the {door}"
        if not isinstance(got, np.ndarray) or not known or all(one.shape != got.shape for one in known):
            raise Wrong(f"wrong result: {key} is {got!r:.60}")
        if any(_same(one, got) for one in known):
            raise Wrong(f"sides or arrays differ: {seen} is in another state")
        wrong = min((np.flatnonzero(one != got) for one in known), key=len)
        what = f"{wrong.size} elements, first {wrong[0]}: {got.flat[wrong[0]]}, not {known[0].flat[wrong[0]]}"
        if self.written and wrong.size <= len(self.written) and all(
                any(one.flat[i] == value for value in self.written for one in known) for i in wrong):
            raise Wrong(f"write lost: {seen}, {what}")
        torn = np.logical_or.reduce([one == got for one in known])
        raise Wrong(f"{'torn' if torn.all() else 'wrong value'}: {seen}, {what}")

    def write(self, position: int, value: float, handles: bool = True) -> None:
        """Foreign code writes an element through each alias, or each device array."""
        for key in list(own(self.real)):
            if key == "a" or key.endswith("_alias") or handles and (key == "h" or key.endswith("_handle")
                                                                     and key[:2] + "alias" not in self.real):
                array, model = self.real[key], self.models[0].get(key)
                # A device array that no lazy array speaks for any more is out of the library's sight.
                if model is not None and model.flags.writeable and (isinstance(array, np.ndarray) or "x" in self.real):
                    put(array, position, value)
                    for model in self.models:
                        if key in model:
                            put(model[key], position, value)
                    self.written.add(value)


def _stages(case: Case) -> list[list[str]]:
    statements = OPERATIONS[case.operation]
    return [list(statements[:count]) for count in range(len(statements) + 1)]


def _models(case: Case, stages: list[list[str]], first: Callable[[dict[str, Any]], None] | None = None,
            done: int = 0) -> list[dict[str, Any]]:
    """What is there after each of these stages; `first` comes before it all, and has done so many statements of it."""
    found = []
    for stage in stages:
        made = scene(case, PLAIN)
        if first is not None:
            first(made)
        _done(stage[done:], made)
        found.append(made)
    return found


def _done(statements: list[str], names: dict[str, Any]) -> None:
    try:
        for text in statements:
            exec(_code(text), names)
    except (ValueError, NameError) as error:        # it may be read-only, or what it deletes may be gone
        if not isinstance(error, NameError) and "read-only" not in str(error):
            raise


def _staged(statements: list[str], write: Callable[[dict[str, Any]], None], names: dict[str, Any]) -> None:
    _done(statements, names)
    write(names)


class Hung(BaseException):
    """A run takes too long."""


@dataclasses.dataclass
class Run:
    """One run of a case.

    Attributes
    ----------
    place : tuple or None
        Where the fault was raised; None if there are not so many points.
    failures : list of str
        What was wrong; each text begins with its kind.
    """

    place: tuple[str, str, int, str] | None
    failures: list[str]


def _foreign(names: dict[str, Any], position: int, value: float) -> None:
    for key, array in names.items():
        if key.endswith("_alias") and array.flags.writeable:
            put(array, position, value)


def _used(names: dict[str, Any], work: Callable[[Any], Any]) -> None:
    """Do what a handler does with the array, if it is still there."""
    if "x" in names:
        with contextlib.suppress(ValueError):       # it may be read-only
            work(names["x"])


def run(case: Case, number: int, surroundings: Surroundings, passed: list[Any] | None = None,
        seconds: float = 20.0) -> Run:
    """Do the operation, with an error at the point of this number. `passed`: gets the places of all before it."""
    def too_late(signum, frame):
        raise Hung(f"at {frame.f_code.co_filename}:{frame.f_lineno}")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with lazyarray.options(**case.options):
            return _run(case, number, surroundings, passed)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _run(case: Case, number: int, surroundings: Surroundings, passed: list[Any] | None) -> Run:
    real = scene(case, LAZY)
    arrays = [value for value in own(real).values() if lazyarray.is_lazy(value)]
    code, failures, raised = _code(case.operation), [], None
    expected: type[BaseException] | None = ERRORS[case.error]
    at_fault = write = None
    if case.variant == "write at the fault":
        def write(names: dict[str, Any]) -> None:
            _foreign(names, 3, 60.0)
        at_fault = functools.partial(write, real)
    elif case.variant in AT_THE_POINT:
        work, raises = AT_THE_POINT[case.variant]
        expected = expected if raises else None
        if "writes" in case.variant:
            def write(names: dict[str, Any]) -> None:
                _used(names, HANDLERS["writes"])
        at_fault = functools.partial(_used, real, work)
    # The second one comes soon, and all distances come about.
    then = number * 7 % 31 if case.variant == "two faults" else None
    fault = Fault(number, expected, at_fault, passed, then)
    traced = case.variant == "host first"
    with lazyarray.trace() if traced else contextlib.nullcontext() as trace:
        surroundings.before = surroundings.now()
        try:
            with fault:
                exec(code, real)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  which one it is is judged below
            raised = error.with_traceback(None)
            error.__context__ = error.__cause__ = None
        if fault.place is None and number != sys.maxsize:
            return Run(None, [])
        failures += surroundings.wrong(arrays)
        arrays.clear()
        failed = raised is not None and (type(raised) is expected or fault.second and type(raised) is KeyboardInterrupt)
        stages = _stages(case)
        if failed:
            models = _models(case, stages)
            if write:
                for model in models:
                    write(model)
        else:       # it was thrown away: the statement has to be done
            models = _models(case, stages[-1:])
            if write and fault.place is not None:
                for model in models:
                    write(model)
                models += [model for count in range(len(stages[-1]))
                           for model in _models(case, stages[-1:], functools.partial(_staged, stages[count], write),
                                                count)]
            if raised is not None and not isinstance(raised, ValueError):
                failures.append(f"another error: {type(raised).__name__}: {str(raised)[:80]}")
            elif raised is None and fault.place is not None and expected is KeyboardInterrupt and not fault.swallowed:
                failures.append("swallowed")
        if case.variant == "once more" and failed:
            try:
                exec(code, real)
            except (ValueError, NameError) as error:
                if "read-only" not in str(error) and "not defined" not in str(error):
                    raise
            for model in models:
                _done(stages[-1], model)
        if not failures or not any("another error" in text for text in failures):
            failures += _looks(case, real, models, write is not None)
        if trace is not None:
            failures += _traced(trace)
        failures += surroundings.wrong([])
    return Run(fault.place, failures)


def _looks(case: Case, real: dict[str, Any], models: list[dict[str, Any]], written: bool) -> list[str]:
    looks = Looks(real, models)
    if written:
        looks.written.add(60.0)
    when = "at once"
    try:
        if case.variant == "alone":
            when = "alone"
            _let_go(real)
            looks.look("host")
        if case.variant == "write after the fault":
            looks.write(4, 61.0)
        for door in VARIANTS[case.variant]:
            looks.look(door)
        when = "after a write"
        looks.write(5, 62.0)
        for door in VARIANTS[case.variant]:
            looks.look(door)
        when = "later"
        looks.models, looks.all_models = looks.models[:1], []
        if "x" in real:
            for text in ("x += 2", "put(x, 0, 9)", case.operation):
                outcomes = []
                for names in (looks.models[0], real):
                    try:
                        exec(_code(text), names)
                        outcomes.append(None)
                    except (ValueError, NameError, IndexError, TypeError, AttributeError) as error:
                        outcomes.append(type(error).__name__)
                if outcomes[0] != outcomes[1]:
                    raise Wrong(f"later operation: {text} raises {outcomes[1]}, not {outcomes[0]}")
            for door in VARIANTS[case.variant]:
                looks.look(door)
        when = "after the arrays"
        _let_go(real)
        looks.look("host")
        looks.write(6, 63.0)
        looks.look("host")
    except Wrong as error:
        return [f"{error.args[0]} ({when})"]
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  whatever it is, the arrays can't be used
        return [f"unusable: {type(error).__name__}: {str(error)[:80]} ({when})"]
    return []


def _let_go(real: dict[str, Any]) -> None:
    """Drop the lazy arrays; what was under way into their memory must not come later.

    And device arrays, which nothing reaches that is written now.
    """
    for key in [key for key, value in own(real).items()
                if lazyarray.is_lazy(value) or key == "h" or key.endswith("_handle")]:
        del real[key]
    lazyarray.device().synchronize()


def _traced(trace: Any) -> list[str]:
    """Whether the trace still works, and each event in it is complete."""
    known = len(trace.events)
    np.asarray(lazyarray.asarray(np.zeros(3)))
    kinds = [event.kind for event in trace.events[known:]]
    if kinds != ["upload", "materialise"]:
        return [f"trace: a later upload and copy back are {kinds}"]
    if any(event.seconds < 0 or event.seconds > 15 or event.nbytes < 0 for event in trace.events):
        return ["trace: an event without an end"]
    return []


@contextlib.contextmanager
def prepared() -> Iterator[Surroundings]:
    """A context in which points are counted, and nothing but the program itself does or learns anything."""
    from lazyarray import _native
    from lazyarray.graph.record import reductions
    from lazyarray.storage.state import small_limit

    device = type(lazyarray.device())
    changes = [(reductions, "LOOKED_AT", 0), (device, "fused_from", 1)]
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    small = small_limit()
    if _native.recording is not None:
        _native.recording.small(0)      # arrays of a few elements do not stay on the host
    collects = gc.isenabled()
    gc.collect()
    gc.freeze()     # for good: in a long run of tests to look at all that there is takes half a second each time
    gc.disable()
    try:
        with monitored(), poisoned(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            lazyarray.prefetch(lazyarray.asarray(np.zeros(3)))      # a thread has a current stream from then on
            yield Surroundings()
    finally:
        if collects:
            gc.enable()
        if _native.recording is not None:
            _native.recording.small(small)
        for owner, name, value in kept:
            setattr(owner, name, value)


def points(case: Case, surroundings: Surroundings, visits: int | None = None) -> list[int]:
    """Numbers of the points of an operation, once everything that is done once in a process is done.

    `visits`: of a place that is passed more often, the first so many, and the last.
    """
    for _ in range(2):
        done = run(case, sys.maxsize, surroundings)
        assert not done.failures, f"{case}, without a fault: {done.failures}"
    passed: list[Any] = []
    run(case, sys.maxsize, surroundings, passed)
    if visits is None:
        return list(range(len(passed)))
    count, last, chosen = collections.Counter(), {place: i for i, place in enumerate(passed)}, []
    for i, place in enumerate(passed):
        count[place] += 1
        if count[place] <= visits or last[place] == i:
            chosen.append(i)
    return chosen


# -- reports ---------------------------------------------------------------------------------------------------------

def kind_of(failure: str) -> str:
    kind, _, rest = failure.partition(":")
    return failure if kind in ("lock held", "scope left open") else kind


def sample(operation: str, count: int, seconds: float, seed: int, surroundings: Surroundings) -> tuple[
        list[dict[str, Any]], int]:
    """Points of an operation, drawn, until so many are run or the time is over: (failures, runs).

    Four of a case, on average: to find out which points it has takes four runs of it.
    """
    draws, begun = random.Random(f"{operation} {seed}"), time.monotonic()
    cases = pairs(operation)
    cases = draws.sample(cases, min(len(cases), max(count // 4, 1)))
    found: list[dict[str, Any]] = []
    chosen: dict[Case, list[int]] = {}
    for tried in range(count):
        if time.monotonic() - begun > seconds:
            return found, tried
        base, variants = cases[tried % len(cases)]
        if base not in chosen:
            chosen[base] = points(base, surroundings, 2)
        if not chosen[base]:
            continue
        case = dataclasses.replace(base, error=draws.choice(list(ERRORS)), variant=draws.choice(variants))
        found += _records(case, draws.choice(chosen[base]), surroundings)
    return found, count


def _records(case: Case, number: int, surroundings: Surroundings) -> list[dict[str, Any]]:
    try:
        done = run(case, number, surroundings)
    except Hung as error:
        done = Run(("?", "?", 0, "?"), [f"hung: {error}"])
    return [{"case": dataclasses.astuple(case), "point": number, "place": done.place, "failure": failure}
            for failure in done.failures]


def _child(arguments: Any) -> None:
    """Run all points of the cases of one operation from one on; a line of JSON for each failure."""
    progress = os.open(arguments.progress, os.O_WRONLY)
    first, tried = arguments.child, 0
    with prepared() as surroundings:
        for index, (base, variants) in enumerate(pairs(arguments.operation, arguments.state)):
            if index < first[0]:
                continue
            try:
                numbers = points(base, surroundings, None if arguments.every else 2)
            except AssertionError as error:
                print(json.dumps({"broken": str(error)}), flush=True)
                continue
            for position, number in enumerate(numbers):
                if position % arguments.step:
                    continue
                if [index, position] < first:
                    continue
                for turn, error in enumerate(ERRORS):
                    some = variants if arguments.every else [variants[(position + turn) % len(variants)]]
                    for variant in some:
                        case = dataclasses.replace(base, error=error, variant=variant)
                        text = json.dumps([index, position, number, error, variant])
                        os.pwrite(progress, text.ljust(100).encode(), 0)
                        for record in _records(case, number, surroundings):
                            print(json.dumps(record), flush=True)
                        tried += 1
                if position % 1000 == 999:
                    gc.collect()
    print(json.dumps({"tried": tried}), flush=True)


def exhaust(operation: str, state: str = "", every: bool = False, step: int = 1) -> tuple[list[dict[str, Any]], int]:
    """Every point of an operation, in processes of their own, since one may crash: (failures, runs)."""
    found: list[dict[str, Any]] = []
    tried, crashes, start = 0, 0, [0, 0]
    path = os.pathsep.join([str(Path(ROOT).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.NamedTemporaryFile() as progress:
        while crashes < 20:
            command = [sys.executable, __file__, "--child", json.dumps(start), "--progress", progress.name,
                       "--operation", operation, "--state", state, "--step", str(step), *["--every"] * every]
            with tempfile.TemporaryFile("w+") as out:
                child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT,
                                         env={**os.environ, "PYTHONPATH": path})
                last, since = b"", time.monotonic()
                while child.poll() is None:
                    time.sleep(0.1)
                    now = os.pread(progress.fileno(), 100, 0)
                    if now != last:
                        last, since = now, time.monotonic()
                    elif time.monotonic() - since > 90:
                        child.kill()
                        child.wait()
                out.seek(0)
                other = []
                for line in out:
                    try:
                        record = json.loads(line)
                    except ValueError:
                        other.append(line)
                        continue
                    if "tried" in record:
                        tried += record["tried"]
                    else:
                        found.append(record)
            if child.returncode == 0:
                break
            crashes += 1
            index, position, number, error, variant = json.loads(last or '[0, 0, 0, "interrupt", ""]')
            case = dataclasses.replace(pairs(operation, state)[index][0], error=error, variant=variant)
            found.append({"case": dataclasses.astuple(case), "point": number, "place": ("?", "?", 0, "?"),
                          "failure": f"crash: exit status {child.returncode}: {''.join(other)[-300:]}"})
            tried += position
            start = [index, position + 1]
    return found, tried


def report(found: list[dict[str, Any]], tried: dict[str, int]) -> str:
    """The failures by operation and source line."""
    lines = []
    by_operation: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for record in found:
        if "broken" in record:
            lines.append(f"without a fault: {record['broken']}")
        else:
            by_operation[record["case"][0]].append(record)
    failing = {(*r["case"], r["point"]) for rs in by_operation.values() for r in rs}
    lines.insert(0, f"{sum(tried.values())} runs, {len(failing)} with failures.")
    kinds = collections.Counter(kind_of(r["failure"]) for rs in by_operation.values() for r in rs)
    lines += [f"{count:7} {kind}" for kind, count in kinds.most_common()]
    everything = [r for records in by_operation.values() for r in records]
    for title, name in (("function", "{0}:{1}"), ("source line", "{0}:{2} {1}")):
        counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
        for r in everything:
            counts[name.format(*r["place"])][kind_of(r["failure"])] += 1
        lines += ["", f"By {title}, over all operations", ""]
        for place, counted in sorted(counts.items(), key=lambda item: -item[1].total()):
            lines.append(f"{counted.total():7} {place}: "
                         + ", ".join(f"{n} {kind}" for kind, n in counted.most_common()))
    for operation in OPERATIONS:
        if operation not in tried:
            continue
        records = by_operation.get(operation, [])
        bad = len({(*r["case"], r["point"]) for r in records})
        lines += ["", f"{operation}: {bad} of {tried[operation]} runs", ""]
        places: dict[Any, list[dict[str, Any]]] = collections.defaultdict(list)
        for r in records:
            file, function, line, kind = r["place"]
            places[file, line, function, kind].append(r)
        for (file, line, function, kind), rs in sorted(places.items(), key=lambda item: -len(item[1])):
            counted = collections.Counter(kind_of(r["failure"]) for r in rs)
            lines.append(f"{len(rs):7} {file}:{line} {function} ({kind}): "
                         + ", ".join(f"{n} {kind}" for kind, n in counted.most_common()))
            states = collections.Counter(r["case"][1] for r in rs)
            _, state, error, variant = rs[0]["case"]
            lines.append(f"            in {', '.join(states)}")
            lines.append(f"            first: --one {operation!r} {state!r} {error} {variant!r} {rs[0]['point']}: "
                         f"{rs[0]['failure']}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every point")
    parser.add_argument("--every", action="store_true", help="with --all: every visit of a place, in every variant")
    parser.add_argument("--step", type=int, default=1, help="with --all: every so many points only")
    parser.add_argument("--sample", type=int, default=0, help="so many points of each operation")
    parser.add_argument("--one", nargs=5, metavar=("OPERATION", "STATE", "ERROR", "VARIANT", "N"))
    parser.add_argument("--operation", default="", help="operations whose text contains this")
    parser.add_argument("--state", default="", help="states whose name contains this")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", help="a file to write; standard output otherwise")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return _child(arguments)
    if arguments.one:
        operation, state, error, variant, number = arguments.one
        case = Case(operation, state, error, variant)
        with prepared() as surroundings:
            total = len(points(case, surroundings))
            done = run(case, int(number), surroundings)
        print(f"{total} points;", done)
        return None
    found: list[dict[str, Any]] = []
    tried: dict[str, int] = {}
    chosen = [text for text in OPERATIONS if arguments.operation in text]
    begun = time.monotonic()
    if arguments.all:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(arguments.jobs) as pool:
            for text, (failures, count) in zip(chosen, pool.map(
                    lambda text: exhaust(text, arguments.state, arguments.every, arguments.step), chosen)):
                found += failures
                tried[text] = count
                print(f"{time.monotonic() - begun:6.0f} s {text}: {len(failures)} failures in {count} runs",
                      file=sys.stderr, flush=True)
    else:
        with prepared() as surroundings:
            for text in chosen:
                failures, count = sample(text, arguments.sample or 100, 1e9, arguments.seed, surroundings)
                found += failures
                tried[text] = count
                print(f"{time.monotonic() - begun:6.0f} s {text}: {len(failures)} failures in {count} runs",
                      file=sys.stderr, flush=True)
    text = report(found, tried)
    if arguments.report:
        Path(arguments.report).write_text(text)
    else:
        print(text)
    return None


if __name__ == "__main__":
    main()
