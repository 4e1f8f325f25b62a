"""What the library asks of a device.

Every device offers these members; nothing else of it is used outside ``lazyarray.devices``.
"""
from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..errors import DeviceUnavailableError, LazyArrayError, NotOnDevice
from ..errors.inspection import Unique, once_made
from ..errors.interrupts import from_handler
from .operations import Operations

_T = TypeVar("_T")

HOLDABLE = frozenset(np.dtype(char) for char in "?bhilqBHILQefdFD")
"""The dtypes that device functions work with, all of native byte order (CuPy's `all_type_chars`)."""

#: What computes deferred work; `graph/waiting.py` adds itself.
deferred: list[Callable[[], object]] = []

#: What frees memory of a device that is full, for an allocation of so many bytes: None, or why nothing could be freed.
#: `graph/memory_bound.py` adds what does, `storage/spilling.py`.
relief: list[Callable[[Device, int], str | None]] = []

#: Bytes of an array up to which `Device.fetch_begin` takes it.
MOST_FETCHED = 128 << 10

HERE: AbstractContextManager[Any] = nullcontext()
"""The context of a device that is the current one already."""

FORKED = "this process was forked from one that had already used {}; start it by spawning instead"
"""The reason of a device that is lost in a forked child; in it, what had been used."""


def _no_stream() -> object:
    """What stands for the current stream where there is none: another object than every stream."""
    return _no_stream


class Token(Unique):
    """What a loan is recognised by: it dies with the last array made from it, and keeps the memory until then."""

    __slots__ = ("__weakref__", "memory")

    def __init__(self, memory: Any) -> None:
        self.memory = memory


class Diagnosis(NamedTuple):
    """Which device was chosen, and why.

    Attributes
    ----------
    device : str
        Name of the device that is used.
    state : str
        State of CUDA: "works", "missing", "broken", "no driver", "no gpu", "wrong driver" or "not asked".
    reason : str
        Why this device was chosen, in one sentence.
    advice : str
        What to do to use a GPU, or an empty string.
    expected : bool
        Whether a GPU was expected but can't be used: CuPy is installed, or there is a driver.
    """

    device: str
    state: str
    reason: str
    advice: str = ""
    expected: bool = False


LOST = ("a kernel or the hardware failed, and from then on every call of CUDA fails in this process ({}). Arrays that "
        "are current on the host can still be read, computed with there, and saved; what was on the device alone is "
        "lost. To use the device again, restart the process")
"""The reason of a device that is lost; in it, the error."""


def is_negative_zero(value: Any) -> bool:
    """Whether a scalar equals zero and is not all zero bits: CuPy, which clears memory for it, would lose its sign."""
    return bool(value == 0) and any(np.asarray(value).tobytes())


def flat_bytes(array: np.ndarray) -> np.ndarray:
    """The memory of a dense array, in whatever axis order, as one run of bytes."""
    if array.ndim > 1 and not array.flags.c_contiguous:
        array = array.transpose(sorted(range(array.ndim), key=lambda i: -array.strides[i]))
    return array.reshape(-1).view(np.uint8)


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that has the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class _Noting:
    """`Device.noting`: it has no state, so that threads share it."""

    __slots__ = ("_device",)

    def __init__(self, device: Device) -> None:
        self._device = device

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None:
            self._device.failed(error)


