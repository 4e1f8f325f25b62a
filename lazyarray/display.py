"""Text of a lazy array: NumPy's own, made from the corners that it shows."""
from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import transfer, wrap
from .storage import Storage

if TYPE_CHECKING:
    from .array import LazyNdarray


def text(x: LazyNdarray, function: Callable[[np.ndarray], str]) -> str:
    """``function(x)`` for `repr` or `str`."""
    return function(printable(x))


def printable(x: LazyNdarray, threshold: int | None = None, edgeitems: int | None = None) -> np.ndarray:
    """A host array that prints as `x` does: `x` itself, or only its corners if NumPy shows no more.

    The corners are fetched in one piece. The rest of the returned array is memory that was reserved
    and never touched, since NumPy does not look at it.
    """
    outline = wrap.outline_of(x)
    storage = x._self_storage
    if type(storage) is not Storage:
        return outline
    settings = np.get_printoptions()
    threshold = settings["threshold"] if threshold is None else threshold
    edge = settings["edgeitems"] if edgeitems is None else edgeitems
    cut = [axis for axis, n in enumerate(outline.shape) if n > 2 * edge]
    if outline.size <= threshold or not cut or storage.state != "device":
        return wrap.host_of(x, "printed")
    device = storage.device
    if edge == 0:
        return _reserved(outline.shape, outline.dtype)
    cut_out = transfer.to_host(device, corners(device.xp, wrap.device_of(x), edge), "corners, to be printed")
    result = _reserved(outline.shape, outline.dtype)
    result[np.ix_(*(np.r_[:edge, n - edge:n] if n > 2 * edge else np.arange(n) for n in outline.shape))] = cut_out
    return result


def corners(xp: Any, array: Any, edge: int, axes: int | None = None) -> Any:
    """`array` with no more than `edge` elements at each end of its axes (of the first so many), by `xp`'s functions."""
    for axis, n in enumerate(array.shape[:axes]):
        if n > 2 * edge:
            skip = (slice(None),) * axis
            array = xp.concatenate((array[(*skip, slice(edge))], array[(*skip, slice(-edge, None))]), axis=axis)
    return array


def _reserved(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of any size whose memory is taken page by page as it is written."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    nbytes = max(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize, 1)
    return np.ndarray(shape, dtype, mmap.mmap(-1, nbytes, flags=flags))
