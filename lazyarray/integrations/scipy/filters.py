"""Filters of `scipy.ndimage` that are made of correlations along an axis, on device arrays, with the bits of SciPy.

The order of the sums and the dtypes between two axes are SciPy's own (1.18). Where SciPy would raise, warn, or leave
the result undefined, these functions raise `NotOnDevice` or any other error, and SciPy itself runs on the host.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ... import devices
from ...devices.lines import UNKNOWN, Weights, converted, form_of
from ...errors import NotOnDevice

__all__ = ["convolve1d", "correlate1d", "gaussian_filter", "gaussian_filter1d", "gaussian_gradient_magnitude",
           "gaussian_laplace", "laplace", "prewitt", "sobel"]

DTYPES = "?bhilqBHILQfdFD"
"""SciPy's ndimage has no half precision."""

_MOST = 256
"""Weights and tables that are kept on the device."""

_kept: dict[Any, Any] = {}

_Mode = str | Iterable[str]
_Derivative = Callable[..., Any]


# -- weights and edges -------------------------------------------------------------------------------------------------

def _on_device(key: tuple[Any, ...], make: Callable[[], np.ndarray]) -> Any:
    """An array of a few numbers on the device, kept for the current stream: there its memory also goes back."""
    device = devices.current()
    known = (device.stream(), device.number(), *key)
    found = _kept.get(known)
    if found is None:
        found = device.xp.asarray(make())
        if len(_kept) >= _MOST:
            _kept.clear()
        _kept[known] = found
    return found


def _place(i: np.ndarray, length: int, mode: str) -> np.ndarray:
    """Which elements of a line stand at places that may be beyond its ends; -1: the constant."""
    if mode in ("reflect", "grid-mirror"):
        i = i % (2 * length)
        return np.minimum(i, 2 * length - 1 - i)
    if mode == "nearest" or mode == "mirror" and length == 1:
        return np.clip(i, 0, length - 1)
    if mode == "mirror":
        i = i % (2 * length - 2)
        return np.minimum(i, 2 * length - 2 - i)
    if mode in ("wrap", "grid-wrap"):
        return i % length
    if mode in ("constant", "grid-constant"):
        return np.where((i < 0) | (i >= length), -1, i)
    raise NotOnDevice(f"mode={mode!r} is not supported on the device")


def _weights(values: Any, length: int, mode: str, origin: int) -> Weights:
    """Weights on the host or on the device, for lines of a length."""
    if isinstance(values, devices.current().array_type):
        on_device, form = devices.current().contiguous(values), UNKNOWN
    else:
        form = form_of(values)
        data = values.tobytes()
        on_device = _on_device(("weights", data), lambda: np.frombuffer(data))
    count = on_device.size
    before = count // 2 + origin
    table = _on_device(("table", length, count, mode, origin),
                       lambda: _place(np.arange(-before, length + count - 1 - before), length, mode))
    return Weights(on_device, form, table, before)


@functools.lru_cache(maxsize=128, typed=True)   # SciPy squares sigma in its own precision
def _gaussian(sigma: float, order: int, radius: int) -> np.ndarray:
    """The weights of a Gaussian or its derivative, by SciPy's formulas and in their order."""
    if order < 0:
        raise NotOnDevice("the order is negative")
    exponents = np.arange(order + 1)
    variance = sigma * sigma
    x = np.arange(-radius, radius + 1)
    with np.errstate(all="ignore"):
        phi = np.exp(-0.5 / variance * x ** 2)
        phi = phi / phi.sum()
    if order == 0:
        return phi
    # The polynomial before the exponential, derived so often.
    q = np.zeros(order + 1)
    q[0] = 1
    derive = np.diag(exponents[1:], 1) + np.diag(np.ones(order) / -variance, -1)
    for _ in range(order):
        q = derive.dot(q)
    return (x[:, None] ** exponents).dot(q) * phi


# -- arguments ---------------------------------------------------------------------------------------------------------

