"""Option pricing: Black-Scholes Monte Carlo with antithetic paths, Asian and barrier payoffs, Longstaff-Schwartz, Greeks, risk. N: pairs of paths."""
import math

import numpy
import numpy as np

DEFAULT = 10000
STEPS = 50


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(2024)
    return dict(z=rng.standard_normal((N, STEPS)))


def norm_cdf(x):
    """Abramowitz and Stegun 26.2.17, for arrays."""
    k = 1 / (1 + 0.2316419 * np.abs(x))
    poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * poly
    return np.where(x >= 0, 1 - tail, tail)


def black_scholes(S, K, T, r, sigma, kind="call"):
    d1 = (np.log(S / K) + (r + sigma ** 2 / 2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)
    if kind == "call":
        return S * norm_cdf(d1) - K * np.exp(-r * T) * norm_cdf(d2)
    return K * np.exp(-r * T) * norm_cdf(-d2) - S * norm_cdf(-d1)


def implied_vol(price, S, K, T, r, tol=1e-9):
    lo, hi = np.full_like(K, 1e-3), np.full_like(K, 2.0)
    for it in range(60):
        mid = 0.5 * (lo + hi)
        high = black_scholes(S, K, T, r, mid) > price
        hi[high] = mid[high]
        lo[~high] = mid[~high]
        if np.max(hi - lo) < tol:
            break
    return 0.5 * (lo + hi)


def paths(z, S0, r, sigma, dt):
    z = np.concatenate([z, -z], axis=0)
    steps = (r - 0.5 * sigma ** 2) * dt + sigma * np.sqrt(dt) * z
    S = np.empty((z.shape[0], z.shape[1] + 1))
    S[:, 0] = S0
    S[:, 1:] = S0 * np.exp(np.cumsum(steps, axis=1))
    return S


def price(payoff, discount):
    pairs = 0.5 * (payoff[:len(payoff) // 2] + payoff[len(payoff) // 2:]) * discount
    return pairs.mean(), pairs.std(ddof=1) / math.sqrt(len(pairs))


def longstaff_schwartz(S, K, r, dt, method):
    payoff = np.maximum(K - S, 0)
    cash = payoff[:, -1].copy()
    when = np.full(len(S), S.shape[1] - 1)
    boundary = np.full(S.shape[1], np.nan)
    for t in range(S.shape[1] - 2, 0, -1):
        cash *= math.exp(-r * dt)
        itm = payoff[:, t] > 0
        if itm.sum() < 50:
            continue
        x, y = S[itm, t] / K, cash[itm]
        if method == "lstsq":
            A = np.column_stack([np.ones_like(x), np.exp(-x / 2), np.exp(-x / 2) * (1 - x), x ** 2])
            coef = np.linalg.lstsq(A, y, rcond=None)[0]
            hold = A @ coef
        else:
            hold = np.polyval(np.polyfit(x, y, 3), x)
        exercise = np.zeros(len(S), dtype=bool)
        exercise[itm] = payoff[itm, t] > hold
        cash[exercise] = payoff[exercise, t]
        when[exercise] = t
        if exercise.any():
            boundary[t] = S[exercise, t].max()
    return np.mean(cash) * math.exp(-r * dt), when, boundary


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    z = asarray(data["z"])
    S0, K, T, r, sigma = 100.0, 105.0, 1.0, 0.04, 0.25
    dt = T / STEPS
    S = paths(z, S0, r, sigma, dt)
    discount = math.exp(-r * T)
    call, call_err = price(np.maximum(S[:, -1] - K, 0), discount)
    asian, asian_err = price(np.maximum(S[:, 1:].mean(axis=1) - K, 0), discount)
    control = np.cov(np.stack([np.maximum(S[:, 1:].mean(axis=1) - K, 0), np.maximum(np.exp(np.log(S[:, 1:]).mean(axis=1)) - K, 0)]))
    alive = (S.max(axis=1) < 140.0) & np.all(S > 75.0, axis=1)
    barrier, _ = price(np.where(alive, np.maximum(S[:, -1] - K, 0), 0.0), discount)
    up, down = (price(np.maximum(paths(z, S0 * (1 + e), r, sigma, dt)[:, -1] - K, 0), discount)[0] for e in (0.01, -0.01))
    delta, gamma = (up - down) / (0.02 * S0), (up - 2 * call + down) / (0.01 * S0) ** 2
    american, when, boundary = longstaff_schwartz(S, K, r, dt, "lstsq")
    american3, _, _ = longstaff_schwartz(S, K, r, dt, "polyfit")
    exercised, counts = np.unique(when, return_counts=True)
    strikes = np.linspace(70, 140, 141)
    smile = 0.2 + 0.1 * np.log(strikes / S0) ** 2
    vol = implied_vol(black_scholes(S0, strikes, T, r, smile), S0, strikes, T, r)
    pnl = S[:, 10] - S0
    var = np.percentile(pnl, [1, 5])
    shortfall = pnl[pnl <= var[1]].mean()
    return dict(prices=np.array([float(p) for p in (call, asian, barrier)]), errors=np.asarray([float(call_err), float(asian_err)]),
                control=np.asarray(control), greeks=np.asarray([float(delta), float(gamma)]), american=np.asarray(american),
                american3=np.asarray(american3), boundary=np.asarray(boundary), exercised=np.asarray(exercised), counts=np.asarray(counts),
                vol=np.asarray(vol), var=np.asarray(var), shortfall=np.asarray(shortfall), put=np.asarray(black_scholes(S0, strikes, T, r, 0.25, "put")))
