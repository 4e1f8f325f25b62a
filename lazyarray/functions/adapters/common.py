"""What the adapters share: operands from lists and numbers, values that steer a call, index checks.

An adapter is ``adapter(xp, *args, **kwargs)`` with NumPy's own parameters after ``xp``, the device's namespace. In
place of lazy arrays it gets device arrays (NumPy scalars where a LazyScalar's value is known on the host). ``out`` is
taken out before and filled afterwards by `dispatch`, so an adapter has the parameter for its place in the signature
only. It raises `NotOnDevice` where NumPy shall do the call on the host.
"""
from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ... import devices
from ...errors import NotOnDevice, refuse, wrong
from ...settings import options
from ...storage import transfer, upload_cache
from .. import index_bounds
from ..index_bounds import FETCHED
from ..kinds import WEAK, is_container
from ..pytree import replace

intp = np.dtype(np.intp)
#: Rules of casting under which operands may be cast to the dtype that they have in common.
CASTINGS = frozenset({"safe", "same_kind", "unsafe"})
newest = np.lib.NumpyVersion(np.__version__)


def resolve(xp: Any, path: str) -> Any:
    """The device's function at a dotted path."""
    for name in path.split("."):
        xp = getattr(xp, name)
    return xp


def is_device(xp: Any, obj: Any) -> bool:
    return isinstance(obj, xp.ndarray)


def array(xp: Any, obj: Any, dtype: Any = None) -> Any:
    """`obj` as a device array. Lists are uploaded; one number travels as a kernel argument."""
    if not isinstance(obj, xp.ndarray):
        refuse(hasattr(obj, "coef") or isinstance(obj, np.poly1d), "an argument is a polynomial object")
        host = np.asarray(without_device(obj))
        if not devices.current().can_hold(host.dtype):
            raise NotOnDevice(f"dtype {host.dtype} is not supported on the device")
        if host.size == 1:
            obj = filled(xp, host.shape, host.reshape(())[()], host.dtype)
        else:
            obj = upload_cache.operand(devices.current(), host, "operand given as a list")
    if dtype is not None and obj.dtype != dtype:
        obj = obj.astype(dtype)
    return obj


def array_or_number(xp: Any, obj: Any) -> Any:
    """A device array, or a Python number, which takes the dtype of the array beside it."""
    return obj if type(obj) in WEAK else array(xp, obj)


def filled(xp: Any, shape: Any, value: Any, dtype: Any) -> Any:
    """``xp.full`` that keeps the sign of zero, and takes less time."""
    found = xp.empty(shape, dtype)
    devices.current().assign(found, np.asarray(value, found.dtype)[()])
    return found


