"""Kernel support vector machine trained by dual coordinate descent for several penalties and folds side by side, with
cross-validation and kernel PCA; N is the number of samples."""
import numpy as np

DEFAULT = 400

FOLDS = 5
PENALTIES = (0.1, 1.0, 10.0)
GAMMAS = (0.2, 1.0)
SWEEPS = 14


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1998)
    n = N + N // 2
    y = numpy.where(rng.random(n) < 0.45, 1.0, -1.0)
    th = rng.uniform(0, numpy.pi, n)
    moon = numpy.stack([numpy.cos(th) * y + 0.5 * (y < 0), numpy.sin(th) * y + 0.4 * (y < 0)], axis=1)
    X = numpy.concatenate([moon + 0.28 * rng.standard_normal((n, 2)), 0.5 * rng.standard_normal((n, 3))], axis=1)
    X = X * numpy.array([1.0, 1.0, 0.8, 0.6, 0.5]) + numpy.array([3.0, -1.0, 0.0, 10.0, 0.2])
    fold = rng.permutation(numpy.arange(N) % FOLDS)
    return X[:N], y[:N], X[N:], y[N:], fold


def standardise(X, *others):
    mu, sd = X.mean(axis=0), X.std(axis=0)
    return [(Z - mu) / sd for Z in (X,) + others]


def rbf(A, B, gamma):
    d2 = np.sum(A ** 2, axis=1)[:, None] + np.sum(B ** 2, axis=1)[None, :] - 2.0 * (A @ B.T)
    np.maximum(d2, 0.0, out=d2)
    d2 *= -gamma
    return np.exp(d2, out=d2)


def train(K, y, upper):
    """Dual coordinate descent for models in rows of upper (the box of each sample); the bias is in the kernel.

    Returns alphas and the gradients y f - 1 of all models."""
    models, n = upper.shape
    alpha = np.zeros((models, n))
    f = np.zeros((models, n))
    diag = K.diagonal().tolist()
    for sweep in range(SWEEPS):
        for i in range(n):
            g = y[i] * f[:, i] - 1.0
            new = np.clip(alpha[:, i] - g / diag[i], 0.0, upper[:, i])
            delta = (new - alpha[:, i]) * y[i]
            alpha[:, i] = new
            f += delta[:, None] * K[i]
    return alpha, y * f - 1.0


def kernel_pca(K, ncomp):
    n = K.shape[0]
    row = K.mean(axis=0)
    Kc = K - row[None, :] - row[:, None] + row.mean()
    lam, vec = np.linalg.eigh(Kc)
    lam, vec = lam[::-1][:ncomp], vec[:, ::-1][:, :ncomp]
    big = np.argmax(np.abs(vec), axis=0)
    vec = vec * np.sign(vec[big, np.arange(ncomp)])
    return lam / n, vec * np.sqrt(np.maximum(lam, 0.0))


def dual_objective(K, y, alpha):
    ay = alpha * y
    return 0.5 * np.einsum("mi,ij,mj->m", ay, K, ay) - alpha.sum(axis=1)


def confusion(truth, guess):
    code = 2 * (truth > 0).astype(np.int64) + (guess > 0)
    return np.bincount(code, minlength=4).reshape(2, 2)


def main(asarray, N, given):
    X, y, Xt, yt, fold = map(asarray, given)
    X, Xt = standardise(X, Xt)
    outside = fold[None, :] == np.arange(FOLDS)[:, None]
    C = np.array(PENALTIES)
    upper = np.where(outside[None, :, :], 0.0, C[:, None, None]).reshape(-1, N)
    upper = np.concatenate([upper, np.tile(C[:, None], (1, N))])

    scores, hinge, kept, objective = [], [], [], []
    for gamma in GAMMAS:
        K = rbf(X, X, gamma) + 1.0
        alpha, grad = train(K, y, upper)
        margin = grad[:len(C) * FOLDS].reshape(len(C), FOLDS, N) + 1.0
        held = np.where(outside[None], margin, 0.0).sum(axis=1)         # each sample judged by its own fold's model
        scores.append((held > 0).mean(axis=1))
        hinge.append(np.maximum(1.0 - held, 0.0).mean(axis=1))
        objective.append(dual_objective(K, y, alpha))
        kept.append(alpha[len(C) * FOLDS:])
    scores, hinge = np.stack(scores), np.stack(hinge)

    best = int(np.argmin(hinge))
    gi, ci = best // len(C), best % len(C)
    alpha = kept[gi][ci]
    support = alpha > 1e-8
    bounded = alpha >= PENALTIES[ci] * (1 - 1e-9)
    coef = (alpha * y)[support]
    decision = (rbf(Xt, X[support], GAMMAS[gi]) + 1.0) @ coef
    table = confusion(yt, decision)

    # the area under the ROC curve, by ranks
    order = np.argsort(decision)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    pos = yt > 0
    npos, nneg = int(pos.sum()), int((~pos).sum())
    auc = (rank[pos].sum() - npos * (npos + 1) / 2) / (npos * nneg)

    lam, proj = kernel_pca(rbf(X, X, 0.2), 4)
    between = [proj[y > 0].mean(axis=0) - proj[y < 0].mean(axis=0)]
    return dict(scores=scores, hinge=hinge, objective=np.stack(objective), best=best, decision=decision, confusion=table,
                accuracy=np.trace(table) / table.sum(), auc=auc, at_bound=bounded.sum(),
                alpha_sum=alpha.sum(), bias=coef.sum(), kpca_values=lam, kpca=proj, between=np.array(between[0]),
                norm=np.sqrt(coef @ (rbf(X[support], X[support], GAMMAS[gi]) @ coef)))
