"""An exception at a point of the library's code, and what a statement that it ends has to give back.

A **point** is where Python may raise in the library's code: a function begins or goes on, a C function is about to
run, one has returned, a loop goes back. (CPython runs signal handlers at all of these but the second, where a C
function may find no memory.)
"""
from __future__ import annotations

import contextlib
import contextvars
import dis
import gc
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Self

import numpy as np

import lazyarray

ROOT = os.path.dirname(lazyarray.__file__) + os.sep
ERRORS = {"interrupt": KeyboardInterrupt, "memory": MemoryError}

#: Before a lock is let go of nothing can be raised: signals come after calls, and no memory is needed.
_LEAVING = {"release", "__exit__"}
#: CuPy's are compiled: a signal handler runs before or after them.
_COMPILED = {"Stream.__enter__", "Stream.__exit__", "Stream.use"}
#: If a tool raises where a list becomes the arguments of a call, CPython 3.13 gives the list back twice.
_UNPACKS = dis.opmap["CALL_FUNCTION_EX"]


class Fault:
    """A context in which an exception is raised at the point of this number of the library's code in this thread.

    Parameters
    ----------
    number : int
    error : type of exception, or None
        None: nothing is raised there, as by a signal handler that returns.
    meanwhile : callable, optional
        What such a handler does first.
    passed : list, optional
    then : int, optional
        After so many points more an interrupt comes, too: while the first exception is being handled, as a rule.

    Attributes
    ----------
    left : int
        Points that are still to come, less than 0 once it was raised.
    place : tuple or None
        (file, function, line, kind) of the point.
    second : tuple or None
        The same of the second one, if it came.
    swallowed : bool
        Whether no Python code caught the exception, of one that did not arrive: Python throws it away in finalisers.
    passed : list or None
        Where the points were, one after the other.
    """

    armed: Fault | None = None
    under_way: BaseException | None = None      # what was raised, and
    caught = False                              # whether the last that is known of it is that Python code caught it

    def __init__(self, number: int, error: type[BaseException] | None, meanwhile: Callable[[], None] | None = None,
                 passed: list[Any] | None = None, then: int | None = None) -> None:
        self.left, self.error, self.meanwhile, self.passed, self.then = number, error, meanwhile, passed, then
        self.thread = threading.get_ident()
        self.place: tuple[str, str, int, str] | None = None
        self.second: tuple[str, str, int, str] | None = None
        self.swallowed = False
        self.raised: BaseException | None = None

    def __enter__(self) -> Self:
        self.hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
        Fault.armed, Fault.under_way, Fault.caught = self, None, False
        if not _MONITORED:
            sys.setprofile(_profiled)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if not _MONITORED:
            sys.setprofile(None)
        Fault.armed = Fault.under_way = None
        sys.unraisablehook = self.hook
        self.swallowed = not Fault.caught       # NumPy's C code does it, too, where it asks for a buffer

    def point(self, code: Any, where: int, kind: str, name: str = "") -> None:
        """`where`: a line, or -1 less an offset in the code; `name`: of what is called.

        What was called is a local variable of none of these frames: as a method of what holds a lock it would keep that
        for as long as somebody has the traceback.
        """
        if code.co_qualname in _COMPILED:
            return
        if self.left == 0 and kind == "call" and where < 0 and code.co_code[-1 - where] == _UNPACKS:
            return
        self.left -= 1
        if self.passed is not None:
            self.passed.append((code.co_filename, code.co_qualname, where, kind))
        if self.left < 0:
            Fault.armed = None
            line = where if where >= 0 else _line(code, -1 - where)
            place = os.path.relpath(code.co_filename, ROOT), code.co_qualname, line, f"{kind} {name}".strip()
            self.place, self.second = (place, None) if self.place is None else (self.place, place)
            meanwhile, self.meanwhile, error = self.meanwhile, None, self.error
            if meanwhile is not None:
                meanwhile()
            if self.then is not None:
                self.left, self.then, self.error = self.then, None, KeyboardInterrupt
                Fault.armed = self
            if error is not None:
                self.raised = Fault.under_way = error("a fault")
                Fault.caught = False
                raise self.raised


def _line(code: Any, offset: int) -> int:
    return next((line for start, stop, line in code.co_lines() if start <= offset < stop and line), 0)


def _profiled(frame: Any, event: str, arg: Any) -> None:
    armed = Fault.armed
    if armed is None or not frame.f_code.co_filename.startswith(ROOT):
        return
    code, line = frame.f_code, frame.f_lineno
    del frame       # a signal handler has it: this is to be an exception of the library's code
    if event == "call":
        armed.point(code, line, "enter")
    elif event == "c_return" or event == "c_call" and arg.__name__ not in _LEAVING:
        name = arg.__name__
        del arg
        armed.point(code, line, event[2:], name)


_MONITORED = sys.version_info >= (3, 12)        # it names classes and loops as well, and costs less
_TOOL = 4


