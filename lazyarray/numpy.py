"""A NumPy-shaped namespace whose creation functions return lazy arrays.

Everything else is NumPy's own object: its functions come back to us through `__array_function__`
and `__array_ufunc__`. This is what ``x.__array_namespace__()`` returns, and it is a namespace of the
array API standard (2024.12), as NumPy itself is.

Examples
--------
>>> import lazyarray.numpy as xnp
>>> x = xnp.linspace(0, 1, 5)
>>> type(x).__name__, xnp.sum(x)
('LazyNdarray', np.float64(2.5))
"""
from __future__ import annotations

import functools

import numpy as _np

from . import devices, wrap
from .convert import asarray
from .storage import Storage

#: The versions of the array API standard that NumPy's own namespace follows, and so this one.
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def at_version(api_version: str | None):
    """This namespace, if it follows the version asked for; ValueError otherwise."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f'Version "{api_version}" of the Array API Standard is not supported.')
    import sys
    return sys.modules[__name__]


def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None):
    """`numpy.array`, on the device."""
    lazy = asarray(object, dtype, copy=copy if wrap.is_lazy(object) or copy is False else None)
    if order in ("C", "F") and not lazy.flags["C_CONTIGUOUS" if order == "C" else "F_CONTIGUOUS"]:
        lazy = lazy.copy(order)
    return lazy[(None,) * (ndmin - lazy.ndim)] if lazy.ndim < ndmin else lazy


def from_dlpack(x, /, *, device=None, copy=None):
    """`numpy.from_dlpack`, on the device where the memory is there."""
    return asarray(x if hasattr(x, "__cuda_array_interface__") or wrap.is_lazy(x) else _np.from_dlpack(x),
                   copy=True if copy else None)


def _on_device(name: str):
    """A creation function that runs on the device; on the host for dtypes that only it holds."""
    make = getattr(_np, name)

    @functools.wraps(make)
    def create(*args, **kwargs):
        current = devices.current()
        kwargs.pop("like", None)
        kwargs.pop("device", None)
        function = getattr(current.xp, name, None)
        plain = not any(wrap.is_lazy(a) or isinstance(a, (_np.ndarray, list)) for a in (*args, *kwargs.values()))
        dtype = kwargs.get("dtype")
        if function is None or not plain or current.usable() is not None or (
                dtype is not None and not current.can_hold(_np.dtype(dtype))):
            return _given(make(*args, **kwargs))
        try:
            result = function(*args, **kwargs)
        except current.faults:
            raise
        except (TypeError, ValueError):     # NumPy's result, or its error
            return _given(make(*args, **kwargs))
        expected = _dtype_of(make, name, args, kwargs)
        if expected is not None and result.dtype != expected:
            result = result.astype(expected)
        return wrap.new_array(Storage(current, result), None, result)

    del create.__wrapped__
    return create


def _given(result):
    return result if wrap.is_lazy(result) else asarray(result)


def _dtype_of(make, name, args, kwargs):
    """The dtype that NumPy gives, asked with the smallest shape."""
    if name in ("zeros", "ones", "empty", "eye", "identity", "tri"):
        return _np.dtype(kwargs.get("dtype") or (args[-1] if len(args) > 1 and name in ("zeros", "ones", "empty")
                                                 else float))
    if name == "full":
        return make(0, *args[1:], **{k: v for k, v in kwargs.items() if k != "shape"}).dtype if len(args) > 1 else None
    if name in ("arange",):
        return _np.result_type(*(type(a) for a in args if a is not None)) if kwargs.get("dtype") is None and all(
            type(a) in (int, float) for a in args) else None
    return None


def _on_host(name: str):
    """A creation function that reads a file, a buffer or Python objects: NumPy's, then copied to the device."""
    make = getattr(_np, name)

    @functools.wraps(make)
    def create(*args, **kwargs):
        kwargs.pop("like", None)
        return _given(make(*args, **kwargs))

    del create.__wrapped__
    return create


for _name in ("zeros", "ones", "empty", "full", "arange", "eye", "identity", "tri"):
    globals()[_name] = _on_device(_name)
for _name in ("linspace", "logspace", "geomspace", "frombuffer", "fromfile", "fromfunction", "fromiter", "fromregex",
              "fromstring", "genfromtxt", "loadtxt", "asanyarray", "ascontiguousarray", "asfortranarray",
              "asarray_chkfinite", "require", "meshgrid", "hanning", "hamming", "blackman", "bartlett", "kaiser",
              "indices", "vander", "zeros_like", "ones_like", "empty_like", "full_like"):
    if hasattr(_np, _name):
        globals()[_name] = _on_host(_name)
del _name

LazyNdarray = wrap._array_type


def __getattr__(name: str):
    return getattr(_np, name)


def __dir__():
    return sorted(set(dir(_np)) | set(globals()))
