"""A credit portfolio: bootstrapped zero curve, hazard curves from CDS, Student copula losses, tranche prices, risk contributions, sensitivities. N: scenarios."""
from dataclasses import dataclass

import numpy
import numpy as np

DEFAULT = 12000
NAMES, SECTORS = 125, 5


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(2008)
    swaps = 0.02 + 0.018 * (1 - numpy.exp(-numpy.arange(1, 31) / 6.0)) + rng.normal(0, 1e-4, 30)
    spread = rng.lognormal(-4.4, 0.6, NAMES)
    slope = 1 + 0.08 * numpy.arange(5) * rng.uniform(0.2, 1.5, (NAMES, 1))
    return dict(swaps=swaps, cds=spread[:, None] * slope, notional=rng.lognormal(1.0, 0.7, NAMES), recovery=rng.uniform(0.3, 0.5, NAMES),
                sector=rng.integers(0, SECTORS, NAMES),
                market=rng.normal(size=N), industry=rng.normal(size=(N, SECTORS)), own=rng.normal(size=(N, NAMES)), chi=rng.chisquare(5, N),
                loading=rng.uniform(0.35, 0.6, NAMES))


@dataclass
class Curve:
    times: object
    rates: object      # continuously compounded, flat forwards between the nodes

    def discount(self, t):
        total = np.interp(t, self.times, self.rates * self.times)
        tail = np.maximum(t - self.times[-1], 0) * self.rates[-1]
        return np.exp(-total - tail)

    def shifted(self, by):
        return Curve(self.times, self.rates + by)


def bootstrap(swaps):
    """Par swap rates, yearly: each discount factor follows from those before it."""
    n = len(swaps)
    df = np.zeros(n + 1)
    df[0] = 1.0
    annuity = 0.0
    for k in range(n):
        df[k + 1] = (1 - swaps[k] * annuity) / (1 + swaps[k])
        annuity = annuity + df[k + 1]
    t = np.arange(n + 1, dtype=float)
    rates = np.zeros(n + 1)
    rates[1:] = -np.log(df[1:]) / t[1:]
    rates[0] = rates[1]
    return Curve(t, rates)


class Hazard:
    """Piecewise constant default intensities for all names at once, by Newton's method tenor after tenor."""
    tenors = [1.0, 2.0, 3.0, 5.0, 7.0]

    def __init__(self, cds, recovery, curve):
        self.ends = np.array([0.0] + self.tenors)
        self.rate = np.zeros(cds.shape)
        self.rounds = 0
        for k in range(len(self.tenors)):
            h = cds[:, k] / (1 - recovery)
            for _ in range(20):
                self.rate[:, k:] = h[:, None]
                value = self.value(cds[:, k], recovery, curve, self.tenors[k])
                self.rate[:, k:] = h[:, None] + 1e-6
                slope = (self.value(cds[:, k], recovery, curve, self.tenors[k]) - value) / 1e-6
                step = value / slope
                h = np.maximum(h - step, 1e-6)
                self.rounds += 1
                if np.abs(step).max() < 1e-9:
                    break
            self.rate[:, k:] = h[:, None]

    def survival(self, t):
        span = np.clip(t[:, None] - self.ends[:-1], 0, self.ends[1:] - self.ends[:-1])
        span[:, -1] += np.maximum(t - self.ends[-1], 0)
        return np.exp(-self.rate @ span.T)

    def value(self, spread, recovery, curve, maturity):
        t = np.linspace(0, maturity, int(4 * maturity) + 1)
        s, d = self.survival(t), curve.discount(t)
        dies, middle = s[:, :-1] - s[:, 1:], np.sqrt(d[1:] * d[:-1])
        premium = spread * (0.25 * (d[1:] * (s[:, 1:] + 0.5 * dies)).sum(axis=1))
        return premium - (1 - recovery) * (dies * middle).sum(axis=1)


def default_times(hazard, u, horizon, steps=64):
    """Times of default where the survival falls to u, by looking up each name's curve; beyond the horizon: inf."""
    t = np.linspace(0, horizon, steps + 1)
    s = hazard.survival(t)
    tau = np.full(u.shape, np.inf)
    for n in range(u.shape[1]):
        dead = u[:, n] > s[n, -1]
        tau[dead, n] = np.interp(u[dead, n], s[n, ::-1], t[::-1])
    return tau


