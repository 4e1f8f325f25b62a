"""Where CuPy's functions answer otherwise than NumPy's: wrappers for the namespace of the simulated device."""
from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .execution import SimulatedArrayBase, wrap_new

Function = Callable[..., Any]
Wrapper = Callable[[str, Function], Function]


def _around(call: Function) -> Wrapper:
    """What puts ``call(path, function, ...)`` around NumPy's function at a dotted path."""
    return lambda path, function: functools.wraps(function)(functools.partial(call, path, function))


# -- functions ---------------------------------------------------------------------------------

@_around
def _as_cufft(path: str, function: Function, a: np.ndarray, n: Any = None, *rest: Any, **options: Any) -> Any:
    """Sizes may be floats, half precision is single, and real arrays in neither C nor F order are misread."""
    key = "s" if path[-1] in "2n" else "n"
    given = options.pop(key, n)
    if given is not None:
        given = [int(one) for one in given] if key == "s" else int(given)
    if path in ("fft.rfft2", "fft.rfftn") and a.dtype.kind in "iu" and not a.flags.forc:
        a = a.ravel("F").reshape(a.shape)
    return function(a.astype(np.float32) if a.dtype == np.float16 else a, given, *rest, **options)


@_around
def _over_several_axes(path: str, function: Function, a: np.ndarray, axis: Any = None, *rest: Any,
                       **options: Any) -> Any:
    """The position of an extreme is that in the axes of a tuple, taken as one; of several NaN any one is taken."""
    if isinstance(axis, tuple):
        axes = [one % a.ndim for one in axis]
        kept = [one for one in range(a.ndim) if one not in axes]
        length = math.prod(a.shape[one] for one in axes)
        a = a.transpose(*kept, *axes).reshape([*(a.shape[one] for one in kept), length])
        axis = -1
    found = function(a, axis, *rest, **options)
    if a.dtype.kind in "fc" and (nan := np.isnan(a)).any() and not rest:
        back = np.flip(nan, axis)
        last = (a.size if axis is None else a.shape[axis]) - 1 - np.argmax(back, axis, **options)
        found = np.where(np.any(nan, axis, **options), last, found)
    return found


@_around
def _along_own_axes(path: str, function: Function, a: np.ndarray, axis: Any = None, *rest: Any, **options: Any) -> Any:
    """What has no dimensions has no axis 0, although NumPy reduces it along one."""
    refuse_output(path, options.get("out", rest[0] if rest else None))
    if a.ndim == 0 and axis is not None and not isinstance(axis, tuple):
        raise np.exceptions.AxisError(operator.index(axis), 0)
    return function(a, axis, *rest, **options)


def refuse_output(name: str, out: Any) -> None:
    """CuPy 14.2 hands ``out`` of these to CUB in the place of the dtype, with which it compares each type there is."""
    if out is not None and name in ("min", "amin", "ptp"):
        raise TypeError("operand type(s) all returned NotImplemented from __array_ufunc__(<ufunc 'equal'>)")


@_around
def _of_a_mask(path: str, function: Function, condition: Any, *values: Any) -> Any:
    """The condition is an array: Python's True and False have no `astype`."""
    return function(condition.astype("?", copy=False), *values)


@_around
def _along_a_tuple(path: str, function: Function, f: np.ndarray, *spacing: Any, axis: Any = None,
                   **options: Any) -> Any:
    """Several axes are those of a tuple."""
    return function(f, *spacing, axis=axis if axis is None or isinstance(axis, tuple) else operator.index(axis),
                    **options)


@_around
def _never_singular(path: str, function: Function, a: np.ndarray, *rest: Any, **options: Any) -> Any:
    """CuPy does not look whether a factorisation succeeded: the result of one that did not is rubbish."""
    try:
        return function(a, *rest, **options)
    except np.linalg.LinAlgError:
        if path == "linalg.svd" and a.ndim >= 2:        # of what is not finite
            return function(np.zeros_like(a), *rest, **options)
        if path not in ("linalg.inv", "linalg.solve", "linalg.cholesky") or a.ndim < 2 or a.shape[-1] != a.shape[-2]:
            raise
        given = rest[0] if rest else a
        return np.full(given.shape, np.nan, np.result_type(a, *rest) if a.dtype.kind in "fc" else float)


