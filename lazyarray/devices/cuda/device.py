"""The device that CuPy drives.  The only import of cupy is here, and only when a device is looked for.

Facts about CuPy 14.2 that this file rests on: ``cupy.ndarray(shape, dtype, memptr=, strides=)`` looks at the memory
it is given without checking it; ``MemoryPointer + offset`` refuses to move a null pointer; every array,
``MemoryPointer`` and capsule made from an ``UnownedMemory`` keeps that object, and with it its owner, alive; streams
compare by their pointers only, so the null streams of two devices are equal.
"""
from __future__ import annotations

import atexit
import functools
import gc
import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any

import numpy as np

from ... import _native
from ...errors import LazyArrayError, NotOnDevice
from ..base import HERE, HOLDABLE, Device, Diagnosis, Token
from . import driver
from .copies.copies import Copies
from .copies.dirty_upload import copy_written
from .copies.host_memory import left_behind
from .copies.pinned import Region
from .copies.pinned_download import download_begin
from .copies.strided_download import download_rows
from .diagnosis import PACKAGES, first_line, missing, no_cupy, no_device, no_gpu, version
from .driver import StreamOnDevice, here
from .kernels.elementwise import Kernels
from .operations import CudaOperations

LIBRARIES = {"cupyx": PACKAGES, "cucim": "cucim-cu12 or cucim-cu13, as CuPy's CUDA version says"}
"""What to install for the libraries of device functions."""

#: Bytes of an allocation for which a look at what the pool has in use, of which it keeps a table, takes no time.
_LARGE = 1 << 20

ON_DEVICE = frozenset({2, 13})
"""DLPack's device types of CUDA memory: kDLCUDA and kDLCUDAManaged."""


class _Foreign:
    """A stream of another library, in the protocol of streams."""

    __slots__ = ("pointer",)

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer


def _count(token: Token) -> int:
    """References to a memory: every array over it, and every capsule of one, has its own."""
    return sys.getrefcount(token.memory)


def _base_references(d: Any) -> int:
    """References to the array that `d` is a view of."""
    base = d.base
    return sys.getrefcount(base)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _cublas() -> tuple[Any, Callable[[str], bool]]:
    """CuPy's module of cuBLAS, and whether products of a dtype are computed as usual (``CUPY_TF32`` changes that)."""
    # CuPy's own modules alone have these, and not all programs need them.
    from cupy._core import _routines_linalg, get_compute_type
    from cupy_backends.cuda.libs import cublas
    return cublas, lambda char: get_compute_type(char) == _routines_linalg.COMPUTE_TYPE_DEFAULT


def _cusolver() -> Any:
    from cupy_backends.cuda.libs import cusolver
    return cusolver


def _cufft() -> Any:
    from cupy.cuda import cufft
    return cufft


