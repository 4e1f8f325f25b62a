"""Histograms, convolutions, polynomials and rows of evenly spaced numbers.

A histogram's edges are computed by NumPy from the smallest and the largest value: counts must not hang on the last
bit of an edge. CuPy counts NaN, and integers up to one beyond the last edge.
"""
from __future__ import annotations

import math
import operator
import sys
from typing import Any

import numpy as np

from ... import devices
from ...errors import NotOnDevice, refuse, wrong
from .common import are_finite, array, axis_index, fetch, filled, integer, intp, is_device, truth
from .order import searchsorted

# -- histograms ----------------------------------------------------------------------------------

def _extent(xp: Any, a: Any, range: Any) -> np.ndarray:
    """Two host values with the dtype and the extremes of `a`: all that NumPy needs to place even edges."""
    if range is not None or a.size == 0:
        return np.zeros(min(a.size, 1), a.dtype)
    return fetch(xp.stack([a.min(), a.max()]), "the extremes of the data")


def _edges(xp: Any, a: Any, bins: Any, range: Any) -> np.ndarray | Any:
    """Edges on the host, or on the device if they were given there."""
    refuse(isinstance(bins, str), "bins given by this method's name are not supported on the device")
    if is_device(xp, bins) and bins.ndim:
        wrong(bins.ndim != 1, "`bins` must be 1d, when an array")
        before, after = bins[:-1], bins[1:]
        if not truth((before <= after).all(), "bin-order check"):
            if truth((before > after).any(), "bin-order check"):
                raise ValueError("`bins` must increase monotonically, when an array")
            raise NotOnDevice("NaN among the edges of bins")
        return bins
    range = None if range is None else tuple([fetch(r, "range") for r in range])
    edges = np.histogram_bin_edges(_extent(xp, a, range), fetch(bins, "bins"), range)
    refuse(bool((edges != edges).any()), "NaN among the edges of bins")
    return edges


def _spread(xp: Any, edges: Any, uniform: bool) -> Any:
    """Host edges on the device: made there if that gives the very same numbers, else uploaded."""
    if is_device(xp, edges) or not uniform or edges.size < 2 or edges.dtype.kind != "f":
        return array(xp, edges)
    dtype = edges.dtype
    first = dtype.type(edges[0])
    step = (edges[-1] - first) / dtype.type(edges.size - 1)
    made = np.arange(edges.size, dtype=dtype) * step + first
    if not np.array_equal(made[:-1], edges[:-1]):
        return array(xp, edges)
    # One kernel for the product and one for the sum, so that nothing is fused and rounded otherwise.
    result = xp.arange(edges.size, dtype=dtype) * step
    result = result + first
    result[-1] = edges[-1]
    return result


def _plain(xp: Any, a: Any) -> Any:
    a = array(xp, a)
    if a.dtype.kind not in "fiu" or a.dtype == np.uint64:
        raise NotOnDevice(f"histograms of {a.dtype} are not supported on the device")
    return a.ravel()


def _counts(xp: Any, a: Any, edges: Any, weights: Any, last: float | None) -> Any:
    """How many values, or the sums of what they weigh, are in each bin. `last`: the last edge, if the host knows it."""
    n = edges.size - 1
    common = np.result_type(a.dtype, edges.dtype)
    if last is not None and np.isfinite(last) and common.kind == "f":
        edges = edges.astype(common)        # a copy, whose last bin has its upper edge too
        edges[-1] = np.nextafter(common.type(last), common.type(np.inf))
        if weights is None and (found := devices.current().count_in_bins(a, edges)) is not None:
            return found
        counts = xp.zeros(n + 2, np.uint64 if weights is None else float)       # CuPy adds no signed ones there
        one = filled(xp, (), np.uint64(1), counts.dtype) if weights is None else weights
        xp.add.at(counts, searchsorted(xp, edges, a, "right"), one)
        counts = counts[1:-1]       # without what lies below and above, NaN included
        return counts.view(intp) if weights is None else counts
    places = searchsorted(xp, edges, a, "right") - 1
    # The last bin has its upper edge too. What lies outside, NaN included, goes into a bin of its own.
    places = xp.where(a == edges[-1], n - 1, places)
    inside = (a >= edges[0]) & (a <= edges[-1])
    places = xp.where(inside, places, n)
    return devices.current().count_places(places, weights, n + 1)[:n]


