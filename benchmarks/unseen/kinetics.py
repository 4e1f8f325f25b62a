"""Stiff chemistry: a batch of well-stirred reactors with a mass-action mechanism, and Robertson's problem.

Rosenbrock's method of order three with analytic Jacobians, a common adaptive step for the batch; rates of progress, induction
times, main pathways, sensitivities of the steady state. N: reactors.
"""
import numpy as np

DEFAULT = 240
SPECIES = 8
GAS = 8.314
# H2 O2 H OH H2O HO2 H2O2 O: reactants -> products, with log10 A (m3/mol/s) and activation energy (kJ/mol)
MECHANISM = [((0, 1), (3, 3), 7.2, 200.0), ((2, 1), (3, 7), 8.0, 64.0), ((7, 0), (3, 2), 6.6, 33.0), ((3, 0), (4, 2), 7.2, 21.0),
             ((2, 3), (4,), 5.0, 0.0), ((2, 1), (5,), 3.0, 0.0), ((5, 2), (3, 3), 7.8, 1.2), ((5, 5), (6, 1), 5.0, 4.0),
             ((6,), (3, 3), 11.0, 190.0), ((5, 0), (6, 2), 6.5, 100.0), ((2, 2), (0,), 3.5, 0.0), ((7, 4), (3, 3), 6.4, 60.0),
             ((3, 3), (7, 4), 4.7, 0.0), ((5, 3), (4, 1), 7.0, 0.0), ((4, 2), (3, 0), 7.9, 83.0), ((3, 7), (2, 1), 6.9, 1.0)]


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(711)
    start = numpy.zeros((N, SPECIES))
    start[:, 0] = rng.uniform(0.8, 1.6, N)
    start[:, 1] = rng.uniform(0.5, 1.5, N)
    start[:, 2] = rng.uniform(1e-7, 1e-5, N)
    return dict(start=start, temperature=rng.uniform(820.0, 1180.0, N), feed=rng.uniform(0.02, 0.2, N))


class Mechanism:
    """Reactions of one or two molecules; a missing second reactant is a species of concentration one."""

    def __init__(self, reactions):
        R = len(reactions)
        self.first = np.array([left[0] for left, _, _, _ in reactions])
        self.second = np.array([(left + (SPECIES,))[1] for left, _, _, _ in reactions])
        self.net = np.zeros((R, SPECIES + 1))
        np.add.at(self.net, (np.arange(R), self.first), -1.0)
        np.add.at(self.net, (np.arange(R), self.second), -1.0)
        for r, (_, right, _, _) in enumerate(reactions):
            for s in right:
                self.net[r, s] += 1
        self.net = self.net[:, :SPECIES].copy()
        self.logA = np.array([q[2] for q in reactions]) * np.log(10.0)
        self.Ea = np.array([q[3] for q in reactions]) * 1e3

    def constants(self, T):
        return np.exp(self.logA - self.Ea / (GAS * T[:, None]))

    def progress(self, k, c):
        full = np.concatenate([c, np.ones((len(c), 1))], axis=1)
        return k * full[:, self.first] * full[:, self.second]

    def jacobian(self, k, c):
        """d rate / d concentration, (cells, species, species)."""
        full = np.concatenate([c, np.ones((len(c), 1))], axis=1)
        J = np.zeros((len(c), len(self.Ea), SPECIES + 1))
        r = np.arange(len(self.Ea))
        J[:, r, self.first] += k * full[:, self.second]
        J[:, r, self.second] += k * full[:, self.first]
        return np.einsum("rs,nrt->nst", self.net, J[:, :, :SPECIES])


class Reactors:
    def __init__(self, mech, T, inflow, feed):
        self.mech, self.k, self.inflow, self.feed = mech, mech.constants(T), inflow, feed[:, None]
        self.evaluations = 0

    def rate(self, c):
        self.evaluations += 1
        return self.mech.progress(self.k, c) @ self.mech.net + self.feed * (self.inflow - c)

    def jacobian(self, c):
        J = self.mech.jacobian(self.k, c)
        J -= self.feed[:, :, None] * np.eye(SPECIES)
        return J


def rosenbrock(problem, c, end, rtol=1e-3, atol=1e-7, h=1e-6, watch=None):
    """ROS3: three stages, one Jacobian and one matrix for each step."""
    g = 0.43586652150845967
    a21, c21, c31, c32 = 1.0, -1.0156171083877702, 4.0759956452537699, 9.2076794298330791
    b = (1.0, 6.1697947043828245, -0.4277225654321857)
    e = (0.5, -2.9079558716805469, 0.2235406989781156)
    t, taken, refused = 0.0, 0, 0
    eye = np.eye(SPECIES)
    while t < end and taken + refused < 2000:
        h = min(h, end - t)
        W = eye / (h * g) - problem.jacobian(c)
        inverse = np.linalg.inv(W)
        f0 = problem.rate(c)
        k1 = (inverse @ f0[:, :, None])[:, :, 0]
        f1 = problem.rate(c + a21 * k1)
        k2 = (inverse @ (f1 + (c21 / h) * k1)[:, :, None])[:, :, 0]
        k3 = (inverse @ (f1 + (c31 / h) * k1 + (c32 / h) * k2)[:, :, None])[:, :, 0]
        new = c + b[0] * k1 + b[1] * k2 + b[2] * k3
        weight = atol + rtol * np.maximum(np.abs(c), np.abs(new))
        error = (e[0] * k1 + e[1] * k2 + e[2] * k3) / weight
        worst = float(np.sqrt((error ** 2).mean(axis=1)).max())
        if worst <= 1.0:
            t += h
            taken += 1
            c = np.maximum(new, 0.0)
            if watch is not None:
                watch(t, c)
        else:
            refused += 1
        h *= min(5.0, max(0.2, 0.85 * max(worst, 1e-10) ** (-1 / 3)))
    return c, taken, refused


