"""Give NumPy's scalars to compiled code that asks whether a value is a number, and refuses proxies.

Where a library has no place to register another kind of number, the few functions of it through which values pass are
replaced. What is not lazy passes as it is, for the price of a look at its type. The libraries without a module of their
own here are listed below.
"""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from types import GeneratorType, ModuleType
from typing import Any

from lazyarray.array.scalar import LazyScalar
from lazyarray.functions.pytree import replace
from lazyarray.storage import handles

#: Library -> its functions that compare or convert the exact types of numbers, by their module.
FUNCTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "deepdiff": {"deepdiff.helper": ("get_type",)},
    "statistics": {"statistics": ("fmean", "geometric_mean", "harmonic_mean", "mean", "pstdev", "pvariance", "stdev",
                                  "variance")},
}


def register(library: ModuleType) -> None:
    """Have a library see numbers in lazy scalars."""
    if library.__name__ == "sqlite3":
        library.register_adapter(LazyScalar, opened)
    else:
        put_in_place(library.__name__, FUNCTIONS[library.__name__], opening)


def opened(value: Any) -> Any:
    """NumPy's scalar of a lazy one; anything else as it is."""
    return handles.value_of(value, "scalar for compiled code") if type(value) is LazyScalar else value


def opened_within(value: Any) -> Any:
    """The same for what lists, tuples and dicts hold."""
    return map(opened, value) if type(value) is GeneratorType else replace(value, opened)


def opening(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is called with NumPy's scalars in place of lazy ones, in its arguments and in lists of them."""
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*list(map(opened_within, args)), **{k: opened_within(v) for k, v in kwargs.items()})

    return call


def put_in_place(library: str, table: Mapping[str, Iterable[str]],
                 kind: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace functions of a library, in every module of it that has them by then.

    `table`: module -> names in it, dotted for what belongs to a class. `kind` makes a function, or a class, of ours of
    one of theirs.
    """
    for module, paths in table.items():
        for path in paths:
            owner, _, name = path.rpartition(".")
            home = getattr(sys.modules[module], owner) if owner else sys.modules[module]
            function = vars(home)[name]
            updated = () if isinstance(function, type) else functools.WRAPPER_UPDATES
            ours = functools.wraps(function, updated=updated)(kind(function))
            for place in (home, *(m for key, m in list(sys.modules.items()) if key.partition(".")[0] == library)):
                if vars(place).get(name) is function:
                    setattr(place, name, ours)
