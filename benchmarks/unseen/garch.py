"""Volatility of many assets: GJR-GARCH by a search over candidates then scoring steps with recursive derivatives, EWMA, value at risk with tests, tails, filtered historical simulation. N: days."""
import math

import numpy
import numpy as np

DEFAULT = 300
ASSETS, CANDIDATES, SCORING, PATHS, HORIZON = 40, 2000, 2, 40000, 10


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(306)
    alpha, gamma, beta = rng.uniform(0.03, 0.08, ASSETS), rng.uniform(0.02, 0.1, ASSETS), rng.uniform(0.8, 0.88, ASSETS)
    target = rng.uniform(0.5, 3, ASSETS)
    omega = target * (1 - alpha - gamma / 2 - beta)
    r, h = numpy.zeros((N, ASSETS)), target.copy()
    shock = rng.standard_t(7, (N, ASSETS)) * math.sqrt(5 / 7) * 0.8 + 0.6 * rng.normal(size=(N, 1))
    for t in range(N):
        r[t] = numpy.sqrt(h) * shock[t]
        h = omega + (alpha + gamma * (r[t] < 0)) * r[t] ** 2 + beta * h
    grid = numpy.stack([rng.uniform(0.01, 0.15, CANDIDATES), rng.uniform(0, 0.2, CANDIDATES), rng.uniform(0.7, 0.93, CANDIDATES)])
    grid[2] = numpy.minimum(grid[2], 0.985 - grid[0] - grid[1] / 2)
    return dict(returns=r + 0.03, grid=grid, draws=rng.integers(0, N, (HORIZON, PATHS)).astype(numpy.int32))


def filter_variance(r2, down, omega, alpha, gamma, beta, h0):
    """Minus log-likelihood of candidates (rows) on assets (columns); keeps only sums."""
    h = np.broadcast_to(h0, omega.shape).copy()
    loss = np.zeros_like(h)
    arch = np.empty_like(h)
    for t in range(r2.shape[0]):
        loss += np.log(h) + r2[t] / h
        np.multiply(gamma, down[t], out=arch)
        arch += alpha
        arch *= r2[t]
        h *= beta
        h += arch
        h += omega
    return 0.5 * loss


def derivatives(r2, down, theta, h0):
    """h and its derivatives in (omega, alpha, gamma, beta) for each asset, over time."""
    T, assets = r2.shape
    omega, alpha, gamma, beta = theta
    H, G = np.empty((T, assets)), np.empty((T, 4, assets))
    h, g = h0.copy(), np.zeros((4, assets))
    x = np.stack([np.ones_like(r2), r2, r2 * down], axis=1)
    for t in range(T):
        H[t], G[t] = h, g
        g = beta * g
        g[:3] += x[t]
        g[3] += h
        h = omega + (alpha + gamma * down[t]) * r2[t] + beta * h
    return H, G, h


def autocorrelation(z, lags):
    z = z - z.mean(axis=0)
    denominator = (z ** 2).sum(axis=0)
    return np.stack([(z[k:] * z[:-k]).sum(axis=0) / denominator for k in range(1, lags + 1)])


