"""Recorded work that nobody asks for is computed after a while, so that it keeps no memory for ever.

Work that rests on no other recorded work is noted here; all that rests on it is found from there. A thread looks after
it as long as there is any, and work is at least one of its rounds old when it is computed.
"""
from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING

from ..readers import lasting

if TYPE_CHECKING:
    from .graph import Node

__all__ = ["SECONDS", "lock", "note"]

#: Of a round.
SECONDS = 1.0
#: Rounds without work after which the thread ends.
_IDLE = 3
_MANY = 1024

#: One for all graphs: held by whoever computes.
lock = threading.RLock()

_young: deque[weakref.ref[Node]] = deque()
_old: deque[weakref.ref[Node]] = deque()
_watcher: threading.Thread | None = None
_starting = threading.Lock()


def note(ref: weakref.ref[Node]) -> None:
    """Look after a node, and what will rest on it."""
    _young.append(ref)
    if _watcher is None:
        _start()
    count = len(_young)
    if count >= _MANY and count & count - 1 == 0:       # at powers of two: all may be alive, however many
        _sift(_young)


def _sift(refs: deque[weakref.ref[Node]]) -> None:
    """Drop the references to what is gone. Others may append meanwhile."""
    for _ in range(len(refs)):
        ref = refs.popleft()
        if ref() is not None:
            refs.append(ref)


def _start() -> None:
    global _watcher
    with _starting:
        if _watcher is None:
            _watcher = threading.Thread(target=_watch, name="lazyarray-waiting", daemon=True)
            _watcher.start()


def _watch() -> None:
    global _watcher
    idle = 0
    pause = threading.Event()
    while True:
        pause.wait(SECONDS)
        idle = 0 if _round() else idle + 1
        if idle >= _IDLE:
            with _starting:
                if not _young and not _old:
                    _watcher = None
                    return


def _round() -> bool:
    """Compute what was there a round ago already; whether anything is left to look after."""
    global _young, _old
    old, _old, _young = _old, _young, deque()
    for ref in old:
        node = ref()
        if node is None:
            continue
        for last in list(lasting([ref] if node.array is None else node.readers, set())):
            try:
                last.compute()
            except Exception as error:  # noqa: BLE001  whatever it is, who asks for the value is told
                logging.getLogger("lazyarray").debug("work that waited was not computed: %s", error)
    _sift(_old)
    return bool(_old or _young)


def _after_fork() -> None:
    global _watcher, _starting
    lock.release()
    _watcher, _starting = None, threading.Lock()


if hasattr(os, "register_at_fork"):     # the child has no watcher, and must not wait for what its parent's computes
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=_after_fork)
