"""Torch's `interpolate` against CuPy's `ndimage.zoom`, from one lazy picture, at several sizes.

``python -m benchmarks.resize`` runs the comparison of ``examples/resize.py``. On a GPU the figures are kept in
``benchmarks/results``; on the simulated device both compute on the host, and nothing is kept.
"""
from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np

import lazyarray

from . import timing

SIDES = (256, 1024, 4096)


def example() -> ModuleType:
    """``examples/resize.py`` as a module."""
    path = Path(__file__).parent.parent / "examples" / "resize.py"
    spec = importlib.util.spec_from_file_location("resize_example", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def figures(sides: tuple[int, ...], rounds: int) -> list[dict]:
    """A figure for each side, factor, kind of interpolation and library."""
    compare = example().compare
    made = []
    for side in sides:
        picture = lazyarray.asarray(np.random.default_rng(0).random((side, side), dtype=np.float32))
        for row in compare(picture, [0.5, 2.5], rounds):
            what = f"{side} x {side} float32, {row['factor']:g} times as long, {row['kind']}"
            made += [{"what": f"{what}: {name}", "value": round(row[key], 4), "unit": "ms", "target": None}
                     for name, key in (("interpolate", "interpolate_ms"), ("zoom", "zoom_ms"))]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resize", description=__doc__)
    parser.add_argument("--sides", type=int, nargs="+", help="of the picture")
    options = parser.parse_args()
    on_gpu = lazyarray.device().name == "cuda"
    found = figures(tuple(options.sides or (SIDES if on_gpu else SIDES[:1])), 21 if on_gpu else 3)
    for figure in found:
        print(f"{figure['what']:70} {figure['value']:10.4f} {figure['unit']}")
    if on_gpu:
        print(f"kept in {timing.keep('resize', found)}")


if __name__ == "__main__":
    main()
