"""A market of agents: quotes of fundamentalists, chartists and noise traders meet in call auctions round after round.

Orders rest in a book of price levels; wealth, positions, stylised facts of the returns. N: agents.
"""
import numpy as np

DEFAULT = 6000
ROUNDS = 260
LEVELS = 400                # ticks of the price grid
TICK = 0.05


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(2024)
    kind = rng.choice(3, N, p=[0.35, 0.25, 0.4])
    worth = 10.0 + numpy.cumsum(0.02 * rng.normal(size=ROUNDS))
    return dict(kind=kind, worth=worth, noise=rng.normal(size=(ROUNDS, N)), awake=rng.random((ROUNDS, N)) < 0.12,
                size=rng.integers(1, 20, N), memory=rng.integers(2, 30, N), cash=rng.uniform(500, 4000, N))


class Book:
    """Volumes bid and offered by price level, with each agent's single resting order."""

    def __init__(self, n):
        self.price = np.full(n, -1, dtype=np.int64)
        self.quantity = np.zeros(n, dtype=np.int64)             # signed: a buy is positive

    def place(self, who, level, quantity):
        self.price[who] = level
        self.quantity[who] = quantity

    def expire(self, age, limit):
        old = (age > limit) & (self.quantity != 0)
        self.quantity[old] = 0
        self.price[old] = -1
        return old.sum()

    def curves(self):
        """Demand at or above and supply at or below each level."""
        live = self.quantity != 0
        level, q = self.price[live], self.quantity[live]
        demand = np.bincount(level, weights=np.maximum(q, 0), minlength=LEVELS)
        supply = np.bincount(level, weights=np.maximum(-q, 0), minlength=LEVELS)
        return demand[::-1].cumsum()[::-1], supply.cumsum()

    def clear(self, last):
        """The price of most volume; among several, of least surplus, then nearest to the last price."""
        demand, supply = self.curves()
        volume = np.minimum(demand, supply)
        top = float(volume.max())
        if top == 0:
            return last, 0.0, np.zeros_like(self.quantity)
        best = np.flatnonzero(volume == top)
        surplus = np.abs(demand - supply)[best]
        best = best[surplus == surplus.min()]
        level = int(best[np.abs(best - last).argmin()])
        filled = np.zeros_like(self.quantity)
        for side in (1, -1):
            q = side * self.quantity
            crossing = np.flatnonzero((q > 0) & (side * (self.price - level) >= 0))
            # price priority, then the order of the agents' numbers
            crossing = crossing[np.argsort(-side * self.price[crossing], kind="stable")]
            before = np.cumsum(q[crossing]) - q[crossing]
            filled[crossing] = side * np.clip(int(top) - before, 0, q[crossing])
        self.quantity -= filled
        self.price[self.quantity == 0] = -1
        return level, top, filled

    def spread(self):
        bids, asks = self.price[self.quantity > 0], self.price[self.quantity < 0]
        if bids.size and asks.size:
            return int(asks.min()) - int(bids.max())
        return -1


def wishes(kind, worth, price, trend, noise):
    """The price each agent thinks right: a fraction of the gap to the value, the trend, or chance."""
    fair = np.select([kind == 0, kind == 1, kind == 2], [worth + 0.2 * noise, price + 3.0 * trend + 0.1 * noise, price + 0.25 * noise])
    return np.clip(fair, 2 * TICK, (LEVELS - 2) * TICK)


def gini(x):
    s = np.sort(x)
    n = s.size
    return (2 * np.arange(1, n + 1) - n - 1) @ s / (n * s.sum())


def correlogram(x, lags):
    d = x - x.mean()
    size = 1 << int(np.ceil(np.log2(2 * len(x))))
    f = np.fft.rfft(d, size)
    full = np.fft.irfft(f * np.conj(f), size)[:lags]
    return full / full[0]


def main(asarray, N, given):
    kind, worth, noise, awake = (asarray(given[k]) for k in ("kind", "worth", "noise", "awake"))
    size, memory, cash = (asarray(given[k]) for k in ("size", "memory", "cash"))
    cash = cash.copy()
    stock = np.full(N, 50)
    age = np.zeros(N, dtype=np.int64)
    decay = 1.0 / memory
    average = np.full(N, 10.0)
    book, last = Book(N), int(10.0 / TICK)
    prices, volumes, spreads, expired, depth = [], [], [], [], np.zeros((2, 41))
    turnover = np.zeros(3)
    for t in range(ROUNDS):
        price = last * TICK
        average += decay * (price - average)
        fair = wishes(kind, worth[t], price, price - average, noise[t])
        active = np.flatnonzero(awake[t])
        buys = fair[active] > price
        level = np.rint(fair[active] / TICK).astype(np.int64)
        level = np.where(buys, level - 1, level + 1)
        afford = np.floor(cash[active] / np.maximum(level * TICK, TICK)).astype(np.int64)
        want = np.where(buys, np.minimum(size[active], np.maximum(afford, 0)), -np.minimum(size[active], stock[active]))
        level[want == 0] = -1
        book.place(active, level, want)
        age += 1
        age[active] = 0
        expired.append(book.expire(age, 15))
        last, volume, filled = book.clear(last)
        cash -= filled * (last * TICK)
        stock += filled
        np.add.at(turnover, kind, np.abs(filled).astype(float))
        prices.append(last)
        volumes.append(volume)
        spreads.append(book.spread())
        away = book.price - last
        near = (book.quantity != 0) & (np.abs(away) <= 20)
        for row, side in enumerate((book.quantity > 0, book.quantity < 0)):
            pick = near & side
            depth[row] += np.bincount(away[pick] + 20, weights=np.abs(book.quantity[pick]), minlength=41)
    path = np.array(prices) * TICK
    returns = np.diff(np.log(path))
    volumes, spreads = np.array(volumes), np.array(spreads)
    z = (returns - returns.mean()) / returns.std()
    tail = np.sort(np.abs(z))[::-1][:20]
    wealth = cash + stock * path[-1]
    order = np.argsort(wealth, kind="stable")
    lorenz = np.cumsum(wealth[order]) / wealth.sum()
    groups = [wealth[kind == k] for k in range(3)]
    # candles of ten rounds
    part = path[:ROUNDS // 10 * 10].reshape(-1, 10)
    candles = np.stack([part[:, 0], part.max(axis=1), part.min(axis=1), part[:, -1]], axis=1)
    vwap = (path * volumes)[:len(part) * 10].reshape(-1, 10).sum(axis=1) / np.maximum(volumes[:len(part) * 10].reshape(-1, 10).sum(axis=1), 1)
    impact = np.polyfit(np.sqrt(volumes[1:]), np.abs(returns), 1)
    return dict(path=path, volumes=volumes, spreads=spreads, expired=np.stack(expired), kurtosis=(z ** 4).mean(), acf=correlogram(returns, 20),
                clustering=correlogram(np.abs(returns), 20), depth=depth / ROUNDS, turnover=turnover, gini=gini(wealth), lorenz=lorenz[::N // 20],
                mean=np.stack([g.mean() for g in groups]), median=np.stack([np.median(g) for g in groups]), candles=candles, vwap=vwap,
                hill=1 / np.log(tail[:-1] / tail[-1]).mean(), stock=np.bincount(np.minimum(stock, 200), minlength=201), impact=impact,
                error=np.abs(path - worth).mean(), money=cash.sum())
