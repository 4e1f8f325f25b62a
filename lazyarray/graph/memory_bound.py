"""What recorded work keeps alive: its inputs, whose bytes are bounded.

As soon as there are more, the oldest work is done. What nobody holds does not count: it goes with those that read it.
Large inputs are counted one by one; small ones are when many results wait, which the part in C tells, and then all of
the work is done: as many results may wait again before it tells the next time, and to compute them takes memory, too.

A bound on bytes is all there is. A thread that computed what had waited for a second gave nothing (measured on the
simulated device, the least CPU seconds of three processes, with and without it: kalman 0.148 and 0.153, lattice
Boltzmann 0.43 and 0.38, life 0.13 and 0.13, n-body 0.82 and 0.90, neural 0.28 and 0.28; 500 results held of inputs of
1 MiB that are gone 0.40 and 0.37, with a peak of 558 and 533 MiB; 200,000 tiny results held 3.41 and 3.42).
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..devices import base
from ..errors.interrupts import holding
from ..storage.mirror import mirror
from .node import Leaf, Node, lock, native

if TYPE_CHECKING:
    from ..devices import Device
    from ..storage.storage import Storage

__all__ = ["LARGE", "MOST_BYTES", "Kept", "kept", "note", "note_many"]

#: Inputs of a node from this size on are counted.
LARGE = 1 << 20
#: Bytes of counted inputs that recorded work may keep alive, and the part of the device's memory: inputs of recorded
#: work can't move to the host when the device is full, and to compute it takes memory, too.
MOST_BYTES, PART = 2 << 30, 4
#: How many inputs there may be until those are left out that are gone.
_FEW = 64


class Kept:
    """What is known of it.

    Attributes
    ----------
    sizes : dict
        The large inputs of recorded work, with their bytes, and those of some that is gone.
    total : int
        The sum of `sizes`: no more bytes are kept alive.
    look_at : int
        How many inputs there are when recorded work is looked through; 0 while it is.
    looking : bool
        Whether the small ones are being looked through.
    """

    __slots__ = ("sizes", "total", "look_at", "looking")

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.total, self.look_at, self.looking = 0, _FEW, False


kept = Kept()


# Imported when a device is full, which most programs never see.
def _relieve(device: Device, nbytes: int) -> str | None:
    from ..storage import spilling

    return spilling.relieve(device, nbytes)


def _relieve_host(nbytes: int) -> str | None:
    from ..storage import spilling

    return spilling.relieve_host(nbytes)


base.relief.append(_relieve)
mirror.relief.append(_relieve_host)


def note(node: Node) -> None:
    """Keep within the bound of bytes, with a node more, whose large inputs are not those of one of its operands.

    Recorded work is looked through only if the bytes could be too many: what was counted at the last look, and what
    came since. A loop that reads parts of the same arrays again and again has been counted.
    """
    sizes = kept.sizes
    for name, nbytes in node.large:
        if sizes.get(name, 0) < nbytes:     # more are known where another storage had that name, which is gone
            break
    else:
        return
    with holding(lock):
        _count(node)
        # While it is looked through, this is a finaliser's: it is seen at the end.
        if kept.look_at and (kept.total > _bound(node.device) or len(kept.sizes) >= kept.look_at):
            _look(node.device)


def _bound(device: Device) -> int:
    """How many bytes there may be; asked each time, as a program may limit the device's memory at any time."""
    return min(MOST_BYTES, device.total_memory() // PART)


def note_many() -> None:
    """Keep within the bound of bytes what many results that wait have for small inputs."""
    with holding(lock):
        if not kept.looking:
            kept.looking = True
            try:
                _compute_many()
            finally:
                kept.looking = False


def _compute_many() -> None:
    storages = native.waiting()
    bound = _bound(storages[0].device) if storages else 0
    if len(storages) * 2 * LARGE <= bound:      # of an input or two each there can't be more
        return
    nodes = _nodes_of(storages)
    sizes = {name: nbytes for node in nodes for name, nbytes in _small_inputs(node).items()}
    if sum(sizes.values()) > bound:
        for node in nodes:
            if node.array is None:
                node.compute()


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


def _nodes_of(storages: list[Storage]) -> list[Node]:
    """What these wait for."""
    nodes = [storage.pending for storage in storages]
    return [node for node in nodes if node is not None and node.array is None]


def _waiting() -> list[Node]:
    """What is recorded and not computed, for somebody who holds it, the oldest first."""
    return _nodes_of(native.waiting())


def _compute_excess(device: Device) -> None:
    waiting = [node for node in _waiting() if node.large]
    names = {name: nbytes for node in waiting for name, nbytes in node.large}
    excess = sum(names.values()) - _bound(device)
    while excess > 0 and waiting:
        node = waiting.pop(0)
        if node.array is None:
            node.compute()
        left = {name for n in waiting if n.array is None for name, _ in n.large}
        excess -= sum(names.pop(name) for name in list(names) if name not in left)


def _look(device: Device) -> None:
    kept.look_at = 0
    try:
        _compute_excess(device)
    finally:
        sizes = {name: nbytes for node in _waiting() for name, nbytes in node.large}
        kept.sizes.clear()
        kept.sizes.update(sizes)
        kept.total, kept.look_at = sum(sizes.values()), 2 * len(sizes) + _FEW
