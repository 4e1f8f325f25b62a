"""A power grid: load flow and contingencies.

Admittances, Newton-Raphson load flow, N-1 by outage factors and again by Newton, fault currents, loading margin.
N: buses.
"""
import numpy as np

DEFAULT = 130


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(50)
    xy = rng.random((N, 2))
    d = numpy.hypot(*(xy[:, None] - xy).transpose(2, 0, 1))
    pairs = set()
    for i in range(1, N):                                   # a tree, then near neighbours
        j = int(d[i, :i].argmin())
        pairs.add((j, i))
    for i in range(N):
        for j in numpy.argsort(d[i])[1:4]:
            pairs.add((min(i, int(j)), max(i, int(j))))
    lines = numpy.array(sorted(pairs))
    length = d[lines[:, 0], lines[:, 1]] + 0.02
    gens = numpy.sort(rng.choice(N, N // 5, replace=False))
    load = rng.uniform(0.05, 0.25, N)
    return (lines, 0.03 * length, 0.25 * length, 0.1 * length, gens, load,
            load * rng.uniform(0.2, 0.4, N), rng.uniform(8, 20, len(gens)),
            rng.uniform(1.5, 9, len(gens)), rng.normal(size=(3, 4 * N)))


class Grid:
    def __init__(self, n, lines, r, x, b, out=None):
        self.n, self.f, self.t = n, lines[:, 0], lines[:, 1]
        on = np.ones(len(lines))
        if out is not None:
            on[out] = 0.0
        self.y = on / (r + 1j * x)
        self.x, self.sh = x, 0.5j * b * on
        G, B = np.zeros((n, n)), np.zeros((n, n))
        own = self.y + self.sh
        for part, y, d in ((G, self.y.real, own.real), (B, self.y.imag, own.imag)):
            np.add.at(part, (self.f, self.t), -y)
            np.add.at(part, (self.t, self.f), -y)
            np.add.at(part, (self.f, self.f), d)
            np.add.at(part, (self.t, self.t), d)
        self.Y = G + 1j * B

    def power(self, V):
        return V * np.conj(self.Y @ V)

    def flows(self, V):
        i = (V[self.f] - V[self.t]) * self.y + V[self.f] * self.sh
        return V[self.f] * np.conj(i)

    def derivatives(self, V):
        I = self.Y @ V
        E = V / np.abs(V)
        angle = 1j * np.diag(V) @ np.conj(np.diag(I) - self.Y * V[None, :])
        size = V[:, None] * np.conj(self.Y * E[None, :]) + np.diag(np.conj(I) * E)
        return angle, size


def newton(grid, S, V, pv, pq, tol=1e-9, limit=15):
    """Polar Newton-Raphson; bus 0 is the slack. Returns V, steps, whether it converged."""
    pvpq = np.concatenate([pv, pq])
    for k in range(limit):
        miss = grid.power(V) - S
        F = np.concatenate([miss[pvpq].real, miss[pq].imag])
        worst = float(np.abs(F).max())
        if worst < tol:
            return V, k, True
        if not worst < 1e4:
            break
        da, dm = grid.derivatives(V)
        top = np.concatenate([da.real[np.ix_(pvpq, pvpq)], dm.real[np.ix_(pvpq, pq)]], axis=1)
        low = np.concatenate([da.imag[np.ix_(pq, pvpq)], dm.imag[np.ix_(pq, pq)]], axis=1)
        J = np.concatenate([top, low])
        step = np.linalg.solve(J, F)
        angle, size = np.angle(V), np.abs(V)
        angle[pvpq] -= step[:len(pvpq)]
        size[pq] -= step[len(pvpq):]
        V = size * np.exp(1j * angle)
    return V, limit, False


def factors(grid):
    """PTDF and LODF of the DC model."""
    m, n = len(grid.f), grid.n
    A = np.zeros((m, n))
    row = np.arange(m)
    A[row, grid.f], A[row, grid.t] = 1.0, -1.0
    B = A.T @ (A / grid.x[:, None])
    X = np.zeros((n, n))
    X[1:, 1:] = np.linalg.inv(B[1:, 1:])
    ptdf = (A / grid.x[:, None]) @ X
    H = ptdf @ A.T
    own = np.diagonal(H).copy()
    bridge = own > 1 - 1e-8
    lodf = H / np.where(bridge, 1.0, 1 - own)[None, :]
    np.fill_diagonal(lodf, -1.0)
    return ptdf, lodf, bridge


def main(asarray, N, given):
    lines, r, x, b, gens, load, reactive, _, c, _ = (asarray(v) for v in given)
    grid = Grid(N, lines, r, x, b)
    P = load.sum() * 1.02 * c / c.sum()
    S = -(load + 1j * reactive)
    S[gens] += P
    is_gen = np.zeros(N, dtype=bool)
    is_gen[gens] = True
    pv, pq = np.flatnonzero(is_gen[1:]) + 1, np.flatnonzero(~is_gen[1:]) + 1
    V, steps, ok = newton(grid, S, np.ones(N, dtype=complex), pv, pq)
    flow = grid.flows(V)
    rating = 1.25 * np.abs(flow) + 0.1
    loss = grid.power(V).sum().real

    ptdf, lodf, bridge = factors(grid)
    injected = S.real.copy()
    injected[0] -= injected.sum()
    base = ptdf @ injected
    after = np.abs(base[:, None] + lodf * base[None, :]) / rating[:, None]
    after[:, bridge] = 0.0
    severity = np.where(after > 1, (after - 1)**2, 0).sum(axis=0)
    ranked = np.argsort(-severity, kind="stable")[:16]
    outage, lowest, iterations = [], [], []
    for k in ranked.tolist():
        g = Grid(N, lines, r, x, b, out=k)
        U, it, fine = newton(g, S, V, pv, pq)
        iterations.append(it)
        outage.append((np.abs(g.flows(U)) / rating).max() if fine else np.array(0.0))
        lowest.append(np.abs(U).min())

    # a stressed system: scale everything until Newton gives up, halving the stride
    scale, stride, U, trace = 1.0, 0.5, V, []
    while stride > 0.02:
        trial, _, fine = newton(grid, S * (scale + stride), U, pv, pq)
        if fine:
            scale, U = scale + stride, trial
            trace.append(np.abs(U).min())
        else:
            stride *= 0.5
    Z = np.linalg.inv(grid.Y + np.diag(np.where(is_gen, 1 / 0.2j, 0.0)))
    fault = np.abs(V / np.diagonal(Z))
    dip = np.abs(V[:, None] - Z / np.diagonal(Z)[None, :] * V[None, :])
    return dict(V=np.abs(V), angle=np.degrees(np.angle(V)), steps=steps, ok=ok, loss=loss,
                dispatch=P, flow=np.abs(flow), severity=severity, ranked=np.sort(ranked),
                outage=np.stack(outage), lowest=np.stack(lowest),
                iterations=np.array(iterations), scale=scale, trace=np.stack(trace), fault=fault,
                area=(dip < 0.7).sum(axis=0), worst=after.max(axis=1))
