"""The simulated hardware: memory, streams and clocks.

There is one of it in a process, as there is one set of GPUs.  Its memory is NumPy's, so every address is real and
stable, but only the simulated device's own code ever looks at it.

Work is computed at once, in the order in which it is issued.  What a real device would still be busy with is kept as
vector clocks: each stream counts its work, and knows up to which count it has waited for every other stream.  With
``hardware.delay`` set, a read of something that its stream has not waited for yields wrong bytes (`poisoned`).
"""
from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib import array_utils

from ...errors.inspection import Unique, once_made

UNIT = 512
"""CuPy's pool hands out memory in multiples of this many bytes, and counts them against its limit."""


class OutOfMemoryError(MemoryError):
    """An allocation went over the simulated memory's limit; worded as CuPy words it."""

    def __init__(self, size: int, total: int, limit: int) -> None:
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes, "
                         f"limit set to: {limit:,} bytes).")


class DeviceError(RuntimeError):
    """A fault of the simulated device, as ``CUDARuntimeError`` is one of CUDA's.

    `lasting`: all later work fails in this process.
    """

    lasting = False


class Memory(Unique):
    """One allocation of device memory, or a loan of one.

    `root` is the NumPy array that owns the bytes, `device` the number of the device on which they lie.  A loan has a
    `token`, which lives as long as it does, and the allocation as its `home`; who has used it when is kept there, and
    a weak reference to the `owner` that has claimed it.
    """

    __slots__ = ("__weakref__", "_start", "device", "lender", "owner", "readers", "root", "token", "writer")

    writer: tuple[Any, int]
    readers: dict[Any, int]
    token: object

    def __init__(self, root: np.ndarray, device: int) -> None:
        self.root = root
        self.device = device
        self.lender: Memory | None = None
        self.owner: weakref.ref[Any] | None = None

    def lend(self, token: object) -> Memory:
        """A loan of this memory."""
        loan = Memory(self.root, self.device)
        loan.lender, loan.token = self.home, token
        return loan

    @property
    def home(self) -> Memory:
        """The allocation itself."""
        return self if self.lender is None else self.lender

    @property
    def start(self) -> int:
        """Address of the first byte."""
        try:
            return self._start
        except AttributeError:
            self._start: int = byte_bounds(self.root)[0]
            return self._start

    @property
    def ptr(self) -> int:
        """Address of the first byte; from now on arrays can be made of raw addresses in this memory."""
        return hardware.hand_out(self)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.root.nbytes


class CountedMemory(Memory):
    """Memory that counts against the limit for as long as it lives."""

    __slots__ = ()

    def __init__(self, root: np.ndarray, device: int) -> None:
        Memory.__init__(self, root, device)
        hardware.reserve(self, root.nbytes)

    def __del__(self) -> None:
        hardware.live.pop(id(self), None)


class Stream:
    """A queue of work.  Usable as a context, which makes it the current stream of this thread."""

    _numbers = iter(range(3, 1 << 62))  # CUDA gives 0, 1 and 2 a meaning of their own.

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int = 0, *,
                 device_id: int | None = None) -> None:
        null = null or ptds     # a thread's own null stream: there is one for all
        self.device_id = hardware.current_device() if device_id is None else device_id
        self.ptr = 0 if null else next(self._numbers)
        self.non_blocking = non_blocking
        # Every name for a device's null stream means the same queue.
        self.clock: dict[Any, int] = hardware.null_clocks.setdefault(self.device_id, {}) if null else {}
        hardware.streams.add(self)

    @property
    def key(self) -> tuple[int, int]:
        """What the clocks know this stream by."""
        return self.device_id, self.ptr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @once_made("ptr")
    def __repr__(self) -> str:
        return f"<Stream {self.ptr} (device {self.device_id})>"

    def __enter__(self) -> Stream:
        if self.device_id != hardware.current_device():
            raise RuntimeError(f"The device of the stream ({self.device_id}) does not match the current device")
        hardware.local.outer.append(hardware.current_stream())
        return self.use()

    def __exit__(self, *exc_info: object) -> None:
        hardware.local.outer.pop().use()

    def use(self) -> Stream:
        """Make this the current stream of this thread on its device."""
        hardware.local.streams[self.device_id] = self
        return self

    def record(self, event: Event | None = None) -> Event:
        """An event that stands for all work issued so far."""
        if hardware.broken:
            hardware.check()
        event = Event() if event is None else event
        event.clock = dict(self.clock)
        event.seconds = time.perf_counter()
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work on this stream come after the event."""
        merge(self.clock, event.clock)

    def synchronize(self) -> None:
        """Let the host wait for all work issued so far."""
        hardware.check()
        merge(hardware.host_clock, self.clock)

    @property
    def done(self) -> bool:
        """Whether the host has waited for all work: until then nobody can know."""
        return all(hardware.host_clock.get(key, 0) >= tick for key, tick in self.clock.items())

    def launch_host_func(self, callback: Callable[[Any], Any], arg: Any) -> None:
        """Call a function of the host's after the work issued so far: at once, as all work is done at once."""
        callback(arg)

    def add_callback(self, callback: Callable[..., Any], arg: Any) -> None:
        """Call a function with this stream, an error number (0: none) and an argument after the work so far."""
        callback(self, 0, arg)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr


