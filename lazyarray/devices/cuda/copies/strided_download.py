"""Copies of rows to the host: runs of bytes at regular distances, as a part of an image has them.

The copy engine moves rows of some width at the rate of the link, straight into page-locked memory. What is finer is
gathered on the device first.
"""
from __future__ import annotations

import itertools
from typing import Any

from .pinned import Pinned

#: Narrower rows are gathered. (Of 64 bytes 45 GB/s arrive, of 32 bytes 24, where memory in one piece comes at 55.)
WIDTH = 64
#: Fewer bytes than this for each call to the driver are gathered.
_BYTES_A_CALL = 64 << 10
_TO_HOST = 2        # cudaMemcpyDeviceToHost


def download_rows(pinned: Pinned, source: int, target: int, first: int, run: int, levels: list[tuple[int, int]],
                  stream: Any) -> bool:
    """`Device.download_rows`, between addresses; False if the rows are narrow, or the host memory can't be locked."""
    (pitch, count), *outer = levels or [(run, 1)]       # all of a run of which parts were there
    if run < WIDTH or pitch < run or run * count < _BYTES_A_CALL:
        return False
    begins = [first + sum(offsets)
              for offsets in itertools.product(*[range(0, stride * n, stride) for stride, n in reversed(outer)])]
    region = pinned.locked(target + begins[0], target + begins[-1] + (count - 1) * pitch + run)
    if region is None:
        return False
    try:
        for begin in begins:
            _copy_rows(pinned, region, source + begin, target + begin, run, pitch, count, stream)
    finally:        # after an interrupt too: nothing may be under way into memory that others get
        stream.synchronize()
    return True


def _copy_rows(pinned: Pinned, region: Any, source: int, target: int, run: int, pitch: int, count: int,
               stream: Any) -> None:
    """The rows of one plane; no call crosses from one locked piece of memory to the next."""
    row = 0
    while row < count:
        start = target + row * pitch
        _, _, _, end = next(region.pieces(start, start + 1))
        whole = min((end - start) // pitch, count - row)        # with their gaps within the piece
        if whole:
            pinned.runtime.memcpy2DAsync(start, pitch, source + row * pitch, pitch, run, whole, _TO_HOST, stream.ptr)
            row += whole
            continue
        for low, high, _, _ in region.pieces(start, start + run):
            pinned.runtime.memcpyAsync(low, source + low - target, high - low, _TO_HOST, stream.ptr)
        row += 1
