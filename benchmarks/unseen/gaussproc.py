"""Gaussian process regression: ARD kernel, Cholesky, log marginal likelihood with gradients, ascent, leave-one-out, samples. N: training points."""
import numpy
import numpy as np

DEFAULT = 300
STEPS = 12


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(17)
    X = rng.uniform(-3, 3, (N, 3))
    f = numpy.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1] ** 2
    y = f + rng.normal(0, 0.15, N)
    Xs = rng.uniform(-3, 3, (N // 2, 3))
    return dict(X=X, y=y, Xs=Xs, fs=numpy.sin(1.5 * Xs[:, 0]) + 0.3 * Xs[:, 1] ** 2, z=rng.normal(size=(N // 2, 4)))


def sqdist(A, B):
    d = np.sum(A ** 2, axis=1)[:, None] + np.sum(B ** 2, axis=1)[None, :] - 2 * A @ B.T
    return np.maximum(d, 0)


def rbf(A, B, theta):
    length = np.exp(theta[:3])
    return np.exp(2 * theta[3]) * np.exp(-0.5 * sqdist(A / length, B / length))


def matern32(A, B, theta):
    length = np.exp(theta[:3])
    r = np.sqrt(3 * sqdist(A / length, B / length) + 1e-12)
    return np.exp(2 * theta[3]) * (1 + r) * np.exp(-r)


def log_marginal(X, y, theta):
    n = len(y)
    Kf = rbf(X, X, theta)
    K = Kf + (np.exp(2 * theta[4]) + 1e-8) * np.eye(n)
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    lml = -0.5 * y @ alpha - np.sum(np.log(np.diag(L))) - 0.5 * n * np.log(2 * np.pi)
    Linv = np.linalg.solve(L, np.eye(n))
    Kinv = Linv.T @ Linv
    inner = np.outer(alpha, alpha) - Kinv
    grad = np.zeros(5)
    for d in range(3):
        diff = (X[:, d][:, None] - X[:, d][None, :]) ** 2 / np.exp(2 * theta[d])
        grad[d] = 0.5 * np.sum(inner * (Kf * diff))
    grad[3] = 0.5 * np.einsum("ij,ji->", inner, 2 * Kf)
    grad[4] = np.trace(inner) * np.exp(2 * theta[4])
    return lml, grad, L, alpha, Kinv


def main(asarray, N=DEFAULT, data=None, steps=STEPS):
    data = data or inputs(N)
    X, y, Xs, fs, z = (asarray(data[k]) for k in ("X", "y", "Xs", "fs", "z"))
    ymean, ystd = y.mean(), y.std()
    t = (y - ymean) / ystd
    theta = np.log(np.array([1.0, 1.0, 1.0, 1.0, 0.3]))
    history, path = [], np.zeros((steps, 5))
    rate = 0.05
    best, best_theta = -np.inf, theta
    for it in range(steps):
        lml, grad, L, alpha, Kinv = log_marginal(X, t, theta)
        history.append(float(lml))
        path[it] = theta
        if lml > best:
            best, best_theta = lml, theta.copy()
        elif it > 3:
            rate *= 0.5
        theta = theta + rate * grad / np.maximum(np.linalg.norm(grad), 1.0) * 2
        theta = np.clip(theta, np.log(1e-2), np.log(1e2))
    lml, grad, L, alpha, Kinv = log_marginal(X, t, best_theta)
    # prediction
    Ks = rbf(X, Xs, best_theta)
    mean = ymean + ystd * (Ks.T @ alpha)
    v = np.linalg.solve(L, Ks)
    cov = rbf(Xs, Xs, best_theta) - v.T @ v
    std = ystd * np.sqrt(np.clip(np.diag(cov), 1e-12, None) + np.exp(2 * best_theta[4]))
    samples = mean[:, None] + ystd * np.linalg.cholesky(cov + 1e-6 * np.eye(len(Xs))) @ z
    rmse = np.sqrt(np.mean((mean - fs) ** 2))
    covered = np.mean(np.abs(fs - mean) < 1.96 * std)
    loo = t - alpha / np.diag(Kinv)
    loo_var = 1 / np.diag(Kinv)
    loo_lp = np.sum(-0.5 * np.log(2 * np.pi * loo_var) - (t - loo) ** 2 / (2 * loo_var))
    # compare kernels on a grid of length scales
    grid = np.zeros((2, 5))
    for a, kernel in enumerate((rbf, matern32)):
        for b, scale in enumerate(np.linspace(-0.5, 1.0, 5)):
            th = best_theta.copy()
            th[:3] += scale
            K = kernel(X, X, th) + np.exp(2 * th[4]) * np.eye(N)
            sign, logdet = np.linalg.slogdet(K)
            grid[a, b] = -0.5 * t @ np.linalg.solve(K, t) - 0.5 * logdet
    winner = np.unravel_index(np.argmax(grid), grid.shape)
    w = np.linalg.eigvalsh(rbf(X, X, best_theta))[::-1]
    effective = np.sum(w / (w + np.exp(2 * best_theta[4])))
    order = np.argsort(Xs[:, 0])
    return dict(history=np.asarray(history), path=np.asarray(path), mean=np.asarray(mean[order]), std=np.asarray(std[order]), loo=np.asarray(loo),
                loo_lp=np.asarray(loo_lp), rmse=np.asarray(rmse), covered=np.asarray(covered), grid=np.asarray(grid), samples=np.asarray(samples),
                winner=np.asarray([int(i) for i in winner]), effective=np.asarray(effective))
