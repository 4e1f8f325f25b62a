"""Evolutionary optimisation: adaptive differential evolution (JADE) on shifted, rotated test functions, and NSGA-II
(non-dominated sorting, crowding, SBX, polynomial mutation) on ZDT1, ZDT3 and DTLZ2.
N: size of the populations."""

import math

import numpy as np

DEFAULT = 160
DIM = 24


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(2002)
    Q, _ = numpy.linalg.qr(rng.normal(size=(DIM, DIM)))
    return {"rotation": Q, "shift": rng.uniform(-2, 2, DIM), "seed": numpy.array([17, 4242], dtype=numpy.uint32)}


class Stream:
    """Uniform numbers from a 32-bit hash of (seed, call, element) - PCG's output function."""

    def __init__(self, seed):
        self.seed, self.calls = int(seed), 0

    def __call__(self, *shape):
        size = math.prod(shape)
        self.calls += 1
        x = np.arange(size, dtype=np.uint32) + np.uint32(
            (self.seed * 747796405 + self.calls * 2891336453) & 0xFFFFFFFF
        )
        for _ in range(2):
            x = x * np.uint32(747796405) + np.uint32(2891336453)
            x = ((x >> ((x >> np.uint32(28)) + np.uint32(4))) ^ x) * np.uint32(277803737)
            x = (x >> np.uint32(22)) ^ x
        return ((x + 0.5) / 2.0**32).reshape(shape)


# differential evolution
def rastrigin(z):
    return (z**2 - 10 * np.cos(2 * np.pi * z) + 10).sum(axis=1)


def ackley(z):
    return 20 - 20 * np.exp(-0.2 * np.sqrt((z**2).mean(axis=1))) + np.e - np.exp(np.cos(2 * np.pi * z).mean(axis=1))


def rosenbrock(z):
    z = 0.2 * z + 1
    return (100 * (z[:, 1:] - z[:, :-1] ** 2) ** 2 + (1 - z[:, :-1]) ** 2).sum(axis=1)


def jade(f, n, u, generations=100, lo=-5.0, hi=5.0, p=0.1, c=0.1):
    x = lo + (hi - lo) * u(n, DIM)
    fx = f(x)
    mu_f, mu_cr = 0.5, 0.5
    rows, history = np.arange(n), []
    for _ in range(generations):
        # F from a Cauchy, CR from a normal distribution (Box-Muller), cut to their ranges
        F = np.clip(mu_f + 0.1 * np.tan(np.pi * (u(n) - 0.5)), 0.05, 1.0)
        CR = np.clip(mu_cr + 0.1 * np.sqrt(-2 * np.log(u(n))) * np.cos(2 * np.pi * u(n)), 0.0, 1.0)
        elite = np.argsort(fx)[: max(2, int(p * n))]
        best = x[elite[(u(n) * len(elite)).astype(np.int64)]]
        r1 = (rows + 1 + (u(n) * (n - 1)).astype(np.int64)) % n
        r2 = (rows + 1 + (u(n) * (n - 1)).astype(np.int64)) % n
        v = x + F[:, None] * (best - x) + F[:, None] * (x[r1] - x[r2])
        v = np.where(v < lo, 0.5 * (lo + x), np.where(v > hi, 0.5 * (hi + x), v))
        cross = u(n, DIM) < CR[:, None]
        cross[rows, (u(n) * DIM).astype(np.int64)] = True
        trial = np.where(cross, v, x)
        ft = f(trial)
        better = ft < fx
        x, fx = np.where(better[:, None], trial, x), np.where(better, ft, fx)
        won = int(np.count_nonzero(better))
        if won:
            good = F[better]
            mu_f = (1 - c) * mu_f + c * float((good**2).sum() / good.sum())
            mu_cr = (1 - c) * mu_cr + c * float(CR[better].mean())
        history.append([float(fx.min()), float(np.median(fx)), mu_f, mu_cr, won / n])
    return x, fx, np.array(history)


