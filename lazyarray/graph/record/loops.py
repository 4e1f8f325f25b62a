"""Which step a call of a ufunc is: NumPy's loop for the dtypes of its operands, and the casts that this takes.

A call that has no such step is left to the general way, errors included: its rule is None.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import devices
from ...devices.base import HOLDABLE
from ...devices.program import Step, cast_of, step_of
from ...functions import tables
from ...functions.kinds import NUMBERS

if TYPE_CHECKING:
    from ...devices import Device

__all__ = ["Rule", "cast", "cast_steps", "casts", "learn", "like_ufuncs", "named", "rule_of", "rules"]


class Rule:
    """What a call becomes: a step, and for each operand the step that casts it, or None.

    Attributes
    ----------
    step : Step
    casts : tuple of Step or None; None if no operand is cast
    scalars : tuple of callable
        What makes an operand of the loop of a number.
    choose : callable or None
        Called with the number that is the second operand, None if it is no number: the rule to take, or None.
    program, kernel : Program, callable, or None
        The step alone, on dense arrays and numbers, and what does it, once that is compiled.
    launch : callable or None
        Does what `kernel` does, in C, or gives None if it can't.
    """

    __slots__ = ("step", "casts", "scalars", "choose", "itemsize", "program", "kernel", "launch")

    def __init__(self, step: Step, casts: tuple[Step | None, ...] | None) -> None:
        self.step, self.casts = step, casts
        self.scalars = tuple([d.type for d in step.inputs])
        self.itemsize = step.output.itemsize
        self.choose = self.program = self.kernel = self.launch = None     # type: Any


#: (function, dtypes of the operands, or the type of a Python number) -> Rule or None.
rules: dict[Any, Rule | None] = {}

#: Function that is no ufunc, but whose calls have rules as those of ufuncs have -> what makes a rule of the device and
#: the kinds of the operands.
like_ufuncs: dict[Callable[..., Any], Callable[..., Rule | None]] = {}


def rule_of(kinds: Any) -> Rule | None:
    """The rule of a call: `kinds` are the function, and for each operand its dtype or the type of a Python number."""
    rule = rules.get(kinds, kinds)
    if rule is kinds:
        if kinds[0] in like_ufuncs:
            rule = rules[kinds] = like_ufuncs[kinds[0]](devices.current(), *kinds[1:])
        elif kinds[0] in tables.UFUNCS:
            rule = rules[kinds] = learn(devices.current(), *kinds)
        else:
            return None     # a program makes ufuncs of its own: none of them is kept
    return rule     # type: ignore[return-value]


def learn(device: Device, ufunc: np.ufunc, *kinds: Any) -> Rule | None:
    """The rule of a call that was not met before."""
    if ufunc.nout != 1 or ufunc.signature is not None or len(kinds) != ufunc.nin or ufunc not in tables.UFUNCS:
        return None
    if any(isinstance(k, np.dtype) and k not in HOLDABLE for k in kinds):
        return None
    given = tuple([np.dtype(bool) if k is bool else k for k in kinds])
    try:
        dtypes = ufunc.resolve_dtypes((*given, None))
    except TypeError:
        return None     # NumPy raises the error
    if any(d not in HOLDABLE for d in dtypes):
        return None
    return _power(device, kinds, dtypes) if ufunc is np.power else _plain(device, ufunc, kinds, dtypes)


def _plain(device: Device, ufunc: np.ufunc, kinds: tuple[Any, ...], dtypes: tuple[np.dtype, ...]) -> Rule | None:
    name = _name(ufunc, dtypes)
    if name is None:
        return None
    entry = tables.UFUNC_BY_KIND.get((ufunc, dtypes[0].kind)) or tables.UFUNCS[ufunc]
    xp = device.xp
    function = getattr(xp, entry) if isinstance(entry, str) else lambda *operands: entry(xp, *operands)
    scalar = next((d.type for k, d in zip(kinds, dtypes) if k in NUMBERS), None)
    step = step_of(name, function, tuple(dtypes[:-1]), dtypes[-1], scalar)
    if not device.fuses(step):
        return None
    needed = casts(kinds, dtypes)
    if needed is None:
        return None
    rule = Rule(step, needed or None)
    if int in kinds and dtypes[0].kind == "b":
        rule.scalars = tuple([_truth if k is int else d.type for k, d in zip(kinds, dtypes)])
    return rule


def _truth(number: int) -> np.bool_:
    """As NumPy makes an integer a truth value: OverflowError if it has more than 64 bits."""
    return np.bool_(np.int64(number))


def _name(ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> str | None:
    """The name of a step that gives what the device's function for this ufunc gives; None if there is none.

    It is the library's own function, or, where that means something else than NumPy's, text of ours.
    """
    kind = dtypes[0].kind
    if (ufunc, kind) in tables.UFUNC_BY_KIND:
        return f"own_{ufunc.__name__}"
    entry = tables.UFUNCS[ufunc]
    if isinstance(entry, str):
        return entry
    if ufunc in tables.COMPARISONS:
        return ufunc.__name__ if dtypes[0] == dtypes[1] else None
    own = _OWN.get(ufunc)
    if own is None:
        return None
    return f"own_{ufunc.__name__}" if own(dtypes[0]) else ufunc.__name__


#: Ufunc that is adapted -> the dtypes for which there is text of ours.
_OWN: dict[np.ufunc, Callable[[np.dtype], bool]] = {
    **dict.fromkeys((np.logical_and, np.logical_or, np.logical_xor, np.logical_not), lambda dtype: dtype.kind == "c"),
    **dict.fromkeys((np.floor_divide, np.remainder), lambda dtype: dtype.kind == "f"),
    **dict.fromkeys((np.left_shift, np.right_shift), lambda dtype: True),
    np.fmod: lambda dtype: dtype.kind == "f" or dtype.kind in "iu" and dtype.itemsize == 8,
    np.power: lambda dtype: False,
}


def _power(device: Device, kinds: tuple[Any, ...], dtypes: tuple[np.dtype, ...]) -> Rule | None:
    """Squares are products, as in NumPy; a whole number to a power that may be negative is left to the general way."""
    rule = _plain(device, np.power, kinds, dtypes)
    if rule is None:
        return rule
    squared = _plain(device, np.square, kinds[:1], (dtypes[0], dtypes[0]))
    if dtypes[0].kind == "c":
        rule.choose = lambda power: squared if power is not None and power == 2 else rule
        return rule
    other = None if dtypes[0].kind == "i" else rule
    rule.choose = lambda power: (
        other if power is None else squared if power == 2 else rule if power >= 0 else other)
    return rule


# -- casts ---------------------------------------------------------------------------------------

def casts(kinds: tuple[Any, ...], dtypes: tuple[np.dtype, ...]) -> tuple[Step | None, ...] | None:
    """The casts that operands need; empty if they need none, None if one of them is not to be cast here."""
    found = []
    for kind, dtype in zip(kinds, dtypes):
        if kind in NUMBERS or kind == dtype:
            found.append(None)
        else:
            step = cast(kind, dtype)
            if step is None:
                return None
            found.append(step)
    return tuple(found) if any(found) else ()


#: (source, target) -> what `cast` has found.
cast_steps: dict[tuple[np.dtype, np.dtype], Step | None] = {}


def cast(source: np.dtype, target: np.dtype) -> Step | None:
    """The step that makes numbers of `source` ones of `target`; None for what loses an imaginary part."""
    key = source, target
    found = cast_steps.get(key, key)
    if found is key:
        found = None
        if source in HOLDABLE and target in HOLDABLE and (source.kind != "c" or target.kind == "c"):
            found = cast_of(source, target)
        cast_steps[key] = found
    return found    # type: ignore[return-value]


_named: dict[Any, Step | None] = {}


def named(device: Device, name: str, function: Callable[..., Any], inputs: tuple[np.dtype, ...],
          output: np.dtype, indexed: bool = False) -> Step | None:
    """A step that is no ufunc of NumPy's, if the device can do it in a kernel."""
    key = name, inputs, output
    found = _named.get(key, key)
    if found is key:
        step = step_of(name, function, inputs, output, None, indexed)
        found = _named[key] = step if device.fuses(step) else None
    return found    # type: ignore[return-value]
