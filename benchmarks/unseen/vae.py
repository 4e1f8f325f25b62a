"""A variational autoencoder in float32 by hand: strokes on a small grid, reparametrised Gaussian, backward pass, Adam, warm-up of the divergence, importance bounds, walks. N: images."""
import math

import numpy
import numpy as np

DEFAULT = 3000
SIDE, HIDDEN, LATENT, BATCH, EPOCHS = 14, 160, 6, 200, 16


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(4107)
    y, x = numpy.mgrid[0:SIDE, 0:SIDE] / (SIDE - 1.0) * 2 - 1
    kind = rng.integers(0, 3, N)
    cx, cy, size, angle = rng.uniform(-0.25, 0.25, N), rng.uniform(-0.25, 0.25, N), rng.uniform(0.4, 0.75, N), rng.uniform(-0.6, 0.6, N)
    X, Y = x[None] - cx[:, None, None], y[None] - cy[:, None, None]
    a = angle[:, None, None]
    u, v, s = X * numpy.cos(a) + Y * numpy.sin(a), Y * numpy.cos(a) - X * numpy.sin(a), size[:, None, None]
    far = numpy.where(kind[:, None, None] == 0, numpy.abs(numpy.hypot(u, v) - s),
                      numpy.where(kind[:, None, None] == 1, numpy.maximum(numpy.abs(u), numpy.abs(v) - s), numpy.minimum(numpy.abs(u), numpy.abs(v)) + numpy.maximum(numpy.hypot(u, v) - s, 0)))
    images = numpy.clip(1.3 - far / 0.14, 0, 1) ** 2
    sizes = dict(W1=(SIDE * SIDE, HIDDEN), W2=(HIDDEN, 2 * LATENT), W3=(LATENT, HIDDEN), W4=(HIDDEN, SIDE * SIDE))
    weights = {k: (rng.normal(size=s) / numpy.sqrt(s[0])).astype(numpy.float32) for k, s in sizes.items()}
    return dict(images=(255 * images.reshape(N, -1)).astype(numpy.uint8), kind=kind.astype(numpy.int8), order=numpy.stack([rng.permutation(N) for _ in range(EPOCHS)]).astype(numpy.int32),
                noise=rng.normal(size=(EPOCHS, N, LATENT)).astype(numpy.float32), many=rng.normal(size=(24, 150, LATENT)).astype(numpy.float32), **weights)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


