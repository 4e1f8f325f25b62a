"""Soil samples: variograms in directions, fits of models, ordinary and universal kriging, cross-validation, simulation.

N: samples.
"""
import numpy as np

DEFAULT = 500
GRID, LAGS, NEAR, DRAWS = 52, 24, 16, 40


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    points = rng.uniform(0, 100, (N, 2))
    k = rng.normal(size=(400, 2)) / numpy.array([22.0, 11.0])
    waves = numpy.cos(points @ k.T + rng.uniform(0, 2 * numpy.pi, 400))
    value = 40 + 0.06 * points[:, 0] + waves @ rng.normal(0, 0.25, 400)
    value += rng.normal(0, 0.8, N)
    value[rng.integers(0, N, N // 60)] += 30
    return points, value, rng.normal(size=(GRID * GRID // 4, DRAWS))


def pairs(points, value):
    i, j = np.triu_indices(len(points), 1)
    step = points[j] - points[i]
    return np.hypot(step[:, 0], step[:, 1]), np.arctan2(step[:, 1], step[:, 0]) % np.pi, np.abs(value[j] - value[i])


def empirical(h, gap, edges):
    """Matheron's and Cressie's estimates, with the mean distances and numbers of pairs."""
    which = np.digitize(h, edges) - 1
    n = len(edges) - 1
    which, h, gap = which[which < n], h[which < n], gap[which < n]
    number = np.maximum(np.bincount(which, minlength=n), 1)

    def mean(v):
        return np.bincount(which, weights=v, minlength=n) / number
    robust = mean(np.sqrt(gap))**4 / (2 * (0.457 + 0.494 / number))
    return mean(h), mean(gap**2) / 2, robust, number


def model(h, nugget, sill, reach, kind):
    r = h / reach
    g = np.where(r < 1, 1.5 * r - 0.5 * r**3, 1.0) if kind == "spherical" else 1 - np.exp(-3 * r)
    return np.where(h > 0, nugget + sill * g, 0.0)


def fit(h, gamma, number, kind):
    """Weighted fits for a range of reaches at once: nugget and sill are linear; the best parabola gives the reach."""
    reach = np.linspace(8.0, 200.0, 49)
    shape = model(h[None, :], 0.0, 1.0, reach[:, None], kind)
    w = number / np.maximum(h, 1.0)**2
    design = np.stack([np.ones_like(shape), shape], axis=-1)
    normal = np.einsum("rlp,l,rlq->rpq", design, w, design)
    right = np.einsum("rlp,l->rp", design, w * gamma)[..., None]
    coef = np.maximum(np.linalg.solve(normal, right)[..., 0], 0.0)
    loss = (w * (np.einsum("rlp,rp->rl", design, coef) - gamma)**2).sum(axis=1)
    best = int(np.clip(loss.argmin(), 1, len(reach) - 2))
    left, here, right = loss[best - 1:best + 2].tolist()
    found = float(reach[best]) + 0.5 * 4.0 * (left - right) / max(left - 2 * here + right, 1e-12)
    return coef[best].tolist() + [min(max(found, 8.0), 200.0)], here


def distances(a, b):
    return np.sqrt(((a[:, None, :] - b[None, :, :])**2).sum(axis=-1))


def krige(points, value, targets, gamma, drift):
    """With all samples; drift gives the columns of the unknown mean."""
    n, f = len(points), drift(points)
    system = np.pad(gamma(distances(points, points)), (0, f.shape[1]))
    system[:n, n:], system[n:, :n] = f, f.T
    right = np.concatenate([gamma(distances(points, targets)), drift(targets).T])
    weights = np.linalg.solve(system, right)
    return weights[:n].T @ value, np.einsum("ij,ij->j", weights, right), system


def krige_near(points, value, targets, gamma):
    """With the nearest samples of each target, all small systems at once."""
    d = distances(targets, points)
    near = np.sort(np.argpartition(d, NEAR, axis=1)[:, :NEAR], axis=1)
    between = np.sqrt(((points[near][:, :, None] - points[near][:, None, :])**2).sum(axis=-1))
    system = np.pad(gamma(between), ((0, 0), (0, 1), (0, 1)), constant_values=1.0)
    system[:, -1, -1] = 0.0
    right = np.pad(gamma(np.take_along_axis(d, near, axis=1)), ((0, 0), (0, 1)), constant_values=1.0)
    weights = np.linalg.solve(system, right[..., None])[..., 0]
    return (weights[:, :-1] * value[near]).sum(axis=1), (weights * right).sum(axis=1)


def leave_one_out(system, value):
    """Errors and variances of every sample left out, from one inverse."""
    inverse = np.linalg.inv(system)[:len(value), :len(value)]
    return (inverse @ value) / np.diag(inverse), -1.0 / np.diag(inverse)


def main(asarray, N, given):
    points, raw, normal = (asarray(g) for g in given)
    off = np.abs(raw - np.median(raw))
    good = off < 5.2 * np.median(off)
    points, value = points[good], raw[good]
    (h, angle, gap), edges = pairs(points, value), np.linspace(0.0, 60.0, LAGS + 1)
    lag, gamma_m, gamma_r, number = empirical(h, gap, edges)
    fits = {kind: fit(lag, gamma_r, number, kind) for kind in ("spherical", "exponential")}
    kind = min(fits, key=lambda name: fits[name][1])
    (nugget, sill, reach), fan = fits[kind][0], []
    for a in np.arange(4) * np.pi / 4:
        sector = np.abs((angle - a + np.pi / 2) % np.pi - np.pi / 2) < np.pi / 8
        fan.append(empirical(h[sector], gap[sector], edges[::3])[1])

    def gamma(d):
        return model(d, nugget, sill, reach, kind)
    axis = (np.arange(GRID) + 0.5) * 100 / GRID
    targets = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    ordinary, variance, system = krige(points, value, targets, gamma, lambda p: np.ones((len(p), 1)))
    universal, *_ = krige(points, value, targets, gamma, lambda p: np.pad(p, ((0, 0), (1, 0)), constant_values=1.0))
    local, local_variance = krige_near(points, value, targets, gamma)
    error, error_variance = leave_one_out(system, value)
    score = error / np.sqrt(error_variance)
    # drawn fields that honour the samples: free ones corrected by kriging of their own misfit
    coarse = targets.reshape(GRID, GRID, 2)[::2, ::2].reshape(-1, 2)
    both, n = np.concatenate([coarse, points[::4]]), len(coarse)
    cov = nugget + sill - gamma(distances(both, both))
    free = np.linalg.cholesky(cov + 1e-8 * np.eye(len(both)))[:, :n] @ normal
    gain = np.linalg.solve(cov[n:, n:], cov[n:, :n]).T
    drawn = value.mean() + free[:n] + gain @ (value[::4, None] - value.mean() - free[n:])
    above = (drawn > np.percentile(value, 80)).mean(axis=1)
    return dict(good=int(good.sum()), lag=lag, matheron=gamma_m, robust=gamma_r, number=number, fan=np.stack(fan),
                fits=np.array([f for f, _ in fits.values()]), ordinary=ordinary, variance=variance, universal=universal,
                local=local, ratio=np.percentile(local_variance / variance, [5, 50, 95]), error=error, bias=score.mean(),
                inside=np.mean(np.abs(score) < 1.96), above=above, drawn=drawn.std(axis=1))
