"""Questions for ``shadow`` that scikit-image's own tests don't ask: every function with every dtype.

A test file for that plugin (no test of its own: what the plugin writes is the result)::

    PYTHONPATH=.:tests python -m pytest -p shadow --shadow skimage:cucim.skimage tests/tools/shadow_grid.py

``SHADOW_SHARD=3/12`` runs every twelfth function, beginning with the third, for several processes side by side.
"""
from __future__ import annotations

import importlib
import inspect
import os
import warnings
from typing import Any

import numpy as np
import pytest

PARTS = ("color", "exposure", "feature", "filters", "filters.rank", "measure", "metrics", "morphology", "registration",
         "restoration", "segmentation", "transform", "util")
DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "float16", "float32", "float64")
LEFT_OUT = ("compare_images_warn", "lookfor", "apply_parallel", "run_with_timeout")


def image(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Smooth blobs with some noise, over the range that images of a dtype have."""
    rng = np.random.default_rng(seed)
    axes = np.meshgrid(*(np.linspace(0, 3, n) for n in shape), indexing="ij")
    plain = 0.5 + 0.4 * np.sin(sum((i + 1.3) * a for i, a in enumerate(axes))) + 0.1 * rng.random(shape)
    plain = np.clip(plain, 0, 1)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return plain > 0.5
    if kind.kind in "iu":
        return (plain * min(np.iinfo(kind).max, 5000 if kind.itemsize > 2 else 2 ** 16)).astype(kind)
    return plain.astype(kind)


def arguments(dtype: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """Values for required parameters, by their names."""
    img, other = image(dtype, shape), image(dtype, shape, 1)
    labels = np.zeros(shape, np.int64)
    labels[tuple(slice(1, 6) for _ in shape)] = 1
    labels[tuple(slice(7, 11) for _ in shape)] = 2
    as_labels = img.astype(np.int64) % 5 if img.dtype.kind != "f" else labels
    found = dict.fromkeys(
        ("image", "img", "arr", "ar", "rgb", "lab", "xyz", "hsv", "hed", "luv", "yuv", "yiq", "ypbpr", "ydbdr", "ycbcr",
         "lch", "rgba", "rgbcie", "stains", "label_field", "image0", "image_true", "im1", "reference_image", "arr_in",
         "gimage", "data", "f", "image1_"), img)
    found |= dict.fromkeys(("image1", "image_test", "im2", "moving_image", "target", "lab2"), other)
    found |= {"lab1": img, "reference": other, "seed": np.minimum(img, other), "mask": np.maximum(img, other),
              "footprint": np.ones((3,) * len(shape), np.uint8), "h": img.dtype.type(1) if img.dtype.kind in "biu"
              else 0.1, "output_shape": tuple(n - 3 for n in shape), "scale": 0.5, "angle": 30,
              "psf": np.ones((3, 3)) / 9,
              "balance": 0.1, "frequency": 0.3, "block_size": 3, "block_shape": (4,) * len(shape), "crop_width": 2,
              "window_shape": (3,) * len(shape), "radius": 2, "low": 0.2, "high": 0.6, "labels": labels,
              "label_img": labels, "label_image": labels, "label": labels, "out_labels": labels,
              "input_vals": np.array([1, 2, 0]), "output_vals": np.array([3.0, 4.0, 5.0]), "input_arr": as_labels,
              "templ": img[2:8, 2:8] if len(shape) == 2 else img[:6, :6, :6], "template": img[:6, :6], "sigma": 1.5,
              "num_iter": 3, "inverse_map": np.array([[0.9, 0.1, 1.0], [-0.1, 1.1, 0.5], [0, 0, 1.0]]),
              "src": (1, 2), "dst": (9, 8), "markers": labels, "s1": labels, "s2": labels, "factors": (2,) * len(shape),
              "fromspace": "RGB", "tospace": "HSV", "conv_matrix": np.eye(3), "start": (1,) * len(shape),
              "end": (5,) * len(shape), "im_true": labels, "im_test": np.roll(labels, 1)}
    return found


def shard(items: list[Any]) -> list[Any]:
    first, step = (int(n) for n in os.environ.get("SHADOW_SHARD", "0/1").split("/"))
    return items[first % step::step]


def functions() -> list[str]:
    """Dotted names of the functions that both libraries may have."""
    found = []
    for part in PARTS:
        module = importlib.import_module(f"skimage.{part}")
        for name in sorted(getattr(module, "__all__", dir(module))):
            if not name.startswith("_") and name not in LEFT_OUT and inspect.isroutine(getattr(module, name)):
                found.append(f"{part}.{name}")
    return found


SHAPES = {"plane": (16, 13), "color": (12, 9, 3), "volume": (9, 8, 10)}
CASES = [(dtype, "plane") for dtype in os.environ.get("SHADOW_DTYPES", ",".join(DTYPES)).split(",")]
CASES += [(dtype, shape) for dtype in ("uint8", "float64") for shape in ("color", "volume")]


@pytest.mark.parametrize("dtype, shape", CASES)
@pytest.mark.parametrize("name", shard(functions()))
def test_call(name: str, dtype: str, shape: str) -> None:
    part, _, last = name.rpartition(".")
    function = getattr(importlib.import_module(f"skimage.{part}"), last)
    given = arguments(dtype, SHAPES[shape])
    required = [p for p in inspect.signature(function).parameters.values()
                if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    if not required or any(p.name not in given for p in required):
        pytest.skip("needs " + ", ".join(p.name for p in required if p.name not in given))
    positional = [given[p.name] for p in required if p.kind is not p.KEYWORD_ONLY]
    by_name = {p.name: given[p.name] for p in required if p.kind is p.KEYWORD_ONLY}
    if shape == "color" and "channel_axis" in inspect.signature(function).parameters:
        by_name["channel_axis"] = -1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(*positional, **by_name)
        except Exception:  # noqa: BLE001 the plugin has compared it
            return
        if inspect.isgenerator(result):
            list(result)
