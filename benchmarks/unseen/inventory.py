"""Stores and their warehouse, a year of days: forecasts, orders, lead times, lost sales, classes, a search of policy.

N: articles; each is sold in eight stores.
"""
import numpy as np

DEFAULT = 3000
STORES, DAYS, WARM = 8, 364, 56


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(60)
    base = rng.lognormal(0.3, 1.2, N)
    share = rng.dirichlet(numpy.full(STORES, 5.0), N) * STORES
    day = numpy.arange(DAYS)
    season = 1 + rng.uniform(0, 0.5, (N, 1)) * numpy.sin(2 * numpy.pi * (day / 364 + rng.uniform(size=(N, 1))))
    mean = (base[:, None] * season * numpy.take([0.8, 0.8, 0.9, 1.0, 1.3, 1.5, 0.7], day % 7))[:, None, :] * share[..., None]
    demand = numpy.minimum(rng.poisson(mean), 30000).astype(numpy.int16).transpose(2, 0, 1).copy()
    price, lead = rng.lognormal(2.0, 0.8, N), rng.integers(2, 8, N)
    late = (rng.uniform(size=(DAYS, N)) < 0.15).astype(numpy.int64) * rng.integers(1, 5, (DAYS, N))
    return demand, price, lead, late, rng.integers(1, 13, N)


def normal_quantile(p):
    """Abramowitz and Stegun 26.2.23."""
    t = np.sqrt(-2.0 * np.log(np.minimum(p, 1 - p)))
    x = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    return np.where(p < 0.5, -x, x)


def classes(value):
    """A, B and C by the cumulated share of turnover."""
    order = np.argsort(-value, kind="stable")
    share = np.cumsum(value[order]) / value.sum()
    kind = np.empty(len(value), dtype=np.int64)
    kind[order] = np.digitize(share, np.array([0.7, 0.9]))
    return kind, share


def weekly_profile(demand):
    week = demand[:WARM].reshape(-1, 7, demand[0].size).sum(axis=(0, 2))
    return week / week.mean()


def share_out(stock, wanted):
    """All that the stores want, or parts in proportion, and what remains to the greatest fractions."""
    total = np.maximum(wanted.sum(axis=1), 1)
    ready = np.minimum(stock, total)
    given, rest = np.divmod(wanted * ready[:, None], total[:, None])
    left = np.minimum(ready, wanted.sum(axis=1)) - given.sum(axis=1)
    rank = np.argsort(np.argsort(-rest, axis=1, kind="stable"), axis=1)
    return given + (rank < left[:, None])


def simulate(demand, lead, late, pack, safety, order_cost, profile, price):
    days, n, _ = demand.shape
    article = np.arange(n)
    ring = int(lead.max()) + 6
    coming = np.zeros((ring, n), dtype=np.int64)
    first = demand[:14].sum(axis=0)
    level, deviation = first / 14, first / 28 + 0.3
    stock, depot = first * 5 // 14 + 1, first.sum(axis=1) * (lead + 10) // 14
    wilson = np.sqrt(2 * order_cost * np.maximum(level.sum(axis=1), 0.05) / (0.25 / 364 * price))
    lot = np.maximum(np.ceil(wilson / pack), 1).astype(np.int64) * pack
    lost, sold, holding = np.zeros_like(stock), np.zeros_like(stock), np.zeros(days)
    orders, empty, fill = np.zeros(n), np.zeros(n), []
    for t in range(days):
        slot = t % ring
        depot += coming[slot]
        coming[slot] = 0
        want = demand[t].astype(np.int64)
        sales = np.minimum(want, stock)
        stock -= sales
        if t >= WARM:
            sold += sales
            lost += want - sales
            empty += (stock == 0).mean(axis=1)
        error = want / profile[t % 7] - level
        level += 0.08 * error
        deviation += 0.05 * (np.abs(error) - deviation)
        target = np.ceil(2.0 * np.maximum(level, 0) + safety[:, None] * 1.25 * deviation * 2**0.5).astype(np.int64)
        sent = share_out(depot, np.maximum(target - stock, 0))
        stock += sent
        depot -= sent.sum(axis=1)
        spread = np.sqrt((deviation**2).sum(axis=1) * (lead + 1.0))
        reorder = np.ceil(level.sum(axis=1) * (lead + 1) + safety * 1.25 * spread)
        position = depot + coming.sum(axis=0)
        amount = np.where(position <= reorder, np.ceil((reorder - position + 1) / lot).astype(np.int64) * lot, 0)
        coming[(t + lead + late[t]) % ring, article] += amount
        orders += amount > 0
        holding[t] = ((stock.sum(axis=1) + depot) * price).sum()
        if t % 28 == 27:
            fill.append(sales.sum() / want.sum())
    return dict(sold=sold, lost=lost, holding=holding, orders=orders, empty=empty / (days - WARM),
                fill=np.stack(fill), level=level, deviation=deviation)


