"""Who holds the arrays that a function returned: told by reference counts.

The counts of each result, and of what keeps its memory alive, are compared with those of an array that was just made
and went the same way. So the numbers of this Python and of this device library need not be known.
"""
from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..functions.kinds import PLAIN, is_container

if TYPE_CHECKING:
    from ..devices import Device

_count = sys.getrefcount
_u8 = np.dtype(np.uint8)

#: Device name -> references that are ours: to a result, to a container of some, to an object of each type that holds
#: memory.
_ours: dict[str, dict[Any, int]] = {}


#: Device name -> the type of the memory of one array that was just made, and the counts.
_of_a_new_one: dict[str, list[Any]] = {}


def is_new(device: Device, box: list[Any], made: bool = False) -> bool:
    """Whether all that a function returned is one array that nobody else holds, which is the commonest case.

    False may be said of such an array: `Found` looks closer. `made`: it is known to be one, with which others are
    compared from now on.
    """
    array = box[0]
    held = device.holdings(array)
    found = [type(held[-1][1]), _count(array), *[_count(obj) for _, obj in held]]
    if made:
        _of_a_new_one[device.name] = found
    elif device.name not in _of_a_new_one:
        del array, held
        is_new(device, [device.empty((8,), _u8)], True)
    return found == _of_a_new_one[device.name]


class Found:
    """The device arrays in what a function returned, and which of them somebody else holds.

    Parameters
    ----------
    device : Device
    box : list
        Holds what the function returned, and is all that holds it on the caller's side.
    """

    __slots__ = ("device", "arrays", "_edges", "_held", "_seen")

    def __init__(self, device: Device, box: list[Any]) -> None:
        self._begin(device, box)
        if self.arrays:
            self._judge()

    def _begin(self, device: Device, box: list[Any]) -> None:
        self.device = device
        #: identity -> [array, how often it is there, most references to a container on the way to it]
        self.arrays: dict[int, list[Any]] = {}
        self._edges: dict[tuple[int, int], Any] = {}        # (identity of the holder, of the object) -> the object
        self._held: dict[int, bool] = {}
        self._seen: set[int] = set()
        for item in _parts(list, box):
            self._walk(item, 0)

    def is_held(self, array: Any) -> bool:
        """Whether somebody else can write to the memory of an array; True if it is not among these."""
        return self._held.get(id(array), True)

    def _walk(self, obj: Any, most: int) -> None:
        kind = type(obj)
        if kind in PLAIN:
            return
        if isinstance(obj, self.device.array_type):
            entry = self.arrays.setdefault(id(obj), [obj, 0, most])
            entry[1] += 1
            entry[2] = max(entry[2], most)
        elif is_container(kind) and id(obj) not in self._seen:
            self._seen.add(id(obj))
            most = max(most, _count(obj))
            for item in _parts(kind, obj):
                self._walk(item, most)

    def _judge(self) -> None:
        numbers = self._numbers()
        ours = _ours.get(self.device.name) or _measured(self.device)
        if any(kind not in ours for _, kind, _ in numbers.values()):
            ours = _measured(self.device)       # another allocator than before?
            for _, kind, _ in numbers.values():
                ours.setdefault(kind, -1)       # no: memory that the device library has not made
        over = {identity: count > ours.get(kind, -1) for identity, (count, kind, _) in numbers.items()}
        for identity, entry in self.arrays.items():
            self._held[identity] = entry[2] > ours[list] or over[identity] or any(
                over[other] for other in numbers[identity][2])

    def _numbers(self) -> dict[int, tuple[int, Any, list[int]]]:
        """Identity -> references to an object beyond the known ones, which kind it is (None: a result), what it holds.

        Ours are among them, as many for each object of a kind.
        """
        edges = self._edges
        held = {identity: self._hold(entry[0]) for identity, entry in self.arrays.items()}
        holders = Counter([target for _, target in edges])      # known ones; `edges` refers to each as often
        numbers = {}
        for (_, identity), obj in edges.items():
            if identity not in numbers and identity not in self.arrays:
                numbers[identity] = _count(obj) - 2 * holders[identity], type(obj), []
        obj = None
        for identity, entry in self.arrays.items():
            numbers[identity] = (
                _count(entry[0]) - 2 * holders[identity] - entry[1], None, held[identity])
        return numbers

    def _hold(self, array: Any) -> list[int]:
        holdings = self.device.holdings(array)
        self._edges |= {(holder, id(obj)): obj for holder, obj in holdings}
        return [id(obj) for _, obj in holdings]


def _parts(kind: type, obj: Any) -> list[Any]:
    """What a container holds; always a new list, so that as many references are ours."""
    if issubclass(kind, (list, tuple)):
        return list(obj)
    if issubclass(kind, dict):
        return list(obj.values())
    return [getattr(obj, name, None) for name in kind.__dataclass_fields__]


def _measured(device: Device) -> dict[Any, int]:
    """The references that are ours, where nobody else has any."""
    ours = dict(_ours.get(device.name, {}))
    for make in (lambda: device.empty((8,), _u8)[1:], lambda: device.empty((8,), _u8)):
        box = [[make()]]
        found = Found.__new__(Found)
        found._begin(device, box)
        for count, kind, _ in found._numbers().values():
            ours[kind] = count
        ours[list] = next(iter(found.arrays.values()))[2]
    _ours[device.name] = ours
    return ours
