"""A NumPy-shaped namespace whose creation functions return lazy arrays.

``import lazyarray.numpy as np`` in place of ``import numpy as np`` puts a program's arrays on the device. Whatever
makes an array from a shape, from numbers, lists or files returns a `LazyNdarray`, with the parameters, dtype, shape and
errors of the NumPy function of the same name; what a shape and numbers describe is computed on the device, and nothing
is copied. Everything else is NumPy's own object, which takes lazy arrays, and keeps them on the device, by NumPy's
protocols. `numpy.random` is NumPy's, and its arrays are host arrays.

This is what ``x.__array_namespace__()`` returns: a namespace of the array API standard, of the versions that the
installed NumPy follows. ``fft.fftfreq``, ``fft.rfftfreq`` and `clip` also take the parameters that the standard has and
NumPy has not.

Examples
--------
>>> import lazyarray
>>> import lazyarray.numpy as xnp
>>> with lazyarray.trace() as t:
...     x = xnp.linspace(0, 1, 5)
...     y = xnp.sum(x * xnp.ones(5))
>>> type(x).__name__, y, len(t.uploads)
('LazyNdarray', np.float64(2.5), 0)
"""
from __future__ import annotations

from typing import Any

import numpy as _np

from lazyarray.numpy import creation as _creation
from lazyarray.numpy import fft as fft
from lazyarray.numpy import linalg as linalg
from lazyarray.numpy.standard import astype as astype
from lazyarray.numpy.standard import at_version as at_version
from lazyarray.numpy.standard import clip as clip

globals().update(_creation.FUNCTIONS)

__all__ = sorted({*_np.__all__, *_creation.FUNCTIONS})


def __getattr__(name: str) -> Any:
    return getattr(_np, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_np)})
