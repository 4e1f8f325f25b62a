"""Apply MONAI transforms to a photograph of a retina, from NumPy array to NumPy array, and show what was copied.

Some of the transforms compute with tensors, some with NumPy and some with CuPy arrays. The chain does not mention
lazyarray; `lazyarray.enabled("monai")` keeps the picture on the device from its first transform to its last.
"""
from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from skimage import data, io

import lazyarray

with warnings.catch_warnings():
    warnings.simplefilter("ignore")     # of MONAI, about what will be removed from it
    from monai import transforms as mt


def stretch(image: np.ndarray) -> np.ndarray:
    """Scale each channel from its 1st to its 99th percentile; written for NumPy."""
    low, high = (np.percentile(image, q, axis=(1, 2), keepdims=True) for q in (1, 99))
    return np.clip((image - low) / (high - low), 0, 1).astype(np.float32)


def chain(seed: int, cupy: bool = True) -> mt.Compose:
    """From a uint8 picture of shape (channels, rows, columns) to a float32 one for a network."""
    return mt.Compose([
        mt.ScaleIntensity(),                            # tensors
        mt.CropForeground(select_fn=lambda x: x > 0.1),
        mt.Spacing((2.0, 2.0), mode="bilinear"),
        mt.ToNumpy(),
        mt.Lambda(stretch),                             # NumPy
        mt.EnsureType(),
        mt.GaussianSharpen(2.0, 1.0, 8.0),
        mt.RandAffine(1.0, rotate_range=0.3, shear_range=0.1, mode="bilinear", padding_mode="zeros"),
        mt.RandGaussianNoise(1.0, std=0.02),
        mt.ToCupy() if cupy else mt.Identity(),         # arrays of the device
        mt.Lambda(lambda image: image.clip(0) ** 0.8),
        mt.EnsureType(),
        mt.AdjustContrast(0.9),
        mt.ResizeWithPadOrCrop((640, 640)),
    ]).set_random_state(seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=4, help="seed of the random transforms (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("monai.png"), help="PNG file to write (%(default)s)")
    arguments = parser.parse_args()

    photograph = data.retina().transpose(2, 0, 1)
    run, plain = chain(arguments.seed), chain(arguments.seed, cupy=False)
    with lazyarray.enabled("monai"):
        run(lazyarray.asarray(photograph))      # compiles what there is to compile
    run.set_random_state(arguments.seed)

    with lazyarray.enabled("monai"), lazyarray.trace() as record:
        start = time.perf_counter()
        picture = lazyarray.asarray(photograph)
        image = run(picture)
        lazyarray.device().synchronize()
        seconds = time.perf_counter() - start
        shown = np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8).transpose(1, 2, 0)
        io.imsave(arguments.output, shown, check_contrast=False)

    print(f"{arguments.output}: {type(image).__name__} of shape {image.shape} and dtype {image.dtype}, "
          f"{1e3 * seconds:.0f} ms on {lazyarray.device().name}\n")
    print(record)
    difference = np.abs(np.asarray(image) - plain(photograph).numpy())
    print(f"difference from MONAI with NumPy arrays: {difference.mean():.1e} on average, "
          f"at most {difference.max():.1e}")


if __name__ == "__main__":
    main()
