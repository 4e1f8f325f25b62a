"""A plain call of a ufunc, the general way: NumPy's loop, the device's function, `out=` and `where=`."""
from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..errors import NotOnDevice
from ..functions import memory_order, tables
from ..functions.kinds import NUMBERS, WEAK
from ..storage import handles, places, views
from ..storage.writeable import may_write
from .function import check_written, read_operand, write

if TYPE_CHECKING:
    from ..devices import Device


#: (ufunc, dtype or type of number for each operand) -> (device function, dtypes of the loop), for all plain calls whose
#: operands and results need no cast: with a signature, such as ``matmul``, with several results, or of scalars, too.
LOOPS: dict = {}


def operand_of(x: Any) -> tuple[Any, Any]:
    """(dtype or Python number type, value) of an operand: lists become arrays, 0-d host arrays scalars."""
    if handles.is_lazy(x):
        return (x._self_value.dtype if x._self_storage is None else handles.meta_of(x).dtype), x
    kind = type(x)
    if kind in NUMBERS:
        return kind, x
    if isinstance(x, np.generic):
        return x.dtype, x
    if isinstance(x, devices.current().array_type):
        return x.dtype, x
    if not isinstance(x, np.ndarray):
        x = np.asarray(x)
    return x.dtype, x[()] if x.ndim == 0 and x.dtype != object else x


def shape_of(x: Any) -> tuple[int, ...]:
    if handles.is_array(x):
        return handles.meta_of(x).shape
    return getattr(x, "shape", ())


def _fits(dtype: np.dtype, kind: Any, value: Any) -> bool:
    if kind is not int or dtype.kind not in "biu":
        return True
    info = np.iinfo(np.int64 if dtype.kind == "b" else dtype)
    return info.min <= value <= info.max


def resolve_dtypes(ufunc: np.ufunc, kinds: Sequence[Any], outs: Sequence[Any], signature: Any = None,
                   casting: str = "same_kind") -> tuple[np.dtype[Any], ...]:
    """NumPy's own choice of the loop: dtypes of all operands."""
    given = tuple(kinds) + tuple([None if o is None else dtype_of(o) for o in outs])
    given += (None,) * (ufunc.nargs - len(given))
    if casting in ("no", "equiv") and not WEAK.isdisjoint(kinds):       # NumPy 2.4 crashes when it is asked
        raise NotOnDevice(f"a Python number with casting={casting!r} is not supported on the device")
    # Python's bool is not a weak number for `resolve_dtypes`.
    given = tuple([np.dtype(bool) if g is bool else g for g in given])
    if signature is not None:
        return ufunc.resolve_dtypes(given, signature=signature, casting=casting)
    return ufunc.resolve_dtypes(given, casting=casting)


def dtype_of(x: Any) -> np.dtype:
    return handles.meta_of(x).dtype if handles.is_lazy(x) else x.dtype


