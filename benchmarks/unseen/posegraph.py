"""2-D pose-graph SLAM: odometry and loop closures, Levenberg-Marquardt with robust switching, marginal covariances, occupancy map. N: poses."""
import numpy
import numpy as np

DEFAULT = 420
BEAMS, ROUNDS, REACH = 90, 12, 6.0


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(71)
    t = numpy.linspace(0, 6 * numpy.pi, N)
    true = numpy.stack([9 * numpy.cos(t) + numpy.cos(3.1 * t), 6 * numpy.sin(t) + 0.5 * numpy.sin(2.3 * t), numpy.zeros(N)], axis=1)
    step = numpy.diff(true[:, :2], axis=0)
    true[:-1, 2] = numpy.arctan2(step[:, 1], step[:, 0])
    true[-1, 2] = true[-2, 2]

    def between(i, j, noise):
        d = true[j] - true[i]
        c, s = numpy.cos(true[i, 2]), numpy.sin(true[i, 2])
        z = numpy.stack([c * d[:, 0] + s * d[:, 1], -s * d[:, 0] + c * d[:, 1], d[:, 2]], axis=1)
        return z + rng.normal(0, 1, z.shape) * noise
    a = numpy.arange(N - 1)
    odo = between(a, a + 1, numpy.array([0.03, 0.02, 0.012]))
    gap = ((true[:, None, :2] - true[None, :, :2]) ** 2).sum(axis=2)
    i, j = numpy.nonzero((gap < 1.5) & (numpy.arange(N)[None, :] - numpy.arange(N)[:, None] > N // 6))
    keep = rng.permutation(len(i))[:2 * N]
    loops = between(i[keep], j[keep], numpy.array([0.05, 0.05, 0.02]))
    wrong = rng.random(len(keep)) < 0.06
    loops[wrong] += rng.normal(0, 3, (int(wrong.sum()), 3))
    angles = numpy.linspace(-numpy.pi, numpy.pi, BEAMS, endpoint=False)
    room = numpy.minimum(REACH, 2.5 + numpy.abs(numpy.sin(2 * (angles[None, :] + true[:, 2:]))) * 2)
    return dict(odo=odo, i=i[keep], j=j[keep], loops=loops, scan=(room + rng.normal(0, 0.02, room.shape)).astype(numpy.float32), angles=angles, true=true)


def wrap(a):
    return (a + np.pi) % (2 * np.pi) - np.pi


class Graph:
    def __init__(self, start, i, j, z, info, switchable):
        self.x, self.i, self.j, self.z = start, i, j, z
        self.info, self.switchable = info, switchable
        self.n, self.width = len(start), 4.0

    def residual(self, x):
        a, b = x[self.i], x[self.j]
        c, s = np.cos(a[:, 2]), np.sin(a[:, 2])
        d = b[:, :2] - a[:, :2]
        r = np.empty((len(self.i), 3))
        r[:, 0] = c * d[:, 0] + s * d[:, 1]
        r[:, 1] = -s * d[:, 0] + c * d[:, 1]
        r[:, 2] = b[:, 2] - a[:, 2]
        r -= self.z
        r[:, 2] = wrap(r[:, 2])
        return r, c, s, d

    def weights(self, r):
        """Dynamic covariance scaling on the loop closures, with a width that narrows."""
        chi2 = (r * r * self.info).sum(axis=1)
        w = np.ones(len(r))
        scale = np.minimum(1.0, 2 * self.width / (self.width + chi2[self.switchable]))
        w[self.switchable] = scale ** 2
        return w, chi2

    def cost(self, x):
        w, chi2 = self.weights(self.residual(x)[0])
        return float((w * chi2 + self.width * (1 - np.sqrt(w)) ** 2).sum())

    def normal(self):
        r, c, s, d = self.residual(self.x)
        w, chi2 = self.weights(r)
        m = len(r)
        A, B = np.zeros((m, 3, 3)), np.zeros((m, 3, 3))
        A[:, 0, 0], A[:, 0, 1], A[:, 0, 2] = -c, -s, -s * d[:, 0] + c * d[:, 1]
        A[:, 1, 0], A[:, 1, 1], A[:, 1, 2] = s, -c, -c * d[:, 0] - s * d[:, 1]
        A[:, 2, 2] = -1
        B[:, 0, 0], B[:, 0, 1], B[:, 1, 0], B[:, 1, 1], B[:, 2, 2] = c, s, -s, c, 1
        W = self.info * w[:, None]
        H = np.zeros((3 * self.n, 3 * self.n))
        g = np.zeros(3 * self.n)
        k = np.arange(3)
        rows_i, rows_j = 3 * self.i[:, None] + k, 3 * self.j[:, None] + k
        for P, rows in ((A, rows_i), (B, rows_j)):
            np.add.at(g, rows, np.einsum("mki,mk->mi", P, W * r))
            for Q, cols in ((A, rows_i), (B, rows_j)):
                np.add.at(H, (rows[:, :, None], cols[:, None, :]), np.einsum("mki,mk,mkj->mij", P, W, Q))
        H[k, k] += 1e6     # the first pose is held
        return H, g, w

    def optimise(self, rounds):
        lam, cost, trace, accepted = 1e-4, self.cost(self.x), [], 0
        for _ in range(rounds):
            H, g, w = self.normal()
            diagonal = np.arange(len(H))
            D = H[diagonal, diagonal].copy()
            H[diagonal, diagonal] += lam * D
            step = np.linalg.solve(H, -g).reshape(-1, 3)
            trial = self.x + step
            trial[:, 2] = wrap(trial[:, 2])
            new = self.cost(trial)
            trace.append(new)
            if new < cost:
                self.x, lam, accepted = trial, lam / 5, accepted + 1
                if cost - new < 1e-5 * cost:
                    break
                cost = new
            else:
                lam *= 8
        return trace, accepted


def chain(odo, n):
    """Dead reckoning by summing the headings, then the turned steps."""
    x = np.zeros((n, 3))
    x[1:, 2] = np.cumsum(odo[:, 2])
    c, s = np.cos(x[:-1, 2]), np.sin(x[:-1, 2])
    x[1:, 0] = np.cumsum(c * odo[:, 0] - s * odo[:, 1])
    x[1:, 1] = np.cumsum(s * odo[:, 0] + c * odo[:, 1])
    x[:, 2] = wrap(x[:, 2])
    return x


def occupancy(x, scan, angles, cell=0.2, size=160):
    heading = x[:, 2:] + angles
    logodds = np.zeros((size, size), dtype=np.float32)
    ix = lambda v: np.clip(((v + size * cell / 2) / cell).astype(np.int64), 0, size - 1)
    hx, hy = x[:, :1] + scan * np.cos(heading), x[:, 1:2] + scan * np.sin(heading)
    for f in np.linspace(0.05, 0.9, 12):
        fx, fy = x[:, :1] + f * scan * np.cos(heading), x[:, 1:2] + f * scan * np.sin(heading)
        np.add.at(logodds, (ix(fx), ix(fy)), np.float32(-0.25))
    np.add.at(logodds, (ix(hx), ix(hy)), np.where(scan < REACH, 1.0, 0.0).astype(np.float32))
    return np.clip(logodds, -8, 8)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    odo, loops, i, j, true = (asarray(data[k]) for k in ("odo", "loops", "i", "j", "true"))
    scan, angles = asarray(data["scan"]), asarray(data["angles"])
    start = chain(odo, N)
    start[:, 2] = wrap(start[:, 2] + true[0, 2])
    c, s = np.cos(true[0, 2]), np.sin(true[0, 2])
    start[:, :2] = start[:, :2] @ np.array([[c, s], [-s, c]]) + true[0, :2]
    ahead = np.arange(N - 1)
    info = np.concatenate([np.tile(1 / np.array([0.03, 0.02, 0.012]) ** 2, (N - 1, 1)), np.tile(1 / np.array([0.05, 0.05, 0.02]) ** 2, (len(i), 1))])
    graph = Graph(start, np.concatenate([ahead, i]), np.concatenate([ahead + 1, j]), np.concatenate([odo, loops]), info, np.arange(len(i)) + N - 1)
    before = np.sqrt(((start - true)[:, :2] ** 2).sum(axis=1).mean())
    trace, accepted = [], 0
    for graph.width in (3000.0, 100.0, 8.0):
        costs, good = graph.optimise(ROUNDS // 3)
        trace, accepted = trace + costs, accepted + good
    H, g, w = graph.normal()
    cov = np.linalg.inv(H).reshape(N, 3, N, 3)
    marginal = cov[np.arange(N), :, np.arange(N), :]
    spread = np.sqrt(np.linalg.eigvalsh(marginal[:, :2, :2])[:, -1])
    after = np.sqrt(((graph.x - true)[:, :2] ** 2).sum(axis=1).mean())
    chart = occupancy(graph.x, scan, angles)
    return dict(x=graph.x, trace=np.array(trace), accepted=accepted, dropped=(w[N - 1:] < 0.3).sum(), before=before, after=after, spread=spread,
                walls=(chart > 1).mean(), free=(chart < -1).mean(), rows=chart.mean(axis=1))
