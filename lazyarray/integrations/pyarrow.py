"""pyarrow: ``pa.array``, and with it tables and record batches, take lazy arrays by ``__arrow_array__``."""
from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from lazyarray.array import LazyNdarray


def register(pyarrow: ModuleType) -> None:
    """Give lazy arrays the method that pyarrow asks objects for; an ndarray has none."""

    def to_arrow(self: LazyNdarray, type: Any = None) -> Any:
        return pyarrow.array(np.asarray(self), type=type)

    LazyNdarray.__arrow_array__ = to_arrow
