"""The least compliant truss: ground structure, stiffness, optimality criteria, several loads, pruning, buckling, frequencies.

N: cells along the span.
"""
import numpy as np

DEFAULT = 13
YOUNG, DENSITY = 1.0, 1.0


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(5)
    high = max(N // 2, 3)
    return rng.uniform(0.9, 1.1, (4, N + 1)), rng.normal(0, 0.03, ((N + 1) * (high + 1), 2))


class Ground:
    """Nodes of a jittered grid and every member up to a length, none of which passes along another."""

    def __init__(self, nx, ny, jitter, reach=2.9):
        x, y = np.meshgrid(np.arange(nx + 1.0), np.arange(ny + 1.0), indexing="ij")
        self.nx, self.ny = nx, ny
        self.node = np.stack([x.ravel(), y.ravel()], axis=1)
        i, j = np.triu_indices(len(self.node), k=1)
        dx = self.node[j] - self.node[i]
        near = (dx ** 2).sum(axis=1) < reach ** 2
        step = np.rint(dx).astype(np.int64)
        near &= np.gcd(np.abs(step[:, 0]), np.abs(step[:, 1])) == 1
        self.i, self.j = i[near], j[near]
        self.node = self.node + jitter
        d = self.node[self.j] - self.node[self.i]
        self.length = np.hypot(d[:, 0], d[:, 1])
        c = d / self.length[:, None]
        self.members = self.length.size
        # each member's row: elongation by displacement
        self.dof = np.stack([2 * self.i, 2 * self.i + 1, 2 * self.j, 2 * self.j + 1], axis=1)
        self.along = np.concatenate([-c, c], axis=1)
        self.size = 2 * len(self.node)
        fixed = np.zeros(self.size, dtype=bool)
        left = np.arange(ny + 1)
        fixed[2 * left] = True
        fixed[2 * left + 1] = True
        self.free = np.flatnonzero(~fixed)

    def stiffness(self, area):
        K = np.zeros((self.size, self.size))
        k = (YOUNG * area / self.length)[:, None, None] * self.along[:, :, None] * self.along[:, None, :]
        rows = np.repeat(self.dof, 4, axis=1)
        cols = np.tile(self.dof, (1, 4))
        np.add.at(K, (rows.ravel(), cols.ravel()), k.ravel())
        return K[np.ix_(self.free, self.free)]

    def solve(self, area, loads):
        K = self.stiffness(area)
        L = np.linalg.cholesky(K)
        u = np.zeros((self.size, loads.shape[1]))
        u[self.free] = np.linalg.solve(L.T, np.linalg.solve(L, loads[self.free]))
        return u

    def strain(self, u):
        return (u[self.dof] * self.along[:, :, None]).sum(axis=1) / self.length[:, None]

    def mass(self, area):
        m = np.zeros(len(self.node))
        half = 0.5 * DENSITY * area * self.length
        np.add.at(m, self.i, half)
        np.add.at(m, self.j, half)
        return np.repeat(m, 2)[self.free]


def criteria(ground, loads, weight, volume, steps):
    """Areas by optimality criteria, with a move limit and bisection for the multiplier."""
    area = np.full(ground.members, volume / ground.length.sum())
    least = 1e-4 * float(area[0])
    history, change = [], 1.0
    for it in range(steps):
        u = ground.solve(area, loads)
        strain = ground.strain(u)
        work = (loads * u).sum(axis=0)
        history.append((weight * work).sum())
        energy = YOUNG * (strain ** 2 @ weight)              # minus the slope of compliance for each volume
        low, high = 0.0, float(energy.max()) * 4
        lo, hi = np.maximum(area * 0.6, least), area * 1.6
        while high - low > 1e-13 * high:
            mid = 0.5 * (low + high)
            new = np.clip(area * np.sqrt(energy / mid), lo, hi)
            if float(new @ ground.length) > volume:
                low = mid
            else:
                high = mid
        change = float(np.abs(new - area).max())
        area = new
        if change < 1e-5:
            break
    return area, np.stack(history), it


def buckling(ground, area, force):
    """Euler's load of solid round members, the critical factor of each compressed one."""
    inertia = area ** 2 / (4 * np.pi)
    euler = np.pi ** 2 * YOUNG * inertia / ground.length ** 2
    pressed = force < -1e-6
    factor = np.where(pressed, euler / np.where(pressed, -force, 1.0), np.inf)
    return factor


def frequencies(ground, area, many):
    K = ground.stiffness(area)
    s = 1.0 / np.sqrt(ground.mass(area) + 1e-3)
    return np.sqrt(np.abs(np.linalg.eigvalsh(s[:, None] * K * s[None, :])[:many]))


def main(asarray, N, given):
    factor, jitter = (asarray(v) for v in given)
    high = max(N // 2, 3)
    ground = Ground(N, high, jitter)
    cases = factor.shape[0]
    loads = np.zeros((ground.size, cases))
    bottom = np.arange(1, N + 1) * (high + 1)
    loads[2 * (bottom[-1] + high // 2) + 1, 0] = -1.0
    loads[2 * bottom + 1, 1] = -factor[1, 1:] / N
    loads[2 * (bottom + high) + 1, 2] = -factor[2, 1:] * (np.arange(1, N + 1) > N // 2) / N
    loads[2 * (bottom + high), 3] = 0.5 * factor[3, 1:] / N
    weight = np.array([0.4, 0.3, 0.2, 0.1])
    volume = 4.0 * N

    single, history, steps = criteria(ground, loads[:, :1], np.ones(1), volume, 25)
    area, path, rounds = criteria(ground, loads, weight, volume, 25)
    u = ground.solve(area, loads)
    force = YOUNG * area[:, None] * ground.strain(u)
    stress = force / area[:, None]

    # prune thin members, see which nodes remain, and what that costs
    thick = area > 0.02 * area.max()
    used = np.zeros(len(ground.node), dtype=np.int64)
    np.add.at(used, ground.i[thick], 1)
    np.add.at(used, ground.j[thick], 1)
    pruned = np.where(thick, area, 1e-4 * area.max())
    pruned *= volume / (pruned @ ground.length)
    after = (weight * (loads * ground.solve(pruned, loads)).sum(axis=0)).sum()

    # the loss of each of the twelve thickest members, by Sherman, Morrison and Woodbury
    flexible = np.linalg.inv(ground.stiffness(pruned))
    place = np.full(ground.size, -1)
    place[ground.free] = np.arange(ground.free.size)
    full = np.argsort(-pruned, kind="stable")[:12]
    rise = []
    right = loads[ground.free]
    base = flexible @ right
    for m in full.tolist():
        b = np.zeros(ground.size)
        b[ground.dof[m]] = ground.along[m]
        b = b[ground.free]
        fb = flexible @ b
        k = 0.999 * YOUNG * pruned[m] / ground.length[m]
        change = fb[:, None] * (k / (1 - k * (b @ fb))) * (b @ base)[None, :]
        rise.append((weight * (right * (base + change)).sum(axis=0)).sum() / after)
    safety = np.stack([buckling(ground, pruned, force[:, c]) for c in range(cases)], axis=1)
    worst = safety.min(axis=0)
    angle = np.degrees(np.arctan2(ground.along[:, 3], ground.along[:, 2])) % 180
    rose = np.histogram(angle, bins=18, range=(0, 180), weights=pruned * ground.length)[0]
    return dict(single=single, history=history, steps=steps, area=area, path=path, rounds=rounds, tip=u[-2:], force=force, stress=np.abs(stress).max(axis=0),
                kept=thick.sum(), used=used, after=after, rise=np.stack(rise), worst=worst, rose=rose, frequency=frequencies(ground, pruned, 8))