def _each(value: Any, count: int) -> list[Any]:
    """One value for each of so many axes."""
    if isinstance(value, str) or not np.iterable(value):
        return [value] * count
    values = [v.item() if isinstance(v, devices.current().array_type) else v for v in value]
    if len(values) != count:
        raise NotOnDevice("the number of values differs from that of the axes")
    return values


def _axes(axes: Any, ndim: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(ndim))
    given = (axes,) if np.isscalar(axes) else axes
    found = tuple([normalize_axis_index(operator.index(axis), ndim) for axis in given])
    if len(set(found)) != len(found):
        raise NotOnDevice("axes are not unique")
    return found


def _output_dtype(output: Any, given: Any, complex_: bool = False, but_same: bool = True) -> np.dtype:
    """The dtype of a result, for what is given as ``output=``; `complex_`: it has to be complex.

    Refuses to write where what is written would be read again; with `but_same`, both may be the same array.
    """
    device = devices.current()
    if output is None:
        dtype = np.promote_types(given.dtype, np.complex64) if complex_ else given.dtype
    elif isinstance(output, device.array_type):
        if output.shape != given.shape:
            raise NotOnDevice("output= of another shape is not supported on the device")
        dtype = output.dtype
        (low, high), (start, stop) = device.extent(output), device.extent(given)
        if low < stop and start < high and not (but_same and output is given):
            raise NotOnDevice("output= that shares memory with the input is not supported on the device")
    else:
        dtype = np.dtype(output)
        if isinstance(output, str) and not issubclass(dtype.type, np.number):
            raise NotOnDevice("output= is not a numeric dtype")
    if dtype.char not in DTYPES or not dtype.isnative or (dtype.kind == "c") != (complex_ or given.dtype.kind == "c"):
        raise NotOnDevice(f"results of {given.dtype} in {dtype} are not supported on the device")
    return dtype


def _given(output: Any, found: Any) -> Any:
    """A new array as the result: in the array given as ``output=``, if there is one."""
    if found.dtype.kind == "b":
        found = found.view(np.uint8) != 0
    if isinstance(output, devices.current().array_type):
        output[...] = found
        return output
    return found


# -- correlations ------------------------------------------------------------------------------------------------------

def _correlated(x: Any, weights: Any, axis: int, dtype: np.dtype, mode: str, cval: Any, origin: int = 0) -> Any:
    """A new array; `weights` are of float64, on the host or on the device. Of complex numbers, part by part."""
    device = devices.current()
    if dtype.kind == "c":
        part = np.dtype(dtype.char.lower())
        found = device.empty(x.shape, dtype)
        real, imag = found.real, found.imag
        real[...] = _correlated(x.real, weights, axis, part, mode, np.real(cval), origin)
        imag[...] = _correlated(x.imag, weights, axis, part, mode, np.imag(cval), origin)
        return found
    if not x.size:
        _place(np.arange(0), 1, mode)
        return device.empty(x.shape, dtype)
    return device.correlate_lines(
        device.contiguous(x), _weights(weights, x.shape[axis], mode, origin), axis, float(cval), dtype)