class Ignition:
    """The time at which the product passes half of its limit, and its largest slope."""

    def __init__(self, n, level):
        self.level, self.last, self.t = level, np.zeros(n), 0.0
        self.when, self.slope = np.full(n, np.inf), np.zeros(n)

    def __call__(self, t, c):
        now = c[:, 4]
        slope = (now - self.last) / (t - self.t)
        crossed = (self.last < self.level) & (now >= self.level)
        self.when[crossed] = self.t + ((self.level - self.last) / np.where(crossed, slope, 1.0))[crossed]
        np.maximum(self.slope, slope, out=self.slope)
        self.last, self.t = now, t


def robertson(steps=60):
    """The classic problem by implicit Euler with Newton and steps that double now and then: tiny arrays."""
    y, h, t, path = np.array([1.0, 0.0, 0.0]), 1e-4, 0.0, []
    count = 0
    for n in range(steps):
        z = y.copy()
        for _ in range(12):
            f = np.stack([-0.04 * z[0] + 1e4 * z[1] * z[2], 0.04 * z[0] - 1e4 * z[1] * z[2] - 3e7 * z[1] ** 2, 3e7 * z[1] ** 2])
            J = np.zeros((3, 3))
            J[0, 0], J[0, 1], J[0, 2] = -0.04, 1e4 * z[2], 1e4 * z[1]
            J[2, 1] = 6e7 * z[1]
            J[1] = -J[0] - J[2]
            step = np.linalg.solve(np.eye(3) - h * J, z - y - h * f)
            z -= step
            count += 1
            if np.abs(step).max() < 1e-10:
                break
        y, t = z, t + h
        path.append(y)
        if n % 3 == 2:
            h *= 2.0
    return np.stack(path), count


def main(asarray, N, given):
    start, T, feed = asarray(given["start"]), asarray(given["temperature"]), asarray(given["feed"])
    mech = Mechanism(MECHANISM)
    inflow = start.copy()
    inflow[:, 2:] = 0.0
    tank = Reactors(mech, T, inflow, feed)
    watch = Ignition(N, 0.2 * start[:, 0])
    c, taken, refused = rosenbrock(tank, start, 40.0, watch=watch)
    net = tank.rate(c)

    # rates of progress, who makes and who uses, the leading reaction of each species
    w = mech.progress(tank.k, c)
    made = np.einsum("nr,rs->ns", w, np.maximum(mech.net, 0))
    used = np.einsum("nr,rs->ns", w, np.maximum(-mech.net, 0))
    share = (w[:, :, None] * np.maximum(mech.net, 0)) / np.maximum(made, 1e-30)[:, None, :]
    leader = share.mean(axis=0).argmax(axis=0)

    # Newton from here to the steady state, then how it depends on each rate constant
    steady = c.copy()
    for it in range(25):
        step = np.linalg.solve(tank.jacobian(steady), -tank.rate(steady)[:, :, None])[:, :, 0]
        room = np.where(step < 0, -0.9 * steady / np.minimum(step, -1e-300), 1.0).min(axis=1)
        steady += np.clip(room, 0.0, 1.0)[:, None] * step
        if float(np.abs(step).max()) < 1e-9:
            break
    J = tank.jacobian(steady)
    ws = mech.progress(tank.k, steady)
    right = -(mech.net.T[None] * ws[:, None, :])
    sens = np.linalg.solve(J, right) / np.maximum(steady, 1e-12)[:, :, None]
    lit = np.isfinite(watch.when)
    hot = np.digitize(T, np.linspace(800, 1200, 9)) - 1
    number = np.bincount(hot, minlength=8)
    mean = np.bincount(hot, weights=steady[:, 4], minlength=8) / np.maximum(number, 1)
    delay = np.log(np.where(lit, watch.when, 1.0))
    A = np.stack([np.ones(N), 1000.0 / T, np.log(start[:, 0])], axis=1)[lit]
    fit = np.linalg.lstsq(A, delay[lit], rcond=None)[0] if int(lit.sum()) > 3 else np.zeros(3)
    path, count = robertson()
    return dict(c=c, taken=taken, refused=refused, settled=np.abs(net).max() < 1e-4, made=made, used=used, leader=leader, steady=steady, newton=it,
                sens=np.abs(sens).mean(axis=0), lit=lit.sum(), slope=watch.slope, number=number, mean=mean, fit=fit,
                robertson=path[::5], count=count, evaluations=tank.evaluations)
