"""Arrays that a few numbers describe: ``arange(n)``, ``linspace(0, 1)``, ``eye(3)``, ``indices(shape)``.

They are computed on the device, so that nothing is copied. The steps are NumPy's, each rounded as it rounds them: the
device's own versions may fuse a product and a sum into one rounding. What else than real numbers is given, and every
dtype that the device can't hold, is left to NumPy.
"""
from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

import numpy as np

from .. import devices
from ..errors import NotOnDevice, refuse
from ..storage import handles
from ..storage.storage import Storage
from .adapters.common import places_of

_REAL = (int, float, bool, np.float64, np.float32, np.float16, np.int64, np.int32)
_float64 = np.dtype(float)
_LARGEST = 2**62
PLAIN = np.arange(2)
"""What `range_of` gives for ``arange(n)``."""


def check_device(device: Any) -> None:
    np.empty(0, device=device)      # NumPy words the error


def wrapped(array: Any) -> Any:
    return handles.new_array(Storage(devices.current(), array), None, array)


def device_for(dtype: np.dtype) -> Any:
    """The device, if it can be used and can hold `dtype`."""
    device = devices.current()
    if device.usable() is not None:
        raise NotOnDevice(device.usable())
    if dtype.itemsize == 0 or not device.can_hold(dtype):
        raise NotOnDevice(f"dtype {dtype} is not supported on the device")
    return device


def _numbers(*values: Any) -> None:
    refuse(any(type(v) not in _REAL for v in values), "the arguments are not real numbers")


# -- equal steps -----------------------------------------------------------------------------

def range_of(*args: Any, device: Any = None, **named: Any) -> tuple[int, np.ndarray]:
    """How many values ``arange`` gives, and the first two of them, from which all others follow."""
    if not named and device is None and len(args) == 1 and type(args[0]) is int and 1 < args[0] < _LARGEST:
        return args[0], PLAIN      # most calls
    check_device(device)
    start, stop, step, dtype = _range_arguments(*args, **named)
    if stop is None:
        if not args:
            raise TypeError("arange() requires stop to be specified.")
        start, stop = 0, start
    if step is None:
        step = 1
    _numbers(start, stop, step)
    if dtype is None:
        # By the types; of Python's numbers only integers have a dtype that goes by the value.
        if any(type(v) is int and not -_LARGEST < v < _LARGEST for v in (start, stop, step)):
            raise NotOnDevice("integers beyond 64 bits are not supported on the device")
        dtype = np.arange(start - start, stop - stop, step).dtype
    dtype = np.dtype(dtype)
    if dtype.kind not in "iuf":
        raise NotOnDevice(f"ranges of {dtype} are not supported on the device")
    quotient = (stop - start) / step
    refuse(not abs(quotient) < _LARGEST, "the arguments are invalid")
    n = max(0, math.ceil(quotient))
    # NumPy stores the first two values, and goes on by their difference.
    head = np.zeros(2, dtype)
    for i in range(min(n, 2)):
        head[i] = start + step if i else start
    return n, head


def _range_arguments(start: Any = 0, stop: Any = None, step: Any = 1, dtype: Any = None) -> tuple[Any, ...]:
    return start, stop, step, dtype


class Steps(NamedTuple):
    """How numbers follow from their places, which are counted in the dtype `kind`.

    The `ufuncs`, each with its other operand if it has one, are applied in turn. Then one number is `replaced`, given
    as its place and its value, and all are cast to the dtype `target`.
    """

    n: int
    kind: np.dtype
    ufuncs: list[tuple[Any, ...]]
    replaced: tuple[int, Any] | None
    target: np.dtype


def steps_of_range(n: int, head: np.ndarray) -> Steps:
    """The steps of what `range_of` found."""
    dtype, ufuncs, exact = head.dtype, [], True
    if dtype.kind in "iu":
        work = np.dtype(np.int64 if dtype.kind == "i" else np.uint64)
    else:
        work = np.dtype(np.float32) if dtype == np.float16 else dtype
    first, second = head.astype(work)
    if n < 2:
        return Steps(n, work, [], (0, first) if n else None, dtype)
    if dtype.kind in "iu":
        delta = np.array((int(second) - int(first)) % 2**64, np.uint64).astype(work)[()]
    else:
        with np.errstate(all="ignore"):
            delta = second - first
            exact = first + delta == second
        refuse(not np.isfinite(delta), "infinite steps")
    if delta != 1:
        ufuncs.append((np.multiply, delta))
    if first:
        ufuncs.append((np.add, first))
    return Steps(n, work, ufuncs, None if exact else (1, second), dtype)


def _computed(steps: Steps) -> Any:
    device_for(steps.target)
    xp = device_for(steps.kind).xp
    array = xp.arange(steps.n, dtype=steps.kind)
    for ufunc, *numbers in steps.ufuncs:
        getattr(xp, ufunc.__name__)(array, *numbers, array)
    if steps.replaced is not None:
        place, value = steps.replaced
        array[place] = value
    return wrapped(array.astype(steps.target, copy=False))


def arange(*args: Any, **kwargs: Any) -> Any:
    return _computed(steps_of_range(*range_of(*args, **kwargs)))


def _is_plain(number: Any) -> bool:
    """Whether it is one of Python's numbers that are a float64 to ``linspace``."""
    return type(number) is float or type(number) is int and -_LARGEST < number < _LARGEST


