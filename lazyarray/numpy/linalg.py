"""`numpy.linalg`, under the name that ``import lazyarray.numpy.linalg`` looks for.

Examples
--------
>>> import lazyarray.numpy as xnp
>>> xnp.linalg.norm(xnp.full(4, 2.0))
np.float64(4.0)
"""
from __future__ import annotations

from typing import Any

import numpy as _np

__all__ = list(_np.linalg.__all__)


def __getattr__(name: str) -> Any:
    return getattr(_np.linalg, name)


def __dir__() -> list[str]:
    return dir(_np.linalg)
