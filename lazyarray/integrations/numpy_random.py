"""numpy.random: what knows only ndarrays gets the host alias of a lazy array, and the number of a lazy scalar.

NumPy's shuffles exchange rows of anything but a real ndarray by ``x[i], x[j] = x[j], x[i]``. The rows of an array are
views, so each exchange loses one, with a warning. The array can't correct it: an ndarray gives two equal rows in that
statement, too. Other methods refuse a lazy array to write into, take a lazy integer for an array, or a lazy array of
probabilities for doubles. So these methods of both kinds of generators are replaced. What was looked up before
lazyarray was imported is not, nor are the methods that many programs call for one number at a time.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lazyarray.array.sequence_slot import set_member
from lazyarray.dispatch import host_fallback
from lazyarray.storage import handles

_METHODS = ("shuffle", "permutation", "permuted", "choice")


def register(random: ModuleType) -> None:
    """Have the generators take lazy arrays and scalars."""
    legacy = random.mtrand._rand
    for kind in (random.Generator, random.RandomState):
        for name in _METHODS:
            if (theirs := getattr(kind, name, None)) is not None and not hasattr(theirs, "__wrapped__"):
                set_member(kind, name, _with_aliases(theirs))
    for name in _METHODS:
        if hasattr(legacy, name):       # now that of the class above
            setattr(random, name, getattr(legacy, name))
            setattr(random.mtrand, name, getattr(legacy, name))
    if not hasattr(random.default_rng, "__wrapped__"):
        random.default_rng = _with_aliases(random.default_rng)


def _with_aliases(theirs: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def method(*args: Any, **kwargs: Any) -> Any:
        if any(map(handles.is_lazy, args)) or any(map(handles.is_lazy, kwargs.values())):
            return host_fallback.with_aliases(theirs, args, kwargs, f"numpy.random's {theirs.__name__}")
        return theirs(*args, **kwargs)

    return method
