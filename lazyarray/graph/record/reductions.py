"""Reductions of recorded work, and of large arrays where one kernel is better than the device library's.

A call is taken if its operand is pending, or large, and all its keywords are of the plain kind; None leaves it to the
general way, errors included. Dtypes are those of the adapters: NumPy's for the result, and for what is added up.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...devices.program import Extent, Program, Reduction, extent_of, is_slow_to_compile
from ...storage import facts, handles, views
from ...storage.handles import new_array, new_scalar
from ...storage.storage import Storage
from ..node import Leaf, Node, least_bytes, native
from ..reduction import kernel_of, reading, reduced
from .memory_order import is_flat
from .operands import leaf_of, seen_in

__all__ = ["LARGE", "MOST", "TAKEN", "UFUNCS", "for_native", "of_ufunc", "of_vectors", "taken"]

_none = np._NoValue
_float64, _float32, _intp, _bool = (np.dtype(t) for t in (np.float64, np.float32, np.intp, np.bool_))
_longs = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
#: The dtypes that kernels reduce.
_KNOWN = frozenset("?bBhHiIlLefdFD")
_FLOATING = frozenset("fdFD")

_AXIS = ("axis", "out", "keepdims", "initial", "where")
_SUM = ("axis", "dtype", "out", "keepdims", "initial", "where")
_SPREAD = ("axis", "dtype", "out", "ddof", "keepdims")
#: NumPy's function -> (name of the reduction, its parameters after the array, those that are given by name only).
TAKEN: dict[Callable[..., Any], tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    np.sum: ("sum", _SUM, ()), np.prod: ("prod", _SUM, ()),
    np.max: ("max", _AXIS, ()), np.min: ("min", _AXIS, ()), np.amax: ("max", _AXIS, ()), np.amin: ("min", _AXIS, ()),
    np.all: ("all", _AXIS[:3], ("where",)), np.any: ("any", _AXIS[:3], ("where",)),
    np.mean: ("mean", _SUM[:4], ("where",)), np.var: ("var", _SPREAD, ("where", "correction")),
    np.std: ("std", _SPREAD, ("where", "correction")),
    np.argmax: ("argmax", _AXIS[:2], ("keepdims",)), np.argmin: ("argmin", _AXIS[:2], ("keepdims",)),
    np.count_nonzero: ("count", ("axis",), ("keepdims",)), np.linalg.norm: ("norm", ("ord", "axis", "keepdims"), ()),
}
#: Order of a norm of vectors -> what makes it of the magnitudes.
_VECTORS: dict[Any, Callable[..., Any]] = {1: np.sum, np.inf: np.max, -np.inf: np.min}
#: Ufunc -> the name of its reduction, which is a function of the device library, too.
UFUNCS: dict[np.ufunc, str] = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logical_and: "all",
    np.logical_or: "any",
}
_METHOD = frozenset(_SUM)
#: Keywords that say nothing, with these values.
_SILENT = {"out": (None,), "initial": (_none,), "where": (_none, True)}

#: From so many bytes on, arrays that are computed already are reduced here if the device library is slow (`_is_slow`).
LARGE = 1 << 18
#: From so many bytes on they are looked at for this at all.
LOOKED_AT = LARGE
#: Bytes from which on the device library's own reduction of an array that is there is as fast.
MOST = 16 << 20
_SEVERAL_PASSES = frozenset({"var", "std", "norm", "count"})
_POSITIONS = frozenset({"argmin", "argmax"})


def taken(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function in `TAKEN`, or None."""
    x = args[0] if args else None
    if not _may_be(x) and (func is not np.linalg.norm or type(x) is not handles.array_type):
        return None     # most calls, most often
    name, names, named = TAKEN[func]
    if not kwargs or kwargs.keys() <= _USUAL:
        if len(args) == 1:
            return _reduced(name, x, kwargs)
        if len(args) == 2 and names[0] == "axis" and "axis" not in kwargs:
            return _reduced(name, x, {"axis": args[1], **kwargs})
    given = dict(zip(names, args[1:]))
    if len(args) > len(names) + 1 or not kwargs.keys() <= {*names[len(args) - 1:], *named}:
        return None
    given.update(kwargs)
    if name == "norm" and (along := _VECTORS.get(_of_vector(x, given))) is not None:
        del given["ord"]
        return along(np.absolute(x), **given)
    return _reduced(name, x, given)


