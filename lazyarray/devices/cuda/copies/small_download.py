"""Copies of small arrays to the host, with other work until they arrive, through page-locked memory.

The driver is called from C (`small_copies.h`) where that is there; where it is not, or refuses, CuPy does it, which
knows what the errors are.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .... import _native
from ....errors.inspection import Unique
from ...base import MOST_FETCHED

if TYPE_CHECKING:
    from ..driver import Driver

_u1 = np.dtype(np.uint8)


class Fetches(Unique):
    """Those of one process.

    Parameters
    ----------
    cuda : module
        `cupy.cuda`.
    driver : Driver or None
    alloc : callable
        Gives page-locked memory of so many bytes, at its `ptr`.
    error : callable
        Gives the exception for an error of the driver's.
    """

    def __init__(self, cuda: Any, driver: Driver | None, alloc: Callable[[int], Any],
                 error: Callable[[int], Exception]) -> None:
        self._stream, self._alloc, self._error = cuda.get_current_stream, alloc, error
        self._free: list[tuple[memoryview, int]] = []       # page-locked memory that no copy uses
        #: What does it in C, or None.
        self.fetcher: Any = None
        if driver is not None and _native.small_copies is not None:
            self.fetcher = _native.small_copies.Fetcher(driver.fetch, driver.finish, self._stream, alloc, self._failed,
                                                         MOST_FETCHED)

    def begin(self, array: Any) -> Any:
        """Begin to copy at most `MOST_FETCHED` bytes, on the current stream; what `end` needs."""
        fetcher = self.fetcher
        copy = None if fetcher is None else fetcher.begin(array)
        if copy is not None:
            return copy
        # Taken away until it is over: a finaliser may run in between, and fetch something too.
        try:
            found = self._free.pop()
        except IndexError:
            memory = self._alloc(MOST_FETCHED)
            found = memoryview(np.frombuffer(memory, _u1)), memory.ptr
        buffer, address = found
        nbytes, stream = array.nbytes, self._stream()
        try:
            array.data.copy_to_host_async(address, nbytes, stream)
            return found, buffer[:nbytes], stream
        except BaseException:       # an interrupt too: the memory goes to whoever asks for some next
            stream.synchronize()
            raise

    def end(self, copy: Any, memory: memoryview) -> None:
        """Wait for it, and put it into `memory`."""
        if type(copy) is not tuple:
            copy.end(memory)
            return
        found, arrived, stream = copy
        stream.synchronize()
        memory[:] = arrived
        self._free.append(found)

    def forget(self) -> Any:
        """In a forked child, which leaves them to CuPy: what belongs to the parent, and can't be given back here."""
        kept = self._free, self.fetcher
        if self.fetcher is not None:
            self.fetcher.close()
        self._free, self.fetcher = [], None
        return kept

    def _failed(self, stream: Any, code: int) -> NoReturn:
        """Raise what the driver said when a copy on this stream was waited for."""
        stream.synchronize()    # CuPy's own, if it comes again
        raise self._error(code)
