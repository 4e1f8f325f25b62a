"""What the library asks of a device.

Every device offers these members; nothing else of it is used outside ``lazyarray.devices``.
"""
from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..errors import DeviceUnavailableError, LazyArrayError, NotOnDevice
from ..errors.inspection import Unique, once_made
from ..errors.interrupts import from_handler

if TYPE_CHECKING:
    from .lines import Weights
    from .program import Extent, Program, Reduction, Step

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


class Factors(ABC):
    """LU factors of a stack of matrices, and what is solved with them while their statuses are being fetched.

    `statuses`: a device array, of a number that is above 0 for each matrix that is singular. What is solved with its
    factors is rubbish.
    """

    statuses: Any

    @abstractmethod
    def solution(self, b: Any) -> Any:
        """What the matrices are to be multiplied by for a stack of matrices: a new device array."""

    @abstractmethod
    def inverse(self) -> Any:
        """The inverses, if the factors were made for them: a new device array."""

    @abstractmethod
    def determinants(self) -> tuple[Any, Any]:
        """The signs of the determinants, and the logarithms of their absolute values, as `numpy.linalg.slogdet` has
        them, also of singular matrices: new device arrays.
        """


class Device(ABC):
    """Device memory, and a namespace of functions that compute in it."""

    #: "cuda" or "simulated".
    name: str
    #: A namespace with NumPy's functions at NumPy's dotted paths, as far as the device has them.
    xp: Any
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
    #: Whether it is noticed which results are needed by themselves, so that recording them is a detour.
    learns = True
    #: At which use of a program on few elements its kernel is made: what a program does once is not worth a compiler.
    fused_from = 3

    #: Why nothing can be done on it any more in this process, after an error that `is_lasting`.
    lost: str | None = None

    def use_one(self) -> None:  # noqa: B027  nothing to do where there is one
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

    def kernel(self, program: Program, size: int) -> Callable[..., list[Any]] | None:
        """A function that runs a program on `size` elements in one kernel, if there is one by now.

        It may be there later: whoever asks is not to wait for a compiler. It takes the arguments, the shape and whether
        outputs are Fortran-contiguous, and returns the outputs.
        """
        return None

    def reduction(self, program: Program, reduction: Reduction, extent: Extent, arguments: list[Any],
                  form: tuple[tuple[int, ...], bool]) -> Callable[..., Any] | None:
        """A function that runs a program and reduces its output in one kernel, if there is one by now.

        It takes the arguments, what sums are divided by, the shape of the result, and the current stream. `form`: the
        shape that inputs are walked in, and whether that is in Fortran order.
        """
        return None

    def select(self, d: Any, mask: Any) -> Any | None:
        """A new array of the rows of `d` where a mask is true; None where ``d[mask]`` is as good, or is still needed.

        Both are C-contiguous, on the current device and not empty; the mask has the shape of the first axes of `d`.
        """
        return None

    def place(self, mask: Any, values: Any, row: int) -> tuple[int, Callable[[Any], None]] | None:
        """How often a mask is true, and what writes rows of values there into an array; None where
        ``d[mask] = values`` is as good, or is still needed.

        All are C-contiguous and on the current device; the values, so many rows of `row` bytes as the mask is true,
        have the dtype of the array, and the mask has the shape of its first axes and is not empty.
        """
        return None

    def positions(self, mask: Any) -> tuple[Any, ...] | None:
        """Where a mask is true, in C order: a new array of int64 for each axis; None where ``nonzero`` is as good, or
        is still needed. The mask is C-contiguous, on the current device and not empty.
        """
        return None

    def sort_rows(self, x: Any, places: bool = False) -> Any:
        """A new array: `x` sorted along its last axis as NumPy's stable sort does it, NaN last; or, for `places`, the
        positions (int64) in `x` of the elements in that order. `x` is C-contiguous and has an axis.
        """
        if x.ndim == 1 and x.dtype.char in "fd":
            x = self.unsigned_nan(x)
        return self.xp.argsort(x, axis=-1, kind="stable") if places else self.xp.sort(x, axis=-1, kind="stable")

    def sort_in_place(self, x: Any) -> None:
        """Sort a C-contiguous array along its last axis, as `sort_rows` does."""
        if x.ndim == 1 and x.dtype.char in "fd":
            self.unsigned_nan(x, x)
        x.sort(axis=-1)

    def unsigned_nan(self, x: Any, out: Any = None) -> Any:
        """A new array, or `out`, of the elements of an array of floats; those that are NaN get no sign.

        The library sorts one row by its bits, so that NaN with a sign, which processors make of ``0 / 0``, come first.
        """
        found = self.xp.where(x != x, x.dtype.type("nan"), x)
        if out is None:
            return found
        out[...] = found
        return out

    def count_in_bins(self, x: Any, edges: Any) -> Any | None:
        """How many elements of a flat array of numbers lie in each bin, from its edge up to the next one, as int64.

        The edges rise, and are floats, to whose dtype the elements are cast. None where a search for each element is
        as good.
        """
        return None

    def divide_floats(self, a: Any, b: Any, parts: str) -> tuple[Any, ...]:
        """Floor division as NumPy has it of float32 or float64, one of them a scalar or both arrays: the quotient
        ("q"), the remainder ("m") or both ("qm"). The library's own, where that is NumPy's.
        """
        return tuple([(self.xp.floor_divide if part == "q" else self.xp.remainder)(a, b) for part in parts])

    def divide_complex(self, a: Any, b: Any) -> Any:
        """The quotient as NumPy has it of complex arrays of one dtype. NumPy's own, but for a divisor of zero."""
        xp = self.xp
        quotient, zero, divisor = xp.divide(a, b), b == 0, xp.abs(b.real)
        result = xp.empty(quotient.shape, a.dtype)
        result.real[...] = xp.where(zero, a.real / divisor, quotient.real)
        result.imag[...] = xp.where(zero, a.imag / divisor, quotient.imag)
        return result

    def correlate_lines(self, x: Any, weights: Weights, axis: int, cval: float, dtype: np.dtype) -> Any:
        """A new array: the lines of `x` along an axis correlated with weights, the same bits as SciPy's.

        `x` is C-contiguous, not empty and on the current device; neither dtype is complex or of half precision. An
        array of booleans has a byte for each element that is read, and written, as a number.
        """
        from . import lines  # few programs filter

        return lines.correlate(self.xp, x, weights, axis, cval, dtype)

    def fuses(self, step: Step) -> bool:
        """Whether a step can be one of a kernel, where it gives what `step.function` gives."""
        return True

    def raising(self) -> AbstractContextManager[Any] | None:
        """A context in which factorisations that fail raise LinAlgError; None where their results are not finite."""
        return None

    @abstractmethod
    def contiguous(self, d: Any) -> Any:
        """`d` itself if it is C-contiguous, else a C-contiguous copy."""

    def assign(self, target: Any, value: Any) -> None:
        """Set all elements of a device array from a device array that broadcasts to it, or from a NumPy scalar."""
        if isinstance(value, np.inexact) and is_negative_zero(value):
            value = self.without_dimensions(value)
        target[...] = value

    def product(self, a: Any, b: Any) -> Any | None:
        """The matrix product of two device arrays as a new one; None where the library's own function is to do it."""
        return None

    def factors(self, a: Any, inverse: bool = False) -> Factors | None:
        """LU factors of a stack of square matrices, for a solution or for the `inverse` and what goes either way; None
        where the library's own functions are to do all of it. The stack is not empty, on the current device, and of
        double precision.
        """
        return None

    def cholesky(self, a: Any) -> tuple[Any, Any] | None:
        """The lower Cholesky factors of a stack of matrices, of which the lower triangles are read, and a status for
        each: above 0 if a matrix is not positive definite or its factor is not finite. None as of `factors`.
        """
        return None

    def transform(self, a: Any, steps: tuple[tuple[str, int, int, int], ...], factor: float) -> Any | None:
        """Fourier transforms of a device array of numbers, one after the other, times `factor`, as a new array.

        A step is a kind ("C2C", "R2C", "C2R"), the sign of the exponent, an axis from 0 on and the number of points.
        None where the library's own functions are to do it.
        """
        return None

    def take_at(self, view: Any, positions: Sequence[Any]) -> Any:
        """A new array of what positions along its first axes name in a device array.

        The positions, one device array for each of these axes, have one shape; some may be counted from the end. All
        are on the current device.
        """
        return view.take(positions[0], 0) if len(positions) == 1 else view[tuple(positions)]

    def put_at(self, view: Any, positions: Sequence[Any], values: Any, order: Any = None) -> None:
        """Set what `take_at` gives to values that broadcast to it: a device array, or a NumPy scalar.

        `order`: for each position along the one axis, the number of its value (int32). Without it, no element may be
        named twice, unless all values are equal.
        """
        if order is not None:
            values = values.take(order, 0)
        operator.setitem(view, positions[0] if len(positions) == 1 else tuple(positions), values)

    def numbered(self, positions: Sequence[Any], lengths: Sequence[int], from_end: Sequence[bool]) -> Any:
        """The numbers, in C order, of the elements that positions along axes of these lengths name: integers of 64
        bits, of the shape that the positions are broadcast to.

        `from_end`: whether some positions along an axis may be counted from its end. Where it says no and some are, the
        numbers are those of other elements.
        """
        numbers, step = None, 1
        for array, length, wraps in zip(reversed(positions), reversed(lengths), reversed(from_end)):
            array = array.astype(np.int64, copy=False)
            if wraps:
                array = self.xp.remainder(array, np.int64(length))
            array = array * np.int64(step) if step != 1 else array
            numbers = array if numbers is None else numbers + array
            step *= length
        return numbers

    def joined(self, arrays: Sequence[Any], axis: int) -> Any:
        """A new array of device arrays of one dtype behind each other along an axis, from 0 on. All are on the current
        device.
        """
        return self.xp.concatenate(arrays, axis)

    def last_of_each(self, key: Any, places: int) -> Any:
        """For each number of a vector, which is less than `places`, where it comes last: a new vector of int32."""
        xp = self.xp
        last = xp.empty(places, np.int32)
        last[key] = -1
        xp.maximum.at(last, key, xp.arange(key.size, dtype=np.int32))
        return last[key]

    def without_dimensions(self, value: np.generic) -> Any:
        """A device array of a NumPy scalar. (CuPy fills one made of an array without dimensions, and copies others.)"""
        return self.xp.asarray(np.asarray(value).reshape(1)).reshape(())

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
    def on(self, device_id: int) -> AbstractContextManager[Any]:
        """A context in which this device is the current one of this thread."""

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
