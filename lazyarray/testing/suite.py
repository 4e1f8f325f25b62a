"""Pytest plugin: run the test suite of a package with lazy arrays in place of ndarrays.

The tests are not changed. The plugin replaces each function of the package in the globals of a test module, under its
own name (``from numpy.linalg import inv``) or in a module (``np.linalg.inv``), and each that a test is parametrised
with. The replacement passes a lazy array for every ndarray among the arguments. A test that passes with ndarrays and
fails here has found a difference between lazy arrays and ndarrays::

    LAZYARRAY_SUITE=numpy.linalg python -m pytest -p lazyarray.testing.suite --pyargs numpy.linalg.tests.test_linalg

Environment variables configure it, so that it works with any program that starts pytest:

``LAZYARRAY_SUITE``
    The package whose functions get lazy arrays, or several packages, separated by commas. Subpackages are included:
    ``numpy`` includes ``numpy.linalg``. Its tests, its helpers for tests (``numpy.testing``) and private compiled
    functions (``scipy.signal._upfirdn_apply._pad_test``) are not.
``LAZYARRAY_SUITE_RESULTS``
    ``1``: ndarrays that these functions return, including those of creation functions, become lazy too, so that
    methods, operators and indexing that a test applies to them are tested as well. Otherwise results are unchanged.
``LAZYARRAY_SUITE_ARRAYS``
    ``control``: plain copies instead of lazy arrays. Tests that fail then can't be run in this way (because they check
    the identity of the function, for example, or whether memory is shared), and say nothing about lazy arrays.
``LAZYARRAY_SUITE_REPORT``
    A JSON file to write: ``tests`` (the name of each test, as pytest accepts it after ``--pyargs``, and its outcome:
    passed, skipped or failed), and the numbers of ``calls`` and ``arrays`` that were replaced.

Arguments in lists and tuples are replaced too, two levels deep; a list is then a new list. After the call, values that
the function wrote to a lazy argument are copied to the test's ndarray. If the function returns a lazy argument, the
test gets its own ndarray. Ndarrays of any dtype and shape are replaced, but not instances of subclasses; a read-only
ndarray is replaced by a read-only lazy array.

Two differences are hidden from the tests, because many of them would fail before they reach what they test: in a test
module ``type(x)`` of a lazy array is ``numpy.ndarray``, and `HostFallbackWarning` is off.
"""
from __future__ import annotations

import json
import os
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wrapt

import lazyarray
from lazyarray.errors.inspection import once_made

#: How deep lists and tuples are looked into: ``np.block`` takes lists of lists.
DEPTH = 2

#: Parts of a package that test the others: they get what the functions returned as it is.
TESTERS = {"tests", "testing", "conftest"}


