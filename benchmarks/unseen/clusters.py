"""k-means++ with restarts, PCA by eigh, silhouettes, Davies-Bouldin, adjusted Rand index. N: points."""
import numpy
import numpy as np

DEFAULT = 3000
DIM, K, RESTARTS, MAX_ITER = 8, 6, 3, 40


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(77)
    centers = rng.normal(0, 2.2, (K, DIM))
    truth = rng.integers(0, K, N)
    X = centers[truth] + rng.normal(0, 1, (N, DIM)) @ numpy.diag(rng.uniform(0.6, 1.6, DIM))
    return dict(X=X, truth=truth, coins=rng.random((RESTARTS, K)))


def squared_distances(A, B):
    d = np.sum(A ** 2, axis=1)[:, np.newaxis] + np.sum(B ** 2, axis=1) - 2 * np.dot(A, B.T)
    return np.maximum(d, 0)


def init_plus_plus(X, k, coins):
    centroids = [X[int(coins[0] * len(X))]]
    for i in range(1, k):
        d2 = np.min(np.array([np.sum((X - c) ** 2, axis=1) for c in centroids]), axis=0)
        cumulative = np.cumsum(d2 / d2.sum())
        centroids.append(X[int(np.sum(cumulative < coins[i]))])
    return np.array(centroids)


def kmeans(X, k, coins, tol=1e-6):
    centroids = init_plus_plus(X, k, coins)
    for it in range(MAX_ITER):
        distances = np.linalg.norm(X[:, np.newaxis] - centroids, axis=2)
        labels = np.argmin(distances, axis=1)
        new = centroids.copy()
        for j in range(k):
            members = X[labels == j]
            if len(members) > 0:
                new[j] = members.mean(axis=0)
        shift = np.linalg.norm(new - centroids)
        centroids = new
        if shift < tol:
            break
    inertia = np.sum((X - centroids[labels]) ** 2)
    return centroids, labels, inertia, it


def pca(X, n):
    Xc = X - X.mean(axis=0)
    cov = np.cov(Xc, rowvar=False)
    values, vectors = np.linalg.eigh(cov)
    order = np.argsort(values)[::-1]
    values, vectors = values[order], vectors[:, order]
    signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(vectors.shape[1])])
    vectors = vectors * signs
    return Xc @ vectors[:, :n], values / values.sum()


def silhouette(X, labels, k):
    D = np.sqrt(squared_distances(X, X))
    np.fill_diagonal(D, 0)
    counts = np.bincount(labels, minlength=k)
    sums = np.stack([D[:, labels == j].sum(axis=1) for j in range(k)], axis=1)
    own = np.arange(len(X)), labels
    a = sums[own] / np.maximum(counts[labels] - 1, 1)
    means = sums / counts
    means[own] = np.inf
    b = means.min(axis=1)
    return np.where(counts[labels] > 1, (b - a) / np.maximum(a, b), 0.0)


def davies_bouldin(X, labels, centroids, k):
    S = np.array([np.mean(np.linalg.norm(X[labels == j] - centroids[j], axis=1)) for j in range(k)])
    M = np.sqrt(squared_distances(centroids, centroids))
    R = (S[:, None] + S[None, :]) / (M + np.eye(k))
    R[np.eye(k, dtype=bool)] = -np.inf
    return R.max(axis=1).mean()


def rand_index(a, b, k):
    table = np.zeros((k, k), dtype=int)
    np.add.at(table, (a, b), 1)
    pairs = lambda n: (n * (n - 1) / 2).sum()
    index, rows, cols = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    expected = rows * cols / pairs(table.sum(keepdims=True))
    return (index - expected) / ((rows + cols) / 2 - expected), table


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    X, truth = asarray(data["X"]), asarray(data["truth"])
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    best, inertias, iterations = None, [], []
    for coins in data["coins"].tolist():
        result = kmeans(X, K, coins)
        inertias.append(float(result[2]))
        iterations.append(result[3])
        if best is None or result[2] < best[2]:
            best = result
    centroids, labels = best[:2]
    order = np.lexsort(np.stack([centroids[:, 1], centroids[:, 0]]))
    labels, centroids = np.argsort(order)[labels], centroids[order]
    scores, ratio = pca(X, 2)
    s = silhouette(X, labels, K)
    ari, table = rand_index(truth, labels, K)
    boxes = np.array([[scores[labels == j, d].min() for d in range(2)] + [np.median(scores[labels == j, d]) for d in range(2)] for j in range(K)])
    return dict(centroids=np.asarray(centroids), labels=np.asarray(labels), inertias=np.asarray(inertias), iterations=np.asarray(iterations),
                scores=np.asarray(scores), ratio=np.asarray(ratio), silhouette=np.asarray(s), mean_s=np.asarray(s.mean()),
                db=np.asarray(davies_bouldin(X, labels, centroids, K)), ari=np.asarray(ari), table=np.asarray(table), boxes=np.asarray(boxes))
