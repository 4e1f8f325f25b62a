"""Two photographs stitched: Harris points with subpixel places, patch descriptors, ratio test, RANSAC homographies in batches, refinement, warping, exposure, pyramid blending. N: side."""
import numpy
import numpy as np

DEFAULT = 560
POINTS, ROUNDS, BATCH, CELL = 500, 24, 32, 4


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(4104)
    big = 2 * N
    y, x = numpy.mgrid[0:big, 0:big].astype(float)
    scene = numpy.stack([90 + 40 * numpy.sin(x / 37 + c) * numpy.cos(y / 29 - c) for c in range(3)])
    for _ in range(260):
        cx, cy, w, h = rng.uniform(0, big, 2).tolist() + rng.uniform(5, N / 9, 2).tolist()
        a = rng.uniform(0, numpy.pi)
        u, v = (x - cx) * numpy.cos(a) + (y - cy) * numpy.sin(a), (y - cy) * numpy.cos(a) - (x - cx) * numpy.sin(a)
        inside = (numpy.abs(u) < w) & (numpy.abs(v) < h)
        scene[:, inside] = rng.uniform(20, 235, 3)[:, None]

    def shot(H, gain):
        j, i = numpy.mgrid[0:N, 0:N].astype(float)
        p = numpy.einsum("ij,jab->iab", H, numpy.stack([i, j, numpy.ones_like(i)]))
        px, py = numpy.clip(p[0] / p[2], 0, big - 2.01), numpy.clip(p[1] / p[2], 0, big - 2.01)
        ix, iy = px.astype(int), py.astype(int)
        fx, fy = px - ix, py - iy
        out = scene[:, iy, ix] * (1 - fx) * (1 - fy) + scene[:, iy, ix + 1] * fx * (1 - fy) + scene[:, iy + 1, ix] * (1 - fx) * fy + scene[:, iy + 1, ix + 1] * fx * fy
        return numpy.clip(gain * out + rng.normal(0, 1.5, out.shape), 0, 255).round().astype(numpy.uint8).transpose(1, 2, 0).copy()
    left = shot(numpy.array([[1, 0, N * 0.35], [0, 1, N * 0.5], [0, 0, 1.0]]), 1.0)
    right = shot(numpy.array([[1.03, -0.06, N * 0.78], [0.05, 1.02, N * 0.46], [6e-5, -4e-5, 1.0]]), 0.86)
    return dict(left=left, right=right, draws=rng.random((ROUNDS, BATCH, 4)))


def smooth(a, sigma):
    r = int(3 * sigma + 0.5)
    k = np.exp(-0.5 * (np.arange(-r, r + 1) / sigma) ** 2)
    k = (k / k.sum()).astype(a.dtype)
    p = np.pad(a, ((r, r), (0, 0)), mode="reflect")
    out = sum(k[t] * p[t:t + a.shape[0]] for t in range(2 * r + 1))
    p = np.pad(out, ((0, 0), (r, r)), mode="reflect")
    return sum(k[t] * p[:, t:t + a.shape[1]] for t in range(2 * r + 1))


def corners(grey, keep):
    gy, gx = np.gradient(grey)
    A, B, C = smooth(gx * gx, 1.5), smooth(gx * gy, 1.5), smooth(gy * gy, 1.5)
    R = A * C - B * B - 0.05 * (A + C) ** 2
    edge = 14
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(R, 3, constant_values=-np.inf), (7, 7))
    peak = R >= windows.max(axis=(2, 3))
    peak[:edge] = False
    peak[-edge:] = False
    peak[:, :edge] = False
    peak[:, -edge:] = False
    y, x = np.nonzero(peak & (R > 1e-3 * R.max()))
    order = np.argsort(-R[y, x])[:keep]
    y, x = y[order], x[order]
    # a paraboloid through the nine values
    dx = 0.5 * (R[y, x + 1] - R[y, x - 1])
    dy = 0.5 * (R[y + 1, x] - R[y - 1, x])
    hessian = np.empty((len(x), 2, 2))
    hessian[:, 0, 0] = R[y, x + 1] - 2 * R[y, x] + R[y, x - 1]
    hessian[:, 1, 1] = R[y + 1, x] - 2 * R[y, x] + R[y - 1, x]
    hessian[:, 0, 1] = hessian[:, 1, 0] = 0.25 * (R[y + 1, x + 1] - R[y + 1, x - 1] - R[y - 1, x + 1] + R[y - 1, x - 1])
    hessian -= 1e-9 * R.max() * np.eye(2)
    move = -np.linalg.solve(hessian, np.stack([dx, dy], axis=1)[:, :, None])[:, :, 0]
    return np.stack([x, y], axis=1) + np.clip(move, -0.5, 0.5)


