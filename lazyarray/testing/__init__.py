"""Tools for test suites: check that a function does the same with lazy arrays as with NumPy arrays.

There are four tools:

``check(func, *args, **kwargs)``
    Runs ``func`` with NumPy arrays and with lazy arrays of the same values. It raises AssertionError if the two runs
    differ in a value, dtype, shape, type of result or exception, in changes to the arguments, or in whether the result
    shares memory with an argument.
``specimens()`` and ``lazy_arrays()``
    Hypothesis strategies for arrays of any dtype, shape and memory layout: views of larger arrays, current on the
    device, on the host or on both, with or without an alias. ``check`` accepts specimens as arguments.
``simulated_cupy()``
    Lets ``import cupy`` find the simulated device, so that code for CuPy can be tested without a GPU.
``assert_copies()``
    Counts the copies between device and host in a block.

The pytest plugin (``lazyarray_pytest``) has fixtures for them. Only the strategies need hypothesis.
"""
from __future__ import annotations

from lazyarray.testing.copies import assert_copies
from lazyarray.testing.cupy_modules.missing import NotSimulatedError
from lazyarray.testing.cupy_modules.modules import simulated_cupy
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

__all__ = ["DEVICE_DTYPES", "HOST_DTYPES", "LAYOUTS", "STATES", "NotSimulatedError", "Oracle", "Specimen",
           "assert_copies", "check", "lazy_arrays", "simulated_cupy", "specimens"]