def spacing_of(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
               dtype: Any = None, axis: int = 0, *, device: Any = None) -> tuple[Steps, Any]:
    """The steps of ``linspace``, and the difference of its numbers."""
    if device is not None:
        check_device(device)
    _numbers(start, stop)
    num = operator.index(num)
    refuse(num < 0 or axis not in (0, -1), "the arguments are invalid")
    kind = _float64 if _is_plain(start) and _is_plain(stop) else np.linspace(start, stop, 0).dtype
    target = kind if dtype is None else np.dtype(dtype)
    if target.kind not in "iufc":
        raise NotOnDevice(f"ranges of {target} are not supported on the device")
    device_for(target)
    if kind is not target:
        device_for(kind)
    start, stop = kind.type(start), kind.type(stop)
    delta, div = stop - start, num - 1 if endpoint else num
    step = delta / div if div > 0 else math.nan
    if step == 0:       # too small to be told from nothing
        ufuncs: list[tuple[Any, ...]] = [(np.true_divide, kind.type(div)), (np.multiply, delta)]
    else:
        ufuncs = [(np.multiply, step)] if div > 0 else []
    if start:
        ufuncs.append((np.add, start))
    if target.kind in "iu":
        ufuncs.append((np.floor,))
        stop = np.floor(stop)
    return Steps(num, kind, ufuncs, (num - 1, stop) if endpoint and num > 1 else None, target), step


def linspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
             dtype: Any = None, axis: int = 0, *, device: Any = None) -> Any:
    steps, step = spacing_of(start, stop, num, endpoint, retstep, dtype, axis, device=device)
    x = _computed(steps)
    return (x, step) if retstep else x


def logspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0,
             dtype: Any = None, axis: int = 0) -> Any:
    refuse(type(base) not in (int, float), "base= is not a Python number")
    y = handles.device_of(linspace(start, stop, num, endpoint, False, None, axis))
    target = y.dtype if dtype is None else np.dtype(dtype)
    refuse(target.kind not in "fc", "an integer dtype is not supported on the device")
    xp = device_for(target).xp
    return wrapped(xp.power(y.dtype.type(base), y).astype(target, copy=False))


def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None,
              axis: int = 0) -> Any:
    _numbers(start, stop)
    target = None if dtype is None else np.dtype(dtype)
    kind = np.result_type(np.asarray(start), np.asarray(stop), float(num), np.zeros((), target))
    target = target or kind
    if not start * stop > 0 or kind.kind != "f" or target.kind not in "fc" or math.isinf(start * stop):
        raise NotOnDevice("geometric ranges of integers, of complex numbers or through zero are not supported "
                          "on the device")
    device_for(target)
    sign, start, stop = np.sign(kind.type(start)), abs(kind.type(start)), abs(kind.type(stop))
    y = handles.device_of(logspace(np.log10(start), np.log10(stop), num, endpoint, 10.0, kind, axis))
    num = operator.index(num)
    # What the logarithm lost, the ends get back.
    if num > 0:
        y[0] = start
    if num > 1 and endpoint:
        y[-1] = stop
    if sign < 0:
        y *= sign
    return wrapped(y.astype(target, copy=False))


# -- places ----------------------------------------------------------------------------------

def _shape(N: Any, M: Any, k: Any) -> tuple[int, int, int]:
    """The lengths of a matrix, and which diagonal is meant."""
    N, k = operator.index(N), operator.index(k)
    M = N if M is None else operator.index(M)
    refuse(min(N, M) < 0, "the size is negative")
    return N, M, k


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: Any = "C", *,
        device: Any = None) -> Any:
    check_device(device)
    dtype = np.dtype(dtype)
    refuse(order not in ("C", "F"), "the arguments are invalid")
    return wrapped(device_for(dtype).xp.eye(*_shape(N, M, k), dtype, order))


def identity(n: Any, dtype: Any = None) -> Any:
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Any:
    dtype = np.dtype(dtype)
    return wrapped(device_for(dtype).xp.tri(*_shape(N, M, k), dtype))


def _places(n: Any, k: Any, m: Any, upper: bool) -> tuple[Any, ...]:
    n, m, k = _shape(n, m, k)
    xp = device_for(np.dtype(bool)).xp
    inside = xp.tri(n, m, k - upper, bool)
    return tuple([wrapped(part.copy()) for part in places_of(xp, ~inside if upper else inside)])


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Any, ...]:
    return _places(n, k, m, False)


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Any, ...]:
    return _places(n, k, m, True)


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    shape = tuple([operator.index(n) for n in dimensions])
    dtype = np.dtype(dtype)
    refuse(dtype.kind not in "iuf" or any(n < 0 for n in shape),
           "indices of this shape or dtype are not supported on the device")
    xp = device_for(dtype).xp
    lines = [xp.arange(n, dtype=dtype).reshape([n if i == axis else 1 for i in range(len(shape))])
             for axis, n in enumerate(shape)]
    if sparse:
        return (*map(wrapped, lines),)
    array = xp.empty((len(shape), *shape), dtype)
    for place, line in zip(array, lines):
        place[...] = line
    return wrapped(array)


# -- frequencies -----------------------------------------------------------------------------

def fftfreq(n: Any, d: Any = 1.0, device: Any = None, *, real: bool = False) -> Any:
    check_device(device)
    _numbers(d)
    refuse(not isinstance(n, (int, np.integer)) or n < 1, "the arguments are invalid")
    array = device_for(_float64).xp.arange(n // 2 + 1 if real else n, dtype=_float64)
    if not real:
        array[(n - 1) // 2 + 1:] -= float(n)
    return wrapped(array * (1.0 / (n * d)))


rfftfreq = functools.partial(fftfreq, real=True)


SERIES: dict[Any, Any] = {
    np.arange: arange, np.linspace: linspace, np.logspace: logspace, np.geomspace: geomspace, np.eye: eye,
    np.identity: identity, np.tri: tri, np.indices: indices, np.tril_indices: tril_indices,
    np.triu_indices: triu_indices, np.fft.fftfreq: fftfreq, np.fft.rfftfreq: rfftfreq,
}
