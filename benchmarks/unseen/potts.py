"""Cellular Potts model (Glazier-Graner-Hogeweg): sorting of two kinds of cells by differential adhesion.

Checkerboard Metropolis sweeps on a periodic square lattice with Moore neighbours, a secreted attractant, and a
counter-based random generator (splitmix64 of site and draw number), so that nothing depends on the order of updates.
N: lattice sites a side (even).
"""

import numpy as np

DEFAULT = 128
MEDIUM, DARK, LIGHT = 0, 1, 2
MASK = (1 << 64) - 1
MOORE = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(1992)
    side = 6
    per = (N - 40) // side
    lattice = numpy.zeros((N, N), dtype=numpy.int32)
    block = numpy.arange(1, per * per + 1).reshape(per, per)
    aggregate = numpy.kron(block, numpy.ones((side, side), dtype=int))
    off = (N - per * side) // 2
    lattice[off : off + per * side, off : off + per * side] = aggregate
    kind = numpy.concatenate([[MEDIUM], rng.integers(1, 3, per * per)]).astype(numpy.int8)
    J = numpy.array([[0.0, 16.0, 16.0], [16.0, 2.0, 11.0], [16.0, 11.0, 14.0]])
    return {"lattice": lattice, "kind": kind, "J": J, "key": int(rng.integers(0, 2**62))}


class CounterRNG:
    def __init__(self, key):
        self.key, self.draw = key, 0

    def uint64(self, counter):
        """64 random bits for every counter; a fresh stream for every call."""
        self.draw += 1
        start = np.uint64((self.key + self.draw * 0x9E3779B97F4A7C15) & MASK)
        z = counter * np.uint64(0xD1342543DE82EF95) + start
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    def uniform(self, counter):
        return (self.uint64(counter) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, counter, n):
        return ((self.uint64(counter) >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(np.int64)


class Potts:
    def __init__(self, lattice, kind, J, key, temperature=10.0, stiffness=1.0, pull=15.0):
        self.s = lattice.copy()
        self.kind, self.J = kind, J
        self.T, self.lam, self.pull = temperature, stiffness, pull
        self.rng = CounterRNG(key)
        self.N = lattice.shape[0]
        self.site = np.arange(self.N * self.N, dtype=np.uint64).reshape(self.N, self.N)
        self.volume = np.bincount(self.s.ravel(), minlength=len(kind))
        self.target = np.where(kind > 0, 34, 0)
        self.field = np.zeros((self.N, self.N))
        self.accepted = []

    def diffuse(self, rounds=5):
        source = 0.05 * (self.kind[self.s] == DARK)
        for _ in range(rounds):
            c = self.field
            lap = np.roll(c, 1, 0) + np.roll(c, -1, 0) + np.roll(c, 1, 1) + np.roll(c, -1, 1) - 4 * c
            self.field = c + 0.2 * lap + source - 0.02 * c

    def contact(self, own, around):
        """Sum over the eight neighbours of J(kind, kind') where the cells differ."""
        total = 0.0
        mine = self.kind[own]
        for other in around:
            total = total + np.where(own != other, self.J[mine, self.kind[other]], 0.0)
        return total

    def colour(self, oy, ox):
        n = self.N
        wide = np.pad(self.s, 1, mode="wrap")
        smell = np.pad(self.field, 1, mode="wrap")
        cut = [(slice(1 + oy + dy, 1 + oy + dy + n, 2), slice(1 + ox + dx, 1 + ox + dx + n, 2)) for dy, dx in MOORE]
        around = np.stack([wide[c] for c in cut])
        old = self.s[oy::2, ox::2]
        counter = self.site[oy::2, ox::2]
        pick = self.rng.below(counter, 8)
        new = np.take_along_axis(around, pick[None], axis=0)[0]
        from_ = np.take_along_axis(np.stack([smell[c] for c in cut]), pick[None], axis=0)[0]
        excess = self.volume - self.target
        dH = self.contact(new, around) - self.contact(old, around)
        dH += np.where(new > 0, self.lam * (2 * excess[new] + 1), 0.0)
        dH -= np.where(old > 0, self.lam * (2 * excess[old] - 1), 0.0)
        dH -= self.pull * (self.field[oy::2, ox::2] - from_) * (self.kind[new] == LIGHT)
        go = (old != new) & (self.rng.uniform(counter) < np.exp(-np.maximum(dH, 0.0) / self.T))
        self.s[oy::2, ox::2] = np.where(go, new, old)
        self.volume += np.bincount(new[go], minlength=len(self.kind)) - np.bincount(old[go], minlength=len(self.kind))
        return go.sum()

    def sweep(self):
        self.diffuse()
        turns = [self.colour(oy, ox) for oy, ox in ((0, 0), (1, 1), (0, 1), (1, 0))]
        self.accepted.append(int(sum(turns)))

    def interface(self):
        """Lengths of the contacts between kinds, each pair of unlike cells counted once."""
        counts = np.zeros(9, dtype=np.int64)
        for dy, dx in ((0, 1), (1, 0), (1, 1), (1, -1)):
            t = np.roll(self.s, (-dy, -dx), (0, 1))
            edge = t != self.s
            pair = self.kind[self.s][edge].astype(np.int64) * 3 + self.kind[t][edge]
            counts += np.bincount(pair, minlength=9)
        table = counts.reshape(3, 3)
        return table + table.T

    def centroids(self):
        """Circular means of the coordinates of every cell."""
        angle = 2 * np.pi * np.arange(self.N) / self.N
        flat, count = self.s.ravel(), np.maximum(self.volume, 1)
        where = []
        for axis in (0, 1):
            a = np.broadcast_to(angle[:, None] if axis == 0 else angle[None, :], self.s.shape).ravel()
            c, s = (np.bincount(flat, weights=f(a), minlength=len(count)) for f in (np.cos, np.sin))
            where.append(np.stack([c, s]) / count)
        return np.stack(where)


def main(asarray, N, given):
    lattice, kind, J = (asarray(given[k]) for k in ("lattice", "kind", "J"))
    model = Potts(lattice, kind, J, given["key"])
    energy, mixing = [], []
    for sweep in range(80):
        model.T = 14.0 if sweep < 20 else max(4.0, 14.0 - 0.12 * (sweep - 20))
        model.sweep()
        if sweep % 10 == 9:
            contacts = model.interface()
            volume = model.lam * ((model.volume - model.target)[1:] ** 2).sum()
            energy.append(float(0.5 * (contacts * J).sum() + volume))
            mixing.append(float(contacts[DARK, LIGHT] / (contacts[DARK, DARK] + contacts[LIGHT, LIGHT] + 1)))
    alive = model.volume[1:] > 0
    return {
        "lattice": model.s,
        "volume": model.volume,
        "energy": np.array(energy),
        "mixing": np.array(mixing),
        "accepted": np.array(model.accepted),
        "centroids": model.centroids()[:, :, 1:],
        "alive": alive.sum(),
        "field": model.field,
        "sizes": np.bincount(model.volume[1:], minlength=80)[:80],
        "contacts": model.interface(),
    }
