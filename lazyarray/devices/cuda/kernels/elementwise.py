"""Kernels for programs of element-wise steps: compiled beside the work, kept, launched.

CuPy compiles, and keeps what it compiled on disk.  Its compiler leaves the interpreter to other threads meanwhile.

Until there is a kernel, the device library computes a program step by step, and compiles a kernel of its own for each
step that it has not done before. Where that would take longer than to compile the program, who asks waits for the
program's kernel: a process then compiles fewer kernels, and none twice.
"""
from __future__ import annotations

import atexit
import ctypes
import functools
import logging
import math
import os
import queue
import struct
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .... import _native
from ....errors.inspection import Unique
from ....errors.interrupts import holding
from ....errors.own_threads import own
from .. import driver
from ..copies.host_memory import left_behind
from .elementwise_source import lengths_in, source, strides_in
from .launch_plan import (
    VECTOR,
    WIDE,
    Form,
    Plan,
    dtype_of,
    general,
    packed,
    plan,
    vector_length,
    walk_bytes,
    walk_size,
)

if TYPE_CHECKING:
    from ...program import Program
    from ..driver import Driver

__all__ = ["Inputs", "Kernel", "Kernels", "Launcher", "functions"]

#: Programs that are remembered.
_MOST = 4096
#: Milliseconds of CUDA's compiler for one of CuPy's kernels; for a program, and for each of its steps; and for a
#: reduction at its end. NVRTC 13.5 took 62 for CuPy's addition (sm_90), and for programs of 1, 5, 10, 20 and 39 steps
#: 60, 83, 190, 190 and 400. With CUDA 13.2 (H200) it took twice as long for these, and 180 to 350 for reductions.
THEIRS, PROGRAM, STEP, REDUCTION = 60, 50, 10, 70
#: Seconds that a process waits for its compiler at its end.
_LAST = 5
#: Threads that compile: half of the machine's, so that who waits for none of it is not disturbed.
_WORKERS = max(1, min(4, (os.cpu_count() or 2) // 2))
#: Layouts that a kernel remembers. A loop whose slices grow has one for each step: with 64, 200 steps of ``np.maximum``
#: into a slice took 430 us each in each run, where CuPy takes 40 (H100, 2026-11-28, `benchmarks/unseen/align.py`).
PLANS = 1024
#: Dtypes, by kind and bytes, as formats of the module `struct`.
_FORMATS = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q",
            "f2": "e", "f4": "f", "f8": "d", "c8": "2f", "c16": "2d"}


#: Formats of parameters that C knows.
_IN_C = frozenset("QqIid")


@functools.cache
def _launch_address() -> int | None:
    """Where `cuLaunchKernel` is."""
    found = driver.found()
    return None if found is None else found.launch


def functions(cupy: Any, text: str, names: tuple[str, ...]) -> list[Any]:
    """The functions of a CUDA source, for the current device, ready to be launched; CuPy keeps them on disk."""
    module = cupy.RawModule(code=text, options=("--std=c++17",))
    module.compile()
    found = [module.get_function(name) for name in names]
    for function in found:
        function.num_regs   # noqa: B018 - CUDA loads a function when it is first asked about: here, not in a launch
    return [function.kernel for function in found]


def first_form(program: Program, wide: bool) -> Form:
    """The form of a program that is compiled first: it takes whatever comes."""
    form = general(program, wide)
    return form if form.ndim else packed(program, form.reads, 0, wide)


class Launcher(Unique):
    """Launches a function: in C or, where that is not there, with parameters that are packed into memory at once.

    CuPy makes an object for each, which takes as long as all the rest: 3.5 us for a launch with four, the packing 3.0,
    and one less for a structure.

    A device array may stand for its address. Whoever has only the address of an array has to keep the array until the
    launch is over: otherwise another thread may release it, and its memory belongs to somebody else by then.
    """

    def __init__(self, cupy: Any, function: Any, parameters: list[str]) -> None:
        """`parameters`: formats of the module `struct`, one for each or, with complex numbers, two."""
        self._function = function   # keeps its code loaded
        self._pointer, self._cupy = function.ptr, cupy
        self._launch, self._stream = cupy.cuda.driver.launchKernel, cupy.cuda.get_current_stream
        self._ndarray = cupy.ndarray
        formats = "".join(parameters)
        kind = getattr(getattr(cupy.cuda, "function", None), "Function", ())       # what stands for CuPy has others
        address = None if _native.launch is None or not isinstance(function, kind) or not _IN_C.issuperset(formats) or (
            len(parameters) > _native.launch.MOST) else _launch_address()
        self._in_c = None if address is None else functools.partial(
            _native.launch.launched, self._pointer, address, formats.encode(), self._ndarray, self._stream)
        self._layout = struct.Struct("=" + "".join(parameters))
        self._pack = self._layout.pack_into
        self._offsets = [struct.calcsize("=" + "".join(parameters[:i])) for i in range(len(parameters))]
        self._free: list[Any] = []

    def __call__(self, blocks: int, threads: int, values: list[Any]) -> None:
        if self._in_c is not None and not self._in_c(blocks, threads, values):
            return      # else CUDA's error comes again below, and is told there
        try:
            memory, addresses, table = self._free.pop()
        except IndexError:
            memory, addresses, table = self._memory()
        array, stream = self._ndarray, self._stream()
        self._pack(memory, 0, *[value.data.ptr if isinstance(value, array) else value for value in values])
        launched = self._pointer, blocks, 1, 1, threads, 1, 1, 0, stream.ptr, table, 0
        try:
            self._launch(*launched)
        except self._cupy.cuda.driver.CUDADriverError:
            # A thread that has not used CUDA yet has no context: the runtime gives it one. Any other error comes again.
            self._cupy.cuda.runtime.memGetInfo()
            self._launch(*launched)
        self._free.append((memory, addresses, table))   # CUDA has read them

    def _memory(self) -> tuple[Any, Any, int]:
        """Memory for the parameters, their addresses, and the address of those."""
        memory = ctypes.create_string_buffer(self._layout.size)
        start = ctypes.addressof(memory)
        addresses = (ctypes.c_void_p * len(self._offsets))(*[start + offset for offset in self._offsets])
        return memory, addresses, ctypes.addressof(addresses)


class Inputs:
    """How the arguments of a program become parameters of a launch."""

    def __init__(self, program: Program) -> None:
        arrays = [operand.mode != "value" for operand in program.inputs]
        #: The bytes of each number; 0 of an array.
        self.sizes = tuple([0 if is_array else operand.dtype.itemsize
                           for operand, is_array in zip(program.inputs, arrays)])
        self.formats = ["Q" if is_array else _FORMATS[operand.dtype.str[1:]]
                        for operand, is_array in zip(program.inputs, arrays)]
        self._arrays = arrays
        self._complex = [not is_array and operand.dtype.kind == "c"
                         for operand, is_array in zip(program.inputs, arrays)]
        self._any_complex = any(self._complex)
        #: Where each input stands among the values: complex numbers take two places.
        self.places = [i + sum(self._complex[:i]) for i in range(len(arrays))]

    def __call__(self, arguments: list[Any]) -> list[Any]:
        """Addresses of arrays, and numbers."""
        values = [argument.data.ptr if is_array else argument for argument, is_array in zip(arguments, self._arrays)]
        if self._any_complex:
            return [part for value, is_complex in zip(values, self._complex)
                    for part in ((value.real, value.imag) if is_complex else (value,))]
        return values


class Kernel(Unique):
    """A compiled program: a form that takes any operands, and others that are compiled when they are of use.

    All give the same bits.
    """

    def __init__(self, kernels: Kernels, program: Program, form: Form, function: Any) -> None:
        self._kernels, self._program, self._form, self._function = kernels, program, form, function
        self._ndarray = kernels.cupy.ndarray
        self._inputs = inputs = Inputs(program)
        self._flat = [place for place, operand in zip(inputs.places, program.inputs) if operand.mode == "flat"]
        self._strided = [i for i, operand in enumerate(program.inputs) if operand.mode == "strided"]
        made = program.outputs[:len(program.outputs) - program.into]
        self._dtypes = [dtype_of(program, number) for number in made]
        self._plans: dict[Any, tuple[Launcher, Any, int, int]] = {}
        self._asked: dict[Any, tuple[Plan, bytes]] = {}     # whose form is being compiled
        self._first, self._elements, self._threads = self._launcher(form, function), form.elements, form.threads
        self._takes_alignment = form.takes_alignment
        self.launch = self._in_c(function, form, pack=vector_length(program), into=program.into, strided=tuple(
            [(i, program.inputs[i].dtype.itemsize) for i in self._strided]))
        self._single: Launcher | None = None    # for addresses that packs can't be loaded from
        self._single_elements = 0

    def _in_c(self, function: Any, form: Form, **more: Any) -> Any:
        """What makes outputs and launches a form, in C; None where that is not there."""
        driver = self._kernels.driver
        launch, parameters = _native.launch, len(self._inputs.sizes) + len(self._dtypes) + 2
        if driver is None or launch is None or parameters > launch.MOST:
            return None
        return launch.Launch(
            function.ptr, driver.launch, function, self._ndarray, self._kernels.cupy.cuda.get_current_stream,
            self._inputs.sizes, tuple(self._dtypes), form.elements, form.threads, form.takes_alignment, **more)

    def prepare(self, arguments: list[Any], shape: tuple[int, ...], fortran: bool) -> bool:
        """Whether `launch` takes these arguments, now that it was asked for."""
        if self.launch is None:
            return False
        values = self._inputs(arguments)
        if self._strided:
            self._planned(arguments, values, shape, fortran, math.prod(shape))
            return self.launch.key(arguments, shape, fortran) in self.launch.plans
        places = 0
        for i in self._flat:
            places |= values[i]
        return not self._takes_alignment or not places % VECTOR or self._unaligned() is not None

    def __call__(self, arguments: list[Any], shape: tuple[int, ...], fortran: bool) -> list[Any]:
        if self.launch is not None and (found := self.launch(arguments, shape, fortran)) is not None:
            return found
        order = "F" if fortran else "C"
        outputs = [self._ndarray(shape, dtype, None, None, order) for dtype in self._dtypes]
        size = outputs[0].size
        values = self._inputs(arguments)
        launcher, threads = self._first, self._threads
        last = None
        if self._strided:
            launcher, last, blocks, threads = self._planned(arguments, values, shape, fortran, size)
        else:
            blocks = -(-size // self._elements)
            if self._takes_alignment:
                places = 0
                for i in self._flat:
                    places |= values[i]
                last = not places % VECTOR
                if not last and (single := self._single or self._unaligned()) is not None:
                    launcher, last, blocks = single, None, -(-size // self._single_elements)
        for output in outputs:
            values.append(output.data.ptr)
        values.append(size)
        if last is not None:
            values.append(last)
        launcher(blocks, threads, values)
        return outputs

    def _unaligned(self) -> Launcher | None:
        """What launches for such addresses, or None while it is being compiled."""
        form = general(self._program, self._form.wide)
        function = self._kernels.find((self._program, form), _function)
        if function is not None:
            self._single_elements = form.elements
            self._single = self._launcher(form, function)
            if self.launch is not None:
                self.launch.plans[None] = self._in_c(function, form)
        return self._single

    def _launcher(self, form: Form, function: Any) -> Launcher:
        formats = [*self._inputs.formats, *["Q"] * len(self._dtypes), "q"]
        if form.takes_alignment:
            formats.append("i")
        if form.ndim:
            formats.append(f"{walk_size(form)}s")
        return Launcher(self._kernels.cupy, function, formats)

    def _planned(self, arguments: list[Any], values: list[Any], shape: tuple[int, ...], fortran: bool,
                 size: int) -> tuple[Launcher, Any, int, int]:
        """What launches for these strides and addresses, its last parameter if any, its blocks, and their threads."""
        aligned = [type(value) is not int or not value % VECTOR for value in values]
        strided = [arguments[i] for i in self._strided]
        key = (shape, fortran, *aligned, *[array.shape for array in strided], *[array.strides for array in strided])
        found = self._plans.get(key)
        if found is None:
            asked = self._asked.get(key)
            if asked is None:
                lengths = lengths_in(shape, fortran)
                strides = [strides_in(array, shape, fortran) for array in strided]
                wanted = plan(self._program, lengths, strides, [aligned[i] for i in self._inputs.places])
                if len(self._asked) >= PLANS:
                    self._asked.clear()
                self._asked[key] = asked = wanted, walk_bytes(lengths, strides, wanted.form.wide)
            (form, walk, blocks), general_walk = asked
            function = self._function if form == self._form else self._kernels.find((self._program, form), _function)
            if function is None:    # being compiled
                return self._first, general_walk, -(-size // self._elements), self._threads
            self._asked.pop(key, None)
            launcher = self._first if form == self._form else self._launcher(form, function)
            if len(self._plans) >= PLANS:
                self._plans.clear()
            found = self._plans[key] = launcher, walk or (True if form.takes_alignment else None), blocks, form.threads
            if self.launch is not None:
                plans = self.launch.plans
                if len(plans) >= PLANS:
                    plans.clear()
                known = self.launch.key(arguments, shape, fortran)
                by_sizes = {"blocks": blocks, **({"walk": walk} if walk else {})}
                plans[known] = self._in_c(
                    function, form, **({"walks": bool(walk)} if type(known) is bytes else by_sizes))
        return found


def _function(cupy: Any, program: Program, form: Form) -> Any:
    text = source(program, cupy, {"fused": form})
    return None if text is None else functions(cupy, text, ("fused",))[0]


@dataclass(slots=True, eq=False)
class _Job:
    """What is to be made, by ``make(cupy, *key)`` for a device, and how often it was asked for."""

    number: int | None
    key: tuple[Any, ...]
    make: Callable[..., Any]
    asked: int = 1


def _end(ref: weakref.ref[Kernels]) -> None:
    kernels = ref()
    if kernels is not None:
        kernels.end()


class Kernels(Unique):
    """The kernels of a process, for `count` devices: compiled by threads of their own, never by who asks.

    What was asked for most often meanwhile comes first: a loop's kernels, before those of what is done once.
    """

    def __init__(self, cupy: Any, count: int, driver: Driver | None = None) -> None:
        self.cupy, self.driver = cupy, driver
        self._failures = (cupy.cuda.compiler.CompileException, cupy.cuda.runtime.CUDARuntimeError,
                          cupy.cuda.driver.CUDADriverError, OSError)
        self._several = count > 1
        self._known: dict[Any, Any] = {}
        self._jobs: dict[Any, _Job] = {}        # not yet begun
        self._more: queue.SimpleQueue[None] = queue.SimpleQueue()      # one for each
        #: Threads that compile at the same time, at most.
        self.threads = _WORKERS
        self._workers: list[threading.Thread] = []
        self._lock = threading.RLock()      # a finaliser that runs within may ask for a kernel, too
        self._done = threading.Condition(self._lock)
        self._waiting = 0
        self._ending = False
        # Now, so that it comes after what a program registers later, which may compute.
        atexit.register(_end, weakref.ref(self))
        #: Whether who asks waits for a kernel where that takes less time than the device library's kernels.
        self.waits = False
        self._done_before: set[Any] = set()     # steps and reductions that the device library has done

    def get(self, program: Program, size: int, now: bool = False) -> Kernel | None:
        """The kernel of a program, or None: then it is being compiled, or can't be. `now`: as in `find`."""
        return self.find((program, size >= WIDE), self._fused, now)

    def pays(self, program: Program, reduction: Any = None, theirs: int = 0) -> bool:
        """Whether the device library would take longer to compile kernels for the steps that it has not done yet.

        `reduction`: what it has to do besides, and `theirs` how long its compiler takes for that. It needs none for the
        steps of a program of which there is a kernel.
        """
        if not self.waits:
            return False
        steps = () if program.kernel is not None else program.steps
        new = THEIRS * len({step for step, _ in steps} - self._done_before)
        own = PROGRAM + STEP * len(program.steps)
        if reduction is not None:
            new += 0 if reduction in self._done_before else theirs
            own += REDUCTION
        return new >= own

    def unfused(self, program: Program, *more: Any) -> None:
        """Note that the device library does these steps."""
        if self.waits:
            self._done_before.update((step for step, _ in program.steps), more)

    def find(self, key: tuple[Any, ...], make: Callable[..., Any], now: bool = False) -> Any:
        """What ``make(cupy, *key)`` gives, or None: then it is being made, or can't be.

        A key begins with a program, or with a name. It is made for the current device, by the thread that compiles;
        with `now` by this one, unless somebody has asked for it before.
        """
        number = self.cupy.cuda.runtime.getDevice() if self._several else None
        known = key if number is None else (number, *key)
        found = self._known.get(known, self)
        if found is self:
            if now:
                return self._made_here(known, key, make)
            self._ask(known, number, key, make)
            return None
        if found is None and (job := self._jobs.get(known)) is not None:
            job.asked += 1
        return found

    def wait(self, seconds: float | None = None) -> None:
        """Wait until everything that was asked for is compiled, or for so long."""
        with self._done:
            self._done.wait_for(lambda: not self._waiting, seconds)

    def forget(self) -> None:
        """In a forked child: the thread that compiles is not here, and may have held the lock."""
        self._lock = threading.RLock()
        self._done = threading.Condition(self._lock)
        self._workers, self._waiting = [], 0
        self._jobs.clear()
        left_behind(dict(self._known))

    def _fused(self, cupy: Any, program: Program, wide: bool) -> Kernel | None:
        form = first_form(program, wide)
        function = _function(cupy, program, form)
        return None if function is None else Kernel(self, program, form, function)

    def _made_here(self, known: Any, key: tuple[Any, ...], make: Callable[..., Any]) -> Any:
        with holding(self._lock):
            if known in self._known:
                return self._known[known]
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[known] = None       # others do without it meanwhile
        try:
            kernel = self._made(key, make)
        except BaseException:       # an interrupt: it is asked for again
            self._known.pop(known, None)
            raise
        self._known[known] = kernel
        return kernel

    def _made(self, key: tuple[Any, ...], make: Callable[..., Any], number: int | None = None) -> Any:
        """What is made, or None, which is said once: it runs unfused for ever, which is slower and no less right."""
        try:
            if number is not None:
                self.cupy.cuda.Device(number).use()
            return make(self.cupy, *key)
        except self._failures as error:
            what = f"the kernel {key[0]!r}" if type(key[0]) is str else f"a kernel of {len(key[0].steps)} steps"
            logging.getLogger("lazyarray").warning("%s was not made: %s", what,
                                                   str(error).strip().partition("\n")[0])
            return None

    def _ask(self, known: Any, number: int | None, key: tuple[Any, ...], make: Callable[..., Any]) -> None:
        with holding(self._lock):
            if known in self._known:
                return
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[known] = None
            if known in self._jobs:     # of the many that were forgotten
                return
            # The interpreter is ending, or there are too many threads: it runs unfused.
            if self._ending or not self._has_workers():
                return
            self._waiting += 1
            self._jobs[known] = _Job(number, key, make)
            self._more.put(None)

    def _has_workers(self) -> bool:
        """Have a thread for each kernel that waits, up to `threads`; False where there is none."""
        self._workers = [worker for worker in self._workers if worker.is_alive()]
        if len(self._workers) < min(self._waiting + 1, self.threads):
            worker = threading.Thread(target=own(self._work), name="lazyarray-compiler", daemon=True)
            try:
                worker.start()
            except RuntimeError:
                return bool(self._workers)
            self._workers.append(worker)
        return True

    def _work(self) -> None:
        while True:
            self._more.get()
            with holding(self._lock):
                known = max(list(self._jobs), key=lambda k: self._jobs[k].asked)    # of several the first
                job = self._jobs.pop(known)
            kernel = None
            try:
                if not self._ending:
                    kernel = self._made(job.key, job.make, job.number)
            finally:
                with self._done:
                    self._known[known] = kernel
                    self._waiting -= 1
                    self._done.notify_all()

    def end(self) -> None:
        """Let the compiler finish what it is at, before the process takes it away."""
        self._ending = True
        self.wait(_LAST)