class _Null:
    """The null stream of the current device, as an attribute of the class."""

    def __get__(self, stream: Stream | None, owner: type) -> Stream:
        return hardware.null_stream(hardware.current_device())


Stream.null = Stream.ptds = _Null()  # type: ignore[attr-defined]


class Event:
    """A point in a stream."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.clock: dict[Any, int] = {}
        self.seconds = 0.0

    @property
    def done(self) -> bool:
        """Whether the host has waited for the event."""
        return all(hardware.host_clock.get(key, 0) >= tick for key, tick in self.clock.items())

    def record(self, stream: Stream | None = None) -> None:
        """Stand for all work issued so far on `stream`."""
        (stream or hardware.current_stream()).record(self)

    def synchronize(self) -> None:
        """Let the host wait for the event."""
        merge(hardware.host_clock, self.clock)


class _Local(threading.local):
    """What each thread has of its own."""

    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, Stream] = {}
        self.outer: list[Stream] = []


def _whole_number(variable: str, text: str | None) -> int:
    """The number that a variable of the environment has as its text; 0 without one."""
    try:
        return int(text or 0)
    except ValueError:
        raise ValueError(f"{variable} must be a whole number, not {text!r}") from None


class Hardware:
    """The simulated devices of this process.

    There are `count` of them, with `limit` bytes each (None: as many as the host has). `delay`: work that was not
    waited for shows as wrong values. `broken`: a kernel has failed, and everything fails from then on. `plain` is true
    while none of these, nor a fork, asks for the slow path.
    """

    def __init__(self) -> None:
        self.count = max(1, _whole_number("LAZYARRAY_SIMULATED_DEVICES", os.environ.get("LAZYARRAY_SIMULATED_DEVICES")))
        self.delay = (os.environ.get("LAZYARRAY_SIMULATED_DELAY") or "0") != "0"
        self.limit = _whole_number("LAZYARRAY_SIMULATED_LIMIT", os.environ.get("LAZYARRAY_SIMULATED_LIMIT")) or None
        self.used = False
        self.several = False    # more than one of them is used
        self.forked = False
        self.broken = False
        self.local = _Local()
        self.null_streams: dict[int, Stream] = {}
        self.null_clocks: dict[int, dict[Any, int]] = {}
        self.host_clock: dict[Any, int] = {}
        self.streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self.live: dict[int, tuple[int, int]] = {}
        self.handed_out: weakref.WeakValueDictionary[tuple[int, int], Memory] = weakref.WeakValueDictionary()
        self.allocated: Callable[[Callable[[int], None], int, type[MemoryError]], None] | None = None
        self.settle()

    def settle(self) -> None:
        """Recompute what the settings imply."""
        self.plain = not (self.delay or self.count > 1 or self.forked or self.broken)
        self.several = self.several and self.count > 1
        self.memory_type: type[Memory] = Memory if self.limit is None else CountedMemory
        if self.limit is None:
            self.live.clear()       # what outlives a limit does not count against the next

    def current_device(self) -> int:
        """This thread's current device."""
        return 0 if self.count == 1 else self.local.device

    def current_stream(self) -> Stream:
        """This thread's current stream on its current device."""
        device = self.current_device()
        stream = self.local.streams.get(device)
        return self.null_stream(device) if stream is None else stream

    def null_stream(self, device: int) -> Stream:
        """The stream that every thread starts with."""
        stream = self.null_streams.get(device)
        if stream is None:
            stream = self.null_streams.setdefault(device, Stream(null=True, device_id=device))
        return stream

    def streams_of(self, device: int) -> list[Stream]:
        """Every stream of a device that is alive."""
        return [stream for stream in list(self.streams) if stream.device_id == device]

    def stream_named(self, pointer: int) -> Stream:
        """The stream on the current device that a protocol names by its pointer; 1 is the null stream."""
        for stream in self.streams_of(self.current_device()):
            if stream.ptr == pointer:
                return stream
        if pointer in (0, 1):
            return self.null_stream(self.current_device())
        raise DeviceError("cudaErrorInvalidResourceHandle: invalid resource handle")

    def check(self) -> None:
        """Refuse work in a process that was forked after the device was used, or whose kernel failed, as CUDA does."""
        if self.forked:
            raise DeviceError("cudaErrorInitializationError: initialization error")
        if self.broken:
            error = DeviceError("cudaErrorIllegalAddress: an illegal memory access was encountered")
            error.lasting = True
            raise error

    def used_bytes(self, device: int) -> int:
        """Bytes in use on a device, of what was allocated since a limit was set."""
        return sum(size for owner, size in list(self.live.values()) if owner == device)

    def reserve(self, memory: Memory, nbytes: int) -> None:
        """Count an allocation against the limit; where it is passed, other arrays may move to the host."""
        allocate = functools.partial(self.count_in, memory)
        if self.allocated is None:
            allocate(nbytes)
        else:
            self.allocated(allocate, nbytes, OutOfMemoryError)

    def count_in(self, memory: Memory, nbytes: int) -> None:
        """Count an allocation, if it is within the limit."""
        size = -(-nbytes // UNIT) * UNIT
        total = self.used_bytes(memory.device)
        if self.limit is not None and total + size > self.limit:
            raise OutOfMemoryError(size, total, self.limit)
        self.live[id(memory)] = memory.device, size

    def hand_out(self, memory: Memory) -> int:
        """The address of a memory, which `memory_at` knows from now on."""
        self.handed_out[memory.start, id(memory)] = memory
        return memory.start

    def find_memory(self, low: int, high: int) -> Memory | None:
        """The memory in which a range of addresses lies, if it was handed out."""
        for (start, _), memory in list(self.handed_out.items()):
            if start <= low and high <= start + memory.size:
                return memory
        return None

    def memory_at(self, low: int, high: int) -> Memory:
        """The memory in which a range of handed-out addresses lies."""
        memory = self.find_memory(low, high)
        if memory is None:
            raise DeviceError("cudaErrorInvalidValue: invalid argument")
        return memory


def byte_bounds(array: np.ndarray) -> tuple[int, int]:
    """Lowest address of an array's bytes, and one past the highest; equal if it has none."""
    return array_utils.byte_bounds(array) if array.size else (array.__array_interface__["data"][0],) * 2


def merge(clock: dict[Any, int], other: dict[Any, int]) -> None:
    """Let `clock` know all that `other` knows."""
    for key, tick in list(other.items()):
        if clock.get(key, 0) < tick:
            clock[key] = tick


def start_work(stream: Stream) -> int:
    """Count one more piece of work on a stream.  All of it comes after what the host has waited for."""
    merge(stream.clock, hardware.host_clock)
    tick = stream.clock.get(stream.key, 0) + 1
    stream.clock[stream.key] = tick
    return tick


def unseen(clock: dict[Any, int], memory: Memory, writing: bool) -> bool:
    """Whether a stream with this clock races with earlier work on `memory`: writes, and reads too if it writes."""
    home = memory.home
    writer = getattr(home, "writer", None)
    if writer is not None and clock.get(writer[0], 0) < writer[1]:
        return True
    return writing and any(clock.get(key, 0) < tick for key, tick in getattr(home, "readers", {}).items())


def note_write(memory: Memory, stream: Stream, tick: int) -> None:
    """Record that work `tick` of `stream` wrote `memory`."""
    memory.home.writer = stream.key, tick
    memory.home.readers = {}


def note_read(memory: Memory, stream: Stream, tick: int) -> None:
    """Record that work `tick` of `stream` read `memory`."""
    home = memory.home
    if not hasattr(home, "readers"):
        home.readers = {}
    home.readers[stream.key] = tick


def poisoned(array: np.ndarray) -> np.ndarray:
    """A copy with every value wrong: what a read that did not wait gets."""
    if array.dtype.kind == "b":
        return np.logical_not(array)
    copy = np.array(array, order="C", ndmin=1)
    np.invert(copy.view(np.uint8), out=copy.view(np.uint8))
    return copy.reshape(array.shape)


hardware = Hardware()


def _after_fork() -> None:
    hardware.forked = hardware.forked or hardware.used
    hardware.settle()
    if hardware.forked:
        hardware.current_device = hardware.check    # type: ignore[assignment]  # CUDA does not even tell the device


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
