"""Single-cell gene expression: size factors, variable genes, PCA, diffusion pseudotime, rank-sum tests, FDR."""
import numpy as np

DEFAULT = 700           # cells


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    genes = 250
    time = numpy.sort(rng.uniform(0, 1, N))
    base = rng.gamma(1.2, 4.0, genes) + 0.2
    slope = numpy.where(rng.uniform(size=genes) < 0.25, rng.normal(0, 2.0, genes), 0.0)
    depth = rng.lognormal(0.0, 0.35, N)
    mean = depth[:, None] * base * numpy.exp(slope * (time[:, None] - 0.5))
    counts = rng.poisson(mean * rng.gamma(5.0, 0.2, mean.shape))
    batch = rng.integers(0, 3, N)
    shuffle = rng.permutation(N)
    return counts[shuffle], batch[shuffle], time[shuffle]


def size_factors(counts):
    """Median of ratios to the geometric mean over cells, on the well expressed genes."""
    logs = np.log(counts + 1.0)
    ref = logs.mean(axis=0)
    expressed = np.mean(counts > 0, axis=0) > 0.9
    factors = np.exp(np.median(logs[:, expressed] - ref[expressed], axis=1))
    return factors / factors.mean()


def variable_genes(norm, number):
    mean = norm.mean(axis=0)
    var = norm.var(axis=0, ddof=1)
    ok = (mean > 0.05) & (var > 0)
    lm, lv = np.log10(mean[ok]), np.log10(var[ok])
    fit = np.polyfit(lm, lv, 2)
    excess = np.full(mean.shape, -np.inf)
    excess[ok] = lv - np.polyval(fit, lm)
    chosen = np.argsort(excess)[::-1][:number]
    return np.sort(chosen), fit


def regress_out(x, batch):
    """Removes the batch means, as a least-squares fit on indicator columns."""
    levels = np.unique(batch)
    design = (batch[:, None] == levels[None, :]).astype(float)
    coef, *_ = np.linalg.lstsq(design, x, rcond=None)
    return x - design @ coef + x.mean(axis=0)


def pca(x, k):
    x = x - x.mean(axis=0)
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    pick = np.abs(vt).argmax(axis=1)
    sign = np.sign(vt[np.arange(vt.shape[0]), pick])
    scores = u * s * sign
    return scores[:, :k], s**2 / (len(x) - 1), (vt * sign[:, None])[:k]


def knn_kernel(x, k):
    sq = (x**2).sum(axis=1)
    d2 = np.maximum(sq[:, None] + sq[None, :] - 2.0 * (x @ x.T), 0.0)
    np.fill_diagonal(d2, 0.0)
    order = np.argsort(d2, axis=1)
    radius = np.sqrt(np.take_along_axis(d2, order[:, k:k + 1], axis=1))
    kernel = np.exp(-d2 / (radius * radius.T))
    kernel[kernel < 1e-5] = 0.0
    return kernel, order[:, 1:k + 1]


def diffusion_components(kernel, number):
    q = kernel.sum(axis=1)
    kernel = kernel / np.outer(q, q)
    d = kernel.sum(axis=1)
    sym = kernel / np.sqrt(d)[:, None] / np.sqrt(d)[None, :]
    w, v = np.linalg.eigh(0.5 * (sym + sym.T))
    w, v = w[::-1], v[:, ::-1]
    psi = v / v[:, :1]
    return w[:number], psi[:, 1:number]


def midranks(x):
    """Ranks of each column, ties shared."""
    out = np.empty(x.shape)
    for j in range(x.shape[1]):
        values, inverse, count = np.unique(x[:, j], return_inverse=True, return_counts=True)
        upper = np.cumsum(count)
        out[:, j] = (upper - (count - 1) / 2.0)[inverse]
    return out


def rank_sum(x, early, late):
    both = np.concatenate([x[early], x[late]])
    n1, n2 = int(early.sum()), int(late.sum())
    ranks = midranks(both)
    u = ranks[:n1].sum(axis=0) - n1 * (n1 + 1) / 2.0
    var = n2 * n1 / 12.0 * (n1 + n2 + 1)
    spread = ranks.var(axis=0) * 12.0 / ((n1 + n2)**2 - 1)
    z = (u - n1 * n2 / 2.0) / np.sqrt(var * np.maximum(spread, 1e-12))
    return z


def normal_sf(z):
    """Upper tail of the normal law (Abramowitz and Stegun 26.2.17)."""
    t = 1.0 / (1.0 + 0.2316419 * z)
    poly = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    return np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) * poly


def main(asarray, N, data):
    counts, batch, time = map(asarray, data)
    total = counts.sum(axis=1)
    good = (total > np.percentile(total, 1)) & ((counts > 0).sum(axis=1) > 20)
    counts, batch, time = counts[good], batch[good], time[good]
    factors = size_factors(counts)
    norm = counts / factors[:, None]
    chosen, fit = variable_genes(norm, 100)
    logx = np.log1p(norm)
    x = regress_out(logx[:, chosen], batch)
    x = np.clip((x - x.mean(axis=0)) / x.std(axis=0, ddof=1), -8.0, 8.0)
    scores, variance, axes = pca(x, 10)
    kernel, neighbours = knn_kernel(scores, 15)
    w, psi = diffusion_components(kernel, 5)

    pseudo = psi[:, 0]
    pseudo = pseudo * np.sign(np.corrcoef(pseudo, time)[0, 1])
    order = np.argsort(pseudo)
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order)) / (len(order) - 1)
    agreement = np.corrcoef(rank, time)[0, 1]

    smooth = logx[neighbours].mean(axis=1)
    third = len(rank) // 3
    early = rank <= float(np.sort(rank)[third])
    late = rank >= float(np.sort(rank)[-third - 1])
    z = rank_sum(logx, early, late)
    p = 2.0 * normal_sf(np.abs(z))
    m = p.size
    ps = np.sort(p)
    passed = np.flatnonzero(ps <= 0.05 * np.arange(1, m + 1) / m)
    found = int(passed[-1]) + 1 if len(passed) else 0
    markers = np.argsort(p, kind="stable")[:found]
    fold = np.log2((norm[late].mean(axis=0) + 0.1) / (norm[early].mean(axis=0) + 0.1))

    edges = np.linspace(0.0, 1.0, 21)
    which = np.clip(np.digitize(rank, edges) - 1, 0, 19)
    occupancy = np.bincount(which, minlength=20)
    trend = np.zeros((20, logx.shape[1]))
    np.add.at(trend, which, smooth)
    trend /= occupancy[:, None]
    return {"factors": factors, "trend_fit": fit, "chosen": chosen, "explained": variance[:10] / variance.sum(),
            "scores": scores[:, :3], "eigenvalues": w, "agreement": np.abs(agreement), "found": found,
            "strongest": np.sort(np.abs(z))[::-1][:20], "fold": np.abs(fold[markers]).mean(),
            "trend_range": trend.max(axis=0) - trend.min(axis=0), "occupancy": occupancy}
