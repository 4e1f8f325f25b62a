"""GPU functions that take and return lazy arrays: `lazy` makes one of a function."""
from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar, overload

import wrapt

from .arguments import Rules
from .call import Writes, call, run
from .names import name_of, parameters, rules_of, taken_otherwise

__all__ = ["LazyFunction", "lazy", "run"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Method(wrapt.BoundFunctionWrapper):
    """A `LazyFunction` that was reached through an instance or a class."""

    def __reduce_ex__(self, protocol: int) -> Any:
        """By its name, in the instance that it is bound to if there is one, as any method is pickled."""
        bound = getattr(self.__wrapped__, "__self__", None)
        if bound is not None:
            return getattr, (bound, self.__name__)
        return _at, (self.__module__, self.__qualname__)

    def __copy__(self) -> _Method:
        return self

    def __deepcopy__(self, memo: Any) -> _Method:
        return self


class LazyFunction(wrapt.FunctionWrapper):
    """A GPU function that takes lazy, host and device arrays, and returns lazy ones. `lazy` makes one.

    Everything else about it is the function's own: name, signature, docstring, attributes.
    """

    __bound_function_wrapper__ = _Method

    def __init__(self, function: Callable[..., Any], writes: Writes, host: Callable[..., Any] | None,
                 rules: Callable[..., Rules] | None = None, name: str | None = None,
                 home: tuple[Any, str] | None = None) -> None:
        super().__init__(function, functools.partial(_called, name or name_of(function), writes, host, rules))
        self._self_parts = writes, host, rules, name
        self._self_home = home

    def __getitem__(self, configuration: Any) -> Any:
        """A kernel with its launch configuration, ``kernel[blocks, threads]``."""
        configured = self.__wrapped__[configuration]
        return LazyFunction(configured, *self._self_parts) if callable(configured) else configured

    def __reduce_ex__(self, protocol: int) -> Any:
        """By its name, as any function is pickled; one without a name of its own by what it was made of."""
        if self._self_home is not None:
            return getattr, self._self_home
        function = self.__wrapped__
        module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
        if module and name and _at(module, name) is self:
            return _at, (module, name)
        return LazyFunction, (function, *self._self_parts)

    def __copy__(self) -> LazyFunction:
        return self

    def __deepcopy__(self, memo: Any) -> LazyFunction:
        return self


def _at(module: str, name: str) -> Any:
    """What has a dotted name in a module; None if nothing has."""
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _called(name: str, writes: Writes, host: Callable[..., Any] | None, rules: Callable[..., Rules] | None,
            function: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    how = rules_of(function, writes) if rules is None else rules(args, kwargs)
    return call(function, args, kwargs, name, how, host)


@overload
def lazy(function: _Function, *, writes: tuple[str, ...] | None = ..., pure: bool = ...,
         host: Callable[..., Any] | None = ...) -> _Function: ...
@overload
def lazy(function: None = ..., *, writes: tuple[str, ...] | None = ..., pure: bool = ...,
         host: Callable[..., Any] | None = ...) -> Callable[[_Function], _Function]: ...


def lazy(function: Any = None, *, writes: tuple[str, ...] | None = None, pure: bool = False,
         host: Callable[..., Any] | None = None) -> Any:
    """Let a function on device arrays take lazy, host and device arrays, and return lazy ones.

    To be used as a decorator, with or without arguments, or called with a function, method or kernel. Arrays are found
    in lists, tuples, dicts, named tuples and dataclasses too, among the arguments and in the result.

    Parameters
    ----------
    function : callable
        Takes and returns device arrays (`cupy.ndarray`). Methods, class and static methods, coroutines, generators,
        kernels and objects with a ``__call__`` are callables like others; of a class the methods are decorated. A
        transform of MONAI's, `Compose` among them, is called with ``enabled("monai")``.
    writes : tuple of str, optional
        The parameters that it modifies, such as ``("out",)``. Without it, and without `pure`, it is taken to modify any
        array that it is given.
    pure : bool
        It modifies none.
    host : callable, optional
        The same function on NumPy arrays, with the same parameters. It takes the calls that raise on the device, which
        is told as any host fallback is, and, with ``options(min_bytes=...)``, those with little data. Lack of memory
        and device faults are raised all the same.

    Returns
    -------
    callable
        With the name, signature and docstring of `function`. Device arrays in its result become lazy ones, unless
        device arrays are all the arrays that it was given: then they stay.

    Raises
    ------
    TypeError
        `writes` names no parameter, or contradicts `pure`; `function` is a class, or can't be called; there is a host
        twin of a coroutine or generator.

    Notes
    -----
    Lazy arrays are not copied, numbers (`LazyScalar`) are fetched. A host array is uploaded at each call; the copy of a
    read-only one is kept and used again for as long as nobody can have written to the array. What the function wrote to
    a host array is copied back: always if `writes` names it; if it may modify any, after a comparison there, for
    which the host waits. An argument that is read-only is given as a copy to a function that may modify it, and
    ValueError is raised if it does. Where there is a host twin, what the function may modify is copied on the device
    first, so that the twin finds it unharmed. None of this is needed for a function that is `pure`.

    A result that lies in an argument's memory is a view of that argument (a copy, of a NumPy array whose elements lie
    far apart). One that the function keeps, in a cache or on an object, shares its memory: such an array is not trusted
    to stay the same, and is fetched anew each time that it is looked at on the host.

    Examples
    --------
    >>> import numpy as np, lazyarray
    >>> @lazyarray.lazy(pure=True)
    ... def norm(x):
    ...     '''The root of the sum of squares.'''
    ...     xp = lazyarray.device().xp          # cupy
    ...     return xp.sqrt((x * x).sum(axis=-1))
    >>> y = norm(np.array([[3.0, 4.0], [6.0, 8.0]]))
    >>> lazyarray.is_lazy(y), y
    (True, array([ 5., 10.]))
    """
    if function is None:
        return functools.partial(lazy, writes=writes, pure=pure, host=host)
    if isinstance(writes, str):
        writes = (writes,)
    if pure and writes:
        raise TypeError(f"a function that modifies {writes[0]!r} is not pure")
    plain = getattr(function, "__func__", function)     # of a static or class method
    if inspect.isclass(plain):
        raise TypeError(f"{plain.__qualname__} is a class: decorate its methods")
    # Some kernels can be called only with a launch configuration: kernel[blocks, threads](...).
    if not callable(plain) and (not hasattr(plain, "__getitem__") or hasattr(plain, "__len__")):
        raise TypeError(f"{type(plain).__qualname__} can't be called: lazy takes a function")
    otherwise = taken_otherwise(plain)
    if otherwise is not None:
        if writes or host is not None:
            raise TypeError(f"{name_of(plain)} modifies no arguments, and has no host twin but itself")
        return importlib.import_module(otherwise).lazy(plain)
    if host is not None and (inspect.iscoroutinefunction(plain) or inspect.isgeneratorfunction(plain)
                             or inspect.isasyncgenfunction(plain)):
        raise TypeError(f"{name_of(plain)} runs in steps: when one fails, it is too late for a host twin")
    known = parameters(plain) if writes else None
    if known and not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        unknown = [name for name in writes or () if name not in known]
        if unknown:
            raise TypeError(f"{name_of(plain)} has no parameter {unknown[0]!r}; it has {', '.join(known)}")
    return LazyFunction(function, () if pure else writes and tuple(writes), host)
