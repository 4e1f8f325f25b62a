"""A fault of the simulated device at an allocation, copy, launch or wait: every array is what it was before, or after.

The cases and looks are those of `faults`; `Fault` takes the place of its own.
"""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Self

from lazyarray.devices.simulated import array, device, hardware, indexing, libraries, namespace, random, ufuncs

#: What the simulated device does: methods of its class, and functions by the modules that call them.
METHODS = ("empty", "upload", "upload_ranges", "download", "download_begin", "fetch_begin", "fetch_end", "contiguous",
           "selected", "assign", "wait", "synchronize", "wait_for_stream", "new_stream", "order")
CALLERS = array, device, indexing, libraries, namespace, random, ufuncs
FUNCTIONS = "launch", "wrap_new"        # kernels, and what allocates without one


class Fault:
    """A context in which one operation of the device raises, before it is done or after, like `fault_points.Fault`."""

    after = False
    names: frozenset[str] | None = None     # of the operations that it may be; None: of any

    def __init__(self, number: int, error: type[BaseException], meanwhile: Callable[[], None] | None = None,
                 passed: list[Any] | None = None, then: int | None = None) -> None:
        self.left, self.error, self.passed = number, error, passed
        self.place: tuple[str, str, int, str] | None = None
        self.second = None
        self.swallowed = True       # NumPy's C code may throw it away where it asks for a buffer
        self.within = False
        self.thread = threading.get_ident()

    def __enter__(self) -> Self:
        self.hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
        self.kept = []
        kind = device.SimulatedDevice
        for owner, names in [(kind, METHODS), (hardware.Stream, ("synchronize",)),
                             *((module, FUNCTIONS) for module in CALLERS)]:
            for name in names if self.names is None else set(names) & self.names:
                if hasattr(owner, name):
                    self._replace(owner, name, getattr(owner, name))
        return self

    def _replace(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        def operation(*args: Any, **kwargs: Any) -> Any:
            if self.within or self.left < 0 or threading.get_ident() != self.thread:
                return function(*args, **kwargs)
            self.left -= 1
            if self.passed is not None:
                self.passed.append(name)
            if self.left >= 0:      # what one operation is made of is a part of it
                self.within = True
                try:
                    return function(*args, **kwargs)
                finally:
                    self.within = False
            self.place = name, "after" if self.after else "before", 0, "device"
            if self.after:
                function(*args, **kwargs)
            raise self.error("a fault of the device")

        self.kept.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, operation)

    def __exit__(self, *exc_info: object) -> None:
        for owner, name, function in self.kept:
            if function is None:
                delattr(owner, name)
            else:
                setattr(owner, name, function)
        sys.unraisablehook = self.hook


class Late(Fault):
    """The same where the operation is done, and fails then, as kernels do that nobody has waited for."""

    after = True


class Compiling(Fault):
    """The same where only what has a kernel may fail, before it runs: the kernel can't be compiled."""

    names = frozenset({"launch", "contiguous", "selected", "assign"})
