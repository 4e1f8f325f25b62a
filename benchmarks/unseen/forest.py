"""A random forest from scratch: quantile-binned features, trees grown level by level from class histograms,
out-of-bag error, permutation importance, partial dependence.   N = number of training samples"""

import numpy as np

DEFAULT = 4000
TREES, DEPTH, BINS, CLASSES = 24, 7, 32, 3


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(2001)
    F = 10
    X = rng.normal(size=(N + N // 2, F))
    X[:, 3] = X[:, 0] * 0.7 + 0.5 * X[:, 3]
    X[:, 7] = numpy.exp(X[:, 7])
    X[:, 9] = rng.integers(0, 6, len(X))
    score = numpy.stack(
        [
            numpy.sin(2 * X[:, 0]) + X[:, 1],
            X[:, 2] * X[:, 1] + 0.5 * X[:, 9] - 1,
            numpy.hypot(X[:, 4], X[:, 0]) - 0.3 * X[:, 7],
        ],
        axis=1,
    )
    y = (score + 0.4 * rng.normal(size=score.shape)).argmax(axis=1)
    boot = rng.integers(0, N, (TREES, N))
    # which features may be used in which node of which tree
    allowed = rng.random((TREES, 2**DEPTH, F)).argsort(axis=2) < 4
    shuffles = numpy.stack([rng.permutation(N // 2) for _ in range(F)])
    return X[:N], y[:N], X[N:], y[N:], boot, allowed, shuffles


class Binner:
    def fit(self, X):
        q = np.linspace(0, 100, BINS + 1)[1:-1]
        self.edges = np.percentile(X, q, axis=0).T.copy()
        return self

    def transform(self, X):
        cols = [np.searchsorted(e, X[:, f], side="left") for f, e in enumerate(self.edges)]
        return np.stack(cols, axis=1).astype(np.int64)


def gini_times_n(counts):
    """Weighted impurity n * (1 - sum p^2) of the class counts in the last axis."""
    n = counts.sum(axis=-1)
    return n - (counts * counts).sum(axis=-1) / np.maximum(n, 1)


class Tree:
    """A complete binary tree in arrays; node i has the children 2i+1 and 2i+2."""

    def __init__(self, allowed, min_leaf=8):
        size = 2 ** (DEPTH + 1) - 1
        self.allowed, self.min_leaf = allowed, min_leaf
        self.feature = np.full(size, -1, dtype=np.int64)
        self.cut = np.zeros(size, dtype=np.int64)
        self.value = np.zeros((size, CLASSES))
        self.gain = np.zeros(allowed.shape[1])

    def histogram(self, B, y, w, local, nodes):
        n, F = B.shape
        slot = ((local[:, None] * F + np.arange(F)) * BINS + B) * CLASSES + y[:, None]
        weight = np.broadcast_to(w[:, None], slot.shape)
        flat = np.bincount(slot.ravel(), weights=weight.ravel(), minlength=nodes * F * BINS * CLASSES)
        return flat.reshape(nodes, F, BINS, CLASSES)

    def fit(self, B, y, w):
        node = np.zeros(len(y), dtype=np.int64)
        self.gain = np.zeros(B.shape[1])
        for level in range(DEPTH + 1):
            first, nodes = 2**level - 1, 2**level
            active = (node >= first) & (w > 0)
            local = node[active] - first
            hist = self.histogram(B[active], y[active], w[active], local, nodes)
            total = hist[:, 0].sum(axis=1)
            share = (total + 1e-3) / (total + 1e-3).sum(axis=1, keepdims=True)
            self.value[first : first + nodes] = share
            if level == DEPTH:
                break
            left = hist.cumsum(axis=2)[:, :, :-1]
            right = total[:, None, None] - left
            gain = gini_times_n(total)[:, None, None] - gini_times_n(left) - gini_times_n(right)
            enough = (left.sum(axis=-1) >= self.min_leaf) & (right.sum(axis=-1) >= self.min_leaf)
            ok = enough & self.allowed[:nodes, :, None]
            gain = np.round(np.where(ok, gain, -1.0), 8)  # ties go to the first
            best = gain.reshape(nodes, -1).argmax(axis=1)
            g = np.take_along_axis(gain.reshape(nodes, -1), best[:, None], axis=1)[:, 0]
            f, c = np.divmod(best, BINS - 1)
            split = g > 1e-6
            self.feature[first : first + nodes] = np.where(split, f, -1)
            self.cut[first : first + nodes] = c
            self.gain += np.bincount(f[split], weights=g[split], minlength=B.shape[1])
            node = self.descend(B, node, first)
        return self

    def descend(self, B, node, first=0):
        f = self.feature[node]
        go_right = np.take_along_axis(B, np.maximum(f, 0)[:, None], axis=1)[:, 0] > self.cut[node]
        return np.where((f >= 0) & (node >= first), 2 * node + 1 + go_right, node)

    def leaf(self, B):
        node = np.zeros(len(B), dtype=np.int64)
        for _ in range(DEPTH):
            node = self.descend(B, node)
        return node

    def predict(self, B):
        return self.value[self.leaf(B)]


class Forest:
    def fit(self, B, y, boot, allowed):
        n = len(y)
        self.trees = []
        votes, count = np.zeros((n, CLASSES)), np.zeros(n)
        for draw, mask in zip(boot, allowed):
            w = np.bincount(draw, minlength=n).astype(np.float64)
            tree = Tree(mask).fit(B, y, w)
            out = w == 0
            votes[out] += tree.predict(B[out])
            count[out] += 1
            self.trees.append(tree)
        seen = count > 0
        self.oob = 1 - accuracy(votes[seen] / count[seen, None], y[seen])
        gain = sum(t.gain for t in self.trees)
        self.importance = gain / gain.sum()
        return self

    def predict(self, B):
        return sum(t.predict(B) for t in self.trees) / len(self.trees)


def accuracy(p, y):
    return (p.argmax(axis=1) == y).mean()


def log_loss(p, y):
    return -np.log(np.take_along_axis(p, y[:, None], axis=1)).mean()


def main(asarray, N, given):
    X, y, Xt, yt, boot, allowed, shuffles = (asarray(v) for v in given)
    binner = Binner().fit(X)
    B, Bt = binner.transform(X), binner.transform(Xt)
    forest = Forest().fit(B, y, boot, allowed)
    P = forest.predict(Bt)
    base = log_loss(P, yt)
    permuted = []
    for f in range(B.shape[1]):
        Z = Bt.copy()
        Z[:, f] = Bt[shuffles[f], f]
        permuted.append(log_loss(forest.predict(Z), yt) - base)
    dependence = []
    for b in range(0, BINS, 4):
        Z = Bt[:300].copy()
        Z[:, 0] = b
        dependence.append(forest.predict(Z).mean(axis=0))
    leaves = np.stack([t.leaf(Bt[:250]) for t in forest.trees])
    near = (leaves[:, :, None] == leaves[:, None, :]).mean(axis=0)
    confusion = np.bincount(yt * CLASSES + P.argmax(axis=1), minlength=CLASSES**2).reshape(CLASSES, CLASSES)
    return dict(
        P=P,
        oob=forest.oob,
        importance=forest.importance,
        permuted=np.stack(permuted),
        loss=base,
        confusion=confusion,
        dependence=np.stack(dependence),
        proximity=near,
        features=np.stack([t.feature for t in forest.trees]),
    )