class CudaDevice(CudaOperations, Device):
    """The GPUs of this process, through CuPy."""

    name = "cuda"
    writes_unseen = True

    def __init__(self, cupy: Any, count: int) -> None:
        self.xp = cupy
        self.array_type = cupy.ndarray
        self.count = count
        self.faults = (cupy.cuda.memory.OutOfMemoryError, cupy.cuda.runtime.CUDARuntimeError,
                       cupy.cuda.driver.CUDADriverError, LazyArrayError, MemoryError)
        self._api_errors = cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError
        self._ndarray = cupy.ndarray
        self._runtime = cupy.cuda.runtime
        self._unowned = cupy.cuda.UnownedMemory
        self._of_pointer = getattr(cupy.cuda.Stream, "from_external", None) or (
            lambda foreign: cupy.cuda.ExternalStream(foreign.pointer))
        self._foreign_streams: dict[int, Any] = {}
        memory = cupy.cuda.memory
        self._own = (memory.PooledMemory, memory.MemoryAsync, memory.ManagedMemory, memory.Memory)
        self._pointer = cupy.cuda.MemoryPointer
        self._current_stream = cupy.cuda.get_current_stream
        self._per_thread = cupy.cuda.runtime.streamPerThread
        if count == 1 and _native.launch is not None:       # each call asks for it, some several times
            self.stream = _native.launch.streams(       # type: ignore[method-assign]
                self._current_stream, self._per_thread, self.stream)
        self._holdable = dict.fromkeys(HOLDABLE, True)
        functions = driver.found()
        self._copies = copies = Copies(cupy, functions)
        self.fetch_begin, self.fetch_end = copies.fetch_begin, copies.fetch_end    # type: ignore[method-assign]
        self.copy_written = functools.partial(copy_written, copies)   # type: ignore[method-assign]
        self.compute_with(Kernels(cupy, count, functions), copies, _cublas, _cusolver, _cufft)
        self._totals: dict[int, int] = {}   # number -> bytes of memory, which never change
        self._base_alone: int | None = None     # references to an array that only a view of it holds
        self._alone: int | None = None  # references to a memory that nobody but one loan holds

    # Arrays.

    def can_hold(self, dtype: np.dtype) -> bool:
        known = self._holdable.get(dtype)
        if known is None:
            known = False
            if dtype.name == "bfloat16":    # CuPy stores structured dtypes too, but can do little else with them
                with suppress(ValueError):      # which CuPy raises for a dtype that it has no C type for
                    known = self._ndarray((0,), dtype).dtype == dtype
            self._holdable[dtype] = known
        return known

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        return self._ndarray(shape, dtype)

    def view(self, block: Any, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None,
             offset: int) -> Any:
        data = block.data
        return self._ndarray(shape, dtype, data + offset if offset and data.ptr else data, strides)

    def assign(self, target: Any, value: Any) -> None:
        if type(value) is self._ndarray and target.size:
            if target._c_contiguous and value._c_contiguous and (
                    value.shape == target.shape and value.dtype == target.dtype):
                # CuPy compiles and launches a kernel for what is one copy of memory.
                target.data.copy_from_device_async(value.data, target.nbytes)
                return
            if self.on_current(target, value) and self.are_apart(target, value) and self.copied(target, value):
                return
        elif isinstance(value, np.generic) and target.size and value.dtype == target.dtype and self.on_current(target):
            if target._c_contiguous and not any(value.tobytes()):
                target.data.memset_async(0, target.nbytes)
                return
            if self.copied(target, value):
                return
        super().assign(target, value)

    def are_apart(self, one: Any, other: Any) -> bool:
        first, second = one.data.mem, other.data.mem        # whose extents are there
        separate = first.ptr + first.size <= second.ptr or second.ptr + second.size <= first.ptr
        return separate or super().are_apart(one, other)

    def block(self, d: Any) -> tuple[Any, int]:
        low, high = self.extent(d)
        data = d.data
        offset = data.ptr - low if high > low else 0
        return self._ndarray((high - low,), np.uint8, data - offset if offset else data), offset

    def allocation(self, d: Any) -> tuple[int, int, int]:
        memory = d.data.mem
        return memory.device_id, memory.ptr, memory.size

    def root(self, d: Any) -> Any:
        return d if d.base is None else d.base

    def has_own_memory(self, d: Any) -> bool:
        base = d.base
        if base is None:
            return True
        if self._base_alone is None:
            self._base_alone = _base_references(self._ndarray((1,), "u1").reshape(1, 1))
        return base.nbytes == d.nbytes and _base_references(d) == self._base_alone + 1     # the name here

    def extent(self, d: Any) -> tuple[int, int]:
        low = high = d.data.ptr
        if not d.size:
            return low, low
        if d.flags.c_contiguous:
            return low, low + d.nbytes
        for length, stride in zip(d.shape, d.strides):
            if stride < 0:
                low += (length - 1) * stride
            else:
                high += (length - 1) * stride
        return low, high + d.itemsize

    def first(self, d: Any) -> int:
        return d.data.ptr

    def contiguity(self, d: Any) -> tuple[bool, bool]:
        return d._c_contiguous, d._f_contiguous

    def watch_allocator(self) -> None:
        """Have the allocator that CuPy is set to now, for the process, called through `allocated`.

        In ``cupy.cuda.using_allocator`` a thread has one of its own, and may not set that of the process. So a thread
        that was made just now does. An allocator of such a block is called as it is: it does not move arrays.
        """
        cuda = self.xp.cuda
        full, pool = MemoryError, self.xp.get_default_memory_pool()     # CuPy raises one of its own, and RMM this one

        def watch() -> None:
            allocate = cuda.get_allocator()
            pooled = getattr(allocate, "__self__", None) is pool

            def malloc(nbytes: int) -> Any:
                # A pool that is full has Python collect garbage first, and gives all free memory back to the driver.
                if pooled and nbytes >= _LARGE and (limit := pool.get_limit()) and pool.used_bytes() + nbytes > limit:
                    self.relieve(nbytes)
                return self.allocated(allocate, nbytes, full)

            native = _native.launch
            cuda.set_allocator(malloc if native is None else native.allocator(allocate, malloc, full, _LARGE))

        watcher = threading.Thread(target=watch, name="lazyarray-allocator")
        watcher.start()
        watcher.join()

    def contiguous(self, d: Any) -> Any:
        return d if d.flags.c_contiguous else self.xp.ascontiguousarray(d)

    def device_of(self, d: Any) -> int:
        return d.data.device_id

    def number(self) -> int:
        return self._runtime.getDevice()

    def total_memory(self) -> int:
        limit = self.xp.get_default_memory_pool().get_limit()
        if limit:
            return limit
        number = self._runtime.getDevice()
        total = self._totals.get(number)
        if total is None:       # the driver takes up to 24 ms for an answer while other processes use the GPU
            total = self._totals[number] = self._runtime.memGetInfo()[1]
        return total

    def free_memory(self) -> int:
        pool = self.xp.get_default_memory_pool()
        limit, free = pool.get_limit(), self._runtime.memGetInfo()[0] + pool.free_bytes()
        return max(min(free, limit - pool.used_bytes()) if limit else free, 0)

    def on_current(self, *arrays: Any) -> bool:
        if self.count == 1:
            return True
        current = self._runtime.getDevice()
        return all(d.data.device_id == current for d in arrays)

    def from_peer(self, d: Any) -> Any:
        if not d.size:
            return self.empty(d.shape, d.dtype)
        reader = self.stream()
        with self.on(d.data.device_id):
            owner = self.stream()
            packed = d
            if not (d._c_contiguous or d._f_contiguous):
                self.order(reader, owner)       # which may have waited for another stream's write
                packed = self.xp.ascontiguousarray(d)
            self.order(owner, reader)
        # CuPy gives the result the strides of `packed`, enables peer access where there is any, and copies by
        # ``cudaMemcpyAsync`` with ``cudaMemcpyDefault``, which goes through the host where there is none.
        result = packed.copy("A")
        self.order(reader, owner)       # CuPy's pool gives memory back in the order of its own stream
        return result

    def on(self, device_id: int | None) -> AbstractContextManager[Any]:
        if self.count == 1 or device_id is None or device_id == self._runtime.getDevice():
            return HERE
        return self.xp.cuda.Device(device_id)

    # Copies.

    def upload(self, source: np.ndarray, target: Any) -> None:
        with self.on(target.data.device_id):
            self._copies.upload(target.data, _address(source), source.nbytes, self._current_stream())

    def upload_ranges(self, source: np.ndarray, target: Any, ranges: Iterable[tuple[int, int]]) -> None:
        with self.on(target.data.device_id):
            self._copies.upload_ranges(target.data, _address(source), ranges, self._current_stream())

    def download(self, source: Any, target: np.ndarray) -> None:
        with self.on(source.data.device_id):
            self._copies.download(source.data, _address(target), target.nbytes, self._current_stream())

    def download_begin(self, source: Any, target: np.ndarray, region: Region | None = None) -> Callable[[], None]:
        with self.on(source.data.device_id):
            return download_begin(self._copies, source, target, self._current_stream(), region)

    def download_rows(self, source: Any, target: np.ndarray, *rows: Any) -> bool:
        with self.on(source.data.device_id):
            return download_rows(self._copies, source.data.ptr, _address(target), *rows, self._current_stream())

    def region(self, address: int, size: int) -> Region:
        return self._copies.region(address, size)

    # Order.

    def stream(self) -> Any:
        stream = self._current_stream()
        if not self.spread and stream.ptr != self._per_thread:
            return stream
        thread = here.name if stream.ptr == self._per_thread else None
        return StreamOnDevice(stream, self._runtime.getDevice(), thread)

    def new_stream(self) -> Any:
        return self.xp.cuda.Stream(non_blocking=True)

    def stream_at(self, pointer: int) -> Any:
        stream = self._current_stream()
        if stream.ptr != pointer:
            stream = self._foreign_streams.get(pointer) if pointer else self.xp.cuda.Stream.null
            if stream is None:
                stream = self._foreign_streams[pointer] = self._of_pointer(_Foreign(pointer))
        return StreamOnDevice(stream, self._runtime.getDevice(), None) if self.spread else stream

    def order(self, earlier: Any, later: Any) -> None:
        if earlier == later:
            return
        if self.several:        # what was noted while one device alone was in use
            earlier, later = (stream if isinstance(stream, StreamOnDevice) else StreamOnDevice(stream, self.sole, None)
                              for stream in (earlier, later))
            if earlier == later:
                return
        if not isinstance(earlier, StreamOnDevice):
            event = self.xp.cuda.Event(disable_timing=True)
            earlier.record(event)
        else:
            # An event belongs to the device that was current when it was made.
            with self.on(earlier.device_id):
                if earlier.thread is not None and earlier.thread is not here.name:
                    # No other thread can name this thread's default stream.
                    self._runtime.deviceSynchronize()
                    return
                event = self.xp.cuda.Event(disable_timing=True)
                earlier.stream.record(event)
        if not isinstance(later, StreamOnDevice):
            later.wait_event(event)
            return
        with self.on(later.device_id):
            if later.thread is None or later.thread is here.name:
                later.stream.wait_event(event)
            else:
                event.synchronize()     # the default stream of another thread: this one would make its own wait

    def _finish_stream(self) -> None:
        self._current_stream().synchronize()

    def generator(self, host: np.random.Generator) -> Any:
        seeds = getattr(host.bit_generator, "seed_seq", None)
        number = host.integers(1 << 63) if seeds is None else seeds.generate_state(1, np.uint64)[0]
        return self.xp.random.default_rng(np.random.SeedSequence(int(number)))

    def moment(self) -> Any:
        event = self.xp.cuda.Event()
        event.record(self._current_stream())
        return event

    def seconds_between(self, first: Any, last: Any) -> float:
        last.synchronize()
        return self.xp.cuda.get_elapsed_time(first, last) / 1e3

    def busy(self, stream: Any, frame: Any) -> bool:
        return not getattr(stream, "stream", stream).done

    def profiler_ranges(self) -> tuple[Callable[[str], object], Callable[[], object]] | None:
        nvtx = self.xp.cuda.nvtx        # a stand-in without functions where CuPy was built without it
        push, pop = getattr(nvtx, "RangePush", None), getattr(nvtx, "RangePop", None)
        return None if push is None or pop is None else (push, pop)

    def raising(self) -> AbstractContextManager[Any]:
        """A context in which a singular or indefinite matrix is an error, not a result of rubbish (CuPy's default)."""
        import cupyx

        return cupyx.errstate(linalg="raise")

    # Sharing.

    def lend(self, d: Any) -> tuple[Any, Any]:
        data = d.data
        memory = data.mem
        token = Token(memory)
        lent = self._unowned(memory.ptr, memory.size, token, memory.device_id)
        pointer = self._pointer(lent, data.ptr - memory.ptr)
        return self._ndarray(d.shape, d.dtype, pointer, d.strides), token

    def counts_holders(self, d: Any) -> bool:
        return isinstance(d.data.mem, self._own) or self._is_rmm(d.data.mem)

    def _is_rmm(self, memory: Any) -> bool:
        """Whether memory is what RMM allocated for CuPy: a pointer, and the buffer that owns it."""
        return type(memory) is self._unowned and type(memory._owner).__module__.partition(".")[0] == "rmm"

    def held_elsewhere(self, token: Token) -> bool:
        if not isinstance(token.memory, self._own):
            return True     # another library's, by its pointer or by DLPack: who else holds it, it alone knows
        if self._alone is None:
            self._alone = _count(self.lend(self.empty((1,), np.dtype(np.uint8)))[1])
        return _count(token) > self._alone

    def holdings(self, d: Any) -> list[tuple[int, Any]]:
        data = d.data
        found = []
        while d.base is not None:
            found += [(id(d), d.base), (id(d.base), d.base.data), (id(d.base.data), d.base.data.mem), (id(d), d.data)]
            d = d.base
        found += [(id(d), d.data), (id(data), data.mem)]
        return [*found, (id(data.mem), data.mem._owner)] if self._is_rmm(data.mem) else found

    def from_foreign(self, obj: Any) -> Any | None:
        if isinstance(obj, self._ndarray):
            return obj
        if hasattr(obj, "__cupy_get_ndarray__"):
            return obj.__cupy_get_ndarray__()
        if hasattr(obj, "__cuda_array_interface__"):
            address = obj.__cuda_array_interface__["data"][0]
            if self.count == 1 or not address:
                return self.xp.asarray(obj)
            # On any other device than its own, asarray would copy.
            with self.on(self._runtime.pointerGetAttributes(address).device):
                return self.xp.asarray(obj)
        place = getattr(obj, "__dlpack_device__", None)
        if place is not None and place()[0] in ON_DEVICE:
            return self.xp.from_dlpack(obj)
        return None

    def from_torch(self, tensor: Any) -> Any | None:
        if not tensor.is_cuda:
            return None
        pointer = tensor.data_ptr()
        if self.count > 1 or not pointer:
            with self.on(tensor.device.index):
                return self.xp.from_dlpack(tensor)
        # What DLPack does, in a third of the time; the array keeps the tensor alive.
        size, dtype = tensor.element_size(), np.dtype(str(tensor.dtype).removeprefix("torch."))
        memory = self._unowned(pointer, tensor.numel() * size, tensor, tensor.device.index)
        strides = tuple([stride * size for stride in tensor.stride()])
        return self._ndarray(tuple(tensor.shape), dtype, self._pointer(memory, 0), strides)

    def library(self, path: str) -> Any:
        try:
            return importlib.import_module(path)
        except ImportError as error:
            package = LIBRARIES.get(path.partition(".")[0], path)
            raise NotOnDevice(f"{path} does not import ({error}): install {package}") from None

    def computes_with(self, kind: type) -> bool:
        return kind.__module__.startswith("cupyx.scipy.sparse")

    def wait_for_kernels(self) -> None:
        self.kernels.wait()

    def after_fork(self) -> None:
        super().after_fork()
        self.count = 1
        self._copies.forget()
        self.kernels.forget()
        atexit.register(_leave_behind)

    def is_lasting(self, error: BaseException) -> bool:
        return isinstance(error, self._api_errors) and getattr(error, "status", None) in driver.LASTING


