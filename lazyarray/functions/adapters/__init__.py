"""Device versions of the NumPy functions where the plain rule (same name, same meaning) is wrong, by topic.

`common` says what an adapter is. Each module ends with its table of NumPy functions; `ADAPTED` is all of them.
"""
from __future__ import annotations

from typing import Any

from . import elementwise, fourier, indexing, linear, order, products, reductions, sets, shaping, statistics

__all__ = ["ADAPTED"]

_TABLES = (reductions, order, indexing, elementwise, shaping, products, linear, fourier, sets, statistics)

#: NumPy function -> adapter(xp, *args, **kwargs).
ADAPTED: dict[Any, Any] = {function: adapter for module in _TABLES for function, adapter in module.ADAPTED.items()}
