"""Search for the blur that restores a noisy photograph best, with scikit-image, on the GPU.

`search` does not mention lazyarray. If it is installed, scikit-image 0.26 finds it as a backend, and passes calls
of `mean_squared_error` to it. ``lazyarray.enabled("skimage")`` routes the functions for which scikit-image does not ask
backends yet. Only the errors are copied to the host, 8 bytes each, and the picture at the end. Without a GPU, CuPy and
cuCIM everything runs on the simulated device.
"""
from __future__ import annotations

import argparse
import time
import warnings
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data, filters, metrics

import lazyarray


def search(noisy: np.ndarray, truth: np.ndarray, sigmas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The blurred picture that is nearest to the truth, and the mean squared error for each width of the blur."""
    errors = np.stack([metrics.mean_squared_error(truth, filters.gaussian(noisy, sigma=sigma)) for sigma in sigmas])
    return filters.gaussian(noisy, sigma=sigmas[np.argmin(errors)]), errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", choices=("camera", "brick", "coins", "moon"), default="camera",
                        help="a photograph that comes with scikit-image (%(default)s)")
    parser.add_argument("--noise", type=float, default=0.15, help="standard deviation of the noise (%(default)s)")
    parser.add_argument("--steps", type=int, default=12, help="widths to try (%(default)s)")
    parser.add_argument("--compare", action="store_true", help="also run with plain NumPy, and compare both")
    parser.add_argument("--output", type=Path, default=Path("skimage_backend.png"), help="PNG to write (%(default)s)")
    arguments = parser.parse_args()

    truth = getattr(data, arguments.image)() / 255
    noisy = truth + np.random.default_rng(0).normal(0, arguments.noise, truth.shape)
    sigmas = np.linspace(0.4, 3, arguments.steps)

    installed = any(point.name == "lazyarray" for point in entry_points(group="skimage_backends"))
    print(f"scikit-image {'finds' if installed else 'does not find'} lazyarray as a backend")
    x, y = lazyarray.asarray(truth), lazyarray.asarray(noisy)
    with lazyarray.trace() as alone, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = metrics.mean_squared_error(x, y)
    print("".join(f"  {warning.message}\n" for warning in caught), end="")
    print(f"unmodified mean_squared_error returns a {type(before).__name__}: {alone.summary()}\n")

    with lazyarray.enabled("skimage"), lazyarray.trace() as record:
        best, errors = search(y, x, sigmas)
        panel = (255 * np.clip(np.concatenate([y, best, abs(best - x) * 4], axis=1), 0, 1)).astype(np.uint8)
        Image.fromarray(np.asarray(panel)).save(arguments.output)
    print(record)
    print(f"\nmean squared error {float(before):.5f}, after a blur of the best width {errors.min():.5f}:")
    for sigma, error in zip(sigmas, np.asarray(errors)):
        print(f"  sigma {sigma:4.2f}  {error:.5f}  " + "#" * round(60 * error / before))
    print(f"{arguments.output}: noisy, restored, and four times what is left of the error")
    if arguments.compare:
        with lazyarray.enabled("skimage"):
            on_device = timed(y, x, sigmas)
        print(f"\nlazy arrays {on_device * 1e3:.1f} ms, plain NumPy {timed(noisy, truth, sigmas) * 1e3:.1f} ms")
        wanted, _ = search(noisy, truth, sigmas)
        print(f"largest difference of the restored pictures: {np.abs(np.asarray(best) - wanted).max():.1e}")


def timed(*work: np.ndarray) -> float:
    """Seconds of a search, the best of three."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        search(*work)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
