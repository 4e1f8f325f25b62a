"""Say once what to enable, where a function that the device has runs on the host with the values of lazy arrays.

``skimage.filters.gaussian(x)`` gives an ndarray as long as nobody has enabled scikit-image: its own code makes one of
the lazy array. That is noticed where it gets the values: the functions between there and the program's line are those
on the stack, and what each of them is called, and in which module, says which entry of the tables of twins it is. So a
program that hands out no values pays nothing, and one that has not imported these libraries only looks whether somebody
wants to know.

A module's functions are not looked up in advance: scikit-image's modules get theirs when a program first asks for them.
Of a function of ``scipy.fft`` the stack has the implementation, in a module beside the public one. Of a decorated one
it may have only the decorator's inner function, whose code is the same for all that are decorated; which one it calls
is in its closure.
"""
from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from .. import devices
from ..errors import NotEnabledWarning
from ..events import fallback_warning, trace
from ..events.callers import SERVED, variable, warn_user
from ..settings import enabled
from ..settings.options import current as current_options
from .routing.twin import TABLES, Twin, table

__all__ = ["forget", "of_fallback", "of_stack", "register", "remedy"]

#: Libraries that are imported and of which nothing has been said.
_silent: set[str] = set()
_roots: dict[object, str] = {}      # name of a module -> its `_root`: the stack is walked often
#: id of a code object -> (the code, so that no other one gets the id; what `_of_code` says of it).
_known: dict[int, tuple[CodeType, Twin | tuple[str, ...] | None]] = {}
_MOST_KNOWN = 4096      # SciPy makes code for some of its objects as it goes


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
            found = _twin_of(frame, library) or found
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


def _twin_of(frame: FrameType, library: str) -> Twin | None:
    """The twin of the function that a frame runs, of the class whose method it runs, or of what its code decorates."""
    code = frame.f_code
    if code.co_varnames[:1] == ("self",) and "." in code.co_qualname:
        kind = type(variable(frame, "self"))
        return next((twin for twin in _named(library).get(kind.__name__, ())
                     if getattr(sys.modules.get(twin.module), twin.name, None) is kind), None)
    found = _of_code(code, frame.f_globals["__name__"], library)
    if not isinstance(found, tuple):
        return found
    for name in found:
        inner = variable(frame, name)
        plain = inspect.unwrap(inner) if type(inner) is FunctionType else None
        # An inner function that only calls one that it was given is no decorator: the public name must stand for it.
        if type(plain) is FunctionType and frame.f_code in _codes(plain.__globals__.get(plain.__name__)):
            decorated = _of_code(plain.__code__, plain.__globals__.get("__name__", ""), library)
            if isinstance(decorated, Twin):
                return decorated
    return None


def _of_code(code: CodeType, module: str, library: str) -> Twin | tuple[str, ...] | None:
    """The twin of the function with this code, None, or of an inner function the names of what it has from outside."""
    if (known := _known.get(id(code))) is not None:
        return known[1]
    found: Twin | tuple[str, ...] | None = None
    if "<locals>" in code.co_qualname:
        found = code.co_freevars or None
    elif twins := _named(library).get(code.co_qualname):
        found = next((twin for twin in twins if _is_of(code, module, twin)), None)
        if found is None:
            return None     # not for good: scikit-image has its gaussian elsewhere, and makes it public when it is used
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[id(code)] = code, found
    return found


@cache
def _named(library: str) -> dict[str, list[Twin]]:
    """The twins of a library by their names without the module."""
    found: dict[str, list[Twin]] = {}
    for twin in table(library).values():
        if not twin.reason:
            found.setdefault(twin.name, []).append(twin)
    return found


def _is_of(code: CodeType, module: str, twin: Twin) -> bool:
    """Whether this code, of a function of the twin's name, is that of the public function, or implements it."""
    if twin.module in (module, module.rpartition(".")[0]):
        return True
    public = sys.modules.get(twin.module)
    return public is not None and code in _codes(vars(public).get(twin.name))


def _codes(function: Any) -> Iterator[CodeType]:
    """The code of a function, and of all that it wraps."""
    while function is not None:
        if type(function) is FunctionType:
            yield function.__code__
        function = getattr(function, "__wrapped__", None)
