"""Measurements of `scipy.ndimage` for several labels, whose results are Python's lists and tuples."""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ... import devices
from ...errors import refuse
from ...storage import transfer

__all__ = ["center_of_mass", "histogram"]


def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """`scipy.ndimage.center_of_mass` of device arrays; the centres of several regions are fetched together."""
    device = devices.current()
    xp, ndimage = device.xp, device.library("cupyx.scipy.ndimage")
    total = ndimage.sum_labels(input, labels, index)
    centres = []
    for axis, n in enumerate(input.shape):
        places = xp.arange(n, dtype=np.dtype(float)).reshape([n if i == axis else 1 for i in range(input.ndim)])
        centres.append(ndimage.sum_labels(input * places, labels, index) / total)
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
    wanted = transfer.to_host(device, index, "the labels", "synchronise") if isinstance(index, xp.ndarray) else (
        np.asarray(index))
    refuse(wanted.dtype.kind not in "biu" or not wanted.size,
           "labels that are not integers are not supported on the device")
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
    counts = xp.bincount(box, minlength=known.size * (bins + 1) + 1)[:-1].reshape(known.size, bins + 1)
    if not wanted.ndim:
        return counts[0, :-1].astype(np.int64)
    found = transfer.to_host(device, counts, "the histograms of regions").astype(np.int64)
    rows = np.empty(known.size, object)
    for i, row in enumerate(found):
        rows[i] = row[:-1].copy() if row.any() else None      # SciPy's answer for a label that there is not
    return rows[place.ravel()].reshape(wanted.shape)
