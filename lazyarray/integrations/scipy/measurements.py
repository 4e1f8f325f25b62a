"""Measurements of `scipy.ndimage` for several labels.

CuPy counts an element for the first of equal labels only, takes an index that is an array on the device or Python's
integer, and sums the elements of negative labels too if there is no index. So labels that are given again are left
out, and what was found for the first is repeated. Extremes and medians of more than 30 labels it has from label 1 on,
or from the second one, if one is negative or larger than the number of elements (CuPy 14.2, ``_select``): so labels
are numbered from 1 on. Lists and tuples of results are fetched together.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import devices
from ...errors import refuse
from ...storage import transfer

__all__ = ["center_of_mass", "extrema", "histogram", "maximum", "maximum_position", "mean", "median", "minimum",
           "minimum_position", "standard_deviation", "sum", "sum_labels", "variance"]


def _measured(name: str, input: Any, labels: Any, index: Any) -> Any:
    """What CuPy's function finds for each label, once for those that are given several times."""
    device = devices.current()
    refuse(input.dtype.kind == "c", "complex numbers are not supported on the device")
    if labels is None:
        return _of_group(name, input)
    if index is None or np.isscalar(index):
        chosen = labels > 0 if index is None else labels == index
        shape = np.broadcast_shapes(input.shape, labels.shape)
        return _of_group(name, device.xp.broadcast_to(input, shape)[device.xp.broadcast_to(chosen, shape)])
    wanted = _wanted(index)
    refuse(not wanted.ndim, "an index without dimensions is not supported on the device")
    function = getattr(device.library("cupyx.scipy.ndimage"), name)
    known, place = np.unique(wanted, return_inverse=True)
    if input.dtype.kind in "biu":
        input = input.astype(np.dtype(float))       # as SciPy adds them up
    found = function(input, labels, device.xp.asarray(known))
    return found if np.array_equal(known, wanted) else found[device.xp.asarray(place.reshape(wanted.shape))]


def _selected(name: str, input: Any, labels: Any, index: Any) -> Any:
    """What CuPy's function finds for each label, whichever these are."""
    device = devices.current()
    if labels is not None and index is not None and not np.isscalar(index):
        xp = device.xp
        index = xp.asarray(index)
        known, place = xp.unique(labels, return_inverse=True)
        labels = place.reshape(labels.shape) + 1
        place = xp.minimum(xp.searchsorted(known, index), known.size - 1)
        index = xp.where(known[place] == index, place + 1, 0)
    return getattr(device.library("cupyx.scipy.ndimage"), name)(input, labels, index)


def _of_group(name: str, values: Any) -> Any:
    """The same of all values, in the dtypes of SciPy; CuPy's functions warn of many dtypes that they are slow."""
    if name == "sum_labels":
        return values.sum()
    if name == "mean":
        return values.sum().astype(np.dtype(float)) / values.size
    gaps = values - values.mean()
    variance = (gaps * gaps).sum().astype(np.dtype(float)) / values.size
    return variance if name == "variance" else devices.current().xp.sqrt(variance)


def _wanted(index: Any) -> np.ndarray:
    """The labels on the host; they are few, and of integers."""
    device = devices.current()
    wanted = transfer.to_host(device, index, "the labels", "synchronise") if isinstance(index, device.array_type) else (
        np.asarray(index))
    refuse(wanted.dtype.kind not in "biu" or not wanted.size,
           "labels that are not integers are not supported on the device")
    return wanted


def _measuring(name: str, work: Callable[..., Any] = _measured) -> Callable[..., Any]:
    def measure(input: Any, labels: Any = None, index: Any = None) -> Any:
        return work(name, input, labels, index)

    measure.__name__ = measure.__qualname__ = name
    measure.__doc__ = f"`scipy.ndimage.{name}` of device arrays."
    return measure


sum = sum_labels = _measuring("sum_labels")
mean, variance, standard_deviation = map(_measuring, ("mean", "variance", "standard_deviation"))
maximum, maximum_position, median, minimum, minimum_position, extrema = [_measuring(name, _selected) for name in (
    "maximum", "maximum_position", "median", "minimum", "minimum_position", "extrema")]


def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """`scipy.ndimage.center_of_mass` of device arrays; the centres of several regions are fetched together."""
    device = devices.current()
    xp = device.xp
    total = sum_labels(input, labels, index)
    centres = []
    for axis, n in enumerate(input.shape):
        places = xp.arange(n, dtype=np.dtype(float)).reshape([n if i == axis else 1 for i in range(input.ndim)])
        centres.append(sum_labels(input * places, labels, index) / total)
    if not total.ndim:
        return tuple(centres)
    refuse(total.ndim > 1, "an index of more than one dimension is not supported on the device")
    found = transfer.to_host(device, xp.stack(centres), "the centres of regions")
    return [tuple(centre) for centre in found.T]


def histogram(input: Any, min: Any, max: Any, bins: Any, labels: Any = None, index: Any = None) -> Any:
    """`scipy.ndimage.histogram` of device arrays; the histograms of several regions are fetched together."""
    device = devices.current()
    xp = device.xp
    if index is None:
        return device.library("cupyx.scipy.ndimage").histogram(input, min, max, bins, labels, index)
    refuse(labels is None or labels.dtype.kind not in "biu" or input.dtype.kind == "c",
           "labels that are not integers are not supported on the device")
    bins = operator.index(bins)
    edges = np.linspace(min, max, bins + 1)
    refuse(bins < 1 or edges.ndim != 1 or not (np.diff(edges) > 0).all(),
           "edges that do not increase are not supported on the device")
    wanted = _wanted(index)
    known, place = np.unique(wanted, return_inverse=True)
    shape = np.broadcast_shapes(input.shape, labels.shape)
    values, regions = (xp.broadcast_to(x, shape).ravel() for x in (input, labels))
    steps, names = xp.asarray(edges), xp.asarray(known.astype(np.int64))
    regions = regions.astype(np.int64)
    region = xp.minimum(xp.searchsorted(names, regions), known.size - 1)
    # As NumPy counts with edges that are given: each bin has its lower edge, and the last one its upper edge, too.
    box = xp.searchsorted(steps, values.astype(np.dtype(float)), side="right") - 1
    box = xp.where(values == steps[-1], bins - 1, box)
    box = xp.where((box < 0) | (box >= bins), bins, box)
    box = xp.where(names[region] == regions, region * (bins + 1) + box, known.size * (bins + 1))
    counts = device.count_places(box, None, known.size * (bins + 1) + 1)[:-1].reshape(known.size, bins + 1)
    if not wanted.ndim:
        return counts[0, :-1].astype(np.int64)
    found = transfer.to_host(device, counts, "the histograms of regions").astype(np.int64)
    rows = np.empty(known.size, object)
    for i, row in enumerate(found):
        rows[i] = row[:-1].copy() if row.any() else None      # SciPy's answer for a label that there is not
    return rows[place.ravel()].reshape(wanted.shape)
