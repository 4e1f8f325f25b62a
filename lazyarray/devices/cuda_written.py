"""Written pages to the device, part by part as they are found: by `_staging_written.h`, without the interpreter."""
from __future__ import annotations

from typing import Any

from .. import speedups
from .cuda_copies import Copies, Region
from .cuda_filling import PIECE
from .cuda_pieces import SMALL

__all__ = ["upload_written"]


def upload_written(copies: Copies, pages: tuple[int, int, int], region: Region | None, target: Any,
                   turns: tuple[int, ...], outcome: list[Any]) -> bool:
    """`Device.upload_written`, where all of the region is locked. Small ranges are left: a kernel may read them."""
    driver, runtime, handle = copies.driver, copies.runtime, copies.stream().ptr
    if (speedups.staging is None or driver is None or region is None or not region.complete
            or handle == runtime.streamPerThread):      # for which the driver has other functions
        return False
    runtime.setDevice(target.data.device_id)    # the current one: so that this thread has a context
    error = speedups.staging.send_written((driver.copy, driver.finish), pages, target.data.ptr, handle,
                                          (PIECE, SMALL), turns, outcome)
    if error:
        raise copies.error(error)
    return True
