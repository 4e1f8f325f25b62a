"""What the tests of recorded work have in common."""
from __future__ import annotations

import contextlib
import gc
import sys

import numpy as np

import lazyarray
from lazyarray import _native
from lazyarray.graph import programs, waiting
from lazyarray.graph.record import loops, operands


def pending(x):
    return x._self_storage.state == "pending"


def base(shape=(24,), dtype=float):
    return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)


@contextlib.contextmanager
def large_inputs(nbytes):
    """Inputs of so many bytes count as large within, in C as in Python."""
    of_python, of_c = operands.LARGE, None if _native.recording is None else _native.recording.large(nbytes)
    operands.LARGE = nbytes
    try:
        yield
    finally:
        operands.LARGE = of_python
        if of_c is not None:
            _native.recording.large(of_c)


def compiled():
    """Wait for the kernels that were asked for, where the device has any."""
    if hasattr(lazyarray.device(), "kernels"):
        lazyarray.device().kernels.wait()


def forget_kernels():
    """Have the device asked for the kernel of each program again."""
    for program in programs.programs.values():
        program.kernel = None
    for rule in loops.rules.values():
        if rule is not None:
            rule.kernel = rule.launch = None


@contextlib.contextmanager
def kernels():
    """The programs that are computed within: a list that fills."""
    device, found = lazyarray.device(), []
    kernel, reduction = device.kernel, device.reduction
    forget_kernels()

    def noted(program, size):
        found.append(program)
        result = kernel(program, size)
        program.kernel = None
        return result

    def noted_reduction(program, *args):
        found.append(program)
        return reduction(program, *args)

    device.kernel, device.reduction = noted, noted_reduction
    try:
        yield found
    finally:
        del device.kernel
        device.reduction = reduction


def same(lazy, plain):
    """Whether a lazy array is what NumPy has: values, dtype, shape and memory order."""
    assert (lazy.dtype, lazy.shape) == (plain.dtype, plain.shape)
    assert lazy.strides == plain.strides
    np.testing.assert_array_equal(np.asarray(lazy), plain)
    return True


def close(lazy, plain):
    """As `same`, where functions of the device round in their own way."""
    assert (lazy.dtype, lazy.shape, lazy.strides) == (plain.dtype, plain.shape, plain.strides)
    units = {"f": 4, "c": 512}.get(plain.dtype.kind, 0)     # as docs/tolerances.rst has it for powers
    np.testing.assert_allclose(np.asarray(lazy), plain, rtol=units and units * np.finfo(plain.dtype).eps)
    return True


def lazies(*arrays):
    """Lazy arrays of host arrays, on the device, with their memory order."""
    return [lazyarray.asarray(array) for array in arrays]


def growth(work, kept, most, rounds=5):
    """Assert that `work` adds no more than a reference to each of `kept`, and fewer than `most` objects.

    What is kept is kept in each round; what other tests have left comes and goes, and so do kernels that they wanted.
    """
    least = [np.inf] * len(kept)
    objects = np.inf
    for _ in range(rounds):
        compiled()
        waiting.waiting()       # leaves out what no longer waits
        gc.collect()
        # As floats: small numbers are kept, too, and one of `kept` may be one.
        before, there = [float(sys.getrefcount(one)) for one in kept], len(gc.get_objects())
        work()
        waiting.waiting()
        gc.collect()
        least = [min(few, abs(sys.getrefcount(one) - was)) for few, one, was in zip(least, kept, before)]
        objects = min(objects, len(gc.get_objects()) - there)
        if max(least) <= 1 and objects < most:
            break
    assert max(least) <= 1 and objects < most, (least, objects)
