"""SymPy: a lazy scalar in an expression is the number that NumPy's would be, integers included."""
from __future__ import annotations

from types import ModuleType

from lazyarray.array.scalar import LazyScalar
from lazyarray.integrations.scalars import opened


def register(sympy: ModuleType) -> None:
    """Give lazy scalars the method that SymPy asks objects for."""
    LazyScalar._sympy_ = lambda self: sympy.sympify(opened(self))