def main(asarray, N, given):
    demand, price, lead, late, pack = (asarray(g) for g in given)
    profile = weekly_profile(demand).tolist()
    turnover = demand[:WARM].sum(axis=(0, 2)) * price
    kind, share = classes(turnover)
    base = np.choose(kind, np.array([0.98, 0.95, 0.90]))
    costs, services = [], []
    for shift in (-1.0, -0.5, 0.0, 0.5, 1.0):                      # a sample of the articles, to tune the safety
        some = slice(0, N, 6)
        r = simulate(demand[:182, some].copy(), lead[some], late[:182, some], pack[some],
                     np.maximum(normal_quantile(base[some]) + shift, 0.1), 12.0, profile, price[some])
        costs.append(float(r["holding"][WARM:].sum() * 0.25 / 364 + (r["lost"].sum(axis=1) * price[some] * 0.4).sum()))
        services.append(r["sold"].sum() / (r["sold"] + r["lost"]).sum())
    best = np.argmin(np.array(costs))
    safety = np.maximum(normal_quantile(base) + 0.5 * (int(best) - 2), 0.1)
    r = simulate(demand, lead, late, pack, safety, 12.0, profile, price)
    fill = r["sold"].sum(axis=1) / np.maximum((r["sold"] + r["lost"]).sum(axis=1), 1)
    by_class = np.stack([np.bincount(kind, weights=w, minlength=3) for w in (fill, r["empty"], r["orders"])])
    by_class /= np.bincount(kind, minlength=3)
    worst = np.lexsort(np.stack([np.arange(N), fill]))[:20]
    daily = demand.sum(axis=(1, 2)).astype(float)
    lags = np.array([np.corrcoef(daily[:-k], daily[k:])[0, 1] for k in (1, 2, 7, 14)])
    weeks = demand[WARM:].reshape(-1, 7, N, STORES).sum(axis=1, dtype=np.int64)
    variation = weeks.std(axis=0) / np.maximum(weeks.mean(axis=0), 1e-9)
    table = np.histogram2d(np.log10(turnover + 1), np.minimum(variation.mean(axis=1), 3.0), bins=(6, 6))[0]
    gini = 1 - 2 * np.cumsum(np.sort(turnover)).sum() / (N * turnover.sum()) + 1 / N
    return dict(costs=np.array(costs), services=np.stack(services), fill=r["fill"], by_class=by_class, worst=worst,
                classes=np.bincount(kind), share=share[::N // 10], holding=r["holding"][::7], lags=lags,
                table=table, gini=gini,
                lost=np.percentile(r["lost"].sum(axis=1), [50, 90, 99]), stores=r["sold"].sum(axis=0),
                level=r["level"].sum(axis=0), fit=np.polyfit(np.log(r["level"].clip(0.01, None).ravel()),
                                                             np.log(r["deviation"].ravel()), 1))
