"""Which libraries' calls go to the device here: a stack of choices in a ContextVar, and the process-wide ones below it.

It lies below the devices, since what the simulated device computes with, a host library, must not be sent back to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

__all__ = ["NOTHING", "Choice", "current", "default", "scopes", "set_default", "unrouted"]


@dataclass(frozen=True)
class Choice:
    """What is sent to the device.

    Attributes
    ----------
    libraries : frozenset of str
        Names of the libraries whose functions are.
    numpy : bool
        Whether large host arrays go too, beside lazy ones.
    """

    libraries: frozenset[str] = frozenset()
    numpy: bool = False


NOTHING = Choice()
_default = NOTHING
scopes: ContextVar[tuple[tuple[Any, Any], ...]] = ContextVar("lazyarray.routed", default=())


def current() -> Choice:
    """The choice in force here: the innermost block's, or else the process-wide one."""
    stack = scopes.get()
    return stack[-1][1] if stack else _default


def default() -> Choice:
    """The process-wide choice."""
    return _default


def set_default(choice: Choice) -> None:
    """Make a choice that of the process."""
    global _default
    _default = choice


@contextmanager
def unrouted() -> Iterator[None]:
    """A context in which nothing is sent to the device."""
    token = scopes.set((*scopes.get(), (None, NOTHING)))
    try:
        yield
    finally:
        scopes.reset(token)
