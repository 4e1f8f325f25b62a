"""Recorded element-wise work: nodes, who waits for what, and the computing of it.

A node is the result of one operator. Its operands are other nodes, device arrays (`Leaf`) or numbers. A storage whose
bytes are not computed yet holds its node (``storage.pending``); the node knows the storage weakly, so that a result
that nobody holds any more is not kept, only passed through.

Nothing but time may tell recorded work from work done at once:

- A leaf's storage is current on the device, with no alias or pointer outside, when it is recorded, and knows the nodes
  that read it (``storage.readers``): whoever is about to change its bytes has them computed first.
- A node that is asked for takes all that it needs along in one kernel, and intermediates that somebody holds come
  from the same kernel.
- What is recorded is bounded: in steps of one kernel, and in bytes of inputs that are kept for it.

One lock for all graphs. Computing never waits for a storage's lock, so a thread that holds one may compute.
"""
from __future__ import annotations

import contextlib
import math
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from .program import Operand, Program, Step

if TYPE_CHECKING:
    from ..devices import Device
    from ..storage import Storage

__all__ = ["LARGE", "MOST_STEPS", "Leaf", "Node", "note_large", "note_readers"]

#: Steps in one kernel at most.
MOST_STEPS = 40
#: Inputs of a node from this size on are counted.
LARGE = 16 << 20
#: Bytes of counted inputs that recorded work may keep alive.
MOST_BYTES = 2 << 30
_MOST_READERS = 16

_lock = threading.RLock()
#: Nodes with large inputs, the oldest first.
_large: deque[weakref.ref[Node]] = deque()


class Leaf:
    """A device array that recorded work reads, and its storage, which knows the stream of its last write."""

    __slots__ = ("array", "storage", "mode")

    def __init__(self, array: Any, storage: Storage, mode: str) -> None:
        self.array, self.storage, self.mode = array, storage, mode


class Node:
    """The result of one operator: `step` on `operands`, which are nodes, leaves and NumPy scalars.

    It is dense, C-contiguous or (`fortran`) Fortran-contiguous.
    """

    __slots__ = ("device", "step", "operands", "shape", "fortran", "steps", "large", "storage", "readers", "array",
                 "stream", "passed", "__weakref__")

    def __init__(self, device: Device, step: Step, operands: tuple[Any, ...], shape: tuple[int, ...], fortran: bool,
                 steps: int, large: Any) -> None:
        self.device, self.step, self.operands, self.shape, self.fortran = device, step, operands, shape, fortran
        self.steps = steps      # with those of its operands, at most
        self.large = large      # storages of large inputs that it keeps alive
        self.storage: weakref.ref[Storage] | None = None
        self.readers: Any = None
        self.array: Any = None  # once it is computed,
        self.stream: Any = None     # on this stream
        self.passed = False     # whether a reduction was computed through it

    def compute(self) -> Any:
        """The device array, computed now if it wasn't."""
        if self.array is None:
            with _lock:
                if self.array is None:
                    _compute(self)
        return self.array


def note_readers(node: Node) -> None:
    """Let the operands of a new node know it."""
    ref = weakref.ref(node)
    for operand in node.operands:
        kind = type(operand)
        read = operand.storage if kind is Leaf else operand if kind is Node else None
        if read is None:
            continue
        readers = read.readers
        if readers is None:
            read.readers = [ref]
        else:
            count = len(readers)
            if count >= _MOST_READERS and not count & (count - 1):  # at powers of two: all may be alive, however many
                readers[:] = [r for r in readers if (n := r()) is not None and n.array is None]
            readers.append(ref)


def note_large(node: Node) -> None:
    """Keep within the bound of bytes: the oldest work that keeps large inputs alive is done now.

    What nobody holds does not count: it goes with those that read it.
    """
    with _lock:
        _large.append(weakref.ref(node))
        waiting = [(ref, other) for ref in _large
                   if (other := ref()) is not None and other.array is None and other.storage() is not None]
        kept = {id(storage): storage.nbytes for _, other in waiting for storage in other.large}
        excess = sum(kept.values()) - MOST_BYTES
        while excess > 0 and waiting:
            _, other = waiting.pop(0)
            if other.array is None:
                other.compute()
            left = {id(storage) for _, n in waiting if n.array is None for storage in n.large}
            excess -= sum(kept.pop(name) for name in list(kept) if name not in left)
        _large.clear()
        _large.extend(ref for ref, other in waiting if other.array is None)


