"""Products of arrays, contractions and covariances."""
from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np

from ... import devices
from ...errors import refuse, wrong
from .. import memory_order
from .common import CASTINGS, array, axis_index, is_device, takes_arrays
from .contractions import contracted, labels_of


def _factor(xp: Any, a: Any) -> Any:
    """An operand of a product. An empty list takes the dtype of the other one."""
    found = array(xp, a)
    refuse(not hasattr(a, "dtype") and not found.size, "products with an empty list are not supported on the device")
    return found


def dot(xp: Any, /, a: Any, b: Any, out: Any = None) -> Any:
    a, b = _factor(xp, a), _factor(xp, b)
    found = devices.current().product(a, b) if b.ndim <= 2 else None       # else it is no product of stacks
    return xp.dot(a, b) if found is None else found


def inner(xp: Any, /, a: Any, b: Any) -> Any:
    return xp.inner(_factor(xp, a), _factor(xp, b))


def vdot(xp: Any, /, a: Any, b: Any) -> Any:
    a, b = _factor(xp, a).ravel(), _factor(xp, b).ravel()
    return xp.dot(a.conj() if a.dtype.kind == "c" else a, b)


def cross(xp: Any, /, a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    a, b = array(xp, a), array(xp, b)
    for x, ax in ((a, axisa if axis is None else axis), (b, axisb if axis is None else axis)):
        refuse(x.shape[axis_index(ax, x.ndim)] != 3, "vectors of two dimensions")
    return xp.cross(a, b, axisa, axisb, axisc, axis)


def contract(xp: Any, x1: Any, x2: Any) -> Any:
    """Sum of products over the last axis, the others broadcast."""
    wrong(x1.shape[-1] != x2.shape[-1], "the last dimensions differ")
    return xp.matmul(x1[..., None, :], x2[..., :, None])[..., 0, 0]


def multi_dot(xp: Any, /, arrays: Any, *, out: Any = None) -> Any:
    parts = [_factor(xp, a) for a in arrays]
    wrong(len(parts) < 2, "Expecting at least two arrays.")
    if len(parts) == 2:
        return xp.dot(*parts)
    first, last = parts[0].ndim, parts[-1].ndim
    if first not in (1, 2) or last not in (1, 2) or any(p.ndim != 2 for p in parts[1:-1]):
        raise np.linalg.LinAlgError("arrays must be two-dimensional, the first and the last may have one dimension")
    parts[0], parts[-1] = xp.atleast_2d(parts[0]), parts[-1][:, None] if last == 1 else parts[-1]
    wrong(any(a.shape[1] != b.shape[0] for a, b in zip(parts, parts[1:])), "shapes not aligned")
    result = _in_best_order(xp, parts)
    if first == 1:
        result = result[0]
    return result[..., 0] if last == 1 else result


def _in_best_order(xp: Any, parts: list[Any]) -> Any:
    """The product of matrices with the fewest multiplications, which NumPy takes, too: of dtypes that differ, the order
    shows. Of equal ones it is the one whose last product has the shortest left side.

    Source: T. Cormen et al., Introduction to Algorithms, "Matrix-chain multiplication".
    """
    lengths = [parts[0].shape[0], *[part.shape[1] for part in parts]]

    @functools.cache
    def best(i: int, j: int) -> tuple[int, int]:
        """(Multiplications, where the last product splits) of the parts from `i` to `j`."""
        return min(((best(i, k)[0] + best(k + 1, j)[0] + lengths[i] * lengths[k + 1] * lengths[j + 1], k)
                    for k in range(i, j)), default=(0, i))

    def product(i: int, j: int) -> Any:
        k = best(i, j)[1]
        return parts[i] if i == j else xp.dot(product(i, k), product(k + 1, j))

    return product(0, len(parts) - 1)


def _is_plain(optimize: Any, count: int) -> bool:
    """Whether ``optimize=`` leaves but the order from left to right, as for two operands."""
    return optimize is False or count == 2 and (
        optimize is True or type(optimize) is str and optimize in ("greedy", "optimal"))


_SUBSCRIPTS = r"([a-zA-Z]*(?:,[a-zA-Z]*)*)(?:->([a-zA-Z]*))?"


@functools.lru_cache(1024)
def _steps_in_order(subscripts: str, shapes: tuple[tuple[int, ...], ...], optimize: bool | str) -> tuple[Any, ...]:
    """The contractions that NumPy's ``einsum_path`` makes of one, in turn: which operands go, each result behind those
    that are left, and their subscripts. Empty: there are none but the whole.
    """
    found = re.fullmatch(_SUBSCRIPTS, subscripts.replace(" ", ""))
    path = () if found is None else np.einsum_path(
        subscripts, *[np.broadcast_to(0.0, shape) for shape in shapes], optimize=optimize)[0][1:]
    if found is None or len(path) < 2:
        return ()
    terms, output = found[1].split(","), found[2]
    if output is None:
        labels = "".join(terms)
        output = "".join(sorted(label for label in set(labels) if labels.count(label) == 1))
    lengths = {label: n for term, shape in zip(terms, shapes) for label, n in zip(term, shape)}
    steps = []
    for together in path:
        places = sorted(together, reverse=True)
        given = [terms.pop(i) for i in places]
        needed = set(output).union(*terms)
        kept = "".join(sorted(needed.intersection("".join(given)), key=lambda label: (lengths[label], label)))
        terms.append(kept if terms else output)
        steps.append((tuple(places), ",".join(given) + "->" + terms[-1]))
    return tuple(steps)


def _in_steps(xp: Any, subscripts: str, arrays: list[Any], optimize: Any) -> Any:
    """``einsum`` of several operands, two by two, as ``optimize=`` says; None where that is for the library."""
    dtype = arrays[0].dtype
    if not (optimize is True or type(optimize) is str and optimize in ("greedy", "optimal")) or (
            dtype.char not in "fdFD" or not all(a.dtype == dtype and a.size for a in arrays)):
        return None
    steps = _steps_in_order(subscripts, tuple([a.shape for a in arrays]), optimize)
    if not steps:
        return None
    arrays = list(arrays)
    for places, each in steps:
        given = [arrays.pop(i) for i in places]
        found = contracted(xp, each, given) if len(given) > 1 else None
        arrays.append(xp.einsum(each, *given) if found is None else found)
    return arrays[0]


def _is_view(subscripts: str) -> bool:
    """Whether a sum over one operand adds nothing up."""
    given, arrow, output = subscripts.partition("->")
    labels = list(filter(str.isalpha, given))
    return set(labels) == set(filter(str.isalpha, output)) if arrow else len(set(labels)) == len(labels)


def einsum(xp: Any, /, *operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    operands = list(operands)
    if isinstance(operands[0], str):
        operands[1:] = arrays = [array(xp, o) for o in operands[1:]]
        if out is None and not kwargs and _is_plain(optimize, len(arrays)) and (
                found := contracted(xp, operands[0], arrays, optimize is False)) is not None:
            return found
        if out is None and not kwargs and len(arrays) > 2 and (
                found := _in_steps(xp, operands[0], arrays, optimize)) is not None:
            return found
    else:
        arrays = operands[0:len(operands) // 2 * 2:2]
    dtype = kwargs.pop("dtype", None)
    dtype = None if dtype is None else np.dtype(dtype)
    casting = kwargs.pop("casting", "safe")
    order = kwargs.pop("order", "K")
    refuse(kwargs or order not in ("K", "C", "F"), "these keywords of einsum are not supported on the device")
    refuse(optimize is not False and len({a.dtype for a in arrays}) > 1 and not any(
        all(a.dtype.char in alike for a in arrays) for alike in ("fF", "dD")),     # of which the order shows
           "operands of several precisions in an order of its own are not supported on the device")
    if any(a.dtype.kind == "b" for a in arrays):
        common = np.result_type(*[a.dtype for a in arrays]) if dtype is None else dtype
        refuse(common.kind == "b", "products of booleans are not supported on the device")
        operands = [o.astype(common) if is_device(xp, o) and o.dtype.kind == "b" else o for o in operands]
    refuse(casting not in CASTINGS, "casting= that may refuse operands of several dtypes")
    if len(arrays) == 1 and out is None and isinstance(operands[0], str) and _is_view(operands[0]):
        return xp.einsum(*operands)     # NumPy gives the view, whatever they say
    if dtype is not None:
        if not all(np.can_cast(a.dtype, dtype, casting) for a in arrays):
            raise TypeError("Cannot cast an operand to dtype= by the casting rule")
        refuse(dtype.kind != "c" and any(a.dtype.kind == "c" for a in arrays), "complex values are cast to real ones")
        operands = [o.astype(dtype, copy=False) if is_device(xp, o) else o for o in operands]
        kwargs["dtype"] = dtype
    result = xp.einsum(*operands, optimize=optimize, **kwargs)
    if result.size and not all(a.size for a in arrays):
        result[...] = 0     # which the library may leave out, where there is nothing to add up
    if order != "K":
        return xp.array(result, order=order)
    labels = labels_of(operands[0], tuple([a.ndim for a in arrays])) if isinstance(operands[0], str) and (
        result.ndim > 1 and optimize is False) else None
    return result if labels is None else memory_order.laid_out(
        devices.current(), result, memory_order.order_of_contraction(*labels, arrays))


ADAPTED: dict[Any, Any] = {
    np.dot: dot, np.vdot: vdot, np.inner: inner, np.einsum: einsum, np.cross: cross,
    np.trace: takes_arrays("trace", "a"), np.linalg.matmul: takes_arrays("matmul", "x1", "x2"),
    np.linalg.multi_dot: multi_dot,
}
