"""What integers can be that are recorded as work on integers whose bounds are known.

Indexes are made so: ``x[i - 1]`` and ``table[n - i, i]`` of an `i` that `numpy.arange` has made, ``x[(i + 1) % n]``,
``tree[2 * node + (value > cut)]``, ``x[np.clip(i, 0, n - 1)]``, ``x[np.where((i >= 0) & (i < n), i, 0)]``. Without it,
the host waits for the device to see whether they are in range (`functions.index_bounds`).
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..functions import index_bounds
from ..storage import facts, handles
from ..storage.storage import Storage
from .node import Leaf, Node

__all__ = ["keep", "look_through", "note", "note_computed", "of_node"]


class _Range(NamedTuple):
    """The least and the greatest integer, whether no two elements are equal, and whether it is one number."""

    low: int
    high: int
    distinct: bool = False
    is_number: bool = False


_Seen = dict[Any, "_Range | None"]


def note(x: Any, again: bool = False) -> None:
    """Keep the bounds of a lazy array or scalar that is recorded work, if they follow from others; of another one
    nothing. `again`: more may be known of these.
    """
    if type(x) is handles.array_type or type(x) is handles.scalar_type:
        storage = x._self_storage
        node = storage.pending if type(storage) is Storage else None
        if type(node) is Node and node.dtype.kind in "iu" and x.dtype == node.dtype:
            _noted(node, storage, again)


def _noted(node: Node, storage: Storage, again: bool = False, seen: _Seen | None = None) -> _Range | None:
    """What is found of a node, kept with it and its storage: once it is computed, it knows its operands no more."""
    known = facts.of_storage(storage)   # before it is looked at what it is made of: a write puts another in its place
    if known is None or "bounds" in known and not again or (found := _of_node(node, seen)) is None:
        return None
    if storage.pending is not node:     # computed meanwhile, by who writes to what it is made of
        return None
    node.bounds = found
    known["bounds"] = found.low, found.high, node.dtype
    if found.distinct:
        known["distinct"] = True
    return found


def note_computed(node: Node, storage: Storage) -> None:
    """The same of a node that is about to be computed, if somebody holds it, and the bounds of what it is made of were
    asked for of indexes: what is known then is looked at once more where that is too wide.
    """
    if storage.pending is node and (known := facts.of_storage(storage)) is not None and "bounds" not in known and (
            _noted(node, storage) is not None):
        known["derived"] = True


def keep(x: Any) -> None:
    """Keep the bounds of an array that waits with the work: another storage is about to take its place."""
    storage = x._self_storage
    known, node = facts.of_storage(storage), storage.pending if type(storage) is Storage else None
    if known is not None and "bounds" in known and type(node) is Node and node.bounds is None and (
            known["bounds"][2] == node.dtype):
        node.bounds = _Range(*known["bounds"][:2], "distinct" in known)


def of_node(node: Node) -> facts.Bounds | None:
    """The bounds of recorded work that waits, if they follow from others."""
    found = node.bounds or _of_node(node)
    return None if found is None else found[:2]


def look_through(x: Any, at_once: bool = True) -> facts.Bounds | None:
    """The bounds of an array that waits, of those of the arrays that it is recorded as work on: they are looked at when
    they are asked for the second time, as ``v[i + 1]`` in a loop does, or `at_once` if they are not much larger.
    """
    arrays = _unknown(x)
    for _, known in arrays:
        known["takings"] = known.get("takings", 0) + 1
    if not arrays or any(known["takings"] < 2 and not (at_once and storage.nbytes <= _NOT_MUCH * x.nbytes)
                         for storage, known in arrays):
        return None
    for storage, known in arrays:
        if not index_bounds.look_at(storage, known):
            return None
    note(x, again=True)
    return facts.bounds_of(x)


def _unknown(x: Any) -> list[tuple[Storage, dict[Any, Any]]]:
    """The storages of the integers that a lazy array is recorded as work on, if their bounds are not known, and what is
    known of them; none if that of one can't be.
    """
    storage = x._self_storage
    todo, found = [storage.pending if type(storage) is Storage else None], {}
    for one in todo:
        if type(one) is Node and one.dtype.kind in "iu" and len(todo) < _MOST_LOOKED_AT:     # of floats nothing follows
            todo += one.operands
        elif type(one) is Leaf and one.array.dtype.kind in "iu":
            home = one.storage
            known, form = facts.of_storage(home), home.root if home.root_view is None else home.root_view
            if known is None or form is None or form.dtype != one.array.dtype:      # bytes alone, or of other elements
                return []
            if "bounds" not in known or "derived" in known and "looked" not in known:
                found[id(known)] = home, known
    return list(found.values())


#: Nodes and operands of recorded work that are gone through.
_MOST_LOOKED_AT = 32
#: How much larger an array may be than what it is an operand of, to be looked at in the place of that.
_NOT_MUCH = 4


def _of(operand: Any, size: int, seen: _Seen | None = None) -> _Range | None:
    """Of an operand of a step; None if it is not of integers or truth values. `seen`: what was found of other nodes."""
    if isinstance(operand, (np.integer, np.bool_)):
        return _Range(int(operand), int(operand), False, True)
    if type(operand) is Leaf:
        array, storage = operand.array, operand.storage
        found = None
        if _is_of_elements(storage, array):
            once = array.ndim == 1 and array.size == size and (size == 1 or array.strides[0] != 0)
            found = _known(storage, array.dtype, once)
        return _any_of(array.dtype) if found is None else found
    if type(operand) is not Node:
        return None
    found: _Range | None = operand.bounds
    if found is None and seen is not None and operand in seen:      # hashes read what they have made twice
        found = seen[operand]
    storage = operand.storage() if operand.storage is not None and found is None else None
    if storage is not None:
        found = _known(storage, operand.dtype, operand.size == size)
        if found is None and operand.dtype.kind in "iu":
            found = _noted(operand, storage, seen=seen)
    if found is None:
        found = _of_node(operand, seen) or _any_of(operand.dtype)
    if seen is not None:
        seen[operand] = found
    return found._replace(distinct=False) if found is not None and operand.size != size else found


def _any_of(dtype: np.dtype) -> _Range | None:
    """What any integer of a dtype can be."""
    if dtype.kind == "b":
        return _Range(0, 1)
    if dtype.kind not in "iu":
        return None
    return _all_of(dtype)


@functools.lru_cache(64)
def _all_of(dtype: np.dtype) -> _Range:
    limits = np.iinfo(dtype)
    return _Range(int(limits.min), int(limits.max))


def _is_of_elements(storage: Storage, array: Any) -> bool:
    """Whether the elements of a view are elements of its storage, if that has this dtype, not parts of two."""
    if array is storage.root:
        return True
    first, size = storage.device.first, array.dtype.itemsize
    origin = 0 if storage.root is None else first(storage.root)     # our own memory begins at multiples of all sizes
    return (first(array) - origin) % size == 0 and not any(step % size for step in array.strides)


def _known(storage: Storage, dtype: np.dtype, once: bool) -> _Range | None:
    known = facts.of_storage(storage)
    if known is None:       # the host, or who holds its memory, may have written since it was recorded
        return None
    whole = known.get("bounds")
    if whole is None and storage.root_view is not None and storage.root_view.dtype == dtype:
        seen = facts.bounds_on_host(storage, storage.root_view)
        if seen is not None:
            known["bounds"] = *seen, dtype
        return None if seen is None else _Range(*seen)
    if whole is None or whole[2] != dtype or dtype.kind not in "iu":
        return None
    known["asked"] = True       # so that it is kept for what is computed of it: see `note_computed`
    return _Range(whole[0], whole[1], once and "distinct" in known)


def _of_node(node: Node, seen: _Seen | None = None) -> _Range | None:
    """None if it could be any integer of its dtype."""
    name, dtype, given = node.step.name.removeprefix("own_"), node.dtype, node.operands
    if name == "index" and not given:       # the places of the elements themselves
        return _Range(0, node.size - 1, True)
    if name in ("search_left", "search_right") and given:
        return _Range(0, int(given[-1]))
    step = _STEPS.get(name)
    if step is None or not given or dtype.kind not in "iu":
        return None         # there are no operands once it is computed
    seen = {} if seen is None else seen
    operands = [_of(operand, node.size, seen) for operand in given]
    if None in operands:
        return None
    if name == "where":
        condition, *values = given
        operands[1:] = [_under(condition, truth, value, found)      # type: ignore[arg-type]
                        for value, found, truth in zip(values, operands[1:], (True, False))]
    found = step(*operands)
    limits = _all_of(dtype)
    if found is None or found.low < limits.low or found.high > limits.high:     # it may have wrapped around
        return None
    if not node.operands:       # another thread had it computed, to write what it reads: what was found may be of later
        return None
    return None if found[:2] == limits[:2] else found


# -- what a condition says -----------------------------------------------------------------------

#: Steps before a value that are looked at for what a condition says of their operands.
_STEPS_BACK = 2

#: Comparison -> how it narrows the range of its first operand, given that of the second one, where it is true.
_TRUE: dict[str, Callable[[_Range, _Range], tuple[int, int]]] = {
    "less": lambda a, b: (a.low, min(a.high, b.high - 1)), "less_equal": lambda a, b: (a.low, min(a.high, b.high)),
    "greater": lambda a, b: (max(a.low, b.low + 1), a.high), "greater_equal": lambda a, b: (max(a.low, b.low), a.high),
    "equal": lambda a, b: (max(a.low, b.low), min(a.high, b.high)),
    "not_equal": lambda a, b: (a.low + (a.low == b.low == b.high), a.high - (a.high == b.high == b.low)),
}
#: What each says where it is false, and with its operands exchanged.
_FALSE = {"less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less",
          "equal": "not_equal", "not_equal": "equal"}
_EXCHANGED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal",
              "equal": "equal", "not_equal": "not_equal"}


def _under(condition: Any, truth: bool, value: Any, found: _Range, steps: int = _STEPS_BACK) -> _Range:
    """The range of the elements of an operand where a condition has this truth; `found`: the one of all of them.

    Who writes what a condition reads has it computed first, and then it has no operands: see `_of_node`.
    """
    operands = condition.operands if type(condition) is Node and condition.dtype.kind == "b" else ()
    if not operands or type(value) is not Node and type(value) is not Leaf:      # of a number it says nothing
        return found
    narrowed = _narrowed(condition, operands, truth, value, found)
    if steps and type(value) is Node and (value.shape, value.fortran) == (condition.shape, condition.fortran):
        narrowed = _of_narrowed(condition, truth, value, narrowed, steps - 1)
    return narrowed if condition.operands else found


def _of_narrowed(condition: Node, truth: bool, value: Node, found: _Range, steps: int) -> _Range:
    """The same of a step on operands that the condition says something of, as ``i + 1`` where ``i < n - 1``."""
    name, given = value.step.name.removeprefix("own_"), value.operands
    if name not in _PLACE_BY_PLACE or not given or value.dtype.kind not in "iu":
        return found
    step = _STEPS[name]
    before = [_of(operand, value.size) for operand in given]
    ranges = [one and _under(condition, truth, operand, one, steps) for one, operand in zip(before, given)]
    if None in ranges or ranges == before or (again := step(*ranges)) is None or not value.operands:
        return found
    limits = _all_of(value.dtype)
    if again.low < limits.low or again.high > limits.high or max(again.low, found.low) > min(again.high, found.high):
        return found
    return found._replace(low=max(again.low, found.low), high=min(again.high, found.high))


def _narrowed(condition: Node, operands: tuple[Any, ...], truth: bool, value: Any, found: _Range) -> _Range:
    name = condition.step.name.removeprefix("own_")
    if name in ("logical_not", "invert"):
        return _under(operands[0], not truth, value, found)
    if name in (("bitwise_and", "logical_and") if truth else ("bitwise_or", "logical_or")):
        for one in operands:
            found = _under(one, truth, value, found)
        return found
    if name not in _TRUE or len(operands) != 2:
        return found
    for place, says in enumerate((name, _EXCHANGED[name])):
        if _is_same(operands[place], value, condition) and (
                other := _of(operands[1 - place], condition.size)) is not None:
            low, high = _TRUE[says if truth else _FALSE[says]](found, other)
            if low <= high:     # else it is true nowhere
                found = found._replace(low=low, high=high)
    return found


def _is_same(operand: Any, value: Any, condition: Node) -> bool:
    """Whether the elements of an operand of a condition are those of another operand, at the same places."""
    return _is_alike(operand, value) and (type(operand) is not Node or condition.shape == operand.shape)


def _is_alike(operand: Any, value: Any, steps: int = _STEPS_BACK) -> bool:
    """Whether two operands are one, or the same step on the same operands: ``i + 1`` is written twice."""
    if operand is value:
        return True
    if type(operand) is not type(value):
        return False
    if type(operand) is Leaf:
        one, other, first = operand.array, value.array, operand.storage.device.first
        return operand.storage is value.storage and (
            one.shape, one.strides, one.dtype, first(one)) == (other.shape, other.strides, other.dtype, first(other))
    if type(operand) is not Node:
        return isinstance(operand, (np.integer, np.bool_)) and bool(operand == value)
    given, others = operand.operands, value.operands
    return bool(steps and given) and operand.step is value.step and (operand.shape, operand.fortran) == (
        value.shape, value.fortran) and len(given) == len(others) and all(
        _is_alike(one, other, steps - 1) for one, other in zip(given, others)) and bool(
        operand.operands and value.operands)


# -- steps ---------------------------------------------------------------------------------------

def _ends(ends: list[int], distinct: bool = False) -> _Range:
    return _Range(min(ends), max(ends), distinct)


def _is_moved(a: _Range, b: _Range) -> bool:
    """Whether one of both is one number, and no two elements of the other are equal."""
    return a.is_number and b.distinct or b.is_number and a.distinct


def _multiply(a: _Range, b: _Range) -> _Range:
    distinct = _is_moved(a, b) and 0 not in [one.low for one in (a, b) if one.is_number]
    return _ends([x * y for x in a[:2] for y in b[:2]], distinct)


def _remainder(a: _Range, b: _Range) -> _Range | None:
    """As Python has it: of the sign of the divisor."""
    if b.low > 0:
        return a if b.is_number and a.low >= 0 and a.high < b.low else _Range(0, b.high - 1)
    return _Range(b.low + 1, 0) if b.high < 0 else None


def _floor_divide(a: _Range, b: _Range) -> _Range | None:
    return _ends([x // y for x in a[:2] for y in b[:2]]) if b.low > 0 else None


#: Places to shift by that each dtype of integers has.
_PLACES = 8


def _left_shift(a: _Range, b: _Range) -> _Range | None:
    return _Range(a.low << b.low, a.high << b.low, a.distinct) if b.is_number and 0 <= b.low < _PLACES else None


def _right_shift(a: _Range, b: _Range) -> _Range | None:
    return _ends([x >> y for x in a[:2] for y in b[:2]]) if b.low >= 0 and b.high < _PLACES * 8 else None


def _and(a: _Range, b: _Range) -> _Range | None:
    positive = [one.high for one in (a, b) if one.low >= 0]
    return _Range(0, min(positive)) if positive else None


def _or(a: _Range, b: _Range) -> _Range | None:
    if min(a.low, b.low) < 0:
        return None
    return _Range(0, (1 << max(a.high, b.high).bit_length()) - 1)


def _absolute(a: _Range) -> _Range:
    return _Range(max(a.low, -a.high, 0), max(-a.low, a.high))


def _clip(a: _Range, low: _Range, high: _Range) -> _Range:
    return _Range(min(max(a.low, low.low), high.low), min(max(a.high, low.high), high.high))


#: Name of a step -> the range of what it gives, of those of its operands; None if it could be anything.
_STEPS: dict[str, Callable[..., _Range | None]] = {
    "add": lambda a, b: _Range(a.low + b.low, a.high + b.high, _is_moved(a, b)),
    "subtract": lambda a, b: _Range(a.low - b.high, a.high - b.low, _is_moved(a, b)),
    "multiply": _multiply, "remainder": _remainder, "floor_divide": _floor_divide,
    "left_shift": _left_shift, "right_shift": _right_shift, "bitwise_and": _and, "bitwise_or": _or, "bitwise_xor": _or,
    "minimum": lambda a, b: _Range(min(a.low, b.low), min(a.high, b.high)),
    "maximum": lambda a, b: _Range(max(a.low, b.low), max(a.high, b.high)),
    "clip": _clip, "where": lambda condition, a, b: _ends([*a[:2], *b[:2]]),
    "negative": lambda a: _Range(-a.high, -a.low, a.distinct), "absolute": _absolute,
    "sign": lambda a: _Range(-1, 1), "astype": lambda a: a, "value": lambda a: a._replace(is_number=False),
    **dict.fromkeys(("take", "take_rows", "take_along"), lambda table, *where: table._replace(distinct=False)),
}
#: Those of which an element depends on the operands' elements at its place alone.
_PLACE_BY_PLACE = _STEPS.keys() - {"take", "take_rows", "take_along", "where"}