def histogram(xp: Any, /, a: Any, bins: Any = 10, range: Any = None, density: Any = None,
              weights: Any = None) -> tuple[Any, ...]:
    shape = array(xp, a).shape
    a = _plain(xp, a)
    edges = _edges(xp, a, bins, range)
    refuse(edges.size < 2, "fewer than two edges")
    on_host = not is_device(xp, edges)
    uniform, last = on_host and np.ndim(bins) == 0, edges[-1] if on_host else None
    edges = _spread(xp, edges, uniform)
    if weights is None:
        counts = _counts(xp, a, edges, None, last)
    else:
        weights = array(xp, weights)
        wrong(weights.shape != shape, "weights should have the same shape as a.")
        if weights.dtype.kind not in "fc" and not (weights.dtype.kind in "iu" and uniform):
            raise NotOnDevice(f"weights of {weights.dtype} are not supported on the device")
        flat = weights.ravel()
        if flat.dtype.kind == "c":
            counts = _counts(xp, a, edges, flat.real.astype(float), last) + 1j * _counts(
                xp, a, edges, flat.imag.astype(float), last)
        else:
            counts = _counts(xp, a, edges, flat.astype(float), last)
        counts = counts.astype(weights.dtype)
    if density:
        return counts / xp.diff(edges).astype(float) / counts.sum(), edges
    return counts, edges


