"""Parameters that say how a function works are read on the host: nothing is uploaded for them, whatever they are."""

from __future__ import annotations

import re

import numpy as np
import parity
import pytest
import recipes
from operands import Operands

import lazyarray
from lazyarray.functions import tables
from lazyarray.functions.written_parameters import steering_slots

ON_DEVICE = {**tables.ADAPTED, **tables.VIEWS, **tables.LAZY}
#: Parameters that NumPy compares with Python's own values; no array will do.
NO_ARRAY = {"order", "mode", "norm", "dtype", "kind", "ord", "side", "keepdims"}


class Bound:
    """Makes a call's arguments, with arrays in place of the numbers that say how the function works."""

    def __init__(self, func):
        self.slots = steering_slots(func)
        self.made = 0

    def __call__(self, make, *args, **kwargs):
        self.made = 0
        self.make = make
        return (tuple(self.given(i, v) for i, v in enumerate(args)),
                {k: self.given(k, v) for k, v in kwargs.items()})

    def given(self, slot, value):
        name = self.slots.get(slot, ("",))[0]
        if not name or name in NO_ARRAY or not numbers(value):
            return value
        try:
            found = np.array(value)
        except ValueError:
            return value
        self.made += 1
        return self.make(found)


def numbers(value):
    """Whether this is a number, or numbers in lists and tuples."""
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and all(map(numbers, value))
    return type(value) in (int, float)


def cases_of(func, make):
    """(case, how many arrays it makes) of each recipe in which `make` makes some: `h` on the host, `a` lazy ones."""
    lines, kind = recipes.RECIPES[func]
    bound = parity.NAMES["bound_" + func.__name__] = Bound(func)
    for line in lines:
        text, host = parity.split_reason(line)
        case = parity.Case(
            f"{recipes.name_of(func)}({text})", compile(f"bound_{func.__name__}({make}, {text})", line, "eval"), func,
            host, kind, recipes.COMPARE.get(func), parameters=recipes.PARAMETERS.get(func, 0))
        operands = Operands(lazyarray.asarray, "f8", "C", lazyarray.asdevice)
        for name in case.names:
            operands[name]
        lazy = any(map(lazyarray.is_lazy, operands.made))
        eval(case.code, parity.NAMES, operands)
        if bound.made and lazy:
            yield case, bound.made


NAMED = {recipes.name_of(func): func for func in recipes.RECIPES if func in ON_DEVICE and steering_slots(func)}


def writes_to_it(func):
    """Whether NumPy's function changes an array that it is given for a number, as rot90 did."""
    turns = np.array(-1)
    if func is np.rot90:
        func(np.eye(2), turns)
    return turns != -1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", ["h", "a"])
@pytest.mark.parametrize("name", sorted(NAMED))
def test_parameters_given_as_arrays_stay_on_the_host(name, make):
    if make == "a" and writes_to_it(NAMED[name]):
        pytest.skip("NumPy's oversight, which is not repeated")
    found = []
    for case, made in cases_of(NAMED[name], make):
        problem = parity.examine(case, "f8", "C", parity.Library.lazyarray(), on_device=True)
        fetched = re.match(r"copies: (\d+) materialisations", problem or "")
        if problem and not (make == "a" and fetched and int(fetched[1]) <= made):       # lazy ones are fetched
            found.append(f"{case.label}: {problem}")
    assert not found, "\n".join(found)


def test_a_lazy_parameter_is_fetched_once():
    x, shift = lazyarray.asarray(np.arange(12.0).reshape(3, 4)), lazyarray.asarray([1, 2])
    with lazyarray.trace() as t:
        for _ in range(3):
            np.roll(x, shift, axis=(0, 1))
    assert len(t.synchronisations) + len(t.materialisations) == 1 and not t.uploads
    shift += 1
    expected = np.roll(np.arange(12.0).reshape(3, 4), [2, 3], axis=(0, 1))
    np.testing.assert_array_equal(np.roll(x, shift, axis=(0, 1)), expected)
