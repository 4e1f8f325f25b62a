"""Actuarial tables.

Whittaker graduation, Lee-Carter by SVD and Poisson Newton steps, simulated futures, life tables, commutation columns,
reserves of a portfolio. N: policies.
"""
import numpy as np

DEFAULT = 300000
AGES, YEARS, AHEAD, FUTURES = 101, 50, 40, 1000


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1912)
    x, t = numpy.arange(AGES)[:, None], numpy.arange(YEARS)
    m = (0.004 * numpy.exp(-1.2 * x) + 2e-5 * numpy.exp(0.105 * x) * numpy.exp(-0.015 * t)
         + 4e-4 * numpy.exp(-((x - 22) / 8.0)**2) + 1e-4)
    exposure = numpy.round(60000 * numpy.exp(-(x / 75.0)**4) + 60 + 0 * t)
    deaths = rng.poisson(exposure * m)
    return (deaths.astype(float), exposure, rng.normal(size=(FUTURES, AHEAD)), rng.integers(20, 65, N),
            rng.integers(5, 35, N), rng.integers(0, 3, N), rng.integers(0, 30, N),
            numpy.round(rng.lognormal(11, 0.6, N), -3), numpy.array([0.012, 0.02, 0.027, 0.031, 0.033]))


def whittaker(rates, weights, smooth=200.0, order=3):
    """All columns are graduated at once: one small system for each year."""
    n, years = rates.shape
    D = np.eye(n)
    for _ in range(order):
        D = D[1:] - D[:-1]
    W = np.zeros((years, n, n))
    i = np.arange(n)
    W[:, i, i] = weights.T
    return np.linalg.solve(W + smooth * (D.T @ D), (weights * rates).T[..., None])[..., 0].T


def lee_carter(deaths, exposure):
    logm = np.log((deaths + 0.5) / exposure)
    a = logm.mean(axis=1, keepdims=True)
    U, S, Vt = np.linalg.svd(logm - a, full_matrices=False)
    b = U[:, :1] / U[:, :1].sum()
    k = S[0] * Vt[:1] * U[:, 0].sum()
    explained = S[0]**2 / (S**2).sum()
    for _ in range(12):                         # Poisson likelihood, one block at a time
        fitted = exposure * np.exp(a + b * k)
        a = a + ((deaths - fitted).sum(axis=1, keepdims=True)) / fitted.sum(axis=1, keepdims=True)
        fitted = exposure * np.exp(a + b * k)
        k = k + ((deaths - fitted) * b).sum(axis=0, keepdims=True) / (fitted * b * b).sum(axis=0, keepdims=True)
        shift = k.mean()
        k, a = k - shift, a + b * shift
        fitted = exposure * np.exp(a + b * k)
        b = b + ((deaths - fitted) * k).sum(axis=1, keepdims=True) / (fitted * k * k).sum(axis=1, keepdims=True)
        total = b.sum()
        b, k = b / total, k * total
    fitted = exposure * np.exp(a + b * k)
    ratio = np.where(deaths > 0, deaths, 1.0) / fitted
    deviance = 2 * (np.where(deaths > 0, deaths * np.log(ratio), 0.0) - deaths + fitted).sum()
    return a, b, k, explained, deviance


def survivors(q, axis=0):
    """l_x with radix 1: q along the axis, one more entry in front."""
    p = np.cumprod(1.0 - q, axis=axis)
    one = np.ones_like(np.take(p, np.arange(1), axis=axis))
    return np.concatenate([one, p], axis=axis)


def expectation(m):
    q = 1.0 - np.exp(-m)
    q[-1] = 1.0
    l = survivors(q)
    L = 0.5 * (l[1:] + l[:-1])
    return np.cumsum(L[::-1], axis=0)[::-1] / np.maximum(l[:-1], 1e-300)


