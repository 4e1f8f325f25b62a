"""The short way of a NumPy function: lazy arrays, numbers and words, and a result in new memory.

Most calls are so plain: nothing is written, nothing is uploaded, no parameter that steers is an array. For these a few
facts about the function, which `_facts` keeps, take the place of the walks through arguments and containers that
`function` needs otherwise, and which cost two to four times as much as CuPy's own call of a small array. What is not
plain is left to `function`.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import devices
from ..errors import NotOnDevice
from ..functions import direct, index_bounds, memory_order, tables, written_parameters
from ..functions.kinds import PLAIN
from ..functions.pytree import replace
from ..storage import handles
from ..storage.handles import new_array, new_scalar
from ..storage.storage import Storage
from .host_fallback import lazily, on_host
from .small_arrays import device_operand

if TYPE_CHECKING:
    from ..devices import Device

__all__ = ["tried", "wrapped"]


class _Facts(NamedTuple):
    """What decides about a plain call of a function."""

    adapter: Callable[..., Any] | None
    direct: direct.Direct | None
    most: int                       # so many arguments by position do not reach `out`
    steering: frozenset[int | str]  # where a lazy array says how, not what
    rule: str | None
    scalar: bool


@functools.cache
def _facts(func: Callable[..., Any]) -> _Facts | None:
    """None for functions that are not to be tried."""
    adapter, own = tables.ADAPTED.get(func), direct.DIRECT.get(func)
    written = tables.WRITES.get(func, ())
    if adapter is None and own is None or set(written) - {"out"}:
        return None
    place = written_parameters.position(func, "out") if written else None
    try:
        inspect.signature(func)
        most = 99 if place is None else place
    except ValueError:
        most = 1 if written else 99
    return _Facts(adapter, own, most, frozenset(written_parameters.steering_slots(func)), memory_order.RULES.get(func),
                  func not in tables.ARRAY_0D)


class _NotPlain(Exception):
    """An argument is not plain."""


def tried(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a plain call on the current device; NotImplemented if it is none."""
    facts = _facts(func)
    if facts is None or "out" in kwargs or len(args) > facts.most:
        return NotImplemented
    device = devices.current()
    if device.count > 1 or device.usable() is not None:
        return NotImplemented
    sources: list[Any] = []
    arrays: list[Any] = []
    steering = facts.steering
    try:
        operands = [a if type(a) in PLAIN else _operand(a, i in steering, sources, arrays) for i, a in enumerate(args)]
        named = {k: a if type(a) in PLAIN else _operand(a, k in steering, sources, arrays) for k, a in kwargs.items()
                 } if kwargs else kwargs
    except (_NotPlain, NotOnDevice):
        return NotImplemented
    if facts.direct is not None and facts.direct.applies(arrays):
        try:
            result = facts.direct.run(device.xp, *operands, **named)
        except Exception as error:  # noqa: BLE001  what it refuses NumPy's own code does
            device.refusal(error)
        else:
            return _given(device, result, sources, arrays, facts.scalar)
    if facts.adapter is None:
        return NotImplemented
    return _adapted(device, facts, func, args, kwargs, sources, arrays, operands, named)


def _operand(obj: Any, steers: bool, sources: list[Any], arrays: list[Any]) -> Any:
    """What an adapter gets of an argument that is no plain number or word.

    `arrays` gets the device arrays in it, `sources` the lazy arrays in whose memory they lie.
    """
    kind = type(obj)
    if (kind is handles.array_type or kind is handles.scalar_type) and not steers:
        array, own = device_operand(obj)
        if not array.size or isinstance(array, np.generic):
            raise _NotPlain
        arrays.append(array)
        if own:
            sources.append(obj)
        return array
    if kind is tuple or kind is list:
        if steers:
            kinds = [n for item in obj for n in (map(type, item) if type(item) in _LISTS else (type(item),))]
            if PLAIN.issuperset(kinds):
                return obj
        elif handles.array_type in map(type, obj) or handles.scalar_type in map(type, obj):
            return kind([item if type(item) in PLAIN else _operand(item, type(item) in _LISTS, sources, arrays)
                         for item in obj])
    raise _NotPlain


_LISTS = frozenset((tuple, list))


def _adapted(device: Device, facts: _Facts, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
             sources: list[Any], arrays: list[Any], operands: list[Any], named: dict[str, Any]) -> Any:
    """What the adapter gives, or NumPy on the host where it refuses."""
    try:
        result = facts.adapter(device.xp, *operands, **named)      # type: ignore[misc]
        if facts.rule is not None:
            result = memory_order.after(device, facts.rule, result, tuple(operands), named)
        result = _given(device, result, sources, arrays, facts.scalar)
        if func in index_bounds.GREATEST:
            index_bounds.note(func, args, kwargs, result)
        return result
    except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
        reason = str(device.refusal(error))
    return on_host(func, args, kwargs, reason)


def _given(device: Device, result: Any, sources: Sequence[Any], arrays: Sequence[Any], scalar: bool) -> Any:
    """The lazy array of a result: of new memory at once, and else where it belongs."""
    if type(result) is not device.array_type:
        if isinstance(result, tuple) and len(set(map(id, result))) == len(result) and (
                set(map(type, result)) == {device.array_type}):
            items = [_given(device, r, sources, arrays, scalar) for r in result]
            return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
        return wrapped(device, result, sources, scalar)
    if not arrays or device.root(result) is not result or id(result) in map(id, arrays):
        return handles.wrap(device, result, sources, scalar)
    storage = Storage(device, result)
    return new_array(storage, None, result) if result.ndim or not scalar else new_scalar(storage, None, result)


def wrapped(device: Device, result: Any, sources: Sequence[Any], scalar: bool) -> Any:
    """`result` with lazy arrays in place of device arrays, also inside lists, tuples and dicts."""
    made: dict[int, Any] = {}       # one array that is there twice stays one

    def leaf(obj: Any) -> Any:
        if not isinstance(obj, device.array_type):
            return lazily(obj)
        if id(obj) not in made:
            made[id(obj)] = handles.wrap(device, obj, sources, scalar)
        return made[id(obj)]

    return replace(result, leaf)
