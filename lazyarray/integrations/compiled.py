"""Compiled code that insists on NumPy's own arrays: OpenCV, ``cnp.ndarray`` arguments of Cython, `torch.from_numpy`.

Such code looks for the ndarray struct, which no proxy has, and asks the proxy nothing. What is called through here gets
host aliases instead: nothing is copied that is current on the host, and what is written into them is written.
``lazyarray.enable("cv2")`` does it to a whole library; the functions here are for all others.

Most libraries convert arguments before they call such code. The functions that do not, and that are found by their
names in a module, are listed here: when their module is imported, what `on_ndarrays` makes of them takes their place.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import wrapt

from lazyarray.dispatch import host_fallback
from lazyarray.functions.kinds import PLAIN
from lazyarray.integrations.scalars import put_in_place

_Target = TypeVar("_Target", bound=Callable[..., Any] | ModuleType)

#: Types of arguments in which there is nothing lazy.
_OTHERS = PLAIN | {np.ndarray}

#: Module -> functions and methods in it that refuse lazy arrays; of a module without any named, all functions.
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "bottleneck.nonreduce": ("replace",),
    "bottleneck.slow.nonreduce": ("replace",),
    # A single array of another type it takes for a list, and reads beyond the shape of each row: the process dies.
    "dipy.tracking.streamlinespeed": ("compress_streamlines", "length", "set_number_of_points"),
    "h5py._hl.dataset": ("Dataset.read_direct", "Dataset.write_direct"),
    "scipy.interpolate._dierckx": (),
    "scipy.interpolate._fitpack": (),
    "scipy.interpolate._rbfinterp_pythran": (),
    "scipy.linalg.interpolative": ("estimate_spectral_norm", "estimate_spectral_norm_diff"),
    "scipy.ndimage._ni_label": ("_label",),
    "scipy.optimize._group_columns": (),
    "scipy.optimize._lbfgsb": (),
    "scipy.optimize._slsqplib": (),
    "scipy.sparse.linalg._dsolve._superlu": ("gssv", "gstrs"),
    "scipy.spatial._distance_pybind": (),
    "scipy.spatial._distance_wrap": (),
    "skimage.transform._hough_transform": (),
}

#: Module -> functions in it whose results have methods that refuse lazy arrays.
MAKERS: dict[str, tuple[str, ...]] = {
    "numexpr.interpreter": ("NumExpr",),
    "scipy.sparse.linalg._dsolve._superlu": ("gstrf",),
}


def register(module: ModuleType) -> None:
    """Have the listed functions of a module take lazy arrays."""
    library, there = module.__name__.partition(".")[0], vars(module)
    for table, kind in ((FUNCTIONS, _on_ndarrays), (MAKERS, _making)):
        if module.__name__ in table:
            names = table[module.__name__] or [name for name, found in there.items()
                                               if callable(found) and not isinstance(found, type)]
            names = [name for name in names if name.partition(".")[0] in there]       # not every release has them all
            put_in_place(library, {module.__name__: names}, kind)


def on_ndarrays(target: _Target) -> _Target:
    """Make a function, or all functions of a module, accept lazy arrays although they require NumPy's own.

    Parameters
    ----------
    target : callable or module
        In a module, functions and submodules are wrapped when they are first used. Other attributes are unchanged.

    Returns
    -------
    callable or module
        Lazy arguments, also inside lists, tuples and dicts, are replaced by aliases, which are writable if the lazy
        array is. If the function returns such an alias, the lazy array is returned. Other results are unchanged.

    Examples
    --------
    >>> import lazyarray, operator
    >>> from lazyarray.integrations.compiled import on_ndarrays
    >>> kind = on_ndarrays(lambda *arrays: [type(a).__name__ for a in arrays])
    >>> kind(lazyarray.asarray([1.0, 2.0]), 3)
    ['ndarray', 'int']
    """
    return _Functions(target) if isinstance(target, ModuleType) else _on_ndarrays(target)


def run(twin: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One call of a function of a library that is enabled so: see `routing.twin.COMPILED`."""
    return host_fallback.with_aliases(function, args, kwargs, f"{twin.host} takes only ndarrays")


def _on_ndarrays(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and _OTHERS.issuperset(map(type, args)):
            return function(*args)
        reason = f"{host_fallback.name_of(function)} takes only ndarrays"
        return host_fallback.with_aliases(function, args, kwargs, reason)

    return call


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        return _Methods(function(*args, **kwargs))

    return make


class _Methods(wrapt.BaseObjectProxy):
    """An object whose methods are called with ndarrays; to `isinstance` it is the object itself."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__wrapped__, name)
        return _on_ndarrays(found) if callable(found) else found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = host_fallback.name_of(type(self.__wrapped__))
        return host_fallback.with_aliases(self.__wrapped__, args, kwargs, f"{name} takes only ndarrays")


class _Functions(ModuleType):
    """A module whose functions are called with ndarrays."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name == "_module":       # it is being made
            raise AttributeError(name)
        found = getattr(self._module, name)
        if isinstance(found, ModuleType) or callable(found) and not isinstance(found, type):
            found = on_ndarrays(found)
        setattr(self, name, found)      # looked up once
        return found

    def __dir__(self) -> list[str]:
        return dir(self._module)
