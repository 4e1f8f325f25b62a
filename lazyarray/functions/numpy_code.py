"""NumPy's functions that are written in Python, run on lazy arrays as they are.

Most of NumPy's functions are Python that calls others of its functions: ``np.nanmean`` is a few sums and a quotient.
Such a function needs no version of our own: its code gives NumPy's values, dtypes, warnings and errors if each call
in it is sent to the device. NumPy sends the calls of overridable functions and of ufuncs here by itself. What it does
not send are conversions (``np.asanyarray(a)`` copies a lazy array to the host) and new arrays (``np.empty(shape)`` is a
host array, into which what is computed would be copied). So the code runs with other globals (`here`), in which those
few names, `SUBSTITUTES`, stand for functions that know lazy arrays.

Each call in the code is dispatched, which an adapter spares. Measured on the simulated device with 1,000 numbers,
adapter and NumPy's code: `isclose` 38 and 58 us, `stack` 64 and 93, `average` 51 and 200, `nanmean` 54 and 310. In
return its element-wise steps are recorded, and computed by one kernel. An adapter stays where NumPy's code writes into
an argument (in steps, so that an interrupt would leave half of them), loops over elements, or waits for the device.
"""
from __future__ import annotations

import builtins
import functools
import inspect
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import devices
from ..errors import NotOnDevice
from ..errors.interrupts import holding
from ..storage import handles, transfer
from ..storage.views import undispatched
from . import creation, numerical_ranges
from .adapters import common
from .kinds import NUMBERS
from .pytree import leaves
from .views import as_lazy, on_host_side

__all__ = ["COMPOSED"]


# -- what stands for NumPy's functions that look at memory -----------------------------------------

def _converting(func: Callable[..., Any]) -> Callable[..., Any]:
    """``func(obj, ...)`` with lazy arrays and scalars left on the device; whatever else is NumPy's."""
    of_lazy = creation.MAKING[func]

    def convert(obj: Any, *args: Any, subok: bool = True, **kwargs: Any) -> Any:
        return of_lazy(as_lazy(obj), *args, **kwargs) if handles.is_lazy(obj) else func(obj, *args, **kwargs)

    return convert


class _Converter:
    """As NumPy's private ``_array_converter``: operands as arrays, and results as NumPy gives them for scalars."""

    def __init__(self, *given: Any) -> None:
        self._given = given
        self._arrays = tuple([as_lazy(a) if handles.is_lazy(a) else np.asanyarray(a) for a in given])
        self.scalar_input = tuple([not isinstance(a, np.ndarray) and not b.ndim for a, b in zip(given, self._arrays)])

    def __len__(self) -> int:
        return len(self._arrays)

    def __getitem__(self, index: int) -> Any:
        return self._arrays[index]

    def as_arrays(self, subok: bool = True, pyscalars: str = "convert") -> tuple[Any, ...]:
        weak = NUMBERS if pyscalars == "preserve" else ()
        return tuple([a if type(a) in weak else b for a, b in zip(self._given, self._arrays)])

    def result_type(self, extra_dtype: Any = None, ensure_inexact: bool = False) -> np.dtype:
        kinds = [a if type(a) in NUMBERS else b.dtype for a, b in zip(self._given, self._arrays)]
        return np.result_type(*kinds, *(() if extra_dtype is None else (extra_dtype,)), *(1.0,) * ensure_inexact)

    def wrap(self, array: Any, /, to_scalar: bool | None = None) -> Any:
        wanted = all(self.scalar_input) if to_scalar is None else to_scalar
        return array[()] if wanted and not array.ndim else array


def _replace_nan(a: Any, value: Any) -> tuple[Any, Any]:
    """As NumPy's helper of its nan-functions, but not into a copy: it is computed together with what comes next."""
    if a.dtype.kind not in "fc":
        return a, None
    missing = np.isnan(a)
    return np.where(missing, a.dtype.type(value), a), missing


def _warn(message: Any, category: Any = None, stacklevel: int = 1, **options: Any) -> None:
    """``warnings.warn`` at the line that NumPy names: this package's frames between it and the caller do not count."""
    frame: types.FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and stacklevel > 1:
        frame, level = frame.f_back, level + 1
        stacklevel -= frame is None or not frame.f_globals.get("__name__", "").startswith("lazyarray.")
    warnings.warn(message, category, level, **options)


