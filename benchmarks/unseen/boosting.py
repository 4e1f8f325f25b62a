"""Gradient boosted trees on histograms, logistic loss: quantile bins, trees level by level, AUC, permutation importance. N: rows."""
import numpy
import numpy as np

DEFAULT = 6000
BINS, DEPTH, TREES = 32, 4, 25


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(21)
    X = rng.normal(size=(N, 10)).astype(numpy.float32)
    X[:, 3] = numpy.round(X[:, 3] * 2)
    X[:, 7] = rng.exponential(1.0, N)
    X[rng.random(N) < 0.05, 1] = numpy.nan
    score = X[:, 0] * 1.5 + (X[:, 3] > 0) * X[:, 7] - numpy.nan_to_num(X[:, 1]) ** 2 + 0.3 * rng.normal(size=N)
    return dict(X=X, y=(score > numpy.median(score)).astype(numpy.int32), shuffles=numpy.stack([rng.permutation(N // 4) for _ in range(10)]))


def binned(X, cuts):
    codes = np.empty(X.shape, dtype=np.uint8)
    for f in range(X.shape[1]):
        column = X[:, f]
        codes[:, f] = np.searchsorted(cuts[f], column, side="right")
        codes[np.isnan(column), f] = BINS - 1
    return codes


def grow(codes, g, h, lam=1.0, rate=0.3):
    n, F = codes.shape
    node = np.zeros(n, dtype=np.int64)
    offset = np.arange(F) * BINS
    levels, gains = [], np.zeros(F)
    for depth in range(DEPTH):
        width = 2 ** depth
        key = (node[:, None] * (F * BINS) + offset + codes).ravel()
        G = np.bincount(key, weights=np.repeat(g, F), minlength=width * F * BINS).reshape(width, F, BINS)
        H = np.bincount(key, weights=np.repeat(h, F), minlength=width * F * BINS).reshape(width, F, BINS)
        GL, HL = G.cumsum(axis=2), H.cumsum(axis=2)
        GT, HT = GL[:, :, -1:], HL[:, :, -1:]
        gain = GL ** 2 / (HL + lam) + (GT - GL) ** 2 / (HT - HL + lam) - GT ** 2 / (HT + lam)
        gain[(HL < 1.0) | (HT - HL < 1.0)] = 0
        flat = gain.reshape(width, -1)
        at = flat.argmax(axis=1)
        feature, cut = np.divmod(at, BINS)
        top = np.take_along_axis(flat, at[:, None], axis=1)[:, 0]
        np.add.at(gains, feature, top)
        right = codes[np.arange(n), feature[node]] > cut[node]
        node = 2 * node + right
        levels.append((feature, cut))
    leaves = 2 ** DEPTH
    value = -rate * np.bincount(node, weights=g, minlength=leaves) / (np.bincount(node, weights=h, minlength=leaves) + lam)
    return levels, value, node, gains


def predict(trees, codes):
    total = np.zeros(len(codes))
    rows = np.arange(len(codes))
    for levels, value in trees:
        node = np.zeros(len(codes), dtype=np.int64)
        for feature, cut in levels:
            node = (node << 1) | (codes[rows, feature[node]] > cut[node])
        total += value[node]
    return total


def auc(y, score):
    order = np.argsort(score, kind="stable")
    s = score[order]
    first = np.concatenate([np.array([True]), s[1:] != s[:-1]])
    group = np.cumsum(first) - 1
    size = np.bincount(group)
    mean_rank = np.cumsum(size) - (size - 1) / 2
    ranks = np.empty(len(y))
    ranks[order] = mean_rank[group]
    pos = y == 1
    n1 = pos.sum()
    n0 = len(y) - n1
    return (ranks[pos].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    X, y, shuffles = asarray(data["X"]), asarray(data["y"]), asarray(data["shuffles"])
    cut = N - N // 4
    train, test = X[:cut], X[cut:]
    ytrain, ytest = y[:cut], y[cut:]
    grid = np.linspace(0, 1, BINS)[1:-1]
    cuts = []
    for f in range(X.shape[1]):
        column = train[:, f]
        cuts.append(np.unique(np.quantile(column[~np.isnan(column)], grid)))
    codes, tcodes = binned(train, cuts), binned(test, cuts)
    base = np.log(ytrain.mean() / (1 - ytrain.mean()))
    F = np.full(cut, float(base))
    trees, losses, importance = [], [], np.zeros(X.shape[1])
    for k in range(TREES):
        p = 1 / (1 + np.exp(-F))
        levels, value, node, gains = grow(codes, p - ytrain, p * (1 - p))
        F += value[node]
        trees.append((levels, value))
        importance += gains
        loss = np.mean(np.logaddexp(0, F) - ytrain * F)
        losses.append(loss)
        if k > 5 and losses[-2] - loss < 1e-4:
            break
    score = base + predict(trees, tcodes)
    reference = auc(ytest, score)
    drop = []
    for f in range(X.shape[1]):
        shuffled = tcodes.copy()
        shuffled[:, f] = tcodes[shuffles[f], f]
        drop.append(reference - auc(ytest, base + predict(trees, shuffled)))
    hard = (score > 0).astype(ytest.dtype)
    confusion = np.zeros((2, 2), dtype=int)
    np.add.at(confusion, (ytest, hard), 1)
    prob = 1 / (1 + np.exp(-score))
    which = np.digitize(prob, np.linspace(0, 1, 11)[1:-1])
    calibration = np.bincount(which, weights=ytest, minlength=10) / np.maximum(np.bincount(which, minlength=10), 1)
    return dict(losses=np.array([float(v) for v in losses]), score=score, auc=reference, drop=np.array([float(d) for d in drop]), confusion=confusion,
                calibration=calibration, importance=importance / importance.sum(), codes=codes, rank=np.argsort(importance)[::-1][:3])
