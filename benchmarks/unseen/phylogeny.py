"""Molecular phylogeny by maximum likelihood.

Site patterns, K80 distances, neighbour joining, HKY + gamma likelihood by pruning, Newton on every branch, kappa by a
parabola, RELL bootstrap. N: sites.
"""
import numpy as np

DEFAULT = 6000
TAXA, RATES = 14, (0.0334, 0.2519, 0.8203, 2.8944)


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1859)
    freq = numpy.array([0.32, 0.18, 0.21, 0.29])
    rate = rng.choice(RATES, N)

    def evolve(seq, t):
        """HKY with kappa = 4, by small steps of uniformisation."""
        out = seq.copy()
        for _ in range(rng.poisson(t * 40)):
            hit = rng.random(N) < rate * 0.025
            new = rng.choice(4, N, p=freq)
            allowed = ((new ^ out) == 2) | (rng.random(N) < 0.3)
            out = numpy.where(hit & allowed, new, out)
        return out
    leaves = [rng.choice(4, N, p=freq)]
    while len(leaves) < TAXA:
        parent = leaves.pop(int(rng.integers(len(leaves))))
        leaves += [evolve(parent, 0.1 + 0.5 * rng.random()), evolve(parent, 0.1 + 0.5 * rng.random())]
    return numpy.stack(leaves).astype(numpy.int8), rng.multinomial(N, numpy.full(N, 1.0 / N), size=60)


def patterns(seqs):
    code = np.zeros(seqs.shape[1], dtype=np.int64)
    for row in seqs:
        code = code * 4 + row
    _, first, inverse, count = np.unique(code, return_index=True, return_inverse=True, return_counts=True)
    return seqs[:, first], inverse, count.astype(float)


def k80(pat, weight):
    """Kimura distances of all pairs; A C G T are 0 1 2 3, so transitions differ by 2."""
    differ = pat[:, None, :] ^ pat[None, :, :]
    total = weight.sum(axis=-1)
    P = (differ == 2) @ weight / total
    Q = ((differ == 1) | (differ == 3)) @ weight / total
    return -0.5 * np.log(np.maximum(1 - 2 * P - Q, 1e-3)) - 0.25 * np.log(np.maximum(1 - 2 * Q, 1e-3))


def neighbour_joining(D):
    n = len(D)
    big = np.zeros((2 * n - 2, 2 * n - 2))
    big[:n, :n] = D
    active, tree = list(range(n)), {}
    for new in range(n, 2 * n - 3):
        idx = np.array(active)
        d = big[np.ix_(idx, idx)]
        m = len(active)
        r = d.sum(axis=1)
        Q = (m - 2) * d - r[:, None] - r[None, :]
        Q[np.arange(m), np.arange(m)] = np.inf
        i, j = divmod(int(Q.argmin()), m)
        left = 0.5 * d[i, j] + (r[i] - r[j]) / (2 * (m - 2))
        tree[new] = [(active[i], float(left)), (active[j], float(d[i, j] - left))]
        row = 0.5 * (d[i] + d[j] - d[i, j])
        big[new, idx] = row
        big[idx, new] = row
        active = [a for k, a in enumerate(active) if k not in (i, j)] + [new]
    a, b, c = active
    x, y, z = float(big[a, b]), float(big[a, c]), float(big[b, c])
    tree[2 * n - 3] = [(a, (x + y - z) / 2), (b, (x + z - y) / 2), (c, (y + z - x) / 2)]
    return tree


class Model:
    def __init__(self, freq, kappa):
        S = np.ones((4, 4))
        S[0, 2] = S[2, 0] = S[1, 3] = S[3, 1] = kappa
        Q = S * freq[None, :]
        np.fill_diagonal(Q, 0.0)
        Q -= np.diag(Q.sum(axis=1))
        Q /= -(freq * np.diagonal(Q)).sum()
        root = np.sqrt(freq)
        sym = root[:, None] * Q / root[None, :]
        self.lam, V = np.linalg.eigh(0.5 * (sym + sym.T))
        self.left, self.right = V / root[:, None], V.T * root[None, :]
        self.freq, self.rates = freq, np.array(RATES)

    def P(self, t, order=0):
        g = self.rates[:, None] * self.lam[None, :]
        return np.einsum("ik,ck,kj->cij", self.left, g**order * np.exp(g * t), self.right)


def prune(model, tree, length, tips):
    """Partials below every node, (category, pattern, state), and the log-likelihood per pattern."""
    part = dict(enumerate(tips))
    up, scale = {}, np.zeros(tips[0].shape[1])
    for node in sorted(tree):
        value = 1.0
        for child, _ in tree[node]:
            up[child] = part[child] @ np.swapaxes(model.P(length[child]), 1, 2)
            value = value * up[child]
        top = value.max(axis=(0, 2))
        part[node] = value / top[None, :, None]
        scale += np.log(top)
    site = (part[max(tree)] * model.freq).sum(axis=2).mean(axis=0)
    return part, up, np.log(site) + scale


def newton(model, tree, length, tips, weight):
    """One step on each branch, with everything beyond the branch seen from above; all derivatives with old lengths."""
    part, up, _ = prune(model, tree, length, tips)
    above = {max(tree): np.ones_like(part[max(tree)])}
    new = dict(length)
    for node in sorted(tree, reverse=True):
        for child, _ in tree[node]:
            beyond = above[node]
            for other, _ in tree[node]:
                if other != child:
                    beyond = beyond * up[other]
            beyond = beyond / beyond.max(axis=(0, 2), keepdims=True)
            f = [np.einsum("cpi,cij,cpj->p", beyond * model.freq, model.P(length[child], k), part[child], optimize=True)
                 for k in range(3)]
            g, h = f[1] / f[0], f[2] / f[0]
            slope, curve = (weight * g).sum(), (weight * (h - g * g)).sum()
            move = float(slope / np.maximum(np.abs(curve), 1e-9))
            new[child] = min(max(length[child] + max(min(move, 0.2), -0.2), 1e-5), 3.0)
            above[child] = beyond @ model.P(length[child])
    return new


def main(asarray, N, given):
    seqs, draws = map(asarray, given)
    pat, inverse, weight = patterns(seqs)
    freq = (np.bincount(seqs.ravel().astype(np.int64), minlength=4) + 1.0) / (seqs.size + 4)
    D = k80(pat, weight)
    tree = neighbour_joining(D)
    tips = [np.broadcast_to(np.eye(4)[row.astype(np.int64)], (len(RATES), pat.shape[1], 4)) for row in pat]
    length = {c: max(l, 1e-4) for node in tree for c, l in tree[node]}

    def score(kappa):
        return (weight * prune(Model(freq, kappa), tree, length, tips)[2]).sum()
    trial = np.linspace(1.5, 5.0, 8)
    best = np.polyfit(trial, np.stack([score(k) for k in trial.tolist()]), 2)
    kappa = float(-0.5 * best[1] / best[0])
    model = Model(freq, kappa)
    history = []
    for _ in range(6):
        length = newton(model, tree, length, tips, weight)
        _, _, site = prune(model, tree, length, tips)
        history.append((weight * site).sum())

    rell = np.stack([(site[inverse] * draw).sum() for draw in draws])
    return dict(patterns=len(weight), freq=freq, distance=D, kappa=kappa, likelihood=np.stack(history),
                lengths=np.array([length[k] for k in sorted(length)]), rell=rell.std(),
                P=model.P(0.3))