def histogram_bin_edges(xp: Any, /, a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return _spread(xp, _edges(xp, _plain(xp, a), bins, range), np.ndim(bins) == 0)


def histogramdd(xp: Any, /, sample: Any, bins: Any = 10, range: Any = None, density: Any = None,
                weights: Any = None) -> tuple[Any, ...]:
    if is_device(xp, sample):
        wrong(sample.ndim > 2, "too many values to unpack (expected 2)")
        columns = list((sample if sample.ndim == 2 else sample.reshape(-1, 1)).T)
    else:
        columns = [array(xp, s) for s in sample]
    refuse(any(c.ndim != 1 for c in columns), "the columns are not one-dimensional")
    columns = [_plain(xp, c) for c in columns]
    refuse(any(c.shape != columns[0].shape for c in columns), "the columns differ in length")
    sample_dtype = np.result_type(*[c.dtype for c in columns])
    columns = [c.astype(sample_dtype, copy=False) for c in columns]
    ndim = len(columns)
    if not _has_length(bins):
        bins = [bins] * ndim
    elif len(bins) != ndim:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    bins = [fetch(b, "the number of bins") if is_device(xp, b) and not b.ndim else b for b in _items(xp, bins)]
    ranges = [None] * ndim if range is None else list(range)
    refuse(len(ranges) != ndim or not columns[0].size,
           "the sample is empty, or the number of ranges differs from its dimensions")
    edges, places, inside = [], 0, True
    for column, count, extent in zip(columns, bins, ranges):
        if not is_device(xp, count) and np.ndim(count) == 0:
            # Unlike np.histogram, these edges are of the sample's own floats.
            low, high = _extent(xp, column, None) if extent is None else extent
            if not (np.isfinite(low) and np.isfinite(high)) or low > high:
                raise ValueError("range is not finite, or max must be larger than min")
            if low == high:
                low, high = low - 0.5, high + 0.5
            edge = np.linspace(low, high, operator.index(count) + 1)
        else:
            edge = _edges(xp, column, count, extent)
        edge = _spread(xp, edge, np.ndim(count) == 0)
        n = edge.size - 1
        refuse(n < 1, "fewer than two edges")
        place = xp.where(column == edge[-1], n - 1, searchsorted(xp, edge, column, "right") - 1)
        inside = inside & (column >= edge[0]) & (column <= edge[-1])
        places = places * n + place
        edges.append(edge)
    shape = tuple([e.size - 1 for e in edges])
    total = math.prod(shape)
    refuse(math.prod(n + 2 for n in shape) > sys.maxsize, "there are too many bins")
    if weights is not None:
        weights = array(xp, weights)
        wrong(weights.dtype.kind == "c", "Cannot cast array data from complex to float64")
        weights = weights.astype(float)
        wrong(weights.shape != inside.shape, "The weights and list don't have the same length.")
    counts = devices.current().count_places(xp.where(inside, places, total), weights, total + 1)[:total]
    counts = counts.reshape(shape).astype(float)
    if density:
        volume = counts.sum()
        for i, edge in enumerate(edges):
            counts = counts / xp.diff(edge).reshape([-1 if k == i else 1 for k in _range(ndim)])
        counts = counts / volume
    return counts, edges


_range = range


def _has_length(obj: Any) -> bool:
    """Whether NumPy, which asks for ``len(obj)``, takes a parameter for a sequence; a 0-d array is none."""
    try:
        len(obj)
    except TypeError:
        return False
    return True


def _items(xp: Any, obj: Any) -> list[Any]:
    """The items of a sequence. A device array of numbers is fetched at once."""
    return list(fetch(obj, "the items of a parameter") if is_device(xp, obj) and obj.ndim == 1 else obj)


# -- convolution -----------------------------------------------------------------------------------

_SHORT, _DIRECT = 2048, 1 << 28
"""Up to this many taps and products, all of them are added up; beyond it, Fourier transforms."""
_FEW = 16
"""Fewer results than this are a sum of products each, as all are with NumPy."""


def convolve(xp: Any, /, a: Any, v: Any, mode: str = "full") -> Any:
    a, v = (x.reshape(1) if x.ndim == 0 else x for x in (array(xp, a), array(xp, v)))
    wrong(a.ndim != 1 or v.ndim != 1 or not a.size or not v.size, "object too deep for desired array, or empty")
    refuse(mode not in ("full", "same", "valid"), f"mode={mode!r}")
    if v.size > a.size:
        a, v = v, a
    dtype = np.result_type(a.dtype, v.dtype)
    n, m = a.size, v.size
    if dtype.kind == "b":
        return convolve(xp, a.astype(intp), v.astype(intp), mode) != 0
    start, count = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
    if dtype.kind not in "fc" or m <= _SHORT and n * m <= _DIRECT:
        refuse(m > _SHORT, "long convolutions of integers are not supported on the device")
        work = np.dtype(np.float32) if dtype == np.float16 else dtype
        found = devices.current().convolved(a.astype(work, copy=False), v.astype(work, copy=False), start, count)
        return found.astype(dtype, copy=False)
    if count < _FEW and mode == "valid" and dtype.itemsize > 2:
        a, turned = a.astype(dtype, copy=False), v.astype(dtype, copy=False)[::-1]
        return xp.stack([xp.dot(a[k:k + m], turned) for k in range(count)])
    return _long(xp, a, v, dtype)[start:start + count]


def _long(xp: Any, a: Any, v: Any, dtype: np.dtype) -> Any:
    n = a.size + v.size - 1
    size = 1 << (n - 1).bit_length()
    if dtype.kind == "c":
        product = xp.fft.ifft(xp.fft.fft(a.astype(complex), size) * xp.fft.fft(v.astype(complex), size))
    else:
        product = xp.fft.irfft(xp.fft.rfft(a.astype(float), size) * xp.fft.rfft(v.astype(float), size), size)
    product = product[:n].astype(dtype)
    # One infinity or NaN spreads over the whole transform; NumPy keeps it where it is.
    refuse(not are_finite(product, "finite-value check"),
           "long convolutions of infinities or NaN are not supported on the device")
    return product


def correlate(xp: Any, /, a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = array(xp, a), array(xp, v)
    wrong(a.ndim != 1 or v.ndim != 1 or not a.size or not v.size, "object too deep for desired array, or empty")
    turned = v[::-1].conj() if v.dtype.kind == "c" else v[::-1]
    if mode == "same" and v.size > a.size:
        # NumPy centres on the longer one, counted from its other end.
        full = convolve(xp, a, turned)
        start = (a.size - 1) - (a.size - 1) // 2
        return full[start:start + v.size]
    return convolve(xp, a, turned, mode)


# -- polynomials -------------------------------------------------------------------------------------

def vander(xp: Any, /, x: Any, N: Any = None, increasing: bool = False) -> Any:
    x = array(xp, x)
    wrong(x.ndim != 1, "x must be a one-dimensional array or sequence.")
    N = x.size if N is None else integer(N)
    powers = xp.ones((x.size, N), np.promote_types(x.dtype, int))
    if not powers.size:
        return powers
    powers[:, 1:] = x[:, None]
    powers = xp.cumprod(powers, axis=1)
    if increasing:
        return xp.ascontiguousarray(powers)
    result = xp.empty(powers.shape, powers.dtype)
    result[:, ::-1] = powers
    return result


# -- evenly spaced numbers ---------------------------------------------------------------------------

def linspace(xp: Any, /, start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
             dtype: Any = None, axis: int = 0, *, device: Any = None) -> Any:
    num = operator.index(num)
    wrong(num < 0, f"Number of samples, {num}, must be non-negative.")
    start, stop = (v if isinstance(v, (int, float, complex)) else array(xp, v) for v in (start, stop))
    refuse(device not in (None, "cpu") or not (is_device(xp, start) or is_device(xp, stop)), "numbers alone")
    if dtype is None:       # CuPy's goes by the number of samples, too
        dtype = np.linspace(*[np.empty(1, v.dtype) if is_device(xp, v) else v for v in (start, stop)], 0).dtype
    return xp.linspace(start, stop, num, endpoint, retstep, dtype, axis)


def logspace(xp: Any, /, start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0,
             dtype: Any = None, axis: int = 0) -> Any:
    refuse(not isinstance(base, (int, float)), "an array as base= is not supported on the device")
    powers = linspace(xp, start, stop, num, endpoint)
    axis = axis_index(axis, powers.ndim)
    result = xp.moveaxis(xp.power(powers.dtype.type(base), powers), 0, axis)
    return result if dtype is None else result.astype(dtype, copy=False)


ADAPTED: dict[Any, Any] = {
    np.histogram: histogram, np.histogram_bin_edges: histogram_bin_edges, np.histogramdd: histogramdd,
    np.convolve: convolve, np.correlate: correlate, np.vander: vander,
    np.linspace: linspace, np.logspace: logspace,
}
