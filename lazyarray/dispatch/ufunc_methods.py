"""The methods of ufuncs on the device: reduce, accumulate, reduceat, outer and at."""
from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..devices.operations import ufunc_at
from ..errors import NotOnDevice
from ..functions import index_bounds, memory_order, tables
from ..functions.adapters import common
from ..functions.adapters.reductions import finite_product
from ..graph.record import reductions
from ..storage import facts, handles, views
from ..storage.storage import Storage
from ..storage.writeable import may_write
from . import ufunc_general
from .advanced_indexing import Rows, rows_of
from .assigned_values import value_for
from .function import mask_of, read_operand, upload_operand, write
from .parsed_index import Index
from .small_arrays import is_light

if TYPE_CHECKING:
    from ..devices import Device

_SCANS = {np.add: "cumsum", np.multiply: "cumprod"}


def _dtypes_of(names: str) -> frozenset[np.dtype]:
    return frozenset(map(np.dtype, names.split()))


_NUMBERS = _dtypes_of("int32 uint32 int64 uint64 float32 float64 complex64 complex128")
_ORDERED = _dtypes_of("int32 uint32 int64 uint64 float32 float64")
_ORDERED_UFUNCS = (np.maximum, np.minimum)
_BITS = _dtypes_of("int32 uint32 int64 uint64")
#: Ufuncs whose unbuffered ``at`` the device has, with the dtypes that it can do it for.
_AT = {
    np.add: _NUMBERS, np.subtract: _NUMBERS, np.maximum: _ORDERED, np.minimum: _ORDERED,
    np.bitwise_and: _BITS, np.bitwise_or: _BITS, np.bitwise_xor: _BITS,
}


_USUAL = frozenset({"axis", "keepdims"})


def _is_on_device(x: Any) -> bool:
    """Whether it is a lazy array with axes, of a dtype of the device's."""
    return handles.is_array(x) and type(x._self_storage) is Storage and x.ndim > 0


def _first(method: str) -> tuple:
    """The argument between the array and the keywords: `reduceat` has indices."""
    return ([0],) if method == "reduceat" else ()


@functools.cache
def _dtypes(ufunc: np.ufunc, method: str, dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype]:
    """(dtype the operand is cast to, dtype of the result), as NumPy itself does it for one element."""
    one = np.ones((1, 1), dtype)    # of two dimensions, or an object would come out of its array
    result = getattr(ufunc, method)(one, *_first(method), dtype=wanted)
    signature = {} if wanted is None else {"signature": (wanted, None, None)}
    loop = ufunc.resolve_dtypes((None, dtype, None), reduction=True, casting="unsafe", **signature)[1]
    return loop, result.dtype


@functools.cache
def _reorderable(ufunc: np.ufunc) -> bool:
    """Whether NumPy reduces several axes at once."""
    try:
        ufunc.reduce(np.ones((1, 1), ufunc.types[0][0]), axis=(0, 1))
    except ValueError:
        return False
    return True


