"""The device that is there without a GPU.

It behaves as CuPy does where a program can tell: device arrays refuse to turn into NumPy arrays, only CuPy's
functions exist and only with CuPy's parameters, reductions and integer indexes give 0-d arrays, index arrays wrap
around, dtypes that CuPy can't hold are refused, and memory can run out.  What it computes, NumPy computes; so
rounding and the warnings for floating point errors are NumPy's, where CuPy rounds its own way and never warns.

Environment: ``LAZYARRAY_SIMULATED_DEVICES`` (how many), ``LAZYARRAY_SIMULATED_LIMIT`` (bytes of memory in each) and
``LAZYARRAY_SIMULATED_DELAY=1`` (work that is not waited for shows as wrong values).
"""
from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from types import FrameType
from typing import Any, ClassVar

import numpy as np

from ...errors import LazyArrayError
from ...events.callers import module_of
from ..base import HERE, HOLDABLE, Device, Token, flat_bytes
from ..operations import Factors, Selected
from ..program import Program, reformed
from . import dlpack
from .array import SimulatedArray, fill_from_host, seen_by
from .cuda import HOST_MEMORY, DeviceContext
from .execution import as_device, can_hold, check_dtype, exports, launch, make, wrap_new
from .hardware import (
    DeviceError,
    Event,
    OutOfMemoryError,
    Stream,
    byte_bounds,
    hardware,
    note_read,
    note_write,
    poisoned,
    start_work,
    unseen,
)
from .indexing import rows
from .namespace import namespace
from .random import generator_of

_PACKAGE = __name__.rpartition(".")[0] + "."


class Region:
    """Host memory that a real device would lock; tests look at `alive`."""

    __slots__ = ("address", "size")

    #: (address, bytes) of all regions that were not released.
    alive: ClassVar[set[tuple[int, int]]] = set()

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size
        self.alive.add((address, size))

    def release(self) -> None:
        self.alive.remove((self.address, self.size))


def _place(view: np.ndarray) -> tuple[Any, ...]:
    return view.__array_interface__["data"][0], view.shape, view.strides


class _Fused:
    """A program as one kernel: it walks memory, and gives new arrays of the form that is asked for.

    So what is around kernels is the same as on a GPU; what is computed is what the steps compute one by one.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        dtypes = [operand.dtype for operand in program.inputs] + [step.output for step, _ in program.steps]
        self._dtypes = [dtypes[number] for number in program.outputs]

    def __call__(self, arguments: list[Any], shape: tuple[int, ...], fortran: bool) -> list[SimulatedArray]:
        size = math.prod(shape)
        for (_, mode), one in zip(self._program.inputs, arguments):
            if (type(one) is SimulatedArray) is (mode == "value"):
                raise RuntimeError(f"a kernel takes a {mode} operand, not a {type(one).__name__}")
            if mode == "flat" and not (one.size == size and (one._c_contiguous or one._f_contiguous)):
                raise RuntimeError("a kernel would read memory in an order that it does not lie in")
            if mode == "strided":
                np.broadcast_to(one._view, shape)
            if mode == "table" and not one._c_contiguous:
                raise RuntimeError("a kernel would take elements of memory that does not lie in C order")
        memories = [one._memory for one in arguments if type(one) is SimulatedArray]
        results = []
        for result, dtype in zip(self._program.run(arguments, (shape, fortran), namespace), self._dtypes):
            if type(result) is not SimulatedArray or result._memory in memories or result.shape != shape or (
                    result.dtype != dtype) or not (result._f_contiguous if fortran else result._c_contiguous):
                view = result._view if type(result) is SimulatedArray else result
                result = wrap_new(np.array(np.broadcast_to(view, shape), dtype, order="F" if fortran else "C"))
            results.append(result)
        return results


class _Written:
    """A program whose last output goes to memory that is there, as a kernel writes it: at once, in no order."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def launch(self, arguments: list[Any], shape: tuple[int, ...], fortran: bool) -> tuple[Any, ...]:
        """What is left to do, without Python code: a function, where it writes to, what; and the other outputs."""
        target = arguments[-1]._view
        for (_, mode), one in zip(self._program.inputs, arguments[:-1]):
            if type(one) is SimulatedArray and np.may_share_memory(one._view, target) and (
                    mode == "table" or _place(one._view) != _place(target)):
                raise RuntimeError("a kernel would read what it has written")
        *outputs, value = [one._view if type(one) is SimulatedArray else one
                           for one in self._program.run(arguments, (shape, fortran), namespace)]
        if target.shape != shape or self._program.inputs[-1].mode == "flat":     # a kernel walks memory
            target = reformed(arguments[-1], shape, fortran)._view
        made = [wrap_new(np.array(np.broadcast_to(out, shape), order="F" if fortran else "C")) for out in outputs]
        return np.copyto, target, value, made

    def prepare(self, arguments: list[Any], shape: tuple[int, ...], fortran: bool) -> bool:
        """Nothing has to be compiled."""
        return False


