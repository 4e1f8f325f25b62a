"""Recording of the calls of ufuncs that need not be computed now: what is not like a call that was met before.

What is, `_native/recording_calls.h` records. Everything that could tell recorded work from work done at once, errors
included, is left to the general way of `dispatch`.
"""
from __future__ import annotations

import atexit
from typing import Any

import numpy as np
from numpy._core import umath

from ... import devices
from ...devices import base
from ...devices.program import WIDE, Operand, Program, Step, reformed
from ...functions import memory_order
from ...settings import options
from ...storage import facts, handles, upload_cache, views
from ...storage.foreign_streams import partners
from ...storage.mirror.byte_ranges import Ranges
from ...storage.mirror.mirror import Mirror
from ...storage.state import all_ended, changing, cut
from ...storage.storage import Storage
from .. import known_ranges, memory_bound, programs, waiting
from ..node import MOST_STEPS, Leaf, Node, native
from . import reductions
from .call_cache import Known, keep, keep_places, known
from .loops import Rule, cast, cast_steps, rule_of, rules
from .memory_order import axes_of
from .operands import LARGE_RESULT, Operands, brought, ready_array, whole

__all__ = ["bind", "recorded", "sources"]

#: (NumPy's function, dtype) -> how it makes arrays of it: (device, step, operands, `creation.COUNT` and beside it).
sources: dict[Any, tuple[Any, Step, tuple[Any, ...], int]] = {}

#: Readers from which on those that are done are looked for.
_MOST_READERS = 16
#: Elements of a result that reads memory that others hold: from so many on it is recorded while there is no kernel of
#: ours, which takes half the time of the library's; and if it has more than so many, whose kernels count in more bits.
_LONG, _LONGEST = 1 << 17, 1 << 30

#: Bytes of an array from which on one kernel with two results is quicker than two that read it (by 1.4, 1e8 float64).
_LARGE_PAIR = 16 << 20

#: What NumPy does about errors of floating-point numbers: settings that are never changed, only replaced.
_errors = umath._extobj_contextvar


def tells_of_errors() -> bool:
    """Whether NumPy does more than warn at such errors (``np.errstate``): such calls are not put off."""
    return not {"raise", "call", "print", "log"}.isdisjoint(np.geterr().values())


def _compiled(rule: Rule, operands: tuple[Any, ...], size: int, device: Any) -> Any:
    """What does a rule's step alone, on dense arrays and numbers; None as long as it is not compiled."""
    if rule.program is None:
        inputs = tuple([Operand(dtype, "flat" if type(operand) is Leaf else "value")
                       for dtype, operand in zip(rule.step.inputs, operands)])
        places = tuple(range(len(inputs)))
        rule.program = Program(inputs, ((rule.step, places),), (len(inputs),), 0)
    kernel = rule.kernel = device.kernel(rule.program, size)
    rule.launch = getattr(kernel, "launch", None)
    return kernel


def _ready(x: Any) -> Leaf | None:
    """The leaf of a lazy array if it is a whole dense array that is ready, and the only device's; else None."""
    x._self_leaf = None
    return None if x._self_storage.pending is not None else whole(x)


def _is_small(inputs: tuple[Any, ...], least: int) -> bool:
    return not any(type(x) is handles.array_type and ((array := x._self_array) is None or array.nbytes >= least)
                   or type(x) is handles.scalar_type and not least for x in inputs)


def _is_of(seen: tuple[Any, ...], given: Operands) -> bool:
    """Whether the operands are still as they were when the key was made: another thread may have reshaped one."""
    return all(meta is None if one is None else meta is not None and one[1:] == (kind, meta.shape)
               for one, kind, meta in zip(seen, given.kinds, given.metas))


