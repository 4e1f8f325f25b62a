"""What the types of operands and arguments are to us, asked once for each type."""
from __future__ import annotations

import functools

import numpy as np

from .. import devices
from ..storage import handles

#: Types of Python's numbers, and those of them that take the dtype of the array beside them (NEP 50).
NUMBERS = frozenset({bool, int, float, complex})
WEAK = NUMBERS - {bool}

#: Types that hold no arrays; most arguments are of these.
PLAIN = NUMBERS | {str, bytes, type(None), slice, type, np.dtype, type(Ellipsis)}

#: GENERIC: NumPy's scalars. SUBCLASS: of ndarray, with a say in what NumPy returns. GPU: another library's GPU arrays.
LAZY, SCALAR, HOST, GENERIC, SUBCLASS, DEVICE, GPU, CONTAINER, OTHER = range(9)


@functools.cache
def is_container(kind: type) -> bool:
    """Whether instances of a type are looked into for arrays."""
    return issubclass(kind, (list, tuple, dict)) or hasattr(kind, "__dataclass_fields__")


@functools.cache
def kind_of(kind: type) -> int:
    """What instances of a type are: LAZY, SCALAR and so on."""
    if kind in PLAIN:
        return OTHER
    if issubclass(kind, handles.array_type):
        return LAZY
    if issubclass(kind, handles.scalar_type):
        return SCALAR
    if kind is np.ndarray or issubclass(kind, np.memmap):
        return HOST
    if issubclass(kind, (np.ndarray, np.generic)):
        return SUBCLASS if issubclass(kind, np.ndarray) else GENERIC
    if issubclass(kind, devices.current().array_type):
        return DEVICE
    if is_container(kind):
        return CONTAINER
    return GPU if hasattr(kind, "__cuda_array_interface__") or hasattr(kind, "__cupy_get_ndarray__") else OTHER


def is_foreign(kind: type) -> bool:
    """Whether instances are neither arrays that NumPy or the device knows nor NumPy's scalars."""
    return kind_of(kind) >= GPU
