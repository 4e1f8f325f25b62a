"""The decorator `lazy`: functions on device arrays accept and return lazy arrays."""
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
from .parameters import name_of, parameters, rules_of, taken_otherwise

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
    """A GPU function that accepts lazy, host and device arrays, and returns lazy arrays: the result of `lazy`.

    It has the name, signature, docstring and attributes of the original function.
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
    how = rules_of(function, writes, instance) if rules is None else rules(args, kwargs)
    return call(function, args, kwargs, name, how, host)


@overload
def lazy(function: _Function, *, writes: tuple[str, ...] | None = ..., pure: bool = ...,
         host: Callable[..., Any] | None = ...) -> _Function: ...
@overload
def lazy(function: None = ..., *, writes: tuple[str, ...] | None = ..., pure: bool = ...,
         host: Callable[..., Any] | None = ...) -> Callable[[_Function], _Function]: ...


def lazy(function: Any = None, *, writes: tuple[str, ...] | None = None, pure: bool = False,
         host: Callable[..., Any] | None = None) -> Any:
    """Make a function on device arrays accept lazy, host and device arrays, and return lazy arrays.

    Use it as a decorator, with or without arguments, or call it with a function, method or kernel. Arrays in lists,
    tuples, dicts, named tuples and dataclasses are found too, in the arguments and in the result.

    Parameters
    ----------
    function : callable
        A function that accepts and returns device arrays (`cupy.ndarray`). It may also be a method, class method,
        static method, coroutine, generator, kernel, or object with a ``__call__``. Of a class, decorate the methods. A
        MONAI transform, such as `Compose`, is called within ``enabled("monai")``.
    writes : tuple of str, optional
        The parameters that the function modifies, such as ``("out",)``. Without it, and without `pure`, the function
        may modify any array among its arguments.
    pure : bool
        Declare that the function never modifies its arguments.
    host : callable, optional
        A function that does the same with NumPy arrays, with the same parameters. It is called if the device function
        raises an error, which is reported as a host fallback, and for small arrays with ``options(min_bytes=...)``.
        Running out of memory and device faults always raise an error.

    Returns
    -------
    callable
        It has the name, signature and docstring of `function`. Device arrays in the result become lazy arrays, unless
        all arrays among the arguments are device arrays.

    Raises
    ------
    TypeError
        If `writes` names something that is not a parameter, or contradicts `pure`; if `function` is a class, or can't
        be called; if a coroutine or generator is given a host twin.

    Notes
    -----
    Lazy arrays are not copied; the values of lazy scalars (`LazyScalar`) are copied to the host. A host array is
    uploaded at each call. The device copy of a large read-only host array is kept, and used again while the array is
    unchanged, where the kernel tracks writes.

    If the function may modify its arguments, some more work is needed; a `pure` function needs none of it. Host arrays
    that it modified are copied back: those that `writes` names always, others after a comparison on the device, for
    which the host waits. A read-only argument is passed as a copy, and ValueError is raised if the function modifies
    it. If there is a host twin, arguments that may be modified are first copied on the device, so that the twin gets
    them unchanged.

    A result that lies in the memory of an argument is a view of that argument (or a copy, if it is a NumPy array whose
    elements are far apart). An array that the function also keeps, in a cache or as an attribute, may change later, so
    each read of it on the host is a copy.

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
