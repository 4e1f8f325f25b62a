"""Functions that the device library has itself, where the general way is NumPy's own code of many calls.

``np.stack`` is a list of views and one call of ``concatenate``; ``np.nanmean`` a dozen calls. Each is dispatched, which
costs more than the device library's own function as long as arrays are small. So a plain call goes to that function:
its array arguments have one dtype and axes in C order, unless `Direct.freely` says otherwise, and its other arguments
are the usual ones. Whatever else there may be in a call is NumPy's own code's (`numpy_code`), which gives the same
values, and computes the element-wise steps of large arrays by one kernel.

``benchmarks/results/direct-cuda-*.json`` has the times of both ways.

Each function here is the device library's but for what is written beside it. It has the parameters for which both
agree: any other is a TypeError, and the call goes the general way. `NotPlain` does the same by value.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import devices
from ..devices.base import is_negative_zero
from ..devices.operations import PADDINGS
from ..errors import NotOnDevice
from ..storage import upload_cache
from . import memory_order
from .adapters.common import are_finite, axis_index

__all__ = ["DIRECT", "LARGE", "Direct"]

#: Bytes of the arguments from which on one kernel for all element-wise steps is quicker than a kernel for each.
LARGE = 32 << 20

_REALS = "fd"
_INEXACT = "fdFD"
_NUMBERS = "fdFDbBhHiIlLqQ"
_ALL = _NUMBERS + "?"


class Direct(NamedTuple):
    """The device library's own function, and for which arrays it stands for NumPy's: of `least` dimensions or more, and
    `freely` also of several dtypes and with axes in another order."""

    run: Callable[..., Any]
    dtypes: str
    limit: float = LARGE
    least: int = 1
    freely: bool = False

    def applies(self, arrays: Sequence[Any]) -> bool:
        """Whether it may be called with these device arrays."""
        if not arrays:
            return False
        dtype = arrays[0].dtype
        if dtype.char not in self.dtypes or not dtype.isnative:
            return False
        nbytes = 0
        for array in arrays:
            if array.ndim < self.least or not self._takes(array, dtype):
                return False
            nbytes += array.nbytes
        return nbytes < self.limit

    def _takes(self, array: Any, dtype: np.dtype) -> bool:
        if array.dtype != dtype:
            return self.freely and array.dtype.char in self.dtypes and array.dtype.isnative
        return self.freely or array._c_contiguous or _in_order(array.strides)


def _in_order(strides: tuple[int, ...]) -> bool:
    """Whether the axes of a view lie in memory as those of an array in C order do."""
    return strides[-1] > 0 and all(map(operator.ge, strides, strides[1:]))


class NotPlain(NotOnDevice):
    """NumPy's own code has to do a call."""


def _plain(condition: Any) -> None:
    if not condition:
        raise NotPlain("not a plain call")


_INT = frozenset((int,))


def _is_int(*numbers: Any) -> bool:
    return _INT.issuperset(map(type, numbers))


def _are_arrays(xp: Any, given: Any) -> bool:
    return set(map(type, given)) == {xp.ndarray}


def _axis(axis: Any) -> bool:
    return axis is None or type(axis) is int


# -- joined, moved, repeated: no element is computed ---------------------------------------------------

def _arrays(xp: Any, arrays: Any) -> Any:
    """A list or tuple of arrays alone."""
    _plain(type(arrays) in (list, tuple) and _are_arrays(xp, arrays))
    return arrays


def _stack(xp: Any, arrays: Any, axis: int = 0) -> Any:
    _plain(type(axis) is int and type(arrays) in (list, tuple))
    if not _are_arrays(xp, arrays):
        arrays = _with_numbers(xp, arrays)
    shape = arrays[0].shape
    _plain(all(a.shape == shape for a in arrays))
    axis = axis_index(axis, len(shape) + 1)
    place = (slice(None),) * axis + (None,)
    return _together([a[place] for a in arrays], axis)


