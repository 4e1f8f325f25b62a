"""Population genetics: Wright-Fisher demes with drift, migration and selection, genotypes, site spectrum, LD decay, F-statistics, PCA, admixture by EM, sweep scan. N: sites."""
import numpy
import numpy as np

DEFAULT = 8000
DEMES, EACH, GENERATIONS, KINDS = 6, 40, 80, 3


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(1859)
    fitness = numpy.zeros(N)
    fitness[rng.permutation(N)[:N // 100]] = rng.exponential(0.04, N // 100)
    return dict(start=rng.beta(0.4, 0.8, N), noise=rng.normal(size=(GENERATIONS, DEMES, N)).astype(numpy.float32), fitness=fitness,
                position=numpy.sort(rng.random(N)) * 50e6,
                switch=rng.random((2 * DEMES * EACH, N)).astype(numpy.float32), draw=rng.random((2 * DEMES * EACH, N)).astype(numpy.float32),
                Q=rng.dirichlet(numpy.ones(KINDS), DEMES * EACH))


class Demes:
    """Allele frequencies of all sites in a row of demes; drift by the normal approximation with the given draws."""

    def __init__(self, start, sizes, migration, fitness):
        self.p = np.tile(start, (DEMES, 1))
        self.sizes = np.array(sizes, dtype=float)[:, None]
        M = np.eye(DEMES)
        for k in range(DEMES - 1):
            M[k, k + 1] += migration
            M[k + 1, k] += migration
        self.M = M / M.sum(axis=1, keepdims=True)
        # selection acts in the first half of the demes only
        self.s = np.where(np.arange(DEMES)[:, None] < DEMES // 2, fitness, 0.0)
        self.heterozygosity = []

    def generation(self, z):
        p = self.M @ self.p
        p = p * (1 + self.s) / (1 + self.s * p)
        p += z * np.sqrt(p * (1 - p) / (2 * self.sizes))
        np.clip(p, 0.0, 1.0, out=p)
        p[p < 0.25 / self.sizes.max()] = 0
        self.p = p
        self.heterozygosity.append((2 * p * (1 - p)).mean(axis=1))


def haplotypes(p, position, switch, draw, rate=4e-6):
    """Chromosomes whose draws are kept along a block until recombination: linked sites."""
    n, L = draw.shape
    gap = np.diff(position, prepend=position[:1])
    fresh = switch < 1 - np.exp(-rate * gap)
    fresh[:, 0] = True
    site = np.where(fresh, np.arange(L), 0)
    block = np.cumsum(fresh, axis=1)
    begin = site[fresh]                                     # the first site of every block, row after row
    offset = np.cumsum(block[:, -1]) - block[:, -1]
    source = begin[offset[:, None] + block - 1]
    u = np.take_along_axis(draw, source, axis=1)
    return (u < np.repeat(p, 2 * EACH, axis=0)).astype(np.int8)


def spectrum(h):
    n = len(h)
    count = h.sum(axis=0)
    folded = np.bincount(np.minimum(count, n - count), minlength=n // 2 + 1)
    seg = folded[1:].sum()
    a1 = (1 / np.arange(1, n)).sum()
    pi = (2.0 * count * (n - count)).sum() / (n * (n - 1))
    a2 = (1 / np.arange(1, n) ** 2).sum()
    b1, b2 = (n + 1) / (3 * (n - 1)), 2 * (n * n + n + 3) / (9 * n * (n - 1))
    c1 = b1 - 1 / a1
    c2 = b2 - (n + 2) / (a1 * n) + a2 / a1 ** 2
    tajima = (pi - seg / a1) / np.sqrt(c1 / a1 * seg + c2 / (a1 ** 2 + a2) * seg * (seg - 1))
    return folded, tajima


def linkage(h, position, window=400, step=200, bins=24):
    """Mean r squared by distance, over windows of sites."""
    total, count = np.zeros(bins), np.zeros(bins, dtype=np.int64)
    for lo in range(0, h.shape[1] - window + 1, step):
        x = h[:, lo:lo + window].astype(np.float32)
        x -= x.mean(axis=0)
        sd = np.sqrt((x ** 2).mean(axis=0))
        x = x[:, sd > 0.2] / sd[sd > 0.2]
        where = position[lo:lo + window][sd > 0.2]
        r2 = (x.T @ x / len(x)) ** 2
        i, j = np.triu_indices(len(where), 1)
        at = np.minimum(((where[j] - where[i]) / 5e4).astype(np.int64), bins - 1)
        total += np.bincount(at, weights=r2[i, j], minlength=bins)
        count += np.bincount(at, minlength=bins)
    return total / np.maximum(count, 1)


def fst(h, pop):
    """Hudson's estimator between all pairs of demes, and site by site between the first and the last."""
    P = np.stack([h[pop == k].mean(axis=0, dtype=np.float64) for k in range(DEMES)])
    within = P * (1 - P) / (2 * EACH - 1)
    num = (P[:, None] - P[None]) ** 2 - within[:, None] - within[None]
    den = P[:, None] * (1 - P[None]) + P[None] * (1 - P[:, None])
    pairs = num.sum(axis=2) / den.sum(axis=2)
    pairs[np.arange(DEMES), np.arange(DEMES)] = 0
    return pairs, np.where(den[0, -1] > 0, num[0, -1] / np.where(den[0, -1] > 0, den[0, -1], 1), 0), P


def pca(g, k=4):
    p = g.mean(axis=0) / 2
    keep = (p > 0.05) & (p < 0.95)
    x = (g[:, keep] - 2 * p[keep]) / np.sqrt(2 * p[keep] * (1 - p[keep]))
    w, V = np.linalg.eigh(x @ x.T / x.shape[1])
    score = V[:, ::-1][:, :k] * np.sqrt(np.maximum(w[::-1][:k], 0))
    return w[::-1], score, x


def admixture(g, Q, F, rounds=20):
    """The EM of FRAPPE: shares of ancestry Q and frequencies F."""
    trace = []
    for n in range(rounds):
        mix = np.clip(Q @ F, 1e-6, 1 - 1e-6)
        a, b = g / mix, (2 - g) / (1 - mix)
        trace.append(float((g * np.log(mix) + (2 - g) * np.log(1 - mix)).sum()))
        if n and trace[-1] - trace[-2] < 1e-5 * abs(trace[-1]):
            break
        newQ = Q * (a @ F.T + b @ (1 - F).T)
        up, down = F * (Q.T @ a), (1 - F) * (Q.T @ b)
        F = np.clip(up / (up + down), 1e-4, 1 - 1e-4)
        Q = newQ / newQ.sum(axis=1, keepdims=True)
    return Q, F, np.array(trace)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    start, noise, fitness, position = (asarray(data[k]) for k in ("start", "noise", "fitness", "position"))
    demes = Demes(start, [300, 250, 400, 200, 300, 350], 0.004, fitness)
    for z in noise:
        demes.generation(z)
    h = haplotypes(demes.p, position, asarray(data["switch"]), asarray(data["draw"]))
    pop = np.repeat(np.arange(DEMES), 2 * EACH)
    some = (h.sum(axis=0) > 2) & (h.sum(axis=0) < len(h) - 2)
    h, position, fitness = h[:, some], position[some], fitness[some]
    spectra = [spectrum(h[pop == k]) for k in range(DEMES)]
    pairs, scan, P = fst(h, pop)
    smooth = np.convolve(scan, np.ones(25) / 25, mode="same")
    peaks = np.flatnonzero((smooth[1:-1] > smooth[:-2]) & (smooth[1:-1] >= smooth[2:]) & (smooth[1:-1] > np.percentile(smooth, 99))) + 1
    g = (h[0::2] + h[1::2]).astype(np.float64)
    w, score, x = pca(g)
    thin = g[:, ::4]
    F = np.clip(thin.mean(axis=0) / 2 + 0.1 * np.stack([np.sin(np.arange(thin.shape[1]) * (k + 1.0)) for k in range(KINDS)]), 0.02, 0.98)
    Q, F, trace = admixture(thin, asarray(data["Q"]), F)
    ancestry = np.stack([Q[pop[::2] == k].mean(axis=0) for k in range(DEMES)])
    kept = np.abs(score[:, :2]) / np.abs(score[:, :2]).max(axis=0)
    observed, expected = (g == 1).mean(axis=0), 2 * g.mean(axis=0) / 2 * (1 - g.mean(axis=0) / 2)
    return dict(heterozygosity=np.stack(demes.heterozygosity), folded=np.stack([s[0] for s in spectra]), tajima=np.stack([s[1] for s in spectra]),
                decay=linkage(h, position), fst=pairs, smooth=smooth,
                peaks=len(peaks), selected=scan[fitness > 0.05].mean() / scan.mean(), w=w[:10], kept=kept, ancestry=ancestry, trace=trace,
                inbreeding=1 - observed.sum() / expected.sum(), sites=some.sum())
