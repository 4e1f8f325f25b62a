"""Image features: blur, Sobel, Harris corners, non-maximum suppression, integral images, local binary patterns, matching. N: pixels per side."""
import numpy
import numpy as np

DEFAULT = 320


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(31)
    img = numpy.full((N, N), 0.3)
    for _ in range(40):
        r, c, h, w = rng.integers(0, N - N // 8, 2).tolist() + rng.integers(N // 20, N // 6, 2).tolist()
        img[r:r + h, c:c + w] = rng.random()
    noise = lambda: rng.normal(0, 6, (N, N))
    second = numpy.roll(img, (5, -9), axis=(0, 1))
    to_bytes = lambda a: numpy.clip(255 * a + noise(), 0, 255).astype(numpy.uint8)
    return dict(image=to_bytes(img), moved=to_bytes(second))


def convolve2d(image, kernel):
    kh, kw = kernel.shape
    padded = np.pad(image, ((kh // 2, kh // 2), (kw // 2, kw // 2)), mode="edge")
    out = np.zeros(image.shape)
    for i in range(kh):
        for j in range(kw):
            out += kernel[i, j] * padded[i:i + image.shape[0], j:j + image.shape[1]]
    return out


def gaussian_kernel(size, sigma):
    ax = np.arange(size) - size // 2
    g = np.exp(-(ax ** 2) / (2 * sigma ** 2))
    return np.outer(g, g) / g.sum() ** 2


def harris(gray, k=0.05):
    sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8.0
    smooth = convolve2d(gray, gaussian_kernel(5, 1.0))
    Ix, Iy = convolve2d(smooth, sobel), convolve2d(smooth, sobel.T)
    g = gaussian_kernel(7, 1.5)
    Ixx, Iyy, Ixy = convolve2d(Ix * Ix, g), convolve2d(Iy * Iy, g), convolve2d(Ix * Iy, g)
    R = (Ixx * Iyy - Ixy ** 2) - k * (Ixx + Iyy) ** 2
    return R, np.hypot(Ix, Iy), np.arctan2(Iy, Ix)


def suppress(R, radius, count, border=12):
    size = 2 * radius + 1
    padded = np.pad(R, radius, mode="constant", constant_values=-np.inf)
    local_max = np.lib.stride_tricks.sliding_window_view(padded, (size, size)).max(axis=(2, 3))
    peak = (R == local_max) & (R > 0.01 * R.max())
    peak[:border, :] = peak[-border:, :] = False
    peak[:, :border] = peak[:, -border:] = False
    points = np.argwhere(peak)
    strength = R[points[:, 0], points[:, 1]]
    return points[np.argsort(-strength)[:count]], np.sort(strength)[::-1][:count]


def thin(mag, angle):
    q = (np.rint(angle / (np.pi / 4)).astype(int)) % 4
    out = np.zeros_like(mag)
    for d, (dy, dx) in enumerate([(0, 1), (1, 1), (1, 0), (1, -1)]):
        ahead, behind = np.roll(mag, (-dy, -dx), (0, 1)), np.roll(mag, (dy, dx), (0, 1))
        keep = (q == d) & (mag >= ahead) & (mag >= behind)
        out[keep] = mag[keep]
    return out


def box_stats(image, r):
    S = np.pad(image.astype(float), ((1, 0), (1, 0))).cumsum(0).cumsum(1)
    Q = np.pad(image.astype(float) ** 2, ((1, 0), (1, 0))).cumsum(0).cumsum(1)
    area = lambda I: I[2 * r:, 2 * r:] - I[:-2 * r, 2 * r:] - I[2 * r:, :-2 * r] + I[:-2 * r, :-2 * r]
    mean = area(S) / (2 * r) ** 2
    return mean, np.sqrt(np.maximum(area(Q) / (2 * r) ** 2 - mean ** 2, 0))


def lbp(image):
    code = np.zeros_like(image[1:-1, 1:-1])
    offsets = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
    for bit, (dy, dx) in enumerate(offsets):
        code |= (image[dy:len(image) - 2 + dy, dx:image.shape[1] - 2 + dx] >= image[1:-1, 1:-1]).astype(np.uint8) << bit
    return code


def descriptors(image, points, r=5):
    offsets = np.arange(-r, r + 1)
    rows, cols = points[:, 0, None, None] + offsets[:, None], points[:, 1, None, None] + offsets
    d = image[rows, cols].reshape(len(points), -1).astype(float)
    d -= d.mean(axis=1, keepdims=True)
    return d / (np.linalg.norm(d, axis=1, keepdims=True) + 1e-9)


def main(asarray, N=DEFAULT, data=None, count=60):
    data = data or inputs(N)
    image, moved = asarray(data["image"]), asarray(data["moved"])
    R, mag, angle = harris(image / 255.0)
    points, strength = suppress(R, 4, count)
    points2, _ = suppress(harris(moved / 255.0)[0], 4, count)
    edges = thin(mag, angle)
    mean, std = box_stats(image, 7)
    local = image[7:-6, 7:-6] > mean * (1 + 0.2 * (std / 128 - 1))
    codes = lbp(image)
    cells = codes[:(N - 2) // 16 * 16, :(N - 2) // 16 * 16].reshape((N - 2) // 16, 16, -1, 16).swapaxes(1, 2).reshape(-1, 256)
    texture = np.stack([np.bincount(c, minlength=256) for c in cells[:40]])
    similarity = descriptors(image, points) @ descriptors(moved, points2).T
    best = similarity.argmax(axis=1)
    mutual = (similarity.argmax(axis=0)[best] == np.arange(len(best))) & (similarity.max(axis=1) > 0.8)
    shift = np.median(points2[best[mutual]] - points[mutual], axis=0) if mutual.any() else np.zeros(2)
    return dict(R=np.asarray(R), points=np.asarray(points), strength=np.asarray(strength), edges=np.asarray(edges), std=np.asarray(std),
                local=np.asarray(local.mean()), codes=np.asarray(codes), texture=np.asarray(texture),
                similarity=np.asarray(similarity), matched=np.asarray(mutual.sum()), shift=np.asarray(shift))
