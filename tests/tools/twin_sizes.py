"""Each twin against the host's function on the same images, of several sizes and dtypes, and again for the same bits.

The host libraries' own tests, which `twins.py` and `shadow.py` make again, are of small images: a kernel
that is another one for large images, or memory that several blocks share, they don't meet. ::

    PYTHONPATH=. python tests/tools/twin_sizes.py --sizes 256 1024 2048 --seconds 400

prints each call whose result is beyond the twin's tolerance, or not the same bits when run again, and at the end how
many calls were compared. ``--only REGEX`` chooses functions; ``--all`` prints what agrees, too.

An image is noisy blobs, so that few values are equal, or (``tied``) disks on a grid, whose distances, maxima and sums
have many equals: what decides among those by rounding is found so.
"""
from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
import time
import warnings
from typing import Any

import numpy as np

import lazyarray
from lazyarray.integrations.routing.twin import TABLES, table

DTYPES = "uint8", "float32", "float64", "bool"
SLOW = 0.4
"""Seconds of a host call after which larger images are left out."""
MODULES = re.compile(r"scipy\.(ndimage|fft|signal)|skimage\.")


def image(dtype: str, side: int, tied: bool, seed: int = 0) -> np.ndarray:
    """A square image over the range that images of a dtype have."""
    y, x = np.mgrid[:side, :side]
    if tied:
        plain = ((y % 32 - 15.5) ** 2 + (x % 32 - 15.5) ** 2 < 100).astype(float)
    else:
        rng = np.random.default_rng(seed)
        plain = 0.5 + 0.4 * np.sin(y / 17 + seed) * np.cos(x / 23) + 0.1 * rng.random((side, side))
        plain = plain.clip(0, 1)
    if dtype == "bool":
        return plain > 0.5
    return (plain * 255).astype(dtype) if dtype == "uint8" else plain.astype(dtype)