def correlate1d(input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect",
                cval: Any = 0.0, origin: int = 0) -> Any:
    """`scipy.ndimage.correlate1d` of a device array."""
    array_type = devices.current().array_type
    if not isinstance(weights, array_type):
        weights = np.asarray(weights)
    if weights.ndim != 1 or not weights.size:
        raise NotOnDevice("weights that are not 1-D are not supported on the device")
    axis = normalize_axis_index(axis, input.ndim)
    origin, count = operator.index(origin), weights.size
    if not -(count // 2) <= origin <= (count - 1) // 2:
        raise NotOnDevice("the origin is beyond the weights")
    complex_weights = weights.dtype.kind == "c"
    dtype = _output_dtype(output, input, complex_weights or input.dtype.kind == "c", not complex_weights)
    if not complex_weights:
        return _given(output, _correlated(input, weights.astype(np.float64), axis, dtype, mode, cval, origin))
    weights = weights.conj().astype(np.complex128)
    part = np.dtype(dtype.char.lower())

    def correlated(x: Any, w: Any, dtype: np.dtype, value: Any) -> Any:
        return _correlated(x, w, axis, dtype, mode, value, origin)

    found = devices.current().empty(input.shape, dtype)
    real, imag = found.real, found.imag
    if input.dtype.kind == "c":
        own = np.dtype(input.dtype.char.lower())
        real[...] = correlated(input.real, weights.real, part, np.real(cval))
        real -= correlated(input.imag, weights.imag, own, np.imag(cval))
        imag[...] = correlated(input.real, weights.imag, part, np.real(cval))
        imag += correlated(input.imag, weights.real, own, np.imag(cval))
    else:
        real[...] = correlated(input, weights.real, part, cval)
        imag[...] = correlated(input, weights.imag, part, cval)
    return _given(output, found)


def convolve1d(input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect",
               cval: Any = 0.0, origin: int = 0) -> Any:
    """`scipy.ndimage.convolve1d` of a device array."""
    if not isinstance(weights, devices.current().array_type):
        weights = np.asarray(weights)
    weights, origin = weights[::-1], -origin
    if not weights.shape[0] & 1:
        origin -= 1
    if weights.dtype.kind == "c":
        weights = weights.conj()    # `correlate1d` does it again
    return correlate1d(input, weights, axis, output, mode, cval, origin)


# -- Gaussians ---------------------------------------------------------------------------------------------------------

def _gaussian_weights(sigma: Any, order: Any, truncate: Any, radius: Any) -> np.ndarray:
    if isinstance(sigma, devices.current().array_type):
        sigma = sigma.item()
    reach = int(truncate * float(sigma) + 0.5) if radius is None else operator.index(radius)
    if reach < 0 or not sigma > 0:
        raise NotOnDevice("sigma or the radius is not positive")
    return _gaussian(sigma, operator.index(order), reach)[::-1]


def gaussian_filter1d(input: Any, sigma: float, axis: int = -1, order: int = 0, output: Any = None,
                      mode: str = "reflect", cval: Any = 0.0, truncate: float = 4.0, *,
                      radius: int | None = None) -> Any:
    """`scipy.ndimage.gaussian_filter1d` of a device array."""
    return correlate1d(input, _gaussian_weights(sigma, order, truncate, radius), axis, output, mode, cval)


def _smoothed(x: Any, sigma: Any, order: Any, dtype: np.dtype, mode: Any, cval: Any, truncate: float = 4.0,
              radius: Any = None, axes: Any = None) -> Any:
    """`gaussian_filter` as a new array."""
    axes = _axes(axes, x.ndim)
    count = len(axes)
    each = zip(axes, _each(sigma, count), _each(order, count), _each(mode, count), _each(radius, count))
    passes = [(_gaussian_weights(sd, nth, truncate, reach), axis, edge) for axis, sd, nth, edge, reach in each
              if sd > 1e-15]
    for weights, axis, edge in passes:
        x = _correlated(x, weights, axis, dtype, edge, cval)
    return x if passes else x.astype(dtype)


def gaussian_filter(input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: _Mode = "reflect",
                    cval: Any = 0.0, truncate: float = 4.0, *, radius: Any = None, axes: Any = None) -> Any:
    """`scipy.ndimage.gaussian_filter` of a device array."""
    dtype = _output_dtype(output, input)
    return _given(output, _smoothed(input, sigma, order, dtype, mode, cval, truncate, radius, axes))


# -- derivatives -------------------------------------------------------------------------------------------------------

def _edges(input: Any, across: list[int], axis: int, output: Any, mode: _Mode, cval: Any) -> Any:
    """A difference along one axis, smoothed along the others."""
    axis = normalize_axis_index(axis, input.ndim)
    dtype = _output_dtype(output, input)
    modes = _each(mode, input.ndim)
    found = _correlated(input, np.array([-1.0, 0, 1]), axis, dtype, modes[axis], cval)
    for i in range(input.ndim):
        if i != axis:
            found = _correlated(found, np.array(across, float), i, dtype, modes[i], cval)
    return _given(output, found)


def prewitt(input: Any, axis: int = -1, output: Any = None, mode: _Mode = "reflect", cval: Any = 0.0) -> Any:
    """`scipy.ndimage.prewitt` of a device array."""
    return _edges(input, [1, 1, 1], axis, output, mode, cval)


def sobel(input: Any, axis: int = -1, output: Any = None, mode: _Mode = "reflect", cval: Any = 0.0) -> Any:
    """`scipy.ndimage.sobel` of a device array."""
    return _edges(input, [1, 2, 1], axis, output, mode, cval)


def _over_axes(input: Any, derivative: _Derivative, output: Any, mode: _Mode, axes: Any, square: bool = False) -> Any:
    """The sum of what a derivative gives for each axis, or the root of the sum of squares."""
    dtype = _output_dtype(output, input, but_same=False)
    axes = _axes(axes, input.ndim)
    if not axes:
        return _given(output, input.astype(dtype))
    if dtype.kind == "b":
        raise NotOnDevice("sums of booleans are not supported on the device")
    total: Any = None
    for axis, edge in zip(axes, _each(mode, len(axes))):
        found = derivative(input, axis, dtype, edge)
        if square:
            found *= found
        total = found if total is None else total + found
    if square:
        with np.errstate(invalid="ignore"):     # squares of integers may have gone beyond the dtype
            total = _root(total, dtype)
    return _given(output, total)


def _root(total: Any, dtype: np.dtype) -> Any:
    """The square root in the precision that NumPy takes for a dtype; then converted without asking."""
    xp = devices.current().xp
    if dtype.kind in "fc":
        return xp.sqrt(total)
    precision = {1: np.float16, 2: np.float32}.get(dtype.itemsize, np.float64)
    return converted(xp, xp.sqrt(total.astype(precision)).astype(np.float64), dtype)


def laplace(input: Any, output: Any = None, mode: _Mode = "reflect", cval: Any = 0.0, *, axes: Any = None) -> Any:
    """`scipy.ndimage.laplace` of a device array."""
    def derivative(x: Any, axis: int, dtype: np.dtype, edge: str) -> Any:
        return _correlated(x, np.array([1.0, -2, 1]), axis, dtype, edge, cval)

    return _over_axes(input, derivative, output, mode, axes)


def _of_gaussian(order: int, sigma: Any, cval: Any, given: dict[str, Any]) -> _Derivative:
    """A derivative along one axis of what is smoothed along the others."""
    unknown = given.keys() - {"truncate", "radius"}
    if unknown:
        raise NotOnDevice(f"{', '.join(unknown)} is not supported on the device")

    def derivative(x: Any, axis: int, dtype: np.dtype, edge: str) -> Any:
        orders = [0] * x.ndim
        orders[axis] = order
        return _smoothed(x, sigma, orders, dtype, edge, cval, **given)

    return derivative


def gaussian_laplace(input: Any, sigma: Any, output: Any = None, mode: _Mode = "reflect", cval: Any = 0.0, *,
                     axes: Any = None, **kwargs: Any) -> Any:
    """`scipy.ndimage.gaussian_laplace` of a device array."""
    chosen = _axes(axes, input.ndim)
    sigmas = [0] * input.ndim       # an axis that is not filtered
    for axis, sd in zip(chosen, _each(sigma, len(chosen))):
        sigmas[axis] = sd
    return _over_axes(input, _of_gaussian(2, sigmas, cval, kwargs), output, mode, chosen)


def gaussian_gradient_magnitude(input: Any, sigma: Any, output: Any = None, mode: _Mode = "reflect",
                                cval: Any = 0.0, *, axes: Any = None, **kwargs: Any) -> Any:
    """`scipy.ndimage.gaussian_gradient_magnitude` of a device array."""
    return _over_axes(input, _of_gaussian(1, sigma, cval, kwargs), output, mode, axes, square=True)
