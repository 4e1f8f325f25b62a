"""Survival analysis: Kaplan-Meier with Greenwood bands, log-rank tests, Cox regression (Efron's ties) by Newton's method, residuals, concordance, weighted Brier scores, bootstrap. N: patients."""
import numpy
import numpy as np

DEFAULT = 4000
COVARIATES, BOOT, NEWTON = 6, 250, 8


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(308)
    x = rng.normal(size=(N, COVARIATES))
    x[:, 1] = x[:, 1] > 0.3
    x[:, 2] = 0.6 * x[:, 0] + 0.8 * x[:, 2]
    arm = rng.integers(0, 3, N).astype(numpy.int8)
    risk = x @ numpy.array([0.5, -0.4, 0.2, 0.0, 0.3, -0.1]) + 0.35 * (arm == 2)
    life = 24 * rng.weibull(1.3, N) * numpy.exp(-risk / 1.3)
    censor = rng.uniform(6, 60, N)
    quarter = numpy.ceil(numpy.minimum(life, censor) * 4).astype(numpy.int16)            # quarters of months, so there are ties
    return dict(x=x, arm=arm, quarter=quarter, event=life <= censor, resample=rng.integers(0, N, (BOOT, N)).astype(numpy.int32))


def life_table(time, event, weights=None):
    """Distinct times with the numbers at risk, dead and censored at each."""
    t, where = np.unique(time, return_inverse=True)
    w = np.ones(time.shape) if weights is None else weights
    dead = np.bincount(where, weights=w * event, minlength=len(t))
    gone = np.bincount(where, weights=w, minlength=len(t))
    at_risk = np.cumsum(gone[::-1])[::-1]
    return t, at_risk, dead, gone - dead


def kaplan_meier(time, event):
    t, n, d, _ = life_table(time, event)
    S = np.cumprod(1 - d / n)
    green = np.cumsum(d / np.maximum(n * (n - d), 1.0))
    # bands on the log-minus-log scale
    inner = (S > 0) & (S < 1)
    safe = np.where(inner, S, 0.5)
    se = np.sqrt(green) / np.abs(np.log(safe))
    low, high = safe ** np.exp(1.96 * se), safe ** np.exp(-1.96 * se)
    return t, S, np.where(inner, low, np.nan), np.where(inner, high, np.nan), np.cumsum(d / n)


def step(t, values, at, before=1.0):
    """The value of a right-continuous step function."""
    k = np.searchsorted(t, at, side="right")
    return np.concatenate([np.full(1, before), values])[k]


def log_rank(time, event, arm, rho=0.0):
    t, where = np.unique(time, return_inverse=True)
    groups = int(arm.max()) + 1
    flat = where * groups + arm
    gone = np.bincount(flat, minlength=len(t) * groups).reshape(len(t), groups)
    dead = np.bincount(flat[event], minlength=len(t) * groups).reshape(len(t), groups)
    risk = np.flip(np.cumsum(np.flip(gone, 0), axis=0), 0)
    n, d = risk.sum(axis=1), dead.sum(axis=1)
    S = np.concatenate([np.ones(1), np.cumprod(1 - d / n)[:-1]])
    w = S ** rho
    share = risk / n[:, None]
    excess = (w[:, None] * (dead - d[:, None] * share)).sum(axis=0)
    factor = w ** 2 * d * np.where(n > 1, (n - d) / np.maximum(n - 1, 1), 0)
    V = np.einsum("t,ta,ab->ab", factor, share, np.eye(groups)) - np.einsum("t,ta,tb->ab", factor, share, share)
    e = excess[:-1]
    return e @ np.linalg.solve(V[:-1, :-1], e), excess


