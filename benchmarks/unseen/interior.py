"""Linear programmes by Mehrotra's predictor-corrector: a blending plan, a transport problem, l1 regression, a matrix game.

Then sensitivities and a path of the frontier with warm starts. N: constraints of the blending plan.
"""
import numpy as np

DEFAULT = 130


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(61)
    A = rng.random((N, 2 * N)) * (rng.random((N, 2 * N)) < 0.3)
    A[numpy.arange(N), numpy.arange(N)] += 0.5
    X = rng.normal(size=(2 * N, 6))
    y = X @ numpy.arange(1.0, 7.0) + rng.laplace(size=2 * N)
    y[::17] += 40
    return dict(A=A, room=A.sum(axis=1) * rng.uniform(0.4, 0.8, N), gain=rng.uniform(1, 3, 2 * N), risk=rng.uniform(0.1, 1, 2 * N), X=X, y=y,
                supply=rng.uniform(1, 2, 12), place=rng.random((12, 2)), shop=rng.random((18, 2)), share=rng.uniform(0.5, 1, 18),
                payoff=rng.normal(size=(25, 20)))


class Program:
    """min c x, A x = b, x >= 0."""

    def __init__(self, c, A, b):
        self.c, self.A, self.b = c, A, b
        self.scale_b = 1 + np.linalg.norm(b)
        self.scale_c = 1 + np.linalg.norm(c)

    def start(self):
        AAt = self.A @ self.A.T + 1e-10 * np.eye(len(self.b))
        x = self.A.T @ np.linalg.solve(AAt, self.b)
        y = np.linalg.solve(AAt, self.A @ self.c)
        s = self.c - self.A.T @ y
        x = x + max(-1.5 * float(x.min()), 0.0)
        s = s + max(-1.5 * float(s.min()), 0.0)
        gap = x @ s
        return x + 0.5 * gap / s.sum() + 1e-3, y, s + 0.5 * gap / x.sum() + 1e-3

    def solve(self, tol=1e-8, limit=60, start=None):
        x, y, s = self.start() if start is None else start
        A, n, log = self.A, len(self.c), []
        for it in range(limit):
            primal = self.b - A @ x
            dual = self.c - A.T @ y - s
            mu = float(x @ s) / n
            off = max(float(np.linalg.norm(primal) / self.scale_b), float(np.linalg.norm(dual) / self.scale_c))
            log.append(mu)
            if mu < tol and off < tol:
                break
            d = x / s
            M = (A * d) @ A.T
            even = 1 / np.sqrt(np.diagonal(M))
            M *= even[:, None] * even
            M[np.arange(len(M)), np.arange(len(M))] += 1e-13
            L = np.linalg.inv(np.linalg.cholesky(M)) * even

            def direction(right):
                dy = L.T @ (L @ (primal + A @ (d * dual - right / s)))
                ds = dual - A.T @ dy
                return (right - x * ds) / s, dy, ds

            dx, dy, ds = direction(-x * s)
            ap, ad = length(x, dx), length(s, ds)
            ahead = float((x + ap * dx) @ (s + ad * ds)) / n
            centre = (ahead / mu) ** 3
            dx, dy, ds = direction(centre * mu - x * s - dx * ds)
            keep = min(max(0.9, 1 - 10 * mu), 0.9995)
            ap, ad = min(1.0, keep * length(x, dx)), min(1.0, keep * length(s, ds))
            x = x + ap * dx
            y = y + ad * dy
            s = s + ad * ds
        return x, y, s, it, log


def length(v, dv):
    """How far v + a dv stays positive, at most a little above one."""
    shrinking = dv < 0
    if not shrinking.any():
        return 1.1
    return min(1.1, float((-v[shrinking] / dv[shrinking]).min()))


def with_slacks(A):
    return np.concatenate([A, np.eye(len(A))], axis=1)


