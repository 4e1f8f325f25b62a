"""The short way of a NumPy function: lazy arrays, numbers and words, and a result in new memory.

Most calls are so plain: nothing is written, nothing is uploaded, no parameter that steers is an array. For these a few
facts about the function take the place of the walks through arguments and containers that `function` needs otherwise,
and which cost two to four times as much as CuPy's own call of a small array. `_native/recording_functions.h` goes by
them; what is not plain is left to `function`.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from ..functions import direct, index_bounds, memory_order, tables, written_parameters
from ..functions.adapters import linear
from ..functions.kinds import PLAIN
from ..functions.pytree import replace
from ..graph.record import functions, reductions
from ..storage import handles
from .host_fallback import lazily, on_host
from .small_arrays import device_operand, fetched

if TYPE_CHECKING:
    from ..devices import Device

__all__ = ["for_native", "tried", "wrapped"]


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


#: Function -> what the part in C goes by: see `_native/recording_functions.h`; None for those that it leaves to others.
_entries: dict[Callable[..., Any], tuple[Any, ...] | None] = {}


def _entry_of(func: Callable[..., Any]) -> None:
    facts = _facts(func)
    if facts is None:
        _entries[func] = None
        return
    in_python = _computed if facts.direct is not None or func in linear.FACTORED or func in linear.WAITING else None
    at_first = not any(func in table for table in (reductions.TAKEN, functions.RECORDED, tables.VIEWS, tables.LAZY))
    noting: Any = (None, index_bounds.note) if func in index_bounds.NOTED else None
    if func in index_bounds.SOURCES:
        noting = index_bounds.seen, index_bounds.note
    elif func is np.linalg.cholesky:
        noting = None, linear.note_triangle
    _entries[func] = (facts.adapter, facts.rule, facts.most, facts.steering or None, facts.scalar, at_first, in_python,
                      noting)


def _computed(device: Device, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
              sources: list[Any], arrays: list[Any], operands: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of a plain call, by the device library's function or the adapter; NotImplemented without one.

    `arrays`: the device arrays among the arguments, `sources`: the lazy arrays in whose memory they lie.
    """
    facts: _Facts = _facts(func)    # type: ignore[assignment]
    if func in linear.WAITING and (result := fetched(device, func, operands, named, arrays)) is not NotImplemented:
        return result
    if facts.direct is not None and facts.direct.applies(arrays):
        try:
            result = facts.direct.run(device.xp, *operands, **named)
        except Exception as error:  # noqa: BLE001  what it refuses NumPy's own code does
            device.refusal(error)
        else:
            for given, operand in zip(args, operands):
                if operand is result and handles.is_array(given):   # itself, of which the device may have a copy
                    return given
            return _given(device, result, sources, arrays, facts.scalar)
    if facts.adapter is None:
        return NotImplemented
    if func in linear.FACTORED and args:
        named = {**named, "where": linear.kept(args[0])}
    try:
        result = facts.adapter(device.xp, *operands, **named)
        if facts.rule is not None:
            result = memory_order.after(device, facts.rule, result, operands, named)
        return _given(device, result, sources, arrays, facts.scalar)
    except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
        reason = str(device.refusal(error))
    return on_host(func, args, kwargs, reason)


def _refused(device: Device, error: Exception, func: Callable[..., Any], args: tuple[Any, ...],
             kwargs: dict[str, Any]) -> Any:
    """NumPy's own result of a call that an adapter has refused."""
    return on_host(func, args, kwargs, str(device.refusal(error)))


def _left(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], first: bool = False) -> Any:
    return NotImplemented


#: The result of a plain call on the current device; NotImplemented if it is none.
tried: Callable[..., Any] = _left if _native.recording is None else _native.recording.tried


def for_native() -> dict[str, Any]:
    """What the part in C calls and looks at."""
    return {"plain": PLAIN, "entries": _entries, "entry_of": _entry_of, "given": _given, "refused": _refused,
            "after": memory_order.after, "device_operand": device_operand}


_new_result = None if _native.recording is None else _native.recording.new_result


def _given(device: Device, result: Any, sources: Sequence[Any], arrays: list[Any], scalar: bool) -> Any:
    """The lazy array of a result: of new memory at once, and else where it belongs."""
    if type(result) is not device.array_type:
        if isinstance(result, tuple) and len(set(map(id, result))) == len(result) and (
                set(map(type, result)) == {device.array_type}):
            items = [_given(device, r, sources, arrays, scalar) for r in result]
            return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
        return wrapped(device, result, sources, scalar)
    if arrays and _new_result is not None and (lazy := _new_result(device, result, arrays, scalar)) is not None:
        return lazy
    return handles.wrap(device, result, sources, scalar)


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