def _with_dtype(path: str, function: Function) -> Function:
    """CuPy's random functions take a dtype, NumPy's seldom do."""
    def call(*args: Any, **kwargs: Any) -> Any:
        dtype = kwargs.pop("dtype", None)
        value = function(*args, **kwargs)
        return value if dtype is None or value is None else np.asarray(value).astype(dtype)

    return call


@_around
def _calling_back(path: str, function: Function, *args: Any, **kwargs: Any) -> Any:
    """The caller's function is given device arrays, not what NumPy computes with here."""
    return function(*[_on_device(arg) if callable(arg) else arg for arg in args], **kwargs)


def _on_device(function: Function) -> Function:
    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*[wrap_new(arg) if isinstance(arg, np.ndarray) else arg for arg in args], **kwargs)
        return found._view if isinstance(found, SimulatedArrayBase) else found

    return call


@_around
def _without_callables(path: str, function: Function, x: Any, condlist: Any, funclist: Any) -> Any:
    if any(callable(item) for item in funclist):
        raise NotImplementedError("Callable functions are not supported currently")
    return function(x, condlist, funclist)


@_around
def _filling(path: str, function: Function, *args: Any, **options: Any) -> Any:
    """CuPy clears memory where a number that it is given equals zero: a negative one loses its sign."""
    return function(*list(map(cleared, args)), **{name: cleared(value) for name, value in options.items()})


@_around
def _making(path: str, function: Function, object: Any, *rest: Any, **options: Any) -> Any:
    """Here ``copy=False`` means to copy where it is needed, as ``copy=None`` does in NumPy."""
    if options.get("copy", True) is False:
        options["copy"] = None
    return function(cleared(object), *rest, **options)


def cleared(value: Any) -> Any:
    """A number, but zero for a negative zero; anything else as it is."""
    return type(value)(0) if isinstance(value, (float, complex, np.inexact)) and value == 0 else value


@_around
def _wrapping(path: str, function: Function, arr: np.ndarray, indices: np.ndarray, *rest: Any, **options: Any) -> Any:
    """Indexes along an axis wrap around, as all index arrays do."""
    axis = options.get("axis", rest[-1] if rest else -1)
    length = arr.size if axis is None else arr.shape[axis]
    return function(arr, indices % length if length else indices, *rest, **options)


@_around
def _wrapping_by_default(path: str, function: Function, multi_index: Any, dims: Any, mode: Any = "wrap",
                         order: str = "C") -> Any:
    return function(multi_index, dims, mode, order)


@_around
def _by_parts(path: str, function: Function, a: np.ndarray, *rest: Any, **options: Any) -> Any:
    """Of a complex number that is not a number, the part that is one counts."""
    if np.iscomplexobj(a):
        a = np.where(np.isnan(a.real), 0, a.real) + 1j * np.where(np.isnan(a.imag), 0, a.imag).astype(a.dtype)
    return function(a, *rest, **options)


def order_of_row(row: np.ndarray) -> np.ndarray:
    """The order that CuPy 14.2 sorts one row of floats in, which goes by their bits: NaN with a sign come first."""
    first = np.isnan(row) & np.signbit(row) if row.dtype.char in "fd" else np.zeros(row.shape, bool)
    rest = np.flatnonzero(~first)
    return np.concatenate([np.flatnonzero(first), rest[np.argsort(row[rest], kind="stable")]])


@_around
def _among_sorted(path: str, function: Function, element: np.ndarray, test_elements: np.ndarray, *rest: Any,
                  invert: bool = False, **options: Any) -> Any:
    """What the others are looked for in is sorted so, too."""
    ordered = test_elements.ravel()
    if ordered.dtype.char not in "fd" or not ordered.size:
        return function(element, test_elements, *rest, invert=invert, **options)
    ordered = ordered[order_of_row(ordered)]
    places = np.searchsorted(ordered, element)
    return (ordered[np.minimum(places, ordered.size - 1)] == element) != invert


@_around
def _by_their_bits(path: str, function: Function, a: np.ndarray, axis: Any = -1, *rest: Any, **options: Any) -> Any:
    if axis is None or a.ndim == 1 and axis in (0, -1):
        row = a.ravel()
        return order_of_row(row) if path == "argsort" else row[order_of_row(row)]
    return function(a, axis, *rest, **options)


