"""LazyScalar: what a full reduction or ``x[0]`` returns, still on the device."""
from __future__ import annotations

import contextlib
import math
import operator
import sys
from collections.abc import Callable
from types import MethodType, ModuleType
from typing import Any

import numpy as np

from .. import _native
from ..dispatch import function, ufunc
from ..dispatch.host_fallback import lazily
from ..errors import TransferError
from ..errors.inspection import once_made
from ..functions.kinds import SUBCLASS, kind_of
from ..settings.options import current as current_options
from ..storage import handles, transfer
from ..storage.handles import ScalarHandle
from . import methods, operators
from .function_methods import VIA_FUNCTION, bounds
from .sequence_slot import index_is_no_sequence, is_sequence


class NotOfThisKindError(AttributeError, TypeError):
    """A special method that NumPy's scalars of other dtypes have.

    To ``hasattr`` the attribute is missing; Python's functions that call the method raise TypeError, under which name
    it is shown.
    """


NotOfThisKindError.__name__ = NotOfThisKindError.__qualname__ = "TypeError"
NotOfThisKindError.__module__ = "builtins"


class _Only:
    """A special method that scalars of some dtypes have, as one class for all of them can have it."""

    def __init__(self, dtypes: str, method: Callable[..., Any], says: Callable[[Any], str]) -> None:
        self.dtypes, self.method, self.says = dtypes, method, says

    def __set_name__(self, owner: type, name: str) -> None:
        self.method.__name__ = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        if instance.dtype.char not in self.dtypes:
            raise NotOfThisKindError(self.says(instance))
        return MethodType(self.method, instance)


def _no_integer(s: LazyScalar) -> str:
    text = f"'numpy.{s.dtype.type.__name__}' object cannot be interpreted as an integer"
    # C code that takes a float, or else an integer, takes a lazy float for neither.
    return text + "; if a float is wanted, pass float(s) of a LazyScalar s" if s.dtype.kind == "f" else text


def _without(name: str) -> Callable[[LazyScalar], str]:
    return lambda s: f"type numpy.{s.dtype.type.__name__} doesn't define {name} method"


_INTEGERS = "bBhHiIlLqQpPnN"


