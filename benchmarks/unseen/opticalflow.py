"""Optical flow: Lucas-Kanade on corners, pyramidal Horn-Schunck, forward-backward check, flow histograms.

N: pixels a side of the four frames.
"""
import numpy as np

DEFAULT = 300


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(2024)
    y, x = numpy.mgrid[0:N, 0:N].astype(float)
    waves = rng.uniform((-0.45, -0.45, 0, 2), (0.45, 0.45, 6.28, 10), (60, 4))
    frames, c = [], (N - 1) / 2
    for t in range(4):
        angle, zoom, dy, dx = 0.012 * t, 1 + 0.006 * t, y - c, x - c
        yy = c + (numpy.cos(angle) * dy - numpy.sin(angle) * dx) / zoom - 0.4 * t
        xx = c + (numpy.sin(angle) * dy + numpy.cos(angle) * dx) / zoom + 0.7 * t
        frames.append(128 + sum(a * numpy.sin(u * xx + v * yy + p) for u, v, p, a in waves))
    return (numpy.clip(numpy.rint(frames + rng.normal(0, 1.0, (4, N, N))), 0, 255).astype(numpy.uint8),)


def blur(img, sigma):
    r = int(3 * sigma + 0.5)
    k = np.exp(-0.5 * (np.arange(-r, r + 1) / sigma)**2)
    weights = (k / k.sum()).tolist()
    for _ in range(2):
        p = np.pad(img, ((r, r), (0, 0)), mode="reflect")
        img = sum(w * p[i:i + len(img)] for i, w in enumerate(weights)).T
    return img


def sample(img, y, x):
    """Bilinear, clamped to the border."""
    h, w = img.shape
    y, x = np.clip(y, 0.0, h - 1.001), np.clip(x, 0.0, w - 1.001)
    iy, ix = np.floor(y).astype(int), np.floor(x).astype(int)
    fy, fx = y - iy, x - ix
    top, low = (img[iy + k, ix] * (1 - fx) + img[iy + k, ix + 1] * fx for k in (0, 1))
    return top * (1 - fy) + low * fy


def pyramid(img, levels):
    out = [img]
    while len(out) < levels:
        out.append(blur(out[-1], 1.0)[::2, ::2])
    return out[::-1]


def neighbours_mean(u):
    p = np.pad(u, 1, mode="edge")
    cross = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
    corner = p[:-2, :-2] + p[:-2, 2:] + p[2:, :-2] + p[2:, 2:]
    return cross / 6.0 + corner / 12.0


def horn_schunck(first, second, levels=4, warps=3, sweeps=25, alpha=12.0):
    u = v = None
    residual = []
    for a, b in zip(pyramid(first, levels), pyramid(second, levels)):
        h, w = a.shape
        yy, xx = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
        u, v = (np.zeros((h, w)) if f is None else 2.0 * sample(f, yy / 2.0, xx / 2.0) for f in (u, v))
        for _ in range(warps):
            warped = sample(b, yy + v, xx + u)
            gy, gx = np.gradient(0.5 * (a + warped))
            gt = warped - a
            gt[(yy + v < 0) | (yy + v > h - 1) | (xx + u < 0) | (xx + u > w - 1)] = 0.0
            u0, v0, norm = u, v, alpha**2 + gx**2 + gy**2
            for _ in range(sweeps):
                ub, vb = neighbours_mean(u), neighbours_mean(v)
                s = (gx * (ub - u0) + gy * (vb - v0) + gt) / norm
                u, v = ub - gx * s, vb - gy * s
        residual.append(np.sqrt(np.mean(gt**2)))
    return u, v, np.stack(residual)


def corners(img, count):
    gy, gx = np.gradient(img)
    a, b, c = blur(gx * gx, 2.0), blur(gx * gy, 2.0), blur(gy * gy, 2.0)
    score = 0.5 * (a + c - np.sqrt((a - c)**2 + 4 * b * b))
    score[:16] = score[-16:] = 0
    score[:, :16] = score[:, -16:] = 0
    best = score.copy()
    for axis in (0, 1):
        best = np.stack([np.roll(best, k, axis=axis) for k in range(-3, 4)]).max(axis=0)
    peaks = np.flatnonzero((score == best) & (score > 0))
    order = np.argsort(-score.ravel()[peaks], kind="stable")
    return np.divmod(peaks[order[:count]], img.shape[1])


def track(a, b, py, px, half=6, rounds=8):
    win = np.arange(-half, half + 1.0)
    oy, ox = win[None, :, None], win[None, None, :]
    gy, gx = np.gradient(a)
    y, x = py[:, None, None] + oy, px[:, None, None] + ox
    patch, wy, wx = sample(a, y, x), sample(gy, y, x), sample(gx, y, x)
    slopes = np.stack([wx, wy])
    G = np.einsum("anij,bnij->nab", slopes, slopes)
    inverse, d = np.linalg.inv(G), np.zeros((len(py), 2))
    for _ in range(rounds):
        diff = patch - sample(b, y + d[:, 1, None, None], x + d[:, 0, None, None])
        d += np.einsum("nab,bnij,nij->na", inverse, slopes, diff, optimize=True)
    return d, np.abs(diff).mean(axis=(1, 2))


def main(asarray, N, given):
    frames = asarray(given[0]).astype(float)
    smooth = [blur(f, 0.8) for f in frames]
    py, px = corners(smooth[0], 250)
    ty, tx, lost = py, px, []
    for a, b in zip(smooth[:-1], smooth[1:]):
        d, err = track(a, b, ty, tx)
        tx, ty = tx + d[:, 0], ty + d[:, 1]
        lost.append(err)
    design = np.column_stack([px - N / 2, py - N / 2, np.ones(len(px))])
    affine = np.linalg.lstsq(design, np.column_stack([tx - px, ty - py]), rcond=None)[0]

    u, v, residual = horn_schunck(smooth[0], smooth[1])
    bu, bv, _ = horn_schunck(smooth[1], smooth[0], warps=2)
    yy, xx = np.meshgrid(np.arange(N), np.arange(N), indexing="ij")
    loop = np.hypot(u + sample(bu, yy + v, xx + u), v + sample(bv, yy + v, xx + u))
    good = loop < np.percentile(loop, 90)
    turn = np.gradient(v, axis=1) - np.gradient(u, axis=0)
    spread = np.gradient(u, axis=1) + np.gradient(v, axis=0)
    hist, _ = np.histogram(np.arctan2(v, u)[good], bins=12, range=(-np.pi, np.pi), weights=np.hypot(u, v)[good])
    return dict(flow=np.stack([u, v]), residual=residual, affine=affine, tracks=np.stack([tx, ty]),
                errors=np.stack(lost).mean(axis=1), loop=np.quantile(loop, [0.5, 0.9]), turn=np.median(turn[good]),
                spread=np.median(spread[good]), histogram=hist, corners=len(px))