def transport(cost, supply, demand):
    """Rows: what leaves each depot, what comes to each shop but the last (it follows from the others)."""
    m, n = cost.shape
    A = np.concatenate([np.kron(np.eye(m), np.ones((1, n))), np.kron(np.ones((1, m)), np.eye(n))[:-1]])
    return Program(cost.ravel(), A, np.concatenate([supply, demand[:-1]]))


def least_deviations(X, y):
    """min sum |y - X b| through its dual, max y u with X' u = 0 and |u| <= 1; the prices of the first rows are b."""
    n, k = X.shape
    A = np.zeros((k + n, 2 * n))
    A[:k, :n] = X.T
    A[k:, :n] = A[k:, n:] = np.eye(n)
    c = np.concatenate([-y, np.zeros(n)])
    p = Program(c, A, np.concatenate([X.sum(axis=0), np.full(n, 2.0)]))
    _, price, _, it, _ = p.solve()
    return -price[:k], it


def game(payoff):
    """The row player's mixed strategy and the value: shift to positive, normalise."""
    shift = 1.0 - payoff.min()
    G = payoff + shift
    m, n = G.shape
    A = np.concatenate([G.T, -np.eye(n)], axis=1)
    x, y, _, it, _ = Program(np.concatenate([np.ones(m), np.zeros(n)]), A, np.ones(n)).solve()
    value = 1 / x[:m].sum()
    return x[:m] * value, y * value, value - shift, it


def main(asarray, N, given):
    given = {k: asarray(v) for k, v in given.items()}
    A, room, gain, risk = given["A"], given["room"], given["gain"], given["risk"]
    S = with_slacks(A)
    zeros = np.zeros(N)
    plan = Program(np.concatenate([-gain, zeros]), S, room)
    x, y, s, steps, log = plan.solve()
    basic = x > s
    slack = x[2 * N:]
    objective = plan.c @ x
    # the dual prices predict a small change of the room
    nudge = 1e-4 * room * (np.arange(N) % 3 == 0)
    moved = Program(plan.c, S, room + nudge).solve()[0]
    change, predicted = plan.c @ moved - objective, y @ nudge

    # the frontier of gain and risk, each from the last solution pulled to the interior
    frontier, last, count = [], None, 0
    for weight in np.linspace(0.0, 2.0, 6).tolist():
        p = Program(np.concatenate([weight * risk - gain, zeros]), S, room)
        begin = None if last is None else (last[0] + 0.05, last[1], np.maximum(last[2], 0) + 0.05)
        last = p.solve(start=begin)
        count += last[3]
        frontier.append(np.stack([gain @ last[0][:2 * N], risk @ last[0][:2 * N]]))

    supply, share = given["supply"], given["share"]
    cost = np.sqrt(((given["place"][:, None] - given["shop"]) ** 2).sum(axis=2))
    t = transport(cost, supply, share * supply.sum() / share.sum())
    flow, price, _, rounds, _ = t.solve()
    flow = flow.reshape(cost.shape)
    X, truth = given["X"], given["y"]
    coef, fits = least_deviations(X, truth)
    ols = np.linalg.lstsq(X, truth, rcond=None)[0]
    row, column, value, turns = game(given["payoff"])
    return dict(objective=objective, x=np.where(basic, x, 0.0), basic=basic.sum(), binding=(slack < 1e-5).sum(), steps=steps, log=np.log10(np.array(log[:8])),
                agree=np.abs(change - predicted) < 1e-3 * np.abs(change) + 1e-6, frontier=np.stack(frontier), count=count,
                cost=(flow * cost).sum(), routes=(flow > 1e-4).sum(axis=1), price=price[:12] - price[0], rounds=rounds, coef=coef, ols=ols,
                exact=(np.abs(truth - X @ coef) < 1e-5).sum(), fits=fits, row=np.where(row > 1e-5, row, 0.0), column=np.where(column > 1e-5, column, 0.0), value=value, turns=turns)