class LazyScalar(ScalarHandle):
    """One number on the device that can be used in place of a NumPy scalar.

    It is immutable and hashable, and an instance (``isinstance``) of the scalar type that NumPy would
    return. Arithmetic with it stays on the device. ``float``, ``int``, ``if``, ``format``, ``hash`` and
    use as an index copy the value to the host, once. It is a snapshot: later writes to the array that it
    came from do not change it. For dtypes that the device does not support (strings, dates, long doubles)
    results are NumPy scalars.

    Examples
    --------
    >>> import numpy as np, lazyarray
    >>> s = lazyarray.asarray([1.0, 2.0, 3.0]).sum()
    >>> isinstance(s, np.float64), s * 2 > 11, float(s)
    (True, np.True_, 6.0)
    """

    __slots__ = ()

    __array_priority__ = -1000000.0     # that of NumPy's scalars
    strides = ()
    ndim = 0
    size = 1
    base = None

    def __init__(self, *args: Any) -> None:
        raise TypeError("LazyScalars are results; use a NumPy scalar type to make a value")

    # -- identity ----------------------------------------------------------------------------

    # In C alone: where NumPy asks for it, an interrupt that is raised within is lost, and becomes a SystemError.
    __class__: Any = property((lambda self: self.dtype.type) if _native.recording is None else
                              _native.recording.scalar_class)

    @property
    def __wrapped__(self) -> Any:
        """A device array without dimensions, on the current device."""
        storage = self._self_storage
        if storage is None:
            from .. import devices
            return devices.current().without_dimensions(self._self_value)
        with storage.place():
            copy = handles.device_of(self).copy()
        return transfer.to_current(storage.device, copy, "a scalar for GPU code")

    @property
    def dtype(self) -> np.dtype:
        if self._self_storage is None:
            return self._self_value.dtype
        array = self._self_array
        return (handles.meta_of(self) if array is None else array).dtype

    @property
    def shape(self) -> tuple[()]:
        return ()

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    nbytes = itemsize

    @property
    def T(self) -> LazyScalar:
        return self

    # -- protocols ---------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(handles.value_of(self), dtype)

    def __array_ufunc__(self, func: np.ufunc, /, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if func in _COMPARED and method == "__call__" and not kwargs:       # its result is mostly asked for
            # NumPy's own scalars come as arrays without dimensions.
            one, other = [x[()] if type(x) is np.ndarray and not x.ndim else x for x in inputs]
            name, mirrored = _COMPARED[func]
            if one is self and (type(other) in _NUMBERS or type(other) is LazyScalar):
                return getattr(self, name)(other)
            if type(one) in _NUMBERS:
                return getattr(self, mirrored)(one)
        return ufunc.call(self, func, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...],
                           kwargs: dict[str, Any]) -> Any:
        return function.call(func, types, args, kwargs)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        self._check_described("__array_interface__")
        return handles.value_of(self).__array_interface__

    def _check_described(self, name: str) -> None:
        """The text of a string is gone with the temporary array that NumPy describes; `__array__` keeps it."""
        if self.dtype.kind not in "biufc":
            raise AttributeError(name)

    @property
    def __array_struct__(self) -> Any:
        self._check_described("__array_struct__")
        return handles.value_of(self).__array_struct__

    @property
    def __cuda_array_interface__(self) -> Any:
        raise AttributeError("__cuda_array_interface__")

    def __cupy_get_ndarray__(self) -> Any:
        return self.__wrapped__

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return handles.value_of(self).__array_wrap__(array, context, return_scalar)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        from .. import numpy as namespace
        return namespace.at_version(api_version)

    # -- the value ---------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(handles.value_of(self))

    def __int__(self) -> int:
        return int(handles.value_of(self))

    def __float__(self) -> float:
        return float(handles.value_of(self))

    def __complex__(self) -> complex:
        return complex(handles.value_of(self))

    __index__ = _Only(_INTEGERS, lambda s: operator.index(handles.value_of(s)), _no_integer)

    def __hash__(self) -> int:
        return hash(handles.value_of(self))

    @once_made("_self_value")
    def __repr__(self) -> str:
        return repr(handles.value_of(self))

    @once_made("_self_value")
    def __str__(self) -> str:
        return str(handles.value_of(self))

    @once_made("_self_value")
    def __format__(self, spec: str) -> str:
        return format(handles.value_of(self), spec)

    __round__ = _Only(_INTEGERS + "efdg", lambda s, *args: round(handles.value_of(s), *args), _without("__round__"))
    __trunc__ = _Only("d", lambda s: math.trunc(handles.value_of(s)), _without("__trunc__"))

    if sys.version_info < (3, 12):      # later, `bytes` takes the buffer, or the number of bytes, as it does of NumPy's
        def __bytes__(self) -> bytes:
            return bytes(handles.value_of(self))

    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview:
            # The buffer of NumPy's scalar is read-only, and NumPy would make read-only arrays of it.
            return memoryview(np.array(handles.value_of(self)))

    def __dir__(self) -> list[str]:
        return dir(self.dtype.type)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_self_") or name in ("dtype", "__array_interface__", "__array_struct__"):
            raise AttributeError(name)      # the slots and the properties above said no
        kind = self.dtype.type
        if not hasattr(kind, name):         # known without the value
            raise AttributeError(f"'{kind.__module__}.{kind.__name__}' object has no attribute {name!r}")
        return getattr(handles.value_of(self), name)

    def __getitem__(self, index: Any) -> Any:
        if index is Ellipsis or type(index) is tuple and len(index) == 1 and index[0] is Ellipsis:
            return handles.as_array(self)
        if type(index) is tuple and not index:
            return self
        return _rewrapped(handles.value_of(self)[index])

    def __copy__(self) -> LazyScalar:
        return self

    def __deepcopy__(self, memo: Any) -> LazyScalar:
        return self

    def __reduce__(self) -> Any:
        return handles.value_of(self).__reduce__()

    def __reduce_ex__(self, protocol: int) -> Any:
        return handles.value_of(self).__reduce_ex__(protocol)

    def copy(self, order: str = "C") -> LazyScalar:
        """The scalar itself: it can't change."""
        if type(order) is not str or order not in ("C", "F", "A", "K"):
            np.empty(()).copy(order)    # NumPy's error, unless it knows the order by another name
        return self

    def item(self, *args: Any) -> Any:
        """The value as a Python object."""
        return handles.value_of(self).item(*args)

    def tolist(self) -> Any:
        """The value as a Python object."""
        return handles.value_of(self).item()

    get = methods.get

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """The value in another dtype, on the same side."""
        if self._self_storage is None:
            return _rewrapped(self._self_value.astype(dtype, *args, **kwargs))
        return handles.as_array(self).astype(dtype, *args, **kwargs)[()]


