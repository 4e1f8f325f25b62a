"""A whole module of GPU functions that take and return lazy arrays."""
from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..functions import tables
from ..wrapping.arguments import READ, WRITTEN, Rules
from ..wrapping.call import Writes, call
from ..wrapping.decorator import LazyFunction
from ..wrapping.parameters import UNKNOWN, parameters, positional

#: Libraries whose functions modify only what they are asked to, by parameters of these names, or as said below.
LIBRARIES = frozenset({"cupy", "cupyx", "cucim"})
OUTPUTS = frozenset({"out", "output"})
#: With one of these true, or with ``copy=False``, any argument may be modified.
_FREE = ("overwrite", "inplace", "in_place")
#: What else is modified, where NumPy has no function of that name or its own is not in `functions.tables.WRITES`.
WRITES: dict[str, tuple[str, ...]] = {
    "cupy.random.shuffle": ("a",),
    "cupyx.scatter_add": ("a",),
    "cupyx.scatter_max": ("a",),
    "cupyx.scatter_min": ("a",),
    "cupyx.scipy.ndimage.distance_transform_edt": ("distances", "indices"),
    "cucim.skimage.draw.set_color": ("image",),
    "cucim.core.operations.morphology.distance_transform_edt": ("distances", "indices"),
}
#: Device library -> the one on the host that has the same functions.
_HOSTS = {"cupyx.scipy": "scipy", "cucim.skimage": "skimage"}


def lazy_module(module: Any, *, writes: tuple[str, ...] | None = None, pure: bool = False,
                host: Any = None) -> LazyModule:
    """Wrap a module of functions on device arrays: each accepts and returns lazy arrays, as with `lazy`.

    Parameters
    ----------
    module : module or str
        A module of functions on device arrays, such as ``cupyx.scipy.ndimage``, or its name. It is not changed.
    writes, pure : tuple of str, bool, optional
        As in `lazy`, for every function. By default, functions of CuPy and cuCIM modify ``out`` and ``output``, and few
        others that are listed in lazyarray; functions of other modules may modify any array among their arguments.
    host : module or str, optional
        A module with functions of the same names for NumPy arrays. They are called if the device does not support a
        call, or `module` does not have the function. Not needed for functions of CuPy and cuCIM that were tested
        against NumPy, SciPy and scikit-image.

    Returns
    -------
    LazyModule
        It has the same attributes as `module`. Functions and other callables are wrapped when they are first used, and
        so are submodules, which are imported if necessary. Classes, constants and other modules are unchanged.

    Raises
    ------
    TypeError
        If `module` or `host` is neither a module nor the name of one, or `pure` contradicts `writes`.
    ImportError
        If there is no module of that name.

    Examples
    --------
    >>> import numpy as np, lazyarray
    >>> xp = lazyarray.lazy_module(lazyarray.device().xp)       # cupy
    >>> y = xp.linalg.norm(np.array([3.0, 4.0]))
    >>> lazyarray.is_lazy(y), y
    (True, np.float64(5.0))
    """
    if pure and writes:
        raise TypeError(f"functions that modify {writes[0]!r} are not pure")
    return LazyModule(_module(module), () if pure else writes, None if host is None else _module(host))


def _module(given: Any) -> Any:
    """A module, given as such or by its name."""
    if isinstance(given, str):
        return importlib.import_module(given)
    if not hasattr(given, "__name__") or inspect.isclass(given) or callable(given):
        raise TypeError(f"lazy_module takes a module or the name of one, not {given!r}; use lazyarray.lazy for a "
                        "function")
    return given