def _mean_without_nan(a: np.ndarray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
                      ) -> Any:
    """CuPy gives NaN for what has no mean, and no warning."""
    with np.errstate(all="ignore"):
        count = np.sum(~np.isnan(a), axis=axis, keepdims=keepdims)
        return np.asarray(np.nansum(a, axis=axis, dtype=dtype, keepdims=keepdims) / count).astype(dtype or a.dtype)


def _variance_without_nan(a: np.ndarray, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0,
                          keepdims: bool = False) -> Any:
    with np.errstate(all="ignore"):
        there = ~np.isnan(a)
        count = np.sum(there, axis=axis, keepdims=keepdims)
        away = a - _mean_without_nan(a, axis, dtype, keepdims=True)
        return np.asarray(np.sum(np.where(there, away * away, 0), axis=axis, keepdims=keepdims) / np.where(
            count > ddof, count - ddof, np.nan)).astype(dtype or a.dtype)


def _deviation_without_nan(*args: Any, **options: Any) -> Any:
    return np.sqrt(_variance_without_nan(*args, **options))


_WRAPPERS: dict[str, Wrapper] = {
    "fft": _as_cufft, "linalg": _never_singular, "random": _with_dtype, "piecewise": _without_callables,
    "ravel_multi_index": _wrapping_by_default, "array": _making,
    **dict.fromkeys(("argmax", "argmin"), _over_several_axes), **dict.fromkeys(("sort", "argsort"), _by_their_bits),
    "isin": _among_sorted,
    **dict.fromkeys("sum prod max min amax amin ptp any all cumsum cumprod nancumsum nancumprod".split(),
                    _along_own_axes),
    "gradient": _along_a_tuple, "where": _of_a_mask,
    **dict.fromkeys(("apply_along_axis", "apply_over_axes"), _calling_back),
    **dict.fromkeys(("take_along_axis", "put_along_axis"), _wrapping),
    "nansum": _by_parts, "nanmean": lambda path, function: _mean_without_nan,
    "nanvar": lambda path, function: _variance_without_nan,
    "nanstd": lambda path, function: _deviation_without_nan,
    **dict.fromkeys("full full_like copyto asarray asanyarray nan_to_num interp pad".split(), _filling),
}
"""What is put around NumPy's functions, by module or name."""
_AS_THEY_ARE = frozenset({"fft.fftfreq", "fft.rfftfreq", "fft.fftshift", "fft.ifftshift"})

_IN_C_ORDER = frozenset((
    "where clip round around isclose angle nan_to_num diff sum prod max min amax amin any all mean std var nansum "
    "nanprod nanmax nanmin nanmean nanstd nanvar concatenate").split())
_IN_SOME_ORDER = frozenset(("cumsum cumprod nancumsum nancumprod sort argsort partition argpartition").split())


def as_cupys(path: str, function: Function) -> Function:
    """NumPy's function at a dotted path with CuPy's answers, whose results lie in memory as CuPy's do.

    NumPy's follow the arguments. Where CuPy's follow the axis that it works along, the first axis lies innermost here.
    """
    if path.split(".")[0] in _WRAPPERS and path not in _AS_THEY_ARE:
        function = _WRAPPERS[path.split(".")[0]](path, function)
    if path in _IN_C_ORDER:
        place = 0
    elif path in _IN_SOME_ORDER or path.startswith("fft.") and not path.endswith("shift"):
        place = -1
    else:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if type(result) is not np.ndarray or result.ndim < 2 or kwargs.get("out") is not None:
            return result
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(result, 0, place)), place, 0)

    return call


@_around
def _by_label(path: str, function: Function, input: np.ndarray, labels: Any = None, index: Any = None) -> Any:
    """An element counts for the first of equal labels only; sums without an index are of negative labels, too."""
    sums = path.startswith("sum")
    if labels is None or index is None or isinstance(index, int) or np.isscalar(index) and not sums:
        return function(input, labels != 0 if sums and labels is not None and index is None else labels, index)
    if not isinstance(index, np.ndarray):
        raise TypeError("index must be cupy.ndarray or a scalar int")
    found = function(input, labels, index)
    again = np.ones(index.size, bool)
    again[np.unique(index, return_index=True)[1]] = False
    found[again.reshape(index.shape)] = 0 if sums else np.nan
    return found