def _plan(ufunc: np.ufunc, method: str, array: Any, kwargs: dict[str, Any]) -> Any:
    """(loop dtype, result dtype, axes); where NumPy refuses, NumPy's error, found without looking at the data."""
    wanted, axis = kwargs.get("dtype"), kwargs.get("axis", 0)
    if array.ndim == 0:
        raise NotOnDevice("0-d arrays are not supported on the device")
    if any(isinstance(a, bool) for a in (axis if isinstance(axis, tuple) else (axis,))):
        raise NotOnDevice("a boolean axis= is not supported on the device")
    try:
        axes = tuple(range(array.ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, array.ndim)
        loop, final = _dtypes(ufunc, method, np.dtype(array.dtype), None if wanted is None else views.as_dtype(wanted))
    except (ValueError, TypeError) as error:
        out = kwargs.get("out")
        if out is not None and (type(out) is not tuple or out and out[0] is not None):
            raise NotOnDevice(str(error)) from None     # which has a say in the dtypes
        blank = np.broadcast_to(np.zeros((), array.dtype), array.shape)
        getattr(ufunc, method)(blank, *_first(method), axis=axis, dtype=wanted)
        raise NotOnDevice(str(error)) from None
    if len(axes) != 1 and method != "reduce":
        raise NotOnDevice("several axes are not supported on the device")
    for dtype in (loop, final):
        if not devices.current().can_hold(dtype):
            raise NotOnDevice(f"dtype {dtype} is not supported on the device")
    return loop, final, axes


def _operand(ufunc: np.ufunc, x: Any) -> Any:
    device = devices.current()
    kind, x = ufunc_general.operand_of(x)
    if not isinstance(kind, np.dtype):
        raise NotOnDevice("the argument is a Python number")
    if not device.can_hold(kind):
        raise NotOnDevice(f"{kind} is not supported on the device")
    array = read_operand(device, x, [], ufunc)
    if isinstance(array, np.generic):
        raise NotOnDevice("the scalar is on the host")
    return array


def _finish(result: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], scalar: bool = True) -> Any:
    """Wrap a result of `inputs`, or write it into `out=`."""
    device = devices.current()
    out = kwargs.get("out")
    if type(out) is tuple:
        out = out[0] if out else None
    if out is None:
        sources = [x for x in inputs if handles.is_lazy(x) and x._self_storage is not None]
        return handles.wrap(device, result, sources, scalar=scalar, fresh=True)
    if ufunc_general.shape_of(out) != result.shape or ufunc_general.dtype_of(out) != result.dtype:
        raise NotOnDevice("out= has another shape or dtype than the result")
    write(device, out, result)
    return out


