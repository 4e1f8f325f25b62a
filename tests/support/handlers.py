"""Signal handlers at chosen points of the library's code: wherever Python may run one.

Python runs handlers between bytecodes: when a function begins, after a call, and before a jump back. A trace function
stands in for the handler there, so that a test can try each point in turn.
"""
from __future__ import annotations

import dis
import functools
import os
import sys
from collections.abc import Callable

import lazyarray

ROOT = os.path.dirname(lazyarray.__file__) + os.sep
_AFTER = {"RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX"}
_BEFORE = {"JUMP_BACKWARD"}


@functools.cache
def _points(code) -> frozenset[int]:
    """Offsets of the instructions before which a handler may run.

    What it raises comes from the instruction before: where that lies in another ``try``, a trace function can't do it.
    """
    bytecode = dis.Bytecode(code)
    entries = bytecode.exception_entries

    def caught(offset):
        return next((entry.target for entry in entries if entry.start <= offset < entry.end), None)

    found, last = set(), None
    for instruction in bytecode:
        after = last is not None and last.opname in _AFTER and caught(last.offset) == caught(instruction.offset)
        if after or instruction.opname in _BEFORE:
            found.add(instruction.offset)
        last = instruction
    return frozenset(found)


class At:
    """Context in which `handler(signum, frame)` is called once, at the point of this number of the library's code.

    `ran`: whether there were so many points.
    """

    def __init__(self, number: int, handler: Callable[[int, object], None]) -> None:
        self.left, self.handler, self.ran, self.place = number, handler, False, None

    def __enter__(self) -> At:
        self.before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *exc_info: object) -> None:
        sys.settrace(self.before)

    def _called(self, frame, event, arg):
        if self.ran or not frame.f_code.co_filename.startswith(ROOT):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame, event, arg):
        if event == "opcode" and not self.ran and frame.f_lasti in _points(frame.f_code):
            self.left -= 1
            if self.left < 0:
                self.ran, self.place = True, f"{frame.f_code.co_filename}:{frame.f_lineno}"
                sys.settrace(None)
                handle(self.handler, frame)
        return self._step


def handle(handler: Callable[[int, object], None], frame: object) -> None:
    """Call a handler as Python does."""
    handler(14, frame)
