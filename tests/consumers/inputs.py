"""What the calls are made on: a fresh value for each parameter name."""
from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def _random() -> np.random.Generator:
    return np.random.default_rng(7)


def _points() -> np.ndarray:
    return _random().normal(size=(120, 4))


def _target() -> np.ndarray:
    return _points() @ [1.0, 2.0, -1.0, 0.5] + 0.1 * _random().normal(size=120)


def _rgb() -> np.ndarray:
    rows, columns = np.mgrid[:48, :64]
    return np.stack([rows * 5, columns * 3, (rows + columns) * 2], axis=-1).astype(np.uint8)



def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="lazyarray-"))


#: Parameter name -> maker. What is an ndarray is given as it is in one run, and as a lazy array in the other.
INPUTS: dict[str, Callable[[], Any]] = {
    "x": lambda: _random().normal(size=100),                # float64, 1-D
    "y": lambda: np.cos(np.arange(100.0)),
    "f": lambda: _random().normal(size=100).astype(np.float32),
    "i": lambda: _random().integers(0, 10, 100),
    "b": lambda: _random().random(100) > 0.5,
    "c": lambda: _random().normal(size=32) + 1j * _random().normal(size=32),
    "u": lambda: _random().integers(0, 255, 100, dtype=np.uint8),
    "matrix": lambda: _random().normal(size=(8, 6)),
    "square": lambda: (lambda a: a @ a.T + 6 * np.eye(6))(_random().normal(size=(6, 6))),
    "table": _points,                                       # 120 samples of 4 features
    "target": _target,                                      # one number a sample
    "classes": lambda: (_target() > 0).astype(int),
    "image": lambda: _rgb()[..., 0] / 255.0,                # float64, 48 x 64, in [0, 1]
    "gray": lambda: _rgb()[..., 1].copy(),
    "rgb": _rgb,
    "mask": lambda: _rgb()[..., 2] > 100,
    "graph": lambda: np.triu(_random().random((12, 12)) > 0.7, 1).astype(float),
    "words": lambda: np.array(["a", "bb", "ccc", "a"]),
    "dates": lambda: np.array(["2020-01-01", "2020-01-03", "2020-02-01"], dtype="M8[ns]"),
    "folder": _folder,
}
