"""polars: its constructors take lazy arrays.

Before it looks whether an object is an instance of `numpy.ndarray`, polars looks for the word ``numpy.`` in the names
of its class and of that class's bases. NumPy has a base for classes such as ours, which brings nothing that is not
defined here already, and that name.
"""
from __future__ import annotations

from types import ModuleType

from numpy.lib.mixins import NDArrayOperatorsMixin

from lazyarray.array import LazyNdarray


def register(polars: ModuleType) -> None:
    """Have polars ask lazy arrays whether they are NumPy's."""
    LazyNdarray.__bases__ += (NDArrayOperatorsMixin,)