def of_vectors(a: Any, b: Any, conjugated: bool = False, seen: bool = False) -> Any:
    """The sum of the products of two lazy vectors of one dtype, or None: one kernel, with what they are computed from.

    `conjugated`: that of the first one with the second. `seen`: arrays of one shape are seen as vectors.
    """
    kind = handles.array_type
    if native is None or type(a) is not kind or type(b) is not kind:
        return None
    first, second = handles.meta_of(a), handles.meta_of(b)
    if (first.ndim > 1 and not seen) or not first.ndim or not first.size or first.shape != second.shape or (
            first.dtype != second.dtype or first.dtype.char not in _FLOATING):
        return None
    if conjugated and first.dtype.kind == "c":
        a = native.recorded(np.conjugate, (a,))
    products = None if a is None else native.recorded(np.multiply, (a, b))
    return None if products is None else np.sum(products)


def _of_vector(x: Any, given: dict[str, Any]) -> Any:
    """The order of a norm of vectors of floating point numbers, or None."""
    order, axis = given.get("ord"), given.get("axis")
    plain = (x.ndim > 0 if type(axis) is int else axis is None and x.ndim == 1) and type(order) in (int, float)
    return order if plain and x.dtype.kind in "fc" and x.size and type(x._self_storage) is Storage else None


