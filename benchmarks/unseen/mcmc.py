"""Batched Metropolis-within-Gibbs for a hierarchical logistic-normal model of survey counts; R-hat, effective sizes, posterior predictive. N: chains."""
import math

import numpy
import numpy as np

DEFAULT = 256
GROUPS, WARMUP, KEEP = 24, 400, 400


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(65)
    trials = rng.integers(8, 60, GROUPS)
    x = rng.normal(0, 1, GROUPS)
    theta = -0.4 + 0.7 * x + rng.normal(0, 0.5, GROUPS)
    y = rng.binomial(trials, 1 / (1 + numpy.exp(-theta)))
    steps = WARMUP + KEEP
    return dict(y=y, trials=trials, x=x, start=rng.normal(0, 1.5, (N, GROUPS + 3)),
                z=rng.standard_normal((steps, N, GROUPS)).astype(numpy.float32), u=rng.random((steps, N, GROUPS)),
                zh=rng.standard_normal((steps, N, 3)), uh=rng.random((steps, N)), up=rng.random((N, GROUPS)))


def loglik(theta, y, trials):
    """Binomial with a logit link, stable for large |theta|."""
    return y * theta - trials * (np.maximum(theta, 0) + np.log1p(np.exp(-np.abs(theta))))


def logprior(theta, hyper, x):
    mean, s = hyper[:, 0:1] + hyper[:, 1:2] * x, hyper[:, 2:3]
    return -0.5 * ((theta - mean) * np.exp(-s)) ** 2 - s


def loghyper(h):
    """N(0, 2) for the intercept and slope; half-normal(1) for the scale, on the log scale with its Jacobian."""
    return -0.125 * (h[:, 0] ** 2 + h[:, 1] ** 2) - 0.5 * np.exp(2 * h[:, 2]) + h[:, 2]


def sample(y, trials, x, start, z, u, zh, uh):
    theta, hyper = start[:, 3:].copy(), 0.5 * start[:, :3]
    n = len(theta)
    scale, hscale = np.full((n, GROUPS), 0.5), np.full(n, 0.3)
    ll, lp = loglik(theta, y, trials), logprior(theta, hyper, x)
    accepted, haccepted = np.zeros((n, GROUPS)), np.zeros(n)
    draws, deviance = np.empty((KEEP, n, GROUPS + 3)), np.empty((KEEP, n))
    for t in range(WARMUP + KEEP):
        proposal = theta + scale * z[t]
        ll2, lp2 = loglik(proposal, y, trials), logprior(proposal, hyper, x)
        accept = np.log(u[t]) < ll2 + lp2 - ll - lp
        theta = np.where(accept, proposal, theta)
        ll[accept] = ll2[accept]
        lp[accept] = lp2[accept]
        hproposal = hyper + hscale[:, None] * zh[t]
        lp2 = logprior(theta, hproposal, x)
        ratio = lp2.sum(axis=1) - lp.sum(axis=1) + loghyper(hproposal) - loghyper(hyper)
        haccept = np.log(uh[t]) < ratio
        hyper = np.where(haccept[:, None], hproposal, hyper)
        lp[haccept] = lp2[haccept]
        if t < WARMUP:                               # Robbins-Monro, towards 44 % and 30 %
            rate = 1.0 / (1 + t) ** 0.6
            scale *= np.exp(rate * (accept - 0.44))
            hscale *= np.exp(rate * (haccept - 0.30))
        else:
            accepted += accept
            haccepted += haccept
            draws[t - WARMUP, :, :3] = hyper
            draws[t - WARMUP, :, 3:] = theta
            deviance[t - WARMUP] = -2 * ll.sum(axis=1)
    return draws, deviance, accepted / KEEP, haccepted / KEEP, scale, hscale


def split_rhat(draws):
    half = len(draws) // 2
    parts = np.concatenate([draws[:half], draws[half:2 * half]], axis=1)
    within = parts.var(axis=0, ddof=1).mean(axis=0)
    between = half * parts.mean(axis=0).var(axis=0, ddof=1)
    return np.sqrt(((half - 1) / half * within + between / half) / within)


def effective_size(draws):
    """Geyer's initial positive sequence over the mean autocorrelation of the chains."""
    n, chains, params = draws.shape
    centred = draws - draws.mean(axis=(0, 1))
    f = np.fft.rfft(centred, 2 * n, axis=0)
    acov = np.fft.irfft(np.abs(f) ** 2, axis=0)[:n].mean(axis=1) / n
    rho = acov / acov[0]
    pairs = rho[0:n - 1:2] + rho[1:n:2]
    alive = np.cumsum(pairs <= 0, axis=0) == 0
    tau = np.maximum(2 * (pairs * alive).sum(axis=0) - 1, 1 / math.log10(n * chains))
    return n * chains / tau


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    y, trials, x, start, z, u, zh, uh, up = (asarray(data[k]) for k in ("y", "trials", "x", "start", "z", "u", "zh", "uh", "up"))
    draws, deviance, acc, hacc, scale, hscale = sample(y, trials, x, start, z, u, zh, uh)
    rhat, ess = split_rhat(draws), effective_size(draws)
    flat = draws.reshape(-1, draws.shape[-1])
    mean, sd = flat.mean(axis=0), flat.std(axis=0, ddof=1)
    quantiles = np.percentile(flat, [2.5, 25, 50, 75, 97.5], axis=0)
    corr = np.corrcoef(flat[:, :3].T)
    raw = (y + 0.5) / (trials + 1)
    prob = 1 / (1 + np.exp(-flat[:, 3:]))
    shrunk = prob.mean(axis=0)
    ranks = np.argsort(np.argsort(flat[::16, 3:], axis=1), axis=1).mean(axis=0)
    best = np.bincount(flat[:, 3:].argmax(axis=1), minlength=GROUPS) / len(flat)
    # DIC, and WAIC from the pointwise log likelihoods
    dbar, dhat = deviance.mean(), -2 * loglik(flat[:, 3:].mean(axis=0), y, trials).sum()
    point = loglik(flat[:, 3:], y, trials)
    top = point.max(axis=0)
    lppd = (np.log(np.exp(point - top).mean(axis=0)) + top).sum()
    waic = -2 * (lppd - point.var(axis=0, ddof=1).sum())
    # predictive counts, by a normal approximation at the last state of each chain
    last = 1 / (1 + np.exp(-draws[-1, :, 3:]))
    noise = np.sqrt(-2 * np.log(1 - up)) * np.cos(2 * math.pi * np.roll(up, 1, axis=0))
    replica = np.clip(np.round(trials * last + np.sqrt(trials * last * (1 - last)) * noise), 0, trials)
    pvalue = (replica >= y).mean(axis=0)
    density, _ = np.histogram(np.exp(flat[:, 2]), bins=50, range=(0.0, 2.0))
    return dict(rhat=np.asarray(rhat), ess=np.asarray(ess), mean=np.asarray(mean), sd=np.asarray(sd), quantiles=np.asarray(quantiles), corr=np.asarray(corr),
                shrinkage=np.asarray(shrunk - raw), ranks=np.asarray(ranks), best=np.asarray(best), criteria=np.asarray([float(dbar), float(2 * dbar - dhat), float(waic)]),
                pvalue=np.asarray(pvalue), density=np.asarray(density), acceptance=np.asarray(acc.mean(axis=0)), hacceptance=np.asarray(hacc), scale=np.asarray(scale.mean(axis=0)))