class Suite:
    """What one run replaces, and by what.

    Parameters
    ----------
    packages : iterable of str
        Dotted names of the packages under test.
    make : callable
        Array that takes the place of an ndarray: ``make(ndarray)``.
    results : bool
        Whether results are replaced as well.
    """

    def __init__(self, packages: Iterable[str], make: Callable[[Any], Any], results: bool) -> None:
        self.packages = tuple(packages)
        self.make = make
        self.results = results
        self.process = os.getpid()
        self.calls = 0
        self.arrays = 0
        self.names: dict[str, str] = {}
        self.outcomes: dict[str, str] = {}
        # By identity, so that a function has one stand-in wherever it is found; the object is kept, or its id were not
        self.known: dict[int, tuple[Any, StandIn]] = {}

    def belongs(self, home: str) -> bool:
        """Whether what is at home in a module is a function under test."""
        parts = home.split(".")
        if not TESTERS.isdisjoint(parts) or any(part.endswith(("_tests", "_testutils")) for part in parts):
            return False
        return any(home == package or home.startswith(package + ".") for package in self.packages)

    def stand_in(self, value: Any, place: str) -> Any:
        """The stand-in for a function under test, or for a module through which there is a way to one.

        Parameters
        ----------
        value : object
            What was found. What is neither is returned as it is; classes are left alone.
        place : str
            Module that it was found in, which is its home if it does not name one, as C functions may not.
        """
        if isinstance(value, type) or type(value) is StandIn or _is_inside(value):
            return value
        if isinstance(value, types.ModuleType):
            home = value.__name__
            wanted = self.belongs(home) or any(package.startswith(home + ".") for package in self.packages)
        else:
            home = getattr(value, "__module__", None) or place
            wanted = callable(value) and isinstance(home, str) and self.belongs(home)
        if not wanted:
            return value
        if id(value) not in self.known:
            self.known[id(value)] = value, StandIn(value, self, home)
        return self.known[id(value)][1]

    def replace(self, value: Any, made: dict[int, tuple[Any, Any]], depth: int = DEPTH) -> Any:
        """An argument with its ndarrays replaced; `made` collects by id what was replaced, and by what."""
        if type(value) is np.ndarray:
            if id(value) not in made:
                self.arrays += 1
                array = self.make(value)
                if not value.flags.writeable:
                    array.flags.writeable = False
                made[id(value)] = value, array
            return made[id(value)][1]
        if type(value) is StandIn:  # a callback
            return value.__wrapped__
        if depth and type(value) in (list, tuple):
            items = [self.replace(item, made, depth - 1) for item in value]
            if any(new is not old for new, old in zip(items, value)):
                return type(value)(items)
        return value

    def finish(self, result: Any, made: dict[int, tuple[Any, Any]]) -> Any:
        """What the test gets for a result."""
        for original, array in made.values():
            if result is array:
                return original
        if self.results and type(result) is np.ndarray:
            self.arrays += 1
            return self.make(result)
        if isinstance(result, tuple) and hasattr(result, "_fields") or type(result) in (list, tuple):
            items = [self.finish(item, made) for item in result]
            if any(new is not old for new, old in zip(items, result)):
                return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
        return result

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function under test."""
        self.calls += 1
        made: dict[int, tuple[Any, Any]] = {}
        args = tuple(self.replace(value, made) for value in args)
        kwargs = {name: self.replace(value, made) for name, value in kwargs.items()}
        try:
            result = function(*args, **kwargs)
        finally:
            for original, array in made.values():
                if original.flags.writeable:
                    np.copyto(original, lazyarray.asnumpy(array))
        return self.finish(result, made)

    def dotted(self, module: types.ModuleType) -> str:
        """Name of a test module after ``--pyargs``: its own lacks the package if the folder has no ``__init__.py``."""
        path = Path(module.__file__ or "").with_suffix("").parts
        roots = {package.split(".")[0] for package in self.packages}
        starts = [start for start, part in enumerate(path) if part in roots]
        return ".".join(path[starts[-1] :]) if starts else module.__name__

    # Hooks of pytest

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the stand-ins into the test modules and into the parameters of tests."""
        modules = {}
        for item in items:
            module = getattr(item, "module", None)
            if module is not None:
                modules[module.__name__] = module
                self.names[item.nodeid] = "::".join((self.dotted(module), *item.nodeid.split("::")[1:]))
            if hasattr(item, "callspec"):
                parameters = item.callspec.params
                parameters.update({name: self.stand_in(value, "") for name, value in parameters.items()})
        for name, module in modules.items():
            for key, value in list(vars(module).items()):
                if not key.startswith(("__", "@")):
                    setattr(module, key, self.stand_in(value, name))
            module.type = vars(module).get("type", Type)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The worst outcome of a test's three phases counts."""
        if os.getpid() != self.process:  # a test forked and failed in the child, which would run all that is left
            os._exit(1)
        name = self.names.get(report.nodeid, report.nodeid)
        if report.outcome != "passed" and self.outcomes.get(name) != "failed":
            self.outcomes[name] = report.outcome
        self.outcomes.setdefault(name, "passed")

    def pytest_report_header(self) -> str:
        """A line at the top that says what is tested."""
        kind = "lazy arrays" if self.make is lazyarray.asarray else "copies"
        return f"lazyarray: {', '.join(self.packages)} with {kind} as arguments{' and results' * self.results}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """A line at the end that shows whether anything was replaced at all."""
        terminalreporter.write_line(f"lazyarray: {self.calls} calls, {self.arrays} arrays replaced")

    def pytest_sessionfinish(self) -> None:
        """Write the report that was asked for."""
        path = os.environ.get("LAZYARRAY_SUITE_REPORT")
        if path:
            report = {"tests": self.outcomes, "calls": self.calls, "arrays": self.arrays}
            Path(path).write_text(json.dumps(report, indent=1))


def _is_inside(value: Any) -> bool:
    """Whether it is a compiled helper, which takes what its callers have made ndarrays of, and nothing else."""
    return getattr(value, "__name__", "").startswith("_") and not isinstance(
        value, (types.FunctionType, types.ModuleType, np.ufunc))


class StandIn(wrapt.BaseObjectProxy):
    """A function that is called with arrays replaced, or a module full of them; all else is the object's own."""

    def __init__(self, value: Any, suite: Suite, home: str) -> None:
        super().__init__(value)
        self._self_suite = suite
        self._self_home = home

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":       # it is being made
            raise AttributeError(name)
        value = getattr(self.__wrapped__, name)
        if isinstance(self.__wrapped__, types.ModuleType):
            return self._self_suite.stand_in(value, self._self_home)
        if isinstance(value, types.BuiltinMethodType) and not name.startswith("_"):  # a ufunc's reduce, made anew
            return StandIn(value, self._self_suite, self._self_home)
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._self_suite.call(self.__wrapped__, args, kwargs)

    @once_made("__wrapped__")
    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class _AskedForType(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Type and len(args) == 1:
            return args[0].__class__ if lazyarray.is_lazy(args[0]) else type(args[0])
        return type(*args, **kwargs) if cls is Type else super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, type) if cls is Type else super().__instancecheck__(instance)


class Type(type, metaclass=_AskedForType):
    """`type` in the test modules: the class that a lazy array or scalar says it is an instance of."""


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings."""
    packages = [name.strip() for name in os.environ.get("LAZYARRAY_SUITE", "").split(",") if name.strip()]
    if not packages:
        raise pytest.UsageError("LAZYARRAY_SUITE names no package, such as LAZYARRAY_SUITE=numpy.linalg")
    kind = os.environ.get("LAZYARRAY_SUITE_ARRAYS", "lazy")
    makers: dict[str, Callable[[Any], Any]] = {"lazy": lazyarray.asarray, "control": np.array}
    if kind not in makers:
        raise pytest.UsageError(f"LAZYARRAY_SUITE_ARRAYS is one of {', '.join(makers)}, not {kind!r}")
    lazyarray.options.set(warn_fallbacks=False)
    results = os.environ.get("LAZYARRAY_SUITE_RESULTS", "0") == "1"
    config.pluginmanager.register(Suite(packages, makers[kind], results), "lazyarray-suite")