def reduce(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``ufunc.reduce(array, axis=0, dtype=None, out=None, keepdims=False, initial=..., where=True)``."""
    if ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature is not None or ufunc not in tables.PAIRWISE:
        raise NotOnDevice(f"{ufunc.__name__} is reduced in order, which is not supported on the device")
    if (found := reductions.of_ufunc(ufunc, inputs, kwargs)) is not None:
        return found
    if ufunc in reductions.UFUNCS and kwargs.keys() <= _USUAL and _is_on_device(inputs[0]):
        return getattr(np, reductions.UFUNCS[ufunc])(inputs[0], **{"axis": 0, **kwargs})      # which has a shorter way
    array = _operand(ufunc, inputs[0])
    loop, final, axes = _plan(ufunc, "reduce", array, kwargs)
    if len(axes) > 1 and not _reorderable(ufunc):
        raise NotOnDevice("several axes of a ufunc that must be reduced in order")
    device = devices.current()
    keepdims = bool(kwargs.get("keepdims", False))
    initial = kwargs.get("initial", np._NoValue)
    if handles.is_lazy(initial):
        initial = handles.host_of(initial, "initial=")
    where = kwargs.get("where", True)
    if initial is None:
        raise NotOnDevice("initial=None")
    if where is not True:
        fill = ufunc.identity
        if fill is None and initial is not np._NoValue:
            fill = initial
        if fill is None:
            raise NotOnDevice("where= for a ufunc without identity is not supported on the device")
        if ufunc is np.gcd and initial is not np._NoValue:      # which stays as it is where nothing is reduced
            raise NotOnDevice("gcd.reduce with where= and initial= is not supported on the device")
        mask = mask_of(device, where)
        if mask is not True:
            if np.broadcast_shapes(getattr(mask, "shape", ()), array.shape) != array.shape:
                raise NotOnDevice("where= has more elements than the array")
            # In the dtype of the loop, which holds the identity: that of logaddexp is an infinity.
            if mask is False:
                array = common.filled(device.xp, array.shape, np.asarray(fill).astype(loop), loop)
            else:
                array = device.xp.where(mask, array.astype(loop, copy=False), np.asarray(fill).astype(loop)[()])
    count = 1
    for axis in axes:
        count *= array.shape[axis]
    if ufunc is np.add:
        common.refuse_negative_zero(initial)
    if count == 0 and (ufunc.identity is None or initial is not np._NoValue):
        raise NotOnDevice("reduction of an empty array")
    result = _reduced(ufunc, array, axes, loop, final, keepdims)
    if initial is not np._NoValue and initial is not None:
        start = np.empty((), final)
        start[()] = initial     # or NumPy's error
        result = ufunc_general.device_function(ufunc)(result, start[()]).astype(final, copy=False)
    if ufunc is np.multiply and (where is not True or initial is not np._NoValue):
        finite_product(device.xp, result)
    return _finish(memory_order.after(device, "reduced", result, (array, axes), {}), inputs, kwargs)


def _reduced(ufunc: np.ufunc, array: Any, axes: Any, loop: np.dtype[Any], final: np.dtype[Any], keepdims: bool) -> Any:
    xp = devices.current().xp
    name = reductions.UFUNCS.get(ufunc)
    if not axes:
        array = array.astype(loop)
        return _from_identity(ufunc, array).astype(final, copy=False)
    if name in ("sum", "prod"):
        result = getattr(xp, name)(array, axis=axes, dtype=final, keepdims=keepdims)
    elif name is not None and array.size:
        result = getattr(xp, name)(array if name in ("any", "all") else array.astype(loop, copy=False), axis=axes,
                                   keepdims=keepdims)
    else:
        result = _pairwise(ufunc, array.astype(loop, copy=False), axes, keepdims)
    return result.astype(final, copy=False)


def _from_identity(ufunc: np.ufunc, array: Any) -> Any:
    """The reduction of single elements: NumPy begins with the identity, and the gcd of 0 and -6 is 6."""
    return ufunc_general.device_function(ufunc)(array, array.dtype.type(0)) if ufunc is np.gcd else array


def _pairwise(ufunc: np.ufunc, array: Any, axes: Any, keepdims: bool) -> Any:
    """Halve the reduced axis until one element is left."""
    xp = devices.current().xp
    function = ufunc_general.device_function(ufunc)
    kept = [a for a in range(array.ndim) if a not in axes]
    shape = tuple([1 if a in axes else n for a, n in enumerate(array.shape)]) if keepdims else tuple([
        array.shape[a] for a in kept])
    array = array.transpose([*axes, *kept])
    n = 1
    for k in array.shape[:len(axes)]:
        n *= k
    array = array.reshape((n, *array.shape[len(axes):]))
    if n == 0:
        return xp.full(shape, np.asarray(ufunc.identity).astype(array.dtype)[()], array.dtype)
    if n == 1:
        array = _from_identity(ufunc, array)
    while n > 1:
        half = n // 2
        paired = function(array[:half], array[half:2 * half])
        array = xp.concatenate((paired, array[2 * half:])) if n % 2 else paired
        n = array.shape[0]
    return array[0].reshape(shape).copy()


def accumulate(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``ufunc.accumulate(array, axis=0, dtype=None, out=None)``."""
    if ufunc.nin != 2 or ufunc not in tables.PAIRWISE:
        raise NotOnDevice(f"{ufunc.__name__} is accumulated in order, which is not supported on the device")
    wanted = kwargs.get("dtype")
    if ufunc in _SCANS and kwargs.keys() <= {"axis", "dtype"} and type(kwargs.get("axis", 0)) is int and (
            wanted is None or isinstance(wanted, (str, np.dtype)) and np.dtype(wanted).isnative) and (
            _is_on_device(inputs[0])):
        return getattr(np, _SCANS[ufunc])(inputs[0], **{"axis": 0, **kwargs})       # which has a shorter way
    array = _operand(ufunc, inputs[0])
    loop, final, (axis,) = _plan(ufunc, "accumulate", array, kwargs)
    xp = devices.current().xp
    name = _SCANS.get(ufunc)
    if name is not None:
        result = getattr(xp, name)(array, axis=axis, dtype=final)
    else:
        result = _scan(ufunc, array.astype(loop), axis).astype(final, copy=False)
    return _finish(memory_order.after(devices.current(), "all", result, (array,), {}), inputs, kwargs, scalar=False)


def _scan(ufunc: np.ufunc, array: Any, axis: Any) -> Any:
    """Prefix results in log2(n) steps: each adds to an element the one `step` places before."""
    function = ufunc_general.device_function(ufunc)
    xp = devices.current().xp
    array = xp.moveaxis(array, axis, 0)
    step = 1
    while step < array.shape[0]:
        array = xp.concatenate((array[:step], function(array[:-step], array[step:])))
        step *= 2
    return xp.moveaxis(array, 0, axis)


def reduceat(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``numpy.add.reduceat(array, indices, axis=0, dtype=None, out=None)``, which the device has."""
    if ufunc is not np.add:
        raise NotOnDevice(f"{ufunc.__name__}.reduceat is not supported on the device")
    array = _operand(ufunc, inputs[0])
    _, final, (axis,) = _plan(ufunc, "reduceat", array, kwargs)
    device, given, n = devices.current(), inputs[1], array.shape[axis]
    if handles.is_lazy(given) and not np.can_cast(given.dtype, np.intp):
        raise NotOnDevice("indices that are no integers of 64 bits")
    if _is_on_device(given) and not is_light(given) and given.dtype.kind in "iu" and given.ndim == 1 and given.size:
        indices = read_operand(device, given, [], ufunc)
        if not index_bounds.are_within(given, indices, 0, n):
            raise NotOnDevice("indices out of range")
        indices = indices.astype(np.intp, copy=False)
    else:
        host = np.asarray(handles.host_of(given, "indices of reduceat") if handles.is_lazy(given) else given)
        if host.dtype.kind not in "iu" or host.ndim != 1 or host.size and (host.min() < 0 or host.max() >= n):
            raise NotOnDevice("indices out of range or not integers")
        indices = upload_operand(device, host.astype(np.intp), ufunc)
    result = device.sums_from(device.contiguous(array.astype(final, copy=False)), device.contiguous(indices), axis)
    result = result.astype(final, copy=False)       # short integers, and what is true, add up to longer ones
    result = memory_order.laid_out(device, result, memory_order.order_of_sums(array, axis))
    return _finish(result, inputs, kwargs, scalar=False)


def outer(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``ufunc.outer(a, b, **kwargs)``."""
    if len(inputs) != 2 or ufunc.nin != 2 or ufunc.signature is not None:
        raise NotOnDevice("outer needs two arrays")
    if all(map(_is_on_device, inputs)) and inputs[0].ndim + inputs[1].ndim <= 64:
        return ufunc(inputs[0][(Ellipsis,) + (None,) * inputs[1].ndim], inputs[1], **kwargs)    # mostly recorded
    a, b = (x if handles.is_lazy(x) else np.asarray(x) for x in inputs)
    a = handles.as_array(a) if handles.is_scalar(a) else a
    ndim = len(ufunc_general.shape_of(b))
    if ndim + len(ufunc_general.shape_of(a)) > 64:
        raise NotOnDevice("the result has too many dimensions")
    if ndim:
        a = a[(Ellipsis,) + (None,) * ndim]
    return ufunc_general.elementwise(ufunc, (a, b), kwargs)


def at(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``ufunc.at(array, indices, values)``: unbuffered, in place."""
    target, index, *values = inputs
    if handles.is_array(target) and not may_write(handles.meta_of(target)):
        # Before anything else, since NumPy 2.4 writes all the same.
        raise ValueError("array to perform in place operation on is read-only")
    if not handles.is_array(target):
        raise NotOnDevice("the destination is a host array")
    if kwargs or not values or ufunc not in _AT:
        raise NotOnDevice(f"{ufunc.__name__}.at is not supported on the device")
    meta = handles.meta_of(target)
    storage = target._self_storage
    value = values[0]
    dtype = handles.meta_of(value).dtype if handles.is_lazy(value) else np.asarray(value).dtype
    # NumPy's own TypeError comes from here, before it looks at the indices. No number is weak in `at`.
    loop = ufunc.resolve_dtypes((meta.dtype, dtype, None), casting="unsafe")[2]
    if type(storage) is not Storage or meta.dtype not in _AT[ufunc]:
        raise NotOnDevice(f"{ufunc.__name__}.at of {meta.dtype} is not supported on the device")
    exact = ufunc not in _ORDERED_UFUNCS and loop.kind in "iu" and meta.dtype.kind in "iu"
    if loop != meta.dtype and not exact and not loop.kind == meta.dtype.kind in "fc" and not (
            loop.kind in "iu" and _are_within(value, meta.dtype)):
        raise NotOnDevice("the result needs a cast to another kind of number")
    device, rows, parsed = devices.current(), None, None
    named = None if device.spread else rows_of(meta, index)
    if named is None or named.sub is not meta or named.axis or named.are_of(storage):
        named, parsed = None, _checked(meta, index)
    try:
        operand = _combined(device.xp, meta.dtype, value_for(target, meta, value, by_arrays=True), ufunc)
        if named is not None:
            rows = _of_positions(device, meta, named, operand)
        if rows is None:
            parsed = parsed or _checked(meta, index)
            rows = _rows(device, parsed, operand)
    except OverflowError:
        raise NotOnDevice("a Python integer is out of range for the dtype") from None
    except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
        raise device.refusal(error) from None

    combining = np.add if ufunc is np.subtract else ufunc
    # Where the one or the other is taken, the bounds of both hold.
    bounds = facts.widened(target, value) if ufunc in _ORDERED_UFUNCS else None

    def combine_at(array: Any) -> None:
        try:
            if rows is not None:
                device.ufunc_at(combining, array, *rows)
            else:
                items = parsed.device()     # type: ignore[union-attr]
                ufunc_at(device.xp, combining, array, items[0] if len(items) == 1 else items, operand)
        except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
            raise device.refusal(error) from None

    storage.write_device(meta, target._self_array, combine_at)
    facts.keep_widened(target, bounds)


def _are_within(value: Any, dtype: np.dtype) -> bool:
    """Whether values are known to be integers of a dtype: of these one is the greatest in any wider one, too."""
    if dtype.kind not in "iu" or (bounds := facts.bounds_of_value(value)) is None:
        return False
    limits = np.iinfo(dtype)
    return bool(limits.min <= bounds[0] and bounds[1] <= limits.max)


def addend(device: Device, dtype: np.dtype, number: Any) -> Any:
    """A device array of a number for ``ufunc.at`` with elements of a dtype; None where that is no plain cast."""
    if not (type(number) is float and dtype.char == "d" or type(number) is int and dtype.char in "dlq"):
        return None
    try:
        return common.filled(device.xp, (), number, dtype)
    except OverflowError:
        return None


def _combined(xp: Any, dtype: np.dtype, operand: Any, ufunc: np.ufunc) -> Any:
    """What is added, or compared: a device array of the dtype of the target."""
    operand = operand.astype(dtype, copy=False) if isinstance(operand, xp.ndarray) else common.filled(
        xp, (), operand, dtype)
    return xp.negative(operand) if ufunc is np.subtract else operand


def _checked(meta: np.ndarray, index: Any) -> Index:
    parsed = Index(meta, index)
    parsed.check()
    return parsed


def _of_positions(device: Device, meta: np.ndarray, named: Rows, values: Any) -> tuple[int, int, Any, Any] | None:
    """What `Device.ufunc_at` takes, of positions that lie within their axes, and a value for each element."""
    count = len(named.positions)
    if not meta.flags.c_contiguous or values.ndim and values.shape != (*named.forms[0].shape, *meta.shape[count:]):
        return None
    keys, lengths = named.keys(), meta.shape[:count]
    key = keys[0] if count == 1 else device.numbered(keys, lengths, (True,) * count)
    if key.dtype.char not in "ilq":
        key = key.astype(np.dtype(np.int64))
    return 1, math.prod(lengths), device.contiguous(key), device.contiguous(values)


def _rows(device: Device, parsed: Index, values: Any) -> tuple[int, int, Any, Any] | None:
    """What `Device.ufunc_at` takes; None where the axes that are indexed can't be taken as one, and of masks."""
    meta = parsed.meta
    if parsed.plain or parsed.masks or parsed.sub is not meta or not meta.flags.c_contiguous or not meta.size:
        return None
    parsed.settle(device)
    axes, shape = parsed.axes, parsed.shape()
    if axes != tuple(range(parsed.at, parsed.at + len(axes))) or 0 in shape:
        return None
    if values.size > 1 and values.shape != shape:
        try:
            if np.broadcast_shapes(values.shape, shape) != shape:
                return None
        except ValueError:
            return None
        values = device.xp.broadcast_to(values, shape)
    lengths = [meta.shape[axis] for axis in axes]
    key = parsed.key(device)
    if key.shape != parsed.common:
        return None
    if key.dtype.char not in "ilq":
        key = key.astype(np.dtype(np.int64))
    return math.prod(meta.shape[:axes[0]]), math.prod(lengths), device.contiguous(key), device.contiguous(values)


METHODS = {"reduce": reduce, "accumulate": accumulate, "reduceat": reduceat, "outer": outer, "at": at}
