"""On which of several devices arrays lie."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ..devices.base import HERE
from . import handles
from .storage import Storage

if TYPE_CHECKING:
    from ..devices import Device

__all__ = ["apart", "elsewhere", "largest", "of", "of_partner", "on_one", "one_alone"]


def of(device: Device, x: Any) -> int | None:
    """The number of the device that has, or will compute, the values of an array; None if none has memory for it."""
    if isinstance(x, device.array_type):
        return device.device_of(x)
    storage = x._self_storage if handles.is_lazy(x) else None
    return storage.number() if type(storage) is Storage else None


def of_partner(device: Device, partner: Any) -> int | None:
    """The number of the device of what computes with device arrays (`Device.computes_with`): that of its values."""
    data = getattr(partner, "data", None)
    return device.device_of(data) if isinstance(data, device.array_type) else None


def elsewhere(device: Device, x: Any) -> bool:
    """Whether a lazy array lies on another device than the current one."""
    return device.spread and of(device, x) not in (None, device.number())


def one_alone(device: Device, operands: Iterable[Any]) -> bool:
    """Whether one device alone is in use, and no device array among the operands or their items lies on another one."""
    if device.count == 1 or device.spread:
        return device.count == 1
    for x in operands:
        for one in x if type(x) in (list, tuple) else (x,):
            if isinstance(one, device.array_type) and device.device_of(one) != device.sole:
                return False
    return True


def on_one(device: Device, operands: Sequence[Any], written: Iterable[Any] = (), number: int | None = None
           ) -> AbstractContextManager[Any]:
    """A context in which one of several devices is the current one.

    It is that of this `number`, of the first one that is `written`, or of the largest of the operands, of which those
    that are no arrays are ignored. To be entered before the operands are read (`handles.operand_of`).
    """
    if device.count == 1 or number is None and one_alone(device, operands):
        return HERE
    if number is None:
        number = next((found for x in written if (found := of(device, x)) is not None), None)
    return device.on(largest(device, operands) if number is None else number)


def largest(device: Device, operands: Iterable[Any]) -> int | None:
    """The number of the device on which the array with the most bytes lies; None without any array on a device."""
    found, most = None, -1
    for x in operands:
        if (place := of(device, x)) is not None:
            nbytes = x.nbytes if isinstance(x, device.array_type) else handles.meta_of(x).nbytes
            if nbytes > most:
                found, most = place, nbytes
    return found


def apart(device: Device, operands: Iterable[Any]) -> bool:
    """Whether lazy arrays and scalars among these operands lie on several devices."""
    return device.several and len({of(device, x) for x in operands if handles.is_lazy(x)
                                     and x._self_storage is not None}) > 1
