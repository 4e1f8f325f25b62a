"""scipy.sparse: COO matrices times lazy matrices, computed by SciPy on the host, as for the other formats.

All formats read a dense operand by its buffer. COO then views the product as the operand's own type, which NumPy
refuses for a class that is no subclass of ndarray; so COO gets the host alias.
"""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from lazyarray.integrations.scalars import put_in_place
from lazyarray.storage import handles

#: Module of SciPy -> what is asked for a product with a dense matrix.
_PRODUCTS = {"scipy.sparse._coo": ("_coo_base._matmul_multivector",)}


def register(sparse: ModuleType) -> None:
    """Have COO matrices take lazy matrices."""
    put_in_place("scipy", _PRODUCTS, _of_host)


def _of_host(product: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, other: Any) -> Any:
        return product(self, np.asarray(other) if handles.is_lazy(other) else other)

    return call
