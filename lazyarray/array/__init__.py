"""The classes of lazy arrays and scalars, and their members. NumPy's function `array` is `lazyarray.numpy.array`."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, NoReturn


class _Package(ModuleType):
    """``from lazyarray import array`` finds this package, whose name is that of NumPy's function."""

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("lazyarray.array is a package; use lazyarray.numpy.array")


sys.modules[__name__].__class__ = _Package
