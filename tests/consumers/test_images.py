"""Images: reading, writing and working on them."""
from __future__ import annotations

import io

import numpy as np
import pytest

import lazyarray

from .records import Library, Refused

pillow = Library("Pillow", "PIL")
imageio = Library("imageio")
tifffile = Library("tifffile")
opencv = Library("OpenCV", "cv2")

NO_STRUCT = Refused("cv2.error", "is not a numpy array",
                    "pass ``np.asarray(x)``, or make ``cv2 = on_ndarrays(cv2)`` with the function of "
                    "``lazyarray.integrations.compiled``")


@pillow("``Image.fromarray(x)``", copies="each once")
def test_pillow_from_array(gray, rgb, mask):
    from PIL import Image

    return [Image.fromarray(a) for a in (gray, rgb, mask)]


@pillow("``resize``, ``rotate``, ``filter``, ``save`` and ``np.asarray`` of such an image", copies="each once")
def test_pillow_pipeline(rgb):
    from PIL import Image, ImageFilter

    image = Image.fromarray(rgb).resize((20, 30)).rotate(90).filter(ImageFilter.GaussianBlur(1))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return np.asarray(image), np.asarray(Image.open(buffer))


@pillow("``putdata(x)``, ``frombuffer``, ``point(table)``", copies="each once")
def test_pillow_values(gray, u):
    from PIL import Image

    image = Image.new("L", (10, 10))
    image.putdata(u)
    table = np.arange(256) // 2
    return image, Image.frombuffer("L", (64, 48), gray.tobytes()), Image.fromarray(gray).point(list(table))


@imageio("``imwrite``, ``imread``, ``mimwrite``", copies="in between")
def test_imageio(rgb, gray, folder):
    import imageio.v3 as iio

    iio.imwrite(folder / "a.png", rgb)
    iio.imwrite(folder / "b.gif", [gray, gray[::-1]], extension=".gif")
    return iio.imread(folder / "a.png"), iio.imread(folder / "b.gif").shape


@tifffile("``imwrite``, ``imread``, ``TiffWriter``, ``memmap``", copies="in between")
def test_tifffile(image, rgb, folder):
    import tifffile

    tifffile.imwrite(folder / "a.tif", image.astype(np.float32), compression="zlib")
    with tifffile.TiffWriter(folder / "b.tif") as writer:
        writer.write(rgb, photometric="rgb")
    stored = tifffile.memmap(folder / "c.tif", shape=image.shape, dtype=image.dtype)
    stored[...] = image
    return tifffile.imread(folder / "a.tif"), tifffile.imread(folder / "b.tif"), np.array(stored)


@opencv("``GaussianBlur(x)``, ``resize``, ``cvtColor``, ``threshold``, ``imencode`` ...", refused=NO_STRUCT)
def test_opencv_filters(rgb, gray):
    import cv2

    return (cv2.GaussianBlur(rgb, (3, 3), 1), cv2.resize(gray, (16, 16)), cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY),
            cv2.threshold(gray, 90, 255, cv2.THRESH_BINARY), cv2.imencode(".png", rgb)[1])


@opencv("``circle(x)``, ``rectangle`` and others that draw into their argument", refused=NO_STRUCT)
def test_opencv_drawing(rgb):
    import cv2

    return cv2.circle(rgb, (20, 20), 8, (255, 0, 0), 2), cv2.rectangle(rgb, (2, 2), (30, 30), (0, 255, 0))


@opencv("``on_ndarrays(cv2)``: filters, also with ``dst=``", copies="each once")
def test_opencv_helper(rgb, gray, image):
    import cv2

    from lazyarray.integrations.compiled import on_ndarrays

    cv = on_ndarrays(cv2)
    cv.blur(image, (3, 3), dst=image)
    points = np.argwhere(gray > 180)[::7].astype(np.int32)
    hull = cv.convexHull(points)
    return (cv.GaussianBlur(rgb, (3, 3), 1), cv.cvtColor(rgb, cv.COLOR_RGB2GRAY), image.max(), hull,
            cv.polylines(rgb, [hull], True, (1, 2, 3)), cv.rectangle(rgb, (points[0][1], points[0][0]), (20, 20), 5))


def test_the_helper_gives_back_the_array_that_was_drawn_into():
    cv2 = pytest.importorskip("cv2")
    from lazyarray.integrations.compiled import on_ndarrays

    image = lazyarray.asarray(np.zeros((8, 8), np.uint8))
    drawn = on_ndarrays(cv2).circle(image, (4, 4), 2, 255, -1)
    assert drawn is image
    assert image.sum() == cv2.circle(np.zeros((8, 8), np.uint8), (4, 4), 2, 255, -1).sum() > 0
    assert on_ndarrays(cv2.mean)(image) == cv2.mean(np.asarray(image))