def _monitor() -> dict[int, Callable[..., Any]]:
    events, disable = sys.monitoring.events, sys.monitoring.DISABLE
    me = threading.get_ident
    # These run millions of times. Places outside the library, and jumps ahead, are asked about once each.

    def begins(code, offset):
        if not code.co_filename.startswith(ROOT):
            return disable
        armed = Fault.armed
        if armed is not None and armed.thread == me():
            armed.point(code, -1 - offset, "enter")

    def calls(code, offset, function, argument):
        if not code.co_filename.startswith(ROOT):
            return disable
        armed = Fault.armed
        if armed is not None and armed.thread == me():
            in_python = type(function) is FunctionType or hasattr(function, "__code__")
            name = getattr(function, "__name__", "")
            del function, argument
            if not in_python and name not in _LEAVING:
                armed.point(code, -1 - offset, "call", name)

    def returns(code, offset, function, argument):
        armed = Fault.armed
        if armed is not None and armed.thread == me() and code.co_filename.startswith(ROOT):
            name = getattr(function, "__name__", "")
            del function, argument
            armed.point(code, -1 - offset, "return", name)

    def jumps(code, offset, to):
        if to > offset or not code.co_filename.startswith(ROOT):
            return disable
        armed = Fault.armed
        if armed is not None and armed.thread == me():
            armed.point(code, -1 - offset, "loop")

    def handled(code, offset, error):
        if error is Fault.under_way:
            Fault.caught = True

    def goes_on(code, offset, error):
        if error is Fault.under_way:
            Fault.caught = False

    return {events.PY_START: begins, events.PY_RESUME: begins, events.CALL: calls, events.C_RETURN: returns,
            events.JUMP: jumps, events.C_RAISE: lambda *args: None, events.EXCEPTION_HANDLED: handled,
            events.RERAISE: goes_on, events.PY_UNWIND: goes_on}


@contextlib.contextmanager
def monitored() -> Iterator[None]:
    """A context in which a `Fault` finds points. (Before Python 3.12 that costs nothing until there is one.)"""
    if not _MONITORED:
        yield
        return
    sys.monitoring.use_tool_id(_TOOL, "faults")
    callbacks = _monitor()
    for event, callback in callbacks.items():
        sys.monitoring.register_callback(_TOOL, event, callback)
    sys.monitoring.set_events(_TOOL, sum(callbacks))
    try:
        yield
    finally:
        sys.monitoring.set_events(_TOOL, 0)
        sys.monitoring.free_tool_id(_TOOL)


# -- what a statement borrows -------------------------------------------------------------------------------------

def _is_lock(thing: Any) -> bool:
    """Whether this is a lock: of Python's, or of `interleaving`."""
    return isinstance(thing, type(_a_lock)) or hasattr(type(thing), "_is_owned")


_a_lock = threading.Lock()


def _walk(roots: Any, seen: set[int], depth: int = 5) -> Iterator[Any]:
    """Locks, ContextVars and locals of threads that can be reached through objects of the library's classes."""
    todo = [(root, depth) for root in roots]
    while todo:
        thing, depth = todo.pop()
        if id(thing) in seen:
            continue
        kind = type(thing)
        if _is_lock(thing) or isinstance(thing, (contextvars.ContextVar, threading.local)):
            seen.add(id(thing))
            yield thing
        elif depth and (kind in (dict, list, tuple) and len(thing) < 200
                        or kind.__module__.startswith("lazyarray") and not isinstance(thing, np.ndarray)):
            seen.add(id(thing))
            todo += [(child, depth - 1) for child in gc.get_referents(thing)
                     if not isinstance(child, (type, str, int, float))]


class Surroundings:
    """What a statement borrows and gives back: locks, settings of a context or a thread, NumPy's own."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.names: dict[int, str] = {}
        self.locks, self.scopes, self.locals = [], [], []
        for module_name, module in sorted(sys.modules.items()):
            if module_name.partition(".")[0] == "lazyarray":
                for name, value in list(vars(module).items()):
                    for found in _walk([value], self.seen):
                        self.names[id(found)] = f"{module_name.removeprefix('lazyarray.')}.{name}"
                        (self.locks if _is_lock(found) else self.locals if isinstance(found, threading.local)
                         else self.scopes).append(found)
        self.before = self.now()

    def now(self) -> tuple[Any, ...]:
        return ([scope.get(None) for scope in self.scopes],
                [{key: value.copy() if isinstance(value, (dict, list)) else value for key, value in vars(one).items()}
                 for one in self.locals], np.geterr(), np.get_printoptions(), len(warnings.filters), gc.isenabled())

    def wrong(self, arrays: list[Any]) -> list[str]:
        """What is held or changed; it is put right, so that the next run begins as this one did."""
        found = []
        storages = [storage for x in arrays if (storage := getattr(x, "_self_storage", None)) is not None]
        local = set(self.seen)
        for lock in [*self.locks, *(one for one in _walk(storages, local) if _is_lock(one))]:
            while lock._is_owned() if hasattr(lock, "_is_owned") else lock.locked():
                if (text := f"lock held: {self.names.get(id(lock), 'of a storage')}") not in found:
                    found.append(text)
                lock.release()
            if lock.acquire(timeout=5):
                lock.release()
            else:
                found.append(f"lock held by another thread: {self.names.get(id(lock), 'of a storage')}")
        now = self.now()
        if now != self.before:
            scopes, others, *rest = self.before
            for scope, value, was in zip(self.scopes, now[0], scopes):
                if value != was:
                    found.append(f"scope left open: {self.names[id(scope)]}")
                    scope.set(was)
            for one, value, was in zip(self.locals, now[1], others):
                if value != was:
                    found.append(f"thread's own state changed: {self.names[id(one)]}")
                    vars(one).clear()
                    vars(one).update(was)
            if list(now[2:]) != rest:
                changed = [(was, value) for was, value in zip(rest, now[2:]) if was != value]
                found.append(f"settings of NumPy or Python changed: {changed}")
                np.seterr(**rest[0])
                np.set_printoptions(**rest[1])
        return found
