"""Filters of scikit-image that are made of `scipy.ndimage.gaussian_filter`, made of ours in the same steps.

Where scikit-image would raise, these functions raise `NotOnDevice` or any other error, and it runs on the host itself.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ... import devices
from ...errors import NotOnDevice
from ..scipy import filters
from .steps import to_unit

__all__ = ["difference_of_gaussians", "gaussian", "unsharp_mask"]


def _as_float(image: Any, keep: bool) -> Any:
    """An image of floating point as it is, any other in double precision, its values scaled unless they are kept."""
    if image.dtype.char in "fd":
        return image
    return image.astype(np.float64) if keep else to_unit(image)


def _numbers(value: Any) -> Any:
    """A number or a sequence of numbers, on the host."""
    if isinstance(value, devices.current().array_type):
        return value.tolist()
    return list(value) if isinstance(value, Iterable) else value


def gaussian(image: Any, sigma: Any = 1.0, *, mode: str = "nearest", cval: float = 0, preserve_range: bool = False,
             truncate: float = 4.0, channel_axis: int | None = None, out: Any = None) -> Any:
    """`skimage.filters.gaussian` of a device array."""
    sigma = _numbers(sigma)
    if np.any(np.asarray(sigma) < 0.0):
        raise NotOnDevice("sigma is negative")
    if channel_axis is not None:
        if not isinstance(sigma, list):
            sigma = [sigma] * (image.ndim - 1)
        if len(sigma) == image.ndim - 1:
            sigma.insert(channel_axis % image.ndim, 0)
    if out is not None and out.dtype.kind != "f":
        raise NotOnDevice("out= is not of floating point")
    return filters.gaussian_filter(_as_float(image, preserve_range), sigma, output=out, mode=mode, cval=cval,
                                   truncate=truncate)


def difference_of_gaussians(image: Any, low_sigma: Any, high_sigma: Any = None, *, mode: str = "nearest",
                            cval: float = 0, channel_axis: int | None = None, truncate: float = 4.0) -> Any:
    """`skimage.filters.difference_of_gaussians` of a device array."""
    image = _as_float(image, False)
    axes = image.ndim - (channel_axis is not None)
    low = np.array(_numbers(low_sigma), float, ndmin=1)
    high = low * 1.6 if high_sigma is None else np.array(_numbers(high_sigma), float, ndmin=1)
    if len(low) not in (1, axes) or len(high) not in (1, axes):
        raise NotOnDevice("the number of sigmas differs from that of the axes")
    low, high = low * np.ones(axes), high * np.ones(axes)
    if any(high < low):
        raise NotOnDevice("low_sigma is larger than high_sigma")
    less, more = (gaussian(image, sigma, mode=mode, cval=cval, channel_axis=channel_axis, truncate=truncate)
                  for sigma in (low, high))
    return less - more


def unsharp_mask(image: Any, radius: Any = 1.0, amount: float = 1.0, preserve_range: bool = False, *,
                 channel_axis: int | None = None) -> Any:
    """`skimage.filters.unsharp_mask` of a device array."""
    image = _as_float(image, preserve_range)
    limits = None if preserve_range else (-1.0 if bool((image < 0).any()) else 0.0, 1.0)
    result = image + (image - gaussian(image, radius, mode="reflect", channel_axis=channel_axis)) * amount
    return result if limits is None else devices.current().xp.clip(result, *limits)
