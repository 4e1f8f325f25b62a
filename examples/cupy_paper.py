"""Reproduce what the first paper on CuPy shows, with lazy arrays and a photograph.

Each step runs NumPy functions on a lazy array, compares the result with the host, and prints what was copied. A
timeline of all steps is saved as a picture. Without a GPU and CuPy everything runs on the simulated device, which
compiles no kernels: that step is left out.
"""
from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from skimage import data

import lazyarray

xp = lazyarray.device().xp      # CuPy; on a GPU, `import cupy as xp` is the same


class NotHere(Exception):
    """The device has no such thing."""


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)) without overflow, by the functions of whatever module the array belongs to."""
    module = xp.get_array_module(x)
    return module.maximum(0, x) + module.log1p(module.exp(-abs(x)))


def indexing(x: np.ndarray) -> np.ndarray:
    """An element, a strided slice, rows in any order, and what a mask selects."""
    rows = x[np.array([0, 127, 255, 7])]
    return np.concatenate([x[3:7:2].ravel(), rows[:, -1], x[x > 0.95], x[3:4, 4]])


def linear_algebra(x: np.ndarray, rank: int = 20) -> np.ndarray:
    """The picture from its largest singular values, the Euclidean norm of what is left out, and a linear system."""
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    rough = (u[:, :rank] * s[:rank]) @ vt[:rank]
    left_out = np.linalg.norm(x - rough, keepdims=True)
    solved = np.linalg.solve(x @ x.T + 100 * np.eye(len(x), like=x), x[:, 0])
    return np.concatenate([rough.ravel(), solved, left_out.ravel()])


def sorting(x: np.ndarray) -> np.ndarray:
    """Sorted columns, the order that sorts them, and the order by two keys."""
    second, first = np.round(x[0]), np.round(x[1] * 4)
    return np.concatenate([np.sort(x, axis=0).ravel(), np.take_along_axis(x, np.argsort(x, axis=0), 0).ravel(),
                           first[np.lexsort((second, first))]])


def neighbours(shape: tuple[int, int]) -> scipy.sparse.csr_array:
    """The five-point Laplacian of a picture of this shape, as a sparse matrix on its pixels."""
    lines = [scipy.sparse.diags_array([np.ones(n - 1), np.full(n, -2.0), np.ones(n - 1)], offsets=[-1, 0, 1])
             for n in shape]
    rows, columns = (scipy.sparse.eye_array(n) for n in shape)
    return scipy.sparse.csr_array(scipy.sparse.kron(lines[0], columns) + scipy.sparse.kron(rows, lines[1]))


def sparse_on_host(x: np.ndarray) -> np.ndarray:
    """SciPy's sparse matrix times the picture: the picture is copied to the host once."""
    return neighbours(x.shape) @ x.ravel()


def sparse_on_device(x: np.ndarray) -> np.ndarray:
    """The device's sparse matrix times the picture: nothing is copied."""
    if not lazyarray.is_lazy(x):
        return sparse_on_host(x)
    library = lazyarray.device().library("cupyx.scipy.sparse")      # on a GPU, `import cupyx.scipy.sparse` is the same
    return library.csr_matrix(scipy.sparse.csr_matrix(neighbours(x.shape))) @ x.ravel()


def current_device(x: np.ndarray) -> np.ndarray:
    """Work goes to the current device, as in CuPy."""
    last = lazyarray.device().count - 1
    with xp.cuda.Device(last):
        y = lazyarray.asarray(np.ones(5)) * 2
        if lazyarray.device().device_of(lazyarray.asdevice(y)) != last:
            raise AssertionError("the array is on another device")
    return y


def kernels(x: np.ndarray) -> np.ndarray:
    """CUDA code of one's own, element by element and as a reduction, on lazy arrays."""
    if not lazyarray.is_lazy(x):
        return np.append((x * x + 1).ravel(), np.sqrt((x * x).sum()))
    if not hasattr(xp, "ElementwiseKernel"):
        raise NotHere("the simulated device compiles no CUDA")
    multiply_add = xp.ElementwiseKernel("T x, T y, T z", "T w", "w = x * y + z", "multiply_add")
    norm = xp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "euclidean_norm")
    multiply_add, norm = (lazyarray.lazy(kernel, pure=True) for kernel in (multiply_add, norm))
    return np.append(multiply_add(x, x, np.ones_like(x)).ravel(), norm(x))


def memory_pool(x: np.ndarray) -> np.ndarray:
    """An upload takes its number of bytes from the device's memory pool; a copy to the host takes none."""
    array = np.linspace(0, 1, 100_000)
    if not lazyarray.is_lazy(x):
        return array + 1
    pool = xp.get_default_memory_pool()
    limit = pool.get_limit()
    pool.set_limit(size=1 << 36)        # the simulated pool counts only what it limits
    asked: list[int] = []
    before = pool.used_bytes()
    with lazyarray.trace() as record, memory_hook(asked):
        y = lazyarray.asarray(array)
        uploaded, taken = sum(event.nbytes for event in record.uploads), pool.used_bytes() - before
        fetched = np.asarray(y)
    if taken != -(-uploaded // 512) * 512 or pool.used_bytes() - before != taken:
        raise AssertionError(f"the pool gave {taken} bytes; the trace says {uploaded}")
    if hasattr(xp.cuda, "MemoryHook") and asked != [uploaded]:
        raise AssertionError(f"the pool was asked for {asked} bytes; the trace says {uploaded}")
    pool.set_limit(size=limit)
    return fetched + 1


def memory_hook(asked: list[int]) -> Any:
    """A context that notes the size of each piece of memory that CuPy's pool is asked for."""
    if not hasattr(xp.cuda, "MemoryHook"):      # on the simulated device
        return contextlib.nullcontext()

    class Hook(xp.cuda.MemoryHook):
        name = "sizes"

        def malloc_postprocess(self, **about: Any) -> None:
            asked.append(about["size"])

    return Hook()


STEPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "softplus, by get_array_module": softplus,
    "indexing": indexing,
    "linear algebra": linear_algebra,
    "sorting": sorting,
    "SciPy's sparse matrix": sparse_on_host,
    "the device's sparse matrix": sparse_on_device,
    "current device": current_device,
    "kernels": kernels,
    "memory pool": memory_pool,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("cupy_paper.svg"), help="picture to write (%(default)s)")
    arguments = parser.parse_args()

    host = data.camera()[::2, ::2] / 255
    print(f"a {host.dtype} picture of shape {host.shape}, on the {lazyarray.device().name} device\n")
    x = lazyarray.asarray(host)
    with lazyarray.trace() as everything:
        for name, step in STEPS.items():
            try:
                with lazyarray.trace() as record:
                    result = step(x)
            except NotHere as reason:
                print(f"{name:30} left out: {reason}")
                continue
            error = np.abs(np.asarray(result) - step(host)).max()
            print(f"{name:30} {record.summary()}; largest difference from NumPy {error:.1e}")
            if not error < 1e-6:
                raise AssertionError(f"{name} differs from NumPy")
    arguments.output.write_text(everything.timeline(), encoding="utf-8")
    print(f"\nwhat moved, by line:\n{everything.line_table()}\n\nthe timeline is in {arguments.output}")


if __name__ == "__main__":
    main()
