"""`numpy.lib.stride_tricks`, whose `as_strided` makes views of lazy arrays on the device.

NumPy's own asks its argument for the memory, which is the host's.

Examples
--------
>>> import lazyarray.numpy as xnp
>>> xnp.lib.stride_tricks.as_strided(xnp.arange(5.0), (3, 2), (8, 16))
array([[0., 2.],
       [1., 3.],
       [2., 4.]])
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as _np

from lazyarray.functions import views as _views
from lazyarray.numpy.creation import passing as _passing
from lazyarray.storage import handles as _handles


def as_strided(x: Any, shape: Sequence[int] | None = None, strides: Sequence[int] | None = None, subok: bool = False,
               writeable: bool = True, **kwargs: Any) -> Any:
    """`numpy.lib.stride_tricks.as_strided`: a view of the memory of an array.

    Parameters
    ----------
    x : LazyNdarray or array_like
    shape, strides : sequence of int, optional
        Those of `x` by default; strides are in bytes.
    subok, writeable : bool
        What NumPy takes.
    **kwargs
        NumPy's ``check_bounds``, where it has that.

    Returns
    -------
    LazyNdarray or ndarray
        A lazy array for a lazy one, on the device, where the view lies within the memory that `x` is of, and its
        strides are multiples of an element's bytes; else what NumPy makes of the copy on the host. What lies beyond
        the memory is undefined, as it is with NumPy.
    """
    if _handles.is_array(x) and not kwargs:
        found = _views.strided(x, shape, strides, writeable)
        if found is not None:
            return found
    return _np.lib.stride_tricks.as_strided(x, shape, strides, subok, writeable, **kwargs)

__getattr__, __dir__ = _passing(_np.lib.stride_tricks)
