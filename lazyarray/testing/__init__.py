"""What a test-suite needs to find out whether a function takes lazy arrays as it takes NumPy's.

Three pieces, usable apart from each other:

``check(func, *args, **kwargs)``
    The oracle. Runs ``func`` on NumPy arrays and on lazy arrays of the same values and raises AssertionError where
    the two runs differ: in a value, dtype, shape, kind of result or raised exception, in what they did to their
    arguments, or in whether the result shares memory with an argument.
``specimens()`` and ``lazy_arrays()``
    Hypothesis strategies for arrays of any dtype, shape and memory layout, being a view of a larger array, current on
    the device, on the host or on both, with or without an alias in foreign hands. ``check`` takes specimens directly.
``assert_copies()``
    Counts the copies between device and host that a block makes.

The pytest plugin (``lazyarray.pytest_plugin``) offers them as fixtures. Only the strategies need hypothesis.
"""
from __future__ import annotations

from lazyarray.testing.copies import assert_copies
from lazyarray.testing.oracle import Oracle, check
from lazyarray.testing.specimens import (
    DEVICE_DTYPES,
    HOST_DTYPES,
    LAYOUTS,
    STATES,
    Specimen,
    lazy_arrays,
    specimens,
)

__all__ = ["DEVICE_DTYPES", "HOST_DTYPES", "LAYOUTS", "STATES", "Oracle", "Specimen", "assert_copies", "check",
           "lazy_arrays", "specimens"]
