"""Options by Monte Carlo: American put by Longstaff and Schwartz, Asian and barrier calls, an average basket, greeks. N: paths."""
import numpy
import numpy as np

DEFAULT = 16000
STEPS = 50


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(22)
    half = rng.standard_normal((STEPS, N // 2)).astype(numpy.float64)
    return dict(z=numpy.concatenate([half, -half], axis=1), basket=rng.standard_normal((N, 5)))


def laguerre(x):
    e = np.exp(-x / 2)
    return np.stack([np.ones_like(x), e, e * (1 - x), e * (1 - 2 * x + x ** 2 / 2)], axis=1)


def american(S, K, r, dt):
    payoff = np.maximum(K - S, 0)
    cash = payoff[-1].copy()
    when = np.full(cash.shape, len(S) - 1)
    frontier = []
    for t in range(len(S) - 2, 0, -1):
        cash *= np.exp(-r * dt)
        itm = payoff[t] > 0
        if itm.sum() < 20:
            frontier.append(np.nan)
            continue
        X = laguerre(S[t, itm] / K)
        beta, *_ = np.linalg.lstsq(X, cash[itm], rcond=None)
        go_on = X @ beta
        exercise = payoff[t, itm] > go_on
        index = np.nonzero(itm)[0][exercise]
        cash[index] = payoff[t, index]
        when[index] = t
        frontier.append(float(S[t, index].max()) if len(index) else np.nan)
    return cash * np.exp(-r * dt), when, frontier[::-1]


def mean_se(x):
    return float(np.mean(x)), float(np.std(x, ddof=1) / np.sqrt(x.size))


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    z, zb = asarray(data["z"]), asarray(data["basket"])
    S0, K, r, sigma, T = 36.0, 40.0, 0.06, 0.2, 1.0
    dt = T / STEPS
    steps = (r - sigma ** 2 / 2) * dt + sigma * np.sqrt(dt) * z
    S = S0 * np.exp(np.cumsum(np.vstack([np.zeros((1, z.shape[1])), steps]), axis=0))
    value, when, frontier = american(S, K, r, dt)
    put, put_se = mean_se(value)
    european = np.exp(-r * T) * np.maximum(K - S[-1], 0)
    # control variate
    cov = np.cov(value, european)
    b = cov[0, 1] / cov[1, 1]
    controlled = value - b * (european - 3.844)
    price, se = mean_se(controlled)
    average = S[1:].mean(axis=0)
    geometric = np.exp(np.log(S[1:]).mean(axis=0))
    asian = np.exp(-r * T) * np.clip(average - K, 0, None)
    asian_geo = np.exp(-r * T) * np.clip(geometric - K, 0, None)
    alive = (S.min(axis=0) > 32) & (S.max(axis=0) < 48)
    barrier = np.exp(-r * T) * np.where(alive, np.maximum(S[-1] - 35, 0), 0.0)
    lookback = S[-1] - np.amin(S, axis=0)
    peak, drawdown = S[0], np.zeros_like(S[0])
    for level in S[1:]:
        peak = np.maximum(peak, level)
        drawdown = np.maximum(drawdown, 1 - level / peak)
    delta = -np.exp(-r * T) * ((S[-1] < K) * S[-1] / S0).mean()
    var95, var99 = np.percentile(S[-1] - S0, [5, 1])
    tail = S[-1][S[-1] - S0 <= var95] - S0
    rho = np.full((5, 5), 0.4)
    np.fill_diagonal(rho, 1.0)
    L = np.linalg.cholesky(rho)
    vols = np.linspace(0.15, 0.35, 5)
    legs = 100 * np.exp((r - vols ** 2 / 2) * T + vols * np.sqrt(T) * (zb @ L.T))
    best = np.exp(-r * T) * np.maximum(np.sort(legs, axis=1)[:, -2] - 105, 0)
    strikes = np.linspace(80, 120, 9)
    smile = np.exp(-r * T) * np.maximum(legs.mean(axis=1)[:, None] - strikes, 0).mean(axis=0)
    hist = np.bincount(when.ravel(), minlength=STEPS + 1)
    corr = np.corrcoef(legs, rowvar=False)
    return dict(american=np.asarray([put, put_se, price, se]), frontier=np.asarray(frontier), asian=np.asarray([*mean_se(asian), *mean_se(asian_geo)]),
                barrier=np.asarray([*mean_se(barrier), *mean_se(lookback)]), drawdown=np.asarray(np.quantile(drawdown, 0.9)), delta=np.asarray(delta),
                risk=np.asarray([float(var95), float(var99), float(tail.mean())]), best=np.asarray([*mean_se(best)]), smile=np.asarray(smile),
                hist=np.asarray(hist), corr=np.asarray(corr), survivors=np.asarray(int(np.count_nonzero(alive))))
