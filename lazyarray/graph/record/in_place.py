"""Recording of ``x += y``: what was `x` is one of the operands, and `x` becomes what they give.

Nobody can tell as long as no other array, alias or pointer looks at the memory of `x`. Else, and where `x` is a view,
its memory is written, with what one kernel gives of all that waits.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...storage import handles, places
from ...storage.state import all_ended
from ...storage.storage import Storage
from ...storage.writeable import may_write
from ..node import Leaf, native

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
    if not _taken_over(x, meta, result):
        storage = x._self_storage
        if storage.clean and storage.device.count == 1 and storage.write_clean(meta, handles.device_of(result)):
            return x
        storage.write_device(meta, x._self_array,
                             lambda target: storage.device.assign(target, handles.device_of(result)), overwrite=True)
    return x


def _taken_over(x: Any, meta: np.ndarray, result: Any) -> bool:
    """Let `x` become what was recorded, if it is the whole of its memory, and only recorded work looks at that."""
    storage = x._self_storage
    if x._self_base is not None or meta is not storage.root_view or not meta.flags.forc:
        return False
    if storage.pending is None and (
            not storage.device_only or not storage.clean or storage.foreign or storage.compacts is not None
            or storage.loans and not all_ended(storage)):
        return False
    new = result._self_storage
    if result._self_meta is new.root_view and new.root_view.strides == meta.strides:
        new.root_view = meta        # so that one thing alone changes in `x`
    leaves = _leaves(x)     # held, so that none of them goes, and what came since is not taken for one
    del storage
    return native.take_over(x, len(leaves), new)   # type: ignore[no-any-return]


def _leaves(x: Any) -> list[Leaf]:
    """The leaves that refer to the storage of `x`: those of recorded work, and its own."""
    storage = x._self_storage
    found = {}
    for ref in tuple(storage.readers or ()):
        node = ref()
        if node is not None:
            found.update({id(o): o for o in node.operands if type(o) is Leaf and o.storage is storage})
    if x._self_leaf is not None and x._self_leaf.storage is storage:
        found[id(x._self_leaf)] = x._self_leaf
    return list(found.values())
