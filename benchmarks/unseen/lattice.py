"""Two lattice models of critical phenomena.

Site percolation: clusters of many samples at once by propagation of the least label with pointer jumping, cluster
sizes, spanning, radius of gyration, chemical distance (a burning front from the top edge).
Abelian sandpile: random drops with parallel toppling, the identity of the sandpile group, Dhar's burning test.
N: sites a side of the percolation lattices (the sandpiles are smaller).
"""

import numpy as np

DEFAULT = 96
OCCUPANCY = (0.50, 0.56, 0.59, 0.5927, 0.62, 0.68)


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(1987)
    sites = rng.random((len(OCCUPANCY), 2, N, N))
    drops = rng.integers(0, 40, (250, 2))
    return sites, drops


def label(open_):
    """Cluster labels (4 neighbours, free borders) of a stack of lattices; closed sites get the label `size`."""
    k, n, m = open_.shape
    size = k * n * m
    lab = np.where(open_, np.arange(size, dtype=np.int32).reshape(open_.shape), np.int32(size))
    sweeps = 0
    while True:
        best = lab.copy()
        np.minimum(best[:, 1:], lab[:, :-1], out=best[:, 1:])
        np.minimum(best[:, :-1], lab[:, 1:], out=best[:, :-1])
        np.minimum(best[:, :, 1:], lab[:, :, :-1], out=best[:, :, 1:])
        np.minimum(best[:, :, :-1], lab[:, :, 1:], out=best[:, :, :-1])
        best[~open_] = size
        # roots learn what their members have heard, then members ask their roots
        parent = np.arange(size + 1, dtype=np.int32)
        np.minimum.at(parent, lab.ravel(), best.ravel())
        parent = parent[parent]
        parent = parent[parent]
        new = parent[best]
        sweeps += 1
        if np.array_equal(new, lab):
            return lab, sweeps
        lab = new


def cluster_statistics(lab, shape):
    k, n, m = shape
    total = k * n * m
    flat = lab.ravel()
    mass = np.bincount(flat, minlength=total + 1)[:total]
    yy, xx = np.meshgrid(np.arange(n, dtype=float), np.arange(m, dtype=float), indexing="ij")
    sums = [
        np.bincount(flat, weights=np.tile(w.ravel(), k), minlength=total + 1)[:total] for w in (yy, xx, yy**2 + xx**2)
    ]
    roots = np.flatnonzero(mass)
    s = mass[roots].astype(float)
    cy, cx, r2 = (a[roots] / s for a in sums)
    gyration2 = np.maximum(r2 - cy**2 - cx**2, 0.0)
    sample = roots // (n * m)
    moments = np.stack([np.bincount(sample, weights=s**p, minlength=k) for p in (1, 2, 3)])
    largest = np.zeros(k)
    np.maximum.at(largest, sample, s)
    finite = s < largest[sample]
    xi2 = np.bincount(sample, weights=finite * 2 * gyration2 * s**2, minlength=k)
    xi2 = xi2 / np.maximum(np.bincount(sample, weights=finite * s**2, minlength=k), 1)
    spectrum = np.histogram(s, bins=2.0 ** np.arange(0, 15))[0]
    return moments, largest, np.sqrt(xi2), spectrum, len(roots)


def spans(lab, closed):
    """Does a cluster touch top and bottom?"""
    return np.stack([(np.isin(z[0], z[-1]) & (z[0] < closed)).any() for z in lab])


def burn(open_):
    """Steps that the fire takes from the top row to every site; -1 where it does not come."""
    time = np.full(open_.shape, -1, dtype=np.int32)
    front = np.zeros_like(open_)
    front[:, 0] = open_[:, 0]
    t = 0
    while front.any():
        time[front] = t
        wide = np.pad(front, ((0, 0), (1, 1), (1, 1)))
        near = wide[:, :-2, 1:-1] | wide[:, 2:, 1:-1] | wide[:, 1:-1, :-2] | wide[:, 1:-1, 2:]
        front = near & open_ & (time < 0)
        t += 1
    return time, t


class Sandpile:
    def __init__(self, z):
        self.z = np.pad(z.astype(np.int32), 1)
        self.odometer = np.zeros_like(self.z)

    def relax(self):
        """Topple in parallel until stable; returns the number of rounds and topplings."""
        z, rounds, before = self.z, 0, int(self.odometer.sum())
        while True:
            t = z[1:-1, 1:-1] >> 2
            if not t.any():
                break
            z[1:-1, 1:-1] -= t << 2
            z[:-2, 1:-1] += t
            z[2:, 1:-1] += t
            z[1:-1, :-2] += t
            z[1:-1, 2:] += t
            z[[0, -1], :] = 0
            z[:, [0, -1]] = 0
            self.odometer[1:-1, 1:-1] += t
            rounds += 1
        return rounds, int(self.odometer.sum()) - before

    @property
    def heights(self):
        return self.z[1:-1, 1:-1]


def stable(z):
    pile = Sandpile(z)
    rounds, _ = pile.relax()
    return pile.heights.copy(), rounds


def group_identity(n):
    full = np.full((n, n), 6, dtype=np.int32)
    return stable(full - stable(full)[0])


def recurrent(z):
    """Dhar: one toppling of the border must burn every site exactly once."""
    test = z.copy()
    test[0] += 1
    test[-1] += 1
    test[:, 0] += 1
    test[:, -1] += 1
    pile = Sandpile(test)
    pile.relax()
    return (pile.odometer[1:-1, 1:-1] == 1).all() & np.array_equal(pile.heights, z)


def main(asarray, N, given):
    sites, drops = (asarray(v) for v in given)
    open_ = (sites < np.array(OCCUPANCY)[:, None, None, None]).reshape(-1, N, N)
    lab, sweeps = label(open_)
    moments, largest, xi, spectrum, clusters = cluster_statistics(lab, open_.shape)
    time, burnt = burn(open_)
    reached = time >= 0
    chemical = time.max(axis=2)
    out = dict(
        labels=lab,
        moments=moments,
        largest=largest,
        xi=xi,
        spectrum=spectrum,
        clusters=clusters,
        spans=spans(lab, open_.size),
        sweeps=sweeps,
        burnt=burnt,
        reached=reached.sum(axis=(1, 2)),
        chemical=chemical,
    )
    n = 40
    pile = Sandpile(np.full((n, n), 3))
    avalanches = []
    for y, x in (drops % n).tolist():
        pile.z[y + 1, x + 1] += 1
        avalanches.append(pile.relax())
    identity, rounds = group_identity(n)
    both, _ = stable(pile.heights + identity)
    out.update(
        heights=pile.heights,
        avalanches=np.array(avalanches),
        identity=identity,
        rounds=rounds,
        odometer=pile.odometer,
        neutral=np.array_equal(both, pile.heights),
        recurrent=recurrent(pile.heights),
        density=np.bincount(pile.heights.ravel(), minlength=4) / n**2,
    )
    return out
