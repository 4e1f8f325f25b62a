"""Find the edges in a stack of images, with scikit-image, on a cluster: give it the scheduler's address.

The stack is a ``dask.array`` whose chunks are lazy arrays. `filters.py` is the same program on one machine.
"""
from __future__ import annotations

import sys

import dask
import dask.array as da
import numpy as np
from distributed import Client
from skimage import data, filters

import lazyarray


def edges(frames: np.ndarray) -> np.ndarray:
    """The edges in some images of the stack, after a blur."""
    with lazyarray.enabled("skimage"):
        blurred = [filters.gaussian(frame, 2) for frame in lazyarray.asarray(frames)]
        return np.stack([filters.sobel(frame) for frame in blurred])


def main() -> None:
    image = data.camera().astype(np.float32) / 255
    stack = da.from_array(np.stack([np.roll(image, 16 * i, axis=0) for i in range(8)]), chunks=(2, *image.shape))
    found = stack.map_blocks(edges, dtype=np.float32, meta=np.empty((0, 0, 0), np.float32))
    with Client(sys.argv[1]):
        strongest, mean = dask.compute(found.max(axis=0), found.mean())
    print(f"lazy: {lazyarray.is_lazy(strongest)}, mean: {float(mean):.6f}, largest: {float(strongest.max()):.6f}")


if __name__ == "__main__":
    main()
