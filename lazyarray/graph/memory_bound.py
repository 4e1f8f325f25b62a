"""What recorded work keeps alive: its inputs, whose bytes are bounded.

The oldest work is done as soon as there are more. What nobody holds does not count: it goes with those that read it.
Large inputs are counted one by one; small ones are when many results wait, which the part in C tells.

A bound on bytes is all there is. A thread that computed what had waited for a second gave nothing (measured on the
simulated device, the least CPU seconds of three processes, with and without it: kalman 0.148 and 0.153, lattice
Boltzmann 0.43 and 0.38, life 0.13 and 0.13, n-body 0.82 and 0.90, neural 0.28 and 0.28; 500 results held of inputs of
1 MiB that are gone 0.40 and 0.37, with a peak of 558 and 533 MiB; 200,000 tiny results held 3.41 and 3.42).
"""
from __future__ import annotations

import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

from ..devices import base
from ..errors.interrupts import holding
from ..storage.mirror import mirror
from .node import Leaf, Node, lock, native

if TYPE_CHECKING:
    from ..devices import Device

__all__ = ["LARGE", "MOST_BYTES", "Kept", "kept", "note", "note_many"]

#: Inputs of a node from this size on are counted.
LARGE = 1 << 20
#: Bytes of counted inputs that recorded work may keep alive, and the part of the device's memory: inputs of recorded
#: work can't move to the host when the device is full, and to compute it takes memory, too.
MOST_BYTES, PART = 2 << 30, 4
#: How many nodes there may be until those are left out that are gone.
_FEW = 64


class Kept:
    """What is known of it.

    Attributes
    ----------
    nodes : list of weakref
        Nodes with large inputs, the oldest first.
    sizes : dict
        The large inputs of these, with their bytes, and of some that are gone.
    total : int
        The sum of `sizes`: no fewer bytes are kept alive.
    look_at : int
        How many nodes there are when they are looked through; 0 while they are.
    most : int
        The part of the device's memory, as it was found last.
    looking : bool
        Whether the small ones are being looked through.
    """

    __slots__ = ("nodes", "sizes", "total", "look_at", "most", "looking")

    def __init__(self) -> None:
        self.nodes: list[weakref.ref[Node]] = []
        self.sizes: dict[int, int] = {}
        self.total, self.look_at, self.most, self.looking = 0, _FEW, 0, False


kept = Kept()


# Imported when a device is full, which most programs never see.
def _relieve(device: Device, nbytes: int) -> str | None:
    from ..storage import spilling

    kept.most = 0       # the device's limit may be lower than it was
    return spilling.relieve(device, nbytes)


def _relieve_host(nbytes: int) -> str | None:
    from ..storage import spilling

    return spilling.relieve_host(nbytes)


base.relief.append(_relieve)
mirror.relief.append(_relieve_host)


def note(node: Node, ref: Any = None) -> None:
    """Keep within the bound of bytes; `ref` is a reference to the node.

    All nodes are looked through only if the bytes could be too many: what was counted at the last look, and what came
    since.
    """
    with holding(lock):
        kept.nodes.append(ref or weakref.ref(node))
        _count(node)
        # While they are looked through, this is a finaliser's: it is seen at the end.
        if kept.look_at and (kept.total > min(MOST_BYTES, kept.most) or len(kept.nodes) >= kept.look_at):
            _look(node.device)


def note_many() -> None:
    """Keep within the bound of bytes what many results that wait have for small inputs."""
    with holding(lock):
        if not kept.looking:
            kept.looking = True
            try:
                _compute_oldest()
            finally:
                kept.looking = False


def _compute_oldest() -> None:
    storages = native.waiting()
    bound = min(MOST_BYTES, storages[0].device.total_memory() // PART) if storages else 0
    if len(storages) * 2 * LARGE <= bound:      # of an input or two each there can't be more
        return
    waiting = [(node, _small_inputs(node)) for storage in storages if (node := storage.pending) is not None]
    readers = Counter(name for _, inputs in waiting for name in inputs)
    sizes = {name: nbytes for _, inputs in waiting for name, nbytes in inputs.items()}
    excess = sum(sizes.values()) - bound
    for node, inputs in waiting:
        if excess <= 0:
            break
        if node.array is None:
            node.compute()
        readers.subtract(inputs)
        excess -= sum(sizes[name] for name in inputs if not readers[name])


def _small_inputs(node: Node) -> dict[int, int]:
    """The small arrays that a node is computed from, with the bytes that are kept alive of each."""
    found: dict[int, int] = {}
    nodes, seen = [node], {id(node)}
    while nodes:
        for operand in nodes.pop().operands:
            if isinstance(operand, Node):
                if operand.array is None and id(operand) not in seen:
                    seen.add(id(operand))
                    nodes.append(operand)
            elif isinstance(operand, Leaf) and (nbytes := getattr(operand.storage, "nbytes", 0)) < LARGE:
                found[id(operand.storage)] = nbytes
    return found


def _count(node: Node) -> None:
    for name, nbytes in node.large:
        more = nbytes - kept.sizes.get(name, 0)
        if more > 0:
            kept.sizes[name] = nbytes
            kept.total += more


def _compute_excess(device: Device) -> None:
    kept.most = device.total_memory() // PART
    waiting = [(ref, node) for ref in kept.nodes if (node := _waits(ref)) is not None]
    names = {name: nbytes for _, node in waiting for name, nbytes in node.large}
    excess = sum(names.values()) - min(MOST_BYTES, kept.most)
    while excess > 0 and waiting:
        _, node = waiting.pop(0)
        if node.array is None:
            node.compute()
        left = {name for _, n in waiting if n.array is None for name, _ in n.large}
        excess -= sum(names.pop(name) for name in list(names) if name not in left)


def _look(device: Device) -> None:
    kept.look_at = 0
    try:
        _compute_excess(device)
    finally:
        kept.nodes[:] = [ref for ref in kept.nodes if _waits(ref) is not None]
        kept.sizes.clear()
        kept.sizes.update((name, nbytes) for ref in kept.nodes if (n := ref()) is not None for name, nbytes in n.large)
        kept.total, kept.look_at = sum(kept.sizes.values()), 2 * len(kept.nodes) + _FEW


def _waits(ref: weakref.ref[Node]) -> Node | None:
    """A node that is to be computed some day, for somebody who holds it."""
    node = ref()
    if node is None or node.array is not None or node.storage is None or node.storage() is None:
        return None
    return node
