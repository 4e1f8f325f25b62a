"""Points in clusters: standardise, PCA, k-means++, a Gaussian mixture by EM, silhouette of a sample, BIC. N: points."""
import numpy
import numpy as np

DEFAULT = 12000
DIMS, K = 8, 6


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(23)
    centres = rng.normal(0, 5, (K, DIMS))
    label = rng.choice(K, N, p=numpy.array([3, 2, 2, 1, 1, 1]) / 10)
    mix = rng.normal(0, 0.5, (K, DIMS, DIMS)) + numpy.eye(DIMS)
    X = centres[label] + numpy.einsum("nij,nj->ni", mix[label], rng.normal(size=(N, DIMS)))
    return dict(X=X, label=label, draws=rng.random(K))


def pca(X, keep):
    Xc = X - X.mean(axis=0)
    U, s, Vt = np.linalg.svd(Xc, full_matrices=False)
    signs = np.sign(Vt[np.arange(len(Vt)), np.argmax(np.abs(Vt), axis=1)])
    Vt = Vt * signs[:, None]
    ratio = s ** 2 / np.sum(s ** 2)
    return Xc @ Vt[:keep].T, ratio


def kmeans(X, draws, iterations=12):
    centres = X[int(draws[0] * len(X))][None, :]
    for k in range(1, K):
        d2 = ((X[:, None, :] - centres[None]) ** 2).sum(-1).min(axis=1)
        cumulative = np.cumsum(d2 / d2.sum())
        pick = int(np.searchsorted(cumulative, np.array([draws[k]]))[0])
        centres = np.concatenate([centres, X[pick:pick + 1]])
    inertia = []
    for _ in range(iterations):
        d2 = np.sum(X ** 2, axis=1)[:, None] - 2 * X @ centres.T + np.sum(centres ** 2, axis=1)
        label = d2.argmin(axis=1)
        inertia.append(float(np.take_along_axis(d2, label[:, None], axis=1).sum()))
        old = centres.copy()
        for k in range(K):
            members = X[label == k]
            if len(members):
                centres[k] = members.mean(axis=0)
        if np.allclose(old, centres, atol=1e-9):
            break
    return label, centres, inertia


def logsumexp(a):
    m = a.max(axis=1, keepdims=True)
    return (m + np.log(np.exp(a - m).sum(axis=1, keepdims=True)))[:, 0]


def em(X, label, iterations=15):
    n, d = X.shape
    R = np.eye(K)[label] * 0.94 + 0.01
    history = []
    for _ in range(iterations):
        Nk = R.sum(axis=0)
        pi = Nk / n
        mu = R.T @ X / Nk[:, None]
        dx = X[:, None, :] - mu
        cov = np.einsum("nk,nki,nkj->kij", R, dx, dx) / Nk[:, None, None]
        cov += 1e-6 * np.eye(d)
        L = np.linalg.cholesky(cov)
        y = np.linalg.solve(L, dx.transpose(1, 2, 0))
        maha = (y ** 2).sum(axis=1).T
        logdet = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
        logp = np.log(pi) - 0.5 * (maha + logdet + d * np.log(2 * np.pi))
        norm = logsumexp(logp)
        R = np.exp(logp - norm[:, None])
        history.append(norm.sum())
        if len(history) > 1 and abs(history[-1] - history[-2]) < 1e-4:
            break
    return R, pi, mu, cov, history


def silhouette(X, label):
    D = np.sqrt(np.maximum(((X[:, None] - X[None]) ** 2).sum(axis=-1), 0))
    onehot = (label[:, None] == np.arange(K)).astype(float)
    counts = onehot.sum(axis=0)
    sums = D @ onehot
    own = sums[np.arange(len(X)), label] / np.maximum(counts[label] - 1, 1)
    other = np.where(onehot > 0, np.inf, sums / np.maximum(counts, 1))
    other[:, counts == 0] = np.inf
    b = other.min(axis=1)
    return (b - own) / np.maximum(own, b)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    X, truth = asarray(data["X"]), asarray(data["label"])
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    Y, ratio = pca(X, 4)
    label, centres, inertia = kmeans(Y, data["draws"])
    order = np.argsort(centres[:, 0])
    rank = np.empty_like(order)
    rank[order] = np.arange(K)
    label = rank[label]
    centres = centres[order]
    R, pi, mu, cov, history = em(Y, label)
    soft = R.argmax(axis=1)
    confusion = np.bincount(truth * K + soft, minlength=K * K).reshape(K, K)
    purity = confusion.max(axis=1).sum() / len(X)
    entropy = -(R * np.log(R + 1e-12)).sum(axis=1)
    unsure = np.flatnonzero(R.max(axis=1) < 0.6)
    free = K - 1 + K * 4 + K * 10
    bic = free * np.log(len(X)) - 2 * history[-1]
    s = silhouette(Y[:400], soft[:400])
    per_cluster = np.array([float(s[soft[:400] == k].mean()) if (soft[:400] == k).any() else 0.0 for k in range(K)])
    values, counts = np.unique(soft, return_counts=True)
    spread = np.linalg.eigvalsh(cov)
    condition = spread[:, -1] / spread[:, 0]
    return dict(ratio=np.asarray(ratio), inertia=np.asarray(inertia), centres=np.asarray(centres), pi=np.asarray(pi), mu=np.asarray(mu),
                cov=np.asarray(cov), history=np.asarray([float(h) for h in history]), confusion=np.asarray(confusion), purity=np.asarray(purity),
                entropy=np.asarray(entropy.mean()), unsure=np.asarray(len(unsure)), bic=np.asarray(bic), silhouette=np.asarray(per_cluster),
                values=np.asarray(values), counts=np.asarray(counts), condition=np.asarray(condition))
