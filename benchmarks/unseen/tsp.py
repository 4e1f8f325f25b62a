"""Travelling salesman: a ladder of annealing chains side by side (2-opt and or-opt moves, replica exchange), polishing of
the best tours by steepest 2-opt descent, and a lower bound by 1-trees with Held-Karp subgradients.  N = cities."""

import numpy as np

DEFAULT = 64
CHAINS, STEPS = 128, 4000


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(1954)
    cities = rng.random((N, 2)) + 0.3 * rng.normal(size=(N, 2)) * (rng.random((N, 1)) < 0.3)
    tours = numpy.stack([rng.permutation(N) for _ in range(CHAINS)])
    states = rng.integers(1, 2**32, CHAINS, dtype=numpy.uint32)
    return cities, tours, states


class XorShift:
    """One xorshift32 generator a chain, all advanced together."""

    def __init__(self, state):
        self.s = state.copy()

    def random(self):
        s = self.s
        s ^= s << 13
        s ^= s >> 17
        s ^= s << 5
        return (s >> 8) * 2.0**-24

    def integers(self, n):
        return np.floor(self.random() * n).astype(np.int64)


def tour_length(D, tours):
    return D[tours, np.roll(tours, -1, axis=-1)].sum(axis=-1)


def propose_reverse(D, tours, rng, rows, pos):
    """Reverse the stretch i..j."""
    n = tours.shape[1]
    p, q = rng.integers(n - 1) + 1, rng.integers(n - 1) + 1
    i, j = np.minimum(p, q), np.maximum(p, q)
    a, b, c, d = tours[rows, i - 1], tours[rows, i], tours[rows, j], tours[rows, (j + 1) % n]
    delta = D[a, c] + D[b, d] - D[a, b] - D[c, d]
    i, j = i[:, None], j[:, None]
    return np.where((pos >= i) & (pos <= j), i + j - pos, pos), delta


def propose_insert(D, tours, rng, rows, pos):
    """Take the city at i out and put it at j."""
    n = tours.shape[1]
    i, j = rng.integers(n - 1) + 1, rng.integers(n - 1) + 1
    lo, hi = np.minimum(i, j), np.maximum(i, j)
    x = tours[rows, i]
    gone = D[tours[rows, i - 1], x] + D[x, tours[rows, (i + 1) % n]] - D[tours[rows, i - 1], tours[rows, (i + 1) % n]]
    left = np.where(j < i, tours[rows, j - 1], tours[rows, j])
    right = np.where(j < i, tours[rows, j], tours[rows, (j + 1) % n])
    delta = np.where(i == j, 0.0, D[left, x] + D[x, right] - D[left, right] - gone)
    shift = np.where(i < j, 1, -1)[:, None]
    inside = (pos >= lo[:, None]) & (pos <= hi[:, None])
    source = np.where(inside, pos + shift, pos)
    return np.where(pos == j[:, None], i[:, None], source), delta


