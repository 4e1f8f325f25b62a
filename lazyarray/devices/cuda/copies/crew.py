"""Threads that wait for work, in Python and in C; and whose turn it is at what is there once."""
from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from .... import _native
from ....errors.inspection import Unique
from ....errors.interrupts import holding
from ....errors.own_threads import own

if TYPE_CHECKING:
    from ..driver import Driver

_SECONDS = 1.0
_here = threading.local()


@contextlib.contextmanager
def turn(lock: threading.Lock) -> Iterator[bool]:
    """One's turn at buffers that are there once. False where one would wait for oneself: let the driver do it then.

    So it is for a finaliser, which runs wherever the garbage collector does: in a thread whose turn it is, and in one
    that helps with a copy that another one waits for.
    """
    if getattr(_here, "never_waits", False):
        yield False
        return
    _here.never_waits = True    # a finaliser may run before the lock is taken, too
    try:
        with holding(lock):
            yield True
    finally:
        _here.never_waits = False


class CrewInC(Unique):
    """Threads that wait for work in C: they need the interpreter for none of it."""

    def __init__(self) -> None:
        self._crew = _native.staging.Crew()    # type: ignore[union-attr]
        self._count = 0

    def __del__(self) -> None:
        self._crew.close()

    def send(self, threads: int, driver: Driver, bounds: Any, table: Any, *where: int) -> int:
        """Upload, by so many threads at most, the calling one among them; the driver's error, or 0."""
        self._gather(threads)
        return self._crew.send(driver[1:6], bounds, table, threads, *where)   # type: ignore[no-any-return]

    def fill(self, threads: int, driver: Driver, *what: Any) -> int:
        """Fill a region, by so many threads at most; the driver's error, or 0."""
        if 1 in what[-1]:       # there is something to do beside the copies
            self._gather(threads)
        return self._crew.fill((driver.fetch, driver.lock), *what[:-1], threads, what[-1])  # type: ignore[no-any-return]

    def _gather(self, threads: int) -> None:
        while self._count < threads - 1:
            try:
                threading.Thread(target=own(self._crew.serve), name="lazyarray-uploads", daemon=True).start()
            except RuntimeError:        # the interpreter is ending
                break
            self._count += 1


class Crew(Unique):
    """Threads that wait for work: it starts sooner than an executor's, which makes a lock and more for each call."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._count = 0

    def __del__(self) -> None:
        for _ in range(self._count):
            self._jobs.put(None)

    def run(self, work: Callable[[Any], None], arguments: list[Any]) -> None:
        """Call `work` with each argument at the same time, the first one here; raise what one of the calls raised.

        All are over then, whichever failed. Where no more threads start, the last arguments are left out.
        """
        others = arguments[1:]
        if not self._gathered(len(others)):
            others = others[:self._count]
        asked = 0
        results: list[BaseException | None] = []
        over: queue.SimpleQueue[None] = queue.SimpleQueue()
        try:
            for argument in others:
                self._jobs.put((work, argument, results, over))
                asked += 1
            work(arguments[0])
        finally:
            _wait(over, results, asked)
        for error in results:
            if error is not None:
                raise error

    def submit(self, most: int, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call `work` in one of `most` threads; where no thread starts, here.

        As with an executor, whose locks a finaliser would wait for that runs within them.
        """
        future: Future[Any] = Future()

        def run(_: None) -> None:
            try:
                future.set_result(work(*arguments))
            except BaseException as error:  # noqa: BLE001 - raised by who asks for the result, whatever it is
                future.set_exception(error)

        if not sys.is_finalizing() and (self._gathered(most) or self._count):
            self._jobs.put((run, None, [], queue.SimpleQueue()))
        else:
            run(None)
        return future

    def _gathered(self, count: int) -> bool:
        """Have so many threads; False where no more start, as the interpreter is ending."""
        while self._count < count:
            try:
                threading.Thread(target=own(_stay), args=(self._jobs,), name="lazyarray-copies", daemon=True).start()
            except RuntimeError:
                return False
            self._count += 1
        return True


def _wait(over: queue.SimpleQueue[None], results: list[BaseException | None], count: int) -> None:
    """Wait for so many results, an interrupt notwithstanding: until then threads use the caller's memory."""
    interrupt = None
    while len(results) < count:
        try:
            over.get(timeout=_SECONDS)
        except queue.Empty:
            pass
        except BaseException as error:  # noqa: BLE001 - raised below, whatever it is
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _stay(jobs: queue.SimpleQueue[Any]) -> None:
    _here.never_waits = True
    while (job := jobs.get()) is not None:
        work, argument, results, over = job
        try:
            work(argument)
        except BaseException as error:  # noqa: BLE001 - raised by who waits, whatever it is
            results.append(error)
        else:
            results.append(None)
        over.put(None)
        del job, work, argument, results, over      # nothing is kept alive while it waits