# NSGA-II
def zdt(x, waves=0.0):
    g = 1 + 9 * x[:, 1:].mean(axis=1)
    h = x[:, 0] / g
    return np.stack([x[:, 0], g * (1 - np.sqrt(h) - waves * h * np.sin(10 * np.pi * x[:, 0]))], axis=1)


def dtlz2(x):
    g = ((x[:, 2:] - 0.5) ** 2).sum(axis=1)
    a, b = 0.5 * np.pi * x[:, 0], 0.5 * np.pi * x[:, 1]
    return (1 + g)[:, None] * np.stack([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)], axis=1)


def nondominated_rank(f):
    a, b = f[:, None, :], f[None, :, :]
    dominates = (a <= b).all(axis=-1) & (a < b).any(axis=-1)
    waiting = dominates.sum(axis=0)  # how many dominate me
    rank, level = np.full(len(f), -1), 0
    while bool((rank < 0).any()):
        front = (waiting == 0) & (rank < 0)
        rank[front] = level
        waiting = waiting - dominates[front].sum(axis=0)
        level += 1
    return rank


def crowding(f, rank):
    d = np.zeros(len(f))
    for k in range(f.shape[1]):
        order = np.lexsort(np.stack([f[:, k], rank.astype(f.dtype)]))
        v, r = f[order, k], rank[order]
        inner = (r[1:-1] == r[:-2]) & (r[1:-1] == r[2:])
        gap = np.full(len(f), np.inf)
        gap[1:-1] = np.where(inner, (v[2:] - v[:-2]) / (v.max() - v.min()), np.inf)
        d[order] += gap
    return d


def variation(a, b, u, eta=15.0, eta_m=20.0):
    n, D = a.shape
    r = u(n, D)
    beta = np.where(r <= 0.5, (2 * r) ** (1 / (eta + 1)), (0.5 / (1 - r)) ** (1 / (eta + 1)))
    mix = (u(n, D) < 0.5) & (np.abs(a - b) > 1e-12)
    child = np.where(mix, 0.5 * ((1 + beta) * a + (1 - beta) * b), a)
    r = u(n, D)
    delta = np.where(r < 0.5, (2 * r) ** (1 / (eta_m + 1)) - 1, 1 - (2 * (1 - r)) ** (1 / (eta_m + 1)))
    child = np.where(u(n, D) < 1.0 / D, child + delta, child)
    return np.clip(child, 0.0, 1.0)


def nsga2(problem, n, u, generations=40):
    x = u(n, DIM)
    f = problem(x)
    rank = nondominated_rank(f)
    dist, fronts = crowding(f, rank), []
    for _ in range(generations):
        i, j = ((u(2, n) * n).astype(np.int64) for _ in range(2))
        first = (rank[i] < rank[j]) | ((rank[i] == rank[j]) & (dist[i] >= dist[j]))
        mum, dad = np.where(first, i, j)
        x = np.concatenate([x, variation(x[mum], x[dad], u)])
        f = problem(x)
        rank = nondominated_rank(f)
        dist = crowding(f, rank)
        keep = np.lexsort(np.stack([-dist, rank.astype(dist.dtype)]))[:n]
        x, f, rank, dist = x[keep], f[keep], rank[keep], dist[keep]
        fronts.append(int((rank == 0).sum()))
    return x, f, np.array(fronts)


def main(asarray, N, given):
    Q, shift = asarray(given["rotation"]), asarray(given["shift"])
    seeds = given["seed"].tolist()
    out, u = {}, Stream(seeds[0])
    for f in (rastrigin, ackley, rosenbrock):
        x, fx, history = jade(lambda v: f((v - shift) @ Q), N, u)
        out[f.__name__], out[f.__name__ + "_best"] = history, fx.min()
    u = Stream(seeds[1])
    for name, problem in (("zdt1", zdt), ("zdt3", lambda x: zdt(x, 1.0)), ("dtlz2", dtlz2)):
        x, f, out[name + "_fronts"] = nsga2(problem, N, u)
        out[name] = f
    return out
