"""NumPy functions that are answered above the device: from metadata, from corners, or by other NumPy functions.

Handlers are as in `views`.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..devices.base import HOLDABLE, is_negative_zero
from ..errors import NotOnDevice, refuse, wrong
from ..settings import options
from ..storage import facts, handles, views
from ..storage.statements import held
from ..storage.storage import Storage
from ..storage.writeable import may_write
from . import index_bounds, memory_order, text
from .adapters import common, indexing, order
from .creation import MAKING
from .pytree import replace
from .views import as_lazy, on_host_side

if TYPE_CHECKING:
    from ..devices import Device

# -- metadata ------------------------------------------------------------------------------------

def _meta_of(obj: Any) -> Any:
    return replace(obj, lambda item: handles.meta_of(item) if handles.is_lazy(item) else item)


def _from_metas(func: Callable[..., Any]) -> Callable[..., Any]:
    """The handler of a function that looks at shapes and dtypes only."""

    @functools.wraps(func)
    def handler(*args: Any, **kwargs: Any) -> Any:
        return func(*_meta_of(args), **{k: _meta_of(v) for k, v in kwargs.items()})

    return handler


def size(a: Any, axis: Any = None) -> Any:
    return np.size(handles.meta_of(a) if handles.is_lazy(a) else a, on_host_side(axis))


def einsum_path(*operands: Any, **kwargs: Any) -> Any:
    given = [_meta_of(o) for o in operands]
    if not isinstance(operands[0], str):        # lists of subscripts come after the arrays, whose values do not matter
        pairs = len(given) // 2 * 2
        given = [_meta_of(o) if i < pairs and i % 2 == 0 else on_host_side(o) for i, o in enumerate(operands)]
    return np.einsum_path(*given, **kwargs)


def min_scalar_type(a: Any) -> np.dtype[Any]:
    # Of a number it is the smallest type that holds the value.
    meta = handles.meta_of(a)
    return np.min_scalar_type(meta if meta.ndim else handles.host_of(a, "numpy.min_scalar_type"))


def _sharing(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def handler(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
        a, b = (as_lazy(x) if handles.is_scalar(x) else x for x in (a, b))
        # What is on the host alone may be an alias of another one: its meta is the ndarray.
        a, b = (handles.meta_of(x) if handles.is_lazy(x) and type(x._self_storage) is not Storage else x
                for x in (a, b))
        if handles.is_lazy(a) and handles.is_lazy(b):
            return a._self_storage is b._self_storage and func(handles.meta_of(a), handles.meta_of(b), *args, **kwargs)
        if not handles.is_lazy(a) and not handles.is_lazy(b):
            return func(a, b, *args, **kwargs)
        x, other = (a, b) if handles.is_lazy(a) else (b, a)
        refuse(not isinstance(other, np.ndarray), "the arguments are not two arrays")
        mirror = x._self_storage.mirror
        if mirror is None:
            return False
        # An alias lies in the mirror as the meta lies in the storage.
        start = other.__array_interface__["data"][0] - mirror.address
        if not 0 <= start < mirror.nbytes:
            return False
        alias = views.meta(other.shape, other.dtype, other.strides, start)
        return func(handles.meta_of(x), alias, *args, **kwargs)

    return handler


# -- text ----------------------------------------------------------------------------------------

def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    shown = text.printable(as_lazy(a), kwargs.get("threshold"), kwargs.get("edgeitems"))
    return np.array2string(shown, *args, **kwargs)


def _text(func: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(func)
    def handler(*args: Any, **kwargs: Any) -> Any:
        x, args = (args[0], args[1:]) if args else (kwargs.pop(name), ())
        return func(text.printable(as_lazy(x)), *args, **kwargs)

    return handler


# -- parts that depend on values -------------------------------------------------------------------

def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    x = as_lazy(filt)
    meta = handles.meta_of(x)
    trim = trim.lower()
    if trim not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = common.axes_of(axis, meta.ndim)
    if not axes:
        return x
    refuse((axis is not None or meta.ndim != 1) and common.newest < "2.2.0",
           "several axes are not supported on the device")
    xp = devices.current().xp
    places = common.places_of(xp, handles.operand_of(x))
    cut = [slice(None)] * meta.ndim
    if places[0].size:
        ends = common.fetch(xp.stack([e for p in places for e in (p.min(), p.max())]), "where the zeros end")
        for i in axes:
            cut[i] = slice(int(ends[2 * i]) if "f" in trim else None, int(ends[2 * i + 1]) + 1 if "b" in trim else None)
    else:
        for i in axes:
            cut[i] = slice(0, 0)
    return handles.view_of(x, meta[tuple(cut)])


def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    refuse(not copy and not handles.is_array(x), "copy=False for an argument that is not an array")
    device, y = devices.current(), as_lazy(x)
    d = handles.operand_of(y)
    if d.dtype.kind in "fc":
        given = [v if v is None or isinstance(v, (int, float)) and not is_negative_zero(v) else (
            common.array(device.xp, _device_or_host(v))) for v in (nan, posinf, neginf)]
        refuse(any(getattr(v, "dtype", d.dtype).kind == "c" for v in given), "complex replacements")
        with device.noting:
            d = memory_order.after(device, "copied", device.xp.nan_to_num(d, True, *given), (d,), {})
    elif copy:
        d = d.copy("K")
    if copy:
        return handles.wrap(device, d)
    if handles.meta_of(y).dtype.kind in "fc":
        y[...] = handles.wrap(device, d, scalar=False)
    return y if d.ndim else y[()]


# -- reading by position ----------------------------------------------------------------------------

def _as_numpy_decides(handler: Callable[..., Any]) -> Callable[..., Any]:
    """A handler that computes on the device: whatever that refuses, NumPy does, or raises its own error for it."""

    @functools.wraps(handler)
    def decided(*args: Any, **kwargs: Any) -> Any:
        device = devices.current()
        if (reason := device.usable()) is not None:
            raise NotOnDevice(reason)
        try:
            return handler(device, *args, **kwargs)
        except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
            raise device.refusal(error) from None

    return decided


def _operand(device: Device, obj: Any) -> Any:
    return handles.operand_of(as_lazy(obj)) if handles.is_lazy(obj) else common.array(device.xp, obj)


def _positions(obj: Any) -> tuple[Any, Any]:
    """Positions as an adapter gets them, and the lazy array that they are, or None."""
    return (handles.operand_of(obj), obj) if handles.is_array(obj) else (on_host_side(obj), None)


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    if type(indices) is int and out is None and mode == "raise" and handles.is_array(a) and (
            type(a._self_storage) is Storage):
        if axis is None and handles.meta_of(a).flags.c_contiguous:
            a, axis = a.reshape(-1), 0
        if type(axis) is int and 0 <= axis < a.ndim and 0 <= indices < a.shape[axis]:      # the others have more to say
            found = a[(slice(None),) * axis + (indices,)]
            return found.copy() if handles.is_array(found) else found
    elif type(indices) is type(a) is handles.array_type and out is None and mode == "raise" and (
            axis is None or type(axis) is int and axis == 0) and handles.meta_of(a).flags.c_contiguous:
        form = handles.meta_of(indices)     # of others the result is in C order, and that of an index is not
        if form.flags.c_contiguous and form.ndim and form.dtype.kind in "iu" and handles.meta_of(a).ndim:
            try:
                return (a if axis == 0 else a.reshape(-1))[indices]
            except IndexError:      # NumPy has words of its own for it
                pass
    return _taken(a, indices, axis, out, mode) if out is None else held(
        (a, indices, out), _taken, a, indices, axis, out, mode)


@_as_numpy_decides
def _taken(device: Device, a: Any, indices: Any, axis: Any, out: Any, mode: str) -> Any:
    array, (places, lazy) = _operand(device, a), _positions(indices)
    if axis is None:
        array, axis = array.ravel(), 0
    axis = common.axis_index(axis, array.ndim)
    result = device.xp.take(array, indexing.by_mode(device.xp, places, array.shape[axis], mode, lazy), axis=axis)
    found = handles.fresh(device, result)
    if out is None:
        return found
    refuse(getattr(out, "shape", None) != result.shape or out.dtype != result.dtype,
           "out= has another shape or dtype than the result")
    np.copyto(out, found if handles.is_lazy(out) else handles.host_of(found, "out= is a host array"))
    return out


@_as_numpy_decides
def take_along_axis(device: Device, arr: Any, indices: Any, axis: int | None = -1) -> Any:
    array, (places, lazy) = _operand(device, arr), _positions(indices)
    wrong(places.dtype.kind not in "iu", "`indices` must be an integer array")
    if axis is None:
        wrong(places.ndim != 1, "when axis=None, `indices` must have a single dimension.")
        array, axis = array.ravel(), 0
    wrong(array.ndim != places.ndim, "`indices` and `arr` must have the same number of dimensions")
    axis = common.axis_index(axis, array.ndim)
    n = array.shape[axis]
    found = common.indices(device.xp, places, n, lazy=lazy)     # after which bounds may be known
    low, high = (places.min(initial=0), places.max(initial=0)) if lazy is None else facts.bounds_of(lazy) or (-1, n)
    result = indexing.taken_along(device.xp, array, found, axis, low < 0 or high >= n)
    return handles.fresh(device, result)


@_as_numpy_decides
def bincount(device: Device, x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    places, lazy = _positions(x)
    weights = _device_or_host(weights)
    return handles.fresh(device, indexing.bincount(device.xp, places, weights, on_host_side(minlength), lazy))


@_as_numpy_decides
def digitize(device: Device, x: Any, bins: Any, right: bool = False) -> Any:
    known = facts.known_of(bins) if handles.is_array(bins) else None       # before they are looked at
    bins = _device_or_host(bins)
    found = handles.fresh(device, order.digitize(device.xp, _device_or_host(x), bins, on_host_side(right), known))
    index_bounds.note(np.digitize, (x, bins), {}, found)
    return found


# -- writing by position ----------------------------------------------------------------------------

def _device_or_host(obj: Any) -> Any:
    """What the adapters take for an array: a device array of a lazy one, the object itself otherwise."""
    return handles.operand_of(obj) if handles.is_lazy(obj) else obj


def _target(x: Any) -> np.ndarray:
    """The meta of what is written to. NumPy does what goes wrong: it may have written some of it by then."""
    refuse(not handles.is_array(x), "the destination is a host array")
    meta = handles.meta_of(x)
    if type(x._self_storage) is not Storage or meta.ndim == 0 or not may_write(meta):
        raise NotOnDevice("the target is 0-d, read-only or on the host")
    return meta


def _write(x: Any, index: tuple[Any, ...], values: Any, given: Any) -> None:
    """Assign `values`; `given`: the lazy array that the index, or a view in it, is of, or None."""
    sources = () if given is None else (given,)
    if given is not None and given._self_storage is x._self_storage:    # the device's threads know no order
        index, sources = tuple([i.copy() for i in index]), ()
    items = tuple([handles.wrap(devices.current(), i, sources, scalar=False) for i in index])
    # They have been checked, or brought into range.
    options.options(check_indices=False).run(operator.setitem, x, items, values)


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    meta, xp = _target(a), devices.current().xp
    if mode == "raise" and type(ind) is handles.array_type and meta.flags.c_contiguous and (
            _is_one_for_each(meta, ind, v)):
        try:
            a.reshape(-1)[ind] = v
        except IndexError:      # NumPy writes what comes before
            pass
        else:
            return
    try:
        places, lazy = _positions(ind)
        if getattr(places, "dtype", None) == np.uint64:
            raise NotOnDevice("positions of uint64 are not for put")
        places = indexing.by_mode(xp, places, meta.size, mode, lazy).ravel()
        given = _device_or_host(v)
        if not hasattr(given, "dtype"):     # numbers and lists come in the array's own dtype
            given = np.array(given, meta.dtype)
        if places.size == 0 or given.size == 0:
            return
        if given.size == 1 and isinstance(given, np.ndarray):
            values = given.reshape(())[()]
        else:
            values = common.array(xp, given).ravel()
            if values.size not in (1, places.size):
                values = xp.take(values, xp.arange(places.size) % values.size)
            values = handles.wrap(devices.current(), values, (v,) if handles.is_lazy(v) else (), scalar=False)
    except (IndexError, TypeError, ValueError, OverflowError):
        raise NotOnDevice("indices out of range or not integers") from None
    if meta.flags.c_contiguous:
        _write(a.reshape(-1), (places,), values, lazy)
    else:
        _write(a, indexing.at(xp, places % meta.size, meta.shape), values, None)


def _is_one_for_each(meta: np.ndarray, ind: Any, v: Any) -> bool:
    """Whether a value is a number that an array has, or has an element of its dtype for each position of a vector."""
    form = handles.meta_of(ind)
    if form.ndim != 1 or not form.size or form.dtype.kind not in "iu" or form.dtype == np.uint64:
        return False
    if type(v) in _REAL:
        return meta.dtype.kind in "fc"
    return type(v) is handles.array_type and handles.meta_of(v).dtype == meta.dtype and (
        handles.meta_of(v).shape == form.shape)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    meta, xp = _target(arr), devices.current().xp
    positions, lazy = _positions(indices)
    positions = common.array(xp, positions)
    if axis is None or positions.dtype.kind not in "iu" or positions.ndim != meta.ndim or meta.size == 0:
        raise NotOnDevice("axis= is None, or the indices have another number of dimensions")
    axis = common.axis_index(axis, meta.ndim)
    try:
        positions = common.indices(xp, positions, meta.shape[axis], lazy=lazy)
    except IndexError:
        raise NotOnDevice("indices out of range or not integers") from None
    _write(arr, indexing.along(xp, meta.shape, positions, axis), values, lazy)


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    x = as_lazy(x)
    if np.isscalar(condlist) or not isinstance(condlist[0], (list, np.ndarray)) and x.ndim != 0:
        condlist = [condlist]
    conditions = [c if handles.is_array(c) and c.dtype == bool else c.astype(bool) if handles.is_lazy(c) else (
        np.asarray(c, dtype=bool)) for c in condlist]
    n = len(conditions)
    if len({c.shape for c in conditions}) > 1:
        np.asarray([np.empty(c.shape, bool) for c in conditions])       # NumPy words it
    if n == len(funclist) - 1:
        other = ~functools.reduce(np.logical_or, conditions)
        conditions.append(other)
    elif n != len(funclist):
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    result = np.zeros_like(x)
    plain = x.ndim and x.dtype.isnative and x.flags.c_contiguous and all(
        c.shape == x.shape and c.flags.c_contiguous for c in conditions)
    for condition, func in zip(conditions, funclist):
        if callable(func):
            values = x[condition]
            if values.size > 0:
                result[condition] = func(values, *args, **kw)
        elif plain and isinstance(func, (bool, int, float, complex, np.number, np.bool_)):
            one = np.empty((), x.dtype)
            one[...] = func
            result = np.where(condition, one[()], result)
        else:
            result[condition] = func
    return result


# -- one assignment ------------------------------------------------------------------------------

_REAL = frozenset((bool, int, float))


def _copied_to(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> bool:
    if where is not True or type(dst) is not handles.array_type:
        return False
    meta = handles.meta_of(dst)
    dtype = meta.dtype
    if type(src) in _REAL:
        if dtype.kind not in "fc" and not (type(src) is int and dtype.kind == "i") or casting != "same_kind":
            return False
    elif type(src) is not handles.array_type or casting not in _CASTINGS or not np.can_cast(
            handles.meta_of(src).dtype, dtype, casting) or handles.meta_of(src).dtype not in HOLDABLE:
        return False
    elif meta.ndim and handles.same_place(src, dst):
        return True     # it may be read-only
    dst[...] = src
    return True


_CASTINGS = frozenset(("no", "equiv", "safe", "same_kind"))


def _diagonal_filled(a: Any, val: Any, wrap: Any = False) -> bool:
    if type(a) is not handles.array_type or type(val) not in _REAL or type(wrap) is not bool:
        return False
    meta = handles.meta_of(a)
    if meta.ndim != 2 or not meta.size or not meta.flags.c_contiguous or meta.dtype.kind not in "fc" or (
            not may_write(meta)):       # NumPy has words of its own for it
        return False
    columns = meta.shape[1]
    a.reshape(-1)[:None if wrap else columns * columns:columns + 1] = val
    return True


#: Functions that are one assignment to a view where the call is plain -> what does that, and says whether it did.
ASSIGNING: dict[Any, Callable[..., bool]] = {np.copyto: _copied_to, np.fill_diagonal: _diagonal_filled}

LAZY: dict[Any, Callable[..., Any]] = {
    **MAKING,
    **{func: _from_metas(func) for func in (
        np.shape, np.ndim, np.result_type, np.can_cast, np.common_type, np.iscomplexobj, np.isrealobj)},
    np.size: size, np.einsum_path: einsum_path,
    **{func: _sharing(func) for func in (np.shares_memory, np.may_share_memory)},
    np.array_repr: _text(np.array_repr, "arr"), np.array_str: _text(np.array_str, "a"),
    np.min_scalar_type: min_scalar_type, np.array2string: array2string,
    np.trim_zeros: trim_zeros, np.take: take, np.take_along_axis: take_along_axis,
    np.bincount: bincount, np.digitize: digitize,
    np.nan_to_num: nan_to_num, np.put: put, np.put_along_axis: put_along_axis,
    np.piecewise: piecewise,
}
