"""Products of arrays, contractions and covariances."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import NotOnDevice, refuse, wrong
from .common import array, axis_index, fetch, is_device, takes_arrays


def _factor(xp: Any, a: Any) -> Any:
    """An operand of a product. An empty list takes the dtype of the other one."""
    found = array(xp, a)
    refuse(not hasattr(a, "dtype") and not found.size, "the product with an empty list")
    return found


def dot(xp: Any, /, a: Any, b: Any, out: Any = None) -> Any:
    return xp.dot(_factor(xp, a), _factor(xp, b))


def vdot(xp: Any, /, a: Any, b: Any) -> Any:
    a, b = _factor(xp, a).ravel(), _factor(xp, b).ravel()
    return xp.dot(a.conj() if a.dtype.kind == "c" else a, b)


def tensordot(xp: Any, /, a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = array(xp, a), array(xp, b)
    axes = fetch(axes, "axes")
    if not a.size or not b.size or not (isinstance(axes, (int, np.integer)) or len(axes) == 2):
        raise NotOnDevice("products without elements")
    if not isinstance(axes, (int, np.integer)):
        axes = tuple(tuple(map(int, np.atleast_1d(x))) for x in axes)
    return xp.tensordot(a, b, axes)


def cross(xp: Any, /, a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    a, b = array(xp, a), array(xp, b)
    for x, ax in ((a, axisa if axis is None else axis), (b, axisb if axis is None else axis)):
        refuse(x.shape[axis_index(ax, x.ndim)] != 3, "vectors of two dimensions")
    return xp.cross(a, b, axisa, axisb, axisc, axis)


def linalg_cross(xp: Any, /, x1: Any, x2: Any, *, axis: int = -1) -> Any:
    x1, x2 = array(xp, x1), array(xp, x2)
    if x1.shape[axis_index(axis, x1.ndim)] != 3 or x2.shape[axis_index(axis, x2.ndim)] != 3:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors")
    return xp.cross(x1, x2, axis=axis)


def linalg_outer(xp: Any, /, x1: Any, x2: Any) -> Any:
    x1, x2 = array(xp, x1), array(xp, x2)
    wrong(x1.ndim != 1 or x2.ndim != 1, "Input arrays must be one-dimensional")
    return xp.outer(x1, x2)


def linalg_tensordot(xp: Any, /, x1: Any, x2: Any, *, axes: Any = 2) -> Any:
    return tensordot(xp, x1, x2, axes)


def linalg_trace(xp: Any, /, x: Any, *, offset: int = 0, dtype: Any = None) -> Any:
    x = array(xp, x)
    wrong(x.ndim < 2, "diag requires an array of at least two dimensions")
    return xp.trace(x, offset, -2, -1, dtype)


def vecdot(xp: Any, /, x1: Any, x2: Any, *, axis: int = -1) -> Any:
    x1, x2 = array(xp, x1), array(xp, x2)
    x1, x2 = (xp.moveaxis(x, axis_index(axis, x.ndim), -1) for x in (x1, x2))
    return contract(xp, x1.conj() if x1.dtype.kind == "c" else x1, x2)


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
    while len(parts) > 1:
        # The dearest inner dimension goes first: not always the optimum, but close, and cheap to find.
        i = max(range(len(parts) - 1), key=lambda k: parts[k].shape[1])
        parts[i:i + 2] = [xp.dot(parts[i], parts[i + 1])]
    result = parts[0]
    if first == 1:
        result = result[0]
    return result[..., 0] if last == 1 else result


def einsum(xp: Any, /, *operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    operands = list(operands)
    if isinstance(operands[0], str):
        operands[1:] = [array(xp, o) for o in operands[1:]]
        arrays = operands[1:]
    else:
        arrays = operands[0:len(operands) // 2 * 2:2]
    dtype = kwargs.pop("dtype", None)
    casting = kwargs.pop("casting", "safe")
    order = kwargs.pop("order", "K")
    refuse(kwargs or order not in ("K", "C", "F"), "einsum with other keywords")
    if any(a.dtype.kind == "b" for a in arrays):
        common = np.result_type(*(a.dtype for a in arrays)) if dtype is None else np.dtype(dtype)
        refuse(common.kind == "b", "a product of bool")
        operands = [o.astype(common) if is_device(xp, o) and o.dtype.kind == "b" else o for o in operands]
    if dtype is not None:
        dtype = np.dtype(dtype)
        if not all(np.can_cast(a.dtype, dtype, casting) for a in arrays):
            raise TypeError("Cannot cast an operand to dtype= by the casting rule")
        refuse(dtype.kind != "c" and any(a.dtype.kind == "c" for a in arrays), "complex values are cast to real ones")
        operands = [o.astype(dtype, copy=False) if is_device(xp, o) else o for o in operands]
        kwargs["dtype"] = dtype
    result = xp.einsum(*operands, optimize=optimize, **kwargs)
    return result if order == "K" else xp.array(result, order=order)


def cov(xp: Any, /, m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: float | None = None,
        fweights: Any = None, aweights: Any = None, *, dtype: Any = None) -> Any:
    refuse(fweights is not None or aweights is not None, "weighted covariances")
    m = array(xp, m)
    refuse(not m.size or ddof is not None and ddof != int(ddof), "the covariance of nothing")
    return xp.cov(m, None if y is None else array(xp, y), rowvar, bias, ddof, dtype=dtype)


def corrcoef(xp: Any, /, x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    x = array(xp, x)
    refuse(not x.size, "the covariance of nothing")
    return xp.corrcoef(x, None if y is None else array(xp, y), rowvar, dtype=dtype)


ADAPTED: dict[Any, Any] = {
    np.dot: dot, np.vdot: vdot, np.inner: takes_arrays("inner", "a", "b"), np.outer: takes_arrays("outer", "a", "b"),
    np.kron: takes_arrays("kron", "a", "b"), np.tensordot: tensordot, np.einsum: einsum, np.cross: cross,
    np.trace: takes_arrays("trace", "a"), np.cov: cov, np.corrcoef: corrcoef,
    np.linalg.matmul: takes_arrays("matmul", "x1", "x2"), np.linalg.cross: linalg_cross,
    np.linalg.outer: linalg_outer, np.linalg.tensordot: linalg_tensordot, np.linalg.trace: linalg_trace,
    np.linalg.vecdot: vecdot, np.linalg.multi_dot: multi_dot,
}
