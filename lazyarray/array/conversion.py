"""What type checkers see of `dispatch.convert.asarray`, which can't name the class that it returns: it lies above."""
from __future__ import annotations

from typing import Any

from .array import LazyNdarray

__all__ = ["asarray"]


def asarray(obj: Any, dtype: Any = None, *, copy: bool | None = None, donate: bool = False) -> LazyNdarray:
    """`dispatch.convert.asarray`."""
    raise NotImplementedError("for type checkers; see lazyarray.dispatch.convert")
