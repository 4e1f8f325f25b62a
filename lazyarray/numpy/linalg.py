"""`numpy.linalg`, under the name that ``import lazyarray.numpy.linalg`` looks for.

Examples
--------
>>> import lazyarray.numpy as xnp
>>> xnp.linalg.norm(xnp.full(4, 2.0))
np.float64(4.0)
"""
from __future__ import annotations

import numpy as _np

from .creation import passing as _passing

__all__ = list(_np.linalg.__all__)

__getattr__, __dir__ = _passing(_np.linalg)