def of_ufunc(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of ``ufunc.reduce``, or None."""
    name = UFUNCS.get(ufunc)
    if name is None or not _may_be(inputs[0]):
        return None
    given = {"axis": 0, **kwargs}
    if not given.keys() <= _METHOD:
        return None
    out = given.get("out")
    if type(out) is tuple and len(out) == 1 and out[0] is None:
        del given["out"]
    if name not in ("sum", "prod") and given.pop("dtype", None) is not None:
        return None
    return _reduced(name, inputs[0], given)


def _may_be(x: Any) -> bool:
    """Whether `x` is recorded work, or large."""
    if handles.array_type is not type(x):
        return False
    if x._self_storage.pending is not None:
        return True
    least, array = least_bytes(), x._self_meta if x._self_array is None else x._self_array
    return least is not None and array.nbytes >= LOOKED_AT


class _Request(NamedTuple):
    """What is asked for.

    `order`: the axes of the operand from the outermost in memory to the innermost, None if they are in order, and then
    `flat`: whether it is C-contiguous. `slow`: see `_is_slow`. `lengths` of the result in memory order, and the axes
    that then make NumPy's of it (`turned`).
    """

    reduction: Reduction
    extent: Extent
    freedom: float
    lengths: tuple[int, ...]
    turned: list[int] | None
    order: tuple[int, ...] | None
    flat: bool
    slow: bool


_USUAL = frozenset({"axis", "keepdims"})
#: Types whose values mean the same where they are equal; and classes that stand for a dtype.
_CLEAR = frozenset({type(None), bool, int, float, str, type(_none)})
_CLASSES = frozenset({bool, int, float, complex, *(np.dtype(char).type for char in _KNOWN)})
#: Requests that were met, by name, dtype, shape and strides, and the keywords.
_requests: dict[Any, _Request | None] = {}


def _reduced(name: str, x: Any, given: dict[str, Any]) -> Any:
    found = _source(x)
    if found is None:
        return None
    source, dtype, meta = found
    key: list[Any] = [name, dtype, meta.shape, meta.strides]
    for item in given.items():
        kind = type(item[1])
        if kind not in _CLEAR and not _is_clear(item[1]):
            request = _requested(name, dtype, meta, given)
            break
        key.append(item)
        key.append(kind)        # since True == 1
    else:
        request = _remembered(tuple(key), meta, given)
    device = x._self_storage.device
    if request is None or device.usable() is not None:
        return None
    if type(source) is Leaf:
        if not request.slow:
            return None
        if request.order is not None:
            source.array = source.array.transpose(request.order)
        source.mode = "flat" if request.flat else "strided"
    made = reduced(device, source, request.reduction, request.extent, request.freedom, request.lengths)
    if made is None:
        if type(source) is Leaf or not request.slow:
            return None
        handles.operand_of(x)       # which is better kept; then it is reduced where it is
        return _reduced(name, x, given) if x._self_storage.pending is None else None
    result, stream = made
    if not request.lengths:
        return new_scalar(Storage(device, result, stream), None, result)
    if request.turned is not None:
        result = result.transpose(request.turned)
        if name in _POSITIONS:
            with device.on(device.device_of(result)):
                result = device.contiguous(result)      # NumPy's are in C order
    array = new_array(Storage(device, result, stream), None, result)
    if (greatest := _greatest(name, dtype, request.extent, given)) is not None:
        _note_greatest(array, greatest)
    return array


def _greatest(name: str, dtype: np.dtype, extent: Extent, given: dict[str, Any]) -> int | None:
    """The greatest place or, of truth values, the greatest count that a reduction can give; the least is 0."""
    if name in _POSITIONS:
        return extent.length - 1
    is_count = name == "count" or name == "sum" and dtype.kind == "b" and given.get("dtype") is None
    return extent.length if is_count else None


def _is_clear(value: Any) -> bool:
    """Whether a keyword's value is one of those that mean the same where they are equal, and stay what they are."""
    kind = type(value)
    if kind is tuple:
        return all(type(item) is int for item in value)
    return kind is type and value in _CLASSES or isinstance(value, np.dtype)


def _remembered(key: tuple[Any, ...], meta: Any, given: dict[str, Any]) -> _Request | None:
    request = _requests.get(key, key)
    if request is key:
        if len(_requests) >= 4096:
            _requests.clear()
        request = _requests[key] = _requested(key[0], key[1], meta, given)
    return request


def _requested(name: str, dtype: np.dtype, meta: Any, given: dict[str, Any]) -> _Request | None:
    shape, order = meta.shape, _order_of(meta)
    for key, values in _SILENT.items():
        if key in given and not any(given[key] is value for value in values):
            return None
    axis, keepdims = given.get("axis"), given.get("keepdims", False)
    axes = _axes(axis, len(shape))
    if axes is None or not shape or 0 in shape or not (keepdims is True or keepdims is False or keepdims is _none):
        return None
    if name == "norm" and not _is_euclidean(given.get("ord"), axis, len(shape)):
        return None
    gone = tuple([axis in axes for axis in order])
    extent = extent_of(tuple([shape[axis] for axis in order]), gone)
    if extent is None or name in _POSITIONS and not _is_in_order(axis, order, shape):
        return None
    reduction = named(name, dtype, given.get("dtype"))
    freedom = _freedom(extent, given.get("ddof", 0), given.get("correction", _none))
    if reduction is None or freedom is None:
        return None
    if keepdims is True:
        left, lengths = order, tuple([1 if out else shape[axis] for axis, out in zip(order, gone)])
    else:
        left = tuple([axis for axis in order if axis not in axes])
        lengths = tuple([shape[axis] for axis in left])
    turned = [left.index(axis) for axis in sorted(left)] if any(a > b for a, b in zip(left, left[1:])) else None
    turn = None if order == tuple(range(len(shape))) else order
    return _Request(reduction, extent, freedom, lengths, turned, turn, is_flat(meta, shape, turn),
                    _is_slow(name, dtype, extent, meta.nbytes))


def _is_slow(name: str, dtype: np.dtype, extent: Extent, nbytes: int) -> bool:
    """Whether the device library is slow at a reduction of an array that is computed already (measured on an H200).

    It takes several passes for a variance, and so for positions of floats (`devices.operations.position`), one thread
    or block for a result where results are few, and for positions along short rows, and has quick kernels for sums and
    extremes of numbers of four bytes and more; and some it compiles for seconds.
    """
    if is_slow_to_compile(name, dtype, extent) or name in _SEVERAL_PASSES or (
            name in _POSITIONS and dtype.kind == "f" or extent.inner > 1 and extent.length >= 1024):
        return True
    if nbytes < LARGE << 6:
        return False
    return extent.inner > 1 or extent.outer > 1 and (name in _POSITIONS or extent.outer < 256)


# -- what the part in C goes by --------------------------------------------------------------------

#: What calls of a kind go by: see `_native/recording_reducing.h`; False: they are for the general way.
_known: dict[Any, Any] = {}
#: How often a reduction of an array was asked for that the device library does as well, where no kernel is known yet.
_asked: dict[Any, int] = {}
#: So many times a program asks before a kernel is compiled for it.
OFTEN = 8


def _reduction_of(key: Any, x: Any, program: Program | None, arguments: list[Any], form: Any) -> Any:
    """What calls of this kind go by: (kernel, what sums are divided by, lengths of the result, axes that turn the
    operand, axes that turn the result, the greatest place that it can give). None: nothing is known yet.

    `key`: the function, the axis and `keepdims`, and what else decides. `program`: with its `arguments` and the form
    that it is walked in, of recorded work.
    """
    func, axis, keepdims = key[:3]
    given = {} if axis is None else {"axis": axis}
    if keepdims:
        given["keepdims"] = True
    if (found := _source(x)) is None:
        return None
    source, dtype, meta = found
    name = TAKEN[func][0]
    items = [part for item in given.items() for part in (item, type(item[1]))]
    request = _remembered((name, dtype, meta.shape, meta.strides, *items), meta, given)
    if request is None:
        return False
    device, turn = x._self_storage.device, None
    known = program is None and not request.slow
    if program is None:
        if known:
            if meta.nbytes >= MOST:
                return False
            if (times := _asked.get(key, 0)) < OFTEN:
                if len(_asked) >= 4096:
                    _asked.clear()
                _asked[key] = times + 1
                return None
        turn, array = request.order, arguments[0]
        if turn is not None:
            array = array.transpose(turn)
        program, arguments = reading(dtype, "flat" if request.flat else "strided", array.ndim), [array]
        form = array.shape, False
    kernel = kernel_of(device, program, request.reduction, request.extent, arguments, form, known)
    if kernel is None:
        return None
    greatest = _greatest(name, dtype, request.extent, {})
    if name in _POSITIONS and request.turned is not None:
        return False        # positions are in C order, turned or not
    return kernel, request.freedom, request.lengths, turn, request.turned, greatest


def _note_greatest(x: Any, most: int) -> None:
    if handles.is_lazy(x):
        facts.note_bounds(x, 0, most)


def for_native() -> dict[str, Any]:
    """What the part in C calls and looks at."""
    functions = dict(zip(TAKEN, TAKEN))
    methods = {getattr(np.ndarray, func.__name__): func for func in functions if hasattr(np.ndarray, func.__name__)}
    return {"reductions": _known, "reducing": functions | methods, "reduction_of": _reduction_of,
            "note_greatest": _note_greatest, "norm": np.linalg.norm}


def _source(x: Any) -> tuple[Node | Leaf, np.dtype, Any] | None:
    """What gives the elements of `x`, their dtype, and what has the shape and the strides of `x`."""
    storage = x._self_storage
    if least_bytes() is None or type(storage) is not Storage:
        return None
    node = storage.pending
    if node is not None:
        meta = x._self_meta
        found = (node, meta) if meta is storage.root_view else seen_in(node, meta)
        if found is None or found[0].step.output.char not in _KNOWN:
            return None
        return found[0], found[0].step.output, found[1]
    leaf = leaf_of(x)
    if leaf is None or leaf.array.dtype.char not in _KNOWN:
        return None
    return leaf, leaf.array.dtype, leaf.array


def _order_of(meta: Any) -> tuple[int, ...]:
    """The axes from the outermost in memory to the innermost."""
    return tuple(range(meta.ndim)) if meta.flags.c_contiguous else views.by_strides(meta)


def _is_in_order(axis: Any, order: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether places along one axis, or in the whole array, are counted as they lie in memory."""
    if axis is not None:
        return type(axis) is int
    long = [axis for axis in order if shape[axis] != 1]
    return long == sorted(long)


def _axes(axis: Any, ndim: int) -> tuple[int, ...] | None:
    """The axes as numbers from 0; None if they are wrong, for which NumPy raises the error."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is not tuple:
        axis = (axis,)
    if any(type(a) is not int or not -ndim <= a < ndim for a in axis):
        return None
    found = tuple([a % ndim for a in axis])
    return found if len(set(found)) == len(found) else None


def _freedom(extent: Extent, ddof: Any, correction: Any) -> float | None:
    if correction is not _none:
        if type(ddof) is not int or ddof != 0:
            return None     # NumPy says that both can't be
        ddof = correction
    if type(ddof) is not int and type(ddof) is not float or extent.length - ddof <= 0:
        return None
    return float(extent.length - ddof)


def _is_euclidean(order: Any, axis: Any, ndim: int) -> bool:
    """Whether a norm is the root of the sum of squares."""
    count = ndim if axis is None else len(axis) if type(axis) is tuple else 1
    if order is None:
        return axis is None or 1 <= count <= 2
    if count == 1:
        return type(order) in (int, float) and order == 2
    return count == 2 and type(order) is str and order in ("fro", "f")


def named(name: str, dtype: np.dtype, wanted: Any) -> Reduction | None:
    if wanted is not None:
        try:
            wanted = np.dtype(wanted)
        except TypeError:
            return None
        if wanted.char not in _KNOWN or wanted.kind == "b" or wanted.byteorder == ">":
            return None
    found = _DTYPES[name](dtype, wanted)
    return None if found is None else Reduction(name, dtype, *found)


def _of_sum(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype] | None:
    if wanted is None:
        wanted = _longs.get(dtype.kind, dtype)
    elif not np.can_cast(dtype, wanted, "same_kind") or wanted.char == "e" and dtype.char != "e":
        return None
    return wanted, wanted


def _of_product(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype] | None:
    found = _of_sum(dtype, wanted)
    return None if found is None or found[0].kind == "c" else found


def _of_mean(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype] | None:
    if wanted is not None:
        if wanted.kind not in "fc" or wanted.char == "e" or dtype.kind == "c" and wanted.kind != "c":
            return None
        return wanted, wanted
    if dtype.kind in "biu":
        return _float64, _float64
    return (_float32 if dtype.char == "e" else dtype), dtype


def _of_spread(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype] | None:
    found = _of_mean(dtype, wanted)
    if found is None or found[0].kind == "c" and (dtype.kind != "c" or wanted is not None):
        return None
    return found[0], np.dtype(found[1].char.lower())


def _of_deviation(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype] | None:
    found = _of_spread(dtype, wanted)
    return None if found is not None and found[1].char == "e" else found    # the root of what may have overflowed


def _of_norm(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype]:
    work = _float64 if dtype.kind in "biu" else dtype
    return work, np.dtype(work.char.lower())


def _of_extreme(dtype: np.dtype, wanted: np.dtype | None) -> tuple[np.dtype, np.dtype] | None:
    return None if dtype.kind == "c" else (dtype, dtype)


#: Name of a reduction -> what gives (work dtype, result dtype) for the elements' dtype and a ``dtype=``.
_DTYPES: dict[str, Callable[..., Any]] = {
    "sum": _of_sum, "prod": _of_product, "mean": _of_mean, "var": _of_spread, "std": _of_deviation, "norm": _of_norm,
    "min": _of_extreme, "max": _of_extreme,
    "any": lambda dtype, wanted: (dtype, _bool), "all": lambda dtype, wanted: (dtype, _bool),
    "count": lambda dtype, wanted: (dtype, _intp),
    "argmin": lambda dtype, wanted: None if dtype.kind == "c" else (dtype, _intp),
    "argmax": lambda dtype, wanted: None if dtype.kind == "c" else (dtype, _intp),
}
