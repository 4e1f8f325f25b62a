"""pyarrow: arrays, tables and record batches are made of lazy arrays, and of lists and dicts with lazy ones in them.

``pa.array(x)``, and with it tables and record batches, ask an object for ``__arrow_array__``, which lazy arrays have
once pyarrow is imported. What a list holds is asked for nothing: compiled code wants the struct of an ndarray, or of a
NumPy scalar. So the functions through which such values pass are called once more with NumPy's own, if they refused
what they were given and some of it is lazy. A call that works is not looked at.
"""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from lazyarray.array.array import LazyNdarray
from lazyarray.functions.pytree import replace
from lazyarray.integrations.scalars import opened, put_in_place
from lazyarray.storage import handles

#: Module of pyarrow -> the functions through which Python's values get into it; its others call these.
_ENTRIES = {"pyarrow.lib": ("array", "scalar")}


def register(pyarrow: ModuleType) -> None:
    """Give lazy arrays the method that pyarrow asks objects for; an ndarray has none."""

    def to_arrow(self: LazyNdarray, type: Any = None) -> Any:
        return pyarrow.array(np.asarray(self), type=type)

    LazyNdarray.__arrow_array__ = to_arrow
    put_in_place("pyarrow", _ENTRIES, _once_more)


def _once_more(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, NotImplementedError):    # pyarrow's own are of these classes
            found: list[Any] = []

            def host(value: Any) -> Any:
                if handles.is_lazy(value):
                    found.append(value)
                    return np.asarray(value) if handles.is_array(value) else opened(value)
                if getattr(getattr(value, "dtype", None), "kind", "") != "O":
                    return value
                if isinstance(value, np.ndarray):
                    values = np.empty(value.shape, object)
                    values.flat = list(map(host, value.flat))
                    return values
                return value.map(host) if hasattr(value, "map") else value      # a column of pandas

            args, kwargs = replace(args, host), replace(kwargs, host)
            if not found:
                raise
        return function(*args, **kwargs)

    return call
