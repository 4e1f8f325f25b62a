"""Parameters that say how a function works, not what on: axes, shapes, shifts, widths and the like.

The device library takes them as Python numbers and tuples, and so do the adapters: an array that is given for one stays
on the host, and a lazy one is fetched, once for as long as it is not written.
"""
from __future__ import annotations

import numpy as np

__all__ = ["INTEGERS", "ITERATING", "NAMES", "ON_DEVICE", "OPERANDS"]

#: The names of those that are integers, in whatever function: an array of them is the same as Python's own.
INTEGERS = frozenset(
    "axis axes axis1 axis2 axisa axisb axisc source destination n s k N M num deg ind offset decimals kth minlength "
    "shape newshape new_shape dims shift pad_width stat_length reps count edge_order ddof correction "
    "indices_or_sections window_shape ndim".split())
#: Those of the others: flags, words, and numbers whose dtype counts.
_VALUES = frozenset(
    "q range repeats obj constant_values end_values reflect_type mode order norm dtype kind stable descending side ord "
    "casting keepdims overwrite_input method density rowvar bias increasing full full_matrices compute_uv hermitian "
    "UPLO upper endpoint retstep return_index return_inverse return_counts return_indices equal_nan assume_unique "
    "invert sorted right bitorder indexing sparse copy optimize trim include_initial returned wrap".split())
NAMES = INTEGERS | _VALUES
#: The same names where they are operands.
OPERANDS = frozenset({(np.emath.logn, "n")})
#: What the device reads itself, if it is there already: how often each element comes, or which ones go.
ON_DEVICE = frozenset({(np.repeat, "repeats"), (np.delete, "obj")})
#: Functions that iterate over such a parameter, and so refuse an array without dimensions where they take a number.
ITERATING = frozenset({(np.fft.fftshift, "axes"), (np.fft.ifftshift, "axes"), (np.resize, "new_shape")})
