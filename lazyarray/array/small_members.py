"""Members of LazyNdarray that NumPy does at once where all arrays are small and current on the host.

Each is NumPy's own operator or method, in front of the member that does it otherwise; see `dispatch/small_arrays.py`.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _native
from ..dispatch.small_arrays import on_host
from . import operators

__all__ = ["complete", "member", "on_host"]

_native_member = None if _native.recording is None else _native.recording.member


def member(callee: Callable[..., Any] | str, otherwise: Callable[..., Any], *kinds: str) -> Callable[..., Any]:
    """`callee` with ndarrays, or `otherwise`; `kinds`: what C has to know of it, by name.

    `callee`: "ufunc" and "function" are NumPy's protocols.
    """
    if _native_member is None:
        return otherwise
    return _native_member(callee, otherwise, sum(getattr(_native.recording, kind) for kind in kinds))


#: Methods that give new arrays, numbers or views, of no more bytes than they are given.
_METHODS = (
    "all any argmax argmin argpartition argsort clip copy cumprod cumsum diagonal flatten max mean min nonzero prod "
    "ravel reshape round searchsorted squeeze std sum swapaxes trace transpose var astype conj conjugate").split()
#: Methods that only look at the array in another way: those that never copy, and those that do not if it is in C order.
_SEES, _PACKED = frozenset("diagonal squeeze swapaxes transpose".split()), frozenset(("ravel", "reshape"))
_COPIES = frozenset("copy flatten astype".split())
#: Methods that give Python's objects.
_VALUES = ("tolist", "tobytes", "item")


def complete(array_type: type) -> None:
    """Put NumPy's members in front of those that a class has."""
    def put(name: str, callee: Callable[..., Any] | str, *kinds: str) -> None:
        setattr(array_type, name, member(callee, vars(array_type)[name], *kinds))

    put("__array_ufunc__", "ufunc")
    put("__array_function__", "function")
    for name in (*operators.BINARY, "pow"):
        function = getattr(operator, f"__{name}__")
        powers = ("POWERS",) if name == "pow" else ()       # squares are cheap
        put(f"__{name}__", function, "BROADCASTS", "COMPUTES", *powers)
        put(f"__r{name}__", function, "BROADCASTS", "COMPUTES", "REFLECTED")
        put(f"__i{name}__", getattr(operator, f"i{name}"), "BROADCASTS", "COMPUTES", "IN_PLACE", *powers)
    put("__divmod__", divmod, "BROADCASTS", "COMPUTES")
    put("__rdivmod__", divmod, "BROADCASTS", "COMPUTES", "REFLECTED")
    put("__matmul__", operator.matmul, "MULTIPLIES", "COMPUTES")
    put("__rmatmul__", operator.matmul, "MULTIPLIES", "COMPUTES", "REFLECTED")
    for name in operators.COMPARISONS:
        put(f"__{name}__", getattr(operator, name), "BROADCASTS", "COMPUTES")
    for name in operators.UNARY:
        put(f"__{name}__", getattr(operator, name), "COMPUTES")
    for name in _METHODS:
        kinds = ("SEES",) if name in _SEES else ("SEES", "PACKED") if name in _PACKED else ()
        put(name, getattr(np.ndarray, name), *(kinds or (("COPIES",) if name in _COPIES else ("COMPUTES",))))
    put("dot", np.ndarray.dot, "MULTIPLIES", "COMPUTES")
    for name in _VALUES:
        put(name, getattr(np.ndarray, name), "VALUES")
    put("__getitem__", operator.getitem, "INDEXES")
    put("__setitem__", operator.setitem, "ASSIGNS")
    put("__contains__", operator.contains, "VALUES")
