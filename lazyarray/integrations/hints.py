"""Say once what to enable, where a function that the device has runs on the host with the values of lazy arrays.

``skimage.filters.gaussian(x)`` gives an ndarray as long as nobody has enabled scikit-image: its own code makes one of
the lazy array. That is noticed where it gets the values: the functions between there and the program's line are those
on the stack, and their code objects are those of the functions in the tables of twins. So a program that hands out no
values pays nothing, and one that has not imported these libraries only looks whether somebody wants to know.
"""
from __future__ import annotations

import importlib.util
import inspect
import sys
from types import CodeType, FrameType, FunctionType, ModuleType

from .. import devices
from ..errors import NotEnabledWarning
from ..events import fallback_warning, trace
from ..events.callers import SERVED, warn_user
from ..settings import enabled
from ..settings.options import current as current_options
from .routing.router import unrouted
from .routing.twin import TABLES, Twin, table

__all__ = ["forget", "of_fallback", "of_stack", "register", "remedy"]

#: Libraries that are imported and of which nothing has been said.
_silent: set[str] = set()
_roots: dict[object, str] = {}      # name of a module -> its `_root`: the stack is walked often
_codes: dict[str, tuple[int, dict[CodeType, Twin]]] = {}    # library -> modules that were there, and its functions


def register(library: ModuleType) -> None:
    """Look at who gets values from now on: `library` is imported."""
    _silent.add(library.__name__)
    trace.before_host_use = _look
    trace.function_of_stack = of_stack
    if of_fallback not in fallback_warning.remedies:
        fallback_warning.remedies.append(of_fallback)


def forget() -> None:
    """Say everything once more (for tests)."""
    for library in TABLES:
        if library in sys.modules:
            register(sys.modules[library])


def of_stack() -> str:
    """The public name of the function whose call copies, if it has a twin that is not enabled; else ""."""
    twin = _not_enabled()
    return "" if twin is None else twin.host


def remedy(path: str) -> str:
    """What lets a function of this name run on the device; "" if it can't."""
    library = path.partition(".")[0]
    twin = table(library).get(path)
    if twin is None or twin.reason:
        return ""
    missing = twin.device.partition(".")[0]
    if devices.current().name == "cuda" and missing == "cucim" and importlib.util.find_spec(missing) is None:
        return f"install cuCIM (cucim-cu12 or cucim-cu13), and call lazyarray.enable({library!r})"
    return f"call lazyarray.enable({library!r})"


def of_fallback(path: str) -> str:
    """The same for a fallback's warning, of a function whose library is not enabled here."""
    module = path.rpartition(".")[0]
    enabled_here = module in enabled.current().modules or any(owner is None for owner, _ in enabled.scopes.get())
    return "" if module.partition(".")[0] not in TABLES or enabled_here else remedy(path)


def _look() -> None:
    twin = _not_enabled()
    if twin is None or not current_options().warn_fallbacks:
        return
    library = twin.host.partition(".")[0]
    text = remedy(twin.host) if library in _silent else ""
    if text and warn_user(f"{twin.host} ran on the host with a copy of a lazy array. To run it on the device, {text}",
                          NotEnabledWarning):
        # Not before: under an "error" filter for this category the line above raises, and must do so again.
        _silent.discard(library)
        if not _silent:
            trace.before_host_use = None


def _not_enabled() -> Twin | None:
    """The outermost function of a call that has a twin, if its library is not enabled."""
    found: Twin | None = None
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if (library := _roots.get(name)) is None:
            library = _root(name)
        if library in TABLES:
            found = _functions(library).get(frame.f_code) or found
        elif not library:
            break
        frame = frame.f_back
    if found is None or found.module in enabled.current().modules or any(
            owner is None for owner, _ in enabled.scopes.get()):     # a twin's own calls, or a fallback's
        return None
    return found


def _root(module: object) -> str:
    """The top-level package of a module; "" of the program's own."""
    root = module.partition(".")[0] if type(module) is str else ""
    found = _roots[module] = root if root in SERVED else ""
    return found


def _functions(library: str) -> dict[CodeType, Twin]:
    """The twins of a library by the code of its functions, as far as its modules are imported."""
    twins = [twin for twin in table(library).values() if not twin.reason]
    there = sum(module in sys.modules for module in {twin.module for twin in twins})
    known = _codes.get(library)
    if known is None or known[0] != there:
        functions = ((unrouted(vars(sys.modules[twin.module]).get(twin.name)), twin) for twin in twins
                     if twin.module in sys.modules)
        known = _codes[library] = there, {
            plain.__code__: twin for function, twin in functions
            if isinstance(plain := inspect.unwrap(function), FunctionType)}
    return known[1]
