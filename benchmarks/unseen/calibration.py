"""Judging classifiers: ROC with ties, DeLong, precision-recall, bootstraps, Platt, isotonic regression, net benefit.

N: cases.
"""
import numpy as np

DEFAULT = 20004
MODELS, BOOTS, BINS = 4, 60, 15


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    hidden = rng.normal(size=N)
    y = rng.uniform(size=N) < 1 / (1 + numpy.exp(-(1.8 * hidden - 1.2)))
    logits = numpy.stack([2.4 * hidden - 1.0 + rng.normal(0, s, N) * 2 for s in (0.4, 0.6, 0.9, 1.4)])
    logits[2] = numpy.round(logits[2], 1)
    logits[3] = numpy.sinh(logits[3] / 2)
    return logits, y, rng.integers(0, N, (BOOTS, N)).astype(numpy.int32), rng.integers(0, 3, N)


def sigmoid(x):
    return np.clip(0.5 * (1.0 + np.tanh(x / 2)), 1e-6, 1 - 1e-6)


def roc(score, y):
    """False and true positive rates at every distinct score, from strict to lax."""
    order = np.argsort(-score, kind="stable")
    s, hit = score[order], y[order]
    last = np.flatnonzero(np.append(np.diff(s) != 0, True))
    tp = np.cumsum(hit)[last]
    fp = last + 1 - tp
    return np.append(0.0, fp / fp[-1]), np.append(0.0, tp / tp[-1]), s[last], tp, fp


def auc_by_ranks(score, y):
    """For rows of scores: midranks by searching the sorted scores."""
    out = []
    for s, t in zip(score, y):
        ordered = np.sort(s)
        rank = 0.5 * (np.searchsorted(ordered, s) + np.searchsorted(ordered, s, side="right") + 1)
        n1 = t.sum()
        out.append((rank[t].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(t) - n1)))
    return np.stack(out)


def delong(scores, y):
    """Areas of all models and their covariance."""
    pos, neg = scores[:, y], scores[:, ~y]
    v10, v01 = np.empty(pos.shape), np.empty(neg.shape)
    for m in range(len(scores)):
        p, n = np.sort(pos[m]), np.sort(neg[m])
        v10[m] = 0.5 * (np.searchsorted(n, pos[m]) + np.searchsorted(n, pos[m], side="right")) / len(n)
        v01[m] = 1 - 0.5 * (np.searchsorted(p, neg[m]) + np.searchsorted(p, neg[m], side="right")) / len(p)
    return v10.mean(axis=1), np.cov(v10) / pos.shape[1] + np.cov(v01) / neg.shape[1]


def reliability(p, y):
    """Bins of equal numbers: mean prediction, share of hits and the calibration error."""
    edges = np.quantile(p, np.linspace(0, 1, BINS + 1)[1:-1])
    which = np.digitize(p, edges)
    n = np.maximum(np.bincount(which, minlength=BINS), 1)
    said, was = np.bincount(which, p, minlength=BINS) / n, np.bincount(which, y, minlength=BINS) / n
    return said, was, np.cumsum(n * np.abs(said - was)) / len(p)


def platt(score, y, rounds=12):
    x = np.stack([score, np.ones_like(score)], axis=1)
    target = np.where(y, (y.sum() + 1.0) / (y.sum() + 2.0), 1.0 / ((~y).sum() + 2.0))
    w = np.zeros(2)
    for _ in range(rounds):
        p = sigmoid(x @ w)
        hess = (x * (p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(2)
        w = w - np.linalg.solve(hess, x.T @ (p - target))
    return w


def isotonic(score, y):
    """Pools neighbours that are out of order, all at once, until the means rise."""
    value, where = np.unique(score, return_inverse=True)
    n = np.bincount(where).astype(float)
    hits = np.bincount(where, weights=y)
    block = np.arange(len(value))
    while True:
        mean = hits / n
        start = np.ones(len(mean), dtype=bool)
        start[1:] = mean[1:] > mean[:-1]
        if bool(start.all()):
            return value, mean[block], len(mean)
        first = np.flatnonzero(start)
        n, hits = np.add.reduceat(n, first), np.add.reduceat(hits, first)
        block = (np.cumsum(start) - 1)[block]


def main(asarray, N, given):
    logits, y, draws, site = map(asarray, given)
    half = np.arange(N) % 2 == 0
    false_axis = np.linspace(0.01, 0.99, 99)
    curves, areas, youden, average, f1 = [], [], [], [], []
    for s in logits:
        fpr, tpr, cut, tp, fp = roc(s, y)
        areas.append(((fpr[1:] - fpr[:-1]) * (tpr[1:] + tpr[:-1])).sum() / 2)
        curves.append(np.interp(false_axis, fpr, tpr))
        youden.append(cut[(tpr - fpr)[1:].argmax()])
        precision, recall = tp / (tp + fp), tp / tp[-1]
        average.append((np.diff(recall, prepend=0.0) * precision).sum())
        f1.append((2 * precision * recall / np.maximum(precision + recall, 1e-12)).max())
    area, cov = delong(logits, y)
    i, j = np.triu_indices(MODELS, 1)
    z = (area[i] - area[j]) / np.sqrt(cov[i, i] + cov[j, j] - 2 * cov[i, j])
    boots = np.stack([auc_by_ranks(logits[:, d], np.tile(y[d], (MODELS, 1))) for d in draws])
    interval = np.percentile(boots, [2.5, 97.5], axis=0)

    tables, errors = [], []
    for s in logits:
        w = platt(s[half], y[half])
        value, level, blocks = isotonic(s[half], y[half])
        step = np.clip(np.interp(s[~half], value, level), 0.001, 0.999)
        for p, t in ((sigmoid(s), y), (sigmoid(w[0] * s + w[1]), y), (step, y[~half])):
            if p is not step:
                tables.append(np.stack(reliability(p, t)))
            errors.append(np.stack([np.mean((p - t)**2), -np.mean(np.where(t, np.log(p), np.log1p(-p)))]))
    sites = np.stack([auc_by_ranks(logits[:, site == k], np.tile(y[site == k], (MODELS, 1))) for k in range(3)])
    p = sigmoid(logits)
    limits = np.linspace(0.02, 0.6, 30)
    acts = p[:, None, :] > limits[:, None]
    benefit = (acts & y).mean(axis=2) - (acts & ~y).mean(axis=2) * limits / (1 - limits)
    return dict(areas=np.stack(areas), curves=np.stack(curves), youden=np.stack(youden), average=np.stack(average),
                f1=np.stack(f1), delong=area, cov=cov, z=z, interval=interval, tables=np.stack(tables), benefit=benefit,
                errors=np.stack(errors), blocks=blocks, sites=sites, correlation=np.corrcoef(boots.T))
