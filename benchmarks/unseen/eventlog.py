"""A shop's event log: sessions, funnels, joins with tables, retention by cohort, baskets and an A/B test.

N: events.
"""
import numpy as np

DEFAULT = 700000
DAYS, KINDS, GAP = 56, 6, 1800.0        # view, search, cart, checkout, pay, refund


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    users = max(N // 40, 10)
    ids = numpy.sort(rng.choice(10 * users, users, replace=False)) + 1000000
    joined = numpy.floor(rng.uniform(0, DAYS - 7, users))
    eager = rng.gamma(0.7, 1.0, users)
    who = rng.choice(users, N, p=eager / eager.sum())
    visit = rng.integers(0, 12, N)
    base = (joined[who] + ((ids[who] * 31 + visit * visit * 977) % 1000) / 1000 * (DAYS - joined[who])) * 86400
    time = base + rng.exponential(700, N)
    group = rng.integers(0, 2, users)
    tilt = rng.uniform(size=N) + 0.02 * group[who]
    kind = numpy.searchsorted([0.55, 0.72, 0.86, 0.94, 1.005], tilt)
    item = rng.zipf(1.25, N) % 3000
    shuffle = rng.permutation(N)
    prices = numpy.round(100 * rng.lognormal(3, 0.8, 3000))
    return (ids[who][shuffle], time[shuffle], kind[shuffle].astype(numpy.int8), item[shuffle].astype(numpy.int32),
            ids, joined, group, prices, rng.integers(0, 12, 3000))


def sessions(user, time):
    """Numbers of sessions for events that are in order of user and time."""
    new = np.ones(len(user), dtype=bool)
    new[1:] = (np.diff(user) != 0) | (np.diff(time) > GAP)
    return np.cumsum(new) - 1, np.flatnonzero(new)


def funnel(session, kind, place, number):
    """Sessions that reach each stage after the one before it: view, cart, checkout, pay."""
    reached, at = [], np.full(number, -1.0)
    for stage in (0, 2, 3, 4):
        first = np.full(number, np.inf)
        fits = (kind == stage) & (place > at[session])
        np.minimum.at(first, session[fits], place[fits].astype(float))
        at = first
        reached.append(np.isfinite(first))
    return np.stack(reached), at


def join(keys, sorted_keys):
    """Rows of a sorted table, and which keys have one."""
    row = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return row, sorted_keys[row] == keys


def retention(user_row, joined, time, users):
    """Share of each week's cohort that comes back in its later weeks."""
    cohort, weeks = (joined // 7).astype(int), DAYS // 7
    age = ((time / 86400 - joined[user_row]) // 7).astype(int)
    ok = (age >= 0) & (age < weeks)
    pair = np.unique(user_row[ok] * weeks + age[ok])
    table = np.zeros((weeks, weeks))
    np.add.at(table, (cohort[pair // weeks], pair % weeks), 1.0)
    size = np.bincount(cohort, minlength=weeks)[:, None]
    late = np.arange(weeks)[:, None] + np.arange(weeks)[None, :] >= weeks
    return np.where(late, 0.0, table / np.maximum(size, 1))


def baskets(session, item, bought, number):
    """Lift of pairs of the most frequent items in sessions that put something in the cart."""
    items, count = np.unique(item[bought], return_counts=True)
    best = np.sort(items[np.argsort(-count, kind="stable")[:40]])
    row, ok = join(item[bought], best)
    holds = np.zeros((number, len(best)), dtype=np.float32)
    holds[session[bought][ok], row[ok]] = 1.0
    holds = holds[holds.any(axis=1)]
    together = holds.T @ holds
    lift = together * len(holds) / np.outer(np.diag(together), np.diag(together))
    i, j = np.triu_indices(len(best), 1)
    order = np.lexsort(np.stack([j, i, -together[i, j]]))[:25]
    return best, np.stack([best[i[order]], best[j[order]]]), lift[i[order], j[order]]


def main(asarray, N, given):
    user, time, kind, item, ids, joined, group, prices, category = (asarray(g) for g in given)
    order = np.lexsort(np.stack([time, user.astype(float)]))
    user, time, kind, item = user[order], time[order], kind[order], item[order]
    session, start = sessions(user, time)
    number = len(start)
    place = np.arange(N)
    length = np.diff(np.concatenate([start, np.array([N])]))
    duration = time[start + length - 1] - time[start]
    reached, paid_at = funnel(session, kind, place, number)
    row, ok = join(user, ids)
    kept = retention(row, joined, time, len(ids))
    best, pairs, lift = baskets(session, item, kind == 2, number)

    # money: what was paid less what was returned, by user, category and day
    sign = np.where(kind == 4, 1.0, np.where(kind == 5, -0.5, 0.0))
    money = prices[item] * sign
    by_user = np.bincount(row, weights=money, minlength=len(ids))
    day = np.minimum((time // 86400).astype(int), DAYS - 1)
    cube = np.zeros((DAYS // 7, 12))
    np.add.at(cube, (day // 7, category[item]), money)
    active = np.bincount(np.unique(day * len(ids) + row) // len(ids), minlength=DAYS)
    smooth = np.convolve(np.bincount(day, weights=money, minlength=DAYS), np.ones(7) / 7, mode="valid")
    running = np.cumsum(money) - np.repeat(np.cumsum(money)[start] - money[start], length.tolist())
    peak = np.full(number, -np.inf)
    np.maximum.at(peak, session, running)
    value = np.add.reduceat(money, start)

    # scores of recency, frequency and money in fifths
    last = np.zeros(len(ids))
    np.maximum.at(last, row, time)
    visits = np.bincount(row[start], minlength=len(ids))
    fifths = [np.digitize(v, np.percentile(v, [20, 40, 60, 80])) for v in (last, visits, by_user)]
    rfm = np.bincount(fifths[0] * 25 + fifths[1] * 5 + fifths[2], minlength=125).reshape(5, 5, 5)
    paid = reached[3]
    arm = group[row[start]]
    n, pool = np.bincount(arm, minlength=2), paid.mean()
    rate = np.bincount(arm[paid], minlength=2) / n
    z = (rate[1] - rate[0]) / np.sqrt(pool * (1 - pool) * (1 / n[0] + 1 / n[1]))
    wait = time[paid_at[paid].astype(np.int64)] - time[start][paid]
    return dict(sessions=number, length=np.bincount(np.minimum(length, 30)),
                duration=np.percentile(duration, [25, 50, 90, 99]),
                funnel=reached.sum(axis=1), kept=kept, best=best, pairs=pairs, lift=lift,
                matched=int(ok.sum()), cube=cube, active=active, smooth=smooth,
                value=np.histogram(value, bins=30)[0], peak=peak.mean(), rfm=rfm, rate=rate, z=z,
                wait=np.median(wait), top=np.sort(by_user)[::-1][:100])
