"""Weekly demand of many articles: Holt-Winters on a grid of constants, Croston, intervals, families, stock simulation.

N: articles.
"""
import numpy as np

DEFAULT = 2400
WEEKS, SEASON, AHEAD, DAYS = 208, 52, 26, 300


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    t = numpy.arange(WEEKS)
    level, trend = rng.lognormal(3.5, 1.0, N), rng.normal(0, 0.0015, N)
    wave = 1 + rng.uniform(0, 0.5, N) * numpy.cos(2 * numpy.pi * (t[:, None] - rng.integers(0, 52, N)) / SEASON)
    mean = level * numpy.exp(trend * t[:, None]) * wave
    mean[:, N * 4 // 5:] *= 0.02
    y = rng.poisson(mean * rng.gamma(12, 1 / 12, mean.shape)).astype(float)
    y[100, ::7] *= 3
    return y, rng.integers(0, 8, N), numpy.round(rng.lognormal(2, 0.7, N), 2), rng.uniform(size=(DAYS, N))


def holt_winters(y, alpha, beta, gamma, phi):
    """Damped trend, multiplicative seasons. y is (weeks, articles), the constants broadcast over articles."""
    first, second = y[:SEASON].mean(axis=0), y[SEASON:2 * SEASON].mean(axis=0)
    level, trend = first + np.zeros_like(alpha), (second - first) / SEASON + np.zeros_like(alpha)
    ratio = 0.5 * (y[:SEASON] / np.maximum(first, 0.1) + y[SEASON:2 * SEASON] / np.maximum(second, 0.1))
    season = (ratio[:, None] if level.ndim == 2 else ratio) / 1.2 + 0.2 / 1.2 + np.zeros_like(level)
    errors = np.empty((len(y), *level.shape), dtype=np.float32)
    for t in range(len(y)):
        s = season[t % SEASON]
        base = level + phi * trend
        errors[t] = y[t] - base * s
        new = alpha * (y[t] / s) + (1 - alpha) * base
        trend = beta * (new - level) + (1 - beta) * phi * trend
        level = np.maximum(new, 1e-3)
        season[t % SEASON] = np.clip(gamma * y[t] / level + (1 - gamma) * s, 0.05, 20.0)
    return level, trend, season, errors


def forecast(level, trend, season, phi, start):
    steps = np.cumsum(phi ** np.arange(1, AHEAD + 1)[:, None], axis=0)
    index = (start + np.arange(AHEAD)) % SEASON
    return np.maximum((level + steps * trend) * season[index], 0.0)


def croston(y, a=0.1):
    """Rates of intermittent articles with Syntetos and Boylan's correction."""
    size = np.where(y > 0, y, 0.0).sum(axis=0) / np.maximum((y > 0).sum(axis=0), 1)
    gap, since = np.full_like(size, 2.0), np.ones_like(size)
    for row in y:
        sold = row > 0
        size[sold] += a * (row[sold] - size[sold])
        gap[sold] += a * (since[sold] - gap[sold])
        since = np.where(sold, 1.0, since + 1)
    return (1 - a / 2) * size / gap


def inventory(demand, order_point, lot, uniform):
    """Daily stock under a reorder-point rule with lead times of two to six days."""
    n = len(order_point)
    stock, pipe, column = order_point + lot, np.zeros((8, n)), np.arange(n)
    lost, held, orders = np.zeros(n), np.zeros(n), np.zeros(n, dtype=int)
    for day in range(len(uniform)):
        stock += pipe[0]
        pipe = np.pad(pipe[1:], ((0, 1), (0, 0)))
        want = np.floor(-2.0 * demand * np.log(uniform[day]) * 0.5 + 0.5)
        sold = np.minimum(want, stock)
        stock -= sold
        lost += want - sold
        held += stock
        due = stock + pipe.sum(axis=0) <= order_point
        lead = 1 + (uniform[day - 1] * 5).astype(np.int64)
        pipe[lead, column] += np.where(due, lot, 0.0)
        orders += due
    return lost, held / len(uniform), orders


def reconcile(bottom, family, total_guess):
    """Least-squares shares of the gaps between family forecasts and sums of articles."""
    summing = (family == np.arange(8)[:, None]).astype(float)
    return bottom + summing.T @ np.linalg.solve(summing @ summing.T, total_guess - summing @ bottom)


def main(asarray, N, given):
    y, family, price, uniform = map(asarray, given)
    train, test, typical = y[:-AHEAD], y[-AHEAD:], np.median(y[:-AHEAD], axis=0)
    mad = np.median(np.abs(train - typical), axis=0) * 1.4826
    outlier = train > typical + 8 * np.maximum(mad, 2.0)
    train = np.where(outlier, np.roll(train, SEASON, axis=0), train)
    smooth = (train == 0).mean(axis=0) < 0.3
    x = train[:, smooth]

    grid = np.stack(np.meshgrid(np.array([0.05, 0.2, 0.5]), np.array([0.01, 0.1]), np.array([0.05, 0.2, 0.4]),
                                np.array([0.9, 0.98]), indexing="ij")).reshape(4, -1, 1)
    errors = holt_winters(x, *grid)[-1][SEASON:]
    best = (errors.astype(float)**2).mean(axis=0).argmin(axis=0)
    a, b, g, phi = grid[:, best, 0]
    level, trend, season, errors = holt_winters(x, a, b, g, phi)
    ahead = forecast(level, trend, season, phi, len(x))
    ratio = errors[SEASON:] / np.maximum(x[SEASON:] - errors[SEASON:], 1.0)
    low, high = np.percentile(ratio, [5, 95], axis=0)
    widen = np.sqrt(1 + 0.02 * np.arange(AHEAD))[:, None]
    sold = test[:, smooth]
    covered = (sold >= ahead * (1 + low * widen)) & (sold <= ahead * (1 + high * widen))

    full = np.empty((AHEAD, N))
    full[:, smooth], full[:, ~smooth] = ahead, croston(train[:, ~smooth])
    naive = np.abs(train[SEASON:] - train[:-SEASON]).mean(axis=0)
    mase = np.abs(test - full).mean(axis=0) / np.maximum(naive, 0.1)
    totals = np.stack([train[:, family == f].sum(axis=1) for f in range(8)], axis=1)
    usual = np.array([[0.2], [0.05], [0.2], [0.95]])
    family_ahead = forecast(*holt_winters(totals, *usual)[:3], usual[3], len(totals))
    coherent = np.maximum(reconcile(full.T, family, family_ahead.T).T, 0.0)

    revenue = train[-SEASON:].sum(axis=0) * price
    order = np.argsort(-revenue)
    klass = np.empty(N, dtype=int)
    klass[order] = np.searchsorted(np.array([0.8, 0.95]), np.cumsum(revenue[order]) / revenue.sum())
    daily = np.maximum(full.mean(axis=0), 0.05) / 7
    safety = np.array([2.3, 1.6, 1.0])[klass] * np.sqrt(5 * daily * (1 + daily))
    lot = np.ceil(np.sqrt(2 * 365 * daily * 20 / (0.25 * price)))
    lost, held, orders = inventory(daily, np.ceil(5 * daily + safety), lot, uniform)
    service, number = 1 - lost / np.maximum(daily * DAYS, 1.0), np.bincount(klass, minlength=3)
    by_class = [np.bincount(klass, weights=v, minlength=3) / number for v in (service, held, orders, mase)]
    return dict(outliers=outlier.sum(), smooth=int(smooth.sum()), chosen=np.bincount(best, minlength=grid.shape[1]),
                constants=np.stack([a, b, g, phi]).mean(axis=1), ahead=ahead, covered=covered.mean(axis=1), mase=mase,
                coherent=coherent.sum(axis=1), family=family_ahead, classes=number, by_class=np.stack(by_class),
                lot=lot, held=held, seasonality=(season.max(axis=0) - season.min(axis=0)))
