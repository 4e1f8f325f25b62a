"""The names that `enable` takes, for type checkers, which a test holds to the tables."""
from __future__ import annotations

from typing import Literal

__all__ = ["Library"]

Library = Literal[
    "cv2", "monai", "numpy", "scipy", "scipy.fft", "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.signal",
    "scipy.sparse", "scipy.sparse.linalg", "scipy.spatial", "scipy.spatial.distance", "scipy.special", "scipy.stats",
    "skimage", "skimage.color", "skimage.exposure", "skimage.feature", "skimage.filters", "skimage.filters.rank",
    "skimage.measure", "skimage.metrics", "skimage.morphology", "skimage.registration", "skimage.restoration",
    "skimage.segmentation", "skimage.transform", "skimage.util", "torch",
]
