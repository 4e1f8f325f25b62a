"""The host side of a call: NumPy itself runs, and what it returns becomes lazy again."""
from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from .. import devices
from ..events.fallback_warning import warn_fallback
from ..events.trace import begin, end
from ..functions import written_parameters
from ..functions.pytree import leaves, replace
from ..storage import coherence, handles, transfer, views
from ..storage.storage import Storage
from ..storage.writeable import writeable


def name_of(func: Callable[..., Any]) -> str:
    """How users write what is called: the dotted name of a function or ufunc, or an operator."""
    module = getattr(func, "__module__", None) or "numpy"
    if module == "_operator":
        module = "operator"
    if isinstance(func, np.ufunc) and getattr(np, func.__name__, None) is not func:
        module = _home_of(func)     # a ufunc of another library does not know where it is
    return f"{module}.{getattr(func, '__name__', func)}"


def _home_of(ufunc: np.ufunc) -> str:
    special = sys.modules.get("scipy.special")
    found = inspect.unwrap(getattr(special, ufunc.__name__, None))
    return "scipy.special" if found is ufunc else "numpy"


def on_host(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], reason: str, aliases: bool = False,
            name: str | None = None, positions: Container[int | None] = (),
            names: tuple[str, ...] | None = None, expected: bool = False) -> Any:
    """Run NumPy itself, on private read-only host arrays, and wrap what it returns.

    Arguments that the function modifies are aliases for the time of the call. With `aliases` all are,
    and the result is returned as it is: it may hold on to them. `expected`: this is no fallback, but
    what the function is called for.
    """
    if names is None:
        positions, names = written_parameters.written_on_host(func, args, kwargs)
    name = name or name_of(func)
    why = f"{name}: {reason}" if expected else f"{name} runs on the host"

    token = None
    # An array without elements lies nowhere.
    fell_back = not expected and any(
        handles.is_lazy(x) and type(x._self_storage) is Storage and handles.meta_of(x).size
        for x in leaves((*args, *kwargs.values())))
    if fell_back:
        token = begin("fallback", 0, None, None, reason, name)
    opened = HostArguments(why)
    try:
        result = func(*[opened.host(a, aliases or i in positions) for i, a in enumerate(args)],
                      **{k: opened.host(kwargs[k], aliases or k in names)
                         for k in sorted(kwargs, key=lambda k: k not in names)})      # what is written comes first
    finally:        # what fails may have written some of it
        opened.hand_on()
    end(token)
    if fell_back:
        warn_fallback(name, reason)     # not before: what NumPy refuses has not run on the host either
    return opened.given_back(result) if aliases else replace(result, opened.back)


def with_aliases(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], why: str) -> Any:
    """Call what knows only ndarrays, with aliases; an alias that it returns comes back as the lazy array it is of."""
    if not devices.is_chosen():     # the program has no lazy arrays yet, and needs no device to be told so
        return func(*args, **kwargs)
    opened = HostArguments(why)
    try:
        result = func(*[opened.host(a, True) for a in args], **{k: opened.host(v, True) for k, v in kwargs.items()})
    finally:
        opened.hand_on()
    return opened.given_back(result)


