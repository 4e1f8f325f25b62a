"""A portfolio backtest: momentum, volatility and reversal signals, ranks, shrunk covariance, monthly rebalancing with costs, risk report. N: days."""
import numpy
import numpy as np

DEFAULT = 3000
ASSETS, SECTORS, WARMUP, EVERY, COST, BOOT = 150, 8, 260, 21, 0.001, 400


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(40)
    sector = rng.integers(0, SECTORS, ASSETS)
    vol = numpy.zeros(N)
    vol[0] = 0.01
    for t in range(1, N):
        vol[t] = 0.01 * 0.05 + 0.95 * vol[t - 1] + 0.0012 * abs(rng.normal()) - 0.0009
    market = 0.0003 + vol * rng.normal(size=N)
    groups = 0.006 * rng.normal(size=(N, SECTORS))
    returns = numpy.outer(market, rng.uniform(0.5, 1.5, ASSETS)) + groups[:, sector] + rng.uniform(0.008, 0.025, ASSETS) * rng.standard_t(5, (N, ASSETS)) * 0.7
    price = 100 * numpy.exp(numpy.cumsum(returns, axis=0))
    listed = rng.integers(0, N // 3, ASSETS) * (rng.random(ASSETS) < 0.2)
    price[numpy.arange(N)[:, None] < listed[None, :]] = numpy.nan
    return dict(price=price, sector=sector, start=rng.integers(0, N - WARMUP - 20, (BOOT, (N - WARMUP) // 20 + 1)))


def rolling(x, window):
    c1 = np.cumsum(np.where(np.isnan(x), 0.0, x), axis=0)
    c2 = np.cumsum(np.where(np.isnan(x), 0.0, x ** 2), axis=0)
    bad = np.cumsum(np.isnan(x), axis=0)
    mean, std = np.full(x.shape, np.nan), np.full(x.shape, np.nan)
    m = (c1[window:] - c1[:-window]) / window
    s = (c2[window:] - c2[:-window]) / window - m ** 2
    ok = bad[window:] == bad[:-window]
    mean[window:] = np.where(ok, m, np.nan)
    std[window:] = np.where(ok, np.sqrt(np.maximum(s, 1e-12)), np.nan)
    return mean, std


def ewma(x, halflife):
    alpha = 1 - 0.5 ** (1 / halflife)
    out = np.zeros_like(x)
    out[0] = x[0]
    for t in range(1, len(x)):
        out[t] = alpha * x[t] + (1 - alpha) * out[t - 1]
    return out


def rank_score(signal, ok):
    rank = np.argsort(np.argsort(np.where(ok, signal, np.inf), axis=1), axis=1).astype(np.float64)
    count = ok.sum(axis=1, keepdims=True)
    return np.where(ok, (rank + 0.5) / np.maximum(count, 1) - 0.5, 0.0)


def shrunk_covariance(R):
    n, p = R.shape
    X = R - R.mean(axis=0)
    S = X.T @ X / n
    mu = np.trace(S) / p
    d2 = np.sum((S - mu * np.eye(p)) ** 2) / p
    b2 = np.minimum((np.sum((X ** 2).T @ (X ** 2)) / n - np.sum(S ** 2)) / n / p, d2)
    lam = b2 / d2
    return lam * mu * np.eye(p) + (1 - lam) * S, lam


def target_weights(score, R, ok, onehot):
    live = np.flatnonzero(ok)
    C, lam = shrunk_covariance(R[:, live])
    s = score[live] - score[live].mean()
    H = onehot[live]
    neutral = s - H @ ((H.T @ s) / np.maximum(H.sum(axis=0), 1))
    w = np.linalg.solve(C, neutral)
    w -= w.mean()
    cap = 3.0 / len(live)
    w = np.clip(w / np.abs(w).sum(), -cap, cap)
    full = np.zeros(len(ok))
    full[live] = w / np.abs(w).sum()
    risk = np.sqrt(full[live] @ C @ full[live] * 252)
    return full, lam, risk


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    price, sector, start = asarray(data["price"]), asarray(data["sector"]), asarray(data["start"])
    R = np.full_like(price, np.nan)
    R[1:] = price[1:] / price[:-1] - 1
    clean = np.nan_to_num(R)
    mean250, std60 = rolling(R, 250)[0], rolling(R, 60)[1]
    mean20 = rolling(R, 20)[0]
    ok = ~(np.isnan(mean250) | np.isnan(std60))
    momentum = rank_score(mean250 - 20 / 250 * mean20, ok)
    low_vol, reversal = rank_score(-std60, ok), rank_score(-rolling(R, 5)[0], ok)
    trend = rank_score(ewma(clean, 30.0) - ewma(clean, 90.0), ok)
    score = 0.4 * momentum + 0.3 * low_vol + 0.2 * reversal + 0.1 * trend
    onehot = (sector[:, None] == np.arange(SECTORS)[None, :]).astype(float)
    w, wealth, peak = np.zeros(ASSETS), 1.0, 1.0
    daily, turnover, shrinkage, risks, drawdown = np.zeros(N - WARMUP), [], [], [], np.zeros(N - WARMUP)
    for t in range(WARMUP, N):
        pnl = w @ clean[t]
        w = w * (1 + clean[t]) / (1 + pnl)
        if (t - WARMUP) % EVERY == 0:
            target, lam, risk = target_weights(score[t], clean[t - 249:t + 1], ok[t], onehot)
            target *= min(0.08 / float(risk), 4.0)
            if drawdown[t - WARMUP - 1] < -0.15:
                target *= 0.5
            traded = np.abs(target - w).sum()
            pnl = pnl - COST * traded
            w = target
            for record, value in ((turnover, traded), (shrinkage, lam), (risks, risk)):
                record.append(value)
        wealth = wealth * (1 + pnl)
        peak = np.maximum(peak, wealth)
        daily[t - WARMUP] = pnl
        drawdown[t - WARMUP] = wealth / peak - 1
    sharpe = daily.mean() / daily.std() * 252 ** 0.5
    ordered = np.sort(daily)
    tail = int(0.05 * len(daily))
    sample = daily[(start[:, :, None] + np.arange(20)).reshape(BOOT, -1)[:, :len(daily)]]
    boot = np.sort(sample.mean(axis=1) / sample.std(axis=1) * 252 ** 0.5)
    market = np.nanmean(R[WARMUP:], axis=1)
    A = np.stack([np.ones(len(daily)), market, market ** 2], axis=1)
    beta = np.linalg.lstsq(A, daily, rcond=None)[0]
    forward = clean[WARMUP + 1:]
    ic = np.array([float(np.corrcoef(score[t], clean[t + 1])[0, 1]) for t in range(WARMUP, N - 1, 5)])
    quint = np.digitize(score[WARMUP:-1], np.array([-0.1503, -0.0507, 0.0507, 0.1503]))
    spread = np.stack([np.where(quint == q, forward, 0).sum(axis=1) / np.maximum((quint == q).sum(axis=1), 1) for q in range(5)])
    months = daily[:len(daily) // 21 * 21].reshape(-1, 21).sum(axis=1)
    return dict(daily=np.asarray(daily), drawdown=np.asarray(drawdown), sharpe=np.asarray(sharpe), wealth=np.asarray(wealth),
                var=np.asarray(ordered[tail]), shortfall=np.asarray(ordered[:tail].mean()), interval=np.asarray(boot[[BOOT // 40, BOOT // 2, -BOOT // 40]]),
                beta=np.asarray(beta), ic=np.asarray(ic), spread=np.asarray(spread.mean(axis=1)), months=np.asarray(months), w=np.asarray(w),
                turnover=np.asarray(turnover), shrinkage=np.asarray(shrinkage), risks=np.asarray(risks))
