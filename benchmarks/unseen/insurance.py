"""Aggregate loss distributions of a portfolio: Panjer recursion, tilted FFT and Monte Carlo, with VaR, TVaR and stop-loss.

N is the number of lattice points of the loss grid (the simulation has 40 N years).
"""
import numpy as np

DEFAULT = 6000
MAXN = 24        # most claims in a simulated year


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(11)
    # severity: two-component mixture, discretised by central differences of its cdf
    h = 1.0 / 100 * 6000 / N
    edges = (numpy.arange(N // 8 + 1) - 0.5).clip(0) * h
    cdf = 0.7 * (1 - numpy.exp(-edges / 0.4)) + 0.3 * (1 - numpy.exp(-(edges / 1.5) ** 2))
    f = numpy.diff(cdf)
    f /= f.sum()
    years = 40 * N
    return f, rng.random(years), rng.random((years, MAXN))


def panjer(f, a, b, g0, n):
    """Compound distribution for the (a, b, 0) class; f on 0 .. m, result on 0 .. n-1."""
    m = f.shape[0]
    g = np.zeros(n)
    g[0] = g0
    j = np.arange(m)
    fj = f * j
    c = 1.0 / (1.0 - a * f[0])
    for s in range(1, n):
        k = min(s, m - 1)
        back = g[s - k:s][::-1]
        g[s] = c * (a * np.dot(f[1:k + 1], back) + (b / s) * np.dot(fj[1:k + 1], back))
    return g


def by_fft(f, pgf, n, theta):
    """The same through the discrete Fourier transform with exponential tilting against aliasing."""
    x = np.arange(n)
    tilt = np.exp(-theta * x)
    padded = np.zeros(n)
    padded[:f.shape[0]] = f
    z = np.fft.fft(padded * tilt)
    return np.fft.ifft(pgf(z)).real / tilt


def risk(g, h, levels):
    cdf = np.cumsum(g)
    x = h * np.arange(g.shape[0])
    mean = (x * g).sum()
    var = ((x - mean) ** 2 * g).sum()
    skew = ((x - mean) ** 3 * g).sum() / var ** 1.5
    i = np.searchsorted(cdf, levels)
    q = x[i]
    # TVaR = VaR + E[(X - VaR)+] / (1 - p)
    excess = np.maximum(x[None, :] - q[:, None], 0.0) @ g
    return np.stack((mean, np.sqrt(var), skew)), q, q + excess / (1 - levels)


def main(asarray, N, given):
    f, u_count, u_sev = map(asarray, given)
    h = 0.01 * 6000 / N
    levels = np.array([0.5, 0.9, 0.95, 0.99, 0.995])

    # Poisson
    lam = 4.0
    pois = panjer(f, 0.0, lam, np.exp(lam * (f[0] - 1)), N)
    pois_fft = by_fft(f, lambda z: np.exp(lam * (z - 1)), N, 6.0 / N)

    # negative binomial with the same mean and variance / mean = 1.75
    beta = 0.75
    r = lam / beta
    a = beta / (1 + beta)
    nb = panjer(f, a, (r - 1) * a, (1 + beta * (1 - f[0])) ** (-r), N)
    nb_fft = by_fft(f, lambda z: (1 + beta * (1 - z)) ** (-r), N, 6.0 / N)

    moments_p, var_p, tvar_p = risk(pois, h, levels)
    moments_n, var_n, tvar_n = risk(nb, h, levels)

    # stop-loss premiums from the survival function, at all retentions
    surv = np.concatenate((nb[:0:-1].cumsum()[::-1], np.zeros(1)))
    stop_loss = h * (surv[::-1].cumsum()[::-1])
    layers = stop_loss[::N // 16]
    layer_price = layers[:-1] - layers[1:]

    # simulate: inverse transform for the counts and the severities
    k = np.arange(1, MAXN)
    pk = np.concatenate((np.ones(1), np.cumprod((r + k - 1) / k * a))) * (1 + beta) ** (-r)
    count = np.minimum(np.searchsorted(np.cumsum(pk), u_count), MAXN - 1)
    sev_cdf = np.cumsum(f)
    sev_cdf[-1] = 1.0
    total = np.zeros(count.shape[0])
    largest = np.zeros(count.shape[0])
    for c in range(MAXN):
        active = np.flatnonzero(count > c)
        if active.size == 0:
            break
        x = h * np.searchsorted(sev_cdf, u_sev[active, c])
        total[active] += x
        largest[active] = np.maximum(largest[active], x)

    se = total.std(ddof=1) / np.sqrt(total.size)
    order = np.sort(total)
    emp_var = order[(levels * order.size).astype(np.int64)]
    empirical = np.bincount(np.rint(total / h).astype(np.int64), minlength=N)[:N].cumsum() / total.size
    ks = np.abs(empirical - np.cumsum(nb)).max()

    # a reinsurance treaty: quota share of 30 % after a 2.0 excess on the largest claim
    net = 0.7 * (total - np.maximum(largest - 2.0, 0.0))
    return {
        "panjer_poisson": pois[::7], "panjer_nb": nb[::7],
        "agree": np.stack((np.abs(pois - pois_fft).max() < 1e-9, np.abs(nb - nb_fft).max() < 1e-9)),
        "mass": np.stack((pois.sum(), nb.sum())),
        "moments": np.stack((moments_p, moments_n)),
        "var": np.stack((var_p, var_n)), "tvar": np.stack((tvar_p, tvar_n)),
        "stop_loss": layers, "layer_price": layer_price,
        "counts": np.bincount(count, minlength=MAXN), "sim_mean": total.mean(), "sim_se": se,
        "z": (total.mean() - moments_n[0]) / se, "sim_var": emp_var, "ks": ks,
        "net": np.stack((net.mean(), net.std(), np.percentile(net, 99))),
        "corr": np.corrcoef(count, total)[0, 1],
    }
