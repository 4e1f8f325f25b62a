"""Panel data: wages of workers in firms over years. Two-way effects by alternating projections, instruments, clustered errors,
a wild bootstrap, an event study, quantile regression. N: workers.
"""
import numpy as np

DEFAULT = 6000
YEARS = 12
DRAWS = 40


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    firms = max(N // 20, 5)
    n = N * YEARS
    worker = numpy.repeat(numpy.arange(N), YEARS)
    year = numpy.tile(numpy.arange(YEARS), N)
    moves = rng.random(n) < 0.15
    firm = rng.integers(0, firms, n)
    for t in range(1, YEARS):                               # stay unless moving
        stay = ~moves[t::YEARS]
        firm[t::YEARS] = numpy.where(stay, firm[t - 1::YEARS], firm[t::YEARS])
    able, good = rng.normal(size=N), rng.normal(size=firms)
    training = rng.integers(2, 2 * YEARS, N)
    z = rng.normal(size=n)
    hidden = rng.normal(size=n)
    hours = 0.6 * z + 0.5 * hidden + 0.3 * able[worker] + rng.normal(size=n)
    union = (rng.random(n) < 0.3 + 0.1 * (good[firm] > 0)).astype(float)
    event = year - training[worker]
    wage = (able[worker] + 0.5 * good[firm] + 0.03 * year + 0.4 * hours + 0.1 * union + 0.05 * numpy.clip(event + 1, 0, 4) + 0.6 * hidden + rng.standard_t(5, n))
    here = rng.random(n) < 0.85
    signs = numpy.where(rng.random((DRAWS, firms)) < 0.5, -1.0, 1.0)
    return dict(worker=worker[here], year=year[here], firm=firm[here], wage=wage[here], hours=hours[here], union=union[here], z=z[here],
                event=event[here], signs=signs)


class Groups:
    """Sums and means by the codes of a variable."""

    def __init__(self, code):
        self.value, self.code = np.unique(code, return_inverse=True)
        self.many = self.value.size
        self.count = np.bincount(self.code, minlength=self.many).astype(float)

    def sum(self, v):
        if v.ndim == 1:
            return np.bincount(self.code, weights=v, minlength=self.many)
        return np.stack([np.bincount(self.code, weights=c, minlength=self.many) for c in v.T], axis=1)

    def demean(self, v):
        mean = self.sum(v) / (self.count if v.ndim == 1 else self.count[:, None])
        v -= mean[self.code]
        return mean


def absorb(columns, effects, tol=1e-9, limit=60):
    """Take out the means of all groups in turn until the largest mean is small beside the columns' spread."""
    v = columns - columns.mean(axis=0)
    scale = float(v.std())
    for it in range(limit):
        largest = 0.0
        for g in effects:
            largest = max(largest, float(np.abs(g.demean(v)).max()))
        if largest < tol * scale:
            break
    return v, it


def clustered(X, e, bread, groups):
    S = groups.sum(X * e[:, None])
    G = groups.many
    return np.sqrt(np.diagonal(bread @ (S.T @ S) @ bread) * G / (G - 1))


def ols(X, y):
    bread = np.linalg.inv(X.T @ X)
    b = bread @ (X.T @ y)
    return b, y - X @ b, bread


def two_stage(X, Z, y):
    first = np.linalg.solve(Z.T @ Z, Z.T @ X)
    hat = Z @ first
    bread = np.linalg.inv(hat.T @ X)
    b = bread @ (hat.T @ y)
    return b, y - X @ b, bread, hat, first


def wild(X, y, groups, place, signs):
    """The clusters' residuals under the null change sign together; t statistics of all draws at once."""
    keep = np.arange(X.shape[1]) != place
    b0, e0, _ = ols(X[:, keep], y)
    fitted = y - e0
    bread = np.linalg.inv(X.T @ X)
    out = []
    for s in signs:
        ystar = fitted + e0 * s[groups.code]
        b = bread @ (X.T @ ystar)
        out.append(b[place] / clustered(X, ystar - X @ b, bread, groups)[place])
    return np.stack(out)


def quantile_fit(X, y, tau, rounds=25, floor=0.1):
    """Majorise and minimise: weighted least squares with weights by the residuals' size."""
    b = np.linalg.lstsq(X, y, rcond=None)[0]
    for _ in range(rounds):
        r = y - X @ b
        w = 1.0 / (floor + np.abs(r))
        XtW = X.T * w
        new = np.linalg.solve(XtW @ X, XtW @ y + (2 * tau - 1) * X.sum(axis=0))
        if float(np.abs(new - b).max()) < 1e-7:
            b = new
            break
        b = new
    return b


def main(asarray, N, given):
    d = {k: asarray(v) for k, v in given.items()}
    worker, firm, year = Groups(d["worker"]), Groups(d["firm"]), Groups(d["year"])
    y, n = d["wage"], d["wage"].size
    table = np.stack([y, d["hours"], d["union"], d["z"]], axis=1)
    ones = np.ones(n)
    pooled, e, bread = ols(np.stack([ones, d["hours"], d["union"]], axis=1), y)
    pooled_se = clustered(np.stack([ones, d["hours"], d["union"]], axis=1), e, bread, firm)
    inside, rounds = absorb(table, [worker, firm, year])
    yw, X = inside[:, 0].copy(), inside[:, 1:3].copy()
    within, e, bread = ols(X, yw)
    se = clustered(X, e, bread, firm)
    Z = np.stack([inside[:, 3], inside[:, 2]], axis=1)
    iv, ei, bread_iv, hat, first = two_stage(X, Z, yw)
    iv_se = clustered(hat, ei, bread_iv, firm)
    u = X[:, 0] - Z @ first[:, 0]
    F = first[0, 0] ** 2 * (Z[:, 0] @ Z[:, 0]) / (u.var() * (n / (n - 2)))
    hausman = (iv[0] - within[0]) ** 2 / np.maximum(iv_se[0] ** 2 - se[0] ** 2, 1e-12)
    t = wild(X, yw, firm, 1, d["signs"])
    p = (np.abs(t) >= np.abs(within[1] / se[1])).mean()

    # event study: dummies for the years around the training, the year before it is the base
    window = np.clip(d["event"], -4, 5)
    levels = [k for k in range(-4, 6) if k != -1]
    dummies = (window[:, None] == np.array(levels)).astype(float)
    slim, _ = absorb(np.concatenate([y[:, None] - iv[0] * d["hours"][:, None], dummies], axis=1), [worker, year])
    path, ee, eb = ols(slim[:, 1:], slim[:, 0])
    path_se = clustered(slim[:, 1:], ee, eb, worker)

    # the firms' effects from the residuals, shrunk, with ranks of the firms by size
    raw = y - table[:, 1:3] @ iv
    raw -= worker.demean(raw.copy())[worker.code]
    effect = firm.sum(raw) / firm.count
    noise = (raw - effect[firm.code]).var()
    signal = np.maximum(effect.var() - (noise / firm.count).mean(), 1e-6)
    shrunk = effect * signal / (signal + noise / firm.count)
    order = np.lexsort(np.stack([shrunk, firm.count]))
    # movers: those whose firm changed from the row before
    same = d["worker"][1:] == d["worker"][:-1]
    mover = same & (d["firm"][1:] != d["firm"][:-1])
    gain = np.diff(y)[mover]
    jump = np.diff(effect[firm.code])[mover]
    bins = np.digitize(jump, np.linspace(-1, 1, 9))
    profile = np.bincount(bins, weights=gain, minlength=10) / np.maximum(np.bincount(bins, minlength=10), 1)
    fresh = np.append(np.ones(1, dtype=bool), ~same)
    start = np.flatnonzero(fresh)
    spell = np.diff(np.append(start, n))
    experience = np.arange(n) - start[np.cumsum(fresh) - 1]
    XQ = np.stack([ones, d["hours"], d["union"], experience], axis=1)
    quantiles = np.stack([quantile_fit(XQ, y, q) for q in (0.1, 0.5, 0.9)])
    return dict(pooled=pooled, pooled_se=pooled_se, within=within, se=se, iv=iv, iv_se=iv_se, F=F, hausman=hausman, t=t, p=p, path=path, path_se=path_se,
                shrunk=shrunk[order][-20:], profile=profile, spell=np.bincount(spell), quantiles=quantiles, rounds=rounds > 1, movers=mover.sum(),
                best=np.add.reduceat(y, start)[:50] / spell[:50])
