"""Criticality of a slab reactor by Monte Carlo in two energy groups, with uniforms drawn beforehand.

Woodcock tracking through fuel, moderator and reflector, implicit capture, roulette, generations of fission sites, and
a diffusion solution to compare. N: neutrons a generation.
"""
import numpy as np

DEFAULT = 8000
STEPS, GENERATIONS, SKIP, CELLS = 120, 7, 2, 120


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    edges = numpy.array([0.0, 8.0, 10.0, 18.0, 20.0, 28.0, 38.0])
    material = numpy.array([0, 1, 0, 1, 0, 2])
    # material, group: total, absorption, nu-fission, down-scatter
    total = numpy.array([[0.55, 1.20], [0.70, 2.10], [0.60, 1.60]])
    absorb = numpy.array([[0.012, 0.110], [0.001, 0.022], [0.0008, 0.015]])
    fission = numpy.array([[0.0085, 0.165], [0.0, 0.0], [0.0, 0.0]])
    down = numpy.array([0.022, 0.055, 0.045])
    return edges, material, total, absorb, fission, down, rng.uniform(size=(STEPS, 5, N))


def transport(x, weight, data, uniform, k, score):
    """Follows one generation; returns the sites of fission neutrons with their weights."""
    edges, material, total, absorb, fission, down = data
    width = float(edges[-1])
    majorant = total.max(axis=0)
    mu = 2.0 * uniform[0, 4] - 1.0
    group = np.zeros(x.shape, dtype=np.int64)
    who = np.arange(len(x))
    sites, weights, leaked = [], [], np.zeros(2)
    for u in uniform:
        if len(x) == 0:
            break
        u = u[:, who]
        x = x - mu * np.log(u[0]) / majorant[group]
        out = (x < 0.0) | (x >= width)
        leaked += np.bincount((x[out] >= width).astype(int), weights=weight[out], minlength=2)
        stay = ~out
        x, mu, weight, group, who, u = x[stay], mu[stay], weight[stay], group[stay], who[stay], u[:, stay]
        m = material[np.searchsorted(edges, x, side="right") - 1]
        sigma = total[m, group]
        cell = (x / width * CELLS).astype(np.int64)
        # every Woodcock point, true collision or not, scores the flux
        np.add.at(score, (group, cell), weight / majorant[group])
        real = u[1] * majorant[group] < sigma
        hit = np.flatnonzero(real)
        fertile = hit[fission[m[hit], group[hit]] > 0]
        sites.append(x[fertile])
        weights.append(weight[fertile] * fission[m[fertile], group[fertile]] / sigma[fertile] / k)
        weight[hit] *= 1.0 - absorb[m[hit], group[hit]] / sigma[hit]
        slows = real & (group == 0) & (u[2] < down[m] / (sigma - absorb[m, 0]))
        group = np.where(slows, 1, group)
        mu = np.where(real, 2.0 * u[3] - 1.0, mu)
        low = weight < 0.25
        survives = u[4] < weight / 0.5
        weight = np.where(low & survives, 0.5, weight)
        keep = ~low | survives
        x, mu, weight, group, who = x[keep], mu[keep], weight[keep], group[keep], who[keep]
    return np.concatenate(sites), np.concatenate(weights), leaked, weight.sum()


def comb(sites, weights, number, offset):
    """Draws sites by equal steps in the cumulated weights."""
    cdf = np.cumsum(weights)
    teeth = (np.arange(number) + offset) * (cdf[-1] / number)
    return sites[np.minimum(np.searchsorted(cdf, teeth), len(sites) - 1)]


def diffusion(data, cells):
    """k and the fluxes of two-group diffusion by power iteration on a dense matrix."""
    edges, material, total, absorb, fission, down = data
    h = float(edges[-1]) / cells
    m = material[np.searchsorted(edges, (np.arange(cells) + 0.5) * h, side="right") - 1]
    flux, k = np.ones((2, cells)), 1.0
    inverse = []
    for g in range(2):
        d = 1.0 / (3.0 * total[m, g])
        face = 2 * d[1:] * d[:-1] / (d[1:] + d[:-1]) / h**2
        ends = d / (2 * d + h / 2) / h
        lost = absorb[m, g] + (down[m] if g == 0 else 0.0)
        diag = lost + np.pad(face, (1, 0)) + np.pad(face, (0, 1))
        diag[0] += ends[0]
        diag[-1] += ends[-1]
        inverse.append(np.linalg.inv(np.diag(diag) - np.diag(face, 1) - np.diag(face, -1)))
    for _ in range(200):
        source = (fission[m].T * flux).sum(axis=0)
        fast = inverse[0] @ (source / k)
        new = np.stack([fast, inverse[1] @ (down[m] * fast)])
        grown = k * float((fission[m].T * new).sum()) / float(source.sum())
        done = abs(grown - k) < 1e-9
        flux, k = new / new.mean(), grown
        if done:
            break
    return k, flux, m


def main(asarray, N, given):
    *data, uniform = (asarray(g) for g in given)
    edges, material, fission = data[0], data[1], data[4]
    middle = 0.5 * (edges[1:] + edges[:-1])
    fuel = np.flatnonzero(material == 0)
    x = middle[fuel[np.arange(N) % len(fuel)]] + 6.0 * (uniform[1, 2] - 0.5)
    k, ks, entropy, fluxes = 1.0, [], [], []
    leaks, cut = np.zeros(2), 0.0
    for generation in range(GENERATIONS):
        shuffled = np.roll(uniform, (7 * generation, 1013 * generation), axis=(0, 2))
        score = np.zeros((2, CELLS))
        sites, weights, leaked, left = transport(x, np.ones(N), data, shuffled, k, score)
        k *= float(weights.sum()) / N
        x = comb(sites, weights, N, float(shuffled[0, 3, 0]))
        p = np.histogram(x, bins=64, range=(0.0, float(edges[-1])))[0] / N
        entropy.append(-(p[p > 0] * np.log2(p[p > 0])).sum())
        ks.append(k)
        if generation >= SKIP:
            fluxes.append(score / N)
            leaks += leaked / N
            cut += left / N
    flux = np.stack(fluxes)
    mean, error = flux.mean(axis=0), flux.std(axis=0, ddof=1) / np.sqrt(len(fluxes))
    k_diffusion, shape, m = diffusion(data, CELLS)
    power = (fission[m].T * mean).sum(axis=0)
    tally = np.bincount(m * 2, weights=mean[0], minlength=6) + np.bincount(m * 2 + 1, weights=mean[1], minlength=6)
    active = np.array(ks[SKIP:])
    return dict(k=np.array(ks), mean_k=active.mean(), error_k=active.std(ddof=1) / np.sqrt(len(active)),
                entropy=np.stack(entropy), flux=mean, relative=np.median(error / mean, axis=1), leaks=leaks, cut=cut,
                k_diffusion=k_diffusion, shape=shape, peaking=power.max() / power[power > 0].mean(), tally=tally,
                agreement=np.corrcoef(mean[1], shape[1])[0, 1], ratio=(mean[0] / mean[1])[::10])