class Commutation:
    def __init__(self, q, rate):
        self.v = 1.0 / (1.0 + rate)
        x = np.arange(len(q) + 1)
        l = survivors(q)
        self.D = l * self.v**x
        self.C = (l[:-1] - l[1:]) * self.v**(x[:-1] + 1)
        self.N = np.cumsum(self.D[::-1])[::-1]
        self.M = np.concatenate([np.cumsum(self.C[::-1])[::-1], np.zeros(1)])

    def annuity(self, x, n):
        return (self.N[x] - self.N[x + n]) / self.D[x]

    def term(self, x, n):
        return (self.M[x] - self.M[x + n]) / self.D[x]

    def endowment(self, x, n):
        return (self.M[x] - self.M[x + n] + self.D[x + n]) / self.D[x]

    def whole(self, x):
        return self.M[x] / self.D[x]


def reserves(c, age, term, kind, passed, amount):
    """Net level premium reserves, prospectively; 0: term, 1: endowment, 2: whole of life with premiums for the term."""
    now, left = age + passed, term - passed
    alive = left > 0
    left = np.maximum(left, 0)
    start = np.where(kind == 0, c.term(age, term), np.where(kind == 1, c.endowment(age, term), c.whole(age)))
    later = np.where(kind == 0, c.term(now, left), np.where(kind == 1, c.endowment(now, left), c.whole(now)))
    premium = start / c.annuity(age, term)
    value = later - premium * c.annuity(now, left)
    value[~alive & (kind < 2)] = 0.0
    return premium * amount, value * amount


def main(asarray, N, given):
    deaths, exposure, normal, age, term, kind, passed, amount, curve = (asarray(v) for v in given)
    crude = deaths / exposure
    smooth = np.exp(whittaker(np.log(crude + 1e-5), np.maximum(deaths, 0.2)))
    a, b, k, explained, deviance = lee_carter(deaths, exposure)
    steps = np.diff(k[0])
    drift, sigma = steps.mean(), steps.std(ddof=1)
    future = k[0, -1] + np.cumsum(drift + sigma * normal, axis=1)
    rates = np.exp(a[:, :, None] + b[:, :, None] * future.T)            # age, year ahead, future: broadcast by parts
    e0 = expectation(rates.reshape(AGES, -1)).reshape(AGES, AHEAD, FUTURES)
    period = expectation(np.exp(a + b * k))
    band = np.percentile(e0[np.array([0, 65])], [5, 50, 95], axis=-1)

    # a pensioner aged 65 follows the diagonal of the projected table
    along = np.minimum(65 + np.arange(AHEAD - 4), AGES - 1)
    cohort = rates[along, np.arange(AHEAD - 4)]
    alive = survivors(1 - np.exp(-cohort))[1:]
    spot = np.interp(np.arange(1, AHEAD - 3), np.array([1.0, 5.0, 10.0, 20.0, 30.0]), curve)
    discount = (1 + spot)**-np.arange(1, AHEAD - 3)
    pension = (alive * discount[:, None]).sum(axis=0)
    duration = (alive * (discount * np.arange(1, AHEAD - 3))[:, None]).sum(axis=0) / pension
    worst = np.sort(pension)[::-1]

    q = 1 - np.exp(-np.exp(a + b * k[:, -1:])[:, 0])
    q[-1] = 1.0
    passed = np.minimum(passed, term)
    premium, value = [], []
    for rate in (0.01, 0.02, 0.03):
        c = Commutation(np.concatenate([q[:-1], np.full(30, 0.6)]), rate)
        p, v = reserves(c, age, term, kind, passed, amount)
        premium.append(p)
        value.append(v)
    premium, value = np.stack(premium), np.stack(value)
    by_kind = np.zeros((3, 3))
    for j in range(3):
        by_kind[:, j] = value[:, kind == j].sum(axis=1)
    decade = np.bincount((age + passed) // 10, weights=value[1], minlength=11)
    strain = (amount * q[np.minimum(age + passed, AGES - 1)] * (value[1] < amount)).sum()
    return dict(smooth=smooth[:, ::7], a=a, b=b, k=k, explained=explained, deviance=deviance, drift=drift,
                sigma=sigma, period=period[::10], band=band, pension=pension.mean(),
                risk=worst[:FUTURES // 20].mean(), duration=duration.mean(),
                premium=premium[:, :200], by_kind=by_kind, decade=decade, strain=strain,
                negative=(value < 0).mean(axis=1))
