"""Conditions under which a call is not for the device's function: each gives the reason, or None.

They are given the arguments by name, and look at shapes and dtypes only, so that nothing is copied.
"""
from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import wrap

Condition = Callable[[dict[str, Any]], "str | None"]


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of an array, None of anything else."""
    if wrap.is_lazy(value):
        return wrap.outline_of(value).shape
    return value.shape if isinstance(value, np.ndarray) else None


def dtype_of(value: Any) -> np.dtype | None:
    """The dtype of an array, None of anything else."""
    if wrap.is_lazy(value):
        return wrap.outline_of(value).dtype
    return value.dtype if isinstance(value, np.ndarray) else None


def dimensions(names: str, *counts: int) -> Condition:
    """These parameters, if they are arrays, have so many dimensions, and elements."""

    def condition(given: dict[str, Any]) -> str | None:
        for name in names.split():
            shape = shape_of(given.get(name))
            if shape is not None and (len(shape) not in counts or 0 in shape):
                return f"the device's function takes no {name} of shape {shape}"
        return None

    return condition


def not_empty(names: str) -> Condition:
    """These parameters, if they are arrays, have elements."""

    def condition(given: dict[str, Any]) -> str | None:
        empty = [name for name in names.split() if 0 in (shape_of(given.get(name)) or ())]
        return f"{empty[0]} is empty" if empty else None

    return condition


def square(name: str) -> Condition:
    """A parameter is one square matrix."""

    def condition(given: dict[str, Any]) -> str | None:
        shape = shape_of(given.get(name))
        fine = shape is not None and len(shape) == 2 and shape[0] == shape[1] > 0
        return None if fine else f"the device's function takes one square matrix as {name}"

    return condition


def one_dtype(names: str) -> Condition:
    """These parameters, where they are arrays, also in a tuple, have one dtype, which is of floating point."""

    def condition(given: dict[str, Any]) -> str | None:
        found: set[np.dtype] = set()
        for name in names.split():
            value = given.get(name)
            for item in value if isinstance(value, (tuple, list)) else (value,):
                dtype = dtype_of(item)
                # The indices of pivots are no operands.
                if dtype is not None and not (dtype.kind in "iu" and isinstance(value, tuple)):
                    found.add(dtype)
        if len(found) > 1 or any(dtype.char not in "fdFD" for dtype in found):
            return f"the device's function mixes no dtypes: {', '.join(sorted(map(str, found)))}"
        return None

    return condition


def own_dtype(given: dict[str, Any]) -> str | None:
    """An output is of the input's dtype: the device computes in the input's precision, SciPy in double."""
    output = given.get("output")
    if output is None:
        return None
    source = dtype_of(given.get("input"))
    target = dtype_of(output)
    try:
        target = np.dtype(output) if target is None else target
    except TypeError:
        return "SciPy says what is wrong with output="
    return None if source == target else f"the device computes in {source}, and output= is of another dtype"


def floats_unless(name: str, value: Any) -> Condition:
    """Whole numbers are rounded in another way, unless this parameter has this value."""

    def condition(given: dict[str, Any]) -> str | None:
        whole = any(dtype is not None and dtype.kind in "biu" for dtype in map(dtype_of, given.values()))
        return f"the device rounds whole numbers otherwise, unless {name}={value!r}" if whole and (
            given.get(name) != value) else None

    return condition


def same_length(first: str, second: str) -> Condition:
    """The first dimension of two parameters is the same."""

    def condition(given: dict[str, Any]) -> str | None:
        a, b = shape_of(given.get(first)), shape_of(given.get(second))
        return None if a is None or b is None or a[:1] == b[:1] else f"{first} and {second} do not match"

    return condition


def same_columns(first: str, second: str) -> Condition:
    """The last dimension of two parameters is the same."""

    def condition(given: dict[str, Any]) -> str | None:
        a, b = shape_of(given.get(first)), shape_of(given.get(second))
        return None if a is None or b is None or a[-1:] == b[-1:] else f"{first} and {second} do not match"

    return condition


def at_least_two(name: str) -> Condition:
    """There are two rows, so that there is a pair."""

    def condition(given: dict[str, Any]) -> str | None:
        shape = shape_of(given.get(name))
        return None if shape is None or shape[0] > 1 else "there is no pair"

    return condition


def sensible_workers(given: dict[str, Any]) -> str | None:
    """A number of workers is one that SciPy would take: it says nothing about the result."""
    workers = given.get("workers")
    fine = workers is None or isinstance(workers, int) and (workers > 0 or -(os.cpu_count() or 1) <= workers < 0)
    return None if fine else "SciPy says what is wrong with workers="


def exact_spline(given: dict[str, Any]) -> str | None:
    """No spline whose coefficients the device computes otherwise at the edges."""
    curved = given.get("order", 3) not in (0, 1) and given.get("prefilter", True)
    reflects = given.get("mode") in ("reflect", "grid-mirror")
    return "the device's splines are other ones where the edges reflect" if curved and reflects else None


def no_more_than(name: str, count: int, reason: str) -> Condition:
    """A parameter has so many elements at most."""

    def condition(given: dict[str, Any]) -> str | None:
        value = given.get(name)
        shape = shape_of(value)
        size = len(value) if isinstance(value, (list, tuple)) else 1 if shape is None else math.prod(shape)
        return None if size <= count else reason

    return condition


def one_mode(given: dict[str, Any]) -> str | None:
    """There is one mode for all axes."""
    return None if isinstance(given.get("mode", ""), str) else "SciPy says what is wrong with several modes"


def not_homogeneous(given: dict[str, Any]) -> str | None:
    """A matrix has no row of its own for the shift, which SciPy checks."""
    matrix, source = shape_of(given.get("matrix")), shape_of(given.get("input"))
    if matrix is None or source is None or len(matrix) < 2 or matrix[-1] == matrix[0] == len(source):
        return None
    return "SciPy checks a homogeneous matrix"


def not_negative(name: str) -> Condition:
    """A number is not negative; SciPy says what is wrong with others."""

    def condition(given: dict[str, Any]) -> str | None:
        value = given.get(name, 0.0)
        fine = isinstance(value, (int, float)) and value >= 0
        return None if fine else f"SciPy says what is wrong with {name}="

    return condition


def positive_int(*names: str) -> Condition:
    """These are Python integers; SciPy says what is wrong with others."""

    def condition(given: dict[str, Any]) -> str | None:
        wrong = [name for name in names if not isinstance(given.get(name, 1), int)]
        return f"SciPy says what is wrong with {wrong[0]}=" if wrong else None

    return condition