def _general(ufunc: np.ufunc, inputs: tuple[Any, ...], least: int, written: np.ndarray | None, key: Any,
             seen: Any, lengths: Any) -> Any:
    """The lazy array of a call with operands of any form and kind, recorded; None if it is not to be.

    `written`: the meta of what it will be written to, if that is done in place. `key`: under which the next such
    call will be known, `seen`: of each operand whether it is a leaf or a node, its dtype and its shape, and `lengths`:
    their distinct lengths; all three are None if it can't be known.
    """
    if written is None and _is_small(inputs, least):
        return None
    if ufunc is np.divmod:
        if any(handles.is_array(x) and handles.meta_of(x).nbytes >= _LARGE_PAIR for x in inputs):
            return None
        quotient, rest = native.recorded(np.floor_divide, inputs), native.recorded(np.remainder, inputs)
        return None if quotient is None or rest is None else (quotient, rest)
    given = Operands(ufunc)
    for x in inputs:
        if not given.add(x):
            return None
    if given.device is None:        # host arrays and numbers alone: nothing that waits is read
        return None
    call = (ufunc, *given.kinds)
    # Else the rule may do, now that it is there.
    lasts = key is not None and _is_of(seen, given) and (written is not None or call in rules)
    rule = rule_of(call)
    if rule is not None and rule.choose is not None:
        rule = rule.choose(given.items[1] if given.metas[1] is None else None)
    if rule is None:
        return None
    given.keep(len(rule.scalars))
    if given.shape() == () and (type(ufunc) is not np.ufunc
                                or any(map(handles.is_array, inputs))):      # see `recording_calls.h`
        return None
    last: Step | None = None
    output = rule.step.output
    if written is not None and output != written.dtype:
        last = cast(output, written.dtype) if np.can_cast(output, written.dtype, "same_kind") else None
        if last is None:
            return None
    if written is None:
        settled = given.settle(rule.casts, rule.scalars, rule.itemsize, least)
    else:
        settled = given.shape() == written.shape and given.settle(
            rule.casts, rule.scalars, written.itemsize, least, axes_of(written), 1 if last is None else 2)
    if key is not None and given.unreadable:
        keep_places(key, tuple(given.unreadable))
    if not settled:
        return None
    node = given.made(rule.step, tuple(given.items))
    if last is not None:
        given.made(last, (node,))
    if lasts and given.as_given:
        keep(key, seen, lengths, rule, given, node, last)
    return recorded(given)


def recorded(given: Any) -> Any:
    """The lazy array of new nodes: the last of those that `given` has, of its form."""
    order = given.result.order
    return native.array_of(given.nodes, None if order is None else np.argsort(order))


def _sample(node: Node, pick: Any) -> Any:
    from .. import sampling  # only displays ask

    return sampling.sample(node, pick)


def bind(array_type: type, others: dict[str, Any]) -> None:
    """Tell the part in C what it calls and looks at (called once, by `array/array.py`); `others`: more of that."""
    Node.sample = _sample
    base.deferred.append(waiting.compute_all)
    atexit.register(waiting.compute_at_exit)
    if native is not None:
        native.bind({
            **others, **reductions.for_native(),
            "LazyNdarray": array_type, "LazyScalar": handles.scalar_type, "Storage": Storage, "Leaf": Leaf,
            "Node": Node, "Rule": Rule, "Step": Step, "Known": Known, "generic": np.generic,
            "errors": _errors, "tells_of_errors": tells_of_errors,
            "scopes": options.entered_scopes, "options": vars(options), "devices": vars(devices), "partners": partners,
            "rules": rules, "known": known, "sources": sources, "programs": programs.programs,
            "Meta": views.Meta, "meta_memory": views.MEMORY, "Ranges": Ranges, "Mirror": Mirror,
            "general": _general, "ready": _ready, "ready_array": ready_array,
            "along": memory_order.along, "compiled": _compiled,
            "note_large": memory_bound.note, "note_many": memory_bound.note_many,
            "cut": cut, "new_program": programs.new_program,
            "changing": changing, "device_of": handles.device_of, "meta_of": handles.meta_of,
            "brought": brought, "overlap": views.overlap, "all_ended": all_ended,
            "bounds_of": facts.bounds_of, "with_bounds": facts.with_bounds, "note_range": known_ranges.note,
            "note_computed": known_ranges.note_computed, "keep_range": known_ranges.keep,
            "range_of": known_ranges.of_node,
            "cast": cast, "casts": cast_steps, "empty": np.empty, "zeros": np.zeros,
            "arange": np.arange, "full": np.full, "full_like": np.full_like,
            "zeros_like": np.zeros_like, "ones_like": np.ones_like,
            "unfused": programs.unfused, "joined": programs.joined, "reformed": reformed,
            "MOST_STEPS": MOST_STEPS, "MOST_READERS": _MOST_READERS, "LONG": _LONG, "LONGEST": _LONGEST,
            "SMALL": upload_cache.SMALL, "LARGE": memory_bound.LARGE, "LARGE_RESULT": LARGE_RESULT,
            "ORIGIN": views.ORIGIN, "WIDE": WIDE,
        })
