"""Recorded element-wise work: nodes, who waits for what, and the computing of it.

A node is the result of one operator. Its operands are other nodes, device arrays (`Leaf`) or numbers. A storage whose
bytes are not computed yet holds its node (``storage.pending``); the node knows the storage weakly, so that a result
that nobody holds any more is not kept, only passed through.

Nothing but time may tell recorded work from work done at once:

- A leaf's storage is current on the device, with no alias or pointer outside, when it is recorded, and knows the nodes
  that read it (``storage.readers``): whoever is about to change its bytes has them computed first.
- A node that is asked for takes all that it needs along in one kernel, and intermediates that somebody holds come
  from the same kernel.
- What is recorded is bounded: in steps of one kernel, and in bytes of inputs that are kept for it (`memory_bound`).

One lock for all graphs. Computing never waits for a storage's lock, so a thread that holds one may compute.
How nodes are made by plain calls, and computed, is in C: `_native/recording.c`.
"""
from __future__ import annotations

import math
import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from .. import _native
from ..devices.program import Step
from ..errors.inspection import Unique
from ..errors.interrupts import holding
from ..events import trace
from ..settings.options import current as current_options
from . import host_execution

if TYPE_CHECKING:
    from ..devices import Device
    from ..storage.storage import Storage

__all__ = ["MOST_STEPS", "Leaf", "Node", "least_bytes", "lock", "native"]

#: Steps in one kernel at most.
MOST_STEPS = 40

#: One for all graphs: held by whoever computes.
lock = threading.RLock()
native: Any = _native.recording
#: Without the part in C nothing is recorded; nor in a forked child, which has lost the device if its parent used it.
_possible = native is not None


def least_bytes() -> int | None:
    """The bytes from which on work is recorded here, None if none is."""
    return current_options().defer_from if _possible else None


class Leaf:
    """A device array that recorded work reads, and its storage, which knows the stream of its last write.

    `mode` is "flat" if its elements lie in memory in the order of the result's, "table" if a step takes elements of it,
    which lie in C order, else "strided": it is broadcast to the shape of the node that reads it. One of a whole dense
    array may also know what a node knows of itself.

    `host`: what the array is a copy of: leaves of other ones are other inputs of a program, though they share a copy
    since they have the same bytes just now. A small ndarray, found by its bytes; True: each leaf is another input,
    since it depends on where the ndarray lies whether there is one copy or two; None, as of large ones.
    """

    __slots__ = ("array", "storage", "mode", "host", "shape", "fortran", "size", "dtype", "steps", "large")

    def __init__(self, array: Any, storage: Storage, mode: str, host: Any = None) -> None:
        self.array, self.storage, self.mode, self.host = array, storage, mode, host


class Node(Unique):
    """The result of one operator: `step` on `operands`, which are nodes, leaves and NumPy scalars.

    It is dense, C-contiguous or (`fortran`) Fortran-contiguous. An operand that is a node is read in the order of its
    elements in memory, whatever its shape; one of fewer elements is C-contiguous, and broadcast.
    """

    __slots__ = ("device", "step", "operands", "shape", "fortran", "steps", "large", "strided", "size", "dtype",
                 "storage", "readers", "array", "stream", "place", "passed", "described", "bounds", "__weakref__")
    lock = lock
    #: `sampling.sample`, which needs this class.
    sample: Any

    def __init__(self, device: Device, step: Step, operands: tuple[Any, ...], shape: tuple[int, ...], fortran: bool,
                 steps: int, large: Any, strided: bool = False, size: int | None = None) -> None:
        self.device, self.step, self.operands, self.shape, self.fortran = device, step, operands, shape, fortran
        self.steps = steps      # with those of its operands, at most
        self.large = large      # (identity, bytes) of the storages of large inputs that it keeps alive
        self.strided = strided      # an operand is read along the axes of `shape`
        self.size = math.prod(shape) if size is None else size
        self.dtype = step.output
        self.storage: weakref.ref[Storage] | None = None
        self.readers: Any = None
        self.array: Any = None      # once it is computed,
        self.stream: Any = None     # on this stream
        self.place: int | None = None       # the number of its device, if several were in use when it was recorded
        self.passed = 0             # how often a reduction was computed through it
        # By a few numbers: it needs nothing of the device.
        self.described = all(o.described if type(o) is Node else type(o) is not Leaf for o in operands)
        self.bounds: Any = None     # what its integers can be, as `known_ranges` has found out

    def compute(self) -> Any:
        """The device array, computed now if it wasn't."""
        if self.array is None:
            with holding(lock):
                if trace.ranges is None or self.array is not None:
                    self._compute()
                else:       # a profiler is attached
                    trace.ranges[0](f"lazyarray computes {self.steps} operations, ending with {self.step.name}")
                    try:
                        self._compute()
                    finally:
                        trace.ranges[1]()
        return self.array

    def number(self) -> int | None:
        """The number of the device that computes it; None: there is one in use, the current one."""
        return self.device.sole if self.place is None and self.device.spread else self.place

    def there(self) -> AbstractContextManager[Any]:
        """Context of work on the device that computes it."""
        return self.device.on(self.number())

    def _compute(self) -> None:
        try:
            if self.array is None and self.place is None and not self.device.spread:
                native.compute(self)
            elif self.array is None:
                with self.there():
                    native.compute(self)
        except self.device.faults as error:
            self.device.failed(error)
            raise

    def copied(self) -> Leaf | None:
        """What it is a copy of, if it waits and is nothing but the copy of one element."""
        operands, step = self.operands, self.step
        if self.array is None and len(operands) == 1 and self.size == 1 and type(leaf := operands[0]) is Leaf and (
                leaf.mode == "flat" and step.name == "astype" and step.inputs == (step.output,)):
            return leaf
        return None

    def on_host(self) -> Any:
        """NumPy's array of it, new, if the host is to compute it: it needs nothing of the device, and is small."""
        if not self.described:
            return None
        with holding(lock):
            return host_execution.value(self) if self.array is None else None

    def leave(self) -> bool:
        """Its storage has the bytes from elsewhere, and waits no more; False if it has them from here already."""
        with holding(lock):
            if self.array is None:
                self.storage = None
            return self.array is None

    def read_late(self, ref: weakref.ref[Node]) -> None:
        """Another thread computed it while a node that reads it was made: its storage gets that reader, too."""
        with holding(lock):
            home = None if self.storage is None else self.storage()
            if home is not None and home.pending is None and home.readers is not self.readers:
                native.note_reader(home, ref)


def _after_fork() -> None:
    global _possible
    lock.release()
    _possible = False
    if native is not None:
        native.stop()


if hasattr(os, "register_at_fork"):     # the child must not wait for what its parent's threads compute
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=_after_fork)
