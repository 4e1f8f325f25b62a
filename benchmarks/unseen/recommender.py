"""Recommendations from sparse ratings: damped biases, alternating least squares by batched solves, soft-thresholded SVD, item neighbours, ranking scores, cold users. N: users."""
import numpy
import numpy as np

DEFAULT = 1400
ITEMS, RANK, SWEEPS, TOP = 400, 12, 5, 10


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(4105)
    U, V = rng.normal(size=(N, 6)), rng.normal(size=(ITEMS, 6))
    taste = U @ V.T / 2.4 + rng.normal(0, 0.5, (N, 1)) + rng.normal(0, 0.6, ITEMS) + 3.4
    popular = (1.0 / numpy.arange(1, ITEMS + 1) ** 0.6)[rng.permutation(ITEMS)]
    active = rng.gamma(2.0, 0.5, N)
    seen = rng.random((N, ITEMS)) < numpy.clip(0.09 * active[:, None] * popular / popular.mean(), 0, 0.8)
    user, item = numpy.nonzero(seen)
    stars = numpy.clip(numpy.round(2 * (taste[user, item] + rng.normal(0, 0.4, len(user)))) / 2, 0.5, 5)
    order = rng.permutation(len(user))
    return dict(user=user[order].astype(numpy.int32), item=item[order].astype(numpy.int32), stars=stars[order].astype(numpy.float32), sketch=rng.normal(size=(ITEMS, 40)),
                start=rng.normal(0, 0.1, (ITEMS, RANK)))


def biases(user, item, stars, n, damp=8.0, rounds=12):
    mu = stars.mean()
    bu, bi = np.zeros(n), np.zeros(ITEMS)
    cu, ci = np.bincount(user, minlength=n), np.bincount(item, minlength=ITEMS)
    for _ in range(rounds):
        bi = np.bincount(item, weights=stars - mu - bu[user], minlength=ITEMS) / (ci + damp)
        bu = np.bincount(user, weights=stars - mu - bi[item], minlength=n) / (cu + damp)
    return mu, bu, bi


def als(R, W, V, sweeps, ridge):
    """R: residuals with zeros where nothing is known, W: 0 or 1."""
    k = V.shape[1]
    upper = np.triu_indices(k)
    losses, U = [], None
    for s in range(sweeps):
        for side in (0, 1):
            known, rest, F = (W, R, V) if side == 0 else (W.T, R.T, U)
            pairs = F[:, upper[0]] * F[:, upper[1]]
            packed = known @ pairs
            G = np.zeros((len(known), k, k))
            G[:, upper[0], upper[1]] = packed
            G[:, upper[1], upper[0]] = packed
            G += (ridge * np.maximum(known.sum(axis=1), 1.0))[:, None, None] * np.eye(k)
            solved = np.linalg.solve(G, (rest @ F)[:, :, None])[..., 0]
            if side == 0:
                U = solved
            else:
                V = solved
        E = W * (R - U @ V.T)
        losses.append(np.sqrt((E ** 2).sum() / W.sum()))
    return U, V, np.stack(losses)


def randomised(A, sketch, k):
    """The leading k singular values and vectors by a range finder and two power steps."""
    Q = np.linalg.qr(A @ sketch)[0]
    for _ in range(2):
        Q = np.linalg.qr(A @ np.linalg.qr(A.T @ Q)[0])[0]
    B = Q.T @ A
    w, E = np.linalg.eigh(B @ B.T)
    w, E = w[::-1][:k], E[:, ::-1][:, :k]
    s = np.sqrt(np.maximum(w, 1e-30))
    return Q @ E, s, (B.T @ E) / s


def soft_impute(R, W, sketch, strength, rounds):
    Z = np.zeros_like(R)
    change = []
    for _ in range(rounds):
        filled = R + (1 - W) * Z
        U, s, Vt = randomised(filled, sketch, 24)
        s = np.maximum(s - strength, 0.0)
        new = (U * s) @ Vt.T
        change.append(np.linalg.norm(new - Z) / (np.linalg.norm(Z) + 1.0))
        Z = new
    return Z, s, np.stack(change)


def neighbours(R, W, keep):
    norm = np.sqrt(R.T ** 2 @ W)
    likeness = (R.T @ R) / np.maximum(norm * norm.T, 1e-9)
    shared = W.T @ W
    likeness *= shared / (shared + 12.0)
    np.fill_diagonal(likeness, 0.0)
    bar = -np.sort(-np.abs(likeness), axis=1)[:, keep - 1:keep]
    likeness = np.where(np.abs(likeness) >= bar, likeness, 0.0)
    return (R @ likeness.T) / (W @ np.abs(likeness).T + 0.3)


def rmse(P, user, item, stars):
    e = np.clip(P[user, item], 0.5, 5.0) - stars
    return np.sqrt(np.mean(e ** 2)), np.abs(e).mean()


