"""Canny's edges by hand: grey, gamma, separable blur by slices, Sobel, non-maximum suppression, Otsu, hysteresis, integral image, equalise. N: pixels / 256."""
import numpy
import numpy as np

DEFAULT = 1600


def inputs(N=DEFAULT):
    N = int(16 * N ** 0.5)
    rng = numpy.random.default_rng(24)
    y, x = numpy.mgrid[:N, :N]
    image = numpy.stack([60 + 40 * numpy.sin(x / 17), 80 + 30 * numpy.cos(y / 23), 70 + 20 * numpy.sin((x + y) / 31)], axis=-1)
    for _ in range(30):
        cy, cx, r = rng.uniform(0, N), rng.uniform(0, N), rng.uniform(5, N / 8)
        image[(x - cx) ** 2 + (y - cy) ** 2 < r * r] = rng.uniform(30, 220, 3)
    return dict(rgb=(image + rng.normal(0, 8, image.shape)).clip(0, 255).astype(numpy.uint8))


def gaussian(sigma):
    r = int(3 * sigma + 0.5)
    k = np.exp(-0.5 * (np.arange(-r, r + 1) / sigma) ** 2)
    return k / k.sum()


def blur(image, kernel):
    r = len(kernel) // 2
    h, w = image.shape
    padded = np.pad(image, r, mode="reflect")
    rows = np.zeros((h + 2 * r, w), dtype=image.dtype)
    for i in range(len(kernel)):
        rows += kernel[i] * padded[:, i:i + w]
    out = np.zeros_like(image)
    for i, k in enumerate(kernel):
        out += k * rows[i:i + h]
    return out


def sobel(g):
    p = np.pad(g, 1, mode="edge")
    gx = (p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2])
    gy = (p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:])
    return gx, gy


def suppress(mag, angle):
    sector = (np.round(angle / (np.pi / 4)) % 4).astype(np.int8)
    p = np.pad(mag, 1)
    c = p[1:-1, 1:-1]
    out = np.zeros_like(mag)
    for s, (dy, dx) in enumerate([(0, 1), (1, 1), (1, 0), (1, -1)]):
        h, w = mag.shape
        ahead = p[1 + dy:1 + dy + h, 1 + dx:1 + dx + w]
        behind = p[1 - dy:1 - dy + h, 1 - dx:1 - dx + w]
        keep = (sector == s) & (c >= ahead) & (c > behind)
        out[keep] = c[keep]
    return out


def otsu(values, bins=256):
    hist, edges = np.histogram(values, bins=bins)
    centres = (edges[:-1] + edges[1:]) / 2
    w1 = np.cumsum(hist)
    w2 = np.cumsum(hist[::-1])[::-1]
    m1 = np.cumsum(hist * centres) / np.maximum(w1, 1)
    m2 = (np.cumsum((hist * centres)[::-1]) / np.maximum(np.cumsum(hist[::-1]), 1))[::-1]
    between = w1[:-1] * w2[1:] * (m1[:-1] - m2[1:]) ** 2
    return centres[int(np.argmax(between))]


def grow(strong, weak, limit=20):
    edges = strong.copy()
    for n in range(limit):
        p = np.pad(edges, 1)
        near = np.zeros_like(edges)
        for dy in range(3):
            for dx in range(3):
                near |= p[dy:dy + edges.shape[0], dx:dx + edges.shape[1]]
        new = near & weak
        if (new == edges).all():
            break
        edges = new | edges
    return edges, n


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    rgb = asarray(data["rgb"])
    N = len(rgb)
    grey = rgb @ np.array([0.2126, 0.7152, 0.0722]) / 255
    grey = grey ** 0.8
    smooth = blur(grey, gaussian(1.4))
    gx, gy = sobel(smooth)
    mag, angle = np.hypot(gx, gy), np.arctan2(gy, gx)
    thin = suppress(mag, angle)
    high = otsu(thin[thin > 0])
    strong, weak = thin >= high, thin >= 0.4 * high
    edges, rounds = grow(strong, weak)
    # local contrast by integral images
    S = np.zeros((N + 1, N + 1))
    S[1:, 1:] = grey.cumsum(axis=0).cumsum(axis=1)
    S2 = np.zeros((N + 1, N + 1))
    S2[1:, 1:] = np.cumsum(np.cumsum(grey ** 2, axis=0), axis=1)
    b = 15
    box = lambda I: (I[b:, b:] - I[:-b, b:] - I[b:, :-b] + I[:-b, :-b]) / b ** 2
    mean, var = box(S), None
    var = np.maximum(box(S2) - mean ** 2, 0)
    local = grey[b // 2:b // 2 + mean.shape[0], b // 2:b // 2 + mean.shape[1]] < mean * (1 + 0.2 * (np.sqrt(var) / 0.5 - 1))
    # histogram equalisation through a table
    level = (grey * 255).astype(np.uint8)
    counts = np.bincount(level.ravel(), minlength=256)
    cdf = counts.cumsum()
    first = cdf[cdf > 0][0]
    lut = np.clip(np.round((cdf - first) / (level.size - first) * 255), 0, 255).astype(np.uint8)
    equal = lut[level]
    unsharp = np.clip(grey + 0.7 * (grey - blur(grey, gaussian(3.0))), 0, 1)
    direction, _ = np.histogram(angle[edges], bins=18, range=(-np.pi, np.pi), weights=mag[edges])
    ys, xs = np.nonzero(edges)
    # Hough transform
    theta = np.linspace(-np.pi / 2, np.pi / 2, 60, endpoint=False)
    rho = np.round(np.outer(xs[::4], np.cos(theta)) + np.outer(ys[::4], np.sin(theta))).astype(int) + 2 * N
    accumulator = np.zeros((4 * N, 60), dtype=int)
    np.add.at(accumulator, (rho, np.arange(60)), 1)
    small = grey[:N // 4 * 4, :N // 4 * 4].reshape(N // 4, 4, N // 4, 4).mean(axis=(1, 3))
    out = rgb.copy()
    out[edges] = np.array([255, 0, 0], dtype=np.uint8)
    out[~edges, 1] //= 2
    return dict(smooth=np.asarray(smooth), thin=np.asarray(thin), high=np.asarray(high), edges=np.asarray(edges), rounds=np.asarray(rounds),
                local=np.asarray(local), equal=np.asarray(equal), unsharp=np.asarray(unsharp), direction=np.asarray(direction),
                corner=np.asarray([int(ys.min()), int(ys.max()), int(xs.min()), int(xs.max())]), hough=np.asarray(accumulator.max(axis=0)),
                small=np.asarray(small), out=np.asarray(out))
