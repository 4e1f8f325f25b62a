"""Colours of one picture given to another: Lab, mean and covariance transfer, histogram matching, sliced transport, Sinkhorn in the log domain (balanced and not) with a barycentric map. N: pixels a side."""
import numpy
import numpy as np

DEFAULT = 144
SAMPLES, DIRECTIONS, ITERATIONS = 256, 24, 40
EPSILONS = (1.0, 0.3, 0.1, 0.05)


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(309)
    y, x = numpy.mgrid[:N, :N] / N
    a = numpy.stack([0.9 - 0.6 * y, 0.3 + 0.4 * x, 0.2 + 0.2 * numpy.sin(9 * x)], axis=2)
    b = numpy.stack([0.2 + 0.2 * (x > y), 0.4 + 0.3 * numpy.cos(6 * y) ** 2, 0.7 - 0.4 * x * y], axis=2)
    a[(x - 0.5) ** 2 + (y - 0.4) ** 2 < 0.05] = (0.95, 0.85, 0.3)
    b[numpy.abs(y - 0.7) < 0.1] = (0.7, 0.15, 0.25)
    noise = rng.normal(0, 0.03, (2, N, N, 3))
    first, second = numpy.clip(a + noise[0], 0, 1), numpy.clip(b + noise[1], 0, 1)
    turn = rng.normal(size=(DIRECTIONS, 3))
    return dict(first=(255 * first).astype(numpy.uint8), second=(255 * second).astype(numpy.uint8), jitter=rng.uniform(-0.5, 0.5, (2, N, N, 3)),
                pick=numpy.stack([rng.permutation(N * N)[:SAMPLES] for _ in range(2)]).astype(numpy.int32),
                turn=turn / numpy.linalg.norm(turn, axis=1, keepdims=True))


RGB_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)


def to_lab(rgb):
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((np.maximum(rgb, 0.04045) + 0.055) / 1.055) ** 2.4)
    xyz = np.tensordot(linear, np.array(RGB_XYZ), axes=([-1], [1])) / np.array(WHITE)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def to_rgb(lab):
    fy = (lab[..., 0] + 16) / 116
    f = np.stack([fy + lab[..., 1] / 500, fy, fy - lab[..., 2] / 200], axis=-1)
    xyz = np.where(f > 6 / 29, f ** 3, (116 * f - 16) * 27 / 24389) * np.array(WHITE)
    linear = np.clip(xyz @ np.linalg.inv(np.array(RGB_XYZ)).T, 0, 1)
    return np.select([linear <= 0.0031308, linear < 1], [12.92 * linear, 1.055 * np.maximum(linear, 1e-9) ** (1 / 2.4) - 0.055], default=1.0)


def root(C, inverse=False):
    lam, V = np.linalg.eigh(C)
    return (V * np.maximum(lam, 1e-9) ** (-0.5 if inverse else 0.5)) @ V.T


def monge(x, y):
    """The linear map that is optimal between Gaussians."""
    mx, my = x.mean(axis=0), y.mean(axis=0)
    A, B = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    half, back = root(A), root(A, inverse=True)
    T = back @ root(half @ B @ half) @ back
    return (x - mx) @ T + my, ((mx - my) ** 2).sum() + np.trace(A + B - 2 * root(half @ B @ half))


def match_channel(source, target):
    values, where, counts = np.unique(source, return_inverse=True, return_counts=True)
    wanted, target_counts = np.unique(target, return_counts=True)
    p = np.cumsum(counts) / source.size
    q = np.cumsum(target_counts) / target.size
    return np.interp(p, q, wanted.astype(np.float64))[where.ravel()].reshape(source.shape)


def logsumexp(a, axis):
    top = a.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis=axis) + np.log(np.exp(a - top).sum(axis=axis))


def sinkhorn(C, loga, logb, relax=None):
    f, g = np.zeros(len(loga)), np.zeros(len(logb))
    errors = []
    for eps in EPSILONS:
        damp = 1.0 if relax is None else relax / (relax + eps)
        K = -C / eps
        for it in range(ITERATIONS):
            f = -damp * eps * logsumexp(K + (g / eps + logb)[None, :], 1)
            g = -damp * eps * logsumexp(K + (f / eps + loga)[:, None], 0)
            if it % 10 == 9:
                P = np.exp(K + (f / eps + loga)[:, None] + (g / eps + logb)[None, :])
                errors.append(np.abs(P.sum(axis=1) - np.exp(loga)).sum())
    P = np.exp(K + (f / eps + loga)[:, None] + (g / eps + logb)[None, :])
    return P, f, g, np.stack(errors)