def anneal(D, tours, rng, hot=0.15, cold=0.003):
    chains, n = tours.shape
    rows, pos = np.arange(chains), np.arange(n)[None, :]
    ladder = np.logspace(-0.3, 0.3, chains)
    energy = tour_length(D, tours)
    best, best_tours = energy.copy(), tours.copy()
    log = []
    for step in range(STEPS):
        T = hot * (cold / hot) ** (step / STEPS) * ladder
        propose = propose_insert if step % 3 == 2 else propose_reverse
        order, delta = propose(D, tours, rng, rows, pos)
        ok = rng.random() < np.exp(-np.maximum(delta, 0.0) / T)
        tours = np.take_along_axis(tours, np.where(ok[:, None], order, pos), axis=1)
        energy = energy + np.where(ok, delta, 0.0)
        record = energy < best - 1e-9
        best_tours[record] = tours[record]
        best = np.where(record, energy, best)
        if step % 20 == 19:  # neighbours on the ladder may exchange their tours
            first = (step // 20) % 2
            lo = np.arange(first, chains - 1, 2)
            gain = (1 / T[lo] - 1 / T[lo + 1]) * (energy[lo] - energy[lo + 1])
            swap = lo[rng.random()[lo] < np.exp(np.minimum(gain, 0.0))]
            perm = np.arange(chains)
            perm[swap], perm[swap + 1] = swap + 1, swap
            tours, energy = tours[perm], energy[perm]
        if step % 250 == 249:
            log.append(np.percentile(energy, [0, 25, 50, 75, 100]))
    return best, best_tours, np.stack(log)


def descend(D, tours, rounds=80):
    """The best 2-opt move of every tour at once, until none helps."""
    k, n = tours.shape
    pos, used = np.arange(n)[None, :], 0
    late = np.triu(np.ones((n, n), dtype=bool), 2)
    for used in range(rounds):
        nxt = np.roll(tours, -1, axis=1)
        here = D[tours, nxt]
        delta = (
            D[tours[:, :, None], tours[:, None, :]]
            + D[nxt[:, :, None], nxt[:, None, :]]
            - here[:, :, None]
            - here[:, None, :]
        )
        flat = np.where(late, delta, np.inf).reshape(k, -1)
        at = flat.argmin(axis=1)
        gain = np.take_along_axis(flat, at[:, None], axis=1)
        if float(gain.min()) > -1e-9:
            break
        i, j = (v[:, None] for v in np.unravel_index(at, (n, n)))
        order = np.where((pos > i) & (pos <= j) & (gain < -1e-9), i + 1 + j - pos, pos)
        tours = np.take_along_axis(tours, order, axis=1)
    return tours, used


def one_tree(D):
    """Prim's tree on the cities 1..n-1 and two edges of city 0; its length and the degrees."""
    n = len(D)
    near, link = D[1].copy(), np.ones(n, dtype=np.int64)
    out = np.ones(n, dtype=bool)
    out[:2] = False
    degree, total = np.zeros(n), 0.0
    for _ in range(n - 2):
        c = np.where(out, near, np.inf).argmin()
        total = total + near[c]
        degree[c] += 1
        degree[link[c]] += 1
        out[c] = False
        closer = out & (D[c] < near)
        near, link = np.where(closer, D[c], near), np.where(closer, c, link)
    two = np.argsort(D[0, 1:])[:2] + 1
    degree[two] += 1
    degree[0] += 2
    return total + D[0, two].sum(), degree


def held_karp(D, upper, rounds=24):
    pi, bounds, scale = np.zeros(len(D)), [], 1.0
    for r in range(rounds):
        length, degree = one_tree(D + pi[:, None] + pi[None, :])
        bounds.append(float(length - 2 * pi.sum()))
        g = degree - 2
        pi = pi + scale * (upper - bounds[-1]) / float((g**2).sum() + 1e-9) * g
        scale *= 0.93
    return np.array(bounds)


def main(asarray, N, given):
    cities, tours, states = (asarray(v) for v in given)
    D = np.hypot(*np.moveaxis(cities[:, None] - cities[None], -1, 0))
    best, best_tours, log = anneal(D, tours, XorShift(states))
    top = np.unique(np.round(best, 6), return_index=True)[1][:12]  # no tour twice
    polished, used = descend(D, best_tours[top])
    lengths = tour_length(D, polished)
    nxt = np.roll(polished, -1, axis=1)
    share = np.bincount((np.minimum(polished, nxt) * N + np.maximum(polished, nxt)).ravel(), minlength=N * N).reshape(
        N, N
    )
    bounds = held_karp(D, float(lengths.min()))
    valid = (np.sort(polished, axis=1) == np.arange(N)).all()
    return dict(
        best=best,
        log=log,
        lengths=lengths,
        used=used,
        bounds=bounds,
        gap=lengths.min() / bounds.max() - 1,
        valid=valid,
        shared=np.bincount(share[share > 0], minlength=13),
        crossing=np.abs(best[top] - lengths).max(),
        drift=np.abs(tour_length(D, best_tours) - best).max() < 1e-9,
    )