def arguments(dtype: str, side: int, tied: bool) -> dict[str, Any]:
    """Values for the required parameters of functions, and for a few others, by their names."""
    one, other = image(dtype, side, tied), image(dtype, side, tied, 1)
    labels = np.zeros((side, side), np.int32)
    for k in range(1, 17):
        row, column = divmod(k - 1, 4)
        step = side // 4
        labels[row * step + 3:(row + 1) * step - 5, column * step + 7:(column + 1) * step - 2] = k
    found = dict.fromkeys((
        "image", "input", "img", "arr", "image0", "image_true", "im1", "reference_image", "arr_in", "data", "x", "in1",
        "a", "gimage"), one)
    found |= dict.fromkeys(("image1", "image_test", "im2", "moving_image", "reference"), other)
    found |= {"in2": other[:7, :9].astype(float) if one.dtype.kind == "f" else other[:7, :9],
              "seed": np.minimum(one, other), "mask": np.maximum(one, other), "sigma": 2.0, "size": 5,
              "weights": np.array([0.25, 0.5, 0.25]),
              "rank": 3, "percentile": 40, "zoom": 1.5, "shift": 1.25, "angle": 30.0, "scale": 0.5, "radius": 2,
              "output_shape": (side // 2 + 3, side // 2), "frequency": 0.2, "block_size": 5, "factors": (2, 2),
              "h": 10 if dtype == "uint8" else 0.1, "balance": 0.1, "psf": np.ones((5, 5)) / 25, "num_iter": 3,
              "label_image": labels, "label_img": labels, "labels": labels, "s1": labels, "s2": np.roll(labels, 3),
              "im_true": labels, "im_test": np.roll(labels, 3), "min": 0, "max": 255, "bins": 16,
              "inverse_map": np.array([[0.9, 0.1, 1.0], [-0.1, 1.1, 0.5], [0, 0, 1.0]]), "crop_width": 2,
              "matrix": np.array([[0.9, 0.1], [-0.1, 1.1]]), "start": (1, 2), "end": (side // 2, side // 3),
              "src": (1, 2), "dst": (side // 2, side // 3), "window_shape": (3, 3), "block_shape": (4, 4),
              "coordinates": np.mgrid[:side, :side] * 0.93 + 0.4, "arr_blocks": one}
    if np.dtype(dtype).kind == "f":
        found["weights"] = found["weights"].astype(dtype)
    return found


def call_of(function: Any, values: dict[str, Any], path: str) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments that a function needs; None if one is not known here."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    given, named = [], {}
    for p in parameters:
        wanted = p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        more = path.startswith("scipy.ndimage") and (
            p.name == "size" and "filter" in path or p.name == "labels" or p.name == "index")
        if not wanted and not more:
            continue
        if p.name == "index":
            value = np.arange(1, 17)
        elif p.name == "weights" and not path.endswith("1d"):
            value = np.outer(values["weights"], values["weights"])
        elif p.name not in values:
            return None
        else:
            value = values[p.name]
        if wanted and p.kind is not p.KEYWORD_ONLY and not named:
            given.append(value)
        else:
            named[p.name] = value
    return (given, named) if any(isinstance(a, np.ndarray) for a in (*given, *named.values())) else None


def lazy(value: Any) -> Any:
    return lazyarray.asarray(value) if isinstance(value, np.ndarray) and value.size > 64 else value


def to_host(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(*map(to_host, value)) if hasattr(value, "_fields") else type(value)(map(to_host, value))
    return np.asarray(value) if lazyarray.is_lazy(value) else value


def difference(host: Any, found: Any, twin: Any, largest: float) -> str:
    """What is beyond the twin's tolerance, or ""; with the place of the greatest difference."""
    if isinstance(host, (list, tuple)):
        if len(host) != len(found):
            return f"{len(found)} items for {len(host)}"
        parts = [difference(a, b, twin, largest) for a, b in zip(host, found)]
        return next((f"item {k}: {part}" for k, part in enumerate(parts) if part), "")
    if not isinstance(host, (np.ndarray, np.generic, int, float, complex, bool)):
        return ""
    a, b = np.asarray(host), np.asarray(found)
    if a.shape != b.shape:
        return f"shape {b.shape} for {a.shape}"
    if isinstance(host, np.ndarray) and a.dtype != b.dtype:
        return f"dtype {b.dtype} for {a.dtype}"
    if not a.size:
        return ""
    if a.dtype.kind not in "fc":
        differ = a != b
        if differ.mean() <= twin.tolerance.ties:
            return ""
        at = np.unravel_index(np.argmax(differ), a.shape)
        return f"{int(differ.sum())} of {a.size} differ, the first at {tuple(map(int, at))}: {b[at]!r} for {a[at]!r}"
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return "not a number in other places"
    gap = np.nan_to_num(np.abs(np.where(a == b, 0, a - b)), nan=0.0)
    finite = np.abs(a[np.isfinite(a)])
    bound = twin.tolerance.of(a.dtype) * max(largest, float(finite.max(initial=0.0)))
    if gap.max() <= bound:
        return ""
    at = np.unravel_index(np.argmax(gap), a.shape)
    return (f"{int((gap > bound).sum())} of {a.size} beyond {bound:.2g}, the greatest {float(gap.max()):.3g} at "
            f"{tuple(map(int, at))}: {b[at]!r} for {a[at]!r}")


def bits(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [bits(item) for item in value]
    return np.asarray(value).tobytes() if isinstance(value, (np.ndarray, np.generic, int, float, complex)) else None


def compared(twin: Any, given: list[Any], named: dict[str, Any]) -> tuple[str, str, float]:
    """(outcome, words, seconds of the host's call)."""
    function = getattr(importlib.import_module(twin.module), twin.name)

    def copies(value: Any) -> Any:
        return value.copy() if isinstance(value, np.ndarray) else value

    began = time.perf_counter()
    try:
        host, again = (function(*map(copies, given), **{k: copies(v) for k, v in named.items()}) for _ in range(2))
    except Exception as error:  # noqa: BLE001  not a call that can be compared
        return "no call", f"{type(error).__name__}: {error}", 0.0
    seconds = (time.perf_counter() - began) / 2
    if bits(host) != bits(again):       # morphological snakes take turns with their curvature operators
        return "no call", "the host gives another result when it is called again", seconds
    results = []
    library = twin.module.partition(".")[0]
    for _ in range(2):
        with lazyarray.enabled(library), lazyarray.trace() as t, lazyarray.options(warn_fallbacks=False):
            routed = getattr(importlib.import_module(twin.module), twin.name)
            try:
                results.append(to_host(routed(*map(lazy, given), **{k: lazy(v) for k, v in named.items()})))
            except Exception as error:  # noqa: BLE001  the host did not raise
                return "wrong", f"raises {type(error).__name__}: {error}", seconds
        if t.fallbacks:
            return "host", t.fallbacks[0].reason, seconds
    arrays = [a for a in (*given, *named.values()) if isinstance(a, np.ndarray) and a.size]
    largest = max(float(np.abs(a.astype(complex)).max()) for a in arrays)
    words = difference(host, results[0], twin, largest)
    if words:
        return "wrong", words, seconds
    if bits(results[0]) != bits(results[1]):
        return "unsteady", "other bits when run again", seconds
    return "same", "", seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 1024, 2048])
    parser.add_argument("--only", default=".*")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many")
    parser.add_argument("--all", action="store_true", help="print what agrees, too")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    began, counts, slow = time.monotonic(), dict.fromkeys(("same", "wrong", "unsteady", "host", "no call"), 0), set()
    listed = [twin for library in TABLES for name, twin in sorted(table(library).items())
              if MODULES.match(name) and re.search(chosen.only, name) and not twin.reason and twin.kind == "function"]
    for side in chosen.sizes:
        for tied in (False, True):
            for dtype in DTYPES:
                values = arguments(dtype, side, tied)
                for twin in listed:
                    if time.monotonic() - began > chosen.seconds:
                        print(f"stopped at {side}, {dtype}, {twin.host}: out of time")
                        listed = []
                        break
                    function = getattr(importlib.import_module(twin.module), twin.name, None)
                    call = None if function is None or twin.host in slow else call_of(function, values, twin.host)
                    if call is None:
                        continue
                    outcome, words, seconds = compared(twin, *call)
                    counts[outcome] += 1
                    if seconds > SLOW:
                        slow.add(twin.host)
                    if chosen.all or outcome in ("wrong", "unsteady"):
                        print(f"{outcome:8s} {twin.host} {dtype} {side}{' tied' if tied else ''}: {words}", flush=True)
    print(", ".join(f"{n} {outcome}" for outcome, n in counts.items()), f"in {time.monotonic() - began:.0f} s on",
          lazyarray.device().name)
    sys.exit(bool(counts["wrong"] or counts["unsteady"]))


if __name__ == "__main__":
    main()