def passable(dtype: np.dtype, low: Any, high: Any) -> tuple[Any, Any]:
    """The bounds of a clip, None for a Python integer that no element of the dtype can pass: NumPy leaves that out."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    return low, high


def without_device(obj: Any) -> Any:
    """`obj`, with the 0-d device arrays inside its lists as NumPy scalars; larger ones are stacked on the host."""
    def leaf(item: Any) -> Any:
        refuse(is_container(type(item)), "a list contains itself")
        return fetch(item, "an element of a list")

    return replace(obj, leaf)


def fetch(obj: Any, why: str) -> Any:
    """The host value of a device array that steers the call (a flag, a count, the positions to delete)."""
    device = devices.current()
    if isinstance(obj, device.array_type):
        obj = transfer.to_host(device, obj, why, kind="synchronise")
        return obj[()] if obj.ndim == 0 else obj
    return obj


def fetching(obj: Any, why: str) -> AbstractContextManager[np.ndarray]:
    """A context that ends when the values of a device array that steers the call are there.

    What is issued within it is not waited for.
    """
    return transfer.fetching(devices.current(), obj, why)


def truth(obj: Any, why: str = "truth value") -> bool:
    return bool(fetch(obj, why))


def places_of(xp: Any, a: Any) -> tuple[Any, ...]:
    """Where the elements of a device array with axes are not zero: an array for each axis, of new memory."""
    flags = a if a.dtype.kind == "b" else a != 0
    selected = devices.current().selected(xp.ascontiguousarray(flags)) if flags.size else None
    found = None if selected is None else selected.positions(flags.shape)
    return xp.nonzero(flags) if found is None else found    # type: ignore[no-any-return]


def rows_of(xp: Any, a: Any, mask: Any) -> Any:
    """The rows of a device array in C order where a mask of its first axes is true."""
    selected = devices.current().selected(mask) if a.size and a._c_contiguous and mask._c_contiguous else None
    found = None if selected is None else selected.take(a, mask.ndim)
    return a[mask] if found is None else found


def is_any(flags: Any, why: str) -> bool:
    """Whether one of an array of booleans is set: few are fetched as they are, which needs no kernel."""
    return bool(np.any(fetch(flags if flags.nbytes <= FETCHED else flags.any(), why)))


def are_finite(a: Any, why: str) -> bool:
    """Whether a device array has neither infinities nor NaN, of which one would be in the sum."""
    if a.nbytes <= FETCHED:
        return bool(np.isfinite(fetch(a, why)).all())
    with np.errstate(all="ignore"):     # the simulated device would warn of a sum that overflows
        total = a.sum()
    return bool(np.isfinite(fetch(total, why))) or truth(devices.current().xp.isfinite(a).all(), why)


def refuse_negative_zero(start: Any) -> None:
    """A sum's ``initial=-0.0`` is NumPy's: the device starts from zero, which swallows it."""
    if isinstance(start, (float, complex, np.inexact)) and start == 0 and np.signbit(start.real):
        raise NotOnDevice("sums that start from -0.0 are not supported on the device")


def takes_arrays(path: str, *names: str) -> Callable[..., Any]:
    """An adapter for a device function that differs from NumPy's only in refusing lists and numbers for arrays.

    `names` are NumPy's names of the array parameters, which come first; the device's names may differ.
    """

    def adapter(xp: Any, /, *args: Any, **kwargs: Any) -> Any:
        given = list(args)
        for name in names[len(given):]:
            if name not in kwargs:
                break
            given.append(kwargs.pop(name))
        for i, value in enumerate(given[:len(names)]):
            if value is not None and not isinstance(value, xp.ndarray):
                given[i] = array(xp, value)
        return resolve(xp, path)(*given, **kwargs)

    adapter.__name__ = path.replace(".", "_")
    adapter.__doc__ = f"``xp.{path}`` with arrays in place of lists and numbers in {', '.join(names)}."
    return adapter


def integer(number: Any) -> int:
    """An axis or a count as a number; most of NumPy's functions refuse True and False."""
    refuse(isinstance(number, (bool, np.bool_)), "a boolean axis or count is not supported on the device")
    return operator.index(number)


def numbers(obj: Any) -> Any:
    """A parameter in Python's own numbers and tuples, which is all that the device library takes."""
    if isinstance(obj, (np.ndarray, np.generic)) and obj.dtype.kind != "b":
        obj = obj.tolist()
    return (*map(numbers, obj),) if isinstance(obj, list) else obj


def axis_of(axis: Any) -> Any:
    """`axis` of a reduction as NumPy takes it: None, an integer, or a tuple of integers (a list is an error)."""
    if axis is None:
        return None
    if isinstance(axis, tuple):
        return (*map(integer, axis),)
    return integer(axis)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    return tuple(range(ndim)) if axis is None else normalize_axis_tuple(axis, ndim)


def axis_index(axis: Any, ndim: int) -> int:
    return int(normalize_axis_index(integer(axis), ndim))


def reduced_shape(shape: tuple[int, ...], axis: Any, keepdims: bool) -> tuple[int, ...]:
    axes = axes_of(axis, len(shape))
    if keepdims:
        return tuple([1 if i in axes else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in axes])


def count_of(shape: tuple[int, ...], axis: Any) -> int:
    """How many elements go into one element of a reduction."""
    return math.prod([shape[i] for i in axes_of(axis, len(shape))])


def mask(xp: Any, where: Any, shape: tuple[int, ...]) -> Any:
    """`where=` of a reduction, or None if it is True; NumPy casts it safely, so only bool will do."""
    if where is True or where is np._NoValue:
        return None
    where = array(xp, where)
    refuse(where.dtype != bool, "where= is not a boolean array")
    return xp.broadcast_to(where, shape)


