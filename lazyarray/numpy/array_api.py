"""What the array API standard asks for beyond NumPy's functions, and what its consumers make of a namespace."""
from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as _np

from lazyarray.events.callers import module_of
from lazyarray.storage import handles

#: array-api-compat, under whatever name a library ships its copy, asks from here.
_COMPAT = "array_api_compat.common._helpers"
_absent = object()


def at_version(api_version: Any) -> ModuleType:
    """The namespace for the caller of ``x.__array_namespace__(api_version=...)``.

    It is `lazyarray.numpy`, in every version of the standard that the installed NumPy follows. A copy of
    array-api-compat, of which SciPy, scikit-learn and others have one each, gets that copy's own wrapper of
    NumPy, which is what it takes for host arrays: it refuses arguments of two namespaces, and a lazy array
    may stand next to a host array wherever an ndarray may.

    Raises
    ------
    ValueError
        NumPy does not follow the version.
    """
    frame = sys._getframe(2)
    caller = module_of(frame)
    if caller.endswith(_COMPAT):
        # It wraps NumPy for every version; with use_compat=False host arrays get NumPy itself.
        if frame.f_locals.get("use_compat") is False:
            return _np
        return importlib.import_module(caller.removesuffix("common._helpers") + "numpy")
    _np.empty(0).__array_namespace__(api_version=api_version)      # NumPy knows its versions, and words the error
    return sys.modules["lazyarray.numpy"]


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """`numpy.astype`, also of scalars, which are what the standard calls an array without dimensions.

    Parameters
    ----------
    x : LazyNdarray, LazyScalar, ndarray or NumPy scalar
    dtype : data-type
    copy : bool
        False: `x` itself where it has that dtype.
    device : {None, "cpu"}
        What NumPy takes.

    Returns
    -------
    LazyNdarray or LazyScalar
        Of what is lazy; NumPy's kind of result otherwise.
    """
    if handles.is_scalar(x):
        _np.empty(0, device=device)
        return x.astype(dtype, copy=copy)
    return _np.astype(x, dtype, copy=copy, device=device)


def clip(a: Any, min: Any = _absent, max: Any = _absent, out: Any = None, **kwargs: Any) -> Any:
    """`numpy.clip`, with the standard's names also for bounds given in order.

    Parameters
    ----------
    a : array_like
    min, max : array_like or None
        Bounds, broadcast against `a`; None is no bound.
    out : LazyNdarray, ndarray or None
        Where to put the result.
    **kwargs
        NumPy's: ``a_min``, ``a_max``, ``where``, ``casting``, ``dtype`` and more.

    Returns
    -------
    LazyNdarray, LazyScalar or what `out` is
    """
    if "a_min" in kwargs or "a_max" in kwargs:
        given = {name: value for name, value in (("min", min), ("max", max)) if value is not _absent}
        return _np.clip(a, out=out, **given, **kwargs)
    return _np.clip(a, None if min is _absent else min, None if max is _absent else max, out=out, **kwargs)
