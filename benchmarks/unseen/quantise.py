"""Colour quantisation of a picture: median cut (all boxes of a level at once), k-means refinement, then dithering:
error diffusion row by row and a Bayer matrix.  N: pixels a side."""

import numpy as np

DEFAULT = 224
LEVELS = 6


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(256)
    y, x = numpy.mgrid[0:N, 0:N] / N
    img = numpy.stack([0.5 + 0.5 * numpy.sin(7 * x + 3 * y), y, 1 - 0.8 * numpy.hypot(x - 0.4, y - 0.6)], axis=-1)
    for _ in range(14):
        cx, cy, r = rng.random(), rng.random(), rng.uniform(0.03, 0.2)
        disc = numpy.hypot(x - cx, y - cy) < r
        img[disc] = 0.6 * rng.random(3) + 0.4 * img[disc]
    img += 0.02 * rng.normal(size=img.shape)
    return numpy.clip(255 * img, 0.013, 254.987), rng.random((4, 3))


def srgb_to_linear(c):
    c = c / 255.0
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def linear_to_lab(rgb):
    M = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    xyz = rgb @ M.T / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def median_cut(pixels, levels):
    """Halve every box at the median of its longest side, level by level; returns the box of every pixel."""
    n = len(pixels)
    box = np.zeros(n, dtype=np.int64)
    for level in range(levels):
        k = 2**level
        lo, hi = np.full((k, 3), 1e9), np.full((k, 3), -1e9)
        np.minimum.at(lo, box, pixels)
        np.maximum.at(hi, box, pixels)
        axis = np.argmax((hi - lo) * np.array([0.299, 0.587, 0.114]) ** 0.5, axis=1)
        key = np.take_along_axis(pixels, axis[box][:, None], axis=1)[:, 0]
        order = np.lexsort(np.stack([key, box.astype(np.float64)]))
        size = np.bincount(box, minlength=k)
        first = np.cumsum(size) - size
        b = box[order]
        rank = np.arange(n) - first[b]
        upper = rank >= size[b] // 2
        box[order] = 2 * b + upper
    return box


def palette_of(pixels, box, k):
    count = np.bincount(box, minlength=k)
    total = np.stack([np.bincount(box, weights=pixels[:, c], minlength=k) for c in range(3)], axis=1)
    return total / np.maximum(count, 1)[:, None], count


def nearest(pixels, palette):
    """Index of the nearest entry; |p|^2 does not matter."""
    d = (palette**2).sum(axis=1) - 2 * pixels @ palette.T
    return d.argmin(axis=-1)


def kmeans(pixels, palette, rounds):
    spread = []
    for _ in range(rounds):
        label = nearest(pixels, palette)
        new, count = palette_of(pixels, label, len(palette))
        palette = np.where(count[:, None] > 0, new, palette)
        spread.append(((pixels - palette[label]) ** 2).mean())
    return palette, np.stack(spread)


def diffuse_rows(img, palette, strength=0.9):
    """Every row is quantised at once; its error goes to the row below with a (1 2 3 2 1) kernel, mirrored at the borders."""
    h, w, _ = img.shape
    out = np.empty((h, w), dtype=np.uint8)
    carry = np.zeros((w, 3))
    kernel = [1 / 9, 2 / 9, 3 / 9, 2 / 9, 1 / 9]
    for y in range(h):
        want = img[y] + strength * carry
        idx = nearest(want, palette)
        out[y] = idx
        err = np.clip(want - palette[idx], -48.0, 48.0)
        wide = np.pad(err, ((2, 2), (0, 0)), mode="reflect")
        carry = sum(k * wide[i : i + w] for i, k in enumerate(kernel))
    return out


def bayer(n):
    """The threshold matrix of order 2^n, scaled to (-0.5, 0.5)."""
    m = np.zeros((1, 1))
    for _ in range(n):
        m = np.concatenate(
            [np.concatenate([4 * m, 4 * m + 2], axis=1), np.concatenate([4 * m + 3, 4 * m + 1], axis=1)], axis=0
        )
    return (m + 0.5) / m.size - 0.5


def ordered(img, palette, amplitude=24.0):
    t = bayer(3)
    h, w, _ = img.shape
    tiled = np.tile(t, (h // 8 + 1, w // 8 + 1))[:h, :w]
    return nearest((img + amplitude * tiled[..., None]).reshape(-1, 3), palette).reshape(h, w)


def blur(img, radius=3):
    """A box blur by summed areas, channel after channel."""
    p = np.pad(img, ((radius + 1, radius), (radius + 1, radius), (0, 0)), mode="edge")
    s = p.cumsum(axis=0).cumsum(axis=1)
    k = 2 * radius + 1
    return (s[k:, k:] - s[:-k, k:] - s[k:, :-k] + s[:-k, :-k]) / k**2


def psnr(a, b):
    return 10 * np.log10(255.0**2 / np.mean((a - b) ** 2))


def main(asarray, N, given):
    img, tint = (asarray(v) for v in given)
    pixels = img.reshape(-1, 3)
    box = median_cut(pixels, LEVELS)
    first, count = palette_of(pixels, box, 2**LEVELS)
    palette, spread = kmeans(pixels, first, 6)
    shades = [diffuse_rows(img, p) for p in (first, palette)]
    flat = nearest(pixels, palette).reshape(N, N)
    bay = ordered(img, palette)
    views = {"flat": palette[flat], "bayer": palette[bay], "cut": first[shades[0]], "kmeans": palette[shades[1]]}
    out = {
        "palette": palette,
        "count": count,
        "spread": spread,
        "diffused": shades[1],
        "ordered": bay,
        "sizes": np.bincount(flat.ravel(), minlength=64),
    }
    smooth = blur(img)
    for name, view in views.items():
        out["psnr_" + name] = psnr(view, img)
        out["soft_" + name] = psnr(blur(view), smooth)
    lab = linear_to_lab(srgb_to_linear(np.concatenate([palette, 255 * tint])))
    dE = np.sqrt(((lab[:, None] - lab[None]) ** 2).sum(axis=-1))
    np.fill_diagonal(dE, np.inf)
    out["lab"], out["closest"] = lab, np.sort(dE.min(axis=1))
    runs = (np.diff(flat, axis=1) != 0).sum(axis=1)
    out["runs"] = runs
    return out
