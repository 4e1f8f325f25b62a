"""What Python code cannot set of a class: its sequence slots, and attributes of a class made in C."""
from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

_check = ctypes.pythonapi.PySequence_Check
_check.argtypes = (ctypes.c_void_p,)

# Places in CPython's structures, in pointers: of `tp_as_sequence` behind the head of a type (the same since 3.5),
# and of `sq_item` in what it points to.
_AS_SEQUENCE, _ITEM = 11, 3
_POINTER = ctypes.sizeof(ctypes.c_void_p)


def is_sequence(obj: Any) -> bool:
    """What ``PySequence_Check`` says of an object."""
    return bool(_check(id(obj)))      # as a py_object, ctypes would ask for its `__class__`


def index_is_no_sequence(kind: type) -> None:
    """Let ``PySequence_Check`` say no to instances of a class that has `__getitem__`, as it does to NumPy's scalars.

    Any class with a `__getitem__` is a sequence to C code, which then asks for the length, or, as torch does with the
    elements of an index, takes what holds such things for a tuple: ``tensor[x]`` would be ``tensor[x[0], x[1]]``.
    Nothing happens where the structures are not what they are taken for.
    """
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 16):
        return
    instance: Any = object.__new__(kind)
    methods = ctypes.c_void_p.from_address(id(kind) + object.__basicsize__ + _AS_SEQUENCE * _POINTER).value
    if not is_sequence(instance) or kind.__flags__ & 1 << 9 == 0 or not methods:    # 1 << 9: a class made by Python
        return
    slot = ctypes.c_void_p.from_address(methods + _ITEM * _POINTER)
    before, slot.value = slot.value, None
    if is_sequence(instance):
        slot.value = before


def set_member(kind: type, name: str, value: Any) -> None:
    """Set an attribute of a class made in C, which `setattr` refuses: its dict is written, and caches are cleared.

    Nothing happens where the dict can't be reached.
    """
    members = [found for found in gc.get_referents(vars(kind)) if type(found) is dict]
    if sys.implementation.name == "cpython" and len(members) == 1 and members[0].get(name) is vars(kind)[name]:
        members[0][name] = value
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
