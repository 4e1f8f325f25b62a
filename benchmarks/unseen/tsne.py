"""Embedding of points: PCA, perplexities by bisection, t-SNE with gains and early exaggeration, Isomap by Floyd-Warshall, SMACOF, trustworthiness. N: points."""
import numpy
import numpy as np

DEFAULT = 380
DIM, GROUPS, PERPLEXITY, ROUNDS = 24, 6, 25.0, 160


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(4101)
    label = rng.integers(0, GROUPS, N).astype(numpy.int32)
    centre = rng.normal(0, 3.0, (GROUPS, DIM))
    spread = rng.uniform(0.4, 1.2, (GROUPS, DIM))
    bend = rng.uniform(-2, 2, (N, 1)) * rng.normal(size=(GROUPS, DIM))[label]
    return dict(X=centre[label] + spread[label] * rng.normal(size=(N, DIM)) + bend, label=label)


def squared(X):
    s = np.einsum("ij,ij->i", X, X)
    D = s[:, None] + s[None, :] - 2.0 * (X @ X.T)
    np.maximum(D, 0.0, out=D)
    np.fill_diagonal(D, 0.0)
    return D


def pca(X, k):
    Xc = X - X.mean(axis=0)
    w, V = np.linalg.eigh(Xc.T @ Xc / (len(X) - 1))
    w, V = w[::-1], V[:, ::-1]
    big = np.abs(V).argmax(axis=0)
    V = V * np.sign(V[big, np.arange(V.shape[1])])
    return Xc @ V[:, :k], w / w.sum()


def affinities(D, perplexity):
    n = len(D)
    beta = np.ones(n)
    lo, hi = np.zeros(n), np.full(n, np.inf)
    target = np.log(perplexity)
    off = 1.0 - np.eye(n)
    for it in range(60):
        P = np.exp(-D * beta[:, None]) * off
        total = P.sum(axis=1)
        H = np.log(total) + beta * (D * P).sum(axis=1) / total
        gap = H - target
        if float(np.abs(gap).max()) < 1e-7:
            break
        sharp = gap > 0
        lo = np.where(sharp, beta, lo)
        hi = np.where(sharp, hi, beta)
        beta = np.where(np.isinf(hi), beta * 2.0, 0.5 * (lo + np.where(np.isinf(hi), 0.0, hi)))
    P /= total[:, None]
    P = (P + P.T) / (2.0 * n)
    return np.maximum(P, 1e-12), 1 / np.sqrt(2 * beta), it


def tsne(P, Y, rounds):
    n = len(P)
    Y = Y.copy()
    step, gain = np.zeros_like(Y), np.ones_like(Y)
    num, force = np.empty_like(P), np.empty_like(P)
    diag = np.arange(n)
    history = []
    for it in range(rounds):
        lie = 6.0 if it < rounds // 4 else 1.0
        momentum = 0.5 if it < rounds // 4 else 0.8
        s = (Y * Y).sum(axis=1)
        np.matmul(Y, Y.T, out=num)
        num *= -2.0
        num += s[:, None]
        num += s
        num += 1.0
        np.divide(1.0, num, out=num)
        num[diag, diag] = 0.0
        Q = num / num.sum()
        np.maximum(Q, 1e-12, out=Q)
        np.subtract(lie * P, Q, out=force)
        force *= num
        grad = 4.0 * (force.sum(axis=1)[:, None] * Y - force @ Y)
        agree = (grad > 0) == (step > 0)
        gain = np.clip(np.where(agree, gain * 0.8, gain + 0.2), 0.05, 6.0)
        step *= momentum
        step -= 20.0 * gain * grad
        Y += step
        Y -= Y.mean(axis=0, keepdims=True)
        if it % 8 == 7:
            history.append((P * np.log(P / Q)).sum())
    return Y, np.stack(history)