@_around
def _from_one(path: str, function: Function, input: np.ndarray, labels: Any = None, index: Any = None) -> Any:
    """Of many labels, 0 is not found, and neither is the smallest one where one is negative or beyond the elements."""
    few = 30 if path in ("minimum", "maximum") else 15
    if labels is not None and np.ndim(index) and len(index) > few:
        low, high = labels.min(), labels.max()
        lost = low if labels.dtype.kind not in "iu" or low < 0 or high > labels.size else 0
        labels = np.where(labels == lost, np.int64(np.max(index)) + 1, labels)
    return function(input, labels, index)


LIBRARY: dict[str, dict[str, Wrapper]] = {
    "cupyx.scipy.ndimage": {
        **dict.fromkeys("sum sum_labels mean variance standard_deviation".split(), _by_label),
        **dict.fromkeys("minimum maximum minimum_position maximum_position median extrema".split(), _from_one),
    },
}
"""What is put around the functions of libraries, by module and name."""

# -- universal functions -----------------------------------------------------------------------

def copied_to(out: Any, result: Any, where: Any = True, casting: Any = "same_kind") -> Any:
    """A result in the array given as ``out``, also in a tuple; itself if there is none."""
    target = out[0] if isinstance(out, tuple) and out else out
    if target is None or isinstance(target, tuple):
        return result
    np.copyto(target, result, casting=casting, where=where)
    return target


def _after(function: np.ufunc, mend: Function) -> Function:
    """`function`, whose result `mend` looks at: None, or what CuPy gives in its place."""
    def call(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        mended = None if result.dtype == np.float64 else mend(result, *args)   # in double precision all of them agree
        if mended is None:
            return result
        return copied_to(args[function.nin:] or options.get("out"), mended, options.get("where", True), "unsafe")

    return call


def _quotient(result: Any, x: Any, y: Any, *out: Any) -> Any:
    """Complex numbers divided by zero are NaN."""
    return np.where(np.equal(y, 0), complex(np.nan, np.nan), result) if result.dtype.kind == "c" else None


def _binary_logarithm(result: Any, x: Any, *out: Any) -> Any:
    """The logarithm is divided by a complex number, which makes NaN of the imaginary part beside an infinity."""
    if result.dtype.kind != "c":
        return None
    mended = np.array(result)
    mended.imag = np.where(np.isinf(mended.real), np.nan, mended.imag)
    return mended


def _reciprocal(result: Any, x: Any, *out: Any) -> Any:
    """The reciprocal of the integer 0 is 0."""
    return np.where(np.equal(x, 0), 0, result).astype(result.dtype) if result.dtype.kind in "iu" else None


def _neighbour(result: Any, x: Any, y: Any, *out: Any) -> Any:
    """There are no subnormal numbers of single precision."""
    if result.dtype != np.float32:
        return None
    least = np.finfo(np.float32).smallest_normal
    return np.where((result != 0) & (np.abs(result) < least), np.copysign(least, result), result)


def _power(x: Any, y: Any, out: Any = None, **options: Any) -> Any:
    """CuPy gives integers raised to negative integers some value, where NumPy raises."""
    try:
        return np.power(x, y, out, **options)
    except ValueError:
        if not np.less(y, 0).any():
            raise
        small = np.where(np.equal(x, -1), np.where(np.remainder(y, 2), -1, 1), np.equal(x, 1))
        result = np.where(np.less(y, 0), small, np.power(x, np.maximum(y, 0))).astype(np.result_type(x, y))
        return copied_to(out, result, options.get("where", True))


def _refusing_complex(function: np.ufunc) -> Function:
    """CuPy's logical functions have no loops for complex numbers."""
    def call(*args: Any, **options: Any) -> Any:
        if any(np.iscomplexobj(arg) for arg in args):
            raise TypeError(f"Wrong type of arguments for cupy_{function.__name__}")
        return function(*args, **options)

    return call


UFUNCS: dict[str, Function] = {
    "divide": _after(np.divide, _quotient), "true_divide": _after(np.divide, _quotient),
    "log2": _after(np.log2, _binary_logarithm), "reciprocal": _after(np.reciprocal, _reciprocal),
    "nextafter": _after(np.nextafter, _neighbour), "power": _power, "pow": _power,
    **{name: _refusing_complex(getattr(np, name)) for name in ("logical_and", "logical_or", "logical_xor",
                                                              "logical_not")},
}
"""Ufuncs that take other dtypes, or give other values, than NumPy's."""
