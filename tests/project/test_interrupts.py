"""Where an interrupt comes, what is held is given back: whatever the interpreter makes of a loop."""
from __future__ import annotations

import dis
import os
import sys
import types
from pathlib import Path

import pytest

import lazyarray

ROOT = Path(lazyarray.__file__).parent

#: What these hold needs no interrupt to be let go of, or they turn any exception into a result.
HARMLESS = {
    ("dispatch/ufunc.py", "looped"), ("events/progress.py", "progress"), ("integrations/profile.py", "Profile._sample"),
    ("wrapping/generators.py", "_async_generator"),
}


def unprotected(source, name="<source>"):
    """The functions with a jump back to a loop, of which an exception at the jump does not go where one in it goes."""
    found, todo = set(), [compile(source, name, "exec")]
    while todo:
        code = todo.pop()
        todo += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        bytecode = dis.Bytecode(code)
        names = {instruction.offset: instruction.opname for instruction in bytecode}

        def handler(offset, entries=bytecode.exception_entries, names=names):
            while (entry := next((e for e in entries if e.start <= offset < e.end), None)) is not None:
                offset = entry.target
                if names[offset] == "PUSH_EXC_INFO":        # else the end of a comprehension, which raises it again
                    return offset
            return None

        if any(i.opname == "JUMP_BACKWARD" and handler(i.offset) != handler(i.jump_target) for i in bytecode):
            found.add(code.co_qualname)
    return found


@pytest.mark.skipif(sys.version_info < (3, 13), reason="jumps of earlier versions raise where they lead to")
def test_a_loop_that_skips_is_in_a_function_of_its_own():
    """Signals come at jumps back. CPython 3.13 makes one where a loop skips, and leaves it out of ``with`` and ``try``.

    So an interrupt there would leave a lock held, or a setting changed, for good. A call is in them always.
    """
    found = {(path.relative_to(ROOT).as_posix(), name) for path in ROOT.rglob("*.py")
             for name in unprotected(path.read_text(), os.fspath(path))}
    assert found <= HARMLESS, f"move the loop, or its body, to a function of its own: {sorted(found - HARMLESS)}"
