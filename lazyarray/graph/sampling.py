"""Some elements of recorded work, computed alone: for displays, which show a few of many.

Element-wise steps give the same for an element whatever lies beside it. So what picks elements of the result picks
them of the operands as well, and the steps run on what was picked, by the device's own functions. The work itself
stays recorded.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..devices.program import reformed
from ..errors.interrupts import holding
from . import programs
from .node import Leaf, Node, lock

__all__ = ["sample", "sampled"]

Pick = Callable[[Any], Any]


def sample(node: Node, pick: Pick) -> Any:
    """What ``pick(array)`` gives, with as little computed as that takes."""
    found = sampled(node, pick)
    return pick(reformed(node.compute(), node.shape, node.fortran)) if found is None else found


def sampled(node: Node, pick: Pick) -> Any:
    """What ``pick(array)`` would give if the node were computed; None if it takes all of it, or is computed already.

    Parameters
    ----------
    node : Node
    pick : callable
        Makes an array of elements of the array that it is given, whatever their values are. It is called with device
        arrays of the node's shape.
    """
    with holding(lock):
        if node.array is not None or not _possible(node, set()):
            return None
        device = node.device
        with node.there():
            sources: list[Any] = []
            with np.errstate(all="ignore"):     # as where programs run
                found = _of(node, pick, {}, sources)
            stream = device.stream()
            for other in sources:
                device.order(stream, other)
            return found


def _possible(node: Node, seen: set[Node]) -> bool:
    """Whether all steps are of one shape, read arrays, and do not ask for the place of their element."""
    if node in seen:
        return True
    seen.add(node)
    if node.step.indexed:
        return False
    arrays: list[Any] = [o for o in node.operands if type(o) is Leaf or type(o) is Node]
    return bool(arrays) and all(
        type(o) is Leaf or o.array is not None and o.size == node.size or o.array is None and o.shape == node.shape
        and o.fortran == node.fortran and _possible(o, seen) for o in arrays)


def _of(node: Node, pick: Pick, known: dict[Any, Any], crossed: list[Any]) -> Any:
    found = known.get(node)
    if found is None:
        xp, shape, stream = node.device.xp, node.shape, node.device.stream()
        taken = []
        for operand in node.operands:
            if type(operand) is Leaf or type(operand) is Node and operand.array is not None:
                crossed += programs.joined(node.device, [operand], stream)
                array, mode = operand.array, getattr(operand, "mode", "flat")
                taken.append(array if mode == "table" else pick(
                    reformed(array, shape, node.fortran) if mode == "flat" else xp.broadcast_to(array, shape)))
            else:
                taken.append(_of(operand, pick, known, crossed) if type(operand) is Node else operand)
        found = known[node] = node.step.function(*taken)
    return found