#: The longest matrix alone that has factors.
_LONGEST_ALONE = 32


class _Factors(Factors):
    """Matrices, and which of them are singular: the solution of such a one is not finite."""

    def __init__(self, a: SimulatedArray) -> None:
        self._a = a
        self.statuses = launch(_statuses, (a,), {}, ())

    def solution(self, b: SimulatedArray, turned: bool = False) -> SimulatedArray:
        return namespace.linalg.solve(self._a.swapaxes(-1, -2) if turned else self._a, b)

    def inverse(self) -> SimulatedArray:
        return namespace.linalg.inv(self._a)

    def determinants(self) -> tuple[SimulatedArray, SimulatedArray]:
        sign, log = namespace.linalg.slogdet(self._a)
        return sign, log


class _Selected:
    """`devices.operations.Selected`."""

    def __init__(self, mask: SimulatedArray, count: int) -> None:
        self._mask, self.count = mask, count

    def take(self, d: SimulatedArray, ndim: int) -> SimulatedArray:
        return launch(rows, (d, self._mask.reshape(d.shape[:ndim])), {}, ())

    def put(self, d: SimulatedArray, values: SimulatedArray) -> bool:
        launch(_put_rows, (d, self._mask, values), {}, (d,))
        return True

    def positions(self, shape: tuple[int, ...]) -> tuple[SimulatedArray, ...]:
        return namespace.nonzero(self._mask.reshape(shape))


def _put_rows(target: np.ndarray, mask: np.ndarray, values: np.ndarray) -> None:
    target[mask.reshape(target.shape[:target.ndim - values.ndim + 1])] = values


def _statuses(a: np.ndarray) -> np.ndarray:
    stack = a.reshape(-1, *a.shape[-2:])
    with np.errstate(all="ignore"):
        return ((np.linalg.slogdet(stack).sign == 0) | np.isnan(stack).any(axis=(1, 2))).astype(np.int32)