class Device(Operations):
    """Device memory, and a namespace of functions that compute in it."""

    #: "cuda" or "simulated".
    name: str
    #: The class of device arrays. They have the attributes of NumPy's, `_c_contiguous` and `_f_contiguous`.
    array_type: type
    #: Exceptions that mean that memory has run out or the device has failed, and lazyarray's own, such as
    #: `TransferError`. Running NumPy on the host instead would hide them.
    faults: tuple[type[BaseException], ...]
    #: How many devices there are.
    count: int
    #: Whether more than one is in use, as far as is known, and from then on for good. Until then all arrays are on the
    #: device with the number `sole`, and nobody has to ask where anything lies.
    several: bool = False
    #: The same, after a look at which one is the current device here: who makes or computes something here asks this.
    spread: bool = False
    sole = 0
    #: Whether copies to page-locked memory leave no marks in the kernel's tables of written pages.
    writes_unseen = False
    #: Whether there are kernels, some day, for recorded work; without them it is interpreted.
    compiles = True
    #: At which use of a program on few elements its kernel is made: what a program does once is not worth a compiler.
    fused_from = 3

    #: Why nothing can be done on it any more in this process, after an error that `is_lasting`.
    lost: str | None = None

    def use_one(self) -> None:
        """Forget that several devices were in use: for tests, once nothing lies on another than the `sole` one."""

    @once_made("count")
    def __repr__(self) -> str:
        return f"<lazyarray device {self.name!r}, count {self.count}>"

    @functools.cached_property
    def noting(self) -> AbstractContextManager[None]:
        """A context whose exceptions go through `failed`."""
        return _Noting(self)

    def is_lasting(self, error: BaseException) -> bool:
        """Whether all later work on the device will fail, in this process, as `error` says."""
        return False

    def failed(self, error: BaseException) -> None:
        """Take note of an exception that work on the device raised.

        Raises
        ------
        DeviceUnavailableError
            If the device can't be used any more, or never could in this process: then this is what users see.
        """
        if self.lost is None and self.is_lasting(error):
            self.lost = LOST.format(error)
        if isinstance(error, self.faults) and not isinstance(error, LazyArrayError) and (
                reason := self.usable()) is not None:
            raise DeviceUnavailableError(reason) from error

    def in_finaliser(self, work: Callable[..., object], *args: Any) -> None:
        """Call ``work(*args)``, which puts something in order when an object dies: in silence if the device is lost."""
        if self.usable() is None:
            try:
                work(*args)
            except self.faults as error:
                if self.lost is None and not self.is_lasting(error):
                    raise

    def refusal(self, error: Exception) -> NotOnDevice:
        """Why NumPy has to decide, where device code raised `error`; raised as it is if it is one of `faults`.

        So is what a signal handler raised while device code ran.
        """
        self.failed(error)
        if isinstance(error, self.faults) or from_handler(error):
            raise error
        return error if isinstance(error, NotOnDevice) else NotOnDevice(
            f"{type(error).__name__} on the device: {error}")

    @abstractmethod
    def can_hold(self, dtype: np.dtype) -> bool:
        """Whether arrays of this dtype can be on the device."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """A new C-contiguous array on the current device, its values undefined."""

    def allocated(self, allocate: Callable[[int], _T], nbytes: int, full: type[MemoryError]) -> _T:
        """``allocate(nbytes)``, tried again while it raises `full` and memory can be freed.

        Raises
        ------
        MemoryError
            `full`, with a note that says what was requested, and what is held.
        """
        while True:
            try:
                return allocate(nbytes)
            except full as error:
                reasons = self.relieve(nbytes)
                if None not in reasons:
                    for reason in filter(None, reasons):
                        error.add_note(reason)
                    raise

    def relieve(self, nbytes: int) -> list[str | None]:
        """Have memory freed for an allocation of `nbytes` bytes; for each way to do so None, or why it can't be."""
        return [free(self, nbytes) for free in relief]

    @abstractmethod
    def view(self, block: Any, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None,
             offset: int) -> Any:
        """An array over the memory of `block`, which is 1-D of uint8.

        `strides` (None for C-contiguous) and `offset` are in bytes, `offset` from the start of `block` to the first
        element.
        """

    @abstractmethod
    def block(self, d: Any) -> tuple[Any, int]:
        """A 1-D uint8 array over just the bytes from the lowest to the highest of `d`, and `d`'s offset in it."""

    @abstractmethod
    def allocation(self, d: Any) -> tuple[int, int, int]:
        """The memory allocation that `d` lies in: device number, address, bytes."""

    @abstractmethod
    def root(self, d: Any) -> Any:
        """The device array that `d` is a view of; `d` itself if it is no view."""

    def has_own_memory(self, d: Any) -> bool:
        """Whether no other device array looks at the memory of `d`, and `d` at all of it; False if unknown."""
        return self.root(d) is d

    def claim(self, d: Any, owner: object) -> None:
        """Note that a storage takes the memory of `d` for its own.

        The simulated device raises an error if a living storage has that memory: two independent storages would lose
        writes. A real device can't check that at no cost.
        """
        return None

    @abstractmethod
    def extent(self, d: Any) -> tuple[int, int]:
        """The lowest address of `d`'s own bytes, and one past the highest; equal if it has none."""

    @abstractmethod
    def first(self, d: Any) -> int:
        """The address of the first element of `d`."""

    @abstractmethod
    def contiguity(self, d: Any) -> tuple[bool, bool]:
        """Whether `d` is C-contiguous, and whether it is Fortran-contiguous."""

    @abstractmethod
    def contiguous(self, d: Any) -> Any:
        """`d` itself if it is C-contiguous, else a C-contiguous copy."""

    def assign(self, target: Any, value: Any) -> None:
        """Set all elements of a device array from a device array that broadcasts to it, or from a NumPy scalar."""
        target[...] = self.with_sign(value)

    def with_sign(self, value: Any) -> Any:
        """What CuPy assigns as it is: of a NumPy scalar that is a negative zero, for which it takes zeros, an array."""
        return self.without_dimensions(value) if isinstance(value, np.inexact) and is_negative_zero(value) else value

    def without_dimensions(self, value: np.generic) -> Any:
        """A device array of a NumPy scalar. (CuPy fills one made of an array without dimensions, and copies others.)"""
        return self.xp.asarray(np.asarray(value).reshape(1)).reshape(())

    def are_apart(self, one: Any, other: Any) -> bool:
        """Whether two device arrays have no byte between them that is in both's extents."""
        (low, high), (first, last) = self.extent(one), self.extent(other)
        return high <= first or last <= low

    @abstractmethod
    def upload(self, source: np.ndarray, target: Any) -> None:
        """Copy host to device.  Same shape and dtype, both C-contiguous.  `source` may be changed on return."""

    @abstractmethod
    def upload_ranges(self, source: np.ndarray, target: Any, ranges: Iterable[tuple[int, int]]) -> None:
        """Copy byte ranges of host memory to the same places in a device block, both 1-D of uint8.

        The next range is asked for while the copies run.  `source` may be changed on return.
        """

    def copy_written(self, pages: tuple[int, int, int], region: Any, target: Any, turns: tuple[int, ...],
                     outcome: list[Any]) -> bool:
        """Copy host memory that was written to the same places in a device block, part by part as it is found.

        `pages`: see `Pages.scanned_by`; `region`: around them; `turns`: see `dirty_upload.py`.  False, and nothing is
        done, if the device can't.  To `outcome` a tuple is added, whatever is raised then: an error's code; 0, or why
        the system would not look at all of it; pairs of int64, the ranges that were found, and now are armed again;
        those of them that are left to `upload_ranges`.
        """
        return False

    @abstractmethod
    def download(self, source: Any, target: np.ndarray) -> None:
        """Copy device to host.  Same shape and dtype, both C-contiguous.  The bytes are there on return."""

    @abstractmethod
    def download_begin(self, source: Any, target: np.ndarray, region: Any = None) -> Callable[[], None]:
        """Begin to copy device to host on the current stream.  As `download`, but only after a call of what is returned
        are the bytes there; until then `target` is written at any time.  `region`: around it, if the caller has it.
        """

    @abstractmethod
    def download_rows(self, source: Any, target: np.ndarray, first: int, run: int,
                      levels: list[tuple[int, int]]) -> bool:
        """Copy runs of bytes of a device block to the same places in host memory, both 1-D of uint8.

        The first of `run` bytes begins at byte `first`; `levels`: (stride, count) of each level of repetition, the
        smallest stride first.  False, and nothing is copied, if it is quicker to gather them on the device.
        """

    def fetch_begin(self, d: Any) -> Any:
        """Begin to copy a C-contiguous array of at most `MOST_FETCHED` bytes to the host, on the current stream; what
        `fetch_end` needs.
        """
        return d

    def fetch_end(self, copy: Any, memory: memoryview) -> None:
        """Wait for it, and put its bytes into host memory."""
        self.download(copy, np.ndarray(copy.shape, copy.dtype, memory))

    @abstractmethod
    def region(self, address: int, size: int) -> Any:
        """Register page-aligned host memory that copies will use often, so that they may lock it as they fill it.

        Returns an object to `release` before the memory is unmapped.
        """

    @abstractmethod
    def stream(self) -> Any:
        """The current stream: hashable, comparable, and kept alive by whoever holds what is returned."""

    @abstractmethod
    def new_stream(self) -> Any:
        """A new stream on the current device that waits for no other; as a context it is the current one."""

    @abstractmethod
    def stream_at(self, pointer: int) -> Any:
        """The stream of the current device that another library knows by this pointer (0: the null stream)."""

    def wait(self, stream: Any) -> None:
        """Let later work on the current stream come after all work issued on `stream` so far."""
        self.order(stream, self.stream())

    @abstractmethod
    def order(self, earlier: Any, later: Any) -> None:
        """Let later work on one stream come after all work issued on another so far.

        Memory goes back to the stream on which it was allocated; before it does, this keeps that stream from using it
        again while another one still reads it.
        """

    def synchronize(self) -> None:
        """Compute all deferred work of the process, and let the host wait for all work issued on the current stream.

        If lazy arrays are on several devices, that is the current stream of each of them. Without the first a timing
        would leave out what has been recorded and not computed. `block_until_ready` does the same for some arrays.
        """
        for compute in deferred:
            compute()
        with self.noting:
            numbers = self.in_use()
        for number in numbers:
            with self.on(number):
                self.wait_for_stream()

    def in_use(self) -> tuple[int, ...]:
        """The numbers of the devices on which lazy arrays are or were: the current one, unless there are several."""
        return self.number(),

    def wait_for_stream(self) -> None:
        """Let the host wait for all work issued on the current stream."""
        with self.noting:
            self._finish_stream()

    @abstractmethod
    def _finish_stream(self) -> None:
        """`wait_for_stream`, whose errors are as they come."""

    @abstractmethod
    def wait_for_kernels(self) -> None:
        """Wait until the kernels that are being compiled are there, for who measures: nothing else waits for them."""

    @abstractmethod
    def generator(self, host: np.random.Generator) -> Any:
        """A generator of random numbers on the current device, with CuPy's methods and parameters.

        What it draws is determined by the seed of `host`.
        """

    @abstractmethod
    def moment(self) -> Any:
        """The moment at which the current stream has done all work issued on it so far; see `seconds_between`."""

    @abstractmethod
    def seconds_between(self, first: Any, last: Any) -> float:
        """The time between two moments of one stream, in seconds, after a wait for the second one."""

    @abstractmethod
    def busy(self, stream: Any, frame: FrameType | None) -> bool:
        """Whether the device is computing what was issued on a stream, asked without a wait from any thread.

        `frame`: what the thread that issues the work is executing.
        """

    def profiler_ranges(self) -> tuple[Callable[[str], object], Callable[[], object]] | None:
        """What begins a named range in the profiler that is attached to this process, and ends the innermost one."""
        return None

    @abstractmethod
    def device_of(self, d: Any) -> int:
        """Number of the device on which `d` lies."""

    @abstractmethod
    def number(self) -> int:
        """Number of this thread's current device."""

    @abstractmethod
    def total_memory(self) -> int:
        """Bytes of memory that the current device has, or is limited to."""

    @abstractmethod
    def free_memory(self) -> int:
        """Bytes of that which can be allocated, as far as they are in one piece."""

    @abstractmethod
    def on_current(self, *arrays: Any) -> bool:
        """Whether all these arrays lie on this thread's current device."""

    @abstractmethod
    def from_peer(self, d: Any) -> Any:
        """A new array on the current device of the values of one on another device.

        It is Fortran-contiguous if `d` is that alone, and C-contiguous otherwise. The copy comes after all that this
        thread's current streams on both devices were given before, and the memory of `d` is not used again before it.
        """

    @abstractmethod
    def on(self, device_id: int | None) -> AbstractContextManager[Any]:
        """A context in which this device is the current one of this thread; None: the one that is."""

    @abstractmethod
    def lend(self, d: Any) -> tuple[Any, Any]:
        """A second array on the memory of `d`, and a token to hold by weak reference.

        The token dies with the last array or capsule that was derived from the lent array.  The memory lives at
        least as long.
        """

    @abstractmethod
    def counts_holders(self, d: Any) -> bool:
        """Whether references tell who holds the memory of `d`: not where another library allocated it."""

    @abstractmethod
    def held_elsewhere(self, token: Any) -> bool:
        """Whether anything but the lent array with this token holds the memory; True if that can't be known."""

    @abstractmethod
    def holdings(self, d: Any) -> list[tuple[int, Any]]:
        """What keeps the memory of `d` alive: pairs of a holder's identity (`d` is one) and of what it holds.

        The last object is the memory, which all arrays in one allocation of this device's have in common.
        """

    @abstractmethod
    def from_foreign(self, obj: Any) -> Any | None:
        """An array on the device memory of `obj`, which shares it, or None if `obj` has no device memory.

        Takes device arrays, and what has ``__cupy_get_ndarray__``, ``__cuda_array_interface__`` or a ``__dlpack__``
        on the device.
        """

    def to_torch(self, d: Any) -> Any:
        """What `torch.from_dlpack` takes, to make a tensor on the memory of `d`."""
        return d

    @abstractmethod
    def from_torch(self, tensor: Any) -> Any | None:
        """An array on the memory of a strided tensor without gradient, or None if that is not the device's memory.

        The simulated device, whose torch is that of the host, makes a tensor's memory its own.
        """

    @abstractmethod
    def library(self, path: str) -> Any:
        """The module of device functions at a dotted path, such as "cupyx.scipy.ndimage" or "cucim.skimage.filters".

        Raises
        ------
        lazyarray.errors.NotOnDevice
            If there is no such module, or the package that has it is not installed; says which one to install.
        """

    def computes_with(self, kind: type) -> bool:
        """Whether instances of `kind` are operands that take this device's arrays and know no lazy ones."""
        return False

    def usable(self) -> str | None:
        """None, or why this process can't use the device."""
        return self.lost

    def after_fork(self) -> None:
        """Take note that this process is a forked child, in which every call of the device fails.

        What is asked without doing any work is still answered: there is one device, whose stream equals none.
        """
        self.lost = FORKED.format("CUDA" if self.name == "cuda" else "the device")
        self.stream = _no_stream    # type: ignore[method-assign]
