"""A character-level LSTM language model, written out by hand: embedding, one LSTM layer with layer normalisation of
the cell output, softmax; truncated backpropagation through time, gradient clipping, Adam with warm-up.
N: hidden units."""

import numpy as np

DEFAULT = 80
VOCAB, BATCH, SPAN, EMB = 28, 24, 32, 20


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(1997)
    # text from a Markov chain with few successors, and a little memory of the letter before
    table = 0.75 * rng.dirichlet(numpy.full(VOCAB, 0.1), VOCAB)[None] + 0.25 * rng.dirichlet(
        numpy.full(VOCAB, 0.08), (VOCAB, VOCAB)
    )
    table = table.cumsum(axis=2)
    length = BATCH * (SPAN * 26 + 1)
    text = numpy.zeros(length, dtype=numpy.int64)
    for i, r in enumerate(rng.random(length - 2)):
        text[i + 2] = min(int(numpy.searchsorted(table[text[i], text[i + 1]], r)), VOCAB - 1)

    def init(*shape):
        return rng.normal(size=shape) / numpy.sqrt(shape[0])

    params = {
        "E": 0.5 * rng.normal(size=(VOCAB, EMB)),
        "W": init(EMB + N, 4 * N),
        "b": numpy.zeros(4 * N),
        "gamma": numpy.ones(N),
        "beta": numpy.zeros(N),
        "V": init(N, VOCAB),
        "c": numpy.zeros(VOCAB),
    }
    params["b"][N : 2 * N] = 1.0
    return {"text": text, "uniforms": rng.random((120, 16)), **params}


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


class LSTM:
    def __init__(self, params):
        self.p = params
        self.H = params["V"].shape[0]

    def cell(self, x, h, c):
        p, H = self.p, self.H
        z = np.concatenate([x, h], axis=1)
        a = z @ p["W"] + p["b"]
        i, f, o = sigmoid(a[:, :H]), sigmoid(a[:, H : 2 * H]), sigmoid(a[:, 2 * H : 3 * H])
        g = np.tanh(a[:, 3 * H :])
        c2 = f * c + i * g
        mu = c2.mean(axis=1, keepdims=True)
        inv = 1 / np.sqrt(c2.var(axis=1, keepdims=True) + 1e-5)
        n = (c2 - mu) * inv
        t = np.tanh(p["gamma"] * n + p["beta"])
        return o * t, c2, (z, i, f, o, g, c, n, inv, t)

    def forward(self, X, h, c):
        caches, hs = [], []
        for x in self.p["E"][X.T]:  # time first
            h, c, cache = self.cell(x, h, c)
            caches.append(cache)
            hs.append(h)
        hs = np.stack(hs)
        logits = hs @ self.p["V"] + self.p["c"]
        return logits, hs, caches, h, c

    def loss(self, logits, Y):
        top = logits.max(axis=-1, keepdims=True)
        logp = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
        picked = np.take_along_axis(logp, Y.T[..., None], axis=-1)
        return -picked.mean(), logp

    def backward(self, X, Y, logp, hs, caches):
        p, H = self.p, self.H
        g = {k: np.zeros_like(v) for k, v in p.items()}
        T, B = Y.T.shape
        d = np.exp(logp)
        tt, bb = np.indices((T, B))
        d[tt, bb, Y.T] -= 1
        d /= T * B
        g["V"] = np.einsum("tbh,tbv->hv", hs, d)
        g["c"] = d.sum(axis=(0, 1))
        dhs = d @ p["V"].T
        dh, dc = np.zeros((B, H)), np.zeros((B, H))
        dx = []
        for t in reversed(range(T)):
            z, i, f, o, gg, c_old, n, inv, th = caches[t]
            dh = dh + dhs[t]
            do = dh * th
            dt = dh * o * (1 - th * th)
            g["gamma"] += (dt * n).sum(axis=0)
            g["beta"] += dt.sum(axis=0)
            dn = dt * p["gamma"]
            dc = dc + inv * (dn - dn.mean(axis=1, keepdims=True) - n * (dn * n).mean(axis=1, keepdims=True))
            da = np.hstack(
                [dc * gg * i * (1 - i), dc * c_old * f * (1 - f), do * o * (1 - o), dc * i * (1 - gg * gg)]
            )
            g["W"] += z.T @ da
            g["b"] += da.sum(axis=0)
            dz = da @ p["W"].T
            dx.append(dz[:, :EMB])
            dh, dc = dz[:, EMB:], dc * f
        np.add.at(g["E"], X.T[::-1].ravel(), np.concatenate(dx))
        return g

    def sample(self, uniforms, start, temperature=0.8):
        B = uniforms.shape[1]
        h, c = np.zeros((B, self.H)), np.zeros((B, self.H))
        token, out = np.full(B, start, dtype=np.int64), []
        for u in uniforms:
            h, c, _ = self.cell(self.p["E"][token], h, c)
            s = (h @ self.p["V"] + self.p["c"]) / temperature
            e = np.exp(s - s.max(axis=1, keepdims=True))
            cdf = np.cumsum(e, axis=1)
            token = np.minimum((cdf < u[:, None] * cdf[:, -1:]).sum(axis=1), VOCAB - 1)
            out.append(token)
        return np.stack(out, axis=1)