def kupiec(hits, p):
    n, x = hits.shape[0], hits.sum(axis=0)
    rate = np.clip(x / n, 1e-6, 1 - 1e-6)
    return -2 * ((n - x) * np.log((1 - p) / (1 - rate)) + x * np.log(p / rate))


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    returns, (a, g, b) = asarray(data["returns"]), asarray(data["grid"])
    mean = returns.mean(axis=0, keepdims=True)
    e = returns - mean
    r2, down = e ** 2, (e < 0).astype(np.float64)
    var = e.var(axis=0)
    alpha, gamma, beta = a[:, None], g[:, None], b[:, None]
    omega = var * (1 - alpha - gamma / 2 - beta)
    loss = filter_variance(r2, down, omega, alpha, gamma, beta, var)
    best = loss.argmin(axis=0)
    columns = np.arange(e.shape[1])
    theta = np.stack([omega[best, columns], a[best], g[best], b[best]])
    path = [loss[best, columns]]
    for _ in range(SCORING):
        H, G, _ = derivatives(r2, down, theta, var)
        path.append(0.5 * (np.log(H) + r2 / H).sum(axis=0))
        score = np.einsum("ta,tka->ak", 0.5 * (r2 / H - 1) / H, G)
        info = np.einsum("tka,tla,ta->akl", G, G, 0.5 / H ** 2)
        move = np.linalg.solve(info + 1e-6 * np.eye(4), score[..., None])[..., 0].T
        shrink = np.minimum(1.0, 0.25 / np.abs(move / np.maximum(theta, 0.02)).max(axis=0))
        theta = theta + shrink * move
        theta = np.stack([np.maximum(theta[0], 1e-4), np.clip(theta[1], 0, 0.3), np.clip(theta[2], 0, 0.3), np.clip(theta[3], 0.5, 0.97)])
        theta[3] = np.minimum(theta[3], 0.995 - theta[1] - theta[2] / 2)
    H, G, ahead = derivatives(r2, down, theta, var)
    info = np.einsum("tka,tla,ta->akl", G, G, 0.5 / H ** 2)
    errors = np.sqrt(np.diagonal(np.linalg.inv(info), axis1=1, axis2=2)).T
    z = e / np.sqrt(H)
    # moments, tails and tests of what remains
    skew, kurt = (z ** 3).mean(axis=0) / z.std(axis=0) ** 3, (z ** 4).mean(axis=0) / z.var(axis=0) ** 2
    jarque = len(z) / 6 * (skew ** 2 + (kurt - 3) ** 2 / 4)
    rho = autocorrelation(z ** 2, 10)
    ljung = len(z) * (len(z) + 2) * (rho ** 2 / (len(z) - np.arange(1, 11))[:, None]).sum(axis=0)
    ordered = np.sort(-z, axis=0)[::-1]
    hill = 1 / np.log(ordered[:25] / ordered[25]).mean(axis=0)
    # RiskMetrics with a vector of decays, by recursion
    decay = np.array([0.9, 0.94, 0.97])[:, None]
    s = np.broadcast_to(var, (3, len(var))).copy()
    score_ewma = np.zeros(s.shape)
    hits = []
    for t in range(len(e)):
        score_ewma += np.log(s) + r2[t] / s
        hits.append(e[t] < -1.645 * np.sqrt(s[1]))
        s = decay * s + (1 - decay) * r2[t]
    q05 = np.percentile(z, 5, axis=0)
    hits_garch = z < q05
    hits_normal = e < -1.645 * np.sqrt(H)
    hits_ewma = np.stack(hits)
    both = hits_normal[1:] & hits_normal[:-1]
    after = both.sum(axis=0) / np.maximum(hits_normal[:-1].sum(axis=0), 1)
    # filtered historical simulation of an equal portfolio
    draws = asarray(data["draws"])
    h = np.broadcast_to(ahead, (PATHS, len(ahead))).copy()
    total = np.zeros(PATHS)
    for day in range(HORIZON):
        shock = np.sqrt(h) * z[draws[day]]
        total += (shock + mean).mean(axis=1)
        h = theta[0] + (theta[1] + theta[2] * (shock < 0)) * shock ** 2 + theta[3] * h
    losses = np.sort(-total)
    cut = int(0.95 * PATHS)
    risk = np.stack([losses[cut], losses[cut:].mean(), losses[int(0.99 * PATHS)], losses[-20:].mean()])
    # correlations of the residuals: shrink, rank version, principal axes
    C = np.corrcoef(z.T)
    rank = np.argsort(np.argsort(z, axis=0), axis=0)
    spearman = np.corrcoef(rank.T.astype(np.float64))
    lam, V = np.linalg.eigh(0.9 * C + 0.1 * np.eye(len(C)))
    explained = np.cumsum(lam[::-1]) / lam.sum()
    market = np.abs(V[:, -1])
    grid = np.linspace(-4, 4, 81)
    width = 1.06 * len(z) ** -0.2
    density = np.exp(-0.5 * ((grid[:, None, None] - z) / width) ** 2).mean(axis=1) / (width * math.sqrt(2 * math.pi))
    half_life = np.log(0.5) / np.log(theta[1] + theta[2] / 2 + theta[3])
    return dict(theta=theta, errors=errors, path=np.stack(path), skew=skew, kurt=kurt, jarque=jarque, ljung=ljung, hill=hill, score_ewma=score_ewma,
                kupiec=np.stack([kupiec(x, 0.05) for x in (hits_garch, hits_normal, hits_ewma)]), after=after, risk=risk, spearman=spearman,
                explained=explained, market=market, density=density, half_life=half_life, vol=np.sqrt(252 * H[-1]))
