"""Types: what is public is annotated, every annotation names something, and `py.typed` says so to type checkers."""
from __future__ import annotations

import functools
import importlib
import inspect
import os
import pkgutil
import types
import typing
from collections.abc import Iterator
from importlib import resources

import pytest
from hypothesis.strategies import SearchStrategy

import lazyarray
import lazyarray.numpy
import lazyarray.testing
from lazyarray import devices

NAMESPACES = {module.__name__: module for module in (lazyarray, lazyarray.testing, lazyarray.numpy, devices)}
MODULES = sorted({*NAMESPACES} | {
    name for _, name, _ in pkgutil.walk_packages(lazyarray.__path__, "lazyarray.") if not name.endswith("__main__")})
#: Device arrays are Any wherever they go, as CuPy's have no types; this one has CuPy's members, from tables.
UNTYPED = {"SimulatedArray"}


def _ours(obj: object) -> bool:
    return str(getattr(obj, "__module__", "")).partition(".")[0] == "lazyarray"


def _functions(name: str, member: object) -> Iterator[tuple[str, types.FunctionType, bool]]:
    """(name, function, whether its first parameter is the object itself) of whatever a class or module holds."""
    if isinstance(member, property):
        for part in (member.fget, member.fset):
            if isinstance(part, types.FunctionType):    # a class that makes the value is its own annotation
                yield name, part, True
    elif isinstance(member, functools.cached_property):
        yield name, member.func, True
    elif isinstance(member, (classmethod, staticmethod)):
        yield name, inspect.unwrap(member.__func__), isinstance(member, classmethod)
    else:
        member = inspect.unwrap(member) if callable(member) else member
        if isinstance(member, types.FunctionType):
            yield name, member, True


def _members(kind: type) -> Iterator[tuple[str, types.FunctionType, bool]]:
    """The public members of a class and its special methods, but for what `dataclass` and others generate."""
    for name, member in vars(kind).items():
        if name.startswith("_") and not name.endswith("__"):
            continue
        for path, func, bound in _functions(f"{kind.__name__}.{name}", member):
            if _ours(func) and not func.__code__.co_filename.startswith("<"):
                yield path, func, bound


def _public(name: str) -> Iterator[tuple[str, types.FunctionType, bool]]:
    """The functions and classes that a namespace promises by ``__all__``, or that a module defines."""
    module = importlib.import_module(name)
    if name in NAMESPACES:      # what is NumPy's own there is NumPy's to annotate
        found = {key: value for key in module.__all__ if _ours(value := getattr(module, key))}
    else:
        found = {key: value for key, value in vars(module).items()
                 if not key.startswith("_") and getattr(value, "__module__", None) == name and key not in UNTYPED}
    for key, value in found.items():
        if isinstance(value, type):
            yield from _members(value)
        else:
            for path, func, _ in _functions(key, value):
                yield path, func, False


def _missing(func: types.FunctionType, bound: bool) -> list[str]:
    """The parameters of a function that have no annotation, and "return"; `self` and `cls` need none."""
    code = func.__code__        # not `inspect.signature`: functions of `lazyarray.numpy` show that of NumPy's
    flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[bound:code.co_argcount + code.co_kwonlyargcount + flags]
    return [n for n in (*names, "return") if n not in func.__annotations__]


@functools.cache
def _classes() -> dict[str, type]:
    """The classes that modules name in annotations without an import at run time, which would be circular."""
    found: dict[str, type] = {"SearchStrategy": SearchStrategy}
    for name in MODULES:
        for key, value in vars(importlib.import_module(name)).items():
            if isinstance(value, type) and _ours(value):
                found.setdefault(key, value)
    return found


@pytest.mark.parametrize("name", MODULES)
def test_public_functions_are_annotated(name: str) -> None:
    wrong = {path: missing for path, func, bound in _public(name) if (missing := _missing(func, bound))}
    assert not wrong, f"not annotated in {name}: {wrong}"


@pytest.mark.parametrize("name", MODULES)
def test_annotations_name_something(name: str) -> None:
    for path, func, _ in _public(name):
        hints = typing.get_type_hints(func, localns={**_classes(), **func.__globals__})
        assert set(hints) == set(func.__annotations__), path


@pytest.mark.parametrize("kind", [lazyarray.LazyNdarray, lazyarray.LazyScalar])
def test_faces(kind: type) -> None:
    """Members written out and members from tables alike; a method or property without a function can't hide."""
    members = dict.fromkeys(path.partition(".")[2] for path, _, _ in _members(kind))
    assert {"shape", "dtype", "T", "sum", "__add__", "__array_function__", "astype"} <= set(members)
    for name, value in vars(kind).items():
        if isinstance(value, property):
            assert name in members or isinstance(value.fget, type), name


def test_marker() -> None:
    assert resources.files(lazyarray).joinpath("py.typed").is_file()


def test_type_checkers_see_an_ndarray() -> None:
    """What passes for an ndarray at run time has to pass where a program's annotations say ndarray."""
    mypy = pytest.importorskip("mypy.api")
    source = "import lazyarray, numpy as np\ndef f(a: np.ndarray) -> None: ...\nf(lazyarray.asarray([1]) + 1)\n"
    source += "reveal_type(lazyarray.asarray([1]).T)\n"
    report, errors, status = mypy.run(["--config-file=", "--follow-imports=silent", "--ignore-missing-imports",
                                       f"--cache-dir={os.devnull}", "-c", source])
    assert status == 0, report + errors
    assert "LazyNdarray" in report
