"""Which libraries' calls go to the device here: a stack of choices in a ContextVar, and the process-wide one below it.

It lies below the devices, since what the simulated device computes with, a host library, must not be sent back to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

__all__ = ["NOTHING", "Choice", "current", "default", "scopes", "set_default", "unrouted"]


class Choice(NamedTuple):
    """What is sent to the device.

    Attributes
    ----------
    modules : mapping of str to bool
        Modules of host libraries whose functions are, and whether they are for large host arrays too.
    """

    modules: Mapping[str, bool]

    def with_(self, modules: Iterable[str], numpy: bool) -> Choice:
        """These modules too; what is sent for host arrays stays so."""
        return Choice({**self.modules, **{name: numpy or self.modules.get(name, False) for name in modules}})

    def without(self, modules: Iterable[str] | None) -> Choice:
        """These modules no more, or none at all."""
        left_out = self.modules if modules is None else frozenset(modules)
        return Choice({name: numpy for name, numpy in self.modules.items() if name not in left_out})


NOTHING = Choice({})
_default = NOTHING
scopes: ContextVar[tuple[tuple[Any, Any], ...]] = ContextVar("lazyarray.settings.enabled", default=())


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


class unrouted:
    """A context in which nothing is sent to the device."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = scopes.set((*scopes.get(), (None, NOTHING)))

    def __exit__(self, *exc_info: object) -> None:
        scopes.reset(self._token)
