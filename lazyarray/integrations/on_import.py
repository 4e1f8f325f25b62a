"""Call something right after a library is imported, and not before: `import lazyarray` imports none of them.

A finder in front of the others notices a library that is waited for, lets those behind it find it, and watches the
module's spec for the end of the import: importlib sets ``_initializing`` then, on which its own locking relies. So no
loader is replaced or wrapped, the library is complete when the callbacks run, and other threads that import it wait for
them. What reaches `sys.modules` past the finder (hooks that others put in front of it, modules loaded by hand) is found
at the next import of anything.
"""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

from ..errors.interrupts import holding

#: Module of ours -> the libraries, or parts of them, whose import it waits for.
_WAITING_FOR: dict[str, str] = {
    "autograd": "autograd.numpy",
    "compiled": "bottleneck.nonreduce bottleneck.slow.nonreduce dipy.tracking.streamlinespeed h5py._hl.dataset "
                "numexpr.interpreter scipy.interpolate._dierckx "
                "scipy.interpolate._fitpack scipy.interpolate._rbfinterp_pythran scipy.linalg.interpolative "
                "scipy.ndimage._ni_label scipy.optimize._group_columns scipy.optimize._lbfgsb "
                "scipy.optimize._slsqplib scipy.sparse.linalg._dsolve._superlu scipy.spatial._distance_pybind "
                "scipy.spatial._distance_wrap skimage.transform._hough_transform",
    "cupy": "cupy cupyx.jit",
    "f2py": "scipy.linalg._fblas scipy.linalg._flapack",
    "dask": "dask.array dask.sizeof dask.tokenize distributed.protocol",
    "hints": "scipy skimage",
    "jax": "jax",
    "numba": "numba numba.cuda.dispatcher",
    "numpy_random": "numpy.random",
    "pandas": "pandas",
    "polars": "polars",
    "pyarrow": "pyarrow",
    "scalars": "deepdiff sqlite3 statistics",
    "scipy.sparse": "scipy.sparse",
    "serialisers": "json.encoder msgpack orjson simplejson.encoder ujson",
    "sympy": "sympy",
    "torch": "torch torch.utils.data",
}

#: Library -> the module of ours whose ``register(library)`` makes lazy arrays known to it, in the way that it offers.
REGISTRATIONS: dict[str, str] = {library: f"{__package__}.{ours}" for ours, libraries in _WAITING_FOR.items()
                                 for library in libraries.split()}

_waiting: dict[str, list[Callable[[ModuleType], object]]] = {}
_activated: set[str] = set()
_lock = threading.RLock()


def on_import(module_name: str, callback: Callable[[ModuleType], object]) -> None:
    """Call ``callback(module)`` right after a library is imported, or now if it already is.

    Parameters
    ----------
    module_name : str
        Full name of a module. This function does not import it.
    callback : callable
        Called with the module. If it raises an error, the logger ``lazyarray`` reports it, and the import continues.

    Examples
    --------
    >>> from lazyarray.integrations.on_import import on_import
    >>> on_import("math", lambda math: print(math.floor(2.5)))
    2
    """
    with holding(_lock):
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
        _waiting.setdefault(module_name, []).append(callback)
    module = sys.modules.get(module_name)
    if module is not None:
        spec = getattr(module, "__spec__", None)
        if getattr(spec, "_initializing", False):
            _watch(spec)
        _run(module_name)       # also if the import came to its end while we looked


def activate() -> None:
    """Wait for each library of the table. `import lazyarray` does it; a second call changes nothing."""
    for library, path in REGISTRATIONS.items():
        if library not in _activated:
            _activated.add(library)
            on_import(library, lambda module, path=path: import_module(path).register(module))


class _Finder:
    """Finds nothing by itself."""

    def find_spec(self, name: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """Have the finders behind this one find a library that is waited for, and watch its spec."""
        if name not in _waiting:
            for missed in [other for other in list(_waiting) if other in sys.modules]:
                _run(missed)
            return None
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1:] if self in finders else ():
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                _watch(spec)
                return spec
        return None


_finder = _Finder()


class _Watched(ModuleSpec):
    """The class of a spec while its library is being imported."""

    @property
    def _initializing(self) -> bool:
        return vars(self).get("_initializing", False)

    @_initializing.setter
    def _initializing(self, value: bool) -> None:
        state = vars(self)
        if not value and state.get("_initializing"):
            # Still true, so that other threads wait until the library is registered with.
            self.__class__ = ModuleSpec
            if self.name in sys.modules:    # else the import failed
                _run(self.name, whole=True)
        state["_initializing"] = value


_Watched.__name__ = _Watched.__qualname__ = ModuleSpec.__name__


def _watch(spec: object) -> None:
    if type(spec) is ModuleSpec:    # one of another class is somebody's who has his own idea of loading
        spec.__class__ = _Watched


def _run(name: str, whole: bool = False) -> None:
    """Call those who wait for a module, unless it is not yet loaded."""
    module = sys.modules.get(name)
    if module is None or type(module).__name__ in ("_LazyModule", "CupyModule"):
        return      # one that importlib.util.LazyLoader loads at the first look, or one of the simulated CuPy
    if not whole and getattr(getattr(module, "__spec__", None), "_initializing", False):
        return
    with holding(_lock):
        callbacks = _waiting.pop(name, ())
    for callback in callbacks:
        try:
            callback(module)
        except Exception as error:  # noqa: BLE001  whatever a library's next version breaks, importing it must not be it
            import logging  # expensive to import, and hardly ever needed

            logging.getLogger("lazyarray").warning(
                "lazyarray could not register with %s %s (%s: %s). Where it refuses lazy arrays, pass numpy.asarray(x)",
                name, getattr(module, "__version__", ""), type(error).__name__, error)