def copula(data, correlation, nu=5):
    """Uniform draws with a Student copula by ranks within the sample, so no special function is needed."""
    sector, loading = data["sector"], data["loading"] * correlation
    common = np.sqrt(0.6) * data["market"][:, None] + np.sqrt(0.4) * data["industry"]
    x = loading * common[:, sector] + np.sqrt(1 - loading ** 2) * data["own"]
    x *= np.sqrt(nu / data["chi"])[:, None]
    rank = np.empty(x.shape, dtype=np.int64)
    order = np.argsort(x, axis=0)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(len(x))[:, None], x.shape), axis=0)
    return (rank + 0.5) / len(x)


def tranche(loss, lower, upper, total):
    return np.clip(loss - lower * total, 0, (upper - lower) * total) / ((upper - lower) * total)


def portfolio(tau, notional, recovery, curve, horizon=5.0):
    """Loss at the quarters, the spread of each tranche, and the losses at the horizon."""
    quarters = np.linspace(0, horizon, int(4 * horizon) + 1)
    severity = notional * (1 - recovery)
    total = notional.sum()
    loss = np.stack([((tau <= q) * severity).sum(axis=1) for q in quarters], axis=1)
    d = curve.discount(quarters)
    rates = []
    for lower, upper in ((0, 0.03), (0.03, 0.06), (0.06, 0.09), (0.09, 0.12), (0.12, 0.22)):
        gone = tranche(loss, lower, upper, total)
        expected = gone.mean(axis=0)
        protection = ((expected[1:] - expected[:-1]) * np.sqrt(d[1:] * d[:-1])).sum()
        annuity = 0.25 * (d[1:] * (1 - (expected[1:] + expected[:-1]) / 2)).sum()
        rates.append(protection / annuity)
    return np.stack(rates), loss


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    data = {k: asarray(v) for k, v in data.items()}
    curve = bootstrap(data["swaps"])
    hazard = Hazard(data["cds"], data["recovery"], curve)
    notional, recovery = data["notional"] / data["notional"].sum(), data["recovery"]
    u = copula(data, 1.0)
    tau = default_times(hazard, u, 5.0)
    spreads, loss = portfolio(tau, notional, recovery, curve)
    end = loss[:, -1]
    level = np.quantile(end, 0.99)
    tail = end >= level
    shortfall = end[tail].mean()
    share = ((tau[tail] <= 5.0) * (notional * (1 - recovery))).mean(axis=0) / shortfall
    by_sector = np.bincount(data["sector"], weights=share, minlength=SECTORS)
    # sensitivities: to correlation, to the rates, to the spreads
    tilted = [portfolio(default_times(hazard, copula(data, c), 5.0), notional, recovery, curve)[0] for c in (0.6, 1.3)]
    rates_up = portfolio(tau, notional, recovery, curve.shifted(1e-2))[0] - spreads
    wider = Hazard(data["cds"] * 1.1, recovery, curve)
    spreads_up = portfolio(default_times(wider, u, 5.0), notional, recovery, curve)[0] - spreads
    count = np.isfinite(tau).sum(axis=1)
    histogram = np.bincount(count, minlength=NAMES + 1)[:40]
    pair = (np.isfinite(tau).astype(np.float32).T @ np.isfinite(tau).astype(np.float32)) / N
    p = np.diagonal(pair)
    dependence = (pair - p[:, None] * p) / np.sqrt((p * (1 - p))[:, None] * (p * (1 - p)) + 1e-12)
    return dict(zero=curve.rates, hazard=hazard.rate, rounds=hazard.rounds, spreads=spreads, mean=loss.mean(axis=0), level=level, shortfall=shortfall,
                by_sector=by_sector, share=share,
                tilted=np.stack(tilted), rates_up=rates_up, spreads_up=spreads_up, histogram=histogram,
                dependence=(dependence.sum() - np.trace(dependence)) / NAMES / (NAMES - 1))