class Adam:
    def __init__(self, params, lr, b1=0.9, b2=0.99, eps=1e-8):
        self.m = {k: np.zeros_like(v) for k, v in params.items()}
        self.v = {k: np.zeros_like(v) for k, v in params.items()}
        self.lr, self.b1, self.b2, self.eps, self.t = lr, b1, b2, eps, 0

    def update(self, params, grads):
        self.t += 1
        lr = self.lr * min(1.0, self.t / 5) * np.sqrt(1 - self.b2**self.t) / (1 - self.b1**self.t)
        for k, g in grads.items():
            self.m[k] *= self.b1
            self.m[k] += (1 - self.b1) * g
            self.v[k] *= self.b2
            self.v[k] += (1 - self.b2) * g * g
            params[k] -= lr * self.m[k] / (np.sqrt(self.v[k]) + self.eps)


def clip(grads, most):
    norm = np.sqrt(sum((g * g).sum() for g in grads.values()))
    scale = np.minimum(1.0, most / (norm + 1e-12))
    return {k: g * scale for k, g in grads.items()}, norm


def main(asarray, N, given):
    params = {k: asarray(v).copy() for k, v in given.items()}
    text, uniforms = params.pop("text"), params.pop("uniforms")
    net = LSTM(params)
    rows = text.reshape(BATCH, -1)
    adam = Adam(net.p, 1e-2)
    losses, norms = [], []
    h, c = np.zeros((BATCH, N)), np.zeros((BATCH, N))
    for k in range(25):
        at = k * SPAN
        X, Y = rows[:, at : at + SPAN], rows[:, at + 1 : at + SPAN + 1]
        logits, hs, caches, h, c = net.forward(X, h, c)
        loss, logp = net.loss(logits, Y)
        grads, norm = clip(net.backward(X, Y, logp, hs, caches), 0.5)
        adam.update(net.p, grads)
        losses.append(loss)
        norms.append(norm)
    held = rows[:, -SPAN - 1 :]
    logits, hs, _, _, _ = net.forward(held[:, :-1], h, c)
    final, logp = net.loss(logits, held[:, 1:])
    text = net.sample(uniforms, 3)
    pairs = np.bincount((text[:, :-1] * VOCAB + text[:, 1:]).ravel(), minlength=VOCAB**2).reshape(VOCAB, VOCAB)
    entropy = -(np.exp(logp) * logp).sum(axis=-1).mean(axis=1)
    return dict(
        losses=np.stack(losses),
        norms=np.stack(norms),
        final=final,
        perplexity=np.exp(final),
        entropy=entropy,
        pairs=pairs,
        text=text,
        similar=np.corrcoef(net.p["E"]),
        weights=np.stack([np.abs(v).mean() for v in net.p.values()]),
    )