def _rewrapped(value: Any) -> Any:
    return (*map(lazily, value),) if type(value) is tuple else lazily(value)


def _known(x: Any) -> Any:
    """The value of what is on the host already, else NotImplemented."""
    if handles.is_scalar(x):
        return x._self_value if x._self_value is not None else NotImplemented
    return x if isinstance(x, (bool, int, float, complex, np.generic)) else NotImplemented


#: Counts an operator of numbers; whether there were many in a row: what comes of those is better off on the host.
_counted: Callable[[], bool] = (lambda: False) if _native.recording is None else _native.recording.counted


def _was_computed(number: Any) -> bool:
    """Whether a number is a lazy scalar whose value the device has, and no element of an array, as others may be read
    one by one.
    """
    return type(number) is LazyScalar and number._self_value is None and number._self_base is None


def _fetched(*numbers: Any) -> bool:
    """Whether the values of all of them are on the host now: those of lazy scalars are fetched, if that is allowed."""
    for number in numbers:
        if handles.is_scalar(number) and current_options().small_on_host:
            with contextlib.suppress(TransferError):        # `no_transfers` is in force
                handles.value_of(number, "computed with again and again")
    return all(_known(number) is not NotImplemented for number in numbers)


_float64 = np.dtype(float)
#: Ufuncs that compare -> the operators, of the first operand and of the second one.
_COMPARED = {func: (f"__{name}__", mirrored) for name, (func, mirrored) in operators.COMPARISONS.items()}
#: Numbers with which a comparison by an operator is that by its ufunc.
_NUMBERS = operators.direct - {np.timedelta64}
#: Operands of which nothing has to be asked before they are recorded.
_DIRECT = frozenset((float, int, LazyScalar))


def _binary(on_device: Callable[..., Any], on_host: Callable[..., Any], func: np.ufunc | None = None,
            reflected: bool = False) -> Callable[..., Any]:
    """An operator: on the host if both values are there, on the device otherwise.

    `func`: its ufunc, if that is all it does. `reflected`: the operands are the other way round. Two scalars need none
    of what a ufunc looks at before an array may be waited for.
    """
    def method(self: Any, other: Any, *rest: Any) -> Any:
        if type(other) is np.float64 and self.dtype == _float64:    # as a `float`, which needs no look at its dtype
            other = float(other)
        if (_was_computed(self) or _was_computed(other)) and not handles.is_array(other) and _counted() and (
                _fetched(self, other)):
            return on_host(_known(self), _known(other), *rest)      # NumPy's own number, as where small arrays stay
        if func is not None and self._self_value is None and type(other) in _DIRECT and (
                not self._self_storage.device.several):
            operands = (other, self) if reflected else (self, other)
            result = ufunc.quick(func, operands)
            if result is None:
                result = ufunc.looped(func, operands)
            if result is not None:
                return result
        a, b = _known(self), _known(other)
        if a is not NotImplemented and b is not NotImplemented:
            return _rewrapped(on_host(a, b, *rest))
        if reflected and type(other) is complex and self.dtype == float:    # NumPy's is a `float`, and this is Python's
            return on_host(handles.value_of(self), other, *rest)
        kind = type(other)
        if kind_of(kind) == SUBCLASS:       # one without dimensions stays one, as a masked array, beside NumPy's scalar
            return on_host(handles.value_of(self), other, *rest)
        if not (handles.is_lazy(other) or isinstance(other, (bool, int, float, complex, np.generic, np.ndarray))):
            # NumPy's scalars have rules of their own for sequences, and foreign types know NumPy's scalars.
            if hasattr(kind, "__array_ufunc__") or (
                    hasattr(kind, "__cuda_array_interface__") and getattr(kind, "__array_priority__", 0) <= 0):
                return on_device(self, other)
            return on_host(handles.value_of(self), other, *rest)
        return on_device(self, other, *rest)
    return method


