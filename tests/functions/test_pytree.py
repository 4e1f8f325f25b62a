"""Containers: what is in them is replaced, what they are stays, and what is done to a copy is done to the original."""
from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field

import pytest

from lazyarray.functions.pytree import Copies, replace

Point = namedtuple("Point", "x y")


class Named(list):
    """A list with an attribute."""


@dataclass
class Plain:
    a: object
    b: object = "b"


@dataclass(frozen=True, slots=True)
class Frozen:
    a: object
    b: object = "b"


@dataclass
class Awkward:
    a: object
    later: object = field(init=False, repr=False, compare=False)


class Leaf:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Leaf) and self.value == other.value

    __hash__ = None

    def __repr__(self):
        return f"Leaf({self.value!r})"


OLD, NEW = Leaf("old"), Leaf("new")


def swap(obj):
    return NEW if obj is OLD else obj


CASES = [
    ([OLD, 1], [NEW, 1]),
    ((1, OLD), (1, NEW)),
    ({"k": OLD, 2: "x"}, {"k": NEW, 2: "x"}),
    (Point(OLD, 2), Point(NEW, 2)),
    (Plain(OLD), Plain(NEW)),
    (Frozen(OLD), Frozen(NEW)),
    (Awkward(OLD), Awkward(NEW)),
    (OrderedDict(a=1, b=OLD), OrderedDict(a=1, b=NEW)),
    ([(OLD, {"k": [Plain(OLD)]})], [(NEW, {"k": [Plain(NEW)]})]),
    (OLD, NEW),
]


@pytest.mark.parametrize(("given", "expected"), CASES, ids=lambda case: type(case).__name__)
def test_everything_inside_is_replaced_and_the_kind_kept(given, expected):
    before = repr(given)
    found = replace(given, swap)
    assert type(found) is type(expected) and found == expected and repr(found) == repr(expected)
    assert repr(given) == before


@pytest.mark.parametrize("given", [[1, "a"], (1,), {}, Point(1, 2), Plain(1), 5, None, [[], ()], {"k": Frozen(2)}])
def test_what_needs_no_change_is_returned_as_it_is(given):
    assert replace(given, swap) is given


def test_what_else_a_container_has_is_kept():
    table = defaultdict(list, {"k": OLD})
    assert replace(table, swap)["none"] == [] and "none" not in table
    named = Named([OLD])
    named.title = "t"
    found = replace(named, swap)
    assert (type(found), found.title, found[0]) == (Named, "t", NEW)


def test_a_container_that_holds_itself_ends():
    ring = [OLD]
    ring.append(ring)
    found = replace(ring, swap)
    assert found[0] is NEW and found[1] is ring


@pytest.mark.parametrize(("given", "change", "expected"), [
    ([OLD, 1], lambda c: c.append(Leaf(5)), lambda o: [o, 1, Leaf(-5)]),
    ([OLD, 1], lambda c: c.__setitem__(0, Leaf(5)), lambda o: [Leaf(-5), 1]),
    ([OLD, 1], lambda c: c.reverse(), lambda o: [1, o]),
    ([OLD, 1], lambda c: c.clear(), lambda o: []),
    ({"k": OLD}, lambda c: c.update(n=Leaf(5)), lambda o: {"k": o, "n": Leaf(-5)}),
    ({"k": OLD, "g": 1}, lambda c: c.pop("g"), lambda o: {"k": o}),
    (Plain(OLD), lambda c: setattr(c, "b", Leaf(5)), lambda o: Plain(o, Leaf(-5))),
    ([[OLD]], lambda c: c[0].append(7), lambda o: [[o, 7]]),
    ([[OLD]], lambda c: c.append(c[0]), lambda o: [[o], [o]]),
])
def test_what_is_done_to_a_copy_is_done_to_the_original(given, change, expected):
    copies = Copies()
    copy = replace(given, swap, copies)
    change(copy)
    copies.hand_on(lambda obj: copies.originals.get(
        id(obj), Leaf(-obj.value) if isinstance(obj, Leaf) and isinstance(obj.value, int) else obj))
    assert given == expected(OLD)
