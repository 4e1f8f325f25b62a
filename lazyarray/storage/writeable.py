"""Whether a view may be written.

What `numpy.broadcast_arrays` returns is writable, but NumPy warns once, when it is written, since several of its
elements may be one. Reading its ``flags.writeable`` gives another warning, which is meant for programs: where the
library itself has to know, it asks here.
"""
from __future__ import annotations

import warnings
from functools import cache

import numpy as np

from ..events.callers import user_frame

_WRITEABLE = 0x0400
_WARNS = 1 << 31        # NPY_ARRAY_WARN_ON_WRITE


def writeable(view: np.ndarray) -> bool:
    """Whether a view may be written: for those who don't write it now."""
    return bool(view.flags.num & _WRITEABLE)


def both_or_neither(view: np.ndarray, other: np.ndarray) -> bool:
    """Whether two views may be written, or neither."""
    return not (view.flags.num ^ other.flags.num) & _WRITEABLE


def may_write(view: np.ndarray) -> bool:
    """Whether a view may be written, by a caller who then does. The first time, NumPy's warning goes before."""
    num = view.flags.num
    if not num & _WRITEABLE:        # such a view of one that warns warns of nothing
        return False
    if num & _WARNS:
        _warn(_said(writing=True))
        view.flags.writeable = True     # takes the warning away; not before, since under an "error" filter it raises
    return True


def shown(num: int) -> bool:
    """``flags.writeable`` as a program reads it, of flags with this number."""
    if num & _WARNS:
        _warn(_said(writing=False))
    return bool(num & _WRITEABLE)


def _warn(known: warnings.WarningMessage) -> None:
    """Give a warning of NumPy's at the user's line."""
    frame = user_frame()
    warnings.warn_explicit(str(known.message), known.category, frame.f_code.co_filename, frame.f_lineno,
                           module=frame.f_globals.get("__name__") or "<unknown>",
                           registry=frame.f_globals.setdefault("__warningregistry__", {}))


@cache
def _said(writing: bool) -> warnings.WarningMessage:
    """What the installed NumPy says when such an array is written, or else when the flag is read."""
    shared = np.broadcast_arrays(np.zeros(1), np.zeros(2))[0]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if writing:
            shared[0] = 1
        else:
            shared.flags.writeable  # noqa: B018
    return said[0]
