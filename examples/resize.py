"""Resize a picture in two ways: with torch's `interpolate` and with CuPy's `ndimage.zoom`.

Both accept the same lazy array and return a lazy array, without a copy. The times are medians on this machine's device.
Without a GPU, torch and SciPy compute on the host instead, and the times say nothing about a GPU.
"""
from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from skimage import data, io

import lazyarray

ORDERS = {"nearest": 0, "linear": 1, "cubic": 3}
#: How torch calls them, of a picture of shape (rows, columns). It takes a pixel for a square; so does grid_mode=True.
MODES = {"nearest": "nearest-exact", "linear": "bilinear", "cubic": "bicubic"}


def by_torch(picture: np.ndarray, factor: float, kind: str) -> np.ndarray:
    """`picture`, of shape (rows, columns), `factor` times as long in each direction."""
    options = {} if kind == "nearest" else {"align_corners": False}
    return torch.nn.functional.interpolate(picture[None, None], scale_factor=factor, mode=MODES[kind], **options)[0, 0]


def by_zoom(zoom: Callable[..., np.ndarray], picture: np.ndarray, factor: float, kind: str) -> np.ndarray:
    """The same. Torch's cubic convolution looks at four pixels in a row, the cubic spline at all of them."""
    return zoom(picture, factor, order=ORDERS[kind], mode="grid-constant" if kind == "nearest" else "nearest",
                grid_mode=True)


def seconds(resize: Callable[[], np.ndarray], rounds: int) -> float:
    """Median time of a call, the device's work included."""
    synchronize = lazyarray.device().synchronize
    found = []
    for _ in range(rounds + 1):
        synchronize()
        start = time.perf_counter()
        resize()
        synchronize()
        found.append(time.perf_counter() - start)
    return statistics.median(found[1:])     # the first one compiles


def bar(done: int, total: int) -> None:
    """Show the progress in one line, in a terminal."""
    if sys.stderr.isatty():
        print(f"\r|{'#' * (40 * done // total):40}| {done}/{total}", end="\n" if done == total else "", file=sys.stderr)


def compare(picture: np.ndarray, factors: list[float], rounds: int) -> list[dict]:
    """A row for each factor and kind: both times in seconds, and how far the results are apart."""
    zoom = lazyarray.lazy(lazyarray.device().library("cupyx.scipy.ndimage").zoom, pure=True)
    rows = []
    cases = [(factor, kind) for factor in factors for kind in ORDERS]
    for done, (factor, kind) in enumerate(cases, 1):
        ways = [partial(by_torch, picture, factor, kind), partial(by_zoom, zoom, picture, factor, kind)]
        results = [way() for way in ways]
        inside = tuple(slice(n // 8, -(n // 8)) for n in results[0].shape)      # at the edges they differ by design
        difference = np.abs(results[0] - results[1])[inside]
        rows.append({"shape": list(picture.shape), "factor": factor, "kind": kind,
                     "result": list(results[0].shape), "interpolate_ms": 1e3 * seconds(ways[0], rounds),
                     "zoom_ms": 1e3 * seconds(ways[1], rounds), "mean_difference": float(difference.mean())})
        bar(done, len(cases))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=512, help="rows and columns of the picture (%(default)s)")
    parser.add_argument("--factors", type=float, nargs="+", default=[0.5, 2.5], help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="number of calls for the median (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("resize.png"), help="PNG file to write (%(default)s)")
    arguments = parser.parse_args()

    photograph = data.retina()[200:1200, 200:1200, 1].astype(np.float32) / 160
    tiles = -(-arguments.side // len(photograph))
    photograph = np.ascontiguousarray(np.tile(photograph, (tiles, tiles))[-arguments.side:, :arguments.side])
    picture = lazyarray.asarray(photograph)

    rows = compare(picture, arguments.factors, arguments.rounds)
    print(f"a float32 picture of shape {photograph.shape} on {lazyarray.device().name}; milliseconds\n")
    print(f"{'factor':>6} {'':8} {'interpolate':>12} {'zoom':>9} {'faster':>22} {'mean difference':>16}")
    for row in rows:
        first, second, apart = row["interpolate_ms"], row["zoom_ms"], row["mean_difference"]
        faster = f"{'interpolate' if first < second else 'zoom'}, {max(first, second) / min(first, second):.1f} times"
        print(f"{row['factor']:6} {row['kind']:8} {first:12.3f} {second:9.3f} {faster:>22} {apart:16.2g}")

    zoom = lazyarray.lazy(lazyarray.device().library("cupyx.scipy.ndimage").zoom, pure=True)
    with lazyarray.trace() as record:
        picture = lazyarray.asarray(photograph)
        part = picture[-96:, :96]
        both = [by_torch(part, 4, "cubic"), by_zoom(zoom, part, 4, "cubic")]
        shown = np.concatenate([*both, 0.5 + 10 * (both[0] - both[1])], axis=1)
        io.imsave(arguments.output, np.rint(np.clip(shown, 0, 1) * 255).astype(np.uint8), check_contrast=False)
    print(f"\n{arguments.output}: a corner enlarged by interpolate, by zoom, and ten times the difference\n")
    print(record)


if __name__ == "__main__":
    main()
