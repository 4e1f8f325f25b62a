"""Bodies of kernels that compilers read from a file. They run on CUDA only."""
from __future__ import annotations

try:
    from cupyx import jit
    from numba import cuda
except ImportError:
    jit = cuda = None


def add(x, y, amount, n):
    i = jit.blockDim.x * jit.blockIdx.x + jit.threadIdx.x
    if i < n:
        y[i] = x[i] + amount


def numba_add(x, y, amount, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i] + amount