SUBSTITUTES: dict[Any, Any] = {
    **{func: _converting(func) for func in (
        np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray)},
    **{func: creation.MAKING[func] for func in (np.empty, np.zeros, np.ones, np.full, np.arange, np.eye)},
    np.tril_indices: numerical_ranges.tril_indices, np.triu_indices: numerical_ranges.triu_indices,
    undispatched(np.nanmean).__globals__.get("_replace_nan", _replace_nan): _replace_nan,
    undispatched(np.concatenate): np.concatenate,       # which `numpy.block` calls
    type: lambda obj: np.ndarray if handles.is_array(obj) else type(obj),       # for ``type(obj) is np.ndarray``
    warnings: types.SimpleNamespace(**{**vars(warnings), "warn": _warn}),
}
if hasattr(np._core._multiarray_umath, "_array_converter"):     # NumPy 2.1
    SUBSTITUTES[np._core._multiarray_umath._array_converter] = _Converter


# -- the same code with other globals ------------------------------------------------------------

class _Module:
    """A module of NumPy's with `here` of its members."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = here(getattr(self._module, name))
        setattr(self, name, found)
        return found


_made: dict[Any, Any] = {}
_lock = threading.RLock()


def here(value: Any) -> Any:
    """What stands for a global of NumPy's code: a substitute, or a function or module that knows substitutes too."""
    kind = type(value)
    if kind is types.FunctionType and value not in SUBSTITUTES and value.__module__.startswith("numpy."):
        with holding(_lock):
            return _made.get(value) or _rebound(value)
    if kind is types.ModuleType and value.__name__.split(".")[0] == "numpy":
        return _made.setdefault(value, _Module(value))
    try:
        return SUBSTITUTES.get(value, value)
    except TypeError:       # a list or a dict
        return value


def _rebound(func: types.FunctionType) -> Callable[..., Any]:
    """A function with `here` of the globals that its code names."""
    globals_: dict[str, Any] = {"__name__": func.__module__, "__builtins__": builtins}
    made = _made[func] = types.FunctionType(func.__code__, globals_, func.__name__, func.__defaults__, func.__closure__)
    made.__kwdefaults__ = func.__kwdefaults__
    codes = [func.__code__]
    for code in codes:      # those of functions and comprehensions in it are added meanwhile
        codes += (c for c in code.co_consts if isinstance(c, types.CodeType))
        known = {"type": type, **func.__globals__}
        globals_ |= {name: here(known[name]) for name in code.co_names if name in known}
    return made


@functools.cache
def _names(func: Callable[..., Any]) -> tuple[tuple[str, ...], str]:
    """The names of a function's parameters by position, and of the one that takes all further arguments."""
    parameters = inspect.signature(func).parameters.values()
    return (tuple([p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]),
            next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), ""))


def _composed(func: Callable[..., Any], arrays: str) -> Callable[..., Any]:
    """What runs the code of a NumPy function on lazy arrays.

    `arrays` are the names of the parameters that are arrays: a list or a host array is uploaded once, not by each
    operation that reads it, and a number becomes an array, but not behind a "~". Behind a "*" are lists of arrays, and
    behind a "=" arrays that the result is views of: those of the host stay there.
    """
    code = undispatched(func)
    marks = {name.lstrip("*~="): name[0] for name in arrays.split()}

    def array(obj: Any, weak: bool) -> Any:
        device, number = devices.current(), type(obj) in NUMBERS or isinstance(obj, np.generic)
        if handles.is_lazy(obj) or number and weak or isinstance(obj, (list, tuple)) and not obj:
            return obj
        if isinstance(obj, (list, tuple)) and any(map(handles.is_lazy, leaves(obj))):
            return creation.MAKING[np.asarray](obj)
        if number or isinstance(obj, (list, tuple, np.ndarray, device.array_type)):
            return handles.wrap(device, common.array(device.xp, obj), scalar=False)
        return obj

    def ready(name: str, obj: Any) -> Any:
        mark = marks.get(name)
        if mark == "*" and isinstance(obj, (list, tuple)):
            return [array(item, True) for item in obj]
        return obj if mark is None or mark == "=" and isinstance(obj, np.ndarray) else array(obj, mark == "~")

    def run(*args: Any, **kwargs: Any) -> Any:
        if type(code) is not types.FunctionType:
            raise NotOnDevice("this release of NumPy has no Python code of it")
        names, more = _names(func)
        args = tuple([ready(names[i] if i < len(names) else more, obj) for i, obj in enumerate(args)])
        steering = transfer.steering.set(True)
        try:
            return here(code)(*args, **{name: ready(name, obj) for name, obj in kwargs.items()})
        finally:
            transfer.steering.reset(steering)

    return run