class Net:
    def __init__(self, weights):
        shapes = {}
        for k, w in weights.items():
            shapes[k], shapes["b" + k[1:]] = w.shape, w.shape[1:]
        # all parameters lie in one vector, the matrices are views of it
        sizes = [math.prod(s) for s in shapes.values()]
        self.flat = np.zeros(sum(sizes), dtype=np.float32)
        self.p, at = {}, 0
        for (k, shape), size in zip(shapes.items(), sizes):
            self.p[k] = self.flat[at:at + size].reshape(shape)
            at += size
        for k, w in weights.items():
            self.p[k][...] = w
        self.m, self.v = np.zeros_like(self.flat), np.zeros_like(self.flat)
        self.t = 0

    def encode(self, x):
        p = self.p
        h = np.tanh(x @ p["W1"] + p["b1"])
        out = h @ p["W2"] + p["b2"]
        mean, logvar = np.split(out, 2, axis=1)
        return h, mean, np.clip(logvar, -8, 6)

    def decode(self, z):
        p = self.p
        pre = z @ p["W3"] + p["b3"]
        gate = sigmoid(pre)
        h = pre * gate
        return gate, h, h @ p["W4"] + p["b4"]

    def step(self, x, eps, beta):
        """Loss and gradients of one batch."""
        p, n = self.p, np.float32(len(x))
        h1, mean, logvar = self.encode(x)
        std = np.exp(np.float32(0.5) * logvar)
        z = mean + std * eps
        gate, h2, logits = self.decode(z)
        rec = (softplus(logits) - x * logits).sum() / n
        kl = -0.5 * (1 + logvar - mean ** 2 - std ** 2).sum(axis=0) / n
        g = {}
        d = (sigmoid(logits) - x) / n
        g["W4"], g["b4"] = h2.T @ d, d.sum(axis=0)
        d = (d @ p["W4"].T) * (gate + h2 * (1 - gate))
        g["W3"], g["b3"] = z.T @ d, d.sum(axis=0)
        dz = d @ p["W3"].T
        dmean = dz + beta * mean / n
        dlog = np.float32(0.5) * (dz * eps * std + beta * (std ** 2 - 1) / n)
        d = np.concatenate([dmean, dlog], axis=1)
        g["W2"], g["b2"] = h1.T @ d, d.sum(axis=0)
        d = (d @ p["W2"].T) * (1 - h1 * h1)
        g["W1"], g["b1"] = x.T @ d, d.sum(axis=0)
        return rec, kl, g

    def adam(self, g, rate):
        self.t += 1
        grad = np.concatenate([g[k].ravel() for k in self.p])
        norm = np.linalg.norm(grad)
        grad *= np.minimum(np.float32(1), 20 / (norm + np.float32(1e-6)))
        self.m *= np.float32(0.9)
        self.m += np.float32(0.1) * grad
        self.v *= np.float32(0.99)
        self.v += np.float32(0.01) * grad * grad
        hat = self.m / np.float32(1 - 0.9 ** self.t)
        self.flat -= np.float32(rate) * hat / (np.sqrt(self.v / np.float32(1 - 0.99 ** self.t)) + np.float32(1e-4))
        return norm


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    images, kind, order, noise = (asarray(data[k]) for k in ("images", "kind", "order", "noise"))
    x = images.astype(np.float32) / np.float32(255)
    net = Net({k: asarray(data[k]) for k in ("W1", "W2", "W3", "W4")})
    losses, kls, norms = [], [], []
    for epoch in range(EPOCHS):
        beta = np.float32(min(1.0, (epoch + 1) / 6))
        rate = 3e-3 * 0.93 ** epoch
        for b in range(0, N - BATCH + 1, BATCH):
            rows = order[epoch, b:b + BATCH]
            rec, kl, g = net.step(x[rows], noise[epoch, b:b + BATCH], beta)
            norms.append(net.adam(g, rate))
            losses.append(rec + beta * kl.sum())
        kls.append(kl)
    _, mean, logvar = net.encode(x)
    _, _, logits = net.decode(mean)
    made = sigmoid(logits)
    error = ((made - x) ** 2).mean(axis=1)
    # importance weighted bound on the first pictures
    part = min(150, N)
    m, s = mean[:part], np.exp(0.5 * logvar[:part])
    logw = []
    for eps in asarray(data["many"])[:, :part]:
        z = m + s * eps
        _, _, out = net.decode(z)
        px = (x[:part] * out - softplus(out)).sum(axis=1)
        logw.append(px - 0.5 * (z * z).sum(axis=1) + 0.5 * (eps * eps).sum(axis=1) + np.log(s).sum(axis=1))
    logw = np.stack(logw).astype(np.float64)
    top = logw.max(axis=0)
    bound = top + np.log(np.exp(logw - top).mean(axis=0))
    weight = np.exp(logw - top)
    ess = weight.sum(axis=0) ** 2 / (weight ** 2).sum(axis=0)
    # classes in the latent space: Gaussians with a shared covariance
    means = np.stack([mean[kind == c].mean(axis=0) for c in range(3)])
    within = (mean - means[kind.astype(np.int64)]).astype(np.float64)
    cov = within.T @ within / N + 1e-3 * np.eye(LATENT)
    d = mean[:, None, :] - means[None]
    maha = np.einsum("nci,ij,ncj->nc", d, np.linalg.inv(cov), d)
    confusion = np.zeros((3, 3), dtype=np.int32)
    np.add.at(confusion, (kind.astype(np.int64), maha.argmin(axis=1)), 1)
    # a walk between the middles of two classes, at a length that goes evenly from one to the other
    t = np.linspace(0, 1, 9, dtype=np.float32)[:, None]
    length = np.linalg.norm(means, axis=1)
    way = (1 - t) * means[0] + t * means[1] + np.float32(0.1) * np.sin(np.pi * t) * means[2]
    way *= ((1 - t) * length[0] + t * length[1]) / (np.linalg.norm(way, axis=1, keepdims=True) + np.float32(0.2))
    walk = sigmoid(net.decode(way.astype(np.float32))[2]).reshape(9, SIDE, SIDE)
    # one coordinate at a time
    active = mean.var(axis=0)
    sweep = np.zeros((LATENT, 7, LATENT), dtype=np.float32)
    for k in range(LATENT):
        sweep[k, :, k] = np.linspace(-2, 2, 7)
    pictures = sigmoid(net.decode(sweep.reshape(-1, LATENT))[2]).reshape(LATENT, 7, -1)
    moved = np.abs(np.diff(pictures, axis=1)).sum(axis=(1, 2))
    return dict(losses=np.stack(losses), kls=np.stack(kls), norms=np.stack(norms), error=error, bound=bound, ess=ess.mean(), share=confusion.trace() / confusion.sum(), means=means, cov=cov, active=active,
                walk=walk, moved=moved, W4=net.p["W4"])
