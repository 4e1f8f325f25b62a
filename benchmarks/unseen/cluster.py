"""Clusters of points in the plane: DBSCAN with the matrix of distances and label propagation, spectral clustering with
self-tuning affinities and a Lanczos eigensolver, single-linkage heights by Boruvka's tree; ARI and silhouettes.  N: points"""

import numpy as np

DEFAULT = 1200


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(1996)
    k = N // 6
    a = rng.uniform(0, numpy.pi, 2 * k)
    moons = numpy.stack([numpy.cos(a), numpy.sin(a)], 1)
    moons[k:] = numpy.stack([1 - numpy.cos(a[k:]), 0.4 - numpy.sin(a[k:])], 1)
    ring = rng.uniform(0, 2 * numpy.pi, 2 * k)
    ring = numpy.stack([5 + numpy.cos(ring), 0.2 + numpy.sin(ring)], 1)
    blob = numpy.array([5.0, 0.2]) + 0.17 * rng.normal(size=(k, 2))
    rest = N - 5 * k
    bar = numpy.stack([rng.uniform(1, 5, rest), 2.6 + 0.3 * rng.random(rest)], 1)
    X = numpy.concatenate([moons, ring, blob, bar])
    X[: 4 * k] += 0.055 * rng.normal(size=(4 * k, 2))
    truth = numpy.repeat(numpy.arange(5), [k, k, 2 * k, k, rest])
    noise = rng.random(N) < 0.03
    X[noise] = rng.uniform([-1.5, -1.2], [6.5, 3.2], (int(noise.sum()), 2))
    truth[noise] = 5
    mix = rng.permutation(N)
    return X[mix], truth[mix], rng.normal(size=N)


def squared_distances(X, Y=None):
    Y = X if Y is None else Y
    d = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1) - 2 * (X @ Y.T)
    if Y is X:
        np.fill_diagonal(d, 0.0)
    return np.maximum(d, 0.0, out=d)


def dbscan(D2, eps, min_points):
    n = D2.shape[0]
    near = D2 <= eps * eps
    core = near.sum(axis=1) >= min_points
    link = near & core & core[:, None]
    label = np.arange(n)
    for rounds in range(1, n):
        heard = np.where(link, label, n).min(axis=1)
        new = np.minimum(label, heard)
        for _ in range(4):
            new = new[new]
        if bool((new == label).all()):
            break
        label = new
    reach = np.where(near & core, D2, np.inf)
    owner = reach.argmin(axis=1)
    border = ~core & (reach.min(axis=1) < np.inf)
    label = np.where(core, label, np.where(border, label[owner], -1))
    return relabel(label), core, rounds


def relabel(label):
    """0, 1, 2 ... in the order of first appearance, noise stays -1."""
    values, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(np.where(values < 0, -1, first)))
    return (rank - int((values < 0).any()))[inverse]


def affinity(D2, k=9):
    """Zelnik-Manor and Perona: a scale for every point, the distance to the k-th neighbour."""
    scale = np.sqrt(np.partition(D2, k, axis=1)[:, k])
    W = np.exp(-D2 / (scale[:, None] * scale))
    W.reshape(-1)[:: len(W) + 1] = 0.0
    return W + 1e-3 / len(W)


def lanczos(matvec, v, m):
    """Tridiagonal form with full reorthogonalisation (twice)."""
    n = v.shape[0]
    Q = np.zeros((m, n), dtype=v.dtype)
    alpha, beta = [], []
    q = v / np.linalg.norm(v)
    for j in range(m):
        Q[j] = q
        w = matvec(q)
        alpha.append(w @ q)
        for _ in range(2):
            w = w - Q[: j + 1].T @ (Q[: j + 1] @ w)
        beta.append(np.linalg.norm(w))
        q = w / beta[-1]
    off = np.stack(beta[:-1])
    T = np.diag(np.stack(alpha)) + np.diag(off, 1) + np.diag(off, -1)
    theta, S = np.linalg.eigh(T)
    return theta, Q.T @ S, np.abs(beta[-1] * S[-1])