def sliced(x, y, directions, step=0.5):
    """Move x along random directions so that its sorted projections approach those of y."""
    x = x.copy()
    n = len(x)
    costs = []
    for d in directions:
        px, py = x @ d, np.sort(y @ d)
        order = px.argsort()
        delta = np.empty(n)
        delta[order] = py - px[order]
        costs.append((delta ** 2).mean())
        x += step * delta[:, None] * d
    return x, np.stack(costs)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    first, second = asarray(data["first"]), asarray(data["second"])
    jitter = asarray(data["jitter"])
    lab1, lab2 = to_lab((first + 0.5 + jitter[0]) / 256), to_lab((second + 0.5 + jitter[1]) / 256)
    flat1, flat2 = lab1.reshape(-1, 3), lab2.reshape(-1, 3)
    # Reinhard: moments channel by channel; Monge: with the covariance
    reinhard = (flat1 - flat1.mean(axis=0)) / flat1.std(axis=0) * flat2.std(axis=0) + flat2.mean(axis=0)
    linear, bures = monge(flat1, flat2)
    matched = np.stack([match_channel(first[..., c], second[..., c]) for c in range(3)], axis=-1)
    table = np.stack([np.bincount(first[..., c].ravel(), minlength=256) for c in range(3)])
    equal = np.floor(255 * np.cumsum(table, axis=1) / first[..., 0].size).astype(np.uint8)
    stretched = np.stack([equal[c][first[..., c]] for c in range(3)], axis=-1)
    moved, costs = sliced(flat1, flat2, asarray(data["turn"]))
    # Sinkhorn between samples
    pick = asarray(data["pick"])
    x, y = flat1[pick[0]], flat2[pick[1]]
    C = ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1)
    scale = float(np.median(C))
    C /= scale
    uniform = np.full(SAMPLES, -float(np.log(SAMPLES)))
    P, f, g, errors = sinkhorn(C, uniform, uniform)
    loose, _, _, _ = sinkhorn(C, uniform, uniform, relax=0.5)
    cost = (P * C).sum()
    row = P.sum(axis=1, keepdims=True)
    target = P @ y / row
    self_costs = []
    for s in (x, y):
        D = ((s[:, None] - s[None]) ** 2).sum(axis=2) / scale
        Q, _, _, _ = sinkhorn(D, uniform, uniform)
        self_costs.append((Q * D).sum())
    divergence = cost - 0.5 * (self_costs[0] + self_costs[1])
    # the displacement of the samples, carried to all the pixels by soft weights, in blocks
    shift = target - x
    pixels = np.empty_like(flat1)
    for lo in range(0, len(flat1), 4096):
        part = flat1[lo:lo + 4096]
        d2 = (part ** 2).sum(axis=1)[:, None] + (x ** 2).sum(axis=1) - 2 * part @ x.T
        w = np.exp(-(d2 - d2.min(axis=1, keepdims=True)) / 20.0)
        pixels[lo:lo + 4096] = part + (w @ shift) / w.sum(axis=1, keepdims=True)
    pictures = [to_rgb(p.reshape(lab1.shape)) for p in (reinhard, linear, moved, pixels)]
    bins = np.linspace(0, 1, 17)
    hists, distance = [], []
    goal, _ = np.histogramdd(np.clip(to_rgb(lab2).reshape(-1, 3), 0, 1)[::4], bins=(8, 8, 8), range=((0, 1),) * 3)
    goal = goal / goal.sum()
    for p in pictures:
        flat = np.clip(p, 0, 1).reshape(-1, 3)
        h, _ = np.histogramdd(flat[::4], bins=(8, 8, 8), range=((0, 1),) * 3)
        h = h / h.sum()
        distance.append(np.stack([0.5 * ((h - goal) ** 2 / np.maximum(h + goal, 1e-12)).sum(), np.minimum(h, goal).sum()]))
        hists.append(np.histogram(flat.mean(axis=1), bins=bins)[0])
    wasserstein = np.stack([np.abs(np.sort(p.reshape(-1, 3), axis=0) - np.sort(to_rgb(flat2), axis=0)).mean(axis=0) for p in pictures])
    top = np.argpartition(-P, 3, axis=1)[:, :3]
    mass3 = np.take_along_axis(P, top, axis=1).sum(axis=1) / row[:, 0]
    lightness = np.stack([np.percentile(p.mean(axis=2), np.array([5, 50, 95])) for p in pictures])
    return dict(reinhard=pictures[0], linear=pictures[1], moved=pictures[2], mapped=pictures[3], bures=bures, matched=matched, stretched=stretched, costs=costs,
                errors=errors, cost=cost, divergence=divergence, potentials=np.stack([f - f.mean(), g - g.mean()]), loose=loose.sum(axis=1),
                target=target, distance=np.stack(distance), hists=np.stack(hists), wasserstein=wasserstein, mass3=mass3, lightness=lightness)
