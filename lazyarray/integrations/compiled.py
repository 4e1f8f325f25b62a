"""Compiled code that insists on NumPy's own arrays: OpenCV, ``cnp.ndarray`` arguments of Cython, `torch.from_numpy`.

Such code looks for the ndarray struct, which no proxy has, and asks the proxy nothing. What is called through here gets
host aliases instead: nothing is copied that is current on the host, and what is written into them is written.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from lazyarray import host

_Target = TypeVar("_Target", bound=Callable[..., Any] | ModuleType)


def on_ndarrays(target: _Target) -> _Target:
    """A function, or the functions of a module, called with ndarrays and NumPy scalars in place of lazy ones.

    Parameters
    ----------
    target : callable or module
        Of a module, functions and submodules are wrapped when they are looked up; all else is as it is.

    Returns
    -------
    callable or module
        Lazy arguments, also inside lists, tuples and dicts, are replaced by aliases: live, writable where they are.
        An alias that is returned comes back as the lazy array; other results are what the function returns.

    Examples
    --------
    >>> import lazyarray, operator
    >>> from lazyarray.integrations.compiled import on_ndarrays
    >>> kind = on_ndarrays(lambda *arrays: [type(a).__name__ for a in arrays])
    >>> kind(lazyarray.asarray([1.0, 2.0]), 3)
    ['ndarray', 'int']
    """
    return _Functions(target) if isinstance(target, ModuleType) else _on_ndarrays(target)


def _on_ndarrays(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return host.with_aliases(function, args, kwargs, f"{host.name_of(function)} takes only ndarrays")

    return call


class _Functions(ModuleType):
    """A module whose functions are called with ndarrays."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType) or callable(found) and not isinstance(found, type):
            found = on_ndarrays(found)
        setattr(self, name, found)      # looked up once
        return found

    def __dir__(self) -> list[str]:
        return dir(self._module)
