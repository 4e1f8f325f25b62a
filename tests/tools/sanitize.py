"""Runs kernels of every form under compute-sanitizer: `make sanitize`, on a machine with a GPU and CUDA's tools.

    python tests/tools/sanitize.py [memcheck initcheck racecheck synccheck] [elementwise reductions selections]

Each array is an allocation of its own here, so that an access beside it is seen: in CuPy's pool it would fall on a
neighbour. Everything runs once without a tool, which leaves what is compiled on disk. The exit code is 1 if a tool
found something, 2 if it only failed itself.
"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from walks import program_of, walks

from lazyarray.devices.cuda.kernels.launch_plan import Form

TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")
LENGTHS = (1, 2, 3, 15, 16, 17, 127, 128, 129, 1023, 1024, 1025, 2047, 2049, 4097)


#: What is run, and its kernels, by name or by part of it. The tool for races keeps a record of each launch: of those
#: alone.
PARTS = {"elementwise": "kne=fused", "reductions": "kne=reduce", "selections": "kns=select"}
#: Arguments of a tool beside those of all.
ARGUMENTS = {"racecheck": ["--racecheck-report", "all", "--force-blocking-launches"]}
#: How a tool says that something is wrong with itself.
_INTERNAL = "Internal Sanitizer Error"


class AtOnce:
    """Kernels whose compiler never works while something runs, and is waited for.

    `general`: no form is made but the general ones.
    """

    def __init__(self, cupy, kernels):
        self.general, self._cupy, self._kernels, self._find = False, cupy, kernels, kernels.find
        kernels.find = self.find

    def find(self, key, make):
        if self.general and isinstance(key[-1], Form):
            return None
        self._cupy.cuda.Device().synchronize()
        if self._find(key, make) is None:
            self._kernels.wait()
        return self._find(key, make)


def elementwise(cupy, lazyarray, at_once):
    """Walks and lengths, with the general form and the best one. Returns how many kernels ran."""
    ran, kernels = 0, lazyarray.device().kernels

    def check(program, operands, shape):
        nonlocal ran
        for at_once.general in (True, False):
            outputs = kernels.get(program, 1)(operands, shape, False)
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


def reductions(cupy, lazyarray, at_once):
    """Chains that end in a reduction, in the forms that kernels for them have. Returns how many there were."""
    ran = 0
    for shape in ((5000,), (3, 70000), (70, 300), (4000, 7), (6, 50, 40)):
        host = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
        with lazyarray.options(small_on_host=False):
            device = lazyarray.asarray(host)
        for name in ("sum", "max", "argmin", "var", "any"):
            for axis in (None, *range(host.ndim)):
                with lazyarray.options(defer_from=0):
                    found = np.asarray(getattr(np, name)(device * 2 + 1, axis=axis))
                np.testing.assert_allclose(found, getattr(np, name)(host * 2 + 1, axis=axis), rtol=1e-4)
                ran += 1
    return ran


def selections(cupy, lazyarray, at_once):
    """Rows by masks, in words of all sizes, dense and sparse. Returns how many there were."""
    ran, device = 0, lazyarray.device()
    for size in (*LENGTHS, 300_000):
        for share in (0, 0.01, 0.5, 1):
            mask = np.random.default_rng(size).random(size) < share
            for dtype, row in (("?", 1), ("e", 1), ("f", 1), ("d", 1), ("F", 5), ("D", 1), ("f", 8), ("B", 100)):
                host = np.random.default_rng(0).integers(0, 2, (size, row)).astype(dtype)
                found = device.selected(cupy.asarray(mask)).take(cupy.asarray(host), mask.ndim)
                assert np.array_equal(found.get(), host[mask]), (size, share, dtype, row)
                ran += 1
    return ran


def work(parts):
    """What is run under the tool."""
    import cupy

    import lazyarray

    cupy.cuda.set_allocator(None)
    at_once = AtOnce(cupy, lazyarray.device().kernels)
    for run in (elementwise, reductions, selections):
        if run.__name__ in parts:
            print(f"{run.__name__}: {run(cupy, lazyarray, at_once)} kernels ran", flush=True)


def verdict(code, text):
    """What a tool found (None: nothing), and whether it is about the kernels rather than about the tool."""
    if not code:
        return None, False
    summary = re.search(r"SUMMARY: (\d+) (?:error|hazard)", text)
    internal = text.count(_INTERNAL)
    if summary is None or int(summary[1]) > internal or not internal:
        names = sorted(set(re.findall(r"(?:in|at) (?:void )?([\w:]+)(?:<[^+]*>)?(?:\([^+]*\))?\+0x", text)))
        return f"found something in {', '.join(names) or 'no kernel that it names'} (exit code {code})", True
    return f"failed itself {internal} times and found nothing else", False


def main(tools, parts):
    command = shutil.which("compute-sanitizer")
    if command is None:
        sys.exit("compute-sanitizer is not on the PATH: CUDA's toolkit brings it, or nvidia-cuda-sanitizer-api")
    environment = {**os.environ, "LAZYARRAY_DEVICE": "cuda"}
    here = {"env": environment, "cwd": Path(__file__).parents[2]}
    if subprocess.run([sys.executable, __file__, "--work", *parts], check=False, **here).returncode:
        sys.exit("it fails without a tool")
    worst = 0
    # One part at a time where only its kernels are looked at.
    runs = [(tool, some) for tool in tools for some in ([[part] for part in parts] if tool == "racecheck" else [parts])]
    for tool, some in runs:
        only = ["--kernel-name", PARTS[some[0]]] if tool == "racecheck" else []
        start = time.perf_counter()
        done = subprocess.run([command, "--tool", tool, *ARGUMENTS.get(tool, []), *only, "--error-exitcode", "9",
                               "--print-limit", "50", sys.executable, __file__, "--work", *some],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **here)
        found, ours = verdict(done.returncode, done.stdout)
        if found:
            print(done.stdout)
        print(f"{tool} of {' and '.join(some)}: {found or 'nothing found'} ({time.perf_counter() - start:.0f} s)",
              flush=True)
        worst = 1 if ours or worst == 1 else 2 if found else worst
    sys.exit(worst)


if __name__ == "__main__":
    chosen = [name for name in sys.argv[1:] if name in PARTS] or list(PARTS)
    if "--work" in sys.argv:
        work(chosen)
    else:
        main([name for name in sys.argv[1:] if name in TOOLS] or TOOLS, chosen)
