"""Run calls of SciPy and scikit-image on the device, while the library is enabled.

While a library is enabled, a *router* replaces each function in its table of twins, in the namespace of every module
that has it: the library's public modules, its private ones, and those that imported the name before. A router checks
whether the library is enabled here (in this thread and task), and whether an argument is lazy; if not, it calls the
original function.

The first use of a library searches the namespaces of all modules, which takes tens of milliseconds. From then on the
routers stay, so that a later block costs a few microseconds: modules that are imported meanwhile get the routers with
the names. `disable` restores the original functions.

The compiled functions of OpenCV, and one of torch's, require NumPy's own arrays. Their routers pass host aliases.

Functions that are stored elsewhere are not replaced: in a container, a default, a closure or a class.
"""
from __future__ import annotations

import inspect
import os
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from typing import Any, Self, get_args

import numpy as np

from ...errors.environment import unusable
from ...errors.interrupts import holding
from ...functions import tables
from ...settings.enabled import NOTHING, Choice, current, default, scopes, set_default
from ...settings.options import Scope
from ..on_import import on_import
from .names import Library
from .router import ON_THE_HOST, DeviceUfunc, Router, is_router, unrouted
from .twin import COMPILED, TABLES, WHOLE, Twin, table

__all__ = ["disable", "enable", "enabled"]

_OWN_CODE = frozenset({"lazyarray", "cupy", "cupyx", "cupy_backends", "cucim"})
"""Packages whose own references stay as they are: what computes on the device must not be sent back to it."""

UFUNCS = " ufuncs"
"""What the name of a module ends with that stands for its ufuncs: they are replaced only where host arrays go too."""

_KNOWN = (*TABLES, *WHOLE, *COMPILED)
_OTHER_NAMES = {"opencv": "cv2", "opencv-python": "cv2", "scikit-image": "skimage", "pytorch": "torch",
                "cucim": "skimage", "cupyx": "scipy"}
"""Other names of these libraries, for the error that names the right one."""

_WHOLE = dict(WHOLE.values())

_lock = threading.RLock()
_users: Counter[str] = Counter()
_installed: set[str] = set()
_awaited: set[str] = set()
_owners: set[type] = set()      # classes whose instances are called as functions are


def names_of(libraries: Iterable[Any]) -> tuple[str, ...]:
    """The names of libraries that are given by name or as modules.

    Raises
    ------
    TypeError
        If one is neither, as a list of them is.
    """
    names = tuple([one.__name__ if isinstance(one, types.ModuleType) else one for one in libraries])
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Libraries are given by name or as modules, not as {type(name).__name__}: {name!r}. Write "
                            "enable('scipy', 'skimage')")
    return names


@lru_cache(256)
def modules_of(*names: str) -> frozenset[str]:
    """The modules of the host libraries that these names stand for: a library, or one module of it.

    Raises
    ------
    ValueError
        If there are none, or one is unknown; says which ones are known.
    """
    if not names:
        raise ValueError(f"Name at least one library. Supported: {', '.join(map(repr, _KNOWN))}")
    found: set[str] = set()
    for name in names:
        if name in WHOLE:
            found.add(WHOLE[name][0])
            continue
        if name in COMPILED:
            found.add(name)
            continue
        library = name.partition(".")[0]
        known = {twin.module for twin in table(library).values()}
        matching = {module for module in known if name == library or module == name or module.startswith(name + ".")}
        if not matching:
            supported = sorted(known) or sorted(_KNOWN)
            raise ValueError(f"Unknown library {name!r}. Supported: {', '.join(supported)}.{_nearest(name)}")
        found |= matching
    return frozenset(found)


def _nearest(name: str) -> str:
    name = name.lower()
    near = [_OTHER_NAMES[name]] if name in _OTHER_NAMES else get_close_matches(name, get_args(Library), 1, 0.7)
    return f" Did you mean {near[0]!r}?" if near else ""