def bilinear(image, x, y):
    h, w = image.shape[:2]
    x0, y0 = np.clip(np.floor(x), 0, w - 2).astype(np.int32), np.clip(np.floor(y), 0, h - 2).astype(np.int32)
    fx, fy = (x - x0).astype(image.dtype), (y - y0).astype(image.dtype)
    if image.ndim == 3:
        fx, fy = fx[..., None], fy[..., None]
    top = image[y0, x0] * (1 - fx) + image[y0, x0 + 1] * fx
    low = image[y0 + 1, x0] * (1 - fx) + image[y0 + 1, x0 + 1] * fx
    return top * (1 - fy) + low * fy


def describe(grey, points):
    blurred = smooth(grey, 1.6)
    offsets = np.arange(-3.5, 4.0) * (CELL * 0.75)
    oy, ox = np.meshgrid(offsets, offsets, indexing="ij")
    patch = bilinear(blurred, points[:, 0, None] + ox.ravel(), points[:, 1, None] + oy.ravel())
    patch = patch - patch.mean(axis=1, keepdims=True)
    return patch / (np.linalg.norm(patch, axis=1, keepdims=True) + 1e-9)


def match(a, b):
    likeness = a @ b.T
    far = np.sqrt(np.maximum(2 - 2 * likeness, 0))
    two = np.sort(far, axis=1)[:, :2]
    partner = far.argmin(axis=1)
    mutual = far.argmin(axis=0)[partner] == np.arange(len(a))
    good = np.flatnonzero(mutual & (two[:, 0] < 0.85 * two[:, 1]))
    return good, partner[good]


def project(H, p):
    q = p[..., 0:1] * H[..., None, :, 0] + p[..., 1:2] * H[..., None, :, 1] + H[..., None, :, 2]
    return q[..., :2] / np.where(np.abs(q[..., 2:]) < 1e-9, 1e-9, q[..., 2:])


def four_points(src, dst):
    """Homographies of a batch of four pairs, h33 = 1."""
    b = len(src)
    A = np.zeros((b, 8, 8))
    A[:, 0::2, 0:2] = src
    A[:, 0::2, 2] = 1
    A[:, 1::2, 3:5] = src
    A[:, 1::2, 5] = 1
    A[:, 0::2, 6:] = -src * dst[:, :, 0:1]
    A[:, 1::2, 6:] = -src * dst[:, :, 1:2]
    # three points in a line make it singular: those get a plain matrix and are left out
    t = src[:, np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])]
    u, v = t[:, :, 1] - t[:, :, 0], t[:, :, 2] - t[:, :, 0]
    fit = (np.abs(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]) > 1e-2).all(axis=1)
    A = np.where(fit[:, None, None], A, np.eye(8))
    h = np.linalg.solve(A, dst.reshape(b, 8, 1))[:, :, 0]
    return np.concatenate([h, np.ones((b, 1))], axis=1).reshape(b, 3, 3), fit


def ransac(src, dst, draws):
    best, H, mask, tried = 0, None, None, 0
    counts = []
    for r in range(ROUNDS):
        pick = (draws[r] * len(src)).astype(np.int64)
        candidates, fit = four_points(src[pick], dst[pick])
        error = ((project(candidates, src[None]) - dst) ** 2).sum(axis=2)
        inlier = (error < 0.015 ** 2) & fit[:, None]
        score = inlier.sum(axis=1)
        counts.append(score.max())
        k = int(score.argmax())
        tried += BATCH
        if int(score[k]) > best:
            best, H, mask = int(score[k]), candidates[k], inlier[k]
        if r >= 7 and (1 - (best / len(src)) ** 4) ** tried < 1e-8:
            break
    return H, mask, np.stack(counts)


def refine(H, src, dst):
    """Gauss-Newton with Huber's weights on the eight parameters."""
    costs = []
    for _ in range(12):
        w = src @ H[2, :2] + H[2, 2]
        q = project(H, src)
        J = np.zeros((len(src), 2, 8))
        J[:, 0, 0:2] = J[:, 1, 3:5] = src / w[:, None]
        J[:, 0, 2] = J[:, 1, 5] = 1 / w
        J[:, :, 6:] = -q[:, :, None] * (src / w[:, None])[:, None, :]
        r = dst - q
        size = np.sqrt((r ** 2).sum(axis=1))
        weight = np.minimum(1.0, 0.004 / np.maximum(size, 1e-12))
        costs.append((weight * size ** 2).sum())
        M = np.einsum("nka,n,nkb->ab", J, weight, J)
        g = np.einsum("nka,n,nk->a", J, weight, r)
        step = np.linalg.solve(M + 1e-12 * np.eye(8), g)
        H = H + np.append(step, 0.0).reshape(3, 3)
    return H, np.stack(costs)


def shrink(a):
    p = np.pad(a, ((2, 2), (2, 2), (0, 0)), mode="edge")
    rows = (p[:-4] + 4 * p[1:-3] + 6 * p[2:-2] + 4 * p[3:-1] + p[4:])[::2] / 16
    return ((rows[:, :-4] + 4 * rows[:, 1:-3] + 6 * rows[:, 2:-2] + 4 * rows[:, 3:-1] + rows[:, 4:])[:, ::2] / 16).astype(np.float32)


