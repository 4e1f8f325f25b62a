"""Objects of which there is one, and which are looked at before they are complete."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn


class Unique:
    """One that owns what can't be had twice: memory, a descriptor, threads, the account of who has written what.

    A copy would give that back when it dies, or be taken for the one that it is a copy of. `copy.copy`, `copy.deepcopy`
    and `pickle` raise TypeError, as of a file.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"cannot copy or pickle {type(self).__name__!r} object")


def once_made(name: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """A decorator of a ``__repr__`` (``__str__``, ``__format__``) that needs the attribute `name`.

    Without it the object is one that is being made, or whose making failed: tracebacks with variables print those too.
    """
    def decorate(text: Callable[..., str]) -> Callable[..., str]:
        @functools.wraps(text)
        def shown(self: Any, *spec: str) -> str:
            return text(self, *spec) if hasattr(self, name) else f"<{type(self).__name__} that is not made yet>"
        return shown
    return decorate