class Cox:
    def __init__(self, time, event, x):
        order = np.lexsort(np.stack([~event, time]).astype(np.float64))
        self.time, self.event, self.x = time[order], event[order], x[order]
        self.first = np.searchsorted(self.time, self.time, side="left")
        dead = self.event.astype(np.float64)
        total = np.cumsum(dead)
        begin = total[self.first] - dead[self.first]
        last = np.searchsorted(self.time, self.time, side="right") - 1
        self.last = last
        self.tied = total[last] - begin                     # deaths at the same time
        self.rank = np.where(self.event, total - begin - 1, 0.0)
        self.share = np.where(self.event, self.rank / np.maximum(self.tied, 1.0), 0.0)

    def pieces(self, beta):
        x, first, last = self.x, self.first, self.last
        w = np.exp(x @ beta)
        xx = x[:, :, None] * x[:, None, :]
        out = []
        for power in (w, w[:, None] * x, w[:, None, None] * xx):
            after = np.cumsum(power[::-1], axis=0)[::-1][first]
            deaths = power * self.event.reshape((-1,) + (1,) * (power.ndim - 1))
            c = np.cumsum(deaths, axis=0)
            tied = c[last] - (c - deaths)[first]
            out.append(after - self.share.reshape((-1,) + (1,) * (power.ndim - 1)) * tied)
        return out

    def evaluate(self, beta):
        s0, s1, s2 = self.pieces(beta)
        e = self.event
        mean = s1 / s0[:, None]
        loglik = ((self.x @ beta) - np.log(s0))[e].sum()
        score = (self.x - mean)[e].sum(axis=0)
        info = (s2 / s0[:, None, None] - mean[:, :, None] * mean[:, None, :])[e].sum(axis=0)
        return loglik, score, info, mean

    def fit(self, penalty=0.0):
        beta = np.zeros(self.x.shape[1])
        track = []
        for _ in range(NEWTON):
            loglik, score, info, _ = self.evaluate(beta)
            track.append(loglik - 0.5 * penalty * (beta ** 2).sum())
            delta = np.linalg.solve(info + penalty * np.eye(len(beta)), score - penalty * beta)
            beta = beta + delta / max(1.0, float(np.abs(delta).max()))
        return beta, np.stack(track), info


