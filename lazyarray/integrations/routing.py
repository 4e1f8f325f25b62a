"""Calls of SciPy and scikit-image that run on the device, once somebody has asked for it.

While a library is enabled, a *router* stands in the place of each function in its table of twins, wherever a module
has that function in its namespace: in the library's public modules, in its private ones, and in those that imported the
name before. A router looks whether the library is enabled here (in this thread and task), and whether an argument is
lazy; if not, it calls the function. When nobody has the library enabled any more, the functions themselves are back in
all those places.

Not reached are functions held elsewhere than in a module's namespace: in a container, a default, a closure or a class.
"""
from __future__ import annotations

import os
import sys
import threading
import types
from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from .. import functions, routed
from ..options import Scope
from . import twins
from .on_import import on_import
from .routers import DeviceUfunc, Router, is_router, unrouted

__all__ = ["disable", "enable", "enabled"]

_UNTOUCHED = frozenset({"lazyarray", "cupy", "cupyx", "cupy_backends", "cucim"})
"""Packages whose own references stay as they are: what computes on the device must not be sent back to it."""

UFUNCS = " ufuncs"
"""What the name of a module ends with that stands for its ufuncs: they are replaced only where host arrays go too."""

_lock = threading.RLock()
_users: Counter[str] = Counter()
_awaited: set[str] = set()


def modules_of(names: Iterable[str]) -> frozenset[str]:
    """The modules of the host libraries that these names stand for: a library, or one module of it.

    Raises
    ------
    ValueError
        If a name is unknown; says which ones are known.
    """
    wanted = list(names)
    if not wanted or any(not isinstance(name, str) for name in wanted):
        raise ValueError(f"name the libraries: {', '.join(map(repr, twins.TABLES))}")
    found: set[str] = set()
    for name in wanted:
        library = name.partition(".")[0]
        known = {twin.module for twin in twins.table(library).values()} if library in twins.TABLES else set()
        matching = {module for module in known if name == library or module == name or module.startswith(name + ".")}
        if not matching:
            there_are = sorted(known) or sorted(twins.TABLES)
            raise ValueError(f"no twins are known for {name!r}; there are some for {', '.join(there_are)}")
        found |= matching
    return frozenset(found)


def enable(*libraries: str, numpy: bool = False) -> None:
    """Let calls of these libraries run on the device, in the whole process.

    A call runs the device's twin of a function if an argument is a lazy array; the result is lazy. Whatever the twin
    can't do, the host's function does, with an event and a `HostFallbackWarning`.

    Parameters
    ----------
    *libraries : str
        "scipy" or "skimage", or a module of theirs such as "scipy.ndimage".
    numpy : bool
        Calls with host arrays run on the device too, from ``options(min_bytes=...)`` on (1 MiB if that is not set), and
        give lazy arrays.

    Raises
    ------
    ValueError
        If a library is unknown.

    See Also
    --------
    enabled : the same for a block or a function.
    disable : takes it back.

    Examples
    --------
    >>> import lazyarray
    >>> lazyarray.enable("scipy.ndimage")
    >>> lazyarray.disable("scipy.ndimage")
    """
    modules = modules_of(libraries)
    with _lock:
        before = routed.default()
        after = before.with_(modules, numpy)
        _hold(_keys(after))
        routed.set_default(after)
        _release(_keys(before))


def disable(*libraries: str) -> None:
    """Take back what `enable` did, for these libraries; for all of them, if none is named.

    What ``with enabled(...)`` enables is not touched.

    Parameters
    ----------
    *libraries : str
        As in `enable`. Those that are not enabled may be among them.

    Raises
    ------
    ValueError
        If a library is unknown.

    Examples
    --------
    >>> import lazyarray
    >>> lazyarray.enable("scipy.fft", "scipy.ndimage")
    >>> lazyarray.disable()
    """
    modules = modules_of(libraries) if libraries else None
    with _lock:
        before = routed.default()
        after = before.without(modules)
        routed.set_default(after)
        _hold(_keys(after))
        _release(_keys(before))