def _with_numbers(xp: Any, items: Sequence[Any]) -> list[Any]:
    """Device scalars and, of the numbers among them, those of one array, which is uploaded."""
    numbers = [item for item in items if type(item) is not xp.ndarray]
    _plain(all(type(n) in _PYTHON_NUMBERS or isinstance(n, np.generic) and n.dtype.char in _ALL for n in numbers))
    _plain(not any(item.ndim for item in items if type(item) is xp.ndarray))
    host = np.array(numbers)
    _plain(host.dtype.char in _ALL)
    uploaded = iter(upload_cache.operand(devices.current(), host, "host operand of stack"))
    return [item if type(item) is xp.ndarray else next(uploaded) for item in items]


_PYTHON_NUMBERS = frozenset((bool, int, float, complex))


def _together(arrays: Sequence[Any], axis: int) -> Any:
    """Arrays of as many dimensions behind each other, in the dtype that has room for all, laid out as NumPy does it."""
    device, dtypes = devices.current(), {a.dtype for a in arrays}
    if len(dtypes) == 1:
        return memory_order.joined(device, device.joined(arrays, axis), arrays)
    dtype = np.result_type(*dtypes)
    return memory_order.joined(device, device.joined([a.astype(dtype, copy=False) for a in arrays], axis), arrays)


def _joining(ndim: int, axis: int, shape: tuple[Any, ...]) -> Callable[..., Any]:
    """Arrays joined along an axis, those of fewer than `ndim` dimensions after they have got others, as in `shape`."""
    def join(xp: Any, tup: Any) -> Any:
        arrays = [a if a.ndim >= ndim else a[shape[a.ndim]] for a in _arrays(xp, tup)]
        _plain(all(a.ndim == arrays[0].ndim for a in arrays))
        return _together(arrays, min(axis, arrays[0].ndim - 1))

    return join


def _append(xp: Any, arr: Any, values: Any, axis: int | None = None) -> Any:
    _plain(isinstance(arr, xp.ndarray) and _axis(axis))
    if axis is None and type(values) in (int, float):
        one = np.asarray(values)
        _plain(one.dtype.kind in "if" and not is_negative_zero(one))        # an int of more bits is an object
        result = xp.empty(arr.size + 1, np.result_type(arr.dtype, one.dtype))
        result[:-1] = arr.ravel()
        result[-1:] = values
        return result
    _plain(isinstance(values, xp.ndarray))
    if axis is None:
        return devices.current().joined((arr.ravel(), values.ravel()), 0)
    _plain(arr.ndim == values.ndim)
    return devices.current().joined((arr, values), axis_index(axis, arr.ndim))


def _angle(xp: Any, z: Any, deg: bool = False) -> Any:
    _plain(deg is False)
    return xp.angle(z)


def _tile(xp: Any, A: Any, reps: Any) -> Any:
    reps = (reps,) if type(reps) is int else reps
    _plain(type(reps) is tuple and _is_int(*reps) and len(reps) <= A.ndim and min(reps, default=0) > 0)
    return xp.tile(A, reps)


