"""`numpy.lib`, whose `stride_tricks` make views of lazy arrays on the device."""
from __future__ import annotations

from typing import Any

import numpy as _np

from lazyarray.numpy.lib import stride_tricks as stride_tricks


def __getattr__(name: str) -> Any:
    return getattr(_np.lib, name)


def __dir__() -> list[str]:
    return dir(_np.lib)
