"""Kernels for programs of element-wise steps: compiled beside the work, kept, launched.

CuPy compiles, and keeps what it compiled on disk.
"""
from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .cuda_source import THREADS, VECTOR, dtype_of, source, vector_length, walk_values

if TYPE_CHECKING:
    from ..fusion.program import Program

__all__ = ["Kernel", "Kernels", "compiled"]

#: Programs that are remembered.
_MOST = 4096


class Kernel:
    """A compiled program."""

    def __init__(self, cupy: Any, program: Program, module: Any) -> None:
        self._ndarray = cupy.ndarray
        self._vector = module.get_function("vector")
        self._single = module.get_function("single")
        self._length = vector_length(program)
        count = len(program.inputs)
        self._flat = [i for i in range(count) if program.inputs[i].mode == "flat"]
        self._outputs = [dtype_of(program, number) for number in program.outputs]
        self._program = program

    def __call__(self, arguments: list[Any], shape: tuple[int, ...], fortran: bool) -> list[Any]:
        order = "F" if fortran else "C"
        outputs = [self._ndarray(shape, dtype, None, None, order) for dtype in self._outputs]
        n = outputs[0].size
        aligned = True
        for i in self._flat:
            if arguments[i].data.ptr % VECTOR:
                aligned = False
        launched = [*arguments, *outputs, n, *walk_values(self._program, arguments, shape, fortran)]
        length = self._length if aligned else 1
        blocks = -(-n // (THREADS * length))
        (self._vector if aligned else self._single)((blocks,), (THREADS,), launched)
        return outputs


def compiled(cupy: Any, text: str) -> Any:
    """The module of a CUDA source, from the disk if it was compiled before."""
    module = cupy.RawModule(code=text, options=("--std=c++17",))
    module.compile()
    return module


def _fused(cupy: Any, program: Program, wide: bool) -> Kernel | None:
    text = source(program, cupy, wide)
    return None if text is None else Kernel(cupy, program, compiled(cupy, text))


class Kernels:
    """The kernels of a process: compiled by a thread of their own, never by who asks."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._failures = (cupy.cuda.compiler.CompileException, cupy.cuda.runtime.CUDARuntimeError,
                          cupy.cuda.driver.CUDADriverError, OSError)
        self._known: dict[tuple[Any, ...], Any] = {}
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._worker: threading.Thread | None = None
        self._lock = threading.Lock()
        self._done = threading.Condition(self._lock)
        self._waiting = 0

    def get(self, program: Program, size: int) -> Kernel | None:
        """The kernel of a program, or None: then it is being compiled, or can't be."""
        key = program, size >= 1 << 31
        found = self._known.get(key, self)
        if found is self:
            self._ask(key, _fused)
            return None
        return found

    def find(self, key: tuple[Any, ...], make: Callable[..., Any]) -> Any:
        """What ``make(cupy, *key)`` gives, or None: then it is being made, or can't be. A key begins with a program."""
        found = self._known.get(key, self)
        if found is self:
            self._ask(key, make)
            return None
        return found

    def wait(self) -> None:
        """Wait until everything that was asked for is compiled."""
        with self._done:
            while self._waiting:
                self._done.wait()

    def _ask(self, key: tuple[Any, ...], make: Callable[..., Any]) -> None:
        with self._lock:
            if key in self._known:
                return
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = None
            self._waiting += 1
            self._jobs.put((key, make))
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self._work, name="lazyarray-compiler", daemon=True)
                self._worker.start()

    def _work(self) -> None:
        while True:
            key, make = self._jobs.get()
            kernel = None
            try:
                kernel = make(self._cupy, *key)
            except self._failures as error:
                # It runs unfused for ever, which is slower and no less right.
                logging.getLogger("lazyarray").warning("a kernel of %d steps was not made: %s", len(key[0].steps),
                                                       str(error).strip().partition("\n")[0])
            finally:
                with self._done:
                    self._known[key] = kernel
                    self._waiting -= 1
                    self._done.notify_all()
