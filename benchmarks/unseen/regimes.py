"""Regimes in returns: a Markov-switching autoregression by EM, Hamilton's filter, Kim's smoother, forecasts and tests.

N: observations.
"""
import numpy as np

DEFAULT = 1200
STATES = 3
ROUNDS = 12


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1989)
    P = numpy.array([[0.97, 0.02, 0.01], [0.03, 0.94, 0.03], [0.02, 0.05, 0.93]])
    mean, slope, sigma = [0.6, 0.0, -1.2], [0.2, 0.5, -0.1], [0.5, 0.9, 1.8]
    s, y = 0, numpy.zeros(N)
    state = numpy.zeros(N, dtype=int)
    for t in range(1, N):
        s = int(rng.choice(3, p=P[s]))
        state[t] = s
        y[t] = mean[s] + slope[s] * y[t - 1] + sigma[s] * rng.normal()
    return y, state


class Model:
    def __init__(self, P, beta, sigma):
        self.P, self.beta, self.sigma = P, beta, sigma

    def densities(self, y, X):
        r = (y[:, None] - X @ self.beta.T) / self.sigma
        return np.exp(-0.5 * r * r) / (self.sigma * np.sqrt(2 * np.pi))

    def stationary(self):
        A = np.concatenate([np.eye(STATES) - self.P.T, np.ones((1, STATES))])
        b = np.zeros(STATES + 1)
        b[-1] = 1.0
        return np.linalg.lstsq(A, b, rcond=None)[0]

    def filter(self, f):
        T = len(f)
        ahead, now = np.empty((T, STATES)), np.empty((T, STATES))
        like = np.empty(T)
        p = self.stationary()
        for t in range(T):
            ahead[t] = p
            joint = p * f[t]
            total = joint.sum()
            like[t] = total
            now[t] = joint / total
            p = now[t] @ self.P
        return ahead, now, np.log(like)

    def smooth(self, ahead, now):
        T = len(now)
        out = np.empty_like(now)
        out[-1] = now[-1]
        pairs = np.zeros((STATES, STATES))
        for t in range(T - 2, -1, -1):
            ratio = out[t + 1] / ahead[t + 1]
            joint = now[t][:, None] * self.P * ratio
            pairs += joint
            out[t] = joint.sum(axis=1)
        return out, pairs


def maximise(y, X, weights, pairs):
    beta = np.empty((STATES, X.shape[1]))
    sigma = np.empty(STATES)
    for k in range(STATES):
        w = weights[:, k]
        XtW = X.T * w
        beta[k] = np.linalg.solve(XtW @ X + 1e-8 * np.eye(X.shape[1]), XtW @ y)
        e = y - X @ beta[k]
        sigma[k] = np.sqrt((w * e * e).sum() / w.sum())
    return Model(pairs / pairs.sum(axis=1, keepdims=True), beta, sigma)


def viterbi(model, f):
    T = len(f)
    logP, logf = np.log(model.P), np.log(np.maximum(f, 1e-300))
    score = np.log(model.stationary()) + logf[0]
    back = np.zeros((T, STATES), dtype=np.int64)
    for t in range(1, T):
        options = score[:, None] + logP
        back[t] = options.argmax(axis=0)
        score = options.max(axis=0) + logf[t]
    path = np.zeros(T, dtype=np.int64)
    path[-1] = score.argmax()
    for t in range(T - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path, score.max()


def spells(path):
    """Starts, lengths and states of the unbroken runs."""
    start = np.concatenate([np.zeros(1, dtype=np.int64), np.flatnonzero(path[1:] != path[:-1]) + 1])
    length = np.diff(np.append(start, len(path)))
    return start, length, path[start]


def main(asarray, N, given):
    series, truth = (asarray(v) for v in given)
    y, truth = series[1:], truth[1:]
    X = np.stack([np.ones(N - 1), series[:-1]], axis=1)

    # start from thirds of the sorted values
    order = np.argsort(y, kind="stable")[::-1]
    third = np.empty(N - 1, dtype=np.int64)
    third[order] = np.arange(N - 1) * STATES // (N - 1)
    P = np.full((STATES, STATES), 0.05) + 0.85 * np.eye(STATES)
    beta = np.zeros((STATES, 2))
    beta[:, 0] = np.bincount(third, weights=y) / np.bincount(third)
    model = Model(P, beta, np.array([0.7, 0.8, 1.2]))

    trace, before = [], -np.inf
    for it in range(ROUNDS):
        f = model.densities(y, X)
        ahead, now, like = model.filter(f)
        smooth, pairs = model.smooth(ahead, now)
        total = float(like.sum())
        trace.append(total)
        if total - before < 1e-4:
            break
        before = total
        model = maximise(y, X, smooth, pairs)
    f = model.densities(y, X)
    ahead, now, like = model.filter(f)
    rank = np.argsort(model.sigma)
    path, best = viterbi(model, f)
    label = np.empty(STATES, dtype=np.int64)
    label[rank] = np.arange(STATES)
    path = label[path]
    confusion = np.zeros((STATES, STATES), dtype=np.int64)
    np.add.at(confusion, (truth, path), 1)
    start, length, kind = spells(path)
    expected = 1 / (1 - np.diagonal(model.P))

    # probability integral transforms and one-step forecasts
    mean = X @ model.beta.T
    z = (y[:, None] - mean) / model.sigma
    cdf = 1 / (1 + np.exp(-1.5957691216 * z - 0.0711 * z ** 3))
    pit = (ahead * cdf).sum(axis=1)
    forecast = (ahead * mean).sum(axis=1)
    spread = (ahead * (model.sigma ** 2 + mean ** 2)).sum(axis=1) - forecast ** 2
    uniform = np.histogram(pit, bins=10, range=(0, 1))[0]
    chi2 = ((uniform - len(y) / 10) ** 2 / (len(y) / 10)).sum()
    # how probabilities fade over the horizon, and the likelihood along each persistence
    horizon, p = [], now[-1]
    for _ in range(24):
        p = p @ model.P
        horizon.append(p)
    profile = []
    for stay in np.linspace(0.8, 0.98, 7).tolist():
        off = model.P * (1 - np.eye(STATES))
        Q = off / off.sum(axis=1, keepdims=True) * (1 - stay) + stay * np.eye(STATES)
        profile.append(Model(Q, model.beta, model.sigma).filter(f)[2].sum())
    eigen = np.sort(np.abs(np.linalg.eigvalsh(0.5 * (model.P + model.P.T))))
    return dict(trace=np.array(trace), it=it, P=model.P[rank][:, rank], beta=model.beta[rank], sigma=model.sigma[rank], smooth=smooth[:, rank], now=now[:, rank],
                best=best, path=path, confusion=confusion, spells=np.stack([start, length, kind]), expected=expected[rank], pit=pit, chi2=chi2,
                rmse=np.sqrt(((y - forecast) ** 2).mean()), spread=spread[::10], horizon=np.stack(horizon)[:, rank], profile=np.stack(profile), eigen=eigen,
                hit=(path == truth).mean(), longest=length.max())
