"""Products of matrices, and of stacks of them, by cuBLAS.

For small ones CuPy's own function takes several times as long to find out how to call cuBLAS as the call and the
product take. What is found out here is kept, by shapes and strides. An operand whose axes cuBLAS can't walk is copied.
What is no plain product is left to CuPy: that of two vectors, other dtypes, and numbers for which a program has chosen
another precision.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors.inspection import Unique

__all__ = ["Plan", "Products", "copies_for", "plan_of"]

#: Dtype -> the letter that cuBLAS's functions begin with.
_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
#: Plans that are remembered.
_MOST = 4096
#: Lengths and steps from here on are left to CuPy: cuBLAS counts by 32 bits.
_LONG = 1 << 31


class Matrix(NamedTuple):
    """How matrices lie, in elements: whether columns are what lies together (`turned`), how far it is from one row or
    column to the next, and from one matrix of the stack to the next (0: there is one for all)."""

    turned: bool
    lead: int
    step: int


class Plan(NamedTuple):
    """A product: ``count`` times (rows, depth) by (depth, columns), for a result of this shape in C order."""

    shape: tuple[int, ...]
    rows: int
    columns: int
    depth: int
    count: int
    first: Matrix
    second: Matrix


def _matrix(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, stack: tuple[int, ...]) -> Matrix | None:
    """How the matrices of an operand lie in a stack that they are broadcast to; None if cuBLAS can't walk them."""
    if any(n % itemsize for n in strides):
        return None
    steps = [n // itemsize for n in strides]
    (rows, columns), (down, right) = shape[-2:], steps[-2:]
    if right == 1 or columns == 1:
        turned, lead, least = False, down if rows > 1 else columns, columns
    elif down == 1 or rows == 1:
        turned, lead, least = True, right, rows
    else:
        return None
    missing = len(stack) - (len(shape) - 2)
    step = one_step(stack, [0] * missing + [0 if n == 1 else k for n, k in zip(shape[:-2], steps)])
    if not max(least, 1) <= lead < _LONG or step is None or step < 0:
        return None
    return Matrix(turned, lead, step)


def one_step(lengths: Sequence[int], strides: Sequence[int]) -> int | None:
    """From one element to the next along several axes taken as one, in C order; None if that differs."""
    step, reach = None, 1
    for n, stride in zip(reversed(lengths), reversed(strides)):
        if n == 1:
            continue
        if step is not None and stride != step * reach:
            return None
        step, reach = (stride, n) if step is None else (step, reach * n)
    return step or 0


def plan_of(itemsize: int, a_shape: tuple[int, ...], a_strides: tuple[int, ...], b_shape: tuple[int, ...],
            b_strides: tuple[int, ...]) -> Plan | None:
    """The plan of a product of two stacks of matrices, of which one may be a vector: a row on the left, a column on the
    right. None where it is for CuPy, errors included."""
    row, column = len(a_shape) == 1, len(b_shape) == 1
    if row:
        a_shape, a_strides = (1, *a_shape), (0, *a_strides)
    if column:
        b_shape, b_strides = (*b_shape, 1), (*b_strides, 0)
    if row and column or not a_shape or not b_shape or a_shape[-1] != b_shape[-2] or 0 in a_shape or 0 in b_shape:
        return None
    try:
        stack = np.broadcast_shapes(a_shape[:-2], b_shape[:-2])
    except ValueError:
        return None
    first = _matrix(a_shape, a_strides, itemsize, stack)
    second = _matrix(b_shape, b_strides, itemsize, stack)
    if first is None or second is None:
        return None
    rows, depth, columns, count = a_shape[-2], a_shape[-1], b_shape[-1], math.prod(stack)
    if count > 1 and not second.step and not first.turned and first.step == rows * first.lead:
        rows, count = rows * count, 1       # one below the other
    if max(rows, columns, depth, count) >= _LONG:
        return None
    shape = (*stack, *([] if row else [a_shape[-2]]), *([] if column else [columns]))
    return Plan(shape, rows, columns, depth, count, first, second)


def copies_for(itemsize: int, a_shape: tuple[int, ...], a_strides: tuple[int, ...], b_shape: tuple[int, ...],
               b_strides: tuple[int, ...]) -> tuple[bool, bool] | None:
    """Which operands that have no plan have one as copies in C order; None if that is of no use."""
    a_copied, b_copied = (tuple([itemsize * math.prod(shape[axis + 1:]) for axis in range(len(shape))])
                          for shape in (a_shape, b_shape))
    for copies in ((True, False), (False, True), (True, True)):
        if plan_of(itemsize, a_shape, a_copied if copies[0] else a_strides, b_shape,
                   b_copied if copies[1] else b_strides) is not None:
            return copies
    return None


class _Calls(NamedTuple):
    """cuBLAS's functions for one product and for several, whether CuPy would do it so, and the addresses of 1 and 0."""

    gemm: Any
    batched: Any
    is_usual: Callable[[str], bool]
    one: int
    zero: int
    numbers: np.ndarray


class Products(Unique):
    """Products on the current device and stream.

    Parameters
    ----------
    cupy : module
    load : callable
        Gives CuPy's module of cuBLAS, which is loaded with the first product, and what tells by the character of a
        dtype whether its products are computed as usual.
    copied : callable
        Gives a copy in C order of a device array.
    """

    def __init__(self, cupy: Any, load: Callable[[], tuple[Any, Callable[[str], bool]]],
                 copied: Callable[[Any], Any]) -> None:
        self._copied = copied
        self._ndarray, self._handle, self._load = cupy.ndarray, cupy.cuda.device.get_cublas_handle, load
        #: By the lengths and strides of the operands; which of them are to be copied before.
        self._plans: dict[Any, Plan | tuple[bool, bool] | None] = {}
        #: Dtype -> what is called.
        self._calls: dict[str, _Calls] = {}

    def _calls_of(self, dtype: np.dtype) -> _Calls:
        (cublas, is_usual), letter = self._load(), _LETTERS[dtype.char]
        numbers = np.array([1, 0], dtype)
        address = numbers.ctypes.data
        return self._calls.setdefault(dtype.char, _Calls(
            getattr(cublas, f"{letter}gemm"), getattr(cublas, f"{letter}gemmStridedBatched"), is_usual, address,
            address + numbers.itemsize, numbers))

    def __call__(self, a: Any, b: Any) -> Any:
        """The product of two device arrays as a new one, or None where it is for CuPy."""
        dtype = a.dtype
        if dtype.char not in _LETTERS or b.dtype != dtype:
            return None
        key = dtype.itemsize, a.shape, a.strides, b.shape, b.strides
        plan = self._plans.get(key, key)
        if plan is key:
            if len(self._plans) >= _MOST:
                self._plans.clear()
            plan = self._plans[key] = plan_of(*key) or copies_for(*key)
        if type(plan) is not Plan:
            return None if plan is None else self(*[
                self._copied(one) if copy else one for one, copy in zip((a, b), plan)])
        shape, rows, columns, depth, count, first, second = plan
        gemm, batched, is_usual, one, zero, _ = self._calls.get(dtype.char) or self._calls_of(dtype)
        if not is_usual(dtype.char):
            return None
        out = self._ndarray(shape, dtype)
        # cuBLAS has columns together: what it takes for the product is that of the turned matrices, in the other order.
        if count == 1:
            gemm(self._handle(), second.turned, first.turned, columns, rows, depth, one, b.data.ptr, second.lead,
                 a.data.ptr, first.lead, zero, out.data.ptr, columns)
        else:
            batched(self._handle(), second.turned, first.turned, columns, rows, depth, one, b.data.ptr, second.lead,
                    second.step, a.data.ptr, first.lead, first.step, zero, out.data.ptr, columns, rows * columns, count)
        return out
