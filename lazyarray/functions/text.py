"""Text of a lazy array: NumPy's own, made from the corners that it shows."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors.interrupts import holding
from ..storage import handles
from ..storage.reserved_memory import reserved
from ..storage.storage import Storage

if TYPE_CHECKING:
    from ..storage.handles import ArrayHandle


#: Bytes up to which what is printed is copied.
_COPIED = 64 << 10


def _as_it_is(host: np.ndarray) -> np.ndarray:
    """What is printed, as it is now: NumPy looks at it more than once, and other threads may write it meanwhile."""
    return host.copy() if host.nbytes <= _COPIED else host


def printable(x: ArrayHandle, threshold: int | None = None, edgeitems: int | None = None) -> np.ndarray:
    """A host array that prints as `x` does: `x` itself, or only its corners if NumPy shows no more.

    The corners are fetched in one piece. The rest of the returned array is memory that was reserved
    and never touched, since NumPy does not look at it.
    """
    meta = handles.meta_of(x)
    storage = x._self_storage
    if type(storage) is not Storage:
        return meta
    settings = np.get_printoptions()
    threshold = settings["threshold"] if threshold is None else threshold
    edge = settings["edgeitems"] if edgeitems is None else edgeitems
    # Without edges NumPy goes by all values, and shows the last one.
    whole = meta.size <= threshold or not edge or settings.get("override_repr") is not None
    if whole or all(n <= 2 * edge for n in meta.shape):
        if not (storage.loans or storage.foreign):
            with holding(storage.lock):
                return _as_it_is(handles.host_of(x, "printed"))     # it is kept: what is so small may be wanted again
        edge = max(meta.size, 1)
    with storage.place():
        from ..storage import residency  # programs that print nothing need none of it

        with holding(storage.lock):
            seen = residency.look(storage, meta, x._self_array)
            if seen.xp is np:
                return _as_it_is(seen.array)
        found = residency.fetched(seen, "values for printing", edge)[0, ...]
    if found.shape == meta.shape:
        return found
    result = reserved(meta.shape, meta.dtype)
    result[np.ix_(*[np.r_[:edge, n - edge:n] if n > 2 * edge else np.arange(n) for n in meta.shape])] = found
    return result