def concordance(time, event, risk, block=250):
    good, tied, pairs = 0.0, 0.0, 0.0
    for lo in range(0, len(time), block):
        t, e, r = time[lo:lo + block, None], event[lo:lo + block, None], risk[lo:lo + block, None]
        valid = e & (t < time[None, :])
        pairs += float(np.count_nonzero(valid))
        good += float(np.count_nonzero(valid & (r > risk + 1e-9)))
        tied += float(np.count_nonzero(valid & np.isclose(r, risk, rtol=0, atol=1e-9)))
    return (good + 0.5 * tied) / pairs


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    x, arm, quarter, event = (asarray(data[k]) for k in ("x", "arm", "quarter", "event"))
    time = quarter.astype(np.float64) / 4
    t, S, low, high, hazard = kaplan_meier(time, event)
    grid = np.linspace(0, 48, 97)
    curves, medians, restricted = [], [], []
    for k in range(3):
        mine = arm == k
        tk, Sk, lk, hk, _ = kaplan_meier(time[mine], event[mine])
        curves.append(step(tk, Sk, grid))
        medians.append(tk[np.argmax(Sk <= 0.5 + 1e-9)])
        restricted.append(np.trapezoid(curves[-1][:73], grid[:73]))
    tests = [log_rank(time, event, arm, rho) for rho in (0.0, 0.5, 1.0)]
    # Cox
    dummies = (arm[:, None] == np.arange(1, 3)).astype(np.float64)
    design = np.concatenate([x, dummies], axis=1)
    centre, spread = design.mean(axis=0), design.std(axis=0)
    design = (design - centre) / spread
    model = Cox(time, event, design)
    beta, track, info = model.fit()
    se = np.sqrt(np.diag(np.linalg.inv(info)))
    ridge = np.stack([model.fit(p)[0] for p in (10.0, 100.0, 1000.0)])
    ratio = 2 * (track[-1] - track[0])
    s0 = model.pieces(beta)[0]
    cumulative = np.cumsum(model.event / s0)
    cumulative = cumulative[model.last]
    eta = model.x @ beta
    martingale = model.event - cumulative * np.exp(eta)
    deviance = np.sign(martingale) * np.sqrt(np.maximum(-2 * (martingale + model.event * np.log(np.maximum(model.event - martingale, 1e-12))), 0))
    _, _, _, mean = model.evaluate(beta)
    schoenfeld = (model.x - mean)[model.event]
    rank = np.searchsorted(np.unique(model.time), model.time[model.event]).astype(np.float64)
    drift = np.array([float(np.corrcoef(np.stack([rank, schoenfeld[:, c]]))[0, 1]) for c in range(schoenfeld.shape[1])])
    c_index = concordance(model.time, model.event, eta)
    single = np.array([concordance(model.time, model.event, model.x[:, c]) for c in range(3)])
    # Brier scores with the censoring weights of Graf
    tc, G, _, _, _ = kaplan_meier(model.time, ~model.event)
    G_at = np.maximum(step(tc, G, model.time - 1e-6), 0.02)
    brier, calibration = [], []
    order = np.argsort(eta, kind="stable")
    tenths = np.array_split(order, 10)
    for when in (6.0, 12.0, 18.0, 24.0, 36.0):
        H = step(model.time, cumulative, np.array([when]), 0.0)
        p = np.exp(-H * np.exp(eta))
        Gw = np.maximum(step(tc, G, np.array([when])), 0.02)
        died = (model.time <= when) & model.event
        alive = model.time > when
        brier.append((np.where(died, p ** 2 / G_at, 0) + np.where(alive, (1 - p) ** 2 / Gw, 0)).mean())
        calibration.append(np.stack([p[g].mean() for g in tenths]))
    # bootstrap, all the replicates at once: weights by patient, sums by time
    times, where = np.unique(time, return_inverse=True)
    T = len(times)
    resample = asarray(data["resample"])
    row = np.arange(BOOT)[:, None] * T
    flat = row + where[resample]
    gone = np.bincount(flat.ravel(), minlength=BOOT * T).reshape(BOOT, T)
    dead = np.bincount(flat.ravel(), weights=event[resample].ravel().astype(np.float64), minlength=BOOT * T).reshape(BOOT, T)
    at_risk = gone[:, ::-1].cumsum(axis=1)[:, ::-1]
    Sb = np.cumprod(np.where(at_risk > 0, 1 - dead / np.maximum(at_risk, 1), 1.0), axis=1)
    boot_median = times[np.argmax(Sb <= 0.5 + 1e-9, axis=1)]
    width = np.diff(np.concatenate([np.zeros(1), np.minimum(times, 36.0)]))
    area = (np.concatenate([np.ones((BOOT, 1)), Sb[:, :-1]], axis=1) * width).sum(axis=1)
    bands = np.percentile(Sb, np.array([2.5, 50.0, 97.5]), axis=0)
    # a few weighted Cox steps from the answer: the infinitesimal jackknife
    influence = np.linalg.solve(info, (schoenfeld - schoenfeld.mean(axis=0)).T)
    robust = np.sqrt((influence ** 2).sum(axis=1))
    return dict(S=S, low=np.nan_to_num(low), high=np.nan_to_num(high, nan=1.0), missing=float(np.isnan(low).sum()), nelson=hazard, curves=np.stack(curves),
                medians=np.stack(medians), restricted=np.stack(restricted), tests=np.stack([a for a, _ in tests]), excess=np.stack([b for _, b in tests]),
                beta=beta, se=se, ridge=ridge, ratio=ratio, martingale=martingale, deviance=np.partition(deviance, len(deviance) // 2)[len(deviance) // 2],
                drift=drift, c_index=c_index, single=single, brier=np.stack(brier), calibration=np.stack(calibration), boot_median=boot_median,
                area=np.percentile(area, np.array([2.5, 97.5])), bands=bands, robust=robust)