def intp_result(result: Any) -> Any:
    """Indexes as NumPy's intp: CuPy's reductions give "long long", another scalar type of the same size."""
    if result.dtype.char == intp.char:
        return result
    if result.dtype.itemsize != 8 or not result._c_contiguous:
        return result.astype(intp)
    device = devices.current()      # an array of its own: a view would be looked for in all that is known
    return device.view(device.block(result)[0], result.shape, intp, None, 0)


def indices(xp: Any, obj: Any, n: int | None = None, what: str = "index", lazy: Any = None) -> Any:
    """Integer positions on the device, checked against the size `n`; negative ones count from the end, as in CuPy.

    Positions that come as a list or a number are checked on the host, without waiting for the device. `lazy`: the lazy
    array that they are, if they are one, of which more may be known.
    """
    if isinstance(obj, xp.ndarray):
        if obj.dtype.kind not in "iu":
            wrong(obj.dtype.kind != "b", f"{what} is not of integers")
            obj, lazy = obj.astype(intp), None
        if n is not None and obj.size and options.current().check_indices and not index_bounds.are_within(
                lazy, obj, -n, n):
            raise IndexError(f"{what} out of bounds for size {n}")
        return obj.astype(intp, copy=False)
    host = np.asarray(without_device(obj))
    if host.size == 0 and host.dtype == float and not isinstance(obj, np.ndarray):      # such a list
        host = host.astype(intp)
    refuse(host.dtype.kind not in "iub", f"the {what} is not of integers")
    if n is not None and host.size:
        wrong(host.min() < -n or host.max() >= n, f"{what} out of bounds for size {n}")
    return array(xp, host.astype(intp))


def dtype_or_number(value: Any) -> Any:
    """What decides about a result's dtype: an operand's own, or a Python number, which is weak."""
    return value if type(value) in WEAK else getattr(value, "dtype", None) or np.asarray(value).dtype


#: Runs of neighbours that an array is put together of, at most: each is a slice, and no position is uploaded for it
#: (not varied).
MOST_RUNS = 16


def gather(xp: Any, parts: list[Any], places: np.ndarray, axis: int) -> Any:
    """Elements of the joined `parts` along an axis, at places that the host knows.

    A few runs of neighbours, rising or falling, are slices, for which nothing has to be uploaded.
    """
    starts = np.cumsum([0] + [p.shape[axis] for p in parts])
    steps = np.diff(places)
    part = np.searchsorted(starts, places, side="right")
    breaks = (np.diff(part) != 0) | ~np.isin(steps, (-1, 0, 1))
    front = (slice(None),) * axis
    pieces = []
    start = 0
    while start < len(places):
        stop = start + 1
        if stop < len(places) and not breaks[start]:
            step = int(steps[start])
            other = (steps[start:] != step) | breaks[start:]
            stop = len(places) if not other.any() else start + 1 + int(other.argmax())
        else:
            step = 1
        owner = int(part[start]) - 1
        first = int(places[start] - starts[owner])
        if step == 0:
            pieces.append(xp.repeat(parts[owner][(*front, slice(first, first + 1))], stop - start, axis))
        else:
            end = first + step * (stop - start)
            pieces.append(parts[owner][(*front, slice(first, end if end >= 0 else None, step))])
        start = stop
        if len(pieces) > MOST_RUNS:
            joined = parts[0] if len(parts) == 1 else xp.concatenate(parts, axis)
            return xp.take(joined, array(xp, places), axis=axis)
    if not pieces:
        return parts[0][(*front, slice(0, 0))].copy()
    return xp.concatenate(pieces, axis)


@functools.lru_cache(512)
def answer_dtype(func: Callable[..., Any], dtypes: tuple[Any, ...], **kwargs: Any) -> np.dtype:
    """The dtype that NumPy's `func` gives for these dtypes, asked of NumPy itself with arrays of two ones."""
    try:
        with np.errstate(all="ignore"):
            return func(*[np.ones(2, d) if isinstance(d, np.dtype) else d for d in dtypes], **kwargs).dtype
    except (TypeError, ValueError):
        raise NotOnDevice(f"{func.__name__} of {dtypes[0]}") from None


@functools.cache
def tuple_type(name: str) -> type:
    """The named tuple that a function of `numpy.linalg` returns, which has no public name."""
    return type(getattr(np.linalg, name)(np.ones((1, 1))))