def enable(*libraries: Library | types.ModuleType, numpy: bool = False) -> None:
    """Run calls of these libraries on the device, in the whole process.

    If an argument is a lazy array, the call runs the function's twin on the device, and the result is lazy. A call that
    the twin does not support runs the original function on the host, with an event and a `HostFallbackWarning`.

    Parameters
    ----------
    *libraries : str or module
        "scipy", "skimage", one of their modules such as "scipy.ndimage", or "monai"; also "cv2" and "torch", whose
        compiled functions (of torch `torch.from_numpy`) require NumPy's own arrays: they stay on the host, get an alias
        of a lazy array, and return what they return for it. "numpy": `numpy.zeros`, `ones`, `empty`, `full` and their
        ``_like`` make lazy arrays of at least ``options(min_bytes=...)`` bytes (1 MiB if that is not set), where the
        program itself calls them, and has sent something to the device before.
    numpy : bool
        Also run calls with host arrays on the device, if they have at least ``options(min_bytes=...)`` bytes (1 MiB if
        that is not set). The results are lazy.

    Raises
    ------
    ValueError
        If a library is unknown. The message has the nearest name.
    TypeError
        If a library is given neither by its name nor as a module, such as a list of names.

    See Also
    --------
    enabled : the same for a block or a function.
    disable : the opposite.

    Examples
    --------
    >>> import lazyarray
    >>> lazyarray.enable("scipy.ndimage")
    >>> lazyarray.disable("scipy.ndimage")
    """
    modules = modules_of(*names_of(libraries))
    _choose(lambda before: before.with_(modules, numpy))


def disable(*libraries: Library | types.ModuleType) -> None:
    """Undo `enable` for these libraries, or for all if none is given, and restore their original functions.

    ``with enabled(...)`` blocks are not affected: what a block uses at this moment is not restored.

    Parameters
    ----------
    *libraries : str or module
        As in `enable`. They need not be enabled.

    Raises
    ------
    ValueError, TypeError
        As from `enable`.

    Examples
    --------
    >>> import lazyarray
    >>> lazyarray.enable("scipy.fft", "scipy.ndimage")
    >>> lazyarray.disable()
    """
    modules = modules_of(*names_of(libraries)) if libraries else None
    _choose(lambda before: before.without(modules))
    with holding(_lock):
        _put_back(modules)


