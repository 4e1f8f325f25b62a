"""A sales table without a database: joins by searchsorted, group-by, top per group, rolling windows, sessions, cohorts, RFM quantiles, anomalies, market baskets. N: order lines."""
import numpy
import numpy as np

DEFAULT = 600000
DAYS, SHOPS, TOP = 365, 40, 3


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(12)
    customers, products = max(N // 20, 50), 1200
    bill = numpy.sort(rng.integers(0, N // 4, N))
    when, buyer, place = numpy.sort(rng.integers(0, DAYS * 86400, N // 4)), (customers * rng.random(N // 4) ** 2).astype(numpy.int64), rng.integers(0, SHOPS,
                N // 4)
    sku = numpy.sort(rng.permutation(10 * products)[:products]).astype(numpy.int32)
    weight = 1 / (1 + numpy.arange(products)) ** 0.8
    return dict(second=when[bill], customer=buyer[bill], item=rng.permutation(sku)[rng.choice(products, N, p=weight / weight.sum())],
                shop=place[bill].astype(numpy.int16), quantity=rng.geometric(0.6, N).astype(numpy.int32), discount=numpy.where(rng.random(N) < 0.2,
                rng.random(N) * 0.4, 0),
                sku=rng.permutation(sku), price=numpy.round(rng.lognormal(2.5, 0.8, products), 2), category=rng.integers(0, 24, products).astype(numpy.int8))


def lookup(keys, wanted):
    """For each wanted key its place among unsorted unique keys; -1 where it isn't there."""
    order = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    place = order[at]
    return np.where(keys[place] == wanted, place, -1)


class GroupBy:
    def __init__(self, key):
        self.names, self.group = np.unique(key, return_inverse=True)
        self.n = len(self.names)
        self.count = np.bincount(self.group, minlength=self.n)

    def sum(self, v):
        return np.bincount(self.group, weights=v, minlength=self.n)

    def mean(self, v):
        return self.sum(v) / self.count

    def std(self, v):
        m = self.mean(v)
        return np.sqrt(self.sum((v - m[self.group]) ** 2) / np.maximum(self.count - 1, 1))

    def max(self, v):
        out = np.full(self.n, np.iinfo(np.int32).min, dtype=np.int32)
        np.maximum.at(out, self.group, v)
        return out

    def min(self, v):
        out = np.full(self.n, np.iinfo(np.int32).max, dtype=np.int32)
        np.minimum.at(out, self.group, v)
        return out

    def median(self, v):
        by_value = np.argsort(v, kind="stable")
        order = by_value[np.argsort(self.group[by_value], kind="stable")]
        begin = np.cumsum(self.count) - self.count
        lo, hi = begin + (self.count - 1) // 2, begin + self.count // 2
        s = v[order]
        return (s[lo] + s[hi]) / 2


def top_per_group(outer, inner, value, n_outer, n_inner, k):
    table = np.zeros((n_outer, n_inner))
    np.add.at(table, (outer, inner), value)
    order = np.argsort(-table, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(table, order, axis=1)


def rolling(x, window):
    """Trailing mean and standard deviation along the last axis; nan in the run-up."""
    pad = np.zeros(x.shape[:-1] + (1,))
    c1, c2 = np.concatenate([pad, np.cumsum(x, axis=-1)], axis=-1), np.concatenate([pad, np.cumsum(x * x, axis=-1)], axis=-1)
    mean, var = np.full(x.shape, np.nan), np.full(x.shape, np.nan)
    mean[..., window - 1:] = (c1[..., window:] - c1[..., :-window]) / window
    var[..., window - 1:] = (c2[..., window:] - c2[..., :-window]) / window - mean[..., window - 1:] ** 2
    return mean, np.sqrt(np.maximum(var, 0))


def sessions(customer, second, gap=6 * 3600):
    order = np.argsort(customer, kind="stable")      # time is sorted already
    c, t = customer[order], second[order]
    new = np.ones(len(c), dtype=bool)
    new[1:] = (c[1:] != c[:-1]) | (t[1:] - t[:-1] > gap)
    number = np.cumsum(new) - 1
    out = np.empty_like(number)
    out[order] = number
    return out, t[new], c[new]


def quantile_score(x, parts=5):
    edges = np.quantile(x, np.linspace(0, 1, parts + 1)[1:-1])
    return np.digitize(x, edges) + 1


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    t = {k: asarray(v) for k, v in data.items()}
    place = lookup(t["sku"], t["item"])
    known = place >= 0
    unit = np.where(known, t["price"][place], np.nan)
    amount = unit * t["quantity"] * (1 - t["discount"])
    amount[~known] = 0.0
    day, category = t["second"] // 86400, t["category"][place].astype(np.int64)
    # by shop and by category
    shops = GroupBy(t["shop"])
    best, sold = top_per_group(shops.group, category, amount, shops.n, 24, TOP)
    share = sold / shops.sum(amount)[:, None]
    middle, spread = shops.median(amount), shops.std(amount)
    # daily sales of each shop, with anomalies against the trailing four weeks
    daily = np.bincount(t["shop"].astype(np.int64) * DAYS + day, weights=amount, minlength=SHOPS * DAYS).reshape(SHOPS, DAYS)
    mean, std = rolling(daily, 28)
    z = np.zeros_like(daily)
    z[:, 28:] = (daily[:, 28:] - mean[:, 27:-1]) / (std[:, 27:-1] + 1e-9)
    odd_shop, odd_day = np.nonzero(np.abs(z) > 3.5)
    weekday = np.stack([daily[:, k::7].mean(axis=1) for k in range(7)], axis=1)
    weekday /= weekday.mean(axis=1, keepdims=True)
    # customers
    people = GroupBy(t["customer"])
    spent, last, first = people.sum(amount), people.max(t["second"].astype(np.int32)), people.min(t["second"].astype(np.int32))
    score = quantile_score(last) * 100 + quantile_score(people.count) * 10 + quantile_score(spent)
    segments, members = np.unique(score, return_counts=True)
    visit, start, who = sessions(t["customer"], t["second"])
    basket = np.bincount(visit, weights=amount)
    ranked = np.sort(spent)[::-1]
    concentration = np.cumsum(ranked)[len(ranked) // 5] / ranked.sum()
    # cohorts by the month of the first purchase
    month = np.minimum(day // 30, 11)
    joined = np.minimum(first // 86400 // 30, 11)
    pair = np.unique(people.group * 12 + month)
    cohort = np.zeros((12, 12), dtype=np.int64)
    np.add.at(cohort, (joined[pair // 12], pair % 12 - joined[pair // 12]), 1)
    kept = cohort / np.maximum(cohort[:, :1], 1)
    # categories bought together
    seen = np.unique(visit * 24 + category)
    together = np.zeros((int(visit.max()) + 1, 24), dtype=np.float32)
    together[seen // 24, seen % 24] = 1
    joint = together.T @ together
    alone = joint.diagonal() / len(together)
    lift = joint / len(together) / (alone[:, None] * alone[None, :])
    np.fill_diagonal(lift, 0)
    strongest = np.unravel_index(lift.argmax(), lift.shape)
    return dict(best=best, share=share, middle=middle, spread=spread, daily=daily.sum(axis=0), odd_shop=odd_shop, odd_day=odd_day, weekday=weekday,
                segments=segments, members=members,
                basket=np.percentile(basket, [10, 50, 90]), per=len(basket) / people.n, concentration=concentration, kept=kept, lift=lift.max(axis=0),
                strongest=np.array([int(k) for k in strongest]),
                returning=(np.bincount(people.group[np.flatnonzero(known)]) > 1).mean(), length=len(start))