def kmeans(Y, k, rounds=25):
    far, dist = [], ((Y - Y.mean(axis=0)) ** 2).sum(axis=1)  # start far from one another
    for _ in range(k):
        far.append(int(dist.argmax()))
        away = ((Y - Y[far[-1]]) ** 2).sum(axis=1)
        dist = away if len(far) == 1 else np.minimum(dist, away)
    C = Y[far]
    for _ in range(rounds):
        label = squared_distances(Y, C).argmin(axis=1)
        onehot = (label[:, None] == np.arange(k)).astype(Y.dtype)
        C = onehot.T @ Y / np.maximum(onehot.sum(axis=0), 1)[:, None]
    return label, C


def spanning_tree(D2):
    """Boruvka: every component takes its shortest way out; the lengths of the edges of the minimal spanning tree."""
    comp, edges = np.arange(len(D2)), []
    while int(comp.max()) > 0:
        out = np.where(comp[:, None] == comp, np.inf, D2)
        nearest, length = out.argmin(axis=1), out.min(axis=1)
        order = np.lexsort(np.stack([length, comp.astype(float)]))
        lead = order[np.concatenate([np.ones(1, dtype=bool), np.diff(comp[order]) > 0])]
        a, b, w = comp[lead], comp[nearest[lead]], length[lead]
        me = np.arange(len(lead))
        parent = me.copy()
        parent[a] = b
        mutual = (parent[parent] == me) & (me < parent)
        edges.append(w[~mutual])
        parent = np.where(mutual, me, parent)
        for _ in range(12):
            parent = parent[parent]
        comp = np.unique(parent, return_inverse=True)[1].reshape(-1)[comp]
    return np.sort(np.sqrt(np.concatenate(edges)))


def adjusted_rand(a, b):
    a, b = a - a.min(), b - b.min()
    m = int(b.max()) + 1
    table = np.bincount(a * m + b, minlength=(int(a.max()) + 1) * m).reshape(-1, m).astype(float)
    both, rows, cols = ((x * (x - 1) / 2).sum() for x in (table, table.sum(axis=1), table.sum(axis=0)))
    total = len(a) * (len(a) - 1) / 2
    return (both - rows * cols / total) / (0.5 * (rows + cols) - rows * cols / total)


def silhouette(D, label, k):
    onehot = (label[:, None] == np.arange(k)).astype(float)
    size = onehot.sum(axis=0)
    mean = D @ onehot / np.maximum(size - onehot, 1)
    own = np.take_along_axis(mean, np.maximum(label, 0)[:, None], axis=1)[:, 0]
    other = np.where(onehot > 0, np.inf, mean).min(axis=1)
    return (other - own) / np.maximum(own, other)


def main(asarray, N, given):
    X, truth, v0 = (asarray(v) for v in given)
    D2 = squared_distances(X)
    label, core, rounds = dbscan(D2, 0.19, 7)
    A = affinity(D2)
    root = np.sqrt(A.sum(axis=1))
    A /= np.multiply.outer(root, root)
    theta, V, residual = lanczos(lambda q: A @ q, v0, 240)
    Y = V[:, -5:] / np.linalg.norm(V[:, -5:], axis=1, keepdims=True)
    spectral = relabel(kmeans(Y, 5)[0])
    s, heights = silhouette(np.sqrt(D2), spectral, 5), spanning_tree(D2)
    return dict(
        dbscan=label,
        core=core.sum(),
        rounds=rounds,
        top=theta[-8:],
        converged=(residual[-5:] < 1e-6).all(),
        spectral=spectral,
        embedding=Y @ Y[:40].T,
        ari=np.stack([adjusted_rand(label, truth), adjusted_rand(spectral, truth)]),
        silhouette=s,
        by_cluster=np.bincount(spectral, weights=s) / np.bincount(spectral),
        heights=heights[::-1][:200],
        tree=heights.sum(),
    )