class enabled(Scope):
    """Enable libraries for a ``with`` block, or as a decorator for the calls of a function or coroutine.

    It does not affect other threads and asyncio tasks. Libraries that are enabled outside the block stay enabled.

    Parameters
    ----------
    *libraries : str or module
    numpy : bool
        As in `enable`.

    Raises
    ------
    ValueError, TypeError
        As from `enable`.

    Notes
    -----
    Entering the first block for a library searches the namespaces of all modules, which takes some tens of
    milliseconds. Later blocks take some microseconds, as the routers stay in place. Outside blocks they call the
    original functions, in less than a microsecond; `disable` restores these.

    A task that was started in a block and continues after it runs on the host from then on.

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

    _stack = scopes

    def __init__(self, *libraries: Library | types.ModuleType, numpy: bool = False) -> None:
        self._libraries, self._numpy = names_of(libraries), numpy
        self._modules = modules_of(*self._libraries)    # it raises the errors
        self._keys = _keys(NOTHING.with_(self._modules, numpy))

    def _value(self) -> Choice:
        return current().with_(self._modules, self._numpy)

    def __enter__(self) -> Self:
        _hold(self._keys)
        return super().__enter__()

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        _release(self._keys)

    def __repr__(self) -> str:
        return f"enabled({', '.join(map(repr, self._libraries))}{', numpy=True' if self._numpy else ''})"


def from_environment() -> None:
    """Enable what ``LAZYARRAY_ENABLE`` names, with commas between; "numpy" among them is ``numpy=True``, too."""
    names = [name.strip() for name in os.environ.get("LAZYARRAY_ENABLE", "").split(",") if name.strip()]
    if not names:
        return
    try:
        enable(*names, numpy="numpy" in names)
    except ValueError as error:
        raise unusable(f"LAZYARRAY_ENABLE: {error}") from None


# -- routers in their places ------------------------------------------------------------------------

def _choose(change: Callable[[Choice], Choice]) -> None:
    with holding(_lock):
        before = default()
        after = change(before)
        set_default(after)
    _hold(_keys(after))
    _release(_keys(before))


def _keys(choice: Choice) -> list[str]:
    modules = choice.modules
    return [*modules, *(module + UFUNCS for module, numpy in modules.items() if numpy)]


def _hold(keys: list[str]) -> None:
    """Have routers for these, and have them stay for as long as they are used."""
    with holding(_lock):
        if _installed.issuperset(keys):
            _users.update(keys)
            return
        missing = _missing(keys)
    ready = _found_now(missing)
    with holding(_lock):
        _users.update(keys)
        _install_missing(ready)
    for key in missing:
        if key not in ready and (module := _there(key.removesuffix(UFUNCS))):
            _imported(module)   # by another thread, after we had looked


def _release(keys: list[str]) -> None:
    with holding(_lock):
        _users.subtract(keys)


def _found_now(keys: list[str]) -> dict[str, dict[int, Router]]:
    """The routers of the modules that are imported, by key; the others are awaited.

    Looking at a module may import parts of it. So no lock of ours is held: another thread may wait for it while it
    imports, and keeps us from importing meanwhile.
    """
    ready: dict[str, dict[int, Router]] = {}
    for key in keys:
        name = key.removesuffix(UFUNCS)
        if module := _there(name):
            ready[key] = _routers(module, key)
        elif name not in _awaited:
            _awaited.add(name)
            on_import(name, _imported)
    return ready


def _there(name: str) -> types.ModuleType | None:
    """A module, if it has been imported wholly."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def _missing(keys: Iterable[str]) -> list[str]:
    return [key for key in keys if key not in _installed]


def _used(ready: dict[str, dict[int, Router]]) -> dict[str, dict[int, Router]]:
    return {key: routers for key, routers in ready.items() if _users[key]}


def _install_missing(ready: dict[str, dict[int, Router]]) -> None:
    new = {key: routers for key, routers in ready.items() if key not in _installed}
    if new:
        _install(new)


def _imported(module: types.ModuleType) -> None:
    """A module that was awaited is there."""
    name = module.__name__
    ready = {key: _routers(module, key) for key in (name, name + UFUNCS)}
    with holding(_lock):
        _awaited.discard(name)
        _install_missing(_used(ready))


def _install(ready: dict[str, dict[int, Router]]) -> None:
    """Put routers wherever a module has one of the functions in its namespace, and ufuncs into the core's table."""
    found: dict[int, Router] = {}
    for key, routers in ready.items():
        if key in _WHOLE:
            _whole(key).install()
        elif key.removesuffix(UFUNCS) not in _WHOLE and not key.endswith(UFUNCS):
            tables.FOREIGN_UFUNCS.update(_ufuncs(sys.modules[key]))
        found |= routers
    if found:
        for namespace in _namespaces():
            if found.keys().isdisjoint(map(id, list(namespace.values()))):
                continue
            for name, value in list(namespace.items()):
                router = found.get(id(value))
                if router is not None:
                    namespace[name] = router
    for owner in _owners:
        router = found.get(id(vars(owner)["__call__"]))
        if router is not None:
            owner.__call__ = router  # type: ignore[method-assign]
    _installed.update(ready)


