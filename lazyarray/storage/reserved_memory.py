"""Address space that takes no memory until it is touched."""
from __future__ import annotations

import mmap
import os
import sys

import numpy as np

#: Python names this flag since 3.13; its value is the same on all of Linux's newer architectures.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" and os.uname().machine in (
    "x86_64", "aarch64", "riscv64", "loongarch64", "s390x") else 0)
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE

_LARGEST, _SMALLEST = 1 << 44, 1 << 24
_PART = 8      # of a limited address space, at most this part is reserved for nothing


def reserved(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of any size, of zeros, whose memory is taken page by page as it is written.

    Raises
    ------
    OSError
        The address space is limited (``ulimit -v``).
    """
    nbytes = max(int(np.prod(shape, dtype=object)) * dtype.itemsize, 1)
    try:
        memory = mmap.mmap(-1, nbytes, flags=_PRIVATE)
    except OSError:     # a system that promises no more memory than it has; of a file it takes what is written alone
        import tempfile  # expensive to import, and hardly ever needed

        with tempfile.TemporaryFile() as file:
            file.truncate(nbytes)
            memory = mmap.mmap(file.fileno(), nbytes)
    return np.ndarray(shape, dtype, memory)


def blank_region() -> mmap.mmap | None:
    """As many bytes of zeros as the system has addresses for, at most 16 TiB; None if that is less than 16 MiB."""
    size = _LARGEST
    try:
        import resource  # not on every system

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            size = min(size, 1 << max(limit // _PART, 1).bit_length() - 1)
    except ImportError:
        pass
    while size >= _SMALLEST:
        # Where memory is promised strictly, what can be written counts in full, and what can only be read doesn't.
        for protection in (mmap.PROT_READ | mmap.PROT_WRITE, mmap.PROT_READ):
            try:
                memory = mmap.mmap(-1, size, flags=_PRIVATE, prot=protection)
            except OSError:
                continue
            if hasattr(mmap, "MADV_DONTDUMP"):
                memory.madvise(mmap.MADV_DONTDUMP)      # or a core dump takes hours
            return memory
        size >>= 1
    return None