#: Bits from which on a number may be beyond all dtypes.
_LONG = 64


def _comparison(on_device: Callable[..., Any], on_host: Callable[..., Any], func: np.ufunc) -> Callable[..., Any]:
    """An operator that compares: its result is mostly asked for, and the scalar itself compared again."""
    compared = _binary(on_device, on_host, func)

    def method(self: Any, other: Any) -> Any:
        if type(other) is int and other.bit_length() >= _LONG:      # which is an error for some dtypes
            return _rewrapped(on_host(handles.value_of(self), other))
        result = compared(self, other)
        if handles.is_scalar(result) and result._self_value is None and (
                handles.is_scalar(other) or isinstance(other, (bool, int, float, complex, np.generic))):
            result._self_base = handles.Comparison(on_host, self, other)
        return result
    return method


def _swapped(on_host: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, *rest: on_host(b, a, *rest)


def _unary(on_device: Callable[..., Any], on_host: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        value = self._self_value
        return on_device(self) if value is None else _rewrapped(on_host(value))
    return method


def _through_array(name: str, func: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._self_value is not None and not any(map(handles.is_lazy, (*args, *kwargs.values()))):
            return _rewrapped(getattr(self._self_value, name)(*args, **kwargs))
        if name == "clip":
            args, kwargs = bounds(*args, **kwargs)
        result = function.run(func, (self, *args), kwargs)
        # NumPy's scalars return a scalar also where `out` is an array without dimensions.
        return result[()] if isinstance(result, np.ndarray) and not result.ndim else result
    return method


def _complete() -> None:
    # There are no in-place operators: `s += 1` makes a new scalar and rebinds the name.
    for name, func in operators.BINARY.items():
        on_host = getattr(operator, f"__{name}__")
        setattr(LazyScalar, f"__{name}__", _binary(operators.binary(func, f"__r{name}__"), on_host, func))
        setattr(LazyScalar, f"__r{name}__", _binary(operators.reflected(func, f"__{name}__"), _swapped(on_host), func,
                                                    True))
    LazyScalar.__divmod__ = _binary(operators.binary(np.divmod, "__rdivmod__"), divmod)
    LazyScalar.__rdivmod__ = _binary(operators.reflected(np.divmod, "__divmod__"), _swapped(divmod))
    LazyScalar.__pow__ = _binary(operators.power, pow)
    LazyScalar.__rpow__ = _binary(operators.reflected_power, _swapped(pow), reflected=True)
    for name, (func, mirrored) in operators.COMPARISONS.items():
        setattr(LazyScalar, f"__{name}__", _comparison(operators.comparison(func, mirrored), getattr(operator, name),
                                                                  func))
    for name, func in operators.UNARY.items():
        setattr(LazyScalar, f"__{name}__", _unary(operators.unary(func), getattr(operator, name)))
    for name, func in VIA_FUNCTION.items():
        if hasattr(np.generic, name) and name not in ("put", "choose", "diagonal", "swapaxes", "trace"):
            setattr(LazyScalar, name, _through_array(name, func))


_complete()
index_is_no_sequence(LazyScalar)
if is_sequence(object.__new__(LazyScalar)):
    LazyScalar.__iter__ = None      # else Python would iterate, by `__getitem__`, until an IndexError
