"""Sparse regression: lasso path by ADMM with cross-validation and the one-standard-error rule, FISTA and coordinate descent as checks. N: features."""
import math

import numpy
import numpy as np

DEFAULT = 150
FOLDS, LAMBDAS = 5, 16


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(77)
    rows = 2 * N
    factors = rng.normal(size=(rows, 10))
    X = rng.normal(size=(rows, N)) + 0.6 * factors @ rng.normal(size=(10, N)) / numpy.sqrt(10)
    beta = numpy.zeros(N)
    beta[rng.choice(N, N // 12, replace=False)] = rng.normal(0, 2, N // 12)
    return dict(X=X, y=X @ beta + 1.5 + rng.normal(0, 1.5, rows), beta=beta, fold=rng.permutation(rows) % FOLDS)


def soft(x, k):
    return np.sign(x) * np.maximum(np.abs(x) - k, 0)


def standardize(X, y):
    mu, sd = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
    return (X - mu) / sd, y - y.mean(), mu, sd, y.mean()


def admm(inverse, q, lam, z, u, rho, n, tol=1e-5, limit=500):
    """min 1/2n |y - Xb|^2 + lam |b|_1; inverse of X'X/n + rho I."""
    for it in range(limit):
        x = inverse @ (q + rho * (z - u))
        xhat = 1.6 * x - 0.6 * z
        zold, z = z, soft(xhat + u, lam / rho)
        u = u + xhat - z
        primal = float(np.linalg.norm(x - z))
        dual = float(rho * np.linalg.norm(z - zold))
        scale = max(float(np.linalg.norm(x)), float(np.linalg.norm(z)), 1e-3)
        if primal < tol * scale and dual < tol * scale:
            break
    return z, u, it + 1


def path(X, y, lambdas, rho=1.0):
    n, p = X.shape
    inverse = np.linalg.inv(X.T @ X / n + rho * np.eye(p))
    q = X.T @ y / n
    z, u = np.zeros(p), np.zeros(p)
    coefs, counts = np.empty((len(lambdas), p)), []
    for i, lam in enumerate(lambdas):
        z, u, it = admm(inverse, q, lam, z, u, rho, n)
        coefs[i] = z
        counts.append(it)
    return coefs, counts


def fista(X, y, lam, tol=1e-7, limit=300):
    n, p = X.shape
    step = 1 / float(np.linalg.eigvalsh(X.T @ X / n)[-1])
    b, v, t, history = np.zeros(p), np.zeros(p), 1.0, []
    for it in range(limit):
        grad = X.T @ (X @ v - y) / n
        new = soft(v - step * grad, step * lam)
        tn = (1 + math.sqrt(1 + 4 * t * t)) / 2
        if float(np.dot(v - new, new - b)) > 0:      # restart
            tn = 1.0
        v = new + (t - 1) / tn * (new - b)
        change = float(np.abs(new - b).max())
        b, t = new, tn
        history.append(float(0.5 * np.sum((y - X @ b) ** 2) / n + lam * np.abs(b).sum()))
        if change < tol:
            break
    return b, history


def coordinate_descent(X, y, lam, sweeps=20, tol=1e-6):
    n, p = X.shape
    b, r = np.zeros(p), y.copy()
    for sweep in range(sweeps):
        before = b.copy()
        for j in range(p):
            old = b[j].copy()
            b[j] = soft(X[:, j] @ r / n + old, lam)
            r -= X[:, j] * (b[j] - old)
        if np.abs(b - before).max() < tol:
            break
    return b


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    X, y, beta, fold = (asarray(data[k]) for k in ("X", "y", "beta", "fold"))
    Xs, yc, mu, sd, ybar = standardize(X, y)
    top = float(np.abs(Xs.T @ yc).max()) / len(y)
    lambdas = [top * 10 ** (-2.0 * i / (LAMBDAS - 1)) for i in range(LAMBDAS)]
    mse, iterations = np.zeros((FOLDS, LAMBDAS)), []
    for k in range(FOLDS):
        test = fold == k
        A, b, m, s, intercept = standardize(X[~test], y[~test])
        coefs, counts = path(A, b, lambdas)
        pred = (X[test] - m) / s @ coefs.T + intercept
        mse[k] = np.mean((y[test][:, None] - pred) ** 2, axis=0)
        iterations.append(counts)
    cv, err = mse.mean(axis=0), mse.std(axis=0, ddof=1) / math.sqrt(FOLDS)
    best = int(cv.argmin())
    simple = int(np.flatnonzero(cv <= cv[best] + err[best])[0])
    coefs, counts = path(Xs, yc, lambdas)
    accelerated, history = fista(Xs, yc, lambdas[simple])
    cyclic = coordinate_descent(Xs, yc, lambdas[simple])
    active = np.flatnonzero(np.abs(coefs[simple]) > 1e-8)
    debiased = np.zeros(N)
    debiased[active] = np.linalg.lstsq(Xs[:, active], yc, rcond=None)[0]
    order = active[np.argsort(-np.abs(debiased[active]))][:10]
    degrees = np.count_nonzero(np.abs(coefs) > 1e-8, axis=1)
    found = np.isin(np.flatnonzero(beta), active)
    residual = yc - Xs @ debiased
    return dict(cv=np.asarray(cv), err=np.asarray(err), chosen=np.asarray([best, simple]), coefs=np.asarray(coefs), iterations=np.asarray(iterations + [counts]),
                fista=np.asarray(accelerated), history=np.asarray(history), cyclic=np.asarray(cyclic), active=np.asarray(active), degrees=np.asarray(degrees),
                debiased=np.asarray(debiased / sd), order=np.asarray(order), recall=np.asarray(float(found.mean())), r2=np.asarray(float(1 - residual.var() / yc.var())))