class LazyModule(ModuleType):
    """A module of GPU functions that accept and return lazy arrays: the result of `lazy_module`."""

    def __init__(self, module: Any, writes: Writes = None, host: Any = None) -> None:
        super().__init__(module.__name__, getattr(module, "__doc__", None))
        self._lazy_parts = module, writes, host

    def __getattr__(self, name: str) -> Any:
        if name == "_lazy_parts":       # it is being made
            raise AttributeError(name)
        module, writes, host = self._lazy_parts
        path = _path(module, name)
        twin = getattr(host, name, None)
        try:
            found = _member(module, name)
        except AttributeError:
            if not inspect.isroutine(twin):
                raise
            found = Missing(path, twin)
        if _is_module(found, module):
            if found.__name__.partition(".")[0] == module.__name__.partition(".")[0]:
                found = LazyModule(found, writes, twin)
        elif callable(found) and not inspect.isclass(found) and not isinstance(found, (LazyFunction, Missing)):
            rules = _convention(path, found) if writes is None else None
            found = LazyFunction(found, writes, twin or _known_twin(path), rules, path, (self, name))
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        module, _, host = self._lazy_parts
        return sorted({*dir(module), *(name for name in dir(host) if inspect.isroutine(getattr(host, name)))})

    def __repr__(self) -> str:
        return f"<lazy {self._lazy_parts[0]!r}>"

    def __reduce__(self) -> Any:
        module, writes, host = self._lazy_parts
        return _at, (module.__name__, writes, None if host is None else host.__name__)


def _at(name: str, writes: Writes, host: str | None) -> LazyModule:
    return LazyModule(importlib.import_module(name), writes, None if host is None else importlib.import_module(host))


def _path(module: Any, name: str) -> str:
    """Dotted name of a member, on the simulated device that of what it stands for."""
    library, dot, rest = module.__name__.partition(".")
    return f"{'cupy' if library == 'simulated' else library}{dot}{rest}.{name}"


def _member(module: Any, name: str) -> Any:
    """An attribute of a module, or a submodule that is not imported yet."""
    try:
        return getattr(module, name)
    except AttributeError:
        path = f"{module.__name__}.{name}"
        if name.startswith("__") or not hasattr(module, "__path__") or importlib.util.find_spec(path) is None:
            raise
        return importlib.import_module(path)


def _is_module(thing: Any, like: Any) -> bool:
    """Whether something is a module, or what stands for one on this device."""
    return isinstance(thing, (ModuleType, type(like))) and hasattr(thing, "__name__")


class Missing:
    """A function that only the host has."""

    def __init__(self, path: str, twin: Callable[..., Any]) -> None:
        functools.update_wrapper(self, twin)
        self._path = path

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call(None, args, kwargs, self._path, UNKNOWN, self.__wrapped__, f"there is no {self._path}")


# -- what is known of libraries --------------------------------------------------------------

def _convention(path: str, function: Callable[..., Any]) -> Callable[..., Rules] | None:
    """How the arguments of a library's function are treated, for a call's arguments; None if that is not known."""
    if path.partition(".")[0] not in LIBRARIES:
        return None
    known = parameters(function)
    if known is not None and set(known) <= {"args", "kwargs"}:
        function = _numpy_twin(path) or function    # nothing is said of its parameters; they are NumPy's
        known = parameters(function)
    names = positional(function)
    inputs = getattr(function, "nin", None)
    if known is None and inputs is None:
        return None
    written = {*OUTPUTS, *WRITES.get(path, ()), *tables.WRITES.get(_numpy_twin(path), ())}

    def role(slot: int | str) -> int:
        if isinstance(slot, int):
            if inputs is not None:
                return WRITTEN if slot >= inputs else READ
            slot = names[slot] if slot < len(names) else ""
        return WRITTEN if slot in written else READ

    rules = Rules(role)
    free = [name for name in known or () if name.startswith(_FREE) or name == "copy"]
    if not free:
        return lambda args, kwargs: rules

    def depending(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Rules:
        given = {**dict(zip(names, args)), **kwargs}
        return UNKNOWN if any(name in given and bool(given[name]) is (name != "copy") for name in free) else rules

    return depending


def _numpy_twin(path: str) -> Any:
    library, _, rest = path.partition(".")
    return _resolve(np, rest) if library == "cupy" else None


def _resolve(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


#: Functions of ours in the place of the device library's, which do the same but for the order of their sums.
_IN_ORDER = "lazyarray.integrations.scipy.filters."


def _known_twin(path: str) -> Callable[..., Any] | None:
    """The host's function for one of a device library, if the two were found to do the same."""
    twin = _numpy_twin(path)
    if twin is not None:
        return twin if twin in tables.SAME else None
    from .routing.twin import table

    for device, host in _HOSTS.items():
        if path.startswith(device + "."):
            known = table(host).get(host + path.removeprefix(device))
            if known is not None and not known.reason and (known.device == path or known.device.startswith(_IN_ORDER)):
                return _resolve(importlib.import_module(known.module), known.name)
    return None
