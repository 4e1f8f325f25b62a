"""Reductions that are computed in one pass with the elements that they are of."""
from __future__ import annotations

import contextlib

import numpy as np
import pytest

import lazyarray
from lazyarray.graph import reduction
from lazyarray.graph.record import reductions

ON_CUDA = lazyarray.device().name == "cuda"


@pytest.fixture(autouse=True)
def deferred():
    """Everything is recorded, and every reduction is taken that can be."""
    with lazyarray.options(defer_from=0):
        yield


@contextlib.contextmanager
def taken():
    """The names of the reductions that are computed within, in one pass with their elements."""
    found, launched, kernel_of = [], reduction.launched, reductions.kernel_of

    def noted(*args):
        result = launched(*args)
        if result is not None:
            found.append(args[4].name)
        return result

    def noting(device, program, kind, *args):
        kernel = kernel_of(device, program, kind, *args)

        def run(*arguments):
            result = kernel(*arguments)
            found.append(kind.name)
            return result

        return kernel and run

    known = reductions.for_native()["reductions"]       # so that the part in C asks again
    known.clear()
    reduction.launched, reductions.kernel_of = noted, noting
    try:
        yield found
    finally:
        reduction.launched, reductions.kernel_of = launched, kernel_of
        known.clear()


def fused(call):
    """What a call gives, and the reductions that it took: on CUDA once their kernels are compiled."""
    for _ in range(4):
        with taken() as found:
            result = call()
        if found or not ON_CUDA:
            break
        lazyarray.device().kernels.wait()
    return result, found


def pending(x):
    return x._self_storage.state == "pending"


def function(name):
    return {"norm": np.linalg.norm, "count": np.count_nonzero}.get(name) or getattr(np, name)


def numbers(dtype, shape, seed=0):
    values = np.random.default_rng(seed).integers(-4, 5, shape)
    if np.dtype(dtype).kind == "u":
        values = abs(values)
    return (values + 1j * values[::-1] if dtype in "FD" else values / 2 if dtype in "fd" else values).astype(dtype)
