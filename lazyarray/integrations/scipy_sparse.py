"""scipy.sparse: matrices of coordinates times lazy matrices, which SciPy computes on the host, as it does the others.

All formats get the bytes of a dense operand by the buffer. That of coordinates goes on to make its product a view of
the operand's own type, which for what is no subclass of ndarray NumPy refuses; so that one gets the host alias.
"""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from lazyarray import wrap
from lazyarray.integrations.scalars import put_in_place

#: Module of SciPy -> what is asked for a product with a dense matrix.
_PRODUCTS = {"scipy.sparse._coo": ("_coo_base._matmul_multivector",)}


def register(sparse: ModuleType) -> None:
    """Have matrices of coordinates take lazy matrices."""
    put_in_place("scipy", _PRODUCTS, _of_host)


def _of_host(product: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, other: Any) -> Any:
        return product(self, np.asarray(other) if wrap.is_lazy(other) else other)

    return call
