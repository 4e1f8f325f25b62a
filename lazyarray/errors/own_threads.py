"""The threads that lazyarray starts for itself: they copy and compile, and run no statement of a program."""
from __future__ import annotations

import os
import threading
from _thread import _count as _started  # type: ignore[attr-defined]

__all__ = ["OwnThread", "others_run"]

#: Those that run.
_running: set[OwnThread] = set()


class OwnThread(threading.Thread):
    """A thread that `others_run` does not count."""

    def run(self) -> None:
        _running.add(self)
        try:
            super().run()
        finally:
            _running.discard(self)


def others_run() -> bool:
    """Whether the program may have started a thread that runs still."""
    return _started() > len(_running)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)