def geodesics(D, k):
    """Shortest ways through the graph of the k nearest, both ways; parts are joined by their shortest bridge."""
    n = len(D)
    near = np.argsort(D, axis=1, kind="stable")[:, 1:k + 1]
    G = np.full((n, n), np.inf)
    np.put_along_axis(G, near, np.take_along_axis(D, near, axis=1), axis=1)
    G = np.minimum(G, G.T)
    np.fill_diagonal(G, 0.0)
    for join in range(n):
        for m in range(n):
            np.minimum(G, G[:, m, None] + G[m], out=G)
        apart = np.isinf(G[0])
        if not bool(apart.any()):
            break
        inside, outside = np.flatnonzero(~apart), np.flatnonzero(apart)
        bridge = D[np.ix_(inside, outside)]
        where = int(bridge.argmin())
        a, b = int(inside[where // len(outside)]), int(outside[where % len(outside)])
        G[a, b] = G[b, a] = bridge.min()
    return G, join


def classical(D, k):
    n = len(D)
    J = np.eye(n) - 1.0 / n
    B = -0.5 * (J @ (D * D) @ J)
    w, V = np.linalg.eigh((B + B.T) / 2)
    w, V = w[::-1][:k], V[:, ::-1][:, :k]
    V = V * np.sign(V[np.abs(V).argmax(axis=0), np.arange(k)])
    return V * np.sqrt(np.maximum(w, 0.0))


def smacof(D, Y, rounds):
    n = len(D)
    stress = []
    for _ in range(rounds):
        E = np.sqrt(squared(Y) + 1e-12)
        stress.append(((E - D) ** 2).sum() / (D ** 2).sum())
        B = -D / E
        np.fill_diagonal(B, 0.0)
        np.fill_diagonal(B, -B.sum(axis=1))
        Y = B @ Y / n
    return Y, np.stack(stress)


def ranks(D):
    order = np.argsort(D, axis=1, kind="stable")
    r = np.empty_like(order)
    np.put_along_axis(r, order, np.broadcast_to(np.arange(len(D)), D.shape).copy(), axis=1)
    return r


def trust(high, low, k):
    n = len(high)
    intruder = (low <= k) & (low > 0) & (high > k)
    return 1.0 - 2.0 / (n * k * (2 * n - 3 * k - 1)) * np.where(intruder, high - k, 0).sum()


def vote(D, label, k):
    near = np.argsort(D, axis=1, kind="stable")[:, 1:k + 1]
    ballots = np.zeros((len(D), GROUPS))
    for g in range(GROUPS):
        ballots[:, g] = (label[near] == g).sum(axis=1)
    return (ballots.argmax(axis=1) == label).mean()


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    X, label = asarray(data["X"]), asarray(data["label"])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    flat, share = pca(X, 2)
    reduced, _ = pca(X, 12)
    D2 = squared(reduced)
    P, sigma, tries = affinities(D2, PERPLEXITY)
    start = 1e-2 * flat / flat[:, 0].std()
    Y, history = tsne(P, start, ROUNDS)
    D = np.sqrt(D2)
    G, bridges = geodesics(D, 8)
    iso = classical(G, 2)
    folded, stress = smacof(D, flat, 30)
    high = ranks(D2)
    quality = []
    for emb in (flat, Y, iso, folded):
        E = squared(emb)
        low = ranks(E)
        quality.append(np.stack([trust(high, low, 12), trust(low, high, 12), vote(E, label, 9)]))
    means = np.stack([np.where(label[:, None] == g, Y, 0.0).sum(axis=0) / (label == g).sum() for g in range(GROUPS)])
    inner = np.sqrt(((Y - means[label]) ** 2).sum(axis=1))
    shepard = np.histogram(D[np.triu_indices(len(D), 1)], bins=20)[0]
    return dict(share=share, sigma=sigma, tries=float(tries), Y=Y, history=history, iso=iso, bridges=float(bridges), folded=folded, stress=stress,
                quality=np.stack(quality), means=means, inner=np.median(inner), shepard=shepard, geodesic=np.percentile(G, np.array([5.0, 50.0, 95.0])))
