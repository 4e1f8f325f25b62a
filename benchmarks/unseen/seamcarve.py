"""Content-aware image resizing: remove low-energy seams found by dynamic programming, first columns then rows.

N is the side of the (square, RGB) image; N//6 columns and N//10 rows are removed.
"""
import numpy as np

DEFAULT = 160


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(7)
    y, x = numpy.mgrid[0:N, 0:N] / N
    img = numpy.empty((N, N, 3))
    for c in range(3):
        sky = 0.5 + 0.3 * y + 0.05 * numpy.sin(9 * x + c)
        img[..., c] = sky
    for _ in range(12):
        cx, cy, r = rng.uniform(0, 1), rng.uniform(0, 1), rng.uniform(0.03, 0.12)
        inside = (x - cx) ** 2 + (y - cy) ** 2 < r * r
        img[inside] = rng.uniform(0, 1, 3)
    img += 0.03 * rng.standard_normal(img.shape)
    protect = ((numpy.abs(x - 0.5) < 0.1) & (numpy.abs(y - 0.4) < 0.08)).astype(float)
    return numpy.clip(img, 0.001, None), protect


LUMA = (0.2126, 0.7152, 0.0722)


def energy(gray):
    p = np.pad(gray, 1, mode="edge")
    gx = (p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2])
    gy = (p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:])
    return np.sqrt(gx * gx + gy * gy)


def cumulative(e):
    """Minimal path cost to every pixel and the column offset (-1, 0, 1) of its predecessor."""
    h, w = e.shape
    cost = e.copy()
    step = np.zeros((h, w), dtype=np.int8)
    cand = np.full((3, w), np.inf)
    for i in range(1, h):
        prev = cost[i - 1]
        cand[0, 1:] = prev[:-1]
        cand[1] = prev
        cand[2, :-1] = prev[1:]
        k = cand.argmin(axis=0)
        cost[i] += np.take_along_axis(cand, k[None, :], axis=0)[0]
        step[i] = k - 1
    return cost, step


def trace(cost, step):
    h = cost.shape[0]
    seam = np.empty(h, dtype=np.int64)
    j = int(np.argmin(cost[-1]))
    for i in range(h - 1, -1, -1):
        seam[i] = j
        j += int(step[i, j])
    return seam


def drop(a, seam):
    h, w = a.shape[:2]
    keep = np.ones((h, w), dtype=bool)
    keep[np.arange(h), seam] = False
    return a[keep].reshape((h, w - 1) + a.shape[2:])


def carve(img, weight, index, n):
    """Remove n vertical seams; also carries the index map of original columns."""
    costs = []
    first = None
    luma = np.array(LUMA)
    for _ in range(n):
        e = energy(img @ luma)
        e += 50.0 * weight
        cost, step = cumulative(e)
        seam = trace(cost, step)
        if first is None:
            first = seam
        costs.append(cost[-1].min())
        img, weight, index = drop(img, seam), drop(weight, seam), drop(index, seam)
    return img, weight, index, np.stack(costs), first


def main(asarray, N, given):
    img, protect = (asarray(a) for a in given)
    before = energy(img @ np.array(LUMA))
    idx = np.broadcast_to(np.arange(N), (N, N))

    img1, w1, idx1, c1, seam_v = carve(img, protect, idx, N // 6)

    # rows: transpose, carve, transpose back
    idt = np.tile(np.arange(N), (img1.shape[1], 1))
    img2, w2, idx2, c2, seam_h = carve(img1.transpose(1, 0, 2), w1.T, idt, N // 10)
    img2 = img2.transpose(1, 0, 2)
    w2 = w2.T

    after = energy(img2 @ np.array(LUMA))

    # which of the original columns were used most by the removed seams
    removed = N - np.bincount(idx1.ravel(), minlength=N)
    busiest = int(removed.max())

    # naive uniform rescaling to the same size, for comparison
    h, w = img2.shape[:2]
    rows = np.arange(h) * N // h
    cols = np.arange(w) * N // w
    naive = img[rows[:, None], cols]

    ok = (np.abs(np.diff(seam_v)) <= 1).all() & (np.abs(np.diff(seam_h)) <= 1).all()
    return {
        "shape": np.array(img2.shape),
        "image": img2,
        "first_vertical": seam_v, "first_horizontal": seam_h,
        "cost_vertical": c1, "cost_horizontal": c2,
        "mean_energy": np.stack((before.mean(), after.mean(), energy(naive @ np.array(LUMA)).mean())),
        "protected_left": w2.sum(), "protected_total": protect.sum(),
        "removed_per_column": removed, "busiest": busiest,
        "sorted_rows": bool((np.diff(idx1, axis=1) > 0).all() and (np.diff(idx2, axis=1) > 0).all()),
        "connected": ok, "channel_means": img2.mean(axis=(0, 1)),
    }