def ranking(P, W, good):
    """Precision, recall, NDCG, mean reciprocal rank and coverage of the first TOP unseen items."""
    score = np.where(W > 0, -np.inf, P)
    top = np.argsort(-score, axis=1, kind="stable")[:, :TOP]
    hit = np.take_along_axis(good, top, axis=1).astype(float)
    wanted = good.sum(axis=1)
    users = wanted > 0
    discount = 1 / np.log2(np.arange(2, TOP + 2))
    ideal = np.cumsum(discount)[np.clip(np.minimum(wanted, TOP) - 1, 0, None)]
    ndcg = (hit @ discount) / ideal
    first = np.where(hit.any(axis=1), 1.0 / (hit.argmax(axis=1) + 1), 0.0)
    shown = np.bincount(top.ravel(), minlength=P.shape[1])
    share = np.sort(shown) / shown.sum()
    gini = 1 - 2 * (np.cumsum(share) - share / 2).mean()
    m = users.sum()
    # a reader who stops at the first good item, and may not reach it
    stop = 0.6 * hit
    reach = np.cumprod(np.concatenate([np.ones((len(hit), 1)), 1 - stop[:, :-1]], axis=1), axis=1)
    err = (reach * stop / np.arange(1, TOP + 1)).sum(axis=1)
    return np.stack([hit.sum() / (m * TOP), (hit.sum(axis=1) / np.maximum(wanted, 1))[users].mean(), ndcg[users].mean(), first[users].mean(), (shown > 0).mean(), gini, err[users].mean(), np.isin(np.arange(P.shape[1]), top[:50]).mean()])


def auc(P, W, good, rows):
    p, free, g = P[rows], W[rows] == 0, good[rows]
    order = np.argsort(np.where(free, p, -1e9), axis=1, kind="stable")
    g, free = np.take_along_axis(g, order, axis=1), np.take_along_axis(free, order, axis=1)
    below = np.cumsum(free & ~g, axis=1)
    pos, neg = g.sum(axis=1), (free & ~g).sum(axis=1)
    each = (below * g).sum(axis=1) / np.where(pos * neg > 0, pos * neg, 1)
    return np.nanmean(np.where(pos > 0, each, np.nan))


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    user, item, stars = asarray(data["user"]), asarray(data["item"]), asarray(data["stars"])
    cut = (9 * len(user)) // 10
    (u, ut), (i, it), (y, yt) = (np.split(a, [cut]) for a in (user, item, stars.astype(np.float64)))
    W = np.zeros((N, ITEMS))
    W[u, i] = 1.0
    good = np.zeros((N, ITEMS), dtype=bool)
    good[ut, it] = yt >= 4
    mu, bu, bi = biases(u, i, y, N)
    base = mu + bu[:, None] + bi
    R = np.zeros((N, ITEMS))
    R[u, i] = y - base[u, i]
    models = {"bias": base}
    U, V, losses = als(R, W, asarray(data["start"]), SWEEPS, 0.06)
    models["als"] = base + U @ V.T
    Z, values, change = soft_impute(R, W, asarray(data["sketch"]), 5.0, 8)
    models["svd"] = base + Z
    models["items"] = base + neighbours(R, W, 30)
    table, ranks, areas = [], [], []
    for P in models.values():
        table.append(np.stack(rmse(P, ut, it, yt)))
        ranks.append(ranking(P, W, good))
        areas.append(auc(P, W, good, np.arange(0, N, 3)))
    # least squares blend of the four, with a constant
    stackd = np.stack([P[ut, it] for P in models.values()] + [np.ones(len(ut))], axis=1)
    half = len(ut) // 2
    weights = np.linalg.lstsq(stackd[:half], yt[:half], rcond=None)[0]
    blended = np.sqrt(((np.clip(stackd[half:] @ weights, 0.5, 5) - yt[half:]) ** 2).mean())
    # users by how much they rated
    count = W.sum(axis=1)
    edges = np.quantile(count, np.linspace(0, 1, 6)[1:-1])
    group = np.digitize(count, edges)
    e2 = (models["als"][ut, it] - yt) ** 2
    bygroup = np.bincount(group[ut], weights=e2, minlength=5) / np.maximum(np.bincount(group[ut], minlength=5), 1)
    # cold users fold in one rating after the other
    cold = np.argsort(-count, kind="stable")[:16]
    errors = []
    for shown in (1, 2, 4, 8, 16, 32):
        picked = (np.cumsum(W[cold], axis=1) <= shown) & (W[cold] > 0)
        G = np.einsum("ui,ia,ib->uab", picked.astype(float), V, V, optimize=True) + 0.5 * np.eye(RANK)
        f = np.linalg.solve(G, ((R[cold] * picked) @ V)[..., None])[..., 0]
        rest = (W[cold] > 0) & ~picked
        errors.append(np.sqrt((((f @ V.T - R[cold]) ** 2) * rest).sum() / rest.sum()))
    surprise = -np.log2((W.sum(axis=0) + 1) / (N + 1))
    hist, _, _ = np.histogram2d(yt, np.clip(models["als"][ut, it], 0.5, 5.0), bins=[10, 10], range=[[0.25, 5.25], [0.25, 5.25]])
    return dict(mu=mu, bu=bu, bi=bi, losses=losses, gram=U.T @ U, predicted=models["als"], values=values, change=change, table=np.stack(table), ranks=np.stack(ranks), areas=np.stack(areas),
                weights=weights, blended=blended, bygroup=bygroup, errors=np.stack(errors), surprise=surprise, hist=hist)