def signature_of(ufunc: np.ufunc, kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """The `signature`, `sig` or `dtype` keyword as a tuple for `resolve_dtypes`, or None."""
    signature = kwargs.get("signature", kwargs.get("sig"))
    if signature is None and kwargs.get("dtype") is not None:
        return (None,) * ufunc.nin + (_named(kwargs["dtype"]),) * ufunc.nout
    if isinstance(signature, str):
        left, _, right = signature.partition("->")
        if not right:
            raise NotOnDevice("signature= has no arrow")
        signature = tuple(left) + tuple(right)
    if signature is None:
        return None
    if len(signature) != ufunc.nargs:
        raise NotOnDevice("the length of signature= does not match the number of operands")
    return (*map(_named, signature),)


def _named(dtype: Any) -> Any:
    """An entry of a signature. A class of dtypes stays one: ``np.dtype`` of it would be object."""
    return dtype if dtype is None or views.is_dtype_class(dtype) else np.dtype(views.no_array(dtype))


def device_function(ufunc: np.ufunc, kind: str = "") -> Callable[..., Any]:
    """The device's function for a ufunc, in a loop of this kind of numbers; NotOnDevice if there is none."""
    entry = tables.UFUNC_BY_KIND.get((ufunc, kind)) or tables.UFUNCS.get(ufunc)
    if entry is None:
        if ufunc in tables.FOREIGN_UFUNCS:
            return tables.FOREIGN_UFUNCS[ufunc]()
        raise NotOnDevice(tables.UFUNC_HOST_ONLY.get(ufunc, "it is not a ufunc of NumPy"))
    if isinstance(entry, str):
        return getattr(devices.current().xp, entry)
    xp = devices.current().xp
    return lambda *args: entry(xp, *args)


def elementwise(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if ufunc.signature is not None and (kwargs.keys() - {"out", "casting", "order", "dtype", "signature", "sig"}):
        raise NotOnDevice(f"{ufunc.__name__} with {', '.join(kwargs)} is not supported on the device")
    outs = kwargs.get("out") or (None,) * ufunc.nout
    if not isinstance(outs, tuple):
        outs = (outs,)
    check_outputs(outs)
    if how := {name: kwargs[name] for name in ("order", "subok") if name in kwargs}:
        np.negative(np.empty(0), **how)     # NumPy's error, if they are wrong
        kwargs = kwargs | {"order": _forced_order(kwargs.get("order"), inputs)}
    if ufunc.nout > 1 and _share_memory(outs):
        raise NotOnDevice("outputs that share memory are not supported on the device")
    function = device_function(ufunc)
    kinds, operands = zip(*list(map(operand_of, inputs)))
    signature = signature_of(ufunc, kwargs)
    try:
        dtypes = resolve_dtypes(ufunc, kinds, outs, signature, kwargs.get("casting", "same_kind"))
    except TypeError:
        if all(isinstance(kind, np.dtype) for kind in kinds):
            raise
        _ask_numpy(ufunc, kinds, operands, outs, True, kwargs)      # it converts Python's numbers before it says so
        raise
    device = devices.current()
    for dtype in dtypes:
        if not device.can_hold(dtype):
            raise NotOnDevice(f"dtype {dtype} is not supported on the device")
    if (ufunc, dtypes[0].kind) in tables.UFUNC_BY_KIND:
        function = device_function(ufunc, dtypes[0].kind)
    shapes = [shape_of(x) for x in operands]
    where, shape = kwargs.get("where", True), None
    if (isinstance(where, np.ndarray) or handles.is_array(where)) and where.dtype != bool:
        raise TypeError(f"Cannot cast array data from {where.dtype!r} to dtype('bool') according to the rule 'safe'")
    core = (0,) * ufunc.nout if ufunc.signature is None else _core_dimensions(ufunc.signature)
    if ufunc.signature is None:
        shape = _broadcast(ufunc, shapes, outs, where, kinds, operands, kwargs)
    ordered = ufunc.signature is None and any(out is None for out in outs)
    with places.on_one(device, operands, outs):
        if not all(map(_fits, dtypes, kinds, operands)):
            return _given(device, (_beyond(ufunc, kinds, operands, dtypes),), (), outs, where, shape, kwargs, core)
        sources: list = []
        arguments = [_argument(device, x, kind, dtype, sources, ufunc)
                     for x, kind, dtype in zip(operands, kinds, dtypes)]
        order, brought = _order(device, arguments, operands, outs) if ordered else (None, False)
        if order is not None:
            # Kernels go through memory in the order of the axes: along the operands' own they are twice as fast.
            arguments = [memory_order.along(a, order) if isinstance(a, device.array_type) else a for a in arguments]
        results = _compute(ufunc, function, kinds, arguments, dtypes, signature is None)
        if type(results) is not tuple:
            results = (results,)
        if order is not None:
            results = tuple([memory_order.back(r, order) for r in results])
        if order is not None or brought:
            results = tuple([memory_order.laid_out(device, r, order) for r in results])
        return _given(device, results, sources, outs, where, shape, kwargs, core)


def _forced_order(order: Any, inputs: tuple[Any, ...]) -> Any:
    """``order=`` in capitals: "A" is Fortran's if all arrays among the inputs lie so, else C's."""
    order = order.upper() if isinstance(order, str) else order
    if order == "A":
        metas = [handles.meta_of(x) if handles.is_lazy(x) else x for x in inputs]
        return "F" if all(x.flags.f_contiguous for x in metas if isinstance(x, np.ndarray)) else "C"
    return order


def _order(device: Device, arguments: Sequence[Any], operands: Sequence[Any],
           outs: Sequence[Any]) -> tuple[tuple[int, ...] | None, bool]:
    """The order of the axes of a new result, and whether a host array, or one of another device, is among the operands:
    the copy may lie otherwise.
    """
    arrays = [(a, x if type(x) is np.ndarray else handles.meta_of(x) if device.spread and handles.is_array(x) else a)
              for a, x in zip(arguments, operands) if isinstance(a, device.array_type)]
    lying = [given for _, given in arrays]
    lying += [handles.meta_of(out) if handles.is_array(out) else out for out in outs if out is not None]
    return memory_order.order_of(lying), any(given is not a for a, given in arrays)


@functools.cache
def _core_dimensions(signature: str) -> tuple[int, ...]:
    """How many core dimensions each result of a generalised ufunc has, optional ones included."""
    results = re.findall(r"\(([^)]*)\)", signature.partition("->")[2])
    return tuple([sum(bool(name.strip()) for name in names.split(",")) for names in results])


def _given(device: Device, results: tuple[Any, ...], sources: Sequence[Any], outs: Sequence[Any], where: Any,
           shape: Any, kwargs: dict[str, Any], core: Sequence[int]) -> Any:
    """What a call returns: its results, in the memory order that was asked for, or written to ``out=``.

    `core`: how many dimensions of each belong to the function itself, which no ``out=`` may broadcast.
    """
    if "order" in kwargs and kwargs["order"] in ("C", "F"):
        results = tuple([device.xp.array(r, order=kwargs["order"]) for r in results])
    for result, out, own in zip(results, outs, core):       # all, before one is written that the host may have to read
        if out is not None:
            if own and shape_of(out)[-own:] != result.shape[-own:] or shape is None and shape_of(out) != result.shape:
                raise NotOnDevice("out= has another shape than the result")
            check_written(out)
    wrapped = []
    for result, out in zip(results, outs):
        if out is None:
            if shape is not None and shape != result.shape:     # that of where=, or of another output
                result = device.xp.broadcast_to(result, shape).copy()
            wrapped.append(handles.wrap(device, result, sources, fresh=True))
        else:
            write(device, out, result, where)
            wrapped.append(out)
    return wrapped[0] if len(wrapped) == 1 else tuple(wrapped)


def check_outputs(outs: Sequence[Any]) -> None:
    """Raise what NumPy raises, before it looks at dtypes, of an `out=` that can't be written."""
    for out in outs:
        if handles.is_scalar(out):
            raise TypeError("return arrays must be of ArrayType")
        if isinstance(out, np.ndarray) and not may_write(handles.meta_of(out) if handles.is_array(out) else out):
            raise ValueError("output array is read-only")


def _share_memory(outs: Sequence[Any]) -> bool:
    """Whether two of the arrays that a ufunc writes do: which of them is written last, NumPy decides."""
    return any(_overlap(a, b) for a, b in itertools.combinations([out for out in outs if out is not None], 2))


def _overlap(a: Any, b: Any) -> bool:
    try:
        return bool(np.shares_memory(a, b, views.MOST_WORK))
    except np.exceptions.TooHardError:
        return True


def _argument(device: Device, x: Any, kind: Any, dtype: np.dtype[Any], sources: list[Any], ufunc: np.ufunc) -> Any:
    if not isinstance(kind, np.dtype):
        if not np.can_cast(kind, dtype, "same_kind") and not (kind is int and dtype.kind in "bu"):
            raise NotOnDevice(f"a Python {kind.__name__} operand for a loop of {dtype} is not supported on the device")
        return dtype.type(x)
    return read_operand(device, x, sources, ufunc)


def _compute(ufunc: np.ufunc, function: Callable[..., Any], kinds: Sequence[Any], arguments: Sequence[Any],
             dtypes: Sequence[Any], plain: bool) -> Any:
    """Call the device function so that it takes NumPy's loop."""
    device = devices.current()
    expected = dtypes[ufunc.nin:]
    if not all(a.dtype == d for a, d in zip(arguments, dtypes)):
        function = _casting(function, tuple(dtypes))
    results = _as_arrays(device, _launched(device, function, arguments))
    if all(r.dtype == d for r, d in zip(results, expected)):
        # What a foreign one runs depends on where it is called.
        if plain and ufunc in tables.UFUNCS:
            LOOPS[ufunc, *kinds] = function, dtypes
        return results
    return tuple([r.astype(d, copy=False) for r, d in zip(results, expected)])


def _casting(function: Callable[..., Any], dtypes: tuple[np.dtype, ...]) -> Callable[..., Any]:
    """A device function that casts its operands first."""
    def cast(*operands: Any) -> Any:
        return function(*[a if a.dtype == d else a.astype(d) for a, d in zip(operands, dtypes)])

    return cast


def _launched(device: Device, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
        raise device.refusal(error) from None


def _as_arrays(device: Device, results: Any) -> Any:
    if type(results) is not tuple:
        results = tuple(results) if type(results) is list else (results,)
    if all(isinstance(r, device.array_type) for r in results):
        return results
    # All operands were host scalars: the device function computed on the host.
    return tuple([r if isinstance(r, device.array_type) else device.xp.asarray(r) for r in results])


def _broadcast(ufunc: np.ufunc, shapes: Sequence[Any], outs: tuple[Any, ...], where: Any, kinds: Sequence[Any],
               operands: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The shape of the result; NumPy's own error if there is none."""
    first = shapes[0]
    if where is True and all(s == first for s in shapes) and all(o is None for o in outs):
        return first
    try:
        every = list(shapes)
        if where is not True:
            every.append(shape_of(where) if handles.is_lazy(where) else np.shape(where))
        shape = np.broadcast_shapes(*every)
        full = {shape_of(o) for o in outs if o is not None}
        fits = not full or len(full) == 1 and np.broadcast_shapes(shape, *full) in full
    except ValueError:
        fits = False
    except RuntimeError:        # np.broadcast_shapes knows 32 dimensions, ufuncs and arrays 64
        raise NotOnDevice("more dimensions than the device supports") from None
    if fits:
        targets = [shape_of(o) for o in outs if o is not None]
        return targets[0] if targets else shape
    _ask_numpy(ufunc, kinds, operands, outs, where, kwargs)
    raise NotOnDevice("these operands cannot be broadcast on the device")


def _ask_numpy(ufunc: np.ufunc, kinds: Sequence[Any], operands: Sequence[Any], outs: Sequence[Any], where: Any,
               kwargs: dict[str, Any]) -> None:
    """Make a call with zeros that take no memory in place of the arrays, so that NumPy raises its own error."""
    blanks = [np.broadcast_to(np.zeros((), kind), shape_of(x)) if isinstance(kind, np.dtype) else x
              for kind, x in zip(kinds, operands)]
    keywords = {key: value for key, value in kwargs.items() if key not in ("out", "where")}
    if any(o is not None for o in outs):
        keywords["out"] = tuple([None if o is None else np.empty(shape_of(o), dtype_of(o)) for o in outs])
    if where is not True:
        keywords["where"] = np.broadcast_to(np.True_, shape_of(where) if handles.is_lazy(where) else np.shape(where))
    with np.errstate(all="ignore"):
        ufunc(*blanks, **keywords)


def _beyond(ufunc: np.ufunc, kinds: Sequence[Any], operands: Sequence[Any], dtypes: Sequence[Any]) -> Any:
    """The result where the loop's dtype can't hold a Python integer: NumPy compares by value, and refuses the rest."""
    small = [x if k is int else np.zeros(1, k if isinstance(k, np.dtype) else d)
             for x, k, d in zip(operands, kinds, dtypes)]
    answer = ufunc(*small)      # raises OverflowError for all but comparisons
    if ufunc not in tables.COMPARISONS:
        raise NotOnDevice("a Python integer is out of range for the dtype")
    device = devices.current()
    shape = np.broadcast_shapes(*list(map(shape_of, operands)))
    result = device.xp.full(shape, bool(answer[0]))
    order = memory_order.order_of([handles.meta_of(x) for x in operands if handles.is_array(x)])
    return result if order is None else memory_order.laid_out(device, result, order)
