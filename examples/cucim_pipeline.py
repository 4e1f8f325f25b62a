"""Find coins in a photograph, with scikit-image's functions for NumPy arrays, on the GPU.

`develop` is written for scikit-image only. With host arrays enabled, the photograph is uploaded once and all stages run
on the device. The label image is copied to the host when the regions are read, and the picture when it is saved.
``--host-stage`` adds a filter in the middle that cuCIM does not have: its own input and output are copied. Without a
GPU, CuPy and cuCIM everything runs on the simulated device.
"""
from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw
from skimage import data, filters, measure, morphology, restoration, transform

import lazyarray


def develop(photograph: np.ndarray, size: int, host_stage: bool) -> tuple[np.ndarray, list[Any]]:
    """A panel of grey pictures, 8 bits, and the regions of the bright objects on a photograph.

    The panel shows the photograph, its edges, and what was found, side by side, each `size` pixels high.
    """
    grey = transform.resize(photograph, (size, size * photograph.shape[1] // photograph.shape[0]), anti_aliasing=True)
    smooth = filters.gaussian(grey, sigma=size / 300)
    if host_stage:
        smooth = restoration.denoise_tv_bregman(smooth, weight=10)
    sharp = filters.unsharp_mask(smooth, radius=size / 100, amount=1.0)
    flat = sharp - filters.gaussian(sharp, sigma=size / 8)      # the light comes from one side
    objects = flat > filters.threshold_otsu(flat)
    objects = morphology.closing(morphology.closing(objects))
    labels = measure.label(morphology.remove_small_objects(objects, max_size=size * size // 600))
    edges = filters.sobel(smooth)
    found = np.where(labels > 0, grey, grey / 4)
    panel = np.concatenate([grey, edges / edges.max(), found], axis=1)
    return (255 * panel).astype(np.uint8), measure.regionprops(labels)


def draw(panel: np.ndarray, regions: list[Any], path: Path) -> None:
    """Save the panel, with a box and the number of pixels around each region."""
    picture = Image.fromarray(np.asarray(panel)).convert("RGB")
    pen = ImageDraw.Draw(picture)
    left = 2 * panel.shape[1] // 3
    for region in regions:
        top, near, bottom, far = region.bbox
        pen.rectangle((left + near, top, left + far, bottom), outline=(255, 140, 0), width=2)
        pen.text((left + near, top - 12), f"{region.num_pixels}", fill=(255, 220, 120))
    picture.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", choices=("coins", "camera", "moon", "page"), default="coins",
                        help="a photograph that comes with scikit-image (%(default)s)")
    parser.add_argument("--size", type=int, default=400, help="height to work at, in pixels (%(default)s)")
    parser.add_argument("--host-stage", action="store_true", help="add a filter in the middle that cuCIM does not have")
    parser.add_argument("--compare", action="store_true", help="also run with plain NumPy, and compare both")
    parser.add_argument("--output", type=Path, default=Path("cucim_pipeline.png"), help="PNG to write (%(default)s)")
    arguments = parser.parse_args()

    photograph = getattr(data, arguments.image)()
    work = photograph, arguments.size, arguments.host_stage
    with lazyarray.enabled("skimage", numpy=True), lazyarray.options(min_bytes=1), lazyarray.trace() as record:
        panel, regions = develop(*work)
        draw(panel, regions, arguments.output)

    print(f"{arguments.output}: {len(regions)} objects, found on the {lazyarray.device().name} device\n")
    print(record)
    if arguments.compare:
        with lazyarray.enabled("skimage", numpy=True), lazyarray.options(min_bytes=1):
            on_device = timed(*work)
        on_host = timed(*work)
        wanted, plain = develop(*work)
        print(f"\nlazy arrays {on_device * 1e3:.1f} ms, plain NumPy {on_host * 1e3:.1f} ms, with all copies")
        print(f"largest difference of the pictures: {np.abs(np.asarray(panel).astype(int) - wanted).max()} of 255")
        print(f"different bounding boxes: {sum(a.bbox != b.bbox for a, b in zip(regions, plain))} of {len(plain)}")


def timed(*work: Any) -> float:
    """Seconds of a run, the best of three."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        panel, regions = develop(*work)
        np.asarray(panel), len(regions)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
