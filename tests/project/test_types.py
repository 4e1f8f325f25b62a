"""Types: what is public is annotated, every annotation names something, and `py.typed` says so to type checkers."""
from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
import types
import typing
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest
from hypothesis.strategies import SearchStrategy

import lazyarray
import lazyarray.numpy
import lazyarray.testing
from lazyarray import devices
from lazyarray.array import array, conversion
from lazyarray.array.function_methods import VIA_FUNCTION
from lazyarray.settings.options import Changes, Options

ROOT = Path(__file__).parents[2]

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
            annotated = name in vars(kind).get("__annotations__", {})       # a property that C alone computes
            assert name in members or isinstance(value.fget, type) or annotated, name


def test_marker() -> None:
    assert resources.files(lazyarray).joinpath("py.typed").is_file()


#: Lines of a user's program -> what a type checker says of it: the type that it reveals, or part of its error.
USER_CODE = {
    "x = lazyarray.asarray([1.0, 2.0])": None,
    "reveal_type(x)": "LazyNdarray",
    "reveal_type(x.T)": "LazyNdarray",
    "reveal_type(x.sum())": "LazyScalar",
    "reveal_type(x.max(axis=None))": "LazyScalar",
    "reveal_type(x.sum(0))": "LazyNdarray",
    "reveal_type(x.mean(axis=(0,), keepdims=True))": "LazyNdarray",
    "reveal_type(x.sum(keepdims=True))": "LazyNdarray",
    "reveal_type(x * 2 + 1)": "ndarray",
    "x.summ()": "\"LazyNdarray\"",
    "def takes(a: np.ndarray) -> None: ...": None,
    "takes(x)": None,
    "takes(x + 1)": None,
    "total: float = float(x.sum()) + float(x.sum() * 2)": None,
    "reveal_type(lazyarray.block_until_ready(x))": "LazyNdarray",
    "reveal_type(lazyarray.where(x).side)": "pending",
    "reveal_type(lazyarray.numpy.zeros((2, 3)))": "ndarray",
    "reveal_type(lazyarray.memory_info().device)": "int",
    "with lazyarray.options(defer_from=None, bulk_reads=3), lazyarray.enabled('scipy.ndimage', numpy=True): pass": None,
    "lazyarray.options(bulk_read=3)": "bulk_read",
    "lazyarray.options(bulk_reads='x')": "int",
    "lazyarray.options.set(write_tracking='pagez')": "pagez",
    "lazyarray.enable('scipyy')": "scipyy",
    "lazyarray.enabled('skimage', numpy=3)": "bool",
    "lazyarray.enabel('scipy')": "enabel",
    "lazyarray.testing.check(np.sum, x)": None,
}
SOURCE = "import lazyarray\nimport numpy as np\n" + "\n".join(USER_CODE) + "\n"


def _mypy(path: Path) -> str:
    mypy = pytest.importorskip("mypy.api")
    return mypy.run(["--config-file=", "--follow-imports=silent", "--ignore-missing-imports",
                     f"--cache-dir={os.devnull}", str(path)])[0]


def _pyright(path: Path) -> str:
    """From basedpyright, which is pyright with all that it needs in a wheel; by default it is stricter."""
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("the extra `types` brings basedpyright")
    settings = {"typeCheckingMode": "standard", "include": [path.name], "extraPaths": [str(ROOT)]}
    (path.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    return subprocess.run([sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "-p", path.parent],
                          capture_output=True, text=True, timeout=600, check=False).stdout


@pytest.mark.parametrize("check", [_mypy, _pyright])
def test_type_checkers_know_what_a_program_gets(check: Callable[[Path], str], tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes for an ndarray at run time has to pass where a program's annotations say ndarray."""
    path = tmp_path / "program.py"
    path.write_text(SOURCE)
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    monkeypatch.chdir(ROOT)
    report = check(path)
    said: dict[int, str] = {}
    number = 0
    for line in report.splitlines():
        found = re.match(r".*program\.py:(\d+):", line)
        number = int(found[1]) if found else number
        said[number] = said.get(number, "") + line
    wrong = [f"{line}: {said.get(number, 'nothing')}" for number, (line, expected) in enumerate(USER_CODE.items(), 3)
             if (expected is None) != (number not in said) or expected is not None and expected not in said[number]
             or line.startswith("reveal_type") == bool(re.search(r"\berror\b", said.get(number, "")))
             and expected is not None]
    assert not wrong, "\n".join(wrong) + "\n" + report


def test_the_settings_that_type_checkers_know_are_those_that_there_are() -> None:
    assert typing.get_type_hints(Changes) == {name: kind for name, kind in typing.get_type_hints(Options).items()
                                              if name in Options._fields}
    assert tuple(typing.get_type_hints(Changes)) == Options._fields


def test_what_type_checkers_see_of_a_function_is_its_signature() -> None:
    for name in ("asarray",):
        seen, real = (inspect.signature(getattr(module, name)).parameters for module in (conversion, lazyarray))
        assert list(seen) == list(real) and [p.kind for p in seen.values()] == [p.kind for p in real.values()]
    reductions = {name for name, kind in lazyarray_annotations().items() if "Reduction" in kind}
    assert reductions <= set(VIA_FUNCTION) and "sum" in reductions


def lazyarray_annotations() -> dict[str, str]:
    """The annotated members of LazyNdarray, as its file has them."""
    tree = ast.parse(inspect.getsource(array))
    return {node.target.id: ast.unparse(node.annotation) for node in ast.walk(tree)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