class SimulatedDevice(Device):
    """The simulated device of this process; its settings are those of the one simulated hardware."""

    name = "simulated"
    xp = namespace
    array_type = SimulatedArray
    faults = (OutOfMemoryError, DeviceError, LazyArrayError, MemoryError)
    compiles = False

    def __init__(self) -> None:
        hardware.used = True
        hardware.allocated = self.allocated
        self._alone: int | None = None  # references to a memory that nobody but one loan holds
        self.stream = hardware.current_stream  # type: ignore[method-assign]  # Spares the most frequent call a step.

    @property
    def count(self) -> int:  # type: ignore[override]
        """How many devices there are."""
        return 1 if hardware.forked else hardware.count

    @property
    def several(self) -> bool:  # type: ignore[override]
        return hardware.several

    @property
    def spread(self) -> bool:  # type: ignore[override]
        if not hardware.several and not hardware.forked and hardware.current_device() != self.sole:
            hardware.several = True
        return hardware.several

    def use_one(self) -> None:
        hardware.several = False

    def can_hold(self, dtype: np.dtype) -> bool:
        return can_hold(dtype)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> SimulatedArray:
        if not hardware.plain:
            hardware.check()
        if dtype not in HOLDABLE:
            check_dtype(dtype)
        return wrap_new(np.empty(shape, dtype))

    def kernel(self, program: Program, size: int) -> Any:
        """What writes in place has an order of its own; what else there is runs step by step where work is delayed."""
        if not hardware.plain:
            return None
        return _Written(program) if program.into else _Fused(program)

    def view(self, block: SimulatedArray, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None,
             offset: int) -> SimulatedArray:
        if 0 in shape:
            return make(np.ndarray(shape, dtype, buffer=block._view), block._memory)
        found = np.ndarray(shape, dtype, block._view, offset, strides)
        size = found.itemsize
        if size & (size - 1) == 0 and (found.__array_interface__["data"][0] % size or any(
                stride % size for n, stride in zip(found.shape, found.strides) if n > 1)):
            raise RuntimeError("misaligned address")    # as a kernel on the GPU would, which loses the context
        return make(found, block._memory)

    def block(self, d: SimulatedArray) -> tuple[SimulatedArray, int]:
        view, memory = d._view, d._memory
        flat = flat_bytes(memory.root)
        if view is memory.root:
            return make(flat, memory), 0
        low, high = byte_bounds(view)
        if low == high:
            return make(flat[:0], memory), 0
        begin = low - memory.start
        return make(flat[begin : begin + high - low], memory), view.__array_interface__["data"][0] - low

    def allocation(self, d: SimulatedArray) -> tuple[int, int, int]:
        memory = d._memory
        return memory.device, memory.start, memory.root.nbytes

    def root(self, d: SimulatedArray) -> SimulatedArray:
        return d if d._view is d._memory.root else make(d._memory.root, d._memory)

    def in_use(self) -> tuple[int, ...]:
        return (*range(self.count),) if self.several else super().in_use()

    def claim(self, d: SimulatedArray, owner: object) -> None:
        if d._memory.device != self.sole:
            hardware.several = True
        if not d._view.size:
            return
        home = d._memory.home
        before = home.owner
        if before is not None and before() is not None:
            raise DeviceError(f"a second storage over the memory of a device array of shape {d.shape}")
        home.owner = weakref.ref(owner)

    def extent(self, d: SimulatedArray) -> tuple[int, int]:
        view, memory = d._view, d._memory
        if view is memory.root:
            return memory.start, memory.start + view.nbytes
        return byte_bounds(view)

    def first(self, d: SimulatedArray) -> int:
        return d._memory.start if d._view is d._memory.root else d._view.__array_interface__["data"][0]

    def contiguity(self, d: SimulatedArray) -> tuple[bool, bool]:
        flags = d._view.flags
        return flags.c_contiguous, flags.f_contiguous

    def contiguous(self, d: SimulatedArray) -> SimulatedArray:
        return d if d._view.flags.c_contiguous else namespace.ascontiguousarray(d)

    def selected(self, mask: SimulatedArray) -> Selected:
        return _Selected(mask.copy(), int(launch(np.count_nonzero, (mask,), {}, ()).get()))

    def factors(self, a: SimulatedArray) -> Factors | None:
        """Those of stacks and short matrices: one long matrix is its library's, as it is of very long ones on a GPU."""
        return _Factors(a.copy()) if a.ndim > 2 or a.shape[-1] <= _LONGEST_ALONE else None

    def triangular(self, a: SimulatedArray) -> Factors | None:
        return _Factors(a.copy())

    def upload(self, source: np.ndarray, target: SimulatedArray) -> None:
        fill_from_host(target, source)

    def upload_ranges(self, source: np.ndarray, target: SimulatedArray, ranges: Iterable[tuple[int, int]]) -> None:
        for start, stop in ranges:
            fill_from_host(make(target._view[start:stop], target._memory), source[start:stop])

    def download(self, source: SimulatedArray, target: np.ndarray) -> None:
        if hardware.plain:
            target[...] = source._view
        else:
            source.get(out=target)

    def download_begin(self, source: SimulatedArray, target: np.ndarray, region: Any = None) -> Callable[[], None]:
        stream = hardware.current_stream()
        found = seen_by(stream, source, False).copy()
        note_read(source._memory, stream, stream.clock.get(stream.key, 0))
        event = stream.record()

        def wait() -> None:
            hardware.check()
            event.synchronize()
            target[...] = found

        target[...] = poisoned(found)
        return wait

    def download_rows(self, source: SimulatedArray, target: np.ndarray, first: int, run: int,
                      levels: list[tuple[int, int]]) -> bool:
        if run < 16:
            return False
        strides, shape = zip(*levels[::-1], (1, run))
        view = np.ndarray(shape, np.uint8, target, first, strides)
        view[...] = make(np.ndarray(shape, np.uint8, source._view, first, strides), source._memory).get()
        return True

    def region(self, address: int, size: int) -> Region:
        return Region(address, size)

    def stream(self) -> Stream:
        return hardware.current_stream()

    def new_stream(self) -> Stream:
        return Stream(non_blocking=True)

    def stream_at(self, pointer: int) -> Stream:
        return hardware.stream_named(pointer)

    def order(self, earlier: Stream, later: Stream) -> None:
        if earlier != later:
            later.wait_event(earlier.record(Event(disable_timing=True)))

    def _finish_stream(self) -> None:
        hardware.current_stream().synchronize()

    def generator(self, host: np.random.Generator) -> Any:
        return generator_of(host)

    def wait_for_kernels(self) -> None:
        pass        # nothing is compiled

    def moment(self) -> float:
        return perf_counter()       # work is computed when it is issued

    def seconds_between(self, first: float, last: float) -> float:
        return last - first

    def busy(self, stream: Stream, frame: FrameType | None) -> bool:
        while frame is not None:
            if module_of(frame).startswith(_PACKAGE):
                return True     # the thread that issues work computes it
            frame = frame.f_back
        return False

    def device_of(self, d: SimulatedArray) -> int:
        return d._memory.device

    def number(self) -> int:
        return hardware.current_device()

    def total_memory(self) -> int:
        return hardware.limit or HOST_MEMORY

    def free_memory(self) -> int:
        return max(self.total_memory() - hardware.used_bytes(hardware.current_device()), 0)

    def on_current(self, *arrays: SimulatedArray) -> bool:
        current = hardware.current_device()
        return all(d._memory.device == current for d in arrays)

    def from_peer(self, d: SimulatedArray) -> SimulatedArray:
        hardware.check()
        stream = hardware.current_stream()
        with self.on(d._memory.device):
            owner = hardware.current_stream()
        self.order(owner, stream)
        tick = start_work(stream)
        source = poisoned(d._view) if hardware.delay and unseen(stream.clock, d._memory, False) else d._view
        note_read(d._memory, stream, tick)
        result = wrap_new(np.array(source, order="A", copy=True))
        note_write(result._memory, stream, tick)
        self.order(stream, owner)
        return result

    def on(self, device_id: int | None) -> AbstractContextManager[Any]:
        if hardware.count == 1 or device_id is None or device_id == hardware.current_device():
            return HERE
        return DeviceContext(device_id)

    def lend(self, d: SimulatedArray) -> tuple[SimulatedArray, Any]:
        token = Token(d._memory)
        return make(d._view, d._memory.lend(token)), token

    def counts_holders(self, d: SimulatedArray) -> bool:
        return d._memory.lender is None and d._memory.root.flags.owndata

    def held_elsewhere(self, token: Token) -> bool:
        memory = token.memory
        if memory.lender is not None or not memory.root.flags.owndata:
            return True     # another library's
        if self._alone is None:
            alone = self.lend(self.empty((1,), np.dtype(np.uint8)))
            self._alone = sys.getrefcount(alone[1].memory)
        return sys.getrefcount(token.memory) - 1 > self._alone      # 1: the name `memory`

    def holdings(self, d: SimulatedArray) -> list[tuple[int, Any]]:
        memory = d._memory
        return [(id(d), memory), *([] if memory.lender is None else [(id(memory), memory.lender)])]

    def from_foreign(self, obj: Any) -> SimulatedArray | None:
        if exports(obj):
            return as_device(obj)
        place = getattr(obj, "__dlpack_device__", None)
        if place is not None and place()[0] == dlpack.CUDA:
            return dlpack.take(obj)
        return None

    def to_torch(self, d: SimulatedArray) -> Any:
        return dlpack.ForHostCode(d)

    def from_torch(self, tensor: Any) -> SimulatedArray | None:
        return None if tensor.device.type != "cpu" else dlpack.adopt(tensor.numpy())

    def library(self, path: str) -> Any:
        from .libraries import library  # few programs ask for libraries

        return library(path)

    def computes_with(self, kind: type) -> bool:
        from .libraries import SimulatedSparse

        return issubclass(kind, SimulatedSparse)

    def is_lasting(self, error: BaseException) -> bool:
        return isinstance(error, DeviceError) and error.lasting

    # For tests.

    def limited(self, nbytes: int | None) -> AbstractContextManager[None]:
        """A context in which memory allocated in it may not pass `nbytes` on each device."""
        return _setting("limit", nbytes)

    def delayed(self, delay: bool = True) -> AbstractContextManager[None]:
        """A context in which a read that has not waited for the write yields wrong values."""
        return _setting("delay", delay)

    @contextmanager
    def broken(self) -> Iterator[None]:
        """A context in which all work fails, as on a GPU after a kernel has read out of bounds."""
        try:
            with _setting("broken", True):
                yield
        finally:
            self.lost = None

    def with_count(self, count: int) -> AbstractContextManager[None]:
        """A context in which there are this many devices."""
        return _setting("count", count)


@contextmanager
def _setting(name: str, value: Any) -> Iterator[None]:
    before = getattr(hardware, name)
    setattr(hardware, name, value)
    hardware.settle()
    try:
        yield
    finally:
        setattr(hardware, name, before)
        hardware.settle()
