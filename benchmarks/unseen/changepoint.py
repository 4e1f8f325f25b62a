"""Changes in a well log.

Bayesian online run lengths (Adams and MacKay) with pruning, hazard chosen by evidence, exact segmentation with pruning
(PELT), posterior smoothing. N: readings.
"""
import numpy as np

DEFAULT = 2000


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(2007)
    at = numpy.sort(rng.choice(numpy.arange(20, N - 20), N // 90, replace=False))
    segment = numpy.searchsorted(at, numpy.arange(N), side="right")
    mean, sd = rng.normal(0, 2.5, len(at) + 1), rng.choice([0.4, 0.8, 1.5], len(at) + 1)
    x = mean[segment] + sd[segment] * rng.normal(size=N)
    spikes = rng.choice(N, N // 150, replace=False)
    x[spikes] += rng.choice([-1, 1], len(spikes)) * 9.0
    x[N // 3:N // 3 + 12] = numpy.nan                   # the tool lost contact
    return x, at


def lgamma(z):
    """Stirling's series after a shift by eight."""
    product = z.copy()
    for k in range(1, 8):
        product *= z + k
    w = z + 8.0
    inv = 1.0 / w
    inv2 = inv * inv
    series = inv * (1 / 12 - inv2 * (1 / 360 - inv2 * (1 / 1260 - inv2 / 1680)))
    return (w - 0.5) * np.log(w) - w + 0.9189385332046727 + series - np.log(product)


def despike(x, half=4, limit=5.0):
    """Running median and MAD; a reading far away is replaced, and gaps are filled by straight lines."""
    i = np.arange(len(x))
    good = ~np.isnan(x)
    filled = np.interp(i, i[good], x[good])
    wide = np.pad(filled, half, mode="edge")
    frame = wide[i[:, None] + np.arange(2 * half + 1)]
    median = np.median(frame, axis=1)
    mad = np.median(np.abs(frame - median[:, None]), axis=1) * 1.4826 + 1e-3
    bad = np.abs(filled - median) > limit * mad
    filled[bad] = median[bad]
    return filled, bad


class RunLength:
    """Normal-gamma model; arrays hold one entry per surviving run length."""

    def __init__(self, hazard, prior=(0.0, 0.05, 1.0, 0.5), floor=1e-7):
        self.hazard, self.prior, self.floor = hazard, prior, floor
        self.length = np.zeros(1, dtype=np.int64)
        self.prob = np.ones(1)
        self.mu, self.kappa, self.alpha, self.beta = (np.full(1, p) for p in prior)
        self.evidence = 0.0

    def predictive(self, x):
        df = 2 * self.alpha
        scale2 = self.beta * (self.kappa + 1) / (self.alpha * self.kappa)
        z = (x - self.mu)**2 / (df * scale2)
        return np.exp(lgamma(self.alpha + 0.5) - lgamma(self.alpha) - 0.5 * np.log(np.pi * df * scale2)
                      - (self.alpha + 0.5) * np.log1p(z))

    def update(self, x):
        joint = self.prob * self.predictive(x)
        total = joint.sum()
        self.evidence = self.evidence + np.log(total)
        grown = joint * (1 - self.hazard) / total
        prob = np.concatenate([(joint.sum() * self.hazard / total).reshape(1), grown])
        mu = (self.kappa * self.mu + x) / (self.kappa + 1)
        beta = self.beta + 0.5 * self.kappa * (x - self.mu)**2 / (self.kappa + 1)
        fresh = [np.full(1, p) for p in self.prior]
        stats = [np.concatenate([f, s]) for f, s in zip(fresh, (mu, self.kappa + 1, self.alpha + 0.5, beta))]
        length = np.concatenate([np.zeros(1, dtype=np.int64), self.length + 1])
        keep = prob > self.floor
        keep[0] = True
        self.length, self.prob = length[keep], prob[keep]
        self.prob /= self.prob.sum()
        self.mu, self.kappa, self.alpha, self.beta = (s[keep] for s in stats)


def online(x, hazard):
    """Filtered expectations, most probable run lengths and the widths of the pruned frontier."""
    model = RunLength(hazard)
    mean, run, recent, width = [], [], [], []
    for k in range(len(x)):
        model.update(x[k])
        mean.append((model.prob * model.mu).sum())
        run.append(model.length[model.prob.argmax()])
        recent.append(model.prob[model.length < 10].sum())
        width.append(model.prob.size)
    return np.stack(mean), np.stack(run), np.stack(recent), np.array(width), model.evidence


def pelt(x, penalty, least=5):
    """Normal cost with mean and variance free in each segment; candidates that cannot win are dropped."""
    n = len(x)
    s1 = np.concatenate([np.zeros(1), np.cumsum(x)])
    s2 = np.concatenate([np.zeros(1), np.cumsum(x * x)])
    F = np.full(n + 1, np.inf)
    F[0] = -penalty
    last = np.zeros(n + 1, dtype=np.int64)
    live = np.zeros(1, dtype=np.int64)
    checked = 0
    for t in range(least, n + 1):
        m = (t - live).astype(float)
        variance = (s2[t] - s2[live]) / m - ((s1[t] - s1[live]) / m)**2
        cost = m * (np.log(np.maximum(variance, 1e-4)) + 1.0)
        total = F[live] + cost
        best = total.argmin()
        F[t] = total[best] + penalty
        last[t] = live[best]
        live = live[total <= F[t]]
        checked += live.size
        if t >= 2 * least - 1:
            live = np.append(live, t - least + 1)
    cuts, t = [], n
    while t > 0:
        t = int(last[t])
        cuts.append(t)
    return np.array(cuts[::-1][1:], dtype=np.int64), F[n], checked


def match(found, truth, slack=6):
    if found.size == 0:
        return np.zeros(2)
    near = np.abs(found[:, None] - truth[None, :]).min(axis=0) <= slack
    right = np.abs(found[:, None] - truth[None, :]).min(axis=1) <= slack
    return np.stack([near.mean(), right.mean()])


def main(asarray, N, given):
    raw, truth = map(asarray, given)
    x, bad = despike(raw)
    hazards = [1 / 30, 1 / 90, 1 / 270]
    runs = [online(x, h) for h in hazards]
    evidence = np.stack([r[4] for r in runs])
    mean, run, recent, width, _ = runs[int(evidence.argmax())]
    drop = np.flatnonzero(np.diff(run) < -5) + 1
    born = drop - run[drop]
    starts = np.unique(born)

    cuts, cost, checked = pelt(x, 4 * np.log(float(N)))
    edges = np.concatenate([np.zeros(1, dtype=np.int64), cuts, np.full(1, N)])
    segment = np.searchsorted(cuts, np.arange(N), side="right")
    size = np.diff(edges)
    level = np.bincount(segment, weights=x) / size
    spread = np.sqrt(np.bincount(segment, weights=(x - level[segment])**2) / size)
    resid = (x - level[segment]) / spread[segment]
    acf = np.stack([(resid[k:] * resid[:len(resid) - k]).mean() for k in range(1, 11)])
    return dict(bad=np.flatnonzero(bad), evidence=evidence, mean=mean, run=run, recent=recent, width=width,
                starts=starts, cuts=cuts, cost=cost, checked=checked, level=level, spread=spread, acf=acf,
                online_score=match(starts, truth), pelt_score=match(cuts, truth))
