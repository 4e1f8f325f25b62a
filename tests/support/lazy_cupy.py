"""A plugin of pytest: ``import cupy`` gives lazyarray's functions, so that tests for CuPy run on lazy arrays."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import lazyarray
import lazyarray.numpy


class LazyCupy(ModuleType):
    """CuPy's names for what is there of them."""

    __version__ = "14.2.0"
    ndarray = lazyarray.LazyNdarray
    asnumpy = staticmethod(lazyarray.asnumpy)

    def __getattr__(self, name: str) -> Any:
        return getattr(lazyarray.numpy, name)


def pytest_configure(config: Any) -> None:
    sys.modules["cupy"] = LazyCupy("cupy")
    from dask.array.backends import array_creation_dispatch

    from lazyarray.integrations.dask import backend

    array_creation_dispatch.register_backend("cupy", backend())
