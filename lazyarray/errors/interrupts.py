"""Signal handlers that raise: locks that are given back all the same, and what was raised by one."""
from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from .. import _native

__all__ = ["from_handler", "holding"]

#: ``with holding(lock):``, which gives the lock back whenever a handler raises; see `_native/recording_locks.h`.
#: Without the part in C it is the lock itself: from Python 3.14 on a handler that raises just after it was taken leaves
#: it held.
holding: Callable[[Any], AbstractContextManager[Any]] = (
    (lambda lock: lock) if _native.recording is None else _native.recording.holding)


def from_handler(error: BaseException) -> bool:
    """Return whether a signal handler raised `error`, a time limit for instance: it is the program's, no refusal.

    Python gives a handler the frame that it interrupts, which is also the frame that it returns to. Asked only once
    something has failed.
    """
    if threading.current_thread() is not threading.main_thread():       # Python runs handlers in no other thread
        return False
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        traceback = traceback.tb_next
        interrupted = frame.f_back
        if interrupted is None or str(frame.f_globals.get("__name__")).partition(".")[0] == "lazyarray":
            continue
        for value in frame.f_locals.values():
            if value is interrupted or type(value) is tuple and any(item is interrupted for item in value):
                return True
    return False