def _resize(xp: Any, a: Any, new_shape: Any) -> Any:
    shape = new_shape if type(new_shape) in (tuple, list) else (new_shape,)
    _plain(_is_int(*shape) and all(n > 0 for n in shape) and a.size > 0)
    size = math.prod(shape)
    flat, repeats = a.ravel(), -(-size // a.size)
    return (flat if repeats == 1 else xp.concatenate((flat,) * repeats))[:size].copy().reshape(shape)


def _roll(xp: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None and a.ndim == 1:
        axis = 0
    if axis is None:
        _plain(_is_int(shift))
        return devices.current().rolled(a.reshape(-1), shift, 0).reshape(a.shape)
    axes = axis if type(axis) is tuple else (axis,)
    shifts = shift if type(shift) is tuple else (shift,) * len(axes)
    _plain(_is_int(*axes, *shifts) and len(shifts) == len(axes) > 0)
    return _rolled(a, zip(axes, shifts))


def _rolled(a: Any, moves: Iterable[tuple[int, int]]) -> Any:
    """An array that is rolled along axes by so many places, along one after the other, in its memory order."""
    device, order = devices.current(), None if a._c_contiguous else memory_order.order_of([a])
    turned = a if order is None else a.transpose(order)
    _plain(turned._c_contiguous or _in_order(turned.strides))
    for axis, shift in moves:
        axis = axis_index(axis, a.ndim)
        turned = device.rolled(turned, shift, axis if order is None else order.index(axis))
    return turned if order is None else turned.transpose(np.argsort(order).tolist())


def _shifted(sign: int) -> Callable[..., Any]:
    """``fftshift``, or with -1 what undoes it."""
    def shift(xp: Any, x: Any, axes: Any = None) -> Any:
        axes = tuple(range(x.ndim)) if axes is None else axes if type(axes) is tuple else (axes,)
        _plain(_is_int(*axes) and axes)
        return _rolled(x, [(axis, sign * (x.shape[axis_index(axis, x.ndim)] // 2)) for axis in axes])

    return shift


def _pad(xp: Any, array: Any, pad_width: Any, mode: Any = "constant", **values: Any) -> Any:
    pairs = pad_width if type(pad_width) in (tuple, list) else (pad_width,)
    _plain(_is_int(*[n for pair in pairs for n in (pair if type(pair) in (tuple, list) else (pair,))]))
    constant = values.pop("constant_values", 0) if mode == "constant" else 0
    _plain(not values and mode in PADDINGS)
    if type(pad_width) is int:
        pairs = ((pad_width, pad_width),) * array.ndim
    elif not (len(pairs) == array.ndim and all(type(pair) in (tuple, list) and len(pair) == 2 for pair in pairs)):
        pairs = np.broadcast_to(pad_width, (array.ndim, 2)).tolist()
    _plain(all(first >= 0 <= last for first, last in pairs))
    if mode == "constant":
        _plain(_is_exactly(constant, array.dtype))
    else:
        most = [length - (mode == "reflect") for length in array.shape]     # of wider ones there are several ideas
        _plain(array.size and (mode == "edge" or all(max(pair) <= length for pair, length in zip(pairs, most))))
    device = devices.current()
    return device.padded(device.contiguous(array), pairs, mode, np.asarray(constant, array.dtype)[()])


def _is_exactly(number: Any, dtype: np.dtype) -> bool:
    """Whether a Python number is one of a dtype, or of a wider one of floats."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return type(number) is int and limits.min <= number <= limits.max
    return type(number) is int and not number or type(number) in (int, float) and dtype.kind in "fc"


def _meshgrid(xp: Any, *xi: Any, indexing: Any = "xy") -> Any:
    _plain(len(xi) > 1 and _are_arrays(xp, xi) and {x.ndim for x in xi} == {1})
    return tuple(xp.meshgrid(*xi, indexing=indexing))


def _real_if_close(xp: Any, a: Any) -> Any:
    return a


# -- computed -------------------------------------------------------------------------------------------

def _of_arrays(name: str, count: int) -> Callable[..., Any]:
    """A function of arrays alone."""
    def call(xp: Any, *arrays: Any) -> Any:
        _plain(len(arrays) == count and _are_arrays(xp, arrays))
        return getattr(xp, name)(*arrays)

    return call


def _diff(xp: Any, a: Any, n: int = 1, axis: int = -1, **ends: Any) -> Any:
    """`ends`: ``prepend=`` and ``append=``, numbers of which NumPy makes arrays of float64 or int64."""
    _plain(_is_int(n, axis) and n > 0 and ends.keys() <= {"prepend", "append"} and all(
        type(one) is float and not is_negative_zero(one)
        or type(one) is int and -1 << 63 <= one < 1 << 63 for one in ends.values()))
    return xp.diff(a, n, axis, **ends)


def _tensordot(xp: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    _plain(isinstance(a, xp.ndarray) and isinstance(b, xp.ndarray))
    return xp.tensordot(a, b, axes)


def _gradient(xp: Any, f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    axes = tuple(range(f.ndim)) if axis is None else axis if type(axis) is tuple else (axis,)
    _plain(_is_int(*axes) and edge_order == 1)
    axes = [axis_index(axis, f.ndim) for axis in axes]
    spacing = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    _plain(0 < len(set(axes)) == len(axes) == len(spacing) and min([f.shape[axis] for axis in axes]) > 1
           and all(type(one) in (int, float) for one in spacing))
    found = [devices.current().differences(f, axis, one) for axis, one in zip(axes, spacing)]
    return found[0] if len(found) == 1 else tuple(found)


def _matrix_power(xp: Any, a: Any, n: int) -> Any:
    _plain(_is_int(n) and n > 0)
    return xp.linalg.matrix_power(a, n)


def _unwrap(xp: Any, p: Any, *, axis: int = -1) -> Any:
    _plain(_is_int(axis) and p.shape[axis] > 1)
    return xp.unwrap(p, axis=axis)


def _ptp(xp: Any, a: Any, axis: Any = None) -> Any:
    _plain(_axis(axis))
    return xp.ptp(a, axis)


def _without_nan(name: str) -> Callable[..., Any]:
    """Means and variances: where one is NaN, NumPy's code finds out whether it has to warn.

    A mean of 1e6 elements takes 94 us so (float64) and 180 by steps that are recorded (float32; see `nanmean` in
    `graph/record/several_steps.py`), which large arrays are left to: 345 of 1e8, where NumPy's code took 625.
    """
    def call(xp: Any, a: Any, axis: Any = None, *, keepdims: bool = False, ddof: int = 0) -> Any:
        _plain(_axis(axis) and type(keepdims) is bool and type(ddof) is int and ddof in (0, 1))
        options = {"ddof": ddof} if name != "nanmean" else {}
        _plain(ddof == 0 or name != "nanmean")
        result = getattr(xp, name)(a, axis, keepdims=keepdims, **options)
        _plain(are_finite(result, "all-NaN check"))
        return result

    return call


def _running(name: str) -> Callable[..., Any]:
    def call(xp: Any, a: Any, axis: Any = None) -> Any:
        _plain(axis is None or _is_int(axis))
        return xp.ascontiguousarray(getattr(xp, name)(a, axis))

    return call


def _covariance(name: str) -> Callable[..., Any]:
    def call(xp: Any, m: Any, y: Any = None, *, rowvar: bool = True) -> Any:
        _plain(type(rowvar) is bool)
        if y is not None:       # two variables
            _plain(_are_arrays(xp, (m, y)) and m.ndim == 1 and m.shape == y.shape)
            m, rowvar = devices.current().joined((m.reshape(1, -1), y.reshape(1, -1)), 0), True
        _plain(m.ndim == 2 and min(m.shape) > 1)
        return getattr(xp, name)(m, rowvar=rowvar)

    return call


_NONE = float("inf")

#: NumPy function -> the device library's own.
DIRECT: dict[Any, Direct] = {
    np.stack: Direct(_stack, _ALL, _NONE, 0, freely=True),
    **{function: Direct(run, _ALL, _NONE, freely=True) for function, run in (
        (np.vstack, _joining(2, 0, (..., np.newaxis))), (np.hstack, _joining(1, 1, ())),
        (np.dstack, _joining(3, 2, (..., np.s_[np.newaxis, :, np.newaxis], np.s_[:, :, np.newaxis]))),
        (np.column_stack, _joining(2, 1, (..., np.s_[:, np.newaxis]))), (np.roll, _roll),
        (np.fft.fftshift, _shifted(1)), (np.fft.ifftshift, _shifted(-1)))},
    **{function: Direct(run, _ALL, _NONE) for function, run in (
        (np.append, _append), (np.tile, _tile), (np.resize, _resize), (np.pad, _pad), (np.meshgrid, _meshgrid))},
    np.angle: Direct(_angle, "FD"), np.real_if_close: Direct(_real_if_close, "fdbBhHiIlLqQ", _NONE),
    np.outer: Direct(_of_arrays("outer", 2), _NUMBERS), np.kron: Direct(_of_arrays("kron", 2), _INEXACT),
    np.gradient: Direct(_gradient, _REALS, _NONE), np.diff: Direct(_diff, _NUMBERS),
    np.tensordot: Direct(_tensordot, _INEXACT), np.linalg.matrix_power: Direct(_matrix_power, _REALS),
    np.unwrap: Direct(_unwrap, _REALS), np.ptp: Direct(_ptp, "fdbBhHiIlLqQ"),
    **{getattr(np, name): Direct(_without_nan(name), _REALS) for name in ("nanmean", "nanvar", "nanstd")},
    np.nancumsum: Direct(_running("nancumsum"), _REALS), np.nancumprod: Direct(_running("nancumprod"), _REALS),
    np.cov: Direct(_covariance("cov"), _REALS), np.corrcoef: Direct(_covariance("corrcoef"), _REALS),
}
