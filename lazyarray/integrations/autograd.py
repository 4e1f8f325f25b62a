"""autograd: differentiate with respect to lazy arrays and scalars, and through functions that return them.

autograd looks up the exact class of a value in two tables: which box holds it while it is traced, and which vector
space its gradients are in. Our entries are NumPy's. A vector space needs only a shape and a dtype, so nothing is
copied.
"""
from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from lazyarray.array.array import LazyNdarray
from lazyarray.array.scalar import LazyScalar


def register(autograd: ModuleType) -> None:
    """Put lazy arrays and scalars into autograd's tables of types."""
    from autograd.extend import Box, VSpace

    boxes, spaces = Box.type_mappings, VSpace.mappings

    def box_of_scalar(value: Any, *rest: Any) -> Any:
        return boxes[value.dtype.type](value, *rest)        # a KeyError says that there is none, of integers

    boxes[LazyNdarray] = boxes[np.ndarray]
    boxes[LazyScalar] = box_of_scalar
    spaces[LazyNdarray] = lambda x: spaces[np.ndarray](np.broadcast_to(np.zeros((), x.dtype), x.shape))
    spaces[LazyScalar] = lambda s: spaces[s.dtype.type](s.dtype.type())