# -- computing ---------------------------------------------------------------------------------

def _compute(node: Node) -> None:
    order = _needed(node)
    device = node.device
    outputs = [n for n in order if n is node or n.storage is not None and n.storage() is not None]
    program, arguments, sources = _program(order, outputs)
    first = sources[0].array if sources else None
    with contextlib.nullcontext() if first is None else device.on(device.device_of(first)):
        stream = device.stream()
        crossed = [source.stream for source in sources if type(source) is Node and source.stream != stream]
        for other in crossed:
            device.wait(other)
        for source in sources:
            if type(source) is Leaf:
                source.storage.join()
        kernel = device.kernel(program, math.prod(node.shape))
        if kernel is not None:
            results = kernel(arguments, node.shape, node.fortran)
        else:
            results = [_laid_out(device, array, node.fortran) for array in program.run(arguments)]
        for other in crossed:
            device.order(stream, other)     # its memory goes back there, not while this stream still reads it
    for n, array in zip(outputs, results):
        n.stream, n.array = stream, array
        storage = None if n.storage is None else n.storage()
        if storage is not None and storage.pending is n:
            storage.computed(array, stream, n.readers)
        n.operands = n.large = ()


def _laid_out(device: Device, array: Any, fortran: bool) -> Any:
    """The array in the order that was promised for it."""
    if device.contiguity(array)[fortran]:
        return array
    return device.xp.asfortranarray(array) if fortran else device.xp.ascontiguousarray(array)


def _needed(node: Node) -> list[Node]:
    """The nodes of one kernel that gives `node`, operands first. Operands of another form are computed before."""
    shape, fortran = node.shape, node.fortran
    order: list[Node] = []
    seen = {id(node)}
    # Not a recursive function: as a closure it would be a cycle, which keeps arrays until a garbage collection.
    path = [(node, iter(node.operands))]
    while path:
        n, operands = path[-1]
        for operand in operands:
            if type(operand) is Node and operand.array is None and id(operand) not in seen:
                if operand.shape == shape and operand.fortran == fortran:
                    seen.add(id(operand))
                    path.append((operand, iter(operand.operands)))
                    break
                operand.compute()
        else:
            order.append(n)
            path.pop()
    return order


def _program(order: list[Node], outputs: list[Node]) -> tuple[Program, list[Any], list[Leaf | Node]]:
    """The program of these nodes, its arguments, and where the arrays among them come from."""
    arguments: list[Any] = []
    sources: list[Leaf | Node] = []
    inputs: list[Operand] = []
    numbers: dict[int, int] = {}
    within = {id(n) for n in order}
    ndim = 0
    for n in order:
        for operand in n.operands:
            kind = type(operand)
            name = id(operand.array) if kind is Leaf else id(operand)
            if name in within or name in numbers:
                continue
            numbers[name] = len(arguments)
            if kind is Leaf:
                sources.append(operand)
                arguments.append(operand.array)
                inputs.append(Operand(operand.array.dtype, operand.mode))
                if operand.mode == "strided":
                    ndim = len(n.shape)
            elif kind is Node:
                sources.append(operand)
                arguments.append(operand.array)
                flat = operand.shape == n.shape and operand.fortran == n.fortran
                inputs.append(Operand(operand.step.output, "flat" if flat else "strided"))
                if not flat:
                    ndim = len(n.shape)
            else:
                arguments.append(operand)
                inputs.append(Operand(operand.dtype, "value"))
    for position, n in enumerate(order):
        numbers[id(n)] = len(arguments) + position
    steps = tuple((n.step, tuple(numbers[id(o.array) if type(o) is Leaf else id(o)] for o in n.operands))
                  for n in order)
    return Program(tuple(inputs), steps, tuple(numbers[id(n)] for n in outputs), ndim), arguments, sources
