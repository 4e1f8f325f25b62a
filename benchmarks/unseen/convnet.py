"""Small convolutional network trained by im2col, mini-batches, momentum and L2: shapes in noisy 16 x 16 images. N: training images."""
import numpy
import numpy as np

DEFAULT = 512
SIDE, BATCH, EPOCHS, CLASSES = 16, 32, 4, 4


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(11)
    total = N + 128
    labels = rng.integers(0, CLASSES, total)
    y, x = numpy.mgrid[:SIDE, :SIDE]
    cy, cx, r = rng.uniform(5, 11, (3, total, 1, 1)) * numpy.array([1, 1, 0.45]).reshape(3, 1, 1, 1)
    dy, dx = abs(y - cy), abs(x - cx)
    shapes = [numpy.hypot(dy, dx) < r, numpy.maximum(dy, dx) < r, (dy < 1) & (dx < r) | (dx < 1) & (dy < r), abs(numpy.hypot(dy, dx) - r) < 0.8]
    images = numpy.choose(labels[:, None, None], shapes) + rng.normal(0, 0.3, (total, SIDE, SIDE))
    order = numpy.stack([rng.permutation(N) for _ in range(EPOCHS)])
    flat = 16 * (SIDE // 4) ** 2
    return dict(images=images[:, None].astype(numpy.float32), labels=labels, order=order,
                W1=(rng.normal(size=(8, 1, 3, 3)) * numpy.sqrt(2 / 9)).astype(numpy.float32),
                W2=(rng.normal(size=(16, 8, 3, 3)) * numpy.sqrt(2 / 72)).astype(numpy.float32),
                W3=(rng.normal(size=(flat, 64)) * numpy.sqrt(2 / flat)).astype(numpy.float32),
                W4=(rng.normal(size=(64, CLASSES)) * numpy.sqrt(1 / 64)).astype(numpy.float32))


def im2col(x, k, pad):
    n, c, h, w = x.shape
    img = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    col = np.empty((n, c, k, k, h, w), dtype=x.dtype)
    for i in range(k):
        for j in range(k):
            col[:, :, i, j] = img[:, :, i:i + h, j:j + w]
    return col.transpose(0, 4, 5, 1, 2, 3).reshape(n * h * w, -1)


def col2im(col, shape, k, pad):
    n, c, h, w = shape
    col = col.reshape(n, h, w, c, k, k).transpose(0, 3, 4, 5, 1, 2)
    img = np.zeros((n, c, h + 2 * pad, w + 2 * pad), dtype=col.dtype)
    for i in range(k):
        for j in range(k):
            img[:, :, i:i + h, j:j + w] += col[:, :, i, j]
    return img[:, :, pad:pad + h, pad:pad + w]


def conv_forward(x, W, b):
    n, _, h, w = x.shape
    col = im2col(x, 3, 1)
    out = col @ W.reshape(len(W), -1).T + b
    return out.reshape(n, h, w, -1).transpose(0, 3, 1, 2), (x.shape, col)


def conv_backward(dout, W, cache):
    d = dout.transpose(0, 2, 3, 1).reshape(-1, len(W))
    return col2im(d @ W.reshape(len(W), -1), cache[0], 3, 1), (d.T @ cache[1]).reshape(W.shape), d.sum(axis=0)


def pool_forward(x):
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    arg = blocks.argmax(axis=-1)
    return np.take_along_axis(blocks, arg[..., None], axis=-1)[..., 0], arg


def pool_backward(dout, arg):
    n, c, h, w = dout.shape
    d = np.where(arg[..., None] == np.arange(4), dout[..., None], 0)
    return d.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)


def forward(p, x):
    a1, c1 = conv_forward(x, p["W1"], p["b1"])
    m1, s1 = pool_forward(np.maximum(a1, 0))
    a2, c2 = conv_forward(m1, p["W2"], p["b2"])
    m2, s2 = pool_forward(np.maximum(a2, 0))
    flat = m2.reshape(len(x), -1)
    a3 = flat @ p["W3"] + p["b3"]
    h = np.maximum(a3, 0)
    z = h @ p["W4"] + p["b4"]
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True), (a1, c1, s1, a2, c2, s2, m2.shape, flat, a3, h)


def backward(p, probs, t, cache):
    a1, c1, s1, a2, c2, s2, shape, flat, a3, h = cache
    g, dz = {}, probs.copy()
    dz[np.arange(len(t)), t] -= 1
    dz /= len(t)
    g["W4"], g["b4"] = h.T @ dz, dz.sum(axis=0)
    da3 = (dz @ p["W4"].T) * (a3 > 0)
    g["W3"], g["b3"] = flat.T @ da3, da3.sum(axis=0)
    da2 = pool_backward((da3 @ p["W3"].T).reshape(shape), s2) * (a2 > 0)
    dm1, g["W2"], g["b2"] = conv_backward(da2, p["W2"], c2)
    da1 = pool_backward(dm1, s1) * (a1 > 0)
    _, g["W1"], g["b1"] = conv_backward(da1, p["W1"], c1)
    return g


def main(asarray, N=DEFAULT, data=None, lr=0.02, momentum=0.9, decay=1e-4):
    data = data or inputs(N)
    d = {k: asarray(v) for k, v in data.items()}
    p = {k: d[k].copy() for k in ("W1", "W2", "W3", "W4")}
    p.update({name: np.zeros(size, dtype=np.float32) for name, size in (("b1", 8), ("b2", 16), ("b3", 64), ("b4", CLASSES))})
    x, t = d["images"], d["labels"]
    x = (x - x[:N].mean()) / x[:N].std()
    velocity = {k: np.zeros_like(v) for k, v in p.items()}
    losses, accuracy = [], []
    for epoch in range(EPOCHS):
        total = 0.0
        for start in range(0, N - BATCH + 1, BATCH):
            idx = d["order"][epoch, start:start + BATCH]
            probs, cache = forward(p, x[idx])
            grads = backward(p, probs, t[idx], cache)
            for k in p:
                velocity[k] = momentum * velocity[k] - lr * (grads[k] + decay * p[k])
                p[k] += velocity[k]
            total += float(-np.log(probs[np.arange(BATCH), t[idx]] + 1e-8).mean())
        losses.append(total / (N // BATCH))
        lr *= 0.7
        probs, _ = forward(p, x[N:])
        accuracy.append(float((probs.argmax(axis=1) == t[N:]).mean()))
    confusion = np.bincount(t[N:] * CLASSES + probs.argmax(axis=1), minlength=CLASSES ** 2).reshape(CLASSES, CLASSES)
    return dict(losses=np.asarray(losses), accuracy=np.asarray(accuracy), confusion=np.asarray(confusion), probs=np.asarray(probs),
                W1=np.asarray(p["W1"]), norms=np.asarray([float(np.linalg.norm(p[k])) for k in sorted(p)]))