class enabled(Scope):
    """`enable` for a ``with`` block, or for the calls of a function that it decorates, a coroutine too.

    Other threads and asyncio tasks do not see it. What is enabled around it stays enabled.

    Parameters
    ----------
    *libraries : str
    numpy : bool
        As in `enable`.

    Raises
    ------
    ValueError
        If a library is unknown.

    Notes
    -----
    A task that was started in a block and outlives it runs on the host from then on.

    Examples
    --------
    >>> import numpy as np, lazyarray
    >>> import scipy.ndimage
    >>> x = lazyarray.asarray(np.eye(4))
    >>> with lazyarray.enabled("scipy"), lazyarray.no_transfers():
    ...     y = scipy.ndimage.gaussian_filter(x, 1.0)
    >>> lazyarray.is_lazy(y)
    True
    """

    _stack = routed.scopes

    def __init__(self, *libraries: str, numpy: bool = False) -> None:
        self._libraries, self._numpy = libraries, numpy
        self._modules = modules_of(libraries)   # a mistake is told here

    def _value(self) -> routed.Choice:
        return routed.current().with_(self._modules, self._numpy)

    def __enter__(self) -> Self:
        _hold(self._keys())
        return super().__enter__()

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        _release(self._keys())

    def _keys(self) -> list[str]:
        return _keys(routed.NOTHING.with_(self._modules, self._numpy))

    def __repr__(self) -> str:
        return f"enabled({', '.join(map(repr, self._libraries))}{', numpy=True' if self._numpy else ''})"


def from_environment() -> None:
    """Enable what ``LAZYARRAY_ENABLE`` names, with commas between; "numpy" among them is ``numpy=True``."""
    names = [name.strip() for name in os.environ.get("LAZYARRAY_ENABLE", "").split(",") if name.strip()]
    libraries = [name for name in names if name != "numpy"]
    if libraries:
        enable(*libraries, numpy="numpy" in names)


# -- routers in their places ------------------------------------------------------------------------

def _keys(choice: routed.Choice) -> list[str]:
    modules = choice.modules
    return [*modules, *(module + UFUNCS for module, numpy in modules.items() if numpy)]


def _hold(keys: list[str]) -> None:
    with _lock:
        new = {key for key in keys if not _users[key]}
        _users.update(keys)
        if new:
            _install(new)


def _release(keys: list[str]) -> None:
    with _lock:
        _users.subtract(keys)
        if any(not _users[key] for key in keys):
            _remove()


def _install(keys: set[str]) -> None:
    """Put routers wherever a module has one of the functions in its namespace, and ufuncs into the core's table."""
    found: dict[int, Router] = {}
    for key in keys:
        name = key.removesuffix(UFUNCS)
        module = sys.modules.get(name)
        if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            found |= _routers(module, key)
            if not key.endswith(UFUNCS):
                functions.FOREIGN_UFUNCS.update(_ufuncs(module))
        elif name not in _awaited:
            _awaited.add(name)
            on_import(name, _imported)
    if found:
        for namespace in _namespaces():
            for name, value in list(namespace.items()):
                router = found.get(id(value))
                if router is not None:
                    namespace[name] = router


def _imported(module: types.ModuleType) -> None:
    name = module.__name__
    with _lock:
        _awaited.discard(name)
        keys = {key for key in (name, name + UFUNCS) if _users[key]}
        if keys:
            _install(keys)


def _routers(module: types.ModuleType, key: str) -> dict[int, Router]:
    """The routers of a module's functions, by the identity of the function."""
    found: dict[int, Router] = {}
    for twin in twins.table(module.__name__.partition(".")[0]).values():
        if twin.module != module.__name__:
            continue
        function = getattr(module, twin.name, None)
        is_ufunc = isinstance(function, np.ufunc)
        if function is None or is_router(function) or is_ufunc != key.endswith(UFUNCS):
            continue
        if is_ufunc:
            found[id(function)] = Router(function, twin)
            continue
        # Under SCIPY_ARRAY_API=1 the public function is a wrapper of the one that private modules call.
        for layer in _layers(function):
            found[id(layer)] = Router(layer, twin)
    return found


def _ufuncs(module: types.ModuleType) -> dict[np.ufunc, DeviceUfunc]:
    """What gives the device's functions for the ufuncs of a module."""
    return {
        ufunc: DeviceUfunc(twin)
        for twin in twins.table(module.__name__.partition(".")[0]).values()
        if twin.module == module.__name__ and isinstance(ufunc := unrouted(getattr(module, twin.name, None)), np.ufunc)
    }


def _layers(function: Any) -> list[Any]:
    layers = [function]
    while isinstance(inner := getattr(layers[-1], "__wrapped__", None), types.FunctionType):
        layers.append(inner)
    return layers


def _remove() -> None:
    """Put back the functions whose routers nobody needs any more."""
    for ufunc, gives in list(functions.FOREIGN_UFUNCS.items()):
        if not _users[gives.twin.module]:
            del functions.FOREIGN_UFUNCS[ufunc]
    for namespace in _namespaces():
        for name, value in list(namespace.items()):
            if is_router(value) and not _users[value._self_key]:
                namespace[name] = value.__wrapped__


def _namespaces() -> Iterable[dict[str, Any]]:
    seen = set()
    for name, module in list(sys.modules.items()):
        if isinstance(module, types.ModuleType) and name.partition(".")[0] not in _UNTOUCHED:
            namespace = module.__dict__
            if id(namespace) not in seen:
                seen.add(id(namespace))
                yield namespace
