"""Dynamic time warping of all pairs by anti-diagonals, k-medoids, barycentre averaging by traced paths, nearest-neighbour test with a lower bound. N: series."""
import numpy
import numpy as np

DEFAULT = 128
LENGTH, BAND, KINDS = 96, 12, 4


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(55)
    t = numpy.linspace(0, 1, LENGTH)

    def make(n):
        kind = rng.integers(0, KINDS, n)
        bend = t[None, :] + 0.06 * rng.normal(size=(n, 1)) * numpy.sin(numpy.pi * t) + 0.02 * rng.normal(size=(n, 1)) * numpy.sin(2 * numpy.pi * t)
        waves = numpy.stack([numpy.sin(4 * numpy.pi * bend), numpy.sign(numpy.sin(4 * numpy.pi * bend)), numpy.exp(-((bend - 0.5) / 0.1) ** 2) * 2,
                    4 * numpy.abs(bend - 0.5) - 1])
        return waves[kind, numpy.arange(n)] + 0.15 * rng.normal(size=(n, LENGTH)), kind
    train, kind = make(N)
    test, answer = make(N // 4)
    return dict(train=train, kind=kind, test=test, answer=answer, seed=rng.permutation(N)[:KINDS])


def normalise(x):
    return (x - x.mean(axis=-1, keepdims=True)) / (x.std(axis=-1, keepdims=True) + 1e-9)


def dtw(a, b, keep=False):
    """Squared warping distances of the rows of a to those of b, by anti-diagonals; with the whole table if asked."""
    m, n = a.shape
    table = np.full((2 * n + 1, m, n + 1), np.inf) if keep else None
    before, last = np.full((m, n + 1), np.inf), np.full((m, n + 1), np.inf)
    before[:, 0] = 0
    if keep:
        table[0], table[1] = before, last
    for d in range(2, 2 * n + 1):
        lo, hi = max(1, d - n, (d - BAND + 1) // 2), min(n, d - 1, (d + BAND) // 2)
        i = np.arange(lo, hi + 1)
        cost = (a[:, i - 1] - b[:, d - i - 1]) ** 2
        now = np.full((m, n + 1), np.inf)
        now[:, lo:hi + 1] = cost + np.minimum(before[:, lo - 1:hi], np.minimum(last[:, lo - 1:hi], last[:, lo:hi + 1]))
        before, last = last, now
        if keep:
            table[d] = now
    return (last[:, n], table) if keep else last[:, n]


def trace(table, m, n):
    """Which steps the best paths take: for each the places (i, j) from the end, and whether the path still runs."""
    i, j = np.full(m, n), np.full(m, n)
    rows = np.arange(m)
    paths = []
    for _ in range(2 * n - 1):
        alive = (i > 0) & (j > 0)
        paths.append(np.stack([i - 1, j - 1, alive]))
        options = np.stack([table[np.maximum(i + j - 2, 0), rows, np.maximum(i - 1, 0)], table[np.maximum(i + j - 1, 0), rows, np.maximum(i - 1, 0)],
                            table[np.maximum(i + j - 1, 0), rows, i]])
        pick = options.argmin(axis=0)
        i = np.where(alive & (pick != 2), i - 1, i)
        j = np.where(alive & (pick != 1), j - 1, j)
        if not bool(alive.any()):
            break
    return np.stack(paths, axis=-1)


def barycentre(members, centre, rounds=4):
    m, n = members.shape
    costs = []
    for _ in range(rounds):
        d, table = dtw(np.tile(centre, (m, 1)), members, keep=True)
        costs.append(d.sum())
        i, j, alive = trace(table, m, n)
        who = np.broadcast_to(np.arange(m)[:, None], i.shape)
        ok = alive.astype(bool)
        total, count = np.zeros(n), np.zeros(n)
        np.add.at(total, i[ok], members[who[ok], j[ok]])
        np.add.at(count, i[ok], 1)
        centre = np.where(count > 0, total / np.maximum(count, 1), centre)
    return centre, np.stack(costs)


def medoids(D, start, rounds=10):
    centres = start
    for n in range(rounds):
        label = D[:, centres].argmin(axis=1)
        new = centres.copy()
        for k in range(len(centres)):
            inside = np.flatnonzero(label == k)
            if len(inside):
                new[k] = inside[D[inside[:, None], inside].sum(axis=1).argmin()]
        if bool((new == centres).all()):
            break
        centres = new
    return centres, label, n


def envelope(x, band):
    pad = np.pad(x, ((0, 0), (band, band)), mode="edge")
    up, down = pad[:, :x.shape[1]].copy(), pad[:, :x.shape[1]].copy()
    for k in range(1, 2 * band + 1):
        np.maximum(up, pad[:, k:k + x.shape[1]], out=up)
        np.minimum(down, pad[:, k:k + x.shape[1]], out=down)
    return up, down


def nearest(test, train):
    """The nearest training series for each test one, warping only those that Keogh's bound can't rule out."""
    up, down = envelope(train, BAND)
    q = test[:, None, :]
    bound = (np.where(q > up, (q - up) ** 2, 0) + np.where(q < down, (q - down) ** 2, 0)).sum(axis=2)
    order = np.argsort(bound, axis=1, kind="stable")
    best, who, tried = np.full(len(test), np.inf), np.zeros(len(test), dtype=np.int64), 0
    for lo in range(0, len(train), 8):
        candidates = order[:, lo:lo + 8]
        row, col = np.nonzero(np.take_along_axis(bound, candidates, axis=1) < best[:, None])
        if len(row) == 0:
            break
        tried += len(row)
        d = np.full(candidates.shape, np.inf)
        d[row, col] = dtw(test[row], train[candidates[row, col]])
        k = d.argmin(axis=1)
        nearer = d[np.arange(len(test)), k] < best
        best = np.where(nearer, d.min(axis=1), best)
        who = np.where(nearer, candidates[np.arange(len(test)), k], who)
    return who, best, tried


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    train, test = normalise(asarray(data["train"])), normalise(asarray(data["test"]))
    kind, answer, seed = asarray(data["kind"]), asarray(data["answer"]), asarray(data["seed"])
    i, j = np.triu_indices(N, 1)
    D = np.zeros((N, N))
    D[i, j] = np.sqrt(dtw(train[i], train[j]))
    D += D.T
    centres, label, rounds = medoids(D, seed)
    confusion = np.zeros((KINDS, KINDS), dtype=int)
    np.add.at(confusion, (kind, label), 1)
    means, costs = [], []
    for k in range(KINDS):
        c, trail = barycentre(train[label == k], train[centres[k]])
        means.append(c)
        costs.append(trail)
    who, best, tried = nearest(test, train)
    inside = D + np.where(label[:, None] == label[None, :], 0, np.inf)
    a = np.where(np.isfinite(inside), D, 0).sum(axis=1) / np.maximum((label[:, None] == label).sum(axis=1) - 1, 1)
    other = np.stack([np.where(label == k, D, 0).sum(axis=1) / np.maximum((label == k).sum(), 1) for k in range(KINDS)], axis=1)
    other[np.arange(N), label] = np.inf
    b = other.min(axis=1)
    silhouette = (b - a) / np.maximum(a, b)
    return dict(D=D, centres=centres, label=label, rounds=rounds, confusion=confusion, means=np.stack(means), costs=np.stack(costs), who=who, best=best,
                tried=tried,
                accuracy=(kind[who] == answer).mean(), silhouette=silhouette)