def grow(a, shape):
    big = np.repeat(np.repeat(a, 2, axis=0), 2, axis=1)[:shape[0], :shape[1]]
    p = np.pad(big, ((1, 1), (1, 1), (0, 0)), mode="edge")
    rows = 0.25 * p[:-2] + 0.5 * p[1:-1] + 0.25 * p[2:]
    return 0.25 * rows[:, :-2] + 0.5 * rows[:, 1:-1] + 0.25 * rows[:, 2:]


def blend(a, b, mask, levels=4):
    parts = []
    for level in range(levels):
        if level == levels - 1:
            parts.append(a * mask + b * (1 - mask))
            break
        a2, b2, m2 = shrink(a), shrink(b), shrink(mask)
        parts.append((a - grow(a2, a.shape)) * mask + (b - grow(b2, b.shape)) * (1 - mask))
        a, b, mask = a2, b2, m2
    out = parts.pop()
    while parts:
        detail = parts.pop()
        out = detail + grow(out, detail.shape)
    return out


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    left, right = asarray(data["left"]), asarray(data["right"])
    luma = np.array([0.299, 0.587, 0.114])
    greys = [(im @ luma) / 255 for im in (left, right)]
    points = [corners(g, POINTS) for g in greys]
    words = [describe(g, p) for g, p in zip(greys, points)]
    i, j = match(words[0], words[1])
    # both in units of half the width, about the middle
    half = N / 2
    T = np.array([[1 / half, 0, -1], [0, 1 / half, -1], [0, 0, 1.0]])
    src, dst = (points[1][j] - half) / half, (points[0][i] - half) / half
    H, mask, counts = ransac(src, dst, asarray(data["draws"]))
    kept = np.flatnonzero(mask)
    H, costs = refine(H, src[kept], dst[kept])
    residual = np.sqrt(((project(H, src) - dst) ** 2).sum(axis=1)) * half
    H = np.linalg.inv(T) @ H @ T
    H = H / H[2, 2]
    # canvas
    box = np.array([[0.0, 0], [N - 1, 0], [0, N - 1], [N - 1, N - 1]])
    ends = project(H, box)
    low = np.floor(np.minimum(ends.min(axis=0), 0)).astype(int)
    high = np.ceil(np.maximum(ends.max(axis=0), N - 1)).astype(int)
    w, h = (int(v) for v in high - low + 1)
    yy, xx = np.meshgrid(np.arange(h) + float(low[1]), np.arange(w) + float(low[0]), indexing="ij")
    inverse = np.linalg.inv(H)
    back = project(inverse, np.stack([xx, yy], axis=-1).reshape(-1, 2)).reshape(h, w, 2)
    shots, alphas = [], []
    for im, where in ((left, np.stack([xx, yy], axis=-1)), (right, back)):
        px, py = where[..., 0], where[..., 1]
        valid = (px > -0.5) & (px < N - 0.5) & (py > -0.5) & (py < N - 0.5)
        shots.append(bilinear(im.astype(np.float32), np.clip(px, 0, N - 1), np.clip(py, 0, N - 1)))
        edge = np.minimum(np.minimum(px + 0.5, N - 0.5 - px), np.minimum(py + 0.5, N - 0.5 - py))
        alphas.append(np.where(valid, edge, 0).astype(np.float32))
    both = (alphas[0] > 1) & (alphas[1] > 1)
    gain = np.stack([(shots[0][..., c] * both).sum(dtype=np.float64) / (shots[1][..., c] * both).sum(dtype=np.float64) for c in range(3)])
    shots[1] = np.minimum(shots[1] * gain.astype(np.float32), 255)
    covered = (alphas[0] > 0) | (alphas[1] > 0)
    choose = (alphas[0] >= alphas[1]).astype(np.float32)[..., None]
    for k in (0, 1):
        shots[k] = np.where((alphas[k] > 0)[..., None], shots[k], shots[1 - k])
    pano = np.clip(blend(shots[0], shots[1], choose), 0, 255) * covered[..., None]
    feather = (shots[0] * alphas[0][..., None] + shots[1] * alphas[1][..., None]) / np.maximum(alphas[0] + alphas[1], 1e-3)[..., None]
    difference = np.abs(shots[0] - shots[1]).mean(axis=2)
    hist = np.stack([np.histogram(pano[..., c][covered], bins=32, range=(0.0, 256.0))[0] for c in range(3)])
    return dict(points=points[0][:40], pairs=len(i) * 1.0, counts=counts, inliers=mask, costs=np.sqrt(costs), residual=np.median(residual), H=H, corners=ends, gain=gain, pano=pano, feather=feather,
                overlap=both.mean(), difference=np.percentile(difference[both], 75), hist=hist)
