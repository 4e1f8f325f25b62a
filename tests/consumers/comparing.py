"""Results as plain values, so that those of two runs can be compared whatever library made them."""
from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

import lazyarray


def comparable(value: Any) -> Any:
    """Lists, tuples, dicts, numbers, strings and bytes, with dtype and shape of what was an array."""
    if isinstance(value, np.ma.MaskedArray):
        return "masked", comparable(value.filled(0)), comparable(np.ma.getmaskarray(value))
    if isinstance(value, (np.ndarray, np.generic)) or lazyarray.is_lazy(value):
        host = np.asarray(value)
        return str(host.dtype), host.shape, host.tolist()
    if value is None or isinstance(value, (bool, numbers.Number, str, bytes)):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Mapping):
        return {comparable(k) if isinstance(k, np.generic) else k: comparable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [comparable(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    library = type(value).__module__.partition(".")[0]
    return _OF_LIBRARY[library](value)


def _sparse(value: Any) -> Any:
    return type(value).__name__, comparable(value.toarray())


def _frame(value: Any) -> Any:
    parts = [np.asarray(value.index)] if hasattr(value, "index") else []
    if hasattr(value, "columns"):
        parts += [list(value.columns), *(value.iloc[:, n].to_numpy() for n in range(value.shape[1]))]
    else:
        parts.append(np.asarray(value))
    return type(value).__name__, str(getattr(value, "dtypes", "")), comparable(parts)


def _text(value: Any) -> Any:
    return type(value).__name__, repr(value)


def _polars(value: Any) -> Any:
    if hasattr(value, "schema"):
        return "DataFrame", str(value.schema), value.to_dict(as_series=False)
    return "Series", str(value.dtype), value.to_list()


def _tensor(value: Any) -> Any:
    return "tensor", str(value.dtype), comparable(value.detach().cpu().numpy())


#: Top-level package of a result's class -> how it becomes plain.
_OF_LIBRARY = {
    "pandas": _frame,
    "polars": _polars,
    "pyarrow": lambda value: (type(value).__name__, str(value.type if hasattr(value, "type") else value.schema),
                              value.to_numpy().tolist() if type(value).__name__ == "Tensor" else value.to_pylist()),
    "scipy": _sparse,
    "torch": _tensor,
    "jaxlib": lambda value: ("jax", comparable(np.asarray(value))),
    "xarray": lambda value: (type(value).__name__, value.dims, comparable(value.values)),
    "PIL": lambda value: (value.mode, value.size, value.tobytes()),
    "dask": lambda value: comparable(value.compute()),
    "array": lambda value: (value.typecode, value.tolist()),
    "datetime": _text,
    "decimal": _text,
    "fractions": _text,
}


def difference(a: Any, b: Any, tolerance: float, place: str = "result") -> str:
    """The first place where two plain values differ, or ""; floating-point numbers may by a relative tolerance."""
    if isinstance(a, (float, complex)) and isinstance(b, (float, complex)):
        near = a == b or (a != a and b != b) or abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-3)
        return "" if near else f"{place}: {a!r} != {b!r}"
    if type(a) is not type(b):
        return f"{place}: {a!r:.300} != {b!r:.300}"
    if isinstance(a, (list, tuple)) and len(a) == len(b):
        inner = ((p, q, n) for n, (p, q) in enumerate(zip(a, b)))
    elif isinstance(a, dict) and list(a) == list(b):
        inner = ((v, b[k], k) for k, v in a.items())
    else:
        return "" if a == b else f"{place}: {a!r:.300} != {b!r:.300}"
    return next((found for p, q, n in inner if (found := difference(p, q, tolerance, f"{place}[{n!r}]"))), "")
