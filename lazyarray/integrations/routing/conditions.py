"""Conditions under which a call is not for the device's function: each gives the reason, or None.

They are given the arguments by name, and look at shapes and dtypes only, so that nothing is copied.
"""
from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ...storage import handles

Condition = Callable[[dict[str, Any]], "str | None"]


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of an array, None of anything else."""
    if handles.is_lazy(value):
        return handles.meta_of(value).shape
    return value.shape if isinstance(value, np.ndarray) else None


def dtype_of(value: Any) -> np.dtype | None:
    """The dtype of an array, None of anything else."""
    if handles.is_lazy(value):
        return handles.meta_of(value).dtype
    return value.dtype if isinstance(value, np.ndarray) else None


def only_if(holds: Callable[..., bool], reason: str, *names: str) -> Condition:
    """What `holds` says of these arguments (None for those not given) is true; `reason` if it is not."""
    def condition(given: dict[str, Any]) -> str | None:
        return None if holds(*list(map(given.get, names))) else reason

    return condition


def dimensions(names: str, *counts: int) -> Condition:
    """These parameters, if they are arrays, have so many dimensions, and elements."""
    def condition(given: dict[str, Any]) -> str | None:
        for name in names.split():
            shape = shape_of(given.get(name))
            if shape is not None and (len(shape) not in counts or 0 in shape):
                return f"{name} of shape {shape} is not supported on the device"
        return None

    return condition


def not_empty(*names: str) -> Condition:
    """These parameters, if they are arrays, have elements."""
    return only_if(lambda *values: not any(0 in (shape_of(value) or ()) for value in values),
                   "empty arrays are not supported on the device", *names)


def square(name: str) -> Condition:
    """A parameter is one square matrix."""
    def holds(value: Any) -> bool:
        shape = shape_of(value)
        return shape is not None and len(shape) == 2 and shape[0] == shape[1] > 0

    return only_if(holds, f"{name} other than one square matrix is not supported on the device", name)


def one_dtype(*names: str) -> Condition:
    """These parameters, where they are arrays, also in a tuple, have one dtype, which is of floating point."""
    def holds(*values: Any) -> bool:
        found: set[np.dtype] = set()
        for value in values:
            for item in value if isinstance(value, (tuple, list)) else (value,):
                dtype = dtype_of(item)
                # The indices of pivots are no operands.
                if dtype is not None and not (dtype.kind in "iu" and isinstance(value, tuple)):
                    found.add(dtype)
        return len(found) <= 1 and all(dtype.char in "fdFD" for dtype in found)

    return only_if(holds, "integers and mixed dtypes are not supported on the device", *names)


def own_dtype(given: dict[str, Any]) -> str | None:
    """An output is of the input's dtype: the device computes in the input's precision, SciPy in double."""
    output = given.get("output")
    if output is None:
        return None
    try:
        target = dtype_of(output) or np.dtype(output)
    except TypeError:
        return "output= is neither an array nor a dtype"
    return None if dtype_of(given.get("input")) == target else (
        "output= of another dtype than the input is not supported on the device")


def floats_unless(name: str, value: Any) -> Condition:
    """Integers are rounded in another way, unless this parameter has this value."""
    def condition(given: dict[str, Any]) -> str | None:
        whole = any(dtype is not None and dtype.kind in "biu" for dtype in map(dtype_of, given.values()))
        return f"the device rounds integers differently, unless {name}={value!r}" if whole and (
            given.get(name) != value) else None

    return condition


def alike(first: str, second: str, axis: int) -> Condition:
    """Two parameters, where they are arrays, have the same length along an axis (0 or -1)."""
    def holds(*values: Any) -> bool:
        shapes = [shape_of(value) for value in values]
        return None in shapes or len({shape[axis:][:1] for shape in shapes if shape is not None}) == 1

    return only_if(holds, f"{first} and {second} do not match", first, second)


def at_least_two(name: str) -> Condition:
    """There are two rows, so that there is a pair."""
    return only_if(lambda value: (shape_of(value) or (2,))[0] > 1, "there is no pair of rows", name)


def no_more_than(name: str, count: int, reason: str) -> Condition:
    """A parameter has so many elements at most."""
    def holds(value: Any) -> bool:
        shape = shape_of(value)
        return (len(value) if isinstance(value, (list, tuple)) else math.prod(shape or ())) <= count

    return only_if(holds, reason, name)


def not_negative(name: str) -> Condition:
    """A number is not negative."""
    return only_if(lambda value: value is None or isinstance(value, (int, float)) and value >= 0,
                   f"{name}= is not a number of 0 or more", name)


def positive_int(*names: str) -> Condition:
    """These are Python integers."""
    return only_if(lambda *values: all(value is None or isinstance(value, int) for value in values),
                   f"{' or '.join(names)} is not a Python integer", *names)


#: A number of workers is one that SciPy would take: it says nothing about the result.
sensible_workers = only_if(
    lambda n: n is None or isinstance(n, int) and (n > 0 or -(os.cpu_count() or 1) <= n < 0),
    "workers= is not a valid number of workers", "workers")

#: There is one mode for all axes.
one_mode = only_if(lambda mode: mode is None or isinstance(mode, str),
                   "one mode for each axis is not supported on the device", "mode")


def exact_spline(given: dict[str, Any]) -> str | None:
    """No spline whose coefficients the device computes otherwise at the edges."""
    curved = given.get("order", 3) not in (0, 1) and given.get("prefilter", True)
    reflects = given.get("mode") in ("reflect", "grid-mirror")
    return "splines with reflected edges differ on the device" if curved and reflects else None


def not_homogeneous(given: dict[str, Any]) -> str | None:
    """A matrix has no row of its own for the shift, which SciPy checks."""
    matrix, source = shape_of(given.get("matrix")), shape_of(given.get("input"))
    if matrix is None or source is None or len(matrix) < 2 or matrix[-1] == matrix[0] == len(source):
        return None
    return "homogeneous matrices are not supported on the device"
