"""Recording of ``x += y``: what was `x` is one of the operands, and `x` becomes what they give.

Nobody can tell as long as no other array, alias or pointer looks at the memory of `x`. Else, and where `x` is a view,
its memory is written, with what one kernel gives of all that waits.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...storage import handles, places
from ...storage.storage import Storage
from ...storage.writeable import may_write
from ..node import native

__all__ = ["in_place"]


def in_place(ufunc: np.ufunc, inputs: tuple[Any, ...], outs: tuple[Any, ...]) -> Any:
    """``ufunc(*inputs, out=x)``, recorded: `x`, or None where nothing is gained, or the general way knows more.

    Only where something waits already: to write into memory that is there takes none. The arrays are
    `held`: what is read here is what is there when it is written.
    """
    x = outs[0]
    array_type = handles.array_type
    if type(x) is not array_type or len(outs) != 1:
        return None
    for operand in (x, *inputs):
        if type(operand) is array_type and operand._self_storage.pending is not None:
            break
    else:
        return None
    meta = handles.meta_of(x)
    if type(x._self_storage) is not Storage or not may_write(meta) or places.apart(
            x._self_storage.device, (x, *inputs)):      # what is written stays where it is
        return None
    result = native.recorded(ufunc, inputs, meta)
    if result is None:
        return None
    if not native.taken_over(x, result):
        storage = x._self_storage
        if storage.clean and storage.device.count == 1 and storage.write_clean(meta, handles.device_of(result)):
            return x
        storage.write_device(meta, x._self_array,
                             lambda target: storage.device.assign(target, handles.device_of(result)), overwrite=True)
    return x
