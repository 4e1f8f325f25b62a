"""numpy.random: shuffle a lazy array in its host memory.

NumPy's shuffles exchange rows of anything but a real ndarray by ``x[i], x[j] = x[j], x[i]``. The rows of an array are
views, so each exchange loses one, with a warning. The array can't correct it: an ndarray gives two equal rows in that
statement, too. So the shuffles of both kinds of generators are replaced by functions that pass the host alias of a lazy
array. A shuffle that was looked up before lazyarray was imported is not replaced, and NumPy's warning stands.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lazyarray.array.sequence_slot import set_member
from lazyarray.dispatch import host_fallback
from lazyarray.storage import handles


def register(random: ModuleType) -> None:
    """Have the generators shuffle lazy arrays."""
    for kind in (random.Generator, random.RandomState):
        if not hasattr(kind.shuffle, "__wrapped__"):
            set_member(kind, "shuffle", _shuffle(kind.shuffle))
    shuffle = random.mtrand._rand.shuffle       # now that of the class above
    random.shuffle = random.mtrand.shuffle = shuffle


def _shuffle(theirs: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(theirs)
    def shuffle(self: Any, *args: Any, **kwargs: Any) -> None:
        x = args[0] if args else kwargs.get("x")
        if handles.is_lazy(x):
            host_fallback.with_aliases(theirs, (self, *args), kwargs, "numpy.random's shuffle")
        else:
            theirs(self, *args, **kwargs)

    return shuffle