def _copying_or_not(copying: Callable[..., Any], viewing: Callable[..., Any]) -> Callable[..., Any]:
    """np.meshgrid, whose results are views of its arguments if it is not to copy them."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return (copying if kwargs.get("copy", True) else viewing)(*args, **kwargs)

    return run


def _deleting(run: Callable[..., Any]) -> Callable[..., Any]:
    """np.delete, whose result has the memory order of NumPy's where a mask picks what is left.

    NumPy puts the axis of the mask outermost, and the others in the order of the array. The device's results of index
    arrays are in C order: so they are asked of a view with the axes in that order.
    """

    def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
        if (axis is None or not handles.is_array(arr) or arr.ndim < 2 or isinstance(obj, (slice, *NUMBERS))
                or np.size(obj) == 1):
            return run(arr, obj, axis)
        axis = common.axis_index(axis, arr.ndim)
        order = sorted(range(arr.ndim), key=lambda i: (i != axis, -abs(arr.strides[i]), i))
        return run(arr.transpose(order), obj, 0).transpose(np.argsort(order).tolist())

    return delete


def _with_host_coefficients(run: Callable[..., Any]) -> Callable[..., Any]:
    """np.polyval, which takes one coefficient after the other: they are fetched together."""
    def polyval(p: Any, x: Any) -> Any:
        return run(on_host_side(p, "coefficients"), x)

    return polyval


def _by_mask(run: Callable[..., Any]) -> Callable[..., Any]:
    """np.extract: a mask of as many elements picks them without their positions."""
    def extract(condition: Any, arr: Any) -> Any:
        if handles.is_array(condition) and handles.is_array(arr) and condition.dtype == bool and (
                condition.size == arr.size):
            return np.ravel(arr)[np.ravel(condition)]
        return run(condition, arr)

    return extract


def _of_numbers(run: Callable[..., Any]) -> Callable[..., Any]:
    """np.apply_over_axes, which makes an array of what the function gives of a small vector: NumPy's own number."""
    def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
        result = run(func, a, axes)
        return handles.host_result(result) if type(result) is np.ndarray else result

    return apply_over_axes


def _of(names: str, arrays: str, home: Any = np) -> dict[Any, Any]:
    return {func: _composed(func, arrays) for name in names.split() if (func := getattr(home, name, None))}


#: NumPy function -> what runs its code on lazy arrays.
COMPOSED: dict[Any, Any] = {
    **_of("nansum nanprod nancumsum nancumprod nanargmax nanargmin nanmean nanvar nanstd ptp", "a"),
    **_of("average", "a weights"),
    **_of("sinc isposinf isneginf isreal iscomplex fix trapezoid", "x y"),
    **_of("angle", "z"), **_of("unwrap", "p"),
    **_of("sort_complex roll real_if_close", "a"),
    **_of("diag_indices_from tril_indices_from triu_indices_from", "arr"),
    **_of("histogram2d", ""),
    **_of("sqrt log log2 log10 logn power arccos arcsin arctanh", "n x p", np.emath),
    **_of("isclose allclose", "~a ~b"), **_of("array_equal polyadd polysub", "a1 a2"), **_of("polyfit", "x y w"),
    np.polyval: _with_host_coefficients(_composed(np.polyval, "x")),
    np.delete: _deleting(_composed(np.delete, "arr")), **_of("append", "arr values"),
    np.extract: _by_mask(_composed(np.extract, "condition arr")),
    **_of("stack", "*arrays"), **_of("vstack hstack dstack column_stack", "*tup"),
    np.meshgrid: _copying_or_not(_composed(np.meshgrid, "xi"), _composed(np.meshgrid, "=xi")),
    **_of("block", ""),
    **_of("tile", "A"), **_of("pad", "array"), **_of("diff", "a prepend append"),
    **_of("ediff1d", "ary to_end to_begin"), **_of("fftshift ifftshift", "x", np.fft),
    **_of("kron outer tensordot", "a b"), **_of("cov", "m y"), **_of("corrcoef", "x y"),
    **_of("cross outer tensordot trace vecdot svdvals vector_norm matrix_norm", "x x1 x2", np.linalg),
    **_of("tensorsolve tensorinv matrix_power matrix_rank", "a b A tol rtol", np.linalg),
    **_of("unique_all unique_counts unique_inverse unique_values", "x"),
    **_of("union1d intersect1d setxor1d", "~ar1 ~ar2"),
}

#: The same for functions that call one that they are given.
CALLING: dict[Any, Any] = {np.apply_over_axes: _of_numbers(_composed(np.apply_over_axes, "a"))}
