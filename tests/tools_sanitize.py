"""Runs kernels of every form under compute-sanitizer: `make sanitize`, on a machine with a GPU and CUDA's tools.

    python tests/tools_sanitize.py [memcheck initcheck racecheck synccheck]

Each array is an allocation of its own here, so that an access beside it is seen: in CuPy's pool it would fall on a
neighbour.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from walks import program_of, walks

TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")
LENGTHS = (1, 2, 3, 15, 16, 17, 127, 128, 129, 1023, 1024, 1025, 2047, 2049, 4097)


def elementwise(cupy, kernels):
    """Walks and lengths, with the general form and the best one. Returns how many kernels ran."""
    ran = 0

    def check(program, operands, shape):
        nonlocal ran
        for _ in range(2):
            if kernels.get(program, 1) is None:
                kernels.wait()
            outputs = kernels.get(program, 1)(operands, shape, False)
            kernels.wait()
            for found, expected in zip(outputs, program.run(operands)):
                assert bool((found == expected).all()), shape
            ran += 1

    for dtype in map(np.dtype, ("i1", "f4", "c16")):
        for shape, operands, _, _ in walks(cupy, dtype).values():
            dense = cupy.asarray(np.ones(shape, dtype))
            check(program_of(cupy, dtype, len(operands), len(shape)), [*operands, dense], shape)
        program = program_of(cupy, dtype, 1, 1, "flat")
        for n in LENGTHS:
            check(program, [cupy.asarray(np.arange(n).astype(dtype)), cupy.asarray(np.ones(n, dtype))], (n,))
            line = cupy.asarray(np.arange(n + 1).astype(dtype))
            check(program, [line[1:], line[:-1]], (n,))
    return ran


def reductions(lazyarray, kernels):
    """Chains that end in a reduction, in the forms that kernels for them have. Returns how many there were."""
    ran = 0
    for shape in ((5000,), (3, 70000), (70, 300), (4000, 7), (6, 50, 40)):
        host = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
        device = lazyarray.asarray(host)
        for name in ("sum", "max", "argmin", "var", "any"):
            for axis in (None, *range(host.ndim)):
                for _ in range(2):
                    found = np.asarray(getattr(np, name)(device * 2 + 1, axis=axis))
                    kernels.wait()
                np.testing.assert_allclose(found, getattr(np, name)(host * 2 + 1, axis=axis), rtol=1e-4)
                ran += 1
    return ran


def work():
    """What is run under the tool."""
    import cupy

    import lazyarray

    cupy.cuda.set_allocator(None)
    kernels = lazyarray.device()._kernels
    walked = elementwise(cupy, kernels)
    with lazyarray.options(defer_from=0):
        reduced = reductions(lazyarray, kernels)
    print(f"{walked} element-wise kernels and {reduced} reductions ran")


def main(tools):
    command = shutil.which("compute-sanitizer")
    if command is None:
        sys.exit("compute-sanitizer is not on the PATH: CUDA's toolkit brings it, or nvidia-cuda-sanitizer-api")
    environment = {**os.environ, "LAZYARRAY_DEVICE": "cuda"}
    failed = []
    for tool in tools:
        start = time.perf_counter()
        done = subprocess.run([command, "--tool", tool, "--error-exitcode", "9", "--print-limit", "20", sys.executable,
                               __file__, "--work"], env=environment, cwd=Path(__file__).parent.parent, check=False)
        print(f"{tool}: {'nothing found' if not done.returncode else f'exit code {done.returncode}'} "
              f"({time.perf_counter() - start:.0f} s)", flush=True)
        if done.returncode:
            failed.append(tool)
    sys.exit(f"found something: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    if "--work" in sys.argv:
        work()
    else:
        main(sys.argv[1:] or TOOLS)