def _routers(module: types.ModuleType, key: str) -> dict[int, Router]:
    """The routers of a module's functions, by the identity of the function."""
    found: dict[int, Router] = {}
    if module.__name__ in _WHOLE:
        _whole(module.__name__)     # imported now, while no lock is held
        return found
    if module.__name__ in COMPILED:
        return found if key.endswith(UFUNCS) else _compiled(module)
    for twin in table(module.__name__.partition(".")[0]).values():
        if twin.module != module.__name__:
            continue
        function = unrouted(getattr(module, twin.name, None))
        if function is None or isinstance(function, np.ufunc) != key.endswith(UFUNCS):
            continue
        if isinstance(function, type):
            owner = next(kind for kind in function.__mro__ if "__call__" in vars(kind))
            _owners.add(owner)
            function = unrouted(vars(owner)["__call__"])
        # Under SCIPY_ARRAY_API=1 the public function is a wrapper of the one that private modules call.
        for layer in _layers(function):
            found[id(layer)] = Router(layer, twin)
    return found


def _compiled(library: types.ModuleType) -> dict[int, Router]:
    """The routers of functions that are given host aliases, in a library and in the modules of it that are there."""
    found: dict[int, Router] = {}
    name = library.__name__
    for module in [m for key, m in list(sys.modules.items()) if key == name or key.startswith(name + ".")]:
        if not isinstance(module, types.ModuleType):
            continue
        for key in COMPILED[name] or vars(module):
            function = unrouted(vars(module).get(key))
            if isinstance(function, types.BuiltinFunctionType):
                path = f"{name}.{key}"
                found[id(function)] = Router(function, Twin(path, path, adapter="compiled:run"))
    return found


def _whole(name: str) -> types.ModuleType:
    """Ours for a library that is enabled otherwise than function by function, by the name that it is waited for."""
    return import_module(f"lazyarray.integrations.{_WHOLE[name]}")


def _ufuncs(module: types.ModuleType) -> dict[np.ufunc, DeviceUfunc]:
    """What gives the device's functions for the ufuncs of a module, also for those inside a function of SciPy's."""
    return {
        ufunc: DeviceUfunc(twin)
        for twin in table(module.__name__.partition(".")[0]).values()
        if twin.module == module.__name__ and twin.kind == "ufunc"
        and isinstance(ufunc := inspect.unwrap(getattr(module, twin.name, len)), np.ufunc)  # len: not in this SciPy
    }


def _layers(function: Any) -> list[Any]:
    layers = [function]
    while isinstance(inner := getattr(layers[-1], "__wrapped__", None), types.FunctionType):
        layers.append(inner)
    return layers


def _put_back(modules: frozenset[str] | None) -> None:
    """Put back the functions of these modules, or of all, whose routers nobody uses now."""
    unused = {key for key in _installed
              if not _users[key] and (modules is None or key.removesuffix(UFUNCS) in modules)}
    if not unused:
        return
    _installed.difference_update(unused)
    for ufunc, gives in list(tables.FOREIGN_UFUNCS.items()):
        if isinstance(gives, DeviceUfunc) and gives.twin.module in unused:
            del tables.FOREIGN_UFUNCS[ufunc]
    for name in unused & _WHOLE.keys():
        _whole(name).remove()
    # What computes on the device was not given routers, but has them if it was imported meanwhile.
    for namespace in _namespaces(frozenset({"lazyarray"})):
        for name, value in list(namespace.items()):
            if is_router(value) and value._self_key in unused:
                namespace[name] = value.__wrapped__
    for owner in _owners:
        value = vars(owner)["__call__"]
        if is_router(value) and value._self_key in unused:
            owner.__call__ = value.__wrapped__  # type: ignore[method-assign]


def _namespaces(less: frozenset[str] = _OWN_CODE) -> Iterable[dict[str, Any]]:
    """Those of all modules, less the packages of these names."""
    seen = set()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in less or name in ON_THE_HOST:
            continue
        if isinstance(module, types.ModuleType):
            namespace = module.__dict__
            if id(namespace) not in seen:
                seen.add(id(namespace))
                yield namespace
