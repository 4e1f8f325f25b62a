"""`numpy.fft`, whose frequencies are lazy arrays.

Examples
--------
>>> from lazyarray.numpy import fft
>>> fft.fftfreq(4, dtype="f4")
array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as _np

from .creation import made, passing


def _frequencies(function: Callable[..., Any], shape: str) -> Callable[..., Any]:
    def frequencies(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
        x = made(function, n, d, device)
        return x if dtype is None else x.astype(dtype, copy=False)

    frequencies.__name__ = frequencies.__qualname__ = name = function.__name__
    frequencies.__doc__ = f"""`numpy.fft.{name}`, computed on the device, with the `dtype` of the array API standard.

    Parameters
    ----------
    n : int
        Length of the transform.
    d : float, optional
        Time between two samples; the frequencies are in cycles per unit of it.
    device : {{None, "cpu"}}
        What NumPy takes.
    dtype : data-type, optional
        A real one; float64 by default.

    Returns
    -------
    LazyNdarray
        Shape ({shape},).
    """
    return frequencies


fftfreq = _frequencies(_np.fft.fftfreq, "n")
rfftfreq = _frequencies(_np.fft.rfftfreq, "n // 2 + 1")

__all__ = list(_np.fft.__all__)

__getattr__, __dir__ = passing(_np.fft)
