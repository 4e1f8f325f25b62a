"""Process a photograph with plain NumPy calls, and show what was copied.

The picture is uploaded once, and copied to the host once, when it is saved by a library that does not use the GPU.
Without a GPU and CuPy everything runs on the simulated device.
"""
from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from skimage import data, io

import lazyarray


def blur(x: np.ndarray, times: int) -> np.ndarray:
    """Binomial blur along the first two axes; beyond its edges the picture goes on as it ends."""
    for _ in range(times):
        wide = np.pad(x, [(1, 1), (1, 1)] + [(0, 0)] * (x.ndim - 2), mode="edge")
        wide = (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4
        x = (wide[:, :-2] + 2 * wide[:, 1:-1] + wide[:, 2:]) / 4
    return x


def develop(picture: np.ndarray) -> np.ndarray:
    """Sharpen a uint8 RGB picture of shape (rows, columns, 3), stretch its contrast and draw its contours in red.

    It is written for NumPy alone: nothing in it knows of lazyarray.
    """
    light = picture.astype(np.float32) / 255
    light += 1.5 * (light - blur(light, 8))
    low, high = light.mean() - 2 * light.std(), light.mean() + 2 * light.std()
    light = np.clip((light - low) / (high - low), 0, 1)
    grey = blur(0.299 * light[..., 0] + 0.587 * light[..., 1] + 0.114 * light[..., 2], 4)
    slope = np.hypot(*np.gradient(grey))
    contours = slope > slope.mean() + 2 * slope.std()
    light[contours, 0] = 1
    light[contours, 1:] /= 4
    return np.rint(light * 255).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("demo.png"), help="PNG file to write (%(default)s)")
    parser.add_argument("--chrome", type=Path, help="also write the events to this file, as a Chrome trace (JSON)")
    arguments = parser.parse_args()

    photograph = data.rocket()
    with lazyarray.trace() as record:
        picture = lazyarray.asarray(photograph)
        developed = develop(picture)
        io.imsave(arguments.output, developed, check_contrast=False)

    device = lazyarray.device()
    print(f"{arguments.output}: a {photograph.dtype} picture of shape {photograph.shape}, "
          f"processed on the {device.name} device\n")
    print(record)
    difference = np.abs(developed.astype(int) - develop(photograph)).max()
    print(f"largest difference from NumPy's result: {difference} of 255")
    if arguments.chrome:
        record.to_chrome(arguments.chrome)


if __name__ == "__main__":
    main()