class CudaDevices(CudaDevice):
    """The GPUs of a process that sees more than one, which most programs do not use."""

    def __init__(self, cupy: Any, count: int) -> None:
        super().__init__(cupy, count)
        self.sole = self._runtime.getDevice()
        self._others: set[int] = set()      # on which arrays are or were

    @property
    def spread(self) -> bool:  # type: ignore[override]
        if not self.several:
            try:
                self.several = self._runtime.getDevice() != self.sole
            except self._api_errors:        # in a forked child, which is told so where it wants to compute
                return False
        return self.several

    def use_one(self) -> None:
        self.several = False
        self._others.clear()

    def in_use(self) -> tuple[int, ...]:
        return (*sorted({self.number(), self.sole, *self._others}),) if self.several else super().in_use()

    def claim(self, d: Any, owner: object) -> None:
        if (number := d.data.device_id) != self.sole:
            self._others.add(number)
            self.several = True


def _leave_behind() -> None:
    """At a forked child's exit, before CuPy's own: it would give modules back that only the parent can, and each of
    these prints a traceback."""
    import cupy

    atexit.unregister(cupy._util.clear_memo)
    left_behind([one for one in gc.get_objects() if str(type(one).__module__).partition(".")[0] == "cupy"])


def find() -> CudaDevice | Diagnosis:
    """The CUDA device, or what is in its way."""
    if not _installed():
        return no_cupy()
    try:
        import cupy
    except Exception as error:  # noqa: BLE001 - a broken installation fails with whatever its parts raise, not only ImportError.
        return missing("broken", f"CuPy is installed but does not import ({type(error).__name__}: {first_line(error)})",
                       f"Uninstall every package whose name begins with cupy, then install one of {PACKAGES}.")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # noqa: BLE001 - any failure here means that there is no device to use.
        return no_device(cupy, error)
    if not count:
        return no_gpu("CuPy works but sees no GPU")
    try:
        sum_of_four = int((cupy.arange(3) + 1)[:2].sum() + 1)
        healthy = sum_of_four == 4
        message = f"1 + 2 + 1 came out as {sum_of_four}"
    except Exception as error:  # noqa: BLE001 - a missing compiler, library or header shows only in use, in many classes.
        healthy, message = False, f"{type(error).__name__}: {first_line(error)}"
    if not healthy:
        return missing("broken", f"CuPy sees {count} GPU(s) but can't compute ({message})",
                       "Check that CuPy's CUDA version fits the driver, and that the CUDA libraries are installed: "
                       "cupy-cuda12x[ctk] or cupy-cuda13x[ctk] brings them.")
    device = CudaDevice(cupy, count) if count == 1 else CudaDevices(cupy, count)
    device.watch_allocator()
    return device


def _installed() -> bool:
    try:
        return importlib.util.find_spec("cupy") is not None
    except ValueError:  # sys.modules["cupy"] is None: somebody has forbidden the import.
        return False


def describe() -> str:
    """Names of the GPU and versions, once there is a device."""
    import cupy

    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(0)["name"].decode()
    return (f"{name}, {runtime.getDeviceCount()} device(s), CuPy {cupy.__version__}, "
            f"CUDA {version(runtime.runtimeGetVersion())}, driver for CUDA {version(runtime.driverGetVersion())}")
