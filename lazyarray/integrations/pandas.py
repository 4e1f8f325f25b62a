"""pandas: Series, Index, DataFrame and whatever else takes arrays take lazy ones.

pandas knows its own classes by an attribute ``_typ``. What says ``"npy_extension"`` there is asked for its ndarray, by
``to_numpy``, wherever pandas accepts arrays, before any compiled code sees it.
"""
from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from lazyarray.array import LazyNdarray


def register(pandas: ModuleType) -> None:
    """Have pandas ask lazy arrays for the ndarray."""

    def to_numpy(self: LazyNdarray, dtype: Any = None, copy: bool = False, na_value: Any = None) -> np.ndarray:
        """The array on the host, for pandas."""
        return np.array(self, dtype) if copy else np.asarray(self, dtype)

    LazyNdarray._typ = "npy_extension"
    LazyNdarray.to_numpy = to_numpy
