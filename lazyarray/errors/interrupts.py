"""Telling what a signal handler raised from what the code raised that it interrupted."""
from __future__ import annotations

import threading

__all__ = ["from_handler"]


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