class HostArguments:
    """The host arrays of one call's arguments, and the way back of its results."""

    def __init__(self, why: str) -> None:
        self.why = why
        self.lent: dict[int, tuple] = {}        # id of a host array -> (what the caller passed, the host array)
        self.read: dict[int, np.ndarray] = {}   # id of a lazy array that is only read -> its host array, always one
        self.written: list = []
        self.targets: list[np.ndarray] = []     # the host arrays that may be written

    def host(self, obj: Any, written: bool) -> Any:
        """`obj` with host arrays in place of lazy and device arrays, aliases if they are `written`."""
        return replace(obj, self._alias if written else self._read)

    def _alias(self, obj: Any) -> Any:
        if type(obj) is np.ndarray:
            self.targets.append(obj)
            return self.lend(obj, obj)
        lazy = obj
        if not handles.is_array(obj):
            device = devices.current()
            if not isinstance(obj, device.array_type):
                return self._read(obj)
            lazy = handles.share(device, obj)       # the device gets what is written there, in `hand_on`
        self.written.append(lazy)
        self.targets.append(handles.alias_of(lazy, self.why))
        return self.lend(obj, self.targets[-1])

    def _read(self, obj: Any) -> Any:
        if handles.is_scalar(obj):
            return handles.value_of(obj, self.why)
        if handles.is_array(obj):
            array = self.read.get(id(obj))
            if array is None:
                array = handles.host_of(obj, self.why)
                if any(np.may_share_memory(array, target) for target in self.targets):
                    # Of what is read-only NumPy makes a copy, and does not see that it overlaps what is written.
                    array = handles.alias_of(obj, self.why)
                self.read[id(obj)] = self.lend(obj, array)
            return array
        if type(obj) is np.ndarray:     # given back as it is, if it is the result
            return self.lend(obj, obj if obj.dtype != object else self._elements(obj))
        device = devices.current()
        return transfer.to_host(device, obj, self.why) if isinstance(obj, device.array_type) else obj

    def _elements(self, objects: np.ndarray) -> np.ndarray:
        """An array of objects with host arrays in place of lazy ones, for which NumPy would ask us again."""
        if not any(map(handles.is_lazy, objects.flat)):
            return objects
        copy = objects.copy()
        for place in np.ndindex(objects.shape):
            copy[place] = self._read(objects[place])
        return copy

    def lend(self, obj: Any, array: np.ndarray) -> np.ndarray:
        self.lent[id(array)] = obj, array
        return array

    def hand_on(self) -> None:
        """Where GPU code holds a pointer, what was written here must be there before it looks."""
        for x in self.written:
            if type(x._self_storage) is Storage:
                coherence.hand_on(x._self_storage, handles.meta_of(x))

    def given_back(self, result: Any) -> Any:
        """What the caller passed, if the function returned what it was given for that; else the result as it is."""
        return self.lent.get(id(result), (result,))[0]

    def back(self, result: Any) -> Any:
        """A result as a lazy array or scalar."""
        if id(result) in self.lent:
            return self.lent[id(result)][0]
        home = home_on_host(result, [x for x, _ in self.lent.values()]) if type(result) is np.ndarray else None
        return self.new(result) if home is None else home

    def new(self, result: Any) -> Any:
        """The same of one that is no lazy array's; a view of an ndarray that was passed is one for the caller, too."""
        if type(result) is np.ndarray and any(
                type(x) is np.ndarray and np.may_share_memory(result, x) for x, _ in self.lent.values()):
            return result
        return lazily(result)


def lazily(result: Any) -> Any:
    """What a host function returned, an array or a scalar that nobody else holds, as a lazy one. A lazy one stays."""
    if type(result) is np.ndarray:
        # One without elements may be a part of memory that somebody holds, which it would keep for its own.
        return handles.host_result(result if result.size or result.base is None else result.copy("K"))
    is_value = isinstance(result, np.generic) and not handles.is_scalar(result)
    return handles.scalar_of_value(result) if is_value else result


def home_on_host(array: np.ndarray, sources: Sequence[Any]) -> Any:
    """The view of an argument's storage that a host result is, or None if it is new memory."""
    if array.size == 0:
        return None
    start = array.__array_interface__["data"][0]
    first, end = byte_bounds(array)
    for x in sources:
        if not handles.is_array(x):
            continue
        storage = x._self_storage
        if type(storage) is Storage:
            mirror = storage.mirror
            if mirror is None:
                continue
            low = mirror.address
            if low <= first and end <= low + mirror.nbytes:
                meta = views.meta(array.shape, array.dtype, array.strides, start - low)
                meta.flags.writeable = writeable(handles.meta_of(x))
                if storage.holds(meta):
                    return handles.view_of(x, meta)
                whole = storage.expose_host(coherence.whole_of(storage), f"viewed as {array.dtype}")
                alias = np.ndarray(array.shape, array.dtype, whole, start - low, array.strides)
                alias.flags.writeable = meta.flags.writeable
                return handles.new_array(handles.HostStorage(storage.device), alias, None, x)
        elif np.may_share_memory(array, x._self_meta):
            return handles.view_of(x, array)
    return None
