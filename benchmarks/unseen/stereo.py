"""Stereo matching: census transform, cost volume, semi-global aggregation, checks, hole filling, objects on the ground.

N: rows of the pictures; the columns are 1.4 as many.
"""
import numpy as np

DEFAULT = 300
RANGE, P1, P2 = 24, 3, 18


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(53)
    W = int(1.4 * N)
    y, x = numpy.mgrid[0:N, 0:W] / N
    truth = 4.0 + 6.0 * y
    truth[(numpy.abs(y - 0.4) < 0.2) & (numpy.abs(x - 0.45) < 0.18)] = 14.0
    ball = (y - 0.62)**2 + (x - 0.95)**2
    truth = numpy.where(ball < 0.04, 12.0 + 30 * numpy.sqrt(numpy.clip(0.04 - ball, 0, None)), truth)
    k = numpy.hypot(*numpy.meshgrid(numpy.fft.fftfreq(W), numpy.fft.fftfreq(N)))
    texture = numpy.fft.ifft2(numpy.fft.fft2(rng.normal(size=(N, W))) * numpy.exp(-(k * 4)**2)).real
    left = 128 + 45 * texture / texture.std()
    right = rng.uniform(60, 200, left.shape)
    for d in numpy.argsort(truth, axis=None):                   # far to near, nearer ones cover
        i, j = divmod(int(d), W)
        if j > truth[i, j]:
            right[i, j - int(round(truth[i, j]))] = left[i, j]
    noisy = [numpy.clip(p + rng.normal(0, 4, p.shape), 0, 255).astype(numpy.uint8) for p in (left, right * 0.9 + 8)]
    return noisy[0], noisy[1], truth


def census(img, ry=2, rx=3):
    h, w = img.shape
    p = np.pad(img, ((ry, ry), (rx, rx)), mode="edge")
    code = np.zeros((h, w), dtype=np.uint64)
    for dy in range(2 * ry + 1):
        for dx in range(2 * rx + 1):
            if (dy, dx) != (ry, rx):
                code = (code << np.uint64(1)) | (p[dy:dy + h, dx:dx + w] < img).astype(np.uint64)
    return code


def hamming(a, b):
    table = ((np.arange(256)[:, None] >> np.arange(8)) & 1).sum(axis=1).astype(np.int32)
    x = a ^ b
    return sum(table[((x >> np.uint64(8 * k)) & np.uint64(255)).astype(np.intp)] for k in range(5))


def cost_volume(left, right):
    h, w = left.shape
    cost = np.full((h, w, RANGE), 20, dtype=np.int32)
    for d in range(RANGE):
        cost[:, d:, d] = hamming(left[:, d:], right[:, :w - d])
    return cost


def sweep(cost, img):
    """Aggregates from the first row down; the second penalty is less across edges of the picture."""
    out = np.empty_like(cost)
    out[0] = cost[0]
    for i in range(1, len(cost)):
        before = out[i - 1]
        least = before.min(axis=1, keepdims=True)
        jump = np.maximum(P2 - np.abs(img[i] - img[i - 1]) // 4, P1 + 1)[:, None]
        step = np.pad(before, ((0, 0), (1, 1)), constant_values=10**6)
        near = np.minimum(step[:, :-2], step[:, 2:]) + P1
        out[i] = cost[i] + np.minimum(np.minimum(before, near), least + jump) - least
    return out


def aggregate(cost, img):
    total = sweep(cost, img)
    total += sweep(cost[::-1], img[::-1])[::-1]
    cost, img = cost.swapaxes(0, 1), img.T
    total += sweep(cost, img).swapaxes(0, 1)
    total += sweep(cost[::-1], img[::-1])[::-1].swapaxes(0, 1)
    return total


def subpixel(total, best):
    inner = np.clip(best, 1, RANGE - 2)[..., None]
    a, b, c = (np.take_along_axis(total, inner + k, axis=2)[..., 0].astype(float) for k in (-1, 0, 1))
    shift = 0.5 * (a - c) / np.maximum(a - 2 * b + c, 1.0)
    return np.where((best > 0) & (best < RANGE - 1), best + np.clip(shift, -0.5, 0.5), best)


def median(img):
    h, w = img.shape
    p = np.pad(img, 1, mode="symmetric")
    return np.median(np.stack([p[i:i + h, j:j + w] for i in range(3) for j in range(3)]), axis=0)


def fill(disparity, good):
    """Holes take the lesser of the nearest good pixels to the left and right in the row."""
    columns, out = np.arange(good.shape[1]), disparity.copy()
    for i in range(len(good)):
        known = np.flatnonzero(good[i])
        place, row = np.searchsorted(known, columns), disparity[i]
        before, after = row[known[np.maximum(place - 1, 0)]], row[known[np.minimum(place, len(known) - 1)]]
        out[i] = np.where(good[i], row, np.minimum(before, after))
    return out


def main(asarray, N, given):
    left, right, truth = (asarray(g) for g in given)
    cl, cr = census(left), census(right)
    cost = cost_volume(cl, cr)
    total = aggregate(cost, left.astype(np.int32))
    best, raw = total.argmin(axis=2), cost.argmin(axis=2)
    mirror = cost_volume(cr[:, ::-1], cl[:, ::-1])
    other = aggregate(mirror, right[:, ::-1].astype(np.int32)).argmin(axis=2)[:, ::-1]
    h, w = best.shape
    partner = np.arange(w) - best
    agree = (partner >= 0) & (np.abs(other[np.arange(h)[:, None], np.maximum(partner, 0)] - best) <= 1)
    fine = subpixel(total, best)
    filled = median(fill(fine, agree))
    error = np.abs(filled - truth)
    first, second = np.moveaxis(np.partition(total, 1, axis=2), 2, 0)[:2].astype(float)
    margin = (second - first) / np.maximum(second, 1.0)
    y, x = np.nonzero(agree)
    points, near = np.column_stack([x, y, np.ones(len(x))]), np.ones(len(x), dtype=bool)
    for limit in (4.0, 2.0, 1.0, 0.5):                          # the ground, by fits that leave out what stands on it
        plane = np.linalg.lstsq(points[near], fine[agree][near], rcond=None)[0]
        near = np.abs(points @ plane - fine[agree]) < limit
    objects = filled - (plane[0] * np.arange(w) + plane[1] * np.arange(h)[:, None] + plane[2]) > 2.0
    return dict(disparity=filled, agree=agree.mean(), raw=(np.abs(raw - truth) > 1.5).mean(),
                bad=(error > 1.5).mean(), error=np.percentile(error[:, RANGE:], [50, 75, 90]), plane=plane,
                share=near.mean(), margin=np.histogram(margin, bins=10, range=(0, 1))[0],
                sure=np.corrcoef(margin.ravel(), error.ravel() < 1.0)[0, 1], rows=objects.sum(axis=1),
                depth=np.mean(1.0 / filled[objects]), cost=total.min(axis=2).mean())
