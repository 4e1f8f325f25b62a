"""``pytest --lazyarray``: run a test suite with lazy arrays in place of the ndarrays that it passes to its package.

The tests are not changed. Each function of the package in the globals of a test module is replaced, under its own name
(``from numpy.linalg import inv``) or in a module (``np.linalg.inv``), and each that a test is parametrised with. The
replacement passes a lazy array for every ndarray among the arguments. A test that fails then runs again with plain
copies in place of the lazy arrays. If it passes, it has found a difference between lazy arrays and ndarrays. If it
fails again, it can't be run in this way (because it checks the identity of the function, for example, or whether memory
is shared), and is skipped::

    python -m pytest --lazyarray=numpy.linalg --pyargs numpy.linalg.tests.test_linalg

``--lazyarray=PACKAGE``
    The package whose functions get lazy arrays, or several packages, separated by commas. Subpackages are included:
    ``numpy`` includes ``numpy.linalg``. Its tests, its helpers for tests (``numpy.testing``) and private compiled
    functions (``scipy.signal._upfirdn_apply._pad_test``) are not. ``--lazyarray`` alone means the packages of the
    arguments after ``--pyargs``, or those in the root folder and its folder ``src``.
``--lazyarray-results``
    Ndarrays that these functions return, including those of creation functions, become lazy too, so that methods,
    operators and indexing that a test applies to them are tested as well. Otherwise results are unchanged.
``--lazyarray-methods=fit,predict``
    Methods of the package's classes that get lazy arrays too, ``__init__`` and ``__call__`` included if they are named.
    Methods that the package calls itself, within another call, are left alone.
``--lazyarray-report=FILE``
    A JSON file to write: ``tests`` (the name of each test, as pytest accepts it after ``--pyargs``, and its outcome:
    passed, skipped, failed, or unsuitable if it fails with copies too), ``functions`` (the rows of the table), and the
    numbers of ``calls`` and ``arrays`` that were replaced.
``--lazyarray-untraced``
    Do not count copies and fallbacks. While they are counted, some copies are made in another way.

Arguments in lists and tuples are replaced too, two levels deep; a list is then a new list. After the call, values that
the function wrote to a lazy argument are copied to the test's ndarray. If the function returns a lazy argument, the
test gets its own ndarray. Ndarrays of any dtype and shape are replaced, but not instances of subclasses; a read-only
ndarray is replaced by a read-only lazy array.

Two differences are hidden from the tests, because many of them would fail before they reach what they test: in a test
module ``type(x)`` of a lazy array is ``numpy.ndarray``, and `HostFallbackWarning` is off. Small arrays are on the
device (``options(small_on_host=False)``), since the arrays of tests stand for large ones.
"""
from __future__ import annotations

import contextlib
import functools
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import wrapt

import lazyarray
from lazyarray.errors.inspection import once_made
from lazyarray.testing.suite_table import Table

#: How deep lists and tuples are looked into: ``np.block`` takes lists of lists.
DEPTH = 2

#: Parts of a package that test the others: they get what the functions returned as it is.
TESTERS = {"tests", "testing", "test", "conftest"}


class Suite:
    """What one run replaces, and by what.

    Parameters
    ----------
    packages : iterable of str
        Dotted names of the packages under test.
    results : bool
        Whether results are replaced as well.
    methods : iterable of str
        Names of the methods that get lazy arrays.
    traced : bool
        Whether copies and fallbacks are counted.
    """

    def __init__(self, packages: Iterable[str], results: bool, methods: Iterable[str] = (),
                 traced: bool = True) -> None:
        self.packages = tuple(packages)
        self.make: Callable[[Any], Any] = lazyarray.asarray
        self.results = results
        self.methods = frozenset(methods)
        self.table = Table(traced)
        # By identity, so that a function has one stand-in wherever it is found; the object is kept, or its id were not
        self.known: dict[int, tuple[Any, StandIn]] = {}
        self.classes: list[tuple[type, str, Any]] = []
        self.inside = threading.local()

    @contextlib.contextmanager
    def with_copies(self) -> Iterator[None]:
        """Plain copies in place of lazy arrays, which are not counted."""
        make, table = self.make, self.table
        self.make, self.table = np.array, Table(False)
        try:
            yield
        finally:
            self.make, self.table = make, table

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
        if isinstance(value, type):
            self.open(value)
            return value
        if type(value) is StandIn or _is_inside(value):
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

    def open(self, kind: type) -> None:
        """Let the methods of a class of the package that were named take lazy arrays."""
        for base in kind.__mro__ if self.methods and self.belongs(kind.__module__) else ():
            for name in self.methods & vars(base).keys() if self.belongs(base.__module__) else ():
                method = vars(base)[name]
                if isinstance(method, types.FunctionType) and not hasattr(method, "__lazyarray_suite__"):
                    self.classes.append((base, name, method))
                    setattr(base, name, self._opened(method, f"{base.__module__}.{method.__qualname__}"))

    def _opened(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(this: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self.inside, "calls", 0):
                return method(this, *args, **kwargs)
            return self.call(functools.partial(method, this), args, kwargs, name)

        call.__lazyarray_suite__ = True  # type: ignore[attr-defined]
        return call

    def close(self) -> None:
        """Give classes their own methods back."""
        while self.classes:
            setattr(*self.classes.pop())

    def replace(self, value: Any, made: dict[int, tuple[Any, Any]], depth: int = DEPTH) -> Any:
        """An argument with its ndarrays replaced; `made` collects by id what was replaced, and by what."""
        if type(value) is np.ndarray:
            if id(value) not in made:
                self.table.arrays += 1
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
            self.table.arrays += 1
            return self.make(result)
        if isinstance(result, tuple) and hasattr(result, "_fields") or type(result) in (list, tuple):
            items = [self.finish(item, made) for item in result]
            if any(new is not old for new, old in zip(items, result)):
                return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
        return result

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
        """Call a function under test."""
        made: dict[int, tuple[Any, Any]] = {}
        args = tuple([self.replace(value, made) for value in args])
        kwargs = {key: self.replace(value, made) for key, value in kwargs.items()}
        self.inside.calls = getattr(self.inside, "calls", 0) + 1
        try:
            with self.table.row(name, bool(made)) as row:
                result = function(*args, **kwargs)
                row.note(result, {id(array) for _, array in made.values()})
        finally:
            self.inside.calls -= 1
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

    def enter(self, modules: dict[str, Any], parameters: Iterable[dict[str, Any]]) -> None:
        """Put the stand-ins into test modules and into the parameters of tests."""
        for values in parameters:
            values.update({name: self.stand_in(value, "") for name, value in values.items()})
        for name, module in modules.items():
            for key, value in list(vars(module).items()):
                if not key.startswith(("__", "@")):
                    setattr(module, key, self.stand_in(value, name))
            module.type = vars(module).get("type", Type)


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
        name = getattr(self.__wrapped__, "__qualname__", None) or getattr(self.__wrapped__, "__name__", "?")
        return self._self_suite.call(self.__wrapped__, args, kwargs, f"{self._self_home}.{name}")

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
